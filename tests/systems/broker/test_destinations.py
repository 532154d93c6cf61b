"""Systems of every kind as places of brokers: clusters, custom systems of jobs, and brokers."""

from types import SimpleNamespace
from typing import Any

import pytest

from simmodel import Cluster, Environment, Job, TaskSet, simulate
from simmodel.foundation.errors import ImpossibleWork, InputError, PolicyError
from simmodel.policies.estimates import EarliestFinish
from simmodel.resources.pools.counts import CountPool
from simmodel.scheduling.protocol import Load, Start
from simmodel.systems.broker.system import Broker
from simmodel.systems.jobs import JobSystem
from simmodel.work.job import Dependency
from simmodel.work.workload import Workload


class Slots(JobSystem):
    kind = "bag"


def slots(env: Environment, count: int, name: str = "slots", policy="fcfs") -> JobSystem:
    return Slots(env, SimpleNamespace(name=name), policy, places=[CountPool(env, name, count)])


def house(env: Environment, policy="sgs-t") -> Broker:
    """A broker over a cluster, a system of slots, and a broker over two clusters."""
    inner = Broker(env, [Cluster(env, 4, "easy", name="b"), Cluster(env, 2, "easy", name="c")], "sgs-t", name="inner")
    return Broker(env, [Cluster(env, 4, "easy", name="a"), slots(env, 3), inner], policy, name="outer")


def test_jobs_go_to_every_kind_of_place_and_are_followed_there() -> None:
    env = Environment()
    outer = house(env, "round-robin")
    jobs = [outer.submit(Job(processors=2, run=10 + i, requested=20 + i)) for i in range(6)]
    assert [job.state for job in jobs] == ["waiting"] * 6
    env.run(until=5)
    assert [job.destination.name for job in jobs] == ["a", "slots", "inner"] * 2
    assert [job.state for job in jobs] == ["running", "running", "running", "running", "waiting", "running"]
    assert [job.started for job in jobs] == [0, 0, 0, 0, None, 0]
    assert sorted(run.expected_end for run in outer.view.running) == [20, 21, 22, 23, 25]
    assert [run.expected_end for run in outer.view.running] == [20, 21, 22, 23, 25]
    assert [job in outer.handed for job in jobs] == [True] * 6
    env.run()
    assert [job.state for job in jobs] == ["completed"] * 6
    assert [job.started for job in jobs] == [0, 0, 0, 0, 11, 0]
    result = outer.result()
    assert result.jobs["end"].tolist() == [10, 11, 12, 13, 25, 15]
    assert result.jobs["destination"].tolist() == ["a", "slots", "inner"] * 2
    assert sorted(set(result.runs["place"].tolist())) == ["a", "inner/b", "slots"]
    assert outer.unfinished == 0
    assert not outer.handed


def test_waiting_cancelling_and_dependencies_reach_through_all_levels() -> None:
    env = Environment()
    outer = house(env, "round-robin")
    seen = []

    def user(env):
        first = outer.submit(Job(id="x", processors=1, run=10))
        on_slots = outer.submit(Job(id="y", processors=3, run=50))
        below = outer.submit(Job(id="z", processors=4, run=30))
        after = outer.submit(Job(id="after", run=5, dependencies=[Dependency("z"), Dependency("y", after="start")]))
        started = outer.submit(Job(id="started", run=5, dependencies=[Dependency("z", after="start", think_time=3)]))
        yield first
        seen.append((env.now, first.state))
        outer.cancel(on_slots)
        seen.append((env.now, on_slots.state))
        outer.cancel(on_slots)  # it has ended: nothing happens
        yield below & after & started
        seen.append((env.now, below.state, after.started, started.started))

    env.process(user(env))
    env.run()
    assert seen == [(10, "completed"), (10, "cancelled"), (35, "completed", 30, 3)]
    with pytest.raises(InputError, match="it has started or ended"):
        outer.withdraw(next(iter(outer.families[0].known.values())))


def test_a_job_that_waits_below_can_be_withdrawn() -> None:
    env = Environment()
    outer = house(env, "round-robin")
    jobs = [outer.submit(Job(processors=3, run=100)) for _ in range(6)]
    env.run(until=1)
    last = jobs[4]
    assert (last.state, last.destination.name) == ("waiting", "slots")
    outer.withdraw(last)
    assert (last.state, last.below.state) == ("cancelled", "cancelled")
    env.run()
    assert outer.result().jobs["status"].tolist() == ["completed"] * 4 + ["cancelled", "completed"]


def test_the_estimate_of_a_broker_is_the_least_of_its_places() -> None:
    env = Environment()
    outer = house(env)
    inner = outer.named["inner"].system
    for name, processors, run in (("b", 4, 100), ("c", 2, 30), ("a", 4, 70)):
        place = (outer.named | inner.named)[name]
        place.system.submit(Job(processors=processors, run=run))
    env.run(until=10)
    assert inner.estimate(Job(processors=2, run=5)).start == 30
    assert inner.estimate(Job(processors=3, run=5)).start == 100
    assert outer.estimate(Job(processors=3, run=5)).start == 10
    assert outer.estimate(Job(processors=4, run=5)).start == 70
    with pytest.raises(ImpossibleWork, match="5 processors requested"):
        outer.estimate(Job(processors=5, run=5))
    assert outer.why_not(Job(processors=5, run=5)).startswith(
        "5 processors requested, batch has 4; 5 processors requested, slots has 3"
    )
    assert outer.can_run(Job(processors=4, run=5))
    job = outer.submit(Job(processors=4, run=5))
    env.run()
    assert (job.started, job.destination.name) == (70, "a")


