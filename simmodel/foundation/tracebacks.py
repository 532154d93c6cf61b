"""Errors in code that users hand in (policies, bodies, models): a note of what it was asked for, and a short traceback.

A traceback leads from the user's call to the user's code through frames of simmodel, which say nothing to its author.
They are left out where simmodel was called, unless the environment variable ``SIMMODEL_TRACEBACK`` is ``full``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import dropwhile, pairwise
from types import TracebackType
from typing import Any

from simmodel.foundation.errors import SimmodelError
from simmodel.moved import MOVED

__all__ = ["note", "shorten", "shortened"]

_OTHERS = {"simpy", "numpy", "networkx", "attr", "attrs", "cattrs", *sys.stdlib_module_names}
_OURS = {"simmodel", *(new.partition(".")[0] for new in MOVED.values()), *_OTHERS}
"""The top modules of simmodel, of where parts of it moved, and of what calls users' code in its name."""

_NOUNS = {"LiveJob": "job", "LiveTask": "task"}


def _parts(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_users(part: TracebackType) -> bool:
    return str(part.tb_frame.f_globals.get("__name__")).partition(".")[0] not in _OURS


def _failed(error: BaseException, trace: TracebackType | None) -> tuple[BaseException, list[TracebackType]]:
    """Return an error and its traceback from users' code on: of the failure that SimPy raised anew if it has none."""
    parts = list(dropwhile(lambda each: not _is_users(each), _parts(trace)))
    cause = error.__cause__
    if parts or cause is None or type(cause) is not type(error):
        return error, parts
    return _failed(cause, cause.__traceback__)


def _label(value: Any) -> str:
    """Return what a live job or task is called in a sentence; empty: the value is something else."""
    noun = next((_NOUNS[each.__name__] for each in type(value).__mro__ if each.__name__ in _NOUNS), "")
    return noun and f"{noun} {value.id}"


def note(
    error: BaseException, trace: TracebackType | None, now: float, who: str = "", waiting: Iterable[object] = ()
) -> None:
    """Say of an error in users' code at which instant (s) and for which work it was called, unless a note says so.

    Parameters
    ----------
    trace
        the traceback from the frame on that called the code
    who
        what it is; default: the name of the function, and of the part of the system that it belongs to
    waiting
        the work that waits, for code that handles none when it fails

    >>> __name__ = "mine"
    >>> from simmodel import Policy, simulate
    >>> class Mine(Policy):
    ...     def decide(self, view):
    ...         for job in view.waiting:
    ...             return view.nothing
    >>> try:
    ...     _ = simulate(16, "probe-4", Mine())
    ... except AttributeError as error:
    ...     print(*error.__notes__)
    in policy Mine at 0 s: job 1
    """
    _, parts = _failed(error, trace)
    if getattr(error, "__notes__", ()) or not (parts or (who and not isinstance(error, SimmodelError))):
        return
    if not who:
        entries = [part for before, part in pairwise(parts) if _is_users(part) and not _is_users(before)]
        frame = [parts[0], *entries][-1].tb_frame
        whose = getattr(frame.f_locals.get("self"), "name", "")
        who = f"{frame.f_code.co_qualname}{whose and f' of {whose}'}"
    values = (value for part in reversed(parts) for value in part.tb_frame.f_locals.values())
    at_hand = next((f": {label}" for each in values if (label := _label(each))), "")
    first = next((f", first waiting: {_label(each)}" for each in waiting), "")
    error.add_note(f"in {who} at {now:.12g} s{at_hand or first}")


def shorten(error: BaseException, trace: TracebackType | None) -> None:
    """Leave out what lies between the first frame of a traceback and users' code, if the error comes from there."""
    if trace is None or os.environ.get("SIMMODEL_TRACEBACK") == "full":
        return
    failed, parts = _failed(error, trace.tb_next)
    users = [part for part in parts if _is_users(part)]
    if users and failed is not error:
        trace.tb_next, failed.__traceback__ = None, users[0]
    for before, part in pairwise(users if failed is not error else [trace, *users]):
        before.tb_next = part


class _Shortened:
    """Leaves out the frames between this block and users' code from the traceback of an error that leaves it."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            shorten(error, trace)


shortened = _Shortened()
"""Where users call simmodel: ``with shortened: ...``."""
