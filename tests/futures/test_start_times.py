"""When waiting jobs start, over futures with random run times."""

from concurrent.futures import ThreadPoolExecutor
from math import inf

import numpy as np
import pytest

from simmodel import Cluster, Environment, InputError, Job, simulate, start, what_if
from simmodel.formats import read_swf
from simmodel.futures import predict_starts
from simmodel.futures.start_times import draw_run_times
from simmodel.predictors import Learning, SimilarJobs
from simmodel.predictors.similar import OwnPast, RecentTwo, Request
from simmodel.scheduling import Predictor
from tests.helpers.data_files import data_file
from tests.helpers.examples import up_to


class Uniform(Predictor):
    """Jobs run for any time up to their request with equal probability."""

    def predict(self, job: object) -> float:
        return job.asked / 2  # type: ignore[attr-defined]

    def quantile(self, job: object, q: float) -> float:
        return q * job.asked  # type: ignore[attr-defined]


def test_a_job_that_waits_for_one_other_starts_at_the_quantiles_of_its_end() -> None:
    jobs = [Job(processors=4, run=5, requested=100), Job(id="b", processors=4, run=5, requested=100)]
    simulation = start(4, jobs, "easy").run(until=40.0)
    assert predict_starts(simulation, predictor=Request()) is not None  # nothing waits: an empty table
    simulation = start(4, [Job(processors=4, run=90, requested=100), *jobs[1:]], "easy").run(until=40)
    found = predict_starts(simulation, quantiles=(0.1, 0.5, 0.9), draws=up_to(2000, 800), predictor=Uniform())
    assert found["job"].tolist() == ["b"]
    assert found["predicted"].tolist() == [50]  # as long as predicted: it has not run for that yet
    for q in (0.1, 0.5, 0.9):  # uniform from 40 to 100, given that it has run for 40
        assert found[f"q{100 * q:g}"][0] == pytest.approx(40 + 60 * q, abs=2)
    assert found["mean"][0] == pytest.approx(70, abs=1.5)


def test_futures_plan_with_what_the_policy_knows() -> None:
    """Job c cannot be backfilled, since it requests more than is left before the promise to b."""
    jobs = [
        Job(id="a", processors=3, run=99, requested=100),
        Job(id="b", processors=4, run=5, requested=50),
        Job(id="c", processors=1, run=5, requested=200),
    ]
    found = predict_starts(start(4, jobs, "easy").run(until=1), draws=50, predictor=Uniform())
    starts = dict(zip(found["job"].tolist(), found["q10"].tolist(), strict=True))
    assert starts["c"] > starts["b"]


def test_the_same_on_every_executor_and_for_more_draws() -> None:
    jobs = [Job(processors=3, run=50 + i, requested=100 + 7 * i, user=i % 3) for i in range(12)]
    past = OwnPast()
    simulation = start(4, jobs, "easy", observers=[Learning(past)]).run(until=400)
    one = predict_starts(simulation, draws=25, predictor=past, seed=3)
    with ThreadPoolExecutor(2) as pool:
        other = predict_starts(simulation.snapshot(), draws=25, predictor=past, seed=3, executor=pool)
    for name in one.names:
        assert one[name].tolist() == other[name].tolist()
    some = predict_starts(simulation, jobs=[12, 9], draws=25, predictor=past, seed=3)
    assert some["job"].tolist() == [12, 9]
    rows = [one["job"].tolist().index(job) for job in (12, 9)]
    assert some["q50"].tolist() == one["q50"][rows].tolist()
    assert (one["q10"] <= one["q50"]).all()
    assert (one["q50"] <= one["q90"]).all()


def test_the_predictor_of_a_simulation_with_predictions_is_used() -> None:
    jobs = [Job(processors=4, run=10, requested=1000, user="ann") for _ in range(12)]
    simulation = start(4, jobs, "easy", estimates="predicted").run(until=85)  # eight have ended
    snapshot = simulation.snapshot()
    assert predict_starts(simulation, draws=0).names == ("job", "submit", "predicted")
    for given in (simulation, snapshot, type(snapshot).from_json(snapshot.to_json())):
        assert predict_starts(given, draws=5)["predicted"].tolist() == [90, 100, 110]
    assert predict_starts(simulation, draws=5, predictor="request")["predicted"].tolist() == [1080, 2080, 3080]
    found = what_if(snapshot, ["easy"], predictor="predicted", samples=20)["easy"]
    assert {round(sample.starts[0].at) for sample in found.samples if sample is not None} == {90, 1080}


