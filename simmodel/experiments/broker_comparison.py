"""Comparison of brokers: the same workloads on the same clusters under each; random brokers run once per seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.experiments.comparison import SideBySide
from simmodel.experiments.runs import Run, simulated
from simmodel.experiments.stopping import EQUAL
from simmodel.foundation.display import Cells, text_table
from simmodel.foundation.errors import InputError
from simmodel.foundation.tracebacks import shortened
from simmodel.metrics.brokered import by_cluster, by_origin, cluster_lines, journeys, moved_journeys, side_by_side
from simmodel.metrics.statistics import Interval, mean_interval, replication_seeds
from simmodel.scheduling.registry import labelled, policy as policy_of
from simmodel.systems.kinds import kind_named
from simmodel.work.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from simmodel.results.broker import BrokerResult
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size

__all__ = ["BrokerComparison", "compare_brokers", "inner_jobs"]

BINNED = ("processors", "walltime")
_TITLES = {"processors": "processors", "walltime": "time asked for"}


def inner_jobs(result: BrokerResult, edges: int) -> BrokerResult:
    """Return a result without rejected jobs and without the first and last ``edges`` jobs.

    Raises
    ------
    InputError
        if no job is left
    """
    if edges == 0:
        return result
    rows = np.flatnonzero(result.jobs["status"] != "rejected")
    rows = rows[np.argsort(result.jobs["submit"][rows], kind="stable")]
    if len(rows) <= 2 * edges:
        raise InputError(f"must be less than half the number of jobs ({len(rows)}), got {edges}", place="edges")
    return result.only(rows[edges : len(rows) - edges])


def compare_brokers(
    clusters: GivenPlatform,
    workload: GivenWork,
    brokers: Sequence[PolicyLike] | Mapping[str, PolicyLike],
    *,
    repeat: int | Iterable[int] = 1,
    edges: int = 0,
    bins: Mapping[str, Sequence[float]] | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    results: bool | None = None,
    level: float = 0.95,
    progress: bool = False,
    **options: Any,
) -> BrokerComparison:
    """Run workloads on clusters under several brokers, and return the results side by side.

    Parameters
    ----------
    clusters, workload, options
        as of :func:`~simmodel.runs.scenario.simulate`
    brokers
        names or policies, or ``{label: broker}``
    repeat
        the number of runs of random brokers, or their seeds; with 1, all runs have ``seed``
    edges
        the number of first jobs, and of last jobs, that are not counted
    bins
        edges of bins of ``"processors"`` and of ``"walltime"`` (s); default: :data:`~simmodel.metrics.bins.BINS`
    executor
        runs the simulations; default: this process
    results
        whether the whole result of each broker is kept, as of :func:`~simmodel.experiments.comparison.compare`
    level
        confidence of the intervals

    Raises
    ------
    InputError
        if there is no broker, a label is duplicate or a name is unknown, or ``stream=`` is given

    >>> from simmodel import Job
    >>> jobs = [Job(processors=4, run=60), Job(processors=4, run=60), Job(processors=2, run=60)]
    >>> both = compare_brokers({"a": 4, "b": 4}, {"a": jobs}, ["siloed", "sgs-t"])
    >>> print(both.by("processors")["change"])
    [-0.66666667 -0.66666667]
    """
    chosen = labelled(brokers, "broker", "brokers", check=partial(policy_of, asked=kind_named("broker").asks))
    if isinstance(repeat, int):
        seeds = replication_seeds(repeat, seed) if repeat > 1 else [seed]
    else:
        seeds = [int(each) for each in repeat]
    if not seeds:
        raise InputError("must be at least one run, got none", place="repeat")
    runs = [
        Run(label, broker, each, kept=i == 0)
        for label, broker in chosen.items()
        for i, each in enumerate(seeds if policy_of(broker).draws else seeds[:1])
    ]
    bins = dict(bins or {})
    with shortened:
        found = simulated(
            {"": clusters},
            {"": workload},
            runs,
            options,
            executor=executor,
            results=results,
            progress=progress,
            part=partial(inner_jobs, edges=edges),
            measure=partial(_tables, bins, "siloed" in chosen and len(chosen) > 1),
        )
    tables: dict[str, list[Mapping[str, Table]]] = {label: [] for label in chosen}
    for run, (_, measured) in zip(runs, found, strict=True):
        tables[run.label].append(measured)
    first = {run.label: result for run, (result, _) in zip(runs, found, strict=True) if run.kept}
    return BrokerComparison(first, tables, level, bins)


def _tables(bins: Mapping[str, Sequence[float]], moves: bool, result: BrokerResult, kept: bool) -> dict[str, Table]:
    """Return the tables of a run: of the first run of a broker, which is kept, all of them."""
    tables = {by: _waits(result, by, bins.get(by)) for by in BINNED}
    if not kept:
        return tables
    tables |= {"clusters": by_cluster(result), "origins": by_origin(result)}
    if (result.jobs["slowdown"] != 1).any():
        tables["there"] = _waits(result, "asked_there", bins.get("walltime"))
    if moves:
        tables["journeys"] = journeys(result)
    return tables


def _waits(result: BrokerResult, by: str, bins: Sequence[float] | None) -> Table:
    table = side_by_side([result], by, bins)
    return Table({"bin": table["bin"], "jobs": table["jobs"], "wait": table[result.name]})


@attrs.frozen(eq=False, repr=False, slots=False)
class BrokerComparison(SideBySide):
    """The results of several brokers side by side.

    ``comparison["sgs-t"]`` is the result with that label, of its first seed.

    Attributes
    ----------
    results
        the result of each broker, with the counted jobs; from other processes a measured run, unless
        ``results=True`` was given
    samples
        for each broker and run: tables of mean waits (min) by ``processors`` and by ``walltime``; for its first run
        also ``clusters`` and ``origins`` (see :mod:`simmodel.metrics.brokered`) and, if a cluster is slower than asked
        for, ``there``: by the time asked for times the slowdown at the cluster where a job ran
    level
        confidence of the intervals
    bins
        the edges passed by the user
    """

    results: dict[str, Any]
    samples: dict[str, list[Mapping[str, Table]]]
    level: float = 0.95
    bins: dict[str, Sequence[float]] = attrs.field(factory=dict)

    def __getitem__(self, label: str) -> Any:
        return self.results[label]

    def waits(self, label: str) -> NDArray[np.float64]:
        """Return the mean wait of a broker in minutes, one number per run."""
        return np.array([float(each["processors"]["wait"][-1]) for each in self.samples[label]])

    def interval(self, label: str) -> Interval | None:
        """Return the mean wait in minutes with its confidence interval, if not all runs are equal.

        It is ``None`` for a single run: of a broker that draws nothing there is no other.
        """
        values = self.waits(label)
        return mean_interval(values, self.level) if len(values) > 1 else None

    def by(self, what: str) -> Table:
        """Return mean waits in minutes by ``"processors"`` or by ``"walltime"``, over the runs of each broker.

        Returns
        -------
        Table
            columns ``bin, jobs``, one per broker, ``BROKER error`` (half width of the interval; 0 for a single run, nan
            if all runs are equal) and ``change`` from the first to the last broker; the last row is of all jobs
        """
        columns: dict[str, Any] = {}
        for label, runs in self.samples.items():
            if not columns:
                columns = {"bin": runs[0][what]["bin"], "jobs": runs[0][what]["jobs"]}
            waits = np.array([each[what]["wait"] for each in runs])
            columns[label] = waits.mean(axis=0)
            columns[f"{label} error"] = np.array(
                [mean_interval(each, self.level).half_width if len(each) > 1 else 0.0 for each in waits.T]
            )
        labels = list(self.samples)
        if len(labels) > 1:
            first, last = columns[labels[0]], columns[labels[-1]]
            columns["change"] = np.divide(last - first, first, out=np.full(len(first), np.nan), where=first != 0)
        return Table(columns)

    def there(self, label: str) -> Table | None:
        """Return mean waits (min) of a broker's first run by the time asked for, times the slowdown where a job ran.

        Returns
        -------
        Table or None
            columns ``bin, jobs, wait``; the last row is of all jobs. ``None``: no job ran on a slower cluster
        """
        return self.samples[label][0].get("there")

    def there_lines(self) -> list[str]:
        """Return these tables side by side, as text: the jobs in a bin are not the same under each broker."""
        tables = {label: table for label in self.samples if (table := self.there(label)) is not None}
        if not tables:
            return []
        bins = list(dict.fromkeys(name for table in tables.values() for name in table["bin"].tolist() if name != "all"))
        rows = [["time asked for x slowdown", *(cell for label in tables for cell in (label, "jobs"))]]
        for name in [*bins, "all"]:
            row = [name]
            for table in tables.values():
                found = [each for each in table.rows() if each["bin"] == name]
                row += [f"{found[0]['wait']:.1f}", f"{found[0]['jobs']:,}"] if found else ["-", "0"]
            rows.append(row)
        return [
            "mean wait (min) by the time asked for, times the slowdown where a job ran",
            *text_table(rows, indent=2),
        ]

    def moved(self, label: str, home: str = "siloed") -> Table:
        """Return the turnaround of the jobs that a broker moved, before (under ``home``) and after."""
        before, after = (self._first(each, "journeys") for each in (home, label))
        return moved_journeys(before, after, self._first(label, "clusters")["cluster"].tolist()[:-1])

    def _first(self, label: str, what: str) -> Table:
        known = self.samples[label][0]
        return known[what] if what in known else journeys(self.results[label])

    def cells(self, what: str) -> list[list[str]]:
        """Return the head and the rows of :meth:`by` as texts."""
        table = self.by(what)
        labels = list(self.samples)
        rows = [[_TITLES[what], "jobs", *labels, *(["change"] if len(labels) > 1 else [])]]
        for row in table.rows():
            cells = [str(row["bin"]), f"{row['jobs']:,}"]
            for label in labels:
                error = f" ± {row[f'{label} error']:.1f}" if row[f"{label} error"] > 0 else ""
                cells.append(f"{row[label]:.1f}{error}")
            if len(labels) > 1:
                cells.append(f"{100 * row['change']:+.1f} %" if np.isfinite(row["change"]) else "-")
            rows.append(cells)
        return rows

    def summary(self) -> str:
        """Return text: each cluster under each broker, mean waits by size and walltime, and flows between clusters."""
        lines: list[str] = []
        for label, result in self.results.items():
            lines += [f"{label}: {result.metrics()['jobs']:,} jobs", *cluster_lines(self._first(label, "clusters"))]
        for what in BINNED:
            lines += [f"mean wait (min) by {_TITLES[what]}", *text_table(self.cells(what), indent=2)]
        intervals = {label: self.interval(label) for label in self.samples}
        lines += [f"{label}: {EQUAL}" for label, each in intervals.items() if each is not None and each.why]
        lines += self.there_lines()
        for label in self.results:
            origins = self._first(label, "origins")
            if label != "siloed" and (origins["origin"] != "").any():
                rows = [["home", "cluster", "jobs", "mean wait", "mean turnaround"]]
                for row in origins.rows():
                    times = [f"{row[name] / 60:.1f}" for name in ("wait", "turnaround")]
                    rows.append([str(row["origin"]), str(row["destination"]), f"{row['jobs']:,}", *times])
                lines += [f"{label}: jobs by home and destination (min)", *text_table(rows, 2, indent=2)]
                if "siloed" in self.results:
                    lines += self._moved_lines(label)
        return "\n".join(lines)

    def _moved_lines(self, label: str) -> list[str]:
        rows = [["home", "cluster", "jobs", "at home", "moved", "change"]]
        for row in self.moved(label).rows():
            times = [f"{row[name] / 60:.1f}" for name in ("before", "after")]
            rows.append(
                [row["origin"], row["destination"], f"{row['jobs']:,}", *times, f"{100 * row['change']:+.1f} %"]
            )
        return [f"{label}: turnaround of moved jobs (min)", *text_table(rows, 2, indent=2)] if len(rows) > 1 else []

    def to_json(self, path: str | Path | None = None) -> str:
        """Return metrics, tables and scenarios as JSON, and write them to ``path`` if given; nan is ``null``."""
        from simmodel.results.stores import json_text

        about = {label: result.meta() for label, result in self.results.items()}
        document = {
            "brokers": {
                label: {
                    "metrics": result.metrics(),
                    "clusters": list(self._first(label, "clusters").rows()),
                    "who_went_where": list(self._first(label, "origins").rows()),
                    "mean_wait_min": self.waits(label).tolist(),
                    "report": result.report.lines(),
                    "decisions": about[label]["decisions"],
                    "scenario": about[label]["scenario"],
                }
                for label, result in self.results.items()
            },
            "mean_wait_min_by": {what: list(self.by(what).rows()) for what in BINNED},
            "level": self.level,
            "timing": {label: each["timing"] for label, each in about.items()},
        }
        if "siloed" in self.results:
            document["moved"] = {label: list(self.moved(label).rows()) for label in self.results if label != "siloed"}
        return json_text(document, path)

    def plot(self, *, title: str | None = None, figsize: Size | None = None) -> Figure:
        """Draw mean waits by size and by walltime, and the utilisation of the clusters under the first and last broker.

        Parameters
        ----------
        title, figsize
            title of the page; width and height of the figure, inches
        """
        from simmodel.view.broker_plots import means_by_bin, weeks
        from simmodel.view.style import figure

        results = list(self.results.values())
        fig = figure((12, 6.6), figsize, title)
        grid = fig.subplots(2, 2)
        for ax, what in zip(grid[0], BINNED, strict=True):
            means_by_bin(results, by=what, bins=self.bins.get(what), ax=ax)
            ax.tick_params(axis="x", labelrotation=20)
        weeks(results[0], ax=grid[1][0])
        weeks(results[-1], ax=grid[1][1], value="utilisation" if len(results) > 1 else "handed")
        return fig

    def _cells(self) -> Cells:
        return self.cells("processors")

    def __repr__(self) -> str:
        return f"<BrokerComparison of {', '.join(self.results)}>"
