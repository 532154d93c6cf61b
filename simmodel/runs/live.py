"""A run that is watched: its page in a browser while it lasts, with its controls.

A server of this machine alone (``127.0.0.1``) hands the page out under an address with a random part. Once a second
the thread of a watcher asks the run for its state, which it says at the end of an instant. The whole page is made at
the end, while the run is paused, on request, and otherwise when all whole pages together take at most a twentieth of
the time. Until then messages name the largest executions since the last one, and what was in use and waited at some
of the ends between. If nobody watches, the run counts the work that has ended, and does nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from heapq import heappush, heappushpop, nlargest
from hmac import compare_digest
from http import HTTPStatus
from math import inf
from operator import itemgetter
from secrets import token_urlsafe
from threading import Condition
from time import monotonic, process_time, thread_time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

from simmodel.foundation.errors import InputError
from simmodel.foundation.serving import HOST, LocalHandler, LocalServer
from simmodel.metrics.report import duration
from simmodel.records.job_record import AGAIN
from simmodel.scheduling.observer import Observer
from simmodel.view.page.document import live_document

if TYPE_CHECKING:
    from simmodel.resources.processors.taskplace import TaskPlace
    from simmodel.scheduling.protocol import Place
    from simmodel.systems.system import System
    from simmodel.work.job import Run
    from simmodel.work.live_job import LiveJob
    from simmodel.work.taskset import LiveTask

__all__ = ["Audience", "LiveView", "PageHandler"]

_SHARE = 0.05  # of the time, at most, goes into whole pages, and as much into messages
_A_ROW, _A_PLACE = 1e-5, 1e-3  # s that they add to a page, until one has been made
_LINGER = 10.0  # s that the server waits for those who watch to have seen the end
_DRAWN = 300  # executions of each kind that a message names: those that run, and those that have ended
_NAMED = 2000  # of more that run, messages name those alone that have ended
_SAMPLES, _SAMPLING = 200, 0.005  # instants of a message at most; share of the time, at most, that they take
_EVENTS = ("job_submitted", "job_started", "job_ended", "task_ended")
_AFTER_ALL = 2_000_000  # rank at the end of an instant: after the check whether the run is over


class Watched(Protocol):
    """A simulation: a system that runs, with its name and its result so far."""

    system: System[Any]
    name: str | None

    def result(self) -> Any:
        """Return the result so far."""
        ...


class Audience:
    """Those who watch a page: they get each message, and fetch the whole page when a message has a new version.

    Parameters
    ----------
    title
        the title of the page
    refresh
        seconds after which a watcher is told that there is nothing new

    Attributes
    ----------
    token
        the random part of the address
    """

    def __init__(self, title: str, refresh: float) -> None:
        self.title = title
        self.token = token_urlsafe(16)
        self._refresh = refresh
        self._changed = Condition()
        self._watching = 0
        self._message = b""
        self._said = 0  # number of the message
        self._last = -1  # number of the last message, once it has been sent
        self._gone = False  # whether the server has ended
        self._page = 0, b""

    @property
    def page(self) -> tuple[int, bytes]:
        """The number of the last whole page, and its data."""
        return self._page

    def publish(self, state: Mapping[str, Any]) -> None:
        """Send a message to those who watch."""
        message = json.dumps(state).encode()
        if message != self._message:
            with self._changed:
                self._message = message
                self._said += 1
                self._changed.notify_all()

    def _somebody_waits(self) -> None:
        """Called in the thread of a watcher who waits for a message."""

    def messages(self) -> Generator[bytes | None]:
        """Yield each message from now on, and ``None`` when there has been none for a while."""
        said = 0
        with self._changed:
            self._watching += 1
        try:
            while True:
                self._somebody_waits()
                with self._changed:
                    if self._said == said:
                        self._changed.wait(self._refresh)
                    message = None if self._said == said else self._message
                    said = self._said
                yield message
                if self._gone or said == self._last:
                    return
        finally:
            with self._changed:
                self._watching -= 1


class LiveView(Audience, Observer):
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
        super().__init__(simulation.name or repr(simulation.system), refresh)
        self._simulation = simulation
        self._system = simulation.system
        self._next = 0.0  # the run is asked for its state no sooner
        self._page_at = 0.0  # the whole page is made no sooner
        self._wanted = False  # whether it has been asked for
        self._spent = self._waited = 0.0  # s on whole pages; s that the run was held back
        self._cpu = process_time()
        self._each = _A_ROW, _A_PLACE  # s of a page by row and place
        self._page_of: tuple[float, int] | None = None
        self._ended = self._beats = 0
        self._largest: list[tuple[float, int, list[Any]]] = []  # a heap of executions since the last message
        self._samples: list[tuple[float, int, int]] = []  # instant, cores in use, and pieces of work that wait
        self._before = self._largest, self._samples
        self._sample_at, self._sampling = 0.0, False  # the next sample comes no sooner; whether one is due
        self._begun = float(simulation.system.env.now)
        self._paused = self._step = self._stopped = self._over = False
        self._end = self._system.env.at_instant_end(self._pulse, rank=_AFTER_ALL)  # threads of the server call it, too
        self._each_event = SimpleNamespace(
            **dict.fromkeys(_EVENTS, self._event)
        )  # observes while the run is held back or stepped through
        self._observing = self._fresh = False  # fresh: an event that it has seen is still to be told
        self._speed: float | None = None
        self._paced = monotonic(), float(simulation.system.env.now)
        self._seen = 0
        self._server = LocalServer(type("Handler", (_Handler,), {"live": self}), port, "live")
        self.port: int = self._server.server_address[1]
        self.url = f"http://{HOST}:{self.port}/{self.token}/"
        self._system.env.observe(self)

    def __repr__(self) -> str:
        return f"<LiveView {self.url}>"

    # ------------------------------------------------------------------ in the run

    def job_ended(self, run: Run, status: str, /) -> None:
        self._ended += status not in AGAIN
        if self._watching:
            self._execution(run.work, run.place, run.work.processors, run.started)

    def task_ended(self, task: LiveTask, place: TaskPlace, stamps: Sequence[float], /) -> None:
        self._ended += 1
        if self._watching:
            self._execution(task, place, task.cores, stamps[0])

    def _execution(self, work: LiveJob | LiveTask, place: TaskPlace | Place, width: float, started: float) -> None:
        """Keep an execution that ends now for the next message if it is among the largest."""
        now = float(self._system.env.now)
        area, full = width * (now - started), len(self._largest) >= _DRAWN
        if not full or area > self._largest[0][0]:
            entry = (area, self._ended, [str(work.id), str(place.name), int(width), started, now])
            (heappushpop if full else heappush)(self._largest, entry)
        if not self._sampling and monotonic() >= self._sample_at:
            self._sampling = True
            self._end()

    def _sample(self) -> None:
        """Keep for the next message what is in use and waits at the end of this instant."""
        self._sampling, begun = False, monotonic()
        used = sum(int(each.capacity - each.free) for each in self._system.places)
        self._samples.append((float(self._system.env.now), used, self._waiting()))
        took = monotonic() - begun
        self._sample_at = begun + max(self._refresh / _SAMPLES, took / _SAMPLING)

    def _waiting(self) -> int:
        return sum(len(each.view.waiting) for each in self._system.all_below())

    def _pulse(self) -> None:
        """Say what the run is doing; wait while it is paused or ahead of its speed; end it if that was asked for."""
        if self._gone:
            return
        if self._sampling:
            self._sample()
        due = self._paused or self._step or self._stopped or self._wanted or monotonic() >= self._next
        if not due and self._speed is None:
            return
        self._beats += 1
        if self._step and self._fresh:
            self._step, self._paused = False, True
        self._fresh = False
        if due and (self._watching or self._paused):
            self._say()
        began = monotonic()
        while not self._stopped and (wait := self._held_for()) > 0:
            if self._watching and (self._paused or monotonic() >= self._next):
                self._say(page=self._paused)
            with self._changed:
                self._changed.wait(min(wait, self._refresh))
        self._waited += monotonic() - began
        if self._stopped:
            self._stopped = False
            self._system.env.leave()
        self._observe_each(self._step or self._paused or self._speed is not None)

    def _event(self, *_: object) -> None:
        """Request a pulse at the end of an instant at which something has happened."""
        self._fresh = True
        self._end()

    def _observe_each(self, wanted: bool) -> None:
        if wanted is not self._observing:
            self._observing = wanted
            (self._system.env.observe if wanted else self._system.env.unobserve)(self._each_event)

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
        begun, spent = thread_time(), self._spent
        page = (page and self._page_of != self._state_number()) or self._wanted
        if self._watching and (page or (monotonic() >= self._page_at and self._affordable())):
            self._make_page()
        self.publish(self.state())
        self._before = self._largest, self._samples  # a message repeats the one before, which a watcher may have missed
        self._largest, self._samples = [], []
        said = thread_time() - begun - (self._spent - spent)
        self._next = monotonic() + max(self._refresh, said / _SHARE)

    def _affordable(self) -> bool:
        """Whether all whole pages would have taken at most a twentieth of the time with one made now."""
        row, place = self._each
        cost = row * self._system.submitted + place * len(self._system.places)
        return self._spent + cost <= _SHARE * (process_time() - self._cpu + self._waited)

    def _make_page(self) -> None:
        """Make the whole page, and learn what one costs."""
        begun = thread_time()
        self._wanted = False
        result = self._simulation.result()
        if not self._over:  # the scenario may have all jobs in it, and does not change
            result.scenario = {}
        self._page = self._page[0] + 1, result.page().data(level=1)
        self._page_of = self._state_number()
        cost = thread_time() - begun
        scale = cost / (_A_ROW * self._system.submitted + _A_PLACE * len(self._system.places))
        self._each = scale * _A_ROW, scale * _A_PLACE
        self._spent += cost
        self._page_at = monotonic() + 5 * self._refresh

    def _state_number(self) -> tuple[float, int]:
        return float(self._system.env.now), self._system.version

    def state(self) -> dict[str, Any]:
        """Return what the run is doing: instant, cores in use, jobs; (name, in use, all, waiting) of each place.

        The fourth is ``None`` for a place without a queue: a processor, whose tasks wait for the machine.
        """
        system = self._system
        queues = system.waiting_by_place()
        places = [
            (str(each.name), int(each.capacity - each.free), int(each.capacity), queues.get(str(each.name)))
            for each in system.places
        ]
        now = float(system.env.now)
        running = len(system.running)
        known = system.places if running <= _NAMED else ()
        widest = nlargest(_DRAWN, (entry for each in known for entry in each.running.entries()), key=itemgetter(2))
        return {
            "now": now,
            "begun": self._begun,
            "runs": [[str(run.work.id), str(run.place.name), width, run.started] for _, _, width, run in widest],
            "done": [execution for _, _, execution in sorted(self._before[0] + self._largest)],
            "curve": self._before[1] + self._samples,
            "clock": duration(now - self._begun),
            "used": sum(used for _, used, *_ in places),
            "capacity": sum(size for _, _, size, _ in places),
            "running": running,
            "waiting": self._waiting(),
            "ended": self._ended,
            "beat": self._beats,
            "places": places,
            "version": self._page[0],
            "controls": True,
            "paused": self._paused,
            "over": self._over,
        }

    # ------------------------------------------------------------------ from those who watch

    def act(self, what: str, value: object = None) -> bool:
        """Take a command, and return whether it is one.

        Parameters
        ----------
        what
            ``pause``, ``go``, ``step`` (to the next event), ``speed``, ``stop``, ``page``: a whole one now, or
            ``seen``: the last page
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
            elif what == "page":
                self._wanted = True
            elif what == "seen":
                self._seen += 1
            elif what == "speed" and (value is None or (isinstance(value, (int, float)) and value > 0)):
                self._speed = None if value is None else float(value)
                self._paced = monotonic(), float(self._system.env.now)
            else:
                return False
            self._end()
            self._changed.notify_all()
            return True

    def _somebody_waits(self) -> None:
        if monotonic() >= self._next and not self._over:
            self._end()

    def close(self, *, wait: bool = True) -> None:
        """Publish the last page, wait a little for those who watch to have it, and end the server."""
        if self._watching and wait and not self._over:
            self._over = True
            self._wanted, watched = True, self._watching
            self._say()
            self._last = self._said
            until = monotonic() + _LINGER
            with self._changed:
                while self._seen < watched and (left := until - monotonic()) > 0:
                    self._changed.wait(left)
        self._over, self._next, self._speed = True, inf, None
        self._paused = self._step = self._stopped = False
        if not self._gone:
            self._gone = True
            self._observe_each(False)
            self._system.env.unobserve(self)
            self._server.close()

    def stay(self) -> NoReturn:
        """Serve the page of the result, also to those who come only now, until Ctrl-C raises ``KeyboardInterrupt``."""
        self._over = True
        self._make_page()
        self.publish(self.state())
        with self._changed:
            while True:  # a Ctrl-C just before a wait without an end would be lost in it
                self._changed.wait(self._refresh)

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(wait=kind is None)


class PageHandler(LocalHandler):
    """Answers those who know the address of a page, on this machine, by its name."""

    live: ClassVar[Audience]
    timeout = 30.0
    protocol_version = "HTTP/1.0"

    def _asked(self) -> str | None:
        """Return the page that is asked for; ``None``: refused."""
        token, _, page = self.path.lstrip("/").partition("/")
        if not self.local():
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

    def _send(self, data: bytes, kind: str, version: int = 0) -> None:
        safe = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
        self.answer(HTTPStatus.OK, kind, data, {**safe, "X-Version": str(version)})

    def _stream(self) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        messages = self.live.messages()
        with suppress(OSError):  # who watched has left
            for message in messages:
                self.wfile.write(b": still there\n\n" if message is None else b"data: " + message + b"\n\n")
                self.wfile.flush()
        messages.close()


class _Handler(PageHandler):
    """Takes the commands of those who watch a run."""

    live: ClassVar[LiveView]

    def do_POST(self) -> None:
        """Take a command: ``{"do": "pause"}``, go, step, stop, page, or ``{"do": "speed", "value": 60}``."""
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
