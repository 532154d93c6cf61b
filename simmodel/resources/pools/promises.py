"""Promises on pools that a number does not describe: the head's earliest start, and the jobs that may start beside it.

Where one does, it is :meth:`RunningIndex.when_free <simmodel.resources.pools.running.RunningIndex.when_free>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.work.job import LiveJob

__all__ = ["JobOrder", "Lanes", "Promise", "Promising", "WaitingJobs"]

INFINITY = float("inf")


class JobOrder(Protocol):
    """The order in which waiting jobs are tried."""

    @property
    def key(self) -> Callable[..., Any] | None:
        """The key function; ``None`` for the order of arrival."""
        ...

    @property
    def changes(self) -> bool:
        """Whether the key changes while work waits."""
        ...


class Lanes(Protocol):
    """Waiting jobs by size."""

    @property
    def narrowest(self) -> float:
        """The fewest processors that a waiting job takes."""
        ...

    def first_fitting(self, free: int, limit: float, extra: int) -> LiveJob | None:
        """Return the first job for ``free`` processors that ends within ``limit`` (s) or takes at most ``extra``."""
        ...


class WaitingJobs(Protocol):
    """The jobs that wait for a pool."""

    @property
    def new(self) -> Sequence[LiveJob]:
        """Those that arrived since the last decision."""
        ...

    def by(self, order: JobOrder) -> Iterable[LiveJob]:
        """Return the jobs in an order; iteration is live."""
        ...

    def lanes(self, order: JobOrder) -> Lanes:
        """Return the jobs by size, each size in an order."""
        ...

    def keep(self, index: Any) -> None:
        """Fill an index with the waiting jobs, and keep it up to date from now on."""
        ...


class Promising(Protocol):
    """A pool, as a promise asks it: see :class:`~simmodel.resources.pools.pool.Pool`."""

    env: Environment
    free: int
    version: int
    paced: bool

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now."""
        ...


class Promise:
    """The earliest start of a job that does not fit now, and the other jobs that start now without delaying it.

    It answers for the pool as it is: a start that :meth:`next` returns is carried out before the next question.

    Parameters
    ----------
    place, head
        the pool, and the job that is promised a start
    waiting, order
        the jobs that wait for the pool, and the order in which they are tried

    Attributes
    ----------
    version
        that of the pool when :meth:`next` had found all starts; -1 before, and if new jobs alone may change the promise
    """

    __slots__ = ("_at", "_order", "_waiting", "head", "lasts", "place", "version")

    def __init__(self, place: Promising, head: LiveJob, waiting: WaitingJobs, order: JobOrder) -> None:
        self.place = place
        self.head = head
        self._waiting = waiting
        self._order = order
        self._at: float | None = None
        self.lasts = not place.paced
        self.version = -1

    @property
    def at(self) -> float:
        """The promised instant (s), infinite if the expected ends never free enough; found when first asked for."""
        at = self._at
        if at is None:
            at = self._at = self._earliest()
        return at

    def next(self) -> tuple[LiveJob, Any] | None:
        """Return the next job that starts now, and its allocation if it must have a certain one; ``None``: no other."""
        found = self._find()
        if found is None and self.lasts:
            self.version = self.place.version
        return found

    def bars(self, jobs: Iterable[LiveJob]) -> bool:
        """Whether none of some jobs starts, which have come since all starts were found; nothing else has changed."""
        at = self._at
        return (at is None or self.place.env._now < at) and not any(map(self.place.fits, jobs))

    def _earliest(self) -> float:
        raise NotImplementedError

    def _find(self) -> tuple[LiveJob, Any] | None:
        raise NotImplementedError
