"""Checkpoints through a storage or a link: fixed times if alone, and processor sharing with others."""

from __future__ import annotations

import io
from math import exp
from statistics import mean

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Observer, Workload, load_result, simulate, what_if
from simmodel.formats import read_columns
from simmodel.foundation.errors import ImpossibleWork, InputError, SnapshotError
from simmodel.platform import BrokerSpec, LinkSpec, StorageSpec
from simmodel.platform.cluster import ClusterSpec, FailureModel, NodeSpec, OutageSpec, PartitionSpec, QueueSpec
from simmodel.work.checkpoint import Checkpoint, daly_interval
from tests.helpers.examples import up_to
from tests.oracles.saves import play

KEPT = ("saved_work", "lost_work", "checkpoint_time", "restart_time", "checkpoints")


def shared(*outages, write=10, read=20, processors=4, kind="failure", **more):
    """Return processors with a disk and a link, which all fail in each of these intervals."""
    fields = {
        "partitions": [PartitionSpec(processors=processors)],
        "storages": [StorageSpec(name="disk", write_bandwidth=write, read_bandwidth=read)],
        "links": [LinkSpec(name="wan", bandwidth=write)],
        "outages": [OutageSpec(at=at, until=until, processors=processors, kind=kind) for at, until in outages],
    }
    return ClusterSpec(**(fields | more))


def job(run=60, interval=20, cost=0, restart=0, size=20, to="disk", processors=1, **more):
    return Job(processors=processors, run=run, checkpoint=Checkpoint(interval, cost, restart, size, to), **more)


def ends(result):
    return result.jobs["end"].tolist()


def kept(result, row=0):
    return [result.jobs[name][row] for name in KEPT]


# ---------------------------------------------------------------------- alone


@given(
    stops=st.lists(st.integers(1, 60), max_size=6),
    run=st.integers(0, 100),
    interval=st.integers(1, 30),
    cost=st.integers(0, 3),
    restart=st.integers(0, 3),
    write=st.integers(1, 5),
    read=st.integers(1, 5),
    requested=st.one_of(st.none(), st.integers(1, 150)),
    overrun=st.sampled_from(["stop", "continue"]),
    to=st.sampled_from(["disk", "wan"]),
)
@settings(max_examples=up_to(30))
def test_a_save_that_shares_with_nobody_equals_one_of_fixed_seconds_in_every_column(
    stops, run, interval, cost, restart, write, read, requested, overrun, to
):
    now, outages = 0, []
    for stop in stops:
        outages.append((now + stop, now + stop + 1))
        now += stop + 1
    size = 60.0
    spec = shared(*outages, write=size / write, read=size / read)
    writing, reading = (write, read) if to == "disk" else (write, write)
    tables = []
    for checkpoint in (
        Checkpoint(interval, cost, restart, size, to),
        Checkpoint(interval, cost + writing, restart + reading),
    ):
        one = Job(id="a", processors=4, run=run, requested=requested, checkpoint=checkpoint)
        next_one = Job(id="b", submit=1, processors=4, run=5)
        tables.append(simulate(spec, [one, next_one], "easy", overrun=overrun))
    through, fixed = tables
    for table in ("jobs", "runs"):
        for name in getattr(fixed, table).names:
            if not (name.startswith("checkpoint_") and name != "checkpoint_time"):
                first, second = (getattr(each, table)[name].tolist() for each in (through, fixed))
                assert list(map(str, first)) == list(map(str, second)), name


def test_times_that_are_no_binary_fractions_agree_up_to_rounding_and_meet_their_limit():
    """The sum of the phases exceeds the requested time by rounding errors: the job completes all the same."""
    through, fixed = Checkpoint(0.1, 0.7, 0.3, size=1.1, to="disk"), Checkpoint(0.1, 0.7 + 1.1 / 3, 0.3 + 1.1 / 7)
    spec = shared(write=3, read=7)
    whole = fixed.seconds(9.3)
    for requested in (None, whole):
        found = [
            simulate(spec, [Job(run=9.3, requested=requested, checkpoint=each)], "fcfs") for each in (through, fixed)
        ]
        assert ends(found[0]) == pytest.approx(ends(found[1]), rel=1e-12)
        assert found[0].jobs["status"].tolist() == ["completed"]
        assert kept(found[0])[-1] == kept(found[1])[-1] == 92


# ---------------------------------------------------------------------- together


