"""The status page and the metrics: on this machine alone, in the formats that they claim, and never behind the twin."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from simmodel.foundation.errors import InputError
from simmodel_site.twin.events import Demand, Started, Submitted
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.serving import StatusServer, metrics_of
from simmodel_site.twin.status import LastDecision, Status
from tests.helpers.read_pages import read_data

HOSTILE = 'must be > 0, got "x\\";\n# HELP a b\x1b[2J\ud800' + "n" * 5000
FULL = Status(
    cluster="alps",
    time=1_700_000_000.5,
    lag=0.25,
    waiting=3,
    running=2,
    held=1,
    remembered=7,
    nodes={"draining": 30, "down": 2},
    events={"submitted": 12, "ended": 7},
    refused={HOSTILE: 4, "of another cluster": 1},
    gaps=1,
    position="1700000000000-3",
    decisions=9,
    fallbacks=1,
    decision_seconds=0.75,
    last=LastDecision(number=9, time=1_700_000_000.0, policy="sjf+easy", reason="best", starts=2, seconds=0.08),
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def served(clock: Clock) -> Iterator[StatusServer]:
    with StatusServer(FULL, clock=clock) as server:
        yield server


def get(server: StatusServer, path: str) -> tuple[int, str, str]:
    """Return status, type and text of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (each.name, *(value for key, value in sorted(each.labels.items()) if key != "cluster")): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if each.labels["cluster"] == "alps"
    }


def test_the_status_is_a_document(served: StatusServer, clock: Clock) -> None:
    clock.now += 2.5
    status, kind, text = get(served, "/status?x=1")
    found = json.loads(text)
    assert (status, kind) == (200, "application/json; charset=utf-8")
    assert (found["health"], found["age"], found["waiting"], found["position"]) == ("ok", 2.5, 3, "1700000000000-3")
    assert found["last"]["policy"] == "sjf+easy"
    assert found["nodes"] == {"draining": 30, "down": 2}
    assert all(len(reason) <= 1000 for reason in found["refused"])
    assert get(served, "/")[2] == text


def test_a_silent_source_is_told_while_the_twin_waits_for_it(clock: Clock) -> None:
    silent: list[str] = []
    with StatusServer(FULL, clock=clock, late=lambda: silent[0] if silent else None) as server:
        assert get(server, "/health")[2] == "ok\n"
        silent.append("no answer from the source for 61.0 s: one is due every 30 s")
        assert get(server, "/health")[:1] + get(server, "/health")[2:] == (503, "degraded\n")
        assert json.loads(get(server, "/status")[2])["troubles"] == silent
        assert samples(get(server, "/metrics")[2])["simmodel_twin_healthy",] == 0


def test_metrics_pass_the_parser_of_prometheus(served: StatusServer) -> None:
    status, kind, text = get(served, "/metrics")
    assert status == 200
    assert kind.startswith("text/plain; version=")
    found = samples(text)
    assert found["simmodel_twin_healthy",] == 1
    assert found["simmodel_twin_time_seconds",] == 1_700_000_000.5
    assert found["simmodel_twin_lag_seconds",] == 0.25
    assert {key[1]: value for key, value in found.items() if key[0] == "simmodel_twin_jobs"} == {
        "waiting": 3,
        "running": 2,
        "held": 1,
    }
    assert found["simmodel_twin_events_total", "submitted"] == 12
    assert found["simmodel_twin_refused_total", "of another cluster"] == 1
    assert sum(value for key, value in found.items() if key[0] == "simmodel_twin_refused_total") == 5
    assert found["simmodel_twin_nodes_out", "down"] == 2
    assert found["simmodel_twin_decisions_total",] == 9
    assert found["simmodel_twin_fallbacks_total",] == 1
    assert found["simmodel_twin_decision_seconds_total",] == 0.75
    assert found["simmodel_twin_last_decision_seconds",] == 0.08
    assert "\n# HELP a b" not in text


def test_an_empty_status_has_metrics_too() -> None:
    text, _ = metrics_of(Status(cluster="alps"), "starting", 0.0)
    found = samples(text)
    assert found["simmodel_twin_healthy",] == 0
    assert ("simmodel_twin_time_seconds",) not in found


