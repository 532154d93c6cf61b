"""The kinds of systems with their spec classes, and specs as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError
from simmodel.platform.network import MODELS, NetworkSpec, SharingModel
from simmodel.platform.topology import Interconnect, TopologyFile, Valiant

if TYPE_CHECKING:
    from simmodel.platform.broker import SystemSpec

__all__ = ["KINDS", "to_dict"]

KINDS = Entries[type[Any]](
    {
        "cluster": "simmodel.platform.cluster:ClusterSpec",
        "machine": "simmodel.platform.machine:MachineSpec",
        "broker": "simmodel.platform.broker:BrokerSpec",
        "grid": "simmodel.platform.grid:GridSpec",
    }
)
"""The accepted values of the top-level key ``kind``, with their spec classes."""


def to_dict(spec: SystemSpec) -> dict[str, Any]:
    """Return a spec as plain values for JSON or TOML, without the fields that equal their defaults.

    Raises
    ------
    InputError
        it is not a spec of one of the ``KINDS``

    >>> from simmodel.platform import ClusterSpec
    >>> to_dict(ClusterSpec.simple(16))
    {'kind': 'cluster', 'partitions': [{'processors': 16}]}
    """
    kind = KINDS.name_of(type(spec))
    if kind is not None:
        return {"kind": kind, **_plain(spec)}
    raise InputError(f"must be a spec of a {' or '.join(KINDS)}, got {spec!r}", place="spec")


def _plain(value: Any) -> Any:
    if type(value) in (str, bool, int, float):  # most of a large spec
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if KINDS.name_of(type(value)) == "broker":
        own = {"name": value.name} if value.name != "broker" else {}
        slow = {"slowdowns": _plain(value.slowdowns)} if value.slowdowns else {}
        return {**own, "places": {name: to_dict(each) for name, each in value.places.items()}, **slow}
    if isinstance(value, SharingModel) and MODELS.get(value.name) == value:
        return value.name
    if isinstance(value, SharingModel) and value == SharingModel(name=value.name, rule=value.name):
        return value.name
    if isinstance(value, Interconnect | Valiant | TopologyFile):
        return value.text()
    if attrs.has(type(value)):
        given = {field.name: (getattr(value, field.name), field.default) for field in attrs.fields(type(value))}
        for name in ("topology", "network"):
            each, _ = given.get(name, (None, None))
            if not isinstance(each, Interconnect | Valiant | TopologyFile | NetworkSpec | None):
                raise InputError(f"only built-in topologies can be written, got {each!r}", place=name)
        return {
            name: _plain(each)
            for name, (each, default) in given.items()
            if each is not None and each != default and each != {}
        }
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (bool, str)):
        return value
    return int(value) if isinstance(value, Integral) else float(value)
