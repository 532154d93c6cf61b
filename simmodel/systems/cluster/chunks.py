"""The replay of a workload that is read in chunks: jobs come as they are due and leave memory when they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from simmodel.systems.chunks import ChunkReader
from simmodel.systems.cluster.arrivals import PlainJobs, chunks_of
from simmodel.systems.cluster.record import columns_of_log
from simmodel.work.prepare import prepare

if TYPE_CHECKING:
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
        self._recorder = recorder
        self._reader = ChunkReader(workload, core.offers, intake.check, self._prepare)
        self.report = self._reader.report
        self._read = False  # whether all chunks have been read

    def begin(self) -> None:
        """Plan the submission of the first chunk."""
        self._count_coming(1)  # until all has been read
        self._intake.expect(self._plain(), None)

    def read_the_rest(self) -> None:
        """Read the chunks that were not due before the end of the run, whose jobs are unsubmitted, and write them."""
        while (chunk := self._next()) is not None:
            self._intake.admit(*chunk)
            self._reader.add(chunk[1].report)
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
            self._reader.add(prepared.report)
            yield from chunks_of(workload, prepared, first)

    def _plan(self, workload: Workload, prepared: Prepared) -> None:
        """Plan the submission of a chunk, and to plan the next one when the last job of this one is due."""
        intake = self._intake
        first = intake.admit(workload, prepared)
        coming = list(intake.submissions_of(workload, prepared, first))
        self._count_coming(len(coming))
        self._reader.add(prepared.report)
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

    def _prepare(self, workload: Workload) -> Prepared:
        core = self._core
        return prepare(workload, core.largest, core.estimates, core.overrun, too_large=core.too_large)

    def _next(self) -> tuple[Workload, Prepared] | None:
        """Write what has ended, read the next chunk and open its rows of the record; ``None`` after the last."""
        self._recorder.drain()
        chunk = None if self._read else self._reader.next()
        if chunk is not None:
            self._recorder.expect(columns_of_log(*chunk))
        elif not self._read:
            self._read = True
            self._count_coming(-1)
        return chunk
