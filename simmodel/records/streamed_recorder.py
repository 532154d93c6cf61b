"""The recorder of jobs whose rows leave memory once they have ended."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.records.job_record import Column, joined
from simmodel.records.recorder import OPEN, JobRecorder
from simmodel.records.tables import Stretch, Stretches, held_by, links_of
from simmodel.work.table import Table, Words, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import simpy
    from numpy.typing import NDArray

    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob

__all__ = ["EVERY", "Extent", "StreamedRecorder", "Write"]

Write = Callable[[str, "NDArray[np.int64]", Table], object]
"""Called with ``"jobs"`` or ``"runs"``, the rows of the jobs in the record, and the table to write."""

NAN = float("nan")
_BY_ROW = (
    "_reasons",
    "_eligible",
    "_elsewhere",
    "_first",
    "_attempt",
    "_resumed",
    "_levels",
    "_carried",
    "_on_nodes",
    "_interrupted",
    "_sizes_now",
    "_kept",
    "_lost",
    "_slowed",
)


EVERY = 16_384
"""After how many jobs that come one by one the rows of those that have ended are written."""


class Extent:
    """The first and the last instant of rows that were written, in s, and whether one was of a job that had not ended.

    >>> extent = Extent()
    >>> jobs = {"submit": [2.0, 3.0], "start": [5.0, NAN], "end": [9.0, NAN], "status": ["completed", "waiting"]}
    >>> extent.add(Table(jobs)); extent.span(20)
    {'started': 2.0, 'ended': 20.0}
    """

    def __init__(self) -> None:
        self.first, self.last, self.open = NAN, NAN, False

    def add(self, jobs: Table) -> None:
        """Add rows."""
        began = np.append(jobs["submit"], jobs["start"])
        ended = np.append(jobs["end"], jobs["start"])
        began, ended = began[np.isfinite(began)], ended[np.isfinite(ended)]
        self.first = float(np.fmin(self.first, began.min(initial=np.inf) if len(began) else NAN))
        self.last = float(np.fmax(self.last, ended.max(initial=-np.inf) if len(ended) else NAN))
        self.open |= bool(Words.of(jobs["status"]).isin(OPEN).any())

    def span(self, now: float) -> dict[str, float]:
        """Return ``started`` and ``ended`` of the record, given the present instant."""
        first = 0.0 if np.isnan(self.first) else self.first
        last = first if np.isnan(self.last) else max(self.last, first)
        return {"started": first, "ended": float(now) if self.open else last}


class _Later(NamedTuple):
    """An execution: the row of its job, its start and its end (s, nan: none), its place and its nodes."""

    row: int
    start: float
    end: float
    place: str
    nodes: tuple[int, ...] | None


class StreamedRecorder(JobRecorder):
    """Record jobs as :class:`~simmodel.records.recorder.JobRecorder`, and write the rows of those that have ended.

    Rows of expected jobs are written when :meth:`drain` is called, those of other jobs also by themselves.

    Parameters
    ----------
    env, places
        as of the base class
    write
        the writer of tables
    every
        after how many jobs that come one by one rows are written

    Attributes
    ----------
    extent
        of the rows written so far
    """

    def __init__(
        self, env: simpy.Environment, write: Write, *, places: Sequence[Place] = (), every: int = EVERY
    ) -> None:
        super().__init__(env, late=False, places=places)
        self._write = write
        self._start, self._end, self._code = {}, {}, {}
        self._rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._every, self._came = every, 0
        self._shared: dict[tuple[int, float], NDArray[np.intp]] = {}  # links, by row and start
        self.extent = Extent()
        self._bind()

    def expect(self, columns: Mapping[str, Column]) -> bool:
        """Add rows for jobs before their submission."""
        count = len(columns["job"])
        rows = np.arange(self._expected, self._expected + count)
        self._columns = joined(self._columns, columns) if len(self._rows) else dict(columns)
        self._rows = np.append(self._rows, rows)
        self._expected += count
        for column, empty in ((self._start, NAN), (self._end, NAN), (self._code, 0)):
            column.update(zip(rows.tolist(), repeat(empty)))
        return True

    def _grow(self, job: LiveJob) -> None:
        """Add a row for a job that was not expected, unless it has one."""
        row = job.index
        if row < self._expected:
            return
        if self._came >= self._every:
            self.drain()
        self._came += 1
        self._expected = row + 1
        self._late[row] = job
        self._start[row] = self._end[row] = NAN
        self._code[row] = 0

    def drain(self, *, everything: bool = False) -> None:
        """Write the rows of the jobs that have ended, or all rows, and forget them."""
        code, self._came = self._code, 0
        over = np.array([everything or code[row] != 0 for row in self._rows.tolist()], dtype=bool)
        if over.any():
            columns = {name: np.asarray(column) for name, column in self._columns.items()}
            part = self._part(self._rows[over].tolist())
            self._write_part(part, self._rows[over], {name: column[over] for name, column in columns.items()})
            self._rows = self._rows[~over]
            self._columns = {name: column[~over] for name, column in columns.items()}
        late = [row for row in self._late if everything or code[row] != 0]
        if late:
            jobs = list(map(self._late.pop, late))
            part = self._part(late)
            part._expected, part._late = 0, dict(enumerate(jobs))
            self._write_part(part, np.array(late), {})

    def _write_part(self, part: JobRecorder, rows: NDArray[np.int64], columns: Mapping[str, Column]) -> None:
        """Write the rows of a recorder of nothing else."""
        stretches = part.stretches()
        jobs = part.jobs(columns, stretches)
        self.extent.add(jobs)
        self._write("jobs", rows, jobs)
        runs = part.runs(jobs, stretches)
        if runs is not None:
            of = rows[rows_of(jobs["job"], runs["job"])]
            networks = self._networks()
            self._write("runs", of, self._with_links(of, runs, networks) if networks else runs)
        vars(part).clear()  # its hooks refer to it, so that it would wait for the garbage collector

    def _with_links(self, rows: NDArray[np.int64], runs: Table, networks: Mapping[str, NodeNetwork]) -> Table:
        """Return executions that are written now with their hops and the links that they shared with any others.

        Those that are written later keep which of their links they have shared so far.
        """
        later = [*self._later()]
        both = Table(
            {
                "place": np.array([*runs["place"].tolist(), *(each.place for each in later)]),
                "start": np.append(runs["start"], [each.start for each in later]),
                "end": np.append(runs["end"], [each.end for each in later]),
                "nodes": np.array([*runs["nodes"], *(each.nodes for each in later), None], dtype=object)[:-1],
            }
        )
        hops, found = links_of(both, networks)
        keys = [*zip(rows.tolist(), runs["start"].tolist(), strict=True), *((each.row, each.start) for each in later)]
        shared, kept = np.full(len(runs), NAN), self._shared
        self._shared = {}
        for row, (links, crossed) in found.items():
            so_far = np.union1d(links[crossed], kept.get(keys[row], links[:0]))
            if row < len(runs):
                shared[row] = len(so_far)
            elif len(so_far):
                self._shared[keys[row]] = so_far
        return runs.with_columns(hops=hops[: len(runs)], shared_links=shared)

    def _later(self) -> Iterator[_Later]:
        """Yield the executions on identified nodes that are not written yet."""
        for row, _, start, end, place, _, _, nodes, *_ in zip(*Stretch.columns(self._stretches), strict=True):
            yield _Later(row, start, end, place, nodes)
        for row, grant in self._on_nodes.items():
            start = self._resumed.get(row, self._start[row])
            if row not in self._suspended and np.isfinite(start):
                yield _Later(row, start, self._end[row], self._elsewhere.get(row, self._main).name, held_by(grant)[0])

    def _part(self, rows: list[int]) -> JobRecorder:
        """Return a recorder of these rows alone, which are forgotten here."""
        part = JobRecorder(self._env, places=self._places, late=False)
        number = {row: i for i, row in enumerate(rows)}
        part._expected = len(rows)
        part._sizes, part._main = self._sizes, self._main
        part._start = array("d", map(self._start.pop, rows))
        part._end = array("d", map(self._end.pop, rows))
        part._code = bytearray(map(self._code.pop, rows))
        for name in _BY_ROW:
            kept = getattr(self, name)
            if kept:
                setattr(part, name, {number[row]: kept.pop(row) for row in rows if row in kept})
        if self._suspended:
            part._suspended = {number[row] for row in self._suspended if row in number}
            self._suspended -= number.keys()
        if self._stretches:
            kept, self._stretches = zip(*Stretch.columns(self._stretches), strict=True), []
            for row, *rest in kept:
                if row in number:
                    part._stretches += (number[row], *rest)
                else:
                    self._stretches += (row, *rest)
        return part

    # ------------------------------------------------------------------ the record without its rows

    def jobs(self, columns: Mapping[str, Column] | None = None, stretches: Stretches | None = None) -> Table:
        """Return the table of jobs without rows."""
        return JobRecorder(self._env).jobs()

    def runs(self, jobs: Table, stretches: Stretches | None = None) -> None:
        """Return ``None``: executions are written with their jobs."""

    def record(self, kind: Any, columns: Mapping[str, Column] | None = None, **options: Any) -> Any:
        """Write all rows that are left, and return the record without rows; options as of the base class."""
        self.drain(everything=True)
        given = {key: value for key, value in options.items() if value is not None}
        return super().record(kind, None, **{**self.extent.span(self._env.now), **given})
