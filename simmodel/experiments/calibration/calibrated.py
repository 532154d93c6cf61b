"""What a calibration found: values, trials, and its report: errors by site and class, what the record cannot tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.experiments.calibration.fitting import STOPPED, Fit
from simmodel.experiments.calibration.identifiability import Identified
from simmodel.experiments.calibration.misfit import Misfit, misfits
from simmodel.experiments.calibration.observations import Cell, Times
from simmodel.experiments.calibration.separation import loss_in
from simmodel.experiments.trials import Trial
from simmodel.foundation.display import Cells, Shown, counted, text_table, texts
from simmodel.foundation.errors import InputError
from simmodel.runs.scenario import Scenario
from simmodel.view.calibration_plots import convergence, site_errors
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

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
        return _error_table(self)

    @cached_property
    def limits(self) -> list[str]:
        """What the record cannot tell, one sentence each."""
        return _limits_of(self)

    @cached_property
    def misfits(self) -> tuple[Misfit, ...]:
        """The patterns in what the best values leave of the record, each of which says what the model lacks."""
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
        self,
        others: Mapping[str, Calibration] | None = None,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw the best loss over the trials; see :mod:`simmodel.view.calibration_plots`.

        Parameters
        ----------
        others
            calibrations of the same model by other methods, by name
        """
        return convergence({self.method: self, **(others or {})}, title=title, figsize=figsize, style=style, save=save)

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
        """Return everything as text: losses, values, errors by site and class, and what the record cannot tell."""
        return _report_of(self)

    def _cells(self) -> Cells:
        rows = self.parameters
        return [list(rows.names), *(texts(row.values()) for row in rows.rows())]

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if len(self.failed) else ""
        count = counted(len(self.trials), "trial")
        return f"<Calibration of {counted(len(self.values), 'parameter')}: loss {self.loss:.4g}, {count}{failed}>"


# ---------------------------------------------------------------------- errors by cell

_FEW = 10  # jobs below which the error of a cell says little


def _error_table(found: Calibration) -> Table:
    """Return the errors by site and class; see :attr:`Calibration.errors`."""
    fit = found.fit
    if fit.observed is None or fit.criterion is None:
        raise InputError("must be a ready one for errors by site, got a function", place="loss")
    cells = fit.observed.training
    columns: dict[str, Any] = {
        "site": np.array([cell.site for cell in cells]),
        "class": np.array([cell.kind for cell in cells]),
        "jobs": np.array([len(cell.rows) for cell in cells]),
    }
    tested = {(cell.site, cell.kind): cell for cell in fit.observed.testing}
    for word, times in (("before", found.times_before), ("after", found.times_after)):
        if times is not None:
            for name, values in fit.criterion.errors(times, fit.observed, cells).items():
                columns[f"{name} {word}"] = np.array(values)
    for word, times in (("before", found.times_before), ("after", found.times_after)):
        if times is not None and tested:
            for name in fit.criterion.losses:
                columns[f"{name} {word}, held out"] = np.array(
                    [_tested(found, name, times, tested.get((cell.site, cell.kind))) for cell in cells]
                )
    return Table({**columns, **_parameter_columns(found, cells)})


def _tested(found: Calibration, name: str, times: Times, cell: Cell | None) -> float:
    criterion, observed = found.fit.criterion, found.fit.observed
    if cell is None or criterion is None or observed is None:
        return float("nan")
    return criterion.errors(times, observed, [cell])[name][0]


def _parameter_columns(found: Calibration, cells: Sequence[Cell]) -> dict[str, NDArray[Any]]:
    """Return columns of the parameters of each cell's site, by the last parts of their names."""
    known = {each.name: each for each in found.identified}
    rows: list[dict[str, Any]] = []
    for cell in cells:
        row: dict[str, Any] = {}
        for name in _names_of(found.fit, cell.site):
            short = _short(name, cell.site)
            row[f"{short} before"], row[f"{short} after"] = found.before[name], found.values[name]
            if name in known:
                row[f"{short} low"], row[f"{short} high"] = known[name].low, known[name].high
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name) for row in rows]) for name in names}


def _names_of(fit: Fit, site: str) -> list[str]:
    names = fit.varied.space.names
    blocks = [block for block in fit.blocks if not block.sites or site in block.sites]
    return [names[i] for block in blocks for i in block.parameters]


def _short(name: str, site: str) -> str:
    """Return the name of a parameter without its site.

    >>> _short("sites.BNL.overhead.mean", "BNL"), _short("scale", "BNL")
    ('overhead.mean', 'scale')
    """
    return re.sub(rf"^(sites|places)(\.{re.escape(site)}|\[.*?\])\.", "", name)


# ---------------------------------------------------------------------- limits


def _limits_of(found: Calibration) -> list[str]:
    """Return what the record cannot tell; see :attr:`Calibration.limits`."""
    space = found.fit.varied.space
    said = [each.sentence(space[each.name]) for each in found.identified]
    said = [each for each in said if each]
    if found.fit.observed is not None and found.fit.criterion is not None:
        said += [*_of_cells(found), *_of_queues(found), *_of_holdout(found), *(each.sentence for each in found.misfits)]
    return said


def _of_cells(found: Calibration) -> Iterator[str]:
    observed, criterion = found.fit.observed, found.fit.criterion
    assert observed is not None
    assert criterion is not None
    if observed.left_out:
        yield f"{counted(observed.left_out, 'job')} of the record without a known time take no part"
    for cell in observed.training:
        if len(cell.rows) < _FEW:
            yield f"{cell}: {counted(len(cell.rows), 'job')}, too few to trust the error or the fit"
        for loss in criterion.losses.values():
            problem = loss.problem(observed.jobs[loss.quantity][cell.rows])
            if problem:
                yield f"{cell}: the record {problem}, so its relative error is not defined and takes no part"


