"""Policies for malleable jobs follow their rules step by step, and are EASY where all jobs are rigid."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Elastic, Job, load_workload, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.policies.malleable import equal_shares
from simmodel.testing import check_policy
from simmodel.work import Amdahl, make_malleable
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
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_ends_are_those_of_the_rule_step_by_step(rule: str, seed: int) -> None:
    jobs = drawn(seed, 7, 6)
    result = simulate(6, [as_job(number, job) for number, job in enumerate(jobs)], rule)
    expected = [float(end) for end in malleable_ends(jobs, 6, rule)]
    assert result.jobs["end"].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_rigid_jobs_start_as_under_easy(rule: str) -> None:
    log = load_workload("lublin-128-week")
    assert simulate(None, log, rule).jobs["start"].tolist() == simulate(None, log, "easy").jobs["start"].tolist()


@pytest.mark.parametrize("rule", RULES)
def test_they_pass_the_checks_of_policies(rule: str) -> None:
    check_policy(rule)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_they_decide_on_nodes(rule: str, exclusive: bool) -> None:
    jobs = [as_job(number, job) for number, job in enumerate(drawn(5, 30, 12))]
    nodes = PartitionSpec(nodes=[NodeSpec(count=3, cores=4)], exclusive=exclusive)
    result = simulate(ClusterSpec(partitions=[nodes]), jobs, rule)
    assert set(result.jobs["status"].tolist()) == {"completed"}
    assert result.allocated().max() <= 12


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
