"""The common part of all results: tables, metrics, and files; and of their explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from simmodel.foundation.display import Shown
from simmodel.foundation.entries import load
from simmodel.foundation.errors import ByName, InputError, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.view.page.document import Page
    from simmodel.view.style import Size
    from simmodel.work.table import Table
    from simmodel.work.workload import Report

__all__ = ["Common", "Stored", "Told"]


class Told(Shown):
    """The base class of explanations, which say why work waits."""

    def report(self) -> str:
        return "\n".join(self._lines())

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        raise NotImplementedError

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the document as JSON, and write it to a file if a path is given."""
        from simmodel.results.stores import json_text

        return json_text(self.document(), path)

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw it."""
        raise NotImplementedError

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.report()


_IN_A_NOTEBOOK = 5_000  # pieces of work: some 300 kB


class Common(TypedDict):
    """The fields that all stored results have."""

    name: str
    started: float
    ended: float
    report: Report
    decisions: dict[str, float]
    scenario: dict[str, Any]


class Stored:
    """The base of all results: metrics, and files of their tables.

    Attributes
    ----------
    COUNTS
        the metrics that count the work
    """

    COUNTS: ClassVar[tuple[str, ...]]

    name: str
    started: float
    ended: float
    report: Report
    decisions: dict[str, float]
    scenario: dict[str, Any]

    @property
    def METRICS(self) -> Mapping[str, tuple[str, str]]:
        """The metrics that are numbers: unit and label of each."""
        raise NotImplementedError

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run by name."""
        raise NotImplementedError

    def metric_text(self, name: str, value: float) -> str:
        """Return one of the ``METRICS`` with its unit as text."""
        raise NotImplementedError

    def metric_texts(self) -> Callable[[str, float], str]:
        """Return a function like :meth:`metric_text` that can be kept, and sent, without the result."""
        return self.metric_text

    def numbers(self) -> dict[str, float]:
        """Return the metrics that are numbers; nan if undefined."""
        found = self.metrics()
        return ByName("metric", {name: float(found[name]) for name in self.METRICS})

    def stored_tables(self) -> dict[str, Table]:
        """Return the tables that are stored."""
        raise NotImplementedError

    def stored_meta(self) -> dict[str, Any]:
        """Return the document that is stored beside the tables, without the fields of :class:`Common`."""
        raise NotImplementedError

    def meta(self) -> dict[str, Any]:
        """Return the document that a store keeps beside the tables, ready for JSON; ``scenario`` repeats the run.

        Only ``timing``, the seconds that decisions took on this computer, differs between two runs of one scenario.
        """
        from simmodel.records.tables import versions
        from simmodel.results.stores import plain

        timing = {name: seconds for name, seconds in self.decisions.items() if name != "count"}
        document: dict[str, Any] = plain(
            {
                "simmodel": versions()["simmodel"],
                "name": self.name,
                **self.stored_meta(),
                "started": self.started,
                "ended": self.ended,
                "report": {
                    "skipped": self.report.skipped,
                    "repaired": self.report.repaired,
                    "rejected": self.report.rejected,
                    **({"notes": list(self.report.notes)} if self.report.notes else {}),
                },
                "decisions": {name: self.decisions[name] for name in self.decisions if name == "count"},
                "scenario": self.scenario,
                "timing": {"decisions": timing},
            }
        )
        return document

    def explain(self, work: int | str, at: float | None = None, *, trust: bool = False, **given: Any) -> Told:
        """Repeat the run, and return why a job or a task waited: see :func:`simmodel.referee.explain`.

        Parameters
        ----------
        work
            the id of the job or task
        at
            on a cluster, the instant (s); default: that of its submission
        trust
            whether the policies of a stored result may be ``module:name``, which imports code
        given
            parts that the scenario does not store, such as ``policy`` and ``workload`` that were passed as objects

        Raises
        ------
        InputError
            there is no such work, it does not wait at the instant, or a part of the scenario is missing
        """
        explain: Callable[..., Told] = load("simmodel.referee.explaining:explain_result")
        return explain(self, work, at, trust=trust, **given)

    def page(self, explained: Mapping[int, str] | None = None) -> Page:
        """Return the page of the run, with why work waited for the numbers of some rows."""
        raise NotImplementedError

    def _framed(self) -> str:
        """Return the page of the run as HTML for a notebook, where a click opens it; empty for more than 5,000 rows."""
        if len(self.ids()) > _IN_A_NOTEBOOK:
            return ""
        return f"<details><summary>zoom, search, click</summary>{self.page()._repr_html_()}</details>"

    def to_html(self, path: str | Path, *, explain: Iterable[int | str] = ()) -> None:
        """Write one HTML file that shows the run and needs nothing else: to zoom into, to search and to print.

        The schedule, quantities over time, distributions, metrics, notes, the scenario, and a table of all work.

        Parameters
        ----------
        path
            the file
        explain
            the ids of work whose wait is explained: the run is repeated for each, as by :meth:`explain`

        Raises
        ------
        InputError
            there is no such work, the run cannot be repeated, or the file cannot be written
        """
        from simmodel.foundation.writing import write_text

        write_text(path, self.page(self.explained(explain)).html(), ".html")

    def explained(self, work: Iterable[int | str]) -> dict[int, str]:
        """Return why work with these ids waited, by row; raises ``InputError`` if there is no such work."""
        asked = list(work)
        rows = {each: row for row, each in enumerate(self.ids())} if asked else {}
        if unknown := [each for each in asked if each not in rows]:
            raise InputError(f"{shown(unknown[0])} is not among the work of the run", place="explain")
        return {rows[each]: self._why(each) for each in asked}

    def _why(self, work: int | str) -> str:
        """Return why work waited, or the sentence that says that it did not."""
        try:
            return self.explain(work).report()
        except InputError as error:
            if error.place != "at":
                raise
            return error.message

    def ids(self) -> list[int | str]:
        """Return the ids of the work, in the order of its table."""
        raise NotImplementedError

    def to_csv(self, folder: str | Path) -> None:
        """Write one CSV file per table, and ``meta.json``, into a folder, which is made if it does not exist."""
        from simmodel.results.stores import write_csv

        write_csv(self.stored_tables(), self.meta(), folder)

    def to_parquet(self, folder: str | Path) -> None:
        """Write one Parquet file per table, and ``meta.json``, into a folder.

        Raises ``MissingExtra`` if pyarrow is not installed.
        """
        from simmodel.results.stores import write_parquet

        write_parquet(self.stored_tables(), self.meta(), folder)

    def to_sqlite(self, path: str | Path, *, force: bool = False) -> None:
        """Write an SQLite database of the tables and a table ``meta`` of keys and JSON values.

        An existing file is replaced as a whole. Raises ``InputError`` if it cannot be written (see
        :func:`simmodel.foundation.writing.replacing`), or if it is a database of another program, unless ``force``.
        """
        from simmodel.results.stores import write_sqlite

        write_sqlite(self.stored_tables(), self.meta(), path, force=force)
