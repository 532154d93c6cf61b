"""Specs of storages: of the sites of grids, and of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import in_bytes, parse_quantity
from simmodel.platform.models import model_text

__all__ = ["StorageSpec", "above_zero", "at_least_zero"]


def _bandwidth(value: float | str) -> Any:
    return parse_quantity(value, "B/s") if isinstance(value, str) else value


def at_least_zero(_instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    """Raise an :class:`InputError` unless a value is a number >= 0."""
    if isinstance(value, (str, bool)) or not value >= 0:
        raise InputError(f"must be a number >= 0, got {value!r}", place=attribute.name)


def above_zero(_instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    """Raise an :class:`InputError` unless a value is a number > 0."""
    if isinstance(value, (str, bool)) or not value > 0:
        raise InputError(f"must be a number > 0, got {value!r}", place=attribute.name)


@attrs.frozen(kw_only=True, repr=False)
class StorageSpec(Fields):
    """A storage, of a site or of a cluster: it holds files, and jobs read and write it.

    Parameters
    ----------
    name
        its name in reports; default: that of its site; a storage of a cluster must have one
    capacity
        bytes, or a text such as ``"3TB"``
    read_bandwidth, write_bandwidth
        bytes/s, or a text such as ``"2GBps"``, shared equally by the reads, and by the writes, that are under way
    model
        how it admits files and serves reads and writes: ``"disk"``, or a class derived from
        :class:`~simmodel.resources.data.storage.Storage`: the class itself, a name (``simmodel list resources``) or
        ``module:Class``
    options
        options for that class
    evict
        who goes when room is needed: ``"lru"``, ``"lfu"``, ``"size"``, ``"fifo"``, ``"none"`` or a registered rule. A
        file that a job uses, and the last replica of a file, stay

    >>> StorageSpec(capacity="3TB", read_bandwidth="2GBps").read_bandwidth
    2000000000.0
    """

    name: str = ""
    capacity: float = attrs.field(default=inf, converter=in_bytes, validator=at_least_zero)
    read_bandwidth: float = attrs.field(default=inf, converter=_bandwidth, validator=above_zero)
    write_bandwidth: float = attrs.field(default=inf, converter=_bandwidth, validator=above_zero)
    model: str = attrs.field(default="disk", converter=model_text)
    options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    evict: str = "lru"
