"""The replay of a workload that is read in chunks: jobs come as they are due and leave memory when they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.errors import InputError
from simmodel.systems.cluster.arrivals import PlainJobs, chunks_of
from simmodel.systems.cluster.record import columns_of_log
from simmodel.systems.cluster.replay import LeftOut
from simmodel.work.chunks import KnownIds
from simmodel.work.prepare import REPEATED, Stopped, prepare
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.streamed_recorder import StreamedRecorder
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.intake import Intake
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["ChunkedReplay"]


class ChunkedReplay:
    """Submits the jobs of a workload chunk by chunk: a chunk is read when the last job of the one before is due.

    Then the rows of all jobs that have ended are written, too.

    Parameters
    ----------
    core, intake
        the parts of the cluster that runs the jobs
    count_coming
        counts jobs that will be submitted; negative: so many fewer will be
    workload
        the workload, sorted by submit time
    recorder
        the record of the cluster

    Attributes
    ----------
    report
        counts of what was skipped, repaired and rejected so far
    """

    def __init__(
        self,
        core: ClusterCore,
        intake: Intake,
        count_coming: Callable[[int], object],
        workload: ChunkedWorkload,
        recorder: StreamedRecorder,
    ) -> None:
        self._core = core
        self._intake = intake
        self._count_coming = count_coming
        self._name = workload.name
        self._chunks: Iterator[Workload] = iter(workload)
        self._recorder = recorder
        self.report = Report()
        self._ids = KnownIds()
        self._left_out = LeftOut()
        self._stopped = Stopped()
        self._latest = -inf  # the last submit time so far, s
        self._read = False  # whether all chunks have been read

    def begin(self) -> None:
        """Plan the submission of the first chunk."""
        self._count_coming(1)  # until all has been read
        self._intake.expect(self._plain(), None)

    def read_the_rest(self) -> None:
        """Read the chunks that were not due before the end of the run, whose jobs are unsubmitted, and write them."""
        while (chunk := self._next()) is not None:
            self._intake.admit(*chunk)
            _add(self.report, chunk[1].report)
            self._recorder.drain(everything=True)

    # ------------------------------------------------------------------ submission

    def _plain(self) -> Iterator[PlainJobs]:
        """Yield the jobs, as long as they request only processors and time; plan the submission of all others."""
        while (chunk := self._next()) is not None:
            workload, prepared = chunk
            if self._intake.one_by_one(workload):
                self._plan(workload, prepared)
                return
            first = self._intake.admit(workload, prepared)
            self._count_coming(len(prepared.rows))
            _add(self.report, prepared.report)
            yield from chunks_of(workload, prepared, first)

    def _plan(self, workload: Workload, prepared: Prepared) -> None:
        """Plan the submission of a chunk, and to plan the next one when the last job of this one is due."""
        intake = self._intake
        first = intake.admit(workload, prepared)
        coming = list(intake.submissions_of(workload, prepared, first))
        self._count_coming(len(coming))
        _add(self.report, prepared.report)
        for each in coming:
            each.report = self.report
            intake.expect_one(each)
        if coming:
            coming[-1].before = self._plan_next
        else:
            self._plan_next()

    def _plan_next(self) -> None:
        chunk = self._next()
        if chunk is not None:
            self._plan(*chunk)

    # ------------------------------------------------------------------ reading

    def _next(self) -> tuple[Workload, Prepared] | None:
        """Write what has ended, read the next chunk and open its rows of the record; ``None`` after the last."""
        self._recorder.drain()
        chunk = next(self._chunks, None)
        if chunk is None:
            self._all_read()
            return None
        workload, repeated = self._ids.distinct(chunk)
        core = self._core
        if workload.specs is not None:
            self._intake.check(zip(workload["job"].tolist(), workload.specs, strict=True))
        prepared = prepare(workload, core.largest, core.estimates, core.overrun, too_large=core.too_large)
        prepared.report.notes = ()  # those that count jobs are made at the end, of all chunks
        self._check(workload, prepared)
        if repeated:
            prepared.report.repaired[REPEATED] += repeated
        self._left_out.add(workload, core.offers, prepared.report)
        self._stopped += prepared.stopped
        _add(self.report, workload.report)
        self._recorder.expect(columns_of_log(workload, prepared))
        return workload, prepared

    def _check(self, workload: Workload, prepared: Prepared) -> None:
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
        follows = np.flatnonzero(_follows(workload))
        if len(follows):
            raise InputError(
                "must not wait for other jobs to be read in chunks; such a log is simulated in memory (without stream)",
                source=self._name,
                place=f"job {workload['job'][follows[0]]}",
            )

    def _all_read(self) -> None:
        if self._read:
            return
        self._read = True
        self._stopped.note(self.report)
        self._left_out.note(self.report)
        self._count_coming(-1)


def _follows(workload: Workload) -> NDArray[np.bool_]:
    """Return a mask of the jobs that wait for others."""
    if workload.specs is not None:
        return np.array([bool(job.dependencies) for job in workload.specs], dtype=bool)
    if "preceding" not in workload:
        return np.zeros(0, dtype=bool)
    column = workload["preceding"]
    if column.dtype.kind in "iuf":
        return np.asarray(column > 0)
    return np.array([value not in (None, "", -1) for value in column.tolist()], dtype=bool)


def _add(report: Report, more: Report) -> None:
    """Add the counts of a report to another."""
    report.skipped.update(more.skipped)
    report.repaired.update(more.repaired)
    report.rejected.update(more.rejected)
    for sentence in more.notes:
        report.note(sentence)
