"""``simmodel twin status``: what a running twin says of itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from simmodel.commands.arguments import argument, arguments, group
from simmodel.commands.values import source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin status twin.toml",)


add = arguments(
    argument("config CONFIG", "the configuration (TOML), which names the port", source, nargs="?"),
    argument("--port PORT", "the port instead", int),
    group("display", argument("--json", "print the status as JSON")),
)


def run(options: argparse.Namespace) -> None:
    """Print what a running twin says of itself; it must serve its status on a port of this machine."""
    import json

    from simmodel.display import text_table
    from simmodel.twin.serving import asked

    status = asked(_port(options))
    if options.json:
        print(json.dumps(status, indent=2))
        return
    print("\n".join(text_table([["status", ""], *_rows(status)], left=2)))


def _rows(status: dict[str, Any]) -> Iterator[list[str]]:
    """Yield name and value of all that is there."""
    for name, value in status.items():
        named = [(name, value)]
        if isinstance(value, dict):
            named = [(f"{name} {key}", each) for key, each in value.items()]
        elif isinstance(value, list):
            named = [(name.removesuffix("s"), each) for each in value]
        yield from ([_cell(key), _cell(each)] for key, each in named if each is not None and each != "")


def _port(options: argparse.Namespace) -> int:
    """Return the port that is given or configured."""
    from simmodel.errors import InputError
    from simmodel.twin.config import read_config

    if options.port is not None:
        return int(options.port)
    if options.config is None:
        raise InputError("give CONFIG or --port", place="CONFIG")
    serve = read_config(options.config).serve
    if serve is None or serve.port == 0:
        raise InputError("must name a port to be asked by", options.config, "serve.port")
    return serve.port


def _cell(value: object) -> str:
    """Return a value for a person: texts from outside clipped and without control characters."""
    from simmodel.errors import clipped

    text = clipped(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value, 100)
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
