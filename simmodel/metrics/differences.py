"""Differences to a baseline: where their sample comes from, their intervals, and the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import Fields, figures
from simmodel.metrics.batch import MORE_IS_BETTER
from simmodel.metrics.statistics import Interval, mean_interval, paired_samples, spread_interval
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Difference", "Source", "compared", "difference_table"]

_TOLD = {
    "run": "one run",
    "seeds": "{count} seeds; differences are paired by seed, intervals are of their mean",
    "logs": "{count} logs; differences are paired by log, intervals are of their mean",
    "users": "{count} resamples of the log, each as long: users drawn anew by whole weeks; intervals are their spread",
    "shaken": "{count} runs of the log, its submit times shaken: sensitivity to chance in it, not confidence",
    "weeks": "the weeks of one run: intervals are of the mean over its jobs",
}
_FEW = 5  # resamples whose spread says something


@attrs.frozen(repr=False)
class Source(Fields):
    """Where the sample of a comparison comes from.

    Parameters
    ----------
    kind
        ``"run"`` (one run, no sample), ``"seeds"``, ``"logs"``; from one log: ``"users"``, ``"shaken"`` or ``"weeks"``
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
    latter, and ``lower`` the share of samples in which the case has the lower value. Of resamples of one log they are
    those of the log itself, with the spread of the resamples as interval; ``resampled`` is their mean in percent.
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
    resampled: float
    verdict: str


def compared(
    labels: tuple[str, str, str, str, str],
    values: ArrayLike,
    before: ArrayLike,
    source: Source,
    level: float,
    *,
    log: tuple[float, float] | None = None,
    interval: Interval | None = None,
    relative: bool = False,
) -> Difference:
    """Return the difference of paired values of a metric.

    Parameters
    ----------
    labels
        platform, workload, policy, metric and baseline
    log
        the values of the log of which the pairs are resamples: their spread is put around its difference
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
    resampled = nan
    value = float(np.nanmean(ours)) if np.isfinite(ours).any() else nan
    if log is not None:
        resampled = 100 * found.mean / abs(mean) if mean else nan
        value, mean = log
        found = attrs.evolve(found, mean=value - mean)
    with np.errstate(all="ignore"):
        shares = 100 * np.divide(apart, np.abs(theirs), out=np.full(len(apart), nan), where=theirs != 0)
    if relative:
        percent = source.interval(shares, level)
    else:
        scale = 100 / abs(mean) if mean else nan
        percent = attrs.evolve(found, mean=found.mean * scale, half_width=found.half_width * scale)
    known = np.isfinite(apart)
    lower = float((apart[known] < 0).mean()) if known.any() else nan
    verdict = _verdict(labels[3], percent if isfinite(percent.mean) else found, isfinite(percent.mean))
    if source.doubts and not found.why:
        verdict = f"indication only: {verdict}"
    return Difference(*labels, value, mean, found, percent, lower, resampled, verdict)


def _verdict(metric: str, found: Interval, in_percent: bool) -> str:
    """Return what is known of a difference, in words."""
    unit = " %" if in_percent else ""

    def text(value: float) -> str:
        return f"{value:.1f}" if in_percent else figures(value)

    if found.why:
        equal = "equal" in found.why
        if found.mean == 0:
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
    columns |= {name: np.array([getattr(each, name) for each in found], dtype=float) for name in ("lower", "resampled")}
    columns["runs"] = np.array([each.difference.count for each in found], dtype=np.int64)
    columns["verdict"] = np.array([each.verdict for each in found], dtype=str)
    return Table(columns)
