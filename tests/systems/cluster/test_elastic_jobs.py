"""Elastic jobs run at the sizes that a policy gives them, and do the work that they have, no more and no less."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import (
    Cluster,
    Elastic,
    Environment,
    Job,
    PolicyError,
    Preempt,
    Resize,
    Result,
    Start,
    View,
    simulate,
    start,
)
from simmodel.foundation.errors import SnapshotError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.scheduling.protocol import Decision
from simmodel.snapshots import ClusterSnapshot
from simmodel.work import Amdahl, MeasuredSpeedup


def nodes(count: int, cores: int, **options: Any) -> ClusterSpec:
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=count, cores=cores)], **options)])


PLATFORMS = {
    "counted": 12,
    "shared nodes": nodes(4, 3),
    "exclusive nodes": nodes(4, 3, exclusive=True),
    "fast nodes": ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=3), NodeSpec(name="b", count=2, cores=3, speed=2)])]
    ),
}


class Drawn:
    """Starts and resizes jobs at random, by numbers that depend on the instant alone."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def decide(self, view: View) -> Iterator[Decision]:
        drawn = Random(f"{self.seed} {view.now!r}")
        for run in view.running:
            if run.job.elastic is not None and drawn.random() < 0.7:
                size = drawn.randint(run.job.elastic.minimum, run.job.elastic.maximum)
                if size <= run.job.processors or run.place.free >= 3 * (size - run.job.processors + 2):
                    yield Resize(run.job, size)
        for job in view.waiting:
            if job.elastic is not None and drawn.random() < 0.5:
                size = drawn.randint(job.elastic.minimum, job.elastic.maximum)
                if view.places[0].free >= 3 * (size + 2):
                    yield Start(job, view.places[0], processors=size)
                    continue
            if view.places[0].fits(job):
                yield Start(job, view.places[0])


def done(result: Result, jobs: dict[int, Job]) -> dict[int, float]:
    """Return the seconds of work at the preferred size that each job did, from the table of executions."""
    work = dict.fromkeys(jobs, 0.0)
    for row in result.runs.rows():
        elastic = jobs[row["job"]].elastic
        speed = 1.0 if elastic is None else elastic.speed(row["processors"])
        work[row["job"]] += (row["end"] - row["start"]) * speed
    return work


def drawn_jobs(seed: int) -> list[Job]:
    drawn = Random(seed)
    jobs = []
    for number in range(8):
        least = drawn.randint(1, 3)
        preferred = drawn.randint(least, 5)
        elastic = Elastic(least, preferred, drawn.randint(preferred, 8), speedup=Amdahl(drawn.choice([0, 0.05, 0.5])))
        asked: Any = {"elastic": elastic} if drawn.random() < 0.7 else {"processors": preferred}
        run = drawn.randint(0, 40)
        jobs.append(Job(id=number, submit=drawn.randint(0, 60), run=run, requested=run + drawn.randint(1, 9), **asked))
    return jobs


@pytest.mark.parametrize("name", ["counted", "shared nodes", "exclusive nodes"])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_work_is_conserved_and_no_processor_is_used_twice(name: str, seed: int) -> None:
    jobs = {int(str(job.id)): job for job in drawn_jobs(seed)}
    result = simulate(PLATFORMS[name], list(jobs.values()), Drawn(seed))
    assert set(result.jobs["status"].tolist()) == {"completed"}
    assert done(result, jobs) == pytest.approx({number: job.run for number, job in jobs.items()})
    assert result.busy().max() <= 12
    held = sum((row["end"] - row["start"]) * row["processors"] for row in result.runs.rows())
    assert result.busy().integral() == pytest.approx(held)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", PLATFORMS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.02, 0.98))