@pytest.mark.parametrize("to", ["disk", "wan"])
@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
def test_synchronous_saves_of_n_jobs_take_n_times_as_long(jobs, to):
    result = simulate(shared(processors=8), [job(to=to) for _ in range(jobs)], "fcfs")
    assert ends(result) == [60 + 2 * jobs * 20 / 10] * jobs
    assert kept(result) == [60, 0, 2 * jobs * 2, 0, 2]


WHOLE = st.integers(1, 12)


@given(
    jobs=st.lists(
        st.tuples(st.integers(1, 60), WHOLE, st.integers(0, 3), st.integers(0, 3), WHOLE), max_size=5, min_size=1
    ),
    write=st.integers(1, 5),
    read=st.integers(1, 5),
    failures=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), max_size=3),
)
@settings(max_examples=up_to(30))
def test_jobs_that_share_a_disk_end_as_in_exact_steps_of_processor_sharing(jobs, write, read, failures):
    """Failures come at instants that no end of a phase has; done, lost and saved work are all the time that passes."""
    now, outages = 0.0, []
    for after, during in failures:
        at = now + after + 0.0123
        now = at + during
        outages.append((at, now))
    spec = shared(*outages, write=write, read=read, processors=5)
    asked = [
        Job(run=run, checkpoint=Checkpoint(interval, cost, restart, size, "disk"))
        for run, interval, cost, restart, size in jobs
    ]
    result = simulate(spec, asked, "fcfs")
    for row, (end, saving, reading, lost) in enumerate(play(jobs, write, read, outages)):
        assert result.jobs["end"][row] == pytest.approx(float(end), abs=1e-6)
        assert kept(result, row)[1:4] == pytest.approx([float(lost), float(saving), float(reading)], abs=1e-6)
        executed = (result.runs["end"] - result.runs["start"])[result.runs["job"] == row + 1].sum()
        assert sum(kept(result, row)[:4]) == pytest.approx(executed, abs=1e-6)
        assert kept(result, row)[0] == jobs[row][0]


def test_two_jobs_of_different_intervals_by_hand():
    """From 20 to 24 s both write: a has 20 bytes, b 20 bytes, at 5 bytes/s each; a at 44 s has the disk for itself."""
    result = simulate(shared(), [job(run=60), job(run=30)], "fcfs")
    assert ends(result) == [20 + 4 + 20 + 2 + 20, 20 + 4 + 10]
    late = simulate(shared(), [job(run=40), job(run=30, submit=1)], "fcfs")
    # a alone from 20 to 21 s: 10 bytes; then both: a to 23 s, when b has 10 bytes left, to 24 s
    assert ends(late) == [23 + 20, 24 + 10]
    assert late.jobs["checkpoint_time"].tolist() == [3, 3]


def test_what_jobs_hold_is_withheld_from_saves():
    holder = Job(run=30, bandwidth={"disk": 5})
    result = simulate(shared(), [job(), holder], "fcfs")
    assert ends(result) == [20 + 4 + 20 + 2 + 20, 30]  # the second save has the whole bandwidth


def test_saves_share_with_the_accesses_of_a_script_and_a_read_shares_only_with_reads():
    env = Environment()
    cluster = Cluster(env, shared())
    done = cluster.submit(job())
    cluster.storages["disk"].write(1e9)
    cluster.storages["disk"].read(1e9)
    env.run(until=done)
    assert env.now == 20 + 4 + 20 + 4 + 20


def test_a_storage_tells_of_saves_as_of_other_accesses():
    class Told(Observer):
        def __init__(self):
            self.writes, self.reads = [], []

        def write_ended(self, access):
            self.writes.append((access.about, access.size, access.start, access.status))

        def read_ended(self, access):
            self.reads.append((access.about, access.size, access.start, access.status))

    told = Told()
    simulate(shared((23, 30)), [job(id="a")], "fcfs", observers=[told])
    assert told.writes == [
        ("checkpoint of job a", 20, 20, "done"),
        ("checkpoint of job a", 20, 30 + 1 + 20, "done"),
    ]
    assert told.reads == [("checkpoint of job a", 20, 30, "done")]


# ---------------------------------------------------------------------- stops, by hand


def test_a_failure_in_the_middle_of_a_save_leaves_nothing_of_it_and_the_others_go_on():
    """Both write from 20 s; node 0 fails at 22 s, when 10 bytes of each are written; b ends its save at 23 s."""
    nodes = [NodeSpec(count=2, cores=1)]
    spec = shared(partitions=[PartitionSpec(nodes=nodes)], outages=[OutageSpec(at=22, until=30, nodes=[0])])
    result = simulate(spec, [job(), job()], "fcfs")
    assert ends(result) == [30 + 20 + 2 + 20 + 2 + 20, 23 + 20 + 2 + 20]
    assert kept(result) == [60, 20, 2 + 4, 0, 2]
    assert kept(result, 1) == [60, 0, 3 + 2, 0, 2]


