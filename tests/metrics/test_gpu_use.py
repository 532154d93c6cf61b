"""GPUs over time: by hand, and fragmentation against the definition of the paper at random instants."""

from random import Random

import attrs
import numpy as np
import pytest

from simmodel import Job, load_result, simulate
from simmodel.foundation.errors import InputError
from simmodel.metrics import compare
from simmodel.metrics.devices import GpuUse
from simmodel.platform.cluster import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec
from simmodel.platform.devices import DeviceSpec

KINDS = [NodeSpec(name="a", count=2, cores=6, gpus={"A100": 2}), NodeSpec(name="t", count=2, cores=4, gpus={"T4": 1})]
SPEC = ClusterSpec(partitions=[PartitionSpec(nodes=KINDS)])
HALF = {"nodes": 1, "gpus_per_node": 0.5}


def test_allocated_and_idle_gpus_by_type():
    jobs = [Job(run=10, **HALF), Job(run=20, gpu="T4", nodes=1, gpus_per_node=1), Job(run=5, nodes=1)]
    use = GpuUse(simulate(SPEC, jobs, "fcfs"))
    assert [use.allocated(kind).integral() for kind in ("A100", "T4", None)] == [5, 20, 25]
    assert [use.idle(kind).integral() for kind in ("A100", "T4", None)] == [75, 20, 95]
    assert list(use.table.rows())[1] == {"type": "T4", "gpus": 2, "allocated": 1, "idle": 1, "utilisation": 0.5}
    assert simulate(SPEC, jobs, "fcfs").metrics()["gpu_utilisation"] == 25 / 120
    with pytest.raises(InputError, match="unknown type 'H100'"):
        use.idle("H100")


def test_slices_are_parts_of_their_gpu():
    mig = DeviceSpec(name="A100", memory="40GB", slices="mig")
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus={"A100": 2})], devices=[mig])])
    jobs = [Job(nodes=1, gpu="A100:3g.20gb", run=10), Job(nodes=1, gpus_per_node=1, run=10)]
    use = GpuUse(simulate(spec, jobs, "fcfs"))
    assert use.spans["gpu"].tolist() == [0] * 4 + [1] * 8
    assert use.allocated().max() == 1.5


def test_counted_gpus_are_those_of_the_nodes_and_have_no_fragmentation():
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus=4)])])
    result = simulate(spec, [Job(nodes=1, gpus_per_node=3, run=10), Job(submit=5, nodes=1, run=15)], "fcfs")
    assert GpuUse(result).spans["share"].tolist() == [3]
    assert result.metrics()["gpu_utilisation"] == 30 / 80
    assert np.isnan(result.metrics()["gpu_fragmentation"])
    assert "GPU utilisation" in result.summary()
    assert "no use" not in result.summary()
    with pytest.raises(InputError, match="needs devices told apart"):
        GpuUse(result).fragmentation()


def test_nodes_that_are_down_are_not_in_service_unless_they_are_held():
    window = [OutageSpec(nodes=["a0"], at=5, until=15, kind="drain"), OutageSpec(nodes=["a1"], at=10, until=30)]
    jobs = [Job(run=10, **HALF), Job(submit=40, run=10, **HALF)]
    use = GpuUse(simulate(attrs.evolve(SPEC, outages=window), jobs, "fcfs"))
    there = use.in_service("A100")
    assert there.at([0, 7, 12, 20, 35]).tolist() == [4, 2.5, 0, 2, 4]
    assert use.idle("A100").at([7]).tolist() == [2]


def test_a_reservation_is_on_the_gpus_of_its_partition():
    booked = ReservationSpec(name="booked", nodes=["a1"], start=5, end=50)
    jobs = [Job(run=10, partition="booked", **HALF), Job(run=20, nodes=1, gpus_per_node=2)]
    use = GpuUse(simulate(attrs.evolve(SPEC, reservations=[booked]), jobs, "fcfs"))
    assert sorted(use.spans["node"].tolist()) == [0, 0, 1]
    assert use.allocated().at([0, 10, 17]).tolist() == [2, 2.5, 2]
    assert use.in_service().at([0, 10, 17]).tolist() == [6, 6, 6]
    assert use.fragmentation("1*1/1").at([0, 10, 17]).tolist() == [0, 0.5, 0]


def test_a_result_without_gpus_has_no_such_metrics():
    result = simulate(4, [Job(run=5)], "fcfs")
    assert "gpu_utilisation" not in result.METRICS
    with pytest.raises(InputError, match="on nodes with GPUs"):
        GpuUse(result)
    with_them = simulate(SPEC, [Job(run=5, **HALF)], "fcfs")
    assert with_them.METRICS.keys() <= with_them.metrics().keys()
    table = compare([result, with_them], ["gpu_utilisation"])
    assert np.isnan(table["gpu_utilisation"]).tolist() == [True, False]


