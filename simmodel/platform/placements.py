"""The names of placements: the choice among the nodes that a request can have."""

from __future__ import annotations

from typing import Any

from simmodel.foundation.entries import Entries
from simmodel.platform.models import model_text

__all__ = ["PLACEMENTS", "placement_text"]

PLACEMENTS = Entries[Any](
    {
        "first-fit": "simmodel.resources.pools.placements:FIRST_FIT",
        "best-fit": "simmodel.resources.pools.placements:BEST_FIT",
        "packed": "simmodel.resources.pools.placements:PACKED",
        "spread": "simmodel.resources.pools.placements:SPREAD",
        "exclusive-by-switch": "simmodel.resources.pools.placements:EXCLUSIVE_BY_SWITCH",
        "contiguous": "simmodel.resources.ready.contiguous:Contiguous",
        "hilbert": "simmodel.resources.pools.network_placements:Hilbert",
        "group-first": "simmodel.resources.pools.network_placements:GroupFirst",
        "random": "simmodel.resources.pools.network_placements:Random",
        "random-groups": "simmodel.resources.pools.network_placements:RandomGroups",
        "hybrid": "simmodel.resources.pools.network_placements:Hybrid",
        "fewest-hops": "simmodel.resources.pools.network_placements:FewestHops",
    },
    group="simmodel.placements",
)
"""Placements by name; see :func:`~simmodel.resources.pools.placements.register_placement`."""


def placement_text(given: Any) -> Any:
    """Return a placement as documents store it: a function or a class by its registered name or as ``module:name``.

    >>> from simmodel.resources.ready.contiguous import Contiguous
    >>> placement_text(Contiguous), placement_text("spread")
    ('contiguous', 'spread')
    """
    return model_text(given, PLACEMENTS) if callable(given) else given
