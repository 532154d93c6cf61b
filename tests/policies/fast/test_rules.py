"""The rule of each policy and its fast path start the same jobs, on counted processors, nodes and partitions."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, ConsumableSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.policies import Conservative, Easy
from simmodel.policies.multifactor import Multifactor
from simmodel.policies.planning import ConservativeKeep
from simmodel.policies.window import Window
from simmodel.scheduling.registry import policy as policy_named
from tests.helpers.broker_cases import MODES
from tests.helpers.drawn_queues import drawn_queues
from tests.helpers.examples import seeds, up_to

POLICIES: dict[str, Callable[[Random, bool], Any]] = {
    "easy": lambda rng, fast: Easy(order(rng), promises=rng.random() < 0.2, fast=fast),
    "easy-sjbf": lambda rng, fast: Easy(order(rng), candidates="sjf", fast=fast),
    "conservative": lambda rng, fast: Conservative(order(rng), promises=rng.random() < 0.2, fast=fast),
    "conservative-keep": lambda rng, fast: ConservativeKeep(order(rng), fast=fast),
    "window": lambda rng, fast: Window(
        order(rng), size=rng.randint(1, 4), planning=rng.choice(["list", "hole"]), fast=fast
    ),
    "multifactor": lambda rng, fast: Multifactor(
        age=rng.randint(0, 9), size=rng.randint(0, 9), fair_share=rng.randint(0, 9), half_life=20.0, fast=fast
    ),
}
PLACES = ["counts", "nodes", "hosts", "partitions"]
KINDS = [(4, 0, 16), (4, 2, 16), (8, 4, 32), (2, 0, 8), (8, 0, 8)]


def order(rng: Random) -> str:
    return rng.choice(["fcfs", "fcfs", "sjf", "largest", "wfp"])


def machine(rng: Random, place: str) -> list[PartitionSpec]:
    """Draw counted processors, nodes of up to three kinds, hosts, or two or three partitions of the first two."""
    if place == "counts":
        return [PartitionSpec(name="p", processors=rng.choice([1, 2, 3, 4, 8, 16]))]
    if place == "hosts":
        hosts = [NodeSpec(name=f"h{i}-", count=rng.randint(1, 3), cores=rng.choice([2, 4, 8])) for i in range(2)]
        return [PartitionSpec(name="p", one_host=True, nodes=hosts)]
    if place == "nodes":
        nodes = [
            NodeSpec(name=f"kind{i}-", count=rng.randint(1, 4), cores=cores, gpus=gpus, memory=memory)
            for i, (cores, gpus, memory) in enumerate(rng.sample(KINDS, rng.choice([1, 2, 3])))
        ]
        placement = rng.choice(["first-fit", "first-fit", "best-fit", "packed", "spread"])
        return [PartitionSpec(name="p", nodes=nodes, placement=placement, exclusive=rng.random() < 0.3)]
    parts = [machine(rng, rng.choice(["counts", "counts", "nodes"]))[0] for _ in range(rng.choice([2, 2, 3]))]
    return [PartitionSpec(name=name, processors=part.processors, nodes=part.nodes, exclusive=part.exclusive)
            for name, part in zip("pqr", parts, strict=False)]  # fmt: skip


def log(rng: Random, parts: list[PartitionSpec], by_nodes: float, queues: bool) -> list[Job]:
    """Draw jobs that come faster than they can start; times are multiples of a power of two."""
    unit, gaps = rng.choice([1, 1, 0.25, 600]), rng.choice([[0, 0, 1], [0, 1, 2, 5], [0, 3, 10]])
    exact, over, endless = rng.choice([0, 0.5, 1]), rng.choice([0, 0, 0.1]), rng.choice([0, 0, 0, 0.1])
    cancelled, zero, odd = rng.choice([0, 0, 0.1]), rng.choice([0, 0, 0.1]), rng.choice([0, 0, 0.2])
    several, licences = rng.choice([0, 0.5]), rng.choice([0, 0, 0.3])
    jobs, submit = [], 0
    for number in range(1, rng.randint(4, 30)):
        submit += rng.choice(gaps)
        run = 0 if rng.random() < zero else rng.randint(1, 25)
        kind = rng.random()
        requested = run + rng.choice([1, 5, 10, 30])
        if kind < exact + over:
            requested = run if kind < exact else max(1, run // 2)
        asked: dict[str, Any] = {"processors": rng.choice([1, 1, 2, 3, rng.randint(1, 8)])}
        if any(part.nodes for part in parts) and rng.random() < by_nodes and rng.random() >= odd:
            asked = {
                "nodes": rng.randint(1, 3),
                "cores_per_node": rng.randint(1, 4),
                "gpus_per_node": rng.choice([0, 0, 1]),
                "memory_per_node": rng.choice([0, 0, 4, 7]),
            }
        if rng.random() < cancelled:
            asked["cancel"] = (submit + rng.choice([1, 5, 20])) * unit
        if rng.random() < licences:
            asked["consumables"] = {"licence": rng.randint(1, 2)}
        if len(parts) > 1:
            able = [part.name for part in parts if part.nodes or "nodes" not in asked]
            asked["partitions"] = rng.sample(able, len(able)) if rng.random() < several else [rng.choice(able)]
        if queues:
            asked["queue"] = rng.choice("ab")
        times = {"submit": submit * unit, "run": run * unit, "requested": (requested or 1) * unit}
        if rng.random() < endless:
            times["requested"] = inf
        jobs.append(Job(id=number, user=rng.choice("xyz"), priority=rng.choice([0, 0, 0, 1]), **times, **asked))
    return jobs


def drawn(seed: int, place: str) -> tuple[ClusterSpec, list[Job], dict[str, Any]]:
    rng = Random(seed)
    parts = machine(rng, place)
    limits = rng.random() < 0.2
    jobs = log(rng, parts, {"partitions": 0.5, "nodes": 1.0}.get(place, 0.0), limits)
    outages = []
    if rng.random() < 0.2:
        first = parts[0]
        what = {"processors": 1} if first.processors else {"nodes": [0]}
        kind = rng.choice(["failure", "maintenance", "drain"])
        outages = [
            OutageSpec(at=rng.randint(1, 60), until=rng.randint(61, 120), partition=first.name, kind=kind, **what)
        ]
    spec = ClusterSpec(
        partitions=parts,
        outages=outages,
        queues=drawn_queues(rng, preempts=False, limits=True) if limits else (),
        consumables=[ConsumableSpec(name="licence", amount=2)] if any(job.consumables for job in jobs) else (),
    )
    options = {"overrun": rng.choice(["stop", "continue"]), **rng.choice(MODES)}
    return spec, jobs, options


def schedule(spec: ClusterSpec, jobs: list[Job], policy: Any, options: dict[str, Any]) -> list[Any]:
    """Return what is started and promised, in which partition and when, in order."""
    heard: list[Any] = []

    class Watch:
        def job_started(self, run: Any) -> None:
            heard.append(("starts", run.job.id, run.place.name, run.started))

        def job_promised(self, job: Any, place: Any, at: float) -> None:
            heard.append(("is promised", job.id, place.name, at))

    simulate(spec, jobs, policy, observers=[Watch()], **options)
    return heard


def check(policy: str, place: str, seed: int) -> None:
    spec, jobs, options = drawn(seed, place)
    fast, rule = (schedule(spec, jobs, POLICIES[policy](Random(seed), each), options) for each in (True, False))
    assert fast == rule, seed


def test_what_is_kept_beside_endless_work_is_noted_at_decisions_that_start_nothing() -> None:
    check("easy-sjbf", "counts", 2546)  # at 80 job 20 comes and nothing is free; what falls free at 82 is kept


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=up_to(100, 10))
@given(seed=st.integers(0, 2**32))
def test_the_rule_and_its_fast_path_start_the_same_jobs(policy: str, place: str, seed: int) -> None:
    check(policy, place, seed)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("hundred", seeds(0, 30))
def test_three_thousand_logs_start_alike(policy: str, place: str, hundred: int) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        check(policy, place, seed)


def test_a_policy_named_without_its_fast_path_decides_by_the_rule() -> None:
    for name in ("easy", "sjf+easy", "conservative", "conservative-keep", "window", "multifactor"):
        order, _, kind = name.rpartition("+")
        found = policy_named(f"{order + '+' if order else ''}{kind}(fast=false)")
        assert found.parameters()["fast"] is False, name
