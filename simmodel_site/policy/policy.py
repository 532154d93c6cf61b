"""The policy: both loops of slurmctld on a view, each at its own instants.

The rule stands first in :class:`Slurm`. At a turn of the background loop the main loop starts jobs in order, until the
first of a partition that finds its nodes busy (:func:`main_cycle`). Once its own timer is over and something has
changed, the backfill loop plans each job beside all before it, and starts those whose plan begins now
(:class:`BackfillCycle`). A run may be left out if it would bring what the last one did: :class:`LastRuns` knows.

A decision notes what has happened since the last one (:class:`Events`), stops jobs at a scan of limits, and runs the
loops that are due: each goes over the :class:`Queue` and starts jobs on the boards of :class:`SlurmPlaces`. Who holds
what is known to :class:`Running`, which nodes are not free yet to :class:`Completing`, who makes way to :class:`Stops`.

Source: ``_slurmctld_background``, ``schedule`` and ``backfill_agent`` of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from simmodel import InputError
from simmodel.extending import OVER, counted, unknown
from simmodel.resources import NodePool
from simmodel.scheduling import Decision, Policy, Preempt, Start, View, WakeAt
from simmodel_site.policy.accounts import Accounts
from simmodel_site.policy.clocks import GivenClock, LoopClock, MainClock, SlurmTiming, Turn
from simmodel_site.policy.events import Batch, Events
from simmodel_site.policy.holds import Records
from simmodel_site.policy.last_runs import LastRuns
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
    from simmodel.extending import Allocation
    from simmodel.work import Run
    from simmodel_site.policy.board import Pending

__all__ = ["Slurm", "SlurmTiming"]

SCAN = 30.0
"""Seconds between two scans of limits."""

YIELD = 2.0
"""Seconds after which a cycle of the backfill loop lets others in."""


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
    fast
        whether runs of both loops that would bring what the last one did are passed over; the starts are the same

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
    _idle = True  # whether nothing has waited since the last decision

    # ------------------------------------------------------------------ the rule

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
            yield from self._backfill_loop(view) if broken is None else self._main_loop(view, broken)
        if self._completing.due(now, idle=self._idle):  # the Epilog of a job is done
            yield from self._main_loop(view, Turn(now))
        if (turn := self._main.next(True)).at <= now:
            self._main.ran(turn)
            for at in self._completing.answers(now):
                self._main.ask(at)
            yield from self._main_loop(view, turn)
        if (turn := self._backfill.next(True)).at <= now:
            self._backfill.ran(turn)
            yield from self._backfill_loop(view)
        self._idle = not view.waiting.count
        self._last.quiet = not self._idle and self._last.rests(view)
        if (at := self._next(not self._idle, now)) < inf:
            yield WakeAt(at)

    def _main_loop(self, view: View, turn: Turn) -> Iterator[Decision]:
        """Start jobs in order; the first of a partition that finds its nodes busy keeps these from all later ones.

        What it starts, and why others wait, is a change for the backfill loop.
        """
        last = self._last
        if self._looks(view) and not last.leaves_out(view, turn):
            jobs = yield from self._resume(view, "main loop")
            last.begin_main()
            starts = main_cycle(
                jobs,
                self.settings,
                full=turn.full,
                preemption=self._preemption,
                note=last.note,
                partitions=self._places.names,
                cut=last.cut,
            )
            if changed := (yield from self._make(view, turn, starts)):
                last.note()
            last.over(view, turn, changed=changed)
        if last.noted:
            self._backfill.ask(view.now)

    def _backfill_loop(self, view: View) -> Iterator[Decision]:
        """Plan jobs in order, each beside all before it, and start those whose plan begins now; then sleep."""
        last = self._last
        if self._looks(view) and not last.leaves_out(view, None):
            cycle = last.next_cycle(view, (yield from self._resume(view, "backfill")))
            changed = yield from self._make(view, None, cycle.starts())
            last.cycle = cycle.tested * self.timing.test, changed or cycle.moved, cycle.marked
            self._long += last.cycle[0] > YIELD
            last.over(view, None, changed=changed)
        self._backfill.over(*last.cycle)

    def _looks(self, view: View) -> bool:
        """Whether a loop has jobs to look at now: some wait, and not for the nodes of ended ones (CompleteWait)."""
        now, queue = view.now, self._queue
        queue.tidy(view)
        if not queue.jobs or self._completing.wait(now):
            self._last.noted, self._last.cycle = False, (0.0, bool(queue.jobs), False)
            return False
        self._last.looks(now)
        if self.settings.multifactor:
            self._calculate(now)
        if self._quotas is not None and self._quotas.moved_by(now):
            self._last.changed(plans=False)
        return True

    def _resume(self, view: View, reason: str) -> Generator[Decision, None, Sequence[Pending]]:
        """Start the suspended jobs whose nodes are free again, and return the other ones in order."""
        queue = self._queue
        if self._running.renew(view.now, self._completing, plain=queue.plain):
            queue.renew(self._running.held)
        jobs = queue.jobs
        if queue.resumes or queue.anew:
            for job in [job for job in jobs if job.resumes]:
                if job.waits and job.job.place.fits(job.job):  # on the nodes that it has kept
                    yield Start(job.job, job.job.place, reason)
            jobs = [job for job in jobs if not job.resumes]
        return jobs if self._preemption is None else self._preemption.sorted(jobs)

    def _make(
        self, view: View, turn: Turn | None, found: Iterable[tuple[Pending, Allocation | Victims | str]]
    ) -> Generator[Decision, None, bool]:
        """Make the starts that a loop finds, one by one, and stop the jobs that make way; return whether any is."""
        changed = False
        for job, given in found:
            changed = True
            if isinstance(given, Victims):
                yield from self._stops.make_way(job, given, view.now)
            elif isinstance(given, str):
                yield Preempt(job.job, "cancel", given)
            else:
                first, place = view.choices.get(job.job, (job.job,))[0], job.job.place
                reason = "backfill" if turn is None else "main loop"
                try:
                    yield Start(job.job, place, reason, given if isinstance(place, NodePool) else None)
                except GeneratorExit:
                    self._broken.append(turn)
                    raise
                self._queue.started(job, runs=first.run is not None)
                if first.run is not None:
                    self._running.started(job, first.run, view.now, given)
        self._queue.drop_begun()
        return changed

    # ------------------------------------------------------------------ the policy

    def __init__(
        self,
        settings: SlurmConf | None = None,
        partitions: Sequence[SlurmPartition] = (),
        timing: SlurmTiming | None = None,
        nodes: Sequence[SlurmNodes] = (),
        switches: Sequence[SlurmSwitch] = (),
        accounts: Accounts | None = None,
        reservations: Sequence[SlurmReservation] = (),
        *,
        fast: bool = True,
    ) -> None:
        self.fast = fast
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
        self._main, self._backfill = self.timing.clocks(self.settings)
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
        self._last = LastRuns(
            self.settings,
            self._queue,
            self._places,
            self._running,
            self._completing,
            self._stops,
            self._preemption,
            self._calendar,
            usual=accounts is None and self._preemption is None and not self.reservations,
            first=self.timing.main_first,
            test=self.timing.test,
            fast=fast,
        )
        self._events: Events | None = None
        self._away: list[bool] = []  # which announced absences of nodes have begun, at the last decision
        self._scans: MainClock | None = None  # of limits, if the policy enforces them
        self._broken: list[Turn | None] = []  # the run whose job was withdrawn at its turn, which begins again
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
            fast=self.fast,
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
        self._events = Events(system, self._quotas is not None, self._records)
        self._running.noted = True
        system.env.observe(self._events)

    def state(self) -> Any:
        """Return what the next runs of both loops, and the next scan of limits, depend on."""
        if self._events is not None:
            now, events = self._events.now, self._events.events
            self._last.pass_to(now, events, self._main, self._backfill)
            while events and events[0][1] is not None:  # ends while nothing waits bring no decision
                self._note_event(*events.pop(0), now)
        clocks = [None if abs(each) == inf else each for clock in self._all() for each in clock.values]
        found: dict[str, Any] = {"clocks": clocks, "idle": self._idle}
        for each in (self._last, self._records, self._completing, self._priorities, self._running):
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
        for each in (self._last, self._records, self._completing, self._priorities, self._running, self._stops):
            each.restore(values)
        if self._quotas is not None:
            self._quotas.restore(values)

    # ------------------------------------------------------------------ decisions

    def forget(self) -> None:
        """Look at all jobs anew in each cycle from now on: starts are taken back."""
        self._queue.plain, self._queue.anew = False, True

    def _enforce(self, scans: MainClock, now: float) -> Iterator[Decision]:
        """Stop the jobs whose limit has passed, if limits are scanned now."""
        scans.pass_to(now)
        if (turn := scans.next(False)).at <= now:
            scans.ran(turn)
            over = [run for run, end in self._running.limits(self.settings.over_time_limit) if end <= int(now)]
            for run in over:
                yield Preempt(run.work, "timeout", "its limit has passed")
            for run, reason in self._running.exhausted(now):
                if run not in over:
                    yield Preempt(run.work, "timeout", reason)
            yield from self._stops.end_graces(now)

    def _next(self, waiting: bool, now: float) -> float:
        """Return the next instant at which there is something to decide (s)."""
        found = self._records.next_turn
        if self._last.quiet:
            found = min(found, self._last.ends_of_quiet)
        elif waiting:
            runs = self._main.next(True).at, self._backfill.next(True).at, self._completing.next_run
            found = min(found, self._calendar.next(now), *runs)
        if self._scans is not None:
            ends = [end for _, end in self._running.limits(self.settings.over_time_limit)]
            first = min(*ends, self._stops.next_end, inf)
            if self._quotas is not None:
                first = min(first, now if any(self._running.exhausted(now)) else self._quotas.next_calculation)
            found = min(found, self._scans.next(False).at if first <= now else first)
        return found

    def _note(self, view: View, now: float) -> None:
        """Note what has happened since the last decision, in order."""
        clocks = (self._main, self._backfill)
        events = self._events.events if self._events is not None else []
        self._last.pass_to(now, events, *clocks)
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
        if self._idle:
            for clock in clocks:
                clock.pass_to(now)
        if self._queue.take_in(view, now):
            self._last.changed(plans=False)
            for clock in clocks:
                clock.ask(now)
        if self._places.sleep():
            self._last.changed()
        away = [window.begun for place in view.places for window in place.windows]
        if away != self._away:
            self._away = away
            self._backfill.ask(now)
        if self._calendar.pass_to(now):
            self._queue.stay(now)
            self._last.changed()
            self._backfill.ask(now)
        for turn in self._records.turns_by(now):
            self._queue.hold(turn)
            self._last.changed(plans=False)
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
        self._last.changed()  # limits count it no longer
        if self._priorities.charges is not None:
            self._calculate(at)
        held = self._running.ended(run, at)
        if run.work.state in OVER:
            self._queue.left(run.work)
        nodes = 0 if held is None else held.nodes  # unknown where no cycle has come since a snapshot
        stopped = held is not None and self._stops.made(held)
        self._completing.ended(at, run.place.name, nodes, stopped=stopped)

    def _calculate(self, now: float) -> None:
        """Calculate the priorities of priority/multifactor again, if it is time."""
        if self._queue.calculate(now):
            self._last.changed(plans=bool(self.settings.bf_min_prio_reserve))
            self._backfill.ask(now)


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
