"""Workflows as batch jobs, and every form of workload wherever one is taken."""

import numpy as np
import pytest

from simmodel import (
    Broker,
    Cluster,
    Environment,
    Job,
    Scenario,
    Task,
    Workflow,
    Workload,
    compare,
    explore,
    replicate,
    simulate,
    start,
    what_if,
)
from simmodel.catalogue import load_workflow
from simmodel.cli import main
from simmodel.formats import write_wfformat
from simmodel.foundation.errors import InputError
from simmodel.platform import (
    ArchitectureSpec,
    BrokerSpec,
    ClusterSpec,
    MachineSpec,
    MemoryPoolSpec,
    NodeSpec,
    PartitionSpec,
    ProcessorSpec,
)
from simmodel.predictors.learning import learn_from
from simmodel.predictors.similar import RecentTwo
from simmodel.referee import identify, verify
from tests.helpers.data_files import data_file

FLOW = Workflow(
    [Task(id=name, run=run) for name, run in (("a", 2), ("b", 3), ("c", 5), ("d", 4), ("e", 1))],
    [("a", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("d", "e")],
    name="five",
)


def starts_of(result):
    return dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))


def test_a_workflow_on_two_processors_by_hand_and_as_a_machine_schedules_it():
    # a 0-2, then b and c at 2; b ends at 5, so d 5-9; c ends at 7; e waits for d: 9-10
    by_hand = {"a": 0, "b": 2, "c": 2, "d": 5, "e": 9}
    assert starts_of(simulate(2, FLOW, "fcfs")) == starts_of(simulate(2, FLOW, "easy")) == by_hand
    core = {"type": "CPUCore", "architecture": "cpu", "pool": "ram"}
    machine = MachineSpec(
        pools=[MemoryPoolSpec(name="ram")],
        architectures=[ArchitectureSpec(name="cpu")],
        processors=[ProcessorSpec(name=name, **core) for name in ("first", "second")],
    )
    tasks = simulate(machine, FLOW, "earliest-finish", decide="ready").tasks
    assert dict(zip(tasks["task"].tolist(), tasks["start"].tolist(), strict=True)) == by_hand


def test_tasks_hold_cores_and_memory_of_one_node():
    tasks = [Task(id=i, run=10, cores=2, memory=6) for i in range(3)]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4, memory=8)])])
    assert simulate(spec, Workflow(tasks), "fcfs").jobs["start"].tolist() == [
        0,
        0,
        10,
    ]  # one a node
    bare = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4)])])
    assert simulate(bare, Workflow(tasks), "fcfs").jobs["start"].tolist() == [0, 0, 0]
    wide = simulate(bare, Workflow([Task(id="wide", run=1, cores=5)]), "fcfs")
    assert wide.jobs["status"].tolist() == ["rejected"]  # a task does not span nodes


def test_a_broker_places_the_tasks_of_workflows_that_have_homes():
    places = {"left": ClusterSpec.simple(1), "right": ClusterSpec.simple(2)}
    alone = Workflow([Task(id="x", run=1)], name="alone")
    result = simulate(BrokerSpec(places=places), {"left": alone, "right": alone}, "random")
    assert len(result.jobs["job"]) == 2
    result = simulate(BrokerSpec(places=places), [Job(run=1)], "random")
    assert len(result.jobs["job"]) == 1


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("name", ["1000genome-chameleon-16ch-100k-001", "srasearch-chameleon-50a-003"])
def test_a_recorded_workflow_ends_with_all_tasks_in_order(name, policy):
    flow = load_workflow(data_file(f"wfformat/{name}.json.gz"))
    jobs = simulate(80, flow, policy).jobs
    assert set(jobs["status"].tolist()) == {"completed"}
    rows = {task: row for row, task in enumerate(jobs["job"].tolist())}
    assert rows.keys() == flow.tasks.keys()
    for edge in flow.edges:
        assert jobs["start"][rows[edge.child]] >= jobs["end"][rows[edge.parent]]
    span = jobs["end"].max()
    assert flow.critical_path_length() <= span + 1e-6


LOG = {"submit": [0, 1, 2, 3], "run": [10, 5, 5, 2], "processors": [3, 4, 1, 1], "requested": [12, 6, 6, 4]}


