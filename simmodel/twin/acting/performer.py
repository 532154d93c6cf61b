"""The thread that does actions, one after another, so that a scheduler that does not answer never stops the twin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from queue import Empty, SimpleQueue
from threading import Event as Flag, Thread
from time import monotonic
from types import MappingProxyType
from typing import NamedTuple

from simmodel.foundation.errors import InputError
from simmodel.twin.acting.actions import Action, Hands, Outcome
from simmodel.twin.acting.performing import Restored, perform, read_back, restore

__all__ = ["Performer"]

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
