"""Names of jobs, queues and partitions in scripts and logs, and what a replay notes about them."""

import pytest

from simmodel import Cluster, Environment, InputError, Job, Workload, compare, load_result, replicate, simulate
from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec

QUEUED = ClusterSpec(partitions=[PartitionSpec(name="p", processors=4)], queues=[QueueSpec(name="short")])
MIXED = [
    [Job(run=1), Job(run=1, user="ann")],
    [Job(run=1), Job(run=1, id="x")],
    [Job(run=1, user=1), Job(run=1, user="ann")],
    [Job(run=1, id=2), Job(run=1), Job(run=1, id="2b")],
]


def log(**columns):
    count = len(next(iter(columns.values())))
    return Workload({"submit": [0] * count, "run": [10] * count, "processors": [1] * count, **columns})


@pytest.mark.parametrize("jobs", MIXED)
def test_ids_and_users_of_different_types_side_by_side(jobs, tmp_path):
    result = simulate(4, jobs)
    assert result.metrics()["jobs"] == len(jobs)
    result.to_json(tmp_path / "result.json")
    result.plot.overview()
    assert len(set(map(str, result.jobs["job"].tolist()))) == len(jobs)
    compare(4, jobs, ["fcfs", "easy"]).summary()


def test_duplicate_ids_in_scripts_are_errors():
    with pytest.raises(InputError, match="duplicate job id 'a'"):
        simulate(4, [Job(id="a", run=1), Job(id="a", run=1)])
    cluster = Cluster(Environment(), 4)
    cluster.submit(Job(id="a", run=1))
    with pytest.raises(InputError, match="duplicate job id 'a'"):
        cluster.submit(Job(id="a", run=1))


def test_a_job_without_an_id_gets_a_number_that_is_no_id():
    assert simulate(4, [Job(id=2, run=1), Job(run=1)]).jobs["job"].tolist() == [2, 3]
    cluster = Cluster(Environment(), 4)
    assert [cluster.submit(job).id for job in (Job(id=2, run=1), Job(run=1), Job(run=1))] == [2, 3, 4]


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ([7, 8, 7, 7], [7, 8, 9, 10]),
        ([7, 10**12, 7], [7, 10**12, 10**12 + 1]),
        (["a", "b", "a", "a.2"], ["a", "b", "a.3", "a.2"]),
    ],
)
def test_duplicate_ids_in_logs_are_repaired_and_counted(ids, kept):
    result = simulate(4, log(job=ids))
    assert sorted(map(str, result.jobs["job"].tolist())) == sorted(map(str, kept))
    assert sum(result.report.repaired.values()) == len(ids) - len(set(ids))
    brokered = simulate({"a": 4, "b": 4}, log(job=ids))
    assert len(set(brokered.jobs["job"].tolist())) == len(ids)


@pytest.mark.parametrize("platform", [4, QUEUED])
@pytest.mark.parametrize("names", [{"partition": "gpuu"}, {"queue": "urgentt"}])
def test_unknown_partitions_and_queues_are_errors_in_scripts_only(platform, names):
    (kind, name), *_ = names.items()
    with pytest.raises(InputError, match=f"job 1: unknown {kind} '{name}'; known {kind}s: "):
        simulate(platform, [Job(id=1, run=1, **names)])
    with pytest.raises(InputError, match=f"unknown {kind} '{name}'"):
        Cluster(Environment(), platform).submit(Job(run=1, **names))
    assert simulate(platform, log(**{kind: [name]})).metrics()["status"] == {"completed": 1}


def test_jobs_cut_at_their_request_are_noted_with_their_share_of_work():
    result = simulate(4, log(requested=[5, 20, 10, 10]))
    text = "1 of 4 jobs run longer than they request: stopped at their requested time, without 12.5 % of all work"
    assert any(line.startswith(text) for line in result.report.lines())
    assert text in result.summary()
    assert not simulate(4, log(requested=[5, 20, 10, 10]), overrun="continue").report.notes


def test_partitions_taken_as_one_and_memory_are_noted():
    notes = simulate(4, log(partition=[1, 2, 2, 3], requested_memory=[0, 5, 5, -1])).report.notes
    assert notes == (
        "the log's 3 partitions are simulated as one machine",
        "2 jobs request memory per processor, which is not simulated",
    )


def test_a_preemptive_policy_without_queues_that_preempt_is_noted():
    text = "policy preemptive easy preempts nothing: no queue of the platform may preempt another"
    assert simulate(4, [Job(run=1)], "preemptive").report.notes == (text,)


def test_a_job_of_a_script_without_a_request_is_not_repaired():
    assert not simulate(4, [Job(run=1), Job(run=2, requested=5)]).report


def test_notes_survive_a_file(tmp_path):
    result = simulate(4, log(partition=[1, 2]))
    result.to_csv(tmp_path / "result")
    assert load_result(tmp_path / "result").report.notes == result.report.notes != ()


def test_replications_of_mixed_ids():
    assert "wait_mean" in str(replicate(lambda seed: simulate(4, MIXED[2], seed=seed), 2).summary())