def forms(columns=LOG):
    pandas = pytest.importorskip("pandas")
    jobs = Workload(columns).jobs()
    return [Workload(columns), jobs, tuple(jobs), pandas.DataFrame(columns)]


def test_all_forms_of_a_workload_run_alike():
    for given in forms():
        assert simulate(4, given, "easy").jobs["start"].tolist() == [0, 10, 2, 7]
        assert start(4, given, "easy").run().result().jobs["start"].tolist() == [0, 10, 2, 7]
        assert compare(4, given, ["easy"]).results[0].jobs["start"].tolist() == [0, 10, 2, 7]


def test_all_forms_of_a_workload_are_arrivals():
    running = start(4, [Job(id=50, run=20, processors=2)], "easy")
    running.run(until=0.5)
    snapshot = running.snapshot()
    found_starts = []
    later = {**LOG, "submit": [at + 1 for at in LOG["submit"]]}
    for given in forms(later):
        found = what_if(snapshot, ["fcfs", "easy"], arrivals=given)
        found_starts.append([[each.at for each in found[name].starts] for name in ("fcfs", "easy")])
    assert len(found_starts[0][0]) == 4
    assert found_starts == [found_starts[0]] * 4
    drawn = what_if(snapshot, ["easy"], arrivals=lambda rng: forms()[3])["easy"]
    assert len(drawn.starts) == 4


def test_all_forms_of_a_workload_are_replayed_by_systems():
    for given in forms():
        env = Environment()
        broker = Broker(env, [Cluster(env, 4, "easy", name="only")], "random")
        broker.replay(given)
        env.run()
        assert broker.result().jobs["start"].tolist() == [0, 10, 2, 7]


def test_all_forms_of_a_workload_are_judged_alike():
    schedule = {1: 0, 2: 10, 3: 2, 4: 7}
    for given in forms():
        assert verify(given, schedule, platform=4, policy="easy").judgement.explained() == 1
        assert identify(given, schedule, platform=4, candidates=["fcfs", "easy"]).best == "easy"


def test_all_forms_of_a_workload_teach_predictors():
    for given in forms():
        assert learn_from(RecentTwo(), given) == 4


def test_a_generator_of_jobs_is_read_once_and_runs_again():
    def given():
        return iter(Workload(LOG).jobs())

    scenario = Scenario.of(4, given(), "easy")
    assert scenario.run().jobs["start"].tolist() == scenario.run().jobs["start"].tolist() == [0, 10, 2, 7]
    assert np.isfinite(explore([4, 8], given(), ["easy", "fcfs"], seeds=2).table["wait_mean"]).all()
    runs = replicate(simulate, 2, platform=4, workload=given(), policy="easy")
    assert runs["wait_mean"].mean == 3.25
    assert [len(each.jobs) for each in compare(4, given(), ["easy", "fcfs"]).results] == [4, 4]


def test_the_file_of_a_workflow_is_a_workload_of_clusters(tmp_path, capsys):
    path = tmp_path / "five.json"
    write_wfformat(FLOW, path)
    by_hand = starts_of(simulate(2, FLOW, "easy"))
    assert starts_of(simulate(2, path, "easy")) == by_hand
    assert starts_of(simulate(None, path, "easy", processors=2)) == by_hand
    again = Scenario.from_document(simulate(2, path, "easy").scenario).run()
    assert starts_of(again) == by_hand
    assert explore([2], [path], ["easy"], seeds=2).table["makespan"].tolist() == [10]
    with pytest.raises(InputError, match="job b: must not wait for other jobs to be read in chunks"):
        simulate(2, path, "easy", stream=tmp_path / "jobs.db")
    with pytest.raises(InputError, match="records no machines: pass a machine, or a number of processors"):
        simulate(None, path, "easy")
    for command in (["batch", str(path), "--processors", "2"], ["meta", str(path), "--clusters", "2,2"]):
        assert main(command) == 0
        assert "5 jobs" in capsys.readouterr().out or command[0] == "batch"
    assert main(["explore", "--platforms", "2,4", "--workloads", str(path), "--policies", "easy", "--seeds", "2"]) == 0
    assert "2 platforms x 1 workload" in capsys.readouterr().out
