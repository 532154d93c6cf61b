"""Nodes of different speeds: run times by hand, and runs that scale."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel import Cluster, Environment, InputError, Job, simulate
from simmodel.futures.start_times import predict
from simmodel.metrics import energy
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, from_dict, to_dict
from simmodel.snapshots import ClusterSnapshot
from simmodel.systems.cluster.from_data import snapshot_of
from simmodel.work import Workload
from tests.helpers.examples import up_to
from tests.helpers.snapshot_cuts import check_cut


def cluster_of(*speeds: float, cores: int = 4, **options: Any) -> ClusterSpec:
    """Return a cluster of one node per speed."""
    nodes = [NodeSpec(name=f"n{i}-", cores=cores, speed=speed, load_power=100) for i, speed in enumerate(speeds)]
    return ClusterSpec(partitions=[PartitionSpec(nodes=nodes)], **options)


whole = partial(Job, nodes=1, cores_per_node=4)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "fast"])
def test_speeds_are_positive(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"speed: must be a finite number > 0, got"):
        NodeSpec(speed=wrong)


def test_speeds_are_in_files() -> None:
    spec = cluster_of(1, 2.5)
    values = to_dict(spec)
    assert [node.get("speed") for node in values["partitions"][0]["nodes"]] == [None, 2.5]
    assert from_dict(values) == spec


def test_a_job_runs_at_the_speed_of_its_slowest_node() -> None:
    jobs = [whole(run=100), whole(run=100), Job(nodes=2, cores_per_node=4, run=100)]
    result = simulate(cluster_of(2, 0.5), jobs, "fcfs")
    assert result.runs["start"].tolist() == [0, 0, 200]
    assert result.runs["end"].tolist() == [50, 200, 400]
    assert result.jobs["run"].tolist() == [50, 200, 200]


def test_it_is_expected_to_end_at_its_speed() -> None:
    env = Environment()
    cluster = Cluster(env, cluster_of(4))
    cluster.submit(whole(run=100, requested=200))
    env.run(until=1)
    (run,) = cluster.places[0].running
    assert run.expected_end == 50
    assert cluster.snapshot().running[0].end == 25
    assert cluster.snapshot(actual=False).running[0].expected_end == 50


@pytest.mark.parametrize(("overrun", "end", "status"), [("stop", 30, "timeout"), ("continue", 50, "completed")])
def test_requested_times_are_for_speed_1(overrun: str, end: float, status: str) -> None:
    result = simulate(cluster_of(2), [whole(run=100, requested=60)], "fcfs", overrun=overrun)
    assert (result.jobs["end"].tolist(), result.jobs["status"].tolist()) == ([end], [status])


@pytest.mark.parametrize(("keeps_work", "end"), [(True, 50), (False, 110)])
def test_kept_work_counts_at_the_speed_at_which_it_was_done(keeps_work: bool, end: float) -> None:
    """The first node fails at 10 s, after 40 of the 80 seconds of work; the other node has speed 1."""
    spec = cluster_of(4, 1, outages=[OutageSpec(at=10, nodes=[0])])
    first = simulate(spec, [whole(run=80, keeps_work=keeps_work)], "fcfs")
    assert first.runs["nodes"].tolist() == [(0,), (1,)]
    assert first.runs["end"].tolist() == [10, 50 if keeps_work else 90]
    two = [whole(id=1, run=80, keeps_work=keeps_work), whole(id=2, run=10)]
    later = simulate(attrs.evolve(spec, outages=[OutageSpec(at=10, until=30, nodes=[0])]), two, "fcfs")
    assert later.jobs["end"].tolist() == [50 if keeps_work else 90, 10]


@pytest.mark.parametrize("cut", [None, 15.0])
def test_a_suspended_job_has_done_its_elapsed_time_at_its_speed(cut: float | None) -> None:
    env = Environment()
    cluster = Cluster(env, cluster_of(2))
    job = cluster.submit(whole(run=100, requested=120, on_preempt="suspend"))
    env.run(until=10)
    cluster.execution.preempt(job, "suspend")
    assert (job.requested, job.expected, job.past.executed) == (100, 100, 10)
    if cut is None:
        env.run()
    else:
        env.run(until=cut)
        snapshot = ClusterSnapshot.from_json(cluster.snapshot().to_json())
        env = Environment(cut)
        cluster = Cluster.from_snapshot(env, snapshot)
        env.run()
    assert cluster.result().jobs["end"].tolist() == [50]


def test_a_body_has_its_own_time_and_a_limit_in_seconds() -> None:
    def body(env: Any, job: Any, grant: Any) -> Any:
        yield env.timeout(job.spec.requested - 5 if job.id == 1 else 1000)

    env = Environment()
    cluster = Cluster(env, cluster_of(2, 2), "fcfs")
    jobs = [cluster.submit(whole(id=number, body=body, requested=60)) for number in (1, 2)]
    env.run(until=20)
    assert [job.run.expected_end for job in jobs] == [60, 60]
    env.run()
    assert cluster.result().jobs["end"].tolist() == [55, 60]
    assert cluster.result().jobs["status"].tolist() == ["completed", "timeout"]


def test_estimates_know_the_speed_of_the_nodes_on_which_a_job_would_start() -> None:
    cluster = Cluster(Environment(), cluster_of(1, 4))
    cluster.submit(whole(run=100))
    cluster.env.run(until=1)
    estimate = cluster.estimate(whole(run=100))
    assert (estimate.start, estimate.run) == (1, 25)


def test_snapshots_from_data_expect_ends_at_the_speed_of_the_nodes() -> None:
    running = [{"id": node, "nodes": 1, "requested": 60, "started": 90, "on": [node]} for node in (0, 1)]
    spec = cluster_of(2, 1)
    waiting = [{"id": 2, "nodes": 1, "cores_per_node": 4, "requested": 40}]
    seen = snapshot_of(spec, now=100, running=running, waiting=waiting)
    assert [run.expected_end for run in seen.running] == [120, 150]
    found = predict(seen, "fcfs")
    assert found.starts == [(2, "batch", 120)]
    assert found.jobs["end"].tolist() == [120, 150, 140]


def test_energy_is_of_seconds_that_pass() -> None:
    assert energy(simulate(cluster_of(2), [whole(run=100)], "fcfs")).total == 50 * 100


def test_a_backfilled_job_is_expected_to_end_at_its_speed_when_the_policy_decides_again() -> None:
    """The second job is backfilled on the slow node, where it takes until 80 s: from then on that is known.

    The head waits for both nodes, and was promised 50 s when the second job was thought to end at 40 s. The third job,
    which comes at 1 s, would end before that.
    """
    jobs = [
        whole(id=1, run=50),
        Job(id=2, nodes=2, cores_per_node=4, run=10),
        Job(id=3, nodes=1, cores_per_node=3, run=40),
        Job(id=4, nodes=1, cores_per_node=1, run=35, submit=1),
    ]
    result = simulate(cluster_of(1, 0.5), jobs, "easy")
    assert result.jobs["start"].tolist() == [0, 80, 0, 1]
    assert result.jobs["end"].tolist() == [50, 100, 80, 71]


@st.composite
def queues(draw: st.DrawFn) -> list[Job]:
    def drawn(number: int) -> Job:
        run = draw(st.floats(0, 100))
        return Job(
            id=number,
            submit=draw(st.integers(0, 200)),
            nodes=draw(st.integers(1, 2)),
            cores_per_node=draw(st.integers(1, 4)),
            run=run,
            requested=draw(st.sampled_from([None, run + 10, max(1.0, run / 2)])),
        )

    return [drawn(number) for number in range(draw(st.integers(1, 12)))]


@given(jobs=queues(), policy=st.sampled_from(["fcfs", "sjf", "largest"]), overrun=st.sampled_from(["stop", "continue"]))
@settings(max_examples=up_to(60), deadline=None)
def test_twice_the_work_at_twice_the_speed_is_the_same_schedule(jobs: list[Job], policy: str, overrun: str) -> None:
    double = [
        attrs.evolve(job, run=2 * job.run, requested=None if job.requested is None else 2 * job.requested)
        for job in jobs
    ]
    slow, fast = (
        simulate(cluster_of(*[speed] * 3), Workload.from_jobs(work), policy, overrun=overrun)
        for speed, work in ((1, jobs), (2, double))
    )
    for name in ("start", "end", "status"):
        assert slow.jobs[name].tolist() == fast.jobs[name].tolist()


@given(
    jobs=queues(),
    speeds=st.lists(st.sampled_from([0.5, 0.7, 1.0, 3.0]), min_size=2, max_size=4),
    policy=st.sampled_from(["fcfs", "easy", "conservative", "conservative-keep", "preemptive"]),
    cuts=st.lists(st.integers(1, 300), min_size=1, max_size=3, unique=True),
)
@settings(max_examples=up_to(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_runs_go_on_from_a_snapshot_at_their_speeds(jobs: Any, speeds: Any, policy: str, cuts: Any) -> None:
    def make(name: str) -> tuple[Environment, Cluster]:
        env = Environment()
        cluster = Cluster(env, cluster_of(*speeds), name)
        cluster.replay(Workload.from_jobs(jobs))
        return env, cluster

    check_cut(make, policy, sorted(map(float, cuts)))
