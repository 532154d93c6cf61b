"""The events of a simulated cluster, as a scheduler would send them: to replay logs, and to test a twin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.pools.pool import Pool
from simmodel.scheduling.observer import Observer
from simmodel.twin.events import Demand, Ended, Event, NodesChanged, Requeued, Started, Submitted

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place
    from simmodel.systems.cluster.system import Cluster
    from simmodel.work.job import LiveJob, Run

__all__ = ["EventsOf", "request_of"]

_BACK = ("preempted", "requeued")  # statuses of runs whose jobs wait again


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
        """Pass on the submission."""
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
        """Pass on another start."""
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
    seconds = float(job.asked if isfinite(job.asked) else job.planned)  # the limit by which the scheduler plans
    if spec is None:
        return Demand(processors=job.processors, requested=seconds, user=job.user)
    return Demand(
        processors=job.processors,
        nodes=spec.nodes,
        cores_per_node=spec.cores_per_node,
        gpus_per_node=spec.gpus_per_node,
        memory_per_node=spec.memory_per_node,
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
