"""The experiments of the CQSim+ papers: jobs on two clusters, with random or simulation-guided placement.

The log is that of Theta (ALCF) in 2022. Its 23,722 jobs of at most 2,180 processors run on two clusters of 2,180; waits
are averaged over all jobs except the first and the last 1,000, by size and by requested time. In the second experiment
the second cluster is slower by a factor of 1.3, and the other broker sends 0.6 of the jobs to the first.

With EASY backfilling in the clusters, and the first and last 1,000 jobs simulated but not counted, SGS-T reproduces the
second table to the last digit, and so the table by requested time with the slower cluster (requested times are those of
the cluster where a job ran: times 1.3 on the second). Random choices (Random, Share, and ties between equal clusters)
are within two standard deviations of single runs in each bin, and the averages over all jobs within the intervals of
ten runs. With conservative backfilling the averages are 10 to 20 % higher, and the changes about the same.

CQSim plans waiting jobs with actual run times and running jobs with requested times, stops jobs at their requested
time, and decides after each event, ends before submissions: ``estimates="cqsim", decide_on="event",
event_order="ends-first"``. Its brokers simulate with actual run times: ``by="actual"``.

Source: tables 1 and 2 of the CQSim+ paper (SPEAR group, Illinois Institute of Technology), minutes of average wait.

The case study has two logs, of Polaris and Theta (September to December 2023), at their own clusters or under SGS-T: a
job of Theta takes a quarter of its time on Polaris, a job of Polaris four times its time on Theta, and jobs that need
GPUs run on Polaris only. Its logs and the figures of its table 5 could not be had: :func:`case_study` has the same
table and figures from a generated log of Polaris and any log of Theta.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.experiments.broker_comparison import BrokerComparison, compare_brokers
from simmodel.foundation.display import Cells, Shown, text_table
from simmodel.foundation.errors import unknown
from simmodel.metrics.brokered import by_cluster, cluster_lines
from simmodel.work.table import Table
from simmodel.work.transformations import shift

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.view.style import Size
    from simmodel.work.workload import Workload

__all__ = ["CQSIM", "PAPER", "SETUPS", "BrokerStudy", "CaseStudy", "Setup", "broker_study", "case_study", "fitting"]

CQSIM: dict[str, Any] = {"decide_on": "event", "event_order": "ends-first", "estimates": "cqsim", "by": "actual"}
"""The rules of CQSim and CQSim+, as options of :func:`~simmodel.runs.scenario.simulate`."""


@attrs.frozen(kw_only=True)
class Setup:
    """One of the two experiments: the clusters, the two brokers, and the results of the paper.

    Attributes
    ----------
    name, clusters, slowdowns, brokers
        the experiment
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
    "slower": Setup(name="slower", slowdowns=(1.0, 1.3), brokers=("share(0.6)", "sgs-t"), paper=PAPER["slower"]),
}


def fitting(log: Workload, processors: int = 2180) -> Workload:
    """Return the jobs of a log that request at most this number of processors.

    >>> from simmodel import Workload
    >>> log = Workload({"submit": [0, 0], "run": [1, 1], "processors": [2180, 4360]})
    >>> len(fitting(log))
    1
    """
    asked = log["requested_processors"] if "requested_processors" in log else log["processors"]
    return log.where(np.where(asked > 0, asked, log["processors"]) <= processors)


@attrs.frozen(eq=False, repr=False)
class BrokerStudy(Shown):
    """Two brokers compared as in the paper.

    Attributes
    ----------
    setup
        the experiment
    comparison
        the results of both brokers over their seeds
    """

    setup: Setup
    comparison: BrokerComparison

    @property
    def sizes(self) -> Table:
        """Mean waits (min) by size as :meth:`BrokerComparison.by`, with ``paper FIRST, paper SECOND, paper change``."""
        table = self.comparison.by("processors")
        paper = np.array([self.setup.paper.get(name, (np.nan, np.nan)) for name in table["bin"].tolist()])
        names = [f"paper {broker}" for broker in self.setup.brokers]
        columns = dict(zip(names, paper.T, strict=True))
        return table.with_columns(**columns, **{"paper change": paper[:, 1] / paper[:, 0] - 1})

    @property
    def walltimes(self) -> Table:
        """Mean waits (min) by requested time."""
        return self.comparison.by("walltime")

    def __repr__(self) -> str:
        first, second = self.setup.brokers
        return f"<BrokerStudy {self.setup.name}: {first} against {second}>"

    def _cells(self) -> Cells:
        return self.comparison.cells("processors")

    def summary(self) -> str:
        """Return both tables as text; the figures of the paper are in brackets."""
        setup, comparison = self.setup, self.comparison
        first, second = setup.brokers
        pairs = zip(setup.clusters, setup.slowdowns, strict=True)
        clusters = " and ".join(f"{size:,} processors, slowdown {factor:g}" for size, factor in pairs)
        cells = comparison.cells("processors")
        cells[0] += [f"({first}", f"{second}", "change)"]
        for row, paper in zip(cells[1:], self.sizes.rows(), strict=True):
            values = [paper[f"paper {broker}"] for broker in setup.brokers]
            row += [f"({values[0]:.1f}", f"{values[1]:.1f}", f"{100 * paper['paper change']:+.1f} %)"]
        lines = [f"{first} against {second} on {clusters}: mean wait, min (the paper)", *text_table(cells, indent=2)]
        return "\n".join([*lines, *text_table(comparison.cells("walltime"), indent=2), *comparison.there_lines()])


