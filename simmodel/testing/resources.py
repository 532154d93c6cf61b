"""The check of models of resources: one entry, and a check for each kind of resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simmodel.foundation.entries import Entries
from simmodel.platform.models import MODELS, PLACEMENTS
from simmodel.resources.models import BASES, kind_of_model

__all__ = ["CHECKS", "CLOCK", "check_resource"]

CLOCK = sorted((i + 0.37) / 97 * period for period in (1, 60, 3600, 86400, 7 * 86400) for i in range(97))
"""Instants (s) in all parts of a second, a minute, an hour, a day and a week, for models that follow the clock."""

CHECKS = Entries[Callable[[Any, Mapping[str, Any]], None]](
    {
        "processor": "simmodel.testing.processors:check_processor",
        "memory pool": "simmodel.testing.machines:check_pool",
        "placement": "simmodel.testing.placements:check_placement",
        "storage": "simmodel.testing.storages:check_storage",
        "link": "simmodel.testing.networks:check_link",
        "sharing rule": "simmodel.testing.networks:check_rule",
    }
)
"""The check of each kind of resource (see :data:`~simmodel.resources.models.BASES`), called with a model, options."""


def check_resource(model: str | Callable[..., Any], **options: Any) -> None:
    """Check a custom model of a resource: small platforms with it run, and the guarantees of every resource hold.

    All work ends and nothing is lost, capacities are respected, records are complete, the same run gives the same
    result, and a run cut by a snapshot ends as one that was not cut (unless the model has ``snapshots = False``).

    Parameters
    ----------
    model
        the class, or its registered name; of a placement also the function
    options
        for the spec's ``options``

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    InputError
        an option is invalid

    >>> from simmodel.resources import ManyCores
    >>> check_resource(ManyCores)
    """
    found = MODELS[model] if isinstance(model, str) and model in MODELS else model
    named = isinstance(model, str) and model in PLACEMENTS
    function = callable(model) and not isinstance(model, type)
    kind = "placement" if named or function else kind_of_model(found)
    bases = ", ".join(BASES[each].__name__ for each in BASES)
    assert kind is not None, f"a model must derive from one of {bases}, got {model!r}"
    CHECKS[kind](found, options)
