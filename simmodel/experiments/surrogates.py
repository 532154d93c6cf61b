"""Surrogates: run times and queue times predicted by gradient boosting, beside simple rules and a simulation.

The models see the features of :mod:`simmodel.metrics.features` alone, all of which are known at the submission. They
are fitted to the earlier part of a record and judged by the later one, as they would be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, text_table
from simmodel.foundation.errors import InputError
from simmodel.metrics.features import JOB_FEATURES, JOB_OUTCOMES, job_features
from simmodel.metrics.report import duration
from simmodel.predictors.boosted import BoostedTimes
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from simmodel.records.job_record import JobRecord
    from simmodel.view.style import Size

__all__ = ["Surrogate", "SurrogateReport", "Target", "judge_surrogates"]

Target: TypeAlias = Literal["run", "wait"]
"""The predicted time: seconds of execution, or from the submission to the start; the start follows from the wait."""

BOOSTING = "gradient boosting"
SIMULATION = "simulation"

_RULES: Mapping[Target, Mapping[str, Callable[[Table], NDArray[np.float64]]]] = {
    "run": {
        "request": lambda rows: rows["requested"],
        "user's last two": lambda rows: np.fmin(
            np.where(np.isfinite(rows["user_run"]), rows["user_run"], rows["requested"]), rows["requested"]
        ),
    },
    "wait": {
        "recent waits": lambda rows: rows["recent_wait"],
        "work ahead": lambda rows: (rows["queued_work"] + rows["running_work"]) / rows["machine"],
    },
}
"""Rules that need no learning: ``work ahead`` shares the work of waiting and running jobs among all processors."""


class Surrogate(Shown):
    """A fitted model of run times or queue times.

    Parameters
    ----------
    target
        the quantity that it predicts
    features
        a table with features and outcomes, to which it is fitted
    seed
        of the model

    Attributes
    ----------
    jobs, columns
        the number of jobs that it is fitted to, and the features that it uses

    Raises
    ------
    MissingExtra
        scikit-learn is not installed
    InputError
        no job of the table has the outcome
    """

    def __init__(self, target: Target, features: Table, *, seed: int = 0) -> None:
        if target not in get_args(Target):
            raise InputError(f"must be 'run' or 'wait', got {target!r}", place="target")
        self.target = target
        seconds = features[target]
        known = np.isfinite(seconds)
        if not known.any():
            raise InputError("must have jobs with this outcome, got none", place=target)
        self.jobs = int(known.sum())
        rows = features.where(known)
        # the instant itself is no feature of the model, since it never comes again; nor is what is known of no job
        self.columns = tuple(n for n in JOB_FEATURES if n != "submit" and np.isfinite(rows[n]).any())
        self._model = BoostedTimes(self._matrix(rows), rows[target], seed=seed)

    def __repr__(self) -> str:
        return f"<Surrogate of {self.target}, fitted to {self.jobs:,} jobs>"

    def _cells(self) -> Cells:
        return [["feature", "about"], *([name, JOB_FEATURES[name]] for name in self.columns)]

    def predict(self, features: Table) -> NDArray[np.float64]:
        """Return the predicted seconds of jobs, of which features alone are read."""
        return self._model.predict(self._matrix(features))

    def _matrix(self, features: Table) -> NDArray[np.float64]:
        return np.column_stack([np.asarray(features[name], dtype=np.float64) for name in self.columns])

    def starts(self, features: Table) -> NDArray[np.float64]:
        """Return the predicted instants of starts; raises :class:`InputError` if it does not predict waits."""
        if self.target != "wait":
            raise InputError("must be 'wait' to predict starts", place="target")
        submit: NDArray[np.float64] = features["submit"]
        return submit + self.predict(features)


def judge_surrogates(
    record: JobRecord, *, split: float = 0.7, simulation: JobRecord | None = None, seed: int = 0
) -> SurrogateReport:
    """Fit surrogates to the first jobs of a record and compare them on the others with rules and a simulation.

    Parameters
    ----------
    record
        the jobs as executed: a result, or :func:`~simmodel.results.result.recorded_result` of a log
    split
        the share of the jobs, in order of submission, that the models are fitted to; an outcome later than the
        submission of the first job that is judged is not used
    simulation
        a simulation of the same jobs, whose waits are taken as its predictions
    seed
        of the models

    Raises
    ------
    InputError
        the split leaves nothing to learn from or to judge, or the simulation lacks a job

    >>> from simmodel import load_workload, simulate
    >>> log = load_workload("schedtwin")
    >>> report = judge_surrogates(simulate(32, log, "easy"), split=0.5)
    >>> report.models["wait"], report.table.names[:4]
    (<Surrogate of wait, fitted to 27 jobs>, ('target', 'method', 'jobs', 'error'))
    """
    if not 0 < split < 1:
        raise InputError(f"must be a number between 0 and 1, got {split!r}", place="split")
    table = job_features(record)
    first = int(len(table) * split)
    if not 0 < first < len(table):
        raise InputError(f"must leave jobs to learn from and to judge, got {split!r} of {len(table)}", place="split")
    table = table.with_columns(machine=np.full(len(table), float(record.processors)))
    early, late = table.where(slice(None, first)), table.where(slice(first, None))
    instant = float(late["submit"][0])
    known = {
        "wait": np.where(early["start"] < instant, early["wait"], np.nan),
        "run": np.where(early["submit"] + early["turnaround"] < instant, early["run"], np.nan),
    }
    early = early.with_columns(**known)
    models = {target: Surrogate(target, early, seed=seed) for target in get_args(Target)}
    predicted: dict[tuple[Target, str], NDArray[np.float64]] = {}
    for target, model in models.items():
        predicted[target, BOOSTING] = model.predict(late)
        for name, rule in _RULES[target].items():
            predicted[target, name] = np.asarray(rule(late), dtype=np.float64)
    if simulation is not None:
        predicted["wait", SIMULATION] = _simulated(simulation, late["job"])
    return SurrogateReport(features=table, first=first, models=models, predicted=predicted)


def _simulated(simulation: JobRecord, jobs: NDArray[Any]) -> NDArray[np.float64]:
    """Return the waits of jobs in a simulation."""
    waits = dict(zip(simulation.jobs["job"].tolist(), simulation.jobs["wait"].tolist(), strict=True))
    missing = [job for job in jobs.tolist() if job not in waits]
    if missing:
        raise InputError(f"must have the jobs of the record, lacks {missing[0]!r}", place="simulation")
    return np.array([waits[job] for job in jobs.tolist()])


@attrs.frozen(eq=False, repr=False, slots=False, kw_only=True)
class SurrogateReport(Shown):
    """How well surrogates, rules and a simulation predict the later part of a record.

    Parameters
    ----------
    features
        the table of all jobs, with their outcomes
    first
        how many of them the models may have learned from
    models
        the surrogates by target
    predicted
        by target and method: seconds predicted for each of the other jobs
    """

    features: Table
    first: int
    models: Mapping[Target, Surrogate]
    predicted: Mapping[tuple[Target, str], NDArray[np.float64]]

    @cached_property
    def table(self) -> Table:
        """One row per target and method, the best first: ``target, method, jobs``, errors in s, and their ratio.

        ``error`` is the mean absolute error, ``median`` the median one, ``relative`` the mean one over the mean of
        the observed times.
        """
        rows = sorted(self._errors(), key=lambda row: (row["target"], row["error"], row["method"]))
        return Table({name: [row[name] for row in rows] for name in rows[0]})

    def _errors(self) -> Iterator[dict[str, Any]]:
        for (target, method), seconds in self.predicted.items():
            truth = self.features[target][self.first :]
            known = np.isfinite(truth) & np.isfinite(seconds)
            error = np.abs(seconds[known] - truth[known])
            mean = float(truth[known].mean()) if known.any() else np.nan
            yield {
                "target": target,
                "method": method,
                "jobs": int(known.sum()),
                "error": float(error.mean()) if known.any() else np.nan,
                "median": float(np.median(error)) if known.any() else np.nan,
                "relative": float(error.mean()) / mean if known.any() and mean > 0 else np.nan,
            }

    def __repr__(self) -> str:
        return f"<SurrogateReport: {len(self.features) - self.first:,} jobs judged>"

    def _cells(self) -> Cells:
        found = self.table
        rows = zip(*(found[name].tolist() for name in found.names), strict=True)
        cells = [
            [target, method, f"{jobs:,}", duration(error), duration(median), f"{100 * relative:.0f} %"]
            for target, method, jobs, error, median, relative in rows
        ]
        return [["target", "method", "jobs", "mean error", "median", "of mean"], *cells]

    def __str__(self) -> str:
        head = f"fitted to the first {self.first:,} of {len(self.features):,} jobs, judged by the others"
        return "\n".join([head, *text_table(self._cells(), left=2)])

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw the mean error of each method as bars; ``title`` and ``figsize`` as of all plots."""
        from simmodel.view.experiment_plots import errors_of_methods

        return errors_of_methods(self.table, title=title, figsize=figsize, style=style, save=save)

    def document(self) -> dict[str, Any]:
        """Return the schema of the features, and the errors, as plain values."""
        from simmodel.metrics.features import schema

        return {
            "columns": schema(JOB_FEATURES, JOB_OUTCOMES),
            "fitted": self.first,
            "judged": len(self.features) - self.first,
            "errors": list(self.table.rows()),
        }
