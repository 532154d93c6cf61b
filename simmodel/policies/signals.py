"""Policies that put work off until a signal is low: carbon, or the price of energy.

Source: P. Wiesner et al., "Let's Wait Awhile: How Temporal Workload Shifting Can Reduce Carbon Emissions in the Cloud",
Middleware 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.foundation.errors import InputError
from simmodel.policies.around import Around
from simmodel.policies.backfilling import Easy
from simmodel.scheduling.protocol import Decision, Hold, Preempt, View, WakeAt
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from simmodel.work.job import JobRequest, LiveJob

__all__ = ["WaitFor"]


class Viewed(Protocol):
    """A system."""

    @property
    def view(self) -> View:
        """What its policy sees."""


class WaitFor(Around):
    """Hold jobs that have slack until a signal is expected to be lowest; then let another policy decide.

    A job with ``slack`` is held when it comes until the instant, no later than its submission and its slack, from which
    the expected mean over its requested time is least. In pieces it runs where the signal is lowest until it may last
    no longer: it is suspended at the end of each span, and held until the next. What waits for processors after that,
    or runs longer than planned, is not held again.

    Parameters
    ----------
    signal
        the name of the signal; default: the only one that the system has; without any, no job is held
    policy
        the policy for the jobs that are not held
    pieces
        whether jobs may be suspended; those with a body run whole

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import Signal
    >>> carbon = Signal([0, 100, 200, 300, 400], [3, 2, 1, 3, 2])
    >>> jobs = [Job(run=100, slack=400), Job(run=100)]
    >>> simulate(4, jobs, "wait-for(carbon)", signals={"carbon": carbon}).jobs["start"]
    array([200.,   0.])
    """

    decides = "jobs"
    preempts = True
    tries_every_submission = True

    def __init__(self, signal: str | None = None, policy: PolicyLike | None = None, *, pieces: bool = False) -> None:
        self.signal = signal
        self.policy = Easy() if policy is None else policy_of(policy)
        self.pieces = pieces
        named = ", ".join(part for part in (signal, "pieces" if pieces else None) if part)
        self.name = f"wait-for({named}) {self.policy.name}" if named else f"wait-for {self.policy.name}"
        self._plans: dict[int, list[tuple[float, float]]] = {}  # of held jobs, by number: the spans in which they run
        self._ends: list[tuple[float, int]] = []  # a heap: the ends of spans, and whose they are

    def notes(self, system: Viewed, /) -> tuple[str, ...]:
        """Return a sentence if the system has no signal."""
        own = () if system.view.signals else (f"policy {self.name} held no job: the run has no signal",)
        return *own, *super().notes(system)

    def state(self) -> Any:
        plans = [[number, [list(span) for span in spans]] for number, spans in self._plans.items()]
        return {"plans": plans, "ends": [list(each) for each in self._ends], **super().state()}

    def restore(self, values: Any) -> None:
        self._plans = {number: [(start, end) for start, end in spans] for number, spans in values["plans"]}
        self._ends = [(end, number) for end, number in values["ends"]]
        super().restore(values)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Suspend jobs whose span is over, hold those that have come, and yield the decisions of the other policy."""
        now = view.now
        if self._ends and self._ends[0][0] <= now:
            running = {run.work.seq: run.work for run in view.running}
            while self._ends and self._ends[0][0] <= now:
                number = heappop(self._ends)[1]
                yield from self._interrupt(number, running.get(number), now)
        for job in list(view.waiting.new):
            yield from self._come(view, job)
        yield from self.policy.decide(view) or ()

    def _come(self, view: View, job: LiveJob) -> Iterator[Decision]:
        spans, spec = self._plans.get(job.seq), job.spec
        if spans is None:
            spans = self._plan(view, job, spec) if spec is not None and spec.slack and view.signals else None
            if spans is None:
                return
            if self.pieces or spans[0][0] > view.now:
                self._plans[job.seq] = spans
            if spans[0][0] > view.now:
                yield Hold(job, spans[0][0], "it is lower then")
                return
        if self.pieces:
            over = max(spans[0][1], nextafter(view.now, inf))
            heappush(self._ends, (over, job.seq))
            yield WakeAt(over)
        else:
            self._plans.pop(job.seq, None)

    def _signal_of(self, view: View) -> str:
        if self.signal is None and len(view.signals) > 1:
            raise InputError(f"must be one of {', '.join(view.signals)}", place="signal")
        return next(iter(view.signals)) if self.signal is None else self.signal

    def _plan(self, view: View, job: LiveJob, spec: JobRequest) -> list[tuple[float, float]] | None:
        """Return the spans in which a job is to run, or ``None`` if it has no slack left."""
        assert spec.slack is not None
        window, length = job.submit + spec.slack - view.now, job.planned
        if window <= 0:
            return None
        seen = view.signal(self._signal_of(view))
        if self.pieces and not spec.has_body:
            return seen.lowest_spans(window + length, length)
        at = seen.lowest(window, length)
        return [(at, at + length)]

    def _interrupt(self, number: int, job: LiveJob | None, now: float) -> Iterator[Decision]:
        """Suspend a running job whose span is over, until its next one; ``None``: it no longer runs."""
        spans = self._plans.get(number, [])
        while spans and spans[0][1] <= now:
            del spans[0]
        if job is None or not spans:
            self._plans.pop(number, None)
        elif spans[0][0] > now:
            yield Preempt(job, "suspend", "it is lower later")
            yield Hold(job, spans[0][0], "it is lower then")
