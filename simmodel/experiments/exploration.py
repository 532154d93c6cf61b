"""Explorations: every combination of platforms, workloads, policies and seeds, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import product
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.comparison import SHOWN, labelled_policies
from simmodel.experiments.ensembles import GivenStudy, study_of
from simmodel.experiments.replication import Replications, notes, numbers_of
from simmodel.experiments.runs import Runs, check_shared_options
from simmodel.experiments.stopping import Stop, chosen_seeds, goal_of
from simmodel.foundation.display import Cells, Shown, figures, text_table
from simmodel.foundation.errors import InputError, UnknownKey
from simmodel.metrics.batch import JOB_METRICS, MACHINE_METRICS
from simmodel.metrics.report import metric_text
from simmodel.metrics.statistics import Interval, paired_difference
from simmodel.metrics.workflow import machine_text
from simmodel.runs.scenario import platform_of, simulate
from simmodel.scheduling.registry import labelled
from simmodel.systems.kinds import work_of
from simmodel.view.experiment_plots import exploration
from simmodel.work.prepare import Frame, repeatable
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork

__all__ = ["Exploration", "explore"]

DrawnWork: TypeAlias = "Callable[..., GivenWork]"
"""A function that takes ``seed=`` and returns a workload."""
AXES = ("platform", "workload", "policy")
_WORDS = {**SHOWN, "utilisation": "busy"}
_SHOWN = ("makespan", "slr", "slr_setup", "speedup", "utilisation", "wait_mean", "bounded_slowdown_mean", "energy")


def explore(
    platforms: GivenPlatform | Sequence[GivenPlatform] | Mapping[str, GivenPlatform],
    workloads: GivenWork | DrawnWork | Sequence[GivenWork | DrawnWork] | Mapping[str, GivenWork | DrawnWork],
    candidates: Mapping[str, PolicyLike] | Iterable[PolicyLike],
    /,
    *,
    seeds: int | Iterable[int] | None = None,
    until: Any = None,
    budget: int | None = None,
    study: GivenStudy = None,
    force: bool = False,
    executor: Executor | None = None,
    level: float = 0.95,
    progress: bool = False,
    **options: Any,
) -> Exploration:
    """Run every combination of platforms, workloads, policies and seeds, and return the measurements.

    All combinations have the same seeds, so differences between policies are paired: the same draws of work, run times
    and errors.

    Parameters
    ----------
    platforms, workloads
        one, several, or by label: any argument of :func:`~simmodel.runs.scenario.simulate`; all platforms run jobs,
        or all run tasks. A text with parameters (``"layered:n=100"``) or a function of a seed is drawn for each seed
    candidates
        the policies to compare (names, objects or functions of a view), or ``{label: policy}``
    seeds
        the number of independent seeds (default: 10), or the seeds themselves; a single seed gives no intervals. With
        ``until``, the number at the first look (default: 30), or all seeds that may be used
    until
        when to stop: ``"wait_mean ± 5 %"``, when the interval of each combination is as narrow; ``"wait_mean
        decided"``, when it is decided for each two policies which has the lower metric (paired by seed, with the error
        corrected for the number of looks and pairs: see :mod:`simmodel.experiments.stopping`). A number is the
        ``until=`` of the simulations
    budget
        with ``until``, the largest number of seeds; default: 1,000
    study
        the file that keeps the measurements as the runs end (SQLite): the same call with it goes on where it was
        stopped, also with more seeds; several processes can share the work
    force
        go on with a file whose runs were about something else, such as an older version of a function
    executor
        runs the simulations, with all arguments pickled; default: this process
    level
        confidence of the intervals, between 0 and 1
    progress
        show a progress bar, one step per run
    options
        of :func:`~simmodel.runs.scenario.simulate`, for every run; ``policies=`` is for the places below

    Raises
    ------
    InputError
        if there is nothing to run, a label is duplicate or a name is unknown; raised before any run

    >>> found = explore("hetsim-slow", "random:tasks=20", ["hrr", "heft"], seeds=3)
    >>> found, found["hetsim-slow", "random:tasks=20", "heft"]["slr"].count
    (<Exploration: 1 platform x 1 workload x 2 policies x 3 seeds>, 3)
    """
    goals = goal_of(until) if isinstance(until, str) else ()
    if until is not None and not goals:
        options["until"] = until
    check_shared_options(options)
    spread = {"platform": _platforms(platforms), "workload": _labelled("workload", workloads)}
    chosen = labelled_policies(candidates)
    numbers = chosen_seeds(seeds, goals, budget, usual=10, fewest=2 if goals else 1)
    about = {"platforms": spread["platform"], "workloads": spread["workload"], "policies": chosen, "options": options}
    kept = study_of(study, "explore", force, **about)
    runs = Runs(
        measure=_measure,
        shared=(spread["platform"], spread["workload"], chosen, options),
        seeds=numbers,
        cells=list(product(spread["platform"], spread["workload"], chosen)),
        axes=AXES,
        goals=goals,
        level=level,
    )
    stop = runs.run(kept, executor, progress)
    units = {label: getattr(each, "time_unit", None) for label, each in spread["platform"].items()}
    return Exploration(runs.table, level, units, stop, tuple(each.table for each in runs.decisions))


def _platforms(given: GivenPlatform | Sequence[GivenPlatform] | Mapping[str, GivenPlatform]) -> dict[str, Any]:
    found = {name: platform_of(each) for name, each in _labelled("platform", given).items()}
    if len({work_of(each) for each in found.values()}) > 1:
        raise InputError("must all run jobs or all run tasks, got both", place="platforms")
    return found


def _labelled(kind: str, given: Any) -> dict[str, Any]:
    several = isinstance(given, Mapping) or (isinstance(given, (list, tuple)) and not _is_work(given))
    found = labelled(given if several else [given], kind, f"{kind}s", label=_label)
    return {label: repeatable(each) for label, each in found.items()}


def _is_work(given: Sequence[object]) -> bool:
    """Whether a list is one workload: jobs, or pairs of an instant and work."""
    from simmodel.work.job import Job

    return bool(given) and all(isinstance(each, (Job, tuple)) for each in given)


def _label(given: Any) -> str:
    if isinstance(given, Frame):
        return "data frame"
    if isinstance(given, Path):
        return given.name
    if isinstance(given, str):
        return given.rsplit("/", 1)[-1] if "=" not in given else given
    return str(getattr(given, "name", None) or getattr(given, "__name__", None) or given)


_Shared = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], dict[str, Any]]
"""Platforms, workloads and policies by label, and options."""


def _measure(shared: _Shared, call: Mapping[str, Any]) -> dict[str, float]:
    platforms, workloads, policies, options = shared
    (platform, workload, policy), seed = (call[axis] for axis in AXES), int(call["seed"])
    work = workloads[workload]
    if callable(work):
        work = work(seed=seed)
    return numbers_of(simulate(platforms[platform], work, policies[policy], seed=seed, **options))


@attrs.frozen(eq=False, repr=False)
class Exploration(Shown):
    """The measurements of an exploration.

    ``exploration["machine", "work", "heft"]`` are the replications of one combination; an axis with a single label may
    be left out: ``exploration["heft"]``.

    Parameters
    ----------
    samples
        one row per run: ``platform, workload, policy, seed`` and the metrics
    level
        confidence of the intervals
    units
        the time unit of each platform; ``None`` for a cluster
    stop
        how a sequence stopped; ``None``: the number of seeds was given. The intervals of a sequence are those of
        :func:`~simmodel.metrics.statistics.cautious_interval`
    decisions
        for each goal that is decided, a table of the pairs of policies: ``first, second, difference, low, high,
        replications``, and ``lower``, the one with the lower metric
    """

    samples: Table
    level: float = 0.95
    units: Mapping[str, str | None] = attrs.field(factory=dict)
    stop: Stop | None = None
    decisions: tuple[Table, ...] = ()

    @property
    def metrics(self) -> list[str]:
        return [name for name in self.samples.names if name not in (*AXES, "seed")]

    def labels(self, axis: str) -> list[str]:
        """Return the labels on an axis: ``"platform"``, ``"workload"`` or ``"policy"``."""
        return list(dict.fromkeys(self.samples[axis].tolist()))

    @property
    def cells(self) -> list[tuple[str, str, str]]:
        """The combinations: platform, workload and policy."""
        platforms, workloads, policies = (self.labels(axis) for axis in AXES)
        return list(product(platforms, workloads, policies))

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        return iter(self.cells)

    def __getitem__(self, key: str | tuple[str, ...]) -> Replications:
        return Replications(self._rows(self._cell(key)), self.level, self.stop)

    def _cell(self, key: str | tuple[str, ...]) -> tuple[str, str, str]:
        given = (key,) if isinstance(key, str) else key
        fitting = [cell for cell in self.cells if all(part in cell for part in given)]
        if len(given) == 3:
            fitting = [cell for cell in self.cells if cell == tuple(given)]
        if len(fitting) != 1:
            raise UnknownKey(f"must fit one combination, but {given!r} fits {len(fitting)} of {len(self.cells)}")
        return fitting[0]

    def _rows(self, cell: tuple[str, str, str]) -> Table:
        here = np.ones(len(self.samples), dtype=bool)
        for axis, label in zip(AXES, cell, strict=True):
            here &= self.samples[axis] == label
        rows = self.samples.where(here)
        return Table({name: rows[name] for name in ("seed", *self.metrics)})

    def interval(self, metric: str, key: str | tuple[str, ...]) -> Interval:
        """Return the mean of a metric in one combination with its interval; nan if it has one value, or equal ones."""
        return self[key][metric]

    def difference(self, metric: str, first: str | tuple[str, ...], second: str | tuple[str, ...]) -> Interval:
        """Return the interval of the difference of a metric between two combinations, paired by seed.

        >>> found = explore("hetsim-slow", "layered:n=20", ["hrr", "heft"], seeds=5)
        >>> found.difference("makespan", "hrr", "heft").mean > 0
        True
        """
        a, b = (self._rows(self._cell(key))[metric] for key in (first, second))
        return paired_difference(a, b, self.level)

    @property
    def table(self) -> Table:
        """One row per combination: ``platform, workload, policy, seeds``, then mean, low and high of each metric."""
        columns: dict[str, list[Any]] = {name: [] for name in (*AXES, "seeds")}
        for cell in self.cells:
            runs = self[cell]
            for axis, label in zip(AXES, cell, strict=True):
                columns[axis].append(label)
            columns["seeds"].append(len(runs.samples))
            for metric, found in runs.intervals(self.metrics).items():
                for name, value in ((metric, found.mean), (f"{metric}_low", found.low), (f"{metric}_high", found.high)):
                    columns.setdefault(name, []).append(value)
        return Table(columns)

    # ------------------------------------------------------------------ views

    def shown(self, metrics: Sequence[str] | None = None) -> list[str]:
        """Return the metrics of texts and plots; default: the usual ones that have values.

        Raises
        ------
        InputError
            if one was not measured
        """
        if metrics is None:
            known = [name for name in _SHOWN if name in self.metrics and np.isfinite(self.samples[name]).any()]
            return [name for name in known if np.nan_to_num(self.samples[name]).any() or name != "energy"]
        for name in metrics:
            if name not in self.metrics:
                from simmodel.foundation.errors import unknown

                raise unknown("metric", name, self.metrics)
        return list(metrics)

    def title(self, metric: str) -> str:
        """Return the label of a metric in texts and plots."""
        known = MACHINE_METRICS if any(self.units.values()) else JOB_METRICS
        return _WORDS.get(metric) or (known[metric][1] if metric in known else metric)

    def _text(self, metric: str, platform: str, found: Interval) -> str:
        unit = self.units.get(platform)

        def written(value: float) -> str:
            if metric in MACHINE_METRICS and unit is not None:
                return machine_text(metric, value, unit)
            return metric_text(metric, value) if metric in JOB_METRICS else figures(value, 4)

        if not isfinite(found.mean):
            return "-"
        return written(found.mean) + (f" ± {_short(written, found.half_width)}" if isfinite(found.half_width) else "")

    def _cells(self, metrics: Sequence[str] | None = None) -> Cells:
        names = self.shown(metrics)
        used = [axis for axis in AXES if axis == "policy" or len(self.labels(axis)) > 1]
        rows = [[*used, *map(self.title, names)]]
        for cell in self.cells:
            labels = [label for axis, label in zip(AXES, cell, strict=True) if axis in used]
            rows.append([*labels, *(self._text(name, cell[0], self[cell][name]) for name in names)])
        return rows

    def summary(self, metrics: Sequence[str] | None = None) -> str:
        """Return a table of text, one line per combination: means with the half widths of their intervals.

        Below them: how a sequence stopped, which replications are equal, and which means extremes carry.
        """
        rows = self._cells(metrics)
        left = sum(name in AXES for name in rows[0])
        runs = {" ".join(row[:left]): self[cell] for row, cell in zip(rows[1:], self.cells, strict=True)}
        titles = dict(zip(self.shown(metrics), rows[0][left:], strict=True))
        return "\n".join([*text_table(rows, left), *notes(runs, titles, self.stop)])

    plot = exploration

    def __repr__(self) -> str:
        parts = []
        for axis, plural in zip(AXES, ("platforms", "workloads", "policies"), strict=True):
            count = len(self.labels(axis))
            parts.append(f"{count} {axis if count == 1 else plural}")
        seeds = len(self.samples) // max(len(self.cells), 1)
        return f"<Exploration: {' x '.join(parts)} x {seeds} seed{'' if seeds == 1 else 's'}>"


def _short(written: Callable[[float], str], value: float) -> str:
    """Return a half width with two figures."""
    return str(written(float(f"{value:.2g}")))
