"""Pools of identified nodes: cores, GPUs and memory of each node, shared by jobs or allocated whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.absences import NodeAbsences
from simmodel.resources.pools.allocation import AWAY, Allocation, Need, NodeTable, Request, cut, joined, probe
from simmodel.resources.pools.claims import Grant
from simmodel.resources.pools.counts import PoolProfile
from simmodel.resources.pools.node_profile import NodeProfile
from simmodel.resources.pools.node_states import NodePromise, NodeStates
from simmodel.resources.pools.placements import placement_named
from simmodel.resources.pools.pool import Consumables, Pool
from simmodel.resources.pools.profile import CountProfile, ends_of
from simmodel.resources.pools.sleeping import Sleeping

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Environment
    from simmodel.platform.cluster import PartitionSpec
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.resources.pools.placements import Placement, Table
    from simmodel.resources.pools.profile import Profile
    from simmodel.resources.pools.promises import JobOrder, Promise, WaitingJobs
    from simmodel.work.job import Job, LiveJob

__all__ = ["CoresAnywhere", "NodePool", "Nodes", "WholeNodes"]

Nodes: TypeAlias = int | str | Iterable[int | str]
"""Nodes by number or name."""


class WholeNodes:
    """The idle nodes of a pool whose nodes are alike, and the work that does not take whole nodes.

    It is also an index of the pool's queue, by which it knows the waiting jobs.

    Parameters
    ----------
    cores, gpus
        of each node
    exclusive
        whether every job gets whole nodes, with their GPUs
    placement
        of idle nodes; ``None``: by number

    Attributes
    ----------
    always
        whether every job takes whole nodes: they are exclusive, or have one core
    queue_known
        whether the waiting jobs are known
    odd
        number of waiting jobs and of allocations that are not of whole nodes, or must be of certain nodes
    held
        processors of all allocations
    idle
        the idle nodes, ascending; ``None`` if not known

    >>> from simmodel.work import LiveJob
    >>> nodes = WholeNodes(4, 0, exclusive=True)
    >>> job = LiveJob(1, 0, 0.0, 6, 60.0, 60.0, 60.0)
    >>> nodes.width(job)
    8
    >>> nodes.idle = [0, 1, 2]
    >>> nodes.take(job, 8).rows, nodes.idle
    (((0, 4, 0, 0), (1, 4, 0, 0)), [2])
    """

    __slots__ = ("_exclusive", "_gpus", "_odd_jobs", "_place", "always", "cores", "held", "idle", "odd", "queue_known")

    def __init__(self, cores: int, gpus: int, *, exclusive: bool, placement: Placement | None = None) -> None:
        self.cores = cores
        self._gpus = gpus
        self._exclusive = exclusive
        self._place = placement
        self.always = exclusive or cores == 1
        self.queue_known = False
        self.odd = 0
        self._odd_jobs: dict[LiveJob, None] = {}
        self.held = 0
        self.idle: list[int] | None = None

    @classmethod
    def of(cls, partition: PartitionSpec) -> WholeNodes | None:
        """Return those of a partition; ``None`` if its nodes differ, or jobs get whole switches."""
        first = partition.nodes[0]
        each = first.cores, first.gpus, first.memory
        placement = placement_named(partition.placed_by)
        if placement.strict:
            return None
        if any((kind.cores, kind.gpus, kind.memory) != each for kind in partition.nodes):
            return None
        by_number = placement.plain and not any(kind.has_switch for kind in partition.nodes)
        return cls(first.cores, first.gpus, exclusive=partition.exclusive, placement=None if by_number else placement)

    @property
    def by_number(self) -> bool:
        return self._place is None

    def width(self, job: LiveJob) -> int:
        """Return the processors of the whole nodes that a job requests; 0 if it requests parts of nodes."""
        request, cores = job.request, self.cores
        if request is not None and request.nodes is not None:
            whole = self.always or (request.cores_per_node == cores and not request.chunks)
            return request.nodes * cores if whole else 0
        processors = job.processors
        rest = processors % cores
        if not rest:
            return processors
        return processors - rest + cores if self.always else 0

    # ------------------------------------------------------------------ waiting jobs

    def add(self, job: LiveJob) -> None:
        """Set the width of a job that joins the queue."""
        width = self.width(job)
        job.width = width or job.processors
        if not width or (job.history is not None and job.history.resumes):
            self._odd_jobs[job] = None
            self.odd += 1

    def remove(self, job: LiveJob) -> None:
        if job in self._odd_jobs:
            del self._odd_jobs[job]
            self.odd -= 1

    # ------------------------------------------------------------------ allocations

    def find_idle(self, table: NodeTable) -> None:
        self.idle = (table.free[0] == self.cores).nonzero()[0].tolist()

    def take(self, job: LiveJob, width: int, table: Table | None = None) -> Allocation:
        """Take ``width`` processors for a job, of the idle nodes in the table, of which there are enough."""
        count = width // self.cores
        idle = self.idle
        assert idle is not None
        if self._place is None:
            nodes = tuple(idle[:count])
            del idle[:count]
        else:
            assert table is not None
            nodes = tuple(sorted(self._place.nodes(table, np.array(idle), count)[:count].tolist()))
            self.idle = sorted(set(idle).difference(nodes))
        self.held += width
        request = job.request
        if request is None:
            return Allocation.alike(nodes, self.cores, self._gpus if self._exclusive else 0)
        gpus = self._gpus if self._exclusive else request.gpus_per_node
        return Allocation.alike(nodes, self.cores, gpus, request.memory_per_node)

    def give_back(self, nodes: Iterable[int], width: int) -> None:
        """Give back the nodes and processors of an allocation that :meth:`take` returned."""
        idle = self.idle
        assert idle is not None
        idle.extend(nodes)
        idle.sort()
        self.held -= width

    def count(self, job: LiveJob, allocation: Allocation, sign: int) -> None:
        """Count any allocation of the pool that is taken (1) or given back (-1); idle nodes are no longer known."""
        processors = allocation.processors
        self.held += sign * processors
        self.idle = None
        if not processors == len(allocation.nodes) * self.cores == job.width:
            self.odd += sign


class CoresAnywhere:
    """An index of a queue that knows whether all its jobs are for cores anywhere.

    Such a job starts if enough cores are free, on whichever nodes, whatever other work runs there. So the number of
    free cores and the expected ends decide, as on counted processors, and nodes are chosen when a job starts.

    Attributes
    ----------
    known
        whether the waiting jobs are known

    >>> from simmodel.resources.pools.allocation import Request
    >>> from simmodel.work import LiveJob
    >>> index, job = CoresAnywhere(), LiveJob(1, 0, 0.0, 6, 60.0, 60.0, 60.0)
    >>> index.known = True; index.add(job); index.all_waiting
    True
    >>> job.request = Request(2, nodes=2); index.add(job); index.all_waiting
    False
    """

    __slots__ = ("_others", "known")

    def __init__(self) -> None:
        self.known = False
        self._others: dict[LiveJob, None] = {}

    @property
    def all_waiting(self) -> bool:
        """Whether all waiting jobs are for cores anywhere."""
        return self.known and not self._others

    def asks(self, job: LiveJob) -> bool:
        if job.history is not None and job.history.resumes:
            return False
        return job.request is None or job.request.anywhere

    def add(self, job: LiveJob) -> None:
        if not self.asks(job):
            self._others[job] = None

    def remove(self, job: LiveJob) -> None:
        self._others.pop(job, None)


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
    _sleeps = True
    """Whether its nodes may sleep."""

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
        self._table = NodeTable.of(partition.nodes, partition.placed_by)
        if partition.network is not None:
            from simmodel.resources.pools.node_network import NodeNetwork

            self.place_in(NodeNetwork.of(partition.network, self.nodes))
        elif env.seed:
            self._table.settle(None, env.seed)
        self._missing: dict[int, tuple[Allocation, int]] = {}  # changes that the table does not have yet, by allocation
        self._all_cores = partition.capacity
        placement = placement_named(partition.placed_by)
        self._whole_switches = placement.whole_switches
        self._strict = placement.strict
        self._whole = WholeNodes.of(partition)
        self._anywhere = None if partition.exclusive or self._strict else CoresAnywhere()
        self._states: NodeStates | None = None
        self._stale = False  # whether the states have missed changes
        self._offered: tuple[int, LiveJob, Allocation] | None = None  # version, job, allocation
        self._plain: dict[int, Request] = {}
        speeds = [kind.speed for kind in partition.nodes for _ in range(kind.count)]
        self.paced = any(speed != 1 for speed in speeds)
        self._speeds = speeds if self.paced else []
        # Cached answers for the current state:
        self._fitting: dict[tuple[Any, int], bool] = {}
        self._kept_clear: dict[int, NodeTable] = {}
        if self._sleeps and any(kind.power is not None and kind.power.can_sleep for kind in partition.nodes):
            self.sleeping = Sleeping(self)
        wants = placement.choice is not None and placement.choice.tells_devices
        if wants or any(kind.gpu_types for kind in partition.nodes):
            self.tell_devices()

    def tell_devices(self) -> None:
        """Tell the devices of each node apart from now on; whole GPUs that work has are the first free ones."""
        before = self.table
        if before.apart is not None:
            return
        from simmodel.resources.pools.devices import DeviceTable

        table = DeviceTable.of_partition(self.spec)
        table.settle(before.network, before.seed)
        table.free[0], table.free[2] = before.free[0], before.free[2]
        for _, _, _, run in self.running.entries():
            table.tell(run.grant.allocation)
        self._table = table
        self._whole = self._anywhere = self._states = None
        self._changed(table.cores)

    def place_in(self, network: NodeNetwork) -> None:
        """Set the places of its nodes in a network."""
        self._table.settle(network, self.env.seed)

    @property
    def network(self) -> NodeNetwork | None:
        """The places of its nodes in a network, or ``None``."""
        return self._table.network

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

    # ------------------------------------------------------------------ questions

    def speed_of(self, job: LiveJob, nodes: Iterable[int] | None) -> float:
        """Return the speed at which a job runs on these nodes: that of the slowest; a body takes its own time."""
        spec = job._job
        if not self.paced or not nodes or (spec is not None and spec.has_body):
            return 1.0
        speeds = self._speeds
        return min([speeds[node] for node in nodes])

    @property
    def simple(self) -> bool:
        """Whether a number is the whole state: of idle nodes that are alike, or of free cores on any nodes.

        All waiting jobs are for whole nodes, and run on such, or all are for cores anywhere. Nodes that go down while
        they are in use are not counted: they do not come free with their jobs.
        """
        return self._by_nodes or self._by_cores

    @property
    def _by_cores(self) -> bool:
        """Whether the number of free cores is the whole state."""
        anywhere = self._anywhere
        return (
            anywhere is not None
            and anywhere.all_waiting
            and not self.windows
            and self.dozing is None
            and not self.consumables.capacity
            and self.up == self._all_cores
        )

    @property
    def _by_nodes(self) -> bool:
        """Whether the number of idle nodes is the whole state."""
        whole = self._whole
        return (  # as _whole_nodes, without a call: a hot path
            whole is not None
            and whole.queue_known
            and not whole.odd
            and self.dozing is None
            and not self.windows
            and not self.consumables.capacity
            and self.free + whole.held == self.up
        )

    @property
    def _whole_nodes(self) -> bool:
        """Whether the number of idle nodes, awake and asleep, is the whole state."""
        whole = self._whole
        return (
            whole is not None
            and whole.queue_known
            and not whole.odd
            and not self.windows
            and not self.consumables.capacity
            and self.free + whole.held == self.up
        )

    def know_queue(self) -> Sequence[WholeNodes | CoresAnywhere]:
        """Return the indexes of the waiting jobs that decide whether the pool is simple."""
        indexes: list[WholeNodes | CoresAnywhere] = []
        if self._whole is not None:
            self._whole.queue_known = True
            indexes.append(self._whole)
        if self._anywhere is not None and (self._whole is None or not self._whole.always):
            self._anywhere.known = True
            indexes.append(self._anywhere)
        return indexes

    def states(self, queue: WaitingJobs) -> NodeStates | None:
        """Return the states of its nodes, if backfilling can decide by them now, else ``None``; ``queue`` waits for it.

        Made when they are first asked for, and kept from then on. They know no windows, consumables, cores anywhere,
        certain nodes, nor jobs that are planned with another time than they will be while they run.
        """
        if self.windows or self.consumables.capacity or self._strict or self._table.apart is not None or self.dozing:
            return None
        states, table = self._states, self.table
        if states is None:
            states = self._states = NodeStates(table, self.spec.exclusive, self.running.entries())
            queue.keep(states)
        elif self._stale:
            states.restart(self.running.entries())
        self._stale = False
        if self._whole is not None:
            self._whole.idle = None  # from now on each change goes through the table
        return None if states.odd else states

    def promise(
        self, head: LiveJob, waiting: WaitingJobs, order: JobOrder, before: Promise | None = None
    ) -> Promise | None:
        """Return the promise of the earliest start of a job: by the states of nodes if these decide now."""
        states = self.states(waiting)
        if states is None:
            return None
        last = before if isinstance(before, NodePromise) and before.head is head else None
        if last is not None and last.stands():
            last.renew(waiting.new)
            return last
        return NodePromise(self, head, waiting, order, states, last)

    def offer(self, job: LiveJob, prefer: NDArray[np.intp]) -> Allocation | None:
        """Return the allocation of a job now, on the nodes ``prefer`` first; nothing is taken."""
        allocation = self.table.allocate(self.request_for(job), prefer)
        if allocation is not None:
            self._offered = self.version, job, allocation
        return allocation

    def _request_of(self, spec: Job) -> Request | None:
        request = Request.of(spec, exclusive=self.spec.exclusive, whole_switches=self._whole_switches)
        if request.of_devices:
            self.tell_devices()
        return request

    def need_of(self, job: LiveJob) -> Need:
        """Return the request of a live job, or the parts of nodes that it must get back if it was suspended."""
        if job.history is not None and job.history.resumes:
            held: Allocation = job.history.resumes.allocation
            return held
        return self.request_for(job)

    def request_for(self, job: LiveJob) -> Request:
        """Return the request of a live job."""
        if job.request is not None:
            request: Request = job.request
            return request
        plain = self._plain.get(job.processors)
        if plain is None:
            whole = self._whole_switches
            plain = Request(job.processors, exclusive=self.spec.exclusive or whole, whole_switches=whole)
            self._plain[job.processors] = plain
        return plain

    def why_not(self, job: LiveJob) -> str | None:
        """Return why the pool can never run the job, or ``None``."""
        request = self.request_for(job)
        gone = self.absences.gone
        table = self.table.without(gone) if gone else self.table
        return table.why_not(request, self.name) or self._why_not_amounts(job, request)

    def _ahead(self, job: LiveJob, since: float | None = None) -> int:
        """Return the number of future windows that begin before the job would end; ``since``: its start, if not now."""
        end = (self.env.now if since is None else since) + job.planned
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

    def width_of(self, job: LiveJob) -> int:
        """Return the processors of the nodes that a job takes if nodes are alike and it takes whole ones; else 0."""
        whole = self._whole
        return 0 if whole is None or self.paced else whole.width(job)

    def _width(self, job: LiveJob) -> int:
        """Return the processors that a job takes, if it can be placed by counting; else 0."""
        whole = self._whole
        if whole is not None and self._whole_nodes:
            return 0 if job.history is not None and job.history.resumes else whole.width(job)
        anywhere = self._anywhere
        return job.processors if anywhere is not None and self._by_cores and anywhere.asks(job) else 0

    def why_waits(self, job: LiveJob) -> str:
        """Return that no device has what is free of them in sum, or an empty text."""
        apart = self.table.apart
        return "" if apart is None or job.processors > self.free else apart.why_waits(self.request_for(job))

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now and run for its requested time on nodes that no window takes."""
        if job.processors > self.free:
            return False
        states = self._states
        if states is not None and not self._stale and not self.windows and not self.dozing:
            enough = states.fits(job)
            if enough is not None:
                return enough
        width = self._width(job)
        if width:
            return width <= self.free and (self.dozing is None or self.dozing.worth_waking(job, width))
        need = self.need_of(job)
        ahead = self._ahead(job) if self.windows else 0
        fits = self._fitting.get((need, ahead))
        if fits is None:
            fits = self._fitting[need, ahead] = self._clear(ahead).fits(need)
        fits = fits and (job.request is None or self._amounts_fit(job))
        return fits and (self.dozing is None or self.dozing.worth_waking(job, need))

    def accepts(self, job: LiveJob, allocation: Allocation | Grant | None) -> bool:
        """Whether the job could start now with exactly this allocation, and it meets the job's request.

        A grant of counted processors, from a plan that counts nodes, stands for any nodes.
        """
        if isinstance(allocation, Grant):
            return self.fits(job)
        if not isinstance(allocation, Allocation):
            return False
        offered = self._offered
        if offered is not None and offered[2] is allocation and offered[1] is job and offered[0] == self.version:
            return True
        need = self.need_of(job)
        asked = allocation == need if isinstance(need, Allocation) else allocation.meets(need)
        dozing = self.dozing
        there = not len(allocation.nodes) or 0 <= allocation.nodes[0] <= allocation.nodes[-1] < len(self.nodes)
        since = None if dozing is None else dozing.ready(allocation)
        clear = self._clear(self._ahead(job, since))
        return asked and there and clear.allows(allocation, need) and self._amounts_fit(job)

    def room_for(self, job: LiveJob, allocation: Allocation | None = None) -> Allocation | None:
        """Return the allocation of a job reported to run here; ``None``: other jobs hold too much of its nodes."""
        if job.request is not None and not self.consumables.fits(job.request.consumables):
            return None
        if allocation is None:
            return self.table.allocate(self.need_of(job))
        return allocation if (self.free_on(allocation.nodes) >= allocation.amounts).all() else None

    def free_on(self, nodes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return cores, GPUs and bytes of memory that no job has on some nodes, down or not, shape (3, n)."""
        free: NDArray[np.float64] = self.table.free[:, nodes]
        free[0] += [AWAY * self.absences.times_down[node] for node in nodes.tolist()]
        return free

    def allocate(self, job: LiveJob) -> Allocation | None:
        """Return the allocation that the job would get now, or ``None``; nothing is taken."""
        return self._chosen(job) if self.fits(job) else None

    def _chosen(self, job: LiveJob) -> Allocation | None:
        """Return the nodes that the placement chooses now, awake ones if there are enough, or ``None``."""
        table, need = self._clear(self._ahead(job)), self.need_of(job)
        if self.dozing is None:
            return table.allocate(need)
        later = self._ahead(job, self.dozing.by_node().max())
        found = self.dozing.allocate(need, table, self._clear(later))
        if found is None and self.windows:  # some may be up soon enough before a window
            at, planned = self._node_profile().earliest(job, job.planned)
            found = planned if self.dozing.begins_now(job, at, planned) else None
        return found

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when the job fits, by the expected ends and the windows (s), and the cores left free at its start."""
        width = self._width(job) if self.dozing is None else 0
        if width:
            missing = width - self.free
            return self.running.when_free(missing, self.env.now) if missing > 0 else (self.env.now, -missing)
        profile = self._node_profile()
        at, allocation = profile.earliest(job, job.planned)
        if allocation is None:
            return at, 0
        return profile.instant(at), profile.cores(at) - allocation.processors

    def profile(self) -> Profile:
        """Return the free capacity over time: of each node and of each consumable, or the number of idle nodes."""
        whole = self._whole
        if whole is not None and whole.always and self._whole_nodes:
            return PoolProfile(self.env.now, {"": self.counts()}, whole.width)
        return self._node_profile()

    def counts(self) -> CountProfile:
        """Return the profile of the processors of idle nodes."""
        if self.dozing is None:
            return CountProfile(self.env.now, self.free, ends_of(self.running))
        free, ends = self.dozing.counts()
        return CountProfile(self.env.now, free, sorted([*ends, *ends_of(self.running)]))

    def _node_profile(self) -> NodeProfile:
        windows = [(None if each.begun else each.start, each.end, Allocation.away(each.what)) for each in self.windows]
        ends = ((end, run.grant.allocation) for end, _, _, run in self.running.entries())
        table = self.table
        if self.dozing is not None:
            table = self.dozing.awake()
            windows += self.dozing.windows()
        return NodeProfile(
            self.env.now,
            table,
            ends,
            windows,
            need_of=self.need_of,
            consumables=self.consumables.profiles(self.env.now, self.running),
        )

    # ------------------------------------------------------------------ nodes that go and come

    @cached_property
    def absences(self) -> NodeAbsences:
        """Which of its nodes are away."""
        return NodeAbsences(self)

    @property
    def down_nodes(self) -> tuple[int, ...]:
        """The numbers of the nodes that are down, ascending."""
        return tuple(node for node, _ in self.absences.away)

    @property
    def units(self) -> range:
        """The numbers of the nodes."""
        return range(len(self.nodes))

    def unit(self, number: int) -> tuple[int, ...]:
        """Return one node, as a tuple of numbers."""
        return (number,)

    @property
    def size(self) -> tuple[int, ...] | None:
        """The nodes that left, ascending; ``None`` if none did."""
        return tuple(sorted(self.absences.gone)) or None

    def part(self, what: Nodes) -> tuple[int, ...]:
        """Return the numbers of nodes given by number or name, ascending.

        Raises
        ------
        InputError
            an unknown or duplicate node
        """
        nodes = (what,) if isinstance(what, (int, str)) else tuple(what)
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
        >>> from simmodel.resources import NodePool
        >>> pool = NodePool(Environment(), "batch", PartitionSpec(nodes=[NodeSpec(count=4, cores=8)]))
        >>> pool.leave(["node2", "node3"]); pool
        <NodePool batch: 16 of 16 processors free>
        >>> pool.join([2]); pool
        <NodePool batch: 24 of 24 processors free>
        """
        part = self.part(nodes)
        self.absences.leave(part)
        for pool, own in self.shares(part):
            pool.absences.go_down(own, cause)
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
        self.absences.join(part)
        for pool, own in self.shares(part):
            pool.absences.come_up(own, cause)

    def lose(self, nodes: Sequence[int], times: int = 1) -> None:
        """Count the cores of nodes no longer in the capacity or, with -1, count them again."""
        self._capacity -= times * int(self.table.capacity[0, list(nodes)].sum())

    # ------------------------------------------------------------------ nodes that sleep

    def sleep(self, nodes: Nodes) -> None:
        """Put idle nodes to sleep: they draw less, and are up again only after a boot.

        A job that needs them wakes them, holds them while they boot, and starts when all are up.

        Parameters
        ----------
        nodes
            by number or name

        Raises
        ------
        InputError
            an unknown or duplicate node, one that is down, in use or asleep, or one that cannot boot

        >>> from simmodel import Environment
        >>> from simmodel.platform import NodePower, NodeSpec, PartitionSpec
        >>> from simmodel.resources import NodePool
        >>> power = NodePower(idle=95, load=190.7, off=9.75, boot=("150s", 125), stop=("6s", 101))
        >>> env = Environment(); pool = NodePool(env, "batch", PartitionSpec(nodes=[NodeSpec(count=2, power=power)]))
        >>> pool.sleep("node1"); pool.asleep, pool.free
        ((1,), 2)
        >>> pool.wake("node1"); pool.asleep, pool.booting
        ((), (1,))
        >>> env.run(); env.now, pool.booting
        (156.0, ())
        """
        self._sleeping_or_error().sleep(self.part(nodes))

    def wake(self, nodes: Nodes, job: int | str | None = None) -> None:
        """Begin to boot nodes that sleep, once they are off.

        Parameters
        ----------
        nodes
            by number or name
        job
            the id of the job that they are woken for, to which the energy of the boot belongs

        Raises
        ------
        InputError
            an unknown or duplicate node, or one that does not sleep
        """
        self._sleeping_or_error().wake(self.part(nodes), job)
        self.came_free()

    def _sleeping_or_error(self) -> Sleeping:
        if self.sleeping is None:
            raise InputError("has no nodes that could sleep: none has a boot in its power", place=self.name)
        return self.sleeping

    @property
    def asleep(self) -> tuple[int, ...]:
        """The numbers of the nodes that sleep, or stop to do so, ascending."""
        return () if self.sleeping is None else tuple(sorted(self.sleeping.asleep))

    @property
    def booting(self) -> tuple[int, ...]:
        """The numbers of the nodes that boot, or will once they have stopped, ascending."""
        return () if self.sleeping is None else tuple(sorted(self.sleeping.booting))

    # ------------------------------------------------------------------ allocation

    @property
    def why_rigid(self) -> str | None:
        """Why the work on the pool keeps its size: its placement does not choose single nodes; else ``None``."""
        return f"the placement of {self.name} is {self.spec.placed_by!r}" if self._strict else None

    def resized(self, job: LiveJob, grant: Grant, processors: int, left: float) -> Allocation | None:
        """Return the allocation of running work on another number of processors, for the seconds that are left."""
        held: Allocation = grant.allocation
        if processors <= held.processors:
            return cut(held, processors, whole=self.spec.exclusive)
        extra = self.allocate(probe(job, processors - held.processors, left))
        return None if extra is None else joined(held, extra)

    def take(self, job: LiveJob, allocation: Allocation | Grant | None = None) -> Grant:
        """Allocate the job's request; without an allocation of nodes, on those that the placement chooses.

        Raises
        ------
        InputError
            the job does not fit
        """
        if self.free != self._free or job.altered() is not None:
            self.check(job)
        whole = self._whole
        if whole is not None and job.state != "waiting":  # of a snapshot, or a claim
            job.width = whole.width(job) or job.processors
        if not isinstance(allocation, Allocation):
            width = self._width(job) if whole is not None and self._by_nodes else 0
            if width and width <= self.free and (self._states is None or self._stale):
                return self._take_whole(job, width)
            allocation = self._chosen(job)
            if allocation is None:
                raise InputError(f"cannot allocate {job} on {self.name}: it does not fit")
        if allocation.devices is not None:
            self.tell_devices()
        if self._table.apart is not None and allocation.devices is None:
            allocation = self._table.told(allocation, self.request_for(job)) or allocation
        self.table.take(allocation)
        if self.sleeping is not None:
            self.sleeping.taken(allocation.numbers)
        if whole is not None:
            whole.count(job, allocation, 1)
        if self._states is not None and not self._stale:
            if job.state == "waiting":
                seconds = job.expected / self.speed_of(job, allocation.numbers) if self.paced else job.expected
                self._states.take(allocation, self.env.now + seconds)
            else:  # it began earlier: its expected end is not known here
                self._stale = True
        if job.request is not None:
            self.consumables.take(job.request.consumables)
        self._moved(-allocation.processors)
        return Grant(allocation.processors, allocation.numbers, allocation)

    def _take_whole(self, job: LiveJob, width: int) -> Grant:
        """Allocate idle nodes with ``width`` processors."""
        whole = self._whole
        assert whole is not None
        if whole.idle is None:
            whole.find_idle(self.table)
        allocation = whole.take(job, width, None if whole.by_number else self.table.seen(self.request_for(job)))
        if self.sleeping is not None:
            self.sleeping.taken(allocation.numbers)
        self._missing[id(allocation)] = allocation, -1
        self._changed(self.free - width)
        return Grant(width, allocation.numbers, allocation)

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Release the job's grant."""
        whole, allocation = self._whole, grant.allocation
        if self.sleeping is not None:
            self.sleeping.left(allocation.numbers)
        if whole is not None and whole.idle is not None:  # then none of its nodes is down
            self._stale = True
            whole.give_back(allocation.numbers, allocation.processors)
            if self._missing.pop(id(allocation), None) is None:
                self._missing[id(allocation)] = allocation, 1
            self._changed(self.free + allocation.processors)
            return
        self.table.release(allocation)
        if whole is not None:
            whole.count(job, allocation, -1)
        if self._states is not None and not self._stale:
            self._states.give_back(allocation)
        if job.request is not None:
            self.consumables.give_back(job.request.consumables)
        self._moved(allocation.processors)

    def nodes_changed(self, what: Sequence[int]) -> None:
        """Note that some nodes went down or came up."""
        if self._states is not None and not self._stale:
            self._states.renew(what)
        self.altered()

    def altered(self) -> None:
        """Invalidate cached answers after a change."""
        if self._whole is not None:
            self._whole.idle = None
        self._changed(self.table.cores)

    def _moved(self, processors: int) -> None:
        """Invalidate cached answers after processors came free, or were taken if their number is negative."""
        if self.up == self._all_cores:
            self._changed(self.free + processors)
        else:  # those of nodes that are down do not come free
            self._changed(self.table.cores)

    def _changed(self, free: int) -> None:
        """Invalidate cached answers and set the number of free processors."""
        self.version += 1
        self.free = self._free = free
        if self._fitting:
            self._fitting.clear()
        if self._kept_clear:
            self._kept_clear.clear()
