"""The past of a job that was blocked, or whose execution was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from simmodel.work.checkpoint import Kept, Progress

__all__ = ["AtLevel", "History"]


class AtLevel(NamedTuple):
    """The level at which a job runs.

    ``level``: the relative frequency of its nodes; ``factor``: on its times; ``outcome``: how it would end with as much
    time as it needs; ``over``: the seconds by which its limit cuts it off, which was not stretched; ``limit``: what it
    requested (s), if it is planned with a prediction.
    """

    level: float
    factor: float
    outcome: str
    over: float = 0.0
    limit: float | None = None


class History:
    """The past of a job that was blocked, or whose execution was stopped.

    Attributes
    ----------
    eligible
        instant at which its dependencies were met (s), if later than its submission
    first_start, attempt_start, last_start
        start of its first execution; start of the attempt that was suspended; start of the execution that was stopped
        last (s)
    executed
        seconds of execution whose work was kept
    interruptions
        how often it was stopped, to start again or to resume
    waited, paused, lost, overhead
        seconds that it waited again, that it was suspended, that it executed in vain, and, among those kept, those of
        restarts from checkpoints and of saves that were broken off
    stopped
        instant (s) since which it waits again or is suspended; ``None``: it is not
    kept
        the totals of its checkpoints, or ``None``
    progress
        how far the execution had come that was suspended, of a job that saves to a storage or over a link
    done
        the share of a job with traffic that was done before
    level
        the level at which it runs, or ran when it was suspended; ``None``: none was chosen
    resumes
        the resources with which it starts: those held at its suspension, or those of ``bound``; ``None``: any
    bound
        the host on which a broker wants it to run, with the resources it takes there, or ``None``
    asked
        the processors that it requested, if its body has had another number since
    why
        why it was cancelled while it was blocked: how a job ended that it depends on
    """

    __slots__ = (
        "_whole",
        "asked",
        "attempt_start",
        "bound",
        "done",
        "eligible",
        "executed",
        "first_start",
        "interruptions",
        "kept",
        "last_start",
        "level",
        "lost",
        "overhead",
        "paused",
        "progress",
        "resumes",
        "stopped",
        "waited",
        "why",
    )

    def __init__(self) -> None:
        self.eligible: float | None = None
        self.first_start: float | None = None
        self.attempt_start: float | None = None
        self.last_start: float | None = None
        self.executed = 0.0
        self.interruptions = 0
        self.waited = self.paused = self.lost = self.overhead = 0.0
        self.stopped: float | None = None
        self.done = 0.0
        self.kept: Kept | None = None
        self.progress: Progress | None = None
        self.level: AtLevel | None = None
        self.resumes: Any = None
        self.bound: Any = None
        self.asked: int | None = None
        self.why = ""
        self._whole: tuple[float, float, float] | None = None  # arguments of plan() before a part of it was done

    @property
    def suspended(self) -> bool:
        """Whether the job was ever suspended, or continued from a checkpoint."""
        return self._whole is not None

    def keep(self, planned: float, expected: float, duration: float) -> None:
        """Keep the seconds of the whole job, before the first part of its work is done."""
        if self._whole is None:
            self._whole = planned, expected, duration

    @property
    def whole(self) -> tuple[float, float, float] | None:
        """The seconds of the whole job, as of :meth:`keep`, before the first part of its work was done."""
        return self._whole

    def requested(self, planned: float) -> float:
        """Return the requested time (s) before a part of the work was done, given the present one."""
        return planned if self._whole is None else self._whole[0]

    @property
    def begun(self) -> float | None:
        """The start of its first execution, if it was stopped since."""
        return self.attempt_start if self.first_start is None else self.first_start

    def stop(self, now: float) -> None:
        """Record that its execution is stopped now (s), to start again or to resume."""
        self.stopped = float(now)
        self.interruptions += 1

    def start_again(self, now: float, started: float) -> None:
        """Record that its execution since ``started`` is stopped now (s), to start from the beginning or its host."""
        self.stop(now)
        self.last_start = started
        if self.first_start is None:
            self.first_start = started if self.attempt_start is None else self.attempt_start
        self.attempt_start = None
        self.resumes = self.bound

    def go_on(self, now: float) -> None:
        """Count the time since it was stopped, which is over now (s)."""
        if self.stopped is not None:
            if self.attempt_start is None:
                self.waited += float(now - self.stopped)
            else:
                self.paused += float(now - self.stopped)
            self.stopped = None

    def bind(self, grant: Any) -> None:
        """Have the job start on one host, with a grant there, each time it starts from the beginning."""
        self.bound = self.resumes = grant
