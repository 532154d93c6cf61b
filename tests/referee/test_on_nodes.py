"""What is impossible on nodes: nodes that are unknown, elsewhere, down or taken, and parts of nodes used twice."""

import io
from typing import Any

import attrs
import pytest

from simmodel import Job, simulate
from simmodel.formats.schedules import read_schedule
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.cluster import OutageSpec
from simmodel.referee import verify
from tests.helpers.drawn_schedules import drawn_clusters, drawn_jobs

GB = 10**9
FAT = NodeSpec(name="n", count=3, cores=4, gpus=2, memory=16 * GB)
SHARED = PartitionSpec(name="shared", nodes=[FAT])
ALONE = PartitionSpec(name="alone", nodes=[attrs.evolve(FAT, name="x")], exclusive=True)
SPEC = ClusterSpec(partitions=[SHARED, ALONE])
ONE = {"nodes": 1, "run": 10}


def kinds(jobs: list[Job], nodes: list[Any], start: list[float], spec: ClusterSpec = SPEC, **more: Any) -> list[str]:
    """Return the kinds of the faults of a schedule of jobs, numbered from 1, on these nodes."""
    given = {"job": list(range(1, len(jobs) + 1)), "start": start, "nodes": nodes, **more}
    return [fault.kind for fault in verify(jobs, given, spec).faults]


@pytest.mark.parametrize(
    ("asked", "nodes", "start", "found"),
    [
        ([{"cores_per_node": 2}] * 2, [["n0"], ["n0"]], [0, 5], []),
        ([{"cores_per_node": 3}] * 2, [["n0"], ["n0"]], [0, 5], ["too many cores of a node"]),
        ([{"cores_per_node": 3}] * 2, [["n0"], ["n0"]], [0, 10], []),
        ([{"cores_per_node": 3}] * 2, [["n0"], ["n1"]], [0, 5], []),
        ([{"gpus_per_node": 2}, {"gpus_per_node": 1}], [["n0"], ["n0"]], [0, 5], ["too many GPUs of a node"]),
        ([{"memory_per_node": 9 * GB}] * 2, [["n2"], ["n2"]], [0, 5], ["too much memory of a node"]),
        ([{"memory_per_node": 8 * GB}] * 2, [["n2"], ["n2"]], [0, 5], []),
        ([{"cores_per_node": 1}] * 2, [["x0"], ["x0"]], [0, 5], ["two jobs on an exclusive node"]),
        ([{"cores_per_node": 1}] * 2, [["x0"], ["x0"]], [0, 10], []),
        ([{"cores_per_node": 1}], [["n7"]], [0], ["unknown node"]),
        ([{"nodes": 2}], [["n1", "n1"]], [0], ["node named twice"]),
        ([{"nodes": 2}], [["n1"]], [0], ["too few nodes"]),
        ([{"partition": "shared"}], [["x1"]], [0], ["node of another partition"]),
        ([{"partitions": ["shared", "alone"]}], [["x1"]], [0], []),
        ([{"nodes": None, "processors": 9}], [["n0", "n1"]], [0], ["too few nodes"]),
        ([{"nodes": None, "processors": 7}, {}], [["n0", "n1"], ["n0"]], [0, 0], []),
        ([{"nodes": None, "processors": 8}, {}], [["n0", "n1"], ["n0"]], [0, 0], ["too many cores of a node"]),
        ([{}, {}], [[], None], [0, 0], []),
    ],
)
def test_what_cannot_be_on_nodes_is_found(asked: Any, nodes: Any, start: Any, found: list[str]) -> None:
    assert kinds([Job(**{**ONE, **each}) for each in asked], nodes, start) == found


