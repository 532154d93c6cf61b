"""Runs side by side: simulations of one workload under several policies, and numbers measured in cells with seeds.

They run on any ``concurrent.futures.Executor``: processes of this computer, or of a cluster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cached_property, partial
from itertools import combinations
from math import nan
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import attrs
import numpy as np

from simmodel.experiments.calls import map_calls
from simmodel.experiments.ensembles import Numbers, measured_calls
from simmodel.experiments.stopping import (
    EQUAL,
    FEW,
    Decisions,
    Goal,
    Seeds,
    Stop,
    checked_metrics,
    depends_on_seed,
    finite_interval,
    in_rounds,
)
from simmodel.foundation.display import Cells, Shown, texts
from simmodel.foundation.errors import ByName, InputError, SimmodelError, shown
from simmodel.metrics.statistics import Interval, paired_samples
from simmodel.results.stored import Stored
from simmodel.runs.scenario import simulate
from simmodel.work.prepare import repeatable
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.experiments.trials import Study
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork

__all__ = ["MeasuredRun", "Run", "Runs", "check_shared_options", "old_order", "simulated"]

Cell: TypeAlias = "tuple[str, ...]"
"""The labels of a combination: platform, workload and policy, or none."""
Measure: TypeAlias = "Callable[[Any, bool], Mapping[str, Any]]"
"""A function of a result, and of whether the result is kept, that measures values besides its metrics."""
Shared = TypeVar("Shared")
Key = TypeVar("Key", bound="str | tuple[str, ...]")
_ABOUT = ("processors", "started", "ended", "report", "decisions")


# ---------------------------------------------------------------------- results


class Run(NamedTuple):
    """A simulation: its label, policy, labels of platform and workload, seed (``None``: that of the options).

    ``kept`` says whether its result is kept.
    """

    label: str
    policy: PolicyLike
    seed: int | None = None
    kept: bool = True
    platform: str = ""
    workload: str = ""


def simulated(
    platforms: Mapping[str, GivenPlatform],
    workloads: Mapping[str, GivenWork],
    runs: Sequence[Run],
    options: Mapping[str, Any],
    *,
    executor: Executor | None,
    results: bool | None,
    progress: bool,
    part: Callable[[Any], Any] | None = None,
    measure: Measure | None = None,
) -> list[tuple[Any, Mapping[str, Any]]]:
    """Simulate the runs; return of each its result, its metrics or ``None``, and its measurements.

    Parameters
    ----------
    platforms, workloads
        by label, as the runs name them
    options
        of :func:`~simmodel.runs.scenario.simulate`
    executor, results, progress
        as of :func:`~simmodel.experiments.comparison.compare`
    part
        returns the part of a result that counts; default: all of it
    measure
        called in the process of the run

    Raises
    ------
    InputError
        the runs cannot share the options
    """
    check_shared_options(options)
    if results is None:  # if they need not be sent from another process
        results = executor is None or isinstance(executor, ThreadPoolExecutor)
    works = {label: repeatable(work) for label, work in workloads.items()}
    shared = _Shared(platforms, works, options, results, part, measure)
    found = map_calls(_simulated, shared, runs, executor, progress)
    for (result, _), run in zip(found, runs, strict=True):
        if isinstance(result, MeasuredRun):
            result.repeated_by(partial(_again, shared, run))
    return found


def check_shared_options(options: Mapping[str, Any]) -> None:
    """Refuse options of a run that several runs cannot share.

    Raises
    ------
    InputError
        if the runs would write their records to one file, or ``until`` is a rule of stopping
    """
    if isinstance(until := options.get("until"), str) and ("decided" in until or "±" in until or "+-" in until):
        raise InputError(f"must be a time; the rule of stopping is stop={until!r}", place="until")
    if options.get("stream") is not None:
        raise InputError("must be None: several runs would write their records to one file", place="stream")


class _Shared(NamedTuple):
    """The inputs common to all runs of a comparison."""

    platforms: Mapping[str, GivenPlatform]
    workloads: Mapping[str, GivenWork]
    options: Mapping[str, Any]
    whole: bool
    part: Callable[[Any], Any] | None
    measure: Measure | None


def _result(shared: _Shared, run: Run) -> Any:
    options = shared.options if run.seed is None else {**shared.options, "seed": run.seed}
    platform, workload = shared.platforms[run.platform], shared.workloads[run.workload]
    result = simulate(platform, workload, run.policy, **options, name=run.label)
    return result if shared.part is None else shared.part(result)


def _simulated(shared: _Shared, run: Run) -> tuple[Any, Mapping[str, Any]]:
    result = _result(shared, run)
    more = {} if shared.measure is None else shared.measure(result, run.kept)
    if not run.kept:
        return None, more
    return result if shared.whole or not isinstance(result, Stored) else MeasuredRun(result), more


def _again(shared: _Shared, run: Run, seed: int | None) -> Any:
    """Return the result of a run that is simulated again, with its seed and nobody watching."""
    own = {name: value for name, value in shared.options.items() if name not in ("observers", "progress")}
    return _result(shared._replace(options=own), run if seed is None else run._replace(seed=seed))


class MeasuredRun(Shown):
    """A run whose metrics came back from another process, and not its result.

    It has the metrics with their texts, ``report``, ``decisions``, ``started``, ``ended`` and ``processors``. Anything
    else is read from :attr:`result`, for which the run is simulated again, in this process and once.

    Parameters
    ----------
    result
        the result of the run

    Attributes
    ----------
    name
        the name of the run
    METRICS, COUNTS
        as of the result

    >>> from simmodel import Job, simulate
    >>> run = MeasuredRun(simulate(4, [Job(processors=3, run=10), Job(processors=2, run=5)], "fcfs"))
    >>> run.metrics()["wait_mean"], run.metric_text("wait_mean", 90.0)
    (5.0, '1 min 30 s')
    """

    def __init__(self, result: Stored) -> None:
        self.name = result.name
        self.METRICS, self.COUNTS = result.METRICS, result.COUNTS
        self._metrics = result.metrics()
        self._text = result.metric_texts()
        self._about = {name: getattr(result, name) for name in _ABOUT if hasattr(result, name)}
        self._seed = result.scenario.get("seed")
        self._again: Callable[[int | None], Stored] | None = None

    def repeated_by(self, again: Callable[[int | None], Stored]) -> None:
        """Set the function that simulates the run again, given its seed, and returns its result."""
        self._again = again

    def metrics(self, **cuts: Any) -> dict[str, Any]:
        """Return the metrics of the run by name; with cuts (as of the result's method), those of :attr:`result`."""
        return self.result.metrics(**cuts) if cuts else ByName("metric", self._metrics)

    def numbers(self) -> dict[str, float]:
        """Return the metrics that are numbers; nan if undefined."""
        return ByName("metric", {name: float(self._metrics[name]) for name in self.METRICS})

    def metric_text(self, name: str, value: float) -> str:
        """Return one of the ``METRICS`` with its unit as text."""
        return self._text(name, value)

    @cached_property
    def result(self) -> Any:
        """The whole result of the run, which is simulated again.

        Raises
        ------
        SimmodelError
            if the run cannot be repeated: its policy or its workload differ from call to call
        """
        if self._again is None:
            raise SimmodelError(f"the run {self.name!r} kept its metrics only: ask for results=True")
        found = self._again(self._seed)
        if _timeless(found.metrics()) != _timeless(self._metrics):
            message = "has other metrics when it is simulated again: ask for results=True"
            raise SimmodelError(f"the run {self.name!r} {message}")
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        about = self._about
        return about[name] if name in about else getattr(self.result, name)

    def _cells(self) -> Cells:
        return [["", self.name], *([name, *texts([value])] for name, value in self._metrics.items())]

    def __repr__(self) -> str:
        return f"<MeasuredRun {self.name}: {len(self.METRICS)} metrics>"


def _timeless(metrics: Mapping[str, Any]) -> str:
    """Return metrics as text, nan included, without the times that decisions took."""
    return repr({name: value for name, value in metrics.items() if not name.startswith("decision_")})


# ---------------------------------------------------------------------- numbers


@attrs.define(kw_only=True, eq=False)
class Runs(Generic[Shared]):
    """Runs that measure numbers: every cell with every seed, until it is enough.

    Parameters
    ----------
    measure
        returns the numbers of a run, from ``shared`` and the labels of its cell by axis with its ``seed``, as texts:
        the parts kept in a study
    shared
        sent once to each worker
    cells
        the combinations of platform, workload and policy; default: a single one without labels
    axes
        the names of these labels
    seeds
        of each cell
    goals
        the goals to reach; none: the first number of seeds is run
    level
        confidence of the intervals, between 0 and 1

    >>> runs = Runs(measure=lambda two, item: {"x": two * int(item["seed"])}, shared=2, seeds=Seeds(2, 2, (5, 6)))
    >>> runs.run(), runs.table["x"].tolist()
    (None, [10.0, 12.0])
    """

    measure: Callable[[Shared, Mapping[str, Any]], Numbers]
    shared: Shared
    seeds: Seeds
    cells: Sequence[Cell] = ((),)
    axes: Sequence[str] = ()
    goals: tuple[Goal, ...] = ()
    level: float = 0.95
    decisions: list[Decisions] = attrs.field(init=False)
    _found: dict[Cell, list[Numbers]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._found = {cell: [] for cell in self.cells}
        pairs = [(a[0], a[1], a[2], b[2]) for a, b in combinations(self.cells, 2) if a[:2] == b[:2]]
        decided = [goal for goal in self.goals if goal.width is None]
        self.decisions = [Decisions.of(goal, pairs, self.seeds, self.level, len(decided)) for goal in decided]

    def run(self, study: Study | None = None, executor: Executor | None = None, progress: bool = False) -> Stop | None:
        """Run as many seeds as reach the goals; return how the sequence stopped, ``None`` without goals.

        Parameters
        ----------
        study, executor, progress
            as of :func:`~simmodel.experiments.ensembles.measured_calls`
        """

        def more(begin: int, end: int) -> None:
            seeds = self.seeds.part(begin, end)
            labels = [dict(zip(self.axes, cell, strict=True)) for cell in self.cells]
            items = [{**cell, "seed": str(seed)} for cell in labels for seed in seeds]
            found = measured_calls(self.measure, self.shared, items, study=study, executor=executor, progress=progress)
            for i, samples in enumerate(self._found.values()):
                samples.extend(found[i * len(seeds) : (i + 1) * len(seeds)])

        if not self.goals:
            more(0, self.seeds.first)
            return None
        few = min(FEW, self.seeds.first)
        more(0, few)
        checked_metrics(self.goals, self._names)
        if not any(depends_on_seed([(each, self._values(cell, each)) for each in self._names]) for cell in self._found):
            self._needed(few)
            return Stop(self.goals, reached=False, count=few, notes=(EQUAL,))
        first, most = self.seeds.first, self.seeds.most
        count, enough = in_rounds(lambda begin, end: more(max(begin, few), end), self._needed, first, most)
        return self._stop(count, enough)

    def _stop(self, count: int, enough: bool) -> Stop:
        """Return how the sequence stopped: the goals not reached, equal replications, and means of extremes."""
        found = [
            (f"{', '.join(cell)}: {goal.metric} {each}".removeprefix(": "), each, goal.needed(each) > each.count)
            for goal, cell, each in self._widths()
        ]
        found += [line for each in self.decisions for line in each.lines]
        left = [line for line, _, is_open in found if is_open]
        equal = [line for line, each, _ in found if each.why]
        carried = [f"extremes carry the mean of {line}" for line, each, left in found if each.extremes and not left]
        return Stop(self.goals, enough and not equal, count, tuple(left), (*equal, *carried))

    def _values(self, cell: Cell, metric: str) -> NDArray[np.float64]:
        return np.array([each.get(metric, nan) for each in self._found[cell]], dtype=np.float64)

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for samples in self._found.values() for each in samples for name in each))

    def _needed(self, count: int) -> float:
        """Return about how many seeds would reach all goals, if as many of them as so far give a number."""
        widths = [goal.needed(each) * count / max(each.count, 1) for goal, _, each in self._widths()]
        return max([*widths, *(each.look(partial(self._differences, each.goal)) for each in self.decisions)])

    def _widths(self) -> Iterator[tuple[Goal, Cell, Interval]]:
        for goal in self.goals:
            for cell in self._found if goal.width is not None else ():
                yield goal, cell, finite_interval(self._values(cell, goal.metric), self.level)

    def _differences(self, goal: Goal, pair: tuple[str, str, str, str]) -> NDArray[np.float64]:
        platform, workload, first, second = pair
        a, b = (self._values((platform, workload, policy), goal.metric) for policy in (first, second))
        return paired_samples(a, b)

    @property
    def table(self) -> Table:
        """One row per run: the labels of its cell, seed and numbers."""
        rows = [(cell, each) for cell, samples in self._found.items() for each in samples]
        seeds = [seed for samples in self._found.values() for seed in self.seeds.part(0, len(samples))]
        labels = {axis: np.array([cell[i] for cell, _ in rows], dtype=str) for i, axis in enumerate(self.axes)}
        numbers = {name: np.array([each.get(name, nan) for _, each in rows], dtype=np.float64) for name in self._names}
        return Table({**labels, "seed": np.array(seeds, dtype=np.uint64), **numbers})


def old_order(
    given: Sequence[Key], metric: str | None, is_metric: Callable[[Key], bool], usual: str
) -> tuple[list[Key], str]:
    """Return the two cases and the metric of ``difference(a, b, metric=...)``; old positional orders give a warning.

    Raises
    ------
    InputError
        there are more or fewer than two cases

    >>> old_order(["sjf", "easy"], None, lambda name: name == "slr", "slr")
    (['sjf', 'easy'], 'slr')
    """
    cases = list(given)
    if len(cases) == 3 and metric is None:
        at = next((i for i in (0, 2) if isinstance(cases[i], str) and is_metric(cases[i])), None)
        if at is not None:
            metric = str(cases.pop(at))
            text = "difference(a, b, metric=...) takes the metric by its name; other orders go in the next version"
            warnings.warn(text, FutureWarning, stacklevel=3)
    if len(cases) != 2:
        raise InputError(f"must be two cases, got {shown(cases)}", place="difference")
    return cases, usual if metric is None else metric
