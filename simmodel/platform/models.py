"""The names of models, placements, eviction rules and predictors in specs, and how specs store classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simmodel.foundation.entries import Entries, load
from simmodel.foundation.errors import InputError

__all__ = ["EVICTIONS", "MODELS", "PLACEMENTS", "PREDICTORS", "model_text"]

MODELS = Entries[type](
    {
        "burst-buffer": "simmodel.resources.ready.storages:BurstBuffer",
        "disk": "simmodel.resources.data.storage:Storage",
        "equal-split": "simmodel.resources.ready.links:EqualSplit",
        "llm-server": "simmodel.resources.ready.processors:LLMServer",
        "lossy": "simmodel.resources.ready.links:LossyLink",
        "multi-stream-gpu": "simmodel.resources.ready.processors:MultiStreamGPU",
        "page-cache": "simmodel.resources.ready.memories:PageCache",
        "pinned": "simmodel.resources.ready.memories:PinnedPool",
        "pim": "simmodel.resources.ready.processors:PIMRank",
        "strict-priority": "simmodel.resources.ready.links:StrictPriority",
        "tape-library": "simmodel.resources.ready.storages:TapeLibrary",
        "tdma": "simmodel.resources.ready.links:TDMALink",
    },
    group="simmodel.resources",
)
"""Models of resources by name; see :func:`~simmodel.resources.models.register_model`."""


def model_text(given: str | Callable[..., Any], names: Entries[Any] = MODELS) -> str:
    """Return the model of a spec as documents store it: a class by its registered name, or as ``module:Class``.

    ``names``: the registered ones, of classes or of functions.

    Raises
    ------
    InputError
        it is neither a text nor a class, or has no registered name and cannot be imported

    >>> from simmodel.resources import ManyCores
    >>> model_text(ManyCores), model_text("disk")
    ('simmodel.resources.processors.serving:ManyCores', 'disk')
    """
    if isinstance(given, str):
        return given
    if not callable(given) or (names is MODELS and not isinstance(given, type)):
        raise InputError(f"must be a class, a name or module:Class, got {given!r}", place="model")
    name = names.name_of(given)  # type: ignore[arg-type]
    if name is not None:
        return name
    text = f"{given.__module__}:{given.__qualname__}"
    try:
        found: object = load(text)
    except (ImportError, AttributeError):
        found = None
    if found is not given:
        hint = (
            f"define it at the top of a module, or name it with register_{'model' if names is MODELS else 'placement'}"
        )
        raise InputError(f"must be a class that can be imported, got {text}: {hint}", place="model")
    return text


# ---------------------------------------------------------------------- placements


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
        "gpu-best-fit": "simmodel.resources.pools.scores:GpuBestFit",
        "dot-product": "simmodel.resources.pools.scores:DotProduct",
        "gpu-packing": "simmodel.resources.pools.scores:GpuPacking",
        "gpu-clustering": "simmodel.resources.pools.scores:GpuClustering",
        "fgd": "simmodel.resources.pools.scores:FGD",
    },
    group="simmodel.placements",
)
"""Placements by name; see :func:`~simmodel.resources.pools.placements.register_placement`."""


# ---------------------------------------------------------------------- eviction rules


EVICTIONS = Entries[Any](
    {
        "lru": "simmodel.resources.data.eviction:LeastRecentlyUsed",
        "lfu": "simmodel.resources.data.eviction:LeastFrequentlyUsed",
        "size": "simmodel.resources.data.eviction:LargestFirst",
        "fifo": "simmodel.resources.data.eviction:FirstIn",
        "none": "simmodel.resources.data.eviction:NoEviction",
    },
    group="simmodel.evictions",
)
"""Eviction rules by name; see :func:`~simmodel.resources.data.eviction.register_eviction`."""


# ---------------------------------------------------------------------- predictors


PREDICTORS = Entries[Any](
    {
        "predicted": "simmodel.predictors.similar:SimilarJobs",
        "recent-two": "simmodel.predictors.similar:RecentTwo",
        "own-past": "simmodel.predictors.similar:OwnPast",
        "boosted": "simmodel.predictors.boosted:Boosted",
        "request": "simmodel.predictors.similar:Request",
    },
    group="simmodel.predictors",
)
"""Predictors by name; see :func:`~simmodel.scheduling.prediction.register_predictor`."""
