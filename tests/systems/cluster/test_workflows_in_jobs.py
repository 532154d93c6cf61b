"""Workflows inside the nodes of jobs: a machine that lives as long as its job."""

from __future__ import annotations

import pickle
import re
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import (
    Broker,
    Cluster,
    Environment,
    InputError,
    Job,
    Machine,
    Task,
    Workflow,
    load_result,
    simulate,
    what_if,
)
from simmodel.foundation.errors import ImpossibleWork, SnapshotError
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.platform.machine import MachineSpec
from tests.helpers.examples import up_to
from tests.helpers.small_machines import MB, WIDE_FLOW, small_machine

NODE = small_machine(cores=2)
DIAMOND = Workflow(
    [Task(id="a", run=10), Task(id="b", run=20), Task(id="c", run=30), Task(id="d", run=5)],
    [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
)
BY_HAND = {"a": (0, 10), "b": (10, 30), "c": (10, 40), "d": (40, 45)}


def inside(**more: Any) -> Job:
    return Job(**{"id": "flow", "workflow": DIAMOND, "machine": NODE, "workflow_policy": "earliest-finish", **more})


def spans(result: Any, job: int | str = "flow") -> dict[str, tuple[float, float]]:
    tasks = result.workflow_of(job).tasks
    return {
        task: (a, b) for task, a, b in zip(*(tasks[name].tolist() for name in ("task", "start", "end")), strict=True)
    }


def test_a_job_ends_with_the_last_task_of_its_workflow():
    result = simulate(4, [Job(processors=4, run=7), inside(processors=3), Job(processors=2, run=1)], "fcfs")
    assert result.jobs["start"].tolist() == [0, 7, 52]
    assert result.jobs["end"].tolist() == [7, 52, 53]
    assert spans(result) == {task: (7 + start, 7 + end) for task, (start, end) in BY_HAND.items()}
    assert spans(pickle.loads(pickle.dumps(result))) == spans(result)


def test_it_runs_as_a_pilot_job_written_by_hand_does():
    def pilot(env, job, grant):
        with Machine(env, NODE, "earliest-finish") as machine:
            yield machine.submit(DIAMOND)

    by_hand, made = (
        simulate(4, [Job(processors=3, run=9), job], "fcfs")
        for job in (Job(body=pilot, processors=2), inside(processors=2))
    )
    assert by_hand.jobs["end"].tolist() == made.jobs["end"].tolist() == [9, 54]


def test_the_limit_of_the_job_breaks_off_its_tasks_and_leaves_nothing_behind():
    env = Environment()
    cluster = Cluster(env, 4)
    parts = len(env.waiting_report())
    job = cluster.submit(inside(processors=4, requested=25))
    late = cluster.submit(Job(processors=4, run=1))
    env.run()
    assert (job.state, late.started, env.now) == ("timeout", 25, 26)
    found = cluster.result().workflow_of("flow")
    assert found.tasks["status"].tolist() == ["done", "cancelled", "cancelled", "cancelled"]
    assert found.stopped["task"].tolist() == ["b", "c"]
    assert found.stopped["end"].tolist() == [25, 25]
    assert len(env.waiting_report()) == parts


def test_a_preempted_job_starts_its_workflow_again():
    env = Environment()
    cluster = Cluster(env, 4)
    job = cluster.submit(inside(processors=4))
    env.run(until=22)
    cluster.preempt(job)
    env.run()
    assert (job.state, job.attempts, env.now) == ("completed", 2, 22 + 45)
    assert spans(cluster.result()) == {task: (22 + a, 22 + b) for task, (a, b) in BY_HAND.items()}
    again = cluster.submit(inside(id="again"))
    env.run(until=env.now + 1)
    assert cluster.why_not_preempt(again, "suspend") == "a job with a body cannot be suspended"


def test_a_failure_of_its_node_stops_the_workflow():
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=1, cores=4)])],
        outages=[OutageSpec(kind="failure", nodes=[0], at=15, until=50)],
        on_failure="lose",
    )
    result = simulate(spec, [inside(nodes=1)], "fcfs")
    assert result.jobs["status"].tolist() == ["lost"]
    assert result.jobs["end"].tolist() == [15]
    assert result.workflow_of("flow").tasks["status"].tolist() == ["done", "cancelled", "cancelled", "cancelled"]


def drawn_flow(rng):
    tasks = [Task(id=i, run=rng.uniform(1, 20)) for i in range(12)]
    pairs = [(i, j) for j in range(12) for i in range(j) if rng.random() < 0.2]
    return Workflow(tasks, [(i, j, rng.choice([0, 5, 40]) * MB) for i, j in pairs])


