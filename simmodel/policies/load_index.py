"""Loads, queues and speeds of many places, kept in arrays: only places that changed are asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.protocol import LoadLine
    from simmodel.work.job import LiveJob
    from simmodel.work.taskset import LiveTask

__all__ = ["SiteColumns", "WatchedPlace"]

INFINITY = float("inf")
_SPAN = 2.0**20  # seconds after which the bounds are taken anew, as their rounding grows with time
Figure = Callable[[Any], float]  # a figure of a place that changes only when the place reports a change


class WatchedPlace(Protocol):
    """A place that reports changes of its load other than with time."""

    top_speed: float
    basis: object

    def can_run(self, work: LiveJob | LiveTask, /) -> bool:
        """Whether the place could ever run the work."""
        ...

    @property
    def capacity(self) -> float:
        """Processors in total."""
        ...

    @property
    def backlog(self) -> float:
        """Expected remaining work of running and waiting jobs, in processor seconds."""
        ...

    @property
    def speed(self) -> float:
        """Its speed, relative to the run times of jobs."""
        ...

    @property
    def next_end(self) -> float:
        """The instant (s) before which simulations free no processors."""
        ...

    def factor(self, home: str | None, /) -> float:
        """Return the slowdown factor there for jobs of a home."""
        ...

    def watch_load(self, changed: Callable[[], object], /) -> None:
        """Call a function from now on whenever work joins, starts, ends or leaves, or the capacity changes."""
        ...

    def load_line(self) -> LoadLine:
        """Return its load and queue now, and how the load falls with time."""
        ...


class SiteColumns:
    """Loads, queues and speeds of places in arrays, to find the best place without asking each of them.

    Between changes, the load of a place falls linearly until the next expected end. The arrays hold lower bounds of
    these lines, in floating point; the few places that may have the lowest load are asked for their exact backlogs.

    Parameters
    ----------
    places
        the places, in the order in which ties are broken

    Attributes
    ----------
    free, queued, running, assigned
        free processors; jobs that wait, that run, and that are on their way to the queue
    open
        the processors of the widest job that would start at once: those free if nothing waits or comes, else -1
    speed, top_speed
        mean and highest speeds, relative to the run times of jobs; the mean is one number if all have the same
    punctual, alike
        whether no run exceeds its expected end; whether all take the same time for a job, apart from slowdowns and
        speeds
    """

    def __init__(self, places: Sequence[WatchedPlace]) -> None:
        self.places = places
        size = len(places)
        self._changed: set[int] = set(range(size))
        self._since = 0.0  # the instant for which the bounds hold
        self._low, self._falls, self._span = np.zeros((3, size))  # the bounds, their fall a second, their width
        self._until = [-np.inf] * size
        self._ends: list[tuple[float, int]] = []  # the instants until which lines hold, and earlier ones of places
        self.free, self.queued, self.running, self.assigned, self.open = np.zeros((5, size))
        self._followers: list[set[int]] = []
        self._asked: dict[Figure, tuple[NDArray[np.float64], set[int]]] = {}  # and the places that changed since
        speeds = np.array([place.speed for place in places], dtype=np.float64)
        self.speed: NDArray[np.float64] | float = float(speeds[0]) if (speeds == speeds[0]).all() else speeds
        self.top_speed = np.array([place.top_speed for place in places], dtype=np.float64)
        bases = {place.basis for place in places}
        self.punctual, self.alike = None not in bases, len(bases) == 1
        self._factors: dict[str | None, NDArray[np.float64]] = {}
        for i, place in enumerate(places):
            place.watch_load(partial(self._changed.add, i))

    def refresh(self, now: float) -> None:
        """Bring the columns up to date at an instant (s), which must not decrease from call to call."""
        changed, ends = self._changed, self._ends
        while ends and ends[0][0] <= now:
            until, i = heappop(ends)
            if until == self._until[i]:
                changed.add(i)
        if now - self._since > _SPAN:
            self._since = now
            changed.update(range(len(self.places)))
        if not changed:
            return
        for each in self._followers:
            each |= changed
        since, places, until_of = now - self._since, self.places, self._until
        for i in changed:
            work, falls, until, capacity, free, queued, running, assigned = places[i].load_line()
            self.free[i] = free
            self.queued[i] = queued
            self.running[i] = running
            self.assigned[i] = assigned
            self.open[i] = -1 if queued or assigned else free
            if until != until_of[i]:
                until_of[i] = until
                if until < INFINITY:
                    heappush(ends, (until, i))
            if capacity and work < INFINITY:
                margin = (1e-12 * work + 2.0**-17 * falls) / capacity
                fall = falls / capacity
                self._low[i] = work / capacity + since * fall - margin
                self._falls[i] = fall
                self._span[i] = 2.0 * margin
            else:
                self._low[i] = INFINITY
                self._falls[i] = self._span[i] = 0.0
        changed.clear()

    def figures(self, now: float, figure: Figure) -> NDArray[np.float64]:
        """Return a figure of the places, which changes only when they do, at an instant as for :meth:`refresh`."""
        if figure not in self._asked:
            self._asked[figure] = np.zeros(len(self.places)), self.follow()
        column, changed = self._asked[figure]
        self.refresh(now)
        for i in changed:
            column[i] = figure(self.places[i])
        changed.clear()
        return column

    def follow(self) -> set[int]:
        """Return a set, of all places now, to which each refresh adds those that have changed; its owner clears it."""
        self._followers.append(followed := set(range(len(self.places))))
        return followed

    def factors(self, home: str | None) -> NDArray[np.float64]:
        """Return the slowdown factors of jobs of a home, by name, at the places; they do not change."""
        if home not in self._factors:
            self._factors[home] = np.array([place.factor(home) for place in self.places], dtype=np.float64)
        return self._factors[home]

    def idle_for(self, processors: int) -> NDArray[np.bool_]:
        """Return which places have this number of free processors, and no work that waits or is on its way."""
        idle: NDArray[np.bool_] = self.open >= processors
        return idle

    def loads(self, now: float) -> NDArray[np.float64]:
        """Return the loads of the places (s a processor) at an instant (s): lower bounds, but for rounding exact."""
        self.refresh(now)
        lows: NDArray[np.float64] = self._low - (now - self._since) * self._falls
        return lows

    def lowest(
        self, now: float, among: NDArray[np.bool_] | None = None, *, first: bool = False, figure: Figure | None = None
    ) -> list[int]:
        """Return the numbers of the places with the lowest load at an instant (s), ascending.

        Parameters
        ----------
        now
            the instant; instants must not decrease from call to call
        among
            which places to consider, shape (places,); default: all
        first
            whether the first of them is enough
        figure
            the load, as for :meth:`figures`; default: the remaining work per processor
        """
        if figure is not None:
            return _least(self.figures(now, figure), np.zeros(len(self.places)), self._exact_load, among, first=first)
        return _least(self.loads(now), self._span, self._exact_load, among, first=first)

    def shortest(self, now: float, processors: int, among: NDArray[np.bool_] | None = None) -> list[int]:
        """Return the number of the first of the least loaded places among those that start a job at once, or of all.

        Parameters are those of :meth:`lowest`, and the processors of the job.
        """
        lows = self.loads(now)
        idle = self.idle_for(processors)
        if among is not None:
            idle &= among
        found = _least(lows, self._span, self._exact_load, idle, first=True)
        return found or _least(lows, self._span, self._exact_load, among, first=True)

    def _exact_load(self, i: int) -> float:
        place = self.places[i]
        return float(place.backlog / place.capacity) if place.capacity else np.inf

    def earliest(
        self,
        now: float,
        processors: int,
        transfer: NDArray[np.float64] | float,
        run: NDArray[np.float64] | float,
        exactly: Callable[[int], float],
        among: NDArray[np.bool_] | None = None,
    ) -> int:
        """Return the number of the first place with the earliest finish, as quickly estimated.

        Parameters
        ----------
        now
            the instant (s)
        processors
            of the job
        transfer, run
            the seconds of its transfers to each place, and of its run there
        exactly
            the estimated end (s) at the place of a number
        among
            which places to consider; default: all
        """
        ends = self.loads(now)
        idle = self.idle_for(processors)
        ends[idle] = 0.0
        ends += now + transfer + run
        if among is not None:
            ends[~among] = INFINITY
        best = int(ends.argmin())
        limit = float(ends[best]) + (0.0 if idle[best] else float(self._span[best]))
        if limit == INFINITY:
            return best if among is None else int(among.argmax())
        near = ends <= limit + 4e-12 * abs(limit)  # of the busy places that may be as early; of idle ones it is exact
        found = [(exactly(i), i) for i in (near > idle).nonzero()[0].tolist()]
        if not found:
            return best
        near &= idle
        if near.any():
            first = int(np.where(near, ends, INFINITY).argmin())
            found.append((float(ends[first]), first))
        return min(found)[1]


def _least(
    low: NDArray[np.float64],
    span: NDArray[np.float64],
    exactly: Callable[[int], float],
    among: NDArray[np.bool_] | None,
    *,
    first: bool,
) -> list[int]:
    """Return the numbers of the lowest of some figures, given lower bounds and how far above them the figures may be.

    A figure whose span is 0 is its bound; the others may be asked for. ``first``: whether one number is enough.
    """
    if among is not None:
        low = np.where(among, low, np.inf)
    best = int(low.argmin())
    width = span[best]
    limit = low[best] + width
    if limit == INFINITY:  # all figures are infinite
        every = list(range(len(low))) if among is None else among.nonzero()[0].tolist()
        return every[:1] if first else every
    if first and not width:  # the others are at least their bounds, and those before it have higher ones
        return [best]
    near = (low <= limit).nonzero()[0]
    if len(near) == 1:
        return [best]
    found: list[int] = near.tolist()
    exact = low[near]
    for k in span[near].nonzero()[0].tolist():
        exact[k] = exactly(found[k])
    if first:
        return [found[int(exact.argmin())]]
    lowest = exact.min()
    return [i for i, each in zip(found, exact.tolist(), strict=True) if each == lowest]
