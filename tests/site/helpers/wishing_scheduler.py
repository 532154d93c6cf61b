"""A scheduler in memory whose users and administrators change jobs between any two calls of a twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simmodel_site.twin.acting.actions import HELD, PREFERRED, RELEASED, Command, HandsError, JobNow


@dataclass
class Job:
    """What a scheduler keeps of a job, and what others than the twin have wished for it."""

    begin: float = 0.0
    nice: int = 0
    hold: bool = False
    mark: str = ""
    recorded: int = 0
    state: str = "waiting"
    wishes: dict[str, object] = field(default_factory=dict)


@dataclass
class WishingScheduler:
    """Hands on such a scheduler: it decides on conditions and change at once, as ``job_submit.lua`` does.

    ``meanwhile`` is called before each call of the twin reaches the scheduler.
    """

    jobs: dict[int | str, Job] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None
    now: float = 100.0
    commands: tuple[Command, ...] = ("release", "prefer", "unprefer")

    def hold(self, job: int, until: int) -> None:
        """Let a job come that is held for the twin."""
        self.jobs[job] = Job(begin=until, mark=HELD, recorded=until)

    def wish(self, job: int, what: str, value: object) -> None:
        """Let a user or an administrator change a job that waits; ``what``: a field of it."""
        found = self.jobs[job]
        if found.state == "waiting" and (what == "begin" or getattr(found, what) != value):
            setattr(found, what, value)
            found.wishes[what] = value
            if value == "":  # a mark that is wiped off is no note to keep
                del found.wishes[what]
                found.wishes["wiped"] = True

    def granted(self) -> bool:
        """Whether every job is as others have wished last."""
        return all(
            getattr(job, what) == value
            for job in self.jobs.values()
            for what, value in job.wishes.items()
            if what != "wiped" and job.state != "gone"
        )

    def words(self, command: Command) -> str:
        """Return a command."""
        return command

    def look(self, job: int | str) -> JobNow | None:
        """Return a job as it is, as hands of Slurm tell it."""
        self.meanwhile()
        return self._now(job)

    def marked(self) -> tuple[JobNow, ...]:
        """Return the waiting jobs with a mark."""
        self.meanwhile()
        found = [self._now(job) for job in self.jobs]
        return tuple(each for each in found if each is not None and each.waiting and each.mark in (HELD, PREFERRED))

    def send(self, command: Command, job: int | str, value: int = 0) -> None:
        """Do what is told if the job is still the twin's."""
        self.meanwhile()
        found = self.jobs[job]
        if found.state != "waiting":
            raise HandsError("Job/step already completing or completed")
        moved = found.recorded if found.mark == PREFERRED else 0
        if command == "release":
            if found.mark != HELD or found.recorded != value or "begin" in found.wishes:
                raise HandsError("Unspecified error")
            found.begin, found.mark = self.now, RELEASED
        elif (found.mark not in ("", PREFERRED)) or -found.nice != moved:
            raise HandsError("Unspecified error")
        else:
            found.nice, found.mark, found.recorded = -value, PREFERRED if command == "prefer" else "", value

    def _now(self, job: int | str) -> JobNow | None:
        found = self.jobs.get(job)
        if found is None or found.state == "gone":
            return None
        held, changed = found.begin > self.now and found.mark == HELD and found.begin == found.recorded, ""
        if found.begin > self.now and not held:
            changed = "its begin time is its user's"
        elif found.mark == PREFERRED and -found.nice != found.recorded:
            changed = "its nice value is its user's"
        waiting = found.state == "waiting"
        return JobNow(
            job, 0.0, waiting, held and waiting, -found.nice, found.mark, found.recorded, changed if waiting else ""
        )
