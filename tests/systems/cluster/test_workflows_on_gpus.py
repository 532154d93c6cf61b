"""Workflows on the GPUs that their jobs hold of a node, whose CPU cores and links the jobs share."""

import re

import numpy as np
import pytest

from simmodel import Cluster, Environment, InputError, Job, Machine, Task, Workflow, load_workflow, simulate
from simmodel.foundation.errors import ImpossibleWork
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.scheduling.protocol import Start
from tests.helpers.data_files import data_file
from tests.helpers.small_machines import MB, small_machine

# GPU i and GPU i + 4 have one link; two cores set all of them up.
NODE = small_machine(
    *({"name": f"gpu{i}", "pool": f"hbm{i % 4}", "setup": 2.0, "setup_on": ("cpu0", "cpu1")} for i in range(8)), cores=2
)


def cluster(machine=NODE, **more):
    kind, devices = machine.as_node(**{"cores": 16, **more})
    return ClusterSpec(partitions=[PartitionSpec(nodes=[kind], devices=devices)])


def in_turn(view):
    """The GPUs in turn, in the order of the tasks."""
    gpus = [place for place in view.places if place.type == "GPU"]
    for task in view.waiting:
        yield Start(task, gpus[int(task.id) % len(gpus)])


def flow(seed=0, tasks=30):
    rng = np.random.default_rng(seed)
    drawn = [Task(id=i, run=float(rng.integers(1, 20))) for i in range(tasks)]
    pairs = [(i, j, float(rng.integers(1, 60)) * MB) for j in range(tasks) for i in range(j) if rng.random() < 0.12]
    return Workflow(drawn, pairs)


def job(number, work, **more):
    more = {"workflow_policy": in_turn, **more}
    return Job(id=number, nodes=1, gpus_per_node=4, workflow=work, machine=NODE, **more)


def assert_as_alone(work, policy):
    result = simulate(cluster(), [job(1, work, workflow_policy=policy)], "fcfs")
    found, alone = result.workflow_of(1), simulate(NODE.with_gpus(range(4)), work, policy)
    for name in ("task", "processor", "start", "end"):
        assert found.tasks[name].tolist() == alone.tasks[name].tolist()
    assert result.jobs["end"].tolist() == [alone.metrics()["makespan"]]
    assert {place for place in found.tasks["processor"].tolist() if "gpu" in place} <= {f"gpu{i}" for i in range(4)}


@pytest.mark.parametrize("policy", ["hrr", "heft", "earliest-finish"])
def test_a_job_of_four_of_eight_gpus_runs_as_their_machine_alone(policy):
    assert_as_alone(flow(), policy)


@pytest.mark.parametrize("policy", ["hrr", "heft"])
def test_montage_runs_as_on_the_machine_alone(policy):
    assert_as_alone(load_workflow(data_file("dax/Montage_25.xml.gz")), policy)


@pytest.mark.parametrize("seed", range(4))
def test_two_jobs_on_a_node_share_its_cores_and_its_links(seed):
    """They are as one machine, with the tasks of each on its four GPUs."""
    works = flow(2 * seed), flow(2 * seed + 1)
    result = simulate(cluster(), [job(i, works[i], submit=0.37 * i) for i in (0, 1)], "fcfs")
    assert [held[0][0][0] for held in result.runs["devices"].tolist()] == [0, 4]
    env = Environment()

    def halves(view):
        for task in view.waiting:
            mine = 0 if task.submission is first else 4
            yield Start(task, machine.processors[f"gpu{mine + int(task.id) % 4}"])

    machine = Machine(env, NODE, halves)
    first = machine.submit(works[0])
    env.run(until=0.37)
    second = machine.submit(works[1])
    env.run()
    alone = [simulate(NODE.with_gpus(range(4)), each, in_turn).metrics()["makespan"] for each in works]
    for number, (submission, submit) in enumerate(((first, 0.0), (second, 0.37))):
        found = result.workflow_of(number).tasks
        ends = {task.id: machine.phases[8 * machine.done.index(task) + 7] for task in submission.tasks}
        assert dict(zip(found["task"].tolist(), found["end"].tolist(), strict=True)) == pytest.approx(ends)
        assert result.jobs["end"][number] - submit >= alone[number]
    assert (result.jobs["end"] - [0.0, 0.37] > alone).any()


def test_a_job_that_is_stopped_gives_cores_and_links_back():
    works = flow(1), flow(2)
    for limit in np.linspace(0.3, 40, 10).tolist():
        env = Environment()
        system = Cluster(env, cluster(), "fcfs")
        cut = system.submit(job(1, works[0], requested=limit))
        late = system.submit(job(2, works[1]))
        env.run()
        assert (cut.state, late.state) == ("timeout", "completed")
        after = system.submit(job(3, works[1]))
        begun = env.now
        env.run()
        alone = simulate(NODE.with_gpus(range(4)), works[1], in_turn).metrics()["makespan"]
        assert after.state == "completed"
        assert env.now - begun == pytest.approx(alone)
        assert env.waiting_report() == []


def test_a_node_has_what_its_machine_has():
    kind, devices = NODE.as_node(name="n")
    assert (kind.cores, kind.gpu_types, [each.name for each in devices]) == (2, {"x": 8}, ["x"])


@pytest.mark.parametrize(
    ("spec", "more", "message"),
    [
        (cluster(), {"gpus_per_node": 0.5}, "a workflow runs on whole GPUs"),
        (cluster(gpus={"x": 6}), {}, "machine has GPUs x, x, x, x, x, x, x, x, a node of batch x, x, x, x, x, x"),
        (cluster(gpus={"T4": 8}), {"gpu": "T4"}, "a node of batch T4, T4"),
    ],
)
def test_devices_that_are_not_those_of_the_machine_are_refused(spec, more, message):
    asked = Job(**{"nodes": 1, "gpus_per_node": 4, "workflow": flow(), "machine": NODE, **more})
    with pytest.raises(ImpossibleWork, match=re.escape(message)):
        Cluster(Environment(), spec).submit(asked)


def test_jobs_on_a_node_have_one_machine():
    other = small_machine(*({"name": f"gpu{i}"} for i in range(8)), cores=2)
    jobs = [job(1, flow()), Job(id=2, nodes=1, gpus_per_node=4, workflow=flow(), machine=other)]
    with pytest.raises(InputError, match="must be that of job 1 on the same node"):
        simulate(ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus=8)])]), jobs, "fcfs")
