"""Schedules that policies made, each changed in one way, and where they first depart from the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from simmodel import Start
from simmodel.scheduling import Policy, policy as policy_of
from simmodel.work.workload import Workload
from tests.helpers.drawn_schedules import MODES, POLICIES, drawn_log, schedule_by
from tests.oracles import batch_rules as rules

BACKFILLING = ("easy", "sjf+easy", "wfp+easy", "easy-sjbf", "conservative", "conservative-keep")
EASY = {"easy": ("fcfs", None), "sjf+easy": ("sjf", None), "wfp+easy": ("wfp", None), "easy-sjbf": ("fcfs", "sjf")}
"""Policies, and the orders of the queue and of the candidates that the oracle takes for each."""


class Wrong(NamedTuple):
    """A schedule with one thing wrong: the log, its columns, the policy and the rules it is said to be made by.

    ``at``: the first instant (s) at which its starts are not the policy's; ``missed`` and ``added``: the jobs that only
    the policy starts then, and those that only the schedule does.
    """

    log: Workload
    jobs: dict[str, Any]
    policy: str
    mode: dict[str, Any]
    at: float
    missed: set[Any]
    added: set[Any]


class IgnoresOnce(Policy):
    """Decides as a policy does, and once starts a job that fits though the policy holds it back."""

    def __init__(self, policy: Policy, after: float) -> None:
        self.policy = policy
        self.after = after
        self.tries_every_submission = policy.tries_every_submission
        self._done = False

    def decide(self, view: Any, /) -> Iterator[Any]:
        yield from self.policy.decide(view) or ()
        if not self._done and view.now >= self.after:
            place = view.places[0]
            for job in [job for job in view.waiting if place.fits(job)][:1]:
                self._done = True
                yield Start(job, place)
                self.policy.forget()


def mistaken_easy(order: str, candidates: str | None, mistake: str) -> Callable[[Any], Iterator[Any]]:
    """Return EASY by the rescanning rules: with ``"limits"`` for ends; with ``"none"``, nothing is reserved."""

    def decide(view: Any) -> Iterator[Any]:
        place, now, jobs = view.places[0], float(view.now), list(view.waiting)
        waiting = [rules.Seen(i, job.submit, job.processors, job.planned) for i, job in enumerate(jobs)]
        if mistake == "none":
            heads = rules.in_order(waiting, rules.ORDERS[order], now)
            yield from (Start(jobs[each.position], place) for each in heads if place.fits(jobs[each.position]))
            return
        running = [(now + run.job.planned, run.job.processors) for run in place.running]
        state = rules.State(now, place.free, waiting, running, lambda job: now + job.requested)
        later = None if candidates is None else rules.ORDERS[candidates]
        for position in rules.easy(state, rules.ORDERS[order], later):
            yield Start(jobs[position], place)

    return decide


def _moved(log: Workload, jobs: Any, rng: np.random.Generator, *_: Any) -> Any:
    starts = jobs["start"].copy()
    starts[rng.integers(len(starts))] += rng.choice([-30.0, -7.0, -0.5, 0.5, 7.0, 30.0])
    return starts, jobs["end"] - jobs["start"]


def _swapped(log: Workload, jobs: Any, rng: np.random.Generator, *_: Any) -> Any:
    starts = jobs["start"].copy()
    pair = rng.choice(len(starts), 2, replace=False)
    starts[pair] = starts[pair[::-1]]
    return starts, jobs["end"] - jobs["start"]


def _ignored(log: Workload, jobs: Any, rng: np.random.Generator, policy: str, mode: dict[str, Any]) -> Any:
    after = float(rng.uniform(0, jobs["start"].max()))
    made = schedule_by(log, IgnoresOnce(policy_of(policy), after), **mode)
    return made["start"], made["end"] - made["start"]


def _limits(log: Workload, jobs: Any, rng: np.random.Generator, policy: str, mode: dict[str, Any]) -> Any:
    made = schedule_by(log, mistaken_easy(*EASY[policy], "limits"), **mode)
    return made["start"], made["end"] - made["start"]


CHANGES: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "one start moved": (POLICIES, _moved),
    "two jobs swapped": (POLICIES, _swapped),
    "a reservation ignored": (BACKFILLING, _ignored),
    "limits used for ends": (tuple(EASY), _limits),
}
"""By what is changed: the policies whose schedules are changed, and the function that returns starts and run times."""


def wrong_schedule(change: str, seed: int) -> Wrong:
    """Return a changed schedule; a change that changes no start is drawn again.

    Nothing else needs another draw: a policy decides in one way, so that the first instant at which other jobs start
    than it starts, in a state that it has led to, is a departure.
    """
    policies, changed = CHANGES[change]
    for attempt in range(100):
        rng = np.random.default_rng((seed, attempt))
        policy, mode = str(rng.choice(policies)), MODES[int(rng.integers(len(MODES)))]
        log = drawn_log(int(rng.integers(1 << 30)))
        jobs = schedule_by(log, policy, **mode)
        starts, run = changed(log, jobs, rng, policy, mode)
        differ = starts != jobs["start"]
        if differ.any():
            break
    at = float(np.minimum(starts, jobs["start"])[differ].min())
    missed = set(jobs["job"][differ & (jobs["start"] == at)].tolist())
    added = set(jobs["job"][differ & (starts == at)].tolist())
    columns = {"job": jobs["job"], "start": starts, "end": starts + run}
    return Wrong(log, columns, policy, mode, at, missed, added)
