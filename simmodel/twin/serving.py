"""The status of a running twin as JSON and as metrics for Prometheus, on this machine alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from simmodel.foundation.errors import InputError, SimmodelError, clipped, optional_imports
from simmodel.twin.logs import Log

if TYPE_CHECKING:
    from types import TracebackType

    from prometheus_client.core import Metric

    from simmodel.foundation.errors import Plain
    from simmodel.twin.status import Health, Status

__all__ = ["StatusServer", "asked", "metrics_of"]

_HOST = "127.0.0.1"
_PREFIX = "simmodel_twin_"
_LARGEST = 1 << 24  # bytes of a status


class StatusServer:
    """Serves the status of a twin at ``127.0.0.1``.

    ======================  =========================================================================
    ``/`` or ``/status``    the status as JSON, with ``health`` and ``age`` (s), the time since it was shown
    ``/health``             ``ok`` or ``starting`` with 200, ``degraded`` or ``stale`` with 503
    ``/metrics``            metrics in Prometheus' text format
    ``/turnaround?...``     when a job would end: see :class:`~simmodel.twin.routing.turnaround.Turnarounds`
    ======================  =========================================================================

    The twin shows a status whenever it likes; requests are answered by threads of the server's own from the last one.

    Parameters
    ----------
    status
        the first status
    port
        0: any free port, see :attr:`port`
    stale
        seconds without a new status after which the health is ``stale``: the twin hangs
    clock
        the clock (s) that gives the age
    answers
        answers questions, JSON objects that stand behind ``?`` of ``/turnaround``: when a job would end. Default: none

    Raises
    ------
    InputError
        the port is taken or is none
    """

    def __init__(
        self,
        status: Status,
        port: int = 0,
        *,
        stale: float = 60.0,
        clock: Callable[[], float] = monotonic,
        answers: Callable[[Mapping[str, Any]], Mapping[str, Plain]] | None = None,
    ) -> None:
        self.answers = answers
        self._clock = clock
        self._stale = stale
        self._shown = (status, clock())
        handler = type("Handler", (_Handler,), {"pages": self})
        try:
            self._server = ThreadingHTTPServer((_HOST, port), handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise InputError(f"must be a free port, got {port!r} ({reason})", place="port") from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="status", daemon=True)
        self._thread.start()
        Log("serving", cluster=status.cluster).info("the status is served", address=f"http://{_HOST}:{self.port}")

    def __repr__(self) -> str:
        return f"<StatusServer http://{_HOST}:{self.port}>"

    def show(self, status: Status) -> None:
        """Serve this status from now on."""
        self._shown = (status, self._clock())

    def seen(self) -> tuple[Status, Health, float]:
        """Return the last status, the health and the age (s) of the status."""
        status, at = self._shown
        age = max(0.0, self._clock() - at)
        return status, "stale" if age > self._stale else status.health, age

    def document(self) -> dict[str, Plain]:
        """Return the status as ``/status`` serves it."""
        status, health, age = self.seen()
        return status.document() | {"health": health, "age": round(age, 3)}

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> StatusServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the pages of a server."""

    pages: ClassVar[StatusServer]
    timeout = 5.0  # of a client that sends nothing
    server_version = "simmodel"
    sys_version = ""

    def do_GET(self) -> None:
        path, _, question = self.path.partition("?")
        if path in ("/", "/status"):
            self._answer(HTTPStatus.OK, "application/json", json.dumps(self.pages.document(), indent=2) + "\n")
        elif path == "/health":
            health = self.pages.seen()[1]
            well = health in ("ok", "starting")
            self._answer(HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{health}\n")
        elif path == "/metrics":
            text, kind = metrics_of(*self.pages.seen())
            self._answer(HTTPStatus.OK, kind, text)
        elif path == "/turnaround" and self.pages.answers is not None:
            try:
                asked = json.loads(unquote(question))
                found = self.pages.answers(asked) if isinstance(asked, dict) else {"error": "must be a JSON object"}
            except (ValueError, RecursionError) as error:
                found = {"error": clipped(error)}
            self._answer(HTTPStatus.OK, "application/json", json.dumps(found) + "\n")
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "known pages: /status, /health, /metrics\n")

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", kind if "charset" in kind else f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not worth a record each."""


