"""The names of placements: the choice among the nodes that a request can have."""

from __future__ import annotations

from typing import Any

from simmodel.entries import Entries

__all__ = ["PLACEMENTS"]

PLACEMENTS = Entries[Any](
    {
        "first-fit": "simmodel.resources.placements:FIRST_FIT",
        "best-fit": "simmodel.resources.placements:BEST_FIT",
        "packed": "simmodel.resources.placements:PACKED",
        "spread": "simmodel.resources.placements:SPREAD",
        "exclusive-by-switch": "simmodel.resources.placements:EXCLUSIVE_BY_SWITCH",
    },
    group="simmodel.placements",
)
"""Placements by name; see :func:`~simmodel.resources.placements.register_placement`."""
