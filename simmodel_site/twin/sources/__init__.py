"""Sources of events: their protocol, and the kinds: recorded logs, files and streams of JSON, schedulers.

Each kind has a class of settings: an attrs class whose fields are the keys of the table ``[source]`` in a configuration
(besides ``kind``), and which opens the source. Packages add kinds as entry points of the group ``simmodel.sources``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from simmodel import InputError
from simmodel.extending import Entries, Plain, shown, strict_converter, unknown

if TYPE_CHECKING:
    from datetime import tzinfo

    from simmodel_site.twin.acting.actions import Hands, Mode
    from simmodel_site.twin.described import Described
    from simmodel_site.twin.events import Event, StateReport

__all__ = [
    "SOURCES",
    "ActingSource",
    "AnsweringSource",
    "DescribingSource",
    "Refused",
    "RemoteSource",
    "Source",
    "SourceSettings",
    "source_settings",
]

MOST = 100  # different sentences that are kept of refusals; hostile input can make any number of them


class Refused(Counter[str]):
    """Counts of refusals, by the sentence that says why; beyond 100 sentences they count as ``others``.

    >>> refused = Refused()
    >>> refused.count("must be one JSON object, got 'x'")
    >>> refused.count("must be one JSON object, got 'x'")
    >>> refused.total(), refused.last
    (2, "must be one JSON object, got 'x'")
    """

    last: str = ""
    """The last sentence."""

    def count(self, why: object) -> None:
        self.last = str(why)
        self[self.last if self.last in self or len(self) < MOST else "others"] += 1


@runtime_checkable
class Source(Protocol):
    """Where events come from; a user's own class needs these methods.

    A source never changes the scheduler that it reads.

    Attributes
    ----------
    cluster
        the name of the cluster that it follows
    refused
        malformed input, counted by sentence
    """

    cluster: str
    refused: Refused

    def report(self) -> StateReport | None:
        """Return the full state as of now; ``None`` if the source has events alone."""
        ...

    def events(self, timeout: float) -> Iterable[Event]:
        """Return the events since the last call, waiting at most ``timeout`` seconds for the first.

        A :class:`~simmodel_site.twin.events.StateReport` among them gives the whole state: events may have been missed
        before it.
        """
        ...

    def position(self) -> str | None:
        """Return the place in the source up to which events were returned, for :meth:`resume`."""
        ...

    def resume(self, position: str | None) -> None:
        """Continue after a position; ``None``: from the beginning."""
        ...

    @property
    def over(self) -> bool:
        """Whether no more events can come: a recorded source has ended."""
        ...

    def close(self) -> None:
        """Let go of connections and files."""
        ...


@runtime_checkable
class RemoteSource(Source, Protocol):
    """A source that reads a server, which may be away: the status of the twin says so."""

    @property
    def trouble(self) -> str | None:
        """Why nothing can be read now, in one sentence; ``None``: it can."""
        ...

    def check(self) -> Sequence[str]:
        """Return sentences on the data that are read, and on the rights of the source there.

        Raises
        ------
        SimmodelError
            the server cannot be reached, or refuses the rights that the source needs
        """
        ...

    @property
    def gaps(self) -> int:
        """How often events were missing, so that a full report was needed."""
        ...


@runtime_checkable
class AnsweringSource(Protocol):
    """A source that notes when its server answered last: the health of the twin falls with the age of that."""

    def last_answer(self) -> tuple[float, float]:
        """Return when the last good answer came (s, :func:`time.monotonic`) and within how many seconds one is due."""
        ...


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
        "lines": "simmodel_site.twin.sources.lines:LinesSettings",
        "log": "simmodel_site.twin.sources.log:LogSettings",
        "redis": "simmodel_site.twin.sources.stream:StreamSettings",
        "pbs": "simmodel_site.twin.pbs.source:PbsSettings",
        "slurm": "simmodel_site.twin.slurm.source:SlurmSettings",
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
