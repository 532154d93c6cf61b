"""Sources of events: recorded logs, files and streams of JSON, schedulers.

Each kind has a class of settings: an attrs class whose fields are the keys of the table ``[source]`` in a configuration
(besides ``kind``), and which opens the source. Packages add kinds as entry points of the group ``simmodel.sources``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError, Plain, shown, unknown
from simmodel.platform.strict import strict_converter

if TYPE_CHECKING:
    from datetime import tzinfo

    from simmodel.twin.acting.actions import Hands, Mode
    from simmodel.twin.described import Described
    from simmodel.twin.source import Source

__all__ = ["SOURCES", "ActingSource", "DescribingSource", "SourceSettings", "source_settings"]


class SourceSettings(Protocol):
    """The settings of a source: an attrs class of plain fields."""

    def open(self, cluster: str, folder: Path) -> Source:
        """Return the source of a cluster; relative paths are those of the folder of the configuration."""
        ...


@runtime_checkable
class ActingSource(Protocol):
    """The settings of a source whose scheduler takes commands."""

    def hands(self, mode: Mode, *, restoring: bool = False) -> Hands:
        """Return the interface that acts on the scheduler in a mode; ``restoring``: one that gives everything back."""
        ...


@runtime_checkable
class DescribingSource(Protocol):
    """The settings of a source whose scheduler describes its cluster."""

    def describe(
        self, paths: Iterable[str | Path] = (), *, local: tzinfo | None = None, origin: float = 0.0
    ) -> Described:
        """Return the platform of the cluster, from saved answers or else from the scheduler's answers now.

        Parameters
        ----------
        paths
            files and folders of answers
        local
            the zone of times in answers; default: that of this computer
        origin
            the instant, in seconds since 1970, that is 0 in simulations
        """
        ...


SOURCES: Entries[Any] = Entries(
    {
        "lines": "simmodel.twin.sources.lines:LinesSettings",
        "log": "simmodel.twin.sources.log:LogSettings",
        "redis": "simmodel.twin.sources.stream:StreamSettings",
        "pbs": "simmodel.twin.pbs.source:PbsSettings",
        "slurm": "simmodel.twin.slurm.source:SlurmSettings",
    },
    "simmodel.sources",
)
"""The classes of settings by kind of source."""


def source_settings(values: Mapping[str, Plain]) -> SourceSettings:
    """Return the settings of a source from plain values with its ``kind``.

    Raises
    ------
    InputError
        the kind or a key is unknown, a key is missing, or a value is invalid

    >>> source_settings({"kind": "lines", "path": "events.jsonl"})
    LinesSettings(path='events.jsonl')
    >>> source_settings({"kind": "lines", "pth": "events.jsonl"})
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: pth: unknown key 'pth'; did you mean 'path'? Known keys: path, follow
    """
    given = dict(values)
    kind = given.pop("kind", None)
    if kind is None:
        raise InputError(f"missing key; known sources: {', '.join(SOURCES)}", place="kind")
    if not isinstance(kind, str) or kind not in SOURCES:
        raise InputError(
            unknown("source", kind if isinstance(kind, str) else shown(kind), SOURCES).message, None, "kind"
        )
    found: SourceSettings = strict_converter().structure(given, SOURCES[kind])
    return found