def asked(port: int, timeout: float = 10.0) -> dict[str, Any]:
    """Return the status that a twin serves on a port of this machine.

    Raises
    ------
    SimmodelError
        no twin answers there
    """
    from urllib.request import ProxyHandler, build_opener

    address = f"http://{_HOST}:{port}/status"
    try:
        with build_opener(ProxyHandler({})).open(address, timeout=timeout) as page:
            found = json.loads(page.read(_LARGEST))
    except (OSError, HTTPException, ValueError) as error:
        raise SimmodelError(f"{address}: no twin answers ({clipped(error)})") from None
    if not isinstance(found, dict) or "health" not in found:
        raise SimmodelError(f"{address}: no twin answers (but something else)")
    return found


def metrics_of(status: Status, health: Health, age: float) -> tuple[str, str]:
    """Return a status as metrics for Prometheus, and the type of that text.

    Parameters
    ----------
    status
        the status
    health, age
        as served: the health, and the time (s) since the status was shown
    """
    with optional_imports():
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.registry import Collector

    class Once(Collector):
        """Hands over the metrics of this status."""

        def collect(self) -> Iterator[Metric]:
            return _metrics(status, health, age)

    registry = CollectorRegistry()
    registry.register(Once())
    return generate_latest(registry).decode(), CONTENT_TYPE_LATEST


def _metrics(status: Status, health: Health, age: float) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    def gauge(name: str, meaning: str, value: float | None) -> Iterator[Metric]:
        if value is not None:
            yield _labelled(GaugeMetricFamily(_PREFIX + name, meaning, labels=["cluster"]), {(): value})

    def counter(name: str, meaning: str, value: float) -> Metric:
        return _labelled(CounterMetricFamily(_PREFIX + name, meaning, labels=["cluster"]), {(): value})

    def _labelled(metric: Any, values: dict[tuple[str, ...], float]) -> Metric:
        for labels, value in values.items():
            metric.add_metric([_label(status.cluster), *(_label(each) for each in labels)], value)
        found: Metric = metric
        return found

    def split(kind: Any, name: str, meaning: str, by: str, values: dict[str, float]) -> Metric:
        metric = kind(_PREFIX + name, meaning, labels=["cluster", by])
        return _labelled(metric, {(key,): value for key, value in values.items()})

    yield from gauge("healthy", "1: events are read and decisions made as they should", float(health == "ok"))
    yield from gauge("status_age_seconds", "time since the twin showed its status", age)
    yield from gauge("time_seconds", "instant on the cluster up to which the mirror knows", status.time)
    yield from gauge("lag_seconds", "time from the last event to its place in the mirror", status.lag)
    jobs = {"waiting": status.waiting, "running": status.running, "held": status.held}
    yield split(GaugeMetricFamily, "jobs", "jobs in the mirror", "state", jobs)  # type: ignore[arg-type]
    yield from gauge("remembered_jobs", "ended jobs that the mirror tells from new ones", status.remembered)
    yield split(GaugeMetricFamily, "nodes_out", "nodes out of service", "state", dict(status.nodes))
    yield split(CounterMetricFamily, "events", "events applied", "kind", dict(status.events))
    yield split(CounterMetricFamily, "refused", "events refused", "reason", dict(status.refused))
    yield counter("gaps", "times that events were missing", status.gaps)
    yield counter("decisions", "decisions made", status.decisions)
    yield counter("fallbacks", "decisions of the fallback policy", status.fallbacks)
    yield counter("decision_seconds", "time that decisions took", status.decision_seconds)
    if status.last is not None:
        yield from gauge("last_decision_seconds", "time that the last decision took", status.last.seconds)


def _label(text: str) -> str:
    """Return the text of a label: clipped, and with characters replaced that UTF-8 cannot hold."""
    return clipped(text, 200).encode("utf-8", "replace").decode()
