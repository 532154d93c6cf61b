"""The live cluster of a mirror: it is kept as the ledger says, step by step or from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel import Environment, InputError
from simmodel.extending import OVER, Allocation, ImpossibleWork, MirroredExecution
from simmodel.resources import NodePool
from simmodel.systems import Cluster
from simmodel.work import LiveJob
from simmodel_site.twin.events import ON_HOLD, Demand
from simmodel_site.twin.mirror.places import Places

if TYPE_CHECKING:
    from simmodel.extending import PolicyLike
    from simmodel.platform import ClusterOptions, ClusterSpec
    from simmodel.resources import Pool
    from simmodel_site.twin.events import JobKey
    from simmodel_site.twin.mirror.job_history import Entry
    from simmodel_site.twin.mirror.ledger import Ledger
    from simmodel_site.twin.sources import Refused

__all__ = ["Down", "MirroredCluster"]

Down = Mapping[str, "frozenset[str] | int"]
"""The resources out of service, by partition: names of nodes, or a number of processors."""


class _Taken(NamedTuple):
    """A job in the cluster, with the request and the open dependencies that it was taken in with."""

    job: LiveJob
    request: Demand
    waits_for: tuple[tuple[int | str, str], ...]


class MirroredCluster:
    """A cluster with mirrored executions that follows a ledger.

    Attributes
    ----------
    system
        the cluster
    no_room
        jobs that should run, but other jobs hold too much of their place: the end of another is not known yet
    uneven
        jobs on several nodes whose processors are not shared evenly among them, as other jobs hold too much of one
    """

    def __init__(
        self,
        ledger: Ledger,
        spec: ClusterSpec,
        name: str,
        policy: PolicyLike,
        options: ClusterOptions,
        now: float,
        refused: Refused,
        unlimited: float,
    ) -> None:
        self.ledger = ledger
        self.env = Environment(now)
        self.system = Cluster(self.env, spec, policy, **options.values(), name=name, record=False, execution="mirrored")
        assert isinstance(self.system.execution, MirroredExecution)
        self.execution = self.system.execution
        self.system.dependencies.forgets = True
        self.no_room: dict[JobKey, None] = {}
        self.uneven: dict[JobKey, None] = {}
        self._refused = refused
        self._unlimited = unlimited
        self._jobs: dict[JobKey, _Taken] = {}
        self._places = Places(spec)
        self._nodes: dict[str, list[tuple[NodePool, int]]] = {}
        for pool in self.system.places:
            if isinstance(pool, NodePool) and pool.part_of is None:
                for number, node in enumerate(pool.nodes):
                    self._nodes.setdefault(node, []).append((pool, number))

    # ------------------------------------------------------------------ time

    def advance(self, time: float) -> None:
        """Let announced windows begin and end up to an instant (s), its own included."""
        self.env.advance(time)

    # ------------------------------------------------------------------ jobs

    def learned(self) -> dict[str, Any]:
        """Return the cluster's record of the past, as plain values: usage by user, and the memory of predictions."""
        usages = self.system.core.usages
        used = [[each.half_life, [[user, *values] for user, values in each.by_user.items()]] for each in usages]
        predictions = self.system.predictions
        return {"usage": used, "predictor": None if predictions is None else predictions.predictor.state()}

    def take_over(self, learned: Mapping[str, Any], entries: Iterable[Entry]) -> None:
        """Begin with another cluster's record of the past, and with the jobs of a ledger."""
        predictions = self.system.predictions
        if predictions is not None and learned.get("predictor") is not None:
            predictions.predictor.restore(learned["predictor"])
        self.follow_all(entries)
        for half_life, used in learned.get("usage", ()):
            for usage in self.system.core.usages:
                if usage.half_life == half_life:
                    usage.by_user.update({user: tuple(values) for user, *values in used})

    def follow_all(self, entries: Iterable[Entry]) -> None:
        """Take in jobs from scratch: those that run, the latest first if they do not all fit, then those that wait.

        Schedulers do not tell how many processors a job has on each of its nodes. If jobs do not all fit with an even
        share, those that do not get what is free of their nodes.
        """
        running: list[Entry] = []
        waiting: list[Entry] = []
        for entry in entries:
            (running if entry.state.phase == "running" else waiting).append(entry)
        running.sort(key=_started)
        self._follow_each(running)
        if self.no_room:
            for entry in running:
                self._take_out(entry, "lost")
            self.no_room.clear()
            self._follow_each(reversed(running), even=False)
        self._follow_each(sorted(waiting, key=_number))

    def _follow_each(self, entries: Iterable[Entry], *, even: bool = True) -> None:
        for entry in entries:
            self._follow(entry, even=even)

    def follow(self, entry: Entry) -> bool:
        """Bring a job, and those that depend on it, to where the ledger has them; return whether that is possible.

        Otherwise the cluster has to be built from scratch.
        """
        dependents = self.ledger.dependents(entry)
        for each in dependents:
            if self.ledger.wish(each) == "out":
                self._take_out(each, "cancelled")
        followed = self._follow(entry)
        for each in dependents:
            followed &= self._follow(each)
        return followed and not self.uneven

    def _follow(self, entry: Entry, *, even: bool = True) -> bool:
        wish = self.ledger.wish(entry)
        taken = self._jobs.get(entry.key)
        if taken is not None and taken.job.state in OVER:  # cancelled by the cluster: another job did not succeed
            del self._jobs[entry.key]
            taken = None
        if wish == "out":
            self._take_out(entry, entry.state.status or "lost")
            return not self.no_room
        if taken is not None and self._differs(entry, taken):
            self._take_out(entry, None)
            taken = None
        live = None if taken is None else taken.job
        if live is None:
            live = self._submit(entry)
        elif live.run is not None and wish == "waiting":
            self.execution.end(live, "requeued")
        if live is not None and wish == "running" and live.run is None:
            self._start(entry, live, even=even)
        return not self.no_room

    def _opened(self, entry: Entry) -> tuple[tuple[int | str, str], ...]:
        """Return the dependencies that a job still has to wait for."""
        if entry.state.phase == "running" or not entry.request.dependencies:
            return ()
        return self.ledger.open_dependencies(entry) or ()

    def _differs(self, entry: Entry, taken: _Taken) -> bool:
        """Whether a job must be taken out and in again: another request, attempt, start or place."""
        live, request, waits_for = taken
        if request is not entry.request:
            return True
        run, state = live.run, entry.state
        if run is None:
            attempts = state.attempts - (state.phase == "running")
            return live.attempts != attempts or waits_for != self._opened(entry)
        if state.phase != "running":
            return live.attempts != state.attempts or waits_for != self._opened(entry)
        return (
            run.started != state.started
            or live.attempts != state.attempts
            or (self._partition(state.partition) or run.place) is not run.place
            or (bool(state.nodes) and self._named(run) != {name for name, _ in state.nodes if name in self._nodes})
        )

    def _named(self, run: Any) -> set[str]:
        pool = run.place
        return {pool.nodes[number] for number in run.grant.nodes or ()}

    def _take_out(self, entry: Entry, status: str | None) -> None:
        """Take a job out of the cluster; ``None``: it comes in again."""
        taken = self._jobs.pop(entry.key, None)
        self.no_room.pop(entry.key, None)
        self.uneven.pop(entry.key, None)
        if taken is None or taken.job.state in OVER:
            return
        live = taken.job
        if live.run is not None and status is None:
            self.execution.end(live, "requeued")
        if live.run is not None:
            self.execution.end(live, "completed" if status is None else status)
        elif status is not None and not entry.alive:
            self.system.cancel(live)
        else:
            self.execution.leave(live)
            self.system.count_coming(-1)

    def _submit(self, entry: Entry) -> LiveJob | None:
        request = self._places.request(entry.request)
        opened = self._opened(entry)
        if request.dependencies != opened:
            request = attrs.evolve(request, dependencies=opened)
        if entry.state.released is not None:
            request = attrs.evolve(request, options=self._with_release(entry, request.options))
        if request.queue is not None and str(request.queue) not in self.system.rules:
            if self.system.rules:
                self._refused.count(f"unknown queue {request.queue!r}: the job counts as of none")
            request = attrs.evolve(request, queue=None)
        try:
            job = request.job(entry.id, entry.submit, unlimited=self._unlimited)
            live = self.system.submit(job, since=entry.submit, number=entry.number)
        except (InputError, ImpossibleWork, ValueError, TypeError) as error:
            self._refused.count(f"job cannot be mirrored: {str(error)[:200]}")
            return None
        self.system.view.waiting.forget_new()  # as the scheduler does after each decision: it keeps no job that is over
        live.attempts = entry.state.attempts - (entry.state.phase == "running")
        self._jobs[entry.key] = _Taken(live, entry.request, opened)
        return live

    @staticmethod
    def _with_release(entry: Entry, options: str) -> str:
        """Return the options of a job that was on hold: from and until when, so that it goes behind all before that.

        Jobs that were submitted in the second of its release count as later.
        """
        state = entry.state
        until = max(floor(state.released or 0.0) - entry.submit - 0.001, 0.001)  # submissions are in whole seconds
        begin = 0.0 if state.held_from is None else state.held_from - entry.submit
        told = f"now+{begin:.3f},now+{until:.3f}" if 0.001 <= begin < until - 0.001 else f"now+{until:.3f}"
        return f"{options.removesuffix(ON_HOLD)} {ON_HOLD}={told}".strip()

    def _start(self, entry: Entry, live: LiveJob, *, even: bool) -> None:
        """Start a job on the partition and nodes of its start event, if there is room; ``even``: for even shares."""
        state = entry.state
        pool, allocation = self._place(state.nodes, state.partition, live)
        shares = [allocation]
        if allocation is not None and isinstance(pool, NodePool) and not even:
            shares += [] if pool.request_for(live).exclusive else _uneven(allocation, pool)
        for each in shares:
            try:
                self.execution.start(live, pool, each, since=state.started)
            except InputError:
                continue
            if each is not allocation:
                self.uneven[entry.key] = None
            return
        self._take_out(entry, None)
        self.no_room[entry.key] = None

    # ------------------------------------------------------------------ nodes

    def _partition(self, name: str | None) -> Pool | None:
        return None if name is None else self.system.pools.get(self._places.partition(name))

    def _place(
        self, nodes: tuple[tuple[str, int], ...], partition: str | None, live: LiveJob
    ) -> tuple[Pool, Allocation | None]:
        """Return the partition and the parts of nodes on which a job runs."""
        named = self._partition(partition)
        pool = named or live.place
        if partition is not None and named is None:
            self._refused.count(f"unknown partition {partition!r}")
        if not nodes:
            return pool, None
        if partition is None and isinstance(pool, NodePool) and not self._all_in(nodes, pool):
            pool = next((each for each, _ in self._nodes.get(nodes[0][0], ()) if self._all_in(nodes, each)), pool)
        if not isinstance(pool, NodePool):
            return pool, None
        rows = [self._row(name, cores, pool, live) for name, cores in nodes]
        there = {row[0]: row for row in rows if row is not None}
        if len(there) < len(nodes):
            self._refused.count(f"unknown or duplicate node of {pool.name}: {[name for name, _ in nodes]!r:.200}")
        return pool, Allocation.of(there.values()) if there else None

    def _all_in(self, nodes: tuple[tuple[str, int], ...], pool: Pool) -> bool:
        return all(any(each is pool for each, _ in self._nodes.get(name, ())) for name, _ in nodes)

    def _row(self, name: str, cores: int, pool: NodePool, live: LiveJob) -> tuple[int, float, float, float] | None:
        """Return node, cores, GPUs and memory of a node that a job has."""
        whole = pool.part_of or pool
        number = next((number for each, number in self._nodes.get(name, ()) if each is whole), None)
        if number is None:
            return None
        if pool is not whole:
            number = pool.nodes.index(name)
        has, request = pool.table.capacity[:, number], pool.request_for(live)
        if request.exclusive:
            return number, float(has[0]), float(has[1]), min(float(has[2]), ceil(request.memory_per_node))
        memory = min(float(has[2]), request.memory_per_node)
        return number, min(float(has[0]), cores), min(float(has[1]), request.gpus_per_node), memory

    def take_down(self, down: Down) -> None:
        """Have exactly these nodes or processors out of service, by partition."""
        for pool in self.system.places:
            if pool.part_of is not None:
                continue
            wanted = down.get(pool.name, 0 if not isinstance(pool, NodePool) else frozenset())
            if isinstance(pool, NodePool):
                assert isinstance(wanted, frozenset)
                names = {pool.nodes[number] for number, _ in pool.absences.drained}
                if gone := sorted(wanted - names):
                    pool.take_down(gone)
                if back := sorted(names - wanted):
                    pool.bring_up(back)
            elif wanted != pool.absences.drained:
                assert isinstance(wanted, int)
                more = min(wanted, pool.capacity) - pool.absences.drained
                if more > 0:
                    pool.take_down(more)
                elif more < 0:
                    pool.bring_up(-more)


def _uneven(allocation: Allocation, pool: NodePool) -> Iterator[Allocation]:
    """Yield an allocation on the same nodes if some have too few free cores, and others have those that are missing."""
    free = pool.free_on(allocation.nodes)[0]
    held = np.minimum(allocation.amounts[0], free)
    for number, spare in enumerate((free - held).tolist()):
        held[number] += min(spare, allocation.processors - float(held.sum()))
    if held.min() > 0 and held.sum() == allocation.processors:
        yield Allocation(allocation.nodes, np.vstack((held, allocation.amounts[1:])))


def _started(entry: Entry) -> tuple[Any, ...]:
    return entry.state.started, entry.number


def _number(entry: Entry) -> int:
    return entry.number
