"""Batch scheduling by brute force: small, slow, and simple enough to verify by reading.

``simulate(jobs, processors, policy, **options)`` returns the start of each job, by position, or ``None``. EASY and
EASY-SJBF reproduce each start of the reference schedules of KTH-SP2, SDSC-SP2 and SDSC-BLUE (945,087 starts),
conservative backfilling each start of theta_1000. The exact rules:

Jobs
    A job never runs (``None``) if its run time is missing (``None`` or negative), or if it has no processors or more
    than the machine. A missing requested time (``None``, 0 or less) is replaced by the run time. Jobs are handled in
    order of (submit, position).

Times
    ``overrun="stop"``: a job runs min(run, requested); ``"continue"``: its run time. ``estimates="requested"``: a
    policy sees the requested time of a waiting job, and start + requested as the expected end of a running one.
    ``"exact"``: it sees the actual run time (after ``overrun``) in both cases. ``"cqsim"``: it sees the actual run time
    as the requested time of a waiting job (also in order keys), and start + requested as the expected end of a running
    job.

Running past the expected end
    Such a job holds its processors now, and is expected to end just after now: EASY may promise ``now`` to a head that
    does not fit yet, and a plan may have a start "just after now", which is not a start now.

Instants (``decide_on="instant"``)
    All ends, all submissions, one decision; repeated while started jobs of zero length end at the same instant. A job
    of zero length holds its processors for the rest of the decision that starts it.

Events (``decide_on="event"``)
    One event at a time, ends in the order of starts, submissions in the order of (submit, position), each followed by a
    decision. ``ends-first``: within an instant, ends precede submissions, so the end of a job of zero length precedes
    the next submission. ``submits-first``: (1) submissions precede ends; (2) a submission is followed by a decision
    only if the new job fits in the free processors, except if the candidates have a separate order (EASY-SJBF) and in
    ``conservative-keep``, which must plan the new job; (3) a job whose expected end is not later than now and whose end
    is an event of this instant counts as ended.

Cancelled while waiting
    A job with ``cancel`` and no run time waits, is planned with its requested time, and leaves the queue at that
    instant, before the decision. If a decision starts it earlier, it leaves then without having held processors; what
    else this decision started after it is void, and the policy is asked again.

Wake-ups
    ``conservative-keep`` also decides at each promised start, after all other events of that instant.

``conservative``
    First the heads start while they fit, and count as running (until start + requested under ``cqsim``); then the
    other jobs are planned. The difference matters only under ``cqsim``: 1000 of CQSim's 1000 starts are reproduced this
    way, 752 if the heads are planned by their run time like the other jobs, 931 if every job that starts now counts
    with its requested time.

``conservative-keep``
    One pass in queue order: each job takes the earliest hole in the profile that holds the promises of all other jobs;
    a new job gets its first promise when the pass reaches it. A hole opened by a later move is used at the next
    decision. Requires ``overrun="stop"``, estimates other than ``cqsim`` and requested times above zero (two plans at
    one instant, one of zero length, depend on their order); otherwise promises cannot always be kept.

``window``
    The first ``window`` jobs of the queue form the window; each permutation is planned job by job. ``planning="list"``
    (as in CQSim): each job goes into the earliest hole not before the start of the previous one; ``"hole"``: each goes
    into the earliest hole. The permutation with the earliest last planned end (of these jobs, not of running ones)
    wins, ties to the first in lexicographic order of queue positions, and its jobs planned for now start. If the whole
    window started, the next jobs form a window. No backfilling.

Orders
    A requested time of zero counts as one second in wfp and unicef. f1 to f4 use log10(max(1, x)) of the requested and
    submit times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracles import batch_rules as rules
from tests.oracles.batch_rules import ORDERS, Key, Seen, State

__all__ = ["ORDERS", "Decision", "Job", "simulate"]


@dataclass(frozen=True)
class Job:
    """A job of a log; times in seconds."""

    submit: float
    run: float | None
    requested: float | None
    processors: int
    user: object = None
    priority: float = 0
    cancel: float | None = None


@dataclass(frozen=True)
class Decision:
    """The outcome of one decision: started jobs, in order, and promises (position to instant in s)."""

    now: float
    started: tuple[int, ...]
    promises: dict[int, float] = field(default_factory=dict)


@dataclass
class _Live:
    """A job that can run."""

    position: int
    submit: float
    length: float
    processors: int
    seen: Seen
    counted: float  # expected end, in s after its start
    cancel: float | None = None
    start: float | None = None
    number: int = 0  # rank of its start

    @property
    def end(self) -> float:
        assert self.start is not None
        return self.start + self.length

    @property
    def expected_end(self) -> float:
        assert self.start is not None
        return self.start + self.counted


def simulate(
    jobs: Sequence[Job],
    processors: int,
    policy: str,
    *,
    decide_on: str = "instant",
    event_order: str = "submits-first",
    estimates: str = "requested",
    overrun: str = "stop",
    candidates: str | None = None,
    window: int = 5,
    planning: str = "list",
    key: Key | None = None,
    decisions: list[Decision] | None = None,
    left: dict[int, float] | None = None,
) -> list[float | None]:
    """Return the start of each job in seconds, by position; ``None`` if it never runs.

    Parameters
    ----------
    policy
        an order, ``ORDER+BACKFILL`` with a backfill of none, easy, conservative or conservative-keep, or one of easy,
        easy-sjbf, conservative, conservative-keep, best-fit, window, ``ORDER+window``
    candidates
        the order of EASY's candidates
    key
        a function of (job, now) that replaces the key of the order
    decisions
        a list to which each decision is appended
    left
        a mapping to which the instants (s) are added at which jobs left the queue without a start, by position

    >>> probe = [Job(0, 1000, 1000, 5), Job(900, 500, 500, 5), Job(950, 100, 100, 7), Job(960, 400, 400, 2)]
    >>> simulate(probe, 12, "easy")
    [0, 900, 1000, 1100]
    """
    live = _prepare(jobs, processors, estimates, overrun)
    decide, always = _policy(policy, candidates, window, planning, key)
    keeps = policy.endswith("conservative-keep")
    if keeps and (overrun != "stop" or estimates == "cqsim" or any(job.seen.requested == 0 for job in live)):
        raise ValueError("conservative-keep: must have overrun 'stop', other estimates than 'cqsim', requests > 0")
    arriving = sorted(live, key=lambda job: (job.submit, job.position))
    waiting: list[_Live] = []
    running: list[_Live] = []
    promises: dict[int, float] = {}
    starts: list[float | None] = [None] * len(jobs)
    numbers = iter(range(len(jobs)))
    submits_first = decide_on == "event" and event_order == "submits-first"

    def counting(now: float) -> list[_Live]:
        if not submits_first:
            return running
        return [job for job in running if not (job.expected_end <= now and job.end == now)]

    def free(now: float) -> int:
        return processors - sum(job.processors for job in counting(now))

    def decision(now: float) -> None:
        if not waiting:
            return
        by_position = {job.position: job for job in waiting}
        state = State(
            now,
            free(now),
            [job.seen for job in waiting],
            [(job.expected_end, job.processors) for job in counting(now)],
            lambda seen: now + by_position[seen.position].counted,
            promises if keeps else {},
        )
        started = decide(state)
        withdrawn = next((n for n, position in enumerate(started) if by_position[position].cancel is not None), None)
        if withdrawn is not None:
            leave(by_position[started[withdrawn]], now)
            started = started[:withdrawn]
        for position in started:
            job = by_position[position]
            job.start, job.number = now, next(numbers)
            starts[position] = now
            waiting.remove(job)
            running.append(job)
        if decisions is not None:
            decisions.append(Decision(now, tuple(started), dict(state.promises)))
        for position in started:
            promises.pop(position, None)
        if withdrawn is not None:
            decision(now)

    def leave(job: _Live, now: float) -> None:
        waiting.remove(job)
        promises.pop(job.position, None)
        if left is not None:
            left[job.position] = now

    while arriving or running or waiting:
        end = min((job.end for job in running), default=math.inf)
        submit = arriving[0].submit if arriving else math.inf
        wake = min(promises.values(), default=math.inf)
        cancel = min((job.cancel for job in waiting if job.cancel is not None), default=math.inf)
        now = min(end, submit, wake, cancel)
        assert now < math.inf, "jobs wait, and nothing will happen"
        if decide_on == "instant":
            while True:
                running[:] = [job for job in running if job.end > now]
                for job in [job for job in waiting if job.cancel is not None and job.cancel <= now]:
                    leave(job, now)
                while arriving and arriving[0].submit == now:
                    waiting.append(arriving.pop(0))
                decision(now)
                if all(job.end > now for job in running):
                    break
        elif submit == now and (submits_first or end > now):
            job = arriving.pop(0)
            fits = job.processors <= free(now)
            waiting.append(job)
            if fits or always or not submits_first:
                decision(now)
        elif end == now:
            running.remove(min((job for job in running if job.end == now), key=lambda job: job.number))
            decision(now)
        else:
            decision(now)
            assert min(promises.values(), default=math.inf) > now, "a promised start did not come"
    return starts


def _prepare(jobs: Sequence[Job], processors: int, estimates: str, overrun: str) -> list[_Live]:
    live = []
    for position, job in enumerate(jobs):
        run = math.inf if job.run is None and job.cancel is not None else job.run
        if run is None or run < 0 or job.processors <= 0 or job.processors > processors:
            continue
        requested = job.requested if job.requested is not None and job.requested > 0 else run
        length = run if overrun == "continue" else min(run, requested)
        seen = requested if estimates == "requested" else length
        counted = length if estimates == "exact" else requested
        what_is_seen = Seen(position, job.submit, job.processors, seen, job.user, job.priority)
        live.append(_Live(position, job.submit, length, job.processors, what_is_seen, counted, job.cancel))
    return live


def _policy(policy: str, candidates: str | None, size: int, planning: str, key: Key | None):  # type: ignore[no-untyped-def]
    """Return the decision function, and whether each submission is followed by a decision under submits-first."""
    name, _, backfill = {
        "easy": "fcfs+easy",
        "easy-sjbf": "fcfs+easy",
        "conservative": "fcfs+conservative",
        "conservative-keep": "fcfs+conservative-keep",
        "window": "fcfs+window",
        "best-fit": "fcfs+best-fit",
    }.get(policy, policy).partition("+")
    order = key or ORDERS[name]
    second = ORDERS["sjf"] if policy == "easy-sjbf" else ORDERS[candidates] if candidates else None
    return {
        "": (lambda state: rules.no_backfill(state, order), False),
        "none": (lambda state: rules.no_backfill(state, order), False),
        "easy": (lambda state: rules.easy(state, order, second), second is not None),
        "conservative": (lambda state: rules.conservative(state, order), False),
        "conservative-keep": (lambda state: rules.conservative_keep(state, order), True),
        "best-fit": (rules.best_fit, False),
        "window": (lambda state: rules.window(state, order, size, planning), False),
    }[backfill]
