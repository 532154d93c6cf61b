"""Differences to a baseline: where their sample comes from, their intervals, and the verdict in words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import figures
from simmodel.foundation.errors import InputError, shown
from simmodel.metrics.batch import MORE_IS_BETTER
from simmodel.metrics.statistics import Interval, mean_interval, paired_samples, spread_interval
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["RESAMPLES", "Difference", "Source", "compared", "difference_table", "old_order"]

RESAMPLES = {
    "users": "its users drawn anew by whole weeks",
    "shaken": "its submit times shaken",
    "weeks": "the weeks of one run",
}
"""The samples that come from one log, by the argument ``resample=``."""
_TOLD = {
    "run": "one run",
    "seeds": "{count} seeds; differences are paired by seed, intervals are of their mean",
    "logs": "{count} logs; differences are paired by log, intervals are of their mean",
    "users": "{count} resamples of the log, each as long: " + RESAMPLES["users"] + "; intervals are their spread",
    "shaken": "{count} runs of the log, " + RESAMPLES["shaken"] + ": sensitivity to chance in it, not confidence",
    "weeks": "the weeks of one run: intervals are of the mean over its jobs",
}
_FEW = 5  # resamples whose spread says something


@attrs.frozen
class Source:
    """Where the sample of a comparison comes from.

    Parameters
    ----------
    kind
        ``"run"`` (one run, no sample), ``"seeds"``, ``"logs"``, or one of :data:`RESAMPLES`
    count
        the number of samples
    doubts
        why its intervals are an indication at best, one sentence each

    >>> print(Source("seeds", 5))
    5 seeds; differences are paired by seed, intervals are of their mean
    """

    kind: str = "run"
    count: int = 1
    doubts: tuple[str, ...] = ()

    def interval(self, differences: ArrayLike, level: float) -> Interval:
        """Return the interval of paired differences, or the reason why there is none."""
        values = np.asarray(differences, dtype=np.float64)
        known = values[np.isfinite(values)]
        mean = float(known.mean()) if len(known) else nan
        if len(known) < 2:
            return Interval(mean, nan, level, len(known), "one run" if len(values) < 2 else "not measured")
        if self.kind not in ("users", "shaken"):
            return mean_interval(known, level)
        if len(known) < _FEW:
            return Interval(mean, nan, level, len(known), f"{len(known)} runs, {_FEW} needed for their spread")
        return spread_interval(known, level)

    def __str__(self) -> str:
        return _TOLD[self.kind].format(count=f"{self.count:,}")


class Difference(NamedTuple):
    """A metric of a case less that of the baseline.

    ``value`` and ``before`` are the means of the case and of the baseline, ``percent`` the difference in percent of the
    latter, ``lower`` the share of samples in which the case has the lower value, ``log`` the difference in percent on
    the log itself, of which the samples are resamples (else nan).
    """

    platform: str
    workload: str
    policy: str
    metric: str
    baseline: str
    value: float
    before: float
    difference: Interval
    percent: Interval
    lower: float
    log: float
    verdict: str


def compared(
    labels: tuple[str, str, str, str, str],
    values: ArrayLike,
    before: ArrayLike,
    source: Source,
    level: float,
    log: float = nan,
    *,
    interval: Interval | None = None,
    relative: bool = False,
) -> Difference:
    """Return the difference of paired values of a metric.

    Parameters
    ----------
    labels
        platform, workload, policy, metric and baseline
    interval
        of the difference, where it is known otherwise than from the pairs
    relative
        whether each pair counts by its own percentage, as logs of unlike machines do

    >>> compared(("", "", "b", "wait_mean", "a"), [8, 9, 10], [10, 10, 12], Source("seeds", 3), 0.95).verdict
    'better by 15.6 % (2.2 to 29.1)'
    """
    ours, theirs = np.asarray(values, dtype=np.float64), np.asarray(before, dtype=np.float64)
    apart = paired_samples(ours, theirs)
    mean = float(np.nanmean(theirs)) if np.isfinite(theirs).any() else nan
    found = source.interval(apart, level) if interval is None else interval
    with np.errstate(all="ignore"):
        shares = 100 * np.divide(apart, np.abs(theirs), out=np.full(len(apart), nan), where=theirs != 0)
    if relative:
        percent = source.interval(shares, level)
    else:
        scale = 100 / abs(mean) if mean else nan
        percent = attrs.evolve(found, mean=found.mean * scale, half_width=found.half_width * scale)
    known = np.isfinite(apart)
    lower = float((apart[known] < 0).mean()) if known.any() else nan
    value = float(np.nanmean(ours)) if np.isfinite(ours).any() else nan
    verdict = _verdict(labels[3], percent if isfinite(percent.mean) else found, isfinite(percent.mean))
    if source.doubts and not found.why:
        verdict = f"indication only: {verdict}"
    return Difference(*labels, value, mean, found, percent, lower, log, verdict)


def _verdict(metric: str, found: Interval, in_percent: bool) -> str:
    """Return what is known of a difference, in words."""
    unit = " %" if in_percent else ""

    def text(value: float) -> str:
        return f"{value:.1f}" if in_percent else figures(value)

    if found.why:
        equal = "equal" in found.why
        if found.mean == 0 and equal:
            return "the same"
        why = "the runs are all equal" if equal else found.why
        sign = "+" if found.mean > 0 else ""
        return f"{sign}{text(found.mean)}{unit} (no interval: {why})" if isfinite(found.mean) else why
    if 0 in found:
        return f"not decided ({found.low:+.1f} to {found.high:+.1f}{unit})" if in_percent else "not decided"
    sides = sorted(abs(each) for each in (found.low, found.high))
    word = "better" if (found.mean > 0) == (metric in MORE_IS_BETTER) else "worse"
    return f"{word} by {text(abs(found.mean))}{unit} ({text(sides[0])} to {text(sides[1])})"


def difference_table(found: Sequence[Difference]) -> Table:
    """Return one row per difference: its labels, the means, the difference and its percentage with their intervals."""
    columns: dict[str, Any] = {
        name: np.array([getattr(each, name) for each in found], dtype=str)
        for name in ("platform", "workload", "policy", "metric", "baseline")
    }
    columns |= {name: np.array([getattr(each, name) for each in found], dtype=float) for name in ("value", "before")}
    for name in ("difference", "percent"):
        intervals = [getattr(each, name) for each in found]
        columns[name] = np.array([each.mean for each in intervals], dtype=float)
        columns[f"{name}_low"] = np.array([each.low for each in intervals], dtype=float)
        columns[f"{name}_high"] = np.array([each.high for each in intervals], dtype=float)
    columns |= {name: np.array([getattr(each, name) for each in found], dtype=float) for name in ("lower", "log")}
    columns["runs"] = np.array([each.difference.count for each in found], dtype=np.int64)
    columns["verdict"] = np.array([each.verdict for each in found], dtype=str)
    return Table(columns)


def old_order(
    given: Sequence[Any], metric: str | None, is_metric: Callable[[Any], bool], usual: str
) -> tuple[list[Any], str]:
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
            metric = cases.pop(at)
            text = "difference(a, b, metric=...) takes the metric by its name; other orders go in the next version"
            warnings.warn(text, FutureWarning, stacklevel=3)
    if len(cases) != 2:
        raise InputError(f"must be two cases, got {shown(cases)}", place="difference")
    return cases, usual if metric is None else metric
