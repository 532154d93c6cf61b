"""Jobs with bodies: the capacity they hold, how they are stopped, and the errors they may raise."""

from __future__ import annotations

import pytest
import simpy

from simmodel.environment import Environment
from simmodel.errors import JobFailed
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job


def test_a_body_is_the_job():
    """Compute, write a checkpoint, compute: the job ends with its body and holds its processors until then."""
    env = Environment()
    cluster = Cluster(env, 4)

    def body(env, job, grant):
        assert (job.processors, grant.processors) == (3, 3)
        for _ in range(2):
            yield env.timeout(10)
            yield env.timeout(1)

    first = cluster.submit(Job(processors=3, body=body))
    second = cluster.submit(Job(processors=2, run=1))
    env.run()
    assert (first.state, first.started, second.started, env.now) == ("completed", 0, 22, 23)


def test_a_body_is_stopped_at_its_requested_time_and_may_clean_up():
    env = Environment()
    cluster = Cluster(env, 1)
    cleaned = []

    def body(env, job, grant):
        try:
            yield env.timeout(100)
        except simpy.Interrupt as interrupt:
            cleaned.append((env.now, interrupt.cause))
            yield env.timeout(2)

    job = cluster.submit(Job(body=body, requested=30))
    after = cluster.submit(Job(run=1))
    env.run()
    assert cleaned == [(30, "timeout")]
    assert (job.state, after.started) == ("timeout", 32)


def test_a_body_may_fail_and_an_error_in_it_is_not_hidden():
    def fails(env, job, grant):
        yield env.timeout(5)
        raise JobFailed("out of memory")

    def broken(env, job, grant):
        yield env.timeout(5)
        raise RuntimeError("a bug")

    env = Environment()
    cluster = Cluster(env, 1)
    job = cluster.submit(Job(body=fails))
    env.run()
    assert job.state == "failed"
    cluster.submit(Job(body=broken))
    with pytest.raises(RuntimeError, match="a bug"):
        env.run()


def test_a_body_may_run_a_workflow_of_jobs_of_its_own():
    env = Environment()
    outer, inner = Cluster(env, 8, name="outer"), Cluster(env, 2, name="inner")

    def body(env, job, grant):
        parts = [inner.submit(Job(run=10)) for _ in range(4)]
        yield env.all_of(parts)

    job = outer.submit(Job(processors=8, body=body))
    env.run(job)
    assert env.now == 20


def test_a_body_that_ends_in_the_instant_in_which_it_is_stopped_has_completed():
    env = Environment()
    cluster = Cluster(env, 1)

    def body(env, job, grant):
        yield env.timeout(5)

    job = cluster.submit(Job(body=body))
    env.run(1)
    job.run.process.callbacks.insert(0, lambda _: cluster.cancel(job))
    env.run()
    assert job.state == "completed"


def test_an_error_in_the_clean_up_of_a_body_is_not_hidden():
    def body(env, job, grant):
        try:
            yield env.timeout(100)
        except simpy.Interrupt:
            raise RuntimeError("a bug") from None

    env = Environment()
    cluster = Cluster(env, 1)
    cluster.submit(Job(body=body, cancel=5))
    with pytest.raises(RuntimeError, match="a bug"):
        env.run()
