"""Checkpoints: cases by hand, conservation of work, and the expected run times of the theory."""

from __future__ import annotations

from math import exp, inf, sqrt
from statistics import mean, stdev

import pytest
from hypothesis import given, strategies as st

from simmodel import Cluster, Environment, Job, Workload, compare as compare_policies, load_result, simulate, what_if
from simmodel.experiments import replicate
from simmodel.experiments.runs import MeasuredRun
from simmodel.metrics import compare
from simmodel.metrics.batch import CHECKPOINT_METRICS
from simmodel.platform.cluster import ClusterSpec, FailureModel, NodeSpec, OutageSpec, PartitionSpec, QueueSpec
from simmodel.work.checkpoint import Checkpoint, Kept, daly_interval

KEPT = ("saved_work", "lost_work", "checkpoint_time", "restart_time", "checkpoints")


def kept(result, row=0):
    return [result.jobs[name][row] for name in KEPT]


def failing(*outages, **more):
    """Return four processors that all fail in each of these intervals."""
    return ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        outages=[OutageSpec(at=at, until=until, processors=4) for at, until in outages],
        **more,
    )


def job(run=60, interval=20, cost=2, restart=5, **more):
    return Job(processors=4, run=run, checkpoint=Checkpoint(interval, cost, restart), **more)


def test_an_undisturbed_job_saves_between_its_intervals_and_not_at_its_end():
    result = simulate(4, [job()], "fcfs")
    assert result.jobs["end"].tolist() == [64]
    assert kept(result) == [60, 0, 4, 0, 2]
    assert simulate(4, [job(run=61)], "fcfs").jobs["end"].tolist() == [67]
    assert simulate(4, [job(run=20)], "fcfs").jobs["end"].tolist() == [20]


@pytest.mark.parametrize(
    ("at", "end", "expected"),
    [
        (15, 20 + 64, [60, 15, 4, 0, 2]),  # nothing is saved yet, so there is nothing to read
        (21, 30 + 64, [60, 20, 5, 0, 2]),  # in the first save: it does not count, but its second is spent
        (22, 30 + 5 + 42, [60, 0, 4, 5, 2]),  # at its end
        (50, 60 + 5 + 20, [60, 6, 4, 5, 2]),
        (63, 70 + 5 + 20, [60, 19, 4, 5, 2]),
    ],
)
def test_a_failed_job_goes_on_from_its_latest_complete_checkpoint(at, end, expected):
    until = end - {15: 64, 21: 64, 22: 47, 50: 25, 63: 25}[at]
    result = simulate(failing((at, until)), [job()], "fcfs")
    assert result.jobs["end"].tolist() == [end]
    assert kept(result) == expected
    assert result.jobs["run"][0] == 60 + expected[2] + expected[3] or at == 21


def test_a_failure_while_reading_loses_nothing_but_the_time():
    """Saved at 22 s; fails at 30; reads from 40 to 43, when it fails again; then reads for 5 s and works 42 s."""
    result = simulate(failing((30, 40), (43, 50)), [job()], "fcfs")
    assert result.jobs["end"].tolist() == [50 + 5 + 42]
    assert kept(result) == [60, 8, 4, 3 + 5, 2]
    assert result.jobs["attempts"].tolist() == [3]


def test_checkpoints_count_against_the_requested_time_which_each_execution_has_anew():
    tight = job(requested=63)
    assert simulate(4, [tight], "fcfs").jobs["status"].tolist() == ["timeout"]
    assert simulate(4, [tight], "fcfs").jobs["end"].tolist() == [63]
    assert simulate(4, [tight], "fcfs", overrun="continue").jobs["end"].tolist() == [64]
    assert simulate(4, [job(requested=64)], "fcfs").jobs["status"].tolist() == ["completed"]
    again = simulate(failing((50, 60)), [tight], "fcfs")  # after 40 s that are saved, 25 s are enough
    assert again.jobs["status"].tolist() == ["completed"]
    assert again.jobs["end"].tolist() == [85]


def test_policies_plan_the_rest_of_a_job_that_requests_no_time():
    """After the failure, a job of 25 s is backfilled behind the rest of 5 + 20 s, and one of 26 s is not."""
    wide = Job(processors=4, run=60, checkpoint=Checkpoint(20, 2, 5), submit=0)
    half = Job(processors=2, run=60, checkpoint=Checkpoint(20, 2, 5))
    for run, start in ((25, 60), (26, 85 + 10)):
        jobs = [half, Job(id="head", submit=55, processors=4, run=10), Job(submit=56, processors=2, run=run)]
        assert simulate(failing((50, 60)), jobs, "easy").jobs["start"].tolist()[2] == start
    assert Cluster(Environment(), 4).estimate(wide).run == 64


