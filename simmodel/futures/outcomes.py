"""What came of a what-if: futures, outcomes of policies, and their comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import attrs
import numpy as np

from simmodel.futures.branches import Branch
from simmodel.metrics.statistics import Interval, mean_interval, paired_difference
from simmodel.scheduling.objective import MEASURES, Objective
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

__all__ = ["Outcome", "Sample", "Starting", "WhatIf", "scored"]


class Starting(NamedTuple):
    """A job, by its id, that starts at a place, by name, at an instant (s)."""

    job: int | str
    place: str
    at: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Sample:
    """One simulated future.

    Attributes
    ----------
    jobs
        what was waiting or arrived: ``job, submit, start, end, processors, requested, status`` and ``waiting``, whether
        it waited at the snapshot; times in s, nan where it has not happened by the end of the simulation
    starts
        what starts, in the order of the starts
    measures
        of these jobs (:data:`~simmodel.scheduling.objective.MEASURES`); utilisation is that of all that ran. A job that
        has not started by the horizon counts as if it did then; without a horizon it does not count
    unstarted
        how many have not started by the end
    ended
        the last instant that was simulated, s
    seed
        of the sample
    result
        the whole result, where ``what_if`` was told to keep it
    """

    jobs: Table
    starts: tuple[Starting, ...]
    measures: dict[str, float]
    unstarted: int
    ended: float
    seed: int
    now: tuple[Starting, ...]
    """What starts at the instant of the snapshot."""
    result: Any = None

    def __eq__(self, other: object) -> bool:
        """Whether the same happens; the results are not compared, nor is the seed."""
        if not isinstance(other, Sample):
            return NotImplemented
        return (
            self.starts == other.starts
            and self.ended == other.ended
            and self.jobs.names == other.jobs.names
            and all(_same(self.jobs[name], other.jobs[name]) for name in self.jobs.names)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Sample: {len(self.jobs)} jobs, {len(self.now)} start now, ended at {self.ended:g} s>"


def _same(one: Any, other: Any) -> bool:
    if one.dtype.kind == "f":
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(np.array_equal(one, other))


@attrs.frozen(kw_only=True, repr=False)
class Outcome:
    """What came of one policy, or branch.

    Attributes
    ----------
    name, branch
        its label, and what was tried
    status
        ``"finished"``, ``"unfinished"`` by the deadline, or ``"failed"``
    reason
        why it is not finished
    samples
        the futures in order, ``None`` where one is not finished
    scores
        one for each sample that counts, by the objective, beside the other policies on the same sample; lower is better
    counted
        the numbers of the samples that count: those that no policy in the comparison lacks
    seconds
        wall-clock time that the simulations took
    """

    name: str
    branch: Branch
    status: Literal["finished", "unfinished", "failed"]
    reason: str = ""
    samples: tuple[Sample | None, ...] = ()
    scores: tuple[float, ...] = ()
    counted: tuple[int, ...] = ()
    seconds: float = attrs.field(default=0.0, eq=False)

    @property
    def first(self) -> Sample | None:
        """The first future that counts, else the first that is finished, ``None`` where there is none."""
        order = [*self.counted, *range(len(self.samples))]
        return next((each for each in (self.samples[i] for i in order) if each is not None), None)

    @property
    def starts(self) -> tuple[Starting, ...]:
        """What starts in its first future, in the order of the starts."""
        return () if self.first is None else self.first.starts

    @property
    def now(self) -> tuple[Starting, ...]:
        """What starts at the instant of the snapshot: the decisions of the policy."""
        return () if self.first is None else self.first.now

    @property
    def score(self) -> float:
        """The mean of its scores; nan where there is none."""
        return float(np.mean(self.scores)) if self.scores else nan

    @property
    def unstarted(self) -> float:
        """The mean number of jobs that have not started by the end."""
        found = self.values("unstarted")
        return float(found.mean()) if len(found) else nan

    @property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the samples that count."""
        if not self.counted:
            return dict.fromkeys(MEASURES, nan)
        return {name: float(self.values(name).mean()) for name in MEASURES}

    def values(self, name: str = "score") -> Any:
        """Return a measure, ``unstarted`` or the score in each sample that counts, an array of shape (samples,)."""
        if name == "score":
            return np.array(self.scores, dtype=np.float64)
        counted = [sample for sample in (self.samples[i] for i in self.counted) if sample is not None]
        if name == "unstarted":
            return np.array([sample.unstarted for sample in counted], dtype=np.float64)
        if name not in MEASURES:
            raise KeyError(f"no measure {name!r}; there are score, unstarted, {', '.join(MEASURES)}")
        return np.array([sample.measures[name] for sample in counted], dtype=np.float64)

    def interval(self, name: str = "score", level: float = 0.95) -> Interval:
        """Return the mean of a measure over the samples with its confidence interval.

        Raises
        ------
        ValueError
            where fewer than two samples count
        """
        return mean_interval(self.values(name), level)

    def __repr__(self) -> str:
        return f"<Outcome {self.name}: {self.status}, {len(self.now)} start now>"


# ---------------------------------------------------------------------- side by side


