"""The result of a calibration: values, errors before and after, and the trials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.experiments.calibration_report import error_table, limits_of, report_of
from simmodel.experiments.fitting import Fit
from simmodel.experiments.identifiability import Identified
from simmodel.experiments.misfit import Misfit, misfits
from simmodel.experiments.observations import Times
from simmodel.experiments.separation import loss_in
from simmodel.experiments.trials import Trial
from simmodel.foundation.display import Cells, Shown, counted, text_table, texts
from simmodel.foundation.errors import InputError
from simmodel.runs.scenario import Scenario
from simmodel.view.calibration_plots import convergence, site_errors
from simmodel.work.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.view.style import Size

__all__ = ["Calibration"]


@attrs.frozen(eq=False, repr=False, slots=False)
class Calibration(Shown):
    """The calibrated values of a model's parameters, and how well it repeats the record with them.

    Parameters
    ----------
    fit
        the model, the parameters, the losses and the record
    method
        the method of search
    trials
        the trials: values, losses, or why they failed
    separable
        whether each block of parameters had a search of its own
    before, values
        the value of each parameter in the model (``None``: it has none), and the best one found
    times_before, times_after
        the times of the jobs of the record with these values; ``None`` if they are not known
    level
        confidence of the intervals
    identified
        the interval of each parameter, and whether the record identifies it; empty if that was not examined
    """

    fit: Fit
    method: str
    trials: tuple[Trial, ...]
    separable: bool
    before: Mapping[str, Any]
    values: Mapping[str, Any]
    times_before: Times | None
    times_after: Times | None
    level: float = 0.95
    identified: tuple[Identified, ...] = ()

    # ------------------------------------------------------------------ values

    @property
    def scenario(self) -> Scenario:
        """The calibrated scenario.

        Raises
        ------
        InputError
            a function was calibrated
        """
        model = self.fit.varied.model
        if not isinstance(model, Scenario):
            message = "must be a scenario, but a function was calibrated: call it with the values"
            raise InputError(message, place="model")
        return self.fit.varied.space.apply(model, self.values)

    @cached_property
    def parameters(self) -> Table:
        """One row per parameter: ``parameter, before, after`` and, if they are known, ``low, high, verdict``."""
        names = self.fit.varied.space.names
        columns: dict[str, Any] = {
            "parameter": np.array(names),
            "before": np.array([self.before[name] for name in names]),
            "after": np.array([self.values[name] for name in names]),
        }
        known = {each.name: each for each in self.identified}
        if known:
            columns["low"] = np.array([known[name].low if name in known else None for name in names])
            columns["high"] = np.array([known[name].high if name in known else None for name in names])
            columns["verdict"] = np.array([known[name].verdict if name in known else "" for name in names])
        return Table(columns)

    @cached_property
    def errors(self) -> Table:
        """One row per site and class of jobs, with the parameters of the site.

        Columns: ``site, class, jobs``, for each loss its error ``before`` and ``after``, also of the jobs held out,
        and for each parameter of the site its value before and after, with its interval.

        Raises
        ------
        InputError
            the loss is a function
        """
        return error_table(self)

    @cached_property
    def limits(self) -> list[str]:
        """The limits of the record, such as parameters that it does not fix, one sentence each."""
        return limits_of(self)

    @cached_property
    def misfits(self) -> tuple[Misfit, ...]:
        """The patterns in the errors of the best values, each of which names a defect of the model."""
        if self.fit.observed is None or self.times_after is None:
            return ()
        return tuple(misfits(self.fit.observed, self.times_after))

    # ------------------------------------------------------------------ losses

    @property
    def loss(self) -> float:
        """The loss with the best values."""
        if self.times_after is not None:
            return self.fit.losses(self.times_after)["loss"]
        return min(trial.outcome["loss"] for trial in self.trials if trial.state == "finished")

    @property
    def loss_before(self) -> float:
        """The loss of the model as it was; nan if it is not known."""
        return float("nan") if self.times_before is None else self.fit.losses(self.times_before)["loss"]

    @cached_property
    def runs(self) -> Table:
        """One row per trial: ``number, state, error``, the values of the parameters and the losses."""
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.outcome))
        columns: dict[str, Any] = {
            "number": np.array([trial.number for trial in self.trials], dtype=np.int64),
            "state": np.array([trial.state for trial in self.trials], dtype=str),
            "error": np.array([trial.error for trial in self.trials], dtype=str),
        }
        for name in self.fit.varied.space.names:
            columns[name] = np.array([trial.values[name] for trial in self.trials])
        for name in names:
            columns[name] = np.array([trial.outcome.get(name, np.nan) for trial in self.trials], dtype=np.float64)
        return Table(columns)

    @cached_property
    def convergence(self) -> Table:
        """One row per trial: its ``number``, and the ``best`` loss so far; of all sites, if each has its own search."""
        numbers = np.arange(len(self.trials))
        if not self.separable:
            losses = np.array([loss_in(trial, None) for trial in self.trials])
            return Table({"number": numbers, "best": np.fmin.accumulate(losses)})
        logs, whole = np.zeros(len(self.trials)), 0.0
        for block, weight in zip(self.fit.blocks, self.fit.weights, strict=True):
            losses = np.array([loss_in(trial, block) for trial in self.trials])
            logs += weight * np.log(np.maximum(np.fmin.accumulate(losses), 1e-300))
            whole += weight
        return Table({"number": numbers, "best": np.exp(logs / whole)})

    plot_errors = site_errors

    def plot_convergence(
        self, others: Mapping[str, Calibration] | None = None, *, title: str | None = None, figsize: Size | None = None
    ) -> Figure:
        """Draw the best loss over the trials; see :mod:`simmodel.view.calibration_plots`.

        Parameters
        ----------
        others
            calibrations of the same model by other methods, by name
        """
        return convergence({self.method: self, **(others or {})}, title=title, figsize=figsize)

    @property
    def failed(self) -> Table:
        """The number, the values and the error of the trials that failed."""
        found = [trial for trial in self.trials if trial.state == "failed"]
        columns = {name: np.array([trial.values[name] for trial in found]) for name in self.fit.varied.space.names}
        numbers = np.array([trial.number for trial in found], dtype=np.int64)
        return Table({"number": numbers, **columns, "error": np.array([trial.error for trial in found], dtype=str)})

    def summary(self) -> str:
        """Return the values before and after as a table of text."""
        return "\n".join(text_table(self._cells()))

    def report(self) -> str:
        """Return everything as text: losses, values, errors by site and class, and the limits of the record."""
        return report_of(self)

    def _cells(self) -> Cells:
        rows = self.parameters
        return [list(rows.names), *(texts(row.values()) for row in rows.rows())]

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if len(self.failed) else ""
        count = counted(len(self.trials), "trial")
        return f"<Calibration of {counted(len(self.values), 'parameter')}: loss {self.loss:.4g}, {count}{failed}>"
