"""Losses of calibrations: how far the times of simulated jobs are from recorded ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.calibration.observations import Cell, Observations, Times
from simmodel.foundation.display import Cells, Fields, Shown
from simmodel.foundation.errors import InputError, shown, unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LOSSES", "Criterion", "Loss", "QuantileDistance", "RelativeError", "StartError"]

_AVERAGES = ("sums", "ratios", "median")
_QUANTILES = tuple(i / 20 for i in range(1, 20))


class Loss(Shown):
    """The error of the jobs of one cell: derive from it and define :meth:`error`.

    ``quantity`` is the quantity compared, ``noise`` the error that is within the noise of a record: errors are averaged
    with it added, so that no cell that is met exactly outweighs all others.
    """

    quantity: str = "walltime"
    noise: float = 0.01

    @property
    def grows(self) -> bool:
        """Whether an error of more jobs, with the others right, never lowers the error of all."""
        return False

    def error(self, simulated: NDArray[np.float64], recorded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error of each row of ``simulated``: its last axis is over the jobs, as in ``recorded``."""
        raise NotImplementedError

    def problem(self, recorded: NDArray[np.float64]) -> str:
        """Return why the error of such a record is not defined; empty if it is."""
        return "" if recorded.mean() > 0 else f"has only {self.quantity}s of 0"

    def resampled(
        self, simulated: NDArray[np.float64], recorded: NDArray[np.float64], picks: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return the errors of rows of ``simulated`` for several choices of jobs: one row per choice."""
        return np.stack([self.error(simulated[:, pick], recorded[pick]) for pick in picks])

    def _cells(self) -> Cells:
        return ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.quantity}>"


@attrs.frozen(kw_only=True, repr=False)
class RelativeError(Fields, Loss):
    """The relative mean absolute error of a quantity.

    Parameters
    ----------
    quantity
        ``"walltime"``, ``"queue_time"``, or a column of both record and model
    average
        ``"sums"``: mean|simulated - recorded| / mean(recorded), as CGSim; ``"ratios"``: the mean of the relative errors
        of jobs; ``"median"``: median|simulated - recorded| / median(recorded), which few odd jobs do not move

    >>> error = RelativeError(quantity="walltime")
    >>> float(error.error(np.array([9.0, 33.0]), np.array([10.0, 30.0])))
    0.1
    """

    quantity: str = "walltime"
    average: str = "sums"

    def __attrs_post_init__(self) -> None:
        if self.average not in _AVERAGES:
            raise InputError(unknown("average", str(self.average), _AVERAGES).message, place="average")

    @property
    def grows(self) -> bool:
        """Whether an error of more jobs, with the others right, never lowers the error of all."""
        return True

    def error(self, simulated: NDArray[np.float64], recorded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error of each row of ``simulated``."""
        away = np.abs(simulated - recorded)
        if self.average == "ratios":
            return np.asarray((away / recorded).mean(axis=-1))
        if self.average == "median":
            return np.asarray(np.median(away, axis=-1) / np.median(recorded))
        return np.asarray(away.mean(axis=-1) / recorded.mean())

    def problem(self, recorded: NDArray[np.float64]) -> str:
        """Return why the error of such a record is not defined; empty if it is."""
        if self.average == "ratios" and not (recorded > 0).all():
            return f"has a {self.quantity} of 0"
        if self.average == "median" and not np.median(recorded) > 0:
            return f"has a median {self.quantity} of 0"
        return super().problem(recorded)

    def resampled(
        self, simulated: NDArray[np.float64], recorded: NDArray[np.float64], picks: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return the errors of rows of ``simulated`` for several choices of jobs: one row per choice."""
        if self.average == "median":
            return super().resampled(simulated, recorded, picks)
        count = len(recorded)
        times = np.stack([np.bincount(pick, minlength=count) for pick in picks]).astype(np.float64)
        away = np.abs(simulated - recorded)
        if self.average == "ratios":
            return np.asarray(times @ (away / recorded).T / times.sum(axis=1)[:, None])
        return np.asarray(times @ away.T / (times @ recorded)[:, None])


@attrs.frozen(kw_only=True, repr=False)
class QuantileDistance(Fields, Loss):
    """The mean distance between the quantiles of simulated and recorded values, relative to the recorded mean.

    It compares distributions: jobs may change places.

    >>> float(QuantileDistance().error(np.array([30.0, 10.0]), np.array([10.0, 30.0])))
    0.0
    """

    quantity: str = "walltime"
    quantiles: tuple[float, ...] = attrs.field(default=_QUANTILES, converter=tuple)

    def error(self, simulated: NDArray[np.float64], recorded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error of each row of ``simulated``."""
        found, wanted = np.quantile(simulated, self.quantiles, axis=-1), np.quantile(recorded, self.quantiles)
        away = np.abs(found - wanted.reshape(-1, *[1] * (simulated.ndim - 1)))
        return np.asarray(away.mean(axis=0) / recorded.mean())


@attrs.frozen(kw_only=True, repr=False)
class StartError(Fields, Loss):
    """The mean distance between simulated and recorded starts, s; with ``robust`` the median.

    >>> float(StartError().error(np.array([0.0, 30.0]), np.array([10.0, 30.0])))
    5.0
    """

    robust: bool = False
    quantity: str = attrs.field(default="start", init=False)
    noise = 1.0

    @property
    def grows(self) -> bool:
        """Whether an error of more jobs, with the others right, never lowers the error of all."""
        return True

    def error(self, simulated: NDArray[np.float64], recorded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error of each row of ``simulated``, s."""
        away = np.abs(simulated - recorded)
        return np.asarray(np.median(away, axis=-1) if self.robust else away.mean(axis=-1))

    def problem(self, recorded: NDArray[np.float64]) -> str:
        """Return why the error of such a record is not defined: it always is."""
        return ""


LOSSES: Mapping[str, Loss] = {
    "walltime": RelativeError(),
    "queue_time": RelativeError(quantity="queue_time"),
    "walltime-ratios": RelativeError(average="ratios"),
    "queue_time-ratios": RelativeError(quantity="queue_time", average="ratios"),
    "walltime-robust": RelativeError(average="median"),
    "queue_time-robust": RelativeError(quantity="queue_time", average="median"),
    "walltime-quantiles": QuantileDistance(),
    "queue_time-quantiles": QuantileDistance(quantity="queue_time"),
    "start": StartError(),
    "start-robust": StartError(robust=True),
}
"""The ready losses, by name."""

GivenLoss: TypeAlias = "str | Loss | Sequence[str | Loss] | Mapping[str, float | tuple[Loss, float]]"


@attrs.frozen(eq=False)
class Criterion:
    """Several losses, and how their errors in all cells become one number.

    Parameters
    ----------
    losses
        the losses by name
    weights
        their weights
    """

    losses: Mapping[str, Loss]
    weights: Mapping[str, float]

    @classmethod
    def of(cls, given: GivenLoss) -> Criterion:
        """Return the criterion of a name, a loss, several of them, or weights by name.

        Raises
        ------
        InputError
            a name is unknown, or a weight is not a number > 0

        >>> Criterion.of({"walltime": 2, "queue_time": 1}).weights
        {'walltime': 2.0, 'queue_time': 1.0}
        """
        if isinstance(given, str | Loss):
            given = [given]
        losses: dict[str, Loss] = {}
        weights: dict[str, float] = {}
        if isinstance(given, Mapping):
            for name, each in given.items():
                loss, weight = each if isinstance(each, tuple) else (name, each)
                losses[name], weights[name] = _loss(loss), _weight(weight, name)
        else:
            for one in given:
                name = one if isinstance(one, str) else getattr(one, "quantity", "loss")
                if name in losses:
                    raise InputError(f"duplicate name {name!r}", place="loss")
                losses[name], weights[name] = _loss(one), 1.0
        if not losses:
            raise InputError("must be at least one, got none", place="loss")
        return cls(losses, weights)

    @property
    def quantities(self) -> list[str]:
        """The quantities that its losses compare."""
        return list(dict.fromkeys(loss.quantity for loss in self.losses.values()))

    def errors(self, times: Times, observed: Observations, cells: Iterable[Cell]) -> dict[str, list[float]]:
        """Return the error of each cell by the name of the loss; nan if it is not defined, or a job has not ended."""
        found: dict[str, list[float]] = {name: [] for name in self.losses}
        for cell in cells:
            for name, loss in self.losses.items():
                recorded = observed.jobs[loss.quantity][cell.rows]
                error = np.nan if loss.problem(recorded) else loss.error(times[loss.quantity][cell.rows], recorded)
                found[name].append(float(error))
        return found

    def total(self, errors: Mapping[str, Sequence[float]], defined: Mapping[str, Sequence[bool]]) -> float:
        """Return the weighted geometric mean of the errors of cells, among those that are defined; nan if one is nan.

        It is the mean of the errors with the noise added, less the noise (a shifted geometric mean).

        >>> criterion = Criterion.of("walltime")
        >>> round(criterion.total({"walltime": [0.09, 0.39, 9]}, {"walltime": [True, True, False]}), 6)
        0.19
        """
        logs, noise, weights = 0.0, 0.0, 0.0
        for name, values in errors.items():
            own, weight = self.losses[name].noise, self.weights[name]
            for value, counts in zip(values, defined[name], strict=True):
                if counts:
                    logs += weight * np.log1p(value / own)
                    noise += weight * np.log(own)
                    weights += weight
        return float(np.exp(noise / weights) * np.expm1(logs / weights)) if weights else float("nan")

    def defined(self, observed: Observations, cells: Iterable[Cell]) -> dict[str, list[bool]]:
        """Return for which cells each loss is defined."""
        given = list(cells)
        return {
            name: [not loss.problem(observed.jobs[loss.quantity][cell.rows]) for cell in given]
            for name, loss in self.losses.items()
        }

    def resampled(
        self,
        times: Mapping[str, NDArray[np.float64]],
        observed: Observations,
        cells: Sequence[Cell],
        picks: Sequence[NDArray[np.intp]],
    ) -> NDArray[np.float64]:
        """Return the logarithm of the total with the noise added, for several choices of jobs and rows of times.

        Parameters
        ----------
        times
            by quantity: one row per candidate, one column per job of the record
        picks
            for each cell: the positions among its jobs, one row per choice
        """
        logs, weights = np.zeros((len(picks[0]), len(next(iter(times.values()))))), 0.0
        for cell, pick in zip(cells, picks, strict=True):
            for name, loss in self.losses.items():
                recorded = observed.jobs[loss.quantity][cell.rows]
                if not loss.problem(recorded):
                    errors = loss.resampled(times[loss.quantity][:, cell.rows], recorded, pick)
                    logs += self.weights[name] * np.log(errors + loss.noise)
                    weights += self.weights[name]
        return logs / weights


def _loss(given: Any) -> Loss:
    if isinstance(given, Loss):
        return given
    if given not in LOSSES:
        raise InputError(unknown("loss", str(given), LOSSES).message, place="loss")
    return LOSSES[given]


def _weight(given: Any, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < np.inf:
        raise InputError(f"must be a number > 0, got {shown(given)}", place=f"loss.{name}")
    return float(given)
