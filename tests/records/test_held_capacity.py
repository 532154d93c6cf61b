"""Everything that holds capacity is in the record, and every figure equals an independent integral over the events."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import simpy
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Observer, load_result, simulate
from simmodel.metrics import energy, node_energy, power
from simmodel.platform import (
    ClusterSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.policies.preemption import Preemptive
from simmodel.results import Result
from tests.helpers.examples import up_to


def holder(env: Environment, cluster: Cluster, processors: int, start: float, seconds: float) -> Any:
    yield env.timeout(start)
    try:
        with cluster.places[0].claim(processors=processors) as grant:
            yield grant
            yield env.timeout(seconds)
    except simpy.Interrupt:
        pass


def test_a_claim_is_in_every_figure() -> None:
    env = Environment()
    cluster = Cluster(env, 10)
    env.process(holder(env, cluster, 10, 0, 100))
    env.run(until=5)
    cluster.submit(Job(processors=1, run=5))
    env.run()
    result = cluster.result()
    assert result.claims is not None
    assert list(result.claims.rows()) == [
        {
            "claim": "claim 1",
            "start": 0.0,
            "end": 100.0,
            "place": "batch",
            "processors": 10,
            "status": "released",
            "nodes": None,
        }
    ]
    assert result.metrics()["utilisation"] == pytest.approx(1005 / 1050)
    assert result.busy().values.tolist() == [10, 1]
    assert energy(result, idle_power=0, load_power=2).total == 2 * 1005


def test_claims_survive_stores_and_pictures(tmp_path: Any) -> None:
    env = Environment()
    cluster = Cluster(env, ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4, load_power=10)])]))
    env.process(holder(env, cluster, 6, 1, 9))
    cluster.submit(Job(processors=4, run=20, user="ann"))
    env.run()
    result = cluster.result()
    result.to_sqlite(tmp_path / "run.sqlite")
    result.to_csv(tmp_path / "run")
    for stored in (load_result(tmp_path / "run.sqlite"), load_result(tmp_path / "run")):
        assert isinstance(stored, Result)
        assert stored.claims is not None
        assert stored.claims["cores"].tolist() == [(4, 2)]
        assert stored.busy().integral() == result.busy().integral() == 4 * 20 + 6 * 9
    pytest.importorskip("matplotlib")
    for colour in ("wait", "user", "job"):
        result.plot.gantt(colour=colour)
    result.plot.overview()
    result.to_perfetto(tmp_path / "trace.json")
    assert '"name":"claim 1"' in (tmp_path / "trace.json").read_text()


def test_processors_that_drain_are_in_service_until_their_jobs_have_ended() -> None:
    drain = OutageSpec(at=10, until=1000, processors=10, kind="drain")
    spec = ClusterSpec(partitions=[PartitionSpec(name="p", processors=10)], outages=[drain])
    result = simulate(spec, [Job(processors=10, run=100)], "easy")
    assert result.metrics()["utilisation"] == 1.0
    nodes = PartitionSpec(name="p", nodes=[NodeSpec(count=2, cores=4, idle_power=1, load_power=5)])
    drain = OutageSpec(at=10, until=1000, nodes=[0], kind="drain")
    result = simulate(ClusterSpec(partitions=[nodes], outages=[drain]), [Job(processors=4, run=100)] * 2, "easy")
    assert set(result.capacity().values.tolist()) == {8}
    assert energy(result).total == 2 * 5 * 100
    assert node_energy(result)["down"].tolist() == [0, 0]


def test_a_node_never_draws_more_than_its_load_power() -> None:
    kinds = [NodeSpec(name="big", cores=64, load_power=100), NodeSpec(name="small", cores=2, load_power=100)]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds)])
    result = simulate(spec, [Job(processors=66, run=1000)], "fcfs")
    assert power(result).max() == 200
    assert energy(result).total == 200_000
    assert result.runs["cores"].tolist() == [(64, 2)]


def test_allocated_beside_asked_where_nodes_are_exclusive() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=8)], exclusive=True)])
    result = simulate(spec, [Job(processors=1, run=1000)] * 2, "fcfs")
    assert result.utilisation().mean() == 2 / 16
    assert result.allocated().mean() == 16
    assert result.runs["allocated"].tolist() == [8, 8]


# ---------------------------------------------------------------------- the independent integral


class Integral(Observer):
    """Keeps, event by event, what is held, in service and drawn; it knows nothing of the record."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.env = cluster.env
        self.held: dict[str, dict[Any, tuple[int, tuple[tuple[int, int], ...]]]] = defaultdict(dict)
        self.steps: list[tuple[float, dict[str, tuple[int, int]], float]] = []
        self.view()

    def view(self) -> None:
        """Note what is held and in service from now on."""
        found, watts = {}, 0.0
        for place in self.cluster.places:
            held = self.held[place.name].values()
            total = sum(processors for processors, _ in held)
            if place.spec.nodes:
                kinds = [kind for kind in place.spec.nodes for _ in range(kind.count)]
                cores: dict[int, int] = defaultdict(int)
                for _, parts in held:
                    for node, amount in parts:
                        cores[node] += amount
                        assert cores[node] <= kinds[node].cores, "a core was given twice"
                down = set(place.down_nodes)
                there = sum(cores[node] if node in down else kind.cores for node, kind in enumerate(kinds))
                for node, kind in enumerate(kinds):
                    if node not in down or cores[node]:
                        watts += kind.idle_power + (kind.load_power - kind.idle_power) * cores[node] / kind.cores
            else:
                there = max(place.up, total)
            assert total <= there
            found[place.name] = total, there
        self.steps.append((float(self.env.now), found, watts))

    def between(self, start: float, end: float) -> tuple[dict[str, tuple[float, float]], float]:
        """Return the processor seconds held and in service at each place, and the joules, between two instants."""
        areas = dict.fromkeys(self.steps[0][1], (0.0, 0.0))
        joules = 0.0
        until = [at for at, _, _ in self.steps[1:]] + [end]
        for (since, found, watts), stop in zip(self.steps, until, strict=True):
            passed = max(0.0, min(stop, end) - max(since, start))
            areas = {
                name: (held + passed * found[name][0], there + passed * found[name][1])
                for name, (held, there) in areas.items()
            }
            joules += passed * watts
        return areas, joules

    def _take(self, place: Any, who: Any, processors: int, grant: Any) -> None:
        parts = () if grant.nodes is None else [row[:2] for row in grant.allocation.rows]
        self.held[place.name][who] = processors, tuple(parts)
        self.view()

    def _free(self, place: Any, who: Any) -> None:
        self.held[place.name].pop(who, None)
        self.view()

    def job_started(self, run: Any) -> None:
        self._take(run.place, run.job, run.job.processors, run.grant)

    def job_resumed(self, run: Any) -> None:
        self._take(run.place, run.job, run.job.processors, run.grant)

    def job_ended(self, run: Any, status: str) -> None:
        self._free(run.place, run.job)

    def job_suspended(self, run: Any) -> None:
        self._free(run.place, run.job)

    def claim_granted(self, claim: Any) -> None:
        self._take(claim.place, claim, claim.job.processors, claim.grant)

    def claim_ended(self, claim: Any, status: str) -> None:
        self._free(claim.place, claim)

    def place_changed(self, place: Any, cause: str) -> None:
        self.view()


