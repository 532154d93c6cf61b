"""The protocol of sources: where the events of a scheduler outside come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from simmodel.twin.events import Event, StateReport
    from simmodel.twin.refused import Refused

__all__ = ["RemoteSource", "Source"]


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

        A :class:`~simmodel.twin.events.StateReport` among them gives the whole state: events may have been missed
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
