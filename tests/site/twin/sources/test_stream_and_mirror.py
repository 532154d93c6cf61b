"""Through a stream into the mirror: repeated, late and misplaced entries, and entries that are gone, change nothing."""

import gc
import random
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job
from simmodel.work.job import LiveJob
from simmodel_site.twin import Mirror, StateReport, StreamWriter
from simmodel_site.twin.events import Demand, Ended, Event, JobReport, Started, Submitted
from simmodel_site.twin.sources.log import EventsOf
from simmodel_site.twin.sources.stream import StreamSource
from tests.helpers.examples import up_to
from tests.site.helpers.redis_server import RedisServer

numbers = count()


def history(seed: int, jobs: int = 40) -> list[Event]:
    """Return the events of a simulated cluster of 8 processors."""
    drawn = random.Random(seed)
    env = Environment()
    cluster = Cluster(env, 8, "sjf+easy", name="alps")
    told: list[Event] = []
    env.observe(EventsOf(cluster, told.append))
    for id in range(1, jobs + 1):
        run = drawn.randint(1, 50)
        env.run(until=env.now + drawn.choice([1, 1, 5]))
        cluster.submit(Job(id=id, processors=drawn.randint(1, 8), run=run, requested=run + drawn.randint(0, 30)))
    return told  # as it stands: some jobs run, some wait


def mirrored(events: list[Event], server: RedisServer, batch: int = 7) -> Mirror:
    """Return the mirror of what a source reads from a stream with these events."""
    key = f"events:{next(numbers)}"
    writer = StreamWriter(key, server.settings)
    source = StreamSource("alps", server.settings, key, most=batch)
    mirror = Mirror(8, "alps")
    for begin in range(0, len(events), 20):
        writer.write(*events[begin : begin + 20])
        while found := source.events(0):
            for event in found:
                mirror.apply(event)
            mirror.snapshot()
    writer.close()
    source.close()
    return mirror


@settings(max_examples=up_to(25, 8))
@given(st.integers(0, 10**6), st.randoms(use_true_random=False), st.integers(0, 30), st.integers(0, 10))
def test_any_order_and_repetition_ends_in_the_same_state(
    shared_redis: RedisServer, seed: int, drawn: random.Random, far: int, twice: int
) -> None:
    events = history(seed)
    mixed = [(number + drawn.uniform(0, far), event) for number, event in enumerate(events)]
    mixed += [(drawn.uniform(0, len(events)), drawn.choice(events)) for _ in range(twice)]
    moved = [event for _, event in sorted(mixed, key=lambda each: each[0])]
    expected, found = mirrored(events, shared_redis), mirrored(moved, shared_redis)
    assert found.snapshot() == expected.snapshot()
    assert found.jobs == expected.jobs
    assert not found.refused


def report_of(mirror: Mirror, events: list[Event]) -> StateReport:
    """Return the full state that a mirror has, as the scheduler would tell it."""
    requests: dict[Any, Demand] = {each.job: each.request for each in events if isinstance(each, Submitted)}
    submits = {each.job: each.submit for each in events if isinstance(each, Submitted)}
    starts = {each.job: each.time for each in events if isinstance(each, Started)}
    snapshot = mirror.snapshot()
    running = [
        JobReport(job=id, submit=submits[id], state="running", request=requests[id], started=starts[id])
        for id in (each.work.id for each in snapshot.running)
    ]
    waiting = [
        JobReport(job=id, submit=submits[id], state="waiting", request=requests[id])
        for id in (each.id for each in snapshot.waiting)
    ]
    return StateReport(cluster="alps", time=mirror.now, jobs=(*waiting, *running))


def state_of(mirror: Mirror) -> list[Any]:
    """Return who runs since when and who waits, in order; jobs that came and went unseen have no numbers."""
    found = mirror.snapshot()
    running = sorted((run.work.id, run.started, run.work.processors) for run in found.running)
    return [found.now, running, [(work.id, work.submit, work.processors) for work in found.waiting]]


@pytest.mark.few(4)
@pytest.mark.parametrize("kept", [0, 1, 15])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_stream_that_was_trimmed_leads_to_the_state_all_the_same(
    shared_redis: RedisServer, seed: int, kept: int
) -> None:
    events = history(seed)
    whole = mirrored(events, shared_redis)
    report = report_of(whole, events)
    key = f"events:{next(numbers)}"
    writer = StreamWriter(key, shared_redis.settings)
    source = StreamSource("alps", shared_redis.settings, key, report=lambda: report, check=0)
    mirror = Mirror(8, "alps")

    def read() -> None:
        while found := source.events(0):
            for event in found:
                mirror.apply(event)

    writer.write(*events[:40])
    read()
    writer.write(*events[40:])
    client = shared_redis.settings.client()
    client.xtrim(key, maxlen=kept, approximate=False)
    client.close()
    read()
    assert source.gaps == 1
    assert state_of(mirror) == state_of(whole)
    assert not mirror.refused
    writer.close()
    source.close()


@pytest.mark.long
def test_jobs_that_are_over_are_not_kept() -> None:
    def live_jobs() -> int:
        gc.collect()
        return sum(isinstance(each, LiveJob) for each in gc.get_objects())

    before = live_jobs()
    mirror = Mirror(8, "alps", remembered=50)
    mirror.snapshot()
    for number in range(1500):
        about: dict[str, Any] = {"cluster": "alps", "job": number, "submit": float(number)}
        mirror.apply(Submitted(**about, time=number, request=Demand(processors=4, requested=10.0)))
        mirror.apply(Started(**about, time=number))
        if number:
            mirror.apply(Ended(**{**about, "job": number - 1, "submit": number - 1.0}, time=number + 0.5))
    assert mirror.jobs["running"] == 1
    assert live_jobs() - before < 200


def test_a_submission_that_comes_again_after_a_report_ends_no_job() -> None:
    about: dict[str, Any] = {"cluster": "alps", "job": 1, "submit": 0.0}
    submitted = Submitted(**about, time=0.0, request=Demand(processors=4, requested=100.0))
    running = JobReport(job=1, submit=0.0, state="running", request=submitted.request, started=5.0)
    mirror = Mirror(8, "alps")
    for event in (submitted, Started(**about, time=5.0), StateReport(cluster="alps", time=50.0, jobs=(running,))):
        mirror.apply(event)
    assert not mirror.apply(submitted)
    assert mirror.jobs["running"] == 1
