"""Eviction rules: which unused files of a storage, or data of a memory pool, go first when room is needed.

Sources: A. Silberschatz, P. Galvin, G. Gagne, "Operating System Concepts", 10th ed., section 10.4 (FIFO, LRU, LFU); S.
Williams et al., "Removal policies in network caches for World-Wide Web documents", SIGCOMM 1996 (SIZE). No rule that
knows the past alone has fewer misses than that of L. Belady, "A study of replacement algorithms for a virtual-storage
computer", IBM Systems Journal 5(2), 1966, on things of one size.
"""

from __future__ import annotations

from simmodel.resources.data.eviction import Candidate, Eviction

__all__ = ["FirstIn", "LargestFirst", "LeastFrequentlyUsed", "LeastRecentlyUsed", "NoEviction"]


class LeastRecentlyUsed(Eviction):
    """Least recently used first; an arrival counts as a use."""

    def key(self, candidate: Candidate) -> int:
        """Return the number of the last use."""
        return candidate.last


class LeastFrequentlyUsed(Eviction):
    """Fewest uses since the arrival first; of these the least recently used."""

    def key(self, candidate: Candidate) -> tuple[int, int]:
        """Return the count of uses, and the number of the last."""
        return candidate.uses, candidate.last


class LargestFirst(Eviction):
    """Largest first; of these the first to arrive."""

    def key(self, candidate: Candidate) -> float:
        """Return the negative size."""
        return -candidate.size


class FirstIn(Eviction):
    """In the order of arrival."""

    def key(self, candidate: Candidate) -> int:
        """Return the number of the arrival."""
        return candidate.arrival


class NoEviction(Eviction):
    """Nothing goes by itself: work waits until files are dropped."""

    evicts = False

    def __init__(self) -> None:
        super().__init__()
