"""Results whose jobs stay on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from simmodel.formats.documents import Value
from simmodel.foundation.display import Cells, Shown
from simmodel.foundation.errors import InputError, Plain
from simmodel.foundation.loading import one_sentence
from simmodel.metrics.batch import FURTHER_METRICS, TAU, Cut, metrics_of
from simmodel.metrics.grid import SITE_COLUMNS, SiteSums, site_lines
from simmodel.metrics.one_pass import COLUMNS, RUN_COLUMNS, NotSorted, Span, summary_in_one_pass
from simmodel.records.job_record import runs_of
from simmodel.results.loading import UNFINISHED, common_of, has_table, load_result, parts_of, read_document, read_tables
from simmodel.results.result import Result
from simmodel.results.stored import Common, Stored
from simmodel.results.stores import json_text
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StreamedGridResult", "StreamedResult", "open_result"]


class StreamedResult(Shown, Stored):
    """The result of a run of jobs whose table of jobs stays on disk.

    ``simulate(..., stream=path)`` returns one, and :func:`open_result` opens one again.

    Attributes
    ----------
    path
        the SQLite file, or the folder of Parquet files
    processors, places, started, ended, report, decisions, scenario
        as of a :class:`~simmodel.results.result.Result`
    """

    COUNTS: ClassVar = ("jobs", "counted")

    def __init__(self, path: Path, document: Mapping[str, Plain], common: Common, tables: Mapping[str, Table]) -> None:
        self.path = path
        self.name, self.started, self.ended = common["name"], common["started"], common["ended"]
        self.report, self.decisions, self.scenario = common["report"], common["decisions"], common["scenario"]
        size: Any = document["processors"]
        self.processors = int(size)
        self.places = tables["places"]
        self._changes, self._claims = tables.get("changes"), tables.get("claims")

    def page(self, explained: Mapping[int, str] | None = None) -> NoReturn:
        """Refuse a page, which needs the whole record in memory."""
        raise InputError("a page needs all jobs in memory: ask load(), the whole result, for it", source=str(self.path))

    # ------------------------------------------------------------------ jobs

    def jobs(self, *columns: str) -> Iterator[Table]:
        """Yield the table of jobs in parts of some ten thousand rows, in the order of the log.

        ``columns``: those to read; default: all.
        """
        return parts_of(self.path, "jobs", columns or None)

    def load(self) -> Result:
        """Return the whole result, in memory."""
        found = load_result(self.path)
        assert isinstance(found, Result)
        return found

    # ------------------------------------------------------------------ metrics

    @cached_property
    def METRICS(self) -> Mapping[str, tuple[str, str]]:
        """The metrics that are numbers: unit and label of each; the further ones if its jobs have their column."""
        return metrics_of(next(self.jobs("job", *FURTHER_METRICS)).names)

    def metrics(self, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU) -> dict[str, Any]:
        """Return the metrics of the run by name, in one pass over the jobs, with exact percentiles.

        Parameters
        ----------
        warmup, cooldown, tau
            as of :meth:`Result.metrics <simmodel.results.result.Result.metrics>`, except ``warmup="mser-5"``

        Raises
        ------
        InputError
            if processes held claims, or the capacity changed, or if the jobs of a folder of Parquet files are not
            sorted by submit time: such records are loaded as a whole
        """
        kept = next((what for what, table in (("changes", self._changes), ("claims", self._claims)) if table), None)
        if kept is not None:
            raise InputError(f"has {kept} of its places: {_WHOLE}", source=str(self.path))
        cut = warmup is not None or cooldown is not None
        first, last = self._submitted() if cut else (np.nan, np.nan)
        span = Span(started=self.started, ended=self.ended, processors=self._size(), first=first, last=last)
        options: dict[str, Any] = {"warmup": warmup, "cooldown": cooldown, "tau": tau}
        try:
            return self._in_one_pass(span, None, options)
        except NotSorted:
            if self.path.is_dir():
                raise
            return self._in_one_pass(span, "submit", options)

    def _in_one_pass(self, span: Span, by: str | None, options: dict[str, Any]) -> dict[str, Any]:
        """Return the metrics of a pass over the jobs in the order of a column."""
        runs = parts_of(self.path, "runs", RUN_COLUMNS) if has_table(self.path, "runs") else None
        return summary_in_one_pass(parts_of(self.path, "jobs", COLUMNS, by=by), span, runs=runs, **options)

    def _size(self) -> float:
        return float(np.sum(self.places["processors"]))

    def _submitted(self) -> tuple[float, float]:
        """Return the first and the last submit time, s."""
        first, last = np.inf, -np.inf
        for part in parts_of(self.path, "jobs", ("submit",)):
            if len(part):
                first, last = min(first, part["submit"].min()), max(last, part["submit"].max())
        return float(first), float(last)

    def summary(self, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU) -> str:
        """Return the metrics as a short table of text; parameters as of :meth:`metrics`."""
        from simmodel.metrics.report import lines_of

        return lines_of(self, self.metrics(warmup=warmup, cooldown=cooldown, tau=tau))

    def metric_text(self, name: str, value: float) -> str:
        """Return one of the ``METRICS`` with its unit as text."""
        from simmodel.metrics.report import metric_text

        return metric_text(name, value)

    # ------------------------------------------------------------------ stores

    def stored_tables(self) -> dict[str, Table]:
        """Return the tables that are stored, which are read as a whole."""
        return self.load().stored_tables()

    def stored_meta(self) -> dict[str, Any]:
        """Return the document that is stored beside the tables, without the fields of all results."""
        return {"processors": self.processors}

    def to_json(
        self, path: str | Path | None = None, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
    ) -> str:
        """Return metrics, report, decisions and scenario as JSON, and write them to ``path`` if given."""
        return json_text({**self.meta(), "metrics": self.metrics(warmup=warmup, cooldown=cooldown, tau=tau)}, path)

    def _cells(self) -> Cells:
        rows = [["file", str(self.path)], ["processors", f"{self.processors:,}"]]
        return [["", "value"], *rows, ["started", f"{self.started:g} s"], ["ended", f"{self.ended:g} s"]]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: on {self.processors:,} processors, in {self.path}>"


_WHOLE = "metrics in one pass are of jobs on a constant capacity; load().metrics() reads all of it"


class StreamedGridResult(StreamedResult):
    """The result of a grid whose table of jobs stays on disk.

    ``simulate(..., stream=path)`` returns one, and :func:`open_result` opens one again.

    Attributes
    ----------
    flows
        as of a :class:`~simmodel.results.grid.GridResult`
    """

    def __init__(self, path: Path, document: Mapping[str, Plain], common: Common, tables: Mapping[str, Table]) -> None:
        super().__init__(path, document, common, tables)
        self.flows = tables["flows"]

    def metrics(self, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU) -> dict[str, Any]:
        """Return the metrics of the run by name, in one pass over the jobs, with exact percentiles.

        Parameters are those of :meth:`StreamedResult.metrics`.

        Raises
        ------
        InputError
            as there, and if jobs were executed again: their last start is known before the first
        """
        found = super().metrics(warmup=warmup, cooldown=cooldown, tau=tau)
        if found["interrupted"]:
            raise InputError(f"has jobs that were executed again: {_WHOLE}", source=str(self.path))
        return found

    @property
    def sites(self) -> Table:
        """One row per site, and a last one of all, in one pass; see :func:`simmodel.metrics.grid.by_site`.

        The utilisation is nan if the capacity of a site changed.
        """
        return self._sites()[0]

    def _sites(self) -> tuple[Table, dict[str, int]]:
        """Return the table of sites, and the number of jobs in each state."""
        sums, states = SiteSums(self.places, self.flows), Counter[str]()
        for part in self.jobs(*SITE_COLUMNS):
            sums.add(part)
            states.update(part["state"].tolist())
        seconds = self.ended - self.started
        return sums.table(self._used(sums, seconds), seconds), dict(states)

    def _used(self, sums: SiteSums, seconds: float) -> NDArray[np.float64]:
        """Return the utilisation of each site and of all."""
        if self._changes is not None or not seconds:
            return np.full(len(sums.cores), np.nan if self._changes is not None else 0.0)
        held = np.zeros(len(sums.cores))
        for runs in self.runs():
            held += sums.held(runs, self.ended)
        return held / (sums.cores * seconds)

    def runs(self) -> Iterator[Table]:
        """Yield the table of executions in parts: those of jobs that ran once follow from the jobs."""
        if has_table(self.path, "runs"):
            yield from parts_of(self.path, "runs")
            return
        for jobs in self.jobs():
            yield runs_of(jobs, jobs["site"], jobs["attempts"])

    def summary(self, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU) -> str:
        """Return the metrics of all jobs, if one pass gives them, and of the busiest sites as text.

        Parameters are those of :meth:`metrics`.
        """
        try:
            text = super().summary(warmup=warmup, cooldown=cooldown, tau=tau)
        except InputError as error:
            text = "\n".join([f"{self.name} on {self.processors:,} processors", f"  {error.message}"])
        return "\n".join([text, *site_lines(*self._sites())])

    def stored_meta(self) -> dict[str, Any]:
        """Return the document that is stored beside the tables, without the fields of all results."""
        return {"kind": "grid", **super().stored_meta()}


def open_result(path: str | Path) -> StreamedResult:
    """Open a stored result of jobs without reading its jobs: an SQLite file, or a folder of Parquet files.

    Raises
    ------
    InputError
        if the path is neither, or not a result of jobs
    """
    file = Path(path)
    with one_sentence(str(path)):
        document = read_document(file)
        kinds: dict[Any, type[StreamedResult]] = {None: StreamedResult, "grid": StreamedGridResult}
        kind = document.get("kind")
        if kind not in kinds:
            raise InputError(f"must be a result of jobs, got one of a {kind}", source=str(path))
        common = common_of(Value(document, str(path)))
        if document.get("unfinished"):
            common["report"].note(UNFINISHED)
        tables = read_tables(file, document, ("places", "changes", "claims", "flows"))
        for name in ("places",) if kind is None else ("places", "flows"):
            if name not in tables:
                raise InputError(f"missing table of {name}", source=str(path))
        return kinds[kind](file, document, common, tables)
