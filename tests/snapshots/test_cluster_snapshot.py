"""Snapshots of clusters worked out by hand: contents, hidden facts, and refused states."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.futures.start_times import predict
from simmodel.platform.cluster import (
    ClusterSpec,
    FailureModel,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.policies import Easy
from simmodel.policies.preemption import Preemptive
from simmodel.runs.scenario import Scenario, simulate
from simmodel.scheduling.protocol import Start
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Dependency, Job
from simmodel.work.workload import Workload
from tests.helpers.small_snapshots import at
from tests.helpers.snapshot_cuts import check_cut, check_rows, log_of

# ---------------------------------------------------------------------- order and planned events


def test_simultaneous_ends_keep_their_order():
    jobs = [
        Job(id="late", submit=0, run=20, requested=20),
        Job(id="early", submit=5, run=15, requested=40),
        Job(id="last", submit=8, run=12, requested=12),
    ]
    cluster = at(10, jobs)
    snapshot = ClusterSnapshot.from_json(cluster.snapshot().to_json())
    env = Environment(10)
    again = Cluster.from_snapshot(env, snapshot)
    log = log_of(env)
    env.run()
    assert [row[2] for row in log.rows] == ["late", "early", "last"]
    assert {row[0] for row in log.rows} == {20.0}
    assert again.result().jobs["start"].tolist() == [0, 5, 8]


def test_failures_to_come_are_drawn_as_they_would_have_been():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=6)],
        failures=[FailureModel(mean_time_between_failures=60, mean_time_to_repair=10)],
    )
    jobs = [Job(id=i, submit=3 * i, processors=1 + i % 3, run=20, requested=30) for i in range(30)]

    def make(policy):
        env = Environment(seed=4)
        cluster = Cluster(env, spec, policy)
        cluster.replay(Workload.from_jobs(jobs))
        return env, cluster

    rows = check_cut(make, "easy", [20, 41, 77], until=400)
    assert sum(row[1] == "requeued" for row in rows) > 3


def test_another_seed_draws_other_failures():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        failures=[FailureModel(mean_time_between_failures=50, mean_time_to_repair=10)],
    )
    cluster = at(5, [Job(id=i, processors=2, run=30) for i in range(8)], spec)
    ends = [simulate(cluster.snapshot(), seed=seed).jobs["end"].tolist() for seed in (None, None, 7, 8)]
    assert ends[0] == ends[1]
    assert ends[2] != ends[3]


def test_a_run_can_be_cut_before_its_first_event():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        outages=[OutageSpec(at=0, until=30, processors=2), OutageSpec(at=0, until=9, processors=1, kind="maintenance")],
        reservations=[ReservationSpec(name="r", start=0, end=20, processors=1)],
    )
    env = Environment()
    cluster = Cluster(env, spec, "easy")
    cluster.replay(Workload.from_jobs([Job(processors=1, run=10), Job(processors=3, run=10)]))
    snapshot = ClusterSnapshot.from_json(cluster.snapshot().to_json())
    later = Environment()
    again = Cluster.from_snapshot(later, snapshot)
    logs = [log_of(env), log_of(later)]
    env.run()
    later.run()
    assert logs[0].rows == logs[1].rows
    check_rows(again.result(), cluster.result())


def test_a_snapshot_inside_an_instant_has_the_decision_still_to_come():
    env = Environment()
    cluster = Cluster(env, 4, "fcfs")
    cluster.submit(Job(processors=2, run=5))
    snapshot = cluster.snapshot()
    assert snapshot.policy.due
    assert (len(snapshot.running), len(snapshot.waiting), snapshot.new) == (0, 1, (0,))
    assert simulate(snapshot).jobs["start"].tolist() == [0]


# ---------------------------------------------------------------------- the view of a what-if


def test_a_what_if_never_sees_actual_ends():
    def jobs(factor):
        return [
            Job(id=1, processors=3, run=20 * factor, requested=50, cancel=45 * factor),
            Job(id=2, processors=4, run=10 * factor, requested=30),
            Job(id=3, processors=1, run=40 * factor, requested=40, submit=1),
            Job(id=4, processors=1, run=5, submit=15 + factor),
        ]

    clusters = [at(10, jobs(factor)) for factor in (1, 0.5)]
    snapshots = [cluster.snapshot() for cluster in clusters]
    assert snapshots[0] != snapshots[1]
    assert snapshots[0].expected() == snapshots[1].expected()
    for cluster, snapshot in zip(clusters, snapshots, strict=True):
        assert snapshot.expected() == cluster.snapshot(actual=False)
        found = cluster.view.simulate("easy")
        assert found.starts == [(3, "batch", 10.0), (2, "batch", 50.0)] or found.starts == [
            (2, "batch", 50.0),
            (3, "batch", 80.0),
        ]
        assert found.jobs["end"][0] == 50
    assert clusters[0].view.simulate("easy").starts == clusters[1].view.simulate("easy").starts


def test_actual_run_times_can_be_asked_for():
    cluster = at(10, [Job(id=1, processors=3, run=20, requested=50), Job(id=2, processors=4, run=10, requested=30)])
    assert cluster.view.simulate("fcfs", estimates="actual").starts == [(2, "batch", 20.0)]
    assert cluster.view.simulate("fcfs").starts == [(2, "batch", 50.0)]
    assert cluster.view.simulate("fcfs", horizon=40).starts == []
    assert cluster.view.simulate("fcfs", horizon=40.5).starts == [(2, "batch", 50.0)]


def test_overdue_work_is_expected_to_end_just_after_now():
    jobs = [Job(id=1, processors=4, run=100, requested=10), Job(id=2, processors=4, run=5, requested=5)]
    cluster = at(30, jobs, overrun="continue")
    snapshot = cluster.snapshot()
    assert (snapshot.running[0].expected_end, snapshot.running[0].end) == (10, 100)
    found = predict(snapshot.expected())
    just = np.nextafter(30, np.inf)
    assert found.starts == [(2, "batch", just)]
    assert found.jobs["end"].tolist() == [just, just + 5]
    assert found.now == []
    assert predict(snapshot).starts == [(2, "batch", 100)]


def test_failures_and_drains_to_come_are_not_foreseen_and_maintenance_is():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        outages=[
            OutageSpec(at=20, until=60, processors=4, kind="failure"),
            OutageSpec(at=20, until=70, processors=4, kind="drain"),
            OutageSpec(at=40, until=50, processors=4, kind="maintenance"),
        ],
    )
    cluster = at(5, [Job(id=1, processors=4, run=15), Job(id=2, processors=4, run=30)], spec, "easy")
    assert cluster.view.simulate("easy").starts == [(2, "batch", 50.0)]
    env = cluster.env
    env.run(until=30)
    assert cluster.view.simulate("easy").starts == [(2, "batch", 70.0)], "what is away is expected back"


def test_what_failed_by_chance_is_expected_back_after_the_mean_time_to_repair():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=1)],
        failures=[FailureModel(mean_time_between_failures=1, mean_time_to_repair=1000)],
    )
    env = Environment(seed=1)
    cluster = Cluster(env, spec, "fcfs")
    cluster.submit(Job(processors=1, run=500))
    env.run(until=100)
    assert cluster.places[0].up == 0
    assert cluster.view.simulate("fcfs").starts == [(1, "batch", 1100.0)]


def test_bodies_and_claims_are_foreseen_by_what_they_ask_for_and_not_copied():
    def body(env, job, grant):
        yield env.timeout(7)

    env = Environment()
    cluster = Cluster(env, 4, "fcfs")
    cluster.submit(Job(id="script", processors=2, body=body, requested=40))
    cluster.submit(Job(id="next", processors=4, run=5))
    env.run(until=1)
    assert cluster.view.simulate("fcfs").starts == [("next", "batch", 40.0)]
    with pytest.raises(SnapshotError, match="job script cannot be copied: it has a body"):
        cluster.snapshot()
    env.run(until=20)

    def user(env):
        with cluster.places[0].claim(3, duration=30) as claim:
            yield claim
            yield env.timeout(2)

    env.process(user(env))
    cluster.submit(Job(id="wide", processors=2, run=5))
    env.run(until=21)
    assert cluster.view.simulate("fcfs").starts == [("wide", "batch", 50.0)]
    with pytest.raises(SnapshotError, match="process user, which has a claim of 3 processors"):
        cluster.snapshot()


def test_a_window_that_calls_a_function_cannot_be_copied():
    cluster = at(1, [Job(processors=1, run=5)])
    cluster.places[0].announce(10, 20, 2, print)
    with pytest.raises(SnapshotError, match="it calls a function"):
        cluster.snapshot()
    assert cluster.snapshot(actual=False).places[0].windows == ((10, 20, 2, False, ""),)


def test_what_is_suspended_starts_where_it_goes_on():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        queues=[QueueSpec(name="urgent", preempts=["free"]), QueueSpec(name="free", preemptible="suspend")],
    )
    jobs = [
        Job(id="a", processors=3, run=15, queue="free", requested=20),
        Job(id="b", processors=4, run=5, queue="urgent", submit=8, requested=10),
    ]
    cluster = at(10, jobs, spec, "preemptive")
    found = cluster.view.simulate("preemptive")
    assert found.starts == [("a", "batch", 18.0)]
    assert found.jobs["end"].tolist() == [18, 30]
    assert found.jobs["waiting"].tolist() == [False, True]


def test_a_policy_may_look_ahead_and_nothing_changes():
    class Looking:
        name = "looking"

        def decide(self, view):
            ahead = view.simulate("easy")
            jobs = {job.id: job for job in view.waiting}
            for name, _ in ahead.now:
                yield Start(jobs[name], view.places[0])

    rng = np.random.default_rng(3)
    jobs = [
        Job(id=i, submit=float(rng.integers(200)), run=float(rng.integers(1, 60)), requested=60.0, processors=int(n))
        for i, n in enumerate(rng.integers(1, 9, 60))
    ]
    for options in ({}, {"decide_on": "event"}, {"decide_on": "event", "event_order": "ends-first"}):
        looking = simulate(8, jobs, Looking(), **options)
        assert looking.jobs["start"].tolist() == simulate(8, jobs, "easy", **options).jobs["start"].tolist()


def test_another_policy_starts_with_the_usage_of_what_runs():
    jobs = [Job(id=1, processors=3, run=50, user="ada"), Job(id=2, processors=4, run=10, user="ada", submit=1)]
    jobs.append(Job(id=3, processors=4, run=10, user="bob", submit=2))
    cluster = at(30, jobs)
    assert [start[0] for start in cluster.view.simulate("fcfs").starts] == [2, 3]
    assert [start[0] for start in cluster.view.simulate("multifactor").starts] == [3, 2]


# ---------------------------------------------------------------------- continuation


def test_a_result_knows_what_happened_before():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        queues=[QueueSpec(name="urgent", preempts=["free"]), QueueSpec(name="free", preemptible="suspend")],
    )
    jobs = [
        Job(id="a", processors=3, run=20, queue="free", requested=30),
        Job(id="b", processors=4, run=5, queue="urgent", submit=8),
        Job(id="c", processors=1, run=5, queue="urgent", dependencies=[Dependency("b", think_time=3)]),
        Job(id="d", processors=1, run=5, queue="urgent", submit=50),
    ]
    whole = simulate(spec, jobs, "preemptive")
    for instant in (4, 10, 14, 30):
        cluster = at(instant, jobs, spec, "preemptive")
        part = simulate(ClusterSnapshot.from_json(cluster.snapshot().to_json()), events=True)
        check_rows(part, whole)
        assert part.started == instant
        assert part.events is not None
        after = part.runs["end"] if len(part.runs) else np.zeros(0)
        assert set(after) <= set(whole.runs["end"])
    assert whole.jobs["status"].tolist() == ["completed"] * 4


def test_simulate_takes_another_policy_more_jobs_and_an_end():
    cluster = at(5, [Job(id=1, processors=3, run=10), Job(id=2, processors=4, run=10)])
    snapshot = cluster.snapshot()
    more = [Job(id=3, submit=6, processors=1, run=4), Job(id=4, submit=7, processors=9, run=4)]
    assert simulate(snapshot, more).jobs["start"].tolist()[:3] == [0, 10, 20]
    eager = simulate(snapshot, more, "easy")
    assert eager.jobs["start"].tolist()[:3] == [0, 10, 6]
    assert eager.jobs["status"].tolist()[3] == "rejected"
    assert eager.report.rejected["larger than the machine"] == 1
    assert simulate(snapshot, more, policy="easy").jobs["end"].tolist()[:3] == [10, 20, 10]
    stopped = simulate(snapshot, until=8)
    assert stopped.jobs["status"].tolist() == ["running", "waiting"]
    assert stopped.ended == 8


def test_a_run_that_went_on_can_be_repeated():
    cluster = at(5, [Job(id=1, processors=3, run=10), Job(id=2, processors=4, run=10)])
    result = simulate(cluster.snapshot(), Workload({"submit": [6], "run": [4], "processors": [1]}), "easy")
    scenario = Scenario.from_document(json.loads(result.to_json())["scenario"])
    assert scenario.run().jobs["start"].tolist() == result.jobs["start"].tolist() == [0, 10, 6]
    assert scenario.run(policy="fcfs").jobs["start"].tolist() == [0, 10, 20]


def test_jobs_can_be_submitted_to_a_cluster_that_goes_on():
    cluster = at(5, [Job(id=1, processors=3, run=10), Job(id=2, processors=4, run=10)])
    env = Environment(5)
    again = Cluster.from_snapshot(env, cluster.snapshot())
    late = again.submit(Job(id=3, processors=4, run=1, dependencies=[Dependency(1)]))
    assert late.seq == 2
    env.run()
    assert again.result().jobs["start"].tolist() == [0, 10, 20]
    assert late.state == "completed"


def test_the_policy_has_to_be_given_again_where_it_has_no_name():
    cluster = at(5, [Job(id=1, processors=3, run=10), Job(id=2, processors=4, run=10)], policy=Preemptive(Easy("sjf")))
    with pytest.raises(InputError, match=r"policy 'preemptive sjf\+easy' was passed as an object: pass it again"):
        simulate(cluster.snapshot())
    assert simulate(cluster.snapshot(), policy=Preemptive(Easy("sjf"))).jobs["start"].tolist() == [0, 10]


def test_promises_go_on():
    jobs = [
        Job(id=1, processors=4, run=10, requested=20),
        Job(id=2, processors=3, run=10, requested=10, submit=1),
        Job(id=3, processors=2, run=30, requested=30, submit=2),
    ]
    cluster = at(5, jobs, policy="conservative-keep")
    snapshot = cluster.snapshot()
    assert snapshot.policy.state == {
        "promised": {"batch": [[1, 20.0, None], [2, 30.0, None]]},
        "settled": {"batch": True},
    }
    assert [each.what for each in snapshot.planned] == ["end", "alarm", "alarm"]
    env = Environment(5)
    again = Cluster.from_snapshot(env, ClusterSnapshot.from_json(snapshot.to_json()))
    log = log_of(env)
    env.run()
    assert [row[1:3] for row in log.rows if row[1] == "promised"] == [("promised", 3)], (
        "only what moves is promised anew"
    )
    assert again.result().jobs["start"].tolist() == [0, 10, 20]


# ---------------------------------------------------------------------- wrong use


def test_wrong_calls_get_one_sentence():
    snapshot = at(5, [Job(id=1, run=10)]).snapshot()
    with pytest.raises(InputError, match=r"env\.now: must be 5 s, the time of the snapshot, got 0 s"):
        Cluster.from_snapshot(Environment(), snapshot)
    with pytest.raises(InputError, match="job 9: must be submitted at or after 5 s"):
        simulate(snapshot, [Job(id=9, submit=4, run=1)])
    with pytest.raises(InputError, match="unknown workload 'easy'"):
        simulate(snapshot, "easy")
    with pytest.raises(InputError, match="until: must be > 5 s"):
        simulate(snapshot, until=5)
    with pytest.raises(InputError, match="unknown policy 'esay'"):
        simulate(snapshot, policy="esay")
    with pytest.raises(InputError, match="processors: must not be passed with a snapshot"):
        simulate(snapshot, processors=3)


def test_a_policy_remembers_plain_values_only():
    class Odd:
        name = "odd"

        def decide(self, view):
            return ()

        def state(self):
            return {"view": object()}

    with pytest.raises(SnapshotError, match="policy odd cannot be copied"):
        at(1, [Job(run=5)], policy=Odd()).snapshot()


def test_what_is_busy_with_a_body_has_a_snapshot_of_what_policies_know():
    def body(env, job, grant):
        yield env.timeout(10)

    cluster = at(1, [Job(id=7, body=body, requested=20)])
    with pytest.raises(SnapshotError, match=r"job 7 cannot be copied: .* \(snapshot\(actual=False\) has what"):
        cluster.snapshot()
    assert [run.work.id for run in cluster.snapshot(actual=False).running] == [7]
    with pytest.raises(SnapshotError, match=r"cluster cannot be deep-copied: use snapshot\(\)"):
        copy.deepcopy(cluster)
