"""Acting: from advice to a scheduler and back, while all is well; otherwise everything is given back."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event as Flag, Thread
from time import monotonic, time
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from simmodel import InputError
from simmodel_site.twin.acting.actions import HOUR, MODES, Action, Command, Hands, Mode, Outcome, PastActions
from simmodel_site.twin.acting.heartbeat import Heartbeat
from simmodel_site.twin.acting.performing import Restored, perform, read_back, restore

if TYPE_CHECKING:
    from simmodel_site.twin.acting.actions import ActSettings
    from simmodel_site.twin.advisor import Advice, AdvisedStart
    from simmodel_site.twin.mirror.mirror import Mirror

__all__ = ["Acting", "Budget", "Known", "Performer", "Wanted", "wanted"]

Known: TypeAlias = "tuple[int | str, float]"
"""A job by id and submission (s)."""

_SEEN_WITHIN = 5.0  # seconds in which a job that was released should be seen to start
_RESTORE_EVERY = 2.0  # seconds between attempts to give everything back


class Acting:
    """Turns advice into actions within the limits of its settings, and gives everything back when something is wrong.

    The twin writes each action into its audit log before it is sent, and its outcome afterwards.

    Parameters
    ----------
    hands
        sends the commands to the scheduler
    settings
        the mode and the limits
    folder
        the folder of relative paths in the settings
    past
        the earlier actions, from an audit log
    clock
        returns the time (s since 1970)

    Attributes
    ----------
    outcomes
        how many actions came out in each way
    restored
        how many jobs were given back to the scheduler
    paused
        why it does nothing now, or ``""``
    """

    def __init__(
        self,
        hands: Hands,
        settings: ActSettings,
        folder: Path = Path(),
        past: PastActions | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self.settings = settings
        self.mode: Mode = settings.mode
        self.outcomes: Counter[str] = Counter()
        self.restored = 0
        self.paused = ""
        self.budget = Budget(settings.budget, () if past is None else past.spent)
        self.heartbeat = Heartbeat(folder / settings.heartbeat, settings.mode == "hold-and-release", clock)
        self.stop_file = folder / settings.stop_file
        self._clock = clock
        self._performer = Performer(hands, settings.rate)
        self._number = 0 if past is None else past.number
        self._open: dict[int, Action] = {}  # sent, or about to be
        self._released: dict[tuple[int | str, float], float] = {}  # not seen to start yet, until when (monotonic)
        self._preferred: dict[tuple[int | str, float], int] = {} if past is None else dict(past.preferred)
        self._troubled: dict[str, float] = {}  # parts that do not work, since when (monotonic)
        self._tried = float("-inf")
        self._restoring = False
        self._clean = False  # whether nothing is left to give back
        self._left: tuple[str, ...] = ()  # what stays as others have changed it, said once
        if past is not None and past.open:
            self._open = {action.number: action for action in past.open}
            self._performer.look(past.open)

    # ------------------------------------------------------------------ deciding

    def ready(self, mirror: Mirror) -> bool:
        """Whether all that was decided before has happened, so that a new decision knows the truth."""
        if not MODES[self.mode] or self.paused:
            return True
        if self._open:
            return False
        now = monotonic()
        for (job, submit), until in list(self._released.items()):
            entry = mirror.entry(job)
            waits = entry is not None and entry.submit == submit and entry.state.phase == "waiting"
            if not waits or now > until:
                del self._released[job, submit]
        return not self._released

    def plan(self, advice: Advice, mirror: Mirror) -> list[Action]:
        """Return the actions that follow from advice, none while it is paused; they count as spent."""
        if not MODES[self.mode] or self.paused:
            return []
        now = self._clock()
        waiting = [(e.id, e.submit) for e in mirror.ledger.alive() if e.state.phase == "waiting"]
        for known in self._preferred.keys() - set(waiting):
            del self._preferred[known]
        found = []
        for each in wanted(
            self.mode,
            [start for start in advice.starts if self.settings.touches(start.partition)],
            waiting=waiting,
            preferred=self._preferred,
            now=now,
            maximum_delay=self.settings.maximum_delay,
            preference=self.settings.preference,
        ):
            if not self.budget.take(now):
                self._pause(f"the budget of {self.settings.budget} actions an hour is used up")
                break
            self._number += 1
            found.append(Action(number=self._number, advice=advice.number, time=now, **each._asdict()))
        return found

    def send(self, actions: Iterable[Action]) -> None:
        """Let actions be done that are written down."""
        chosen = list(actions)
        self._open |= {action.number: action for action in chosen}
        self._performer.do(chosen)
        self._clean = self._clean and not chosen

    # ------------------------------------------------------------------ watching over it

    def step(self, troubles: Mapping[str, str]) -> list[Outcome]:
        """Write the heartbeat, or give everything back if something is wrong; return the new outcomes of actions."""
        if not MODES[self.mode]:
            return []
        self.paused = self._why_paused(troubles)
        if self.paused:
            self._give_back()
        elif self._beats():
            self._clean = False
        return self._noted()

    def _why_paused(self, troubles: Mapping[str, str]) -> str:
        now = monotonic()
        self._troubled = {part: self._troubled.get(part, now) for part in troubles}
        if self.stop_file.exists():
            return f"{self.stop_file} exists"
        for part, since in self._troubled.items():
            patience = self.settings.stale_after / 2 if part in ("source", "report") else 0.0
            if now - since >= patience:
                return troubles[part]
        if not self.budget.left(self._clock()):
            return f"the budget of {self.settings.budget} actions an hour is used up"
        return ""

    def _beats(self) -> bool:
        try:
            self.heartbeat.beat()
        except InputError as error:  # a full disk
            self._pause(str(error))
            self._give_back()
        return not self.paused

    def _pause(self, why: str) -> None:
        self.paused = self.paused or why

    def _give_back(self) -> None:
        self.heartbeat.stop()
        now = monotonic()
        if self._clean or self._restoring or now - self._tried < _RESTORE_EVERY:
            return
        self._tried, self._restoring = now, True
        self._performer.restore(self._preferred)

    def _noted(self) -> list[Outcome]:
        return [outcome for found in self._performer.outcomes() for outcome in self._note(found)]

    def _note(self, found: Outcome | Restored) -> list[Outcome]:
        if isinstance(found, Restored):
            self._restoring = False
            new = [each for each in found.left if each not in self._left]
            self._left = found.left
            if new:
                self.outcomes["refused"] += len(new)
            self.restored += found.jobs
            self._clean = not found.jobs and not found.failed  # once more after the last one
            if not found.failed:
                self._preferred.clear()
            return [Outcome(number=0, what="refused", sentence=f"not given back: {each}") for each in new]
        self.outcomes[found.what] += 1
        action = self._open.pop(found.number, None)
        if action is not None and found.what in ("done", "already"):
            known = (action.job, action.submit)
            if action.command == "release":
                self._released[known] = monotonic() + _SEEN_WITHIN
            elif action.command == "prefer":
                self._preferred[known] = action.value
            else:
                self._preferred.pop(known, None)
        elif action is not None and found.what == "refused":
            self._preferred.pop((action.job, action.submit), None)
        return [found]

    def close(self) -> list[Outcome]:
        """End: hold no further jobs, give held and preferred ones back, and return the last outcomes."""
        if not MODES[self.mode]:
            self._performer.close(0.0)
            return []
        self.heartbeat.stop()
        self._performer.restore(self._preferred)
        self._performer.finish(self.settings.stale_after)
        return self._noted()


class Budget:
    """A limit on the number of actions in any hour.

    Parameters
    ----------
    actions
        the most actions in any hour
    spent
        the instants (s) of those before, as a twin that continues finds them in its audit log

    >>> budget = Budget(2)
    >>> [budget.take(at) for at in (0.0, 10.0, 20.0, 3599.0, 3600.0)]
    [True, True, False, False, True]
    >>> budget.left(3605.0)
    0
    """

    def __init__(self, actions: int, spent: Iterable[float] = ()) -> None:
        if actions < 0:
            raise InputError(f"must be a whole number >= 0, got {actions!r}", place="budget")
        self.actions = actions
        self._spent = deque(sorted(spent))
        self._latest = self._spent[-1] if self._spent else float("-inf")

    def left(self, now: float) -> int:
        """Return how many actions are left at an instant (s); a clock that steps back does not give any."""
        self._latest = now = max(now, self._latest)
        while self._spent and self._spent[0] <= now - HOUR:
            self._spent.popleft()
        return max(0, self.actions - len(self._spent))

    def take(self, now: float) -> bool:
        """Count an action, if one is left; return whether one was."""
        if not self.left(now):
            return False
        self._spent.append(self._latest)
        return True


class Wanted(NamedTuple):
    """A command for a job."""

    command: Command
    job: int | str
    submit: float
    value: int = 0


def wanted(
    mode: Mode,
    starts: Iterable[AdvisedStart],
    *,
    waiting: Iterable[Known] = (),
    preferred: Mapping[Known, int] | None = None,
    now: float = 0.0,
    maximum_delay: float = float("inf"),
    preference: int = 0,
) -> Iterator[Wanted]:
    """Yield the commands for the jobs that should start now.

    Parameters
    ----------
    mode
        the mode of the twin
    starts
        the jobs that should start, in order
    waiting, preferred
        the jobs that wait, and how far those are moved forward that are
    now, maximum_delay
        the instant (s), and the longest wait (s) after which no younger job is preferred to one
    preference
        how far to move a job forward

    A job that waits for longer than ``maximum_delay`` is not passed because of the twin: no job submitted after it is
    preferred, and those that were are not any more.

    >>> from simmodel_site.twin.advisor import AdvisedStart
    >>> starts = [AdvisedStart(7, 60.0, "batch"), AdvisedStart(3, 20.0, "batch")]
    >>> [(each.command, each.job) for each in wanted("hold-and-release", starts)]
    [('release', 7), ('release', 3)]
    >>> waiting = [(1, 30.0), (3, 20.0), (7, 60.0)]
    >>> list(wanted("priority", starts, waiting=waiting, now=100.0, maximum_delay=60.0, preference=1000))
    [Wanted(command='prefer', job=3, submit=20.0, value=1000)]
    """
    if mode == "hold-and-release":
        for start in starts:
            yield Wanted("release", start.job, start.submit)
    elif mode == "priority":
        oldest = min((submit for _, submit in waiting if now - submit > maximum_delay), default=float("inf"))
        chosen = {(start.job, start.submit): preference for start in starts if start.submit <= oldest}
        before = dict(preferred or {})
        for job, submit in before:
            if (job, submit) not in chosen:
                yield Wanted("unprefer", job, submit)
        for (job, submit), value in chosen.items():
            if before.get((job, submit)) != value:
                yield Wanted("prefer", job, submit, value)


# ---------------------------------------------------------------------- performing


LATEST = 10.0
"""Seconds after which an action that was not sent yet is not sent any more: its decision is too old."""


class _Order(NamedTuple):
    what: str  # "do", "look" or "restore"
    action: Action | None = None
    until: float = float("inf")
    moved: Mapping[tuple[int | str, float], int] = MappingProxyType({})


class Performer:
    """Does actions in a thread of its own, at most ``rate`` a second.

    Parameters
    ----------
    hands
        sends the commands to the scheduler
    rate
        the most actions in a second

    >>> Performer(None, 0)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: rate: must be a number > 0 (1/s), got 0
    """

    def __init__(self, hands: Hands, rate: float = 10.0) -> None:
        if not rate > 0:
            raise InputError(f"must be a number > 0 (1/s), got {rate!r}", place="rate")
        self.hands = hands
        self.pause = 1.0 / rate
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._outcomes: SimpleQueue[Outcome | Restored] = SimpleQueue()
        self._closed = Flag()
        self._thread = Thread(target=self._run, name="simmodel-actions", daemon=True)
        self._thread.start()

    def do(self, actions: Iterable[Action]) -> None:
        """Let actions be done, soon or not at all."""
        until = monotonic() + LATEST
        for action in actions:
            self._orders.put(_Order("do", action, until))

    def look(self, actions: Iterable[Action]) -> None:
        """Let the outcomes of actions be found out, without sending them."""
        for action in actions:
            self._orders.put(_Order("look", action))

    def restore(self, moved: Mapping[tuple[int | str, float], int]) -> None:
        """Let all jobs be given back to the scheduler; ``moved``: those that were moved forward, and how far."""
        self._orders.put(_Order("restore", moved=dict(moved)))

    def outcomes(self) -> list[Outcome | Restored]:
        """Return the outcomes since the last call, of actions and of giving jobs back, in order."""
        found: list[Outcome | Restored] = []
        while True:
            try:
                found.append(self._outcomes.get_nowait())
            except Empty:
                return found

    def finish(self, timeout: float) -> None:
        """Do the remaining actions, and end; wait for that at most ``timeout`` seconds."""
        self._orders.put(None)
        self._thread.join(timeout)
        self._closed.set()

    def close(self, timeout: float | None = None) -> None:
        """End the thread after its present action; wait for that at most ``timeout`` seconds (``None``: any time)."""
        self._closed.set()
        self._orders.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None and not self._closed.is_set():
            try:
                self._outcomes.put(self._carry_out(order))
            except Exception as error:  # of hands of other schedulers: any; the thread must go on
                why = f"{type(error).__name__}: {error}"
                failed = Restored(0, 1, why) if order.action is None else _failed(order.action, why)
                self._outcomes.put(failed)

    def _carry_out(self, order: _Order) -> Outcome | Restored:
        action = order.action
        if action is None:
            return restore(self.hands, order.moved)
        if order.what == "look":
            return read_back(self.hands, action)
        if monotonic() > order.until:
            return Outcome(number=action.number, what="late", sentence=f"not sent within {LATEST:g} s")
        found = perform(self.hands, action)
        self._closed.wait(self.pause)
        return found


def _failed(action: Action, why: str) -> Outcome:
    return Outcome(number=action.number, what="failed", sentence=why)
