"""A scheduler of a few jobs in memory, which a twin can act on."""

from __future__ import annotations

from dataclasses import dataclass, field

from simmodel_site.twin.acting.actions import HELD, PREFERRED, Command, HandsError, JobNow


@dataclass
class FakeHands:
    """Keeps jobs, does what it is told, and notes it; ``broken`` makes every call fail, ``dies_after`` counts sends."""

    commands: tuple[Command, ...] = ("release", "prefer", "unprefer")
    jobs: dict[int | str, JobNow] = field(default_factory=dict)
    sent: list[tuple[str, int | str]] = field(default_factory=list)
    broken: str = ""
    deaf: bool = False

    def hold(self, *jobs: int, submit: float = 0.0) -> None:
        """Let jobs wait that are held for the twin."""
        for job in jobs:
            self.jobs[job] = JobNow(job, submit, waiting=True, held=True, mark=HELD)

    def wait(self, *jobs: int, submit: float = 0.0) -> None:
        """Let jobs wait that have nothing to do with the twin."""
        for job in jobs:
            self.jobs[job] = JobNow(job, submit, waiting=True)

    def begin(self, job: int) -> None:
        """Let a job start."""
        self.jobs[job] = self.jobs[job]._replace(waiting=False, held=False)

    def words(self, command: Command) -> str:
        """Return a command."""
        return f"fake {command} {{job}}"

    def look(self, job: int | str) -> JobNow | None:
        """Return a job."""
        self._check()
        return self.jobs.get(job)

    def marked(self) -> tuple[JobNow, ...]:
        """Return the waiting jobs with a mark."""
        self._check()
        return tuple(job for job in self.jobs.values() if job.waiting and job.mark in (HELD, PREFERRED))

    def send(self, command: Command, job: int | str, value: int = 0) -> None:
        """Do what is told, unless it is deaf."""
        self._check()
        if command not in self.commands:
            raise HandsError(f"{command} is not allowed")
        self.sent.append((command, job))
        if self.deaf:
            return
        now = self.jobs[job]
        if command == "release":
            self.jobs[job] = now._replace(held=False)
        else:
            self.jobs[job] = now._replace(preference=value, mark=PREFERRED if command == "prefer" else "")

    def _check(self) -> None:
        if self.broken:
            raise HandsError(self.broken)
