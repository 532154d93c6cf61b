"""The schedule of a site's Slurm, simulated and compared with the recorded one, and the effect of changed settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor, wait
from contextlib import suppress
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel import InputError, Observer
from simmodel.extending import (
    Bar,
    Cells,
    Departure,
    Difference,
    Fields,
    Follower,
    PolicyLike,
    Shown,
    Source,
    Stalled,
    compared,
    counted,
    difference_table,
    json_text,
    progress_bar,
    text_table,
    why,
)
from simmodel.resources import NodePool
from simmodel.runs import Simulation, start
from simmodel.work import Table
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.settings import SlurmConf
from simmodel_site.policy.wishes import Wishes
from simmodel_site.twin.described import around_sleep, with_power
from simmodel_site.twin.mirror.job_history import natural_order
from simmodel_site.twin.slurm.site.changed import is_line, line_for
from simmodel_site.twin.slurm.site.folder import SlurmFolder
from simmodel_site.twin.slurm.site.sampled import LogPart, LogSample
from simmodel_site.twin.slurm.site.sbatch import job_list

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from simmodel.extending import TooLong
    from simmodel.platform import ClusterSpec
    from simmodel.scheduling import Place
    from simmodel.work import Job, Run

__all__ = ["ChangedWaits", "Replay", "change", "changed_settings", "replay"]

_SECOND = 2.0
"""Seconds below which two starts are the same: accounting is in whole seconds, and so are Slurm's instants."""
_ASLEEP = 30.0
"""Seconds before a part of a log at which the nodes on which nothing runs sleep."""
_GOLDEN = (5**0.5 - 1) / 2
_LEVEL = 0.95
_FIRST = 5
"""Jobs that are named of many."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Replay(Shown):
    """The simulated schedule of a site's Slurm beside the recorded one.

    Attributes
    ----------
    folder
        the site
    policy
        the policy with its parameters
    cycle
        seconds by which starts may differ: ``bf_interval``
    jobs
        one row a job that has started, in the order of the recorded starts: ``job``, ``submit``, ``recorded`` and
        ``simulated`` (s, starts)
    departures
        the recorded starts that neither loop of the policy makes, asked at their instants in the states that the
        recorded starts lead to
    booted
        how many jobs start once nodes have booted for them, in the simulation
    """

    folder: SlurmFolder
    policy: str
    cycle: float
    jobs: Table
    departures: tuple[Departure, ...] = ()
    booted: int = 0

    @property
    def errors(self) -> NDArray[np.float64]:
        """The simulated start of each job, less the recorded one (s)."""
        found: NDArray[np.float64] = self.jobs["simulated"] - self.jobs["recorded"]
        return found

    @property
    def beyond(self) -> int:
        """The number of starts that differ by more than a cycle."""
        return int((~(np.abs(self.errors) <= self.cycle)).sum())

    @property
    def order(self) -> float:
        """The share of the pairs of jobs with different recorded starts that start in the recorded order.

        Of the jobs that start in the simulation.
        """
        recorded, simulated = (self.jobs[name][self._starting] for name in ("recorded", "simulated"))
        if len(recorded) <= _MOST_PAIRS:
            one, other = np.triu_indices(len(recorded), 1)
        else:  # of each job with the next ones
            one, other = (np.concatenate(each) for each in zip(*_near_pairs(len(recorded)), strict=True))
        apart = recorded[other] - recorded[one] > 0
        right = simulated[other] - simulated[one] > 0
        return float(right[apart].mean()) if apart.any() else 1.0

    @property
    def _starting(self) -> NDArray[np.bool_]:
        starting: NDArray[np.bool_] = np.isfinite(self.jobs["simulated"])
        return starting

    def report(self) -> str:
        """Return a text: how many starts differ by more than a cycle, the first that does, and why."""
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        count, there = len(self.jobs), self._starting
        waits = [float((self.jobs[name] - self.jobs["submit"])[there].mean()) for name in ("recorded", "simulated")]
        error = float(np.abs(self.errors[there]).mean())
        lines = [
            f"policy: {self.policy}",
            f"starts that differ by more than a cycle of {self.cycle:g} s: {self.beyond:,} of {count:,}",
            f"mean difference {error:.1f} s; mean wait {waits[0]:.1f} s recorded, {waits[1]:.1f} s simulated; "
            f"{100 * self.order:.1f} % of the pairs in the recorded order",
            "recorded starts that neither loop makes in the state that the record led to: "
            f"{len(self.departures):,} of {sum(run.start < inf for run in self.folder.runs):,}",
        ]
        if self.folder.saving:
            lines.insert(1, f"{self.folder.saving}; starts that wait for boots in the simulation: {self.booted:,}")
        if not there.all():
            never = _named(self.jobs["job"][~there])
            lines.insert(-2, f"never start in the simulation, left out of the means: {never}")
        if self.departures:
            lines.append(f"  first: {self._why(self.departures[0])}")
        if not self.beyond:
            return lines
        row = int(np.flatnonzero(~(np.abs(self.errors) <= self.cycle))[0])
        return [*lines, f"the first that differs: {self._first(row)}", f"  {self._because(row)}"]

    def _why(self, departure: Departure) -> str:
        text = why(departure).partition(" s ")[2]
        return f"{self.folder.instant(departure.at)}: {text.replace('the schedule', 'Slurm')}"

    def _first(self, row: int) -> str:
        job, at, own = (self.jobs[name][row] for name in ("job", "recorded", "simulated"))
        if not own < inf:
            return f"job {job}, started at {self.folder.instant(at)}, and never in the simulation"
        return f"job {job}, started at {self.folder.instant(at)}, {_later(own - at)} in the simulation"

    def _because(self, row: int) -> str:
        """Return why the first start that differs does."""
        job, at = self.jobs["job"][row], self.jobs["recorded"][row]
        mine = next((each for each in self.departures if each.job == job), None)
        if mine is not None:
            return f"the policy decides otherwise: {self._why(mine)}"
        known = "in its recorded state the policy starts it too: "
        before = np.minimum(self.jobs["recorded"], self.jobs["simulated"])
        off = np.abs(self.errors) > _SECOND
        early = [each for each in np.flatnonzero(off & (before <= max(at, before[row]))).tolist() if each != row]
        if early:
            other = min(early, key=lambda each: before[each])
            text = f"job {self.jobs['job'][other]} starts {_later(self.errors[other])}"
            return f"{known}it follows from starts before it, first: {text}"
        boots = ", or boots take another time" if self.folder.saving else ""
        return f"{known}the loops run at other instants{boots}"

    def _cells(self) -> Cells:
        rows = [[str(row["job"]), f"{row['recorded']:.0f}", f"{row['simulated']:.0f}"] for row in self.jobs.rows()]
        return [["job", "recorded", "simulated"], *rows[:20]]

    def __repr__(self) -> str:
        return f"<Replay by {self.policy}: {self.beyond:,} of {len(self.jobs):,} starts beyond a cycle>"


_MOST_PAIRS, _NEXT = 2000, 500


def _near_pairs(count: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    return [(np.arange(count - step), np.arange(step, count)) for step in range(1, _NEXT)]


def _named(jobs: Collection[int | str]) -> str:
    first = sorted(jobs, key=natural_order)[:_FIRST]
    return f"{counted(len(jobs), 'job')}{', such as' if len(jobs) > _FIRST else ':'} {job_list(first)}"


def _later(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'later' if seconds > 0 else 'earlier'}"


def replay(folder: SlurmFolder, changes: Iterable[str] = (), *, progress: bool = False) -> Replay:
    """Simulate the jobs of a site under policy ``slurm``, with the run times recorded, and compare the starts.

    The phases of the loops are not in the accounting, so that starts within a cycle of the backfill loop are the same.
    Submissions and ends are spread within the seconds that the accounting tells. For the departures the policy follows
    the recorded starts, and both of its loops are asked at each of them.

    Parameters
    ----------
    changes
        settings to change first, as of :func:`changed_settings`
    progress
        whether to show a progress bar

    Raises
    ------
    InputError
        no job has started, in the accounting or in the simulation, or a change is wrong
    """
    settings = changed_settings(folder, changes)
    recorded = {_id(each.job): each.start for each in folder.started}
    if not recorded:
        raise InputError("no job has started: give the output of sacct --parsable2 beside slurm.conf")
    cycle = settings.bf_interval if settings.backfill else settings.sched_interval
    woken = _Woken()
    own, _ = _starts(folder, settings, _Phase.of(0, 1), observers=[woken], progress=progress)
    if not any(own.get(job, inf) < inf for job in recorded):
        raise InputError(_NONE_STARTS)
    rows = sorted(((at, job) for job, at in recorded.items()), key=lambda each: (each[0], natural_order(each[1])))
    submits = {_id(each.job): each.job.submit for each in folder.recorded}
    table = Table(
        {
            "job": np.array([job for _, job in rows], dtype=object),
            "submit": np.array([submits[job] for _, job in rows]),
            "recorded": np.array([at for at, _ in rows]),
            "simulated": np.array([own.get(job, inf) for _, job in rows]),
        }
    )
    departures = _departures(folder, settings, progress=progress)
    label = _label(folder, settings)
    return Replay(folder=folder, policy=label, cycle=cycle, jobs=table, departures=departures, booted=len(woken.jobs))


class _Woken(Observer):
    """Notes the jobs for which nodes are woken."""

    def __init__(self) -> None:
        self.jobs: set[int | str] = set()

    def place_changed(self, place: Place, cause: str) -> None:
        sleeping = place.sleeping if cause == "wake" and isinstance(place, NodePool) else None
        if sleeping is not None and sleeping.change is not None and sleeping.change.job is not None:
            self.jobs.add(sleeping.change.job)


def _id(job: Job) -> int | str:
    assert job.id is not None
    return job.id


def changed_settings(folder: SlurmFolder, changes: Iterable[str] = ()) -> SlurmConf:
    """Return the settings of a site after changes such as ``bf_interval=60`` or ``PriorityWeightAge=1000``.

    Raises
    ------
    InputError
        a change is no ``NAME=VALUE``, its name is unknown, or it changes nothing that policy ``slurm`` heeds
    """
    conf = dict(folder.site.settings or {})
    fields: dict[str, Any] = {}
    found = SlurmConf.of(conf)
    for text in changes:
        name, sign, value = (each.strip() for each in text.partition("="))
        if not name or not sign:
            raise InputError(f"must be NAME=VALUE, got {text!r}", place="--set")
        if name[:1].isupper():
            conf = {key: each for key, each in conf.items() if key.lower() != name.lower()} | {name: value}
        else:
            changed = Slurm.of(**{name: value}).settings.changed()  # an error if the name is unknown
            fields |= changed if changed or not hasattr(found, name) else {name: getattr(SlurmConf(), name)}
        before, found = found, attrs.evolve(SlurmConf.of(conf), **fields)
        new = [each for each in found.unread if each not in before.unread]
        if new or found == before:
            reason = "policy slurm does not model it" if new else "it changes nothing that policy slurm heeds"
            raise InputError(f"{name}={value}: {line_for(folder.site, name, value) or reason}", place="--set")
    return found


def _policy(folder: SlurmFolder, settings: SlurmConf, timing: SlurmTiming | None = None) -> Slurm:
    return folder.policy.evolve(settings, timing)


def _label(folder: SlurmFolder, settings: SlurmConf) -> str:
    before, _, after = around_sleep(folder.described.policy)
    return f"{before}{_policy(folder, settings).text}{after}"


class _Phase(NamedTuple):
    """Parts of a turn of the main loop and of a backfill cycle, and where within seconds jobs come and end."""

    main: float
    backfill: float
    within: float

    @classmethod
    def of(cls, number: int, count: int) -> _Phase:
        """Return one of several phases, which are spread evenly.

        >>> _Phase.of(0, 2)[1:]
        (0.25, 0.25)
        """
        part = (number + 0.5) / count
        return cls((number + 0.5) * _GOLDEN % 1.0, part, part)


_NONE_STARTS = "no job starts in the simulation: the site described has too few nodes, or too small ones"


def _starts(
    folder: SlurmFolder,
    settings: SlurmConf,
    phase: _Phase,
    too_long: TooLong = "reject",
    *,
    part: LogPart | None = None,
    observers: Sequence[Observer] = (),
    progress: bool = False,
) -> tuple[dict[int | str, float], Counter[str]]:
    """Return the starts of all jobs in a phase (s, whole, as in accounting; ``inf``: never), and what was repaired.

    A job in parts starts so long before the end of the last one as it runs in all: its wait is that of its parts.
    """
    timing = SlurmTiming(
        main_first=phase.main * SlurmTiming().turn,
        backfill_first=phase.backfill * settings.bf_interval,
        scans=False,
    )
    jobs = _within_seconds(folder.jobs if part is None else part.jobs, phase.within)
    policy = folder.policy.evolve(settings, timing, None if part is None else part.accounts)
    spec, own = folder.with_sleep(policy, -inf if part is None else part.begin - _ASLEEP)
    sim = _ran(spec, jobs, own, progress=progress, too_long=too_long, observers=observers)
    result = sim.result()
    found = result.jobs
    names, started = found["job"].tolist(), found["start"].astype(np.float64)
    parts = {*names} - {*map(_id, jobs)}
    runs = {_id(job): job.run for job in jobs}
    for row in [row for row, name in enumerate(names) if parts and f"{name}.1" in parts]:
        started[row] -= (runs[names[row]] or 0.0) - found["run"][row]
    starts = np.nan_to_num(np.floor(started), nan=inf)
    return dict(zip(names, starts.tolist(), strict=True)), result.report.repaired


def _ran(
    spec: ClusterSpec,
    jobs: Sequence[Job],
    policy: PolicyLike,
    *,
    progress: bool,
    too_long: TooLong = "reject",
    observers: Sequence[Observer] = (),
) -> Simulation:
    """Return a simulation of jobs in which all have ended that can start."""
    sim = start(spec, jobs, policy, overrun="continue", progress=progress, too_long=too_long, observers=observers)
    with suppress(Stalled):  # some wait for ever
        sim.run()
    return sim


def _within_seconds(jobs: Sequence[Job], offset: float) -> list[Job]:
    """Return jobs that come and end within the seconds that accounting tells, spread over them.

    Whole run times would let jobs end just before a turn of the main loop, at which the next one starts at once.

    >>> from simmodel.work.job import Job
    >>> jobs = [Job(id=i, submit=5, run=60) for i in (1, 2)]
    >>> [(job.submit, round(job.run, 2)) for job in _within_seconds(jobs, 0.5)]
    [(5.25, 60.0), (5.75, 59.62)]
    """
    alike = Counter(job.submit for job in jobs)
    before: Counter[float] = Counter()
    found = []
    for number, job in enumerate(jobs):
        submit = job.submit + (before[job.submit] + 0.5) / alike[job.submit]
        before[job.submit] += 1
        part = (number * _GOLDEN + offset) % 1.0 - 0.5
        run = None if job.run is None else max(job.run + part, 0.0)
        cancel = None if job.cancel is None else max(job.cancel, submit)
        found.append(attrs.evolve(job, submit=submit, run=run, cancel=cancel))
    return found


def _departures(folder: SlurmFolder, settings: SlurmConf, *, progress: bool) -> tuple[Departure, ...]:
    """Return the recorded starts that neither loop makes at their instants."""
    recorded = {_id(run.job): run.start for run in folder.runs if run.start < inf}
    policy = _policy(folder, settings).asked_at(sorted(set(recorded.values())))
    follower = Follower(policy, recorded, polled=True)
    jobs = []
    for job in [run.job for run in folder.runs]:  # in the second of a start they come after it, for all that is told
        wishes = Wishes.of(job.options)
        waits = {0.0, wishes.begin, wishes.hold[1] if wishes.hold else 0.0}
        later = job.submit if recorded.get(_id(job), inf) - job.submit in waits else job.submit + 0.5
        cancel = None if job.cancel is None else max(job.cancel, later)
        run = job.requested or inf if job.never_ran else job.run  # so that a start can be taken back
        jobs.append(attrs.evolve(job, submit=later, cancel=cancel, run=run))
    spec = with_power(folder.described.spec, lambda _: None)  # recorded starts come once nodes are up
    asked: Any = _ran(spec, jobs, follower, progress=progress).system.scheduler.policy
    return tuple(each for each in asked.departures if each.kind != "late")  # a loop need not run when it could


# ---------------------------------------------------------------------- changes


@attrs.frozen(kw_only=True, repr=False)
class ChangedWaits(Fields):
    """What changed settings would do to the waits of a site's jobs.

    Parameters
    ----------
    before, after
        the policy as it is, and with the changes
    jobs
        how many jobs of the accounting there are, all of them and those of each partition, QOS and account
    kind, source
        of what the sample consists: ``"phases"``, ``"weeks"`` or ``"users"``, and where it comes from
    effects
        the differences of mean, median, 95th percentile and maximum of the waits of all jobs, and of the mean waits of
        each partition, QOS and account, which is the ``workload`` then
    told
        what the sample is
    left_out
        the jobs that never start in some of the simulations: their waits are in no figure
    repaired
        how many jobs the change lets request less time, and why
    """

    before: str
    after: str
    jobs: Mapping[str, int]
    kind: str
    source: Source
    effects: tuple[Difference, ...]
    told: tuple[str, ...] = ()
    left_out: tuple[int | str, ...] = ()
    repaired: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def table(self) -> Table:
        """One row a measure: see :func:`~simmodel.metrics.differences.difference_table`; and ``jobs``."""
        found = difference_table(self.effects)
        return found.with_columns(jobs=np.array([self.jobs[each.workload] for each in self.effects]))

    def report(self) -> str:
        """Return a table of text."""
        rows = [["wait (s)", "jobs", "as it is", "changed", "difference", ""]]
        reasons: dict[str, None] = {}
        for each in self.effects:
            verdict, _, why = each.verdict.removeprefix("indication only: ").partition(" (no interval: ")
            reasons |= {f"no interval: {why.removesuffix(')')}": None} if why else {}
            if isfinite(each.resampled):
                verdict += f"; {each.resampled:+.1f} % over all"
            name = each.workload or _MEASURES[each.metric][0]
            waits = [f"{value:.{0 if each.before >= 1000 else 1}f}" for value in (each.before, each.value)]
            difference = f"{each.difference.mean:+.{0 if each.before >= 1000 else 1}f}"
            rows.append([name, f"{self.jobs[each.workload]:,}", *waits, difference, verdict])
        return "\n".join(
            [
                f"as it is: {self.before}",
                f"changed: {self.after}",
                *text_table(rows, range(0, 6, 5)),
                f"{counted(self.jobs[''], 'job')} with recorded submissions and run times",
                *self.told,
                *reasons,
                *[f"only an indication: {each}" for each in self.source.doubts],
                *[f"changed: {why}: {counted(jobs, 'job')}" for why, jobs in self.repaired.items()],
                *([f"never start in the simulation, left out: {_named(self.left_out)}"] if self.left_out else []),
            ]
        )

    def to_json(self, path: str | Path | None = None) -> str:
        """Return policies, sample and differences as JSON, and write them to ``path`` if given."""
        sample = {"kind": self.kind, "count": self.source.count, "doubts": self.source.doubts}
        document = {
            "title": f"changed: {self.after}",
            "before": self.before,
            "after": self.after,
            "sample": {**sample, "described": self.told, "level": _LEVEL},
            "differences": list(self.table.rows()),
            "left_out": self.left_out,
            "repaired": dict(self.repaired),
        }
        return json_text(document, path)


_MEASURES: Mapping[str, tuple[str, Callable[[NDArray[np.float64]], np.floating[Any]]]] = {
    "wait_mean": ("mean", np.mean),
    "wait_median": ("median", np.median),
    "wait_p95": ("95th percentile", lambda waits: np.percentile(waits, 95)),
    "wait_max": ("maximum", np.max),
}


@attrs.frozen(kw_only=True)
class _Pairs:
    """The pairs of runs of a comparison: of the site as it is, and of the changed one."""

    sample: LogSample
    both: tuple[tuple[SlurmFolder, SlurmConf], ...]
    too_long: TooLong

    def __call__(self, number: int, bar: Bar | None = None) -> _Pair:
        """Return the waits in a pair of runs."""
        part = self.sample.part(number)
        phase = _Phase.of(number % self.sample.source.count, self.sample.source.count)
        starts = []
        repaired: Counter[str] = Counter()
        for folder, settings in self.both:
            ended = _Ended(len(part.jobs), bar)
            found, repaired = _starts(folder, settings, phase, self.too_long, part=part, observers=[ended])
            ended.close()
            starts.append(found)
        ran = [job for job in part.measured if all(found.get(job, inf) < inf for found in starts)]
        if not ran:
            raise InputError(_NONE_STARTS)
        submits = {_id(job): job.submit for job in part.jobs}
        waits = np.array([[found[job] - submits[job] for job in ran] for found in starts])
        rows = {row for job, row in part.measured.items() if not all(found.get(job, inf) < inf for found in starts)}
        return _Pair(waits, np.array([part.measured[job] for job in ran]), rows, repaired)


class _Pair(NamedTuple):
    """Waits (s) before and after a change, the rows of their jobs in the accounting, those of others, and repairs."""

    waits: NDArray[np.float64]
    rows: NDArray[np.intp]
    never: set[int]
    repaired: Counter[str]


class _Ended(Observer):
    """Counts jobs on a bar, each once at most, until all of a run are counted."""

    def __init__(self, left: int, bar: Bar | None) -> None:
        self._left, self._bar = left, bar

    def job_ended(self, _run: Run | None, _status: str) -> None:
        if self._bar is not None and self._left:
            self._left -= 1
            self._bar.update(1)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.update(self._left)


def change(
    folder: SlurmFolder,
    changes: Sequence[str],
    *,
    phases: int = 10,
    window: str | None = None,
    sample: int | None = None,
    resample: str | None = None,
    runs: int = 20,
    seed: int = 0,
    too_long: TooLong = "reject",
    executor: Executor | None = None,
    progress: bool = False,
) -> ChangedWaits:
    """Return what changes would do to the waits of a site's jobs, with the submissions and run times recorded.

    Both settings are simulated in the same phases of the loops, which are spread evenly: the accounting does not tell
    them. The intervals are those of paired differences.

    Parameters
    ----------
    changes
        as of :func:`changed_settings`, or lines as of
        :func:`~simmodel_site.twin.slurm.site.changed.changed_site`
    phases
        how many, at least 2; with ``sample`` and ``resample`` each pair of runs has one of its own
    window
        a time such as ``"2w"``, or ``"first:2w"``: only the jobs submitted in the last, or first, so long, from the
        recorded state at its begin
    sample
        how many weeks to draw at random, each simulated from the recorded state at its begin: intervals are those of
        the mean over weeks
    resample
        ``"users"``: logs like this one (see :meth:`~simmodel.work.Workload.resampled`), the spread of whose
        differences is the interval
    runs
        with ``resample``, how many
    seed
        of the weeks, or the logs, that are drawn
    too_long
        what becomes of jobs that request more time than their partition allows: as of :func:`~simmodel.simulate`
    executor
        where the pairs of runs are made; default: here, one after the other
    progress
        whether to show a progress bar

    Raises
    ------
    InputError
        there are no jobs, no changes, or a change is wrong, or no job starts in the simulation
    """
    if not changes:
        raise InputError("must be settings of slurm.conf and their values, got none", place="changes")
    if not any(not each.job.never_ran for each in folder.recorded):
        raise InputError("no job is recorded: give the output of sacct --parsable2 beside slurm.conf")
    other = folder.changed([each for each in changes if is_line(each)])
    settings = changed_settings(other, [each for each in changes if not is_line(each)])
    both = ((folder, changed_settings(folder)), (other, settings))
    given = LogSample.of(folder, phases=phases, window=window, weeks=sample, resample=resample, runs=runs, seed=seed)
    found = _run(_Pairs(sample=given, both=both, too_long=too_long), executor, progress=progress)
    labels = [_label(*each) for each in both]
    never = set[int]().union(*(pair.never for pair in found))
    effects, jobs = _effects(folder, found, given)
    return ChangedWaits(
        before=labels[0],
        after=labels[1],
        jobs=jobs,
        kind=given.kind,
        source=given.source,
        effects=effects,
        told=given.told,
        left_out=tuple(_id(folder.recorded[row].job) for row in sorted(never)),
        repaired=found[0].repaired,
    )


def _run(pairs: _Pairs, executor: Executor | None, *, progress: bool) -> list[_Pair]:
    """Make all pairs of runs; the bar counts jobs, or moves once a second while other processes run."""
    numbers = range(pairs.sample.pairs)
    if executor is None:
        sizes = [2 * len(pairs.sample.part(number).jobs) for number in numbers[: len(pairs.sample.spans)]]
        total = sum(sizes[number % len(sizes)] for number in numbers)
        with progress_bar(total, "job", progress) as bar:
            return [pairs(number, bar) for number in numbers]
    with progress_bar(len(numbers), "pair of runs", progress) as bar:
        waiting = {*(futures := [executor.submit(pairs, number) for number in numbers])}
        while waiting:
            done, waiting = wait(waiting, timeout=1.0)
            bar.update(len(done))
        return [future.result() for future in futures]


def _effects(
    folder: SlurmFolder, found: Sequence[_Pair], sample: LogSample
) -> tuple[tuple[Difference, ...], dict[str, int]]:
    """Return the differences of all jobs and of each group, and how many jobs these have."""
    groups = _groups(folder)
    everyone = np.concatenate([pair.rows for pair in found]) if len(sample.spans) > 1 else found[0].rows
    first = 1 if sample.kind == "users" else 0
    jobs, effects = {}, []
    for name, rows in groups.items():
        inside = [np.isin(pair.rows, rows) for pair in found]
        jobs[name] = int(np.isin(everyone, rows).sum())
        for metric, (_, measure) in _MEASURES.items():
            if not jobs[name] or (name and metric != "wait_mean"):
                continue
            values = np.array(
                [
                    [float(measure(waits[own])) if own.any() else nan for waits in pair.waits]
                    for pair, own in zip(found, inside, strict=True)
                ]
            )
            before, after = values[first:].T
            log = (values[0, 1], values[0, 0]) if first else None
            labels = ("", name, "changed", metric, "as it is")
            effects.append(compared(labels, after, before, sample.source, _LEVEL, log=log))
    return tuple(effects), jobs


def _groups(folder: SlurmFolder) -> dict[str, NDArray[np.intp]]:
    """Return the rows of all jobs, and of those of each partition, QOS and account, of which there are several."""
    found: dict[str, NDArray[np.intp]] = {"": np.arange(len(folder.recorded))}
    for kind, names in (
        ("partition", [each.job.queue or each.job.partition for each in folder.recorded]),
        ("QOS", [each.qos for each in folder.recorded]),
        ("account", [each.job.group for each in folder.recorded]),
    ):
        by_name: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            if name:
                by_name.setdefault(f"{kind} {name}", []).append(row)
        if len(by_name) > 1:
            found |= {name: np.array(by_name[name]) for name in sorted(by_name)}
    return found
