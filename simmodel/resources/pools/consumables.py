"""Consumables: named amounts that jobs take in addition to processors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING

from simmodel.foundation.units import show_quantity
from simmodel.resources.pools.profile import CountProfile
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from simmodel.resources.pools.running import RunningIndex

__all__ = ["Consumables"]

Told = Callable[[float], object]


class Consumables:
    """Named amounts that jobs hold while they run: licences, bytes of burst buffer, bytes/s of a storage or a link.

    Amounts may be fractional: comparisons tolerate rounding errors, and a consumable without holders is entirely free.

    Parameters
    ----------
    amounts
        the capacity of each
    told
        functions to call with the amount that is held, whenever it changes: those that take it from a storage or a link

    >>> shared = Consumables({"matlab": 2})
    >>> shared.take({"matlab": 2}); shared.fits({"matlab": 1}), shared.free
    (False, {'matlab': 0})
    """

    def __init__(self, amounts: Mapping[str, float], told: Mapping[str, Told] | None = None) -> None:
        self._told = told or {}
        self.capacity = dict(amounts)
        self.free = dict(amounts)
        self.slack = {name: 1e-9 * amount for name, amount in amounts.items()}  # an upper bound of the rounding error
        self.version = 0  # incremented by each take and give_back
        self._holders = dict.fromkeys(amounts, 0)

    def why_not(self, need: Mapping[str, float]) -> str | None:
        """Return why the capacity can never satisfy the need, or ``None``."""
        for name, amount in need.items():
            if name not in self.capacity:
                return Refusal.of(f"consumable {name!r}", f"there are {', '.join(self.capacity) or 'none'}")
            if amount > self.capacity[name]:
                there = self.show(name, self.capacity[name])
                return Refusal.of(f"{self.show(name, amount)} of {name}", f"there are {there}")
        return None

    def show(self, name: str, amount: float) -> str:
        """Return an amount as a text, of a storage or a link in bytes/s.

        >>> Consumables({"scratch": 8e9}, {"scratch": print}).show("scratch", 2e9)
        '2GBps'
        """
        return show_quantity(amount, "B/s") if self.is_bandwidth(name) else f"{amount:g}"

    def is_bandwidth(self, name: str) -> bool:
        """Return whether a name is that of a storage or a link."""
        return name in self._told

    def lacking(self, need: Mapping[str, float]) -> list[str]:
        """Return the names of the amounts of which not enough is free."""
        return [name for name, amount in need.items() if not self.fits({name: amount})]

    def fits(self, need: Mapping[str, float]) -> bool:
        """Whether these amounts are free."""
        return all(self.free[name] + self.slack[name] >= amount for name, amount in need.items())

    def take(self, need: Mapping[str, float]) -> None:
        """Take these amounts; nothing is checked."""
        self.version += 1
        for name, amount in need.items():
            self.free[name] -= amount
            self._holders[name] += 1
            if name in self._told:
                self._tell(name)

    def give_back(self, need: Mapping[str, float]) -> None:
        """Give these amounts back."""
        self.version += 1
        for name, amount in need.items():
            self._holders[name] -= 1
            self.free[name] = self.free[name] + amount if self._holders[name] else self.capacity[name]
            if name in self._told:
                self._tell(name)

    def profiles(self, now: float, running: RunningIndex) -> dict[str, CountProfile]:
        """Return the free amount of each over time from an instant (s) on, by the expected ends of running work."""
        profiles = {}
        for name, free in self.free.items():
            ends = (
                (end, run.work.request.consumables.get(name, 0))
                for end, _, _, run in running.entries()
                if run.work.request is not None
            )
            profiles[name] = CountProfile(now, free + self.slack[name], ends)  # type: ignore[arg-type]
        return profiles

    def state(self) -> tuple[tuple[str, float], ...]:
        """Return the free amounts by name."""
        return tuple((name, float(free)) for name, free in self.free.items())

    def restore(self, free: Iterable[tuple[str, float]]) -> None:
        """Take over the free amounts of a snapshot, to the last bit, whose holders have taken theirs."""
        self.free.update(free)
        for name in self._told:
            self._tell(name)

    def _tell(self, name: str) -> None:
        there = self.capacity[name]
        self._told[name](0.0 if there == inf else there - self.free[name])

    def __repr__(self) -> str:
        parts = (f"{self.free[name]:g} of {amount:g} {name}" for name, amount in self.capacity.items())
        return f"<Consumables: {', '.join(parts) or 'none'}>"
