"""Light what-ifs: the starts and ends that would follow under another policy, from information open to policies."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np
from simpy.core import EmptySchedule

from simmodel.environment import NEVER, Environment
from simmodel.foundation.errors import Stalled
from simmodel.scheduling.registry import policy as policy_of
from simmodel.snapshots.snapshot import PolicyState
from simmodel.systems.cluster.snapshots import capture
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.jobs import WorkState
    from simmodel.systems.cluster.intake import LiveCluster
    from simmodel.work.job import Run

__all__ = ["Course", "Prediction", "follow", "memory_of", "simulate_from"]


class Course(NamedTuple):
    """The events of a light what-if: (number, job, place, instant in s) of each start; ends by number; its end.

    ``stops``: of interrupted jobs, by number, the first start (s), the seconds that they waited again, and those that
    they were suspended or executed in vain.
    """

    starts: list[tuple[int, int | str, str, float]]
    ends: dict[int, float]
    ended: float
    stops: dict[int, tuple[float, float, float]]


class Prediction:
    """The outcome of a light what-if.

    Attributes
    ----------
    snapshot
        the snapshot it started from
    at, ended
        its first and last instant, in s
    starts
        (job, place, instant in s) in order; for a suspended job its resumption
    course
        the same by number of job
    """

    def __init__(self, snapshot: ClusterSnapshot, course: Course) -> None:
        self.snapshot = snapshot
        self.course = course
        self.at = snapshot.now
        self.ended = course.ended
        self.starts = [start[1:] for start in course.starts]

    @cached_property
    def now(self) -> list[tuple[int | str, str]]:
        """(job, place) of the starts at the instant of the snapshot."""
        return [(job, place) for job, place, start in self.starts if start == self.at]

    @cached_property
    def jobs(self) -> Table:
        """One row per job that ran or waited: ``job, submit, start, end, processors, requested, waiting``.

        ``waiting``: whether it had not started in the snapshot. Instants in s; nan if not reached by the what-if. If
        jobs were interrupted, also ``waited``: the instant at which its wait ends, if all its waits follow each other;
        ``stopped``: the seconds that it was suspended or executed in vain; ``run``: those that it needs.
        """
        snapshot = self.snapshot
        works = [run.work for run in snapshot.running]
        running = len(works)
        works += [*snapshot.waiting, *snapshot.held, *snapshot.blocked]
        starts = {work.work.number: work.started for work in snapshot.running}
        for number, _, _, start in self.course.starts:
            starts.setdefault(number, start)
        found = Table(
            {
                "job": _column([work.id for work in works]),
                "submit": np.array([work.submit for work in works], dtype=np.float64),
                "start": np.array([starts.get(work.number, np.nan) for work in works], dtype=np.float64),
                "end": np.array([self.course.ends.get(work.number, np.nan) for work in works], dtype=np.float64),
                "processors": np.array([work.processors for work in works], dtype=np.int64),
                "requested": np.array([work.requested for work in works], dtype=np.float64),
                "waiting": np.arange(len(works)) >= running,
            }
        )
        return self._with_stops(found, works) if self.course.stops else found

    def _with_stops(self, jobs: Table, works: Sequence[WorkState]) -> Table:
        waited, run, stopped = jobs["start"].copy(), jobs["requested"].copy(), np.zeros(len(jobs))
        for row, work in enumerate(works):
            if work.number in self.course.stops:
                begun, again, stopped[row] = self.course.stops[work.number]
                waited[row] = begun + again
                run[row] += 0.0 if work.past is None else work.past.executed
        return jobs.with_columns(waited=waited, stopped=stopped, run=run)


def _column(values: Sequence[int | str | None]) -> NDArray[np.generic]:
    return np.array(values, dtype=object if any(isinstance(value, str) for value in values) else np.int64)


def follow(cluster: LiveCluster, snapshot: ClusterSnapshot, until: float | None) -> Prediction:
    """Run a cluster that continues from a snapshot, to its end or an instant (s), and record starts and ends only."""
    env = cluster.env
    runs: list[Run] = []
    ends: dict[int, float] = {}

    def ended(run: Run, status: str) -> None:
        if status not in ("preempted", "requeued"):
            ends[run.job.seq] = env._now

    cluster.core.tell_only(job_started=runs.append, job_resumed=runs.append, job_ended=ended)
    endless = any(work.expected == inf for work in (*snapshot.waiting, *snapshot.held, *snapshot.blocked))
    endless = endless or any(run.expected_end == inf for run in snapshot.running)
    with _no_collections():
        _run(cluster, until, endless)
    starts = [(run.job.seq, run.job.id, run.place.name, run.started) for run in runs]
    stops = {}
    for run in runs:
        past = run.job.history
        if past is not None and past.begun is not None and past.interruptions:
            stops[run.job.seq] = past.begun, past.waited, past.paused + past.lost + past.overhead
    last = float(env._now)
    if last == NEVER:
        last = max([snapshot.now, *(start[3] for start in starts), *ends.values()])
    runs.clear()  # the cluster is garbage for the collector, but not its jobs and their runs
    cluster.forget_ended()
    return Prediction(snapshot, Course(starts, ends, last, stops))


def _run(cluster: LiveCluster, until: float | None, endless: bool) -> None:
    """Run until an instant or until no events are left; jobs that never start remain waiting."""
    env = cluster.env
    end = cluster.idle() if until is None and cluster.calendar.endless else until
    if until is None and endless:
        end = NEVER  # so that endless jobs do not end at infinity
    if end is None or end == NEVER:  # a policy may plan wake-ups for ever
        cluster.scheduler.over = lambda: env.only_wake_ups and not cluster.view.waiting
    try:
        if end is not None:
            env.run(end)
        else:
            env._loop()
    except (EmptySchedule, Stalled):
        pass


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable the garbage collector, whose cost outweighs its use in a run of a few milliseconds."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def simulate_from(
    cluster: LiveCluster,
    policy: PolicyLike,
    *,
    until: float | None = None,
    horizon: float | None = None,
    estimates: str | None = None,
) -> Prediction:
    """Simulate a cluster from now on under a policy, with the information available to policies: ``view.simulate``.

    Parameters
    ----------
    policy
        a name, a policy or a function of a view
    until, horizon
        instant at which to stop (s), or seconds until then; default: when all jobs have ended
    estimates
        ``"actual"``: use the actual run times of running and waiting jobs, as some simulators do; default: the expected
        ones
    """
    snapshot = (
        cluster.snapshot().expected(actual=True) if estimates == "actual" else capture(cluster, False, predictor=False)
    )
    if policy is not cluster.scheduler.policy and not isinstance(policy, str):
        snapshot = attrs.evolve(snapshot, policy=memory_of(policy))
    if horizon is not None:
        until = min(snapshot.now + horizon, inf if until is None else until)
    env = Environment(snapshot.now, snapshot.seed)
    return follow(cluster.from_snapshot(env, snapshot, policy, record=False), snapshot, until)


def memory_of(policy: PolicyLike) -> PolicyState:
    """Return the memory of a candidate policy, which replaces that of the deciding policy in a snapshot."""
    chosen = policy_of(policy)
    return PolicyState(chosen.name, None, chosen.state())
