"""Whether a schedule is possible, and whether it is the one that a policy makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, are_free, counted, text_table
from simmodel.foundation.errors import InputError, NoProcessors, PolicyError, Stalled, of_class
from simmodel.records.observers import progress_bar
from simmodel.referee.feasibility import impossible
from simmodel.referee.following import Departure, Follower
from simmodel.referee.mistakes import mistakes_of
from simmodel.referee.schedules import MISFITS, Fault, GivenSchedule, Schedule, schedule_of
from simmodel.runs.scenario import platform_of, simulate, start
from simmodel.scheduling.registry import policy as policy_of
from simmodel.systems.submissions import read_workload
from simmodel.work.table import Table
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from simmodel.platform.cluster import ClusterSpec
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size
    from simmodel.work.prepare import Estimates

__all__ = ["STRETCHES", "Judgement", "Stretch", "Verdict", "judge", "stretches_of", "verify"]

STRETCHES = 100
"""Into how many stretches a sample is divided, at most."""
_BEFORE = 10  # of a stretch: policies are asked from a tenth of its starts before it on
_TAKEN_OVER = 1e-9  # share of the largest time below which two times are the same: rounding of files


@attrs.frozen(eq=False, repr=False)
class Judgement(Shown):
    """The decisions of a policy at each state of a schedule, compared with the starts in it.

    Attributes
    ----------
    policy
        its name
    jobs
        one row a job, in the order of the starts: ``job``, ``start`` (s), ``wanted`` (s, when the policy would have
        started it; nan: not by then) and ``kind``: ``"same"``, ``"late"``, ``"early"`` or ``"impossible"``
    departures
        where schedule and policy part, in order
    """

    policy: str
    jobs: Table
    departures: tuple[Departure, ...]

    def explains(self, tolerance: float = 0.0) -> NDArray[np.bool_]:
        """Return which starts are the policy's, or come at most ``tolerance`` seconds after it wanted them."""
        jobs = self.jobs
        soon = (jobs["kind"] == "late") & (jobs["start"] - jobs["wanted"] <= tolerance)
        found: NDArray[np.bool_] = (jobs["kind"] == "same") | soon
        return found

    def explained(self, tolerance: float = 0.0) -> float:
        """Return the share of the starts that it explains (see :meth:`explains`)."""
        found = self.explains(tolerance)
        return float(found.mean()) if len(found) else float("nan")

    def _cells(self) -> Cells:
        counts = Counter(self.jobs["kind"].tolist())
        return [["starts", "jobs"], *([kind, f"{counts[kind]:,}"] for kind in sorted(counts))]

    def __repr__(self) -> str:
        return f"<Judgement by {self.policy}: {100 * self.explained():.4g} % of {len(self.jobs):,} starts explained>"


def judge(
    platform: ClusterSpec,
    schedule: Schedule,
    policy: PolicyLike,
    tolerance: float = 0.0,
    *,
    polled: bool = False,
    sample: int | None = None,
    **options: Any,
) -> Judgement:
    """Compare a schedule with a policy's starts at each of its states; ``polled``: also when nothing happens there.

    ``sample``: the number of starts judged, see :func:`~simmodel.referee.verification.stretches_of`; default: all.

    >>> log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [4, 4]})
    >>> judge(platform_of(4), schedule_of(log, {1: 0, 2: 10}), "fcfs").explained()
    1.0
    """
    given = {**options, "overrun": "continue"}
    workload, everything = schedule.workload, schedule.everything
    waited = np.isnan(everything["run"])
    if waited.any():  # a start of theirs is taken back, as it is no start of the schedule
        everything = everything.replace(run=np.where(waited, np.inf, everything["run"]))
    judged = None if sample is None else stretches_of(schedule.start, sample)
    spans = None if judged is None else [(each.since, each.until) for each in judged]
    to_follow = Follower(policy, schedule.starts, schedule.places, polled=polled, stretches=spans)
    sim = start(platform, everything, to_follow, **given)
    follower: Any = sim.system.scheduler.policy
    with suppress(Stalled):  # jobs that never come: dependencies on others that do not
        sim.run()
    names, begin = workload["job"].tolist(), schedule.start
    wanted = np.array([follower.wanted.get(name, np.nan) for name in names])
    known = {each.job: each.kind for each in follower.departures}
    slack = max(tolerance, _TAKEN_OVER * float(np.abs(begin).max(initial=0.0)))
    kinds = []
    for name, at, when in zip(names, begin.tolist(), wanted.tolist(), strict=True):
        kind = known.get(name, "same")
        if kind == "late" and at - when <= slack:
            kind = "same"
        elif kind == "same" and when - at > slack:
            kind = "impossible"  # before its submission
        kinds.append(kind)
    order = np.argsort(begin, kind="stable") if judged is None else np.concatenate([each.rows for each in judged])
    table = Table({"job": workload["job"], "start": begin, "wanted": wanted, "kind": np.array(kinds)}).where(order)
    off = {names[row] for row in order.tolist() if kinds[row] != "same"} | set(everything["job"][waited].tolist())
    return Judgement(follower.name, table, tuple(each for each in follower.departures if each.job in off))


