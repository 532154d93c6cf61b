"""The accepted forms of a platform: a number, a name, a file, a spec, several of these, or a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.kinds import kind_of, snapshot_in

if TYPE_CHECKING:
    from simmodel.platform.broker import SystemSpec

__all__ = ["GivenPlatform", "platform_of"]

GivenPlatform: TypeAlias = (
    "SystemSpec | Snapshot | int | np.integer | str | Path"
    " | Mapping[str, GivenPlatform] | Iterable[GivenPlatform] | None"
)
"""Accepted platforms: a spec of any kind of system, a number of processors, the name of a bundled platform or a file;
several of these, by name or as a list (a broker); a snapshot; ``None`` (the cluster that the log was recorded on)."""


def platform_of(given: GivenPlatform) -> SystemSpec | Snapshot | None:
    """Return the spec or the snapshot of a given platform; ``None`` stays ``None``.

    Raises
    ------
    InputError
        if it is anything else

    >>> platform_of(16).processors
    16
    >>> list(platform_of({"a": 4, "b": 8}).places)
    ['a', 'b']
    """
    if given is None or _described(given):
        return given
    if (snapshot := snapshot_in(given)) is not None:
        return snapshot
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given <= 0:
            raise InputError(f"must be a number of processors > 0, got {given}", place="platform")
        return ClusterSpec.simple(int(given))
    if isinstance(given, (str, Path)):
        from simmodel.catalogue import load_platform  # imports all file readers, so only when needed

        read: SystemSpec = load_platform(given)
        return read
    if isinstance(given, Mapping):
        from simmodel.platform.broker import BrokerSpec

        return BrokerSpec(places={str(name): _place(each) for name, each in given.items()})
    if isinstance(given, Iterable):
        specs = [_place(each) for each in given]
        own = [str(spec.name) for spec in specs]
        names = own if len(set(own)) == len(own) > 1 else [f"c{i}" for i in range(1, len(own) + 1)]
        from simmodel.platform.broker import BrokerSpec

        return BrokerSpec(places=dict(zip(names, specs, strict=True)))
    raise InputError(f"must be a spec, a number of processors, a name or a path, got {given!r}", place="platform")


def _described(given: object) -> TypeGuard[SystemSpec]:
    return kind_of(given) is not None


def _place(given: GivenPlatform) -> SystemSpec:
    found = platform_of(given)
    if not _described(found):
        raise InputError(f"must be a spec, a number of processors, a name or a path, got {given!r}", place="platform")
    return found
