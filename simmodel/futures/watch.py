"""A watch that ends a simulation after a number of wall-clock seconds."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from simmodel.futures.in_worker import OutOfTime
from simmodel.scheduling.observer import Observer

if TYPE_CHECKING:
    from simmodel.scheduling.scheduler import Scheduler

__all__ = ["Watch"]


class Watch(Observer):
    """Ends a simulation after a number of wall-clock seconds."""

    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    def decided(self, _scheduler: Scheduler, _seconds: float, _decisions: int) -> None:
        """Check the clock after each decision."""
        if monotonic() > self._until:
            raise OutOfTime
