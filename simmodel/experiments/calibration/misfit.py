"""Defects of a calibrated model: patterns in the errors that its best values leave in recorded times.

The errors of walltimes are the logarithms of recorded over simulated ones. They are replaced by the normal scores of
their ranks, so that heavy tails raise no alarm, and tested for what they should not depend on; the strongest pattern is
named and taken out, and the others are tested again. Queue times depend on each other: there, blocks of time are
compared. All tests together raise a false alarm in one of a hundred calibrations.

Source: W. H. Kruskal, W. A. Wallis, "Use of ranks in one-criterion variance analysis", JASA 47(260), 1952.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.calibration.least_squares import QUEUES
from simmodel.experiments.calibration.observations import Observations, Times
from simmodel.metrics.statistics import t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = "NDArray[np.float64]"
    Groups: TypeAlias = "NDArray[np.intp]"

__all__ = ["KINDS", "Misfit", "misfits"]

KINDS = ("drift", "class", "size", "run length", "two modes", "day shocks", "truncation", "policy", "cores")
"""The kinds of misfit."""
_ALARM = NormalDist().inv_cdf(1 - 0.01 / 2 / 10)  # of a normal deviate: 1 % for ten tests of two sides
_FEW = 30  # jobs below which nothing is said
_DAY = 86_400.0
_MEMBERS = 5  # jobs of a class, at least
_BINS = 6  # into which an ordered quantity is cut to take out its effect
_CUT = 0.998  # of a limit: walltimes from here on were ended by it
_SMALL = 0.05  # logarithm of a factor between groups that is not worth a word
_STEADY = 1.0  # of von Neumann's ratio, 2 for independent days: days that change slowly drift
_APART = 3.0  # deviations between two modes
_CLASSES = ("class", "user", "group", "executable", "queue", "partition", "family")


@attrs.frozen
class Misfit:
    """A pattern that a calibrated model does not explain.

    Parameters
    ----------
    kind
        one of :data:`KINDS`
    sentence
        the evidence in the record
    """

    kind: str
    sentence: str


def misfits(observed: Observations, times: Times) -> list[Misfit]:
    """Return the patterns that a model leaves in the jobs that it was fitted to, the strongest ones first.

    Parameters
    ----------
    observed
        the record
    times
        the times of its jobs in the model
    """
    rows = np.sort(np.concatenate([cell.rows for cell in observed.training]))
    own = [name for name in observed.quantities if name not in QUEUES]
    found: list[Misfit] = []
    if own:
        errors = _Errors.of(observed, times, own[0], rows)
        if len(errors.rows) >= _FEW:
            found += errors.patterns()
    if "queue_time" in observed.quantities and "walltime" in times and "submit" in observed.jobs:
        found += _of_queues(observed, times, rows)
    return found


def _scores(values: Array) -> Array:
    """Return the normal scores of ranks; equal values have equal ones."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2)[where] / len(values)
    normal = NormalDist()
    return np.array([normal.inv_cdf(rank) for rank in ranks.tolist()])