@pytest.mark.parametrize(
    ("kind", "start", "found"),
    [
        ("failure", 5, ["node that is down"]),
        ("failure", 0, []),
        ("failure", 25, ["node that is down"]),
        ("failure", 30, []),
        ("maintenance", 5, ["node that is down"]),
        ("drain", 5, []),
        ("drain", 10, ["node that is down"]),
    ],
)
def test_a_node_that_is_away_runs_nothing(kind: Any, start: float, found: list[str]) -> None:
    spec = attrs.evolve(SPEC, outages=[OutageSpec(at=10, until=30, partition="shared", nodes=["n1"], kind=kind)])
    job = Job(nodes=1, run=10)
    assert kinds([job], [["n1"]], [start], spec) == found
    assert kinds([job], [["n2"]], [start], spec) == []


def test_numbers_of_nodes_count_in_the_partition_or_in_the_cluster() -> None:
    job = Job(nodes=1, run=10)
    assert kinds([job], [[5]], [0]) == []
    assert kinds([job], [[6]], [0]) == ["unknown node"]
    assert kinds([job], [[3]], [0], place=["alone"]) == ["unknown node"]
    assert kinds([attrs.evolve(job, partition="alone")], [[3]], [0]) == ["unknown node"]
    both = [attrs.evolve(job, partition="alone"), job]
    assert kinds(both, [[1], [4]], [0, 0]) == ["two jobs on an exclusive node"]  # node 4 of all is node 1 of alone


def test_processors_are_counted_in_each_partition() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(name=name, processors=4) for name in "ab"])
    jobs = [Job(processors=3, run=10, partition="a"), Job(processors=3, run=10, partitions="any")]
    starts = {"job": [1, 2], "start": [0, 0]}
    assert verify(jobs, starts, spec).right
    (fault,) = verify(jobs, {**starts, "place": ["a", "a"]}, spec).faults
    assert fault.text == "6 of 4 processors of a are used from 0 s on, when job 2 starts"


def test_own_schedules_on_nodes_have_no_fault() -> None:
    spec = drawn_clusters()["nodes"]
    for seed in range(4):
        jobs = drawn_jobs(seed)
        result = simulate(spec, jobs, "easy", overrun="continue")
        assert not verify(jobs, result, spec).faults


def test_two_jobs_put_on_one_node_are_found_in_the_table_of_runs(tmp_path: Any) -> None:
    spec = drawn_clusters()["nodes"]
    jobs = [Job(id=i, processors=2, run=10, partition="a") for i in (1, 2)]
    simulate(spec, jobs, "fcfs").to_csv(tmp_path)
    assert verify(jobs, tmp_path / "runs.csv", spec).right
    text = (tmp_path / "runs.csv").read_text()
    assert text.count("[1]") == 1
    (tmp_path / "runs.csv").write_text(text.replace("[1]", "[0]"))
    (fault,) = verify(jobs, tmp_path / "runs.csv", spec).faults
    assert fault.text == "4 of 2 cores of node node0 are used from 0 s on, when job 2 starts"


@pytest.mark.parametrize(
    ("column", "cell", "nodes"),
    [
        ("nodes", "[0, 1]", (0, 1)),
        ("nodes", "3", None),
        ("nodes", "n[1-2];login", ("n1", "n2", "login")),
        ("allocated_resources", "3", (3,)),
        ("allocated_resources", "0-2 5", (0, 1, 2, 5)),
        ("allocated_resources", "", None),
        ("NodeList", "cn[08-09]", ("cn08", "cn09")),
    ],
)
def test_lists_of_nodes_are_read(column: str, cell: str, nodes: Any) -> None:
    table = read_schedule(io.StringIO(f"job|start|{column}\n1|0|{cell.replace(';', ',')}\n"))
    assert (table["nodes"][0] if "nodes" in table else None) == nodes


@pytest.mark.parametrize("cell", ["n[1-", "0-999999999", "[0, x["])
def test_lists_that_are_none_are_refused(cell: str) -> None:
    with pytest.raises(InputError, match="line 2: nodes: "):
        read_schedule(io.StringIO(f"job|start|allocated_resources\n1|0|{cell}\n"))
