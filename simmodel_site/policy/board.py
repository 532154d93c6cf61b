"""The state that both loops of Slurm read: free nodes, running jobs by the end of their limits, and waiting jobs.

Source: the will-run test of select/cons_tres, by its behaviour.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.extending import AWAY, Allocation, Request, node_names
from simmodel_site.policy.layout import ANYWHERE, Layout, Where
from simmodel_site.policy.selection import (
    ANY,
    Shape,
    able,
    allocation_of,
    at_least,
    bits_of,
    choose,
    choose_alike,
    enough,
    flags_of,
    mask_of,
    nodes_in,
    usable_cores,
)
from simmodel_site.policy.wishes import NOTHING, Wishes

if TYPE_CHECKING:
    from simmodel.extending import NodeTable
    from simmodel.work import LiveJob
    from simmodel_site.policy.accounts import Qos
    from simmodel_site.policy.limits import Counted, Quotas
    from simmodel_site.policy.reservations import SlurmReservation
    from simmodel_site.policy.selection import Each, Free, Grain
    from simmodel_site.policy.settings import SlurmConf, SlurmPartition

__all__ = ["MISSED", "Array", "Board", "Held", "Hetero", "Kept", "Pending", "Plan", "Site", "Stake"]

MISSED = "its deadline cannot be met"
OVER = "its reservation is over"
"""In place of the nodes of a job: it is cancelled, and why."""

WINDOW = 30
"""Seconds of the first window in which ends of running jobs are taken together."""


class Site(NamedTuple):
    """A partition on the nodes of a place: ``nodes`` as bits."""

    spec: SlurmPartition
    nodes: int


class Stake(NamedTuple):
    """What decides whether a running job makes way for others, and in which order.

    Parameters
    ----------
    number
        its place in the order of submissions
    since
        its start (s)
    partition
        its partition
    qos
        its QOS, if QOS are known
    """

    number: int
    since: float
    partition: SlurmPartition
    qos: Qos | None = None


class Held(NamedTuple):
    """What a running job holds until the end of its limit (s, whole).

    ``nodes`` as bits; ``stake``: if preemptible; ``reservation``: the one that it is for.
    """

    end: int
    seq: int
    allocation: Allocation
    nodes: int
    stake: Stake | None = None
    reservation: SlurmReservation | None = None

    @classmethod
    def of(
        cls,
        end: int,
        seq: int,
        allocation: Allocation,
        stake: Stake | None = None,
        reservation: SlurmReservation | None = None,
    ) -> Held:
        """Return what a job holds by its allocation."""
        return cls(end, seq, allocation, bits_of(allocation.nodes), stake, reservation)


@attrs.define(eq=False)
class Array:
    """The tasks of an array: how many may run at once (0: any number), and how many do."""

    limit: int = 0
    running: int = 0


class Hetero(NamedTuple):
    """A heterogeneous job: the name that its components share, and their number. They start together or not at all."""

    name: str
    size: int


@attrs.define(eq=False)
class Pending:
    """A waiting job as both loops see it.

    Parameters
    ----------
    job, request
        the job, and what it asks of nodes
    board, site
        the nodes that it may have: a place, and its partition there
    limit
        seconds, in whole minutes
    priority, submitted, number
        by which it is sorted: lower numbers were submitted earlier
    ready
        whether the licences that it asks for are free
    over
        whether it has started
    wishes
        what it asks for beside nodes, cores, time and licences
    array
        the array that it is a task of
    record
        the number of its record: that of its array
    held
        whether it is held
    hetero
        the heterogeneous job of which it is a component

    Attributes
    ----------
    shape, where
        what it asks of its nodes, and on which nodes it may run
    begin
        the instant (s) from which it may start
    qos
        its QOS, if QOS are known
    counted, quotas
        what limits count of it, and these limits, if there are any
    reservation
        the reservation that it is for
    """

    job: LiveJob
    request: Request
    board: Board
    site: Site
    limit: int
    priority: float
    submitted: float
    number: int
    user: int | str | None = None
    ready: bool = True
    over: bool = False
    array: Array | None = None
    record: int = 0
    held: bool = False
    hetero: Hetero | None = None
    wishes: Wishes = NOTHING
    begin: float = 0.0
    qos: Qos | None = None
    counted: Counted | None = None
    quotas: Quotas | None = None
    reservation: SlurmReservation | None = None
    shape: Shape = attrs.field(init=False)
    where: Where = ANYWHERE

    def __attrs_post_init__(self) -> None:
        self.shape = self.board.shape_of(self.request, self.wishes, self.site.spec)
        if self.wishes is not NOTHING:
            self.where = self.board.layout.where(self.wishes)

    @property
    def barred(self) -> bool:
        """Whether it is held, or its time has not come, or as many tasks of its array run as may."""
        if self.array is not None and self.array.limit and self.array.running >= self.array.limit:
            return True
        return self.held or self.begin > self.board.now

    @property
    def resumes(self) -> bool:
        """Whether it is suspended and goes on where it was."""
        return self.job.history is not None and self.job.history.resumes

    @property
    def missed(self) -> str | None:
        """Why it is cancelled: it could not end by its deadline any more, or its reservation is over."""
        deadline, own = self.wishes.deadline, self.reservation
        if deadline < inf and self.board.now + self.limit > int(self.job.submit) + deadline:
            return MISSED
        return OVER if own is not None and own.end <= self.board.now else None

    def turn_after(self, now: int) -> float:
        """Return the next instant (s) at which time alone changes what it may have, or whether it may start at all."""
        wishes, settings = self.wishes, self.board.settings
        turns: list[float] = [self.begin]
        if settings.bf_min_age_reserve:
            turns.append(self.submitted + settings.bf_min_age_reserve)
        if wishes.switches:
            turns.append(int(self.submitted) + min(wishes.switch_wait, settings.max_switch_wait))
        if wishes.deadline < inf:
            turns.append(int(int(self.job.submit) + wishes.deadline - self.limit) + 1)
        return min([float(ceil(at)) for at in turns if now < at < inf], default=inf)

    @property
    def allowed(self) -> bool:
        """Whether the licences that it asks for are free, and no limit of its association or QOS is reached."""
        if not self.ready or self.quotas is None or self.counted is None:
            return self.ready
        return self.quotas.reason(self.counted) is None

    @property
    def one_leaf(self) -> bool:
        """Whether all its nodes must have one leaf switch, as it still waits for that."""
        wishes = self.wishes
        if not wishes.switches:
            return False
        return self.board.now < int(self.submitted) + min(wishes.switch_wait, self.board.settings.max_switch_wait)

    @property
    def waits(self) -> bool:
        """Whether it still waits: a start can have others held, or be that of another entry of the same job."""
        return not self.over and self.job.state == "waiting"

    def key(self) -> tuple[bool, float, float, float, int]:
        """Return the sort key of both loops: jobs of reservations first, tier, priority, submission."""
        return (self.reservation is None, -self.site.spec.tier, -self.priority, self.submitted, self.number)


def _memory_of(request: Request, wishes: Wishes, spec: SlurmPartition, settings: SlurmConf) -> tuple[Wishes, bool]:
    """Return what a job asks for with its memory, as slurm.conf has it, and whether that is the whole of its nodes."""
    whole = wishes.whole_memory
    if not settings.memory:
        return attrs.evolve(wishes, memory_per_gpu=None, memory_per_cpu=None, memory_per_node=0.0), False
    of_parts = wishes.memory_per_cpu is not None or wishes.memory_per_gpu is not None
    if request.memory_per_node or wishes.memory_per_node or whole or of_parts:
        return wishes, whole
    usual = spec if spec.def_mem_per_cpu or spec.def_mem_per_node else settings
    per_cpu, per_node = usual.def_mem_per_cpu, usual.def_mem_per_node
    return attrs.evolve(wishes, memory_per_cpu=per_cpu, memory_per_node=per_node), not (per_cpu or per_node)


def _more_cores(request: Request, wishes: Wishes, limit: float) -> tuple[Request, Wishes, int]:
    """Return what a job asks for with the cores that it gets for its memory, and the cores of a node at least.

    Parameters
    ----------
    limit
        ``MaxMemPerCPU`` (bytes); 0: none
    """
    each = wishes.memory_per_cpu or 0.0
    if not limit:
        return request, wishes, 0
    if each > limit:
        times = ceil(each / limit)
        more, per_node = request.processors * times, request.cores_per_node * times
        wishes = attrs.evolve(wishes, memory_per_cpu=each / times, cores_per_task=wishes.cores_per_task * times)
        return attrs.evolve(request, processors=more, cores_per_node=per_node), wishes, 0
    least = ceil(max(request.memory_per_node, wishes.memory_per_node) / limit)
    if request.nodes is None:
        return attrs.evolve(request, processors=max(request.processors, least)), wishes, least
    least = max(request.cores_per_node, least)
    return attrs.evolve(request, processors=request.nodes * least, cores_per_node=least), wishes, least


class Plan(NamedTuple):
    """When a job would start (s, whole), after so many ends of running jobs."""

    start: int
    released: int


class Kept:
    """The reservations on the nodes of a board.

    Parameters
    ----------
    reservations
        those of the policy
    names
        the names of the nodes of the board
    cores
        the cores of each
    """

    def __init__(self, reservations: Sequence[SlurmReservation], names: Sequence[str], cores: Sequence[float]) -> None:
        number = {name: i for i, name in enumerate(names)}
        self._cores: dict[SlurmReservation, dict[int, int]] = {}  # of nodes that are reserved in part
        self._nodes: dict[SlurmReservation, int] = {}
        for each in reservations:
            listed = list(node_names(each.nodes))
            counts = each.cores * len(listed) if len(each.cores) == 1 else each.cores
            own = {number[name]: i for i, name in enumerate(listed) if name in number}
            self._nodes[each] = sum(1 << node for node in own)
            self._cores[each] = {node: counts[i] for node, i in own.items() if counts and counts[i] < cores[node]}

    def opens(self, job: Pending) -> float:
        """Return from when on a job may start (s, whole), as far as its own reservation tells."""
        own = job.reservation
        return 0.0 if own is None or own.flex else own.start

    def barred(self, job: Pending, begin: float) -> int:
        """Return the whole nodes, as bits, that a job cannot have that would start at an instant (s)."""
        end, own, found = begin + job.limit, job.reservation, 0
        for each, nodes in self._nodes.items():
            if each is not own and each.start < end and begin < each.end:
                found |= nodes & ~sum(1 << node for node in self._cores[each])
        if own is not None and not own.flex:
            found |= ~self._nodes[own] if own.start <= begin and end <= own.end else -1
        return found

    def holds(self, job: Pending, begin: float) -> float:
        """Return the instant (s) up to which a job that starts then sees the nodes as one that would start before."""
        own, limit = job.reservation, job.limit
        turns = [at for each in self._nodes for at in (each.start - limit, each.end)]
        turns += [] if own is None else [own.start, own.end - limit]
        return min([at for at in turns if at >= begin], default=inf)

    def seen_by(self, board: Board, job: Pending, begin: float) -> tuple[Board, int, float]:
        """Return the nodes as a job sees them that would start at an instant (s).

        These are the board, with the cores that are kept for others taken; the nodes that it cannot have, as bits; and
        the next instant (s) at which others may be free, at the end of a reservation; 0: there is none.
        """
        end, own = begin + job.limit, job.reservation
        again = inf
        parts: list[tuple[SlurmReservation, dict[int, int]]] = []
        for each in self._nodes:
            if each is own:
                continue
            if each.start < end and begin < each.end:
                cores = self._cores[each]
                parts += [(each, cores)] if cores and own is None else []
                again = min(again, each.end)
        if own is not None and not own.flex:
            parts += [(own, self._cores[own])] if self._cores[own] else []
        later = 0.0 if again == inf else float(int(again) + 1)
        return (self._without(board, job, parts) if parts else board), self.barred(job, begin), later

    @staticmethod
    def _without(board: Board, job: Pending, parts: Iterable[tuple[SlurmReservation, dict[int, int]]]) -> Board:
        """Return a board whose kept cores are taken: those of others, or all but those of a job's own reservation.

        Jobs of other reservations, to which those cores are open, have taken them first: cores go from the lowest on.
        """
        table, running = board.table.copy(), board.running
        for each, cores in parts:
            inside = [held for held in board.running if held.reservation is not None]
            used = dict.fromkeys(cores, 0.0)
            for held in inside:
                for node, amount in zip(held.allocation.numbers, held.allocation.amounts[0].tolist(), strict=True):
                    used[node] = used.get(node, 0.0) + amount
            free = {node: float(table.free[0][node]) for node in cores}
            left = {node: min(max(count - used[node], 0.0), free[node]) for node, count in cores.items()}
            if each is job.reservation:
                taken = {node: free[node] - left[node] for node in cores}
                running = inside
            else:
                taken = left
                running = [held for held in running if held.reservation is None]
            rows = [(node, amount, 0.0, 0.0) for node, amount in taken.items() if amount > 0]
            if rows:
                table.take(Allocation.of(rows))
        return board.like(table, running)


class Board:
    """The nodes of a place at one instant; starts are noted as they are made.

    Parameters
    ----------
    table
        the free capacity of each node, which whoever carries out the starts keeps up to date
    settings
        of slurm.conf
    sleeps
        whether some of its nodes may sleep

    Attributes
    ----------
    now, running, ends
        the instant (s, whole); what running jobs hold, by the ends of their limits, and these ends (s, whole)
    up, completing
        nodes that are up, and nodes of ended jobs that are not free yet, as bits
    layout
        the weights, features and switches of its nodes
    closures
        the spans of time (s) for which nodes are kept for something else, from a future instant on: reservations
    version
        a number that changes with the running jobs
    kept
        the reservations of the policy on its nodes, if there are any
    accepts
        whether the place takes a job with an allocation now: it may know of more than free nodes
    """

    def __init__(
        self, table: NodeTable, settings: SlurmConf, layout: Layout | None = None, *, sleeps: bool = False
    ) -> None:
        self.table = table
        self.settings = settings
        self.layout = Layout((), len(table)) if layout is None else layout
        self.now = 0
        self.running: list[Held] = []
        self.completing = self.up = 0
        self.closures: list[tuple[int, int, int]] = []
        self.kept: Kept | None = None
        self.accepts: Callable[[Pending, Allocation], bool] | None = None
        self._totals: dict[int, dict[str, float]] = {}
        self._busy: int | None = None
        self._free: dict[int, Free] = {}  # after so many ends
        self._able: dict[Each, dict[int, int]] = {}
        self._rooms: dict[tuple[int, object], list[float]] = {}
        self.ends: list[int] = []  # of running jobs
        self._ever: dict[tuple[Shape, Where, int], bool] = {}
        self._grain: Grain = 1.0
        if self.layout.pieces and settings.allocates != "cpu":
            part = int(settings.allocates == "socket")
            self._grain = np.array([self.layout.pieces.get(i, (1, 1))[part] for i in range(len(table))], dtype=float)
        self._shapes: dict[tuple[Request, tuple[Any, ...], str], Shape] = {}
        alike = bool((table.capacity[0] == 1).all()) and len(self.layout.weights) == 1 and not self.layout.switches
        self._alike = alike and not (settings.memory or settings.least_loaded or settings.preempt or sleeps)
        self.version = 0
        self._idle: int | None = None  # of nodes of one core: those free now, and their number
        self._idles: int | None = None
        self._unheld: int | None = None
        self._ended: list[int] = [0]  # those that so many ends free, and their numbers
        self._freed: list[int] = [0]

    def alike(self, shape: Shape) -> bool:
        """Whether a shape asks for nodes of one core, all alike: each is free or not, and nothing else matters."""
        return self._alike and shape.single

    @property
    def busy(self) -> int:
        """The nodes on which jobs run, as bits."""
        if self._busy is None:
            self._busy = 0
            for held in self.running:
                self._busy |= held.nodes
        return self._busy

    @property
    def unheld(self) -> int:
        """The nodes that are up on which no job runs, as bits."""
        if self._unheld is None:
            self._unheld = self.up & ~self.busy
        return self._unheld

    @property
    def idle(self) -> int:
        """The number of free nodes of one core."""
        if self._idles is None:
            self._idles = self.free_alike.bit_count()
        return self._idles

    @property
    def free_alike(self) -> int:
        """The free nodes of one core, as bits."""
        return self._idle_after(0)

    @property
    def all_up(self) -> bool:
        """Whether all nodes are up, each of one core."""
        return self._alike and self.up == (1 << len(self.table)) - 1

    def pass_to(self, now: float, completing: int = 0) -> None:
        """Pass on to an instant (s) at which all starts and ends since the last one have been noted."""
        self.now, self.completing = int(now), completing

    def ended(self, held: Held, *, release: bool) -> None:
        """Note a job that has ended; ``release``: what it held is to be released in the table, too."""
        at = bisect_left(self.running, (held.end, held.seq), key=lambda each: (each.end, each.seq))
        while at < len(self.running) and self.running[at].end == held.end and self.running[at] is not held:
            at += 1
        if at == len(self.running) or self.running[at] is not held:
            return
        del self.running[at], self.ends[at]
        if release:
            self.table.release(held.allocation)
        busy, nodes = self._busy, held.nodes & self.up
        if self._alike and nodes == held.nodes:  # no other job has one of its nodes
            count = len(held.allocation.nodes)
            self._ended[at:] = [each ^ nodes for each in self._ended[at + 1 :]] or self._ended[at : at + 1]
            self._freed[at:] = [each - count for each in self._freed[at + 1 :]] or self._freed[at : at + 1]
            at = len(self._ended)
        self._changed(at)
        if self._idle is not None:
            self._idle |= nodes
        if self._alike and busy is not None:
            self._busy = busy ^ held.nodes

    def _changed(self, first: int = 0) -> None:
        """Forget what was found of other running jobs, from so many ends on."""
        self.version += 1
        self._free.clear()
        self._able.clear()
        self._rooms.clear()
        self._busy = self._unheld = self._idles = None
        del self._ended[first + 1 :], self._freed[first + 1 :]

    def renew(self, now: float, running: Iterable[Held], completing: int = 0) -> None:
        """Take over the state at an instant (s), before a cycle."""
        self.now = int(now)
        self.running = sorted(running, key=lambda held: (held.end, held.seq))
        self.ends = [held.end for held in self.running]
        self.completing = completing
        self.up = mask_of(self.table.free[0] > -AWAY / 2)
        self._changed()
        self._idle = None

    def seen_by(self, job: Pending, begin: float) -> tuple[Board, int, float]:
        """Return the nodes as a job sees them that would start at an instant (s), those kept from it, and its next one.

        See :meth:`Kept.seen_by`.
        """
        return (self, 0, 0.0) if self.kept is None else self.kept.seen_by(self, job, begin)

    def closed(self, until: int) -> int:
        """Return the nodes that are kept for something else before an instant (s), as bits."""
        found = 0
        for begin, _, nodes in self.closures:
            found |= nodes if begin < until else 0
        return found

    def started(self, held: Held) -> None:
        """Note a job that has just started."""
        at = bisect_right(self.running, (held.end, held.seq), key=lambda each: (each.end, each.seq))
        self.running.insert(at, held)
        self.ends.insert(at, held.end)
        busy, nodes = self._busy, held.nodes
        if self._alike and nodes == nodes & self.up:
            count = len(held.allocation.nodes)
            self._ended[at + 1 :] = [each | nodes for each in self._ended[at:]]
            self._freed[at + 1 :] = [each + count for each in self._freed[at:]]
            at = len(self._ended)
        self._changed(at)
        if busy is not None:
            self._busy = busy | nodes
        if self._idle is not None:
            self._idle &= ~held.nodes

    def stopped(self, held: Held, completing: bool) -> None:
        """Note a job that has just been preempted; ``completing``: its nodes are not free yet."""
        self.running = [each for each in self.running if each is not held]
        self.ends = [each.end for each in self.running]
        if completing:
            self.completing |= held.nodes
        self._changed()
        self._idle = None

    def like(self, table: NodeTable, running: Iterable[Held]) -> Board:
        """Return the same nodes with other free capacity and other running jobs."""
        other = Board(table, self.settings, self.layout, sleeps=not self._alike)
        other.now, other.up, other.completing, other.running = self.now, self.up, self.completing, list(running)
        other.ends = [held.end for held in other.running]
        return other

    def totals(self, nodes: int) -> dict[str, float]:
        """Return the resources of these nodes, by Slurm's names: memory in MB."""
        found = self._totals.get(nodes)
        if found is None:
            nodes &= (1 << len(self.table)) - 1
            cores, gpus, memory = self.table.capacity[:, flags_of(nodes, len(self.table))].sum(axis=1).tolist()
            found = {"cpu": cores, "gres/gpu": gpus, "mem": memory / 2**20, "node": float(nodes.bit_count())}
            self._totals[nodes] = found
        return found

    def shape_of(self, request: Request, wishes: Wishes, spec: SlurmPartition) -> Shape:
        """Return what a job asks of its nodes, as its partition has it.

        Memory that it does not name is that of slurm.conf, or whole nodes'.
        """
        key = request, wishes.spread, spec.name
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = self._new_shape(request, wishes, spec)
        return found

    def _new_shape(self, request: Request, wishes: Wishes, spec: SlurmPartition) -> Shape:
        settings = self.settings
        wishes, whole = _memory_of(request, wishes, spec, settings)
        limits = spec if spec.max_mem_per_cpu or spec.max_mem_per_node else settings
        asked, (request, wishes, cores) = request, _more_cores(request, wishes, limits.max_mem_per_cpu)
        shape = Shape(
            attrs.evolve(request, exclusive=True) if spec.exclusive else request,
            wishes.memory_per_cpu or 0.0,
            whole_memory=whole,
            wishes=wishes,
            bounds=(max(spec.min_nodes, 1), spec.max_nodes),
            cores=cores,
            least_loaded=settings.least_loaded or spec.least_loaded,
            grain=self._grain,
            roomy=spec.exclusive or spec.min_nodes > 1 or cores > 1 or request.processors > asked.processors,
        )
        fewest, most = (request.nodes, request.nodes) if request.nodes else wishes.nodes or (1, ANY)
        needed = max(fewest, request.processors / float(self.table.capacity[0].max()))
        if most < spec.min_nodes or needed > (spec.max_nodes or inf):
            shape.never = "PartitionNodeLimit"
        elif limits.max_mem_per_node and (shape.each[2] > limits.max_mem_per_node or whole):
            shape.never = "MaxMemPerLimit"
        return shape

    def ever(self, job: Pending) -> bool:
        """Whether a job could start if all nodes of its partition were free; one leaf switch may be waited for."""
        key = job.shape, job.where, job.site.nodes
        if key not in self._ever:
            empty = self.like(self.table.full(), ())
            self._ever[key] = job.wishes.switches or empty.fits(job, job.site.nodes)
        return self._ever[key]

    def has(self, shape: Shape, nodes: int) -> bool:
        """Whether these nodes have what a shape asks for now, in sum and each of them, however they are chosen."""
        usable = self._usable(shape, 0) & nodes
        if self.alike(shape):
            return usable.bit_count() >= shape.request.processors
        return usable.bit_count() >= shape.nodes if shape.chunks else self._enough(0, shape, usable)

    def fits(self, job: Pending, nodes: int) -> bool:
        """Whether a job could start now on these nodes."""
        return self._fits_after(0, job, nodes)

    def select(self, job: Pending, nodes: int) -> Allocation | None:
        """Return the parts of these nodes that a job gets now, if it can start."""
        if self.alike(job.shape) and job.where is ANYWHERE and not job.wishes.switches and not job.shape.exclusive:
            alike = choose_alike(self._idle_after(0) & nodes, job.request.processors)
            if not alike:
                return None
            found = Allocation.alike(tuple(nodes_in(alike)), 1)
        else:
            chosen = self._choice(0, job, nodes)
            if chosen is None:
                return None
            found = allocation_of(self.table, job.shape, chosen, self.settings, self.layout.pieces)
        return found if self.accepts is None or self.accepts(job, found) else None

    def later_than(self, latest: int, job: Pending, nodes: int) -> bool:
        """Whether a job can start on these nodes only after an instant (s), by the limits of running jobs."""
        return not self._fits_after(bisect_right(self.ends, latest), job, nodes)

    def able_by(self, shape: Shape, latest: int) -> int:
        """Return the nodes that meet what a shape asks of each node at an instant (s), by the ends of limits."""
        return self._usable(shape, bisect_right(self.ends, latest))

    def will_run(self, job: Pending, nodes: int, latest: int = 0) -> Plan | None:
        """Return when a job could start on these nodes by the limits of running jobs; ``None``: never.

        Running jobs are released in the order of their ends, those of a window together: the first window ends 30 s
        after the next whole 30 s after the first end, and each next one is twice as long, until it takes in the next
        end. The start is the end of the last job released.

        Parameters
        ----------
        latest
            an instant (s): of a later start, any bound after it is returned; 0: the start matters in any case
        """
        ended = len(self.running)
        if latest:
            ended = bisect_right(self.ends, latest)
            if not self._fits_after(ended, job, nodes):  # nor now
                return Plan(self.running[ended].end, 0) if ended < len(self.running) else None
        if self.fits(job, nodes):
            return Plan(self.now, 0)
        needed = self._needed(job, nodes, ended)
        if needed is None:
            return None
        return self.release(nodes, needed)

    def release(self, nodes: int, needed: int) -> Plan:
        """Return the end of the round in which at least so many ends are released, as far as they free these nodes."""
        running, ends, count = self.running, self.ends, len(self.running)
        window, first, released, last = WINDOW, 0, 0, running[0]
        while True:
            while released < count:
                held = running[released]
                released += 1
                if not held.nodes & nodes:
                    continue
                first, last = first or (held.end // WINDOW + 1) * WINDOW, held
                if released < count and ends[released] > first + window:
                    break
                end = at = max(bisect_right(ends, first + window), released)  # no round ends before
                while not running[at - 1].nodes & nodes:
                    at -= 1
                released, last = end, running[at - 1]
                if at == end:
                    break
            if released >= needed:
                return Plan(self._end_of(last), released)
            window = self._wider(window, first, released)

    def _needed(self, job: Pending, nodes: int, most: int) -> int | None:
        """Return after how many ends a job fits on these nodes, at most so many; ``None``: it does not."""
        low, high = 1, most
        if not high or not self._fits_after(high, job, nodes):
            return None
        if self.alike(job.shape) and job.where is ANYWHERE and not job.wishes.switches:
            (ended, _), idle = self.freed(high), self._idle_after(0) & nodes
            wanted, busy = job.request.processors - idle.bit_count(), nodes & ~idle
            return max(bisect_left(ended, wanted, 0, high, key=lambda each: (each & busy).bit_count()), 1)
        while low < high:
            middle = (low + high) // 2
            if self._fits_after(middle, job, nodes):
                high = middle
            else:
                low = middle + 1
        return low

    def _fits_after(self, released: int, job: Pending, nodes: int) -> bool:
        if job.where is not ANYWHERE or job.wishes.switches:
            return self._choice(released, job, nodes) is not None
        if self.alike(job.shape):
            return (self._idle_after(released) & nodes).bit_count() >= job.request.processors
        usable = self._usable(job.shape, released) & nodes
        if job.shape.bounded:
            return self._choice(released, job, nodes) is not None
        return self._enough(released, job.shape, usable)

    def _enough(self, released: int, shape: Shape, usable: int) -> bool:
        """Whether these nodes, each of which meets a shape, have enough in sum after the first ends."""
        if usable.bit_count() < shape.nodes:
            return False
        if shape.even or shape.gpus:
            return enough(self._after(released), shape, usable)
        key = released, shape.room
        rooms = self._rooms.get(key)
        if rooms is None:
            rooms = self._rooms[key] = usable_cores(self._after(released), shape).tolist()
        return at_least(rooms, usable, shape.request.processors)

    def _choice(self, released: int, job: Pending, nodes: int) -> list[tuple[int, int]] | None:
        """Return which of these nodes a job gets after the first ends, and its cores on each; ``None``: too few."""
        free, where = self._after(released), job.where
        usable = self._usable(job.shape, released) & nodes & where.may
        for alike in where.alike or (-1,):
            mine = usable & alike
            must = self._must(free, job, mine)
            if must is None or not self._enough(released, job.shape, mine):
                continue
            found = self._choose(free, job.shape, mine, must)
            if found is not None and not (job.one_leaf and self._leaves(found) > 1):
                return found
        return None

    def _must(self, free: Free, job: Pending, usable: int) -> int | None:
        """Return the nodes that a job gets in any case, with those of counted features; ``None``: they are not free."""
        must = job.where.must
        for nodes, count in job.where.counts:
            missing = count - (nodes & must).bit_count()
            if missing <= 0:
                continue
            if (usable & nodes & ~must).bit_count() < missing:
                return None
            shape = Shape(Request(missing, nodes=missing))
            found = self._choose(free, shape, usable & nodes & ~must, 0)
            if found is None:
                return None
            must |= sum(1 << node for node, _ in found)
        return None if must & ~usable else must

    def _choose(self, free: Free, shape: Shape, usable: int, must: int) -> list[tuple[int, int]] | None:
        cores = self.table.capacity[0] if shape.least_loaded else None
        return choose(free, shape, usable, layout=self.layout, must=must, least_loaded=cores)

    def _leaves(self, chosen: list[tuple[int, int]]) -> int:
        nodes = sum(1 << node for node, _ in chosen)
        return sum(not switch.level and bool(switch.nodes & nodes) for switch in self.layout.switches)

    def _wider(self, window: float, first: int, released: int) -> int:
        """Return the next window: it takes in the next end."""
        step = self.settings.bf_window_linear
        while True:
            window = window + step if step else window * 2
            if released >= len(self.running) or self.running[released].end <= first + window:
                return int(window)

    def _end_of(self, held: Held) -> int:
        """Return when a job is thought to have ended: later than its limit if that has passed."""
        if held.end > self.now:
            return held.end
        over = self.settings.over_time_limit
        end = held.end + self.settings.kill_wait + (0.0 if over == float("inf") else over)
        return max(int(end), self.now + 1)

    def chosen(self, job: Pending, nodes: int, released: int) -> int:
        """Return which of these nodes a job would get after so many ends, as bits."""
        if self.alike(job.shape) and job.where is ANYWHERE and not job.wishes.switches:
            return choose_alike(self._idle_after(released) & nodes, job.request.processors)
        return sum(1 << node for node, _ in self._choice(released, job, nodes) or ())

    def _after(self, released: int) -> Free:
        """Return the free capacity after the first ends."""
        if not released:
            return self.table.free
        found = self._free.get(released)
        if found is None:
            before = max([each for each in self._free if each < released], default=0)
            found = self._after(before).copy()
            for held in self.running[before:released]:
                found[:, held.allocation.nodes] += held.allocation.amounts
            self._free[released] = found
        return found

    def _usable(self, shape: Shape, released: int) -> int:
        """Return the nodes that meet what a shape asks of each node, after the first ends."""
        if self.alike(shape):
            return self._idle_after(released)
        known = self._able.get(shape.each)
        if known is None:
            known = self._able[shape.each] = {}
        found = known.get(released)
        if found is None:
            found = known[released] = able(self._after(released), self.table.capacity, shape)
        return found

    def _idle_after(self, released: int) -> int:
        """Return the nodes of one core that are free after the first ends."""
        if self._idle is None:
            self._idle = mask_of(self.table.free[0] >= 1)
        return self._idle | self.freed(released)[0][released] if released else self._idle

    def freed(self, released: int) -> tuple[list[int], list[int]]:
        """Return the nodes of one core that no, one, two, ... ends free, so many ends at least, and their numbers."""
        found, counts = self._ended, self._freed
        if released >= len(found):
            last, count, up = found[-1], counts[-1], self.up
            for held in self.running[len(found) - 1 : released]:
                nodes = held.nodes & up
                last |= nodes
                count += len(held.allocation.nodes) if nodes == held.nodes else nodes.bit_count()
                found.append(last)
                counts.append(count)
        return found, counts
