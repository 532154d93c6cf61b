"""Results of grids: the record with metrics per site, plots, files and exports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from simmodel.foundation.errors import InputError, Plain
from simmodel.metrics.batch import TAU, Cut
from simmodel.records.broker_record import GridRecord
from simmodel.results.checks import check_flows
from simmodel.results.result import Result
from simmodel.results.stored import Common

if TYPE_CHECKING:
    from pathlib import Path

    from simmodel.platform.signals import GivenSignals
    from simmodel.records.network_recorder import NetworkRecorder
    from simmodel.view.grid_plots import GridPlots
    from simmodel.view.page.document import Page
    from simmodel.work.prepare import TimedWorkflow
    from simmodel.work.table import Table

__all__ = ["GridResult"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class GridResult(Result, GridRecord):
    """The result of a grid; fields and columns are those of :class:`~simmodel.records.broker_record.GridRecord`.

    >>> from simmodel import Environment, Grid, Job
    >>> from simmodel.platform import GridSpec, SiteSpec
    >>> grid = Grid(Environment(), GridSpec(sites=[SiteSpec(name="a", cores=2), SiteSpec(name="b", cores=2)]))
    >>> jobs = [grid.submit(Job(processors=2, run=10)) for _ in range(3)]; grid.env.run()
    >>> table = grid.result().sites
    >>> table["site"].tolist(), table["finished"].tolist(), table["queue_time"].tolist()[-1]
    (['a', 'b', 'all'], [2, 1, 3], 3.3333333333333335)
    """

    TABLES: ClassVar = (*Result.TABLES, "flows")

    @property
    def sites(self) -> Table:
        """One row per site, and a last one of all; see :func:`simmodel.metrics.grid.by_site`."""
        from simmodel.metrics.grid import by_site

        return by_site(self)

    @property
    def errors(self) -> Table:
        """Errors against recorded times; see :func:`simmodel.metrics.grid.recorded_errors`."""
        from simmodel.metrics.grid import recorded_errors

        return recorded_errors(self)

    def by_workflow(self, flows: Sequence[TimedWorkflow], *, speed: float | None = None) -> Table:
        """One row per workflow of the run: makespan, SLR, bytes; see :func:`simmodel.metrics.grid.by_workflow`.

        >>> from simmodel import Task, Workflow, simulate
        >>> from simmodel.platform import GridSpec, SiteSpec
        >>> flow = Workflow([Task(id="a", run=10), Task(id="b", run=5)], [("a", "b")], name="chain")
        >>> list(simulate(GridSpec(sites=[SiteSpec(name="site", cores=1)]), flow).by_workflow([flow]).rows())
        [{'workflow': 'chain', 'tasks': 2, 'finished': 2, 'makespan': 15.0, 'slr': 1.0, 'bytes': 0.0}]
        """
        from simmodel.metrics.grid import by_workflow

        return by_workflow(self, flows, speed)

    def summary(
        self,
        *,
        warmup: Cut = None,
        cooldown: Cut = None,
        tau: float = TAU,
        signals: GivenSignals | None = None,
    ) -> str:
        """Return the metrics of all jobs and of the busiest sites as text; parameters as of :meth:`metrics`."""
        from simmodel.metrics.grid import site_lines

        text = super().summary(warmup=warmup, cooldown=cooldown, tau=tau, signals=signals)
        return "\n".join([text, *site_lines(self.sites, Counter(self.jobs["state"].tolist()))])

    @cached_property
    def plot(self) -> GridPlots:
        """Plots of the run: those of all results, ``.sites()``, ``.flows()``, ``.map()`` ``.links(record)``."""
        from simmodel.view.grid_plots import GridPlots

        return GridPlots(self)

    def page(self, explained: Mapping[int, str] | None = None, *, links: NetworkRecorder | None = None) -> Page:
        """Return the page of the run; see :meth:`to_html`."""
        from simmodel.view.page.results import grid_page

        return grid_page(self, explained, links)

    def to_html(
        self, path: str | Path, *, explain: Iterable[int | str] = (), links: NetworkRecorder | None = None
    ) -> None:
        """Write one HTML file that shows the run, as other results do, and the load of its links.

        Parameters
        ----------
        path, explain
            the file; the ids of jobs whose wait is explained
        links
            the recorder of the network of the grid, observed from the start
        """
        from simmodel.foundation.writing import write_text

        write_text(path, self.page(self.explained(explain), links=links).html(), ".html")

    # ------------------------------------------------------------------ stores

    def stored_meta(self) -> dict[str, Any]:
        """Return the document that is stored beside the tables, without the fields of all results."""
        return {"kind": "grid", **super().stored_meta()}

    @classmethod
    def from_stored(cls, tables: Mapping[str, Table], about: Mapping[str, Plain], common: Common) -> GridResult:
        """Return the result of stored tables and of the document of :meth:`stored_meta`.

        Raises
        ------
        InputError
            the tables contradict themselves or each other
        """
        for name in ("site", "state", "executing", "bytes_in", "bytes_out"):
            if "places" in tables and name not in tables["jobs"]:
                raise InputError(f"missing column {name}", place="jobs")
        check_flows(tables)
        found = super().from_stored(tables, about, common)
        assert isinstance(found, cls)
        return found