def queued(mode):
    queues = [QueueSpec(name="normal", priority=1, preempts=["low"]), QueueSpec(name="low", preemptible=mode)]
    return shared(queues=queues)


def test_a_requeue_in_the_middle_of_a_save_goes_on_from_the_one_before():
    """Saves end at 22 s and begin at 42 s; at 43 s the job is preempted, and reads for 1 s at 53 s."""
    jobs = [job(processors=4, queue="low"), Job(submit=43, processors=4, run=10, queue="normal")]
    result = simulate(queued("requeue"), jobs, "preemptive")
    assert ends(result) == [53 + 1 + 20 + 2 + 20, 53]
    assert kept(result) == [60, 20, 2 + 1 + 2, 1, 2]


def test_a_job_that_is_suspended_in_the_middle_of_a_save_writes_the_bytes_left():
    """It has written 10 of 20 bytes at 21 s; from 31 s it writes the others, and the disk is free in between."""
    jobs = [job(processors=4, queue="low"), Job(submit=21, processors=4, run=10, queue="normal")]
    result = simulate(queued("suspend"), jobs, "preemptive")
    assert ends(result) == [74, 31]
    assert kept(result) == [60, 0, 4, 0, 2]
    for at in (5, 20, 22, 25, 42, 43, 63):  # at work, at the ends of phases, and at the end of all work
        jobs[1] = Job(submit=at, processors=4, run=10, queue="normal")
        assert ends(simulate(queued("suspend"), jobs, "preemptive")) == [74, at + 10]


def test_a_failure_after_a_suspension_in_a_save_leaves_nothing_of_it():
    jobs = [job(processors=4, queue="low"), Job(submit=21, processors=4, run=10, queue="normal")]
    outage = OutageSpec(at=31.5, until=40, processors=4)
    result = simulate(shared(queues=queued("suspend").queues, outages=[outage]), jobs, "preemptive")
    assert ends(result) == [40 + 64, 31]
    assert kept(result) == [60, 20, 1.5 + 4, 0, 2]


def test_maintenance_waits_for_jobs_that_others_delay_into_it():
    """They start, since each would end at 64 s alone, and end at 68 s, as other jobs that run longer than planned."""
    result = simulate(shared((65, 70), kind="maintenance"), [job(), job(), Job(submit=1, run=1)], "fcfs")
    assert ends(result)[:2] == [68, 68]
    assert simulate(shared((64, 70), kind="maintenance"), [job()], "fcfs").jobs["start"].tolist() == [0]
    assert simulate(shared((63, 70), kind="maintenance"), [job()], "fcfs").jobs["start"].tolist() == [70]


def test_the_requested_time_counts_saves_that_others_delay():
    two = [job(requested=66), job(requested=66)]
    result = simulate(shared(), two, "fcfs")
    assert result.jobs["status"].tolist() == ["timeout"] * 2
    assert ends(result) == [66, 66]
    assert kept(result) == [40, 18, 8, 0, 2]
    assert ends(simulate(shared(), two, "fcfs", overrun="continue")) == [68, 68]
    assert simulate(shared(), two[:1], "fcfs").jobs["status"].tolist() == ["completed"]
    cut = simulate(shared(), [job(requested=43)], "fcfs")  # in its second save
    assert (ends(cut), kept(cut)) == ([43], [20, 20, 3, 0, 1])
    again = simulate(shared((50, 60)), [job(requested=66)], "fcfs")  # each execution has 66 s
    assert (ends(again), again.jobs["status"].tolist()) == ([60 + 1 + 20], ["completed"])


def test_policies_plan_with_the_times_that_a_job_takes_alone():
    """It ends at 64 s alone and at 68 s with another: a job of 64 s is backfilled, and one of 65 s is not."""
    for run, start in ((63, 1), (64, 68 + 10)):
        first = [job(), job(), Job(id="head", submit=0.5, processors=4, run=10)]
        result = simulate(shared(), [*first, Job(submit=1, processors=2, run=run)], "easy")
        assert result.jobs["start"].tolist()[3] == start
    assert Cluster(Environment(), shared()).estimate(job()).run == 64


