"""From advice to actions: which commands a mode sends for a decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from simmodel.twin.acting.actions import Command, Mode
    from simmodel.twin.advisor import AdvisedStart

__all__ = ["Known", "Wanted", "wanted"]

Known: TypeAlias = "tuple[int | str, float]"
"""A job by id and submission (s)."""


class Wanted(NamedTuple):
    """A command for a job."""

    command: Command
    job: int | str
    submit: float
    value: int = 0


def wanted(
    mode: Mode,
    starts: Iterable[AdvisedStart],
    *,
    waiting: Iterable[Known] = (),
    preferred: Mapping[Known, int] | None = None,
    now: float = 0.0,
    maximum_delay: float = float("inf"),
    preference: int = 0,
) -> Iterator[Wanted]:
    """Yield the commands for the jobs that should start now.

    Parameters
    ----------
    mode
        the mode of the twin
    starts
        the jobs that should start, in order
    waiting, preferred
        the jobs that wait, and how far those are moved forward that are
    now, maximum_delay
        the instant (s), and the longest wait (s) after which no younger job is preferred to one
    preference
        how far to move a job forward

    A job that waits for longer than ``maximum_delay`` is not passed because of the twin: no job submitted after it is
    preferred, and those that were are not any more.

    >>> from simmodel.twin.advisor import AdvisedStart
    >>> starts = [AdvisedStart(7, 60.0, "batch"), AdvisedStart(3, 20.0, "batch")]
    >>> [(each.command, each.job) for each in wanted("hold-and-release", starts)]
    [('release', 7), ('release', 3)]
    >>> waiting = [(1, 30.0), (3, 20.0), (7, 60.0)]
    >>> list(wanted("priority", starts, waiting=waiting, now=100.0, maximum_delay=60.0, preference=1000))
    [Wanted(command='prefer', job=3, submit=20.0, value=1000)]
    """
    if mode == "hold-and-release":
        for start in starts:
            yield Wanted("release", start.job, start.submit)
    elif mode == "priority":
        oldest = min((submit for _, submit in waiting if now - submit > maximum_delay), default=float("inf"))
        chosen = {(start.job, start.submit): preference for start in starts if start.submit <= oldest}
        before = dict(preferred or {})
        for job, submit in before:
            if (job, submit) not in chosen:
                yield Wanted("unprefer", job, submit)
        for (job, submit), value in chosen.items():
            if before.get((job, submit)) != value:
                yield Wanted("prefer", job, submit, value)