def test_a_preempted_job_goes_on_from_its_checkpoint_and_a_suspended_one_where_it_stopped():
    def spec(mode):
        queues = [QueueSpec(name="normal", priority=1, preempts=["low"]), QueueSpec(name="low", preemptible=mode)]
        return ClusterSpec(partitions=[PartitionSpec(processors=4)], queues=queues)

    jobs = [job(queue="low"), Job(submit=30, processors=4, run=10, queue="normal")]
    requeued = simulate(spec("requeue"), jobs, "preemptive")
    assert requeued.jobs["end"].tolist() == [40 + 5 + 42, 40]
    assert kept(requeued) == [60, 8, 4, 5, 2]
    suspended = simulate(spec("suspend"), jobs, "preemptive")
    assert suspended.jobs["end"].tolist() == [74, 40]
    assert kept(suspended) == [60, 0, 4, 0, 2]


def test_a_failure_after_a_suspension_loses_the_work_since_the_latest_checkpoint():
    """Executes 0-30 and 40-55 s: saves end at 22 and, in the second stretch, at 54; then 1 s is lost."""
    queues = [QueueSpec(name="normal", priority=1, preempts=["low"]), QueueSpec(name="low", preemptible="suspend")]
    spec = failing((55, 60), queues=queues)
    jobs = [job(queue="low"), Job(submit=30, processors=4, run=10, queue="normal")]
    result = simulate(spec, jobs, "preemptive")
    assert result.jobs["end"].tolist() == [60 + 5 + 20, 40]
    assert kept(result) == [60, 1, 4, 5, 2]
    assert result.jobs["run"][0] == 44 + 25


def test_a_job_that_ends_for_good_keeps_what_it_has_saved():
    cancelled = simulate(4, [job(cancel=50)], "fcfs")
    assert cancelled.jobs["status"].tolist() == ["cancelled"]
    assert kept(cancelled) == [40, 6, 4, 0, 2]
    lost = simulate(failing((50, 60), on_failure="lose"), [job()], "fcfs")
    assert lost.jobs["status"].tolist() == ["lost"]
    assert kept(lost) == [40, 6, 4, 0, 2]


def test_a_fast_node_works_and_saves_faster():
    nodes = [NodeSpec(count=1, cores=4, speed=2)]
    outage = OutageSpec(at=25, until=30, nodes=[0])
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=nodes)], outages=[outage])
    one = Job(nodes=1, cores_per_node=4, run=60, checkpoint=Checkpoint(20, 2, 5))
    result = simulate(spec, [one], "fcfs")
    assert result.jobs["end"].tolist() == [30 + 25 / 2]
    assert kept(result) == [60, 6, 4, 5, 2]
    assert result.jobs["run"][0] == 25 - 3 + 12.5


def test_a_cut_in_the_middle_of_a_checkpoint_goes_on_exactly():
    spec = failing((50, 60), (90, 100))
    jobs = [job(run=80), job(run=80, submit=3)]
    whole = simulate(spec, jobs, "easy")
    for at in (21, 22, 43, 55, 63, 85, 95, 120):
        env = Environment()
        cluster = Cluster(env, spec, "easy")
        cluster.replay(jobs)
        env.run(until=at)
        snapshot = cluster.snapshot()
        for cut in (snapshot, type(snapshot).from_json(snapshot.to_json())):
            rest = simulate(cut)
            for name in ("end", *KEPT):
                there = dict(zip(rest.jobs["job"].tolist(), rest.jobs[name].tolist(), strict=True))
                now = dict(zip(whole.jobs["job"].tolist(), whole.jobs[name].tolist(), strict=True))
                assert there == {number: now[number] for number in there}, (at, name)


def test_a_what_if_expects_the_requested_time_and_knows_what_is_saved():
    """At 61 s, after a failure at 50 s, the job is expected to take its 100 s again: it does not see the 25 s."""
    env = Environment()
    cluster = Cluster(env, failing((50, 60)), "fcfs")
    cluster.submit(job(requested=100))
    env.run(until=61)
    seen = cluster.snapshot(actual=False)
    assert seen.running[0].work.past.kept == Kept(40, 6, 4, 0, 2)
    assert seen.running[0].work.spec.checkpoint.seconds(seen.running[0].work.spec.run, 40) <= 100
    assert simulate(seen).jobs["end"].tolist() == [160]
    assert seen.expected() == seen
    cluster.submit(Job(id="next", processors=4, run=5))
    assert what_if(cluster.snapshot(actual=False), ["fcfs"], objective="wait_mean")["fcfs"].measures["wait_mean"] == 99