def test_a_fast_node_works_faster_and_its_storage_does_not():
    spec = shared(partitions=[PartitionSpec(nodes=[NodeSpec(count=1, cores=4, speed=2)])])
    one = Job(nodes=1, cores_per_node=4, run=60, checkpoint=Checkpoint(20, 2, 5, 20, "disk"))
    result = simulate(spec, [one], "fcfs")
    assert ends(result) == [60 / 2 + 2 * (2 / 2 + 2)]
    assert kept(result) == [60, 0, 2 * (2 + 2 * 2), 0, 2]  # in seconds of the run time


def test_a_save_waits_while_its_link_is_down():
    wan = LinkSpec(name="wan", bandwidth=10, latency=3, profile=[(0, 10), (24, 0), (34, 10)], when_down="fail")
    result = simulate(shared(links=[wan]), [job(run=30, to="wan")], "fcfs")
    assert ends(result) == [20 + 3 + 1 + 10 + 1 + 10]


def test_a_cancelled_job_gives_the_disk_back():
    result = simulate(shared(), [job(cancel=22), job()], "fcfs")
    assert ends(result) == [22, 23 + 20 + 2 + 20]
    assert result.jobs["status"].tolist() == ["cancelled", "completed"]
    assert kept(result) == [0, 20, 2, 0, 0]


def test_a_disk_of_infinite_bandwidth_takes_no_time():
    assert ends(simulate(shared(storages=[StorageSpec(name="disk")]), [job(cost=2)], "fcfs")) == [64]


# ---------------------------------------------------------------------- logs, files, errors


def test_a_log_has_them_in_columns_and_replace_gives_them_to_all_jobs(tmp_path):
    log = Workload({"submit": [0, 0], "run": [60, 50], "processors": [2, 2]})
    saving = log.replace(checkpoint=Checkpoint(20, size=20, to="disk"))
    assert saving["checkpoint_to"].tolist() == ["disk", "disk"]
    assert [each.checkpoint for each in saving.jobs()] == [Checkpoint(20, size=20, to="disk")] * 2
    results = [simulate(shared(), work, "easy") for work in (saving, saving.jobs())]
    assert ends(results[0]) == ends(results[1]) == [68, 58]
    mixed = log.replace(checkpoint_interval=[20, 20], checkpoint_size=[20, 0], checkpoint_to=["disk", ""])
    assert [each.checkpoint for each in mixed.jobs()] == [Checkpoint(20, size=20, to="disk"), Checkpoint(20)]
    for back in (saving, Workload.from_jobs(saving.jobs())):
        assert back.replace(checkpoint=Checkpoint(30)).jobs()[0].checkpoint == Checkpoint(30)
        assert back.replace(checkpoint=None).jobs()[0].checkpoint is None
    results[1].to_parquet(tmp_path / "run")
    again = load_result(tmp_path / "run")
    assert (kept(again), again.jobs["checkpoint_to"].tolist()) == (kept(results[1]), ["disk", "disk"])


def test_a_table_of_jobs_has_them_as_durations_bytes_and_names():
    head = "job,submit,run,processors,checkpoint_interval,checkpoint_cost,checkpoint_size,checkpoint_to\n"
    rows = "a,0,60,1,0:00:20,0.5,20,disk\nb,0,60,1,20,,,\nc,0,60,1,,,,\n"
    log = read_columns(io.StringIO(head + rows))
    assert [each.checkpoint for each in log.jobs()] == [Checkpoint(20, 0.5, 0, 20, "disk"), Checkpoint(20), None]
    assert ends(simulate(shared(), log, "easy")) == [65, 60, 60]
    for row, found in (("a,0,60,1,20,0,20,", "20 and ''"), ("a,0,60,1,20,0,,disk", "0 and 'disk'")):
        wrong = read_columns(io.StringIO(head + row))
        sentence = f"columns checkpoint_size and checkpoint_to: must be given together, got {found}"
        for use in (wrong.jobs, lambda wrong=wrong: simulate(shared(), wrong, "easy")):
            with pytest.raises(InputError, match=sentence):
                use()


def test_a_broker_hands_them_to_a_cluster_that_has_the_storage():
    places = {"plain": ClusterSpec.simple(8), "with": shared()}
    result = simulate(BrokerSpec(places=places), [job(processors=2) for _ in range(3)], "least-loaded")
    assert set(result.jobs["destination"].tolist()) == {"with"}
    assert ends(result) == [68, 68, 68 + 64]


