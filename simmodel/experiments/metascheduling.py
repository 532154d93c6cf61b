"""The experiment of the CQSim+ papers: one log on two clusters, placed by chance or by simulated turnaround.

The log is that of Theta (ALCF) in 2022. Its 23,722 jobs of at most 2,180 processors run on two clusters of 2,180; waits
are averaged over all of them but the first and the last 1,000, by size and by the time that users asked for. The second
experiment slows the second cluster down by 1.3, and compares with a broker that sends 0.6 of the jobs to the first.

CQSim plans waiting jobs with their actual run times and running ones with what they asked for, stops runs at the time
asked for, and decides after each single event, ends before submissions: ``estimates="cqsim", decide_on="event",
event_order="ends-first"``. Its brokers simulate with actual run times: ``by="actual"``.

Source: tables 1 and 2 of the CQSim+ paper (SPEAR group, Illinois Institute of Technology), minutes of average wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.errors import InputError
from simmodel.experiments.brokered import simulate_brokered
from simmodel.experiments.compare import map_calls
from simmodel.metrics.brokered import side_by_side
from simmodel.metrics.statistics import Interval, mean_interval, replication_seeds
from simmodel.work.table import Table

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from simmodel.records.brokered import BrokerResult
    from simmodel.work.workload import Workload

__all__ = ["CQSIM", "PAPER", "SETUPS", "Contest", "Setup", "contest", "experiment", "fitting"]

CQSIM: dict[str, Any] = {"decide_on": "event", "event_order": "ends-first", "estimates": "cqsim", "by": "actual"}
"""The rules of CQSim and CQSim+, as options of :func:`~simmodel.experiments.brokered.simulate_brokered`."""


@attrs.frozen(kw_only=True)
class Setup:
    """One of the two experiments: the clusters, the two brokers, and what the paper found.

    Attributes
    ----------
    name, clusters, slowdowns, brokers
        what is compared, in which setting
    paper
        average waits in minutes, (first broker, second broker), by size and (``"all"``) over all jobs
    """

    name: str
    clusters: tuple[int, ...] = (2180, 2180)
    slowdowns: tuple[float, ...] = (1.0, 1.0)
    brokers: tuple[str, str]
    paper: Mapping[str, tuple[float, float]]


PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "equal": {
        "(0,128]": (214.6, 131.4),
        "(128,256]": (558.1, 416.3),
        "(256,512]": (879.6, 691.6),
        "(512,1024]": (1748.9, 1465.1),
        "(1024,inf]": (1741.2, 1301.6),
        "all": (551.1, 416.2),
    },
    "slower": {
        "(0,128]": (344.0, 218.6),
        "(128,256]": (952.2, 676.2),
        "(256,512]": (1456.0, 1185.8),
        "(512,1024]": (3006.6, 2351.5),
        "(1024,inf]": (3073.3, 2142.2),
        "all": (928.6, 681.7),
    },
}
SETUPS: dict[str, Setup] = {
    "equal": Setup(name="equal", brokers=("random", "sgs-t"), paper=PAPER["equal"]),
    "slower": Setup(name="slower", slowdowns=(1.0, 1.3), brokers=("share:0.6", "sgs-t"), paper=PAPER["slower"]),
}


def fitting(log: Workload, processors: int = 2180) -> Workload:
    """Return the jobs of a log that ask for at most so many processors.

    >>> from simmodel.work.workload import Workload
    >>> log = Workload({"submit": [0, 0], "run": [1, 1], "processors": [2180, 4360]})
    >>> len(fitting(log))
    1
    """
    asked = log["requested_processors"] if "requested_processors" in log else log["processors"]
    return log.where(np.where(asked > 0, asked, log["processors"]) <= processors)


def experiment(
    log: Workload,
    setup: Setup,
    broker: str,
    *,
    seed: int = 0,
    edges: int = 1000,
    simulate_edges: bool = True,
    policy: Any = "conservative",
    **options: Any,
) -> BrokerResult:
    """Run one broker of a setup on a log, and return the result with the jobs that count.

    Parameters
    ----------
    log
        the jobs; those that are too large are left out
    edges
        how many of the first and of the last jobs do not count
    simulate_edges
        whether these are simulated all the same
    policy
        of the clusters
    options
        as of :func:`~simmodel.experiments.brokered.simulate_brokered`, beside :data:`CQSIM`

    Raises
    ------
    InputError
        where the edges leave no job
    """
    jobs = fitting(log, max(setup.clusters))
    inner = slice(edges, len(jobs) - edges)
    if not len(jobs) > 2 * edges >= 0:
        raise InputError(f"more than {2 * edges} jobs expected, {edges} at either end uncounted, found {len(jobs)}")
    result = simulate_brokered(
        list(setup.clusters),
        jobs if simulate_edges else jobs.where(inner),
        broker,
        policy=policy,
        slowdowns=setup.slowdowns,
        seed=seed,
        name=broker,
        **{**CQSIM, **options},
    )
    return result.only(inner) if simulate_edges else result


@attrs.frozen(eq=False, repr=False)
class Contest:
    """Two brokers compared, each over its seeds.

    Attributes
    ----------
    setup
        what was compared
    sizes, walltimes
        one row a bin: ``bin, jobs``; mean waits in minutes of both brokers (``first, second``), half widths of their
        confidence intervals (``first_error, second_error``; 0 where chance plays no part), the change, and by size
        the paper's figures (``paper_first, paper_second, paper_change``)
    waits
        the mean wait of each broker in minutes, one number a seed
    level
        confidence of the intervals
    """

    setup: Setup
    sizes: Table
    walltimes: Table
    waits: dict[str, NDArray[np.float64]]
    level: float

    def interval(self, broker: str) -> Interval | None:
        """Return the mean wait of a broker in minutes with its interval, ``None`` where there is one run only."""
        values = self.waits[broker]
        return mean_interval(values, self.level) if len(values) > 1 else None

    def summary(self) -> str:
        """Return the tables as text."""
        first, second = self.setup.brokers
        slower = " and ".join(
            f"{size} (times {by:g})" for size, by in zip(self.setup.clusters, self.setup.slowdowns, strict=True)
        )
        lines = [f"{first} against {second} on clusters of {slower}: mean wait, min"]
        for table, title in ((self.sizes, "processors"), (self.walltimes, "time asked for")):
            paper = "paper_first" in table
            head = [title, "jobs", first, second, "change", *(["the paper", "", "change"] if paper else [])]
            rows = [head]
            for row in table.rows():
                errors = [
                    f" ± {row[f'{which}_error']:.1f}" if row[f"{which}_error"] > 0 else ""
                    for which in ("first", "second")
                ]
                cells = [
                    row["bin"],
                    f"{row['jobs']:,}",
                    f"{row['first']:.1f}{errors[0]}",
                    f"{row['second']:.1f}{errors[1]}",
                ]
                cells.append(f"{100 * row['change']:+.1f} %")
                if paper:
                    cells += [
                        f"{row['paper_first']:.1f}",
                        f"{row['paper_second']:.1f}",
                        f"{100 * row['paper_change']:+.1f} %",
                    ]
                rows.append(cells)
            widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
            lines += [
                "  "
                + "  ".join(
                    f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}"
                    for i, (cell, w) in enumerate(zip(row, widths, strict=True))
                )
                for row in rows
            ]
        return "\n".join(line.rstrip() for line in lines)


def contest(
    log: Workload,
    setup: Setup | str = "equal",
    seeds: int | Iterable[int] = 10,
    *,
    executor: Executor | None = None,
    level: float = 0.95,
    progress: bool = False,
    **options: Any,
) -> Contest:
    """Run both brokers of a setup, those that draw once a seed, and compare them bin by bin.

    Parameters
    ----------
    log
        the jobs
    setup
        one of :data:`SETUPS`, by name, or another
    seeds
        how many for the brokers that draw, or the seeds themselves
    executor
        runs them, where one is given
    level
        confidence of the intervals
    options
        as of :func:`experiment`; with ``ties="random"`` SGS-T draws too

    Raises
    ------
    InputError
        where the setup is not known
    """
    if isinstance(setup, str):
        if setup not in SETUPS:
            raise InputError(f"a setup expected ({', '.join(SETUPS)}), found {setup!r}")
        setup = SETUPS[setup]
    chosen = replication_seeds(seeds) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    calls = [
        (log, setup, broker, seed, options)
        for broker in setup.brokers
        for seed in (chosen if _draws(broker, options) else chosen[:1])
    ]
    found = list(map_calls(_one, calls, executor, progress))
    tables = []
    for which in (0, 1):
        each = {
            broker: [tables[which] for call, tables in zip(calls, found, strict=True) if call[2] == broker]
            for broker in setup.brokers
        }
        tables.append(_joined(setup, each, level))
    waits = {
        broker: np.array([pair[0]["wait"][-1] for call, pair in zip(calls, found, strict=True) if call[2] == broker])
        for broker in setup.brokers
    }
    sizes = tables[0]
    if set(sizes["bin"].tolist()) <= set(setup.paper):
        paper = np.array([setup.paper[name] for name in sizes["bin"].tolist()])
        sizes = sizes.with_columns(
            paper_first=paper[:, 0], paper_second=paper[:, 1], paper_change=paper[:, 1] / paper[:, 0] - 1
        )
    return Contest(setup, sizes, tables[1], waits, level)


def _draws(broker: str, options: Mapping[str, Any]) -> bool:
    return not broker.startswith("sgs") or options.get("ties") == "random"


def _one(call: tuple[Any, ...]) -> tuple[Table, Table]:
    log, setup, broker, seed, options = call
    options = dict(options)
    if not broker.startswith("sgs"):
        options.pop("ties", None)
    result = experiment(log, setup, broker, seed=seed, **options)
    pair = [side_by_side([result], by) for by in ("processors", "walltime")]
    named = [Table({"bin": each["bin"], "jobs": each["jobs"], "wait": each[broker]}) for each in pair]
    return named[0], named[1]


def _joined(setup: Setup, tables: Mapping[str, Sequence[Table]], level: float) -> Table:
    """Return means over seeds with their errors, side by side."""
    first, second = (tables[broker] for broker in setup.brokers)
    columns: dict[str, Any] = {"bin": first[0]["bin"], "jobs": first[0]["jobs"]}
    for name, each in (("first", first), ("second", second)):
        waits = np.array([table["wait"] for table in each])
        columns[name] = waits.mean(axis=0)
        columns[f"{name}_error"] = [
            mean_interval(column, level).half_width if len(column) > 1 else 0.0 for column in waits.T
        ]
    columns["change"] = columns["second"] / columns["first"] - 1
    return Table(columns)
