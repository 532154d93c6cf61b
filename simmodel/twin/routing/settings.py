"""The configuration of a router: the clusters that take submissions, and where their twins answer."""

from __future__ import annotations

from pathlib import Path

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.loading import parse_toml, read_bytes
from simmodel.platform.strict import strict_converter

__all__ = ["RouteSettings", "RoutedCluster", "read_route"]


@attrs.frozen(kw_only=True, repr=False)
class RoutedCluster(Fields):
    """A cluster that takes submissions.

    Parameters
    ----------
    name
        its name
    conf
        path of its slurm.conf
    port
        the port on this machine at which its twin serves; default: its twin is never asked
    commands
        the folder of its ``sbatch``; default: on the path
    """

    name: str
    conf: str
    port: int | None = None
    commands: str | None = None


@attrs.frozen(kw_only=True, repr=False)
class RouteSettings(Fields):
    """Clusters among which submissions are routed.

    Parameters
    ----------
    default
        the name of the cluster that takes the jobs for which no twin has an answer
    clusters
        the clusters; of equal ones the first is chosen
    patience
        the longest time (s) that the twins have for their answers
    timeout
        the longest time (s) of a command of Slurm

    Raises
    ------
    InputError
        there is no cluster, two have the same name, or the default is none of them

    >>> RouteSettings(default="b", clusters=(RoutedCluster(name="a", conf="/etc/slurm/slurm.conf"),))
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: default: unknown cluster 'b'; known clusters: a
    """

    default: str
    clusters: tuple[RoutedCluster, ...]
    patience: float = 0.1
    timeout: float = 30.0

    def __attrs_post_init__(self) -> None:
        names = [cluster.name for cluster in self.clusters]
        if len(set(names)) < len(names):
            raise InputError(f"must have different names, got {', '.join(names)}", place="clusters")
        if self.default not in names:
            raise InputError(unknown("cluster", self.default, names).message, place="default")
        for name in ("patience", "timeout"):
            if not getattr(self, name) > 0:
                raise InputError(f"must be a number > 0 (s), got {getattr(self, name)!r}", place=name)


def read_route(path: str | Path) -> RouteSettings:
    """Return the configuration in a TOML file; relative paths in it are those of its folder.

    Raises
    ------
    InputError
        the file is missing or no TOML, a key is unknown or missing, or a value is invalid
    """
    values, source = parse_toml(*read_bytes(path)), str(path)
    try:
        found: RouteSettings = strict_converter().structure(values, RouteSettings)
    except InputError as error:
        raise InputError(error.message, source, error.place) from None
    folder = Path(path).parent
    clusters = tuple(attrs.evolve(each, conf=str(folder / each.conf)) for each in found.clusters)
    return attrs.evolve(found, clusters=clusters)
