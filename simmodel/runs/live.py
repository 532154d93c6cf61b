"""A run that is watched: its page in a browser while it lasts, with its controls.

A server of this machine alone (``127.0.0.1``) hands the page out under an address with a random part. At the end of an
instant the run says what it is doing, once a second, and makes the whole page anew; both take at most a twentieth of
the time. Nobody watches: then it does neither.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from secrets import token_urlsafe
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from simmodel.foundation.errors import InputError
from simmodel.metrics.report import duration
from simmodel.records.job_record import AGAIN
from simmodel.scheduling.observer import Observer
from simmodel.view.page.document import live_document

if TYPE_CHECKING:
    from simmodel.resources.processors.taskplace import TaskPlace
    from simmodel.systems.system import System
    from simmodel.work.job import LiveJob, Run
    from simmodel.work.livetask import LiveTask

__all__ = ["LiveView"]

_HOST = "127.0.0.1"
_SHARE = 0.05  # of the time, at most, goes into whole pages
_LINGER = 10.0  # s that the server waits for those who watch to have seen the end
_AFTER_ALL = 2_000_000  # rank at the end of an instant: after the check whether the run is over


class Watched(Protocol):
    """A simulation: a system that runs, with its name and its result so far."""

    system: System[Any]
    name: str | None

    def result(self) -> Any:
        """Return the result so far."""
        ...


class LiveView(Observer):
    """The page of a simulation while it runs; made by :meth:`.Simulation.serve`, closed at the end of its ``with``.

    Parameters
    ----------
    simulation
        the simulation, which has not begun to run
    port
        of this machine; 0: any free one
    refresh
        seconds from one message to the next

    Attributes
    ----------
    url
        the address of the page
    page
        the number of the last whole page, and its data

    Raises
    ------
    InputError
        the port is taken or is none, or the refresh is not positive
    """

    def __init__(self, simulation: Watched, port: int = 0, refresh: float = 1.0) -> None:
        if not refresh > 0:
            raise InputError(f"must be a number of seconds > 0, got {refresh!r}", place="refresh")
        self._simulation = simulation
        self._system = simulation.system
        self._refresh = refresh
        self._changed = Condition()
        self._watching = 0
        self._next = 0.0
        self._page_at = 0.0  # the whole page is made no sooner
        self.page = 0, b""
        self._page_of: tuple[float, int] | None = None
        self._ended = self._beats = 0
        self._begun = float(simulation.system.env.now)
        self._message = b""
        self._said = 0  # number of the message
        self._paused = self._step = self._stopped = self._over = False
        self._urgent = False  # whether each event is looked at, whatever the clock says
        self._speed: float | None = None
        self._paced = monotonic(), float(simulation.system.env.now)
        self._seen = 0
        self.token = token_urlsafe(16)
        handler = type("Handler", (_Handler,), {"live": self})
        try:
            self._server = ThreadingHTTPServer((_HOST, port), handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise InputError(f"must be a free port, got {port!r} ({reason})", place="port") from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://{_HOST}:{self.port}/{self.token}/"
        self._end = self._system.env.at_instant_end(self._pulse, rank=_AFTER_ALL)
        self._system.env.observe(self)
        Thread(target=self._server.serve_forever, args=(0.05,), name="live", daemon=True).start()

    def __repr__(self) -> str:
        return f"<LiveView {self.url}>"

    # ------------------------------------------------------------------ in the run

    def job_started(self, _run: Run, /) -> None:
        """Look at the clock."""
        self._look()

    def job_ended(self, _run: Run, status: str, /) -> None:
        """Count the job, and look at the clock."""
        self._ended += status not in AGAIN
        self._look()

    def task_ended(self, _task: LiveTask, _place: TaskPlace, _stamps: Sequence[float], /) -> None:
        """Count the task, and look at the clock."""
        self._ended += 1
        self._look()

    def job_submitted(self, _job: LiveJob, /) -> None:
        """Look at the clock."""
        self._look()

    def _look(self) -> None:
        """Request a pulse at the end of this instant, if it is time for one or the run is held back."""
        if self._urgent or monotonic() >= self._next:
            self._end()

    def _pulse(self) -> None:
        """Say what the run is doing; wait while it is paused or ahead of its speed; end it if that was asked for."""
        self._beats += 1
        if self._step:
            self._step, self._paused = False, True
        begun = monotonic()
        if self._watching or self._paused:
            self._say()
        said = monotonic() - begun
        while not self._stopped and (wait := self._held_for()) > 0:
            if self._paused and self._watching:
                self._say(page=True)
            with self._changed:
                self._changed.wait(min(wait, self._refresh))
        self._next = monotonic() + max(self._refresh, said / _SHARE)
        with self._changed:  # a command may come at any moment
            self._urgent = self._step or self._paused or self._stopped or self._speed is not None
        if self._stopped:
            self._stopped = False
            self._system.env.leave()

    def _held_for(self) -> float:
        """Return for how long the run waits now (s)."""
        if self._step:
            return 0.0
        if self._paused:
            return self._refresh
        if self._speed is None:
            return 0.0
        begun, since = self._paced
        return begun + (float(self._system.env.now) - since) / self._speed - monotonic()

    def _say(self, *, page: bool = False) -> None:
        """Publish a message, and the whole page if it is asked for or due."""
        begun = monotonic()
        if self._watching and (begun >= self._page_at or (page and self._page_of != self._state_number())):
            self.page = self.page[0] + 1, self._simulation.result().page().data()
            self._page_of = self._state_number()
            self._page_at = monotonic() + max(5 * self._refresh, (monotonic() - begun) / _SHARE)
        message = json.dumps(self.state()).encode()
        if message != self._message:
            with self._changed:
                self._message = message
                self._said += 1
                self._changed.notify_all()

    def _state_number(self) -> tuple[float, int]:
        return float(self._system.env.now), self._system.version

    def state(self) -> dict[str, Any]:
        """Return what the run is doing: instant, cores in use, jobs, and (name, in use, all) of each place."""
        system = self._system
        places = [(str(each.name), int(each.capacity - each.free), int(each.capacity)) for each in system.places]
        waiting = sum(len(each.view.waiting) for each in system.all_below())
        now = float(system.env.now)
        return {
            "now": now,
            "clock": duration(now - self._begun),
            "used": sum(used for _, used, _ in places),
            "capacity": sum(size for *_, size in places),
            "running": len(system.view.running),
            "waiting": waiting,
            "ended": self._ended,
            "beat": self._beats,
            "places": places,
            "version": self.page[0],
            "paused": self._paused,
            "over": self._over,
        }

    # ------------------------------------------------------------------ from those who watch

    def act(self, what: str, value: object = None) -> bool:
        """Take a command, and return whether it is one.

        Parameters
        ----------
        what
            ``pause``, ``go``, ``step`` (to the next event), ``speed``, ``stop``, or ``seen``: the last page
        value
            of a speed: simulated seconds a second; ``None``: as fast as it can
        """
        with self._changed:
            if what == "pause":
                self._paused = True
            elif what == "go":
                self._paused = False
                self._paced = monotonic(), float(self._system.env.now)
            elif what == "step":
                self._paused, self._step = False, True
            elif what == "stop":
                self._stopped = True
            elif what == "seen":
                self._seen += 1
            elif what == "speed" and (value is None or (isinstance(value, (int, float)) and value > 0)):
                self._speed = None if value is None else float(value)
                self._paced = monotonic(), float(self._system.env.now)
            else:
                return False
            self._urgent = True
            self._changed.notify_all()
            return True

    def messages(self) -> Any:
        """Yield each message from now on, and ``None`` when there has been none for a while."""
        said = 0
        with self._changed:
            self._watching += 1
            self._next = 0.0
        try:
            while True:
                with self._changed:
                    if self._said == said:
                        self._changed.wait(self._refresh)
                    message = None if self._said == said else self._message
                    said = self._said
                yield message
                if self._over and message is not None:
                    return
        finally:
            with self._changed:
                self._watching -= 1

    @property
    def title(self) -> str:
        """The title of the page."""
        return self._simulation.name or repr(self._system)

    def close(self, *, wait: bool = True) -> None:
        """Publish the last page, wait a little for those who watch to have it, and end the server."""
        if self._watching and wait:
            self._over = True
            self._page_at, watched = 0.0, self._watching
            self._say()
            until = monotonic() + _LINGER
            with self._changed:
                while self._seen < watched and (left := until - monotonic()) > 0:
                    self._changed.wait(left)
        self._over, self._next, self._speed, self._urgent = True, inf, None, False
        self._paused = self._step = self._stopped = False
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(wait=kind is None)


class _Handler(BaseHTTPRequestHandler):
    """Answers those who know the address, on this machine, by its name."""

    live: ClassVar[LiveView]
    timeout = 30.0
    server_version = "simmodel"
    sys_version = ""
    protocol_version = "HTTP/1.0"

    def _asked(self) -> str | None:
        """Return the page that is asked for; ``None``: refused."""
        host = self.headers.get("Host", "")
        here = {f"{_HOST}:{self.live.port}", f"localhost:{self.live.port}"}
        origin = self.headers.get("Origin")
        token, _, page = self.path.lstrip("/").partition("/")
        if host not in here or (origin is not None and origin.removeprefix("http://") not in here):
            self.send_error(HTTPStatus.FORBIDDEN, "unknown host")
        elif not compare_digest(token.encode(), self.live.token.encode()):
            self.send_error(HTTPStatus.NOT_FOUND, "no such page")
        else:
            return page
        return None

    def do_GET(self) -> None:
        """Answer with the page, its data or the messages."""
        page = self._asked()
        if page == "":
            self._send(live_document(self.live.title).encode(), "text/html; charset=utf-8")
        elif page == "data":
            version, data = self.live.page
            self._send(data, "application/octet-stream", version)
        elif page == "events":
            self._stream()
        elif page is not None:
            self.send_error(HTTPStatus.NOT_FOUND, "no such page")

    def do_POST(self) -> None:
        """Take a command: ``{"do": "pause"}``, go, step, stop, or ``{"do": "speed", "value": 60}``."""
        if self._asked() != "act":
            return
        try:
            size = min(int(self.headers.get("Content-Length", "0")), 1000)
            command = json.loads(self.rfile.read(size))
            known = isinstance(command, dict) and self.live.act(str(command.get("do")), command.get("value"))
        except ValueError:
            known = False
        self.send_response(HTTPStatus.NO_CONTENT if known else HTTPStatus.BAD_REQUEST)
        self.end_headers()

    def _send(self, data: bytes, kind: str, version: int = 0) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Version", str(version))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        messages = self.live.messages()
        try:
            for message in messages:
                self.wfile.write(b": still there\n\n" if message is None else b"data: " + message + b"\n\n")
                self.wfile.flush()
        except OSError:  # who watched has left
            pass
        finally:
            messages.close()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
