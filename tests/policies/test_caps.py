"""A cap on power: it is never exceeded, breaks no promise, and where it does not bind it changes no start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from simmodel import Cluster, Elastic, Environment, Job, Preempt, Snapshot, Start, View, simulate, start
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.futures import what_if
from simmodel.metrics import power
from simmodel.platform import (
    ClusterSpec,
    DeviceSpec,
    FailureModel,
    NodePower,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    Signal,
)
from simmodel.policies import Cap, Conservative, Easy, SleepAfter
from simmodel.referee import why_waits
from simmodel.scheduling import Decision, Policy, SetLevel
from tests.helpers.examples import up_to

LEVELS = [(1.0, 190.7), (0.8, 142.9), (0.5, 120.0)]
POLICIES = ("fcfs", "easy", "sjf+easy", "conservative", "conservative-keep", "easy-sjbf", "best-fit")


def nodes(number: int, *, alike: bool = False, model: str = "linear") -> list[NodeSpec]:
    slow = NodePower(idle=95, levels=LEVELS, model=model)  # type: ignore[arg-type]
    fast = NodePower(idle=120, levels=[(1.0, 400), (0.8, 250), (0.5, 180)], model=model)  # type: ignore[arg-type]
    first = NodeSpec(count=number, cores=4, power=slow)
    return [first] if alike else [first, NodeSpec(count=2, cores=8, gpus={"A100": 2}, power=fast)]


def cluster(number: int = 3, *, alike: bool = False, model: str = "linear", **options: Any) -> ClusterSpec:
    spec = {
        "exclusive": options.pop("exclusive", False),
        "devices": [DeviceSpec(name="A100", idle_power=50, load_power=300)],
    }
    part = PartitionSpec(
        nodes=nodes(number, alike=alike, model=model), **(spec if not alike else {"exclusive": spec["exclusive"]})
    )
    return ClusterSpec(partitions=[part], **options)


def full(spec: ClusterSpec) -> float:
    kinds = [kind for part in spec.partitions for kind in part.nodes]
    return sum(kind.count * (kind.load_power + 300 * kind.gpus) for kind in kinds)


def idle(spec: ClusterSpec) -> float:
    kinds = [kind for part in spec.partitions for kind in part.nodes]
    return sum(kind.count * (kind.idle_power + 50 * kind.gpus) for kind in kinds)


def drawn(seed: int, spec: ClusterSpec, count: int = 16) -> list[Job]:
    rng, jobs, gpus = np.random.default_rng(seed), [], len(spec.partitions[0].nodes) > 1
    for number in range(count):
        run = int(rng.integers(0, 40))
        about: dict[str, Any] = {"frequency_sensitivity": float(rng.choice([0, 0.5, 1]))}
        if rng.integers(2):
            about |= {"nodes": int(rng.integers(1, 4)), "cores_per_node": int(rng.integers(1, 5))}
        elif gpus and not rng.integers(3):
            about |= {"nodes": 1, "gpus_per_node": int(rng.integers(1, 3))}
        else:
            about |= {"processors": int(rng.integers(1, 11))}
        about["keeps_work"] = bool(rng.integers(2))
        limit = max(1, run + int(rng.integers(-5, 20)))
        jobs.append(Job(id=number + 1, submit=float(rng.integers(0, 60)), run=run, requested=limit, **about))
    return jobs


def watts_at(result: Any, spec: ClusterSpec, instants: np.ndarray) -> np.ndarray:
    """Return the power at instants, from the rows of executions and nothing else."""
    kinds = [kind for part in spec.partitions for kind in part.nodes for _ in range(kind.count)]
    total = np.zeros(len(instants))
    on = np.zeros((len(instants), len(kinds)))
    for row in result.runs.rows():
        at = (row["start"] <= instants) & (instants < row["end"])
        for node, cores, gpus in zip(row["nodes"], row["cores"], row["gpus"], strict=True):
            kind = kinds[node]
            level = row.get("level", np.nan)
            load = kind.load_power if np.isnan(level) else dict(kind.power.levels)[level]
            on[at, node] = np.maximum(on[at, node], load - kind.idle_power)
            total[at] += 250 * gpus
            if kind.watts.model == "linear":
                total[at] += (load - kind.idle_power) * cores / kind.cores
    if kinds[0].watts.model == "node":
        total += on.sum(axis=1)
    return total + idle(spec)


class Restless(Policy):
    """The decisions of another policy; every 7 s running jobs are suspended, stopped, or move to another level."""

    decides = "jobs"
    preempts = True

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def decide(self, view: View, /) -> Iterator[Decision]:
        place, steps = view.places[0], int(view.now // 7)
        for run in view.running if view.now != 0 else ():
            job = run.work
            kind = (job.seq * 5 + steps) % 7
            if kind < 2 and job.attempts < 3 and view.now > run.started:
                yield Preempt(job, "suspend" if kind else "requeue")
            elif kind < 5:
                level = place.levels[kind % 3]
                alone = len(job.run.grant.nodes) == 1
                more = level > (job.level or 1.0)
                if not place.consumables.falls_before(np.inf) and (
                    not more or (alone and place.consumables.free["power"] > 1_400_000)
                ):
                    yield SetLevel(job, level)
        yield from self.policy.decide(view) or ()


CAPS = st.lists(st.tuples(st.integers(1, 60), st.floats(0.15, 1.0)), max_size=4)


@pytest.mark.parametrize("model", ["linear", "node"])
@settings(max_examples=up_to(60, 6), deadline=None)
@given(
    st.integers(0, 10**6),
    CAPS,
    st.sampled_from(POLICIES),
    st.sampled_from(["wait", "lower"]),
    st.booleans(),
    st.booleans(),
)
def test_it_is_never_exceeded(
    model: str, seed: int, steps: list[tuple[int, float]], policy: str, how: str, alike: bool, restless: bool
) -> None:
    how = "wait" if policy == "conservative-keep" else how
    down = [OutageSpec(at=20, until=31, nodes=[0]), OutageSpec(at=40, until=55, nodes=[1], kind="maintenance")]
    spec = cluster(alike=alike, model=model, outages=down, exclusive=bool(seed % 2))
    span = full(spec) - idle(spec)
    times = [0.0, *np.cumsum([gap for gap, _ in steps]).tolist(), 300.0]
    values = [idle(spec) + share * span for share in (0.5, *(share for _, share in steps), 1.0)]
    capped = Cap(list(zip(times, values, strict=True)), policy, how)
    whole = simulate(spec, drawn(seed, spec), Cap(capped.watts, Restless(Easy()), how) if restless else capped)
    instants = np.unique([*whole.runs["start"], *times])
    allowed = np.array(values)[np.searchsorted(times, instants, side="right") - 1]
    found = watts_at(whole, spec, instants)
    assert (found <= allowed + 1e-6).all()
    own = power(whole, model=model)  # type: ignore[arg-type]
    at = own.times
    assert (own.values <= np.array(values)[np.searchsorted(times, at, side="right") - 1] + 1e-6).all()


class Promised:
    """Keeps the earliest promise of each job, and the starts that came later."""

    def __init__(self) -> None:
        self.first: dict[Any, float] = {}
        self.broken: list[tuple[Any, float, float]] = []

    def job_promised(self, job: Any, place: Any, at: float) -> None:
        self.first[job.id] = min(at, self.first.get(job.id, np.inf))

    def job_started(self, run: Any) -> None:
        promised = self.first.get(run.job.id, np.inf)
        if run.started > promised + 1e-6:
            self.broken.append((run.job.id, promised, run.started))


@pytest.mark.parametrize("how", ["wait", "lower"])
@settings(max_examples=up_to(60, 6), deadline=None)
@example(3420, [], "easy", True, True)  # a job that is next once another has started at a lower level
@given(st.integers(0, 10**6), CAPS, st.sampled_from(["easy", "conservative-keep"]), st.booleans(), st.booleans())
def test_no_promise_is_broken(
    how: str, seed: int, steps: list[tuple[int, float]], policy: str, alike: bool, exclusive: bool
) -> None:
    """EASY promises a start to its head, which is later at no decision; the plan with all promises keeps them."""
    spec = cluster(alike=alike, exclusive=exclusive)
    span = full(spec) - idle(spec)
    times = [0.0, *np.cumsum([gap for gap, _ in steps]).tolist(), 300.0]
    shares = [0.5, *(share for _, share in steps), 1.0]
    watts = [(at, idle(spec) + share * span) for at, share in zip(times, shares, strict=True)]
    inner = Easy(promises=True) if policy == "easy" else policy
    seen = Promised()
    sim = start(spec, drawn(seed, spec), Cap(watts, inner, "wait" if policy != "easy" else how), observers=[seen])
    sim.run()
    assert seen.broken == []


@settings(max_examples=up_to(40, 4), deadline=None)
@given(st.integers(0, 10**6), CAPS, st.sampled_from(["wait", "lower"]), st.booleans())
def test_the_fast_forms_start_what_the_rules_start(
    seed: int, steps: list[tuple[int, float]], how: str, alike: bool
) -> None:
    spec = cluster(alike=alike)
    times = [0.0, *np.cumsum([gap for gap, _ in steps]).tolist(), 300.0]
    shares = [0.5, *(share for _, share in steps), 1.0]
    span = full(spec) - idle(spec)
    watts = [(at, idle(spec) + share * span) for at, share in zip(times, shares, strict=True)]
    for kind in (Easy, Conservative):
        fast, rule = (simulate(spec, drawn(seed, spec), Cap(watts, kind(fast=each), how)) for each in (True, False))
        assert fast.jobs["start"].tolist() == rule.jobs["start"].tolist()
        assert fast.jobs["end"].tolist() == rule.jobs["end"].tolist()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("how", ["wait", "lower"])
@settings(max_examples=up_to(10, 3), deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from(["linear", "node"]))
def test_a_cap_at_the_peak_changes_no_start(
    policy: str, how: str, seed: int, alike: bool, exclusive: bool, model: str
) -> None:
    spec = cluster(alike=alike, exclusive=exclusive, model=model)
    bare = simulate(spec, drawn(seed, spec), policy)
    how = "wait" if policy == "conservative-keep" else how
    capped = simulate(spec, drawn(seed, spec), Cap(full(spec), policy, how))
    assert capped.jobs["start"].tolist() == bare.jobs["start"].tolist()
    assert "level" not in capped.runs


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep"])
@pytest.mark.parametrize("how", ["wait", "lower"])
def test_a_run_that_is_cut_anywhere_and_continued_is_the_same(policy: str, how: str) -> None:
    if policy == "conservative-keep" and how == "lower":
        pytest.skip("it keeps its promises")
    spec = cluster(outages=[OutageSpec(at=20, until=31, nodes=[0])])
    low, high = idle(spec) + 0.3 * (full(spec) - idle(spec)), full(spec)
    name = f"cap({low};{0.8 * high}@18;{low + 100}@45;{high}@90, {policy}, {how})"
    jobs = drawn(5, spec)
    whole = simulate(spec, jobs, name)
    ends = dict(zip(whole.jobs["job"].tolist(), whole.jobs["end"].tolist(), strict=True))
    assert how == "wait" or "level" in whole.runs
    for at in np.arange(1.0, whole.ended, 9.5).tolist():
        text = start(spec, jobs, name).run(until=at).snapshot().to_json()
        rest = simulate(Snapshot.from_json(text))
        then = dict(zip(rest.jobs["job"].tolist(), rest.jobs["end"].tolist(), strict=True))
        assert then == {job: end for job, end in ends.items() if end >= at}


def test_plain_jobs_of_logs_and_processors_that_are_counted_have_power_too() -> None:
    part = PartitionSpec(processors=8, idle_power=10, load_power=30)
    jobs = [Job(run=10, processors=4), Job(run=10, processors=4)]
    for policy in ("fcfs", "easy", "conservative"):
        result = simulate(ClusterSpec(partitions=[part]), jobs, f"cap(200, {policy})")
        assert result.jobs["start"].tolist() == [0, 10]
        assert power(result).values.max() == 160


def test_elastic_jobs_grow_no_further_than_the_cap() -> None:
    part = PartitionSpec(processors=8, idle_power=10, load_power=30)
    jobs = [Job(run=100, processors=2, elastic=Elastic(1, 2, 8)), Job(run=100, processors=2, elastic=Elastic(1, 2, 8))]
    for watts, policy in ((160, "keep-preferred"), (200, "equal-shares"), (160, "shrink-to-start")):
        result = simulate(ClusterSpec(partitions=[part]), jobs, f"cap({watts}, {policy})")
        assert power(result).values.max() <= watts


def test_a_cap_without_watts_is_none() -> None:
    jobs = [Job(run=10, processors=6), Job(run=10, processors=6)]
    assert simulate(8, jobs, "cap").jobs["start"].tolist() == simulate(8, jobs, "easy").jobs["start"].tolist()


def test_partitions_share_a_cap() -> None:
    parts = [PartitionSpec(name=name, nodes=[NodeSpec(count=2, idle_power=100, load_power=200)]) for name in "ab"]
    jobs = [Job(run=10 + each, nodes=1, partition="ab"[each % 2]) for each in range(6)]
    result = simulate(ClusterSpec(partitions=parts), jobs, "cap(600)")
    assert power(result).values.max() <= 600
    assert result.jobs["start"].max() > 0


def test_what_ifs_ask_for_a_cap_and_for_none() -> None:
    spec = cluster(alike=True)
    jobs = [Job(nodes=3, run=20), *(Job(nodes=1, cores_per_node=4, run=20, submit=1) for _ in range(4))]
    snapshot = start(spec, jobs, "easy").run(until=10).snapshot()
    low = idle(spec) + 100
    found = what_if(snapshot, {"none": "easy", "cap": f"cap({low}, easy)"})
    ends = [max(start.at for start in each.starts) for each in found.outcomes]
    assert ends == [40, 80], "three at once, or one after another"
    capped = start(spec, jobs, f"cap({low}, easy)").run(until=10).snapshot()
    assert simulate(capped, policy="easy").jobs["end"].max() == 60


def test_a_job_that_waits_for_power_is_told_so() -> None:
    cluster_ = Cluster(Environment(), cluster(alike=True), "cap(500, easy)")
    for _ in range(2):
        cluster_.submit(Job(nodes=3, cores_per_node=2, run=10))
    cluster_.env.run(until=1)
    found = why_waits(cluster_.snapshot(), 2)
    assert found.reason == "power"
    assert found.detail == "needs 143.55 W above idle nodes, 71.45 W are free below the cap"
    assert [each.job for each in found.holders] == [1]


def test_a_signal_is_a_cap() -> None:
    spec = cluster(alike=True)
    signal = Signal([0, 50], [idle(spec) + 100, full(spec)], end=500)
    jobs = [Job(nodes=3, cores_per_node=4, run=10)]
    for given_, options in ((signal, {}), ("limit", {"signals": {"limit": signal}})):
        assert simulate(spec, jobs, Cap(given_, "easy"), **options).jobs["start"].tolist() == [50]  # type: ignore[arg-type]
    short = Signal([0, 5], [idle(spec) + 100, idle(spec) + 120], end=8)
    with pytest.raises(InputError, match="watts: must last as long as the run, got a signal that ends at 8 s"):
        simulate(spec, [Job(nodes=1, run=5, submit=submit) for submit in (0, 20)], Cap(short))


def test_random_failures_and_queues_that_preempt_keep_it() -> None:
    failures = [FailureModel(mean_time_between_failures=40, mean_time_to_repair=5)]
    queues = [QueueSpec(name="low", preemptible="suspend"), QueueSpec(name="high", priority=1, preempts=["low"])]
    spec = cluster(alike=True, failures=failures, queues=queues)
    cap = idle(spec) + 150
    for seed in range(6):
        jobs = [
            Job(
                id=job.id,
                submit=job.submit,
                run=job.run,
                requested=job.requested,
                nodes=1,
                queue=("low", "high")[i % 2],
            )
            for i, job in enumerate(drawn(seed, spec))
        ]
        result = simulate(spec, jobs, f"cap({cap}, preemptive)", seed=seed)
        assert power(result).values.max() <= cap + 1e-6


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cap(200)", "watts: must be at least 285 W, what the idle or booting nodes of cluster draw, got 200 W"),
        ("cap(much)", "watts: must be watts, or steps such as '2MW;1MW@8h', got 'much'"),
        ("cap(-5)", "watts: must be watts, or steps such as '2MW;1MW@8h', got -5"),
        ("cap(600;500@9;400@9)", "watts: must have increasing instants, got 9 after 9 s"),
        ("cap(600@5)", "watts: must be known from 0 s on, got a cap from 5 s on"),
        ("cap(600, easy, slow)", "how: must be 'wait' or 'lower', got 'slow'"),
        ("cap(600, conservative-keep, lower)", "how: must be 'wait' for conservative-keep, which keeps its promises"),
    ],
)
def test_wrong_input_is_one_sentence(name: str, text: str) -> None:
    with pytest.raises(InputError) as found:
        simulate(cluster(alike=True), [Job(run=1)], name)
    assert text in str(found.value)


def test_a_job_that_draws_more_than_the_cap_is_refused_unless_it_may_run_lower() -> None:
    spec, job = cluster(alike=True), Job(nodes=3, cores_per_node=4, run=10)
    assert simulate(spec, [job], "cap(500)").jobs["status"].tolist() == ["rejected"]
    result = simulate(spec, [job], "cap(500, easy, lower)")
    assert result.runs["level"].tolist() == [0.8]


def test_a_level_may_not_exceed_it_either() -> None:
    def rule(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            yield Start(job, view.places[0], level=0.8)
        for run in view.running:
            yield SetLevel(run.work, 1.0)

    spec = cluster(alike=True)
    jobs = [Job(nodes=3, cores_per_node=4, run=200)]
    with pytest.raises(PolicyError, match="does not fit at level 1: too little power is free"):
        simulate(spec, jobs, Cap([(0, full(spec)), (90, idle(spec) + 150)], rule))


SLEEPS = NodePower(idle=95, levels=LEVELS, off=9.75, boot=("15s", 125), stop=("6s", 101))


@pytest.mark.parametrize("how", ["wait", "lower"])
@settings(max_examples=up_to(40, 4), deadline=None)
@given(st.integers(0, 10**6), CAPS, st.sampled_from([0, 5, 20]), st.booleans())
def test_nodes_that_sleep_and_boot_do_not_exceed_it(
    how: str, seed: int, steps: list[tuple[int, float]], after: int, exclusive: bool
) -> None:
    part = PartitionSpec(nodes=[NodeSpec(count=4, cores=4, power=SLEEPS)], exclusive=exclusive)
    spec = ClusterSpec(partitions=[part])
    times = [0.0, *np.cumsum([gap for gap, _ in steps]).tolist(), 400.0]
    shares = [0.5, *(share for _, share in steps), 1.0]
    watts = [4 * (125 + share * (190.7 - 125)) for share in shares]
    capped = Cap(list(zip(times, watts, strict=True)), SleepAfter(after), how)
    result = simulate(spec, drawn(seed, cluster(alike=True)), capped)
    drew = power(result)
    allowed = np.array(watts)[np.searchsorted(times, drew.times, side="right") - 1]
    assert (drew.values <= allowed + 1e-6).all()
    assert after or "boot" in result.changes["cause"].tolist()
