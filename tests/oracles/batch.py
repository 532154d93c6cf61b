"""Batch scheduling by brute force: small, slow, and plain enough to be believed.

``simulate(jobs, processors, policy, **options)`` returns the start of each job, by its position, or ``None``. Its EASY
and EASY-SJBF give each start of the reference schedules of KTH-SP2, SDSC-SP2 and SDSC-BLUE (945,087 starts), its
conservative each of theta_1000. The exact meaning, where the words leave room:

Jobs
    A job never runs (``None``) where its run time is missing (``None`` or negative), or its processors are none or more
    than the machine. A missing request (``None``, 0 or less) is the run time. Jobs are handled in order of
    (submit, position).

Lengths
    ``overrun="stop"``: a job runs min(run, requested); ``"continue"``: its run time. ``estimates="requested"``: a
    policy sees the request of a waiting job, and start + request as the expected end of a running one. ``"exact"``:
    both are what it really runs (after ``overrun``). ``"cqsim"``: a waiting job's request is seen as what it really
    runs (order keys see that too), a running job's expected end is start + request.

Running past the expected end
    Such a job holds its processors now, and is expected to end just after now: EASY may promise ``now`` to a head that
    does not fit yet, and a plan may lie "just after now", which is not a start.

Instants (``decide_on="instant"``)
    All ends, all submits, one decision; again while jobs of zero length that started end at the same instant. A job of
    zero length holds its processors for the rest of the decision that starts it.

Events (``decide_on="event"``)
    One event at a time, ends in the order of starting, submits in the order of (submit, position), a decision after
    each. ``ends-first``: among the events of one instant, an end always comes before a submit, so the end of a zero
    length job comes before the next submit. ``submits-first``: (1) a submit always comes before an end; (2) after a
    submit there is a decision only if the new job fits in the free processors, except where candidates have an order of
    their own (EASY-SJBF) and in ``conservative-keep``, which must plan the new job; (3) a job whose expected end is not
    later than now and whose end is an event of this instant counts as ended.

Wake-ups
    ``conservative-keep`` decides at a promised start as well: after all other events of that instant.

``conservative``
    First the heads start while they fit, and count as running (until start + request under ``cqsim``); then the others
    are planned. This matters under ``cqsim`` alone, and there it decides: 1000 of CQSim's 1000 starts so, 752 if the
    heads are planned by their run time like the rest, 931 if every job that starts now counts with its request.

``conservative-keep``
    One pass in queue order: each job, with the promises of all the others in the profile, takes the earliest hole; a
    new job gets its first promise when the pass reaches it. One pass: a hole that a later move opens waits for the next
    decision. Needs ``overrun="stop"``, estimates other than ``cqsim`` and requests above zero (two plans at one
    instant, one of zero length, depend on their order); otherwise promises cannot always be kept.

``window``
    The first ``window`` jobs of the queue; each permutation is planned job by job. ``planning="list"`` (CQSim's): each
    into the earliest hole that does not begin before the start of the one before it; ``"hole"``: each into the earliest
    hole. The permutation whose last planned end (of these jobs, not of running ones) is earliest is taken, the first in
    lexicographic order of queue positions among equals, and what it plans for now starts. Where all of the window
    started, the next jobs make a window. No backfilling.

Orders
    A request of zero counts as one second in wfp and unicef. f1 to f4 take log10(max(1, x)) of request and submit.
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
    """A job as a log has it; times in seconds."""

    submit: float
    run: float | None
    requested: float | None
    processors: int
    user: object = None
    priority: float = 0


@dataclass(frozen=True)
class Decision:
    """What one decision did: who started, in order, and what was promised to whom (positions to seconds)."""

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
    counted: float  # s after its start at which a policy expects its end
    start: float | None = None
    number: int = 0  # of its start

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
) -> list[float | None]:
    """Return the start of each job in seconds, by position; ``None`` where it never runs.

    Parameters
    ----------
    policy
        an order, ``ORDER+BACKFILL`` with a backfill of none, easy, conservative or conservative-keep, or one of easy,
        easy-sjbf, conservative, conservative-keep, best-fit, window, ``ORDER+window``
    candidates
        the order of EASY's candidates
    key
        a key function of (job, now) that replaces the order's
    decisions
        a list to which each decision is appended

    >>> probe = [Job(0, 1000, 1000, 5), Job(900, 500, 500, 5), Job(950, 100, 100, 7), Job(960, 400, 400, 2)]
    >>> simulate(probe, 12, "easy")
    [0, 900, 1000, 1100]
    """
    live = _prepare(jobs, processors, estimates, overrun)
    decide, always = _policy(policy, candidates, window, planning, key)
    keeps = policy.endswith("conservative-keep")
    if keeps and (overrun != "stop" or estimates == "cqsim" or any(job.seen.requested == 0 for job in live)):
        raise ValueError("promises need plans that last, and that nobody outruns")
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

    while arriving or running or waiting:
        end = min((job.end for job in running), default=math.inf)
        submit = arriving[0].submit if arriving else math.inf
        wake = min(promises.values(), default=math.inf)
        now = min(end, submit, wake)
        assert now < math.inf, "jobs wait, and nothing will happen"
        if decide_on == "instant":
            while True:
                running[:] = [job for job in running if job.end > now]
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
        if job.run is None or job.run < 0 or job.processors <= 0 or job.processors > processors:
            continue
        requested = job.requested if job.requested is not None and job.requested > 0 else job.run
        length = job.run if overrun == "continue" else min(job.run, requested)
        seen = requested if estimates == "requested" else length
        counted = length if estimates == "exact" else requested
        what_is_seen = Seen(position, job.submit, job.processors, seen, job.user, job.priority)
        live.append(_Live(position, job.submit, length, job.processors, what_is_seen, counted))
    return live


def _policy(policy: str, candidates: str | None, size: int, planning: str, key: Key | None):  # type: ignore[no-untyped-def]
    """Return the decision function, and whether each submit brings a decision under submits-first."""
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
