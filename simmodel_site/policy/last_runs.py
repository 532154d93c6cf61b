"""What the last runs of both loops brought, and whether the next may be left out, as it would bring the same.

slurmctld leaves none out: :mod:`simmodel_site.policy.policy` has its rule, and starts the same jobs without this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, inf
from typing import TYPE_CHECKING, Any

from simmodel_site.policy.alike import AlikeCycle
from simmodel_site.policy.backfill import BackfillCycle
from simmodel_site.policy.clocks import LoopClock, Turn

if TYPE_CHECKING:
    from simmodel.scheduling import View
    from simmodel.work import Run
    from simmodel_site.policy.board import Pending
    from simmodel_site.policy.places import SlurmPlaces
    from simmodel_site.policy.preemption import Preemption, Stops
    from simmodel_site.policy.priority import Queue
    from simmodel_site.policy.running import Completing, Running
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["LastRuns"]


class LastRuns:
    """The last runs of both loops: a run of a loop is left out if nothing has changed since one that started nothing.

    Parameters
    ----------
    settings
        of slurm.conf
    queue, places, running, completing, stops, preemption
        what both loops read
    usual
        whether there are no accounts, reservations of the policy or preemption
    test
        how long the backfill loop takes to test a job (s)
    fast
        whether runs are left out at all

    Attributes
    ----------
    noted
        whether the last run of the main loop changed jobs, or noted why they wait
    cycle
        of the last cycle of the backfill loop: how long it took (s), whether it changed jobs, whether it marked nodes
    quiet
        whether the coming runs of both loops change nothing until something happens
    """

    def __init__(
        self,
        settings: SlurmConf,
        queue: Queue,
        places: SlurmPlaces,
        running: Running,
        completing: Completing,
        stops: Stops,
        preemption: Preemption | None,
        *,
        usual: bool,
        test: float,
        fast: bool = True,
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._places = places
        self._running = running
        self._completing = completing
        self._stops = stops
        self._preemption = preemption
        self._usual = usual
        self._test = test
        self._fast = fast
        self.noted = self.quiet = False
        self.cycle = 0.0, False, False
        self._full_noted = False  # as noted, of the last full run
        self._cut = False  # whether the last run of the main loop would end for its depth
        self._settled: dict[str, float] = {}  # when main, full or backfill runs started nothing
        self._versions: list[int] = []  # of the places, at the last run
        self._kept: AlikeCycle | None = None  # the last cycle of the backfill loop, if another may go on from it

    # ------------------------------------------------------------------ what a run brings

    def changed(self) -> None:
        """Note that something has changed: the next run of each loop is not left out."""
        self._settled.clear()

    def begin_main(self) -> None:
        """Note that a run of the main loop begins."""
        self.noted = self._cut = False

    def note(self) -> None:
        """Note that the main loop has started a job, or noted why one waits."""
        self.noted = True

    def cut(self) -> None:
        """Note that a run of the main loop ends for its depth, unless it is full."""
        self._cut = True

    def over(self, view: View, turn: Turn | None) -> None:
        """Note that a run is over: of the main loop at a turn, or of the backfill loop."""
        before, self._versions = self._versions, [place.version for place in view.places]
        if self._versions != before or self._completing.some:
            self.changed()
        elif turn is None:
            self._settled["backfill"] = view.now
        else:
            runs = ["full" if turn.full else "main"] if self._cut else ["full", "main"]
            self._settled |= dict.fromkeys(runs, view.now)
            if "full" in runs:
                self._full_noted = self.noted

    # ------------------------------------------------------------------ what may be left out

    def leaves_out(self, view: View, turn: Turn | None) -> bool:
        """Whether a run may be left out: then what it brings is what the last one did."""
        now, queue = view.now, self._queue
        before, self._versions = self._versions, [place.version for place in view.places]
        begins = not queue.plain and any(0 < job.begin <= now for job in queue.jobs)
        if self._versions != before or self._stops.some or begins:
            self.changed()
        if not self.settled(now, turn):
            return False
        if turn is not None and turn.full:
            self.noted = self._full_noted
        return True

    def settled(self, now: float, turn: Turn | None) -> bool:
        """Whether nothing has changed, or will by time alone, since a run of this loop that started nothing.

        What runs holds its nodes until it ends, and plans depend on the ends of limits. Once a limit has passed they
        move, so that later jobs may start. Plans begin and end at multiples of ``bf_resolution``, and limits last whole
        minutes: once time has passed such an instant, a job may no longer end before a plan, move, and leave its room
        to a later one, unless the last cycle knows for how long its plans hold. A full run of the main loop is not left
        out after one that was cut.
        """
        loop = "backfill" if turn is None else "full" if turn.full else "main"
        if not self._fast or loop not in self._settled or (turn is None and self._limit_passed(now)):
            return False
        if self._preemption is not None and self._preemption.exempts:
            return False
        timed = not self._queue.plain and any(job.wishes.timed for job in self._queue.jobs)
        if self._settings.bf_min_age_reserve > 0 or timed:
            return False
        if turn is None:
            return now < self._plans_hold_until
        return not turn.full or self._timeless

    def _limit_passed(self, now: float) -> bool:
        """Whether the limit of a running job has passed at an instant (s)."""
        if self._preemption is None and self._places.counted:
            return any(board.ends and board.ends[0] <= now for board in self._places.boards.values())
        return any(held.end <= now for held in self._running.held.values())

    @property
    def _timeless(self) -> bool:
        """Whether time alone lets no job start: no options of jobs, accounts, reservations, windows or preemption."""
        closed = any(board.closures for board in self._places.boards.values())
        return self._plain and not self._settings.multifactor and not closed

    @property
    def _plain(self) -> bool:
        """Whether there are no options of jobs, accounts, reservations of the policy or preemption."""
        return self._usual and self._queue.plain

    @property
    def _plans_hold_until(self) -> float:
        """The instant (s) until which the plans of the last cycle of the backfill loop hold."""
        if self._kept is not None:
            return self._kept.valid
        step = gcd(60, self._settings.bf_resolution)
        return int(self._settled["backfill"]) // step * step + step

    def next_cycle(self, view: View, queue: Sequence[Pending]) -> BackfillCycle | AlikeCycle:
        """Return the next cycle of the backfill loop, of sorted jobs: the last one, if it can go on."""
        waiting, now, kept, settings = self._queue, view.now, self._kept, self._settings
        self._kept = None
        usual = self._fast and self._plain and waiting.alike and len(self._places.boards) == 1 and not self._test
        usual = usual and not (settings.bf_min_age_reserve or settings.bf_min_prio_reserve)
        if usual:
            up = queue[0].board.up
            usual = not any(place.windows for place in view.places) and all(up & each == up for each in waiting.nodes)
        if not usual:
            return BackfillCycle(queue, settings, now, self._preemption, self._test)
        if kept is None or not kept.goes_on(queue, now, waiting.kinds):
            kept = AlikeCycle(queue, settings, now, waiting.kinds)
        self._kept = kept
        return kept

    # ------------------------------------------------------------------ instants without a decision

    def rests(self, view: View) -> bool:
        """Whether no run changes anything until a job is submitted or ends, or the limit of one has passed.

        Time alone starts nothing then: there are no options of jobs, accounts, windows or preemption.
        """
        if len(self._settled) < 3 or not self._places.counted:
            return False
        if self._completing.some or self._completing.next_run < inf or self._stops.some:
            return False
        if [place.version for place in view.places] != self._versions or any(place.windows for place in view.places):
            return False
        now = view.now
        return all(self.settled(now, turn) for turn in (None, Turn(now), Turn(now, full=True)))

    @property
    def ends_of_quiet(self) -> float:
        """The instant (s) from which on runs may change something though nothing happens."""
        ends = (board.ends[0] for board in self._places.boards.values() if board.ends)
        return min([self._plans_hold_until, *ends])

    def pass_to(self, now: float, events: list[tuple[float, Run | None]], main: LoopClock, backfill: LoopClock) -> None:
        """Pass over the runs before an instant (s) that changed nothing, and the submissions that woke no loop."""
        while self.quiet:
            turn, cycle = main.next(True), backfill.next(True)
            at = min(turn.at, cycle.at)
            if at >= now or (events and events[0][0] <= at and events[0][1] is not None):
                return
            if events and events[0][0] <= at:
                submitted, _ = events.pop(0)
                for clock in (main, backfill):
                    clock.ask(submitted)
                    clock.pass_to(at)
            elif turn.at <= at:
                main.ran(turn)
                if turn.full:
                    self.noted = self._full_noted
                if self.noted:
                    backfill.ask(at)
            else:
                backfill.ran(cycle)
                backfill.over(*self.cycle)

    def state(self) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes: what the runs to come bring while all is quiet."""
        if not self.quiet:
            return {}
        return {"quiet": {"cycle": list(self.cycle), "noted": [self.noted, self._full_noted]}}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        quiet = values.get("quiet")
        self.quiet = quiet is not None
        if quiet is not None:
            seconds, changed, marked = quiet["cycle"]
            self.cycle = float(seconds), bool(changed), bool(marked)
            self.noted, self._full_noted = map(bool, quiet["noted"])
