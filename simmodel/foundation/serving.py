"""Serve pages to this machine alone, for runs that are watched and for twins."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from simmodel.foundation.errors import InputError

__all__ = ["HOST", "LocalHandler", "LocalServer"]

HOST = "127.0.0.1"


class LocalServer(ThreadingHTTPServer):
    """An HTTP server at ``127.0.0.1``, which serves from the start; each request has a thread.

    Parameters
    ----------
    handler
        the class that answers requests
    port
        0: any free one
    name
        of its thread

    Raises
    ------
    InputError
        the port is taken or is none

    >>> with LocalServer(LocalHandler, 0, "example") as server:
    ...     print(server.server_address[0]); server.close()
    127.0.0.1
    """

    daemon_threads = True

    def __init__(self, handler: type[LocalHandler], port: int, name: str) -> None:
        try:
            super().__init__((HOST, port), handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise InputError(f"must be a free port, got {port!r} ({reason})", place="port") from None
        self._thread = Thread(target=self.serve_forever, args=(0.05,), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class LocalHandler(BaseHTTPRequestHandler):
    """Answers requests to this machine, and says nothing of them."""

    server_version = "simmodel"
    sys_version = ""

    def local(self) -> bool:
        """Whether the request calls this machine by its name, and comes from no page of another site."""
        assert isinstance(self.server, LocalServer)
        here = {f"{HOST}:{self.server.server_port}", f"localhost:{self.server.server_port}"}
        origin = self.headers.get("Origin")
        return self.headers.get("Host", "") in here and (origin is None or origin.removeprefix("http://") in here)

    def answer(self, status: HTTPStatus, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Send a whole answer; ``kind``: the type of its body."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
