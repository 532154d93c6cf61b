"""When the loops of slurmctld run: the main loop at turns of its background loop, the backfill loop by its own timer.

Source: ``_slurmctld_background`` and ``backfill_agent`` of Slurm 22.05, by their behaviour: instants are compared in
whole seconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import ceil, floor, inf
from typing import TYPE_CHECKING, NamedTuple

import attrs

from simmodel import InputError
from simmodel.extending import Fields

if TYPE_CHECKING:
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["BackfillClock", "GivenClock", "LoopClock", "MainClock", "SlurmTiming", "Turn"]


_LONG = 30 * 86400.0
"""Seconds of which all runs are passed over: a twin's time is that since 1970."""


class Turn(NamedTuple):
    """One run of a loop: its instant (s), and whether it goes over the whole queue."""

    at: float
    full: bool = False


class LoopClock:
    """The clock of a loop; ``values`` is what its next run depends on, instants in seconds."""

    values: list[float]

    def ask(self, at: float) -> None:
        """Note a submission, an end or another change at an instant (s)."""

    def next(self, waiting: bool) -> Turn:
        """Return the next run, given whether jobs wait; at ``inf``: none unless something asks."""
        raise NotImplementedError

    def ran(self, turn: Turn) -> None:
        """Note that the loop has run."""
        raise NotImplementedError

    def over(self, seconds: float, changed: bool, marked: bool) -> None:
        """Note how long the last run took (s), whether it changed jobs or nodes, and whether it marked nodes."""

    def pass_to(self, at: float) -> None:
        """Pass over the runs before an instant (s) until which nothing waited."""
        while (turn := self.next(False)).at < at:
            self.ran(turn)


class MainClock(LoopClock):
    """The clock of the main loop: turns of about a second, at which it runs if something asked, or long did not.

    At a turn it runs over the whole queue if ``sched_interval`` has passed since it last did; else, if anything has
    asked since it last ran, and ``batch_sched_delay`` has passed since then, with the default depth. At the start of
    slurmctld, nodes that register have asked.

    Parameters
    ----------
    delay, interval
        ``batch_sched_delay``, ``sched_interval`` (s)
    first, turn
        the instant of the first turn, and the time from one to the next (s)
    turns
        the instants of turns (s), ascending, where they are known; others follow the last of them evenly

    >>> clock = MainClock(3.0, 60.0, first=0.5, turn=1.0)
    >>> clock.ask(1.2); clock.next(True)
    Turn(at=3.5, full=False)
    >>> clock.ran(clock.next(True)); clock.ask(4.0); clock.next(True).at
    6.5
    """

    def __init__(self, delay: float, interval: float, first: float, turn: float, turns: Sequence[float] = ()) -> None:
        self._delay, self._interval = delay, interval
        self._first, self._turn = turns[-1] if turns else first, turn
        self._turns = turns
        self.values = [first, first, first]  # the last run, the last full one, the first request since

    def ask(self, at: float) -> None:
        """Note a submission or an end at an instant (s)."""
        self.values[2] = min(self.values[2], at)

    def next(self, waiting: bool) -> Turn:
        """Return the next run."""
        last, last_full, asked = self.values
        after = last + self._turn / 2
        full = self._turn_from(max(floor(last_full) + self._interval, after))
        if asked == inf:
            return Turn(full, full=True)
        event = self._turn_from(max(asked, floor(last) + self._delay, after))
        return Turn(event) if event < full else Turn(full, full=True)

    def pass_to(self, at: float) -> None:
        """Pass over the runs before an instant (s) until which nothing waited, of a long time over the last ones."""
        if at - self.values[1] > _LONG:
            far = self._turn_from(at - _LONG)
            self.values = [far, far, inf]
        super().pass_to(at)

    def _turn_from(self, at: float) -> float:
        """Return the first turn at or after an instant."""
        if self._turns and at <= self._turns[-1]:
            return self._turns[bisect_left(self._turns, at - 1e-9)]
        return self._first + ceil((at - self._first) / self._turn - 1e-9) * self._turn

    def ran(self, turn: Turn) -> None:
        """Note that the loop has run."""
        self.values = [turn.at, turn.at if turn.full else self.values[1], inf]


