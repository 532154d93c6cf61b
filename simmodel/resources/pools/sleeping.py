"""Nodes that sleep and boot: states beside up and down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.allocation import AWAY, Allocation, Request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Environment
    from simmodel.resources.pools.absences import CapacityWindow
    from simmodel.resources.pools.allocation import Need, NodeTable
    from simmodel.resources.pools.claims import Grant
    from simmodel.resources.pools.profile import Profile
    from simmodel.resources.pools.running import RunningIndex
    from simmodel.work.job import LiveJob

__all__ = ["Asleep", "Boot", "NodeChange", "SleepState", "Sleeping"]


class Asleep(NamedTuple):
    """A node that sleeps: when it is off (s), as expected and in fact."""

    node: int
    expected: float
    off: float


class Boot(NamedTuple):
    """A boot: since when (s), and until when, as expected and in fact; whether it fails; the job that woke the node."""

    node: int
    begins: float
    expected: float
    ready: float
    fails: bool = False
    job: int | str | None = None


class SleepState(NamedTuple):
    """The nodes of a pool that sleep and boot, and since when others are idle: (node, instant in s) each."""

    asleep: tuple[Asleep, ...] = ()
    booting: tuple[Boot, ...] = ()
    idle: tuple[tuple[int, float], ...] = ()


class NodeChange(NamedTuple):
    """A change of the states of nodes, for records: when each is off, or up (s), and the job that woke them."""

    nodes: tuple[int, ...]
    until: tuple[float, ...]
    job: int | str | None = None


class SleepingPool(Protocol):
    """A pool of nodes, as its sleep asks it: see :class:`~simmodel.resources.pools.nodes.NodePool`."""

    env: Environment
    name: str
    system: str
    nodes: list[str]
    spec: Any
    dozing: Sleeping | None
    running: RunningIndex
    windows: list[CapacityWindow]
    calendar_priority: float
    tell: Callable[..., object]
    version: int

    @property
    def table(self) -> NodeTable: ...
    def allocate(self, job: LiveJob) -> Allocation | None: ...
    def accepts(self, job: LiveJob, allocation: Allocation | Grant | None) -> bool: ...
    def profile(self) -> Profile: ...
    def altered(self) -> None: ...
    def came_free(self) -> None: ...


class Sleeping:
    """The nodes of a pool that sleep and boot, and since when the others are idle.

    A node that sleeps is free: a job that gets it wakes it, and holds it until it is up. Plans count it as free from
    the end of its boot on.

    Parameters
    ----------
    pool
        the pool

    Attributes
    ----------
    powers
        of its nodes
    longest
        the longest time (s) that a node is expected to take from its way to sleep until it is up again
    asleep, booting
        by node
    idle_since
        since when nodes are idle (s), by node, the earliest first; some of them may be down or in use by now
    plan
        plans the end of a boot for an instant (s), given with that at which it is expected; a calendar replaces it
    change
        the change of states that observers are being told of, if it is one
    """

    def __init__(self, pool: SleepingPool) -> None:
        self._pool = pool
        self.powers = [kind.watts for kind in pool.spec.nodes for _ in range(kind.count)]
        self._can = np.array([each.can_sleep for each in self.powers])
        self._boots = np.array([each.expected_boot for each in self.powers])
        self._off = np.full(len(self.powers), -inf)  # of nodes that sleep, when they are expected to be off
        self._up = np.full(len(self.powers), -inf)  # of nodes that boot, when they are expected to be up
        self.longest = max(each.expected_boot + each.expected_stop for each in self.powers)
        self._kept: tuple[Any, NDArray[np.float64], NodeTable | None] = None, self._up, None
        now = float(pool.env.now)
        self.asleep = {i: Asleep(i, now, now) for i, each in enumerate(self.powers) if each.asleep}
        self._off[list(self.asleep)] = now
        self.booting: dict[int, Boot] = {}
        self.idle_since = {i: now for i in range(len(self.powers)) if i not in self.asleep}
        pool.dozing = self if self.asleep and self.longest else None
        self.plan: Callable[[float, float], object] = self._call
        self.change: NodeChange | None = None

    def _call(self, at: float, _expected: float) -> None:
        self._pool.env.call_at(at, self._over, self._pool.calendar_priority)

    def _over(self) -> None:
        self.booted()
        self._pool.came_free()

    # ------------------------------------------------------------------ changes

    def _refuse(self, nodes: Iterable[int], able: Sequence[bool] | NDArray[np.bool_], accepted: str) -> None:
        for node in nodes:
            if not able[node]:
                text = f"must be nodes {accepted}, got {self._pool.nodes[node]!r} of {self._pool.name}"
                raise InputError(text, place="nodes")

    def _rng(self) -> np.random.Generator:
        return self._pool.env.rng(f"{self._pool.system}.boots.{self._pool.name}")

    def sleep(self, nodes: Sequence[int]) -> None:
        """Put idle nodes to sleep.

        Raises
        ------
        InputError
            a node is not up, awake and idle, or cannot boot
        """
        self._refuse(nodes, self._can, "with a boot in their power")
        self._refuse(nodes, self._idle(), "that are up, awake and idle")
        now, rng = float(self._pool.env.now), self._rng()
        for node in nodes:
            power = self.powers[node]
            self.asleep[node] = Asleep(node, now + power.expected_stop, now + power.draw_stop(rng))
            self.idle_since.pop(node, None)
        self._changed(nodes)
        self._note("sleep", nodes, [self.asleep[node].off for node in nodes])

    def wake(self, nodes: Sequence[int], job: int | str | None = None) -> None:
        """Begin to boot nodes that sleep, once they are off; ``job``: the one that needs them.

        Raises
        ------
        InputError
            a node does not sleep
        """
        self._refuse(nodes, self._off > -inf, "that sleep")
        now, rng = float(self._pool.env.now), self._rng()
        until: list[float] = []
        calls: dict[float, float] = {}
        for node in nodes:
            power, (_, expected, off) = self.powers[node], self.asleep.pop(node)
            begins = max(now, off)
            seconds, limit = power.draw_boot(rng), inf if power.boot_limit is None else power.boot_limit
            ready = begins + min(seconds, limit)
            fails = seconds > limit or (bool(power.boot_failures) and bool(rng.random() < power.boot_failures))
            until.append(ready)
            if ready > now or fails:
                boot = self.booting[node] = Boot(
                    node, begins, max(now, expected) + power.expected_boot, ready, fails, job
                )
                calls[ready] = max(boot.expected, calls.get(ready, 0.0))
            else:
                self.idle_since[node] = now
        for at, expected in calls.items():
            self.plan(at, expected)
        self._changed(nodes)
        self._note("wake", nodes, until, job)

    def wake_for(self, nodes: Sequence[int] | None, job: int | str) -> bool:
        """Wake those of some nodes that sleep for a job; return whether any of the nodes boots."""
        nodes = nodes or ()
        if self.asleep and (sleeping := [node for node in nodes if node in self.asleep]):
            self.wake(sleeping, job)
        return bool(self.booting) and not self.booting.keys().isdisjoint(nodes)

    def booted(self) -> list[int]:
        """End the boots that are over by now; return the nodes whose boots have failed."""
        now, idle = self._pool.env.now, self._pool.table
        over = [boot for boot in self.booting.values() if boot.ready <= now]
        for node, *_ in over:
            del self.booting[node]
            if idle.free[0, node] == idle.capacity[0, node]:
                self.idle_since[node] = float(now)
        nodes = [boot.node for boot in over]
        self._changed(nodes)
        self._note("boot", nodes, [boot.ready for boot in over])
        return [boot.node for boot in over if boot.fails]

    def _changed(self, nodes: Sequence[int]) -> None:
        """Invalidate cached answers after the states of nodes have changed."""
        pool = self._pool
        pool.dozing = self if self.booting or (self.asleep and self.longest) else None
        for node in nodes:
            self._off[node] = self.asleep[node].expected if node in self.asleep else -inf
            self._up[node] = self.booting[node].expected if node in self.booting else -inf
        pool.altered()

    def _note(self, cause: str, nodes: Sequence[int], until: Sequence[float], job: int | str | None = None) -> None:
        """Notify observers of a change of nodes."""
        pool = self._pool
        if nodes:
            self.change = NodeChange(tuple(nodes), tuple(until), job)
            pool.tell("place_changed", pool, cause)
            self.change = None

    # ------------------------------------------------------------------ idle nodes

    def taken(self, nodes: Iterable[int]) -> None:
        """Note that nodes are in use."""
        for node in nodes:
            self.idle_since.pop(node, None)

    def left(self, nodes: Iterable[int]) -> None:
        """Note that work has left nodes."""
        now = float(self._pool.env.now)
        for node in nodes:
            self.idle_since.pop(node, None)
            self.idle_since[node] = now

    def _idle(self) -> NDArray[np.bool_]:
        table = self._pool.table
        idle: NDArray[np.bool_] = table.free[0] == table.capacity[0]
        idle[[*self.asleep, *self.booting]] = False
        return idle

    def idle(self) -> list[tuple[int, float]]:
        """Return the nodes that could sleep, each with the instant (s) since which it is idle, the earliest first."""
        could = self._idle() & self._can
        return [(node, since) for node, since in self.idle_since.items() if could[node]]

    # ------------------------------------------------------------------ for plans

    def by_node(self) -> NDArray[np.float64]:
        """Return from when on nodes are up (s) if they are woken now, infinitely early if they are; read-only."""
        pool = self._pool
        token = pool.version, pool.env.now
        if self._kept[0] != token:
            now = float(pool.env.now)
            ready = np.where(self._off > -inf, np.maximum(self._off, now) + self._boots, self._up)
            ready[(-inf < self._up) & (self._up <= now)] = nextafter(now, inf)
            ready[ready <= now] = -inf
            self._kept = token, ready, None
        return self._kept[1]

    def awake(self) -> NodeTable:
        """Return the free capacity of the nodes that are up; read-only."""
        ready = self.by_node()
        token, _, table = self._kept
        if table is None:
            table = self._pool.table.copy()
            table.free[0, ready > -inf] -= AWAY
            self._kept = token, ready, table
        return table

    def windows(self) -> list[tuple[None, float, Allocation]]:
        """Return until when nodes are away that sleep or boot, if they are woken now."""
        ready = self.by_node()
        ends: list[float] = np.unique(ready[ready > -inf]).tolist()
        return [(None, end, Allocation.away(np.flatnonzero(ready == end).tolist())) for end in ends]

    def allocate(self, need: Need, table: NodeTable, later: NodeTable) -> Allocation | None:
        """Return parts of nodes for a need, of awake ones or with as few as possible that are up soonest.

        ``table, later``: the free capacity if all were up now, and for work that begins once all are.
        """
        ready = self.by_node()
        awake, table = table.copy(), later
        awake.free[0, ready > -inf] -= AWAY
        found = awake.allocate(need)
        if found is not None:
            return found
        awake = later.copy()
        awake.free[0, ready > -inf] -= AWAY
        dozing = np.flatnonzero((ready > -inf) & (table.free[0] > 0))
        dozing = dozing[np.argsort(ready[dozing], kind="stable")]
        low, high = 0, len(dozing)  # too few, enough
        if isinstance(need, Request) and need.by_nodes and need.nodes is not None:
            dozing = dozing[table.suitable(need)[dozing]]
            high = need.nodes - int(np.count_nonzero(awake.suitable(need)))
            low = high - 1
        found = self._with(awake, dozing[:high], need)
        while found is not None and high - low > 1:
            middle = (low + high) // 2
            fewer = self._with(awake, dozing[:middle], need)
            low, high, found = (middle, high, found) if fewer is None else (low, middle, fewer)
        return found

    def ready(self, allocation: Allocation | Grant) -> float:
        """Return from when on the nodes of an allocation are up (s) if they are woken now."""
        latest = float(self._pool.env.now)
        if isinstance(allocation, Allocation):
            latest = max(latest, float(self.by_node()[allocation.nodes].max(initial=-inf)))
        return latest

    def asleep_in(self, allocation: Allocation | Grant) -> list[int]:
        """Return the nodes of an allocation that sleep."""
        nodes = allocation.numbers if isinstance(allocation, Allocation) else ()
        return [node for node in nodes if node in self.asleep]

    def chosen(self, job: LiveJob) -> Allocation | None:
        """Return the allocation that a job would get now, or ``None``."""
        return self._pool.allocate(job)

    def begins_now(self, job: LiveJob, at: float, allocation: Allocation | Grant | None) -> bool:
        """Whether a job that is planned for an instant (s) is to have its nodes now: to be used, or to be booted."""
        if at <= self._pool.env.now or allocation is None:
            return at <= self._pool.env.now
        if isinstance(allocation, Allocation):
            return at <= self.ready(allocation) and self._pool.accepts(job, allocation)
        latest, (cores, ends) = -inf, self.counts()
        for end, more in ends:
            if cores < job.width:
                cores += more
                latest = end
        return cores >= job.width and at == latest

    def counts(self) -> tuple[int, list[tuple[float, int]]]:
        """Return the cores free on nodes that are up, and (instant in s, cores) of those that could be, by instant."""
        ready = self.by_node()
        times, group = np.unique(ready, return_inverse=True)
        cores = np.bincount(group, np.maximum(self._pool.table.free[0], 0.0)).astype(int)
        found = list(zip(times.tolist(), cores.tolist(), strict=True))
        return (found[0][1], found[1:]) if found[0][0] == -inf else (0, found)

    def needed(self, at: float, spare: int) -> Allocation:
        """Return the nodes that sleep and that plans need at an instant (s), which leave some cores to spare then.

        Of the nodes that could be up, those that sleep are used last, and of these those that are up latest.
        """
        ready, capacity = self.by_node(), self._pool.table.capacity[0]
        nodes = np.array([node for node in sorted(self.asleep) if ready[node] <= at], dtype=np.intp)
        nodes = nodes[np.argsort(ready[nodes], kind="stable")]
        after = capacity[nodes].sum() - np.cumsum(capacity[nodes]) + capacity[nodes]
        return Allocation.alike(tuple(sorted(nodes[after > spare].tolist())), 0)

    def worth_waking(self, job: LiveJob, need: Need | int) -> bool:
        """Whether a job that would fit if all nodes were up fits on awake ones, or gets such no earlier than others.

        ``need``: the processors of its whole nodes, if nodes count alone.
        """
        if not self._pool.windows:
            fits = need <= self.awake().cores if isinstance(need, int) else self.awake().fits(need)
            if fits or self._pool.running.first_end >= self.by_node().max():  # nothing comes free before
                return True
        return self.begins_now(job, *self._pool.profile().earliest(job, job.planned))

    def wake_for_claim(self, job: LiveJob) -> bool:
        """Wake the nodes that a claim needs; return whether they are not up yet."""
        allocation = self._pool.allocate(job)
        return allocation is not None and self.wake_for(allocation.numbers, job.id)

    def _with(self, awake: NodeTable, nodes: NDArray[np.intp], need: Need) -> Allocation | None:
        """Return parts of nodes for a need if some more were up."""
        table = awake.copy()
        table.free[0, nodes] += AWAY
        return table.allocate(need)

    # ------------------------------------------------------------------ snapshots and reservations

    def state(self, *, actual: bool) -> SleepState:
        """Return the state of its nodes; unless ``actual``, as expected."""
        asleep, booting = tuple(self.asleep.values()), tuple(self.booting.values())
        if not actual:
            asleep = tuple(each._replace(off=each.expected) for each in asleep)
            ready = self.by_node()
            booting = tuple(each._replace(ready=float(ready[each.node]), fails=False) for each in booting)
        return SleepState(asleep, booting, tuple(self.idle_since.items()))

    def awake_since(self, now: float) -> SleepState:
        """Return the state in which all nodes are awake, and idle since an instant (s)."""
        return SleepState(idle=tuple((node, now) for node in range(len(self.powers))))

    def restore(self, state: SleepState) -> None:
        """Take over a state; the ends of boots are planned again by the caller."""
        before = [*self.asleep, *self.booting]
        self.asleep = {each.node: each for each in state.asleep}
        self.booting = {each.node: each for each in state.booting}
        self.idle_since = dict(state.idle)
        self._changed([*before, *self.asleep, *self.booting])

    def retell(self) -> None:
        """Notify observers of the states anew: a record begins."""
        off = {each.node: each.off for each in self.asleep.values()}
        off |= {boot.node: boot.begins for boot in self.booting.values() if boot.begins > self._pool.env.now}
        self._note("sleep", list(off), list(off.values()))
        for boot in list(self.booting.values()):
            self._note("wake", [boot.node], [boot.ready], boot.job)

    def move(self, to: Sleeping, numbers: Iterable[tuple[int, int]]) -> None:
        """Hand nodes over to another pool, given by their numbers here and there."""
        gone, there = [], []
        for mine, theirs in numbers:
            if mine in self.asleep:
                to.asleep[theirs] = self.asleep.pop(mine)._replace(node=theirs)
            elif mine in self.booting:
                boot = to.booting[theirs] = self.booting.pop(mine)._replace(node=theirs)
                to.plan(boot.ready, boot.expected)
            else:
                continue
            gone.append(mine)
            there.append(theirs)
        if gone:
            self._changed(gone)
            self._note("boot", gone, [float(self._pool.env.now)] * len(gone))
            to._changed(there)
            to.retell()
