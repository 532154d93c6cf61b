"""Live work as SimPy events: each way of waiting for it, with work that ends before, at and after its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import simpy

from simmodel import Broker, Cluster, Environment, Job
from simmodel.foundation.errors import Stalled
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from simmodel.work.job import LiveJob

ENDS = pytest.mark.parametrize("end", [3, 5, 8], ids=["before", "at", "after"])  # the wait begins at 5


def waiting(end: float, wait: Callable[[Environment, LiveJob], Any]) -> tuple[float, Any, LiveJob]:
    """Return the end of a wait from 5 for a job with this end, the value of the wait, and the job."""
    env = Environment()
    cluster = Cluster(env, 4)
    seen = []

    def user() -> Generator[Any, Any, None]:
        job = cluster.submit(Job(run=end))
        yield env.timeout(5)
        value = yield wait(env, job)
        seen.append((env.now, value, job))

    env.process(user())
    env.run()
    ((at, value, job),) = seen
    assert (job.state, job.triggered, job.processed, job.ok) == ("completed", True, True, True)
    return at, value, job


@ENDS
def test_a_process_waits_for_a_job(end):
    at, value, job = waiting(end, lambda env, job: job)
    assert (at, value) == (max(5, end), job)


@ENDS
@pytest.mark.parametrize(
    "either",
    [lambda env, job: job | env.timeout(2), lambda env, job: env.timeout(2) | job],
    ids=["job | timeout", "timeout | job"],
)
def test_a_job_or_a_timeout(end, either):
    at, value, job = waiting(end, either)
    assert at == (7 if end == 8 else 5)
    assert (job in value) == (end != 8)
    if job in value:
        assert value[job] is job
        assert list(value.values()) == [job]


@ENDS
@pytest.mark.parametrize(
    "both",
    [lambda env, job: job & env.timeout(2), lambda env, job: env.timeout(2) & job],
    ids=["job & timeout", "timeout & job"],
)
def test_a_job_and_a_timeout(end, both):
    at, value, job = waiting(end, both)
    assert at == max(7, end)
    assert value[job] is job
    assert len(list(value)) == 2


@ENDS
@pytest.mark.parametrize(("all_or_any", "last"), [("all_of", 9), ("any_of", 5)], ids=["all of them", "any of them"])
def test_all_of_and_any_of_wait_for_jobs(end, all_or_any, last):
    env = Environment()
    cluster = Cluster(env, 4)
    seen = []

    def user() -> Generator[Any, Any, None]:
        jobs = [cluster.submit(Job(run=seconds)) for seconds in (end, 9)]
        yield env.timeout(5)
        value = yield getattr(env, all_or_any)(jobs)
        seen.append((env.now, list(value), jobs))

    env.process(user())
    env.run()
    ((at, value, jobs),) = seen
    assert at == (max(last, end) if all_or_any == "all_of" else max(5, end))
    assert value == (jobs if all_or_any == "all_of" else jobs[:1])


@ENDS
def test_a_run_until_a_job_is_over(end):
    env = Environment()
    job = Cluster(env, 4).submit(Job(run=end))
    env.run(until=5)
    assert env.run(until=job) is job
    assert (env.now, job.state) == (max(5, end), "completed")
    assert env.run(until=job) is job


def test_a_run_until_a_job_that_never_ends_says_that_it_waits():
    env = Environment()
    cluster = Cluster(env, 4)
    cluster.submit(Job(id="all", processors=4, body=lambda env, job, grant: (yield env.event())))
    job = cluster.submit(Job(id="late", run=1))
    with pytest.raises(Stalled, match="job late has waited for 1 processors"):
        env.run(until=job)


@ENDS
def test_a_wait_is_interrupted(end):
    """The interrupted process and the job both continue; the end of the job does not wake the process again."""
    env = Environment()
    cluster = Cluster(env, 4)
    seen: list[Any] = []

    def user() -> Generator[Any, Any, None]:
        job = cluster.submit(Job(run=end))
        try:
            yield job
            seen.append((env.now, job.state))
        except simpy.Interrupt as interrupt:
            seen.append((env.now, interrupt.cause, job.state))
        yield env.timeout(10)
        seen.append((env.now, job.state))

    process = env.process(user())

    def other() -> Generator[Any, Any, None]:
        yield env.timeout(5)
        if not seen:
            process.interrupt("hurry")

    env.process(other())
    env.run()
    if end == 3:
        assert seen == [(3, "completed"), (13, "completed")]
    else:
        assert seen == [(5, "hurry", "running"), (15, "completed")]


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (Job(run=9, requested=5), "timeout"),
        (Job(run=9, cancel=5), "cancelled"),
        (Job(processors=3, run=9, cancel=5), "cancelled"),
    ],
    ids=["stopped", "cancelled while it runs", "withdrawn while it waits"],
)
def test_the_event_succeeds_however_the_job_ends(job, state):
    env = Environment()
    cluster = Cluster(env, 4)
    cluster.submit(Job(processors=2, run=20))
    live = cluster.submit(job)
    assert env.run(until=live) is live
    assert (env.now, live.state, live.ok) == (5, state, True)


def test_before_it_is_over_a_job_has_no_value():
    job = Cluster(Environment(), 4).submit(Job(run=1))
    assert not job.triggered
    assert not job.processed
    for name in ("value", "ok"):
        with pytest.raises(AttributeError, match="has not ended"):
            getattr(job, name)


def test_a_job_of_a_log_can_be_waited_for_and_makes_no_event_otherwise():
    env = Environment()
    cluster = Cluster(env, 2)
    seen: list[Any] = []
    jobs: list[LiveJob] = []

    class Watch:
        def job_started(self, run: Any) -> None:
            jobs.append(run.job)
            if run.job.id == 2:
                env.process(wait(run.job))

    def wait(job: LiveJob) -> Generator[Any, Any, None]:
        found = yield job
        seen.append((found.id, env.now))

    env.observe(Watch())
    cluster.replay(Workload({"submit": [0, 1, 2], "run": [5, 6, 7], "processors": [1, 1, 2]}))
    env.run()
    assert seen == [(2, 7)]
    assert [job.event is not None for job in jobs] == [False, True, False]


def test_a_brokered_job_is_an_event_before_and_after_it_is_handed_over():
    env = Environment()
    broker = Broker(env, [Cluster(env, 2, name="a"), Cluster(env, 2, name="b")], "round-robin")
    first = broker.submit(Job(processors=2, run=4))
    late = broker.submit(Job(processors=2, run=3, dependencies=[first.id]))
    seen = []

    def user() -> Generator[Any, Any, None]:
        yield first & late
        seen.append(env.now)
        yield first | env.timeout(9)
        seen.append(env.now)

    env.process(user())
    env.run()
    assert seen == [7, 7]
    gone = broker.submit(Job(processors=2, run=3, dependencies=["nobody"]))
    env.process((lambda: (yield env.timeout(1)))()).callbacks.append(lambda _: broker.cancel(gone))  # type: ignore[union-attr]
    assert env.run(until=gone) is gone
    assert gone.state == "cancelled"


def test_work_of_another_environment_is_refused_with_others():
    job = Cluster(Environment(), 4).submit(Job(run=1))
    other = Environment()
    with pytest.raises(ValueError, match="different environments"):
        other.timeout(1) | job


@ENDS
def test_callbacks_get_the_job(end):
    env = Environment()
    job = Cluster(env, 4).submit(Job(run=end))
    env.run(until=5)
    seen: list[Any] = []
    if job.callbacks is not None:
        job.callbacks.append(lambda event: seen.append((event, event.state, event.value, event.callbacks)))
    env.run()
    assert seen == ([] if end == 3 else [(job, "completed", job, None)])
    assert job.callbacks is None
    if job.event is not None:
        with pytest.raises(RuntimeError, match=r"<job .*> has already been triggered"):
            job.event.succeed(job)


def test_a_script_acts_before_the_ends_of_an_instant_and_after_each_of_them():
    env = Environment()
    cluster = Cluster(env, 4)
    first, second, third = (cluster.submit(Job(run=10)) for _ in range(3))

    def at_ten() -> Generator[Any, Any, None]:
        yield env.timeout(10)
        cluster.cancel(first)

    def after_the_second() -> Generator[Any, Any, None]:
        yield second
        cluster.cancel(third)

    env.process(at_ten())
    env.process(after_the_second())
    env.run()
    assert [job.state for job in (first, second, third)] == ["cancelled", "completed", "cancelled"]
