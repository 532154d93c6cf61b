"""Live jobs whose number of processors changes: their planned times follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.work.job import LiveJob

if TYPE_CHECKING:
    from simmodel.work.elastic import Elastic

__all__ = ["MalleableJob"]


class MalleableJob(LiveJob):
    """A live job that may run on more or fewer processors than it prefers.

    ``processors`` and the planned times are those of its present size; ``preferred`` are those requested. Its rigid
    relatives pay nothing for it.
    """

    __slots__ = ("elastic",)
    elastic: Elastic

    @property
    def preferred(self) -> int:
        """The processors that it prefers: those requested."""
        return self.elastic.preferred

    def size_to(self, processors: int) -> None:
        """Request another number of processors, with the planned times that the work left takes on them."""
        longer = self.elastic.longer(self.processors, processors)
        self.plan(self.planned * longer, self.expected * longer, self._duration * longer)
        self.resume_at(processors)

    def resize(self, processors: int, now: float, speed: float) -> None:
        """Continue now (s) on another number of processors: a suspension and a resumption at once.

        ``speed``: that of the nodes on which it ran.
        """
        self.suspend(now, None, speed, self.elastic.longer(self.processors, processors))
        self.processors = self._processors = self.width = processors  # resume_at, inlined
        if self.request is not None:
            self._ask_for(processors)
        self.started = now

    def begin_at(self, processors: int, now: float) -> None:
        """Prepare its start now (s) at another size than the preferred one."""
        past = self.remember()
        past.go_on(now)
        past._whole = self.planned, self.expected, self._duration
        past.attempt_start = now
        self.size_to(processors)

    def requeue(self, now: float, speed: float = 1.0) -> None:
        """Record that its execution was stopped at ``now`` (s): it waits again at its preferred size."""
        past = self.remember()
        started = float(self.started)  # type: ignore[arg-type]
        past.start_again(now, started)
        whole = past._whole or (self.planned, self.expected, self._duration)
        if self._job is not None and self._job.keeps_work:
            past.executed += float(now - started)
            left = max(0.0, self._duration - (now - started) * speed)
            whole = whole[0], whole[1], left * self.elastic.speed(self.processors)
        else:
            past.lost += past.executed + float(now - started)
            past.executed = 0.0
        self.plan(*whole)
        past._whole = None
        self.resume_at(self.elastic.preferred)
