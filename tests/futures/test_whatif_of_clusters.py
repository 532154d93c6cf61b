"""What-ifs: futures equal simulations on every executor; late, failed and dead branches are reported."""

import gc
import json
import math
import os
import re
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import attrs
import numpy as np
import pytest

from simmodel import Cluster, Environment, InputError, Job, Start, load_workload, simulate
from simmodel.futures.executors import stop_workers
from simmodel.futures.outcomes import Branch, Outcome, Starting
from simmodel.futures.start_times import predict
from simmodel.futures.what_if_result import scored
from simmodel.futures.whatif import what_if
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems.cluster.from_data import snapshot_of
from simmodel.work.job import Run
from simmodel.work.transformations import between
from tests.helpers.small_snapshots import QUEUE, drawn, small, starts, week as small_week

POLICIES = ["fcfs", "easy", "sjf+easy", "wfp+easy", "conservative", "conservative-keep"]


@pytest.fixture(scope="module", name="week")
def the_week() -> ClusterSnapshot:
    return small_week()


# ---------------------------------------------------------------------- futures


def test_starts_of_a_small_queue_are_as_by_hand() -> None:
    found = what_if(small(*QUEUE), ["fcfs", "easy", "sjf"])
    assert starts(found["fcfs"]) == {2: 100.0, 3: 150.0, 4: 150.0}
    assert starts(found["easy"]) == {3: 1.0, 2: 100.0, 4: 150.0}
    assert starts(found["sjf"]) == {3: 1.0, 2: 100.0, 4: 150.0}
    assert found["easy"].now == (Starting(3, "batch", 1.0),)
    assert found["fcfs"].now == ()
    assert found["easy"].measures["wait_mean"] == pytest.approx((1 + 100 + 150) / 3)
    assert found["fcfs"].score == pytest.approx(400 / 3)
    assert found.best is found["easy"]
    assert found.decisions == found["easy"].now
    sample = found["fcfs"].samples[0]
    assert sample.jobs["job"].tolist() == [2, 3, 4]
    assert sample.jobs["waiting"].all()
    assert sample.ended == 350.0
    assert sample.measures["utilisation"] == pytest.approx((99 * 3 + 50 * 4 + 20 + 200) / (349 * 4))


def test_the_jobs_of_a_future_need_no_collector(week: ClusterSnapshot) -> None:
    """They are free when the future is known: else the collector walks over all of them."""
    runs = lambda: sum(isinstance(each, Run) for each in gc.get_objects())  # noqa: E731
    seen = week.expected()
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        before = runs()
        for name in ("fcfs", "easy", "conservative", "conservative-keep"):
            what_if(week, [name])
            predict(seen, name)
            assert runs() == before, name
    finally:
        if enabled:
            gc.enable()


def test_futures_are_those_of_simulations_of_what_is_expected(week: ClusterSnapshot) -> None:
    found = what_if(week, POLICIES, results=True)
    assert week.arrivals
    running = {run.id for run in week.running}
    waiting = {work.id for work in week.waiting}
    for name in POLICIES:
        outcome = found[name]
        assert outcome.status == "finished"
        assert set(starts(outcome)) == waiting
        env = Environment(week.now)
        alone = Cluster.from_snapshot(env, week.expected(), name)
        env.run()
        table = alone.result().jobs
        expected = dict(zip(table["job"].tolist(), table["start"].tolist(), strict=True))
        assert starts(outcome) == {job: at for job, at in expected.items() if job not in running}
        result = outcome.samples[0].result
        assert set(result.jobs["job"].tolist()) == running | waiting


def test_the_expected_ends_count_and_not_the_actual_ones(week: ClusterSnapshot) -> None:
    seen, known = (what_if(week, ["easy"], actual=actual)["easy"] for actual in (False, True))
    assert starts(seen) != starts(known)
    assert starts(what_if(week.expected(), ["easy"])["easy"]) == starts(seen)


def test_where_requests_are_exact_a_what_if_foretells_what_happens() -> None:
    log = between(load_workload("lublin-128-week"), 0, 300_000)
    env = Environment()
    cluster = Cluster(env, 128, "easy", estimates="exact")
    cluster.replay(log)
    env.run(until=290_000)
    snapshot = cluster.snapshot()
    arrivals = between(log, 290_000)
    foretold = what_if(snapshot, ["easy"], arrivals=arrivals)["easy"]
    jobs = simulate(128, log, "easy", estimates="exact").jobs
    happened = dict(zip(jobs["job"].tolist(), jobs["start"].tolist(), strict=True))
    assert len(foretold.starts) > len(arrivals)
    assert all(happened[job] == at for job, at in starts(foretold).items())


