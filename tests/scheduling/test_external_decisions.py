"""Decisions from outside: the scheduler leaves the run loop at each question, and continues after the answer."""

import random

import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, PolicyError, Stalled
from simmodel.platform.cluster import ClusterSpec
from simmodel.scheduling.protocol import Decision, Preempt, Start, View, WakeAt
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job


def some_jobs(count: int = 300, seed: int = 1) -> list[Job]:
    draw = random.Random(seed)
    jobs, at = [], 0
    for _ in range(count):
        at += draw.choice((0, 0, 1, 5, 40))
        run = draw.choice((0, 1, 20, 300))
        jobs.append(Job(submit=at, processors=draw.randint(1, 8), run=run, requested=run + draw.choice((1, 100))))
    return jobs


def submitted(cluster: Cluster, jobs: list[Job]) -> list:
    live = []

    def source(env):
        for job in jobs:
            if job.submit > env.now:
                yield env.timeout(job.submit - env.now)
            live.append(cluster.submit(job))

    cluster.env.process(source(cluster.env))
    return live


def answered(cluster: Cluster) -> int:
    """Have the cluster's own policy answer each question; return their number."""
    scheduler, env = cluster.scheduler, cluster.env
    scheduler.external = True
    questions = 0
    while True:
        env.run()
        if scheduler.question is None:
            return questions
        scheduler.ask()
        scheduler.close()
        questions += 1


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "sjf+easy", "conservative", "conservative-keep"])
def test_a_policy_answering_from_outside_starts_every_job_when_it_does_inside(policy):
    starts = []
    for outside in (False, True):
        cluster = Cluster(Environment(), 8, policy)
        live = submitted(cluster, some_jobs())
        if outside:
            assert answered(cluster) == cluster.scheduler.calls > 100
        else:
            cluster.env.run()
        starts.append([(job.id, job.started) for job in live])
        decisions = cluster.scheduler.decisions, cluster.scheduler.calls
        starts[-1].append(decisions)
    assert starts[0] == starts[1]


def one_question(policy="fcfs", processors=4):
    env = Environment()
    cluster = Cluster(env, processors, policy)
    jobs = [cluster.submit(Job(processors=3, run=10)), cluster.submit(Job(processors=1, run=10))]
    cluster.scheduler.external = True
    env.run()
    assert cluster.scheduler.question is cluster.view
    return cluster, jobs


def test_decisions_may_come_one_by_one_and_each_is_applied_at_once():
    cluster, (first, second) = one_question()
    pool = cluster.places[0]
    assert cluster.scheduler.due
    assert cluster.scheduler.apply([Start(second, pool)]) == 1
    assert (second.state, first.state, pool.free) == ("running", "waiting", 3)
    assert cluster.scheduler.apply(Start(job, pool) for job in cluster.view.waiting) == 1
    assert first.state == "running"
    cluster.scheduler.close()
    assert cluster.scheduler.question is None
    assert not cluster.scheduler.due
    assert (cluster.scheduler.calls, cluster.scheduler.decisions) == (1, 2)
    cluster.env.run()
    assert cluster.env.now == 10


def test_a_wrong_decision_leaves_the_question_open():
    cluster, (first, second) = one_question(processors=3)
    pool = cluster.places[0]
    with pytest.raises(PolicyError, match="does not fit"):
        cluster.scheduler.apply([Start(first, pool), Start(second, pool)])
    assert (first.state, second.state) == ("running", "waiting")
    assert cluster.scheduler.question is not None
    with pytest.raises(PolicyError, match=r"cannot preempt .* it is not running"):
        cluster.scheduler.apply([Preempt(second)])
    cluster.scheduler.apply([WakeAt(3)])
    cluster.scheduler.close()
    cluster.env.run()
    assert cluster.env.now == 3
    assert cluster.scheduler.question is not None


def test_answers_without_a_question_are_refused():
    cluster = Cluster(Environment(), 4)
    with pytest.raises(InputError, match="no decision is awaited"):
        cluster.scheduler.apply([])
    with pytest.raises(InputError, match="no decision is awaited"):
        cluster.scheduler.ask()
    cluster.scheduler.close()


def test_decisions_inside_submissions_cannot_come_from_outside():
    cluster = Cluster(Environment(), 4, decide_on="event")
    with pytest.raises(InputError, match="cannot decide from outside with decide_on='event'"):
        cluster.scheduler.external = True
    assert not cluster.scheduler.external


def test_a_run_until_a_time_or_an_event_is_left_and_goes_on_without_a_trace():
    for until in (lambda env: 50, lambda env: env.timeout(50)):
        cluster, _ = one_question()
        env = cluster.env
        cluster.scheduler.close()
        env.run(until=5)
        cluster.submit(Job(processors=1, run=1))
        stop = until(env)
        env.run(until=stop)
        assert env.now == 5
        assert cluster.scheduler.question is not None
        cluster.scheduler.external = False
        env.run(until=7)
        env.run(until=20)
        assert env.now == 20