def tidy(env: Environment, job: Any, grant: Any) -> Any:
    """A body that cleans up for a while when it is interrupted."""
    try:
        yield env.timeout(1.5 * job.requested)
    except simpy.Interrupt:
        yield env.timeout(3)
        raise


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterSpec, list[Job], list[tuple[int, float, float]], str]:
    counted = draw(st.booleans())
    size = 8
    if counted:
        part = PartitionSpec(name="p", processors=size)
    else:
        kinds = [NodeSpec(name="a", count=2, cores=3, idle_power=2, load_power=7)]
        kinds += [NodeSpec(name="b", count=1, cores=2, idle_power=1, load_power=9)]
        part = PartitionSpec(name="p", nodes=kinds, exclusive=draw(st.booleans()))
    outages = []
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(1, 60))
        where = {"processors": draw(st.integers(1, 4))} if counted else {"nodes": [draw(st.integers(0, 2))]}
        kind = draw(st.sampled_from(["failure", "maintenance", "drain"]))
        outages.append(OutageSpec(at=at, until=at + draw(st.integers(1, 40)), kind=kind, **where))
    reservations = []
    if draw(st.booleans()):
        start = draw(st.integers(1, 50))
        where = {"processors": 3} if counted else {"nodes": [0]}
        reservations.append(ReservationSpec(name="r", start=start, end=start + draw(st.integers(5, 40)), **where))
    failures = [FailureModel(mean_time_between_failures=200, mean_time_to_repair=10)] if draw(st.booleans()) else []
    spec = ClusterSpec(
        partitions=[part],
        outages=outages,
        reservations=reservations,
        failures=failures,
        queues=[
            QueueSpec(name="low", preemptible=draw(st.sampled_from(["requeue", "suspend"]))),
            QueueSpec(name="high", preempts=["low"], priority=5),
        ],
        on_failure=draw(st.sampled_from(["resubmit", "lose"])),
        default_partition="p",
    )
    jobs = []
    for number in range(draw(st.integers(1, 12))):
        requested = draw(st.integers(1, 20))
        shape: dict[str, Any] = {"body": tidy} if draw(st.integers(0, 5)) == 0 else {"run": draw(st.integers(0, 25))}
        jobs.append(
            Job(
                id=number,
                submit=draw(st.integers(0, 60)),
                processors=draw(st.integers(1, 5)),
                requested=requested,
                queue=draw(st.sampled_from(["low", "high"])),
                **shape,
            )
        )
    claims = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 60), st.integers(1, 30)), max_size=3))
    policy = draw(st.sampled_from(["fcfs", "easy", "conservative", "preemptive"]))
    return spec, jobs, claims, policy


