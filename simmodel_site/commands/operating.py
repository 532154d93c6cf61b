"""``simmodel twin check``, ``run``, ``status``, ``watchdog`` and ``release``: operate a twin."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from simmodel.extending import QUIET, TRUST, argument, command, document, files, group, source, write_and_say

__all__ = ["TWIN", "check", "release", "run", "status", "watchdog"]

_CONFIG = argument("config CONFIG", "the configuration (TOML)", source)

TWIN = argument("config CONFIG", "the configuration of the twin (TOML)", source)
"""Also of the commands about jobs that wait."""


@command(
    "twin check",
    _CONFIG,
    TRUST,
    examples=("simmodel twin check twin.toml",),
)
def check(options: argparse.Namespace) -> None:
    """Try the parts of a configuration: platform, policies, connections, files and port; list the actions it permits.

    A full report of the source, if it gives one, is taken into a mirror of the platform: mismatches are listed.
    """
    from simmodel.extending import fitted
    from simmodel_site.twin.config import read_config
    from simmodel_site.twin.running import check_config

    for line in check_config(read_config(options.config, trust=options.trust), trust=options.trust):
        print(fitted(line))


@contextmanager
def _service(level: Literal["info", "warning"]) -> Iterator[Callable[[], bool]]:
    """Log from a level on, and yield whether SIGTERM has asked to end."""
    import signal

    from simmodel_site.twin.logs import start_logging, stop_logging

    stopped: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    logging = start_logging(level)
    try:
        yield lambda: bool(stopped)
    finally:
        stop_logging(logging)
        signal.signal(signal.SIGTERM, before)


@command(
    "twin run",
    _CONFIG,
    TRUST,
    group("display", argument("-v --verbose", "log what happens, not only what goes wrong")),
    examples=("simmodel twin run twin.toml",),
)
def run(options: argparse.Namespace) -> None:
    """Follow a cluster as a configuration says, and write each decision into the audit log.

    It ends when its source is over, or by an interrupt or SIGTERM, and continues from the audit log when it is started
    again.
    """
    from contextlib import ExitStack

    from simmodel_site.twin.config import read_config
    from simmodel_site.twin.running import follow, opened
    from simmodel_site.twin.serving import StatusServer
    from simmodel_site.twin.turnaround import Turnarounds

    config = read_config(options.config, trust=options.trust)
    with ExitStack() as stack:
        stopped = stack.enter_context(_service("info" if options.verbose else "warning"))
        twin = stack.enter_context(opened(config, trust=options.trust))
        server = turnarounds = None
        if config.serve is not None:
            turnarounds = Turnarounds(config.serve.speed)
            server = stack.enter_context(
                StatusServer(twin.status, config.serve.port, answers=turnarounds.answer, late=twin.late)
            )
        where = "" if server is None else f", status at http://127.0.0.1:{server.port}, page at {server.page}"
        print(f"following {config.cluster}{where}", flush=True)
        follow(twin, stopped, server, turnarounds)
        print(f"ended: {twin.advised:,} decisions, {twin.fallbacks:,} of them by the fallback", flush=True)


@command(
    "twin status",
    argument("config CONFIG", "the configuration (TOML), which names the port", source, nargs="?"),
    argument("--port PORT", "the port instead", int),
    group("display", QUIET),
    files(document("the status")),
    examples=("simmodel twin status twin.toml",),
)
def status(options: argparse.Namespace) -> None:
    """Print the status that a running twin reports; it must serve its status on a port of this machine."""
    import json

    from simmodel.extending import text_table, write_text
    from simmodel_site.twin.serving import asked

    status = asked(_port(options))
    said = text_table([["status", ""], *_rows(status)], left=2)
    write_and_say(options, said, "", json=lambda path: write_text(path, json.dumps(status, indent=2) + "\n"))


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
    from simmodel import InputError
    from simmodel_site.twin.config import read_config

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
    from simmodel.extending import clipped

    text = clipped(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value, 100)
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


@command(
    "twin watchdog",
    TWIN,
    argument("--interval S", "seconds between looks (%(default)s)", float, default=1.0),
    examples=("simmodel twin watchdog twin.toml",),
)
def watchdog(options: argparse.Namespace) -> None:
    """Watch the heartbeat of a twin and, while there is none, release every job that is held for it.

    Run it beside the twin, as a service of its own; it ends by an interrupt or SIGTERM, and releases nothing then.
    """
    from pathlib import Path

    from simmodel import InputError
    from simmodel_site.twin.acting.heartbeat import Pulse, Watchdog
    from simmodel_site.twin.config import read_config

    config = read_config(options.config)
    act, folder = config.act, Path(config.folder)
    if act is None:
        raise InputError("missing table: nothing is held for this twin", str(options.config), "act")
    if not options.interval > 0:
        raise InputError(f"must be a number > 0 (s), got {options.interval!r}", place="--interval")
    pulse = Pulse(folder / act.heartbeat, act.stale_after)
    dog = Watchdog(config.hands(restoring=True), pulse, folder / act.stop_file, config.cluster)
    with _service("warning") as stopped:
        print(f"watching {pulse.path}", flush=True)
        dog.run(stopped, options.interval)
        print(f"ended: gave {dog.restored:,} jobs back")


@command(
    "twin release",
    TWIN,
    argument("--dry-run", "say what would be given back, and change nothing"),
    examples=("simmodel twin release twin.toml",),
)
def release(options: argparse.Namespace) -> None:
    """Release every job that is held or preferred for a twin.

    Later changes by users or administrators stay as they are, and are printed. A twin that is alive goes on: make
    its stop file first.
    """
    from simmodel import SimmodelError
    from simmodel_site.twin.acting.performing import restore
    from simmodel_site.twin.config import read_config

    hands = read_config(options.config).hands(restoring=True)
    if options.dry_run:
        for job in hands.marked():
            how = "held" if job.held else f"preferred by {job.preference}" if job.preference else "not held any more"
            print(f"{job.job}: {f'left as it is: {job.changed}' if job.changed else how}")
        return
    found = restore(hands)
    print(f"gave {found.jobs:,} jobs back to the scheduler")
    for each in found.left:
        print(f"left as it is: {each}")
    if found.failed:
        raise SimmodelError(f"{found.failed:,} could not be given back: {found.why}")