def test_what_would_have_ended_a_run_that_was_left_does_not_move_the_clock():
    cluster, _ = one_question()
    cluster.scheduler.ask()
    cluster.scheduler.close()
    cluster.submit(Job(processors=4, run=1))
    cluster.env.run(until=1000)
    cluster.scheduler.external = False
    cluster.scheduler.wake()
    cluster.env.run()
    assert cluster.env.now == 11


def test_a_question_left_open_is_closed_by_the_next_one():
    cluster, (first, _) = one_question()
    cluster.submit(Job(processors=1, run=1))
    cluster.env.run()
    assert cluster.scheduler.question is not None
    assert cluster.scheduler.calls == 1
    cluster.scheduler.ask()
    cluster.scheduler.close()
    assert first.state == "running"


def test_work_that_nobody_starts_is_reported():
    cluster, _ = one_question()
    cluster.scheduler.close()
    with pytest.raises(Stalled, match="2 still wait"):
        cluster.env.run()


def test_a_broker_is_asked_before_its_clusters_and_they_decide_after_it_in_the_same_instant():
    env = Environment()
    clusters = [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")]
    broker = Broker(env, clusters, "round-robin")
    for scheduler in (broker.scheduler, clusters[1].scheduler):
        scheduler.external = True
    jobs = [broker.submit(Job(processors=4, run=10)) for _ in range(2)]
    env.run()
    assert (broker.scheduler.question is not None, clusters[1].scheduler.question) == (True, None)
    broker.scheduler.ask()
    broker.scheduler.close()
    env.run()
    assert env.now == 0
    assert jobs[0].state == "running"  # cluster a is decided by its own policy
    assert clusters[1].scheduler.question is not None


def test_a_broker_refuses_to_preempt():
    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a")], "round-robin")
    broker.submit(Job(processors=4, run=10))
    broker.scheduler.external = True
    env.run()
    with pytest.raises(PolicyError, match="decisions must be Start, Reserve, WakeAt, got Preempt"):
        broker.scheduler.apply([Preempt(next(iter(broker.view.waiting)))])


def test_a_snapshot_between_question_and_answer_is_one_before_the_decision():
    cluster, _ = one_question("easy")
    snapshot = cluster.snapshot()
    again = Cluster.from_snapshot(Environment(), snapshot)
    again.env.run()
    assert [run.tolist() for run in (again.result().jobs["start"],)] == [[0.0, 0.0]]


def test_a_stepped_environment_leaves_its_run_too():
    class Stepped(Environment):
        def step(self) -> None:
            super().step()

    env = Stepped()
    cluster = Cluster(env, 4)
    cluster.submit(Job(processors=4, run=10))
    cluster.scheduler.external = True
    env.run(until=100)
    assert env.now == 0
    assert cluster.scheduler.question is not None
    cluster.scheduler.ask()
    cluster.scheduler.close()
    env.run(until=100)
    assert env.now == 100


class Boost:
    """A custom decision: a job gets another priority."""

    def __init__(self, work, priority: float) -> None:
        self.work = work
        self.priority = priority


def test_a_decision_type_of_ones_own_is_carried_out_by_the_function_it_is_given():
    def policy(view: View) -> list[Decision | Boost]:
        return [Boost(job, 5) for job in view.waiting]

    cluster = Cluster(Environment(), 4, policy)
    job = cluster.submit(Job(processors=4, run=10))
    with pytest.raises(PolicyError, match=r"decisions must be Start, .*, got .*Boost"):
        cluster.env.run()

    boosted = []

    def boost(decision: Boost) -> str | None:
        if decision.work in boosted:
            return "boosted before"
        boosted.append(decision.work)
        return None

    cluster.scheduler.handlers[Boost] = boost
    cluster.scheduler.wake()
    with pytest.raises(Stalled):
        cluster.env.run()
    assert boosted == [job]
    cluster.scheduler.wake()
    with pytest.raises(PolicyError, match="boosted before"):
        cluster.env.run()


def test_a_preemption_that_the_job_forbids_is_refused_with_the_reason():
    spec = ClusterSpec.simple(4)
    cluster = Cluster(Environment(), spec, lambda view: [Preempt(run.job) for run in view.running])
    job = cluster.submit(Job(processors=4, run=10, on_preempt="no"))
    cluster.scheduler.external = True
    cluster.env.run()
    cluster.scheduler.apply([Start(job, cluster.places[0])])
    with pytest.raises(PolicyError, match="the job forbids preemption"):
        cluster.scheduler.ask()
