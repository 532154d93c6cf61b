"""A wake-up call that can be rescheduled."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from simmodel.environment import END, Environment, Occurrence

__all__ = ["Alarm"]


class _Ring(Occurrence):
    __slots__ = ()

    def __init__(self, callbacks: tuple[Callable[[object], object]]) -> None:
        self.callbacks = callbacks


class Alarm:
    """A wake-up call that can be rescheduled; at most one is pending.

    >>> env = Environment()
    >>> alarm = Alarm(env, lambda: print("woke at", env.now))
    >>> alarm.set(10); alarm.set(3); env.run()
    woke at 3
    >>> env.now
    3
    """

    __slots__ = ("_callbacks", "_env", "_ring", "_rung", "at", "call", "number")

    def __init__(self, env: Environment, call: Callable[[], object]) -> None:
        self.at = inf
        self.number = 0  # in the order of events, while it is set
        self._env = env
        self.call = call
        self._callbacks = (self._fire,)
        self._ring: _Ring | None = None  # planned
        self._rung: _Ring | None = None  # has fired: to be planned again

    def __repr__(self) -> str:
        return f"<Alarm {'not set' if self.at == inf else f'at {self.at:g}'}>"

    def set(self, at: float) -> None:
        """Set the wake-up to a time (s) that is not past, replacing any earlier setting; infinity: no wake-up."""
        if at == self.at:
            return
        env = self._env
        if self._ring is not None:
            env.withdraw(self._ring)
            self._ring = None
        self.at = at
        if at < inf:
            ring = self._rung
            if ring is None:
                ring = _Ring(self._callbacks)
            else:
                self._rung = None
                ring.callbacks = self._callbacks
            self._ring = ring
            self.number = env.plan(ring, at, END)

    @property
    def planned(self) -> Occurrence | None:
        """The occurrence that is scheduled for it, ``None`` if it is not set."""
        return self._ring

    def _fire(self, _: object) -> None:
        self._rung, self._ring = self._ring, None
        self.at = inf
        self.call()
