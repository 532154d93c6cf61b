"""Streams of events on a Redis or Valkey server: how it is reached, the entries of a stream, and the writer of such.

The texts of the envelope (kind, cluster, job, status, partition, state, what) stand in an entry as they are, all other
values as JSON; an empty field counts as absent::

    XADD simmodel:alps * kind started cluster alps job 12 submit 17.0 time 18.5 nodes '[["n1", 4]]'
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from ssl import SSLCertVerificationError, SSLEOFError, SSLError, SSLSyscallError, SSLZeroReturnError
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import attrs

from simmodel import InputError
from simmodel.extending import Fields, clipped, optional_imports, shown
from simmodel_site.twin.events import Event, event_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis import Redis

__all__ = ["RedisSettings", "StreamWriter", "entry_of", "event_of_entry", "stream_key"]


_SCHEMES = ("redis", "rediss", "unix")
_LONGEST_PASSWORD = 4096


@attrs.frozen(kw_only=True, repr=False)
class RedisSettings(Fields):
    """The address of a Redis or Valkey server and how to log in there; it holds no password.

    Parameters
    ----------
    url
        ``redis://HOST:PORT``, ``rediss://HOST:PORT`` with TLS, or ``unix:///PATH``
    user
        the user of the server's access control list; ``None``: its default user
    password_file
        a file with the password as its first line, which others than its owner and group must not be able to read
    password_variable
        the environment variable that holds the password if there is no file; ``None``: none does
    ca_file
        the certificates of the authorities to trust instead of the system's (TLS)
    certificate_file, key_file
        the own certificate and its key, if the server asks for one (TLS)
    timeout
        how long (s) an answer may take

    >>> RedisSettings(url="rediss://redis.example:6380", user="twin").where
    'rediss://redis.example:6380'
    >>> RedisSettings(url="redis://twin:secret@redis.example")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: url: must not hold a password; put it into password_file or ...
    """

    url: str = attrs.field(default="redis://127.0.0.1:6379")
    user: str | None = None
    password_file: str | None = None
    password_variable: str | None = "SIMMODEL_REDIS_PASSWORD"
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    timeout: float = attrs.field(default=5.0)

    @url.validator
    def _check_url(self, _attribute: object, _url: str) -> None:
        parts = self._parts()
        if parts.password is not None:
            raise InputError(
                f"must not hold a password; put it into password_file or {self.password_variable}", place="url"
            )
        if parts.username is not None:
            raise InputError("must not hold a user; give it as user", place="url")

    @timeout.validator
    def _check_timeout(self, _attribute: object, timeout: float) -> None:
        if not 0.1 <= timeout <= 3600:
            raise InputError(f"must be a number from 0.1 to 3600 (s), got {timeout!r}", place="timeout")

    def _parts(self) -> SplitResult:
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in _SCHEMES and (parts.path if parts.scheme == "unix" else parts.hostname)
            if known and (parts.port is None or parts.port > 0):
                return parts
        except ValueError:
            pass
        # The text is not shown: it may hold a password
        raise InputError("must be redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH", place="url")

    @property
    def where(self) -> str:
        """The address for messages."""
        return clipped(self.url)

    def client(self, *, alone: bool = False) -> Redis:
        """Return a client that asks each time once, and reads the password anew for each connection.

        ``alone``: it is used by one thread and connects at once, so that commands cost a third less.

        Raises
        ------
        InputError
            no password can be read for the user
        MissingExtra
            redis is not installed
        """
        with optional_imports():
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        parts = self._parts()
        options: dict[str, Any] = {
            "protocol": 2,
            "socket_timeout": self.timeout,
            "socket_connect_timeout": self.timeout,
            "retry": Retry(NoBackoff(), 0),
            "single_connection_client": alone,
        }
        if self._password() is not None:
            options["credential_provider"] = _credentials(self.user, self._password)
        elif self.user is not None:
            raise InputError(
                f"password of user {self.user!r}: must be in password_file or in the environment as "
                f"{self.password_variable}, found none",
                self.where,
            )
        if parts.scheme == "unix":
            return redis.Redis(unix_socket_path=parts.path, **options)
        if parts.scheme == "rediss":
            for name in ("ca_file", "certificate_file", "key_file"):
                _check_readable(name, getattr(self, name))
            options |= {
                "ssl": True,
                "ssl_check_hostname": True,
                "ssl_ca_certs": self.ca_file,
                "ssl_certfile": self.certificate_file,
                "ssl_keyfile": self.key_file,
            }
        return redis.Redis(host=parts.hostname or "", port=parts.port or 6379, **options)

    def _password(self) -> str | None:
        """Return the password as it stands now."""
        if self.password_file is None:
            return (os.environ.get(self.password_variable) or None) if self.password_variable is not None else None
        _check_readable("password_file", self.password_file)
        mode = Path(self.password_file).stat().st_mode
        with open(self.password_file, encoding="utf-8", errors="replace") as file:
            line = file.readline(_LONGEST_PASSWORD).rstrip("\r\n")
        if mode & 0o007:
            problem = f"must be closed to others (chmod o-rwx), got mode {mode & 0o777:03o}"
            raise InputError(problem, self.password_file, "password_file")
        if not line:
            raise InputError("must have the password as its first line, found none", self.password_file)
        return line

    def refusal(self, error: Exception, key: str, rights: str) -> InputError | None:
        """Return the sentence for an answer that asking again does not change; ``None``: the server is just away.

        Parameters
        ----------
        error
            the error that the client raised
        key
            the stream that was asked for
        rights
            the rights that the access control list must give on it
        """
        import redis

        who = f"user {self.user!r}" if self.user else "the default user"
        if isinstance(error, InputError):
            return error
        if isinstance(error, redis.exceptions.NoPermissionError):
            needed = f"must have the rights {rights} on the key {clipped(key)!r}; the server: {clipped(error, 120)}"
            return InputError(needed, self.where, who)
        if isinstance(error, redis.exceptions.AuthenticationError):
            return InputError(
                f"wrong user or password, or none given; the server: {clipped(error, 120)}", self.where, who
            )
        for each in _causes(error):
            if isinstance(each, SSLCertVerificationError):
                return InputError(f"the certificate of the server is not valid: {each.verify_message}", self.where)
            if isinstance(each, SSLError) and not isinstance(each, SSLEOFError | SSLZeroReturnError | SSLSyscallError):
                return InputError(f"TLS cannot begin: {clipped(each, 120)}", self.where)
        if isinstance(error, redis.exceptions.ConnectionError | redis.exceptions.TimeoutError | OSError):
            return None
        return InputError(f"cannot use the stream {clipped(key)!r}: {clipped(error, 120)}", self.where)

    def absence(self, error: Exception) -> str:
        """Return the sentence for a server that is away."""
        import redis

        if isinstance(error, redis.exceptions.TimeoutError):
            return f"{self.where}: no answer within {self.timeout:g} s"
        return f"{self.where}: not reachable: {clipped(error, 120)}"


def _check_readable(name: str, path: str | None) -> None:
    try:
        if path is not None:
            with open(path, "rb") as file:
                file.read(1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise InputError(f"must be a readable file ({reason})", path, name) from None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _credentials(user: str | None, password: Callable[[], str | None]) -> Any:
    """Return the provider of user and password for each new connection, so that no object keeps the password."""
    from redis.credentials import CredentialProvider

    class Credentials(CredentialProvider):
        """The user, and the password as it stands when a connection is made."""

        def get_credentials(self) -> tuple[str] | tuple[str, str]:
            found = password() or ""
            return (found,) if user is None else (user, found)

    return Credentials()


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

    >>> from simmodel_site.twin import Started
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
