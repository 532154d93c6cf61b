"""Reading of a workload in chunks by a system: ids, repairs and rejections as of the whole, and notes at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.systems.cluster.replay import LeftOut
from simmodel.work.chunks import KnownIds
from simmodel.work.prepare import REPEATED, Stopped
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.systems.system import Offers
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.job import Job
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["ChunkReader", "follows"]


class ChunkReader:
    """The chunks of a workload that is sorted by submit time and whose jobs do not wait for each other.

    Parameters
    ----------
    workload
        the workload
    offers
        what the system supports
    check
        checks jobs of a script, given with their names
    prepare
        returns the jobs of a chunk as simulated

    Attributes
    ----------
    report
        counts of what was skipped, repaired and rejected so far; notes of the whole after the last chunk
    """

    def __init__(
        self,
        workload: ChunkedWorkload,
        offers: Offers,
        check: Callable[[Iterable[tuple[object, Job]]], object],
        prepare: Callable[[Workload], Prepared],
    ) -> None:
        self.report = Report()
        self._name = workload.name
        self._chunks: Iterator[Workload] = iter(workload)
        self._offers, self._check, self._prepare = offers, check, prepare
        self._ids = KnownIds()
        self._left_out = LeftOut()
        self._stopped = Stopped()
        self._latest = -inf  # the last submit time so far, s

    def next(self) -> tuple[Workload, Prepared] | None:
        """Return the next chunk and its jobs as simulated; ``None`` after the last.

        The report of the jobs is not added yet: what submits them may repair more.
        """
        chunk = next(self._chunks, None)
        if chunk is None:
            self._stopped.note(self.report)
            self._left_out.note(self.report)
            return None
        workload, repeated = self._ids.distinct(chunk)
        if workload.specs is not None:
            self._check(zip(workload["job"].tolist(), workload.specs, strict=True))
        prepared = self._prepare(workload)
        prepared.report.notes = ()  # those that count jobs are made at the end, of all chunks
        self._check_order(workload, prepared)
        if repeated:
            prepared.report.repaired[REPEATED] += repeated
        self._left_out.add(workload, self._offers, prepared.report)
        self._stopped += prepared.stopped
        self.add(workload.report)
        return workload, prepared

    def add(self, more: Report) -> None:
        """Add the counts of a report."""
        report = self.report
        report.skipped.update(more.skipped)
        report.repaired.update(more.repaired)
        report.rejected.update(more.rejected)
        for sentence in more.notes:
            report.note(sentence)

    def _check_order(self, workload: Workload, prepared: Prepared) -> None:
        """Refuse jobs that are not sorted by submit time, or that follow other jobs."""
        submit = prepared.submit[np.sort(prepared.rows)]
        before = np.append(self._latest, submit[:-1]) if len(submit) else submit
        late = np.flatnonzero(submit < before)
        if len(late):
            job = workload["job"][np.sort(prepared.rows)[late[0]]]
            raise InputError(
                f"must be sorted by submit time to be read in chunks, got {submit[late[0]]:.10g} s after "
                f"{before[late[0]]:.10g} s; a log that is not sorted is simulated in memory (without stream)",
                source=self._name,
                place=f"job {job}",
            )
        if len(submit):
            self._latest = float(submit[-1])
        dependent = np.flatnonzero(follows(workload))
        if len(dependent):
            raise InputError(
                "must not wait for other jobs to be read in chunks; such a log is simulated in memory (without stream)",
                source=self._name,
                place=f"job {workload['job'][dependent[0]]}",
            )


def follows(workload: Workload) -> NDArray[np.bool_]:
    """Return a mask of the jobs that wait for others."""
    if workload.specs is not None:
        return np.array([bool(job.dependencies) for job in workload.specs], dtype=bool)
    if "preceding" not in workload:
        return np.zeros(0, dtype=bool)
    column = workload["preceding"]
    if column.dtype.kind in "iuf":
        return np.asarray(column > 0)
    return np.array([value not in (None, "", -1) for value in column.tolist()], dtype=bool)