def test_results_keep_the_columns_and_the_metrics_sum_processor_seconds(tmp_path):
    result = simulate(failing((50, 60)), [job(), Job(submit=90, processors=1, run=5)], "fcfs")
    metrics = result.metrics()
    assert [metrics[name] for name in KEPT[:4]] == [240, 24, 16, 20]
    assert "work lost since the last checkpoint  24 processor seconds" in result.summary()
    result.to_parquet(tmp_path / "run")
    again = load_result(tmp_path / "run")
    assert kept(again) == kept(result)
    assert again.metrics()["lost_work"] == 24
    assert "lost_work" not in simulate(4, [Job(run=5)], "fcfs").metrics()


def test_comparisons_and_replications_have_the_metrics_of_runs_with_checkpoints(tmp_path):
    with_them, without = simulate(failing((50, 60)), [job()], "fcfs"), simulate(4, [Job(run=5)], "fcfs")
    assert with_them.METRICS.keys() - without.METRICS.keys() >= set(CHECKPOINT_METRICS)
    assert with_them.numbers()["lost_work"] == 24
    assert not without.numbers().keys() & CHECKPOINT_METRICS.keys()
    table = compare([without, with_them])
    assert str(table["lost_work"].tolist()) == "[nan, 24.0]"
    assert with_them.metric_text("lost_work", 24.0) == "24 processor seconds"
    both = compare_policies(failing((50, 60)), [job()], ["fcfs", "easy"])
    assert "work lost since the last checkpoint" in both.summary(["lost_work"])
    assert both.table["checkpoint_time"].tolist() == [16, 16]
    assert both.plot(["lost_work"]).axes[0].get_title(loc="left") == "work lost since the last checkpoint"
    again = replicate(lambda seed: simulate(failing((50 + seed, 60)), [job()], "fcfs"), [0, 1, 2])
    assert again["lost_work"].mean == 4 * (6 + 7 + 8) / 3
    assert MeasuredRun(with_them).numbers()["restart_time"] == 20


