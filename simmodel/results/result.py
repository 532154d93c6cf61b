"""Results of runs of jobs: the record with metrics, plots, files and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from simmodel.foundation.errors import InputError, Plain, clipped, shown
from simmodel.metrics.batch import GPU_METRICS, TAU, Cut, metrics_of
from simmodel.records.job_record import FIRST_COLUMNS, JobRecord, has_gpus
from simmodel.results.stored import Common, Stored
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simmodel.platform.signals import GivenSignals
    from simmodel.results.machine import MachineResult
    from simmodel.view.page.document import Page
    from simmodel.view.plots import ResultPlots
    from simmodel.work.workload import Workload

__all__ = ["Result", "recorded_result"]


class Result(Stored, JobRecord):
    """The result of a run of jobs: its record, metrics, plots and files.

    Fields and parameters are those of :class:`~simmodel.records.job_record.JobRecord`.

    >>> result = Result(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}, processors=4)
    >>> result.jobs["wait"]
    array([ 0., 10.])
    >>> round(result.metrics()["utilisation"], 3)
    0.667
    """

    TABLES: ClassVar[tuple[str, ...]] = (
        *("jobs", "runs", "events", "places", "changes", "choices", "nodes", "claims", "reasons"),
    )

    COUNTS: ClassVar = ("jobs", "counted")

    # ------------------------------------------------------------------ metrics

    @property
    def METRICS(self) -> Mapping[str, tuple[str, str]]:
        """The metrics that are numbers: unit and label of each; the further ones if its jobs have their column."""
        known = metrics_of(self.jobs.names)
        return known | GPU_METRICS if has_gpus(self) else known

    def metrics(
        self,
        *,
        warmup: Cut = None,
        cooldown: Cut = None,
        tau: float = TAU,
        signals: GivenSignals | None = None,
    ) -> dict[str, Any]:
        """Return the metrics of the run by name; see :func:`simmodel.metrics.batch.summary`.

        Parameters
        ----------
        warmup, cooldown
            cuts at the start and the end: seconds, or a share such as ``"10%"``; ``warmup="mser-5"``: by that rule
        tau
            the bound of bounded slowdowns, s
        signals
            adds the energy (kWh) and its costs by each of these signals; ``{}``: the energy alone
        """
        from simmodel.metrics.batch import summary

        return summary(self, warmup=warmup, cooldown=cooldown, tau=tau, signals=signals)

    def summary(
        self,
        *,
        warmup: Cut = None,
        cooldown: Cut = None,
        tau: float = TAU,
        signals: GivenSignals | None = None,
    ) -> str:
        """Return the metrics as a short table of text; parameters as of :meth:`metrics`."""
        from simmodel.metrics.report import summary_text

        return summary_text(self, warmup=warmup, cooldown=cooldown, tau=tau, signals=signals)

    def metric_text(self, name: str, value: float) -> str:
        """Return one of the ``METRICS`` with its unit as text."""
        return self.metric_texts()(name, value)

    def metric_texts(self) -> Callable[[str, float], str]:
        """Return a function like :meth:`metric_text` that can be kept, and sent, without the result."""
        from simmodel.metrics.report import metric_text

        return metric_text

    # ------------------------------------------------------------------ workflows inside jobs

    def workflow_of(self, job: int | str) -> MachineResult:
        """Return the result of the workflow that a job ran inside its nodes, in its latest attempt.

        Stored results do not have them.

        Raises
        ------
        InputError
            the job ran no workflow

        >>> from simmodel import Job, Task, Workflow, load_platform, simulate
        >>> flow = Workflow([Task(id="a", run=10), Task(id="b", run=5)], [("a", "b")])
        >>> job = Job(id="flow", submit=3, processors=4, workflow=flow, machine=load_platform("hetsim-slow"))
        >>> result = simulate(4, [job], "easy")
        >>> result.workflow_of("flow").tasks["end"], result.jobs["end"]
        (array([13., 18.]), array([18.]))
        """
        from simmodel.results.machine import MachineResult

        found = self.workflows.get(job)
        if not isinstance(found, MachineResult):
            known = ", ".join(map(clipped, [*self.workflows][:20])) or "none"
            raise InputError(f"job {job!r} ran no workflow inside its nodes, or was stored; jobs that did: {known}")
        return found

    # ------------------------------------------------------------------ stores

    def to_pandas(self) -> NoReturn:
        """Raise ``InputError``: a result has several tables, each of which has this method."""
        names = ", ".join(f"result.{name}.to_pandas()" for name in self.stored_tables())
        raise InputError(f"must be asked of one of its tables: {names}", place="to_pandas")

    def schedule_csv(self, path: str | Path) -> None:
        """Write the table of jobs as CSV: ``job,submit,start,end,processors,status`` first, times as in the log."""
        rest = [name for name in self.jobs.names if name not in FIRST_COLUMNS]
        Table({name: self.jobs[name] for name in (*FIRST_COLUMNS, *rest)}).to_csv(path)

    def stored_tables(self) -> dict[str, Table]:
        """Return the tables that are stored."""
        found = {name: getattr(self, name) for name in self.TABLES}
        return {name: table for name, table in found.items() if table is not None}

    def stored_meta(self) -> dict[str, Any]:
        """Return the document that is stored beside the tables, without the fields of all results."""
        return {"processors": self.processors}

    @classmethod
    def from_stored(cls, tables: Mapping[str, Table], about: Mapping[str, Plain], common: Common) -> Result:
        """Return the result of stored tables and of the document of :meth:`stored_meta`.

        Raises
        ------
        InputError
            the tables contradict themselves or each other
        """
        from simmodel.results.checks import check_jobs

        processors = about["processors"]
        if type(processors) is not int or processors < 0:
            raise InputError(f"must be a whole number >= 0, got {shown(processors)}", place="processors")
        check_jobs(tables, processors)
        columns: dict[str, Any] = dict(tables)
        if "runs" in tables and tables["jobs"]["job"].dtype.kind == "U":  # mixed ids in CSV
            columns["runs"] = tables["runs"].with_columns(job=tables["runs"]["job"].astype(str))
        return cls(processors=processors, **columns, **common)

    def to_json(
        self,
        path: str | Path | None = None,
        *,
        jobs: bool = False,
        warmup: Cut = None,
        cooldown: Cut = None,
        tau: float = TAU,
        signals: GivenSignals | None = None,
    ) -> str:
        """Return metrics, report, decisions and scenario as JSON; numbers that are not finite are ``null``.

        Parameters
        ----------
        path
            a file to write as well
        jobs
            add the table of jobs
        warmup, cooldown, tau, signals
            of the metrics, as of :meth:`metrics`
        """
        from simmodel.results.stores import json_text

        metrics = self.metrics(warmup=warmup, cooldown=cooldown, tau=tau, signals=signals)
        document = {**self.meta(), "metrics": metrics}
        if jobs:
            document["jobs"] = {name: column.tolist() for name, column in self.jobs.items()}
        return json_text(document, path, compact=jobs)

    def to_perfetto(self, path: str | Path, *, limit: int = 500_000, points: int = 20_000) -> None:
        """Write a trace for ui.perfetto.dev; see :func:`simmodel.formats.perfetto.write_trace`."""
        from simmodel.formats.perfetto import write_trace

        write_trace(self, path, limit=limit, points=points)

    # ------------------------------------------------------------------ views

    @cached_property
    def plot(self) -> ResultPlots:
        """Plots of the run: ``result.plot.gantt()``, ``.utilisation()``, ``.queue()``, ``.overview()`` and so on."""
        from simmodel.view.plots import ResultPlots

        return ResultPlots(self)

    def page(self, explained: Mapping[int, str] | None = None) -> Page:
        """Return the page of the run; see :meth:`to_html`."""
        from simmodel.view.page.results import job_page

        return job_page(self.in_seconds, explained)

    def ids(self) -> list[int | str]:
        """Return the ids of the jobs, in the order of their table."""
        return list(self.jobs["job"].tolist())

    def _repr_html_(self) -> str:
        from simmodel.view.html import result_html

        return result_html(self) + self._framed()


def recorded_result(workload: Workload, *, processors: int | None = None) -> Result:
    """Return the result with the waits and run times recorded in a log, to compare simulations with.

    Jobs without a recorded start or run time are ``rejected``.

    >>> from simmodel import Workload
    >>> log = Workload({"submit": [0, 5], "wait": [0, 7], "run": [10, 10], "processors": [1, 4]}, processors=4)
    >>> recorded_result(log).jobs["start"]
    array([ 0., 12.])
    """
    run, start = workload["run"], workload.recorded_starts()
    known = np.isfinite(start) & (run >= 0) & (workload["processors"] > 0)
    start = np.where(known, start, np.nan)
    report = Report()
    if not known.all():
        report.rejected["wait, run time or processors not recorded"] += int((~known).sum())
    columns = {
        "job": workload["job"],
        "submit": workload["submit"],
        "start": start,
        "end": start + run,
        "processors": workload["processors"],
        "status": np.where(known, "completed", "rejected"),
    }
    for name in ("requested", "user", "group", "queue", "partition"):
        if name in workload:
            columns[name] = workload[name]
    size = processors or workload.processors
    options: dict[str, Any] = {"processors": size} if size else {}
    return Result(
        jobs=Table(columns),
        name=f"{workload.name} as recorded",
        report=workload.report + report,
        **options,
    )