def scored(outcomes: Sequence[Outcome], goal: Objective) -> list[Outcome]:
    """Return the outcomes with their scores: of the samples that all of those have that have any.

    What has failed, or has no sample, has no score.
    """
    finished = {
        each.name: {i for i, sample in enumerate(each.samples) if sample is not None}
        for each in outcomes
        if each.status != "failed"
    }
    finished = {name: samples for name, samples in finished.items() if samples}
    if not finished:
        return list(outcomes)
    common = set.intersection(*finished.values())
    if not common:  # the sample that most of them have
        every = sorted(set.union(*finished.values()))
        common = {max(every, key=lambda i: sum(i in samples for samples in finished.values()))}
    counted = sorted(common)
    compared = [each for each in outcomes if common <= finished.get(each.name, set())]
    scores = np.array([_scores([each.samples[i] for each in compared], goal) for i in counted]).T.tolist()
    found = dict(zip((each.name for each in compared), scores, strict=True))
    return [
        attrs.evolve(each, scores=tuple(found[each.name]), counted=tuple(counted)) if each.name in found else each
        for each in outcomes
    ]


def _scores(samples: Sequence[Any], goal: Objective) -> Any:
    if goal.function is not None:
        return np.array([goal.function(sample) for sample in samples], dtype=np.float64)
    return goal.scores([sample.measures for sample in samples])


@attrs.frozen(eq=False, repr=False, slots=False)
class WhatIf:
    """Outcomes side by side, in the order in which the policies were given.

    ``found["easy"]`` is the outcome with that label; iterating gives all of them.

    Attributes
    ----------
    now
        the instant of the snapshot, s
    outcomes
        one a policy
    objective
        by which they are compared
    horizon
        seconds simulated; ``None``: until all is over
    """

    now: float
    outcomes: tuple[Outcome, ...]
    objective: Objective
    horizon: float | None = None

    @property
    def best(self) -> Outcome | None:
        """The outcome with the lowest score, of equals the first; ``None`` where none is finished.

        Where all is simulated to its end, those that leave more jobs unstarted than another come after it.
        """
        able = [each for each in self.outcomes if each.counted]
        return min(able, key=self._rank) if able else None

    def _rank(self, outcome: Outcome) -> tuple[float, float]:
        score = outcome.score
        return (outcome.unstarted if self.horizon is None else 0.0), (score if isfinite(score) else inf)

    @property
    def decisions(self) -> tuple[Starting, ...]:
        """What the best policy starts at the instant of the snapshot."""
        return () if self.best is None else self.best.now

    @cached_property
    def table(self) -> Table:
        """One row a policy: ``policy, status, score, start_now, unstarted, samples`` and the measures.

        Means over the samples that count, of which ``samples`` is the number; nan where there is none.
        """
        outcomes = self.outcomes
        return Table(
            {
                "policy": np.array([each.name for each in outcomes], dtype=str),
                "status": np.array([each.status for each in outcomes], dtype=str),
                "score": np.array([each.score for each in outcomes]),
                "start_now": np.array([len(each.now) for each in outcomes]),
                "unstarted": np.array([each.unstarted for each in outcomes]),
                "samples": np.array([len(each.counted) for each in outcomes]),
                **{name: np.array([each.measures[name] for each in outcomes]) for name in MEASURES},
            }
        )

    def difference(self, one: str, other: str, name: str = "score", level: float = 0.95) -> Interval:
        """Return the interval of one policy's value less another's, paired by sample.

        Parameters
        ----------
        one, other
            labels
        name
            a measure, ``unstarted`` or ``score``
        level
            confidence

        Raises
        ------
        ValueError
            where fewer than two samples count for both
        """
        return paired_difference(self[one].values(name), self[other].values(name), level)

    # ------------------------------------------------------------------ looks

    def summary(self) -> str:
        """Return the outcomes as a table of text, for people, and what the best policy starts now."""
        from simmodel.futures.outcomes_text import summary_text

        return summary_text(self)

    def _repr_html_(self) -> str:
        from simmodel.futures.outcomes_text import outcomes_html

        return outcomes_html(self)

    def plot(self, **options: Any) -> Figure:
        """Draw the measures as bars; options as of :func:`simmodel.view.whatif_plots.outcomes`."""
        from simmodel.view.whatif_plots import outcomes

        return outcomes(self, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the futures themselves as plain values, as JSON can hold them but for nan."""
        return {
            "now": self.now,
            "horizon": self.horizon,
            "objective": str(self.objective),
            "best": None if self.best is None else self.best.name,
            "decisions": [each._asdict() for each in self.decisions],
            "policies": [
                {
                    "policy": each.name,
                    "status": each.status,
                    "reason": each.reason,
                    "score": each.score,
                    "scores": list(each.scores),
                    "unstarted": each.unstarted,
                    "measures": each.measures,
                    "start_now": [start._asdict() for start in each.now],
                    "seconds": each.seconds,
                }
                for each in self.outcomes
            ],
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return :meth:`to_dict` as JSON, what is not a number as ``null``; a path: write it there too."""
        from simmodel.results.stores import json_text

        return json_text(self.to_dict(), path)

    def __getitem__(self, name: str) -> Outcome:
        for outcome in self.outcomes:
            if outcome.name == name:
                return outcome
        raise KeyError(f"no policy {name!r}; there are {', '.join(each.name for each in self.outcomes)}")

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __repr__(self) -> str:
        return f"<WhatIf of {', '.join(each.name for each in self.outcomes)}>"
