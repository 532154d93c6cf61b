"""The status of a running twin as JSON and as metrics for Prometheus, on this machine alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPException
from threading import Lock
from time import gmtime, monotonic, strftime
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

import attrs

from simmodel import Environment, SimmodelError
from simmodel.extending import HOST, Audience, LocalServer, PageHandler, clipped, optional_imports
from simmodel.systems import Cluster
from simmodel_site.twin.logs import Log

if TYPE_CHECKING:
    from types import TracebackType

    from prometheus_client.core import Metric

    from simmodel.extending import Page, Plain, PolicyLike
    from simmodel.snapshots import ClusterSnapshot
    from simmodel_site.twin.mirror.mirror import Mirror
    from simmodel_site.twin.status import Health, Status

__all__ = ["MirrorPage", "StatusServer", "asked", "metrics_of", "plan_page"]

_PREFIX = "simmodel_twin_"
_LARGEST = 1 << 24  # bytes of a status
_PAGE_EVERY = 5.0  # s


class StatusServer:
    """Serves the status of a twin at ``127.0.0.1``.

    ======================  =========================================================================
    :attr:`page`            the page of the mirror: what runs, and what waits with its expected start
    ``/`` or ``/status``    the status as JSON, with ``health`` and ``age`` (s), the time since it was shown
    ``/health``             ``ok`` or ``starting`` with 200, ``degraded`` or ``stale`` with 503
    ``/metrics``            metrics in Prometheus' text format
    ``/turnaround?...``     when a job would end: see :class:`~simmodel_site.twin.turnaround.Turnarounds`
    ======================  =========================================================================

    The twin shows a status whenever it likes; requests are answered by threads of the server's own from the last one.
    The page names jobs and users: it is for those who know the random part of its address.

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
    late
        asked with each request: says that the source is silent, as ``Twin.late`` does,
        also while the twin waits for an answer and shows no status

    Raises
    ------
    InputError
        the port is taken or is none

    Attributes
    ----------
    port, page
        its port, and the address of the page
    """

    def __init__(
        self,
        status: Status,
        port: int = 0,
        *,
        stale: float = 60.0,
        clock: Callable[[], float] = monotonic,
        answers: Callable[[Mapping[str, Any]], Mapping[str, Plain]] | None = None,
        late: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.answers = answers
        self._late = late
        self._clock = clock
        self._stale = stale
        self._shown = (status, clock())
        self._mirror = MirrorPage(status.cluster)
        handler = type("Handler", (_Handler,), {"pages": self, "live": self._mirror})
        self._server = LocalServer(handler, port, "status")
        self.port: int = self._server.server_address[1]
        self.page = f"http://{HOST}:{self.port}/{self._mirror.token}/"
        Log("serving", cluster=status.cluster).info("the status is served", address=f"http://{HOST}:{self.port}")

    def __repr__(self) -> str:
        return f"<StatusServer http://{HOST}:{self.port}>"

    def show(self, status: Status, mirror: Mirror | None = None) -> None:
        """Serve this status from now on, and the state of the mirror to those who watch its page."""
        self._shown = (status, self._clock())
        if mirror is not None and self._mirror.watched:
            self._mirror.show(mirror.snapshot(), mirror.policy)

    def seen(self) -> tuple[Status, Health, float]:
        """Return the last status, the health and the age (s) of the status."""
        status, at = self._shown
        age = max(0.0, self._clock() - at)
        late = self._late()
        if late is not None and not status.troubles:
            status = attrs.evolve(status, troubles=(late,))
        return status, "stale" if age > self._stale else status.health, age

    def document(self) -> dict[str, Plain]:
        """Return the status as ``/status`` serves it."""
        status, health, age = self.seen()
        return status.document() | {"health": health, "age": round(age, 3)}

    def close(self) -> None:
        """Stop serving."""
        self._mirror.leave()
        self._server.close()

    def __enter__(self) -> StatusServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class MirrorPage(Audience):
    """The page of a mirror: its running jobs, and its waiting ones where a simulation of its future starts them.

    Snapshots are shown by the twin; pages are made by the threads of the server when they are asked for, at most a
    twentieth of the time.

    Parameters
    ----------
    cluster
        the name of the cluster
    """

    def __init__(self, cluster: str) -> None:
        super().__init__(f"twin of {cluster}", 1.0)
        self._snapshot: ClusterSnapshot | None = None
        self._policy: PolicyLike | None = None
        self._version = 0
        self._due = 0.0  # a new version comes no sooner
        self._making = Lock()

    @property
    def watched(self) -> bool:
        return self._watching > 0

    def show(self, snapshot: ClusterSnapshot, policy: PolicyLike | None) -> None:
        """Show this state from now on."""
        if monotonic() >= self._due and snapshot is not self._snapshot:
            self._snapshot, self._policy = snapshot, policy
            self._version += 1
            self._due = monotonic() + _PAGE_EVERY
        used = sum(each.work.processors for each in snapshot.running)
        capacity = sum(each.capacity for each in snapshot.platform.partitions)
        clock = strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(snapshot.now))
        state = {"now": snapshot.now, "clock": clock, "used": used, "capacity": capacity}
        state |= {"running": len(snapshot.running), "waiting": len(snapshot.waiting), "ended": None, "places": []}
        self.publish(state | {"version": self._version, "controls": False, "paused": False, "over": False})

    @property
    def page(self) -> tuple[int, bytes]:
        """The number of the last page, and its data, which are made now if they are not those of the last state."""
        with self._making:
            version, snapshot = self._version, self._snapshot
            if snapshot is not None and version != self._page[0]:
                begun = monotonic()
                self._page = version, plan_page(self.title, snapshot, self._policy).data(level=1)
                self._due = monotonic() + max(_PAGE_EVERY, 20 * (monotonic() - begun))
            return self._page

    def leave(self) -> None:
        """Let those who watch go."""
        self._gone = True


def plan_page(title: str, snapshot: ClusterSnapshot, policy: PolicyLike | None = None) -> Page:
    """Return the page of a cluster as it is: the simulated future of a snapshot, up to the end of all its jobs.

    Parameters
    ----------
    title
        the heading
    snapshot
        the cluster; its jobs last as long as they are expected to
    policy
        default: that of the snapshot

    >>> from simmodel import Job
    >>> cluster = Cluster(Environment(), 4)
    >>> _ = [cluster.submit(Job(processors=3, run=60)) for _ in range(2)]
    >>> cluster.env.run(until=10)
    >>> "<title>twin</title>" in plan_page("twin", cluster.snapshot()).html()
    True
    """
    from simmodel.extending import expected_page

    seen = snapshot.expected()
    system = Cluster.from_snapshot(Environment(seen.now, 0), seen, policy)
    system.env.run(until=system.idle())
    return expected_page(system.result(title), seen.now, {each.work.id for each in seen.running})


class _Handler(PageHandler):
    """Answers GET for the pages of a server."""

    pages: ClassVar[StatusServer]
    timeout = 5.0  # of a client that sends nothing

    def do_GET(self) -> None:
        """Answer with the status, its metrics or an answer; all else is the page, for those who know its address."""
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
        elif path.count("/") > 1:
            super().do_GET()
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "known pages: /status, /health, /metrics\n")

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        typed = kind if "charset" in kind else f"{kind}; charset=utf-8"
        self.answer(status, typed, text.encode("utf-8", "replace"))


def asked(port: int, timeout: float = 10.0) -> dict[str, Any]:
    """Return the status that a twin serves on a port of this machine.

    Raises
    ------
    SimmodelError
        no twin answers there
    """
    from urllib.request import ProxyHandler, build_opener

    address = f"http://{HOST}:{port}/status"
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
