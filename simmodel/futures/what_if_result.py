"""The result of a what-if: outcomes side by side, scores, the best policy, tables and texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.display import Shown, figures, html_notes, html_page, html_table, text_table
from simmodel.foundation.errors import UnknownKey, unknown
from simmodel.futures.outcomes import Outcome, Sample, Starting
from simmodel.metrics import Source, compared, difference_table
from simmodel.metrics.report import duration, metric_text
from simmodel.metrics.statistics import Interval, paired_difference
from simmodel.scheduling.objectives import MEASURES, Objective
from simmodel.view.portfolio_plots import outcomes as drawn
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["WhatIf", "scored"]

_SHOWN = ("wait_mean", "wait_max", "bounded_slowdown_mean", "utilisation")  # tables hold all measures
_NAMED = 10  # jobs that the summary names


def scored(outcomes: Sequence[Outcome], goal: Objective) -> list[Outcome]:
    """Return the outcomes with their scores on the samples that all compared outcomes have.

    Outcomes that failed or have no sample are not compared and have no score.
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
    if not common:  # the sample that most outcomes have
        every = sorted(set.union(*finished.values()))
        common = {max(every, key=lambda i: sum(i in samples for samples in finished.values()))}
    counted = sorted(common)
    compared = [each for each in outcomes if common <= finished.get(each.name, set())]
    scores = np.array(
        [_scores([sample for each in compared if (sample := each.samples[i]) is not None], goal) for i in counted]
    ).T.tolist()
    found = dict(zip((each.name for each in compared), scores, strict=True))
    return [
        attrs.evolve(each, scores=tuple(found[each.name]), counted=tuple(counted)) if each.name in found else each
        for each in outcomes
    ]


def _scores(samples: Sequence[Sample], goal: Objective) -> Any:
    if goal.function is not None:
        return np.array([goal.function(sample) for sample in samples], dtype=np.float64)
    return goal.scores([sample.measures for sample in samples])