def test_the_snapshots_own_policy_goes_on_with_what_it_remembers() -> None:
    snapshot = small(*QUEUE, policy="conservative-keep")
    found = what_if(snapshot, {"as it is": None, "anew": "conservative-keep"})
    assert starts(found["as it is"]) == starts(found["anew"])
    assert [each.name for each in what_if(snapshot, [None, "easy"])] == ["as it is", "easy"]


def test_a_horizon_ends_futures_early() -> None:
    found = what_if(small(*QUEUE), ["fcfs", "easy"], horizon=60)
    assert starts(found["fcfs"]) == {}
    assert found["fcfs"].measures["wait_mean"] == 61.0  # all of them have waited to the end
    assert found["easy"].measures["wait_mean"] == pytest.approx((61 + 1 + 61) / 3)
    assert found["fcfs"].unstarted == 3
    assert found["fcfs"].samples[0].ended == 61.0
    assert found.best.name == "easy"


def nothing(view: object) -> None:
    """Start nothing, ever."""


def test_who_leaves_jobs_waiting_for_ever_is_not_the_best() -> None:
    found = what_if(small(*QUEUE), {"nothing": nothing, "fcfs": "fcfs"}, objective="raw:wait_max")
    assert found["nothing"].status == "finished"
    assert found["nothing"].unstarted == 3
    assert found.best.name == "fcfs"
    assert "nothing: 3 jobs never start" in found.summary()


def test_a_job_that_can_never_start_does_not_stop_the_decision() -> None:
    env = Environment()
    cluster = Cluster(env, 4, "fcfs")
    for size, run in ((2, 10), (4, 10), (1, 5)):
        cluster.submit(Job(processors=size, run=run))
    cluster.submit(Job(run=10, dependencies=["a job that never comes"]))
    env.run(until=1)
    found = what_if(cluster.snapshot(), ["fcfs", "easy"])
    assert found["easy"].unstarted == found["fcfs"].unstarted == 1
    assert found["fcfs"].measures["wait_mean"] == pytest.approx((10 + 20) / 2)
    assert found.best.name == "easy"


def test_what_a_real_scheduler_says_is_enough() -> None:
    """One job runs longer than requested: its expected end is just after now."""
    snapshot = snapshot_of(
        8,
        now=1000.0,
        running=[
            {"id": 1, "processors": 4, "requested": 500, "started": 900.0},
            {"id": 2, "processors": 2, "requested": 500, "started": 100.0},
        ],
        waiting=[
            {"id": 3, "submit": 60.0, "processors": 8, "requested": 100},
            {"id": 4, "submit": 70.0, "processors": 4, "requested": 300},
        ],
    )
    found = what_if(snapshot, ["fcfs", "easy"])
    assert starts(found["fcfs"]) == {3: 1400.0, 4: 1500.0}
    assert starts(found["easy"]) == {3: 1400.0, 4: math.nextafter(1000.0, math.inf)}
    assert found["easy"].now == ()


def test_nothing_waits_nothing_to_decide() -> None:
    found = what_if(small((1, 10)), ["fcfs", "easy"])
    assert found.decisions == ()
    assert found.best is None
    assert np.isnan(found.table["wait_mean"]).all()
    assert "no job waits or arrives: nothing to decide" in found.summary()


# ---------------------------------------------------------------------- executors


def test_processes_and_threads_change_nothing(week: ClusterSnapshot) -> None:
    options = {"samples": 2, "arrivals": partial(drawn, jobs=20), "seed": 3}
    here = what_if(week, POLICIES, **options)
    with ThreadPoolExecutor(2) as executor:
        assert what_if(week, POLICIES, executor=executor, **options).outcomes == here.outcomes
    with ProcessPoolExecutor(2) as executor:
        for _ in range(2):
            assert what_if(week, POLICIES, executor=executor, **options).outcomes == here.outcomes
    assert what_if(week, POLICIES, **{**options, "seed": 4}).outcomes != here.outcomes


