"""Outcomes of a what-if: the simulated futures of each policy."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, counted
from simmodel.futures.branches import Branch
from simmodel.metrics.statistics import Interval, mean_interval
from simmodel.scheduling.objectives import MEASURES
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Outcome", "Sample", "Starting"]


class Starting(NamedTuple):
    """The start of a job, by id, at a place, by name, at an instant (s)."""

    job: int | str
    place: str
    at: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Sample(Shown):
    """One simulated future.

    Attributes
    ----------
    jobs
        jobs that waited or arrived: ``job, submit, start, end, processors, requested, status`` and ``waiting``, whether
        it waited at the snapshot; times in s, nan if not reached by the end of the simulation
    starts
        the starts, in order
    measures
        measures of these jobs (:data:`~simmodel.scheduling.objectives.MEASURES`); utilisation covers all running jobs.
        A job that has not started by the horizon counts as if it started then; without a horizon it does not count
    unstarted
        number of jobs that have not started by the end
    ended
        the last simulated instant, s
    seed
        seed of the sample
    result
        the complete result, if ``what_if`` keeps results
    """

    jobs: Table
    starts: tuple[Starting, ...]
    measures: dict[str, float]
    unstarted: int
    ended: float
    seed: int
    now: tuple[Starting, ...]
    """The starts at the instant of the snapshot."""
    result: Any = None

    def __eq__(self, other: object) -> bool:
        """Whether the same jobs have the same times; results and seeds are not compared."""
        if not isinstance(other, Sample):
            return NotImplemented
        return (
            self.starts == other.starts
            and self.ended == other.ended
            and self.jobs.names == other.jobs.names
            and all(_same(self.jobs[name], other.jobs[name]) for name in self.jobs.names)
        )

    __hash__ = None  # type: ignore[assignment]

    def _cells(self) -> Cells:
        rows = [[name, f"{value:.6g}"] for name, value in self.measures.items()]
        return [["measure", "value"], *rows, ["unstarted", str(self.unstarted)]]

    def __repr__(self) -> str:
        return f"<Sample: {counted(len(self.jobs), 'job')}, {len(self.now)} start now, ended at {self.ended:g} s>"


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    if one.dtype.kind == "f":
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(np.array_equal(one, other))


@attrs.frozen(kw_only=True, repr=False)
class Outcome(Shown):
    """The outcome of one policy or branch.

    Attributes
    ----------
    name, branch
        its label, and the branch that was tried
    status
        ``"finished"``, ``"unfinished"`` by the deadline, or ``"failed"``
    reason
        why it is not finished
    samples
        the futures in order; ``None`` for one that is not finished
    scores
        one score per counted sample, by the objective, relative to the other policies on that sample; lower is better
    counted
        the indices of the samples that count: those that all compared policies have
    seconds
        wall-clock time (s) of the simulations
    """

    name: str
    branch: Branch
    status: Literal["finished", "unfinished", "failed"]
    reason: str = ""
    samples: tuple[Sample | None, ...] = ()
    scores: tuple[float, ...] = ()
    counted: tuple[int, ...] = ()
    seconds: float = attrs.field(default=0.0, eq=False)

    @property
    def first(self) -> Sample | None:
        """The first counted future, else the first finished one, or ``None``."""
        order = [*self.counted, *range(len(self.samples))]
        return next((each for each in (self.samples[i] for i in order) if each is not None), None)

    @property
    def starts(self) -> tuple[Starting, ...]:
        """The starts of its first future, in order."""
        return () if self.first is None else self.first.starts

    @property
    def now(self) -> tuple[Starting, ...]:
        """The starts at the instant of the snapshot: the decisions of the policy."""
        return () if self.first is None else self.first.now

    @property
    def score(self) -> float:
        """The mean of its scores; nan if it has none."""
        return float(np.mean(self.scores)) if self.scores else nan

    @property
    def unstarted(self) -> float:
        """The mean number of jobs that have not started by the end."""
        found = self.values("unstarted")
        return float(found.mean()) if len(found) else nan

    @property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the counted samples."""
        if not self.counted:
            return dict.fromkeys(MEASURES, nan)
        return {name: float(self.values(name).mean()) for name in MEASURES}

    def values(self, name: str = "score") -> Any:
        """Return a measure, ``unstarted`` or ``score`` of each counted sample, an array of shape (samples,)."""
        if name == "score":
            return np.array(self.scores, dtype=np.float64)
        counted = [sample for sample in (self.samples[i] for i in self.counted) if sample is not None]
        if name == "unstarted":
            return np.array([sample.unstarted for sample in counted], dtype=np.float64)
        if name not in MEASURES:
            raise KeyError(f"unknown measure {name!r}; known measures: score, unstarted, {', '.join(MEASURES)}")
        return np.array([sample.measures[name] for sample in counted], dtype=np.float64)

    def interval(self, name: str = "score", level: float = 0.95) -> Interval:
        """Return the mean of a measure over the counted samples with its confidence interval.

        Raises
        ------
        ValueError
            if fewer than two samples count
        """
        return mean_interval(self.values(name), level)

    def _cells(self) -> Cells:
        if not self.counted:
            return [["status", self.status], ["reason", self.reason]]
        rows = [[name, f"{value:.6g}"] for name, value in self.measures.items()]
        return [["measure", "value"], ["score", f"{self.score:.6g}"], *rows, ["unstarted", f"{self.unstarted:g}"]]

    def __repr__(self) -> str:
        return f"<Outcome {self.name}: {self.status}, {len(self.now)} start now>"
