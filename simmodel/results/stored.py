"""What all results have in common: tables, metrics, and the stores that they are written to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from simmodel.work.table import Table
    from simmodel.work.workload import Report

__all__ = ["Stored"]


class Stored:
    """What all results can be asked and stored as; a subclass says which tables it has and what stands beside them.

    Attributes
    ----------
    METRICS
        the metrics that are numbers: of each its unit and what it is
    COUNTS
        the metrics that say how much work there was
    """

    METRICS: ClassVar[Mapping[str, tuple[str, str]]]
    COUNTS: ClassVar[tuple[str, ...]]

    name: str
    started: float
    ended: float
    report: Report
    decisions: dict[str, float]
    scenario: dict[str, Any]

    def metrics(self, **options: Any) -> dict[str, Any]:
        """Return the metrics of the run by name."""
        raise NotImplementedError

    def metric_text(self, name: str, value: float) -> str:
        """Return one of the ``METRICS`` with its unit, for people."""
        raise NotImplementedError

    def numbers(self) -> dict[str, float]:
        """Return the metrics that are numbers; nan where there is none."""
        found = self.metrics()
        return {name: float(found[name]) for name in self.METRICS}

    def stored_tables(self) -> dict[str, Table]:
        """Return everything that a store keeps as tables."""
        raise NotImplementedError

    def stored_meta(self) -> dict[str, Any]:
        """Return what a store keeps beside the tables and what all results have."""
        raise NotImplementedError

    def meta(self) -> dict[str, Any]:
        """Return what a store keeps beside the tables, ready for JSON; ``scenario`` repeats the run."""
        from simmodel.records.versions import versions
        from simmodel.results.stores import plain

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
                },
                "decisions": self.decisions,
                "scenario": self.scenario,
            }
        )
        return document

    def to_csv(self, folder: str | Path) -> None:
        """Write one CSV file a table, and ``meta.json``, into a folder (made where it is missing)."""
        from simmodel.results.stores import write_csv

        write_csv(self.stored_tables(), self.meta(), folder)

    def to_parquet(self, folder: str | Path) -> None:
        """Write one Parquet file a table, and ``meta.json``, into a folder.

        Raises ``ImportError`` with what to install where pyarrow is absent.
        """
        from simmodel.results.stores import write_parquet

        write_parquet(self.stored_tables(), self.meta(), folder)

    def to_sqlite(self, path: str | Path) -> None:
        """Write an SQLite database with one table for each of the result's and a table ``meta``, in one transaction.

        A file that exists is replaced. The table meta has a row a key, with JSON as its value. Raises ``InputError``
        where something that is not a file has this name.
        """
        from simmodel.results.stores import write_sqlite

        write_sqlite(self.stored_tables(), self.meta(), path)
