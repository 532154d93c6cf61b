"""The parts of a pool that are away: down, drained, gone, or announced to be away in a window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from simmodel.environment import END
from simmodel.foundation.errors import InputError
from simmodel.resources.pools.allocation import Allocation, NodeTable

if TYPE_CHECKING:
    import numpy as np

    from simmodel.environment import Call, Environment, ToCome
    from simmodel.platform.cluster import OutageSpec, ReservationSpec
    from simmodel.resources.pools.running import RunningIndex
    from simmodel.work.job import Run

__all__ = ["CALENDAR", "Absences", "CapacityWindow", "NodeAbsences", "Purpose"]


CALENDAR = END + 0.5  # within an instant: after its ends, before its submissions


class Purpose(NamedTuple):
    """The purpose of a window.

    ``why``: its name, by which a snapshot finds it again; ``begins`` and ``ends``: the causes in the record; ``tell``:
    called with ``True`` once the part is away, and with ``False`` once the window has ended; ``may_return``: whether
    the part comes back at the end of the window; if not, whoever said so extends the window and ends it later.
    """

    why: str = ""
    begins: str = "drain"
    ends: str = "resume"
    tell: Callable[[bool], object] | None = None
    may_return: Callable[[], bool] | None = None


class ChangingPool(Protocol):
    """A pool, as its absences ask it: see :class:`~simmodel.resources.pools.pool.Pool`."""

    env: Environment
    name: str
    windows: list[CapacityWindow]
    calendar_priority: float
    tell: Callable[..., object]

    @property
    def absences(self) -> Absences[Any]: ...
    def altered(self) -> None: ...
    def came_free(self) -> None: ...


class ChangingNodes(ChangingPool, Protocol):
    """A pool of nodes, as its absences ask it: see :class:`~simmodel.resources.pools.nodes.NodePool`."""

    nodes: list[str]
    up: int
    running: RunningIndex

    @property
    def table(self) -> NodeTable: ...
    @property
    def units(self) -> range: ...
    def part(self, what: Iterable[int | str]) -> tuple[int, ...]: ...
    def lose(self, nodes: Sequence[int], times: int = 1) -> None: ...
    def nodes_changed(self, what: Sequence[int]) -> None: ...


class CapacityWindow:
    """An absence of a part of a pool from ``start`` to ``end`` (s): ``what`` is processors, or a tuple of nodes.

    ``begun``: whether the part is already away; ``purpose``: see
    :meth:`Pool.announce <simmodel.resources.pools.pool.Pool.announce>`.
    """

    __slots__ = ("_calls", "_pool", "begun", "end", "purpose", "start", "what")

    def __init__(self, pool: ChangingPool, start: float, end: float, what: Any, purpose: Purpose) -> None:
        self._pool = pool
        self.start = start
        self.end = end
        self.what = what
        self.purpose = purpose
        self.begun = False
        self._calls: dict[str, Call] = {}  # its planned calls, by kind

    @property
    def why(self) -> str:
        return self.purpose.why

    def __lt__(self, other: CapacityWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __repr__(self) -> str:
        return f"<window {self.start:g} to {self.end:g} s: {self.what}>"

    def close(self) -> None:
        """End the window: its part comes back."""
        self._pool.windows.remove(self)
        self._pool.absences.come_up(self.what, self.purpose.ends)

    def extend(self, end: float) -> None:
        """Expect the part of a window that has begun back at another instant (s)."""
        if end != self.end:
            self.end = end
            self._pool.altered()

    def plan(self, what: str, at: float) -> None:
        """Plan its ``begin``, ``over`` or ``told`` call at an instant (s)."""
        pool = self._pool
        call = {"begin": self._begin, "over": self._over, "told": self._told}[what]
        self._calls[what] = pool.env.call_at(at, call, pool.calendar_priority)

    def to_come(self, number: int) -> list[ToCome]:
        """List its planned calls, each with its number among the windows of the pool."""
        return [call.to_come(what, self._pool.name, number) for what, call in self._calls.items() if call.pending]

    def _begin(self) -> None:
        self.begun = True
        self._pool.absences.go_down(self.what, self.purpose.begins)
        self._tell(True)
        self._pool.came_free()

    def _over(self) -> None:
        may_return = self.purpose.may_return
        if may_return is None or may_return():
            self.close()
        self._tell(False)

    def _told(self) -> None:
        self._pool.tell("place_changed", self._pool, self.purpose.begins)
        self._tell(True)

    def _tell(self, away: bool) -> None:
        if self.purpose.tell is not None:
            self.purpose.tell(away)


Part = TypeVar("Part")


class Absences(Generic[Part]):
    """What of a pool is away, for how many reasons, and the work on it.

    A part is a number of processors or, if nodes are identified, a tuple of nodes. Windows are in ``pool.windows``.
    """

    @property
    def away(self) -> Any:
        """The capacity that is down, as a value: a number of processors, or ((node, number of reasons), ...)."""
        raise NotImplementedError

    @property
    def drained(self) -> Any:
        """The part of :attr:`away` that :meth:`Pool.take_down` took, in the same form."""
        raise NotImplementedError

    @property
    def pool(self) -> ChangingPool:
        """The pool."""
        raise NotImplementedError

    @property
    def whole(self) -> Part:
        """All of the pool."""
        raise NotImplementedError

    def units_of(self, spec: OutageSpec | ReservationSpec) -> Part:
        """Return the part that an outage or a reservation names.

        Raises
        ------
        InputError
            an unknown or duplicate node
        """
        raise NotImplementedError

    def lower(self, what: Part) -> None:
        """Take a part down without a record."""
        raise NotImplementedError

    def lift(self, what: Part) -> None:
        """Bring a part up without a record.

        Raises
        ------
        InputError
            the part is not down
        """
        raise NotImplementedError

    def count_drained(self, what: Part, more: int) -> None:
        """Count a part as taken down (1) or as brought up again (-1).

        Raises
        ------
        InputError
            the part to bring up was not taken down
        """
        raise NotImplementedError

    def restore(self, size: Any, away: Any, drained: Any) -> None:
        """Take over :attr:`Pool.size` and what was away from another pool of the same spec."""
        raise NotImplementedError

    def go_down(self, what: Part, cause: str) -> None:
        """Take a part down and record it, without waking the schedulers: for callers that first stop work there."""
        self.lower(what)
        self.pool.tell("place_changed", self.pool, cause)

    def come_up(self, what: Part, cause: str) -> None:
        """Bring a part up, whatever took it down, and record it."""
        self.lift(what)
        self.pool.tell("place_changed", self.pool, cause)
        self.pool.came_free()

    def hit_by(self, what: Part, rng: np.random.Generator) -> list[Run]:
        """Return the executions that a failure of a part stops, ordered by their starts; called once it is down.

        A pool without identified nodes draws the failed processors from ``rng`` among all that were up, so that busy
        processors are hit in proportion.
        """
        raise NotImplementedError

    def in_the_way(self, what: Part) -> list[Run]:
        """Return the executions to stop to empty a part that is down, the latest first."""
        raise NotImplementedError


class NodeAbsences(Absences[Sequence[int]]):
    """The nodes of a pool that are away.

    Attributes
    ----------
    times_down
        for how many reasons each node is down
    gone
        the nodes that left
    """

    def __init__(self, pool: ChangingNodes) -> None:
        self._pool = pool
        self.times_down = [0] * len(pool.nodes)
        self.gone: set[int] = set()
        self._drained: Counter[int] = Counter()  # how often take_down took each

    @property
    def pool(self) -> ChangingNodes:
        return self._pool

    @property
    def away(self) -> tuple[tuple[int, int], ...]:
        """The nodes that are down, each with its number of reasons."""
        return tuple((node, times) for node, times in enumerate(self.times_down) if times)

    @property
    def drained(self) -> tuple[tuple[int, int], ...]:
        """The nodes that ``take_down`` took, each with how often."""
        return tuple(sorted((+self._drained).items()))

    @property
    def whole(self) -> tuple[int, ...]:
        return tuple(self._pool.units)

    def units_of(self, spec: OutageSpec | ReservationSpec) -> tuple[int, ...]:
        """Return the numbers of the nodes that an outage or a reservation names, ascending.

        Raises
        ------
        InputError
            an unknown or duplicate node
        """
        return self._pool.part(spec.nodes)

    def restore(
        self, size: Sequence[int] | None, away: Sequence[tuple[int, int]], drained: Iterable[tuple[int, int]]
    ) -> None:
        """Let the nodes leave that left another pool, and take nodes down, each for its number of reasons."""
        if size:
            self.gone.update(size)
            self._pool.lose(size)
        for reason in range(max((times for _, times in away or ()), default=0)):
            self.lower([node for node, times in away if times > reason])
        if drained:
            self._drained = Counter(dict(drained))

    def leave(self, what: Sequence[int]) -> None:
        """Count nodes as gone; they are still to be taken down.

        Raises
        ------
        InputError
            a node has left
        """
        self._refuse(what, [node for node in what if node in self.gone], "nodes that have not left")
        self.gone.update(what)
        self._pool.lose(what)

    def join(self, what: Sequence[int]) -> None:
        """Count nodes as there again; they are still to be brought up.

        Raises
        ------
        InputError
            a node has not left
        """
        self._refuse(what, [node for node in what if node not in self.gone], "nodes that have left")
        self.gone.difference_update(what)
        self._pool.lose(what, -1)

    def _refuse(self, part: Sequence[int], wrong: Sequence[int], accepted: str) -> None:
        if wrong:
            pool = self._pool
            raise InputError(f"must be {accepted}, got {pool.nodes[wrong[0]]!r} of {pool.name}", place="nodes")

    def lower(self, what: Sequence[int]) -> None:
        """Take nodes down without a record."""
        self._count_down(what, 1)
        self._pool.table.take(Allocation.away(what))
        self._pool.nodes_changed(what)

    def lift(self, what: Sequence[int]) -> None:
        """Bring nodes up without a record; one that is down for several reasons comes up when the last of them ends."""
        least = {node: 1 + (node in self.gone) for node in what}
        self._refuse(what, [node for node in what if self.times_down[node] < least[node]], "nodes that are down")
        self._count_down(what, -1)
        self._pool.table.release(Allocation.away(what))
        self._pool.nodes_changed(what)

    def count_drained(self, what: Sequence[int], more: int) -> None:
        """Count nodes as taken down (1) or as brought up again (-1)."""
        if more < 0:
            self._refuse(what, [node for node in what if not self.times_down[node]], "nodes that are down")
            self._refuse(what, [node for node in what if not self._drained[node]], "nodes that take_down took")
        for node in what:
            self._drained[node] += more

    def _count_down(self, nodes: Sequence[int], more: int) -> None:
        pool = self._pool
        for node in nodes:
            before = self.times_down[node]
            self.times_down[node] = before + more
            if not before or not before + more:
                pool.up -= more * int(pool.table.capacity[0, node])

    def hit_by(self, what: Sequence[int], rng: np.random.Generator | None = None) -> list[Run]:
        """Return the executions that run on these nodes, in the order of their starts."""
        hit = set(what)
        runs = sorted(self._pool.running.entries(), key=lambda entry: entry[1])
        return [run for _, _, _, run in runs if not hit.isdisjoint(run.grant.nodes)]

    def in_the_way(self, what: Sequence[int]) -> list[Run]:
        """Return the executions that run on these nodes, the latest first."""
        return self.hit_by(what)[::-1]
