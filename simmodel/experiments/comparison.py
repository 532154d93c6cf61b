"""Comparison: is one policy, machine or setting better than another on this work, by how much, and how sure.

Every combination of platforms, workloads and policies is a case; each runs once, with many seeds, or on many resamples
of one log. The simulations run on any ``concurrent.futures.Executor``: processes of this computer, or of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from itertools import product
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.ensembles import GivenStudy, study_of
from simmodel.experiments.replication import Replications, notes, numbers_of
from simmodel.experiments.runs import Run, Runs, check_shared_options, old_order, simulated
from simmodel.experiments.stopping import EQUAL, Stop, chosen_seeds, goal_of, stop_of
from simmodel.foundation.display import Cells, Shown, figures, text_table
from simmodel.foundation.errors import InputError, UnknownKey, shown, unknown
from simmodel.foundation.tracebacks import shortened
from simmodel.metrics import Difference, Source, compared, difference_table, share_interval, weekly_sums
from simmodel.metrics.batch import JOB_METRICS, MACHINE_METRICS, TAU, Cut
from simmodel.metrics.comparison import compare as metrics_table, metrics_known, wait_difference
from simmodel.metrics.report import metric_text
from simmodel.metrics.statistics import Interval
from simmodel.metrics.workflow import machine_text
from simmodel.runs.scenario import platform_of, simulate
from simmodel.scheduling.registry import labelled, policy as policy_named
from simmodel.systems.kinds import work_of
from simmodel.work.prepare import Frame, repeatable
from simmodel.work.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size

__all__ = [
    "AXES",
    "SHOWN",
    "Comparison",
    "DrawnWork",
    "Exploration",
    "SideBySide",
    "compare",
    "explore",
    "labelled_policies",
]

SHOWN: dict[str, str] = {
    "wait_mean": "mean wait",
    "wait_p95": "95 % wait less than",
    "bounded_slowdown_mean": "mean bounded slowdown",
    "utilisation": "utilisation",
    "queue_length_mean": "mean queue",
    "makespan": "makespan",
    "fairness_users": "fairness",
    "slr": "SLR",
    "slr_setup": "SLR with setup",
    "speedup": "speedup",
}
"""The metrics in texts and notebooks, if results have them, with their labels; tables have all metrics."""
DrawnWork: TypeAlias = "Callable[..., GivenWork]"
"""A function that takes ``seed=`` and returns a workload."""
Platforms: TypeAlias = "GivenPlatform | Sequence[GivenPlatform] | Mapping[str, GivenPlatform]"
Works: TypeAlias = "GivenWork | DrawnWork | Sequence[GivenWork | DrawnWork] | Mapping[str, GivenWork | DrawnWork]"
Several: TypeAlias = "PolicyLike | Mapping[str, PolicyLike] | Iterable[PolicyLike]"
"""One policy, several, or several by label."""
AXES = ("platform", "workload", "policy")
Cell: TypeAlias = "tuple[str, str, str]"
_OF_SAMPLES = ("makespan", "slr", "slr_setup", "speedup", "utilisation", "wait_mean", "bounded_slowdown_mean", "energy")
_ANSWERED = ("wait_mean", "bounded_slowdown_mean", "slr", "makespan")
_RESAMPLES = ("users", "shaken", "weeks")
_RUNS = 20


def compare(
    platform: Platforms,
    workload: Works,
    policies: Several,
    /,
    *,
    baseline: str | tuple[str, ...] | None = None,
    resample: str | None = None,
    runs: int | None = None,
    seeds: int | Iterable[int] | None = None,
    stop: str | None = None,
    budget: int | None = None,
    study: GivenStudy = None,
    force: bool = False,
    level: float = 0.95,
    executor: Executor | None = None,
    results: bool | None = None,
    progress: bool = False,
    **options: Any,
) -> Comparison:
    """Run every combination of platforms, workloads and policies, and return their metrics and differences.

    Parameters
    ----------
    platform, workload, policies
        one, several in a list, or several by label: any argument of :func:`~simmodel.runs.scenario.simulate`. Several
        workloads are samples: differences are paired by them. A function of a seed, or a text with parameters
        (``"layered:n=100"``), is drawn for each seed. Clusters by name are one system if the policies are brokers
    baseline
        the label of the policy or platform that the others are compared with, or both; default: the first policy, or
        the first platform if there is one policy
    resample
        where the sample comes from if there is one log: ``"users"`` (its users drawn anew by whole weeks, see
        :meth:`.Workload.resampled`), ``"shaken"`` (its submit times moved a little: sensitivity, not confidence, see
        :meth:`.Workload.shaken`) or ``"weeks"`` (the weeks of one run)
    runs
        how many resamples; default: 20
    seeds
        the number of seeds, or the seeds themselves, of work that is drawn; all cases have the same ones
    stop
        when to stop adding seeds: ``"wait_mean ± 5 %"``, ``"wait_mean decided"``; see :mod:`.stopping`
    budget
        with ``stop``, the largest number of seeds; default: 1,000
    study, force
        the file that keeps the measurements of samples, and whether to go on although it is about others, as of
        :func:`~simmodel.experiments.replication.replicate`
    level
        confidence of the intervals, between 0 and 1
    executor
        runs the simulations (processes, threads or Dask); each worker gets the workloads once. Default: this process
    results
        whether the whole results of single runs are kept; default: in this process and on threads. From other
        processes only metrics come back, as :class:`~simmodel.experiments.runs.MeasuredRun`, which simulates its run
        again when asked for jobs and the like
    progress
        show a progress bar, one step per run
    options
        of :func:`~simmodel.runs.scenario.simulate`; all runs have the same. ``policies=`` is for the places below

    Raises
    ------
    InputError
        if there is nothing to compare, a label is duplicate or a name is unknown, raised before any run; or if seeds do
        not move anything: the work does not depend on them

    >>> from simmodel import Job
    >>> jobs = [Job(processors=3, run=10), Job(processors=4, run=100), Job(processors=1, run=10)]
    >>> both = compare(4, jobs, ["fcfs", "easy"])
    >>> both.table["wait_mean"].round(1).tolist()
    [40.0, 3.3]
    >>> both["easy"].jobs["start"].tolist()
    [0.0, 10.0, 0.0]
    >>> both.differences.where(both.differences["metric"] == "makespan")["percent"].round(1).tolist()
    [-8.3]
    """
    chosen = labelled_policies(policies)
    platforms = _platforms(platform, one_system=_are_brokers(chosen, workload))
    workloads = _labelled("workload", workload, one=_is_homes(platforms, workload))
    by = _baseline(baseline, platforms, chosen)
    if resample is not None and resample not in _RESAMPLES:
        raise InputError(f"must be {', '.join(_RESAMPLES)} or None, got {shown(resample)}", place="resample")
    if runs is not None and resample not in ("users", "shaken"):
        raise InputError("is the number of resamples: needs resample='users' or 'shaken'", place="runs")
    if resample is not None and (seeds is not None or stop is not None):
        why = "resamples have the log's own length, so that more of them narrow no interval"
        raise InputError(f"must be left out with resample: {why}", place="stop" if seeds is None else "seeds")
    check_shared_options(options)
    how = _How(study, force, executor, progress, level)
    parts: _Shared = (platforms, workloads, chosen, options)
    if resample in ("users", "shaken"):
        from simmodel.experiments.resamples import doubts_about, drawn_from, read_log

        logs = {label: read_log(work) for label, work in workloads.items()}
        drawn = {label: drawn_from(work, resample) for label, work in logs.items()}
        count = _RUNS if runs is None else runs
        once = how._replace(study=None)  # a file holds the runs of one work: of the resamples
        with shortened:
            found = _sampled((platforms, drawn, chosen, options), seeds=count, seed=options.get("seed", 0), how=how)
            alone = _sampled((platforms, logs, chosen, options), seeds=[int(options.get("seed", 0) or 0)], how=once)
        found_doubts = doubts_about(logs if len(logs) > 1 else next(iter(logs.values())), resample)
        own = attrs.evolve(found, source=Source(resample, count, tuple(found_doubts)), baseline=by, logs=alone.samples)
        return _moved(own, f"resample={resample!r}")
    if seeds is not None or stop is not None:
        with shortened:
            found = _sampled(parts, seeds=seeds, stop=stop, budget=budget, how=how)
        count = len(found.samples) // max(len(found.cells), 1)
        return _moved(attrs.evolve(found, baseline=by, source=Source("seeds", count)), "seeds")
    cells = list(product(platforms, workloads, chosen))
    several = len(workloads) > 1
    each = [Run(_name(cell, cells), chosen[cell[2]], platform=cell[0], workload=cell[1]) for cell in cells]
    measure = weekly_sums if resample == "weeks" else None
    with shortened:
        done = simulated(
            platforms, workloads, each, options, executor=executor, results=results, progress=progress, measure=measure
        )
    source = Source("logs", len(workloads)) if several else Source()
    weeks = None if measure is None else tuple(sums["weeks"] for _, sums in done)
    return Comparison(
        tuple(result for result, _ in done),
        level=level,
        units=_units(platforms),
        source=source if weeks is None else Source("weeks"),
        baseline=by,
        keys=tuple(cells),
        weeks=weeks,
    )


def explore(
    platforms: Platforms,
    workloads: Works,
    candidates: Several,
    /,
    *,
    seeds: int | Iterable[int] | None = None,
    stop: str | None = None,
    until: float | str | None = None,
    budget: int | None = None,
    study: GivenStudy = None,
    force: bool = False,
    executor: Executor | None = None,
    level: float = 0.95,
    progress: bool = False,
    **options: Any,
) -> Exploration:
    """Run every combination of platforms, workloads, policies and seeds, and return means with their intervals.

    It is :func:`compare` with seeds: what does not depend on them is told, not refused. Differences are paired: the
    same draws of work, run times and errors.

    Parameters
    ----------
    platforms, workloads, candidates
        one, several, or by label, as of :func:`compare`; all platforms run jobs, or all run tasks
    seeds
        the number of independent seeds (default: 10), or the seeds themselves; a single seed gives no intervals. With
        ``stop``, the number at the first look (default: 30), or all seeds that may be used
    stop
        when to stop: ``"wait_mean ± 5 %"``, when the interval of each combination is as narrow; ``"wait_mean
        decided"``, when it is decided for each two policies which has the lower metric (paired by seed, with the error
        corrected for the number of looks and pairs: see :mod:`simmodel.experiments.stopping`)
    until
        the instant at which the simulations stop (s)
    budget, study, force, executor, level, progress, options
        as of :func:`compare`

    Raises
    ------
    InputError
        if there is nothing to run, a label is duplicate or a name is unknown; raised before any run

    >>> found = explore("hetsim-slow", "random:tasks=20", ["hrr", "heft"], seeds=3)
    >>> found, found["hetsim-slow", "random:tasks=20", "heft"]["slr"].count
    (<Comparison: 1 platform x 1 workload x 2 policies x 3 seeds>, 3)
    """
    stop, ends = stop_of(stop, until)
    options |= ends
    check_shared_options(options)
    chosen = labelled_policies(candidates)
    parts = (_platforms(platforms), _labelled("workload", workloads), chosen, options)
    how = _How(study, force, executor, progress, level)
    with shortened:
        return _sampled(parts, seeds=seeds, stop=stop, budget=budget, how=how)


def labelled_policies(policies: Several) -> dict[str, PolicyLike]:
    """Return policies by label; raises ``InputError`` if one is unknown or a label is duplicate.

    >>> labelled_policies(["fcfs", "easy"]), labelled_policies("easy")
    ({'fcfs': 'fcfs', 'easy': 'easy'}, {'easy': 'easy'})
    """
    several: Any = policies
    if isinstance(policies, (str, type)) or not isinstance(policies, Iterable):
        several = [policies]
    return labelled(several, "policy", "policies", purpose=" to compare", check=policy_named)


# ---------------------------------------------------------------------- cases


_Shared = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], dict[str, Any]]
"""Platforms, workloads and policies by label, and options."""


class _How(NamedTuple):
    """How samples are run, as of :func:`compare`."""

    study: GivenStudy
    force: bool
    executor: Executor | None
    progress: bool
    level: float


def _sampled(
    parts: _Shared,
    *,
    seeds: int | Iterable[int] | None,
    stop: str | None = None,
    budget: int | None = None,
    how: _How,
    seed: int = 0,
) -> Comparison:
    platforms, workloads, policies, options = parts
    goals = () if stop is None else goal_of(stop)
    numbers = chosen_seeds(seeds, goals, budget, usual=10, fewest=2 if goals else 1, seed=seed)
    about = {"platforms": platforms, "workloads": workloads, "policies": policies, "options": options}
    runs = Runs(
        measure=_measure,
        shared=parts,
        seeds=numbers,
        cells=list(product(platforms, workloads, policies)),
        axes=AXES,
        goals=goals,
        level=how.level,
    )
    ended = runs.run(study_of(how.study, "explore", how.force, **about), how.executor, how.progress)
    decisions = tuple(each.table for each in runs.decisions)
    count = len(runs.table) // max(len(runs.cells), 1)
    source = Source("seeds" if count > 1 else "run", count)
    return Comparison(
        level=how.level, units=_units(platforms), stop=ended, decisions=decisions, source=source, drawn=runs.table
    )


def _measure(shared: _Shared, call: Mapping[str, Any]) -> dict[str, float]:
    platforms, workloads, policies, options = shared
    (platform, workload, policy), seed = (call[axis] for axis in AXES), int(call["seed"])
    work = workloads[workload]
    if callable(work):
        work = work(seed=seed)
    return numbers_of(simulate(platforms[platform], work, policies[policy], **{**options, "seed": seed}))


def _units(platforms: Mapping[str, Any]) -> dict[str, str | None]:
    return {label: getattr(each, "time_unit", None) for label, each in platforms.items()}


def _are_brokers(policies: Mapping[str, PolicyLike], workload: Works) -> bool:
    """Whether policies choose among several clusters: several platforms are then one system."""
    decide = {policy_named(each).decides for each in policies.values()}
    return bool(decide & {"systems", "places"}) or (isinstance(workload, Mapping) and "jobs" not in decide)


def _platforms(given: Platforms, *, one_system: bool = False) -> dict[str, Any]:
    found = {name: platform_of(each) for name, each in _labelled("platform", given, one=one_system).items()}
    if len({work_of(each) for each in found.values()}) > 1:
        raise InputError("must all run jobs or all run tasks, got both", place="platforms")
    return found


def _is_homes(platforms: Mapping[str, Any], workload: Works) -> bool:
    """Whether a mapping of workloads gives each cluster of one system its own."""
    places = [getattr(each, "places", None) for each in platforms.values()]
    return isinstance(workload, Mapping) and all(each is not None and {*workload} <= {*each} for each in places)


def _labelled(kind: str, given: Platforms | Works, *, one: bool = False) -> dict[str, Any]:
    several = not one and (isinstance(given, Mapping) or (isinstance(given, (list, tuple)) and not _is_work(given)))
    items: Any = given if several else [given]
    found = labelled(items, kind, f"{kind}s", label=_label)
    return {label: repeatable(each) for label, each in found.items()}


def _is_work(given: Sequence[object]) -> bool:
    """Whether a list is one workload: jobs, or pairs of an instant and work."""
    from simmodel.work.job import Job

    return bool(given) and all(isinstance(each, (Job, tuple)) for each in given)


_RECORDED = "as recorded"


def _label(given: Any) -> str:
    if given is None:
        return _RECORDED
    if isinstance(given, Frame):
        return "data frame"
    if isinstance(given, (list, tuple)):
        return "jobs"
    if isinstance(given, Mapping):
        return " + ".join(map(str, given))
    if isinstance(given, Path):
        return given.name
    if isinstance(given, str):
        return given.rsplit("/", 1)[-1] if "=" not in given else given
    return str(getattr(given, "name", None) or getattr(given, "__name__", None) or given)


def _name(cell: Cell, cells: Sequence[Cell]) -> str:
    """Return the label of a case: those of its axes that differ."""
    used = [i for i in range(3) if i == 2 or len({each[i] for each in cells}) > 1]
    if len({each[2] for each in cells}) == 1 and len(used) > 1:
        used.remove(2)
    return ", ".join(cell[i] for i in used)


def _baseline(given: str | tuple[str, ...] | None, platforms: Mapping[str, Any], policies: Mapping[str, Any]) -> Cell:
    """Return platform and policy of the baseline; an empty one stands for that of the case."""
    if given is None:
        return ("", "", next(iter(policies))) if len(policies) > 1 else (next(iter(platforms)), "", "")
    platform = policy = ""
    for name in (given,) if isinstance(given, str) else given:
        if name in policies and not policy:
            policy = name
        elif name in platforms and not platform:
            platform = name
        else:
            raise InputError(unknown("case", name, [*policies, *platforms]).message, place="baseline")
    return platform, "", policy


def _moved(found: Comparison, place: str) -> Comparison:
    """Refuse copies of one run."""
    samples = found.samples
    if found.source.count > 1 and not any(found[cell].depends_on_seed for cell in found.cells):
        hint = "'users' or 'weeks' as resample= make a sample of a log"
        raise InputError(f"{EQUAL} ({len(samples) // len(found.cells)} runs a case); {hint}", place=place)
    return found


# ---------------------------------------------------------------------- the answer


def _parted(samples: Table, cells: Sequence[Cell]) -> dict[Cell, Table]:
    """Return the seed and the metrics of the runs of each case."""
    found = {}
    for cell in cells:
        rows = samples.where(np.logical_and.reduce([samples[axis] == cell[i] for i, axis in enumerate(AXES)]))
        found[cell] = Table({name: rows[name] for name in rows.names if name not in AXES})
    return found


def _cells_of(results: tuple[Any, ...]) -> tuple[Cell, ...]:
    return tuple(("", "", str(result.name)) for result in results)


@attrs.frozen(eq=False, repr=False, slots=False)
class Comparison(Shown):
    """Cases side by side, and what they differ by.

    ``comparison["easy"]`` is the result of a case that ran once, and the :class:`Replications` of one that ran often;
    a key names as many of platform, workload and policy as are needed. Iteration yields the results, or the cases.

    Parameters
    ----------
    results
        one of each case, if it ran once: from other processes measured runs, unless ``results=True`` was given
    level
        confidence of the intervals
    units
        the time unit of each platform; ``None`` for a cluster
    stop
        how a sequence of seeds stopped; ``None``: their number was given. The intervals of a sequence are those of
        :func:`~simmodel.metrics.statistics.cautious_interval`
    decisions
        for each goal that is decided, a table of the pairs of policies: ``first, second, difference, low, high,
        replications``, and ``lower``, the one with the lower metric
    source
        where the sample comes from
    baseline
        its platform, workload and policy; an empty one stands for that of each case
    keys
        platform, workload and policy of each result
    drawn
        one row per run: ``platform, workload, policy, seed`` and the metrics; default: those of the results
    logs
        those of the logs themselves, of which others are resamples
    weeks
        sums by week of each result, for the intervals of one run
    """

    results: tuple[Any, ...] = ()
    level: float = 0.95
    units: Mapping[str, str | None] = attrs.field(factory=dict)
    stop: Stop | None = None
    decisions: tuple[Table, ...] = ()
    source: Source = attrs.Factory(Source)
    baseline: Cell = ("", "", "")
    keys: tuple[Cell, ...] = attrs.Factory(lambda own: _cells_of(own.results), takes_self=True)
    drawn: Table | None = None
    logs: Table | None = None
    weeks: tuple[Table, ...] | None = None

    # ------------------------------------------------------------------ numbers

    @cached_property
    def samples(self) -> Table:
        """One row per run: ``platform, workload, policy, seed`` and the metrics."""
        if self.drawn is not None:
            return self.drawn
        numbers = [result.numbers() for result in self.results]
        names = dict.fromkeys(name for each in numbers for name in each)
        columns: dict[str, Any] = {
            axis: np.array([cell[i] for cell in self.keys], dtype=str) for i, axis in enumerate(AXES)
        }
        columns["seed"] = np.zeros(len(numbers), dtype=np.uint64)
        return Table(columns | {name: np.array([each.get(name, nan) for each in numbers]) for name in names})

    @property
    def measures(self) -> list[str]:
        """The names of the metrics."""
        return [name for name in self.samples.names if name not in (*AXES, "seed")]

    def labels(self, axis: str) -> list[str]:
        """Return the labels on an axis: ``"platform"``, ``"workload"`` or ``"policy"``."""
        i = AXES.index(axis)
        return list(dict.fromkeys(cell[i] for cell in self.cells))

    @cached_property
    def cells(self) -> list[Cell]:
        """The cases: platform, workload and policy."""
        if self.drawn is None:
            return list(self.keys)
        columns = (self.drawn[axis].tolist() for axis in AXES)
        return list(dict.fromkeys(zip(*columns, strict=True)))

    def name(self, cell: Cell) -> str:
        """Return the label of a case: those of its axes that differ."""
        return _name(cell, self.cells)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results or self.cells)

    def __len__(self) -> int:
        return len(self.results or self.cells)

    def __getitem__(self, key: str | tuple[str, ...]) -> Any:
        cell = self._cell(key)
        if self.results:
            return self.results[self.cells.index(cell)]
        return self._replications(cell)

    def _replications(self, cell: Cell) -> Replications:
        return Replications(self._rows(cell), self.level, self.stop, self.source.kind in ("users", "shaken"))

    def _cell(self, key: str | tuple[str, ...]) -> Cell:
        given = (key,) if isinstance(key, str) else key
        fitting = [cell for cell in self.cells if all(part in cell for part in given)]
        exact = [cell for cell in self.cells if cell == tuple(given) or self.name(cell) == key]
        if len(exact or fitting) == 1:
            return (exact or fitting)[0]
        if not fitting:
            known = [self.name(cell) for cell in self.cells]
            raise UnknownKey(unknown("result" if self.results else "case", str(key), known).message)
        raise UnknownKey(f"must fit one combination, but {given!r} fits {len(fitting)} of {len(self.cells)}")

    def _rows(self, cell: Cell) -> Table:
        return self._by_cell[cell]

    @cached_property
    def _by_cell(self) -> dict[Cell, Table]:
        return _parted(self.samples, self.cells)

    @cached_property
    def _of_logs(self) -> dict[Cell, Table] | None:
        return None if self.logs is None else _parted(self.logs, self.cells)

    def interval(self, metric: str, key: str | tuple[str, ...]) -> Interval:
        """Return the mean of a metric in one case with its interval; nan if it has one value, or equal ones."""
        return self._replications(self._cell(key))[metric]

    @property
    def table(self) -> Table:
        """One row per case.

        Of results: ``result``, its counts and one column per metric; else ``platform, workload, policy, seeds``, then
        mean, low and high of each metric.
        """
        if self.results:
            return metrics_table(self.results)
        columns: dict[str, list[Any]] = {name: [] for name in (*AXES, "seeds")}
        for cell in self.cells:
            runs = self[cell]
            for axis, label in zip(AXES, cell, strict=True):
                columns[axis].append(label)
            columns["seeds"].append(len(runs.samples))
            for metric, found in runs.intervals(self.measures).items():
                for name, value in ((metric, found.mean), (f"{metric}_low", found.low), (f"{metric}_high", found.high)):
                    columns.setdefault(name, []).append(value)
        return Table(columns)

    def metrics(
        self, metrics: Sequence[str] | None = None, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
    ) -> Table:
        """Return one row per result, one column per metric; see :func:`simmodel.metrics.comparison.compare`.

        Parameters
        ----------
        metrics
            names; default: all
        warmup, cooldown, tau
            of metrics of jobs, as of :func:`simmodel.metrics.batch.summary`
        """
        return metrics_table(self.results, metrics, warmup=warmup, cooldown=cooldown, tau=tau)

    # ------------------------------------------------------------------ differences

    def difference(
        self, *cases: str | tuple[str, ...], metric: str | None = None, level: float | None = None
    ) -> Interval:
        """Return how much more a metric is in the first case than in the second, with its interval.

        Samples are paired. Of one run, the interval of the mean wait tells how far it may move for other jobs like
        these (see :func:`~simmodel.metrics.comparison.wait_difference`); where none holds, the reason is in ``why``.

        Parameters
        ----------
        cases
            the keys of two
        metric
            its name; default: the mean wait of jobs, the makespan of tasks
        level
            confidence of the interval; default: that of the comparison

        >>> both = compare(None, "lublin-128-week", ["fcfs", "easy"])
        >>> round(both.difference("fcfs", "easy").mean)
        72547
        """
        usual = "wait_mean" if "wait_mean" in self.measures else "makespan"
        (first, second), name = old_order(cases, metric, lambda each: each in self.measures, usual)
        if name not in self.measures:
            raise unknown("metric", name, self.measures)
        wanted = self.level if level is None else level
        if name == "wait_mean" and self.results and self.source.kind == "run":
            return wait_difference(self[first], self[second], wanted)
        return self._difference(self._cell(first), self._cell(second), name, level=wanted).difference

    @cached_property
    def differences(self) -> Table:
        """One row per case and metric: its difference to the baseline.

        Columns: ``platform, workload, policy, metric, baseline``; ``value`` and ``before``, the means of the case and
        of the baseline; ``difference`` and ``percent`` with ``_low`` and ``_high``; ``lower``, the share of samples in
        which the case has the lower value; ``runs`` and the ``verdict`` in words. Of resamples, values and differences
        are those of the log itself, with the spread of the resamples as interval, and ``resampled`` is their mean in
        percent. Of several workloads there are rows for each, and for all of them (``workload`` is empty).
        """
        return difference_table([each for metric in self.measures for each in self._compared(metric)])

    def _compared(self, metric: str) -> list[Difference]:
        pairs = [(cell, base) for cell in self.cells if (base := self._base_of(cell)) not in (None, cell)]
        found = [self._difference(cell, base, metric) for cell, base in pairs]
        works = self.labels("workload")
        if len(works) > 1:
            for platform, policy in dict.fromkeys((cell[0], cell[2]) for cell, _ in pairs):
                own = [each for each in found if (each.platform, each.policy) == (platform, policy)]
                labels = (platform, "", policy, metric, own[0].baseline)
                values, before = [each.value for each in own], [each.before for each in own]
                source = attrs.evolve(self.source, kind="logs", count=len(works))
                found.append(compared(labels, values, before, source, self.level, relative=True))
        return found

    def _base_of(self, cell: Cell) -> Cell | None:
        """Return the case that a case is compared with; ``None`` if it did not run."""
        base = tuple(given or own for given, own in zip(self.baseline, cell, strict=True))
        if self.baseline == ("", "", ""):
            base = (cell[0], cell[1], self.cells[0][2])
        return next((each for each in self.cells if each == base), None)

    def _difference(self, cell: Cell, base: Cell, metric: str, *, level: float | None = None) -> Difference:
        wanted = self.level if level is None else level
        labels = (*cell, metric, self.name(base))
        values, before = (self._rows(each)[metric] for each in (cell, base))
        interval = self._of_weeks(cell, base, metric, wanted)
        logs, log = self._of_logs, None
        if logs is not None:
            log = float(logs[cell][metric][0]), float(logs[base][metric][0])
        source = Source() if self.source.kind == "logs" else self.source
        return compared(labels, values, before, source, wanted, log=log, interval=interval)

    def _of_weeks(self, cell: Cell, base: Cell, metric: str, level: float) -> Interval | None:
        """Return the interval of a difference over the weeks of one run, if that is the sample."""
        if self.weeks is None:
            return None
        ours, theirs = (self.weeks[self.cells.index(each)] for each in (cell, base))
        if metric not in ours or len(ours) != len(theirs):
            return None
        return share_interval(ours[metric] - theirs[metric], (ours["jobs"] + theirs["jobs"]) / 2, level)

    # ------------------------------------------------------------------ views

    def shown(self, metrics: Sequence[str] | str | None = None) -> list[str]:
        """Return the metrics of texts and plots; default: the usual ones that have values.

        Raises
        ------
        InputError
            if one was not measured
        """
        if metrics is None:
            known = [name for name in _OF_SAMPLES if name in self.measures and np.isfinite(self.samples[name]).any()]
            return [name for name in known if np.nan_to_num(self.samples[name]).any() or name != "energy"]
        wanted = [metrics] if isinstance(metrics, str) else list(metrics)
        for name in wanted:
            if name not in self.measures:
                raise unknown("metric", name, self.measures)
        return wanted

    def title(self, metric: str) -> str:
        """Return the label of a metric in texts and plots."""
        known = MACHINE_METRICS if any(self.units.values()) else JOB_METRICS
        words = {**SHOWN, "utilisation": "busy"}
        return words.get(metric) or (known[metric][1] if metric in known else metric)

    def _written(self, metric: str, platform: str, value: float) -> str:
        unit = self.units.get(platform)
        if not isfinite(value):
            return "-"
        if metric in MACHINE_METRICS and unit is not None:
            return machine_text(metric, value, unit)
        return metric_text(metric, value) if metric in JOB_METRICS else figures(value, 4)

    def _text(self, metric: str, platform: str, found: Interval) -> str:
        text = self._written(metric, platform, found.mean)
        if not (isfinite(found.mean) and isfinite(found.half_width)):
            return text
        return f"{text} ± {self._written(metric, platform, float(f'{found.half_width:.2g}'))}"

    def _cells(
        self, metrics: Sequence[str] | None = None, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
    ) -> Cells:
        """Return the head and the rows of a table of text; metrics without a value are left out."""
        if self.results:
            return self._result_cells(metrics, warmup, cooldown, tau)
        names = self.shown(metrics)
        used = [axis for axis in AXES if axis == "policy" or len(self.labels(axis)) > 1]
        rows = [[*used, *map(self.title, names)]]
        for cell in self.cells:
            labels = [label for axis, label in zip(AXES, cell, strict=True) if axis in used]
            rows.append([*labels, *(self._text(name, cell[0], self[cell][name]) for name in names)])
        return rows

    def _result_cells(self, metrics: Sequence[str] | None, warmup: Cut, cooldown: Cut, tau: float) -> Cells:
        first = self.results[0]
        wanted = [name for name in SHOWN if name in first.METRICS] if metrics is None else metrics
        table = metrics_table(self.results, wanted, warmup=warmup, cooldown=cooldown, tau=tau)
        known = [name for name in wanted if np.isfinite(table[name].astype(np.float64)).any()]
        labels = metrics_known(self.results)
        head = ["", *(SHOWN.get(name, labels[name][1]) for name in known)]
        rows = [[row["result"], *(first.metric_text(name, row[name]) for name in known)] for row in table.rows()]
        rejected = [result.report.rejected.total() for result in self.results]
        if any(rejected):  # the metrics are without them
            head.append("rejected")
            rows = [[*row, f"{count:,}"] for row, count in zip(rows, rejected, strict=True)]
        return [head, *rows]

    def answer(self, metrics: Sequence[str] | str | None = None) -> list[str]:
        """Return the differences to the baseline as lines of text, a table for each metric, and where they come from.

        Parameters
        ----------
        metrics
            their names; default: mean wait and bounded slowdown of jobs, SLR and makespan of tasks
        """
        usual = [name for name in _ANSWERED if name in self.measures][:2]
        lines: list[str] = []
        for metric in usual if metrics is None else self.shown(metrics):
            lines += self._answered(metric)
        told = [f"only an indication: {each}" for each in self.source.doubts]
        return [*lines, f"sample: {self.source}", *told] if lines else []

    def _answered(self, metric: str) -> list[str]:
        """Return the lines of one metric."""
        found = self._compared(metric)
        if not found:
            return []
        rows, told = [["", "mean", "difference", ""]], []
        without: dict[str, list[str]] = {}
        one, seen = len(self.labels("workload")) == 1, set[Cell]()
        for each in found:
            cell = (each.platform, each.workload, each.policy)
            if not (each.workload or one):
                rows.append([self._name_of_all(cell), "", "", each.verdict])
                continue
            base, name = self._base_of(cell), self.name(cell)
            if base is not None and base not in seen:
                seen.add(base)
                rows.append([self.name(base), self._written(metric, base[0], each.before), "", "baseline"])
            verdict, _, why = (
                each.verdict.partition(": ") if "(no interval: " in each.verdict else (each.verdict, "", "")
            )
            if why:
                verdict += ")"
                without.setdefault(why.removesuffix(")"), []).append(name)
            share = f"lower in {100 * each.lower:.0f} % of the samples"
            if isfinite(each.resampled):
                told.append(f"{name}: {each.resampled:+.1f} % over all samples, {share}")
            elif each.difference.count > 1 and not self.results:
                told.append(f"{name}: {share}")
            size = self._written(metric, each.platform, abs(each.difference.mean))
            apart = ("-" if each.difference.mean < 0 else "+") + size
            rows.append([name, self._written(metric, each.platform, each.value), apart, verdict])
        for why, names in without.items():
            told.append(f"no interval: {why}" if len(without) == 1 else f"{', '.join(names)}: no interval: {why}")
        return [self.title(metric), *text_table(rows, 1, indent=2), *(f"  {line}" for line in told), ""]

    def _name_of_all(self, cell: Cell) -> str:
        """Return the label of a row over all workloads."""
        parts = [cell[i] for i in (0, 2) if len(self.labels(AXES[i])) > 1]
        return ", ".join([f"all {len(self.labels('workload'))} logs", *parts])

    def summary(
        self, metrics: Sequence[str] | None = None, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
    ) -> str:
        """Return tables of text: one line per case, and below them the differences to the baseline.

        Parameters
        ----------
        metrics, warmup, cooldown, tau
            as of :meth:`metrics`; cuts are of results alone
        """
        rows = self._cells(metrics, warmup, cooldown, tau)
        if self.results:
            return "\n".join(text_table(rows))
        left = sum(name in AXES for name in rows[0])
        runs = {" ".join(row[:left]): self[cell] for row, cell in zip(rows[1:], self.cells, strict=True)}
        titles = dict(zip(self.shown(metrics), rows[0][left:], strict=True))
        return "\n".join([*text_table(rows, left), *notes(runs, titles, self.stop)])

    def plot(
        self,
        metrics: Sequence[str] | str | None = None,
        *,
        warmup: Cut = None,
        cooldown: Cut = None,
        tau: float = TAU,
        log: bool = False,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw the differences to the baseline with their intervals; of single runs and several metrics the values.

        Parameters
        ----------
        metrics
            one, whose differences are drawn if there is a sample, or several; default: the usual ones
        warmup, cooldown, tau
            of results, as of :meth:`metrics`
        log
            draw means on a logarithmic axis
        title, figsize, style, save
            as of all plots

        >>> from simmodel import Job
        >>> both = compare(1, {"a": [Job(run=5)], "b": [Job(run=9)]}, ["fcfs", "easy"])
        >>> both.plot("makespan").axes[0].get_yticklabels()[0].get_text()
        'a, easy'
        """
        from simmodel.view.experiment_plots import differences, exploration
        from simmodel.view.plots import comparison

        names = None if metrics is None else self.shown(metrics)
        usual = [name for name in _ANSWERED if name in self.measures][:1] if names is None else names
        if len(usual) == 1 and self.source.kind != "run" and any(self.baseline):
            rows = [_drawn_row(self, each) for each in self._compared(usual[0])]
            bases = {row["baseline"] for row in rows}
            base = bases.pop() if len(bases) == 1 else next(name for name in self.baseline if name)
            label = f"{self.title(usual[0])}: difference to {base}"
            return differences(rows, label, title=title or self._subject(), figsize=figsize, style=style, save=save)
        if not self.results:
            return exploration(self, names, log=log, title=title, figsize=figsize, style=style, save=save)
        return comparison(
            self.results,
            metrics=names,
            warmup=warmup,
            cooldown=cooldown,
            tau=tau,
            title=title,
            figsize=figsize,
            style=style,
            save=save,
        )

    def _subject(self) -> str:
        """Return the title of a picture: the work, the machine, and where the sample comes from."""
        one = [labels[0] for axis in ("workload", "platform") if len(labels := self.labels(axis)) == 1]
        return f"{' on '.join(name for name in one if name not in ('', _RECORDED))}: {self.source}".removeprefix(": ")

    def to_html(self, path: str | Path, *, title: str = "comparison") -> None:
        """Write one HTML file that shows the runs of jobs beside each other and needs nothing else.

        Raises
        ------
        InputError
            the records of the runs are not here: compare with ``results=True``, and without a sample
        """
        from simmodel.foundation.writing import write_text
        from simmodel.view.page.results import comparison_page

        if not self.results:
            raise InputError("shows single runs, which samples do not keep", place="to_html")
        notes = [f"sample: {self.source}"] if self.source.kind != "run" else []
        page = comparison_page(self.results, title, choice=self._told_apart(), differences=self._apart, notes=notes)
        write_text(path, page.html(), ".html")

    def _told_apart(self) -> str:
        """Return what tells the cases apart: the axis with several labels, if there is one."""
        several = [axis for axis in AXES if len(self.labels(axis)) > 1]
        return several[0] if len(several) == 1 else "run" if several else "policy"

    def _apart(self) -> list[tuple[str, list[Interval | None]]]:
        """Return the usual metrics with the difference of each case to its baseline; ``None`` for a baseline."""
        bases = [self._base_of(cell) for cell in self.cells]
        pairs = [(cell, None if base in (None, cell) else base) for cell, base in zip(self.cells, bases, strict=True)]
        usual = [name for name in _ANSWERED if name in self.measures][:2]
        return [(name, [base and self.difference(cell, base, metric=name) for cell, base in pairs]) for name in usual]

    def to_csv(self, path: str | Path) -> None:
        """Write the table of differences, one line per case and metric."""
        self.differences.to_csv(path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return source, metrics and differences as JSON, and write them to ``path`` if given; nan is ``null``.

        >>> import json
        >>> found = json.loads(compare(4, "probe-4", ["fcfs", "easy"]).to_json())
        >>> found["sample"]["kind"], [row["policy"] for row in found["cases"]]
        ('run', ['fcfs', 'easy'])
        """
        from simmodel.results.stores import json_text

        cases = [{**dict(zip(AXES, cell, strict=True)), "metrics": self._means(cell)} for cell in self.cells]
        rows = list(self.differences.rows())
        sample = {"kind": self.source.kind, "count": self.source.count, "doubts": list(self.source.doubts)}
        document = {
            "sample": {**sample, "described": str(self.source), "level": self.level},
            "stop": None if self.stop is None else str(self.stop),
            "cases": cases,
            "differences": [row for row in rows if not row["metric"].startswith("decision_")],
            "timing": {"differences": [row for row in rows if row["metric"].startswith("decision_")]},
        }
        return json_text(document, path)

    def _means(self, cell: Cell) -> dict[str, float]:
        rows = self._rows(cell)
        known = {name: rows[name][np.isfinite(rows[name])] for name in self.measures if name[:9] != "decision_"}
        return {name: float(values.mean()) if len(values) else nan for name, values in known.items()}

    def __repr__(self) -> str:
        if self.results and max(len(self.labels(axis)) for axis in AXES[:2]) == 1:
            return f"<Comparison of {', '.join(result.name for result in self.results)}>"
        parts = []
        for axis, plural in zip(AXES, ("platforms", "workloads", "policies"), strict=True):
            count = len(self.labels(axis))
            parts.append(f"{count} {axis if count == 1 else plural}")
        if self.results:
            return f"<Comparison: {' x '.join(parts)}>"
        seeds = len(self.samples) // max(len(self.cells), 1)
        what = "seed" if self.source.kind in ("run", "seeds") else "resample"
        return f"<Comparison: {' x '.join(parts)} x {seeds} {what}{'' if seeds == 1 else 's'}>"


class SideBySide(Shown):
    """Runs side by side, whose differences are those of a :class:`Comparison` of them."""

    results: Any

    @cached_property
    def compared(self) -> Comparison:
        """The comparison of the runs, the first one of each case."""
        return Comparison(tuple(self.results.values() if isinstance(self.results, Mapping) else self.results))

    @property
    def differences(self) -> Table:
        """The differences to the first run, as :attr:`Comparison.differences`."""
        return self.compared.differences

    def difference(self, first: str, second: str, *, metric: str = "wait_mean") -> Interval:
        """Return how much more a metric is in the first run than in the second: see :meth:`Comparison.difference`."""
        return self.compared.difference(first, second, metric=metric)

    def to_html(self, path: str | Path, *, title: str = "comparison") -> None:
        """Write one HTML file that shows the runs beside each other; see :meth:`Comparison.to_html`."""
        self.compared.to_html(path, title=title)


def _drawn_row(found: Comparison, each: Difference) -> dict[str, Any]:
    """Return a difference as a row of a picture."""
    cell = (each.platform, each.workload, each.policy)
    of_one = bool(each.workload) or len(found.labels("workload")) == 1
    intervals = {"": each.difference, "percent": each.percent}
    row: dict[str, Any] = {"case": found.name(cell) if of_one else found._name_of_all(cell), "baseline": each.baseline}
    for name, interval in intervals.items():
        row |= {name or "difference": interval.mean, f"{name}_low".lstrip("_"): interval.low}
        row[f"{name}_high".lstrip("_")] = interval.high
    return row | {"verdict": each.verdict}


Exploration = Comparison
"""What :func:`explore` returns."""
