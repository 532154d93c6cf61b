"""The profile of counted processors with all promises in it, kept from decision to decision."""

from __future__ import annotations

from math import nextafter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.resources.pools.counts import CountPool, PoolProfile
    from simmodel.resources.pools.running import Entry
    from simmodel.work.job import LiveJob

__all__ = ["KeptProfile"]


class KeptProfile:
    """The profile that a decision has left, which is that of the next one if everything went as planned in between.

    Parameters
    ----------
    place
        a pool of counted processors

    Attributes
    ----------
    settled
        whether the last decision was made to its end and moved no promise: then no job can start earlier than promised
        until something is not as planned
    """

    __slots__ = ("_broken", "_events", "_offered", "_place", "_profile", "_version", "settled")

    def __init__(self, place: CountPool) -> None:
        self._place = place
        self._profile: PoolProfile | None = None
        self.settled = False
        self._broken = False  # whether something was not as planned
        self._version = self._events = 0  # of the pool when the profile was made; its starts and ends since
        self._offered: LiveJob | None = None  # a job whose start has not been carried out yet
        place.running.watch(self)

    def started(self, entry: Entry) -> None:
        """Note a start in the pool: it should be that of the job that was offered."""
        self._events += 1
        end, _, processors, run = entry
        job, now = self._offered, self._place.env._now
        if job is None or job is not run.work or job.processors != processors or not now < end == now + job.planned:
            self._broken = True
        self._offered = None

    def ended(self, entry: Entry) -> None:
        """Note an end in the pool: it should come when expected."""
        self._events += 1
        self._broken = self._broken or entry[0] != self._place.env._now

    def offer(self, job: LiveJob) -> None:
        """Note that a job is about to start, as planned in the profile."""
        self._broken = self._broken or self._offered is not None
        self._offered = job

    def follow(self, now: float) -> PoolProfile | None:
        """Return the profile from now on, for another decision; ``None`` if not everything went as planned."""
        place, profile = self._place, self._profile
        if (
            profile is None
            or not self.settled
            or self._broken
            or self._offered is not None  # put aside, and perhaps carried out elsewhere
            or not profile.exact
            or place.version != self._version + self._events
            or place.running.first_end <= nextafter(now, float("inf"))
        ):
            return None
        profile.advance(now)
        self.settled = False
        return profile

    def keep(self, profile: PoolProfile | None) -> None:
        """Keep a new profile, to which the promises are about to be added; ``None``: keep none."""
        self._profile, self._offered = profile, None
        self._broken = self.settled = False
        self._version, self._events = self._place.version, 0
