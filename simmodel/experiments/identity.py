"""What an experiment is about, as plain values: only the same experiment continues a file of its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from simmodel.errors import shown

__all__ = ["digest_of", "named"]


def named(value: Any, within: tuple[int, ...] = ()) -> Any:
    """Return plain values that tell a value from others; of functions and classes only the name counts.

    ``within`` are the ids of the values that contain it.

    >>> named([1, "easy", {"a": 0.5}]), named(named)
    ([1, 'easy', {'a': 0.5}], 'simmodel.experiments.identity.named')
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path | np.generic):
        return str(value)
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).tobytes()
        return [str(value.dtype), list(value.shape), sha256(content).hexdigest()]
    if id(value) in within:
        return "..."
    inside = (*within, id(value))
    if isinstance(value, Mapping):
        return {str(key): named(each, inside) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [named(each, inside) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(named(each, inside)) for each in value)
    if isinstance(value, partial):
        return [named(part, inside) for part in (value.func, value.args, value.keywords)]
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    state = None if isinstance(value, bytes) else value.__getstate__()
    return [f"{type(value).__module__}.{type(value).__qualname__}", named(state, inside) if state else shown(value)]


def digest_of(value: Any) -> str:
    """Return a short digest of :func:`named` values.

    >>> digest_of({"a": 1}) == digest_of({"a": 1}), len(digest_of(2))
    (True, 16)
    """
    return sha256(json.dumps(named(value), sort_keys=True).encode()).hexdigest()[:16]
