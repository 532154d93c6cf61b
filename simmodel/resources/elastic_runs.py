"""The running elastic jobs of a place, for policies that resize them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob

__all__ = ["ElasticRuns"]


class ElasticRuns:
    """The running elastic jobs in the order of their starts, which changes of size do not alter, and their sums.

    A start, an end or a change of size costs O(log n), a question O(1).

    Parameters
    ----------
    entries
        the current executions: (expected end in s, number, processors, run)

    Attributes
    ----------
    processors, minimum, preferred, maximum
        the sums of their present sizes and of those of their :class:`~simmodel.work.elastic.Elastic`
    """

    __slots__ = ("_of", "_order", "maximum", "minimum", "preferred", "processors")

    def __init__(self, entries: Iterable[tuple[float, int, int, Any]]) -> None:
        self._order: list[tuple[float, int, LiveJob]] = []  # start (s), rank of submission, job
        self._of: dict[LiveJob, tuple[tuple[float, int, LiveJob], int]] = {}  # its place in the order, its size
        self.processors = self.minimum = self.preferred = self.maximum = 0
        for entry in entries:
            self.started(entry)

    @property
    def jobs(self) -> list[LiveJob]:
        """A list of the jobs in the order of their starts, ties in the order of submission."""
        return [job for _, _, job in self._order]

    def started(self, entry: tuple[float, int, int, Any]) -> None:
        """Note an execution that was added, if its job is elastic."""
        run = entry[3]
        job: LiveJob = run.job
        elastic = job.elastic
        if elastic is None:
            return
        past = job.past
        begun = run.started if past is None or past.attempt_start is None else past.attempt_start
        place = begun, job.seq, job
        insort(self._order, place)
        self._of[job] = place, job.processors
        self.processors += job.processors
        self.minimum += elastic.minimum
        self.preferred += elastic.preferred
        self.maximum += elastic.maximum

    def resized(self, job: LiveJob) -> None:
        """Note that a job has another size."""
        place, before = self._of[job]
        self._of[job] = place, job.processors
        self.processors += job.processors - before

    def ended(self, entry: tuple[float, int, int, Any]) -> None:
        """Note an execution that was removed."""
        job: LiveJob = entry[3].job
        elastic = job.elastic
        if elastic is None:
            return
        place, processors = self._of.pop(job)
        del self._order[bisect_left(self._order, place)]
        self.processors -= processors
        self.minimum -= elastic.minimum
        self.preferred -= elastic.preferred
        self.maximum -= elastic.maximum