@settings(max_examples=up_to(40))
@given(st.integers(0, 200), st.floats(0.01, 1.1), st.sampled_from(["hrr", "heft", "earliest-finish"]), st.booleans())
def test_until_its_limit_a_job_runs_its_workflow_as_the_machine_alone(seed, share, policy, crowded):
    flow = drawn_flow(np.random.default_rng(seed))
    node = small_machine({"name": "gpu", "setup": 2.0}, cores=2, sizes={"gpu": 200 * MB} if crowded else None)
    limit = share * simulate(node, flow, policy).metrics()["makespan"]
    alone = simulate(node, flow, policy, until=limit)
    env = Environment()
    cluster = Cluster(env, 1)
    job = cluster.submit(Job(id=1, workflow=flow, machine=node, workflow_policy=policy, requested=limit))
    env.run()
    found = cluster.result().workflow_of(1)
    assert job.state == ("completed" if share > 1 else "timeout")
    assert env.now <= limit
    assert env.waiting_report() == []
    done = found.tasks["status"] == "done"
    assert done.tolist() == (alone.tasks["status"] == "done").tolist()
    for column in ("start", "end", "processor"):
        np.testing.assert_array_equal(found.tasks[column][done], alone.tasks[column][done])
    assert found.transfers["end"].tolist() == alone.transfers["end"].tolist()


def test_what_can_never_run_is_rejected():
    wide = inside(workflow=Workflow([Task(id="wide", run=1, cores=3)]))
    with pytest.raises(ImpossibleWork, match="no suitable processor has 3 cores"):
        Cluster(Environment(), 4).submit(wide)
    result = simulate(4, [wide, inside(id=2)], "fcfs")
    assert result.jobs["status"].tolist() == ["rejected", "completed"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"machine": None}, "machine: must be the MachineSpec of the nodes in which the workflow runs, got None"),
        ({"body": lambda env, job, grant: iter(())}, "body: must be left out beside a workflow, got <function"),
        ({"keeps_work": True}, "keeps_work: must be False for a job with a workflow, whose tasks start again"),
    ],
)
def test_wrong_fields_are_refused(more, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        inside(**more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"machine": "hetsim-slow"},
            "machine: must be a MachineSpec (load_platform reads names and files), got 'hetsim-slow'",
        ),
        ({"workflow": 3}, "workflow: must be a Workflow, got 3"),
        ({"workflow_policy": "easy"}, "decides when jobs start on the nodes of a cluster"),
    ],
)
def test_wrong_values_are_refused_at_submission(more, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Cluster(Environment(), 4).submit(inside(**more))


def test_it_is_not_copied_but_a_what_if_knows_its_request():
    env = Environment()
    cluster = Cluster(env, 4)
    cluster.submit(inside(processors=4, requested=60))
    cluster.submit(Job(processors=4, run=10, requested=20))
    env.run(until=5)
    with pytest.raises(SnapshotError, match="job flow cannot be copied: it runs a workflow inside its nodes"):
        cluster.snapshot()
    assert what_if(cluster.snapshot(actual=False), ["fcfs"])["fcfs"].starts[0].at == 60


def test_below_a_broker_the_result_has_it_too():
    env = Environment()
    broker = Broker(env, [Cluster(env, 2, name="a"), Cluster(env, 4, name="b")], "round-robin")
    for name in ("x", "y"):
        broker.submit(inside(id=name, requested=100))
    env.run()
    result = broker.result()
    assert spans(result, "x") == spans(result, "y") == BY_HAND
    with pytest.raises(InputError, match=re.escape("job 'z' ran no workflow inside its nodes, or was stored")):
        result.workflow_of("z")


def test_a_stored_result_says_that_it_has_none(tmp_path):
    simulate(4, [inside()], "fcfs").to_sqlite(tmp_path / "run.sqlite")
    with pytest.raises(InputError, match="or was stored; jobs that did: none"):
        load_result(tmp_path / "run.sqlite").workflow_of("flow")


def test_a_job_can_be_evolved():
    job = attrs.evolve(inside(), requested=60)
    assert (job.workflow, job.requested) == (DIAMOND, 60)
    assert job != inside()


def test_a_closed_machine_takes_no_work():
    env = Environment()
    with Machine(env, NODE) as machine:
        machine.submit(WIDE_FLOW)
        env.run(until=3)
    env.run()
    assert env.now == 3
    with pytest.raises(InputError, match="cannot take work: it is closed"):
        machine.submit(DIAMOND)


def test_a_machine_without_contention_is_closed_amid_its_transfers():
    env = Environment()
    spec: MachineSpec = small_machine({"name": "gpu"}, {"name": "fpga", "type": "FPGA"})
    with Machine(env, spec, "round-robin", contention=False, transfers="parallel") as machine:
        machine.submit(WIDE_FLOW)
        env.run(until=11)
    env.run()
    assert env.now == 11
