"""Clusters whose policies plan with predicted run times."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Cluster, Environment, InputError, Job, Observer, Snapshot, simulate, start
from simmodel.formats import read_swf
from simmodel.foundation.errors import SnapshotError
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec
from simmodel.predictors import Learning, SimilarJobs
from simmodel.results import load_result
from simmodel.scheduling import Predictor
from simmodel.work import LiveJob, Run
from tests.helpers.data_files import data_file
from tests.oracles.predicted import Asked, starts

NAMES = ["predicted", "recent-two", "own-past(0.8)"]


class Same(Predictor):
    """Every job is expected to run for so long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def predict(self, job: object) -> float:
        return self.seconds


class Oracle(Predictor):
    """Knows the run times of jobs by their users, who have one job each."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self.seconds = seconds

    def predict(self, job: object) -> float:
        return self.seconds[job.user]  # type: ignore[attr-defined]


def log(seed: int, count: int = 60) -> list[Job]:
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.integers(0, 40, count)).tolist()
    asked = rng.choice([30, 60, 120, 600, 7200], count).tolist()
    return [
        Job(
            submit=at[i],
            run=max(1, int(asked[i] * rng.choice([0.02, 0.1, 0.5, 1, 1.5]))),
            requested=asked[i],
            processors=int(rng.integers(1, 9)),
            user=rng.choice(["ann", "bob", "cy"]),
        )
        for i in range(count)
    ]


# ---------------------------------------------------------------------- the rules


@pytest.mark.few(28)
@pytest.mark.parametrize("seed", range(40))
def test_easy_with_the_last_two_jobs_starts_as_brute_force_says(seed: int) -> None:
    jobs = log(seed)
    found = simulate(8, jobs, "easy", estimates="recent-two").jobs["start"].tolist()
    asked = [Asked(job.submit, job.run, job.asked, job.processors, job.user) for job in jobs]
    assert found == starts(asked, 8)


def test_a_job_that_outlives_its_prediction_is_expected_later_and_never_stopped_by_it() -> None:
    env = Environment()
    cluster = Cluster(env, 4, "easy", estimates=Same(10))
    job = cluster.submit(Job(processors=3, run=3000, requested=5000))
    env.run(until=1)
    assert job.run is not None
    seen = []
    while job.run is not None:
        seen.append(job.run.expected_end)
        env.run(until=np.nextafter(job.run.expected_end, np.inf))
    assert seen == [10, 70, 370, 1270, 3070]
    assert (job.state, job.asked, env.now > 3000) == ("completed", 5000, True)


def test_corrections_end_at_the_request() -> None:
    env = Environment()
    cluster = Cluster(env, 4, "easy", estimates=Same(10), overrun="continue")
    job = cluster.submit(Job(processors=3, run=500, requested=100))
    for until, expected in ((5, 10), (20, 70), (75, 100), (400, 100)):
        env.run(until=until)
        assert job.run is not None
        assert job.run.expected_end == expected
    env.run()
    assert job.state == "completed"
    stopped = simulate(4, [Job(processors=3, run=500, requested=100)], "fcfs", estimates=Same(10)).jobs
    assert (stopped["end"].tolist(), stopped["status"].tolist()) == ([100], ["timeout"])


@pytest.mark.few(4)
@pytest.mark.parametrize("options", [{}, {"decide_on": "event"}, {"overrun": "continue"}], ids=str)
@pytest.mark.parametrize("policy", ["easy", "conservative", "sjf+easy"])
def test_predictions_of_the_request_change_nothing(policy: str, options: dict[str, str]) -> None:
    for spec in (8, nodes(4, 2)):
        plain = simulate(spec, log(3), policy, **options).jobs  # type: ignore[call-overload]
        found = simulate(spec, log(3), policy, estimates="request", **options).jobs  # type: ignore[call-overload]
        for name in ("start", "end", "status", "requested"):
            assert found[name].tolist() == plain[name].tolist()


@pytest.mark.few(5)
@pytest.mark.parametrize("policy", ["easy", "conservative", "easy-sjbf", "conservative-keep"])
@pytest.mark.parametrize("seed", range(4))
def test_predictions_of_the_run_time_are_exact_estimates(policy: str, seed: int) -> None:
    jobs = [Job(id=i, submit=job.submit, run=max(1, min(job.run, job.asked)), requested=job.asked,
                processors=job.processors, user=i) for i, job in enumerate(log(seed))]  # fmt: skip
    known = Oracle({job.user: job.run for job in jobs})  # type: ignore[misc]
    for spec in (8, nodes(4, 2)):
        found = simulate(spec, jobs, policy, estimates=known).jobs["start"].tolist()
        assert found == simulate(spec, jobs, policy, estimates="exact").jobs["start"].tolist()


def nodes(count: int, cores: int, **more: object) -> ClusterSpec:
    partition = PartitionSpec(name="batch", nodes=[NodeSpec(count=count, cores=cores)])
    return ClusterSpec(partitions=[partition], **more)  # type: ignore[arg-type]


@pytest.mark.few(5)
@pytest.mark.parametrize("estimates", NAMES)
@pytest.mark.parametrize("policy", ["easy", "conservative", "easy-sjbf", "wfp+easy"])
def test_what_happens_later_does_not_change_what_was_decided(policy: str, estimates: str) -> None:
    jobs = log(5)
    first = simulate(8, jobs, policy, estimates=estimates).jobs
    for at in (200.0, 700.0):
        unknown = ~(first["end"] <= at)
        assert unknown.any()
        other = [
            Job(submit=job.submit, run=job.asked if late else job.run, requested=job.asked,
                processors=job.processors, user=job.user)
            for job, late in zip(jobs, unknown, strict=True)
        ]  # fmt: skip
        again = simulate(8, other, policy, estimates=estimates).jobs
        decided = first["start"] <= at
        assert first["start"][decided].tolist() == again["start"][decided].tolist()


# ---------------------------------------------------------------------- everything else goes on


@pytest.mark.few(5)
@pytest.mark.parametrize("estimates", [*NAMES, SimilarJobs(3)])
@pytest.mark.parametrize("spec", [8, nodes(2, 4)], ids=["counts", "nodes"])
@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_snapshot_continues_to_the_same_end(policy: str, spec: object, estimates: object) -> None:
    whole = simulate(spec, log(7), policy, estimates=estimates).jobs  # type: ignore[call-overload]
    for at in (150.5, 400.0, 1200.0):
        simulation = start(spec, log(7), policy, estimates=estimates).run(until=at)  # type: ignore[call-overload]
        snapshot = simulation.snapshot()
        assert Snapshot.from_json(snapshot.to_json()) == snapshot
        later = simulate(Snapshot.from_json(snapshot.to_json())).jobs
        rows = np.searchsorted(whole["job"], later["job"])
        for name in ("start", "end", "requested", "status"):
            assert later[name].tolist() == whole[name][rows].tolist()


def test_a_predictor_without_a_name_stays_in_memory() -> None:
    snapshot = start(8, log(7), "easy", estimates=Same(20)).run(until=300).snapshot()
    whole = simulate(8, log(7), "easy", estimates=Same(20)).jobs
    later = simulate(snapshot).jobs
    assert later["start"].tolist() == whole["start"][np.searchsorted(whole["job"], later["job"])].tolist()


def test_a_suspended_job_resumes_with_what_its_prediction_leaves() -> None:
    env = Environment()
    cluster = Cluster(env, 4, "easy", estimates=Same(100))
    first = cluster.submit(Job(processors=4, run=900, requested=1000, on_preempt="suspend"))
    env.run(until=130)
    assert first.run is not None
    assert first.run.expected_end == 160
    cluster.preempt(first, "suspend")
    assert (first.requested, first.asked) == (30, 1000)
    env.run(until=140)
    assert first.run is not None  # resumed at once
    assert first.run.expected_end == 160
    env.run()
    assert (first.state, env.now) == ("completed", 900)


class Learnt(Predictor):
    """Keeps what it is told."""

    def __init__(self, told: list[tuple[object, float]]) -> None:
        self.told = told

    def predict(self, job: object) -> float:
        return 5.0

    def learn(self, job: object, seconds: float) -> None:
        self.told.append((job.user, seconds))  # type: ignore[attr-defined]


def test_a_predictor_learns_whole_run_times_of_jobs_that_ended_by_themselves() -> None:
    told: list[tuple[object, float]] = []
    env = Environment()
    cluster = Cluster(env, 8, "easy", estimates=Learnt(told))
    ends = cluster.submit(Job(run=50, requested=90, user="ends"))
    cluster.submit(Job(run=500, requested=90, user="is stopped"))
    cancelled = cluster.submit(Job(run=50, requested=90, user="is cancelled"))
    suspended = cluster.submit(Job(run=50, requested=90, user="is suspended", on_preempt="suspend"))
    again = cluster.submit(Job(run=50, requested=90, user="starts again"))
    env.run(until=20)
    cluster.cancel(cancelled)
    cluster.preempt(suspended, "suspend")
    cluster.preempt(again)
    env.run()
    assert ends.state == "completed"
    assert sorted(told) == [  # type: ignore[type-var]
        ("ends", 50), ("is stopped", 90), ("is suspended", 50), ("starts again", 50),
    ]  # fmt: skip


def test_predictions_on_brokers_streams_and_stored_results(tmp_path: Path) -> None:
    jobs = log(9)
    alone = simulate(8, jobs, "easy", estimates="recent-two")
    below = simulate({"a": 8}, jobs, "round-robin", policies="easy", estimates="recent-two")
    assert below.jobs["start"].tolist() == alone.jobs["start"].tolist()
    streamed = simulate(8, jobs, "easy", estimates="recent-two", stream=tmp_path / "run.csv")
    assert streamed.metrics()["wait_mean"] == pytest.approx(alone.metrics()["wait_mean"])
    alone.to_sqlite(tmp_path / "run.sqlite")
    assert load_result(tmp_path / "run.sqlite").scenario["options"]["estimates"] == "recent-two"


@pytest.mark.parametrize(
    "window",
    [
        {"outages": [OutageSpec(at=200, until=300, processors=4, kind="maintenance")]},
        {"reservations": [ReservationSpec(name="course", start=200, end=300, processors=4)]},
    ],
)
def test_no_job_is_in_the_way_of_a_window_because_of_its_prediction(window: dict[str, Any]) -> None:
    spec = ClusterSpec(partitions=ClusterSpec.simple(4).partitions, **window)
    jobs = [Job(processors=4, run=250, requested=260), Job(submit=310, processors=4, run=50, requested=90)]
    found = simulate(spec, jobs, "easy", estimates=Same(50)).jobs
    assert found["start"].tolist() == simulate(spec, jobs, "easy").jobs["start"].tolist() == [300, 550]
    assert found["attempts"].tolist() == [1, 1]


def test_predictions_resume_after_the_last_window() -> None:
    env = Environment()
    window = OutageSpec(at=20, until=30, processors=4, kind="maintenance")
    cluster = Cluster(
        env, ClusterSpec(partitions=ClusterSpec.simple(4).partitions, outages=[window]), estimates=Same(5)
    )
    before = cluster.submit(Job(run=9, requested=60))
    env.run(until=40)
    after = cluster.submit(Job(run=9, requested=60))
    assert (before.requested, after.requested) == (60, 5)


def test_objects_among_the_options_are_not_stored(tmp_path: Path) -> None:
    simulation = start(4, log(1)[:5], "easy", estimates=Same(5))
    with pytest.raises(SnapshotError, match="predictor Same cannot be written: it was passed as an object"):
        simulation.snapshot().to_json()
    simulation.run().result().to_sqlite(tmp_path / "run.sqlite")
    assert load_result(tmp_path / "run.sqlite").scenario["options"]["estimates"] is None
    with pytest.raises(InputError, match="estimates: was passed as an object, which documents do not hold"):
        simulate(4, [Job(run=1)], estimates=None)  # type: ignore[call-overload]


def test_mirrored_jobs_and_jobs_with_bodies_are_corrected_too() -> None:
    env = Environment()
    cluster = Cluster(env, 4, estimates=Same(10), execution="mirrored")
    cluster.submit(Job(id="real", processors=2, run=80, requested=100))
    cluster.execution.start("real", at=1)  # type: ignore[arg-type]
    env.run(until=30)
    assert [run.expected_end for run in cluster.places[0].running] == [71]
    body = Cluster(env := Environment(), 4, estimates=Same(10))
    job = body.submit(Job(processors=2, requested=100, body=lambda env, job, grant: (yield env.timeout(80))))
    env.run(until=30)
    assert isinstance(job.run, Run)
    assert job.run.expected_end == 70
    env.run()
    assert job.state == "completed"


def test_observers_and_records_see_the_request() -> None:
    class Watch(Observer):
        seen: list[float] = []  # noqa: RUF012

        def job_started(self, run: Run) -> None:
            self.seen.append(run.job.requested)

    jobs = [Job(run=10, requested=100), Job(run=20, requested=200)]
    result = simulate(1, jobs, "fcfs", estimates=Same(15), observers=[Watch()])
    assert result.jobs["requested"].tolist() == [100, 200]
    assert Watch.seen == [15, 15]


def test_wrong_estimates() -> None:
    for wrong, message in (
        ("predicte", "estimates: unknown estimate 'predicte'; did you mean 'predicted'"),
        (3, "estimates: must be 'requested', 'exact', 'cqsim', the name of a predictor or a Predictor, got 3"),
        ("own-past(9)", "q: must be a number from 0 to 1, got 9"),
    ):
        with pytest.raises(InputError, match=message):
            simulate(4, [Job(run=1)], "fcfs", estimates=wrong)
    with pytest.raises(InputError, match="predictor 'Same': must predict seconds >= 0, got -5 for job 1"):
        simulate(4, [Job(run=1)], "fcfs", estimates=Same(-5))


# ---------------------------------------------------------------------- real logs


@pytest.mark.long  # predictions themselves are tested above, on drawn jobs
@pytest.mark.parametrize(("name", "processors"), [("KTH-SP2-1996-2-filtered", 100)])
def test_easy_gains_from_predictions_on_kth(name: str, processors: int) -> None:
    jobs = read_swf(data_file(f"swf/{name}.swf.gz"))
    slowdown = {
        estimates: simulate(processors, jobs, "easy", estimates=estimates).metrics()["bounded_slowdown_mean"]
        for estimates in ("requested", "predicted")
    }
    assert slowdown["requested"] == pytest.approx(92.69, abs=0.01)
    assert slowdown["predicted"] < 0.9 * slowdown["requested"]


@pytest.mark.parametrize(
    ("name", "processors", "jobs"),
    [
        ("KTH-SP2-1996-2-filtered", 100, 5000),
        pytest.param("KTH-SP2-1996-2-filtered", 100, None, marks=pytest.mark.long),
        pytest.param("SDSC-SP2-1998-4-filtered", 128, None, marks=pytest.mark.exhaustive),
        pytest.param("UniLu-Gaia-2014-2", 2004, None, marks=pytest.mark.exhaustive),
    ],
)
def test_bounds_of_run_times_hold(name: str, processors: int, jobs: int | None) -> None:
    workload = read_swf(data_file(f"swf/{name}.swf.gz")).where(slice(0, jobs))
    if "Gaia" in name:
        workload = workload.where((workload["queue"] != 2) & (workload["run"] >= 0))
    bounds = Bounds()
    simulate(processors, workload, "easy", observers=[bounds, Learning(bounds.past)])
    assert bounds.jobs == len(workload)
    for q, margin in ((0.8, 0.05), (0.95, 0.03)):
        assert bounds.below[q] / bounds.jobs == pytest.approx(q, abs=margin)
        assert bounds.between[q] / bounds.jobs == pytest.approx(q, abs=margin)


class Bounds(Observer):
    """Counts the jobs that end below the 80 % and the 95 % bound given at their submission, or between two bounds."""

    def __init__(self) -> None:
        self.past = SimilarJobs()
        self.jobs = 0
        self.below = {0.8: 0, 0.95: 0}
        self.between = {0.8: 0, 0.95: 0}
        self.given: dict[int, dict[float, list[float]]] = {}

    def job_submitted(self, job: LiveJob) -> None:
        self.given[job.seq] = {
            q: [self.past.quantile(job, at) for at in (q, (1 - q) / 2, (1 + q) / 2)] for q in self.below
        }

    def job_ended(self, run: Run, status: str) -> None:
        self.jobs += 1
        seconds = run.place.env.now - run.started
        for q, (bound, low, high) in self.given.pop(run.job.seq).items():
            self.below[q] += seconds <= bound
            self.between[q] += low <= seconds <= high