@settings(max_examples=up_to(150))
@given(clusters())
def test_every_figure_equals_the_integral_over_the_events(
    drawn: tuple[ClusterSpec, list[Job], list[tuple[int, float, float]], str],
) -> None:
    spec, jobs, claims, policy = drawn
    env = Environment(seed=7)
    cluster = Cluster(env, spec, Preemptive() if policy == "preemptive" else policy)
    integral = Integral(cluster)
    env.observe(integral)
    for job in jobs:
        env.process(submit_later(env, cluster, job))
    for claim in claims:
        env.process(holder(env, cluster, *claim))
    env.run(until=400)
    result = cluster.result()
    areas, joules = integral.between(result.started, result.ended)
    for name, (held, there) in areas.items():
        share = result.utilisation(name).values
        assert ((share >= 0) & (share <= 1 + 1e-9)).all()
        assert result.busy(name).integral() == pytest.approx(held, rel=1e-9, abs=1e-9) or spec.partitions[0].exclusive
        assert result.allocated(name).integral() >= held - 1e-9
        assert result.capacity(name).integral() == pytest.approx(there, rel=1e-9)
    if spec.partitions[0].nodes:
        assert energy(result).total == pytest.approx(joules, rel=1e-9)
    ends = result.jobs["status"].tolist()
    assert len(ends) == len(jobs)
    assert np.isin(ends, ["completed", "timeout", "lost", "cancelled", "waiting", "running", "suspended"]).all()


def submit_later(env: Environment, cluster: Cluster, job: Job) -> Any:
    yield env.timeout(job.submit)
    cluster.submit(job)