@attrs.frozen(eq=False, repr=False, slots=False)
class WhatIf(Shown):
    """Outcomes side by side, in the order in which the policies were given.

    ``found["easy"]`` is the outcome with that label; iteration yields all outcomes.

    >>> from simmodel.scheduling import objective
    >>> print(WhatIf(0.0, (), objective("wait_mean")).summary().splitlines()[-1])
    no policy is finished: nothing to decide

    Attributes
    ----------
    now
        the instant of the snapshot, s
    outcomes
        one per policy
    objective
        the objective of the comparison
    horizon
        simulated seconds; ``None``: until all work has ended
    """

    now: float
    outcomes: tuple[Outcome, ...]
    objective: Objective
    horizon: float | None = None

    @property
    def best(self) -> Outcome | None:
        """The outcome with the lowest score, ties going to the first; ``None`` if no finished one has a score.

        Without a horizon, outcomes with fewer unstarted jobs come first.
        """
        able = [each for each in self.outcomes if each.counted and not isnan(each.score)]
        return min(able, key=self._rank) if able else None

    def _rank(self, outcome: Outcome) -> tuple[float, float]:
        score = outcome.score
        return (outcome.unstarted if self.horizon is None else 0.0), (score if isfinite(score) else inf)

    @property
    def decisions(self) -> tuple[Starting, ...]:
        """The starts of the best policy at the instant of the snapshot."""
        return () if self.best is None else self.best.now

    @cached_property
    def table(self) -> Table:
        """One row per policy: ``policy, status, score, start_now, unstarted, samples`` and the measures.

        Values are means over the counted samples, whose number is ``samples``; nan without any.
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

    def difference(
        self, one: str, other: str, name: str = "score", level: float = 0.95, *, metric: str | None = None
    ) -> Interval:
        """Return the confidence interval of the difference of two policies, paired by sample.

        Parameters
        ----------
        one, other
            labels
        metric, name
            a measure, ``unstarted`` or ``score``; ``name`` is its old name
        level
            confidence

        Raises
        ------
        ValueError
            if fewer than two samples count for both
        """
        name = metric or name
        return paired_difference(self[one].values(name), self[other].values(name), level)

    @cached_property
    def differences(self) -> Table:
        """One row per policy and measure: its difference to the first policy, as of a comparison with as many seeds."""
        able = [each for each in self.outcomes if each.counted]
        count = len(able[0].counted) if able else 0
        source = Source("seeds" if count > 1 else "run", count)
        return difference_table(
            [
                compared(("", "", each.name, name, able[0].name), each.values(name), able[0].values(name), source, 0.95)
                for name in MEASURES
                for each in able[1:]
            ]
        )

    # ------------------------------------------------------------------ output

    def summary(self) -> str:
        """Return the outcomes as a text table, followed by the starts of the best policy."""
        return "\n".join([_title(self), "", *text_table(_cells(self)), "", *_notes(self)])

    def _repr_html_(self) -> str:
        best = self.outcomes.index(self.best) if self.best is not None else None
        table = html_table(_cells(self), bold=best, most=len(self.outcomes))
        return html_page(_title(self), ()) + table + html_notes(_notes(self))

    plot = drawn

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the futures themselves as plain values: JSON, apart from nan."""
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
                }
                for each in self.outcomes
            ],
            "timing": {each.name: {"seconds": each.seconds} for each in self.outcomes},
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return :meth:`to_dict` as JSON, with nan as ``null``; write it to ``path`` if given."""
        from simmodel.results.stores import json_text

        return json_text(self.to_dict(), path)

    def __getitem__(self, name: str) -> Outcome:
        for outcome in self.outcomes:
            if outcome.name == name:
                return outcome
        raise UnknownKey(unknown("policy", name, [each.name for each in self.outcomes]).message)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __repr__(self) -> str:
        return f"<WhatIf of {', '.join(each.name for each in self.outcomes)}>"


def _title(found: WhatIf) -> str:
    span = "until all work has ended" if found.horizon is None else f"for {duration(found.horizon)}"
    samples = max((len(each.counted) for each in found.outcomes), default=0)
    mean = f", means of {samples} samples" if samples > 1 else ""
    return f"from {found.now:g} s {span}{mean}; score: {found.objective}, lower is better"


def _cells(found: WhatIf) -> list[list[str]]:
    """Return the head and the rows of a text table."""
    rows = [["", "score", "start now", *(MEASURES[name][1].partition(" (")[0] for name in _SHOWN)]]
    for each in found.outcomes:
        if each.counted:
            measures = each.measures
            rows.append(
                [
                    each.name,
                    "-" if isnan(each.score) else figures(each.score, 4),
                    str(len(each.now)),
                    *(metric_text(name, measures[name]) for name in _SHOWN),
                ]
            )
        else:
            rows.append([each.name, each.status, *[""] * (len(_SHOWN) + 1)])
    return rows


def _notes(found: WhatIf) -> list[str]:
    notes = [f"{each.name}: {each.status}: {each.reason}" for each in found.outcomes if each.status != "finished"]
    waits = [row for row in found.differences.rows() if row["metric"] == "wait_mean" and row["runs"] > 1]
    notes += [f"{row['policy']}: mean wait against {row['baseline']}: {row['verdict']}" for row in waits]
    if found.horizon is None:
        notes += [f"{each.name}: {each.unstarted:g} jobs never start" for each in found.outcomes if each.unstarted > 0]
    best = found.best
    if best is None:
        counted = [each for each in found.outcomes if each.counted]
        why = "no policy has a score" if counted else "no policy is finished"
        if counted and not any(each.starts or each.unstarted for each in counted):
            why = "no job waits or arrives"
        return [*notes, f"{why}: nothing to decide"]
    jobs: dict[str, list[str]] = {}
    for each in best.now[:_NAMED]:
        jobs.setdefault(each.place, []).append(str(each.job))
    more = f" and {len(best.now) - _NAMED} more" if len(best.now) > _NAMED else ""
    named = "; ".join(f"{', '.join(names)} on {place}" for place, names in jobs.items())
    what = f"starts {named}{more}" if jobs else "starts nothing now"
    return [*notes, f"best: {best.name}, which {what}"]