@attrs.frozen(eq=False, repr=False, slots=False)
class Verdict(Shown):
    """The findings of a referee about a schedule.

    Attributes
    ----------
    schedule
        the schedule beside its workload
    faults
        the impossibilities, in order of time
    judgement
        the starts that the policy would have made; ``None`` without one
    different
        the number of starts that differ from a simulation of the policy as a whole: the departures, and
        their effects
    mistakes
        the share of starts that each classic mistake explains, if some are not explained: name to share
    """

    schedule: Schedule
    faults: tuple[Fault, ...]
    judgement: Judgement | None = None
    different: int = 0
    mistakes: Mapping[str, float] = attrs.field(factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing is impossible, and every start is the policy's."""
        return not self.faults and not self.departures

    @property
    def misfit(self) -> str | None:
        """Why it is not a schedule of these jobs, such as jobs that are missing or start before their submission."""
        found = [fault for fault in self.faults if fault.kind in MISFITS]
        if not found:
            return None
        first = found[0]
        count = sum(fault.kind == first.kind for fault in found)
        return f"must be a schedule of {self.schedule.workload.name}; {first.kind}: {count:,}, first: {first.text}"

    @property
    def departures(self) -> tuple[Departure, ...]:
        """Where schedule and policy part, in order."""
        return () if self.judgement is None else self.judgement.departures

    @property
    def mistake(self) -> str | None:
        """The classic mistake that explains all starts, or more than the policy does by half of the rest."""
        if self.judgement is None or not self.mistakes:
            return None
        best = max(self.mistakes, key=lambda name: self.mistakes[name])
        own = self.judgement.explained()
        return best if self.mistakes[best] > own + (1 - own) / 2 else None

    @cached_property
    def table(self) -> Table:
        """One row a finding: ``kind``, ``job``, ``at`` (s) and ``text``."""
        rows = [*self.faults, *(Fault(f"{each.kind} start", each.job, each.at, why(each)) for each in self.departures)]
        rows.sort(key=lambda each: each.at)
        kinds, jobs, at, texts = zip(*rows, strict=True) if rows else ((), (), (), ())
        columns = {"kind": np.array(kinds, dtype=str), "job": np.array(jobs, dtype=object)}
        return Table(columns | {"at": np.array(at, dtype=np.float64), "text": np.array(texts, dtype=str)})

    def report(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        workload = self.schedule.workload
        lines = [f"{workload.name}: {counted(len(workload), 'job')}", *self.schedule.notes]
        kinds = Counter(fault.kind for fault in self.faults)
        first = {fault.kind: fault for fault in reversed(self.faults)}
        lines.append("possible" if not kinds else "impossible:")
        lines += [f"  {kind}: {count:,}, first: {first[kind].text}" for kind, count in kinds.items()]
        if self.judgement is not None:
            lines += self._judged(self.judgement)
        return lines

    def _judged(self, judgement: Judgement) -> list[str]:
        share, count = judgement.explained(), len(judgement.departures)
        if not count:
            return [f"{judgement.policy}: every start is the policy's"]
        off = f"{counted(self.different, 'start')} {_verb(self.different, 'differ')}"
        lines = [
            f"{judgement.policy}: explains {100 * share:.6g} % of the starts, {count:,} {_verb(count, 'depart')}",
            f"  first: {why(judgement.departures[0])}",
            f"  {off} from a simulation of {judgement.policy} as a whole",
        ]
        if self.mistakes:
            lines.append("  as explained by classic mistakes and other rules:")
            ranked = sorted(self.mistakes.items(), key=lambda each: -each[1])
            lines += text_table([["", "explains"], *([name, f"{100 * each:.4g} %"] for name, each in ranked)], indent=4)
        if self.mistake is not None:
            lines.append(f"  most likely: {self.mistake}")
        return lines

    def _cells(self) -> Cells:
        table = self.table
        shown = [table[name][:20].tolist() for name in ("kind", "job", "at", "text")]
        rows = [[str(kind), str(job), f"{at:.10g}", str(text)] for kind, job, at, text in zip(*shown, strict=True)]
        return [["kind", "job", "at", "text"], *rows]

    def __repr__(self) -> str:
        found = f"{len(self.faults):,} faults"
        if self.judgement is not None:
            found += f", {100 * self.judgement.explained():.4g} % of the starts by {self.judgement.policy}"
        return f"<Verdict on {self.schedule.workload.name}: {found}>"

    def __str__(self) -> str:
        return self.report()

    def to_csv(self, file: str | Path) -> None:
        self.table.to_csv(file)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the verdict and all findings as JSON, and write them to ``path`` if given."""
        from simmodel.results.stores import json_text

        judged = self.judgement
        document = {
            "workload": self.schedule.workload.name,
            "right": self.right,
            "policy": None if judged is None else judged.policy,
            "explained": None if judged is None else judged.explained(),
            "mistakes": self.mistakes,
            "findings": list(self.table.rows()),
        }
        return json_text(document, path)

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Plot over time which starts are the policy's, and how late or early the others are."""
        from simmodel.view.referee_plots import departures

        if self.judgement is None:
            raise InputError("must have been given: without a policy there is nothing to plot", place="policy")
        return departures(self.judgement, title=title, figsize=figsize, style=style, save=save)


def why(departure: Departure) -> str:
    """Return a sentence about a departure.

    >>> why(Departure(10.0, "late", 2, 2, 4, (2,)))
    'at 10 s the policy starts job 2, the schedule does not'
    """
    at, kind, job, head, free, instead = departure
    room = are_free(free, "processor")
    if kind == "late":
        return f"at {at:.10g} s the policy starts job {job}, the schedule does not"
    if kind == "impossible":
        return f"at {at:.10g} s the schedule starts job {job}, but only {room}"
    starts = f"it starts {_listed(instead)}" if instead else "it starts no job"
    waits = f"; job {head} is at the head, {room}" if head is not None else ""
    return f"at {at:.10g} s the schedule starts job {job}, the policy does not: {starts}{waits}"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb


def _listed(jobs: tuple[int | str, ...], most: int = 4) -> str:
    text = ", ".join(f"job {job}" for job in jobs[:most])
    return f"{text} and {len(jobs) - most} more" if len(jobs) > most else text


def verify(
    workload: GivenWork,
    schedule: GivenSchedule = None,
    platform: GivenPlatform = None,
    policy: PolicyLike | None = None,
    *,
    tolerance: float = 0.0,
    mistakes: bool = True,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates = "requested",
    progress: bool = False,
) -> Verdict:
    """Check that a schedule is possible and, with a policy, that it agrees with the decisions of the policy.

    The policy is asked at each state that the schedule reaches, so that one departure does not bring others.

    Parameters
    ----------
    workload
        the jobs or a log, in any form that :func:`~simmodel.runs.scenario.simulate` takes
    schedule
        see :func:`~simmodel.referee.schedules.schedule_of`; default: the recorded waits of the log
    platform
        a cluster of counted processors; default: that of the log
    policy
        a name or a policy; default: only feasibility is checked
    tolerance
        seconds by which two instants may differ and still be the same
    mistakes
        whether to try the classic mistakes of simulators if some starts are not the policy's
    decide_on, event_order, estimates
        the rules of the simulation, as of :func:`~simmodel.runs.scenario.simulate`
    progress
        whether to show a progress bar, one step for each mistake

    Raises
    ------
    InputError
        a file cannot be read, the schedule is of other jobs, or the platform is not a cluster

    >>> log = Workload({"submit": [0, 1, 2], "run": [10, 5, 20], "processors": [4, 4, 1]}, processors=5)
    >>> print(verify(log, {1: 0, 2: 10, 3: 2}, policy="fcfs").report())
    workload: 3 jobs
    possible
    fcfs: explains 66.6667 % of the starts, 1 departs
      first: at 2 s the schedule starts job 3, the policy does not: it starts no job; job 2 is at the head, 1 ...
    ...
    """
    log = read_workload(workload)
    spec = cluster_of(platform, log)
    found = schedule_of(log, schedule)
    faults = sorted((*found.faults, *impossible(found, spec, tolerance)), key=lambda each: each.at)
    if policy is None:
        return Verdict(found, tuple(faults))
    options: dict[str, Any] = {"decide_on": decide_on, "estimates": estimates}
    if decide_on == "event":
        options["event_order"] = event_order
    judgement = judge(spec, found, policy, tolerance, **options)
    if not judgement.departures:
        return Verdict(found, tuple(faults), judgement)
    shares = {}
    tried = mistakes_of(policy_of(policy), options) if mistakes else []
    with progress_bar(len(tried), "mistake", progress) as bar:
        for each in tried:
            with suppress(PolicyError):  # a policy that cannot decide under these rules explains nothing
                shares[each.name] = judge(spec, found, each.policy, tolerance, **each.options).explained()
            bar.update(1)
    return Verdict(found, tuple(faults), judgement, _different(spec, found, policy, options, tolerance), shares)


def cluster_of(platform: GivenPlatform, log: Workload) -> ClusterSpec:
    """Return the cluster on which a schedule is judged.

    Raises
    ------
    InputError
        it is not a cluster, or none is given and the log does not say how many processors there were
    """
    from simmodel.platform.cluster import ClusterSpec

    if platform is None:
        if log.processors is None:
            raise NoProcessors(f"missing processors: log {log.name!r} does not specify those of its machine")
        return ClusterSpec.simple(log.processors)
    return of_class(platform_of(platform), ClusterSpec, "a cluster", "platform")


def _different(
    spec: ClusterSpec, schedule: Schedule, policy: PolicyLike, options: Mapping[str, Any], tolerance: float
) -> int:
    """Return how many starts a simulation of the policy has at other instants."""
    given = policy_of(policy).fresh()
    result = simulate(spec, schedule.everything, given, overrun="continue", **options)
    own = dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))
    simulated: NDArray[np.float64] = np.array([own.get(job, np.nan) for job in schedule.workload["job"].tolist()])
    slack = max(tolerance, _TAKEN_OVER * float(np.abs(schedule.start).max(initial=0.0)))
    return int((~(np.abs(simulated - schedule.start) <= slack)).sum())


class Stretch(NamedTuple):
    """Consecutive starts: their rows in the order of the starts, and the instants (s) at which policies are asked."""

    rows: NDArray[np.intp]
    since: float
    until: float


def stretches_of(start: NDArray[np.float64], count: int) -> list[Stretch]:
    """Return a number of starts of a schedule, in stretches; all of them in one if there are no more.

    >>> [(each.rows.tolist(), each.since, each.until) for each in stretches_of(np.arange(1000.0), 200)][:2]
    [([4, 5], 3.0, 5.0), ([14, 15], 13.0, 15.0)]
    """
    order = np.argsort(start, kind="stable")
    if count >= len(order):
        return [Stretch(order, -np.inf, np.inf)]
    parts = min(count, STRETCHES)
    bounds = np.linspace(0, len(order), parts + 1).astype(int)
    found = []
    for number, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        size = count * (number + 1) // parts - count * number // parts
        begin = first + (last - first - size) // 2
        before = max(0, begin - 1 - size // _BEFORE)
        rows = order[begin : begin + size]
        found.append(Stretch(rows, float(start[order[before]]), float(start[rows[-1]])))
    return found
