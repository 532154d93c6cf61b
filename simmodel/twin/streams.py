"""Events as entries of a Redis stream, and the writer of such entries.

The texts of the envelope (kind, cluster, job, status, partition, state, what) stand in an entry as they are, all other
values as JSON; an empty field counts as absent::

    XADD simmodel:alps * kind started cluster alps job 12 submit 17.0 time 18.5 nodes '[["n1", 4]]'
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError, clipped, optional_imports, shown
from simmodel.twin.events import Event, event_of
from simmodel.twin.redis_settings import RedisSettings

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["StreamWriter", "entry_of", "event_of_entry", "stream_key"]

_decode = json.JSONDecoder().raw_decode
_TEXTS = frozenset({"kind", "cluster", "job", "status", "partition", "state", "what"})


def stream_key(cluster: str) -> str:
    """Return the key of a cluster's stream unless another is given.

    >>> stream_key("alps")
    'simmodel:alps'
    """
    return f"simmodel:{cluster}"


def entry_of(event: Event) -> dict[str, str]:
    """Return an event as the fields of an entry.

    >>> from simmodel.twin import Started
    >>> entry_of(Started(cluster="alps", time=18.5, job="12", submit=17.0, nodes=(("n1", 4),)))
    {'kind': 'started', 'cluster': 'alps', 'time': '18.5', 'job': '12', 'submit': '17.0', 'nodes': '[["n1", 4]]'}
    """
    return {
        key: str(value) if key in _TEXTS else json.dumps(value)
        for key, value in event.document().items()
        if value is not None
    }


def event_of_entry(fields: Mapping[bytes, bytes], source: str | None = None, place: str | None = None) -> Event:
    """Return the event of an entry's fields.

    Parameters
    ----------
    fields
        as the server gives them
    source, place
        the stream and the entry, for errors

    Raises
    ------
    InputError
        they are no event

    >>> event_of_entry({b"kind": b"passed", b"cluster": b"alps", b"time": b"9", b"sequence": b""})
    Passed(cluster='alps', time=9.0)
    """
    document: dict[str, Any] = {}
    try:
        for name, value in fields.items():
            if value:
                key, text = name.decode(), value.decode()
                document[key] = text if key in _TEXTS else _json(text)
    except UnicodeDecodeError as error:
        raise InputError(f"must be UTF-8, got {shown(error.object)}", source, place) from None
    return event_of(document, source, place)


def _json(text: str) -> Any:
    """Return the value of a JSON text, and any other text as it is: the check of its field refuses it."""
    try:
        value, end = _decode(text)
        return value if end == len(text) else json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(text)  # with spaces before it
    except (ValueError, RecursionError):
        return text


class StreamWriter:
    """Appends events to a Redis stream, for programs that know them: simulations, replays, a scheduler's own scripts.

    Parameters
    ----------
    stream
        the key of the stream
    server
        where the server is and how to log in
    longest
        about how many entries the stream keeps; ``None``: all
    """

    def __init__(self, stream: str, server: RedisSettings | None = None, longest: int | None = None) -> None:
        self.stream = stream
        self.server = server or RedisSettings()
        self.longest = longest
        self._client: Redis | None = None

    def __repr__(self) -> str:
        return f"<StreamWriter {clipped(self.stream)} at {self.server.where}>"

    def write(self, *events: Event) -> list[str]:
        """Append events in their order, and return the ids of their entries.

        Raises
        ------
        InputError
            the server cannot be reached, or refuses it; some of the events may have been written
        """
        with optional_imports():
            from redis.exceptions import RedisError
        try:
            if self._client is None:
                self._client = self.server.client()
            pipe = self._client.pipeline(transaction=False)
            for event in events:
                pipe.xadd(self.stream, entry_of(event), maxlen=self.longest)  # type: ignore[arg-type]
            answers = pipe.execute(raise_on_error=False)
            if refused := next((each for each in answers if isinstance(each, Exception)), None):
                raise refused
            return [id.decode() for id in answers]
        except (RedisError, OSError) as error:
            refusal = self.server.refusal(error, self.stream, "+xadd")
            raise refusal or InputError(self.server.absence(error)) from None

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None