def test_questions_change_nothing_also_where_they_raise() -> None:
    """The policy of the cluster raises while it is simulated; the job is unchanged."""

    def impatient(view):
        for job in view.waiting:
            if job.id == "asked":
                raise PolicyError("not this one")
            yield Start(job, view.places[0])

    env = Environment()
    cluster = Cluster(env, 4, impatient, name="a")
    broker = Broker(env, [cluster], lambda view: (), slowdowns=[2.0])
    broker.replay(Workload({"job": ["asked"], "submit": [0], "run": [10], "requested": [30], "processors": [2]}))
    env.run(until=1)
    (job,) = broker.view.waiting
    before = job.requested, job.expected, job._duration, job.place, job.state
    with pytest.raises(PolicyError):
        broker.places[0].estimate(job)
    assert (job.requested, job.expected, job._duration, job.place, job.state) == before
    submitted = cluster.submitted, broker.submitted
    cluster.why_not(Job(run=1)), broker.why_not(Job(run=1)), broker.places[0].can_run(job)
    assert (cluster.submitted, broker.submitted) == submitted


def test_loads_add_up() -> None:
    env = Environment()
    places = [slots(env, 2, "x"), slots(env, 3, "y")]
    broker = Broker(env, places, "round-robin")
    for i in range(6):
        broker.submit(Job(processors=2, run=4, requested=10 * (i + 1)))
    assert broker.load == Load(5, 6, 2 * 210 * 2**20, 0)
    env.run(until=1)
    assert [place.load for place in broker.places] == [
        Load(0, 2, 2 * 80 * 2**20, 2 * 9 * 2**20),
        Load(1, 2, 2 * 100 * 2**20, 2 * 19 * 2**20),
    ]
    assert broker.load == Load(1, 4, 360 * 2**20, 56 * 2**20)
    assert broker.places[0].backlog == 178
    assert [broker.places[1].queued, broker.places[1].runs, broker.places[1].queued_processors] == [2, 1, 4]
    env.run()
    assert broker.load == Load(5, 0, 0, 0)


def test_slowdowns_and_homes_hold_for_every_kind() -> None:
    env = Environment()
    inner = Broker(env, [slots(env, 2, "x")], "round-robin", slowdowns=[3], name="inner")
    outer = Broker(env, [inner, slots(env, 2, "y")], EarliestFinish("home"), slowdowns={("y", "inner"): 2, "y": 7})
    job = outer.submit(Job(run=10, requested=20), home="y")
    env.run()
    assert (job.destination.name, job.started) == ("inner", 0)
    (row,) = outer.result().jobs.rows()
    assert (row["end"], row["run"], row["requested"], row["slowdown"], row["asked"]) == (60, 60, 120, 2, 20)


def test_a_system_that_decides_once_an_instant_goes_with_one_that_does_not() -> None:
    env = Environment()
    strict = Cluster(env, 2, "fcfs", name="a", decide_on="event")
    broker = Broker(env, [strict, slots(env, 2)], "sgs-t")
    assert broker.timing == strict.timing
    jobs = [broker.submit(Job(processors=2, run=10)) for _ in range(3)]
    assert [job.destination.name for job in jobs] == ["a", "slots", "a"]
    assert [job.state for job in jobs] == ["running", "waiting", "waiting"]
    env.run()
    assert [job.started for job in jobs] == [0, 0, 10]


def test_wrong_jobs_are_refused_in_one_sentence() -> None:
    env = Environment()
    system = slots(env, 2)

    def body(env, job, grant):
        yield env.timeout(1)

    system.kind = "bag"
    for job, reason in (
        (Job(run=1, dependencies=[1]), "a bag does not support jobs with dependencies"),
        (Job(body=body), "a bag does not support jobs with bodies"),
        (Job(run=1, processors=3), "3 processors requested, slots has 2"),
    ):
        with pytest.raises(ImpossibleWork, match=reason):
            system.submit(job)
    first, second = system.submit(Job(run=9, processors=2, cancel=5)), system.submit(Job(run=9, cancel=3))
    env.run()
    assert (first.state, second.state, env.now) == ("cancelled", "cancelled", 5)


@pytest.mark.parametrize("policy", ["earliest-finish", EarliestFinish()], ids=["by name", "by class"])
def test_earliest_finish_chooses_at_every_level(policy: Any) -> None:
    """The policy that maps tasks to processors also hands jobs to clusters, and to a broker with the same policy."""
    machine = simulate("hetsim-slow", TaskSet([30.0, 40.0, 50.0]), policy)
    assert machine.tasks["processor"].tolist() == ["gpu", "fpga", "fpga"]
    env = Environment()
    clusters = [Cluster(env, 4, name="a"), Cluster(env, 2, name="b")]
    inner = Broker(env, clusters, policy, name="inner")
    outer = Broker(env, [inner, Cluster(env, 4, name="c")], policy, name="outer")
    jobs = [outer.submit(Job(processors=2, run=10)) for _ in range(7)]
    env.run()
    assert [job.destination.name for job in jobs] == ["inner"] * 3 + ["c"] * 2 + ["inner"] * 2
    assert [job.started for job in jobs] == [0] * 5 + [10] * 2
