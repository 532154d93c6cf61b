"""A watched run: its messages and pages are those of the record, its controls hold, and strangers are refused."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from threading import Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Job, Result, simulate, start
from simmodel.platform import ClusterSpec, PartitionSpec
from simmodel.runs.live import LiveView
from simmodel.runs.simulation import Simulation
from tests.helpers.read_pages import Read, read_data


def jobs(count: int = 60) -> list[Job]:
    return [Job(id=i, submit=10 * i, processors=1 + i % 5, run=35 + i % 7, requested=60) for i in range(count)]


class Watcher:
    """Somebody who looks at a run, without a browser."""

    def __init__(self, view: LiveView) -> None:
        self.view = view
        self._events = HTTPConnection("127.0.0.1", view.port, timeout=60)
        self._events.request("GET", f"/{view.token}/events")
        self._answer = self._events.getresponse()
        assert self._answer.status == 200

    def next(self) -> dict[str, Any]:
        """Return the next message."""
        while True:
            line = self._answer.readline()
            assert line, "the server has left"
            if line.startswith(b"data: "):
                found: dict[str, Any] = json.loads(line[6:])
                return found

    def until(self, holds: Any) -> dict[str, Any]:
        while not holds(message := self.next()):
            pass
        return message

    def paused(self) -> dict[str, Any]:
        """Return the first message of a run that is paused."""
        return self.until(lambda message: message["paused"])

    def step(self, before: dict[str, Any]) -> dict[str, Any]:
        """Let the run go on to its next event; return the message there."""
        self.act("step")
        return self.until(lambda message: message["paused"] and message["beat"] > before["beat"])

    def act(self, what: str, value: object = None) -> None:
        status, _ = ask(self.view, "act", json.dumps({"do": what, "value": value}))
        assert status == 204

    def page(self) -> Read:
        status, data = ask(self.view, "data")
        assert status == 200
        return read_data(data)


def ask(
    view: LiveView, page: str, body: str | None = None, *, token: str | None = None, **headers: str
) -> tuple[int, bytes]:
    """Return the status and the body of an answer."""
    connection = HTTPConnection("127.0.0.1", view.port, timeout=60)
    connection.request("GET" if body is None else "POST", f"/{token or view.token}/{page}", body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@contextmanager
def running(simulation: Simulation, *, paused: bool = True) -> Iterator[tuple[LiveView, Watcher, Thread]]:
    """Run a simulation in a thread, paused at its first event, with somebody who watches."""
    with simulation.serve(refresh=0.05) as view:
        watcher = Watcher(view)
        watcher_is_there(view)
        if paused:
            view.act("pause")
        thread = Thread(target=simulation.run)
        thread.start()
        try:
            yield view, watcher, thread
        finally:
            view.act("stop")
            view.act("seen")
            thread.join()


def watcher_is_there(view: LiveView) -> None:
    while not view._watching:
        sleep(0.005)


def test_a_watched_run_is_the_same_run() -> None:
    plain = simulate(8, jobs(), "easy")
    simulation = start(8, jobs(), "easy")
    with running(simulation) as (_, watcher, thread):
        message = watcher.paused()
        for _ in range(5):
            message = watcher.step(message)
        watcher.act("go")
        thread.join()
        result = simulation.result()
    for name in ("start", "end", "wait"):
        assert np.array_equal(result.jobs[name], plain.jobs[name])


def test_messages_are_the_record_at_that_instant() -> None:
    record: Result = simulate(8, jobs(), "easy")
    simulation = start(8, jobs(), "easy")
    busy, queue = record.busy(), record.queue_length()
    seen = set()
    with running(simulation) as (_, watcher, thread):
        message = watcher.paused()
        for _ in range(30):
            now = message["now"]
            seen.add(now)
            assert message["used"] == busy.at(now)
            assert message["waiting"] == queue.at(now)
            assert message["ended"] == (record.jobs["end"] <= now).sum()
            assert message["capacity"] == 8
            message = watcher.step(message)
        watcher.act("go")
        thread.join()
    assert len(seen) > 20


def test_the_page_so_far_has_the_jobs_so_far_and_the_last_one_is_the_result() -> None:
    simulation = start(8, jobs(), "easy", name="watched")
    with simulation.serve(refresh=0.02) as view:
        watcher = Watcher(view)
        watcher_is_there(view)
        view.act("pause")
        thread = Thread(target=simulation.run)
        thread.start()
        message = watcher.until(lambda message: message["paused"] and message["version"])
        assert watcher.page().column("status").count("completed") == message["ended"] == 0
        watcher.act("go")
        thread.join()
        closing = Thread(target=view.close)
        closing.start()
        watcher.until(lambda message: message["over"])
        last = watcher.page()
        watcher.act("seen")
        closing.join()
    assert last == read_data(simulation.result().page().data())


def test_a_run_is_stopped_and_its_result_is_that_so_far() -> None:
    simulation = start(8, jobs(), "easy")
    with running(simulation) as (_, watcher, thread):
        watcher.paused()
        watcher.act("stop")
        thread.join()
    assert "waiting" not in simulation.result().jobs["status"].tolist()[:1]
    assert simulation.env.now < 100
    simulation.run()  # and goes on, if it shall
    assert (simulation.result().jobs["status"] == "completed").all()


def test_the_speed_holds_a_run_back() -> None:
    simulation = start(8, jobs(8), "easy")  # about 105 s
    with running(simulation) as (view, watcher, thread):
        watcher.paused()
        watcher.act("speed", 1e-6)
        watcher.act("go")
        watcher.until(lambda message: not message["paused"])
        assert thread.is_alive()
        assert simulation.env.now <= 10
        watcher.act("speed", 1e9)
        thread.join()
    assert not view.act("speed", -1)
    assert not view.act("dance")


def test_strangers_are_refused() -> None:
    with start(8, jobs(), "easy").serve() as view:
        assert ask(view, "")[0] == 200
        assert ask(view, "", token="A" * 22)[0] == 404
        assert ask(view, "nothing")[0] == 404
        assert ask(view, "", Host="example.org")[0] == 403
        assert ask(view, "", Host=f"127.0.0.2:{view.port}")[0] == 403
        assert ask(view, "act", '{"do": "stop"}', Origin="http://example.org")[0] == 403
        assert ask(view, "act", '{"do": "stop"}', token="B")[0] == 404
        assert not view._stopped
        for body in ("{", "[]", "1", '{"do": "dance"}', '{"do": "speed", "value": "x"}', "x" * 5000):
            assert ask(view, "act", body)[0] == 400
        assert ask(view, "act", '{"do": "pause"}', Origin=f"http://127.0.0.1:{view.port}")[0] == 204
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22}/", view.url)


def test_a_run_that_nobody_watches_makes_no_page() -> None:
    simulation = start(8, jobs(), "easy")
    with simulation.serve() as view:
        simulation.run()
        assert view.page == (0, b"")  # nobody watched: no page was made
    with pytest.raises(OSError, match="refused"):
        ask(view, "")


def test_a_run_that_nobody_watches_hears_of_ends_alone() -> None:
    simulation = start(8, jobs(), "easy")
    with simulation.serve():
        assert simulation.env.hooks("job_submitted") == simulation.env.hooks("job_started") == ()
        assert len(simulation.env.hooks("job_ended")) == 1
    assert simulation.env.hooks("job_ended") == ()


def test_a_message_needs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = start("tiers-30", "tiers-30-day", "least-loaded")
    with simulation.serve() as view:
        simulation.run(until=20_000)
        result = simulation.result()
        monkeypatch.setattr(simulation, "result", lambda: pytest.fail("a message asked for the whole result"))
        state = view.state()
    assert state["used"] == result.busy().values[-1]
    assert state["running"] == ((result.jobs["start"] <= 20_000) & ~(result.jobs["end"] <= 20_000)).sum()
    assert state["ended"] == (result.jobs["end"] <= 20_000).sum()
    assert [name for name, *_ in state["places"]] == result.places["place"].tolist()


def test_the_whole_page_is_made_on_request() -> None:
    simulation = start(8, jobs(), "easy")
    with running(simulation) as (_, watcher, thread):
        before = watcher.paused()
        watcher.act("speed", 1e-9)  # it stands still, and is not paused
        watcher.act("go")
        watcher.act("page")
        watcher.act("speed", None)
        message = watcher.until(lambda message: message["version"] > before["version"])
        assert message["version"]
        assert len(watcher.page().column("job")) == 60
        thread.join()


@pytest.mark.parametrize("platform", [8, "two partitions"])
def test_the_jobs_that_wait_for_a_place_are_counted_at_that_place(platform: Any) -> None:
    if platform == "two partitions":
        parts = [PartitionSpec(name=name, processors=4) for name in ("left", "right")]
        platform = ClusterSpec(partitions=parts)
    simulation = start(platform, [Job(id=i, processors=4, run=10) for i in range(9)], "fcfs")
    with simulation.serve() as view:
        simulation.run(until=5)
        state = view.state()
    waiting = [waiting for *_, waiting in state["places"]]
    assert sum(waiting) == state["waiting"] > 0


def test_a_processor_has_no_queue_of_its_own() -> None:
    simulation = start("hetsim-slow", "layered:n=20", "hrr")
    with simulation.serve() as view:
        assert {waiting for *_, waiting in view.state()["places"]} == {None}


def test_a_page_is_served_after_its_run_until_it_is_interrupted() -> None:
    code = (
        "from simmodel import Job, start\n"
        "simulation = start(8, [Job(id=1, run=35)], 'easy')\n"
        "with simulation.serve() as view:\n"
        "    simulation.run()\n"
        "    print(view.port, view.token, flush=True)\n"
        "    try:\n"
        "        view.stay()\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        port, token = run.stdout.readline().split()
        events = HTTPConnection("127.0.0.1", int(port), timeout=60)
        events.request("GET", f"/{token}/events")  # somebody who comes after the run
        answer = events.getresponse()
        message = json.loads(answer.readline()[6:])
        while not message["over"]:
            assert answer.readline() == b"\n"
            message = json.loads(answer.readline()[6:])
        data = HTTPConnection("127.0.0.1", int(port), timeout=60)
        data.request("GET", f"/{token}/data")
        assert read_data(data.getresponse().read()).column("status") == ["completed"]
        run.send_signal(signal.SIGINT)
        assert run.stdout.read() == "interrupted\n"
        assert run.wait(60) == 0


WATCH = """
import sys
from http.client import HTTPConnection
events = HTTPConnection("127.0.0.1", int(sys.argv[1]))
events.request("GET", sys.argv[2])
answer = events.getresponse()
for line in answer:
    print("heard", flush=True)