def broker_study(
    log: Workload,
    setup: Setup | str = "equal",
    seeds: int | Iterable[int] = 10,
    *,
    edges: int = 1000,
    simulate_edges: bool = True,
    policy: PolicyLike = "easy",
    **options: Any,
) -> BrokerStudy:
    """Run both brokers of a setup on a log, random ones once per seed, and compare them bin by bin.

    Parameters
    ----------
    log
        the jobs; jobs too large for the clusters are left out
    setup
        a name of :data:`SETUPS`, or another setup
    seeds
        the number of seeds of random brokers, or the seeds themselves
    edges
        the number of first jobs, and of last jobs, that are not counted
    simulate_edges
        simulate the jobs that are not counted
    policy
        of the clusters
    options
        further options of :func:`~simmodel.experiments.broker_comparison.compare_brokers`, which override :data:`CQSIM`

    Raises
    ------
    InputError
        if the setup is unknown, or the edges leave no job
    """
    if isinstance(setup, str):
        if setup not in SETUPS:
            raise unknown("setup", setup, SETUPS)
        setup = SETUPS[setup]
    jobs = fitting(log, max(setup.clusters))
    if not simulate_edges:
        jobs = jobs.where(slice(edges, len(jobs) - edges))
    comparison = compare_brokers(
        list(setup.clusters),
        jobs,
        setup.brokers,
        repeat=seeds,
        edges=edges if simulate_edges else 0,
        policies=policy,
        slowdowns=setup.slowdowns,
        **{**CQSIM, **options},
    )
    return BrokerStudy(setup, comparison)


@attrs.frozen(eq=False, repr=False)
class CaseStudy(Shown):
    """Two logs on two clusters, each at home and under brokers; ``comparison`` has the results by broker."""

    comparison: BrokerComparison

    def moves(self, broker: str = "sgs-t") -> Table:
        """Return table 5: jobs by their home and the cluster where they ran, with their waits at home and there.

        Returns
        -------
        Table
            columns ``origin, destination, jobs, siloed`` and the broker's name (mean waits, h), ``change`` and, not in
            the paper, ``response`` (the change of the mean time from submission to end)
        """
        both = [self.comparison[each].jobs for each in ("siloed", broker)]
        values = [jobs["wait"] / 3600 for jobs in both] + [jobs["end"] - jobs["submit"] for jobs in both]
        rows: list[tuple[Any, ...]] = []
        for destination, origin in product(self.comparison[broker].clusters, repeat=2):
            here = (both[1]["origin"] == origin) & (both[1]["destination"] == destination)
            if here.any():
                first, then, *response = (float(each[here].mean()) for each in values)
                changes = [b / a - 1 if a else np.nan for a, b in ((first, then), response)]
                rows.append((origin, destination, int(here.sum()), first, then, *changes))
        names = ("origin", "destination", "jobs", "siloed", broker, "change", "response")
        return Table({name: [row[i] for row in rows] for i, name in enumerate(names)})

    def plot(
        self,
        broker: str = "sgs-t",
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw figures 7 and 8 on one page: waits and jobs of each cluster by size, and the jobs that a broker moved.

        Parameters
        ----------
        broker
            the broker that is compared with ``siloed``
        title, figsize
            title of the page; width and height of the figure, inches
        """
        from simmodel.view.study_plots import case_study as drawn

        return drawn(
            self.comparison["siloed"], self.comparison[broker], title=title, figsize=figsize, style=style, save=save
        )

    def __repr__(self) -> str:
        return f"<CaseStudy: {', '.join(self.comparison.results)}>"

    def _cells(self) -> Cells:
        table = self.moves()
        rows = [["home", "ran on", *table.names[2:]]]
        for *names, jobs, first, then, change, response in (row.values() for row in table.rows()):
            changes = [f"{100 * each:+.1f} %" for each in (change, response)]
            rows.append([*names, f"{jobs:,}", f"{first:.2f}", f"{then:.2f}", *changes])
        return rows

    def summary(self) -> str:
        """Return table 5 under SGS-T, and the clusters under each broker, as text."""
        lines = ["mean wait (h) at home and under sgs-t", *text_table(self._cells(), 2, indent=2)]
        for label, result in self.comparison.results.items():
            lines += [label, *cluster_lines(by_cluster(result))]
        return "\n".join(lines)


def case_study(
    theta: Workload,
    polaris: Workload | None = None,
    *,
    clusters: Mapping[str, GivenPlatform] | None = None,
    brokers: Iterable[str] = ("share(0.6)", "sgs-t"),
    policy: PolicyLike = "easy",
    **options: Any,
) -> CaseStudy:
    """Run the logs of Theta and Polaris at home and under brokers, as in the case study of the CQSim+ paper.

    Both logs begin at 0 s. If Theta's is longer than that of Polaris, its last jobs are taken, for as long.

    Parameters
    ----------
    theta, polaris
        the logs; default of the second: the ready workload ``polaris-like``
    clusters
        the clusters ``polaris`` and ``theta``, in this order; default: the ready platforms of these names
    brokers
        compared with ``siloed``; the share of ``share(0.6)`` goes to Polaris
    policy
        of the clusters
    options
        further options of :func:`~simmodel.experiments.broker_comparison.compare_brokers`, which override :data:`CQSIM`
    """
    from simmodel.catalogue import load_workload

    own = load_workload("polaris-like") if polaris is None else polaris
    own = shift(own, -float(own["submit"].min()))
    begin = max(float(theta["submit"].min()), float(theta["submit"].max() - own["submit"].max()))
    found = compare_brokers(
        {"polaris": "polaris", "theta": "theta"} if clusters is None else clusters,
        {"polaris": own, "theta": shift(theta.where(theta["submit"] >= begin), -begin)},
        list(dict.fromkeys(["siloed", *brokers])),
        results=True,
        policies=policy,
        slowdowns={("theta", "polaris"): 0.25, ("polaris", "theta"): 4.0},
        **{**CQSIM, **options},
    )
    return CaseStudy(found)
