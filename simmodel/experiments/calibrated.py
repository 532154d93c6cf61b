"""What a calibration found: values, errors before and after, and the trials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from simmodel.display import Cells, Shown, counted, text_table, texts
from simmodel.errors import InputError
from simmodel.experiments.fitting import Fit
from simmodel.experiments.observations import Times
from simmodel.experiments.trials import Trial
from simmodel.runs.scenario import Scenario
from simmodel.work.table import Table

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
    """

    fit: Fit
    method: str
    trials: tuple[Trial, ...]
    separable: bool
    before: Mapping[str, Any]
    values: Mapping[str, Any]
    times_before: Times | None
    times_after: Times | None

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
        """One row per parameter: ``parameter, before, after``."""
        names = self.fit.varied.space.names
        return Table(
            {
                "parameter": np.array(names),
                "before": np.array([self.before[name] for name in names]),
                "after": np.array([self.values[name] for name in names]),
            }
        )

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

    def _cells(self) -> Cells:
        rows = self.parameters
        return [list(rows.names), *(texts(row.values()) for row in rows.rows())]

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if len(self.failed) else ""
        count = counted(len(self.trials), "trial")
        return f"<Calibration of {counted(len(self.values), 'parameter')}: loss {self.loss:.4g}, {count}{failed}>"
