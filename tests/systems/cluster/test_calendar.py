"""Outages, failures and reservations end to end: cases worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from simpy import Interrupt

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError, Stalled
from simmodel.platform.cluster import (
    ClusterSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.resources.pools.counts import CountPool
from simmodel.runs.scenario import simulate
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Dependency, Job
from tests.helpers.batch_cases import to_workload
from tests.helpers.cluster_watch import Watch


def on_processors(count=4, **settings):
    return ClusterSpec(partitions=[PartitionSpec(processors=count)], **settings)


def on_nodes(count=4, cores=1, **settings):
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=count, cores=cores)])], **settings)


def play(spec, jobs, policy="fcfs", **options):
    """Submit jobs at their instants; return the events and the cluster."""
    env = Environment(seed=1)
    watch = Watch(env)
    env.observe(watch)
    cluster = Cluster(env, spec, policy, **options)

    def submit(job):
        yield env.timeout(job.submit)
        cluster.submit(job)

    for job in jobs:
        env.process(submit(job))
    env.run(until=5000)
    return watch.heard, cluster


def starts(heard):
    return {job: at for at, what, job in heard if what == "started"}


# ---------------------------------------------------------------------- maintenance


@pytest.mark.parametrize("make", [on_processors, on_nodes])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep"])
def test_no_job_starts_that_would_run_into_a_maintenance(make, policy):
    part = {"processors": 4} if make is on_processors else {"nodes": range(4)}
    spec = make(outages=[OutageSpec(at=100, until=200, kind="maintenance", **part)])
    jobs = [
        Job(id="before", processors=4, run=60, requested=60),
        Job(id="too long", processors=2, run=10, requested=50),
        Job(id="fits", processors=2, run=40, requested=40),
    ]
    heard, _ = play(spec, jobs, policy)
    backfilled = {"before": 0, "too long": 200, "fits": 60 if policy != "fcfs" else 200}
    assert starts(heard) == backfilled
    assert [each for each in heard if each[1] in ("maintenance", "resume")] == [
        (100, "maintenance", 0),
        (200, "resume", 4),
    ]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_jobs_keep_off_the_nodes_of_a_maintenance(policy):
    spec = on_nodes(3, outages=[OutageSpec(at=100, until=200, kind="maintenance", nodes=["node0"])])
    env = Environment()
    cluster = Cluster(env, spec, policy)
    used = {}
    env.observe(SimpleNamespace(job_started=lambda run: used.setdefault(run.job.id, (env.now, run.grant.nodes))))
    for name, run, processors in [("a", 150, 1), ("b", 90, 1), ("c", 150, 2), ("d", 10, 1)]:
        cluster.submit(Job(id=name, run=run, processors=processors))
    env.run()
    # c needs two nodes for 150 s: the maintenance of node 0 ends at 200, that of the others at 150.
    expected = {"a": (0, (1,)), "b": (0, (0,)), "c": (150, (1, 2)), "d": (0, (2,))}
    if policy == "fcfs":
        expected["d"] = (200, (0,))
    assert used == expected


def test_a_job_that_overran_into_a_maintenance_goes_on():
    spec = on_processors(4, outages=[OutageSpec(at=10, until=50, kind="maintenance", processors=4)])
    jobs = [Job(id=1, processors=3, run=30, requested=10), Job(id=2, submit=1, processors=1, run=5)]
    heard, cluster = play(spec, jobs, "easy", overrun="continue")
    assert heard == [
        (0, "started", 1),
        (1, "started", 2),
        (6, "completed", 2),
        (10, "maintenance", 0),
        (30, "completed", 1),
        (50, "resume", 4),
    ]
    assert cluster.places[0].free == 4


def test_overlapping_outages_of_processors():
    spec = on_processors(
        4,
        outages=[
            OutageSpec(at=10, until=40, kind="drain", processors=3),
            OutageSpec(at=20, until=30, kind="maintenance", processors=3),
        ],
    )
    heard, cluster = play(spec, [])
    assert heard == [(10, "drain", 1), (20, "maintenance", 0), (30, "resume", 1), (40, "resume", 4)]
    assert cluster.places[0].free == 4


# ---------------------------------------------------------------------- drains


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_running_jobs_of_drained_nodes_end_and_nothing_new_starts_there(policy):
    spec = on_nodes(2, cores=4, outages=[OutageSpec(at=10, until=100, kind="drain", nodes=[0])])
    jobs = [Job(id=1, processors=4, run=50), Job(id=2, submit=20, processors=8, run=5), Job(id=3, submit=60, run=7)]
    heard, cluster = play(spec, jobs, policy)
    assert starts(heard) == {1: 0, 2: 100, 3: 60 if policy != "fcfs" else 105}
    assert (50, "completed", 1) in heard
    assert [each for each in heard if each[1] in ("drain", "resume")] == [(10, "drain", 4), (100, "resume", 8)]
    assert cluster.places[0].free == 8


def test_drained_from_the_first_for_ever():
    spec = on_processors(4, outages=[OutageSpec(at=0, kind="drain", processors=2)])
    env = Environment()
    watch = Watch(env)
    env.observe(watch)
    cluster = Cluster(env, spec)
    cluster.submit(Job(id=1, processors=2, run=5))
    cluster.submit(Job(id=2, processors=3, run=5))
    with pytest.raises(Stalled, match="job 2 has waited for 3 processors of batch since 0 s; 2 of 4 are free"):
        env.run()
    assert watch.heard == [(0, "drain", 2), (0, "started", 1), (5, "completed", 1)]


# ---------------------------------------------------------------------- failures


def test_a_failure_stops_the_jobs_on_its_nodes_and_they_start_again():
    spec = on_nodes(2, outages=[OutageSpec(at=30, until=50, nodes=["node1"])])
    heard, _ = play(spec, [Job(id=1, run=40), Job(id=2, run=40), Job(id=3, processors=2, run=10)])
    assert heard == [
        (0, "started", 1),
        (0, "started", 2),
        (30, "failure", 1),
        (30, "requeued", 2),
        (40, "completed", 1),
        (40, "started", 2),
        (50, "repair", 2),
        (80, "completed", 2),
        (80, "started", 3),
        (90, "completed", 3),
    ]


def test_jobs_are_lost_where_the_cluster_does_not_submit_them_again():
    spec = on_nodes(2, outages=[OutageSpec(at=30, until=50, nodes=[0, 1])], on_failure="lose")
    jobs = [
        Job(id=1, processors=2, run=40),
        Job(id=2, run=5, dependencies=[Dependency(1, after="success")]),
        Job(id=3, run=5, dependencies=[1]),
    ]
    heard, _ = play(spec, jobs)
    assert heard == [
        (0, "started", 1),
        (30, "failure", 0),
        (30, "lost", 1),
        (30, "withdrawn", 2),
        (50, "repair", 2),
        (50, "started", 3),
        (55, "completed", 3),
    ]


@pytest.mark.parametrize(("keeps", "end"), [(False, 50 + 40), (True, 50 + 10)])
def test_work_done_is_kept_by_jobs_that_say_so(keeps, end):
    spec = on_nodes(1, outages=[OutageSpec(at=30, until=50, nodes=[0])])
    heard, _ = play(spec, [Job(id=1, run=40, requested=40, keeps_work=keeps)])
    assert heard[-1] == (end, "completed", 1)


def test_a_job_that_ends_as_its_node_fails_has_ended():
    for options in ({}, {"decide_on": "event"}, {"decide_on": "event", "event_order": "ends-first"}):
        spec = on_nodes(1, outages=[OutageSpec(at=30, until=50, nodes=[0])])
        heard, _ = play(spec, [Job(id=1, run=30), Job(id=2, submit=31, run=5)], **options)
        assert heard[:3] == [(0, "started", 1), (30, "completed", 1), (30, "failure", 0)]
        assert starts(heard) == {1: 0, 2: 50}


def test_a_body_may_clean_up_when_its_node_fails():
    spec = on_nodes(1, outages=[OutageSpec(at=30, until=50, nodes=[0])], on_failure="lose")
    cleaned = []

    def body(env, job, grant):
        try:
            yield env.timeout(100)
        except Interrupt as interrupt:
            cleaned.append((env.now, interrupt.cause, grant.nodes))

    heard, cluster = play(spec, [Job(id=1, body=body)])
    assert cleaned == [(30, "lost", (0,))]
    assert (30, "lost", 1) in heard
    assert cluster.places[0].free == 1


class Running(SimpleNamespace):
    __hash__ = object.__hash__


def test_processors_that_fail_are_drawn_among_all_that_are_up():
    """Jobs use 20, 30 and 40 of 100 processors: a failed one hits each in proportion, or none."""
    pool = CountPool(Environment(), "pool", 100)
    for name, processors, end in (("a", 20, 9.0), ("b", 30, 5.0), ("c", 40, 7.0)):
        pool.free -= processors
        pool.running.add(Running(name=name, expected_end=end), processors)
    rng = np.random.default_rng(3)
    counts = dict.fromkeys(["a", "b", "c", ""], 0)
    pool.take_down(1)
    for _ in range(4000):
        hit = pool.absences.hit_by(1, rng)
        counts[hit[0].name if hit else ""] += 1
    for name, share in (("a", 0.2), ("b", 0.3), ("c", 0.4), ("", 0.1)):
        assert abs(counts[name] / 4000 - share) < 4 * (share * (1 - share) / 4000) ** 0.5
    pool.take_down(99)
    assert [run.name for run in pool.absences.hit_by(100, rng)] == ["a", "b", "c"]


def test_all_processors_fail():
    spec = on_processors(4, outages=[OutageSpec(at=5, until=8, processors=4)])
    heard, cluster = play(spec, [Job(id=1, processors=3, run=10), Job(id=2, processors=1, run=5)])
    assert starts(heard) == {1: 8, 2: 0}
    assert (5, "requeued", 1) in heard
    assert (5, "completed", 2) in heard
    assert cluster.places[0].free == 4


CHANCE = FailureModel(mean_time_between_failures=300, mean_time_to_repair=20)


@pytest.mark.parametrize("make", [on_processors, on_nodes])
def test_failures_by_chance_repeat_with_the_seed(make):
    jobs = [Job(id=i, submit=7.0 * i, processors=1 + i % 3, run=30 + i, requested=100) for i in range(40)]
    spec = make(4, failures=[CHANCE])

    def outcome(seed, policy="easy"):
        result = simulate(spec, jobs, policy, seed=seed)
        assert (result.jobs["status"] == "completed").all()
        return result

    one, again, other = outcome(1), outcome(1), outcome(2)
    assert one.jobs["end"].tolist() == again.jobs["end"].tolist()
    assert one.jobs["end"].tolist() != other.jobs["end"].tolist()
    assert (one.jobs["attempts"] > 1).any()
    # The failures depend only on the seed.
    known = [
        (change["time"], change["cause"])
        for change in outcome(1, "conservative").changes.rows()
        if change["time"] < 300
    ]
    assert known == [(change["time"], change["cause"]) for change in one.changes.rows() if change["time"] < 300]


def test_a_replay_ends_though_failures_go_on():
    result = simulate(on_processors(4, failures=[CHANCE]), to_workload(cases_job(), 4), "easy")
    assert result.jobs["status"].tolist() == ["completed"] * 2


def cases_job():
    from tests.oracles.batch import Job as Row

    return [Row(0, 10, 20, 2), Row(5, 10, 20, 4)]


@pytest.mark.long  # smaller: the other tests of the file
def test_mean_availability_of_units_that_fail_by_chance():
    spec = on_processors(50, failures=[FailureModel(mean_time_between_failures=80, mean_time_to_repair=20)])
    env = Environment(seed=4)
    cluster = Cluster(env, spec)
    pool = cluster.places[0]
    env.run(until=500)
    up = []
    for at in range(520, 12000, 20):
        env.run(until=at)
        up.append(pool.up)
    assert abs(np.mean(up) / 50 - 0.8) < 0.01


# ---------------------------------------------------------------------- reservations

LECTURE = ReservationSpec(name="lecture", start=100, end=200, nodes=[2, 3], users=["ann"])


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep"])
def test_a_reservation_is_for_its_users_alone(policy):
    spec = on_nodes(4, reservations=[LECTURE])
    env = Environment()
    cluster = Cluster(env, spec, policy)
    used = {}
    env.observe(
        SimpleNamespace(job_started=lambda run: used.setdefault(run.job.id, (env.now, run.place.name, run.grant.nodes)))
    )
    cluster.submit(Job(id="lecture", run=60, processors=2, user="ann", partition="lecture"))
    cluster.submit(Job(id="again", run=60, processors=1, user="ann", partition="lecture", requested=40))
    cluster.submit(Job(id="other", run=150, processors=3, user="bob"))
    cluster.submit(Job(id="small", run=150, processors=2, user="ann"))
    with pytest.raises(ImpossibleWork, match="access of user bob requested, reservation lecture is for other users"):
        cluster.submit(Job(run=10, user="bob", partition="lecture"))
    with pytest.raises(ImpossibleWork, match="101 s requested, reservation lecture has 100"):
        cluster.submit(Job(run=101, user="ann", partition="lecture"))
    with pytest.raises(ImpossibleWork, match="3 processors requested, lecture has 2"):
        cluster.submit(Job(run=1, processors=3, user="ann", partition="lecture"))
    env.run(until=1000)
    assert used.pop("lecture") == (100, "lecture", (0, 1))
    assert used.pop("again") == (160, "lecture", (0,))
    # The other jobs have only nodes 0 and 1 until 200.
    if policy == "fcfs":
        assert used == {"other": (200, "batch", (0, 1, 2)), "small": (350, "batch", (0, 1))}
    else:
        assert used == {"other": (200, "batch", (0, 1, 2)), "small": (0, "batch", (0, 1))}
    with pytest.raises(ImpossibleWork, match="reservation lecture ended at 200 s"):
        cluster.submit(Job(run=1, user="ann", partition="lecture"))
    assert cluster.pools["lecture"].nodes == ["node2", "node3"]


def test_a_reservation_of_processors_for_a_queue():
    spec = on_processors(
        4,
        queues=[QueueSpec(name="class"), QueueSpec(name="other")],
        reservations=[ReservationSpec(name="r", start=50, end=100, processors=3, queues=["class"])],
    )
    jobs = [
        Job(id=1, processors=3, run=20, queue="class", partition="r"),
        Job(id=2, processors=2, run=60, queue="other"),
        Job(id=3, processors=2, run=50, queue="other"),
    ]
    heard, cluster = play(spec, jobs, "easy")
    assert starts(heard) == {1: 50, 3: 0, 2: 100}
    with pytest.raises(ImpossibleWork, match="access of queue other requested, reservation r is for other queues"):
        Cluster(Environment(), spec).submit(Job(run=1, queue="other", partition="r"))
    assert [each for each in heard if each[1] in ("reservation", "resume")] == [
        (0, "reservation", 0),
        (50, "reservation", 1),
        (50, "reservation", 3),
        (100, "resume", 0),
        (100, "resume", 4),
    ]
    assert [pool.free for pool in cluster.places] == [4, 0]


def test_what_runs_or_waits_at_the_end_of_a_reservation_is_over():
    spec = on_nodes(4, reservations=[LECTURE])
    jobs = [
        Job(id=1, run=150, requested=90, user="ann", partition="lecture", processors=2),
        Job(id=2, run=50, user="ann", partition="lecture"),
        Job(id=3, run=50, user="ann", partition="lecture", dependencies=[1]),
        Job(id=4, run=50, processors=4),
    ]
    heard, _ = play(spec, jobs, overrun="continue")
    assert heard == [
        (0, "reservation", 0),
        (0, "started", 4),
        (50, "completed", 4),
        (100, "reservation", 2),
        (100, "reservation", 2),
        (100, "started", 1),
        (200, "resume", 0),
        (200, "timeout", 1),
        (200, "withdrawn", 2),
        (200, "withdrawn", 3),
        (200, "resume", 4),
    ]


def test_a_reservation_takes_jobs_until_its_end_and_none_at_it():
    env = Environment()
    cluster = Cluster(env, on_nodes(4, reservations=[LECTURE]), "fcfs")
    env.run(until=199)
    last = cluster.submit(Job(run=1, user="ann", partition="lecture"))
    env.run(until=200)
    with pytest.raises(ImpossibleWork, match="access at 200 s requested, reservation lecture ended at 200 s"):
        cluster.submit(Job(run=0, user="ann", partition="lecture"))
    env.run()
    assert last.state == "completed"


@pytest.mark.parametrize("make", [on_processors, on_nodes])
def test_jobs_that_overran_into_a_reservation_give_way(make):
    part = {"processors": 3} if make is on_processors else {"nodes": [1, 2, 3]}
    spec = make(4, reservations=[ReservationSpec(name="r", start=50, end=100, **part)])
    jobs = [
        Job(id=1, run=60, requested=60),
        Job(id=2, run=70, requested=40, processors=3),
        Job(id=3, run=10, processors=3, partition="r"),
    ]
    heard, _ = play(spec, jobs, overrun="continue")
    assert (50, "requeued", 2) in heard
    assert starts(heard) == {1: 0, 2: 100, 3: 50}


def test_what_fails_of_a_partition_fails_in_its_reservation():
    spec = on_nodes(
        3,
        reservations=[ReservationSpec(name="r", start=50, end=100, nodes=[1, 2])],
        outages=[OutageSpec(at=20, until=60, nodes=[1]), OutageSpec(at=70, until=80, nodes=[2])],
    )
    jobs = [Job(id=1, run=15, processors=2, partition="r"), Job(id=2, run=5, partition="r")]
    heard, cluster = play(spec, jobs, "easy")
    assert starts(heard) == {1: 80, 2: 50}
    assert (70, "requeued", 1) in heard
    assert [pool.up for pool in cluster.places] == [3, 0]


def test_reservations_stay_out_of_the_total():
    result = simulate(
        on_processors(4, reservations=[ReservationSpec(name="r", start=10, end=20, processors=2)]),
        [Job(processors=2, run=10, submit=1, partition="r"), Job(processors=4, run=10)],
        "fcfs",
    )
    assert result.processors == 4
    assert result.jobs["start"].tolist() == [10, 0]
    assert set(result.capacity().values.tolist()) == {4}
    assert result.utilisation().mean() == pytest.approx((4 * 10 + 2 * 10) / (4 * 20))


def test_wrong_calendars():
    with pytest.raises(InputError, match="got 'batch'"):
        Cluster(
            Environment(), on_processors(4, reservations=[ReservationSpec(name="batch", start=0, end=1, processors=1)])
        )
    with pytest.raises(InputError, match=r"must be nodes of batch .* got 'node7'"):
        Cluster(Environment(), on_nodes(4, outages=[OutageSpec(at=0, nodes=["node7"])]))
    with pytest.raises(InputError, match="got 4"):
        Cluster(Environment(), on_nodes(4, reservations=[ReservationSpec(name="r", start=0, end=1, nodes=[4])]))
