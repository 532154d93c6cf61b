"""Refusals, counted by their sentences: a source or a mirror goes on after something malformed."""

from __future__ import annotations

from collections import Counter

__all__ = ["Refused"]

MOST = 100  # different sentences that are kept; hostile input can make any number of them


class Refused(Counter[str]):
    """Counts of refusals, by the sentence that says why; beyond 100 sentences they count as ``others``.

    >>> refused = Refused()
    >>> refused.count("must be one JSON object, got 'x'")
    >>> refused.count("must be one JSON object, got 'x'")
    >>> refused.total(), refused.last
    (2, "must be one JSON object, got 'x'")
    """

    last: str = ""
    """The last sentence."""

    def count(self, why: object) -> None:
        """Count one more."""
        self.last = str(why)
        self[self.last if self.last in self or len(self) < MOST else "others"] += 1
