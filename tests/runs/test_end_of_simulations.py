"""When simulations end: with their work, whatever wake-ups policies have planned."""

from __future__ import annotations

import pytest

from simmodel import Cluster, Environment, Job, Start, Task, WakeAt, simulate, start, what_if
from simmodel.runs.simulation import Simulation
from simmodel.work.workflow import Workflow


def restless(view):
    """Start all that fits, and wake again in 600 s, for ever."""
    for job in view.waiting:
        if view.places[0].fits(job):
            yield Start(job, view.places[0])
    yield WakeAt(view.now + 600)


def restless_broker(view):
    for job in view.waiting:
        yield Start(job, view.places[0])
    yield WakeAt(view.now + 600)


JOBS = [Job(run=100), Job(submit=3000, run=5)]


def test_a_policy_that_always_wakes_later_does_not_prolong_a_simulation():
    sim = start(4, JOBS, restless).run()
    assert (sim.env.now, sim.result().jobs["end"].tolist()) == (3005, [100, 3005])


@pytest.mark.parametrize("decide_on", ["instant", "event"])
def test_it_ends_for_every_way_to_decide(decide_on):
    assert simulate(4, JOBS, restless, decide_on=decide_on).jobs["end"].tolist() == [100, 3005]


def test_it_ends_with_brokers_and_the_clusters_below():
    for policies in ({"policy": restless_broker}, {"policies": restless}):
        assert simulate({"a": 4, "b": 4}, {"a": JOBS}, **policies).jobs["end"].tolist() == [100, 3005]


def test_a_policy_that_wakes_for_ever_ends_with_the_tasks():
    def always(view):
        for task in view.waiting:
            yield Start(task, view.places[0])
        yield WakeAt(view.now + 600)

    result = simulate("hetsim-slow", Workflow([Task(id="a", run=100)]), always)
    assert len(result.tasks) == 1


def test_until_is_honoured():
    assert start(4, JOBS, restless).run(until=9000).env.now == 9000
    assert start(4, JOBS, restless, until=9500).run().env.now == 9500


def test_stepping_from_decision_to_decision_ends_too():
    sim = start(4, JOBS, restless)
    instants = []
    while (view := sim.next_decision()) is not None:
        instants.append(view.now)
        sim.decide()
    assert instants == [0, 600, 1200, 1800, 2400, 3000]


def test_what_ifs_end_too():
    snapshot = start(1, [Job(run=100), Job(run=30)], "fcfs").run(until=50).snapshot()
    assert len(what_if(snapshot, [restless, "fcfs"]).outcomes) == 2


def test_other_processes_of_a_script_go_on_and_may_submit_more():
    env = Environment()
    cluster = Cluster(env, 4, restless)

    def later(env):
        yield cluster.submit(Job(run=10))
        yield env.timeout(5000)
        cluster.submit(Job(run=10))

    env.process(later(env))
    sim = Simulation(cluster).run()
    assert sim.result().jobs["end"].tolist() == [10, 5020]


def test_an_environment_run_by_a_script_is_as_it_was():
    env = Environment()
    cluster = Cluster(env, 4, restless)
    cluster.submit(Job(run=10))
    env.run(until=100_000)
    assert cluster.scheduler.calls == 1 + 100_000 // 600
