"""Consumables: named amounts that jobs take in addition to processors."""

from __future__ import annotations

from collections.abc import Mapping

from simmodel.work.job import Refusal

__all__ = ["Consumables"]


class Consumables:
    """Named amounts that jobs hold while they run: licences, bytes of burst buffer, bytes/s of I/O bandwidth.

    Amounts may be fractional: comparisons tolerate rounding errors, and a consumable without holders is entirely free.

    >>> shared = Consumables({"matlab": 2})
    >>> shared.take({"matlab": 2}); shared.fits({"matlab": 1}), shared.free
    (False, {'matlab': 0})
    """

    def __init__(self, amounts: Mapping[str, float]) -> None:
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
                return Refusal.of(f"{amount:g} of {name}", f"there are {self.capacity[name]:g}")
        return None

    def fits(self, need: Mapping[str, float]) -> bool:
        """Whether these amounts are free."""
        return all(self.free[name] + self.slack[name] >= amount for name, amount in need.items())

    def take(self, need: Mapping[str, float]) -> None:
        """Take these amounts; nothing is checked."""
        self.version += 1
        for name, amount in need.items():
            self.free[name] -= amount
            self._holders[name] += 1

    def give_back(self, need: Mapping[str, float]) -> None:
        """Give these amounts back."""
        self.version += 1
        for name, amount in need.items():
            self._holders[name] -= 1
            self.free[name] = self.free[name] + amount if self._holders[name] else self.capacity[name]

    def __repr__(self) -> str:
        parts = (f"{self.free[name]:g} of {amount:g} {name}" for name, amount in self.capacity.items())
        return f"<Consumables: {', '.join(parts) or 'none'}>"
