"""The names of eviction rules: which unused files and data go first when a storage or a memory pool is full."""

from __future__ import annotations

from typing import Any

from simmodel.foundation.entries import Entries

__all__ = ["EVICTIONS"]

EVICTIONS = Entries[Any](
    {
        "lru": "simmodel.policies.eviction:LeastRecentlyUsed",
        "lfu": "simmodel.policies.eviction:LeastFrequentlyUsed",
        "size": "simmodel.policies.eviction:LargestFirst",
        "fifo": "simmodel.policies.eviction:FirstIn",
        "none": "simmodel.policies.eviction:NoEviction",
    },
    group="simmodel.evictions",
)
"""Eviction rules by name; see :func:`~simmodel.resources.data.eviction.register_eviction`."""
