"""Pools of identified nodes: cores, GPUs and memory of each node, shared by jobs or allocated whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from simmodel.errors import InputError
from simmodel.resources.allocation import Allocation, Need, NodeTable, Request
from simmodel.resources.claims import Grant
from simmodel.resources.consumables import Consumables
from simmodel.resources.counts import PoolProfile
from simmodel.resources.node_profile import NodeProfile
from simmodel.resources.pool import Pool
from simmodel.resources.profile import CountProfile, ends_of
from simmodel.resources.whole_nodes import WholeNodes

if TYPE_CHECKING:
    import numpy as np

    from simmodel.environment import Environment
    from simmodel.platform.cluster import OutageSpec, PartitionSpec, ReservationSpec
    from simmodel.resources.profile import Profile
    from simmodel.work.job import Job, LiveJob, Run

__all__ = ["NodePool"]

Nodes: TypeAlias = int | str | Iterable[int | str]
"""Nodes by number or name."""


class NodePool(Pool):
    """A pool of identified nodes; capacity, free and up count cores.

    Jobs request cores anywhere, or nodes with cores, GPUs and memory each; the partition defines the placement and
    whether jobs get whole nodes. A suspended job resumes on the same parts of the same nodes and waits until they are
    free. Nodes that are down are not ``free``; work that runs on them continues unless it is stopped.

    Parameters
    ----------
    env, name
        the environment, and the name of the pool in reports
    partition
        its nodes, their placement, and whether jobs get whole nodes
    consumables
        the consumables that jobs may request, shared with other pools
    nodes
        names of the nodes, in order; default: the name of their kind and a number, from 0 for each kind

    Attributes
    ----------
    nodes
        names of the nodes; elsewhere, nodes are numbers, positions in this list
    spec
        the partition

    >>> from simmodel import Environment
    >>> from simmodel.platform import NodeSpec, PartitionSpec
    >>> kinds = [NodeSpec(count=2, cores=8), NodeSpec(name="gpu", cores=8, gpus=4)]
    >>> pool = NodePool(Environment(), "batch", PartitionSpec(nodes=kinds))
    >>> claim = pool.claim(nodes=1, cores_per_node=2, gpus_per_node=1)
    >>> claim.grant.nodes, pool.free, pool.nodes
    ((2,), 22, ['node0', 'node1', 'gpu0'])
    """

    _resized_by = "leave(nodes) or join(nodes)"

    def __init__(
        self,
        env: Environment,
        name: str,
        partition: PartitionSpec,
        consumables: Consumables | None = None,
        nodes: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env, name, partition.capacity, consumables)
        self.spec: PartitionSpec = partition
        self.nodes = list(partition.node_names if nodes is None else nodes)
        self._table = NodeTable.of(partition.nodes, partition.placement)
        self._missing: dict[int, tuple[Allocation, int]] = {}  # changes that the table does not have yet, by allocation
        self._whole = WholeNodes.of(partition)
        self._times_down = [0] * len(self.nodes)
        self._drained: Counter[int] = Counter()  # how often take_down took each
        self._gone: set[int] = set()  # nodes that left
        self._plain: dict[int, Request] = {}
        # Cached answers for the current state:
        self._fitting: dict[tuple[Any, int], bool] = {}
        self._kept_clear: dict[int, NodeTable] = {}

    @property
    def table(self) -> NodeTable:
        """The free capacity of each node; read-only."""
        if self._missing:
            self._table.add(list(self._missing.values()))
            self._missing.clear()
        return self._table

    @property
    def idle_power(self) -> float:
        """Watts of an idle node of the first kind."""
        return self.spec.nodes[0].idle_power

    @property
    def load_power(self) -> float:
        """Watts of a node of the first kind with all its cores busy."""
        return self.spec.nodes[0].load_power

    @property
    def down_nodes(self) -> tuple[int, ...]:
        """The numbers of the nodes that are down, ascending."""
        return tuple(node for node, times in enumerate(self._times_down) if times)

    # ------------------------------------------------------------------ questions

    @property
    def simple(self) -> bool:
        """Whether the number of idle nodes is the whole state: all are alike, and all jobs take whole nodes.

        Nodes that go down while they are in use are not: they do not come free with their jobs.
        """
        whole = self._whole
        return (
            whole is not None
            and whole.queue_known
            and not whole.odd
            and not self.windows
            and not self.consumables.capacity
            and self.free + whole.held == self.up
        )

    def know_queue(self) -> WholeNodes | None:
        """Return the index of the waiting jobs that decides whether the pool is simple."""
        if self._whole is not None:
            self._whole.queue_known = True
        return self._whole

    def request_of(self, spec: Job) -> Request:
        """Return the request of a job."""
        return Request.of(spec, exclusive=self.spec.exclusive)

    def need_of(self, job: LiveJob) -> Need:
        """Return the request of a live job, or the parts of nodes that it must get back if it was suspended."""
        if job.past is not None and job.past.resumes:
            held: Allocation = job.past.resumes.allocation
            return held
        return self.request_for(job)

    def request_for(self, job: LiveJob) -> Request:
        """Return the request of a live job."""
        if job.request is not None:
            request: Request = job.request
            return request
        plain = self._plain.get(job.processors)
        if plain is None:
            plain = self._plain[job.processors] = Request(job.processors, exclusive=self.spec.exclusive)
        return plain

    def why_not(self, job: LiveJob) -> str | None:
        """Return why the pool can never run the job, or ``None``."""
        request = self.request_for(job)
        table = self.table.without(self._gone) if self._gone else self.table
        return table.why_not(request, self.name) or self.consumables.why_not(request.consumables)

    def _ahead(self, job: LiveJob) -> int:
        """Return the number of future windows that begin before the job would end."""
        end = self.env.now + job.requested
        return sum(not window.begun and window.start < end for window in self.windows)

    def _clear(self, ahead: int) -> NodeTable:
        """Return the free capacity without the nodes of the next ``ahead`` windows."""
        if not ahead:
            return self.table
        table = self._kept_clear.get(ahead)
        if table is None:
            table = self.table.copy()
            for window in [window for window in self.windows if not window.begun][:ahead]:
                table.take(Allocation.away(window.what))
            self._kept_clear[ahead] = table
        return table

    def _width(self, job: LiveJob) -> int:
        """Return the processors that a job takes, if it can be placed by counting; else 0."""
        whole = self._whole
        if whole is None or not self.simple or (job.past is not None and job.past.resumes):
            return 0
        return whole.width(job)

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now and run for its requested time on nodes that no window takes."""
        if job.processors > self.free:
            return False
        width = self._width(job)
        if width:
            return width <= self.free
        need = self.need_of(job)
        ahead = self._ahead(job) if self.windows else 0
        fits = self._fitting.get((need, ahead))
        if fits is None:
            fits = self._fitting[need, ahead] = self._clear(ahead).fits(need)
        return fits and (job.request is None or self.consumables.fits(job.request.consumables))

    def accepts(self, job: LiveJob, allocation: Allocation | Grant | None) -> bool:
        """Whether the job could start now with exactly this allocation, and it meets the job's request.

        A grant of counted processors, from a plan that counts nodes, stands for any nodes.
        """
        if isinstance(allocation, Grant):
            return self.fits(job)
        if not isinstance(allocation, Allocation):
            return False
        need = self.need_of(job)
        asked = allocation == need if isinstance(need, Allocation) else allocation.meets(need)
        there = not len(allocation.nodes) or 0 <= allocation.nodes[0] <= allocation.nodes[-1] < len(self.nodes)
        return (
            asked
            and there
            and self._clear(self._ahead(job)).fits(allocation)
            and (job.request is None or self.consumables.fits(job.request.consumables))
        )

    def allocate(self, job: LiveJob) -> Allocation | None:
        """Return the allocation that the job would get now, or ``None``; nothing is taken."""
        return self._clear(self._ahead(job)).allocate(self.need_of(job)) if self.fits(job) else None

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when the job fits, by the expected ends and the windows (s), and the cores left free at its start."""
        width = self._width(job)
        if width:
            missing = width - self.free
            return self.running.when_free(missing, self.env.now) if missing > 0 else (self.env.now, -missing)
        profile = self._node_profile()
        at, allocation = profile.earliest(job, job.requested)
        if allocation is None:
            return at, 0
        return profile.instant(at), profile.cores(at) - allocation.processors

    def profile(self) -> Profile:
        """Return the free capacity over time: of each node and of each consumable, or the number of idle nodes."""
        whole = self._whole
        if whole is not None and whole.always and self.simple:
            return PoolProfile(self.env.now, {"": self.counts()}, whole.width)
        return self._node_profile()

    def counts(self) -> CountProfile:
        """Return the profile of the processors of idle nodes."""
        return CountProfile(self.env.now, self.free, ends_of(self.running))

    def _node_profile(self) -> NodeProfile:
        windows = [(None if each.begun else each.start, each.end, Allocation.away(each.what)) for each in self.windows]
        ends = ((end, run.grant.allocation) for end, _, _, run in self.running.entries())
        return NodeProfile(
            self.env.now, self.table, ends, windows, need_of=self.need_of, consumables=self.consumable_profiles()
        )

    # ------------------------------------------------------------------ allocation

    def take(self, job: LiveJob, allocation: Allocation | Grant | None = None) -> Grant:
        """Allocate the job's request; without an allocation of nodes, on those that the placement chooses.

        Raises
        ------
        ValueError
            the job does not fit
        """
        if self.free != self._free or job.altered() is not None:
            raise self.tampered(job)
        whole = self._whole
        if whole is not None and job.state != "waiting":  # of a snapshot, or a claim
            job.width = whole.width(job) or job.processors
        if not isinstance(allocation, Allocation):
            width = self._width(job)
            if width and width <= self.free:
                return self._take_whole(job, width)
            allocation = self._clear(self._ahead(job)).allocate(self.need_of(job))
            if allocation is None:
                raise ValueError(f"cannot allocate {job} on {self.name}: it does not fit")
        self.table.take(allocation)
        if whole is not None:
            whole.count(job, allocation, 1)
        if job.request is not None:
            self.consumables.take(job.request.consumables)
        self.altered()
        return Grant(allocation.processors, allocation.numbers, allocation)

    def _take_whole(self, job: LiveJob, width: int) -> Grant:
        """Allocate idle nodes with so many processors: the first ones, as any placement does."""
        whole = self._whole
        assert whole is not None
        if whole.idle is None:
            whole.find_idle(self.table)
        allocation = whole.take(job, width)
        self._missing[id(allocation)] = allocation, -1
        self._changed(self.free - width)
        return Grant(width, allocation.numbers, allocation)

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Release the job's grant."""
        whole, allocation = self._whole, grant.allocation
        if whole is not None and whole.idle is not None:  # then none of its nodes is down
            whole.give_back(allocation.numbers, allocation.processors)
            if self._missing.pop(id(allocation), None) is None:
                self._missing[id(allocation)] = allocation, 1
            self._changed(self.free + allocation.processors)
            return
        self.table.release(allocation)
        if whole is not None:
            whole.count(job, allocation, -1)
        if job.request is not None:
            self.consumables.give_back(job.request.consumables)
        self.altered()

    def altered(self) -> None:
        """Invalidate cached answers after a change."""
        if self._whole is not None:
            self._whole.idle = None
        self._changed(self.table.cores)

    def _changed(self, free: int) -> None:
        """Invalidate cached answers; so many processors are free from now on."""
        self.version += 1
        self.free = self._free = free
        if self._fitting:
            self._fitting.clear()
        if self._kept_clear:
            self._kept_clear.clear()

    # ------------------------------------------------------------------ nodes that go down and come up

    @property
    def units(self) -> range:
        """The numbers of the nodes."""
        return range(len(self.nodes))

    def unit(self, number: int) -> tuple[int, ...]:
        """Return one node, as a tuple of numbers."""
        return (number,)

    def units_of(self, part: OutageSpec | ReservationSpec) -> tuple[int, ...]:
        """Return the numbers of the nodes that an outage or a reservation names, ascending.

        Raises
        ------
        InputError
            an unknown or duplicate node
        """
        return self._numbers_of(part.nodes)

    def _numbers_of(self, nodes: Sequence[int | str]) -> tuple[int, ...]:
        named = any(isinstance(node, str) for node in nodes)
        numbers = {name: number for number, name in enumerate(self.nodes)} if named else {}
        found = sorted(self.number_of(node, numbers) for node in nodes)
        for number, after in pairwise(found):
            if number == after:
                raise InputError(f"duplicate node {self.nodes[number]!r} of {self.name}")
        return tuple(found)

    def number_of(self, node: int | str, numbers: dict[str, int]) -> int:
        """Return the number of a node given by name or number; ``numbers`` maps all names to numbers."""
        number = numbers.get(node) if isinstance(node, str) else node
        if number is None or not 0 <= number < len(self.nodes):
            raise InputError(
                f"unknown node {node!r} of {self.name}; known nodes: {self.nodes[0]} to {self.nodes[-1]}, "
                f"or 0 to {len(self.nodes) - 1}"
            )
        return number

    @property
    def away(self) -> tuple[tuple[int, int], ...]:
        """The nodes that are down, each with its number of reasons."""
        return tuple((node, times) for node, times in enumerate(self._times_down) if times)

    def take_away(self, away: Sequence[tuple[int, int]]) -> None:
        """Take the nodes down, each for its number of reasons."""
        for reason in range(max((times for _, times in away), default=0)):
            self.lower([node for node, times in away if times > reason])

    def leave(self, nodes: Nodes, cause: str = "leave") -> None:
        """Let nodes leave: they no longer count in the capacity, and get no new work; running work continues.

        A partition names all nodes that it may ever have: those that are not there from the beginning leave first.

        Parameters
        ----------
        nodes
            by number or name
        cause
            the cause in the record

        Raises
        ------
        InputError
            an unknown or duplicate node, or one that has left

        >>> from simmodel import Environment
        >>> from simmodel.platform import NodeSpec, PartitionSpec
        >>> pool = NodePool(Environment(), "batch", PartitionSpec(nodes=[NodeSpec(count=4, cores=8)]))
        >>> pool.leave(["node2", "node3"]); pool
        <NodePool batch: 16 of 16 processors free>
        >>> pool.join([2]); pool
        <NodePool batch: 24 of 24 processors free>
        """
        part = self.part(nodes)
        self._refuse(part, [node for node in part if node in self._gone], "nodes that have not left")
        self._go(part)
        for pool, own in self.shares(part):
            pool.go_down(own, cause)
        self.wake_all()

    def join(self, nodes: Nodes, cause: str = "join") -> None:
        """Let nodes that left come back.

        Parameters
        ----------
        nodes, cause
            as for :meth:`leave`

        Raises
        ------
        InputError
            an unknown or duplicate node, or one that has not left
        """
        part = self.part(nodes)
        self._refuse(part, [node for node in part if node not in self._gone], "nodes that have left")
        self._gone.difference_update(part)
        self._capacity += self._cores(part)
        for pool, own in self.shares(part):
            pool.come_up(own, cause)

    def _go(self, part: Sequence[int]) -> None:
        self._gone.update(part)
        self._capacity -= self._cores(part)

    def _cores(self, part: Sequence[int]) -> int:
        return int(self.table.capacity[0, list(part)].sum())

    def _refuse(self, part: Sequence[int], wrong: Sequence[int], accepted: str) -> None:
        if wrong:
            raise InputError(f"must be {accepted}, got {self.nodes[wrong[0]]!r} of {self.name}", place="nodes")

    @property
    def size(self) -> tuple[int, ...] | None:
        """The nodes that left, ascending; ``None`` if none did."""
        return tuple(sorted(self._gone)) or None

    def take_size(self, size: Sequence[int] | None) -> None:
        """Let the nodes leave that left another pool; they are down by :meth:`take_away`."""
        if size:
            self._go(size)

    def part(self, what: Nodes) -> tuple[int, ...]:
        """Return the numbers of nodes given by number or name, ascending."""
        return self._numbers_of((what,) if isinstance(what, (int, str)) else tuple(what))

    def lower(self, what: Sequence[int]) -> None:
        """Take nodes down without a record."""
        self._count_down(what, 1)
        self.table.take(Allocation.away(what))
        self.altered()

    def lift(self, what: Sequence[int]) -> None:
        """Bring nodes up without a record; one that is down for several reasons comes up when the last of them ends."""
        least = {node: 1 + (node in self._gone) for node in what}
        self._refuse(what, [node for node in what if self._times_down[node] < least[node]], "nodes that are down")
        self._count_down(what, -1)
        self.table.release(Allocation.away(what))
        self.altered()

    @property
    def drained(self) -> tuple[tuple[int, int], ...]:
        """The nodes that :meth:`take_down` took, each with how often."""
        return tuple(sorted((+self._drained).items()))

    @drained.setter
    def drained(self, value: Iterable[tuple[int, int]]) -> None:
        self._drained = Counter(dict(value))

    def count_drained(self, what: Sequence[int], more: int) -> None:
        """Count nodes as taken down (1) or as brought up again (-1)."""
        if more < 0:
            self._refuse(what, [node for node in what if not self._times_down[node]], "nodes that are down")
            self._refuse(what, [node for node in what if not self._drained[node]], "nodes that take_down took")
        for node in what:
            self._drained[node] += more

    def _count_down(self, nodes: Sequence[int], more: int) -> None:
        for node in nodes:
            before = self._times_down[node]
            self._times_down[node] = before + more
            if not before or not before + more:
                self.up -= more * int(self.table.capacity[0, node])

    def hit_by(self, what: Sequence[int], rng: np.random.Generator | None = None) -> list[Run]:
        """Return the executions that run on these nodes, in the order of their starts."""
        hit = set(what)
        runs = sorted(self.running.entries(), key=lambda entry: entry[1])
        return [run for _, _, _, run in runs if not hit.isdisjoint(run.grant.nodes)]

    def in_the_way(self, what: Sequence[int]) -> list[Run]:
        """Return the executions that run on these nodes, the latest first."""
        return self.hit_by(what)[::-1]
