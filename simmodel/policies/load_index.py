"""The expected work per processor of many places, kept in arrays: only places that changed are asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LoadIndex", "WatchedPlace"]


class WatchedPlace(Protocol):
    """A place that tells when its backlog changes other than with time."""

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

    def watch_load(self, changed: Callable[[], object], /) -> None:
        """Call a function from now on whenever work joins, starts, ends or leaves, or the capacity changes."""
        ...

    def load_falls(self) -> tuple[float, float]:
        """Return by how many processor seconds the backlog falls per second, and until when (s) if nothing changes."""
        ...


class LoadIndex:
    """The places with the least expected work per processor, found without asking each of them.

    Between changes, the backlog of a place falls linearly until the next expected end. The arrays hold these lines, in
    floating point; the few places that may have the lowest load are asked for their exact backlogs.

    Parameters
    ----------
    places
        the places, in the order in which ties are broken
    """

    def __init__(self, places: Sequence[WatchedPlace]) -> None:
        self.places = places
        count = len(places)
        self._changed: set[int] = set(range(count))
        self._at, self._load, self._falls, self._margin, self._until = np.zeros((5, count))
        for i, place in enumerate(places):
            place.watch_load(partial(self._changed.add, i))

    def _refresh(self, now: float) -> None:
        changed = self._changed
        changed.update(np.flatnonzero(self._until <= now).tolist())
        for i in changed:
            place = self.places[i]
            work, (falls, self._until[i]) = place.backlog, place.load_falls()
            capacity = place.capacity
            self._at[i] = now
            self._load[i] = work / capacity if capacity else np.inf
            if work < np.inf and capacity:
                self._falls[i] = falls / capacity
                self._margin[i] = (1e-12 * work + 2.0**-18 * falls) / capacity
            else:
                self._falls[i] = self._margin[i] = 0.0
        changed.clear()

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
        self._refresh(now)
        load = self._load - (now - self._at) * self._falls
        low, high = load - self._margin, load + self._margin
        if among is not None:
            low[~among] = high[~among] = np.inf
        limit = high.min()
        near = np.flatnonzero(low <= limit)
        if limit == np.inf:  # all loads are infinite
            near = np.arange(len(load)) if among is None else np.flatnonzero(among)
        best, found = np.inf, list[int]()
        for i in near.tolist():
            place = self.places[i]
            exact = float(place.backlog / place.capacity) if place.capacity else np.inf
            if exact < best or not found:
                best, found = exact, [i]
            elif exact == best:
                found.append(i)
            if first and best == 0.0:
                break
        return found[:1] if first else found