def test_a_cut_run_of_elastic_jobs_ends_as_the_uncut_one(name: str, seed: int, share: float) -> None:
    jobs = drawn_jobs(seed)
    whole = simulate(PLATFORMS[name], jobs, Drawn(seed))
    at = whole.started + share * (whole.ended - whole.started)
    before = start(PLATFORMS[name], jobs, Drawn(seed))
    before.run(until=at)
    env = Environment(at)
    cluster = Cluster.from_snapshot(env, ClusterSnapshot.from_json(before.snapshot().to_json()), Drawn(seed))
    env.run()
    after = cluster.result()
    ends = dict(zip(whole.jobs["job"].tolist(), whole.jobs["end"].tolist(), strict=True))
    assert {row["job"]: row["end"] for row in after.jobs.rows()} == {
        row["job"]: ends[row["job"]] for row in after.jobs.rows()
    }
    assert after.busy().integral(at, whole.ended) == pytest.approx(whole.busy().integral(at, whole.ended))
    sizes = {job.id: job.processors for job in jobs}
    assert all(row["processors"] == sizes[row["job"]] for row in after.jobs.rows())


def grows_at(instant: float, size: int) -> Any:
    def decide(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])
        if view.now == instant:
            yield Resize(next(run.job for run in view.running if run.job.elastic), size, reason="grow")

    return decide


def test_a_resized_job_ends_by_amdahls_law() -> None:
    jobs = [Job(id="a", run=100, requested=200, elastic=Elastic(1, 4, 8, speedup=Amdahl(0.05))), Job(submit=40, run=1)]
    result = simulate(10, jobs, grows_at(40, 8))
    speed = (0.05 + 0.95 / 4) / (0.05 + 0.95 / 8)
    assert result.jobs["end"][0] == pytest.approx(40 + 60 / speed)
    assert result.jobs["processors"].tolist() == [4, 1]
    assert [(row["processors"], row["start"], row["status"]) for row in result.runs.rows() if row["job"] == "a"] == [
        (4, 0.0, "resized"),
        (8, 40.0, "completed"),
    ]
    assert result.reasons is not None
    assert result.reasons["reason"].tolist() == ["grow"]


@pytest.mark.parametrize(
    ("speedup", "seconds"), [("linear", 50.0), ({1: 1, 4: 3, 8: 4}, 75.0), (lambda size: size**0.5, 100 / 2**0.5)]
)
def test_each_speedup_scales_the_run_time(speedup: Any, seconds: float) -> None:
    job = Job(run=100, elastic=Elastic(1, 4, 8, speedup=speedup))
    whole = simulate(8, [job], lambda view: [Start(job, view.places[0], processors=8) for job in view.waiting])
    assert whole.jobs["end"].tolist() == pytest.approx([seconds])


def test_the_limit_scales_with_the_size() -> None:
    job = Job(run=100, requested=60, elastic=Elastic(1, 4, 8))
    result = simulate(8, [job], lambda view: [Start(job, view.places[0], processors=2) for job in view.waiting])
    assert result.jobs["end"].tolist() == [120.0]
    assert result.jobs["status"].tolist() == ["timeout"]
    assert result.jobs["requested"].tolist() == [60.0]


