"""Replications: a run with many seeds, as many as asked for, or until its intervals are narrow enough.

The runs are made on any ``concurrent.futures.Executor``: processes of this computer, or of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from math import nan
from typing import Any

import attrs
import numpy as np

from simmodel.experiments.ensembles import GivenStudy, study_of
from simmodel.experiments.runs import Runs
from simmodel.experiments.stopping import EQUAL, Stop, chosen_seeds, depends_on_seed, goal_of, stop_of
from simmodel.foundation.display import Cells, Shown
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.tracebacks import shortened
from simmodel.metrics.statistics import Interval, cautious_interval, mean_interval, paired_difference, spread_interval
from simmodel.results.stored import Stored
from simmodel.work.prepare import repeatable
from simmodel.work.table import Table

__all__ = ["Measured", "Replications", "notes", "numbers_of", "replicate"]

Measured = Stored | Mapping[str, float] | float
"""The measurements of a run: a result, numbers by name, or one number."""


def replicate(
    function: Callable[..., Measured],
    seeds: int | Iterable[int] | None = None,
    *wrong: object,
    stop: str | None = None,
    until: float | str | None = None,
    budget: int | None = None,
    study: GivenStudy = None,
    force: bool = False,
    executor: Executor | None = None,
    level: float = 0.95,
    progress: bool = False,
    **arguments: Any,
) -> Replications:
    """Run a function once per seed and return means with their confidence intervals.

    Parameters
    ----------
    function
        ``function(seed)`` returns a number, a mapping of names to numbers, or a result, whose metrics are taken
    seeds
        the number of independent seeds, at least 2, or the seeds themselves; default: 20. With ``stop``, the number
        of replications at the first look (default: 30), or all seeds that may be used
    stop
        how narrow the intervals must be: ``"wait_mean ± 5 %"`` (of the mean), ``"wait_mean +- 30"`` (s), several with
        commas. The function is then run until they are, or the budget is spent, by a rule that keeps the confidence:
        see :mod:`simmodel.experiments.stopping`
    until
        the instant at which a simulation stops (s), passed to the function
    budget
        with ``stop``, the largest number of replications; default: 1,000
    study
        the file that keeps the measurements as the runs end (SQLite): the same call with it goes on where it was
        stopped, also with more seeds; several processes can share the work
    force
        go on with a file whose runs were about something else, such as an older version of a function
    executor
        runs the replications, with the function pickled; default: this process
    level
        confidence of the intervals, between 0 and 1
    progress
        show a progress bar, one step per seed
    arguments
        passed to the function with ``seed=``: ``replicate(simulate, 20, platform=64, workload=..., policy="easy")``
        repeats a simulation; a workload that is a function of a seed is drawn for each seed

    Raises
    ------
    InputError
        if there are fewer than two seeds, or ``stop`` names no goal or a metric that is not measured

    >>> def ten_dice(seed):
    ...     return {"sum": np.random.default_rng(seed).integers(1, 7, 10).sum()}
    >>> dice = replicate(ten_dice, 50)
    >>> 35 in dice["sum"], dice["sum"].count
    (True, 50)
    >>> print(replicate(ten_dice, stop="sum ± 2 %")["sum"])
    34.99 ± 0.69 (95 %, n = 279)

    >>> from functools import partial
    >>> from simmodel import simulate
    >>> from simmodel.generators import lublin
    >>> runs = replicate(simulate, 3, platform=64, workload=partial(lublin, 50, 64), policy="easy")
    >>> sorted(runs.samples.names)[:2], len(runs.samples)
    (['bounded_slowdown_mean', 'bounded_slowdown_median'], 3)
    """
    if wrong or not callable(function):
        form = "a function and seeds, the rest by name: replicate(simulate, 20, platform=64, workload=..., policy=...)"
        raise InputError(f"must be {form}, got {shown(function)}", place="function")
    stop, ends = stop_of(stop, until)
    arguments |= ends
    goals = () if stop is None else goal_of(stop)
    if any(goal.width is None for goal in goals):
        raise InputError(f"must be a width, as 'wait_mean ± 5 %', got {stop!r}: compare decides", place="stop")
    arguments = {name: repeatable(given) for name, given in arguments.items()}
    chosen = chosen_seeds(seeds, goals, budget, usual=20, fewest=2)
    kept = study_of(study, "replicate", force, function=function, arguments=arguments)
    runs = Runs(measure=_sample, shared=(function, arguments), seeds=chosen, goals=goals, level=level)
    with shortened:
        ended = runs.run(kept, executor, progress)
    return Replications(runs.table, level, ended)


def _sample(shared: tuple[Callable[..., Measured], dict[str, Any]], item: Mapping[str, Any]) -> dict[str, float]:
    """Run one replication and return its measurements."""
    (function, arguments), seed = shared, int(item["seed"])
    if callable(arguments.get("workload")):
        arguments = {**arguments, "workload": arguments["workload"](seed=seed)}
    found = function(**arguments, seed=seed) if arguments else function(seed)
    return numbers_of(found)


def numbers_of(found: Measured) -> dict[str, float]:
    """Return measurements as numbers by name: the metrics of a result, a mapping, or one number.

    >>> numbers_of({"sum": 3}), numbers_of(2)
    ({'sum': 3.0}, {'value': 2.0})
    """
    if isinstance(found, Stored):
        return found.numbers()
    if isinstance(found, Mapping):
        return {str(name): _number(value, str(name)) for name, value in found.items()}
    return {"value": _number(found, "value")}


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        hint = "return the result itself, or its numbers()"
        raise InputError(f"must be a number, got {shown(value)}; {hint}", place=f"measurement {name}") from None


@attrs.frozen(eq=False, repr=False)
class Replications(Shown):
    """The measurements of independent replications.

    ``replications["wait_mean"]`` is the mean with its confidence interval.

    Parameters
    ----------
    samples
        one row per replication: ``seed`` and the measurements (``value`` if the function returned a number)
    level
        confidence of the intervals
    stop
        how a sequence of replications stopped; ``None``: their number was given. The intervals of a sequence are those
        of :func:`~simmodel.metrics.statistics.cautious_interval`
    resampled
        whether the samples are resamples of one log: intervals are then their spread, as of
        :func:`~simmodel.metrics.statistics.spread_interval`
    """

    samples: Table
    level: float = 0.95
    stop: Stop | None = None
    resampled: bool = False

    @property
    def table(self) -> Table:
        """One row per metric: ``metric, mean, low, high, count``; metrics with fewer than two values are left out.

        ``low`` and ``high`` are nan if all replications are equal.
        """
        found = self.intervals()
        return Table(
            {
                "metric": np.array(list(found), dtype=str),
                "mean": np.array([interval.mean for interval in found.values()]),
                "low": np.array([interval.low for interval in found.values()]),
                "high": np.array([interval.high for interval in found.values()]),
                "count": np.array([interval.count for interval in found.values()]),
            }
        )

    def _names(self) -> list[str]:
        return [name for name in self.samples.names if name != "seed" and np.isfinite(self.samples[name]).sum() >= 2]

    def __getitem__(self, name: str) -> Interval:
        """Return the mean of a metric with its confidence interval; samples that are nan or infinite do not count.

        It has no interval if all samples are equal, or fewer than two count.
        """
        values = self.samples[name]
        known = values[np.isfinite(values)]
        if len(known) < 2:
            return Interval(float(known.mean()) if len(known) else nan, nan, self.level, len(known), "one replication")
        if self.resampled:
            return spread_interval(known, self.level)
        return (mean_interval if self.stop is None else cautious_interval)(known, self.level)

    def difference(self, other: Replications, name: str = "value", *, metric: str | None = None) -> Interval:
        """Return the interval of the difference to other replications, paired by seed.

        With common random numbers it is far narrower than either interval.

        Parameters
        ----------
        metric, name
            the measurement; ``name`` is its old name

        Raises
        ------
        InputError
            if the seeds differ
        """
        if not np.array_equal(self.samples["seed"], other.samples["seed"]):
            raise InputError("replications must have the same seeds for a paired difference")
        name = metric or name
        return paired_difference(self.samples[name], other.samples[name], self.level)

    def intervals(self, names: Iterable[str] | None = None) -> dict[str, Interval]:
        """Return the interval of each metric, by default of all with two or more values."""
        return {name: self[name] for name in (self._names() if names is None else names)}

    @property
    def depends_on_seed(self) -> bool:
        """Whether anything but the times that decisions took differs between the replications."""
        return depends_on_seed((name, self.samples[name]) for name in self.samples.names if name != "seed")

    def summary(self) -> str:
        """Return a table of text, one line per metric."""
        found = self.intervals()
        width = max(map(len, found), default=0)
        lines = [f"{name:<{width}}  {each}" for name, each in found.items()]
        return "\n".join([*lines, *notes({"": self}, {name: name for name in found}, self.stop)])

    def _cells(self) -> Cells:
        return [["", "mean"], *([name, str(self[name])] for name in self._names())]

    def __repr__(self) -> str:
        short = "" if self.stop is None or self.stop.reached else ", goal not reached"
        return f"<Replications: {len(self.samples)} seeds of {', '.join(self._names())}{short}>"


def notes(found: Mapping[str, Replications], metrics: Mapping[str, str], stop: Stop | None) -> list[str]:
    """Return how a sequence stopped, which replications are equal, and which means extremes carry: one line each.

    Parameters
    ----------
    found
        the replications of each combination by its label
    metrics
        the labels of the metrics that are shown
    """
    fixed = [label for label, each in found.items() if len(each.samples) > 1 and not each.depends_on_seed]
    lines = [] if stop is None else [str(stop)]
    if fixed and (stop is None or EQUAL not in stop.notes):
        lines.append(EQUAL if len(fixed) == len(found) else f"{', '.join(fixed)}: {EQUAL}")
    others = {label: each.intervals(metrics) for label, each in found.items() if label not in fixed}
    kinds: dict[str, Callable[[Interval], bool]] = {
        "no interval, all replications are equal": lambda each: bool(each.why) and each.count > 1,
        "extremes carry the mean, its interval may not hold": lambda each: each.extremes,
    }
    for text, holds in kinds.items():
        places = []
        for name, title in metrics.items():
            labels = [label for label, intervals in others.items() if holds(intervals[name])]
            if labels:
                places.append(title + (f" ({', '.join(labels)})" if len(labels) < len(found) else ""))
        lines += [f"{text}: {', '.join(places)}"] if places else []
    return lines
