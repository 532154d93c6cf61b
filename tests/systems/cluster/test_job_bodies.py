"""Jobs with bodies: the capacity they hold, how they are stopped, and the errors they may raise."""

from __future__ import annotations

from contextlib import suppress

import pytest
import simpy

from simmodel import simulate
from simmodel.environment import Environment
from simmodel.foundation.errors import JobFailed
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.systems.broker.system import Broker
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


def deaf(env, job, grant):
    """A body that ignores interrupts for 600 s."""
    for _ in range(6):
        with suppress(simpy.Interrupt):
            yield env.timeout(100)


def ignores_even_its_closing(env, job, grant):
    for _ in range(5):
        with suppress(BaseException):
            yield env.timeout(1000)


@pytest.mark.parametrize("body", [deaf, ignores_even_its_closing])
@pytest.mark.parametrize(("given", "end"), [({}, 130), ({"grace": 5}, 105), ({"grace": 0}, 100)])
def test_a_body_that_does_not_end_at_its_limit_is_killed_after_its_grace_time(body, given, end):
    env = Environment()
    cluster = Cluster(env, 4)
    heard = []
    job = cluster.submit(Job(processors=4, requested=100, body=body, **given))
    after = cluster.submit(Job(run=1))

    def waits():
        yield job
        heard.append(env.now)

    env.process(waits())
    env.run()
    assert (job.state, after.started, heard) == ("timeout", end, [end])
    assert cluster.result().jobs["end"].tolist() == [end, end + 1]
    assert cluster.places[0].free == 4


def test_without_a_limit_to_its_grace_time_a_body_ends_when_it_will():
    env = Environment()
    cluster = Cluster(env, 1)
    job = cluster.submit(Job(requested=50, body=deaf, grace=float("inf")))
    env.run(job)
    assert (job.state, env.now) == ("timeout", 550)


def test_a_killed_body_releases_its_claims_and_what_it_waited_for_resumes_nothing():
    env = Environment()
    cluster, other = Cluster(env, 1), Cluster(env, 2, name="other")
    seen = []

    def body(env, job, grant):
        with other.places[0].claim(processors=2) as claim:
            yield claim
            while True:
                try:
                    yield env.timeout(70)
                    seen.append(env.now)
                except simpy.Interrupt:
                    seen.append("interrupt")

    job = cluster.submit(Job(requested=100, body=body, grace=60))
    env.run()
    assert seen == [70, "interrupt"]
    assert (job.state, env.now, other.places[0].free) == ("timeout", 170, 2)


@pytest.mark.parametrize(("on_failure", "status"), [("resubmit", "requeued"), ("lose", "lost")])
def test_a_body_that_ends_with_the_failure_of_its_claim_is_lost_to_the_failure(on_failure, status):
    def body(env, job, grant):
        with job.place.claim(4, duration=10) as more:
            yield more
            yield env.timeout(10)

    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4)])],
        on_failure=on_failure,
        outages=[OutageSpec(at=5, until=7, nodes=[1], kind="failure")],
    )
    result = simulate(spec, [Job(processors=4, requested=60, body=body)], "fcfs")
    ends = [(5, status), (17, "completed")][: 2 if status == "requeued" else 1]
    assert list(zip(result.runs["end"], result.runs["status"], strict=True)) == ends


def test_a_body_that_ends_with_the_preemption_of_its_claim_is_preempted():
    env = Environment()
    cluster, other = Cluster(env, 1), Cluster(env, 2, name="other")

    def body(env, job, grant):
        with other.places[0].claim(2) as claim:
            yield claim
            yield env.timeout(10)

    def urgent(env):
        yield env.timeout(4)
        with other.places[0].claim(1, priority=1, preempt=True) as claim:
            yield claim
            yield env.timeout(3)

    cluster.submit(Job(requested=60, body=body))
    env.process(urgent(env))
    env.run()
    assert cluster.result().runs["status"].tolist() == ["preempted", "completed"]
    assert cluster.result().runs["end"].tolist() == [4, 17]


def test_an_error_in_the_closing_of_a_killed_body_is_not_hidden():
    def body(env, job, grant):
        try:
            while True:
                with suppress(simpy.Interrupt):
                    yield env.timeout(10)
        finally:
            raise ValueError("a bug")

    env = Environment()
    Cluster(env, 1).submit(Job(id="x", requested=5, body=body))
    with pytest.raises(ValueError, match="a bug") as caught:
        env.run()
    assert caught.value.__notes__ == ["in the body of job x at 35 s"]