def test_checkpoints_to_a_place_that_is_not_there_are_refused():
    sentence = "checkpoints to storage or link 'scrach' requested, there are disk, wan"
    with pytest.raises(ImpossibleWork, match=sentence):
        Cluster(Environment(), shared()).submit(job(to="scrach"))
    report = simulate(shared(), [job(to="scrach")], "fcfs").report
    assert sum(report.rejected.values()) == 1
    with pytest.raises(ImpossibleWork, match="there are none"):
        Cluster(Environment(), 4).submit(job())


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"size": 5}, "size, to: must be given together, got 5 and ''"),
        ({"to": "disk"}, "size, to: must be given together, got 0.0 and 'disk'"),
        ({"size": -1, "to": "disk"}, "size: must be a finite number >= 0, got -1"),
        ({"size": 5, "to": 3}, "to: must be the name of a storage or a link, got 3"),
    ],
)
def test_wrong_sizes_and_targets_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        Checkpoint(20, **fields)
    assert Checkpoint(20, size="200GB", to="disk").size == 200e9


# ---------------------------------------------------------------------- theory


def failing_ends(run, checkpoint, between, seeds):
    """Return the mean simulated end of a job on one processor that fails, and writes 10 bytes/s."""
    failures = [FailureModel(mean_time_between_failures=between, mean_time_to_repair=1e-9)]
    spec = shared(processors=1, read=10, failures=failures)
    found = []
    for seed in range(seeds):
        env = Environment(seed=seed)
        env.run(until=Cluster(env, spec, record=False).submit(Job(run=run, checkpoint=checkpoint)))
        found.append(env.now)
    return mean(found)


def overhead(run, interval, cost, between):
    """Return the expected time that the run takes beside its work: Daly (2006), with restarts of the same cost."""
    return run / interval * between * exp(cost / between) * (exp((interval + cost) / between) - 1) - run


def check_optimum(run, seeds, rel, outer):
    """Check that Daly's interval through a disk costs what the best one does, and others what theory says they do."""
    cost, between = 60, 3600
    daly = daly_interval(cost, between)
    best = min(overhead(run, daly * factor / 100, cost, between) for factor in range(30, 300))
    found = {
        f: failing_ends(run, Checkpoint(daly * f, size=600, to="disk"), between, seeds) - run for f in (0.4, 1, 2.5)
    }
    assert overhead(run, daly, cost, between) <= 1.02 * best
    assert found[1] == pytest.approx(best, rel=rel)
    for factor in (0.4, 2.5):
        assert found[factor] > 1.1 * found[1]
        assert found[factor] == pytest.approx(overhead(run, daly * factor, cost, between), rel=outer)


def test_the_simulated_overhead_through_a_disk_is_least_at_dalys_interval():
    check_optimum(500_000, 3, rel=0.1, outer=0.1)


@pytest.mark.exhaustive
def test_the_simulated_overhead_at_dalys_interval_is_within_two_per_cent_of_the_best():
    check_optimum(10_000_000, 4, rel=0.02, outer=0.04)  # four standard errors


# ---------------------------------------------------------------------- copies


def test_a_running_job_that_shares_is_in_no_copy_but_what_if_expects_it_to_run_alone():
    env = Environment()
    cluster = Cluster(env, shared())
    first, _ = cluster.submit(job(requested=100)), cluster.submit(Job(processors=4, run=5))
    assert cluster.snapshot().waiting  # before they start
    env.run(until=21)
    with pytest.raises(SnapshotError, match="job 1 cannot be copied before it ends: it saves to disk"):
        cluster.snapshot()
    seen = cluster.snapshot(actual=False)
    assert seen.running[0].work.spec.checkpoint == Checkpoint(20, cost=2, restart=1)
    assert type(seen).from_json(seen.to_json()) == seen
    assert ends(simulate(seen)) == [100, 105]
    assert what_if(seen, ["fcfs"], objective="wait_mean")["fcfs"].measures["wait_mean"] == 100
    env.run(until=first)
    assert env.now == 64


def test_a_waiting_job_that_will_share_is_in_every_copy():
    jobs = [Job(processors=4, run=10), job(submit=5), job(submit=6, run=50), job(submit=20)]
    whole = simulate(shared(), jobs, "fcfs")
    env = Environment()
    cluster = Cluster(env, shared(), "fcfs")
    cluster.replay(jobs)
    env.run(until=8)
    snapshot = cluster.snapshot()
    for cut in (snapshot, type(snapshot).from_json(snapshot.to_json())):
        rest = simulate(cut)
        assert ends(rest) == ends(whole)
        assert [kept(rest, row) for row in (1, 2, 3)] == [kept(whole, row) for row in (1, 2, 3)]
