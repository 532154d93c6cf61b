"""A log replayed with advice: the changes that the advice would have made."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.extending import Cells, Shown, label, metric_text, read_workload, text_table
from simmodel.runs import simulate, start
from simmodel.work import Table
from simmodel_site.twin.advisor import Advice, Advisor
from simmodel_site.twin.audit import AuditLog
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.sources.log import AdvisedLog
from simmodel_site.twin.twin import Twin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.extending import GivenPlatform, GivenWork, PolicyLike, Size
    from simmodel.results import Result

__all__ = ["LogReplay", "replay_log"]

_ROWS = {
    "mean wait": "wait_mean",
    "median wait": "wait_median",
    "longest wait": "wait_max",
    "mean bounded slowdown": "bounded_slowdown_mean",
    "utilisation": "utilisation",
}


def replay_log(
    platform: GivenPlatform,
    workload: GivenWork,
    policy: PolicyLike = "portfolio",
    *,
    scheduler: PolicyLike = "easy",
    fallback: PolicyLike | None = None,
    speed: float | None = None,
    deadline: float | None = None,
    executor: Executor | None = None,
    audit: str | Path | None = None,
    **options: Any,
) -> LogReplay:
    """Replay a log on a simulated cluster that starts the jobs a twin advises to start.

    The twin sees events alone, as it would those of a scheduler; it does not know run times.

    Parameters
    ----------
    platform, workload, options
        as of :func:`~simmodel.runs.scenario.simulate`
    policy
        the policy that advises
    scheduler
        the policy of the scheduler, to compare with; the fallback is the same unless another one is given
    fallback, deadline, executor
        as of :class:`~simmodel_site.twin.advisor.Advisor`
    speed
        seconds of the log in a second; default: as fast as possible
    audit
        the file of the audit log; default: none

    >>> found = replay_log(12, "probe-4", "portfolio(fcfs, sjf, backfill=easy)")
    >>> found.advised.jobs["start"].tolist()
    [0.0, 900.0, 1000.0, 1100.0]
    """
    simulation = start(platform, workload, scheduler, **options)
    cluster = simulation.system.name
    source = AdvisedLog(simulation, cluster, speed=speed)
    mirror = Mirror(simulation.system.spec, cluster, scheduler)
    advisor = Advisor(
        policy, fallback=scheduler if fallback is None else fallback, deadline=deadline, executor=executor
    )
    advices: list[Advice] = []
    log = None if audit is None else AuditLog(audit)
    twin = Twin(
        source,
        mirror,
        advisor,
        log,
        when="passed",
        told=(advices.append, source.advised),
        clock=lambda: mirror.now,
    )
    try:
        twin.run()
    finally:
        twin.close()
    own = simulate(platform, workload, scheduler, **options)
    advised = simulation.result(f"advised by {label(policy)}")
    return LogReplay(tuple(advices), advised, own, _recorded_waits(workload))


def _recorded_waits(workload: GivenWork) -> Any:
    """Return the recorded waits (s) of the jobs that have one."""
    log = read_workload(workload)
    wait = log.recorded_starts() - log["submit"]
    return wait[wait >= 0]


@attrs.frozen(eq=False, repr=False)
class LogReplay(Shown):
    """A log replayed with advice.

    Attributes
    ----------
    advices
        the decisions
    advised
        the result of the cluster that took the advice
    own
        the result of the scheduler's own policy on the same jobs
    waits
        the recorded waits (s), of the jobs that have one
    """

    advices: tuple[Advice, ...]
    advised: Result
    own: Result
    waits: Any

    @property
    def shares(self) -> Table:
        """One row per policy that decided: ``policy``, its ``decisions``, and the ``jobs`` that it started."""
        decisions = Counter(each.policy for each in self.advices)
        started: Counter[str] = Counter()
        for each in self.advices:
            started[each.policy] += len(each.starts)
        names = sorted(decisions, key=lambda name: (-decisions[name], name))
        return Table(
            {
                "policy": np.array(names, dtype=str),
                "decisions": np.array([decisions[name] for name in names], dtype=np.int64),
                "jobs": np.array([started[name] for name in names], dtype=np.int64),
            }
        )

    @property
    def recorded(self) -> dict[str, float]:
        """The measures of the recorded waits; empty if no job has one."""
        wait = self.waits
        if not len(wait):
            return {}
        return {"wait_mean": float(wait.mean()), "wait_median": float(np.median(wait)), "wait_max": float(wait.max())}

    def summary(self) -> str:
        """Return decisions, policies and waits as text."""
        seconds = [each.seconds for each in self.advices]
        late = sum(each.fallback for each in self.advices)
        said = f"{len(seconds):,} decisions"
        if seconds:
            said += f", {1e3 * float(np.mean(seconds)):.3g} ms on average, {1e3 * max(seconds):.3g} at most"
        said += f"; {late:,} by the fallback" if late else ""
        rows = [["", "decisions", "jobs started"]]
        rows += [[row["policy"], f"{row['decisions']:,}", f"{row['jobs']:,}"] for row in self.shares.rows()]
        return "\n".join([said, "", *text_table(rows), "", *text_table(self._cells())])

    def _cells(self) -> Cells:
        own, advised, recorded = self.own.metrics(), self.advised.metrics(), self.recorded
        columns = [("recorded", recorded)] if recorded else []
        columns += [(self.own.name, own), ("advised", advised)]
        rows = [["", *(name for name, _ in columns)]]
        for what, name in _ROWS.items():
            rows.append([what, *(metric_text(name, found[name]) if name in found else "" for _, found in columns)])
        return rows

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw the waiting jobs of the scheduler's own policy and with advice, and the jobs started by each policy."""
        from simmodel.extending import replay_page

        starts = [(each.time, each.policy, len(each.starts)) for each in self.advices]
        return replay_page(self.own, self.advised, starts, title=title, figsize=figsize, style=style, save=save)

    def __repr__(self) -> str:
        return f"<LogReplay: {len(self.advised.jobs):,} jobs, {len(self.advices):,} decisions>"
