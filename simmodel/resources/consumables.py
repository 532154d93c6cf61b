"""Named amounts that jobs take besides processors."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Consumables"]


class Consumables:
    """Named amounts that jobs take while they run: licences, bytes of burst buffer, bytes/s of I/O bandwidth.

    >>> shared = Consumables({"matlab": 2})
    >>> shared.take({"matlab": 2}); shared.fits({"matlab": 1}), shared.free
    (False, {'matlab': 0})
    """

    def __init__(self, amounts: Mapping[str, float]) -> None:
        self.capacity = dict(amounts)
        self.free = dict(amounts)

    def why_not(self, need: Mapping[str, float]) -> str | None:
        """Say why so much can never be had, or ``None``."""
        for name, amount in need.items():
            if name not in self.capacity:
                return f"consumable {name!r} asked for, there are {', '.join(self.capacity) or 'none'}"
            if amount > self.capacity[name]:
                return f"{amount:g} of {name} asked for, there are {self.capacity[name]:g}"
        return None

    def fits(self, need: Mapping[str, float]) -> bool:
        """Whether so much is free."""
        return all(self.free[name] >= amount for name, amount in need.items())

    def take(self, need: Mapping[str, float]) -> None:
        """Take it."""
        for name, amount in need.items():
            self.free[name] -= amount

    def give_back(self, need: Mapping[str, float]) -> None:
        """Give it back."""
        for name, amount in need.items():
            self.free[name] += amount
