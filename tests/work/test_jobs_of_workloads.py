"""Job values of workloads and of workflows: what they request, and that they run as the workload does."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Job, Task, Workflow, Workload, simulate
from simmodel.work.job import Dependency
from simmodel.work.prepare import as_workload


def starts(work, policy="easy", platform=8):
    result = simulate(platform, work, policy)
    rows = {str(job): start for job, start in zip(result.jobs["job"].tolist(), result.jobs["start"], strict=True)}
    return {job: start for job, start in rows.items() if start >= 0}


def linked(draw, number):
    """Return the column of preceding jobs: each an earlier or a later job, itself, an unknown one or none."""
    return [draw(st.sampled_from([-1, -1, -1, 99, *range(1, number + 1)])) for _ in range(number)]


@st.composite
def logs(draw):
    number = draw(st.integers(1, 8))

    def column(values):
        return draw(st.lists(values, min_size=number, max_size=number))

    return Workload(
        {
            "submit": column(st.integers(0, 20)),
            "run": column(st.integers(-1, 20)),
            "processors": column(st.integers(0, 8)),
            "requested_processors": column(st.integers(-1, 8)),
            "requested": column(st.integers(-1, 30)),
            "user": column(st.integers(-1, 2)),
            "preceding": linked(draw, number),
            "think_time": column(st.integers(-1, 5)),
            "cancel": column(st.sampled_from([-1, -1, 15])),
        }
    )


@given(logs(), st.sampled_from(["fcfs", "easy", "conservative"]))
def test_the_jobs_of_a_log_start_as_the_log_does(log, policy):
    rejected = simulate(8, log, policy).jobs["status"]
    jobs = log.jobs(strict=False)
    assert len(jobs) == np.count_nonzero(np.asarray(rejected) != "rejected")
    lost = {int(job) for job in log["job"]} - {job.id for job in jobs}
    late = [row for row, job in enumerate(log["preceding"]) if job in lost and log["think_time"][row] > 0]
    if jobs and not late:
        assert starts(Workload.from_jobs(jobs), policy) == starts(log, policy)
        again = Workload.from_jobs(jobs).jobs()
        assert again == jobs


def test_jobs_keep_all_that_a_log_requests():
    log = Workload(
        {
            "submit": [0.0, 3.0],
            "run": [5.0, 5.0],
            "processors": [4, 4],
            "requested": [-1.0, 9.0],
            "user": np.array(["ann", "bob"], dtype=object),
            "partition": np.array(["a,b", "a"], dtype=object),
            "nodes": [2, -1],
            "memory_per_node": [7.0, np.nan],
            "preceding": [-1, 1],
            "think_time": [-1.0, 2.0],
            "site": np.array(["", "lyon"], dtype=object),
        }
    )
    first, second = log.jobs()
    assert first == Job(id=1, run=5, nodes=2, cores_per_node=2, memory_per_node=7, user="ann", partitions=("a", "b"))
    dependency = Dependency(1, think_time=2)
    assert second == Job(
        id=2,
        submit=3,
        run=5,
        requested=9,
        processors=4,
        user="bob",
        partition="a",
        dependencies=[dependency],
        site="lyon",
    )
    assert log.jobs(nodes=False)[0] == Job(id=1, run=5, processors=4, user="ann", partitions=("a", "b"))


def test_a_negative_run_time_is_told_from_a_missing_one():
    log = Workload({"job": [1, 2, 3], "submit": [0, 1, 2], "run": [-1, -500, 0], "processors": [1, 1, 1]})
    result = simulate(4, log, "fcfs")
    assert result.report.rejected == {"run time missing": 1, "run time negative": 1}
    assert result.jobs["reason"].tolist() == ["run time missing", "run time negative", ""]


def test_jobs_that_never_run_are_named():
    log = Workload({"job": [7, 7, 9], "submit": [0, 1, 2], "run": [5, 6, -1], "processors": [1, 1, 1]}, name="small")
    said = r"job 9: run time missing: such a job never runs \(1 in small; jobs\(strict=False\) leaves them out\)"
    with pytest.raises(InputError, match=said):
        log.jobs()
    assert [job.id for job in log.jobs(strict=False)] == [7, 10]


def test_the_jobs_of_a_workflow_ask_for_what_their_tasks_need():
    tasks = [Task(id="a", run=2, cores=1.5, memory=8, priority=3, name="first"), Task(id=2, run=1)]
    flow = Workflow(tasks, [("a", 2, 100)], name="pair")
    first, second = flow.jobs()
    assert first == Job(id="a", name="first", run=2, processors=2, priority=3)
    assert second == Job(id=2, run=1, dependencies=[Dependency("a", after="success")])
    assert flow.jobs(nodes=True, memory=True)[0] == Job(
        id="a", name="first", run=2, nodes=1, cores_per_node=2, memory_per_node=8, priority=3
    )
    with pytest.raises(InputError, match=r"memory: must be False without nodes=True"):
        flow.jobs(memory=True)
    assert as_workload(flow).report.notes == (
        "pair is simulated as batch jobs, without the data objects and the memory of tasks",
    )
    assert as_workload(flow, of_nodes={"cores", "memory"}).report.notes == (
        "pair is simulated as batch jobs, without the data objects",
    )


def test_a_task_without_a_run_time_is_no_batch_job():
    flow = Workflow([Task(id="a", run=1), Task(id="b", flop=5e9)], name="pair")
    with pytest.raises(
        InputError, match=r"pair, task 'b': must have a run time \(run, in s\) to be a batch job, got none"
    ):
        simulate(4, flow, "easy")


def test_frames_are_workloads():
    pandas = pytest.importorskip("pandas")
    columns = {"submit": [0, 1], "run": [5, 5], "processors": [2, 4]}
    assert as_workload(pandas.DataFrame(columns))["run"].tolist() == [5, 5]
    with pytest.raises(InputError, match=r"workload: columns: missing processors"):
        as_workload(pandas.DataFrame({"submit": [0], "run": [1]}))


@pytest.mark.parametrize("kind", [float, bool, np.int64, np.float32, np.bool_])
def test_processors_of_any_kind_are_a_whole_number(kind):
    assert type(Job(run=1, processors=kind(1)).processors) is int
    assert type(Job(run=1, nodes=kind(1), cores_per_node=kind(1)).processors) is int