@pytest.mark.parametrize("then", [[1.0], []])
def test_a_body_may_cancel_its_own_job(then):
    env = Environment()
    cluster = Cluster(env, 1)
    heard = []

    def body(env, job, grant):
        yield env.timeout(5)
        cluster.cancel(job)
        heard.append("continues")
        for seconds in then:
            try:
                yield env.timeout(seconds)
            except simpy.Interrupt as interrupt:
                heard.append((env.now, interrupt.cause))
                raise

    job = cluster.submit(Job(body=body))
    env.run(job)
    assert (job.state, env.now) == ("cancelled", 5)
    assert heard == ["continues", (5, "cancelled")][: 1 + len(then)]


def test_an_error_in_a_body_names_its_job():
    def at_once(env, job, grant):
        raise KeyError("a bug")
        yield

    def later(env, job, grant):
        yield env.timeout(5)
        raise KeyError("a bug")

    for body in (at_once, later, lambda env, job, grant: [][0]):
        env = Environment()
        Cluster(env, 1).submit(Job(id=7, body=body))
        with pytest.raises((KeyError, IndexError)) as caught:
            env.run()
        assert caught.value.__notes__ == [f"in the body of job 7 at {env.now:g} s"]


# ---------------------------------------------------------------------- errors and values


def broken(env, job, grant):
    yield env.timeout(5)
    raise ValueError("a bug")


def solved(env, job, grant):
    yield env.timeout(3)
    return 42


SYSTEMS = {
    "cluster": lambda env: Cluster(env, 2),
    "broker": lambda env: Broker(env, [Cluster(env, 2, name="a"), Cluster(env, 2, name="b")], "round-robin"),
    "brokers": lambda env: Broker(env, [Broker(env, [Cluster(env, 2)], "round-robin", name="b")], "round-robin"),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_error_in_a_body_fails_its_job_and_reaches_who_waits(system):
    env = Environment()
    place = SYSTEMS[system](env)
    job = place.submit(Job(id="x", body=broken))
    heard = []

    def user(wait):
        try:
            yield wait()
        except ValueError as error:
            heard.append((env.now, str(error), job.state))

    for wait in (lambda: job, lambda: job | env.timeout(9), lambda: env.all_of([job])):
        env.process(user(wait))
    env.run()
    assert heard == [(5, "a bug", "failed")] * 3
    env.process(user(lambda: job))  # also after its end
    env.run()
    assert len(heard) == 4
    assert (job.ok, job.error, job.value, job.defused) == (False, job.value, job.error, True)
    assert job.error.__notes__ == ["in the body of job x at 5 s"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_raises_an_error_in_a_body_for_which_nobody_waits_and_goes_on(system):
    env = Environment()
    place = SYSTEMS[system](env)
    jobs = [place.submit(Job(processors=2, body=broken)) for _ in range(3)]
    seen = []
    jobs[0].callbacks.append(seen.append)  # which does not take the error
    for count in (1, 2, 3):
        with pytest.raises(ValueError, match="a bug"):
            env.run()
        assert [job.state for job in jobs].count("failed") >= count  # two clusters fail at one instant
    env.run()
    assert seen == [jobs[0]]
    with pytest.raises(ValueError, match="a bug"):
        env.run(until=place.submit(Job(body=broken)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_a_body_returns_is_the_value_of_its_job(system):
    env = Environment()
    place = SYSTEMS[system](env)
    jobs = [place.submit(Job(body=solved)) for _ in range(2)]

    def user():
        return (yield jobs[0])

    assert env.run(until=env.process(user())) == 42
    env.run()
    assert [job.value for job in jobs] == [42, 42]
    assert [(job.state, job.ok, job.error) for job in jobs] == [("completed", True, None)] * 2


def test_the_answer_of_a_job_is_that_of_its_last_execution():
    def body(env, job, grant):
        try:
            yield env.timeout(10)
        except simpy.Interrupt:
            return "interrupted"

    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=1, cores=1)])],
        on_failure="resubmit",
        outages=[OutageSpec(at=5, until=7, nodes=[0], kind="failure")],
    )
    env = Environment()
    job = Cluster(env, spec).submit(Job(body=body))
    env.run()
    assert (job.attempts, job.state, env.now) == (2, "completed", 17)
    assert job.value is job


def test_a_body_that_is_no_generator_fails_its_job():
    for body in (lambda env, job, grant: [][0], lambda env, job, grant: 5):
        env = Environment()
        cluster = Cluster(env, 1)
        job, after = cluster.submit(Job(body=body)), cluster.submit(Job(run=1))
        with pytest.raises((IndexError, ValueError)):
            env.run()
        env.run()
        assert (job.state, after.state) == ("failed", "completed")


def test_a_failure_of_the_model_is_heard_by_nobody_but_can_be_had():
    def fails(env, job, grant):
        yield env.timeout(5)
        raise JobFailed("no licence")

    env = Environment()
    cluster = Cluster(env, 1)
    job = cluster.submit(Job(body=fails))
    assert env.run(until=job) is job
    assert (job.state, job.ok, str(job.error)) == ("failed", True, "no licence")