def _of_queues(found: Calibration) -> Iterator[str]:
    """Yield the sites whose queue times neither the jobs of the record nor the model explain: jobs wait for others."""
    observed = found.fit.observed
    assert observed is not None
    jobs = observed.jobs
    start, end = (next((jobs[name] for name in names if name in jobs), None) for names in _INSTANTS)
    if start is None or end is None or "submit" not in jobs:
        return
    met = []
    for site in observed.sites:
        here = jobs["site"] == site
        most, waited, idle = _waiting(jobs["submit"][here], start[here], end[here])
        if waited > 0 and idle > _IDLE * waited and not _explained(found, site):
            met.append((site, most, int(here.sum()), idle / waited))
    for site, most, count, share in met[:_NAMED]:
        named = f"{site}: at" if site else "At"
        yield (
            f"{named} most {most} of the {count} jobs run at once, and {share:.0%} of the queue time passes while "
            f"fewer run: the record lacks the jobs that these wait for, so queue times can be described, not explained"
        )
    if len(met) > _NAMED:
        yield f"the same holds for {counted(len(met) - _NAMED, 'more site')}, such as {met[_NAMED][0]}"


def _explained(found: Calibration, site: str) -> bool:
    """Whether the calibrated model repeats the queue times of a site."""
    criterion, observed, times = found.fit.criterion, found.fit.observed, found.times_after
    assert criterion is not None
    assert observed is not None
    if times is None or "queue_time" not in times:
        return False
    rows = np.concatenate([cell.rows for cell in observed.training if cell.site == site] or [np.zeros(0, np.intp)])
    recorded = observed.jobs["queue_time"][rows]
    return bool(np.abs(times["queue_time"][rows] - recorded).sum() < _IDLE * recorded.sum())


_NAMED = 3  # sites that are named one by one
_INSTANTS = (("recorded_start", "start"), ("recorded_end", "end"))
_IDLE = 0.5  # share of queue time, spent while fewer jobs run than at other times, that is not explained


def _waiting(
    submit: NDArray[np.float64], start: NDArray[np.float64], end: NDArray[np.float64]
) -> tuple[int, float, float]:
    """Return the most jobs that run at once, the job seconds of waiting, and those while fewer run.

    >>> _waiting(np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 20.0]), np.array([10.0, 5.0, 30.0]))
    (2, 19.0, 15.0)
    """
    times = np.unique(np.concatenate([submit, start, end]))
    length = np.diff(times)

    def count(begin: NDArray[np.float64], finish: NDArray[np.float64]) -> NDArray[np.intp]:
        begun = np.searchsorted(np.sort(begin), times[:-1], side="right")
        return np.asarray(begun - np.searchsorted(np.sort(finish), times[:-1], side="right"))

    if not len(length):
        return 0, 0.0, 0.0
    running, waiting = count(start, end), count(submit, start)
    most = int(running.max())
    return most, float((waiting * length).sum()), float((waiting * length)[running < most].sum())


def _of_holdout(found: Calibration) -> Iterator[str]:
    fit = found.fit
    assert fit.observed is not None
    if not fit.observed.testing or found.times_after is None:
        return
    after = fit.losses(found.times_after, testing=True)["loss"]
    if found.times_before is not None:
        before = fit.losses(found.times_before, testing=True)["loss"]
        if after > before:
            yield (
                f"the fit does not carry over to the jobs held out: their loss rises from {before:.3g} to {after:.3g}, "
                "so the model is better left as it was"
            )
            return
    if after > 1.5 * found.loss:
        yield f"the loss is {after:.3g} on the jobs held out, and {found.loss:.3g} on those it was fitted to"


# ---------------------------------------------------------------------- text


def _report_of(found: Calibration) -> str:
    """Return the report as text."""
    lines = [_line("loss", found.loss_before, found.loss)]
    fit = found.fit
    if fit.observed is not None and fit.observed.testing and found.times_after is not None:
        nan = float("nan")
        before = fit.losses(found.times_before, testing=True)["loss"] if found.times_before is not None else nan
        lines.append(_line("loss on jobs held out", before, fit.losses(found.times_after, testing=True)["loss"]))
    failed = sum(trial.state == "failed" for trial in found.trials)
    stopped = sum(STOPPED in trial.outcome for trial in found.trials)
    words = [f"{failed:,} failed"] * (failed > 0) + [f"{stopped:,} stopped early"] * (stopped > 0)
    lines.append(", ".join([counted(len(found.trials), "trial"), *words]))
    rows = getattr(found, "parameters", None)
    if isinstance(rows, Table):
        lines += ["", *text_table([list(rows.names), *(texts(row.values()) for row in rows.rows())])]
    if fit.observed is not None:
        errors = _error_table(found)
        names = [name for name in errors.names if name in ("site", "class", "jobs") or _is_error(name, found)]
        cells = [names, *(texts(row[name] for name in names) for row in errors.rows())]
        lines += ["", *text_table(cells, left=2)]
    limits = _limits_of(found)
    if limits:
        lines += ["", "What this record cannot tell:", *(f"- {sentence}" for sentence in limits)]
    return "\n".join(lines)


def _is_error(name: str, found: Calibration) -> bool:
    losses = found.fit.criterion.losses if found.fit.criterion is not None else ()
    return any(name.startswith((f"{loss} before", f"{loss} after")) for loss in losses)


def _line(name: str, before: float, after: float) -> str:
    was = "" if before != before else f"{before:.4g} before, "
    return f"{name}: {was}{after:.4g} after"