def test_the_health_is_that_of_the_last_status(served: StatusServer, clock: Clock) -> None:
    assert get(served, "/health")[::2] == (200, "ok\n")
    served.show(evolve(FULL, troubles=("redis://x: not reachable",)))
    assert get(served, "/health")[::2] == (503, "degraded\n")
    assert json.loads(get(served, "/status")[2])["troubles"] == ["redis://x: not reachable"]
    served.show(Status(cluster="alps"))
    assert get(served, "/health")[::2] == (200, "starting\n")
    clock.now += 61
    assert get(served, "/health")[::2] == (503, "stale\n")
    assert samples(get(served, "/metrics")[2])["simmodel_twin_healthy",] == 0
    served.show(FULL)
    assert get(served, "/health")[::2] == (200, "ok\n")
    clock.now -= 1000  # a clock that steps back makes no status stale
    assert get(served, "/health")[::2] == (200, "ok\n")


def test_only_this_machine_is_served(served: StatusServer) -> None:
    listening = []
    for name in ("tcp", "tcp6"):
        path = Path("/proc/net", name)
        for line in path.read_text("utf-8").splitlines()[1:] if path.exists() else ():
            address, state = line.split()[1], line.split()[3]
            host, _, port = address.partition(":")
            if int(port, 16) == served.port and state == "0A":
                listening.append(host)
    assert listening in (["0100007F"], [])
    assert served._server.server_address[0] == "127.0.0.1"


def test_the_page_is_that_of_the_mirror(served: StatusServer) -> None:
    mirror = Mirror(8, "alps", "easy")
    for name, submit, wide in (("a", 0.0, 6), ("b", 1.0, 4), ("c", 2.0, 2)):
        request = Demand(processors=wide, requested=100.0)
        mirror.apply(Submitted(cluster="alps", time=submit, submit=submit, job=name, request=request))
    mirror.apply(Started(cluster="alps", time=5.0, submit=0.0, job="a"))
    mirror.advance(10.0)
    path = urlsplit(served.page).path
    assert get(served, path)[0] == 200
    assert get(served, f"{path}data")[2] == ""  # nobody watches: no page is made
    with urllib.request.urlopen(f"{served.page}events", timeout=30) as events:
        while not served._mirror.watched:
            pass
        served.show(FULL, mirror)
        message = json.loads(next(line for line in events if line.startswith(b"data: "))[6:])
    assert {name: message[name] for name in ("now", "used", "capacity", "running", "waiting", "controls")} == {
        "now": 10.0,
        "used": 6,
        "capacity": 8,
        "running": 1,
        "waiting": 2,
        "controls": False,
    }
    with urllib.request.urlopen(f"{served.page}data", timeout=30) as answer:
        assert answer.headers["X-Version"] == str(message["version"]) == "1"
        page = read_data(answer.read())
    assert page.column("job") == ["a", "b", "c"]
    assert page.column("status") == ["running", "waiting", "waiting"]
    assert page.column("start") == [5.0, 105.0, 10.0]  # c is backfilled, b follows a


def test_strangers_do_not_see_the_page(served: StatusServer) -> None:
    path = urlsplit(served.page).path
    assert get(served, f"/{'A' * 22}/")[0] == 404
    for headers in ({"Host": "example.org"}, {"Origin": "http://example.org"}):
        connection = HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request("GET", path, headers=headers)
        assert connection.getresponse().status == 403
        connection.close()


def test_nothing_but_the_pages_is_answered(served: StatusServer) -> None:
    assert get(served, "/../etc/passwd")[0] == 404
    assert get(served, "/%s" % ("x" * 10_000))[0] == 404
    for command in (b"POST /status HTTP/1.0\r\n\r\n", b"DELETE / HTTP/1.0\r\n\r\n", b"\x00\xff\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as asked:
            asked.sendall(command)
            answer = b"".join(iter(lambda: asked.recv(4096), b""))
        assert b" 501 " in answer or b" 400 " in answer or b"400" in answer
    assert get(served, "/health")[0] == 200


def test_a_port_that_is_taken_is_one_sentence(served: StatusServer) -> None:
    for port in (served.port, 70_000):
        with pytest.raises(InputError, match="port: must be a free port, got "):
            StatusServer(FULL, port)
    assert repr(served) == f"<StatusServer http://127.0.0.1:{served.port}>"


def test_a_client_that_says_nothing_holds_up_nobody(served: StatusServer) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30):
        assert get(served, "/health")[0] == 200