def test_a_log_has_checkpoints_in_columns_and_replace_gives_them_to_all_jobs():
    log = Workload({"submit": [0, 1], "run": [60, 50], "processors": [2, 2]})
    saving = log.replace(checkpoint=Checkpoint(20, 2, 5))
    assert saving["checkpoint_interval"].tolist() == [20, 20]
    assert [each.checkpoint for each in saving.jobs()] == [Checkpoint(20, 2, 5)] * 2
    from_log, from_jobs = (simulate(failing((50, 60)), work, "easy") for work in (saving, saving.jobs()))
    assert from_log.jobs["end"].tolist() == from_jobs.jobs["end"].tolist() == [85, 60 + 5 + 10]
    assert from_jobs.jobs["checkpoint_cost"].tolist() == [2, 2]
    mixed = log.replace(checkpoint_interval=[20, 0], checkpoint_cost=[2, 2])
    assert [each.checkpoint for each in mixed.jobs()] == [Checkpoint(20, 2), None]
    assert kept(simulate(4, mixed, "easy"))[2] == 4
    none = Workload.from_jobs(saving.jobs()).replace(checkpoint=None)
    assert [each.checkpoint for each in none.jobs()] == [None, None]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Checkpoint(0), "interval: must be a finite number > 0, got 0"),
        (lambda: Checkpoint(inf), "interval: must be a finite number > 0, got inf"),
        (lambda: Checkpoint(5, cost=-1), "cost: must be a finite number >= 0, got -1"),
        (lambda: job(keeps_work=True), "checkpoint: must be left out beside keeps_work"),
        (lambda: job(body=lambda env, job, grant: iter(())), "checkpoint: must be left out for a job with a body"),
        (lambda: Job(run=5, checkpoint=600), "checkpoint: must be a Checkpoint"),
        (
            lambda: Workload({"submit": [0], "run": [1], "processors": [1]}).replace(checkpoint=5),
            "must be a Checkpoint",
        ),
        (lambda: daly_interval(0, 5), "must be > 0, got 0 and 5"),
    ],
)
def test_wrong_checkpoints_are_refused(make, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


# ---------------------------------------------------------------------- conservation


@given(
    stops=st.lists(st.integers(1, 60), max_size=8),
    run=st.integers(1, 100),
    interval=st.integers(1, 30),
    cost=st.integers(0, 5),
    restart=st.integers(0, 9),
)
def test_saved_lost_and_remaining_work_and_overheads_are_all_the_time_that_passes(stops, run, interval, cost, restart):
    checkpoint, now, outages = Checkpoint(interval, cost, restart), 0, []
    for stop in stops:
        outages.append((now + stop, now + stop + 1))
        now += stop + 1
    result = simulate(failing(*outages), [job(run, interval, cost, restart)], "fcfs")
    saved, lost, saving, reading, count = kept(result)
    executed = (result.runs["end"] - result.runs["start"]).sum()
    assert saved == run
    assert saved + lost + saving + reading == executed
    assert saving >= count * cost
    in_between, seconds = Kept(), checkpoint.seconds(run)
    for start, end, status in zip(*(result.runs[name].tolist() for name in ("start", "end", "status")), strict=True):
        if status == "completed":
            assert end - start == seconds  # remaining work, with its overheads
            break
        before, in_between = in_between, checkpoint.stopped(end - start, in_between)
        assert before.saved <= in_between.saved < run or run == 0
        assert in_between.saved % interval == 0
        seconds = checkpoint.seconds(run, in_between.saved)
        assert checkpoint.work_in(seconds, in_between.saved) == run


# ---------------------------------------------------------------------- theory


def expected_time(run, checkpoint, between, repair):
    """Return the expected end of a job on one processor with exponential failures: Daly (2006), with repairs."""
    saves = checkpoint.saves(run)
    last = run - saves * checkpoint.interval
    segments = [checkpoint.interval + checkpoint.cost] * saves + [last]
    total = 0.0
    for number, seconds in enumerate(segments):
        reading = checkpoint.restart if number else 0.0
        total += exp(reading / between) * (between + repair) * (exp(seconds / between) - 1)
    return total


def ends(run, checkpoint, between, repair, seeds):
    """Return the simulated ends of a job on one processor that fails."""
    failures = [FailureModel(mean_time_between_failures=between, mean_time_to_repair=repair)]
    spec = ClusterSpec(partitions=[PartitionSpec(processors=1)], failures=failures)
    found = []
    for seed in range(seeds):
        env = Environment(seed=seed)
        env.run(until=Cluster(env, spec, record=False).submit(Job(run=run, checkpoint=checkpoint)))
        found.append(env.now)
    return found


@pytest.mark.parametrize(
    ("interval", "cost", "restart", "repair"), [(100, 10, 20, 1e-9), (300, 60, 0, 50), (700, 5, 90, 30)]
)
def test_the_mean_end_under_exponential_failures_is_the_expected_one(interval, cost, restart, repair):
    """The mean of twelve runs lies within four standard errors, and within 3 %, of the closed form."""
    checkpoint, run, between = Checkpoint(interval, cost, restart), 100_000, 1000
    found = ends(run, checkpoint, between, repair, 12)
    theory = expected_time(run, checkpoint, between, repair)
    assert abs(mean(found) - theory) < 4 * stdev(found) / sqrt(len(found))
    assert mean(found) == pytest.approx(theory, rel=0.03)


@pytest.mark.parametrize(("cost", "between"), [(10, 1000), (60, 3600), (300, 86400), (600, 3600)])
def test_dalys_interval_costs_within_two_per_cent_of_the_best_one(cost, between):
    """The overhead (expected time less work) at Daly's interval against the least one of all intervals."""
    run = 10_000 * between

    def overhead(interval):
        return expected_time_of_many(run, interval, cost, between) - run

    daly = daly_interval(cost, between)
    best = min(overhead(daly * factor / 100) for factor in range(30, 300))
    assert overhead(daly) <= 1.02 * best
    assert overhead(daly * 2) > 1.05 * best
    assert overhead(daly / 2) > 1.05 * best


def expected_time_of_many(run, interval, cost, between, restart=0.0):
    return run / interval * between * exp(restart / between) * (exp((interval + cost) / between) - 1)


@pytest.mark.long  # smaller: the other tests of the file
def test_simulated_ends_have_their_minimum_at_dalys_interval():
    """Half and twice the interval of Daly end later, in the mean of six seeds, and by what the formula says."""
    cost, between, run = 60, 3600, 1_000_000
    daly = daly_interval(cost, between)
    means = {f: mean(ends(run, Checkpoint(daly * f, cost, 60), between, 1e-9, 6)) for f in (0.4, 1, 2.5)}
    assert means[1] < means[0.4]
    assert means[1] < means[2.5]
    for factor, found in means.items():
        assert found == pytest.approx(expected_time(run, Checkpoint(daly * factor, cost, 60), between, 1e-9), rel=0.03)
