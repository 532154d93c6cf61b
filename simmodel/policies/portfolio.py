"""A portfolio of policies: each decision is made by the candidate with the best simulated future.

Source: Zhang, Kurkure, Tao, Papka, Lan, "A real-time digital twin for adaptive scheduling", arXiv 2512.18894, 2025
(SchedTwin).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simmodel.foundation.errors import InputError, PolicyError, unknown
from simmodel.policies.backfilling import Easy
from simmodel.policies.multifactor import Multifactor
from simmodel.policies.ordering import FCFS, ORDERS, BestFit, Order
from simmodel.policies.planning import Conservative, ConservativeKeep
from simmodel.policies.window import Window
from simmodel.scheduling.objectives import Objective, measure, objective
from simmodel.scheduling.protocol import Decision, Policy, Start, View
from simmodel.scheduling.registry import PolicyLike, labelled, policy as policy_named
from simmodel.work.table import Table

__all__ = ["Portfolio"]

CANDIDATES = ("wfp+easy", "fcfs+easy", "sjf+easy")
# These start all waiting jobs if all of them fit together.
_START_ALL = (Order, Multifactor, Easy, Conservative, ConservativeKeep, BestFit, Window)
_SAME = 1e-9  # relative difference below which scores are equal, up to rounding


class Portfolio(Policy):
    """Simulate each candidate from now on, score the futures of the waiting jobs, and let the best candidate decide.

    The futures come from ``view.simulate``, which has the knowledge of a scheduler: requested times instead of run
    times, and no jobs that have yet to arrive. So the portfolio works for real clusters as for simulated ones.

    If no waiting job can start now, the current policy stays and nothing is simulated, unless ``every`` is set. If all
    of them can start together, every built-in candidate starts them, and the scores are computed without simulation.

    Parameters
    ----------
    policies
        the candidates: names, policies, or labels and policies
    objective
        any argument of :func:`~simmodel.scheduling.objectives.objective`. Measures cover the jobs that wait at the
        decision; a job that has not started by the horizon counts as if it started then; utilisation covers the whole
        future. A function gets the future that ``view.simulate`` returns
    ties
        labels by descending preference among equal scores; labels not named follow in the order of ``policies``
    interval
        minimum seconds between choices; default: a choice at each decision
    hysteresis
        the current policy stays unless another is better by more than this share of its score, or, on the min-max
        scale (where the best score may be 0), of the worst possible score
    horizon
        seconds to simulate; default: until all jobs have ended
    every
        whether to simulate and score at each decision, even if no job can start
    estimates
        run times of simulated jobs, as ``view.simulate`` accepts them; default: those that the scheduler plans with

    Attributes
    ----------
    policies, given
        the candidates by label, as policies and as given (for instance by name)
    current
        the label of the deciding policy; ``None`` before the first choice

    Raises
    ------
    InputError
        there is no candidate, a label is duplicate, a name is unknown or a number is invalid

    >>> from simmodel import Job, simulate
    >>> jobs = [Job(processors=4, run=100), Job(submit=1, processors=3, run=900), Job(submit=2, processors=4, run=10)]
    >>> result = simulate(4, jobs, Portfolio(["easy", "sjf+easy"], "slowdown_mean"))
    >>> result.jobs["started_by"].tolist(), result.jobs["start"].tolist()
    (['easy', 'easy', 'sjf+easy'], [0.0, 110.0, 100.0])
    """

    name = "portfolio"
    decides = "jobs"

    def __init__(
        self,
        policies: Mapping[str, PolicyLike] | Iterable[PolicyLike] = CANDIDATES,
        objective: Any = "schedtwin",
        *,
        ties: Sequence[str] = (),
        interval: float | None = None,
        hysteresis: float = 0.0,
        horizon: float | None = None,
        every: bool = False,
        estimates: str | None = None,
    ) -> None:
        self.given = labelled(policies, "policy", "policies", purpose=" for the portfolio")
        self.policies = {label: policy_named(each) for label, each in self.given.items()}
        self.objective: Objective = _objective(objective)
        for each in ties:
            if each not in self.policies:
                raise unknown("tie policy", each, self.policies)
        for what, seconds in (("interval", interval), ("horizon", horizon)):
            if seconds is not None and not (_is_number(seconds) and 0 < seconds < math.inf):
                raise InputError(f"{what}: must be a finite number > 0 (s), got {seconds!r}")
        if not (_is_number(hysteresis) and 0 <= hysteresis < math.inf):
            raise InputError(f"hysteresis: must be a finite number >= 0, got {hysteresis!r}")
        self.ties = tuple(dict.fromkeys((*ties, *self.policies)))
        self.interval = interval
        self.hysteresis = hysteresis
        self.horizon = horizon
        self.every = every
        self.estimates = estimates
        self.current: str | None = None
        self._chosen_at = -math.inf
        self._labels = tuple(self.policies)
        self._candidates = tuple(self.policies.values())
        self._by_ties = [self._labels.index(each) for each in self.ties]
        self._options = {"horizon": horizon, "estimates": estimates}
        self._options = {name: value for name, value in self._options.items() if value is not None}
        self.tries_every_submission = any(each.tries_every_submission for each in self._candidates)
        self.preempts = any(each.preempts for each in self._candidates)
        told = {"utilisation"}.isdisjoint(self.objective.measures) and self.objective.function is None
        self._can_tell = told and all(isinstance(each, _START_ALL) for each in self._candidates)
        self._times: list[float] = []
        self._scores: list[Any] = []
        self._choices: list[int] = []
        self._started: list[tuple[float, Any, int]] = []

    def __repr__(self) -> str:
        return f"<Portfolio of {', '.join(self._labels)} by {self.objective}>"

    # ------------------------------------------------------------------ the policy

    @classmethod
    def of(
        cls,
        *policies: str,
        backfill: str | None = None,
        objective: str = "schedtwin",
        ties: str = "",
        interval: float | None = None,
        hysteresis: float = 0.0,
        horizon: float | None = None,
        every: bool = False,
        estimates: str | None = None,
    ) -> Portfolio:
        """Return the portfolio for ``portfolio(sjf, fcfs, backfill=easy, ties=fcfs>sjf)``.

        ``backfill`` is added to each order without backfilling.

        >>> Portfolio.of("fcfs", "sjf", backfill="easy", objective="wait_mean", hysteresis=0.1)
        <Portfolio of fcfs, sjf by 1*wait_mean>
        """
        for name in policies:
            if policies.count(name) > 1:
                raise InputError(f"duplicate policy {name!r}")
        return cls(
            {name: with_backfill(name, backfill) for name in policies} or CANDIDATES,
            objective,
            ties=tuple(each.strip() for each in ties.split(">")) if ties else (),
            interval=interval,
            hysteresis=hysteresis,
            horizon=horizon,
            every=every,
            estimates=estimates,
        )

    def forget(self) -> None:
        """Reset the candidate that decided last: another policy has decided since."""
        if self.current is not None:
            self.policies[self.current].forget()

    def state(self) -> dict[str, Any]:
        """Return the state on which the next decision depends, as plain values, without past scores and starts."""
        kept = {label: each.state() for label, each in self.policies.items()}
        states = {label: state for label, state in kept.items() if state is not None}
        chosen_at = None if self._chosen_at == -math.inf else self._chosen_at
        return {"current": self.current, "chosen_at": chosen_at, "policies": states}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Continue from the :meth:`state` of another portfolio."""
        current = values["current"]
        if current is not None and current not in self.policies:
            raise unknown("portfolio policy", current, self.policies)
        self.current = current
        self._chosen_at = -math.inf if values["chosen_at"] is None else float(values["chosen_at"])
        for label, state in values["policies"].items():
            if label in self.policies:
                self.policies[label].restore(state)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Choose a candidate, and yield its decisions."""
        now = view.now
        if self.interval is None or self.current is None or now - self._chosen_at >= self.interval:
            self._choose(view, now)
        assert self.current is not None
        number = self._labels.index(self.current)
        candidate = self._candidates[number]
        started = self._started
        for decision in candidate.decide(view) or ():
            yield decision
            if type(decision) is Start:
                started.append((now, decision.work.id, number))

    # ------------------------------------------------------------------ choosing

    def _choose(self, view: View, now: float) -> None:
        if view.simulate is None:
            raise PolicyError("must have a view with simulate(), got one without", self.name, instant=now)
        if not self.every and not self.preempts and not _something_can_start(view):
            if self.current is None:
                self.current = self.ties[0]
            return
        scores = self._score(view, now)
        best = self._best(scores)
        label = self._labels[best]
        if label != self.current:
            self.forget()
            self.current = label
        self._chosen_at = now
        self._times.append(now)
        self._scores.append(scores)
        self._choices.append(best)

    def _score(self, view: View, now: float) -> Any:
        """Return the scores of the candidates, shape (candidates,); nan if no job waits."""
        goal = self.objective
        simulate = view.simulate
        assert simulate is not None
        if self._can_tell and _all_start(view):
            jobs = list(view.waiting)
            requested = [job.planned for job in jobs]
            found = measure(
                [job.submit for job in jobs], [now] * len(jobs), requested, names=goal.measures, tau=goal.tau
            )
            return goal.scores([found] * len(self._candidates))
        if view.simulate_all is not None:
            futures = view.simulate_all(self._candidates, **self._options)
        else:
            futures = [simulate(each, **self._options) for each in self._candidates]
        if goal.function is not None:
            return np.array([goal.function(each) for each in futures], dtype=np.float64)
        return goal.scores([self._measured(each, view, now) for each in futures])

    def _measured(self, future: Any, view: View, now: float) -> dict[str, float]:
        """Return the measures of a future over the jobs that wait now, and the utilisation."""
        goal, jobs = self.objective, future.jobs
        waiting = jobs["waiting"]
        if np.count_nonzero(waiting) != len(view.waiting):  # it includes held and blocked jobs
            queue = {job.id for job in view.waiting}
            waiting = waiting & np.array([job in queue for job in jobs["job"].tolist()])
        until = now + self.horizon if self.horizon is not None else None
        busy = math.nan
        if "utilisation" in goal.measures:
            capacity = sum(place.capacity for place in view.places if getattr(place, "part_of", None) is None)
            busy = _utilisation(jobs, now, until, capacity)
        stops = "stopped" in jobs  # the future of some was interrupted
        start, run = ("waited", "run") if stops else ("start", "requested")
        return measure(
            jobs["submit"][waiting],
            jobs[start][waiting],
            jobs[run][waiting],
            stopped=jobs["stopped"][waiting] if stops else 0.0,
            names=goal.measures,
            until=until,
            busy=busy,
            tau=goal.tau,
        )

    def _best(self, scores: Any) -> int:
        """Return the number of the chosen candidate: lowest score, ties by ``ties``, with hysteresis."""
        known = np.where(np.isnan(scores), math.inf, scores).tolist()
        least = min(known)
        margin = _SAME * max(abs(least), self.objective.whole) if math.isfinite(least) else 0.0
        best = next(i for i in self._by_ties if known[i] <= least + margin)
        if not self.hysteresis or self.current is None:
            return best
        current = self._labels.index(self.current)
        bounded = self.objective.function is None and self.objective.scale == "min-max"
        unit = self.objective.whole if bounded else abs(known[current])
        return best if known[current] - known[best] > self.hysteresis * unit + margin else current

    # ------------------------------------------------------------------ the record of choices

    @property
    def scores(self) -> Table:
        """One row per choice and candidate: ``time`` (s), ``policy``, ``score`` and ``chosen`` (1 or 0)."""
        count, width = len(self._times), len(self._labels)
        chosen = np.zeros((count, width), dtype=np.int8)
        chosen[np.arange(count), self._choices] = 1
        return Table(
            {
                "time": np.repeat(np.array(self._times, dtype=np.float64), width),
                "policy": np.tile(np.array(self._labels, dtype=str), count),
                "score": np.array(self._scores, dtype=np.float64).reshape(-1),
                "chosen": chosen.reshape(-1),
            }
        )

    @property
    def started_by(self) -> Table:
        """One row per start, in order: ``time`` (s), ``job``, and the ``policy`` that started it."""
        times, jobs, numbers = zip(*self._started, strict=True) if self._started else ((), (), ())
        labels = np.array(self._labels, dtype=str)
        return Table(
            {
                "time": np.array(times, dtype=np.float64),
                "job": np.array(jobs),
                "policy": labels[np.array(numbers, dtype=np.intp)],
            }
        )

    @property
    def shares(self) -> Table:
        """One row per candidate: ``policy``, number of ``jobs`` that it started, and their ``share`` of all starts."""
        counts = np.bincount([number for _, _, number in self._started], minlength=len(self._labels)).astype(np.int64)
        share = counts / counts.sum() if counts.any() else np.zeros(len(counts))
        return Table({"policy": np.array(self._labels, dtype=str), "jobs": counts, "share": share})


_objective = objective  # a parameter shadows the name


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def with_backfill(name: str, backfill: str | None) -> str:
    """Return the name of an order with a backfilling added; names of other policies stay as they are.

    >>> with_backfill("sjf", "easy"), with_backfill("conservative", "easy"), with_backfill("sjf", None)
    ('sjf+easy', 'conservative', 'sjf')
    """
    return f"{name}+{backfill}" if backfill not in (None, "none") and name in ORDERS else name


def _something_can_start(view: View) -> bool:
    """Whether some place has enough free processors for the narrowest job that waits for it."""
    for place in view.places:
        waiting = view.waiting.at(place)
        if waiting and place.free >= waiting.lanes(FCFS).narrowest:
            return True
    return False


def _all_start(view: View) -> bool:
    """Whether all waiting jobs fit now, at a single place of counted processors."""
    place = view.places[0]
    if len(view.places) > 1 or not place.simple:
        return False
    free = place.free
    for job in view.waiting:
        free -= job.width
        if free < 0 or job.rules is not None or (job.past is not None and job.past.interruptions):
            return False
    return True


def _utilisation(jobs: Mapping[str, Any], now: float, until: float | None, capacity: float) -> float:
    """Return the busy share of the processors from now to the end of a future."""
    start, end = np.asarray(jobs["start"], dtype=np.float64), np.asarray(jobs["end"], dtype=np.float64)
    begun = ~np.isnan(start)
    end = np.where(np.isnan(end), np.inf if until is None else until, end)[begun]
    last = until if until is not None else float(end.max(initial=now))
    if not now < last < math.inf:
        return math.nan
    held = np.clip(end, now, last) - np.clip(start[begun], now, last)
    return float((held * np.asarray(jobs["processors"])[begun]).sum() / (capacity * (last - now)))
