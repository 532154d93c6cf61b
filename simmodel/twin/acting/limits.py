"""The budget of an acting twin: how many actions it may still take within an hour."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from simmodel.foundation.errors import InputError

__all__ = ["Budget"]

HOUR = 3600.0


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
