"""Why a job waits: who is ahead of it, who holds what it needs, and the least change with which it would start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from math import ceil, inf
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.display import Cells, Shown, text_table
from simmodel.environment import Environment
from simmodel.errors import InputError, Stalled
from simmodel.futures.whatif import what_if
from simmodel.metrics.report import duration
from simmodel.results.stores import json_text
from simmodel.runs.simulating import start
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.observer import Observer
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems.cluster.system import Cluster
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.runs.platforms import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.snapshots.jobs import WorkState
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size
    from simmodel.work.job import LiveJob, Run

__all__ = ["Change", "Explanation", "Holder", "explain", "why_waits"]

_SHOWN = 5  # jobs ahead, and holders, in texts


class Change(NamedTuple):
    """A change with which the job would start now: what changes, to which value, and a sentence."""

    what: str
    value: float | str
    text: str


class Holder(NamedTuple):
    """A running job that holds what another one waits for: its processors, and its expected end (s)."""

    job: int | str
    processors: int
    until: float


@attrs.frozen(eq=False, repr=False)
class Explanation(Shown):
    """Why a job waits at an instant.

    Attributes
    ----------
    job, at, place
        the job, the instant (s), and the partition that it waits for
    reason
        ``"processors"``: what it needs is not free; ``"order"``: it would fit, but the policy keeps it for others;
        ``"dependencies"``, ``"limit"``
    needs, free
        its processors, and those that are free
    ahead
        the waiting jobs that the policy plans to start before it, in that order
    holders
        the running jobs whose ends make room for it, in the order of their expected ends
    expected
        its start (s) if no more jobs come and all run as long as expected; ``None``: never
    changes
        changes of its request, each of which alone would start it now, confirmed by asking the policy
    spans
        from a simulation, what it waited for: ``since``, ``until`` (s) and ``reason``
    """

    job: int | str
    at: float
    place: str
    reason: str
    needs: int
    free: int
    ahead: tuple[int | str, ...] = ()
    holders: tuple[Holder, ...] = ()
    expected: float | None = None
    changes: tuple[Change, ...] = ()
    spans: Table = attrs.field(factory=lambda: _table([]))

    def report(self) -> str:
        """Return the explanation as lines of text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        words = {
            "processors": f"needs {self.needs} processors of {self.place}, {self.free} are free",
            "order": f"would fit, but others go first ({self.needs} processors of {self.place}, {self.free} are free)",
            "dependencies": "waits for other jobs",
            "limit": "is held by a limit of its queue",
        }
        yield f"job {self.job} at {self.at:.10g} s: {words[self.reason]}"
        if self.ahead:
            yield f"  ahead of it: {_listed([f'job {each}' for each in self.ahead])}"
        if self.holders:
            held = [f"job {job} ({size} until {until:.10g} s)" for job, size, until in self.holders]
            yield f"  held by: {_listed(held)}"
        if self.expected is not None:
            yield f"  expected to start at {self.expected:.10g} s, in {duration(max(0.0, self.expected - self.at))}"
        for change in self.changes:
            yield f"  it would start now {change.text}"
        if len(self.spans):
            yield "  what it waited for:"
            rows = [[f"{row['since']:.10g}", f"{row['until']:.10g}", str(row["reason"])] for row in self.spans.rows()]
            yield from text_table([["since (s)", "until (s)", "reason"], *rows], left=0, indent=4)

    def document(self) -> dict[str, Any]:
        """Return it as plain values, without the spans of an unknown end."""
        plain = attrs.asdict(self, filter=lambda field, _: field.name not in ("spans", "holders", "changes"))
        plain["holders"] = [each._asdict() for each in self.holders]
        plain["changes"] = [each._asdict() for each in self.changes]
        plain["spans"] = list(self.spans.rows())
        return plain

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the document as JSON, and write it to a file if a path is given."""
        return json_text(self.document(), path)

    def _cells(self) -> Cells:
        rows = [["", ""], ["job", str(self.job)], ["at (s)", f"{self.at:.10g}"], ["reason", self.reason]]
        rows += [["needs", f"{self.needs}"], ["free", f"{self.free}"], ["jobs ahead", f"{len(self.ahead)}"]]
        rows += [[f"change of {each.what}", each.text] for each in self.changes]
        return rows

    def __repr__(self) -> str:
        return f"<Explanation of job {self.job} at {self.at:g} s: {self.reason}>"

    def __str__(self) -> str:
        return self.report()

    def plot(self, *, title: str | None = None, figsize: Size | None = None) -> Figure:
        """Draw what stood in the way: the reasons over time, or the holders with their expected ends."""
        from simmodel.view.referee_plots import in_the_way

        spans = [(float(row["since"]), float(row["until"]), str(row["reason"])) for row in self.spans.rows()]
        name = f"Why job {self.job} waits" if title is None else title
        return in_the_way(spans, self.holders, self.at, title=name, figsize=figsize)


def _listed(texts: list[str]) -> str:
    more = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _table(spans: list[tuple[float, float, str]]) -> Table:
    since, until, reason = zip(*spans, strict=True) if spans else ((), (), ())
    return Table(
        {
            "since": np.array(since, dtype=np.float64),
            "until": np.array(until, dtype=np.float64),
            "reason": np.array(reason, dtype=str),
        }
    )


# ---------------------------------------------------------------------- at one instant


def why_waits(snapshot: ClusterSnapshot, job: int | str, policy: PolicyLike | None = None) -> Explanation:
    """Explain why a job waits in a snapshot: of a simulation, or of the mirror of a real scheduler.

    Parameters
    ----------
    snapshot
        a cluster at one instant
    job
        the id of a job that waits
    policy
        default: that of the snapshot

    Raises
    ------
    InputError
        the job does not wait, or the policy of the snapshot was given as an object

    >>> from simmodel import Cluster, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> for size, limit in ((3, 100), (4, 50), (1, 20)): _ = cluster.submit(Job(processors=size, run=limit))
    >>> cluster.env.run(until=1)
    >>> print(why_waits(cluster.snapshot(), 2).report())
    job 2 at 1 s: needs 4 processors of batch, 1 are free
      held by: job 1 (3 until 100 s)
      expected to start at 100 s, in 1 min 39 s
      it would start now with 1 processors instead of 4
    """
    if not isinstance(snapshot, ClusterSnapshot):
        raise InputError(f"must be that of a cluster, got {snapshot!r}", place="snapshot")
    seen = snapshot.expected()
    works = {str(work.id): (part, work) for part in ("waiting", "held", "blocked") for work in getattr(seen, part)}
    if str(job) not in works:
        raise InputError(f"must be one of the {len(works):,} jobs that wait, got {job!r}", place="job")
    part, work = works[str(job)]
    (outcome,) = what_if(seen, {"as it is": policy}).outcomes
    starts = {each.job: each.at for each in outcome.starts}
    expected = starts.get(work.id)
    system = Cluster.from_snapshot(Environment(seen.now), seen, policy, record=False)
    pool = system.pools[work.place]
    if part == "waiting":
        (live,) = [each for each in system.view.waiting if each.id == work.id]
        reason = "order" if pool.fits(live) else "processors"
    else:
        reason = "limit" if part == "held" else "dependencies"
    order = {each.job: number for number, each in enumerate(outcome.starts)}
    before = [each for each in outcome.starts if each.job in order and order[each.job] < order.get(work.id, len(order))]
    ahead = tuple(
        each.job for each in before if part == "waiting" and each.at <= (inf if expected is None else expected)
    )
    return Explanation(
        job=work.id,
        at=float(seen.now),
        place=work.place,
        reason=reason,
        needs=work.processors,
        free=int(pool.free),
        ahead=ahead if part == "waiting" else (),
        holders=_holders(seen, work, int(pool.free)) if reason in ("processors", "order") else (),
        expected=expected,
        changes=tuple(_changes(seen, work, policy)) if part == "waiting" else (),
    )


def _holders(snapshot: ClusterSnapshot, work: WorkState, free: int) -> tuple[Holder, ...]:
    """Return the running jobs of its place, by expected end, until enough of them make room."""
    there = sorted((run for run in snapshot.running if run.place == work.place), key=lambda run: run.expected_end)
    found = []
    for run in there:
        if free >= work.processors:
            break
        found.append(Holder(run.id, run.work.processors, float(run.expected_end)))
        free += run.work.processors
    return tuple(found)


def _changes(snapshot: ClusterSnapshot, work: WorkState, policy: PolicyLike | None) -> Iterator[Change]:
    """Yield the least change of each kind that starts the job now."""

    def starts(**changes: Any) -> bool:
        return work.id in _started_now(_with(snapshot, work, **changes), policy)

    spec = work.spec
    nodes = spec is not None and spec.nodes is not None
    whole = spec.nodes if spec is not None and spec.nodes is not None else work.processors
    fewer = _largest(lambda count: starts(count=count), whole - 1)
    if fewer is not None:
        yield Change(
            "nodes" if nodes else "processors",
            fewer,
            f"with {fewer} {'nodes' if nodes else 'processors'} instead of {whole}",
        )
    longest = ceil(work.requested) - 1
    shorter = _largest(lambda seconds: starts(seconds=float(seconds)), longest)
    if shorter is not None:
        yield Change("requested", float(shorter), f"with a limit of {shorter} s instead of {work.requested:.10g} s")
    for each in snapshot.platform.partitions:
        if each.name != work.place and starts(place=each.name):
            yield Change("partition", each.name, f"on partition {each.name}")


def _largest(starts: Callable[[int], bool], most: int) -> int | None:
    """Return a value from 1 to ``most`` that starts the job while the next larger one does not."""
    if most < 1 or not starts(1):
        return None
    if starts(most):
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        if starts(middle):
            low = middle
        else:
            high = middle
    return low


def _with(
    snapshot: ClusterSnapshot,
    work: WorkState,
    count: int | None = None,
    seconds: float | None = None,
    place: str | None = None,
) -> ClusterSnapshot:
    """Return a snapshot in which a waiting job requests something else."""
    spec, changed = work.spec, work
    if count is not None:
        size = count
        if spec is not None and spec.nodes is not None:
            spec, size = attrs.evolve(spec, nodes=count), count * max(1, spec.cores_per_node)
        elif spec is not None:
            spec = attrs.evolve(spec, processors=count)
        changed = changed._replace(processors=size)
    if seconds is not None:
        spec = None if spec is None else attrs.evolve(spec, requested=seconds, run=seconds)
        changed = changed._replace(requested=seconds, expected=seconds)
    if place is not None:
        spec = None if spec is None else attrs.evolve(spec, partition=place, partitions=())
        changed = changed._replace(place=place)
        choices = tuple(each for each in snapshot.choices if each.number != work.number)
        snapshot = attrs.evolve(snapshot, choices=choices)
    waiting = tuple(changed._replace(spec=spec) if each.number == work.number else each for each in snapshot.waiting)
    return attrs.evolve(snapshot, waiting=waiting)


class _Starts(Observer):
    """The ids of the jobs that have started."""

    def __init__(self) -> None:
        self.jobs: set[int | str] = set()

    def job_started(self, run: Run) -> None:
        """Note a start."""
        self.jobs.add(run.job.id)


def _started_now(snapshot: ClusterSnapshot, policy: PolicyLike | None) -> set[int | str]:
    """Return the jobs that the policy starts at the instant of a snapshot."""
    asked = attrs.evolve(
        snapshot,
        policy=attrs.evolve(snapshot.policy, due=True, asked=True),
        options=attrs.evolve(snapshot.options, decide_on="instant"),
        new=tuple(work.number for work in snapshot.waiting),
    )
    env, starts = Environment(asked.now), _Starts()
    system = Cluster.from_snapshot(env, asked, policy, record=False)
    simulation = Simulation(system)
    if simulation.next_decision() is None or env.now > asked.now:
        return set()
    env.observe(starts)
    simulation.decide()
    return starts.jobs


# ---------------------------------------------------------------------- over its life


class _Watch(Observer):
    """Notes what a job waits for after each decision."""

    def __init__(self, job: int | str) -> None:
        self.job = str(job)
        self.live: LiveJob | None = None
        self.spans: list[tuple[float, float, str]] = []
        self._since: tuple[float, str] | None = None

    def job_submitted(self, job: LiveJob) -> None:
        """Find the job."""
        if str(job.id) == self.job:
            self.live = job

    def decided(self, scheduler: Scheduler, _seconds: float, _decisions: int) -> None:
        """Note its reason to wait."""
        if self.live is not None and not self.live.attempts:
            self._note(float(scheduler.env.now), _reason(self.live))

    def job_started(self, run: Run) -> None:
        """Close the last span."""
        if run.job is self.live and self._since is not None:
            self._note(float(run.place.env.now), None)

    def _note(self, now: float, reason: str | None) -> None:
        if self._since is not None and self._since[1] != reason:
            if now > self._since[0]:
                self.spans.append((self._since[0], now, self._since[1]))
            self._since = None
        if reason is not None and self._since is None:
            self._since = now, reason


def _reason(job: LiveJob) -> str:
    if job.state == "blocked":
        return "dependencies"
    if job.state == "held":
        return "limit"
    return "order" if job.place.fits(job) else "processors"


def explain(
    platform: GivenPlatform,
    workload: GivenWork,
    policy: PolicyLike,
    job: int | str,
    at: float | None = None,
    **options: Any,
) -> Explanation:
    """Simulate a workload and explain why a job waits at an instant, and what it waited for until it started.

    Parameters
    ----------
    platform, workload, policy, options
        as of :func:`~simmodel.runs.simulating.simulate`, for a cluster
    job
        its id
    at
        the instant (s); default: that of its submission

    Raises
    ------
    InputError
        there is no such job, it does not wait at the instant, or the platform is no cluster

    >>> found = explain(12, "probe-4", "easy", 3)
    >>> found.reason, found.expected, [change.text for change in found.changes]
    ('processors', 1000.0, ['with 2 processors instead of 7'])
    >>> list(found.spans.rows())
    [{'since': 950.0, 'until': 1000.0, 'reason': 'processors'}]
    """
    watch = _Watch(job)
    simulation = start(platform, workload, policy, **options)
    if not isinstance(simulation.system, Cluster):
        raise InputError(f"must be a cluster, got {simulation.system!r}", place="platform")
    submits = {str(each.id): float(each.submit) for each in simulation.system.snapshot().arrivals}
    if str(job) not in submits:
        raise InputError(f"must be one of the {len(submits):,} jobs, got {job!r}", place="job")
    when = submits[str(job)] if at is None else float(at)
    if not submits[str(job)] <= when < inf:
        raise InputError(
            f"must be an instant from {submits[str(job)]:.10g} s (its submission) on, got {at!r}", place="at"
        )
    simulation.env.observe(watch)
    snapshot = _before_decision(simulation, simulation.system, when)
    given = None if isinstance(policy, str) else policy
    works = {str(work.id) for part in ("waiting", "held", "blocked") for work in getattr(snapshot, part)}
    if str(job) not in works or (watch.live is not None and watch.live.attempts):
        raise InputError(f"job {job} does not wait at {when:.10g} s: {_fate(watch)}", place="at")
    found = why_waits(snapshot, job, given)
    simulation.system.scheduler.external = False
    with suppress(Stalled):  # other jobs never start
        simulation.run()
    return attrs.evolve(found, spans=_table(watch.spans))


def _fate(watch: _Watch) -> str:
    live = watch.live
    if live is None:
        return "it was rejected"
    return f"it is {live.state}" + (f", started at {live.started:.10g} s" if live.started is not None else "")


def _before_decision(simulation: Simulation, system: Cluster, when: float) -> ClusterSnapshot:
    """Run to an instant (s), through its decision if there is one; return the state after its events, before that."""
    env = simulation.env
    if when > env.now:
        simulation.run(until=when)
    snapshot = system.snapshot()
    if env.peek() > when:
        return snapshot
    if system.options.decide_on == "event":
        simulation.run(until=float(np.nextafter(when, inf)))
        return system.snapshot()
    if simulation.next_decision() is not None and env.now == when:
        snapshot = system.snapshot()
        simulation.decide()
    return snapshot
