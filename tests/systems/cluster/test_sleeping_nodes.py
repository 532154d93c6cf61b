"""Nodes that sleep and boot: who uses them when, what plans promise, and what continues from a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, InputError, Job, PolicyError, Snapshot, simulate, start
from simmodel.metrics import energy, energy_by
from simmodel.platform import (
    ClusterSpec,
    FailureModel,
    NodePower,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    ReservationSpec,
)
from simmodel.policies import Easy, SleepAfter
from simmodel.policies.planning import ConservativeKeep
from simmodel.scheduling import Observer, Policy, Preempt, Sleep, View, Wake, WakeAt

TAURUS = NodePower(idle=95, load=190.7, off=9.75, boot=("150s", 125), stop=("6s", 101))


def spec_of(nodes: int, power: NodePower = TAURUS, cores: int = 1, **options: Any) -> ClusterSpec:
    kinds = [NodeSpec(count=nodes, cores=cores, power=power)]
    part = {name: options.pop(name) for name in ("exclusive", "placed_by") if name in options}
    return ClusterSpec(partitions=[PartitionSpec(nodes=kinds, **part)], **options)


class Watch(Observer):
    """Notes promises and starts, and checks that no job runs on a node that is not up."""

    def __init__(self) -> None:
        self.promises: dict[Any, list[float]] = {}
        self.starts: dict[Any, float] = {}

    def job_promised(self, job: Any, place: Any, at: float) -> None:
        self.promises.setdefault(job.id, []).append(at)

    def job_started(self, run: Any) -> None:
        self.starts.setdefault(run.job.id, run.started)
        assert not set(run.grant.nodes) & {*run.place.asleep, *run.place.booting}

    def place_changed(self, place: Any, cause: str) -> None:
        if cause == "sleep":
            held = {node for run in place.running for node in run.grant.nodes}
            assert not held & set(place.sleeping.change.nodes)


def test_a_job_wakes_the_node_that_it_needs_and_holds_it() -> None:
    env = Environment()
    cluster = Cluster(env, spec_of(2), "fcfs")
    pool = cluster.places[0]
    pool.sleep([0, 1])
    first = cluster.submit(Job(run=60, requested=100))
    env.run(until=1)
    assert first.state == "running"
    assert pool.booting == (0,)
    assert pool.asleep == (1,)
    assert (pool.free, first.started) == (1, None)
    env.run()
    assert (first.started, env.now) == (156.0, 216.0)
    job = cluster.result().jobs.rows()
    assert [(row["start"], row["wait"], row["run"]) for row in job] == [(156.0, 156.0, 60.0)]


def test_the_limit_counts_from_the_end_of_the_boot() -> None:
    result = simulate(spec_of(1), [Job(run=10), Job(submit=500, run=300, requested=200)], "sleep-after(0)")
    assert result.jobs["start"].tolist() == [0.0, 650.0]
    assert result.jobs["run"].tolist() == [10.0, 200.0]
    assert result.jobs["status"].tolist() == ["completed", "timeout"]


def test_a_stop_ends_before_a_boot_begins() -> None:
    result = simulate(spec_of(1), [Job(run=10), Job(submit=12, run=10)], "sleep-after(0)")
    assert result.jobs["start"].tolist() == [0.0, 16.0 + 150.0]
    states = energy_by(result, "state")
    found = dict(zip(states["state"].tolist(), states["energy"].tolist(), strict=True))
    assert found["stop"] == 6 * 101
    assert found["boot"] == 150 * 125
    assert "off" not in found


def test_awake_nodes_come_first() -> None:
    env = Environment()
    cluster = Cluster(env, spec_of(4), "fcfs")
    cluster.places[0].sleep([0, 2])
    jobs = [cluster.submit(Job(run=900, nodes=2)), cluster.submit(Job(run=9))]
    env.run(until=1)
    assert jobs[0].run is not None
    assert jobs[0].run.grant.nodes == (1, 3)
    assert cluster.places[0].booting == (0,)


def test_a_job_waits_for_a_node_that_comes_free_before_another_could_boot() -> None:
    env = Environment()
    cluster = Cluster(env, spec_of(2), "easy")
    cluster.submit(Job(run=100, requested=100))
    env.run(until=1)
    cluster.places[0].sleep([1])
    second = cluster.submit(Job(run=9, requested=50))
    env.run(until=2)
    assert cluster.places[0].earliest(second) == (100.0, 0)
    assert cluster.places[0].asleep == (1,)
    third = cluster.submit(Job(run=9, requested=50))
    env.run()
    assert second.started == 100
    assert third.started == 109


def test_a_promised_job_has_its_nodes_booted_in_time() -> None:
    env = Environment()
    cluster = Cluster(env, spec_of(2), Easy(promises=True))
    watch = env.observe(Watch()) or env
    cluster.submit(Job(run=1000, requested=1000))
    env.run(until=1)
    cluster.places[0].sleep([1])
    wide = cluster.submit(Job(run=9, requested=50, nodes=2))
    env.run(until=840)
    assert cluster.places[0].asleep == (1,)
    env.run()
    assert watch is not None
    assert wide.started == 1000.0


JOBS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 90), st.integers(0, 60), st.integers(1, 4)), min_size=1, max_size=14
)


def as_jobs(rows: list[tuple[int, int, int, int]], **more: Any) -> list[Job]:
    rows = sorted(rows)
    return [Job(submit=s, run=r, requested=r + extra, nodes=n, **more) for s, r, extra, n in rows]


@settings(max_examples=25, deadline=None)
@given(JOBS, st.sampled_from([0, 20, 100]), st.integers(0, 2), st.sampled_from([(0, 5), (30, 0), (70, 11)]))
def test_no_node_is_used_before_it_is_up_and_no_promise_is_broken(
    rows: list[tuple[int, int, int, int]], after: int, spare: int, times: tuple[int, int]
) -> None:
    power = NodePower(idle=95, load=190, off=9, boot=(times[0], 125), stop=(times[1], 101))
    for inner in (Easy(promises=True), Easy(promises=True, fast=False), ConservativeKeep(promises=True)):
        env, watch = Environment(), Watch()
        env.observe(watch)
        cluster = Cluster(env, spec_of(5, power), SleepAfter(after, inner, spare=spare))
        cluster.replay(as_jobs(rows))
        env.run()
        assert len(watch.starts) == len(rows)
        for job, promises in watch.promises.items() if isinstance(inner, Easy) else ():
            assert watch.starts[job] <= min(promises), (inner.name, job, watch.starts[job], promises)


@settings(max_examples=20, deadline=None)
@given(JOBS, st.sampled_from([0, 20, 100]), st.sampled_from(["fcfs", "easy", "conservative", "sjf+easy"]))
def test_boots_in_no_time_change_no_start(rows: list[tuple[int, int, int, int]], after: int, inner: str) -> None:
    power = NodePower(idle=95, load=190, off=9, boot=(0, 125))
    plain = simulate(spec_of(5, power), as_jobs(rows), inner)
    asleep = simulate(spec_of(5, power), as_jobs(rows), f"sleep-after({after}, {inner})")
    assert asleep.jobs["start"].tolist() == plain.jobs["start"].tolist()


@settings(max_examples=15, deadline=None)
@given(JOBS, st.sampled_from([0, 20]), st.sampled_from(["easy", "conservative", "conservative-keep"]), st.data())
def test_a_run_that_is_cut_and_continued_is_the_same(
    rows: list[tuple[int, int, int, int]], after: int, inner: str, data: Any
) -> None:
    power = NodePower(idle=95, load=190, off=9, boot=({"distribution": "exponential", "mean": 60}, 125), stop=(6, 101))
    policy, spec, jobs = f"sleep-after({after}, {inner})", spec_of(5, power), as_jobs(rows)
    whole = start(spec, jobs, policy, seed=3)
    whole.run()
    expected = whole.result()
    end = int(expected.ended)
    cut = data.draw(st.integers(1, end))
    part = start(spec, jobs, policy, seed=3)
    part.run(until=cut)
    found = simulate(Snapshot.from_json(part.snapshot().to_json())).jobs
    ends = dict(zip(expected.jobs["job"].tolist(), expected.jobs["end"].tolist(), strict=True))
    assert {row["job"]: row["end"] for row in found.rows()}.items() <= ends.items()


class Unsteady(Policy):
    """EASY that now and then has a running job start again, or lets nodes boot and sleep at random."""

    decides = "jobs"
    preempts = True

    def __init__(self) -> None:
        self.inner = Easy()

    def decide(self, view: View, /) -> Any:
        yield from self.inner.decide(view)
        place, draw = view.places[0], view.rng.random()
        if draw < 0.15 and view.running:
            yield Preempt(view.running[0].work, "requeue" if draw < 0.08 else "suspend")
        elif draw < 0.4 and place.sleeping.idle():
            yield Sleep(place, [place.sleeping.idle()[0][0]])
        elif draw < 0.5 and place.asleep:
            yield Wake(place, place.asleep[:1])
        yield WakeAt((view.now // 37 + 1) * 37)


@settings(max_examples=8, deadline=None)
@given(JOBS, st.integers(0, 5), st.sampled_from([0.0, 0.3]), st.booleans())
def test_failures_drains_reservations_and_preemption_hold(
    rows: list[tuple[int, int, int, int]], seed: int, failing: float, shared: bool
) -> None:
    power = NodePower(
        idle=95,
        load=190,
        off=9,
        boot=({"distribution": "exponential", "mean": 30}, 125),
        stop=(6, 101),
        boot_failures=failing,
        boot_repair=40,
    )
    spec = spec_of(
        6,
        power,
        cores=4,
        exclusive=not shared,
        failures=[FailureModel(mean_time_between_failures=900, mean_time_to_repair=30)],
        outages=[
            OutageSpec(at=100, until=160, nodes=[1], kind="drain"),
            OutageSpec(at=250, until=280, nodes=[2], kind="maintenance"),
        ],
        reservations=[ReservationSpec(name="course", start=200, end=300, nodes=[0, 3])],
        on_failure="resubmit",
    )
    env, watch = Environment(seed=seed), Watch()
    env.observe(watch)
    cluster = Cluster(env, spec, SleepAfter(25, Unsteady()))
    jobs = [
        Job(submit=s, run=r, requested=r + extra, nodes=n, cores_per_node=1 + s % 4) for s, r, extra, n in sorted(rows)
    ]
    live = [cluster.submit(job) for job in jobs] + [cluster.submit(Job(run=20, nodes=1, partition="course"))]
    env.run(until=9_000)
    pool = cluster.places[0]
    for node in pool.units:
        assert pool.table.free[0, node] in (4, 4 - 2.0**40 * pool.absences.times_down[node])
    assert all(job.state in ("completed", "timeout", "cancelled") for job in live)
    result = cluster.result()
    states = energy_by(result, "state")
    assert states["energy"].sum() == pytest.approx(energy_by(result)["energy"].sum(), rel=1e-12)
    assert states["energy"].sum() == pytest.approx(energy(result).total, rel=1e-12)


def test_a_boot_that_fails_takes_the_node_down_and_its_job_goes_elsewhere() -> None:
    power = NodePower(idle=95, load=190, off=9, boot=(30, 125), boot_failures=1.0, boot_repair=500)
    env = Environment()
    cluster = Cluster(env, spec_of(2, power), "fcfs")
    pool = cluster.places[0]
    pool.sleep([0, 1])
    job = cluster.submit(Job(run=60))
    env.run(until=31)
    assert pool.down_nodes == (0,)
    assert (job.state, pool.booting) == ("running", (1,))
    env.run(until=61)
    assert pool.down_nodes == (0, 1)
    assert (job.state, job.attempts, job.started) == ("waiting", 0, None)
    env.run()
    row = cluster.result().jobs.rows()[0] if isinstance(cluster.result().jobs.rows(), list) else None
    assert (job.state, job.started, job.attempts) == ("completed", 530.0, 1)
    assert row is None or row["wait"] == 530.0


def test_a_boot_belongs_to_the_job_that_woke_the_node() -> None:
    result = simulate(spec_of(1), [Job(id=1, run=60), Job(id=2, run=60, submit=400)], "sleep-after(300)")
    energies = energy_by(result)
    found = dict(zip(map(str, energies["job"].tolist()), energies["energy"].tolist(), strict=True))
    assert found["2"] == 150 * 125 + 60 * 190.7
    assert found["idle"] == 300 * 95 + 6 * 101 + 34 * 9.75


def test_claims_wake_the_nodes_that_they_need() -> None:
    env = Environment()
    cluster = Cluster(env, spec_of(2), "fcfs")
    cluster.places[0].sleep([0, 1])
    claim = cluster.places[0].claim(1)
    env.run(until=100)
    assert not claim.triggered
    env.run(until=157)
    assert claim.triggered
    assert claim.grant.nodes == (0,)


def test_a_job_that_is_cancelled_while_its_node_boots_has_not_started() -> None:
    env = Environment()
    cluster = Cluster(env, spec_of(1), "fcfs")
    cluster.places[0].sleep([0])
    job = cluster.submit(Job(run=60))
    env.run(until=20)
    cluster.cancel(job)
    env.run()
    assert (job.state, job.started, cluster.places[0].free) == ("cancelled", None, 1)
    assert np.isnan(cluster.result().jobs["start"]).all()


def wrong(decision: Any) -> Any:
    def policy(view: Any) -> Any:
        yield decision(view.places[0])

    return policy


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        (lambda place: Sleep(place, [7]), "unknown node 7 of batch"),
        (lambda place: Sleep(place, [0, 0]), "duplicate node 'node0' of batch"),
        (lambda place: Wake(place, ["node1"]), "nodes: must be nodes that sleep, got 'node1' of batch"),
        (lambda place: Sleep("batch", [0]), "place: must be a place of cluster, got 'batch'"),
    ],
)
def test_a_wrong_decision_is_one_sentence(decision: Any, sentence: str) -> None:
    with pytest.raises(PolicyError, match=sentence) as error:
        simulate(spec_of(2), [Job(run=1)], wrong(decision))
    assert "\n" not in str(error.value)


def test_wrong_nodes_are_one_sentence() -> None:
    env = Environment()
    pool = Cluster(env, spec_of(2), "fcfs").places[0]
    pool.claim(1)
    with pytest.raises(InputError, match="must be nodes that are up, awake and idle, got 'node0' of batch"):
        pool.sleep([0])
    pool.take_down([1])
    with pytest.raises(InputError, match="must be nodes that are up, awake and idle, got 'node1' of batch"):
        pool.sleep(["node1"])
    plain = Cluster(Environment(), ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2)])]), "fcfs")
    with pytest.raises(InputError, match="none has a boot in its power"):
        plain.places[0].sleep([0])
