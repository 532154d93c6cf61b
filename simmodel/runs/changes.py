"""Changes of a platform as texts, such as ``nodes=+20``: what if the machine were another one.

A change names a part by its path, as :meth:`~simmodel.runs.scenario.Scenario.evolve` does, and its new value as a text:
a number or a quantity (``12h``), a difference (``+20``, ``-10``), a factor (``x1.2`` or ``*1.2``), or ``none``, which
removes a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.errors import InputError, shown
from simmodel.platform.cluster import NodeSpec
from simmodel.runs.paths import REMOVED, changed as replaced, child, key_of, parsed
from simmodel.runs.scenario import platform_of
from simmodel.systems.kinds import snapshot_in
from simmodel.systems.submissions import in_chunks

if TYPE_CHECKING:
    from simmodel.platform.broker import SystemSpec
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.systems.submissions import GivenWork

__all__ = ["case_of", "changed", "changes_of"]

_RELATIVE = re.compile(r"([+-]|[x*](?=[\d.]))\s*(.+)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf", re.IGNORECASE)
_NEXT = re.compile(r",\s*(?=[^=,]+=)")


def changed(
    platform: GivenPlatform, changes: Mapping[str, str] | Iterable[str], *, log: GivenWork | None = None
) -> SystemSpec:
    """Return the spec of a platform with changes.

    Parameters
    ----------
    platform
        in any form that :func:`~simmodel.runs.scenario.simulate` takes, but for snapshots
    changes
        by path, the new value of each part as a text, or ``PATH=VALUE`` texts. A kind of nodes is changed by their
        number: ``nodes`` of a cluster that has one kind, ``partitions.NAME.nodes.KIND`` of any. Where processors are
        counted, a node is a processor, and ``nodes`` and ``processors`` are the same. ``max_time`` is the limit
        ``max_requested``
    log
        of which the platform is that of the header, if it is ``None``

    Raises
    ------
    InputError
        a path is unknown or means several kinds of nodes, or a value is wrong

    >>> from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=8)], max_requested="1d")])
    >>> larger = changed(spec, {"nodes": "+20", "partitions.batch.max_time": "12h"})
    >>> larger.processors, larger.partitions[0].max_requested
    (192, 43200.0)
    >>> changed(128, ["processors=x1.5"]).processors
    192
    """
    if platform is None and log is not None:
        platform = in_chunks(log).processors
        if platform is None:
            raise InputError("the log does not specify the processors of its machine", place="platform")
    spec = platform_of(platform)
    if spec is None or snapshot_in(spec) is not None:
        raise InputError(f"must be a platform that can be changed, got {platform!r}", place="platform")
    new: dict[str, Any] = {}
    for path, text in (changes if isinstance(changes, Mapping) else changes_of(changes)).items():
        try:
            place, value = _change(spec, path, text)
        except InputError as error:
            raise InputError(error.message.removeprefix(f"{path}: "), place=f"{path}={text}") from None
        new[place] = value
    return replaced(spec, new)  # type: ignore[no-any-return]


def _change(spec: SystemSpec, path: str, text: str) -> tuple[str, Any]:
    """Return the path of what is replaced, and its new value."""
    owner: Any = None
    here: Any = spec
    for part in parsed(path):
        owner, key = here, key_of(here, part, path)
        here = child(owner, key)
    if text.strip().lower() == "none":
        if not attrs.has(type(owner)):
            return path, REMOVED
        return path, () if isinstance(here, tuple) else None
    if isinstance(here, tuple) and here and isinstance(here[0], NodeSpec):
        if len(here) > 1:
            raise InputError(f"must name one of {', '.join(f'{path}{each[5:]}' for each in owner.groups)}")
        path, here = f"{path}[0]", here[0]
    if isinstance(here, NodeSpec):
        return path, here.resized(int(_value(here, "count", here.count, text)))
    return path, _value(owner, key, here, text)


def _value(owner: Any, key: int | str, old: Any, text: str) -> Any:
    """Return the value that a text stands for, as that of a field, a property or an item."""
    field = attrs.fields_dict(type(owner)).get(str(key)) if attrs.has(type(owner)) else None
    kind = str(field.type) if field is not None else type(old).__name__
    relative = _RELATIVE.fullmatch(text.strip())
    if relative is None or not re.search("int|float", kind):
        return _absolute(old, kind, text.strip())
    if isinstance(old, bool) or not isinstance(old, int | float):
        raise InputError(f"must be a value, since there is none that could be changed: {shown(old)}")
    sign, amount = relative[1], _plain(relative[2])
    if isinstance(amount, str) and field is not None:
        with suppress(InputError):
            amount = getattr(attrs.evolve(owner, **{str(key): amount}), str(key))  # with its unit
    if isinstance(amount, str):
        raise InputError(f"must be a number with a sign, got {text!r}")
    new = old * amount if sign in "x*" else old + (amount if sign == "+" else -amount)
    return round(new) if isinstance(old, int) and "float" not in kind and sign in "x*" else new


def _absolute(old: Any, kind: str, text: str) -> Any:
    if kind.startswith("tuple[str"):
        return tuple(each.strip() for each in text.split(","))
    if isinstance(old, Sequence | Mapping) and not isinstance(old, str):
        names = [str(getattr(each, "name", i)) for i, each in enumerate(old)]
        raise InputError(f"must be the path of a part, such as one of {', '.join(names)}")
    if "bool" in kind and text.lower() in ("true", "yes", "false", "no"):
        return text.lower() in ("true", "yes")
    return text if "str" in kind and "int" not in kind else _plain(text)


def _plain(text: str) -> float | str:
    """Return a number, or the text of a quantity for the converter of its field."""
    text = text.strip()
    if _NUMBER.fullmatch(text) is None:
        return text
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def changes_of(given: Iterable[str], place: str = "--set") -> dict[str, str]:
    """Return changes by path, each given as ``PATH=VALUE``.

    Raises
    ------
    InputError
        one is not, or a path is given twice

    >>> changes_of(["nodes=+20", "partitions.batch.max_time=12h"])
    {'nodes': '+20', 'partitions.batch.max_time': '12h'}
    """
    found: dict[str, str] = {}
    for text in given:
        path, sign, value = (each.strip() for each in text.partition("="))
        if not (path and sign and value):
            raise InputError(f"must be PATH=VALUE, such as nodes=+20, got {text!r}", place=place)
        if path in found:
            raise InputError(f"{path} is set twice, to {found[path]} and to {value}", place=place)
        found[path] = value
    return found


def case_of(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the changes of a case, given as ``NAME: PATH=VALUE, PATH=VALUE``.

    Raises
    ------
    InputError
        it is not

    >>> case_of("short and large: partitions.batch.max_time=12h, nodes=+20")
    ('short and large', {'partitions.batch.max_time': '12h', 'nodes': '+20'})
    """
    name, colon, rest = (each.strip() for each in text.partition(":"))
    if not (name and colon and rest) or "=" in name:
        example = "'20 more: nodes=+20'"
        raise InputError(f"must be NAME: PATH=VALUE, PATH=VALUE, such as {example}, got {text!r}", place="--case")
    return name, changes_of(_NEXT.split(rest), f"--case {name}")