@attrs.frozen(eq=False)
class _Errors:
    """The logarithms of recorded over simulated walltimes, less the median of each site.

    Parameters
    ----------
    observed, name
        the record, and the quantity
    rows
        the numbers of the jobs
    values
        their errors
    simulated
        their simulated times
    """

    observed: Observations
    name: str
    rows: Groups
    values: Array
    simulated: Array

    @classmethod
    def of(cls, observed: Observations, times: Times, name: str, rows: Groups) -> _Errors:
        recorded, simulated = observed.jobs[name][rows], times[name][rows]
        good = (recorded > 0) & (simulated > 0)
        values = np.log(recorded[good] / simulated[good])
        found = cls(observed, name, rows[good], values, simulated[good])
        return attrs.evolve(found, values=found.without(found.codes("site")))

    def codes(self, name: str) -> Groups:
        return np.asarray(np.unique(self.observed.jobs[name][self.rows], return_inverse=True)[1])

    def without(self, groups: Groups) -> Array:
        """Return the errors less the median of each group."""
        medians = np.array([np.median(self.values[groups == each]) for each in range(int(groups.max()) + 1)])
        return np.asarray(self.values - medians[groups])

    # ------------------------------------------------------------------ patterns

    def patterns(self) -> list[Misfit]:
        """Return the misfits found, one after the other, each taken out before the next."""
        found: list[Misfit] = []
        left = self
        cut = left.at_limits()
        if cut.any():
            share = f"{int(cut.sum()):,} of {len(cut):,} jobs"
            found.append(
                Misfit("truncation", f"{share} ended at a limit where the model goes on: it does not end jobs there")
            )
            kept = attrs.evolve(left, rows=left.rows[~cut], values=left.values[~cut], simulated=left.simulated[~cut])
            left = attrs.evolve(kept, values=kept.without(kept.codes("site")))
        for _ in range(len(_CLASSES)):
            tests = sorted((each for each in left.tests() if left.matters(each[2])), key=lambda each: -each[0])
            if not tests or tests[0][0] < _ALARM:
                break
            _, misfit, groups = tests[0]
            if misfit.kind not in [each.kind for each in found] or misfit.kind == "class":
                found.append(misfit)
            left = attrs.evolve(left, values=left.without(groups))
        modes = left.modes()
        return found + ([modes] if modes else [])

    def at_limits(self) -> NDArray[np.bool_]:
        """Return which jobs a limit ended that the model does not have: their request, or the longest time of all."""
        recorded = self.observed.jobs[self.name][self.rows]
        limits = [np.full(len(recorded), recorded.max())]
        if "requested" in self.observed.jobs:
            limits.insert(0, self.observed.jobs["requested"][self.rows].astype(np.float64))
        for limit in limits:
            cut = (limit > 0) & (recorded >= _CUT * limit)
            longer = cut & (self.simulated > limit * np.exp(2 * _SMALL))
            beyond = cut & (recorded > limit / _CUT)
            if longer.sum() >= max(_MEMBERS, 0.2 * cut.sum()) and beyond.sum() <= 0.1 * cut.sum():
                return np.asarray(cut)
        return np.zeros(len(recorded), dtype=bool)

    def tests(self) -> Iterator[tuple[float, Misfit, Groups]]:
        """Yield for each pattern its strength as a normal deviate, its misfit, and the groups that it forms."""
        scores = _scores(self.values)
        days, bins = self.days(), self.bins(self.instants())
        drift = Misfit("drift", self._changing("in the course of the record", bins))
        yield _slope(_means(scores, days), _means(self.instants(), days)), drift, days
        medians = np.array([np.median(self.values[days == each]) for each in range(int(days.max()) + 1)])
        sentence = f"jobs of a day differ alike from the model, by {medians.std():.0%}: days have something in common"
        steady = (np.diff(medians) ** 2).sum() < _STEADY * ((medians - medians.mean()) ** 2).sum()
        yield _deviate(self.values, days), drift if steady else Misfit("day shocks", sentence), days
        for kind, column, words in (
            ("size", "processors", "with the number of processors"),
            ("run length", "", "with the length of jobs"),
        ):
            if column and column not in self.observed.jobs:
                continue
            values = self.observed.jobs[column][self.rows].astype(np.float64) if column else self.simulated
            if len(np.unique(values)) > 1:
                bins = self.bins(values)
                yield _slope(scores, _scores(values)), Misfit(kind, self._changing(words, bins)), bins
        for column in _CLASSES:
            groups = self.classes(column)
            if groups is not None:
                yield _deviate(self.values, groups), self._class(column, groups), groups

    def matters(self, groups: Groups) -> bool:
        """Whether the medians of groups are apart by more than a few percent: less does not count as a defect."""
        medians = [float(np.median(self.values[groups == each])) for each in range(int(groups.max()) + 1)]
        return max(medians) - min(medians) > _SMALL

    def instants(self) -> Array:
        """Return when each job was submitted, or its place in the record."""
        for name in ("submit", "recorded_start", "start"):
            if name in self.observed.jobs:
                return self.observed.jobs[name][self.rows].astype(np.float64)
        return np.arange(len(self.rows), dtype=np.float64)

    def days(self) -> Groups:
        """Return the day of each job, or the part of the record if it is of a few days."""
        instants = self.instants()
        days = np.unique(instants // _DAY, return_inverse=True)[1]
        if 6 <= days.max() + 1 <= len(days) / 3:
            return np.asarray(days)
        order = np.argsort(np.argsort(instants, kind="stable"), kind="stable")
        parts = min(20, max(6, len(order) // 10))
        return np.asarray(order * parts // len(order))

    def bins(self, values: Array) -> Groups:
        """Return the part of each value, of about as many jobs each; few different values are parts themselves."""
        if len(np.unique(values)) <= _BINS:
            return np.asarray(np.unique(values, return_inverse=True)[1])
        edges = np.quantile(values, np.arange(1, _BINS) / _BINS)
        return np.asarray(np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1])

    def classes(self, column: str) -> Groups | None:
        """Return the class of each job; small ones are one; ``None`` if there are not two of them."""
        if column not in self.observed.jobs:
            return None
        groups = self.codes(column)
        small = np.bincount(groups)[groups] < _MEMBERS
        groups = np.unique(np.where(small, -1, groups), return_inverse=True)[1]
        return np.asarray(groups) if groups.max() >= 1 else None

    def _changing(self, words: str, bins: Groups) -> str:
        last = int(bins.max())
        factor = float(np.exp(np.median(self.values[bins == last]) - np.median(self.values[bins == 0])))
        return f"recorded times change {words}, by a factor of {factor:.2f} from first to last: the model lacks that"

    def _class(self, column: str, groups: Groups) -> Misfit:
        medians = [float(np.median(self.values[groups == each])) for each in range(int(groups.max()) + 1)]
        far = int(np.argmax(np.abs(medians)))
        name = self.observed.jobs[column][self.rows][groups == far][0]
        factor = float(np.exp(medians[far]))
        sentence = (
            f"jobs take another time by their {column}: those of {name!s} {factor:.2f} times as long as in the model"
        )
        return Misfit("class", sentence)

    def modes(self) -> Misfit | None:
        """Return that the errors have two modes, if they do: two normal distributions explain them, one does not."""
        values = np.sort(self.values)
        scale = 1.4826 * float(np.median(np.abs(values - np.median(values))))
        if len(values) < 2 * _FEW or scale == 0:
            return None
        share, means, deviation, gain = _two(values)
        apart = float(means[1] - means[0]) / deviation
        if not 0.08 <= share <= 0.92 or apart < _APART or gain < _ALARM**2:
            return None
        factor = float(np.exp(means[1] - means[0]))
        return Misfit(
            "two modes", f"{share:.0%} of the jobs take {factor:.2f} times as long as the others: they are two kinds"
        )


def _means(values: Array, groups: Groups) -> Array:
    return np.asarray(np.bincount(groups, values) / np.bincount(groups))


def _slope(y: Array, x: Array) -> float:
    """Return the correlation as a normal deviate; of a few values, as a t deviate that is as rare."""
    if len(y) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    correlation = float(np.clip(np.corrcoef(x, y)[0, 1], -0.999999, 0.999999))
    t = abs(correlation) * np.sqrt((len(y) - 2) / (1 - correlation**2))
    return float(t * _ALARM / t_quantile(NormalDist().cdf(_ALARM), len(y) - 2))


def _deviate(values: Array, groups: Groups) -> float:
    """Return how far the mean ranks of groups are apart (Kruskal-Wallis), as a normal deviate of two sides."""
    count = int(groups.max()) + 1
    if count < 2:
        return 0.0
    scores = _scores(values)
    h = float((np.bincount(groups) * _means(scores, groups) ** 2).sum() / scores.var())
    freedom = count - 1  # Wilson and Hilferty's cube root; one side there is two sides of a deviate
    deviate = ((h / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom))
    tail = max(1 - NormalDist().cdf(deviate), 1e-15)
    return NormalDist().inv_cdf(1 - tail / 2) if tail > 1e-15 else max(deviate, 8.0)


def _two(values: Array) -> tuple[float, Array, float, float]:
    """Return the share of the upper of two normal distributions, their means, their deviation, and the gain in 2 log L.

    The gain is over the better one of a normal and a Laplace distribution, which has heavy tails.
    """
    count = len(values)
    best: tuple[float, float, Array, float] | None = None
    for begin in (0.15, 0.5, 0.85):
        upper = (values > np.quantile(values, begin)).astype(np.float64)
        for _ in range(60):
            share = float(np.clip(upper.mean(), 1e-6, 1 - 1e-6))
            means = np.array([((1 - upper) @ values) / (1 - upper).sum(), (upper @ values) / upper.sum()])
            away = np.stack([values - means[0], values - means[1]])
            variance = max(float(((1 - upper) @ away[0] ** 2 + upper @ away[1] ** 2) / count), 1e-18)
            dense = (
                np.stack([np.full(count, np.log(1 - share)), np.full(count, np.log(share))]) - away**2 / 2 / variance
            )
            whole = np.logaddexp(dense[0], dense[1])
            upper = np.exp(dense[1] - whole)
            if min(upper.sum(), count - upper.sum()) < 1:
                break
        likelihood = float(whole.sum()) - count / 2 * np.log(2 * np.pi * variance)
        if best is None or likelihood > best[0]:
            best = likelihood, share, means, float(np.sqrt(variance))
    assert best is not None
    normal = -count / 2 * (np.log(2 * np.pi * values.var()) + 1)
    laplace = -count * (np.log(2 * np.abs(values - np.median(values)).mean()) + 1)
    return best[1], best[2], best[3], 2 * (best[0] - max(float(normal), float(laplace)))


# ---------------------------------------------------------------------- queues

_LATER = 0.2  # of its wait, by which a job that is overtaken starts later
_LOOKED = 3000  # jobs of a site that are compared, at most
_PARTS = 12  # blocks of a site's jobs, which are compared as a whole
_RATIO = 1.25  # between processors in use, and between sums of queue times
_OFTEN = 0.05  # share of jobs that overtake, more or less than in the model


def _of_queues(observed: Observations, times: Times, rows: Groups) -> Iterator[Misfit]:
    """Yield misfits of queue times: another number of processors, and another order."""
    sizes = observed.jobs["processors"] if "processors" in observed.jobs else np.ones(len(observed.jobs))
    blocks: list[Array] = []
    for site in observed.sites:
        here = rows[(observed.jobs["site"][rows] == site)]
        here = here[np.argsort(observed.jobs["submit"][here], kind="stable")][:_LOOKED]
        if len(here) < _FEW:
            continue
        submit, size = observed.jobs["submit"][here].astype(np.float64), sizes[here].astype(np.float64)
        both = [(each["queue_time"][here], each["walltime"][here]) for each in (observed.jobs, times)]
        starts = [submit + queue for queue, _ in both]
        used = [_peak(start, start + walltime, size) for start, (_, walltime) in zip(starts, both, strict=True)]
        waits = [float(queue.sum()) for queue, _ in both]
        more = used[0] > _RATIO * used[1] and waits[0] * _RATIO < waits[1]
        if more or (used[0] * _RATIO < used[1] and waits[0] > _RATIO * waits[1]):
            named = f"{site}: " if site else ""
            words = f"{used[0]:,.0f} processors were in use in the busiest hours, {used[1]:,.0f} in the model"
            yield Misfit("cores", f"{named}{words}")
            continue
        rates = [_overtaking(submit, start) for start in starts]
        away, long, wide = rates[0] - rates[1], _scores(both[1][1]), _scores(size)
        blocks += [
            np.array([away[part].mean(), (away * long)[part].mean(), (away * wide)[part].mean()])
            for part in np.array_split(np.arange(len(here)), _PARTS)
        ]
    if len(blocks) < _PARTS:
        return
    means, errors = np.mean(blocks, axis=0), np.std(blocks, axis=0, ddof=1) / np.sqrt(len(blocks))
    bound = t_quantile(NormalDist().cdf(_ALARM), len(blocks) - 1)
    if bool(((np.abs(means) > bound * errors) & (np.abs(means) > _OFTEN)).any()):
        more_or_less = "more" if means[0] > 0 else "less"
        words = f"jobs overtake others {more_or_less} often than in the model, by {abs(means[0]):.0%} of all jobs"
        if abs(means[0]) <= _OFTEN:
            words = "other jobs overtake than in the model"
        yield Misfit("policy", f"{words}: they were started in another order, by another policy")


def _peak(start: Array, end: Array, size: Array) -> float:
    """Return how many processors were in use at least, in the busiest twentieth of the time."""
    instants = np.concatenate([start, end])
    order = np.argsort(instants, kind="stable")
    used = np.cumsum(np.concatenate([size, -size])[order])[:-1]
    length = np.diff(instants[order])
    falling = np.argsort(-used, kind="stable")
    place = np.searchsorted(np.cumsum(length[falling]), 0.05 * length.sum())
    return float(used[falling][min(int(place), len(used) - 1)])


def _overtaking(submit: Array, start: Array) -> Array:
    """Return for each job whether it started clearly before one that was submitted before it: 1 or 0.

    >>> _overtaking(np.array([0.0, 1.0, 2.0]), np.array([100.0, 120.0, 5.0]))
    array([0., 0., 1.])
    """
    later = start[None, :] > start[:, None] + _LATER * (start - submit)[None, :]
    earlier = submit[None, :] < submit[:, None]
    return np.asarray((later & earlier).any(axis=1), dtype=np.float64)
