"""Names of jobs, queues and partitions in scripts and logs, and what a replay notes about them."""

from types import SimpleNamespace

import pytest

from simmodel import Broker, Cluster, Environment, InputError, Job, Workload, compare, load_result, replicate, simulate
from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec
from simmodel.resources import CountPool
from simmodel.systems import JobSystem

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


@pytest.mark.few(3)
@pytest.mark.parametrize("jobs", MIXED)
def test_ids_and_users_of_different_types_side_by_side(jobs, tmp_path):
    result = simulate(4, jobs, "fcfs")
    assert result.metrics()["jobs"] == len(jobs)
    result.to_json(tmp_path / "result.json")
    result.plot.overview()
    assert len(set(map(str, result.jobs["job"].tolist()))) == len(jobs)
    compare(4, jobs, ["fcfs", "easy"]).summary()


def test_duplicate_ids_in_scripts_are_errors():
    with pytest.raises(InputError, match="duplicate job id 'a'"):
        simulate(4, [Job(id="a", run=1), Job(id="a", run=1)], "fcfs")
    cluster = Cluster(Environment(), 4)
    cluster.submit(Job(id="a", run=1))
    with pytest.raises(InputError, match="duplicate job id 'a'"):
        cluster.submit(Job(id="a", run=1))


def broker(*specs):
    env = Environment()
    return Broker(env, [Cluster(env, spec, name=f"c{i}") for i, spec in enumerate(specs)], "round-robin")


def pool():
    env = Environment()
    return JobSystem(env, SimpleNamespace(name="pool"), places=[CountPool(env, "pool", 4)])


@pytest.mark.parametrize("make", [lambda: broker(4, 4), pool])
def test_duplicate_ids_of_scripts_are_errors_in_brokers_and_small_systems_too(make):
    system = make()
    system.submit(Job(id="a", run=1))
    with pytest.raises(InputError, match=r"^duplicate job id 'a'$"):
        system.submit(Job(id="a", run=1))
    with pytest.raises(InputError, match=r"^duplicate job id 'b'$"):
        system.replay(Workload.from_jobs([Job(id="b", run=1), Job(id="b", run=1)]))
    assert [system.submit(job).id for job in (Job(id=3, run=1), Job(run=1), Job(run=1))] == [3, 4, 5]
    system.env.run()
    assert len(system.result().jobs) == 4


def test_the_id_of_a_later_submission_to_a_broker_is_in_use():
    system = broker(4, 4)
    system.submit(Job(id="a", run=1), at=5)
    with pytest.raises(InputError, match="duplicate job id 'a'"):
        system.submit(Job(id="a", run=1))


def test_workloads_of_a_broker_may_have_the_same_ids_also_over_another_broker():
    jobs = [Job(id="a", run=1), Job(id="b", run=1, dependencies=["a"])]
    places = {"inner": {"x": 4, "y": 4}, "z": 4}
    result = simulate(places, {"inner": jobs, "z": jobs}, "siloed")
    assert result.jobs["start"].tolist() == [0, 1, 0, 1]


def test_repeated_ids_of_a_log_are_repaired_by_small_systems_too():
    system = pool()
    system.replay(log(job=[7, 8, 7]))
    system.env.run()
    assert system.result().jobs["job"].tolist() == [7, 8, 9]
    assert system.result().report.repaired == {"duplicate job id: a new one assigned": 1}


def test_unknown_queues_and_partitions_below_a_broker_are_errors_in_scripts():
    for submit in (
        lambda system, job: system.submit(job),
        lambda system, job: system.replay(Workload.from_jobs([job])),
    ):
        with pytest.raises(InputError, match=r"^job 1: unknown queue 'shrot'; did you mean 'short'"):
            submit(broker(QUEUED, QUEUED), Job(run=1, queue="shrot"))
        with pytest.raises(
            InputError, match=r"^c0: job 1: unknown partition 'q'; .*; c1: job 1: unknown partition 'q'"
        ):
            submit(broker(QUEUED, 4), Job(run=1, partition="q"))
        system = broker(4, QUEUED)
        submit(system, Job(run=1, queue="short"))
        system.env.run()
        assert system.result().jobs["status"].tolist() == ["completed"]


def test_a_job_without_an_id_gets_a_number_that_is_no_id():
    assert simulate(4, [Job(id=2, run=1), Job(run=1)], "fcfs").jobs["job"].tolist() == [2, 3]
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
    result = simulate(4, log(job=ids), "fcfs")
    assert sorted(map(str, result.jobs["job"].tolist())) == sorted(map(str, kept))
    assert sum(result.report.repaired.values()) == len(ids) - len(set(ids))
    brokered = simulate({"a": 4, "b": 4}, log(job=ids))
    assert len(set(brokered.jobs["job"].tolist())) == len(ids)


@pytest.mark.parametrize("platform", [4, QUEUED])
@pytest.mark.parametrize("names", [{"partition": "gpuu"}, {"queue": "urgentt"}])
def test_unknown_partitions_and_queues_are_errors_in_scripts_only(platform, names):
    (kind, name), *_ = names.items()
    with pytest.raises(InputError, match=f"job 1: unknown {kind} '{name}'; known {kind}s: "):
        simulate(platform, [Job(id=1, run=1, **names)], "fcfs")
    with pytest.raises(InputError, match=f"unknown {kind} '{name}'"):
        Cluster(Environment(), platform).submit(Job(run=1, **names))
    assert simulate(platform, log(**{kind: [name]}), "fcfs").metrics()["status"] == {"completed": 1}


def test_jobs_cut_at_their_request_are_noted_with_their_share_of_work():
    result = simulate(4, log(requested=[5, 20, 10, 10]), "fcfs")
    text = "1 of 4 jobs run longer than they request: stopped at their requested time, without 12.5 % of all work"
    assert any(line.startswith(text) for line in result.report.lines())
    assert text in result.summary()
    (note,) = simulate(4, [Job(run=1e6, requested=1e6), Job(run=2, requested=1)], "fcfs").report.notes
    assert note.startswith("1 of 2 jobs run longer than they request: stopped at their requested time (overrun=")
    assert not simulate(4, log(requested=[5, 20, 10, 10]), "fcfs", overrun="continue").report.notes


def test_partitions_taken_as_one_and_memory_are_noted():
    notes = simulate(4, log(partition=[1, 2, 2, 3], requested_memory=[0, 5, 5, -1]), "fcfs").report.notes
    assert notes == (
        "the log's 3 partitions are simulated as one machine",
        "2 jobs request memory per processor, which is not simulated",
    )


def test_a_preemptive_policy_without_queues_that_preempt_is_noted():
    text = "policy preemptive easy preempts nothing: no queue of the platform may preempt another"
    assert simulate(4, [Job(run=1)], "preemptive").report.notes == (text,)


def test_jobs_without_a_request_are_told_where_others_have_one():
    assert not simulate(4, [Job(run=1), Job(run=2)], "fcfs").report
    assert simulate(4, [Job(run=1), Job(run=2, requested=5)], "fcfs").report.repaired == {
        "requested time missing: run time used": 1
    }


def test_notes_survive_a_file(tmp_path):
    result = simulate(4, log(partition=[1, 2]), "fcfs")
    result.to_csv(tmp_path / "result")
    assert load_result(tmp_path / "result").report.notes == result.report.notes != ()


def test_replications_of_mixed_ids():
    assert "wait_mean" in str(replicate(lambda seed: simulate(4, MIXED[2], "fcfs", seed=seed), 2).summary())