def test_a_file_that_does_not_say_what_was_held_has_no_such_metrics(tmp_path):
    result = simulate(SPEC, [Job(run=5, **HALF)], "fcfs")
    result.to_json(tmp_path / "a.json", jobs=True)
    assert "gpu_utilisation" not in load_result(tmp_path / "a.json").metrics()


def fragments(mix, cores, left, kind):
    """Return the free thousandths of a node that a mix cannot use, by the definition of the paper."""
    total, found = sum(count for count, *_ in mix), 0.0
    for count, wanted, each, number, types in mix:
        fits = each and kind in types and cores >= wanted and sum(free >= each for free in left) >= number
        found += count / total * (sum(free for free in left if free < each) if fits else sum(left))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_fragmentation_is_that_of_the_paper_at_each_instant(seed, tmp_path):
    rng = Random(seed)
    jobs = [
        Job(submit=rng.randint(0, 40), run=rng.randint(1, 30), nodes=1, cores_per_node=rng.randint(1, 3), **more)
        for more in rng.choices([{"gpus_per_node": each} for each in (0, 0.25, 0.4, 0.6, 1, 2)], k=40)
    ]
    result = simulate(SPEC, jobs, "easy", seed=seed)
    mix = [(5, 2, 500, 1, ["A100", "T4"]), (3, 4, 1000, 2, ["A100"]), (2, 1, 0, 0, ["A100", "T4"])]
    found = GpuUse(result).fragmentation("5*2/0.5+3*4/2/A100+2*1/0")
    for at in [result.started, *(rng.uniform(result.started, result.ended) for _ in range(40))]:
        free = {node: (6 if node < 2 else 4, [1000] * (2 if node < 2 else 1)) for node in range(4)}
        for run in result.runs.rows():
            if run["start"] <= at < run["end"]:
                [(node, cores, devices)] = zip(run["nodes"], run["cores"], run["devices"], strict=True)
                left = free[node][1]
                for device, part in devices:
                    left[device] -= part
                free[node] = free[node][0] - cores, left
        expected = sum(fragments(mix, *each, "A100" if node < 2 else "T4") for node, each in free.items())
        assert found.at([at])[0] == pytest.approx(expected / 1000), at
    result.to_sqlite(tmp_path / "a.sqlite")
    assert load_result(tmp_path / "a.sqlite").metrics()["gpu_fragmentation"] == result.metrics()["gpu_fragmentation"]


def test_rows_of_a_chart_hold_each_share_once():
    mig = DeviceSpec(name="A100", memory="40GB", slices="mig")
    kinds = [NodeSpec(names="m", cores=16, gpus={"A100": 1}), NodeSpec(names="t", cores=16, gpus={"T4": 2})]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, devices=[mig])])
    asks = [{"gpus_per_node": 2}, {"gpu": "A100:1g.5gb"}, {"gpu": "A100:3g.20gb"}]
    asks += [{"gpus_per_node": 0.3, "gpu": "T4"}, {"gpus_per_node": 0.45, "gpu": "T4"}]
    jobs = [Job(submit=i, run=10, nodes=1, **asks[i % 5]) for i in range(30)]
    result = simulate(spec, jobs, "easy")
    use = GpuUse(result)
    names, row, edges = use.strips("batch")
    assert names == ["m GPU 0", "t GPU 0", "t GPU 1"]
    assert edges[row == result.runs["job"].tolist().index(1)].tolist() == [[1, 3]]
    taken = np.zeros((3000, int(result.ended)))
    for at, (low, high) in zip(row.tolist(), np.rint(edges * 1000).astype(int).tolist(), strict=True):
        taken[low:high, int(use.held["start"][at]) : int(use.held["end"][at])] += 1
    assert taken.max() == 1
    assert taken.sum() / 1000 == pytest.approx(use.allocated().integral())


def test_a_gantt_chart_has_rows_by_gpu(tmp_path):
    result = simulate(SPEC, [Job(run=9, **HALF), Job(run=5, nodes=1, gpus_per_node=1)], "fcfs")
    ax = result.plot.gantt(by="gpu")
    assert [text.get_text() for text in ax.get_yticklabels()][:3] == ["a0 GPU 0", "a0 GPU 1", "a1 GPU 0"]
    assert len(ax.collections[0].get_paths()) == 2
    assert result.plot.gpus().get_ylabel() == "GPUs"
    result.to_html(tmp_path / "page.html")
    with pytest.raises(InputError, match="unknown rows 'device'"):
        result.plot.gantt(by="device")
    counted = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus=4)])])
    with pytest.raises(InputError, match="needs devices told apart"):
        simulate(counted, [Job(run=9, nodes=1, gpus_per_node=1)], "fcfs").plot.gantt(by="gpu")