class BackfillClock(LoopClock):
    """The clock of the backfill loop: it sleeps from the end of a cycle on, then looks every second.

    It runs if jobs or nodes have changed since the end of its last cycle, in whole seconds, so that what the cycle
    itself changed counts: starts, and marks of nodes as planned, which the next cycle takes back. At its first look,
    nodes have registered.

    Parameters
    ----------
    interval
        ``bf_interval`` (s)
    first
        the instant of its first look (s)

    >>> clock = BackfillClock(30.0, first=30.0)
    >>> clock.next(True).at
    30.0
    >>> clock.ran(clock.next(True)); clock.over(0.1, changed=False, marked=True); clock.next(True).at
    60.1
    >>> clock.ran(clock.next(True)); clock.over(0.1, changed=False, marked=False); clock.next(True).at
    90.2
    >>> clock.ran(clock.next(True)); clock.over(0.1, changed=False, marked=False); clock.next(True).at
    inf
    >>> clock.ask(130.5); round(clock.next(True).at, 3)
    131.3
    """

    def __init__(self, interval: float, first: float) -> None:
        self._interval = interval
        self.values = [first, -inf, -inf, 0.0]  # the next look, the end of the last cycle, the last change, marks

    def ask(self, at: float) -> None:
        """Note a change of jobs or nodes at an instant (s)."""
        look, last, _, marked = self.values
        if at > look and not self._changes:  # it has looked in vain every second since
            look += ceil(at - look - 1e-9)
        self.values = [look, last, at, marked]

    @property
    def _changes(self) -> bool:
        _, last, changed, _ = self.values
        return last == -inf or (changed > -inf and floor(changed) >= floor(last))

    def next(self, waiting: bool) -> Turn:
        return Turn(self.values[0] if self._changes else inf)

    def ran(self, turn: Turn) -> None:
        """Note that a cycle has begun, which takes back the marks of nodes."""
        _, _, changed, marked = self.values
        self.values = [turn.at + self._interval, turn.at, turn.at if marked else changed, 0.0]

    def over(self, seconds: float, changed: bool, marked: bool) -> None:
        """Note how long a cycle took (s), whether it changed jobs or nodes, and whether it marked nodes as planned."""
        _, begin, before, _ = self.values
        end = begin + seconds
        self.values = [end + self._interval, end, end if changed or marked else before, float(marked)]


class GivenClock(LoopClock):
    """The clock of a loop whose instants are given, as those of a log of slurmctld; it goes on evenly after the last.

    Parameters
    ----------
    instants, full
        the runs (s), of the main loop with the default depth and over the whole queue
    interval
        the time from the last of them to the next run, and so on (s)

    >>> clock = GivenClock([3.0, 7.0], interval=30.0)
    >>> clock.ran(clock.next(True)); clock.next(True).at
    7.0
    >>> clock.ran(clock.next(True)); clock.next(True).at
    37.0
    """

    def __init__(self, instants: Sequence[float], full: Sequence[float] = (), *, interval: float) -> None:
        self._instants = sorted({*instants, *full})
        self._full = frozenset(full)
        self._interval = interval
        self.values = [-inf]  # the last run

    def next(self, waiting: bool) -> Turn:
        """Return the next run."""
        (last,) = self.values
        i = bisect_right(self._instants, last)
        if i == len(self._instants):
            return Turn(last + self._interval, full=True)
        return Turn(self._instants[i], self._instants[i] in self._full)

    def ran(self, turn: Turn) -> None:
        """Note that the loop has run."""
        self.values = [turn.at]


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

    def clocks(self, settings: SlurmConf) -> tuple[LoopClock, LoopClock]:
        """Return the clocks of the main loop and of the backfill loop."""
        main: LoopClock = MainClock(
            settings.batch_sched_delay, settings.sched_interval, self.main_first, self.turn, self.turns
        )
        if self.main or self.full:
            main = GivenClock(self.main, self.full, interval=settings.sched_interval)
        if self.backfill or not settings.backfill:
            return main, GivenClock(self.backfill, interval=settings.bf_interval if self.backfill else inf)
        first = settings.bf_interval if self.backfill_first is None else self.backfill_first
        return main, BackfillClock(settings.bf_interval, first)
