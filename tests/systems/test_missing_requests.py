"""A job without a requested time has none in what policies, predictors and surrogates see; schedules stay the same."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Start, Workload, simulate, start
from simmodel.futures import what_if
from simmodel.metrics.features import JOB_FEATURES, job_features
from simmodel.platform import BrokerSpec, ClusterSpec, GridSpec, SiteSpec
from simmodel.predictors import SimilarJobs
from simmodel.predictors.boosted import Boosted
from simmodel.predictors.learning import learn_from
from simmodel.predictors.similar import OwnPast, RecentTwo, Request
from simmodel.records import JobRecord
from simmodel.results.result import Result
from simmodel.scheduling import View
from simmodel.work import Run
from tests.helpers.examples import up_to

INFINITY = float("inf")


def mixed(count: int = 60, seed: int = 0, user: bool = True) -> list[Job]:
    """Return jobs of three users, every second of which has a requested time, of three times its run time."""
    rng = np.random.default_rng(seed)
    runs = rng.integers(20, 200, count).tolist()
    return [
        Job(
            id=i,
            submit=5.0 * i,
            processors=1 + i % 5,
            run=run,
            requested=3 * run if i % 2 else None,
            user=i % 3 if user else None,
        )
        for i, run in enumerate(runs)
    ]


def as_log(jobs: list[Job]) -> Workload:
    """Return the jobs as a log, which has no objects."""
    return Workload({name: column for name, column in Workload.from_jobs(jobs).table.items() if name != "priority"})


class Watching:
    """First come, first served; keeps what each waiting job shows of its request."""

    def __init__(self) -> None:
        self.seen: dict[object, set[tuple[float, float]]] = {}

    def __call__(self, view: View):
        for job in view.waiting:
            self.seen.setdefault(job.id, set()).add((job.requested, job.asked))
            assert "planned" not in repr(job)
            assert job.requested < INFINITY or "no time requested" in repr(job)
            if not any(place.fits(job) for place in view.places):
                break
            yield Start(job, next(place for place in view.places if place.fits(job)))


def told(jobs: list[Job]) -> dict[object, set[tuple[float, float]]]:
    """Return what :class:`Watching` ought to see."""
    return {job.id: {(job.requested or INFINITY,) * 2} for job in jobs}


@pytest.mark.parametrize("given_as", [list, as_log])
def test_policies_see_no_request_where_there_is_none(given_as) -> None:
    jobs = mixed()
    policy = Watching()
    simulate(8, given_as(jobs), lambda view: policy(view))
    assert policy.seen == told(jobs)


def test_agents_and_continuations_see_no_run_time_as_a_request() -> None:
    jobs = mixed()
    sim = start(8, as_log(jobs), "easy")
    seen: dict[object, set[tuple[float, float]]] = {}
    for _ in range(20):
        view = sim.next_decision()
        for job in view.waiting:
            seen.setdefault(job.id, set()).add((job.requested, job.asked))
    policy = Watching()
    simulate(sim.snapshot(), None, lambda view: policy(view))
    assert len(seen) < len(jobs)
    both = {name: seen.get(name, set()) | policy.seen.get(name, set()) for name in seen | policy.seen}
    assert both == told(jobs)


def test_neither_do_policies_of_brokers_and_clusters_below_them() -> None:
    jobs = mixed()
    policy = Watching()
    spec = BrokerSpec(places={"a": ClusterSpec.simple(8), "b": ClusterSpec.simple(8)})
    result = simulate(spec, as_log(jobs), lambda view: policy(view))
    assert policy.seen == told(jobs)
    for name in ("requested", "asked"):
        found = dict(zip(result.jobs["job"].tolist(), result.jobs[name].tolist(), strict=True))
        assert [found[job.id] for job in jobs] == pytest.approx([job.requested or np.nan for job in jobs], nan_ok=True)


def requests_in(result: Result, jobs: list[Job]) -> bool:
    """Whether the recorded requests are those of the jobs."""
    found = dict(zip(result.jobs["job"].tolist(), result.jobs["requested"].tolist(), strict=True))
    return np.array_equal([found[job.id] for job in jobs], [job.requested or np.nan for job in jobs], equal_nan=True)


@pytest.mark.parametrize("estimates", ["requested", "recent-two", "predicted"])
def test_records_have_no_request_where_there_is_none(estimates: str) -> None:
    jobs = mixed()
    for work in (jobs, as_log(jobs)):
        assert requests_in(simulate(8, work, "easy", estimates=estimates), jobs)
    env = Environment()
    cluster = Cluster(env, 8, "easy", estimates=estimates)
    for job in jobs:
        cluster.submit(attrs.evolve(job, submit=0.0))
    env.run()
    assert requests_in(cluster.result(), jobs)
    cut = start(8, as_log(jobs), "easy", estimates=estimates).run(until=100).snapshot()
    left = simulate(cut, None, "easy")
    names = set(left.jobs["job"].tolist())
    assert requests_in(left, [job for job in jobs if job.id in names])


def test_records_of_grids_and_streams_have_them_too(tmp_path) -> None:
    jobs = mixed(20)
    spec = GridSpec(sites=[SiteSpec(name="a", cores=8), SiteSpec(name="b", cores=8)])
    assert requests_in(simulate(spec, jobs, "round-robin"), jobs)
    assert requests_in(simulate(8, as_log(jobs), "easy", stream=tmp_path / "a.db").load(), jobs)
    assert np.isnan(simulate(8, [Job(run=5), Job(run=7)], "easy").jobs["requested"]).all()


@pytest.mark.parametrize("given_as", [list, as_log])
def test_exact_estimates_are_an_oracle_that_users_choose(given_as) -> None:
    jobs, policy = mixed(), Watching()
    result = simulate(8, given_as(jobs), lambda view: policy(view), estimates="exact")
    assert policy.seen == {job.id: {(job.run, job.run)} for job in jobs}
    assert np.isnan(job_features(result)["requested"]).all()


@pytest.mark.parametrize("policy", ["easy", "conservative", "sjf", "wfp", "easy-sjbf", "best-fit"])
def test_schedules_are_planned_with_run_times_and_say_so(policy: str) -> None:
    jobs = mixed()
    filled = [attrs.evolve(job, requested=job.asked if job.requested else job.run) for job in jobs]
    for work in (jobs, as_log(jobs)):
        result = simulate(8, work, policy)
        assert result.jobs["start"].tolist() == simulate(8, filled, policy).jobs["start"].tolist()
        assert result.report.repaired["requested time missing: run time used"] == 30
    assert not simulate(8, filled, policy).report.repaired


def longer(job: Job) -> Job:
    """Return a job without a request that runs for ten times as long; any other job as it is."""
    return job if job.requested else attrs.evolve(job, run=10 * (job.run or 0))


@settings(max_examples=up_to(20), deadline=None)
@given(st.integers(0, 1000), st.integers(2, 40))
def test_no_column_of_features_knows_a_run_time_that_is_still_to_come(seed: int, cut: int) -> None:
    """Jobs that run on when the last is submitted may run for any time: what is known then is the same."""
    jobs = [attrs.evolve(job, submit=float(i)) for i, job in enumerate(mixed(cut, seed))]  # no job ends before the last
    plain, other = (job_features(simulate(1000, work, "fcfs")) for work in (jobs, list(map(longer, jobs))))
    for name in JOB_FEATURES:
        now = np.asarray(plain[name], dtype=float), np.asarray(other[name], dtype=float)
        early = plain["submit"] < min(job.run or 0 for job in jobs)
        assert np.array_equal(now[0][early], now[1][early], equal_nan=True), name
    assert np.isnan(plain["requested"]).tolist() == [job.requested is None for job in jobs]
    asked = sum(job.processors * (job.requested or 0) for job in jobs[:-1])
    if early[-1]:
        limits = sum(job.processors * (cut - 1 - job.submit) for job in jobs[:-1] if job.requested)
        assert plain["running_work"][-1] == pytest.approx(asked - limits)


def test_requests_that_were_filled_in_are_known_by_the_jobs_that_completed() -> None:
    """One that was stopped, and so did not run for as long, is no sign that users asked for run times."""
    jobs = {"submit": [0, 0, 0], "start": [0, 0, 0], "end": [5, 9, 4], "processors": [1, 1, 1]}
    jobs |= {"requested": [5, 9, 7], "status": ["completed", "completed", "cancelled"]}
    assert np.isnan(job_features(JobRecord(jobs=jobs))["requested"]).all()
    assert job_features(JobRecord(jobs=jobs | {"requested": [5, 8, 7]}))["requested"].tolist() == [5, 8, 7]
    assert job_features(JobRecord(jobs=jobs | {"status": ["timeout"] * 3}))["requested"].tolist() == [5, 9, 7]


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [Request, RecentTwo, SimilarJobs, OwnPast, lambda: Boosted(every=5)])
def test_predictors_do_not_know_the_run_time_of_a_job_without_a_request(kind) -> None:
    one, other = Job(run=7, user=0), Job(run=7000, user=0)
    past = kind()
    assert past.predict(one) == past.predict(other) == INFINITY
    learn_from(past, as_log(mixed(20)))
    assert past.predict(one) == past.predict(other)
    assert past.quantile(one, 0.9) == past.quantile(other, 0.9)
    if kind is not Request:
        assert 20 <= past.predict(one) <= 200


class Seen:
    """Keeps the seconds with which each job is planned when it starts."""

    def __init__(self) -> None:
        self.planned: dict[object, tuple[float, float]] = {}

    def job_started(self, run: Run) -> None:
        self.planned[run.job.id] = run.job.requested, run.job.planned


def test_a_prediction_is_not_cut_by_the_run_time_of_its_job() -> None:
    """Short and long jobs without requests have one plan; nothing is known of the first two, and this is told."""
    plans = []
    for run in (30, 90):
        jobs = [Job(id=i, submit=100.0 * i, run=50, user=1) for i in range(3)]
        seen = Seen()
        result = simulate(
            4, [*jobs, Job(id="x", submit=400, run=run, user=1, requested=None)], "fcfs", estimates="recent-two",
            observers=[seen],
        )  # fmt: skip
        assert (result.jobs["end"] - result.jobs["start"]).tolist() == [50, 50, 50, run]
        plans.append(seen.planned)
    assert plans[0] == plans[1]
    assert plans[0]["x"] == (50, 50)
    assert [plans[0][i] for i in range(3)] == [(INFINITY, 50), (INFINITY, 50), (50, 50)]


def test_what_ifs_measure_jobs_without_requests() -> None:
    cut = start(8, as_log(mixed()), "fcfs").run(until=150).snapshot()
    more = [Job(id="new", submit=160, run=40)]
    for arrivals in (None, more):
        found = what_if(cut, ["fcfs", "easy"], arrivals=arrivals, horizon=250)
        for sample in (each for outcome in found for each in outcome.samples):
            assert np.isfinite(sample.jobs["requested"]).all()
            assert all(np.isfinite(value) for value in sample.measures.values())
