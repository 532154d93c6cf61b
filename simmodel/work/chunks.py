"""Workloads that are read in chunks, so that a log of any length needs little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from simmodel.foundation.display import Cells, Shown
from simmodel.work.prepare import distinct_jobs
from simmodel.work.workload import Workload

__all__ = ["CHUNK", "ChunkedWorkload", "KnownIds"]

CHUNK = 16_384
"""Jobs of a chunk, unless something else is requested."""
_SPARSE = 1 << 26  # ids beyond this many, and beyond 64 a job, are kept one by one


class ChunkedWorkload(Shown):
    """A workload that is read in chunks when it is replayed; its jobs must be sorted by submit time.

    Parameters
    ----------
    chunks
        a function that returns the chunks from the first on, such as a generator function
    name, processors, header
        as of a :class:`~simmodel.work.workload.Workload`
    total
        the number of jobs, if known, for progress bars
    source
        the file or the name that it was read from, if any, for scenarios

    >>> def drawn():
    ...     for i in range(3):
    ...         yield Workload({"submit": [10 * i], "run": [5], "processors": [1]})
    >>> log = ChunkedWorkload(drawn, name="every 10 s")
    >>> log, sum(len(chunk) for chunk in log)
    (<ChunkedWorkload every 10 s>, 3)
    """

    def __init__(
        self,
        chunks: Callable[[], Iterator[Workload]],
        *,
        name: str = "workload",
        processors: int | None = None,
        total: int | None = None,
        header: Mapping[str, str] | None = None,
        source: str | None = None,
    ) -> None:
        self._chunks = chunks
        self.name = name
        self.processors = processors
        self.total = total
        self.source = source
        self.header: dict[str, str] = dict(header or {})

    @classmethod
    def of(cls, workload: Workload, rows: int = CHUNK) -> ChunkedWorkload:
        """Return a workload, which is in memory, in chunks of some rows.

        >>> log = Workload({"submit": [0, 5, 9], "run": [1, 1, 1], "processors": [1, 1, 1]})
        >>> [len(chunk) for chunk in ChunkedWorkload.of(log, 2)]
        [2, 1]
        """

        def parts() -> Iterator[Workload]:
            for begin in range(0, len(workload), rows):
                part = workload.where(slice(begin, begin + rows))
                if begin:  # the report is that of the whole
                    part.report = type(part.report)()
                yield part

        given = {"name": workload.name, "processors": workload.processors, "header": workload.header}
        return cls(parts, total=len(workload), **given)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Workload]:
        return self._chunks()

    def _cells(self) -> Cells:
        rows = [["processors", str(self.processors or "unknown")], ["jobs", str(self.total or "unknown")]]
        return [["", "value"], *rows, *([key, value] for key, value in self.header.items())]

    def __repr__(self) -> str:
        size = f", {self.processors} processors" if self.processors else ""
        return f"<ChunkedWorkload {self.name}{size}>"


class KnownIds:
    """The ids of the jobs so far: whole numbers, a bit each; ids that are texts are known within a chunk only.

    >>> known, log = KnownIds(), Workload({"job": [1, 2], "submit": [0, 0], "run": [1, 1], "processors": [1, 1]})
    >>> [known.distinct(log)[0]["job"].tolist() for _ in range(2)]
    [[1, 2], [3, 4]]
    """

    def __init__(self) -> None:
        self._bits = np.zeros(1024, dtype=np.uint8)
        self._others: set[int] = set()  # negative or far from the others
        self._most = 0
        self._count = 0

    def distinct(self, chunk: Workload) -> tuple[Workload, int]:
        """Return a chunk in which no job has the id of an earlier one, and the number of jobs that got a new id.

        Jobs of a chunk without ids are numbered on.
        """
        if chunk.numbered and self._most:
            chunk = chunk.replace(job=chunk["job"] + self._most)
        given = chunk["job"]
        chunk, repaired = distinct_jobs(chunk)
        ids = chunk["job"]
        if ids.dtype.kind not in "iu" or chunk.specs is not None or not len(ids):
            return chunk, repaired
        again = self._add(ids.astype(np.int64))
        if again.any():
            ids = ids.copy()
            ids[again] = max(self._most, int(ids.max())) + 1 + np.arange(int(again.sum()))
            self._add(ids[again].astype(np.int64))
            chunk, repaired = chunk.replace(job=ids), int((ids != given).sum())
        self._most = max(self._most, int(ids.max()))
        return chunk, repaired

    def _add(self, ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Add ids, and return which were known."""
        self._count += len(ids)
        near = (ids >= 0) & (ids < max(64 * self._count, _SPARSE))
        known = np.zeros(len(ids), dtype=bool)
        if near.any():
            low, high = int(ids[near].min()) >> 3, int(ids[near].max()) >> 3
            if high >= len(self._bits):
                self._bits = np.append(self._bits, np.zeros(max(high + 1 - len(self._bits), len(self._bits)), np.uint8))
            bits = np.unpackbits(self._bits[low : high + 1])
            at = ids[near] - 8 * low
            known[near] = bits[at] == 1
            bits[at] = 1
            self._bits[low : high + 1] = np.packbits(bits)
        for row in np.flatnonzero(~near).tolist():
            number = int(ids[row])
            known[row] = number in self._others
            self._others.add(number)
        return known
