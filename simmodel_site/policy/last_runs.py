"""What the last runs of both loops brought, and whether the next may be left out, as it would bring the same.

slurmctld leaves none out: :mod:`simmodel_site.policy.policy` has its rule, and starts the same jobs without this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
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
    from simmodel_site.policy.reservations import Calendar
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
    calendar
        when reservations begin and end
    usual
        whether there are no accounts, reservations of the policy or preemption
    first
        the instant of a calculation of priorities (s)
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
    ends_of_quiet
        the instant (s) from which on runs may change something though nothing happens
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
        calendar: Calendar,
        *,
        usual: bool,
        first: float,
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
        self._calendar = calendar
        self._usual = usual
        self._first = first
        self._test = test
        self._fast = fast
        self.noted = self.quiet = False
        self.cycle = 0.0, False, False
        self.ends_of_quiet = inf
        self._noted = {"main": False, "full": False}  # as noted, of the last run of each kind
        self._looked = 0.0  # the last instant at which a loop had jobs to look at (s)
        self._cut = False  # whether the last run of the main loop would end for its depth
        self._until: dict[str, float] = {}  # before which main, full or backfill runs bring what the last one did (s)
        self._versions: list[int] = []  # of the places, at the last run
        self._kept: AlikeCycle | BackfillCycle | None = None  # the last cycle, if another may go on from it
        self._kept_until = -inf  # the instant until which its plans hold (s)

    # ------------------------------------------------------------------ what a run brings

    def changed(self, *, plans: bool = True) -> None:
        """Note that something has changed: the next run of each loop is not left out.

        Parameters
        ----------
        plans
            whether jobs may have other plans now; not if only others wait, in another order
        """
        self._until.clear()
        if plans and isinstance(self._kept, BackfillCycle):
            self._kept = None

    def begin_main(self) -> None:
        """Note that a run of the main loop begins."""
        self.noted = self._cut = False

    def note(self) -> None:
        """Note that the main loop has started a job, or noted why one waits."""
        self.noted = True

    def cut(self) -> None:
        """Note that a run of the main loop ends for its depth, unless it is full."""
        self._cut = True

    def looks(self, now: float) -> None:
        """Note that a loop has jobs to look at now (s)."""
        self._looked = now

    def over(self, view: View, turn: Turn | None, *, changed: bool) -> None:
        """Note that a run is over, of the main loop at a turn, or of the backfill loop, and whether it changed jobs."""
        before, self._versions = self._versions, [place.version for place in view.places]
        now = view.now
        if changed or self._versions != before or self._completing.some:
            self.changed()
        elif turn is None:
            self._kept_until = self._until["backfill"] = min(self._turns_until(now), self._plans_until(now))
        else:
            runs = ["full" if turn.full else "main"] if self._cut else ["full", "main"]
            self._until |= dict.fromkeys(runs, self._turns_until(now))
            self._noted |= dict.fromkeys(runs, self.noted)

    # ------------------------------------------------------------------ what may be left out

    def leaves_out(self, view: View, turn: Turn | None) -> bool:
        """Whether a run may be left out: then what it brings is what the last one did."""
        before, self._versions = self._versions, [place.version for place in view.places]
        if self._versions != before or self._stops.some:
            self.changed()
        loop = _loop_at(turn)
        if not self.settled(view.now, loop):
            return False
        if turn is not None:
            self.noted = self._noted[loop]
        return True

    def settled(self, now: float, loop: str) -> bool:
        """Whether nothing has changed, or will by time alone, since a run of this loop that started nothing.

        A full run of the main loop is not left out after one that was cut.
        """
        exempts = self._preemption is not None and self._preemption.exempts
        return self._fast and not exempts and now < self._until.get(loop, -inf)

    def _turns_until(self, now: float) -> float:
        """Return the instant (s) at which time alone changes which jobs may start: not nodes that are free."""
        queue = self._queue
        if not queue.timed and not self._settings.bf_min_age_reserve:
            return inf
        return min([job.turn_after(int(now)) for job in queue.jobs], default=inf)

    def _plans_until(self, now: float) -> float:
        """Return the instant (s) until which the plans of the last cycle of the backfill loop hold, at an instant.

        What runs holds its nodes until it ends, and plans depend on the ends of limits. Once a limit has passed they
        are thought to end later, and after that from second to second.
        """
        if self._kept is None:
            return -inf
        found, settings = self._kept.valid, self._settings
        over = settings.kill_wait + (0.0 if settings.over_time_limit == inf else settings.over_time_limit)
        for held in self._running.held.values():
            found = min(found, held.end if held.end > now else int(held.end + over))
        return found

    @property
    def _plain(self) -> bool:
        """Whether there are no options of jobs, accounts, reservations of the policy or preemption."""
        return self._usual and self._queue.plain

    def next_cycle(self, view: View, queue: Sequence[Pending]) -> BackfillCycle | AlikeCycle:
        """Return the next cycle of the backfill loop, of sorted jobs: the last one, if it can go on."""
        waiting, now, kept, settings = self._queue, view.now, self._kept, self._settings
        before = kept if isinstance(kept, BackfillCycle) and now < self._kept_until else None
        self._kept, self._kept_until = None, -inf
        usual = self._fast and self._plain and waiting.alike and len(self._places.boards) == 1 and not self._test
        usual = usual and not (settings.bf_min_age_reserve or settings.bf_min_prio_reserve)
        if usual:
            up = queue[0].board.up
            usual = not any(place.windows for place in view.places) and all(up & each == up for each in waiting.nodes)
        if not usual:
            found = BackfillCycle(queue, settings, now, self._preemption, self._test, short=self._fast, before=before)
            self._kept = found if self._fast else None
            return found
        if not isinstance(kept, AlikeCycle) or not kept.goes_on(queue, now, waiting.kinds):
            kept = AlikeCycle(queue, settings, now, waiting.kinds)
        self._kept = kept
        return kept

    # ------------------------------------------------------------------ instants without a decision

    def rests(self, view: View) -> bool:
        """Whether no run changes anything until a job is submitted or ends, or the limit of one has passed.

        Nodes come and go, and priorities are calculated, at instants that are known.
        """
        now = view.now
        if self._completing.some or self._completing.next_run < inf or self._stops.some:
            return False
        if [place.version for place in view.places] != self._versions:
            return False
        turns = [window.end if window.begun else window.start for place in view.places for window in place.windows]
        turns += [self._calendar.next(now), self._next_calculation, *self._until.values()]
        self.ends_of_quiet = min(turns)
        return now < self.ends_of_quiet and all(self.settled(now, loop) for loop in _LOOPS)

    @property
    def _next_calculation(self) -> float:
        """The next instant (s) at which priorities, or used minutes, are calculated."""
        if not self._settings.multifactor:
            return inf
        period = self._settings.calc_period
        return self._first + ((self._looked - self._first) // period + 1) * period

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
                if self._noted[_loop_at(turn)]:
                    backfill.ask(at)
            else:
                backfill.ran(cycle)
                backfill.over(*self.cycle)

    def state(self) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes: what the runs to come bring while all is quiet."""
        if not self.quiet:
            return {}
        return {"quiet": {"cycle": list(self.cycle), "noted": list(self._noted.values())}}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        quiet = values.get("quiet")
        self.quiet = quiet is not None
        if quiet is not None:
            seconds, changed, marked = quiet["cycle"]
            self.cycle = float(seconds), bool(changed), bool(marked)
            self._noted = dict(zip(self._noted, map(bool, quiet["noted"]), strict=True))


def _loop_at(turn: Turn | None) -> str:
    return "backfill" if turn is None else "full" if turn.full else "main"


_LOOPS = ("main", "full", "backfill")
