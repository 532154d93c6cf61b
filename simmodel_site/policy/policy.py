"""The policy: both loops of slurmctld on a view, each at its own instants.

A decision notes what has happened since the last one (:class:`_Events`), stops jobs at a scan of limits, and runs the
loops that are due: each goes over the :class:`Queue` and starts jobs on the boards of :class:`SlurmPlaces`. Who holds
what is known to :class:`Running`, which nodes are not free yet to :class:`Completing`, who makes way to :class:`Stops`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, inf
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from simmodel import InputError
from simmodel.extending import OVER, Fields, counted, unknown
from simmodel.resources import NodePool
from simmodel.scheduling import Decision, Observer, Place, Policy, Preempt, Start, View, WakeAt
from simmodel_site.policy.accounts import Accounts
from simmodel_site.policy.alike import AlikeCycle
from simmodel_site.policy.backfill import BackfillCycle
from simmodel_site.policy.clocks import BackfillClock, GivenClock, LoopClock, MainClock, Turn
from simmodel_site.policy.holds import Records
from simmodel_site.policy.layout import SlurmNodes, SlurmSwitch, nodes_of, switches_of
from simmodel_site.policy.limits import Quotas
from simmodel_site.policy.main_loop import main_cycle
from simmodel_site.policy.places import SlurmPlaces
from simmodel_site.policy.preemption import Preemption, Stops, Victims
from simmodel_site.policy.priority import Priorities, Queue
from simmodel_site.policy.reservations import Calendar, SlurmReservation, reservations_of
from simmodel_site.policy.running import Completing, Running
from simmodel_site.policy.settings import SlurmConf, SlurmPartition, number_text, partitions_of

if TYPE_CHECKING:
    from simmodel import Environment
    from simmodel.extending import Allocation
    from simmodel.platform import ClusterOptions, ClusterSpec
    from simmodel.work import LiveJob, Run
    from simmodel_site.policy.board import Pending

__all__ = ["Slurm", "SlurmTiming"]

SCAN = 30.0
"""Seconds between two scans of limits."""

YIELD = 2.0
"""Seconds after which a cycle of the backfill loop lets others in."""


@attrs.frozen(kw_only=True, repr=False)
class SlurmTiming(Fields):
    """When the loops of slurmctld run; all instants and times in seconds.

    Parameters
    ----------
    main_first, turn
        the instant of a turn of the background loop, at which the main loop runs, and the time between two turns
    backfill_first
        the instant at which the backfill loop looks for the first time; default: ``bf_interval``
    completing
        how long the nodes of an ended job are not free: until each slurmd has answered and its Epilog is done
    stopping
        how long a job lasts that is preempted: until its Epilog is done, which starts a run of the main loop at once
    test
        how long the backfill loop takes to test a job: its cycles begin later by that
    scans
        whether limits are enforced at scans; not where jobs run as long as a record says
    turns
        instead of turns at regular times: the instants of all turns, as far as they are known
    main, full, backfill
        instead: the instants of all runs of the main loop (default depth, whole queue) and of all backfill cycles
    """

    main_first: float = 1.0
    turn: float = 1.0015
    backfill_first: float | None = None
    completing: float = 0.0
    stopping: float = 0.05
    test: float = 0.0
    scans: bool = True
    turns: Sequence[float] = ()
    main: Sequence[float] = ()
    full: Sequence[float] = ()
    backfill: Sequence[float] = ()

    def __attrs_post_init__(self) -> None:
        if not 0 < self.turn < inf:
            raise InputError(f"must be > 0 s, got {self.turn:g}", place="turn")


class Batch(Protocol):
    """A cluster."""

    @property
    def env(self) -> Environment:
        """Its environment."""
        ...

    @property
    def options(self) -> ClusterOptions:
        """Its options."""
        ...

    @property
    def spec(self) -> ClusterSpec:
        """Its spec."""
        ...


class _Events(Observer):
    """The submissions and ends since the last decision: jobs that depend on others ask for none, but wake the loops."""

    def __init__(self, system: Batch, everyone: bool, records: Records) -> None:
        self._env = system.env
        self._records = records
        self._everyone = everyone
        self._back = {outage.until for outage in system.spec.outages if outage.kind == "drain"}
        self.events: list[tuple[float, Run | None]] = []
        self.submitted: list[LiveJob] = []  # the jobs that were: all, or those with options
        self.cancelled: list[LiveJob] = []

    @property
    def now(self) -> float:
        """The present instant (s)."""
        return float(self._env.now)

    def job_submitted(self, job: LiveJob, /) -> None:
        """Note when a job was submitted, and its place in the order of submissions."""
        self.events.append((float(self._env.now), None))
        self._records.arrived(int(job.seq), float(job.submit))
        if self._everyone or (job.spec is not None and job.spec.options):
            self.submitted.append(job)

    def job_cancelled(self, job: LiveJob, /) -> None:
        """Note that a job was cancelled while it waited."""
        self.cancelled.append(job)

    def place_changed(self, _place: Place, cause: str, /) -> None:
        """Note when an administrator or a repair brings nodes back; the end of a reservation asks for no run."""
        if cause == "repair" or (cause == "resume" and self._env.now in self._back):
            self.events.append((float(self._env.now), None))

    def job_ended(self, run: Run, status: str, /) -> None:
        """Note when a job ended."""
        self.events.append((float(self._env.now), run))


class Slurm(Policy):
    """Slurm's main and backfill loops at their own instants; slurm(bf_interval=60, ...): by Slurm's names.

    Jobs name a partition of Slurm by their ``queue``; limits are rounded up to minutes; a job's own ``priority`` is its
    negative ``--nice``. Counted processors are taken as nodes of one core.

    With ``overrun="stop"``, the default, a cluster stops jobs exactly at their requested time. With
    ``overrun="continue"`` the policy stops them as slurmctld does: at the first scan, every 30 s, after their limit and
    ``OverTimeLimit``.

    Parameters
    ----------
    settings
        of slurm.conf; default: those of Slurm 22.05
    partitions
        Slurm's partitions, which may share nodes; default: the places, with all their nodes
    timing
        when the loops run
    nodes
        weights, features and types of GPUs of nodes, where they differ
    switches
        the tree of switches, for ``TopologyPlugin=topology/tree``; default: the switches of the platform, below one
    accounts
        the accounts, users and QOS, as slurmdbd has them; default: there are none
    reservations
        reservations that the loops keep, beside those of the platform: with flags, accounts or cores of nodes

    >>> Slurm.of(bf_interval="10", PriorityType="priority/multifactor").text
    'slurm(bf_interval=10, multifactor=true)'
    """

    name = "slurm"
    decides = "jobs"
    preempts = True
    draws = False
    reads_options = True
    tries_every_submission = True
    plain = True

    def __init__(
        self,
        settings: SlurmConf | None = None,
        partitions: Sequence[SlurmPartition] = (),
        timing: SlurmTiming | None = None,
        nodes: Sequence[SlurmNodes] = (),
        switches: Sequence[SlurmSwitch] = (),
        accounts: Accounts | None = None,
        reservations: Sequence[SlurmReservation] = (),
    ) -> None:
        self.settings = SlurmConf() if settings is None else settings
        self.partitions = tuple(partitions)
        self.timing = SlurmTiming() if timing is None else timing
        self.nodes = tuple(nodes)
        self.switches = tuple(switches)
        self.accounts = accounts
        self.reservations = tuple(reservations)
        self._calendar = Calendar(self.reservations)
        self._enforces = self.timing.scans and self.settings.over_time_limit < inf
        self.preempts = bool(self.settings.preempt)
        self._preemption = Preemption(self.settings) if self.settings.preempt else None
        self._main, self._backfill = self._clocks()
        self._places = SlurmPlaces(self.settings, self.partitions, self.nodes, self.switches, self.reservations)
        self._records = Records()
        self._priorities = Priorities(
            self.settings, self.partitions, accounts, self.timing.main_first, self._records, self._places.boards
        )
        self._quotas = (
            Quotas(accounts, self.settings, self.timing.main_first)
            if accounts is not None and self.settings.enforce_limits
            else None
        )
        self._running = Running(
            self._places, self._records, accounts, self._quotas, self._priorities.charges, preempts=self.preempts
        )
        self._stops = Stops(self._preemption, self._running)
        self._completing = Completing(
            self.settings,
            self.timing.completing,
            self.timing.stopping,
            asks=not isinstance(self._main, GivenClock),
        )
        self._queue = Queue(self._places, self._records, self._priorities, self._stops, accounts, self._quotas)
        self._events: _Events | None = None
        self._away: list[bool] = []  # which announced absences of nodes have begun, at the last decision
        self._idle = True  # whether nothing has waited since the last decision
        self._scans: MainClock | None = None  # of limits, if the policy enforces them
        self._settled: dict[str, float] = {}  # when main, full or backfill runs started nothing
        self._broken: list[Turn | None] = []  # the run whose job was withdrawn at its turn, which begins again
        self._cut = False  # whether the last run of the main loop would end for its depth
        self._quiet = False  # whether the coming runs of both loops change nothing until something happens
        self._versions: list[int] = []  # of the places, at the last cycle
        self._last_cycle = 0.0, False, False  # of the backfill loop: how long it took (s), if it changed, marked nodes
        self._kept: AlikeCycle | None = None  # the last cycle of the backfill loop, if another may go on from it
        self._noted = self._full_noted = False  # whether the last run, and full run, of the main loop changed jobs
        self._long = 0  # how many cycles of the backfill loop have taken longer than slurmctld lets them

    @classmethod
    def of(cls, *values: float | str, **given: float | str) -> Slurm:
        """Return the policy of Slurm's own names: SchedulerParameters, settings of slurm.conf, and ``partitions``.

        Raises
        ------
        InputError
            a name is unknown, or a value is not what Slurm accepts
        """
        if values:
            raise InputError(f"parameters must be named, as in slurm(bf_interval=60), got {values[0]!r}", place="slurm")
        options = {name: str(value) for name, value in given.items()}
        known = {field.name for field in attrs.fields(SlurmConf)} - {"unread"}
        timing = {name: SlurmConf.typed("bf_interval", options.pop(name)) for name in _TIMES if name in options}
        partitions, nodes, switches, reservations = (
            options.pop(name, "").removeprefix("(").removesuffix(")") for name in _LISTS
        )
        fields = {name: SlurmConf.typed(name, options.pop(name)) for name in [*options] if name in known}
        conf = {name: options.pop(name) for name in [*options] if name[:1].isupper()}
        settings = SlurmConf.of({**conf, "SchedulerParameters": ",".join(f"{k}={v}" for k, v in options.items())})
        if settings.unread:
            name = settings.unread[0].removeprefix("SchedulerParameters ").partition("=")[0]
            raise unknown("parameter", name, [*sorted(known), *_LISTS, *_TIMES])
        return cls(
            attrs.evolve(settings, **fields),
            partitions_of(partitions),
            SlurmTiming(**timing),
            nodes_of(nodes),
            switches_of(switches),
            reservations=reservations_of(reservations),
        )

    def evolve(
        self, settings: SlurmConf | None = None, timing: SlurmTiming | None = None, accounts: Accounts | None = None
    ) -> Slurm:
        """Return this policy with other settings, timing or accounts.

        >>> Slurm.of(bf_interval=10, partitions="a").evolve(SlurmConf(bf_interval=60)).text
        'slurm(bf_interval=60, partitions=(a))'
        """
        return Slurm(
            self.settings if settings is None else settings,
            self.partitions,
            self.timing if timing is None else timing,
            self.nodes,
            self.switches,
            self.accounts if accounts is None else accounts,
            self.reservations,
        )

    def asked_at(self, instants: Sequence[float]) -> Slurm:
        """Return this policy with both loops over the whole queue at given instants (s), without scans or preemption.

        >>> Slurm.of(bf_interval=10).asked_at([5.0]).timing.full
        [5.0]
        """
        timing = SlurmTiming(full=instants, backfill=instants, scans=False)
        return self.evolve(attrs.evolve(self.settings, preempt=""), timing)

    @property
    def text(self) -> str:
        """Its name with its parameters, without settings that are not modelled and given instants."""
        parts = [f"{name}={_shown(value)}" for name, value in self.settings.changed().items()]
        usual = SlurmTiming()
        for name in _TIMES:
            value = getattr(self.timing, name)
            if value != getattr(usual, name):
                parts.append(f"{name}={value}")
        lists = (
            [each.text for each in self.partitions],
            [each.text for each in self.nodes],
            [each.text for each in self.switches],
            [each.text for each in self.reservations],
        )
        parts += [f"{name}=({';'.join(texts)})" for name, texts in zip(_LISTS, lists, strict=True) if texts]
        return f"slurm({', '.join(parts)})" if parts else "slurm"

    def notes(self, system: Batch, /) -> tuple[str, ...]:
        """Return the settings of slurm.conf, and the options of jobs, that are not modelled."""
        found = [f"policy slurm leaves out {each}" for each in self.settings.unread]
        if self.accounts is None:
            for name, what in _NEED_ACCOUNTS.items():
                if getattr(self.settings, name):
                    found.append(f"policy slurm knows no accounts and leaves out {what}")
        if self._quotas is not None:
            found += [f"policy slurm {each}" for each in self._quotas.notes()]
        if self._long:
            told = f"{counted(self._long, 'backfill cycle')} of more than {YIELD:g} s"
            found.append(f"policy slurm leaves out that others interrupt {told} (bf_yield_interval, bf_continue)")
        found += [f"policy slurm {each}" for each in (*self._places.notes(), *self._queue.notes())]
        return tuple(found)

    # ------------------------------------------------------------------ the system

    def attach(self, system: Batch) -> None:
        """Note the submissions and ends of the jobs of the system from now on."""
        if system.options.overrun == "continue" and self._enforces:
            self._scans = MainClock(0.0, SCAN, self.timing.main_first, self.timing.turn)
        self._events = _Events(system, self._quotas is not None, self._records)
        self._running.noted = True
        system.env.observe(self._events)

    def _clocks(self) -> tuple[LoopClock, LoopClock]:
        settings, timing = self.settings, self.timing
        first = settings.bf_interval if timing.backfill_first is None else timing.backfill_first
        delay, interval = settings.batch_sched_delay, settings.sched_interval
        main: LoopClock = MainClock(delay, interval, timing.main_first, timing.turn, timing.turns)
        backfill: LoopClock = BackfillClock(settings.bf_interval, first)
        if timing.main or timing.full:
            main = GivenClock(timing.main, timing.full, interval=settings.sched_interval)
        if timing.backfill:
            backfill = GivenClock(timing.backfill, interval=settings.bf_interval)
        elif not settings.backfill:
            backfill = GivenClock((), interval=inf)
        return main, backfill

    def state(self) -> Any:
        """Return what the next runs of both loops, and the next scan of limits, depend on."""
        if self._events is not None:
            now, events = self._events.now, self._events.events
            self._pass_to(now, events)
            while events and events[0][1] is not None:  # ends while nothing waits bring no decision
                self._note_event(*events.pop(0), now)
        values = [each for clock in self._all() for each in clock.values]
        clocks = [None if abs(each) == inf else each for each in values]
        found: dict[str, Any] = {"clocks": clocks, "idle": self._idle}
        if self._quiet:  # what the runs to come bring is then as the last ones did
            found["quiet"] = {"cycle": list(self._last_cycle), "noted": [self._noted, self._full_noted]}
        for each in (self._records, self._completing, self._priorities, self._running):
            found |= each.state()
        if self._quotas is not None:
            found |= self._quotas.state()
        return found | self._stops.state(self._queue.jobs)

    def _all(self) -> list[LoopClock]:
        return [self._main, self._backfill, *([] if self._scans is None else [self._scans])]

    def restore(self, values: Any) -> None:
        """Restore the values of :meth:`state`."""
        given = iter(values["clocks"])
        for clock in self._all():
            clock.values = [
                (-inf if was == -inf else inf) if (each := next(given)) is None else float(each) for was in clock.values
            ]
        self._idle = bool(values["idle"])
        quiet = values.get("quiet")
        self._quiet = quiet is not None
        if quiet is not None:
            seconds, changed, marked = quiet["cycle"]
            self._last_cycle = float(seconds), bool(changed), bool(marked)
            self._noted, self._full_noted = map(bool, quiet["noted"])
        for each in (self._records, self._completing, self._priorities, self._running, self._stops):
            each.restore(values)
        if self._quotas is not None:
            self._quotas.restore(values)

    # ------------------------------------------------------------------ decisions

    def forget(self) -> None:
        """Look at all jobs anew in each cycle from now on: starts are taken back."""
        self._queue.plain = False

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Run the loops that are due, and wake for the next."""
        now = view.now
        self._note(view, now)
        for job, reason in self._queue.take_refused():
            yield Preempt(job, "cancel", reason)
        if self._scans is not None:
            yield from self._enforce(self._scans, now)
        for broken in [*self._broken]:
            self._broken.clear()
            yield from self._run_backfill(view) if broken is None else self._run_main(view, broken)
        if self._completing.due(now, idle=self._idle):
            yield from self._run_main(view, Turn(now))
        if (turn := self._main.next(True)).at <= now:
            self._main.ran(turn)
            for at in self._completing.answers(now):
                self._main.ask(at)
            yield from self._run_main(view, turn)
        if (turn := self._backfill.next(True)).at <= now:
            self._backfill.ran(turn)
            yield from self._run_backfill(view)
        self._idle = not view.waiting.count
        self._quiet = self._rests(view)
        if (at := self._next(not self._idle, now)) < inf:
            yield WakeAt(at)

    def _run_main(self, view: View, turn: Turn) -> Iterator[Decision]:
        """Run the main loop; what it starts, and why others wait, is a change for the backfill loop."""
        yield from self._cycle(view, turn)
        if self._noted:
            self._backfill.ask(view.now)

    def _run_backfill(self, view: View) -> Iterator[Decision]:
        """Run the backfill loop, which sleeps afterwards."""
        yield from self._cycle(view, None)
        self._backfill.over(*self._last_cycle)

    def _enforce(self, scans: MainClock, now: float) -> Iterator[Decision]:
        """Stop the jobs whose limit has passed, if limits are scanned now."""
        scans.pass_to(now)
        if (turn := scans.next(False)).at <= now:
            scans.ran(turn)
            for run in [run for run, end in self._running.limits(self.settings.over_time_limit) if end <= int(now)]:
                yield Preempt(run.work, "timeout", "its limit has passed")
            for run, reason in self._running.exhausted(now):
                yield Preempt(run.work, "timeout", reason)
            yield from self._stops.end_graces(now)

    def _next(self, waiting: bool, now: float) -> float:
        """Return the next instant at which there is something to decide (s)."""
        found = self._records.next_turn
        if self._quiet:
            found = min(found, self._changes_at())
        elif waiting:
            found = min(found, self._main.next(True).at, self._backfill.next(True).at, self._completing.next_run)
            found = min(found, self._calendar.next(now))
        if self._scans is not None:
            ends = [end for _, end in self._running.limits(self.settings.over_time_limit)]
            first = min(*ends, self._stops.next_end, inf)
            if self._quotas is not None:
                first = min(first, now if any(self._running.exhausted(now)) else self._quotas.next_calculation)
            found = min(found, self._scans.next(False).at if first <= now else first)
        return found

    def _rests(self, view: View) -> bool:
        """Whether no run of a loop changes anything until a job is submitted or ends, or the limit of one has passed.

        Time alone starts nothing here: there are no options of jobs, accounts, windows, preemption or scans.
        """
        if self._idle or len(self._settled) < 3 or not self._places.counted or self._scans is not None:
            return False
        if self._completing.some or self._completing.next_run < inf or self._stops.some:
            return False
        if [place.version for place in view.places] != self._versions or any(place.windows for place in view.places):
            return False
        now = view.now
        return all(self.settled(now, turn) for turn in (None, Turn(now), Turn(now, full=True)))

    def _changes_at(self) -> float:
        """Return the instant (s) from which on runs may change something though nothing happens."""
        return min([self._holds_until(), *(board.ends[0] for board in self._places.boards.values() if board.ends)])

    def _pass_to(self, now: float, events: list[tuple[float, Run | None]]) -> None:
        """Pass over the runs before an instant (s) that changed nothing, and the submissions that woke no loop."""
        while self._quiet:
            main, backfill = self._main.next(True), self._backfill.next(True)
            at = min(main.at, backfill.at)
            if at >= now or (events and events[0][0] <= at and events[0][1] is not None):
                return
            if events and events[0][0] <= at:
                submitted, _ = events.pop(0)
                for clock in (self._main, self._backfill):
                    clock.ask(submitted)
                    clock.pass_to(at)
            elif main.at <= at:
                self._main.ran(main)
                if main.full:
                    self._noted = self._full_noted
                if self._noted:
                    self._backfill.ask(at)
            else:
                self._backfill.ran(backfill)
                self._backfill.over(*self._last_cycle)

    def _note(self, view: View, now: float) -> None:
        """Note what has happened since the last decision, in order."""
        clocks = (self._main, self._backfill)
        events = self._events.events if self._events is not None else []
        self._pass_to(now, events)
        idle = self._idle
        for at, run in events:
            self._note_event(at, run, now)
        self._stops.forget_made()
        events.clear()
        if self._events is not None:
            for job in self._events.submitted:
                self._queue.submitted(job)
            for job in self._events.cancelled:
                self._queue.left(job)
            self._events.submitted.clear()
            self._events.cancelled.clear()
        if idle:
            for clock in clocks:
                clock.pass_to(now)
        if self._queue.take_in(view, now):
            self._settled.clear()
            for clock in clocks:
                clock.ask(now)
        away = [window.begun for place in view.places for window in place.windows]
        if away != self._away:
            self._away = away
            self._backfill.ask(now)
        if self._calendar.pass_to(now):
            self._queue.stay(now)
            self._settled.clear()
            self._backfill.ask(now)
        for turn in self._records.turns_by(now):
            self._queue.hold(turn)
            self._settled.clear()
            for clock in clocks:
                clock.ask(turn.at)

    def _note_event(self, at: float, run: Run | None, now: float) -> None:
        """Note a submission, or the end of a run, of an instant (s) up to the present one."""
        for clock in (self._main, self._backfill):
            if self._idle:
                clock.pass_to(at)
            clock.ask(at)
            if run is None:  # noted late if the job depends on others: a run since then has changed nothing
                clock.pass_to(now)
        if run is None:
            return
        if self._priorities.charges is not None:
            self._calculate(at)
        held = self._running.ended(run, at)
        if run.work.state in OVER:
            self._queue.left(run.work)
        nodes = 0 if held is None else held.nodes  # unknown where no cycle has come since a snapshot
        stopped = held is not None and self._stops.made(held)
        self._completing.ended(at, run.place.name, nodes, stopped=stopped)

    def _cycle(self, view: View, turn: Turn | None) -> Iterator[Decision]:
        """Run a loop: the main loop at a turn, or the backfill loop."""
        now = view.now
        waiting = self._queue
        waiting.tidy(view)
        if not waiting.jobs or self._completing.wait(now):
            self._noted, self._last_cycle = False, (0.0, bool(waiting.jobs), False)
            return
        if self.settings.multifactor:
            self._calculate(now)
        if self._quotas is not None and self._quotas.pass_to(now):
            self._settled.clear()
        versions = [place.version for place in view.places]
        begins = not waiting.plain and any(0 < job.begin <= now for job in waiting.jobs)
        if versions != self._versions or self._stops.some or begins:
            self._settled.clear()
        if self.settled(now, turn):
            if turn is not None and turn.full:
                self._noted = self._full_noted
            return
        if self._running.renew(now, self._completing, plain=waiting.plain):
            waiting.renew(self._running.held)
        reason = "backfill" if turn is None else "main loop"
        queue = waiting.jobs
        if not waiting.plain:
            for job in [job for job in queue if job.job.history is not None and job.job.history.resumes]:
                if job.waits and job.job.place.fits(job.job):  # on the nodes that it has kept
                    yield Start(job.job, job.job.place, reason)
            queue = [job for job in queue if job.job.history is None or not job.job.history.resumes]
        if self._preemption is not None:
            queue = self._preemption.sorted(queue)
        cycle: BackfillCycle | AlikeCycle | None = None
        loop: Iterator[tuple[Pending, Allocation | Victims | str]]
        if turn is None:
            cycle = self._backfill_cycle(view, queue)
            loop = cycle.starts()
        else:
            self._noted = self._cut = False
            loop = main_cycle(
                queue,
                self.settings,
                full=turn.full,
                preemption=self._preemption,
                note=self._note_reason,
                partitions=self._places.names,
                cut=self._note_cut,
            )
        changed = False
        for job, given in loop:
            changed = True
            if isinstance(given, Victims):
                yield from self._stops.make_way(job, given, now)
                continue
            if isinstance(given, str):
                yield Preempt(job.job, "cancel", given)
                continue
            allocation = given
            first = view.choices.get(job.job, (job.job,))[0]
            place = job.job.place
            try:
                yield Start(job.job, place, reason, allocation if isinstance(place, NodePool) else None)
            except GeneratorExit:
                self._broken.append(turn)
                raise
            waiting.started(job, runs=first.run is not None)
            if first.run is not None:
                self._running.started(job, first.run, now, allocation)
        if cycle is None:
            self._noted = self._noted or changed
        else:
            self._last_cycle = cycle.tested * self.timing.test, changed or cycle.moved, cycle.marked
            self._long += self._last_cycle[0] > YIELD
        waiting.drop_begun()
        after = [place.version for place in view.places]
        if after != versions or self._completing.some:
            self._settled.clear()
        elif turn is None:
            self._settled["backfill"] = now
        else:
            self._settled |= dict.fromkeys(["full" if turn.full else "main"] if self._cut else ["full", "main"], now)
            if turn.full or not self._cut:
                self._full_noted = self._noted
        self._versions = after

    def _backfill_cycle(self, view: View, queue: Sequence[Pending]) -> BackfillCycle | AlikeCycle:
        """Return a cycle of the backfill loop: the last one, if it can go on."""
        waiting, now, kept = self._queue, view.now, self._kept
        self._kept = None
        settings = self.settings
        usual = self._plain and waiting.alike and len(self._places.boards) == 1 and not self.timing.test
        usual = usual and not (settings.bf_min_age_reserve or settings.bf_min_prio_reserve)
        if usual:
            up = queue[0].board.up
            usual = not any(place.windows for place in view.places) and all(up & each == up for each in waiting.nodes)
        if not usual:
            return BackfillCycle(queue, settings, now, self._preemption, self.timing.test)
        if kept is None or not kept.goes_on(queue, now, waiting.kinds):
            kept = AlikeCycle(queue, settings, now, waiting.kinds)
        self._kept = kept
        return kept

    def _calculate(self, now: float) -> None:
        """Calculate the priorities of priority/multifactor again, if it is time."""
        if self._queue.calculate(now):
            self._settled.clear()
            self._backfill.ask(now)

    def _note_cut(self) -> None:
        """Note that a run of the main loop ends for its depth, unless it is full."""
        self._cut = True

    def _note_reason(self) -> None:
        """Note that the main loop has noted why a job waits."""
        self._noted = True

    def settled(self, now: float, turn: Turn | None) -> bool:
        """Whether a cycle can be left out: nothing has changed since one of its loop that started nothing.

        What runs holds its nodes until it ends, and plans depend on the ends of limits. Once a limit has passed they
        move, so that later jobs may start. Plans begin and end at multiples of ``bf_resolution``, and limits last whole
        minutes: once time has passed such an instant, a job may no longer end before a plan, move, and leave its room
        to a later one, unless the last cycle knows for how long its plans hold. A full run of the main loop is not left
        out after one that was cut.
        """
        if turn is None and self._preemption is None and self._places.counted:
            if any(board.ends and board.ends[0] <= now for board in self._places.boards.values()):
                return False
        elif turn is None and any(held.end <= now for held in self._running.held.values()):
            return False
        if self._preemption is not None and self._preemption.exempts:
            return False
        if self.settings.bf_min_age_reserve > 0 or (
            not self._queue.plain and any(job.wishes.timed for job in self._queue.jobs)
        ):
            return False
        if turn is not None and turn.full:
            return "full" in self._settled and self._timeless
        if turn is not None:
            return "main" in self._settled
        return "backfill" in self._settled and now < self._holds_until()

    @property
    def _timeless(self) -> bool:
        """Whether time alone lets no job start: no options of jobs, accounts, reservations, windows or preemption."""
        if not self._plain or self.settings.multifactor:
            return False
        return not any(board.closures for board in self._places.boards.values())

    @property
    def _plain(self) -> bool:
        """Whether there are no options of jobs, accounts, reservations of the policy or preemption."""
        others = self.accounts is not None or self.reservations or self._preemption is not None
        return self._queue.plain and not others

    def _holds_until(self) -> float:
        """Return the instant (s) until which the plans of the last backfill cycle hold."""
        if self._kept is not None:
            return self._kept.valid
        step = gcd(60, self.settings.bf_resolution)
        return int(self._settled["backfill"]) // step * step + step


_NEED_ACCOUNTS = {
    "weight_fair_share": "PriorityWeightFairshare",
    "weight_assoc": "PriorityWeightAssoc",
    "weight_qos": "PriorityWeightQOS",
    "bf_max_job_assoc": "bf_max_job_assoc",
    "enforce_limits": "the limits of AccountingStorageEnforce",
}
"""The settings that change nothing without accounts."""

_LISTS = ("partitions", "nodes", "switches", "reservations")
"""The lists that a name may have."""

_TIMES = ("main_first", "turn", "backfill_first", "completing", "test")
"""The parameters of :class:`SlurmTiming` that a name may have."""


def _shown(value: float | bool | str) -> str:
    if isinstance(value, str):
        return f"({value})" if set(value) & {",", "="} else value
    return str(value).lower() if isinstance(value, bool) else number_text(value)
