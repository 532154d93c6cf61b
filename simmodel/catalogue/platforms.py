"""Platforms by name (bundled with the package) or by file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, Any

from simmodel.catalogue.bundled import bundled_file, bundled_names
from simmodel.formats.cgsim import read_cgsim
from simmodel.formats.hetsim import read_hetsim
from simmodel.formats.openb import read_openb_nodes
from simmodel.formats.simgrid import read_simgrid
from simmodel.foundation.entries import load
from simmodel.foundation.errors import unknown
from simmodel.foundation.loading import decode, held, peek, source_name
from simmodel.foundation.packages import offered
from simmodel.platform.toml import read_toml

__all__ = ["GROUP", "load_platform", "platform_names"]

GROUP = "simmodel.platforms"
"""The entry points by which packages add ready platforms: each is a platform, or a function that returns one."""


def platform_names() -> list[str]:
    """Return the names of the bundled platforms, sorted.

    >>> "kth-sp2" in platform_names()
    True
    """
    return bundled_names("platforms")


def load_platform(name_or_path: str | Path, *, trust: bool = False, machine: bool = False) -> Any:
    """Return a bundled platform by name, or read a platform from a file.

    Parameters
    ----------
    name_or_path
        one of ``platform_names()``, a name that another package adds (:data:`GROUP`), or the path of a TOML file, of a
        platform of SimGrid or HetSim (``.xml``, ``.xml.gz``; told apart by the root element), of a configuration of
        CGSim (``.json``) or of the nodes of openb (``.csv``). The hosts of SimGrid are the nodes of a cluster or the
        sites of a grid (:class:`~simmodel.formats.simgrid.SimGridPlatform`)
    machine
        whether the hosts of a platform of SimGrid are the processors of a machine, for tasks
    trust
        whether the custom processors of a file may be ``module:Class``, which imports code

    Raises
    ------
    InputError
        the name or file is unknown, or the file does not describe a platform

    >>> theta = load_platform("theta")
    >>> theta.processors
    4360
    >>> load_platform("tetha")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: unknown platform 'tetha'; did you mean 'theta'? Known platforms: ...
    """
    bundled = bundled_file("platforms", name_or_path) if isinstance(name_or_path, str) else None
    if bundled is not None:
        return _read(bundled, trust, machine)
    path = Path(name_or_path)
    if isinstance(name_or_path, str) and not re.search(r"[/\\.]|^-$", name_or_path) and not path.is_file():
        others = offered(GROUP)
        if name_or_path not in others:
            raise unknown("platform", name_or_path, [*platform_names(), *others])
        found: Any = load(others[name_or_path])
        return found() if callable(found) else found
    return _read(held(path), trust, machine)


def _read(file: Path | IO[bytes], trust: bool, machine: bool) -> Any:
    named = source_name(file).lower()
    if named.endswith((".xml", ".xml.gz")) or (not isinstance(file, Path) and peek(file).lstrip()[:1] == b"<"):
        if not _begins_as_simgrid(file):
            return read_hetsim(file)
        found = read_simgrid(file)
        return found.machine if machine else found.spec
    if named.endswith((".json", ".json.gz")):
        return read_cgsim(file).grid
    if named.endswith((".csv", ".csv.gz")):
        return read_openb_nodes(file)
    return read_toml(file, trust=trust)


def _begins_as_simgrid(file: Path | IO[bytes]) -> bool:
    """Return whether the root element of an XML file is that of SimGrid's platforms."""
    if isinstance(file, Path) and not file.is_file():
        return False
    start = re.search(r"<([A-Za-z_][\w.-]*)", re.sub(r"(?s)<!--.*?(-->|$)", "", decode(peek(file))))
    return start is not None and start[1] == "platform"
