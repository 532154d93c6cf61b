"""Logs replayed as sources, at any speed: as they were recorded, or on a simulated cluster that takes the advice.

:class:`EventsOf` tells any simulated cluster by the events that a scheduler would send.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel import InputError
from simmodel.extending import Fields, Prepared, chunk_text, of_class, prepare, read_workload
from simmodel.resources import NodePool, Pool
from simmodel.scheduling import Observer, Start
from simmodel.systems import Cluster
from simmodel_site.twin.events import (
    Demand,
    Ended,
    Event,
    NodesChanged,
    Passed,
    Requeued,
    Started,
    StateReport,
    Submitted,
)
from simmodel_site.twin.sources import Refused

if TYPE_CHECKING:
    from simmodel.extending import GivenWork
    from simmodel.runs import Simulation
    from simmodel.scheduling import Place
    from simmodel.work import LiveJob, Run, Workload
    from simmodel_site.twin.advisor import Advice

__all__ = ["AdvisedLog", "EventsOf", "LogSettings", "RecordedLog", "request_of"]

_FIELDS = ("nodes", "cores_per_node", "gpus_per_node", "memory_per_node", "chunks")
_NAMES = ("user", "group", "queue", "partition")
_BACK = ("preempted", "requeued")  # statuses of runs whose jobs wait again
_PAUSE = 0.02  # seconds between looks at the clock


@attrs.frozen(kw_only=True, repr=False)
class LogSettings(Fields):
    """The settings of a source that replays a log as it was recorded.

    Parameters
    ----------
    log
        a file, or the name of a ready workload; its jobs must have recorded waits
    speed
        seconds of the log in a second; default: as fast as possible
    """

    log: str
    speed: float | None = None

    def open(self, cluster: str, folder: Path) -> RecordedLog:
        """Return the source."""
        from simmodel.catalogue import bundled_names, load_workload

        ready = self.log in bundled_names("workloads")
        return RecordedLog(load_workload(self.log if ready else folder / self.log), cluster, speed=self.speed)


class _Replay:
    """The base of replays: events in order of time, each yielded when its time has come."""

    def __init__(self, cluster: str, speed: float | None) -> None:
        if speed is not None and not (speed > 0 and isfinite(speed)):
            raise InputError(f"must be a finite number > 0 (s of the log in a second), got {speed!r}", place="speed")
        self.cluster = cluster
        self.speed = speed
        self.refused = Refused()
        self._due: deque[Event] = deque()
        self._ended = False
        self._begun: tuple[float, float] | None = None  # wall-clock time and time of the first event

    def report(self) -> StateReport | None:
        """Return ``None``: a log has events alone."""
        return None

    def _more(self) -> Iterator[Event]:
        """Return the events of some more instants; none: it has ended."""
        raise NotImplementedError

    def events(self, timeout: float) -> Iterator[Event]:
        """Yield the events whose time has come, waiting at most ``timeout`` seconds for one."""
        until = monotonic() + timeout
        found = False
        while not self._ended:
            if not self._due:
                if found:  # so that what reads this decides between two instants
                    return
                self._due.extend(self._more())
                if not self._due:
                    self._ended = True
                    return
            left = self._left(self._due[0].time)
            if left <= 0:
                found = True
                yield self._due.popleft()
            elif found or monotonic() >= until:
                return
            else:
                sleep(min(left, _PAUSE, max(0.0, until - monotonic())))

    def _left(self, time: float) -> float:
        """Return the wall-clock seconds until an instant of the log."""
        if self.speed is None:
            return 0.0
        now = monotonic()
        if self._begun is None:
            self._begun = now, time
        return self._begun[0] + (time - self._begun[1]) / self.speed - now

    def position(self) -> str | None:
        """Return ``None``: a replay starts from the beginning."""
        return None

    def resume(self, position: str | None) -> None:
        """Start from the beginning."""

    @property
    def over(self) -> bool:
        """Whether all events have been yielded."""
        return self._ended

    def close(self) -> None:
        """Do nothing."""


class RecordedLog(_Replay):
    """A log replayed as it was recorded; jobs without a recorded start are left out and counted.

    Each instant ends with :class:`.Passed` before the starts that were recorded at it: this is
    when the scheduler decided.

    Parameters
    ----------
    workload
        the log, as a workload, a data frame, a name or a path; its jobs must have recorded waits or starts
    cluster
        the name of the cluster
    speed
        seconds of the log in a second; default: as fast as possible

    Attributes
    ----------
    refused
        the jobs that are left out, by reason

    >>> from simmodel import Workload
    >>> log = Workload({"submit": [0, 5], "wait": [0, 2], "run": [9, 4], "processors": [1, 2]})
    >>> source = RecordedLog(log, "alps")
    >>> while not source.over:
    ...     print(*(f"{event.kind} at {event.time:g}" for event in source.events(0.0)))
    submitted at 0 passed at 0 started at 0
    submitted at 5 passed at 5
    passed at 7 started at 7
    ended at 9 passed at 9
    ended at 11 passed at 11
    <BLANKLINE>
    """

    def __init__(self, workload: GivenWork, cluster: str, *, speed: float | None = None) -> None:
        super().__init__(cluster, speed)
        self.workload = workload = read_workload(workload)
        ready = prepare(workload, None, overrun="continue")
        start = workload.recorded_starts()
        told = ready.rows[np.isfinite(start[ready.rows])]
        if not len(told):
            raise InputError(f"must have jobs with recorded waits, got {len(workload)} without", workload.name)
        for reason in ready.rejected.values():
            self.refused.count(f"jobs left out: {reason}")
        for _ in range(len(ready.rows) - len(told)):
            self.refused.count("jobs left out: no recorded start")
        moments = [(float(ready.submit[row]), 1, int(row)) for row in told]
        moments += [(float(start[row]), 2, int(row)) for row in told]
        moments += [
            (float(start[row] + ready.duration[row]), 0 if ready.duration[row] else 3, int(row)) for row in told
        ]
        self._moments = sorted(moments)[::-1]
        self._ready = ready

    def __repr__(self) -> str:
        return f"<RecordedLog {self.workload.name}: {len(self._moments)} events to come>"

    def _more(self) -> Iterator[Event]:
        moments = self._moments
        if not moments:
            return
        time, passed = moments[-1][0], False
        while moments and moments[-1][0] == time:
            _, kind, row = moments.pop()
            if kind >= 2 and not passed:
                passed = True
                yield Passed(cluster=self.cluster, time=time)
            yield self._event(kind, row, time)
        if not passed:
            yield Passed(cluster=self.cluster, time=time)

    def _event(self, kind: int, row: int, time: float) -> Event:
        about: dict[str, Any] = {"cluster": self.cluster, "time": time}
        about |= {"job": self.workload["job"][row : row + 1].tolist()[0], "submit": float(self._ready.submit[row])}
        if kind == 1:
            return Submitted(**about, request=_request(self.workload, self._ready, row))
        return Started(**about) if kind == 2 else Ended(**about)


def _request(workload: Workload, ready: Prepared, row: int) -> Demand:
    values: dict[str, Any] = {}
    for name in _FIELDS + _NAMES:
        if name in workload:
            value = workload[name][row].item()
            if value not in (-1, "") and value == value:
                values[name] = value
    if "nodes" not in values:
        values["processors"] = int(ready.processors[row])
    if "priority" in workload:
        values["priority"] = float(workload["priority"][row])
    limit = float(ready.requested[row])
    return Demand(**values, requested=limit if isfinite(limit) else None)


class AdvisedLog(_Replay):
    """A log on a simulated cluster that starts the jobs that it is advised to start.

    Each instant ends with :class:`~simmodel_site.twin.events.Passed`; the advice for it is handed to :meth:`advised`.

    Parameters
    ----------
    simulation
        the cluster and its jobs, not yet begun (see :func:`~simmodel.runs.scenario.start`); its policy is not asked
    cluster
        the name of the cluster
    speed
        seconds of the log in a second; default: as fast as possible
    """

    def __init__(self, simulation: Simulation, cluster: str, *, speed: float | None = None) -> None:
        super().__init__(cluster, speed)
        system = of_class(simulation.system, Cluster, "of a cluster", "simulation")
        self.simulation = simulation
        self._told: list[Event] = []
        self._recorder = EventsOf(system, self._told.append, cluster)
        simulation.env.observe(self._recorder)

    def __repr__(self) -> str:
        return f"<AdvisedLog at {self.simulation.env.now:g} s>"

    def _more(self) -> Iterator[Event]:
        view = self.simulation.next_decision()
        if view is not None:
            self._recorder.tell(Passed)
        yield from self._told
        self._told.clear()

    def advised(self, advice: Advice) -> None:
        """Start the jobs of an advice for this instant."""
        view = self.simulation.system.scheduler.question
        if view is None or advice.time != view.now:
            raise InputError(f"must be for {self.simulation.env.now:g} s, got {advice.time:g} s", place="advice")
        waiting: Mapping[Any, Any] = {job.id: job for job in view.waiting}
        places = {place.name: place for place in view.places}
        self.simulation.decide(Start(waiting[each.job], places[each.partition]) for each in advice.starts)


class EventsOf(Observer):
    """Observes a cluster and passes on its events, numbered from 1 on.

    Parameters
    ----------
    system
        the cluster
    tell
        called with each event
    cluster
        its name in events; default: its own

    >>> from simmodel import Cluster, Environment, Job
    >>> env = Environment()
    >>> cluster = Cluster(env, 4)
    >>> events = []
    >>> env.observe(EventsOf(cluster, events.append))
    >>> _ = cluster.submit(Job(processors=4, run=5)); env.run()
    >>> [(event.kind, event.time, event.job, event.sequence) for event in events]
    [('submitted', 0.0, 1, 1), ('started', 0.0, 1, 2), ('ended', 5.0, 1, 3)]
    """

    def __init__(self, system: Cluster, tell: Callable[[Event], object], cluster: str | None = None) -> None:
        self.system = system
        self.cluster = system.name if cluster is None else cluster
        self.count = 0
        self._tell = tell
        self._out: dict[Pool, Counter[str]] = {}

    def tell(self, kind: type[Event], **values: Any) -> None:
        """Pass on an event of the present instant."""
        self.count += 1
        self._tell(kind(cluster=self.cluster, time=float(self.system.env.now), sequence=self.count, **values))

    def _about(self, kind: type[Event], job: LiveJob, **values: Any) -> None:
        if job.place in self.system.places:
            self.tell(kind, job=job.id, submit=float(job.submit), **values)

    def job_submitted(self, job: LiveJob) -> None:
        self._about(Submitted, job, request=request_of(job))

    def job_started(self, run: Run) -> None:
        """Pass on the start with its place and nodes."""
        held, pool = run.grant.allocation, run.place
        nodes: tuple[tuple[str, int], ...] = ()
        if held is not None and isinstance(pool, NodePool):
            nodes = tuple([(pool.nodes[int(row[0])], int(row[1])) for row in held.rows])
        self._about(Started, run.job, partition=pool.name, nodes=nodes)

    def job_ended(self, run: Run, status: str) -> None:
        """Pass on the end, or the return to the queue."""
        if status in _BACK and not run.job.over:
            self._about(Requeued, run.job)
        else:
            self._about(Ended, run.job, status=status)

    def job_cancelled(self, job: LiveJob) -> None:
        """Pass on the end of a job that left the queue."""
        self._about(Ended, job, status="cancelled")

    def job_suspended(self, run: Run) -> None:
        """Pass on a return to the queue: no event says that the job will resume."""
        self._about(Requeued, run.job)

    def job_resumed(self, run: Run) -> None:
        self.job_started(run)

    # ------------------------------------------------------------------ nodes

    def place_changed(self, place: Place, cause: str) -> None:
        """Pass on the nodes that went out of service or returned; maintenance and reservations are known in advance."""
        if not isinstance(place, Pool) or place.part_of is not None or place not in self.system.places:
            return
        out, before = _out(place), self._out.get(place, Counter())
        self._out[place] = out
        gone, back = sorted((out - before).items()), sorted((before - out).items())
        state = "down" if cause == "failure" else "draining"
        if isinstance(place, NodePool):
            for which, more in ((state, [name for name, _ in gone if not before[name]]), ("up", [*(before - out)])):
                names = tuple(name for name in more if which != "up" or not out[name])
                if names:
                    self.tell(NodesChanged, state=which, nodes=names, partition=place.name)
            return
        for which, counts in ((state, gone), ("up", back)):
            if counts:
                self.tell(NodesChanged, state=which, processors=sum(count for _, count in counts), partition=place.name)


def _out(pool: Pool) -> Counter[str]:
    """Return how often each node, or how many processors, are out of service for reasons that were not announced."""
    begun = [window.what for window in pool.windows if window.begun]
    if isinstance(pool, NodePool):
        times = Counter({pool.nodes[node]: count for node, count in pool.absences.away})
        return times - Counter(pool.nodes[node] for what in begun for node in what)
    return Counter({"": pool.spec.capacity - pool.capacity + pool.absences.away - sum(begun)})


def request_of(job: LiveJob) -> Demand:
    """Return the request of a live job."""
    spec = job.spec
    limit = float(job.asked if isfinite(job.asked) else job.planned)  # by which the scheduler plans
    seconds = limit if isfinite(limit) else None
    if spec is None:
        return Demand(processors=job.processors, requested=seconds, user=job.user)
    if spec.gpus_per_node % 1 or spec.gpu:
        raise InputError(f"job {job.id}: a twin knows whole GPUs alone, got a share, a type or a slice of one")
    return Demand(
        processors=job.processors,
        nodes=spec.nodes,
        cores_per_node=spec.cores_per_node,
        gpus_per_node=int(spec.gpus_per_node),
        memory_per_node=spec.memory_per_node,
        chunks=chunk_text(spec.chunks or ()),
        consumables=dict(spec.consumables),
        requested=seconds,
        user=job.user,
        group=spec.group,
        queue=spec.queue,
        partition=spec.partition,
        priority=spec.priority,
        name=spec.name,
        dependencies=tuple((each.job, each.after) for each in spec.dependencies),
    )
