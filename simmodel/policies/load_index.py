"""Loads, queues and speeds of many places, kept in arrays: only places that changed are asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.protocol import LoadLine

__all__ = ["SiteColumns", "WatchedPlace"]


class WatchedPlace(Protocol):
    """A place that tells when its load changes other than with time."""

    def can_run(self, work: Any, /) -> bool:
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

    def watch_load(self, changed: Callable[[], object], /) -> None:
        """Call a function from now on whenever work joins, starts, ends or leaves, or the capacity changes."""
        ...

    def load_line(self) -> LoadLine:
        """Return its load and queue now, and how the load falls with time."""
        ...


class SiteColumns:
    """Loads, queues and speeds of places in arrays, to find the best place without asking each of them.

    Between changes, the backlog of a place falls linearly until the next expected end. The arrays hold these lines, in
    floating point; the few places that may have the lowest load are asked for their exact backlogs.

    Parameters
    ----------
    places
        the places, in the order in which ties are broken

    Attributes
    ----------
    free, queued, running, assigned
        free processors; jobs that wait, that run, and that are on their way to the queue
    speed
        speeds, relative to the run times of jobs
    """

    def __init__(self, places: Sequence[WatchedPlace]) -> None:
        self.places = places
        size = len(places)
        self._changed: set[int] = set(range(size))
        self._at, self._load, self._falls, self._margin, self._until = np.zeros((5, size))
        self._soonest = -np.inf
        self.free, self.queued, self.running, self.assigned = np.zeros((4, size))
        self.speed = np.array([place.speed for place in places], dtype=np.float64)
        for i, place in enumerate(places):
            place.watch_load(partial(self._changed.add, i))

    def refresh(self, now: float) -> None:
        """Bring the columns up to date at an instant (s), which must not decrease from call to call."""
        changed = self._changed
        if now >= self._soonest:
            changed.update((self._until <= now).nonzero()[0].tolist())
        elif not changed:
            return
        for i in changed:
            line = self.places[i].load_line()
            work, falls, until, capacity, *queue = line
            self.free[i], self.queued[i], self.running[i], self.assigned[i] = queue
            self._at[i] = now
            self._until[i] = until
            self._load[i] = work / capacity if capacity else np.inf
            if work < np.inf and capacity:
                self._falls[i] = falls / capacity
                self._margin[i] = (1e-12 * work + 2.0**-18 * falls) / capacity
            else:
                self._falls[i] = self._margin[i] = 0.0
        changed.clear()
        self._soonest = float(self._until.min())

    def idle_for(self, processors: int) -> NDArray[np.bool_]:
        """Return which places have so many free processors and nothing that waits or comes."""
        idle: NDArray[np.bool_] = (self.free >= processors) & (self.queued + self.assigned == 0)
        return idle

    def lowest(self, now: float, among: NDArray[np.bool_] | None = None, *, first: bool = False) -> list[int]:
        """Return the numbers of the places with the lowest load at an instant (s), ascending.

        Parameters
        ----------
        now
            the instant; instants must not decrease from call to call
        among
            which places to consider, shape (places,); default: all
        first
            whether the first of them is enough
        """
        self.refresh(now)
        load = self._load - (now - self._at) * self._falls
        found = _least(load, self._margin, self._exact_load, among)
        return found[:1] if first else found

    def _exact_load(self, i: int) -> float:
        place = self.places[i]
        return float(place.backlog / place.capacity) if place.capacity else np.inf

    def earliest(
        self,
        now: float,
        processors: int,
        transfer: NDArray[np.float64] | float,
        run: NDArray[np.float64],
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
        self.refresh(now)
        idle = self.idle_for(processors)
        wait = self._load - (now - self._at) * self._falls
        wait[idle] = 0.0
        finish = now + wait + transfer + run
        margin = self._margin + 1e-12 * np.abs(finish)
        margin[idle | ~np.isfinite(finish)] = 0.0
        return _least(finish, margin, exactly, among)[0]


def _least(
    figures: NDArray[np.float64],
    margins: NDArray[np.float64],
    exactly: Callable[[int], float],
    among: NDArray[np.bool_] | None,
) -> list[int]:
    """Return the numbers of the lowest figures, which are exact where the margin is 0, and may be asked for."""
    low, high = figures - margins, figures + margins
    if among is not None:
        low[~among] = high[~among] = np.inf
    limit = high.min()
    if limit == np.inf:  # all figures are infinite
        return list(range(len(low))) if among is None else among.nonzero()[0].tolist()
    near = (low <= limit).nonzero()[0]
    found: list[int] = near.tolist()
    if len(found) == 1:
        return found
    exact = figures[near]
    for k in margins[near].nonzero()[0].tolist():
        exact[k] = exactly(found[k])
    best = exact.min()
    return [i for i, each in zip(found, exact.tolist(), strict=True) if each == best]