"""
RUN = """
from simmodel import Job, start
simulation = start(8, [Job(id=i, submit=10 * i, run=35) for i in range(1000)], "easy")
with simulation.serve(refresh=0.05) as view:
    view.act("speed", 1.0)
    print(view.port, view.token, flush=True)
    simulation.run()
"""


def test_a_watcher_that_is_killed_harms_nothing() -> None:
    plain = simulate(8, jobs(), "easy")
    simulation = start(8, jobs(), "easy")
    with running(simulation) as (view, watcher, thread):
        message = watcher.paused()
        command = [sys.executable, "-c", WATCH, str(view.port), f"/{view.token}/events"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "heard\n"
            other.kill()
        for _ in range(5):
            message = watcher.step(message)
        watcher.act("go")
        thread.join()
    assert np.array_equal(simulation.result().jobs["end"], plain.jobs["end"])


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_leaves_its_watchers_an_end(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        port, token = run.stdout.readline().split()
        events = HTTPConnection("127.0.0.1", int(port), timeout=60)
        events.request("GET", f"/{token}/events")
        answer = events.getresponse()
        assert answer.readline()
        run.send_signal(how)
        with suppress(ConnectionError):
            while answer.readline():
                pass
        assert run.wait(60) != 0
        assert how == signal.SIGKILL or "KeyboardInterrupt" in run.stderr.read()
    with pytest.raises(OSError, match="refused"):
        HTTPConnection("127.0.0.1", int(port), timeout=60).request("GET", "/")


WATCHED = [("hetsim-slow", "layered:n=20", "hrr"), ("tiers-30", "tiers-30-day", "least-loaded")]


@pytest.mark.parametrize(("platform", "work", "policy"), WATCHED)
def test_machines_and_grids_are_watched(platform: str, work: str, policy: str) -> None:
    simulation = start(platform, work, policy, until=5000)
    with running(simulation) as (_, watcher, thread):
        watcher.paused()
        watcher.act("go")
        thread.join()
    assert len(simulation.result().page().html()) > 50_000


def test_what_cannot_be_served_is_refused(tmp_path: Any) -> None:
    simulation = start(8, jobs(), "easy")
    with simulation.serve() as view, pytest.raises(InputError, match="free port"):
        simulation.serve(view.port)
    with pytest.raises(InputError, match="refresh"):
        simulation.serve(refresh=0)
    with pytest.raises(InputError, match="streamed"):
        start(None, "probe-4", "fcfs", stream=tmp_path / "jobs.sqlite").serve()
