"""Snapshots of systems of jobs: what a small kind of system needs to be copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from simmodel.snapshots.jobs import RunningWork, Work, seen_work
from simmodel.snapshots.snapshot import Snapshot
from simmodel.snapshots.types import Columns

__all__ = ["JobSystemSnapshot"]


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class JobSystemSnapshot(Snapshot):
    """A system of jobs at one instant; beside what all snapshots have:

    A kind of system derives its own class: an attrs class like this one that says of which ``system`` it is, the type
    of its ``platform``, and what the kind has besides.

    Parameters
    ----------
    platform
        the description of the system
    running, waiting
        what runs, in the order of the starts; what waits, in order
    arrivals
        what is still to be submitted
    """

    platform: Any
    running: Columns[RunningWork] = ()
    waiting: Columns[Work] = ()
    arrivals: Columns[Work] = ()

    def __repr__(self) -> str:
        running, waiting = self.tally
        return f"<{type(self).__name__} of {self.name} at {self.now:g} s: {running} running, {waiting} waiting>"

    @property
    def works(self) -> Iterator[Work]:
        """What has been submitted and is not over: what runs, then what waits."""
        yield from (run.work for run in self.running)
        yield from self.waiting

    @property
    def ids(self) -> list[int | str]:
        """The ids of the jobs that have been submitted and are not over."""
        return [work.id for work in self.works]

    @property
    def begun(self) -> set[tuple[int | str, float]]:
        """The ids of the jobs that run, each with its start (s)."""
        return {(run.work.id, run.started) for run in self.running}

    @property
    def tally(self) -> tuple[int, int]:
        """How many jobs run and how many wait."""
        return len(self.running), len(self.waiting)

    @property
    def unfinished(self) -> int:
        """How many jobs it holds, those still to arrive included."""
        return len(self.running) + len(self.waiting) + len(self.arrivals)

    def expected(self, *, actual: bool = False) -> JobSystemSnapshot:
        """Return what a what-if may see: no arrivals, and expected instead of actual run times."""
        parts: dict[str, Any] = {}
        if not actual:
            parts["running"] = tuple(run._replace(work=seen_work(run.work), end=None) for run in self.running)
            parts["waiting"] = tuple(map(seen_work, self.waiting))
        return attrs.evolve(self, arrivals=(), streams=(), seed=0, **parts)
