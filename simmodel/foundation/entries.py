"""Classes by name, each imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["Entries", "load"]

Loaded = TypeVar("Loaded")


def load(entry: Loaded | str) -> Loaded:
    """Return the object of a ``"module:name"``, or a value that is not text unchanged.

    >>> load("simmodel.work.job:Job").__name__
    'Job'
    """
    if not isinstance(entry, str):
        return entry
    module, _, name = entry.partition(":")
    found: Loaded = getattr(import_module(module), name)
    return found


class Entries(MutableMapping[str, Loaded]):
    """Objects by name; those given as ``"module:name"`` are imported when they are first asked for.

    ``group``: the group of entry points whose names other packages add; looked up once, for the first unknown name.

    >>> specs = Entries[type]({"cluster": "simmodel.platform.cluster:ClusterSpec"})
    >>> specs["number"] = int
    >>> sorted(specs), specs["cluster"].__name__, specs.name_of(int), specs.name_of(str)
    (['cluster', 'number'], 'ClusterSpec', 'number', None)
    """

    def __init__(self, entries: Mapping[str, Loaded | str], group: str | None = None) -> None:
        self._entries = dict(entries)
        self._group = group

    def _look_up(self) -> None:
        """Add the names of entry points, which takes milliseconds."""
        group, self._group = self._group, None
        if group is not None:
            from importlib.metadata import entry_points

            for point in entry_points(group=group):
                self._entries.setdefault(point.name, point.value)

    def __getitem__(self, name: str) -> Loaded:
        if name not in self:
            raise KeyError(name)
        found = self._entries[name] = load(self._entries[name])
        return found

    def __setitem__(self, name: str, entry: Loaded | str) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._look_up()
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            self._look_up()
        return name in self._entries

    def __len__(self) -> int:
        self._look_up()
        return len(self._entries)

    def name_of(self, cls: type[Any]) -> str | None:
        """Return the name of a class, ``None`` if it has none; nothing is imported."""
        path = f"{cls.__module__}:{cls.__qualname__}"
        return next((name for name, entry in self._entries.items() if entry is cls or entry == path), None)
