"""The shadow: how well a twin explains and foretells the starts of a scheduler, and the gain of its advice."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel import InputError
from simmodel.extending import Cells, Shown, counted, duration, label, progress_bar, text_table
from simmodel.futures import what_if
from simmodel.metrics import series_interval
from simmodel.runs import simulate
from simmodel.work import Table, Workload
from simmodel_site.twin.advisor import Advisor
from simmodel_site.twin.audit_replay import lets_start
from simmodel_site.twin.events import Demand, Ended, Event, JobKey, Passed, Requeued, Started, StateReport, Submitted
from simmodel_site.twin.mirror.reconcile import missing

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from simmodel.extending import PolicyLike, Size
    from simmodel.metrics import Interval
    from simmodel_site.twin.mirror.mirror import Mirror
    from simmodel_site.twin.sources import Source

__all__ = ["Alarm", "Shadow", "ShadowReport", "shadow_of"]

_FEWEST = 20  # starts before the share of them that is explained means anything


@attrs.define
class _Job:
    """The record of a job in a shadow."""

    request: Demand
    submit: float
    wanted: float | None = None
    foretold: float | None = None
    foretold_there: float | None = None
    start: float | None = None
    kind: str = ""
    unmodelled: tuple[str, ...] = ()
    end: float | None = None


class Shadow:
    """Follows a scheduler beside its mirror, and compares its starts with those that the mirrored policy would make.

    Before the starts of an instant are applied the policy is asked which jobs it would start. A start is explained if
    the policy wanted it by then, at most ``tolerance`` seconds before.

    Parameters
    ----------
    mirror
        the known state of the cluster
    policy
        the policy that its scheduler is thought to have; default: that of the mirror
    advised
        the policy whose gain is of interest
    tolerance
        seconds by which the scheduler may start a job later than the policy wants
    window, alarm
        a number of last starts; the alarm is raised when less than this share of them is explained
    foretell
        the least seconds between two foretellings of the starts of jobs that have come since; a job that has started
        before is not foretold

    Attributes
    ----------
    decisions
        how often the policy was asked
    alarms
        when it ceased to explain the starts

    Raises
    ------
    InputError
        a policy is unknown or preempts jobs, or a number is out of range

    >>> from simmodel_site.twin import Mirror
    >>> from simmodel_site.twin.events import Passed, Demand, Started, Submitted
    >>> shadow = Shadow(Mirror(4, "alps"), "fcfs")
    >>> about = {"cluster": "alps", "job": 1, "submit": 0.0, "time": 0.0}
    >>> for event in (Submitted(**about, request=Demand(processors=4, requested=9.0)), Started(**about)):
    ...     shadow.take(event)
    >>> shadow.report().explained
    1.0
    """

    def __init__(
        self,
        mirror: Mirror,
        policy: PolicyLike | None = None,
        advised: PolicyLike | None = None,
        *,
        tolerance: float = 0.0,
        window: int = 200,
        alarm: float = 0.8,
        foretell: float = 0.0,
    ) -> None:
        for name, value, most in (
            ("tolerance", tolerance, np.inf),
            ("alarm", alarm, 1.0),
            ("foretell", foretell, np.inf),
        ):
            if not 0 <= value <= most:
                raise InputError(f"must be a number from 0 to {most:g}, got {value!r}", place=name)
        if window < _FEWEST:
            raise InputError(f"must be at least {_FEWEST} starts, got {window!r}", place="window")
        self.mirror = mirror
        self.policy = mirror.policy if policy is None else policy
        self.advised = advised
        self.tolerance = tolerance
        self.alarm = alarm
        self.foretell = foretell
        self.decisions = 0
        self.alarms: list[Alarm] = []
        self._advisor = Advisor(self.policy, fallback=self.policy)
        self._jobs: dict[JobKey, _Job] = {}
        self._recent: deque[bool] = deque(maxlen=window)
        self._due = False
        self._told: list[JobKey] = []  # jobs that came since the last foretelling
        self._foretold_at = -np.inf
        self._reported = -np.inf
        self._low = False

    def __repr__(self) -> str:
        return f"<Shadow of {self.mirror.cluster} by {label(self.policy)}: {self.decisions} decisions>"

    # ------------------------------------------------------------------ events

    def take(self, event: Event) -> None:
        """Apply an event to the mirror, and compare."""
        if isinstance(event, StateReport) and event.cluster == self.mirror.cluster:
            if event.time < self._reported:
                self.mirror.refused.count("report older than the last one")
                return
            self._reported = event.time
            self.mirror.advance(event.time)
            for each in missing(event, self.mirror.ledger, self.mirror.nodes):
                self.take(each)
            self._note_report(event)
            self._foretell()
            return
        if event.time > self.mirror.now:
            self._foretell()  # all is told of the instant of these submissions
        if isinstance(event, Started):
            self.mirror.advance(event.time)
            self._ask()
        changed = self.mirror.apply(event)
        if changed:
            self._due = self._due or lets_start(event)
            if isinstance(event, Submitted):
                self._come(event.key, event.request, event.submit)
            elif isinstance(event, Started):
                self._started(event)
            elif isinstance(event, Ended) and event.key in self._jobs:
                self._jobs[event.key].end = event.time
            elif isinstance(event, Requeued):
                self._jobs.pop(event.key, None)  # its first start is judged, the others are not
        if isinstance(event, Passed):
            self.settle()

    def settle(self) -> None:
        """Ask the policy now: no more events of this instant will come."""
        self._ask()
        self._foretell()

    def _come(self, key: JobKey, request: Demand, submit: float) -> None:
        if key not in self._jobs:
            self._jobs[key] = _Job(request, submit)
            self._told.append(key)

    def _note_report(self, report: StateReport) -> None:
        for each in report.jobs:
            key = (report.cluster, each.job, each.submit)
            if each.state == "waiting":
                self._come(key, each.request, each.submit)
            known = self._jobs.get(key)
            if known is not None and known.foretold_there is None:
                known.foretold_there = each.foretold

    def _ask(self) -> None:
        if not self._due:
            return
        self._due = False
        snapshot = self.mirror.snapshot()
        if not snapshot.waiting:
            return
        self.decisions += 1
        for start in self._advisor.advise(snapshot).starts:
            job = self._jobs.get((self.mirror.cluster, start.job, start.submit))
            if job is not None and job.wanted is None:
                job.wanted = snapshot.now

    def _started(self, event: Started) -> None:
        job = self._jobs.get(event.key)
        if job is None or job.start is not None:
            return
        job.start, job.unmodelled = event.time, self.mirror.unmodelled(event.job)
        if job.wanted is None:
            job.kind = "early"
        else:
            job.kind = "same" if event.time - job.wanted <= self.tolerance else "late"
        recent = self._recent
        recent.append(job.kind == "same")
        if len(recent) < _FEWEST:
            return
        share = sum(recent) / len(recent)
        low = share < self.alarm
        if low and not self._low:
            self.alarms.append(Alarm(event.time, self.decisions, share))
        self._low = low

    def _foretell(self) -> None:
        now = self.mirror.now
        if not self._told or now - self._foretold_at < self.foretell:
            return
        waiting = []
        for key in self._told:
            job = self._jobs.get(key)
            if job is not None and job.start is None and job.end is None:  # others were told of too late
                waiting.append(key)
        self._told, self._foretold_at = [], now
        if not waiting:
            return
        (outcome,) = what_if(self.mirror.snapshot(), {"mirrored": self.policy}).outcomes
        at = {each.job: each.at for each in outcome.starts}
        for key in waiting:
            self._jobs[key].foretold = at.get(key[1])

    # ------------------------------------------------------------------ what was found

    @property
    def log(self) -> Workload:
        """The jobs that have ended, as a log: their requests, waits and run times."""
        over = [(key, job) for key, job in self._jobs.items() if job.start is not None and job.end is not None]
        columns: dict[str, list[Any]] = {
            "job": [key[1] for key, _ in over],
            "submit": [job.submit for _, job in over],
            "wait": [job.start - job.submit for _, job in over if job.start is not None],
            "run": [job.end - job.start for _, job in over if job.start is not None and job.end is not None],
            "processors": [_processors(job.request) for _, job in over],
            "requested": [job.request.requested or np.inf for _, job in over],
        }
        users = [job.request.user for _, job in over]
        given: dict[str, Any] = {name: np.array(values) for name, values in columns.items() if name != "job"}
        given["job"] = np.array(columns["job"], dtype=object)
        if any(user is not None for user in users):
            given["user"] = np.array([("" if user is None else user) for user in users], dtype=object)
        return Workload(given, name=self.mirror.cluster, processors=self.mirror.spec.processors)

    def report(self) -> ShadowReport:
        """Return the report so far; the advised policy is simulated on the jobs that have ended."""
        started = [(key, job) for key, job in self._jobs.items() if job.start is not None]
        started.sort(key=lambda each: each[1].start or 0.0)
        nan = float("nan")

        def column(of: Callable[[_Job], float | None]) -> Any:
            return np.array([nan if (value := of(job)) is None else value for _, job in started], dtype=np.float64)

        jobs = Table(
            {
                "job": np.array([key[1] for key, _ in started], dtype=object),
                "submit": column(lambda job: job.submit),
                "start": column(lambda job: job.start),
                "wanted": column(lambda job: job.wanted),
                "kind": np.array([job.kind for _, job in started], dtype=str),
                "foretold": column(lambda job: job.foretold),
                "foretold_there": column(lambda job: job.foretold_there),
                "unmodelled": np.array(["; ".join(job.unmodelled) for _, job in started], dtype=object),
            }
        )
        gains = np.zeros(0) if self.advised is None else self._gains(self.advised)
        gain = series_interval(gains)
        return ShadowReport(
            label(self.policy),
            jobs,
            self.decisions,
            tuple(self.alarms),
            label(self.advised) if len(gains) else None,
            float(gains.mean()) if len(gains) else None,
            None if gain.why else gain,
            gain.why,
        )

    def _gains(self, policy: PolicyLike) -> NDArray[np.float64]:
        """Return by how much the wait of each job that has ended would have been shorter (s), by submission."""
        log = self.log
        if not len(log):
            return np.zeros(0)
        rows = np.arange(len(log))  # as names of the jobs: schedulers use an id again
        result = simulate(log.processors, log.replace(job=rows), policy, overrun="continue")
        own = dict(zip(result.jobs["job"].tolist(), result.jobs["wait"].tolist(), strict=True))
        order = np.argsort(log["submit"], kind="stable")
        waits = np.array([own[row] for row in rows.tolist()], dtype=np.float64)
        return np.asarray((log["wait"] - waits)[order], dtype=np.float64)


def _processors(request: Demand) -> int:
    return request.job(0, 0.0).processors


def shadow_of(
    source: Source,
    shadow: Shadow,
    until: Callable[[], bool] | None = None,
    *,
    timeout: float = 1.0,
    progress: bool = False,
) -> ShadowReport:
    """Follow a source until it is over, or until a function says so, and return the report of the shadow.

    Parameters
    ----------
    source, shadow
        the source of the events, and the shadow that compares them
    until
        says when to stop
    timeout
        seconds to wait for the next event, after which the policy is asked
    progress
        whether to show a progress bar, one step an event

    >>> from simmodel.catalogue import load_workload
    >>> from simmodel_site.twin import Mirror
    >>> from simmodel_site.twin.sources.log import RecordedLog
    >>> log = Workload({"submit": [0, 1], "run": [5, 5], "processors": [4, 4], "wait": [0, 4]}, processors=4)
    >>> shadow_of(RecordedLog(log, "alps"), Shadow(Mirror(4, "alps"), "fcfs")).explained
    1.0
    """
    report = source.report()
    if report is not None:
        shadow.take(report)
    with progress_bar(None, "event", progress) as bar:
        while not source.over and not (until is not None and until()):
            told = 0
            for event in source.events(timeout):
                told += 1
                shadow.take(event)
            if not told:
                shadow.settle()
            bar.update(told)
    return shadow.report()


# ---------------------------------------------------------------------- the report


_MARKS = 5  # that are named
_WITHIN = ((60.0, "1 min"), (600.0, "10 min"))


class Alarm(NamedTuple):
    """The mirrored policy has ceased to explain the starts: the instant (s), the decision, and the share explained."""

    at: float
    decision: int
    explained: float


@attrs.frozen(eq=False, repr=False)
class ShadowReport(Shown):
    """How well a mirrored policy explains and foretells the starts of a scheduler.

    Attributes
    ----------
    policy
        its name
    jobs
        one row a start: ``job``, ``submit``, ``start``, ``wanted`` (s, by the policy; nan: not by then), ``kind``
        (``same``, ``late``, ``early``), ``foretold`` (s, forecast at its submission; nan: it had started by then),
        ``foretold_there`` (s, the first forecast of the scheduler; nan: none), ``unmodelled`` (the properties
        of the job that the mirror does not model, separated by ``"; "``)
    decisions, alarms
        how often the policy was asked; when it ceased to explain the starts
    advised, shorter, gain, why
        the advised policy, by how much the mean wait would have been shorter under it (s), and the interval of that;
        ``None`` if none would hold, and why (:func:`~simmodel.metrics.statistics.series_interval`)
    """

    policy: str
    jobs: Table
    decisions: int
    alarms: tuple[Alarm, ...] = ()
    advised: str | None = None
    shorter: float | None = None
    gain: Interval | None = None
    why: str = ""

    @property
    def explained(self) -> float:
        """The share of starts that the policy explains."""
        return float((self.jobs["kind"] == "same").mean()) if len(self.jobs) else float("nan")

    def foretold(self, within: float, *, there: bool = False, both: bool = False) -> float:
        """Return the share of foretold starts that came within a time; nan if none was foretold.

        Parameters
        ----------
        within
            s, before or after the start
        there
            of the forecasts of the scheduler
        both
            of the jobs that both foretold
        """
        ours, theirs = self.jobs["foretold"], self.jobs["foretold_there"]
        known = theirs if there else ours
        error = np.abs(self.jobs["start"] - known)[~np.isnan(ours + theirs if both else known)]
        return float((error <= within).mean()) if len(error) else float("nan")

    def _cells(self) -> Cells:
        kinds = self.jobs["kind"]
        rows = [["", "value"], ["starts", f"{len(kinds):,}"], ["decisions", f"{self.decisions:,}"]]
        rows.append([f"explained by {self.policy}", _percent(self.explained)])
        rows += [[f"{kind} starts", f"{int((kinds == kind).sum()):,}"] for kind in ("late", "early")]
        ours, theirs = ~np.isnan(self.jobs["foretold"]), ~np.isnan(self.jobs["foretold_there"])
        rows.append(["foretold starts", f"{int(ours.sum()):,} of {len(kinds):,}"])
        rows += self._shares("", False)
        if (ours & theirs).any():
            rows.append(["foretold by the scheduler too", f"{int((ours & theirs).sum()):,}"])
            rows += [*self._shares(", of these", False, both=True), *self._shares(" by the scheduler", True, both=True)]
        if marked := int((self.jobs["unmodelled"] != "").sum()):
            rows.append(["starts not modelled in full", f"{marked:,} of {len(kinds):,}"])
        rows.append(["alarms", f"{len(self.alarms):,}"])
        if self.shorter is not None:
            known = f" (no interval: {self.why})" if self.gain is None else f" ± {duration(self.gain.half_width)}"
            said = f"{duration(abs(self.shorter))} {'shorter' if self.shorter >= 0 else 'longer'}{known}"
            rows.append([f"mean wait under {self.advised}", said])
        return rows

    def _shares(self, whose: str, there: bool, both: bool = False) -> list[list[str]]:
        """Return the shares of starts that were foretold well, if any was foretold."""
        found = [(text, self.foretold(within, there=there, both=both)) for within, text in _WITHIN]
        return [[f"foretold{whose} within {text}", _percent(share)] for text, share in found if share == share]

    def summary(self) -> str:
        """Return the figures as text."""
        lines = text_table(self._cells())[1:]
        marks = Counter(mark for text in self.jobs["unmodelled"].tolist() if text for mark in text.split("; "))
        lines += [f"not modelled: {mark}: {counted(count, 'start')}" for mark, count in marks.most_common(_MARKS)]
        if len(marks) > _MARKS:
            lines.append(f"not modelled: {len(marks) - _MARKS:,} more, in the table of starts")
        lines += [
            f"alarm at {each.at:.10g} s, after {each.decision:,} decisions: {self.policy} explains "
            f"{_percent(each.explained)} of the last starts"
            for each in self.alarms[:5]
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<ShadowReport by {self.policy}: {_percent(self.explained)} of {len(self.jobs):,} starts explained>"

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Plot over time which starts are explained, and how late or early the others are."""
        from simmodel.extending import departures

        if not len(self.jobs):
            raise InputError("must have starts, got none", place="events")
        return departures(self, title=title, figsize=figsize, style=style, save=save)


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