def test_other_policies_run_it_at_its_preferred_size() -> None:
    log = [Job(id=n, submit=5 * n, run=20, elastic=Elastic(1, 3, 4)) for n in range(5)]
    rigid = [Job(id=n, submit=5 * n, run=20, processors=3) for n in range(5)]
    for policy in ("fcfs", "easy", "conservative", "best-fit"):
        assert simulate(7, log, policy).jobs["start"].tolist() == simulate(7, rigid, policy).jobs["start"].tolist()


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
@pytest.mark.parametrize("keeps", [False, True])
def test_preemption_of_a_job_that_has_grown(mode: Any, keeps: bool) -> None:
    def decide(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            if view.now not in (10, 15) and view.places[0].fits(job):
                yield Start(job, view.places[0])
            elif view.now == 10:
                yield Resize(view.running[0].job, 8)
        if view.now == 15 and view.running:
            yield Preempt(view.running[0].job, mode)

    job = Job(id="a", run=40, keeps_work=keeps, elastic=Elastic(1, 4, 8))
    ticks = [Job(id=at, submit=at, run=0) for at in (10, 15, 20)]
    result = simulate(8, [job, *ticks], decide)
    end = result.jobs["end"][0]
    if mode == "suspend":  # 10 s, 5 s at double speed, and the rest as it was
        assert end == 20 + 20 / 2
    else:
        assert end == 20 + (20 if keeps else 40)
        assert result.jobs["run"][0] == (15 + 20 if keeps else 40)
    stretches = [(row["processors"], row["status"]) for row in result.runs.rows() if row["job"] == "a"]
    last = 8 if mode == "suspend" else 4
    assert stretches == [(4, "resized"), (8, "suspended" if mode == "suspend" else "preempted"), (last, "completed")]


ELASTIC = Job(id="a", run=10, elastic=Elastic(2, 4, 8))
RIGID = Job(id="b", run=10, processors=2)


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        (lambda a, b, p: [Start(a, p, processors=9)], "processors: must be a whole number from 2 to 8, got 9"),
        (lambda a, b, p: [Start(a, p, processors=2.0)], "processors: must be a whole number from 2 to 8, got 2.0"),
        (lambda a, b, p: [Start(b, p, processors=2)], "must be None for a job that is not elastic, got 2"),
        (lambda a, b, p: [Start(b, p), Start(a, p, processors=7)], "does not fit: 7 processors, 6 of 8 are free"),
        (lambda a, b, p: [Start(b, p), Resize(b, 3)], "it is not elastic"),
        (lambda a, b, p: [Resize(a, 3)], "it is not running"),
        (lambda a, b, p: [Start(a, p), Start(b, p), Resize(a, 8)], "does not fit: 4 more processors, 2 of 8 are free"),
        (lambda a, b, p: [Start(a, p), Resize(a, 1)], "processors: must be a whole number from 2 to 8, got 1"),
    ],
)
def test_impossible_sizes_are_refused(decisions: Any, said: str) -> None:
    def decide(view: View) -> Any:
        a, b = view.waiting
        return decisions(a, b, view.places[0])

    with pytest.raises(PolicyError) as error:
        simulate(8, [ELASTIC, RIGID], decide)
    assert said in str(error.value)


@pytest.mark.parametrize("partition", [{"one_host": True}, {"placement": "contiguous"}])
def test_places_whose_jobs_keep_their_size(partition: Any) -> None:
    with pytest.raises(PolicyError, match=r"host|placement"):
        simulate(nodes(2, 8, **partition), [ELASTIC], lambda v: [Start(v.waiting.head(), v.places[0], processors=2)])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Elastic(4, 2, 8), "preferred: must be from minimum to maximum, got 4, 2, 8"),
        (lambda: Elastic(0, 2, 8), "minimum: must be a whole number >= 1, got 0"),
        (lambda: Amdahl(5), "serial: must be a share from 0 to 1, got 5"),
        (lambda: Elastic(1, 2, 3, speedup="fast"), "got 'fast'"),
        (lambda: MeasuredSpeedup({1: 0}), "speed-ups > 0"),
        (
            lambda: Job(run=1, processors=3, elastic=Elastic(1, 2, 4)),
            "processors: must be 2, the preferred size, got 3",
        ),
        (lambda: Job(run=1, nodes=2, elastic=Elastic(1, 2, 4)), "elastic: must be left out beside nodes"),
    ],
)
def test_wrong_sizes_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match="must") as error:
        make()
    assert said in str(error.value)


def test_snapshots_with_a_function_are_not_written() -> None:
    sim = start(8, [Job(run=10, elastic=Elastic(1, 2, 4, speedup=lambda n: n))], "easy")
    sim.run(until=5)
    with pytest.raises(SnapshotError, match="speedup: must be Amdahl"):
        sim.snapshot().to_json()
