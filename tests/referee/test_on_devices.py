"""Devices that schedules name: numbers, types, slices, and what is held of each at every instant."""

import pytest

from simmodel import Job, Workload, simulate
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.devices import DeviceSpec
from simmodel.referee.verification import verify

MIG = DeviceSpec(name="A100", memory="40GB", slices="mig")
SPEC = ClusterSpec(
    partitions=[
        PartitionSpec(
            nodes=[NodeSpec(names="t", cores=8, gpus={"T4": 2}), NodeSpec(names="a", cores=8, gpus={"A100": 1})],
            devices=[MIG],
        )
    ]
)
HALF = {"nodes": 1, "gpus_per_node": 0.6, "gpu": "T4"}
SLICE = {"nodes": 1, "gpu": "A100:3g.20gb"}
FOUR = tuple((place, 125) for place in range(4))


def faults(*rows):
    """Return kind and text of the faults of jobs, each its request, start, node and devices; they run 10 s."""
    jobs = [Job(id=i, run=10, **request) for i, (request, *_) in enumerate(rows)]
    _, starts, nodes, devices = zip(*rows, strict=True)
    given = {
        "job": range(len(jobs)),
        "start": starts,
        "nodes": [(n,) for n in nodes],
        "devices": [(d,) for d in devices],
    }
    verdict = verify(Workload.from_jobs(jobs), given, SPEC)
    return [(fault.kind, fault.text) for fault in verdict.faults]


def test_shares_of_different_devices_and_of_one_after_another_are_possible():
    assert faults((HALF, 0, "t", ((0, 600),)), (HALF, 0, "t", ((1, 600),)), (HALF, 10, "t", ((1, 600),))) == []


def test_no_device_is_used_beyond_its_whole_although_the_sums_fit():
    rows = [(HALF, 0, "t", ((0, 600),)), (HALF, 5, "t", ((0, 600),))]
    text = "1200 of 1000 thousandths of device 0 of node t are used from 5 s on, when job 1 starts"
    assert faults(*rows) == [("too much of a device", text)]


@pytest.mark.parametrize(
    ("row", "kind", "text"),
    [
        ((HALF, 0, "t", ((2, 600),)), "unknown device", "job 0 runs on device 2 of node t, which does not have it"),
        (
            (HALF, 0, "t", ((0, 300), (1, 300))),
            "other devices than asked for",
            "job 0 runs on devices of node t (0.3 of 0, 0.3 of 1) that do not meet 1 node with 1 core and 0.6 of a GPU",
        ),
        (
            ({"nodes": 1, "gpus_per_node": 1, "gpu": "T4"}, 0, "a", tuple((place, 125) for place in range(8))),
            "other devices than asked for",
            "that do not meet 1 node with 1 core and 1 GPU of type T4",
        ),
        ((SLICE, 0, "a", tuple((place + 2, 125) for place in range(4))), "other devices than asked for", "3g.20gb"),
        (({"nodes": 1}, 0, "t", ((0, 100),)), "other devices than asked for", "(0.1 of 0)"),
    ],
)
def test_devices_that_are_not_those_asked_for(row, kind, text):
    found, said = faults(row)[0]
    assert found == kind
    assert text in said


def test_a_slice_at_a_place_where_it_may_begin_is_possible():
    assert faults((SLICE, 0, "a", FOUR), (SLICE, 0, "a", tuple((place + 4, 125) for place in range(4)))) == []


def test_runs_on_devices_are_possible():
    jobs = [Job(submit=i, run=7, **(HALF, SLICE)[i % 2]) for i in range(12)]
    result = simulate(SPEC, jobs, "easy")
    assert verify(Workload.from_jobs(jobs), result, SPEC, "easy").right
