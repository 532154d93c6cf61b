"""Pools of nodes: what a batch scheduler hands out, claimed all at once or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from simmodel.resources.claims import Claims, Grant
from simmodel.resources.consumables import Consumables
from simmodel.resources.profile import CountProfile, Profile
from simmodel.resources.running import RunningIndex
from simmodel.resources.windows import Windows

if TYPE_CHECKING:
    import numpy as np

    from simmodel.environment import Environment
    from simmodel.platform.cluster import OutageSpec, ReservationSpec
    from simmodel.resources.allocation import Allocation, Request
    from simmodel.work.job import Job, LiveJob, Run

__all__ = ["Pool"]


class Pool(Claims, Windows):
    """What pools of every kind share: claims, the executions in them, and windows in which part of them is away.

    Attributes
    ----------
    name
        what reports call it
    capacity, free, up
        processors in all, free now, and not down (``free`` is negative while what is down is still in use)
    version
        one more at each take and give-back
    running
        executions ordered by expected end
    claims_waiting, claims_held
        claims not yet granted, in the order in which they are served; and those granted
    windows
        announced in advance: no work that would run into one starts (see :meth:`announce`)
    units
        what can fail by itself: the numbers of nodes, or of processors where nodes are not identified
    """

    queues = False

    def __init__(self, env: Environment, name: str, capacity: int, consumables: Consumables | None = None) -> None:
        self.env = env
        self.name = name
        self.capacity = capacity
        self.free = capacity
        self.up = capacity
        self.version = 0
        self.priority = 0.0  # of jobs that wait for it
        self.max_processors: int | None = None
        self.max_requested: float | None = None
        self.running = RunningIndex()
        self.windows = []
        self.spec: Any = None  # the partition it was made of
        self.part_of: Pool | None = None  # the pool that a reservation is part of
        self.consumables = consumables or Consumables({})
        self.changed: list[Any] = []  # called when something comes free or goes: the schedulers that use the pool
        self.claims_waiting = []
        self.claims_held = []
        env.register_waits(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.free} of {self.capacity} processors free>"

    # ------------------------------------------------------------------ what a kind of pool says

    @property
    def simple(self) -> bool:
        """Whether one number says all: no windows, no consumables, no identified nodes."""
        return False

    def why_not(self, job: LiveJob) -> str | None:
        """Say why the pool can never run the job, or ``None``."""
        raise NotImplementedError

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now."""
        raise NotImplementedError

    def accepts(self, job: LiveJob, allocation: Allocation | None) -> bool:
        """Whether the job could start now with exactly this allocation."""
        return self.fits(job)

    def fits_without(self, job: LiveJob, runs: Iterable[Run]) -> bool:
        """Whether the job could start now if these executions were not there; everything is as before afterwards."""
        version = self.version
        gone = list(runs)
        planned = bool(self.windows)  # then what runs counts too, not only what is free
        for run in gone:
            self.give_back(run.work, run.grant)
            if planned:
                self.running.remove(run)
        fits = self.fits(job)
        for run in reversed(gone):
            self.take(run.work, run.grant.allocation)
            if planned:
                self.running.add(run, run.work.processors)
        self.version = version
        return fits

    def take(self, job: LiveJob, allocation: Allocation | None = None) -> Grant:
        """Take what the job asks for."""
        raise NotImplementedError

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Give back what a job held."""
        raise NotImplementedError

    def profile(self) -> Profile:
        """Return what will be free when, by the expected ends of what runs and the windows announced."""
        raise NotImplementedError

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when the job fits by the expected ends (s), and how many more processors are free then."""
        raise NotImplementedError

    def counts(self) -> CountProfile:
        """Return the profile of processors alone, of a pool that is :attr:`simple`."""
        raise NotImplementedError

    # ------------------------------------------------------------------ parts that go and come

    @property
    def units(self) -> range:
        """The numbers of what can fail by itself."""
        raise NotImplementedError

    def unit(self, number: int) -> Any:
        """Return what :meth:`take_down` takes for one unit."""
        raise NotImplementedError

    def units_of(self, part: OutageSpec | ReservationSpec) -> Any:
        """Return what :meth:`take_down` takes for the part that an outage or a reservation names.

        Raises
        ------
        InputError
            where it names nodes that are not there
        """
        raise NotImplementedError

    def take_down(self, what: Any) -> None:
        """Take a part away: it takes no new work, what runs there goes on. What is taken twice must come back twice."""
        raise NotImplementedError

    def bring_up(self, what: Any) -> None:
        """Bring back a part that was taken away."""
        raise NotImplementedError

    def hit_by(self, what: Any, rng: np.random.Generator) -> list[Run]:
        """Return the executions, in the order of their starts, that a failure of a part stops.

        Asked once the part is down. Where only counts are known, what fails is drawn from ``rng`` among all that was
        up, so that busy processors are hit in proportion.
        """
        raise NotImplementedError

    def in_the_way(self, what: Any) -> list[Run]:
        """Return the executions that hold a part that is down and must be empty, the latest first."""
        raise NotImplementedError

    @property
    def away(self) -> Any:
        """What is down, as a value: a number of processors, or ((node, for how many reasons), ...)."""
        raise NotImplementedError

    def take_away(self, away: Any) -> None:
        """Take down what :attr:`away` says of another pool like this one."""
        raise NotImplementedError

    def altered(self) -> None:
        """Note that what was known of the pool no longer holds."""
        self.version += 1

    # ------------------------------------------------------------------ shared

    def consumable_profiles(self) -> dict[str, CountProfile]:
        """Return what is free of each consumable when, by the expected ends of what runs here."""
        profiles = {}
        for name, free in self.consumables.free.items():
            ends = (
                (end, run.work.request.consumables.get(name, 0))
                for end, _, _, run in self.running.entries()
                if run.work.request is not None
            )
            there = free + self.consumables.slack[name]
            profiles[name] = CountProfile(self.env.now, there, ends)  # type: ignore[arg-type]
        return profiles

    def limits_why_not(self, job: LiveJob) -> str | None:
        """Say which limit of the place the job breaks, or ``None``."""
        if self.max_processors is not None and job.processors > self.max_processors:
            return f"{job.processors} processors asked for, {self.name} allows {self.max_processors}"
        if self.max_requested is not None and job.requested > self.max_requested:
            return f"{job.requested:g} s asked for, {self.name} allows {self.max_requested:g}"
        return None

    def can_run(self, job: LiveJob) -> bool:
        """Whether the pool could ever run the job."""
        return self.why_not(job) is None

    @property
    def backlog(self) -> float:
        """Processor seconds that what runs is still expected to take."""
        now = self.env.now
        return sum((max(end, now) - now) * processors for end, _, processors, _ in self.running.entries())

    def request_of(self, spec: Job) -> Request | None:
        """Return what the pool must know of a job beyond its processors, or ``None``."""
        if not spec.consumables:
            return None
        from simmodel.resources.allocation import Request

        return Request.of(spec)

    def came_free(self) -> None:
        """Serve the claims that wait, and tell the schedulers."""
        if self.claims_waiting:
            self.serve_claims()
        for call in self.changed:
            call()
