"""Policies for malleable jobs follow their rules step by step, and are EASY where all jobs are rigid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Elastic, Environment, Job, View, Workload, load_workload, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.policies.malleable import EqualShares, KeepPreferred, Malleable, ShrinkToStart, equal_shares
from simmodel.resources import Pool
from simmodel.scheduling.protocol import Decision
from simmodel.snapshots import ClusterSnapshot
from simmodel.testing import check_policy
from simmodel.work import Amdahl, ChunkedWorkload, first, make_malleable
from simmodel.work.workload import elastics_of
from tests.helpers.examples import up_to
from tests.oracles.malleable import OneJob, malleable_ends

RULES = ("keep-preferred", "shrink-to-start", "equal-shares")


def drawn(seed: int, count: int, processors: int) -> list[OneJob]:
    rng = Random(seed)
    jobs = []
    for _ in range(count):
        preferred = rng.randint(1, processors)
        elastic = rng.random() < 0.6
        least, most = rng.randint(1, preferred), rng.randint(preferred, processors)
        run = Fraction(rng.randint(1, 400), 7)
        requested = run + Fraction(rng.randint(0, 50), 3)
        sizes = (least, preferred, most) if elastic else (preferred,) * 3
        serial = Fraction(rng.choice([0, 1, 10]), 20)
        jobs.append(OneJob(Fraction(rng.randint(0, 900), 11), run, requested, sizes, serial, elastic))
    return sorted(jobs, key=lambda job: job.submit)


def as_job(number: int, job: OneJob) -> Job:
    elastic = Elastic(*job.sizes, speedup=Amdahl(float(job.serial))) if job.elastic else None
    return Job(
        id=number,
        submit=float(job.submit),
        run=float(job.run),
        requested=float(job.requested),
        processors=job.sizes[1],
        elastic=elastic,
    )


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=up_to(15), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_ends_are_those_of_the_rule_step_by_step(rule: str, seed: int) -> None:
    jobs = drawn(seed, 7, 6)
    result = simulate(6, [as_job(number, job) for number, job in enumerate(jobs)], rule)
    expected = [float(end) for end in malleable_ends(jobs, 6, rule)]
    assert result.jobs["end"].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("first", ["elastic", "rigid"])
@pytest.mark.parametrize("decide_on", ["instant", "event"])
def test_a_running_job_gives_up_processors_for_a_new_one_and_gets_them_back(
    rule: str, first: str, decide_on: str
) -> None:
    """It has done 10 of 100 s on 4 processors when it gets the other 4, so that the rest takes half as long."""
    jobs = [Job(id="elastic", run=100, processors=4, elastic=Elastic(2, 4, 8)), Job(id="rigid", run=10, processors=4)]
    result = simulate(8, jobs if first == "elastic" else jobs[::-1], rule, decide_on=decide_on).jobs
    assert dict(zip(result["job"].tolist(), result["end"].tolist(), strict=True)) == {"elastic": 55, "rigid": 10}


@pytest.mark.parametrize("rule", RULES)
def test_rigid_jobs_start_as_under_easy(rule: str) -> None:
    log = load_workload("lublin-128-week")
    assert simulate(None, log, rule).jobs["start"].tolist() == simulate(None, log, "easy").jobs["start"].tolist()


@pytest.mark.parametrize("rule", RULES)
def test_they_pass_the_checks_of_policies(rule: str) -> None:
    check_policy(rule)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_malleable_jobs_on_nodes_all_complete_within_capacity(rule: str, exclusive: bool) -> None:
    jobs = [as_job(number, job) for number, job in enumerate(drawn(5, 30, 12))]
    nodes = PartitionSpec(nodes=[NodeSpec(count=3, cores=4)], exclusive=exclusive)
    result = simulate(ClusterSpec(partitions=[nodes]), jobs, rule)
    assert set(result.jobs["status"].tolist()) == {"completed"}
    assert result.allocated().max() <= 12


class Standing(ShrinkToStart):
    """Notes when it looks at the queue."""

    looks: list[float]

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        self.looks.append(view.now)
        return super()._at(view, place)


def test_new_jobs_that_do_not_fit_are_told_from_those_that_do() -> None:
    """Two elastic jobs hold 6 processors at least; a head of 8 is promised 40 s, and jobs of 2 come beside it."""
    Standing.looks = []
    held = [Job(id=n, run=40, requested=40, elastic=Elastic(3, 3, 3)) for n in range(2)]
    jobs = [
        *held,
        *(Job(submit=n, run=9, processors=8) for n in range(1, 9)),
        Job(id="long", submit=9, run=40, processors=2),
    ]
    jobs += [Job(id="short", submit=10, run=9, processors=2), Job(id="last", submit=20, run=21, processors=2)]
    result = simulate(8, jobs, Standing())
    assert Standing.looks[:6] == [0, 1, 9, 10, 19, 40]  # not from 2 to 8, nor at 20
    starts = dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))
    assert (starts["short"], starts["long"]) == (10, 112)


KINDS = {
    "counted": ClusterSpec.simple(12),
    "nodes": ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=3)])]),
    "whole nodes": ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=3)], exclusive=True)]),
}


@pytest.mark.parametrize("rule", [KeepPreferred, ShrinkToStart, EqualShares])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=up_to(25), deadline=None)
@given(seed=st.integers(0, 10**6), order=st.sampled_from(["fcfs", "sjf", "wfp", "largest"]))
def test_a_queue_that_stands_holds_no_job_up(kind: str, rule: type[Malleable], seed: int, order: str) -> None:
    policy = rule(order)

    def anew(view: View) -> Iterable[Decision]:
        policy.forget()
        return policy.decide(view)

    jobs = [as_job(number, job) for number, job in enumerate(drawn(seed, 40, 12))]
    found, expected = (simulate(KINDS[kind], jobs, each).runs for each in (rule(order), anew))
    for name in ("job", "start", "end", "processors"):
        assert found[name].tolist() == expected[name].tolist()


def test_malleable_logs_are_columns() -> None:
    log = load_workload("lublin-128-week")
    some, more = make_malleable(log, 0.2, seed=3), make_malleable(log, 0.5, seed=3)
    assert (some["maximum"] > 0).sum() == round(0.2 * len(log))
    assert set((some["maximum"] > 0).nonzero()[0]) <= set((more["maximum"] > 0).nonzero()[0])
    none = make_malleable(log, 0)
    assert simulate(None, none, "easy").jobs["start"].tolist() == simulate(None, log, "easy").jobs["start"].tolist()
    job = more.jobs()[int((more["maximum"] > 0).argmax())]
    assert job.elastic is not None
    assert job.elastic.minimum == -(-job.processors // 4)
    assert job.elastic.maximum == min(2 * job.processors, 128)
    with pytest.raises(ValueError, match="share: must be from 0 to 1, got 2"):
        make_malleable(log, 2)


@given(
    limits=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)).map(lambda pair: (pair[0], sum(pair))), max_size=6),
    more=st.integers(0, 40),
)
def test_equal_shares_use_all_and_differ_by_one(limits: list[tuple[int, int]], more: int) -> None:
    total = sum(least for least, _ in limits) + more
    shares = equal_shares(limits, total)
    assert sum(shares) == min(total, sum(most for _, most in limits))
    assert all(least <= share <= most for share, (least, most) in zip(shares, limits, strict=True))
    inside = [share for share, (least, most) in zip(shares, limits, strict=True) if least < share < most]
    assert not inside or max(inside) - min(inside) <= 1


def log_of(count: int, **options: float) -> Workload:
    return make_malleable(first(load_workload("lublin-128-week"), count), 0.6, seed=2, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["easy", *RULES])
def test_columns_of_a_log_and_jobs_run_alike(rule: str) -> None:
    log = log_of(200)
    columns, jobs = simulate(128, log, rule), simulate(128, log.jobs(), rule)
    for name in ("job", "start", "end", "processors", "status"):
        assert columns.runs[name].tolist() == jobs.runs[name].tolist()
    assert columns.jobs["wait"].tolist() == jobs.jobs["wait"].tolist()


def test_missing_sizes_are_those_requested() -> None:
    columns = {"submit": [0, 0, 0, 0], "run": [10] * 4, "processors": [4] * 4, "maximum": [-1, 3, 8, 2.5]}
    log = Workload(columns | {"minimum": [1, -1, float("nan"), 2], "serial": [0.5, -1, 0.5, float("nan")]})
    found = elastics_of(log.table, np.arange(4), log["processors"])
    assert found == [None, Elastic(4, 4, 4), Elastic(4, 4, 8, speedup=Amdahl(0.5)), Elastic(2, 4, 4)]
    assert found == [job.elastic for job in log.jobs()]
    several = log.replace(partition=["a", "b,c", "any", "a"])
    found = elastics_of(several.table, np.arange(4), log["processors"])
    assert [each is None for each in found] == [True, True, True, False]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seen", [False, True])
def test_cut_logs_of_elastic_jobs_continue(rule: str, seen: bool) -> None:
    log = log_of(150)
    whole = simulate(128, log, rule)
    at = float(np.median(whole.jobs["start"]))
    sim = start(128, log, rule)
    sim.run(until=at)
    snapshot = sim.snapshot().expected() if seen else sim.snapshot()
    again = ClusterSnapshot.from_json(snapshot.to_json())
    assert again == snapshot
    env = Environment(at)
    cluster = Cluster.from_snapshot(env, again, rule)
    env.run()
    after = cluster.result().jobs
    ends = dict(zip(whole.jobs["job"].tolist(), whole.jobs["end"].tolist(), strict=True))
    asked = dict(zip(log["job"].tolist(), log["processors"].tolist(), strict=True))
    assert len(after) > (0 if seen else 75)
    assert all(row["processors"] == asked[row["job"]] for row in after.rows())
    assert seen or all(row["end"] == ends[row["job"]] for row in after.rows())


def test_elastic_jobs_read_in_chunks(tmp_path: Path) -> None:
    log = log_of(90)
    whole = simulate(128, log, "equal-shares")
    stored = simulate(128, ChunkedWorkload.of(log, 20), "equal-shares", stream=tmp_path / "run.sqlite")
    assert stored.load().jobs["end"].tolist() == whole.jobs["end"].tolist()


class Counting(ShrinkToStart):
    """Compares the index of running elastic jobs with the running jobs."""

    begun: dict[int | str, float]

    def decide(self, view: View, /) -> Iterator[Decision]:
        for each in super().decide(view):
            yield each
            runs = [run.job for run in view.running if run.job.elastic is not None]
            index = view.places[0].running.elastic
            assert sorted(index.jobs, key=lambda job: job.seq) == sorted(runs, key=lambda job: job.seq)
            starts = [self.begun.setdefault(job.id, float(job.started or 0.0)) for job in index.jobs]
            assert starts == sorted(starts)
            assert index.processors == sum(job.processors for job in runs)
            sizes = [job.elastic for job in runs if job.elastic is not None]
            assert index.minimum == sum(size.minimum for size in sizes)
            assert index.preferred == sum(size.preferred for size in sizes)
            assert index.maximum == sum(size.maximum for size in sizes)


def test_running_elastic_jobs_are_counted() -> None:
    Counting.begun = {}
    assert len(simulate(128, log_of(120), Counting()).runs) > 200
