"""Paths into a value: attributes by a dot, items by ``[0]``, ``['any name']`` or, if names are unique, ``.name``.

A property of an attrs value can be changed if the value has the method ``with_PROPERTY``, such as the speed of a site,
or the nodes of a cluster. ``max_time`` is ``max_requested`` where there is one.
``changed`` returns the value with several of its parts replaced. Each value on the way is rebuilt once, with all its
changes, so that checks see no intermediate state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from simmodel.foundation.errors import InputError, unknown

__all__ = ["REMOVED", "changed", "child", "key_of", "look_up", "parsed"]

REMOVED = object()
"""Instead of a new value: the item is removed."""

_PART = re.compile(r"""\.?(?P<name>[^.\[\]'"]+)|\[(?P<index>-?\d+)\]|\[(?P<quote>['"])(?P<item>.*?)(?P=quote)\]""")
Part = str | int


def parsed(path: str) -> tuple[Part, ...]:
    """Return the parts of a path: names and item numbers.

    Raises
    ------
    InputError
        if the syntax is wrong

    >>> parsed("partitions[0].nodes['big one'].cores")
    ('partitions', 0, 'nodes', 'big one', 'cores')
    """
    parts: list[Part] = []
    at = 0
    while at < len(path):
        match = _PART.match(path, at)
        if match is None or (match["name"] and (path[at] == ".") != bool(parts)):
            raise InputError(f"path {path!r}: must be .name, [number] or ['name'], got {path[at:]!r}")
        parts.append(int(match["index"]) if match["index"] else match["name"] or match["item"])
        at = match.end()
    if not parts:
        raise InputError("path '': must have at least one part")
    return tuple(parts)


def key_of(value: Any, part: Part, path: str) -> Part:
    """Return the field, key or item number that a part of a path names."""
    if isinstance(value, Mapping):
        if part in value:
            return part
        raise InputError(f"{path}: {unknown('name', str(part), map(str, value)).message}")
    if isinstance(value, Sequence) and not isinstance(value, str):
        if isinstance(part, int):
            if -len(value) <= part < len(value):
                return part % len(value)
            raise InputError(f"{path}: must be an index below {len(value)}, got {part}")
        found = [i for i, each in enumerate(value) if getattr(each, "name", None) == part]
        if len(found) == 1:
            return found[0]
        names = [str(getattr(each, "name", i)) for i, each in enumerate(value)]
        if found:
            raise InputError(f"{path}: name {part!r} is ambiguous, {len(found)} items have it: use an index")
        raise InputError(f"{path}: {unknown('name', str(part), names).message}")
    if attrs.has(type(value)):
        fields = [field.alias or field.name for field in attrs.fields(type(value)) if field.init]
        if "max_requested" in fields:
            fields.append("max_time")
        if part == "max_time" == fields[-1]:
            return "max_requested"
        if part in fields or _setter(value, part) is not None:
            return part
        fields += [name.removeprefix("with_") for name in dir(value) if name.startswith("with_")]
        raise InputError(f"{path}: {unknown('field', str(part), fields).message}")
    raise InputError(f"{path}: cannot look up {part!r}: {value!r} has no parts")


def _setter(value: Any, part: Part) -> Callable[[Any], Any] | None:
    """Return the method ``with_part`` of a value, which gives the value with a property changed."""
    return getattr(value, f"with_{part}", None) if hasattr(type(value), str(part)) else None


def child(value: Any, key: Part) -> Any:
    """Return the part of a value that :func:`key_of` found."""
    return getattr(value, str(key)) if attrs.has(type(value)) else value[key]


def look_up(value: Any, path: str) -> Any:
    """Return the value at a path.

    Raises
    ------
    InputError
        if the path does not exist

    >>> from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
    >>> spec = ClusterSpec(partitions=[PartitionSpec(name="cpu", nodes=[NodeSpec(count=2, cores=8)])])
    >>> look_up(spec, "partitions.cpu.nodes[0].cores")
    8
    """
    for part in parsed(path):
        value = child(value, key_of(value, part, path))
    return value


def changed(value: Any, changes: Mapping[str, Any]) -> Any:
    """Return a value with the parts at several paths replaced.

    Raises
    ------
    InputError
        if a path does not exist, two paths overlap, or the new value is invalid

    >>> from simmodel.platform import ClusterSpec
    >>> changed(ClusterSpec.simple(16), {"partitions[0].processors": 32}).processors
    32
    """
    tree: dict[Part, Any] = {}
    for path, new in changes.items():
        node, here = tree, value
        *way, last = parsed(path)
        for part in way:
            key = key_of(here, part, path)
            here = child(here, key)
            node = node.setdefault(key, {})
            if isinstance(node, _New):
                raise InputError(f"{path}: cannot be replaced together with a part that contains it")
        key = key_of(here, last, path)
        if key in node:
            raise InputError(f"{path}: cannot be replaced twice, or together with one of its parts")
        node[key] = _New(new)
    return _rebuilt(value, tree)


@attrs.frozen
class _New:
    value: Any


def _rebuilt(value: Any, tree: Any) -> Any:
    if isinstance(tree, _New):
        return tree.value
    children = {key: _rebuilt(child(value, key), below) for key, below in tree.items()}
    if isinstance(value, Mapping):
        return {key: each for key, each in {**value, **children}.items() if each is not REMOVED}
    if isinstance(value, Sequence):
        items = (children.get(i, each) for i, each in enumerate(value))
        return type(value)(each for each in items if each is not REMOVED)  # type: ignore[call-arg]
    fields = {field.alias for field in attrs.fields(type(value))}
    try:
        new = attrs.evolve(value, **{str(key): each for key, each in children.items() if key in fields})
        for key, each in children.items():
            if key not in fields and (setter := _setter(new, key)) is not None:
                new = setter(each)
        return new
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{', '.join(map(str, children))}: {error}") from None
