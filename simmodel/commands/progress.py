"""The progress bar of a command: on request, or by itself in a terminal when the command lasts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from simmodel.commands.arguments import argument, arguments, group

__all__ = ["DISPLAY", "PROGRESS", "bar_settled"]

LASTING = 1.0
"""Seconds after which a bar appears that was not requested."""

DISPLAY = arguments(
    argument(
        "--progress",
        "show a progress bar (default: in a terminal, if the run takes longer than a second)",
        action=argparse.BooleanOptionalAction,
        default=None,
    ),
    argument("-q --quiet", "print neither summary nor progress bar"),
)
"""The options of the terminal."""

PROGRESS = group("display", DISPLAY)


@contextmanager
def bar_settled(options: argparse.Namespace) -> Iterator[None]:
    """Set ``options.progress`` to whether the run shows a bar, which appears late if it was not requested."""
    wanted: bool | None = getattr(options, "progress", False)
    if wanted is not None:
        yield
        return
    options.progress = not options.quiet and sys.stderr.isatty() and find_spec("tqdm") is not None
    if not options.progress:
        yield
        return
    from simmodel.records.observers import bars_appear_after

    with bars_appear_after(LASTING):
        yield