@pytest.mark.long  # nor do processes and threads: the tests beside it
@pytest.mark.filterwarnings("ignore:Couldn't detect a suitable IP address:RuntimeWarning")  # without a network
@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.long)])
def test_dask_changes_nothing(week: ClusterSnapshot, processes: bool, tmp_path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'simmodel[scale]'")
    here = what_if(week, POLICIES)
    options = {"n_workers": 1 + processes, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=processes, local_directory=str(tmp_path), **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = what_if(week, {**{name: name for name in POLICIES}, "bug": bug}, executor=client.get_executor())
    assert found.outcomes[:-1] == here.outcomes
    assert found["bug"].reason.startswith("ZeroDivisionError")


def bug(view: object) -> object:
    return 1 / 0


def dies(view: object) -> None:
    os._exit(9)


def blocked(view: object) -> None:
    threading.Event().wait(600)


def greedy_for_ever(view):
    """Decide again at each second, and start nothing."""
    from simmodel import WakeAt

    time.sleep(0.01)
    yield WakeAt(view.now + 1)


def illegal(view):
    for job in view.waiting:
        yield Start(job, view.places[0])


def test_what_fails_is_reported_and_stops_nobody(week: ClusterSnapshot) -> None:
    found = what_if(week, {"bug": bug, "easy": "easy", "illegal": illegal})
    assert [each.status for each in found] == ["failed", "finished", "failed"]
    assert found["bug"].reason.startswith("ZeroDivisionError: division by zero (line ")
    assert found["illegal"].reason.startswith("policy illegal at 300000.0, job ")
    assert found.best.name == "easy"
    assert np.isnan(found["bug"].score)
    assert found["bug"].starts == found["bug"].now == ()
    with pytest.raises(KeyError, match="unknown measure 'colour'"):
        found["easy"].values("colour")
    nobody = what_if(week, [bug])
    assert nobody.best is None
    assert nobody.decisions == ()
    assert "nothing to decide" in nobody.summary()


def test_a_worker_that_dies_is_reported_and_stops_nobody(week: ClusterSnapshot) -> None:
    policies = {"easy": "easy", "dies": dies, "sjf": "sjf+easy"}
    with ProcessPoolExecutor(2) as executor:
        found = what_if(week, policies, executor=executor)
    assert [each.status for each in found] == ["finished", "failed", "finished"]
    assert found["dies"].reason == "its worker process died (exit code 9)"
    assert found.outcomes[::2] == what_if(week, {"easy": "easy", "sjf": "sjf+easy"}).outcomes


def test_what_is_late_is_reported_and_not_waited_for(week: ClusterSnapshot) -> None:
    executor = ProcessPoolExecutor(2)
    what_if(week, ["easy", "fcfs"], executor=executor)  # start the workers
    found = what_if(week, {"easy": "easy", "blocked": blocked}, executor=executor, deadline=10.0)
    stop_workers(executor)
    assert [each.status for each in found] == ["finished", "unfinished"]
    assert found["blocked"].reason == "not finished by the deadline of 10 s"
    assert found.best.name == "easy"
    assert "blocked: unfinished: not finished by the deadline of 10 s" in found.summary()


def test_a_future_that_has_no_end_is_left_at_the_deadline(week: ClusterSnapshot) -> None:
    found = what_if(week, {"easy": "easy", "for ever": greedy_for_ever, "sjf": "sjf+easy"}, deadline=5.0)
    assert [each.status for each in found] == ["finished", "unfinished", "unfinished"]  # no time left for the third


# ---------------------------------------------------------------------- arrivals


def test_jobs_of_no_name_get_one_that_is_free() -> None:
    found = what_if(
        small(*QUEUE),
        {
            "fcfs": "fcfs",
            "more": Branch("fcfs").submit(Job(processors=4, run=1)).submit(Job(id=9, run=1, processors=4)),
        },
        arrivals=[Job(submit=2, processors=4, run=1), Job(submit=3, id=7, processors=4, run=1)],
    )
    assert starts(found["fcfs"]) == {2: 100.0, 3: 150.0, 4: 150.0, 8: 350.0, 7: 351.0}
    assert starts(found["more"]) == {2: 100.0, 3: 150.0, 4: 150.0, 10: 350.0, 9: 351.0, 8: 352.0, 7: 353.0}


def test_samples_differ_and_the_seed_repeats_them() -> None:
    snapshot = small(*QUEUE)
    policies = ["fcfs", "easy", "sjf+easy"]
    found = what_if(snapshot, policies, arrivals=drawn, samples=6, seed=1)
    again = what_if(snapshot, policies, arrivals=drawn, samples=6, seed=1)
    more = what_if(snapshot, policies, arrivals=drawn, samples=8, seed=1)
    assert found.outcomes == again.outcomes
    for one, other in zip(found, more, strict=True):
        assert one.samples == other.samples[:6]
    assert len(set(found["easy"].values("wait_mean").tolist())) == 6
    first = [outcome.samples[0].jobs for outcome in found]
    assert first[0]["submit"].tolist() == first[1]["submit"].tolist()  # all policies get the same arrivals
    assert first[0]["job"].tolist()[3:] == list(range(5, 15))
    assert first[0]["waiting"].tolist() == [True] * 3 + [False] * 10
    assert (first[0]["submit"][3:] >= snapshot.now).all()


def test_means_come_with_intervals_and_differences_are_paired() -> None:
    found = what_if(small(*QUEUE), ["fcfs", "easy"], arrivals=drawn, samples=20)
    waits = found["easy"].values("wait_mean")
    interval = found["easy"].interval("wait_mean")
    assert interval.mean == pytest.approx(waits.mean())
    assert interval.count == 20
    assert found["easy"].measures["wait_mean"] == pytest.approx(waits.mean())
    assert found["easy"].score == pytest.approx(waits.mean())
    gain = found.difference("fcfs", "easy", metric="wait_mean")
    assert gain.low > 0
    assert gain.mean == pytest.approx(found["fcfs"].score - found["easy"].score)
    assert "means of 20 samples" in found.summary()
    assert found.table["samples"].tolist() == [20, 20]
    with pytest.raises(ValueError, match="two or more"):
        what_if(small(*QUEUE), ["fcfs"])["fcfs"].interval()


def test_settings_of_a_generator_and_given_work_are_arrivals_too() -> None:
    snapshot = small(*QUEUE)
    settings = {"generator": "synthetic", "parameters": {"jobs": 5, "gap": 10.0, "run": 5.0, "processors": 4}}
    assert len(what_if(snapshot, ["fcfs"], arrivals=settings)["fcfs"].starts) == 3 + 5
    jobs = [Job(id="late", submit=60, processors=1, run=5), Job(id="later", submit=1000, processors=1, run=5)]
    found = what_if(snapshot, ["easy"], arrivals=jobs, samples=2)["easy"]
    assert starts(found)["late"] == 60.0
    assert found.samples[0] == found.samples[1]
    cut = what_if(snapshot, ["easy"], arrivals=jobs, horizon=500)["easy"]
    assert "later" not in cut.samples[0].jobs["job"].tolist()


def test_names_of_drawn_jobs_meet_no_others() -> None:
    env = Environment()
    cluster = Cluster(env, 4, "fcfs")
    for name in ("new 1", "b"):
        cluster.submit(Job(id=name, processors=4, run=10))
    env.run(until=1)
    jobs = what_if(cluster.snapshot(), ["fcfs"], arrivals=partial(drawn, jobs=2))["fcfs"].samples[0].jobs
    assert jobs["job"].tolist() == ["b", "new 1'", "new 2"]


def test_samples_count_where_everybody_has_them() -> None:
    found = what_if(small(*QUEUE), ["fcfs", "easy", "sjf"], arrivals=drawn, samples=3)
    goal = found.objective

    def lacking(name: str, *missing: int, status: str = "unfinished") -> Outcome:
        samples = [None if i in missing else sample for i, sample in enumerate(found[name].samples)]
        return attrs.evolve(found[name], status=status, samples=samples, scores=(), counted=())

    late = scored([lacking("fcfs", 2), lacking("easy"), lacking("sjf", 0, 1, 2)], goal)
    assert [each.counted for each in late] == [(0, 1), (0, 1), ()]
    assert late[0].scores == found["fcfs"].scores[:2]
    assert [each.counted for each in scored([lacking("fcfs", 0, 1), lacking("easy", 2), lacking("sjf", 1)], goal)] == [
        (),
        (0,),
        (0,),
    ]
    dead = scored([lacking("fcfs", 2, status="failed"), lacking("easy")], goal)
    assert [each.counted for each in dead] == [(), (0, 1, 2)]


# ---------------------------------------------------------------------- objectives and output


def test_objectives_compare_outcomes_beside_each_other(week: ClusterSnapshot) -> None:
    found = what_if(week, POLICIES, objective="schedtwin")
    scores = [each.score for each in found]
    assert min(scores) >= 0
    assert max(scores) <= 1
    best = what_if(week, POLICIES, objective=lambda sample: float(sample.jobs["start"].max()))
    last = {name: max(starts(found[name]).values()) for name in POLICIES}
    assert best.best.name == min(POLICIES, key=last.__getitem__)


def test_summaries_documents_and_plots_of_a_what_if(
    week: ClusterSnapshot, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = what_if(week, {"<easy>": "easy", "bug": bug}, horizon=3600, progress=True)
    assert "2/2" in capsys.readouterr().err
    assert "&lt;easy&gt;" in found._repr_html_()
    assert "from 300000 s for 1 h" in found.summary()
    document = json.loads(found.to_json(tmp_path / "w.json"))
    assert json.loads((tmp_path / "w.json").read_text()) == document
    assert document["best"] == "<easy>"
    assert [each["status"] for each in document["policies"]] == ["finished", "failed"]
    assert document["policies"][1]["score"] is None
    assert len(found.plot().axes) == 4
    assert len(what_if(week, ["easy"], samples=2, arrivals=drawn).plot(measures=["score", "slowdown_max"]).axes) == 2
    assert found.table["policy"].tolist() == ["<easy>", "bug"]
    with pytest.raises(KeyError, match="known policies: <easy>, bug"):
        found["no"]
    assert [repr(found), repr(found["bug"])] == ["<WhatIf of <easy>, bug>", "<Outcome bug: failed, 0 start now>"]
    assert repr(found["<easy>"].samples[0]).startswith("<Sample: ")


def test_a_snapshot_may_be_a_file(week: ClusterSnapshot, tmp_path) -> None:
    week.to_json(tmp_path / "snapshot.json")
    assert what_if(tmp_path / "snapshot.json", ["easy"]).outcomes == what_if(week, ["easy"]).outcomes


# ---------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("policies", "options", "sentence"),
    [
        ([], {}, "policies: must have at least one policy"),
        ("easy", {}, "policies: must be a list of policies"),
        (7, {}, "policies: must be a list of policies"),
        (["easy", "easy"], {}, "duplicate policy 'easy'"),
        (["esay"], {}, "did you mean 'easy'"),
        ([Branch("easy").switch(5, "esay")], {}, "did you mean 'easy'"),
        ([Branch("easy").switch(0, "fcfs")], {}, "branch 'easy, fcfs from 0 s': must be an instant >= 1 s, got 0"),
        ([Branch("easy").start(3, at=0.5)], {}, "must be an instant >= 1 s, got 0.5"),
        (["easy"], {"horizon": 0}, "horizon: must be a finite number > 0 (s), got 0"),
        (["easy"], {"horizon": float("inf")}, "horizon: must be a finite number > 0 (s)"),
        (["easy"], {"deadline": -1}, "deadline: must be a finite number > 0 (s), got -1"),
        (["easy"], {"samples": 0}, "samples: must be a whole number >= 1, got 0"),
        (["easy"], {"objective": "speed"}, "speed"),
        (
            ["easy"],
            {"arrivals": [1, 2]},
            "arrivals: must be a workload, a data frame, jobs or a workflow, or generator settings",
        ),
        (
            ["easy"],
            {"arrivals": lambda rng: 5},
            "arrivals returned by the function: must be a workload, a data frame, jobs or a workflow, got 5",
        ),
        (["easy"], {"arrivals": {"generator": "lublim"}}, "generator: unknown generator 'lublim'"),
        (["easy"], {"arrivals": [Job(run=1)]}, "arrivals: must be submitted at or after 1 s, got 1 earlier"),
        (["easy"], {"arrivals": [Job(id=3, submit=5, run=1)]}, "arrivals: duplicate job 3"),
        ([Branch().submit(Job(id=3, run=1))], {}, "duplicate job 3"),
    ],
)
def test_wrong_input_gets_one_sentence(policies: object, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        what_if(small(*QUEUE), policies, **options)


def test_wrong_snapshots_and_actions_get_one_sentence(tmp_path) -> None:
    with pytest.raises(InputError, match="snapshot: must be a snapshot or a snapshot file, got"):
        what_if(Cluster(Environment(), 4), ["easy"])
    with pytest.raises(InputError, match=r"nowhere\.json"):
        what_if(tmp_path / "nowhere.json", ["easy"])
    with pytest.raises(InputError, match="actions: must be StartJob, CancelJob or SubmitJob values, got 'start'"):
        Branch("easy", actions=["start"])
    env = Environment()
    cluster = Cluster(env, 4, nothing)
    cluster.submit(Job(run=1))
    env.run(until=1)
    with pytest.raises(InputError, match="pass it again"):
        what_if(cluster.snapshot(), [None])
