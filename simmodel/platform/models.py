"""The names of models of resources, and models in specs, which are names also where a class is given."""

from __future__ import annotations

from simmodel.entries import Entries, load
from simmodel.errors import InputError

__all__ = ["MODELS", "model_text"]

MODELS = Entries[type](
    {
        "disk": "simmodel.resources.storage:Storage",
        "llm-server": "simmodel.resources.ready.llm:LLMServer",
        "multi-stream-gpu": "simmodel.resources.ready.multi_stream:MultiStreamGPU",
        "page-cache": "simmodel.resources.ready.page_cache:PageCache",
        "pinned": "simmodel.resources.ready.pinned:PinnedPool",
        "pim": "simmodel.resources.ready.pim:PIMRank",
    },
    group="simmodel.resources",
)
"""Models of resources by name; see :func:`~simmodel.resources.models.register_model`."""


def model_text(given: str | type) -> str:
    """Return the model of a spec as documents store it: a class by its registered name, or as ``module:Class``.

    Raises
    ------
    InputError
        it is neither a text nor a class, or a class without a registered name that its module does not have

    >>> from simmodel.resources import ManyCores
    >>> model_text(ManyCores), model_text("disk")
    ('simmodel.resources.manycore:ManyCores', 'disk')
    """
    if isinstance(given, str):
        return given
    if not isinstance(given, type):
        raise InputError(f"must be a class, a name or module:Class, got {given!r}", place="model")
    name = MODELS.name_of(given)
    if name is not None:
        return name
    text = f"{given.__module__}:{given.__qualname__}"
    try:
        found: object = load(text)
    except (ImportError, AttributeError):
        found = None
    if found is not given:
        hint = "define it at the top of a module, or name it with register_model"
        raise InputError(f"must be a class that can be imported, got {text}: {hint}", place="model")
    return text
