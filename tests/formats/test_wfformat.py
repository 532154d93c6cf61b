"""WfFormat: real workflows against their known figures and back, and the errors for invalid files."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from simmodel.catalogue import load_workflow
from simmodel.formats.wfformat import VERSIONS, read_wfformat, write_wfformat
from simmodel.foundation.errors import InputError
from simmodel.work.task import RecordedMachine, Task
from simmodel.work.workflow import Edge, Workflow
from tests.helpers.data_files import data_file
from tests.helpers.workflow_documents import as_file, wfformat

# name: tasks, edges, levels, files, GB, s of work, s of the critical path, s of makespan, machines
WFFORMAT = {
    "1000genome-chameleon-16ch-100k-001": (416, 608, 3, 456, 32.23, 29794, 350, 2498, 4),
    "airrflow-dirt02-001": (212, 327, 25, 935, 0.31, 3330, 438, 4706, 1),
    "blast-chameleon-medium-001": (303, 900, 3, 907, 5.11, 31513, 119, 5074.08, 4),
    "bwa-chameleon-large-001": (1004, 4000, 3, 3012, 0.06, 13277, 1656, 52218.36, 4),
    "cycles-chameleon-1l-3c-12p-001": (657, 975, 4, 5200, 4.65, 10653, 238, 1544, 4),
    "epigenomics-chameleon-hep-1seq-100k-001": (41, 48, 9, 54, 0.56, 539, 105, 594, 1),
    "methylseq-dirt02-001": (36, 70, 7, 132, 0.08, 446, 203, 528, 1),
    "montage-chameleon-2mass-005d-001": (58, 114, 8, 111, 0.22, 222, 21, 1060, 1),
    "montage-chameleon-dss-15d-001": (2122, 6114, 8, 2463, 24.22, 78088, 989, 6197, 4),
    "rnaseq-dirt02-001": (197, 451, 10, 680, 0.29, 2580, 759, 3131, 1),
    "seismology-chameleon-1000p-001": (1001, 1000, 2, 3004, 0.02, 538, 5, 2194, 7),
    "soykb-chameleon-50fastq-20ch-001": (676, 1674, 11, 1361, 2.88, 118736, 38628, 54029, 5),
    "srasearch-chameleon-50a-003": (104, 152, 4, 210, 76.91, 57807, 3010, 7463, 3),
}


def same(one: Workflow, two: Workflow) -> bool:
    """Return whether two workflows agree in everything that a simulation uses."""
    return (
        list(one) == list(two)
        and [dict(task.details) for task in one] == [dict(task.details) for task in two]
        and sorted(one.edges) == sorted(two.edges)
        and one.files == two.files
        and (one.name, one.machines, one.makespan) == (two.name, two.machines, two.makespan)
    )


@pytest.mark.few(4)
@pytest.mark.parametrize("name", WFFORMAT)
def test_wfformat_of_real_workflows_and_back(name: str, tmp_path: Path) -> None:
    flow = load_workflow(data_file(f"wfformat/{name}.json.gz"))
    shown = flow.summary()
    found = tuple(shown[key] for key in ("tasks", "edges", "levels", "data objects"))
    times = (round(shown["work"]), round(shown["critical path"]), flow.makespan, len(flow.machines))
    assert (*found, round(shown["bytes"] / 1e9, 2), *times) == WFFORMAT[name]
    assert not flow.unlisted()
    assert not flow.report
    machines = {machine.name for machine in flow.machines}
    assert all(machines.issuperset(task.machines) for task in flow)
    assert not write_wfformat(flow, tmp_path / "again.json.gz", version="1.6")
    back = load_workflow(tmp_path / "again.json.gz")
    assert same(back, flow)
    assert back.header == flow.header


def test_wfformat_records() -> None:
    flow = read_wfformat(as_file(wfformat()))
    first, second = flow
    assert (first.name, first.family, first.run, first.started, first.ended) == ("split", "split", 4.5, 1, 5.5)
    assert first.details == {"command": {"program": "split", "arguments": ["-n"]}, "readBytes": 1024}
    assert (second.cores, second.priority, second.memory, second.started) == (1.5, -2, 1e6, None)
    assert flow.machines == (RecordedMachine(name="n", cores=8, speed=3.6e9, details={"vendor": "AMD"}),)
    assert flow.makespan == 14.5
    assert flow.header == {
        "author": {"name": "Ann"},
        "execution": {"executedAt": "2026-08-04T15:20:00-08:00"},
    }


def test_wfformat_without_execution_or_machines() -> None:
    flow = read_wfformat(as_file(wfformat(workflow__execution=None)))
    assert [task.run for task in flow] == [None, None]
    assert flow.report.skipped == {"run time of a task, not in the file": 2}
    assert read_wfformat(as_file(wfformat(workflow__execution__machines=None))).machines == ()


def test_wfformat_repairs_are_counted() -> None:
    changes: dict[str, Any] = {
        "workflow__specification__tasks__1__parents": [],
        "workflow__specification__files": [],
        "workflow__execution__executedAt": "04-08-26T15:20Z",
    }
    flow = read_wfformat(as_file(wfformat(**changes)))
    assert flow.edges == (Edge("a", "b", ("f",), 0),)
    assert flow["a"].started == 0
    assert flow.report.repaired == {
        "edge that only children say": 1,
        "size of a file missing: 0 bytes taken": 1,
        "start of the workflow missing or late: that of its first task taken": 1,
    }


TASKS = "workflow.specification.tasks"


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"schemaVersion": "1.4"}, "schemaVersion", "schemaVersion: must be 1.5 or 1.6, got '1.4'"),
        ({"workflow": None}, None, "must be a WfFormat document with 'schemaVersion' and 'workflow'"),
        ({"workflow__specification": None}, "workflow", "missing key 'specification'"),
        ({"workflow__specification__tasks": []}, TASKS, "must not be empty"),
        ({"workflow__specification__tasks": {}}, TASKS, "must be a list, got {}"),
        ({"workflow__specification__tasks__0": 5}, f"{TASKS}[0]", "must be a table, got 5"),
        ({"workflow__specification__tasks__0__id": 5}, f"{TASKS}[0].id", "must be text, got 5"),
        ({"workflow__specification__tasks__0__id": "b"}, f"{TASKS}[1].id", "duplicate task id 'b'"),
        ({"workflow__specification__tasks__1__parents": ["x"]}, f"{TASKS}[1].parents[0]", "unknown task 'x'"),
        ({"workflow__specification__tasks__0__parents": ["b"]}, None, "tasks form a cycle: a -> b -> a"),
        ({"workflow__specification__files__0__sizeInBytes": -1}, "workflow.specification.files[0].sizeInBytes", ">= 0"),
        (
            {"workflow__execution__tasks__0__runtimeInSeconds": "4"},
            "workflow.execution.tasks[0].runtimeInSeconds",
            '"4"',
        ),
        (
            {"workflow__execution__tasks__0__runtimeInSeconds": True},
            "workflow.execution.tasks[0].runtimeInSeconds",
            "tr",
        ),
        (
            {"workflow__execution__tasks__1__coreCount": 0},
            "workflow.execution.tasks[1].coreCount",
            "must be a number > 0",
        ),
        ({"workflow__execution__tasks__1__id": "z"}, "workflow.execution.tasks[1].id", "unknown task 'z'"),
        ({"workflow__execution__tasks__1__id": "a"}, "workflow.execution.tasks[1].id", "duplicate task id 'a'"),
    ],
)
def test_wrong_wfformat_is_refused(changes, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_wfformat(as_file(wfformat(**changes)))
    assert (found.value.source, found.value.place) == ("an open file", place)


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        (0, "must be a number > 0, got 0"),
        (-1, "must be a number >= 0, got -1"),
        ("2400", 'must be a number >= 0, got "2400"'),
        (True, "must be a number >= 0, got true"),
        (1e305, r"must be a number that is finite times 1e\+06, got 1e\+305"),
        (float("nan"), "must be a finite number, got NaN"),
        (float("inf"), "must be a finite number, got Infinity"),
    ],
)
def test_wrong_speeds_of_recorded_machines_are_refused(speed, said) -> None:
    machines = [{"nodeName": "m", "cpu": {"speedInMHz": speed}}]
    with pytest.raises(InputError, match=said):
        read_wfformat(as_file(wfformat(workflow__execution__machines=machines)))


def test_wfformat_writer_keeps_what_it_can_and_says_what_not(tmp_path: Path) -> None:
    tasks = [
        Task(id="a b", run=2, family="f", started=5, ended=7, cores=2, memory=8, priority=1, machines=["m"]),
        Task(id="a_b", run=3, flop=9, run_on={"gpu": 1}),
        Task(id=3, run=4),
    ]
    flow = Workflow(tasks, [("a b", "a_b", 10.0), ("a b", 3, 20.5)], machines=[RecordedMachine(name="m", memory=1e9)])
    report = write_wfformat(flow, tmp_path / "flow.json")
    assert report.repaired == {"name with characters that WfFormat has not": 3}
    assert report.skipped == {
        "flop of a task: no place for it in WfFormat": 1,
        "run times by architecture, types or alpha of a task: no place for it in WfFormat": 1,
    }
    back = read_wfformat(tmp_path / "flow.json")
    assert list(back.tasks) == ["a_b_2", "a_b", "3"]
    assert [edge[:2] for edge in back.edges] == [("a_b_2", "a_b"), ("a_b_2", "3")]
    assert [edge.size for edge in back.edges] == [10, 20.5]
    first = back["a_b_2"]
    assert (first.family, first.started, first.ended, first.cores, first.memory) == ("f", 5, 7, 2, 8)
    assert (first.priority, first.machines, back.machines) == (1, ("m",), flow.machines)
    assert back.makespan == 7
    with pytest.raises(ValueError, match=r"version: must be 1.5 or 1.6, got '1.4'"):
        write_wfformat(flow, tmp_path / "x", version="1.4")
    with pytest.raises(ValueError, match="must have at least one task, got none"):
        write_wfformat(Workflow([]), tmp_path / "x")


def test_wfformat_metrics_and_missing_run_times(tmp_path: Path) -> None:
    flow = Workflow([Task(id="a", run=1), Task(id="b")], [("a", "b", 10)])
    report = write_wfformat(flow, tmp_path / "flow.json", version="1.6")
    assert report.skipped == {"run time of a task: WfFormat has those of all tasks or none": 1}
    document = json.loads((tmp_path / "flow.json").read_text())
    assert document["workflow"].keys() == {"specification"}
    assert document["workflow"]["specification"]["metrics"] == {
        "numberOfTasks": 2,
        "numberOfFiles": 1,
        "sumOfFileSizesInBytes": 10,
        "numberOfLevels": 2,
        "minimumWidth": 1,
        "maximumWidth": 1,
    }


@pytest.mark.parametrize("listed", [False, True])
def test_files_order_tasks_where_no_edge_is_listed_and_are_told_elsewhere(listed: bool) -> None:
    tasks = [
        {"id": "a", "name": "a", "parents": [], "children": ["c"] if listed else [], "outputFiles": ["f"]},
        {"id": "b", "name": "b", "parents": [], "children": [], "inputFiles": ["f"]},
        {"id": "c", "name": "c", "parents": ["a"] if listed else [], "children": []},
    ]
    specification = {"tasks": tasks, "files": [{"id": "f", "sizeInBytes": 5}]}
    document = {"name": "three", "schemaVersion": "1.5", "workflow": {"specification": specification}}
    flow = read_wfformat(io.StringIO(json.dumps(document)))
    assert [edge[:2] for edge in flow.edges] == [("a", "c" if listed else "b")]
    assert flow.report.repaired.total() == (not listed)
    assert [note.partition(":")[0] for note in flow.report.notes] == [
        "task 'b' reads 'f', which 'a' writes, and no edge orders the two"
    ] * listed


def test_versions_are_those_of_the_schema() -> None:
    assert VERSIONS == ("1.5", "1.6")