def test_a_what_if_draws_the_same_run_times_for_all_policies() -> None:
    jobs = [Job(processors=3, run=50, requested=100, user=i) for i in range(6)]
    snapshot = start(4, jobs, "fcfs").run(until=10).snapshot()
    found = what_if(snapshot, ["fcfs", "easy"], predictor=Uniform(), samples=8)
    assert found["fcfs"].samples == found["easy"].samples
    assert len({sample.ended for sample in found["easy"].samples if sample is not None}) == 8
    plain = what_if(snapshot, ["fcfs"], samples=2)["fcfs"].samples
    assert [sample.ended for sample in plain if sample is not None] == [600, 600]


def test_run_times_of_a_users_jobs_are_alike_in_a_future() -> None:
    env = Environment()
    cluster = Cluster(env, 1)
    for user in ("ann", "ann", "ann", "bob"):
        cluster.submit(Job(run=5, requested=1000, user=user))
    env.run(until=1)
    snapshot = cluster.snapshot(actual=False)
    drawn = np.array(
        [
            [work.duration for work in draw_run_times(snapshot, Uniform(), np.random.default_rng(seed)).waiting]
            for seed in range(2000)
        ]
    )
    ann, also_ann, bob = np.corrcoef(drawn.T)[0]
    assert (ann, also_ann, bob) == pytest.approx((1, 0.48, 0), abs=0.06)
    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx([250, 500, 750], abs=25)


def test_wrong_calls() -> None:
    simulation = start(4, [Job(processors=4, run=9, requested=60), Job(id="b", run=5)], "fcfs").run(until=1)
    for options, message in (
        ({"draws": -1}, "draws: must be a whole number >= 0, got -1"),
        ({"quantiles": [1.0]}, r"quantiles: must be numbers between 0 and 1, got 1\.0"),
        ({"jobs": ["c"]}, "unknown waiting job 'c'"),
        ({"predictor": "recent"}, "unknown predictor 'recent'"),
        ({"predictor": None}, "predictor: must be given: the snapshot was taken without predictions"),
    ):
        with pytest.raises(InputError, match=message):
            predict_starts(simulation, **{"predictor": "request", **options})  # type: ignore[arg-type]
    machine = start("hetsim-slow", "layered-100", "hrr").run(until=1).snapshot()
    with pytest.raises(InputError, match="snapshot: must be that of a cluster, got <MachineSnapshot"):
        predict_starts(machine, predictor="request")


def test_a_job_that_can_never_start_never_does() -> None:
    env = Environment()
    cluster = Cluster(env, 4)
    cluster.submit(Job(processors=1, run=5, requested=10))
    late = cluster.submit(Job(id="late", processors=4, run=5, requested=10))
    env.run(until=1)
    cluster.places[0].resize(2)  # type: ignore[attr-defined]
    found = predict_starts(cluster.snapshot(actual=False), predictor="request", draws=3)
    assert late.state == "waiting"
    assert found["q50"].tolist() == [inf]


@pytest.mark.long  # drawn jobs: the other tests of the file
@pytest.mark.parametrize(
    "rows",
    [
        range(3_000, 5_000, 25),
        pytest.param(range(20_000, 26_000, 15), marks=pytest.mark.long),
        pytest.param(range(20_000, 26_000), marks=pytest.mark.exhaustive),
    ],
)
def test_starts_on_sdsc_are_foretold_better_than_from_the_last_two_jobs_and_from_requests(rows: range) -> None:
    workload = read_swf(data_file("swf/SDSC-SP2-1998-4-filtered.swf.gz"))
    kinds = [Request(), RecentTwo(), SimilarJobs()]
    simulation = start(128, workload, "easy", observers=[Learning(kind) for kind in kinds])
    errors: dict[str, dict[int, float]] = {kind.name: {} for kind in kinds}
    for row in rows:
        job = int(workload["job"][row])
        after = float(np.nextafter(workload["submit"][row], np.inf))
        if after > simulation.env.now:
            simulation.run(until=after)
        snapshot = simulation.system.snapshot(actual=False)  # type: ignore[call-arg]
        if job in {work.id for work in snapshot.waiting}:
            for kind in kinds:
                errors[kind.name][job] = predict_starts(snapshot, [job], draws=0, predictor=kind)["predicted"][0]
    jobs = simulate(128, workload, "easy").jobs
    real = dict(zip(jobs["job"].tolist(), jobs["start"].tolist(), strict=True))
    median = {
        name: np.median([abs(at - real[job]) / 60 for job, at in starts.items()]) for name, starts in errors.items()
    }
    assert median["predicted"] <= 190
    assert median["predicted"] < median["recent-two"] < median["request"] / 2
