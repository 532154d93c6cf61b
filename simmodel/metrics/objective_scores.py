"""Results compared by an objective: their scores, and their radar chart (Kiviat figure).

Sources of the chart: Kolence & Kiviat, "Software unit profiles and Kiviat figures", ACM SIGMETRICS PER 2(3), 1973; as
in SchedTwin: Zhang, Kurkure, Tao, Papka, Lan, "A real-time digital twin for adaptive scheduling", arXiv
2512.18894, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, texts
from simmodel.foundation.errors import InputError
from simmodel.metrics.batch import in_window, summary
from simmodel.records.job_record import delays, needed
from simmodel.scheduling.objectives import (
    MEASURES,
    OBJECTIVES,
    Objective,
    ObjectiveLike,
    comparable,
    measure,
    objective,
)
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from simmodel.records.job_record import JobRecord

__all__ = [
    "MEASURES",
    "OBJECTIVES",
    "Kiviat",
    "Objective",
    "final_scores",
    "hypervolume",
    "kiviat",
    "kiviat_area",
    "kiviat_of_measures",
    "measured",
    "not_a_portfolio",
    "objective",
    "pareto_front",
    "started_shares",
]


def measured(result: JobRecord, names: Iterable[str] = tuple(MEASURES), *, tau: float = 10.0) -> dict[str, float]:
    """Return measures of the jobs of a result that its metrics count.

    Parameters
    ----------
    names
        of :data:`~simmodel.scheduling.objectives.MEASURES`
    tau
        the bound of the bounded slowdown, s

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> measured(result, ["wait_max", "slowdown_mean"])
    {'wait_max': 10.0, 'slowdown_mean': 1.25}
    """
    wanted = tuple(names)
    jobs = result.jobs.where(result.counted & in_window(result.jobs, result.started, result.ended))
    busy = summary(result)["utilisation"] if "utilisation" in wanted else math.nan
    wait = jobs["wait"]
    options: dict[str, Any] = {"names": wanted, "busy": busy, "tau": tau}
    return measure(np.zeros(len(jobs)), wait, needed(jobs), stopped=delays(jobs) - wait, **options)


def final_scores(results: Sequence[JobRecord], of: ObjectiveLike = "schedtwin") -> NDArray[np.float64]:
    """Return the scores of whole runs relative to each other, of shape (results,); lower is better.

    Parameters
    ----------
    results
        of the same workload
    of
        any argument of :func:`~simmodel.scheduling.objectives.objective`; on the min-max scale the best of these
        results has 0 in each measure and the worst 1; a function gets each result

    >>> from simmodel.records import JobRecord
    >>> jobs = [{"submit": [0], "start": [at], "end": [at + 5], "processors": [1]} for at in (0, 5, 10)]
    >>> results = [JobRecord(jobs=each) for each in jobs]
    >>> final_scores(results).tolist()
    [0.0, 0.5, 1.0]
    """
    goal = objective(of)
    if goal.function is not None:
        return np.array([goal.function(result) for result in results], dtype=np.float64)
    return goal.scores([measured(result, goal.measures, tau=goal.tau) for result in results])


def not_a_portfolio(result: JobRecord) -> InputError:
    """Return the error for a result without the choices of a portfolio.

    >>> from simmodel.records import JobRecord
    >>> print(not_a_portfolio(JobRecord(name="easy", jobs={"submit": [], "start": [], "end": [], "processors": []})))
    easy: must be a run under a portfolio of policies
    """
    return InputError("must be a run under a portfolio of policies", source=result.name)


def started_shares(result: JobRecord) -> Table:
    """Return the number of jobs started by each policy of a portfolio: ``policy, jobs, share``, the most first.

    Raises
    ------
    InputError
        if the run was not under a portfolio

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0, 0, 0], "start": [0, 1, 2, float("nan")], "end": [9, 9, 9, float("nan")]}
    >>> jobs |= {"processors": [1, 1, 1, 1], "started_by": ["sjf", "wfp", "sjf", ""]}
    >>> for row in started_shares(JobRecord(jobs=jobs)).rows(): print(row)
    {'policy': 'sjf', 'jobs': 2, 'share': 0.6666666666666666}
    {'policy': 'wfp', 'jobs': 1, 'share': 0.3333333333333333}
    """
    if "started_by" not in result.jobs:
        raise not_a_portfolio(result)
    names, counts = np.unique(result.jobs["started_by"].astype(str), return_counts=True)
    names, counts = names[names != ""], counts[names != ""]
    order = np.argsort(-counts, kind="stable")
    share = counts / counts.sum() if len(counts) else np.zeros(0)
    return Table({"policy": names[order], "jobs": counts[order], "share": share[order]})


# ---------------------------------------------------------------------- radar


def kiviat_area(radii: ArrayLike) -> float:
    """Return the area of a Kiviat figure, whose axes are at equal angles and of length 1.

    It is ``sin(2 pi / n) / 2`` times the sum of the products of neighbouring axes, the last next to the first: at most
    2 with four axes. It depends on the order of the axes.

    Parameters
    ----------
    radii
        the value on each axis, 0 to 1; three axes or more

    >>> kiviat_area([1, 1, 1, 1]), kiviat_area([1, 0, 1, 0]), round(kiviat_area([0.5, 0.5, 0.5]), 4)
    (2.0, 0.0, 0.3248)
    """
    values = np.asarray(radii, dtype=np.float64)
    if len(values) < 3:
        raise InputError(f"must be three or more, got {len(values)}", place="radii")
    return float(math.sin(2 * math.pi / len(values)) / 2 * (values * np.roll(values, -1)).sum())


@attrs.frozen(eq=False, repr=False)
class Kiviat(Shown):
    """Runs on axes from the worst of them (0) to the best of them (1).

    Parameters
    ----------
    names
        of the runs
    axes
        measures, in order around the figure
    values
        in the measures' units, of shape (runs, axes)
    radii
        the values from 0 (the worst of these runs) to 1 (the best); all 1 if the runs do not differ
    """

    names: tuple[str, ...]
    axes: tuple[str, ...]
    values: NDArray[np.float64]
    radii: NDArray[np.float64]

    def _cells(self) -> Cells:
        return [list(self.table.names), *(texts(row.values()) for row in self.table.rows())]

    def __repr__(self) -> str:
        return f"<Kiviat of {', '.join(self.names)} on {len(self.axes)} axes>"

    @property
    def areas(self) -> NDArray[np.float64]:
        """The area of each run; see :func:`kiviat_area`."""
        return np.array([kiviat_area(radii) for radii in self.radii])

    @property
    def area_range(self) -> NDArray[np.float64]:
        """The smallest and the largest area of each run over all orders of the axes, of shape (runs, 2)."""
        orders = [(0, *rest) for rest in permutations(range(1, len(self.axes)))]
        areas = np.array([[kiviat_area(radii[list(order)]) for order in orders] for radii in self.radii])
        return np.stack([areas.min(axis=1), areas.max(axis=1)], axis=1)

    @property
    def table(self) -> Table:
        """One row per run: ``policy``, its measures and ``area``."""
        columns = {axis: self.values[:, i] for i, axis in enumerate(self.axes)}
        return Table({"policy": np.array(self.names, dtype=str), **columns, "area": self.areas})


def kiviat(
    results: Sequence[JobRecord], axes: Sequence[str] = OBJECTIVES["schedtwin"].measures, *, tau: float = 10.0
) -> Kiviat:
    """Return runs of one workload on axes from the worst of them to the best of them.

    Parameters
    ----------
    results
        two or more
    axes
        measures, of :data:`~simmodel.scheduling.objectives.MEASURES`, three or more
    tau
        bound of bounded slowdowns, s

    Raises
    ------
    InputError
        if there are fewer than two results or three axes

    >>> from simmodel.records import JobRecord
    >>> results = [
    ...     JobRecord(name=f"from {at}", jobs={"submit": [0], "start": [at], "end": [at + 5], "processors": [1]})
    ...     for at in (0, 5, 10)
    ... ]
    >>> kiviat(results).areas.tolist()
    [2.0, 0.5, 0.0]
    """
    found = [measured(result, axes, tau=tau) for result in results]
    return kiviat_of_measures([result.name for result in results], found, axes)


def kiviat_of_measures(names: Sequence[str], found: Sequence[Mapping[str, float]], axes: Sequence[str]) -> Kiviat:
    """Return runs on axes, as :func:`kiviat`, given the measures of each.

    >>> best = dict.fromkeys(["wait_mean", "wait_max", "slowdown_mean"], 1.0)
    >>> kiviat_of_measures(["a", "b"], [best, {**best, "wait_max": 2.0}], list(best)).radii.tolist()
    [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    """
    if len(found) < 2:
        raise InputError(f"must be two or more, got {len(found)}", place="results")
    if len(axes) < 3:
        raise InputError(f"must be three or more, got {len(axes)}", place="axes")
    goal = Objective([(name, 1.0) for name in axes])
    values = np.array([[each[name] for name in axes] for each in found], dtype=np.float64)
    return Kiviat(tuple(names), tuple(axes), values, 1.0 - comparable(goal.values(found)))


# ---------------------------------------------------------------------- the front of Pareto


def _points(points: ArrayLike) -> NDArray[np.float64]:
    found = np.asarray(points, dtype=np.float64)
    if found.ndim != 2:
        raise InputError(
            f"must have a row per point and a column per objective, got shape {found.shape}", place="points"
        )
    return found


def pareto_front(points: ArrayLike) -> NDArray[np.bool_]:
    """Return which points are on the Pareto front: no other is as low in all objectives and lower in one.

    Equal points are all on it, or none; points with a value that is nan are not.

    Parameters
    ----------
    points
        one row per point, one column per objective; lower is better

    >>> pareto_front([[1, 5], [2, 3], [3, 3], [4, 1], [2, 3]])
    array([ True,  True, False,  True,  True])
    """
    found = _points(points)
    front: NDArray[np.bool_] = np.asarray(np.isfinite(found).all(axis=1))
    order = np.lexsort(found.T[::-1])
    kept = np.empty((0, found.shape[1]))
    for i in order[front[order]].tolist():  # a point is dominated by earlier ones only, in lexicographic order
        point = found[i]
        if len(kept) and bool((np.all(kept <= point, axis=1) & np.any(kept < point, axis=1)).any()):
            front[i] = False
        else:
            kept = np.vstack([kept, point])
    return front


def hypervolume(points: ArrayLike, reference: ArrayLike) -> float:
    """Return the volume of the region that the points dominate, up to a reference point.

    Parameters
    ----------
    points
        one row per point, one column per objective; lower is better
    reference
        one value per objective; points beyond it do not count

    Source: E. Zitzler and L. Thiele, "Multiobjective optimization using evolutionary algorithms", PPSN V, 1998; the
    volume is summed over slices along the last objective.

    >>> hypervolume([[1, 2], [2, 1], [9, 0]], [3, 3])
    3.0
    """
    found, corner = _points(points), np.asarray(reference, dtype=np.float64)
    if corner.shape != (found.shape[1],):
        raise InputError(f"must have {found.shape[1]} values, got shape {corner.shape}", place="reference")
    inside = found[np.all(found < corner, axis=1)]
    return _volume(inside[pareto_front(inside)], corner)


def _volume(front: NDArray[np.float64], corner: NDArray[np.float64]) -> float:
    if not len(front):
        return 0.0
    if len(corner) == 1:
        return float(corner[0] - front.min())
    front = front[np.argsort(front[:, -1], kind="stable")]
    if len(corner) == 2:
        best = np.minimum.accumulate(front[:, 0])
        heights = np.append(front[1:, 1], corner[1]) - front[:, 1]
        return float(np.sum((corner[0] - best) * heights))
    total = 0.0
    for i in range(len(front)):
        height = (front[i + 1, -1] if i + 1 < len(front) else corner[-1]) - front[i, -1]
        if height > 0:
            below = front[: i + 1, :-1]
            total += height * _volume(below[pareto_front(below)], corner[:-1])
    return total
