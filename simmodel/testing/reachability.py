"""Values that a policy can reach from its view through public attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import View

__all__ = ["leaks", "reachable"]


def reachable(view: View) -> Iterator[tuple[str, Any]]:
    """Yield each number and text that is reachable from a view through public attributes, with its path.

    The search follows objects of this package, sequences, mappings, sets and arrays; it calls only properties.

    >>> from simmodel import Environment
    >>> from simmodel import Cluster
    >>> dict(reachable(Cluster(Environment(), 4).view))["view.places[0].capacity"]
    4
    """
    seen: set[int] = set()
    kept: list[object] = []  # keeps objects alive, so that ids stay unique
    line: list[tuple[str, Any]] = [("view", view)]
    while line:
        path, value = line.pop()
        if isinstance(value, (bool, int, float, str, np.generic)):
            yield path, value
            continue
        if value is None or callable(value) or id(value) in seen:
            continue
        seen.add(id(value))
        kept.append(value)
        line.extend(_parts(path, value))


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, np.ndarray):
        yield from ((f"{path}[{i}]", each) for i, each in enumerate(value.ravel().tolist()))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield f"{path}[{key!r}]", each
            yield f"{path}.keys()", key
    elif isinstance(value, (list, tuple, Set)):
        yield from ((f"{path}[{i}]", each) for i, each in enumerate(value))
    elif type(value).__module__.partition(".")[0] == "simmodel":
        for name in dir(value):
            if not name.startswith("_"):
                try:
                    yield f"{path}.{name}", getattr(value, name)
                except Exception:
                    continue
        if getattr(type(value), "__iter__", None) is not None:
            yield from ((f"{path}[{i}]", each) for i, each in enumerate(value))


def leaks(view: View, secrets: Iterable[float]) -> list[str]:
    """Return the paths from a view to numbers that a policy must not see, such as actual run times."""
    wanted = {float(each) for each in secrets}
    return sorted(
        path
        for path, value in reachable(view)
        if isinstance(value, (int, float, np.integer, np.floating)) and float(value) in wanted
    )
