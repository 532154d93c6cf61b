"""Snapshots of systems of jobs: the base for small kinds of systems."""

from __future__ import annotations

from typing import Any

import attrs

from simmodel.snapshots.jobs import JobsSnapshot, RunningWork, WorkState, seen_running, seen_works
from simmodel.snapshots.types import Columns

__all__ = ["JobSystemSnapshot"]


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class JobSystemSnapshot(JobsSnapshot):
    """A system of jobs at one instant, with the fields of all snapshots and those below.

    A kind of system derives its own attrs class, which names its ``system``, narrows the type of ``platform`` and adds
    its own fields.

    Parameters
    ----------
    platform
        the spec of the system
    running, waiting
        running jobs, in the order of their starts; waiting jobs, in order
    arrivals
        jobs still to be submitted
    """

    platform: Any
    running: Columns[RunningWork] = ()
    waiting: Columns[WorkState] = ()
    arrivals: Columns[WorkState] = ()

    def __repr__(self) -> str:
        running, waiting = self.tally
        return f"<{type(self).__name__} of {self.name} at {self.now:g} s: {running} running, {waiting} waiting>"

    def expected(self, *, actual: bool = False) -> JobSystemSnapshot:
        """Return the part that a what-if may see: no arrivals, and expected instead of actual run times."""
        parts: dict[str, Any] = {}
        if not actual:
            parts["running"] = seen_running(self.running)
            parts["waiting"] = seen_works(self.waiting)
        return attrs.evolve(self, arrivals=(), streams=(), seed=0, **parts)
