"""Snapshots of systems of jobs: what a small kind of system needs to be copied."""

from __future__ import annotations

from typing import Any

import attrs

from simmodel.snapshots.jobs import JobsSnapshot, RunningWork, WorkState, seen_work
from simmodel.snapshots.types import Columns

__all__ = ["JobSystemSnapshot"]


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class JobSystemSnapshot(JobsSnapshot):
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
    waiting: Columns[WorkState] = ()
    arrivals: Columns[WorkState] = ()

    def __repr__(self) -> str:
        running, waiting = self.tally
        return f"<{type(self).__name__} of {self.name} at {self.now:g} s: {running} running, {waiting} waiting>"

    def expected(self, *, actual: bool = False) -> JobSystemSnapshot:
        """Return what a what-if may see: no arrivals, and expected instead of actual run times."""
        parts: dict[str, Any] = {}
        if not actual:
            parts["running"] = tuple(run._replace(work=seen_work(run.work), end=None) for run in self.running)
            parts["waiting"] = tuple(map(seen_work, self.waiting))
        return attrs.evolve(self, arrivals=(), streams=(), seed=0, **parts)
