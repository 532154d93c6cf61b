"""The virtual times of the bundles of a crowd in columns, so that many new speeds cost a few operations on arrays."""

from __future__ import annotations

from heapq import heappush
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.network.crowd import Crowd
from simmodel.resources.network.flow import KEPT, Bundle

if TYPE_CHECKING:
    from simmodel.resources.network.crowd import Floats

__all__ = ["Clocks"]


class Clocks:
    """The clocks of the bundles that are rows of a crowd.

    A bundle that is touched (a flow enters or leaves) has its clock itself until it is settled again; then its due time
    is not ``KEPT``.

    Parameters
    ----------
    crowd
        the columns of the solver
    progress
        the share of a rate that is payload

    >>> from simmodel.resources.network.channels import Channel
    >>> bundle = Bundle([(Channel("link", 100.0), 1.0)])
    >>> Clocks(Crowd([bundle]), 1.0).first()
    inf
    """

    def __init__(self, crowd: Crowd, progress: float) -> None:
        self.crowd = crowd
        self._progress = progress
        self._columns: Floats = np.zeros((7, 0))
        self.due: Floats = np.full(0, inf)
        self._fit()

    def _fit(self) -> None:
        more = len(self.crowd.level) - len(self.due)
        if more:
            self._columns = np.concatenate((self._columns, np.zeros((7, more))), axis=1)
            self.due = np.concatenate((self.due, np.full(more, inf)))

    def keep(self, bundle: Bundle) -> None:
        """Take the clock of a bundle, and when its next flow ends."""
        self._fit()
        top, rest, _, _ = bundle.head()
        self._columns[:, bundle.row] = (
            bundle.high,
            bundle.low,
            bundle.speed,
            bundle.since,
            bundle.scale,
            top,
            rest,
        )
        self.due[bundle.row] = bundle.due
        bundle.due = KEPT
        bundle.clocks = self

    def read(self, bundle: Bundle) -> None:
        """Set the clock of a bundle to that of its row."""
        bundle.high, bundle.low, bundle.speed, bundle.since = self._columns[:4, bundle.row].tolist()

    def drop(self, bundle: Bundle) -> None:
        """Forget a bundle."""
        self.due[bundle.row] = inf
        bundle.clocks = None

    def first(self) -> float:
        """Return when the next flow ends; infinity: none does."""
        return float(self.due.min())

    def move(self, now: float) -> None:
        """Give the rows that the solver has moved their new speeds, from now on."""
        # The same operations as for a single bundle in Fluid and Bundle, to the last bit.
        rows = self.crowd.moved
        high, low, speed, since, scale, top, rest = self._columns[:, rows]
        step = speed * (now - since)
        total = high + step
        part = total - high
        low = low + ((high - (total - part)) + (step - part))
        speed = scale * self.crowd.level[rows] * self._progress
        ahead = (top - total) + (rest - low)
        with np.errstate(divide="ignore", invalid="ignore"):
            due = np.where(speed > 0, np.maximum(now + ahead / speed, now), inf)
        self._columns[:4, rows] = total, low, speed, np.full(len(rows), now)
        self.due[rows] = due

    def hand_over(self, calendar: list[tuple[float, int, Bundle]], until: float) -> None:
        """Move the bundles that are due by an instant into a calendar, with their clocks."""
        for row in np.flatnonzero(self.due <= until).tolist():
            bundle = self.crowd.groups[row]
            if not isinstance(bundle, Bundle) or bundle.due != KEPT:
                continue  # touched at this instant: due when it is settled
            bundle.read()
            bundle.due = due = float(self.due[row])
            self.due[row] = inf
            heappush(calendar, (due, bundle.number, bundle))

    def close(self, calendar: list[tuple[float, int, Bundle]]) -> None:
        """Give all bundles their clocks back."""
        for bundle in self.crowd.groups:
            if isinstance(bundle, Bundle) and bundle.due == KEPT:
                bundle.read()
                bundle.due = due = float(self.due[bundle.row])
                heappush(calendar, (due, bundle.number, bundle))
                bundle.clocks = None
