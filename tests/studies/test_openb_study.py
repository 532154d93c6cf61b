"""The fill of openb: the published figures, and what the study draws."""

import csv

import numpy as np
import pytest

from simmodel import Job, Snapshot, simulate, start
from simmodel.formats import read_openb, read_openb_nodes
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.studies.openb import FILL_PLACEMENTS, _placed, drawn, fill_study, replay_study
from tests.helpers.data_files import data_file

NAMES = dict(zip(FILL_PLACEMENTS, ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"), strict=True))


def test_pods_are_shuffled_and_drawn_again_or_left_out():
    jobs = [Job(id=i, run=1, nodes=1, gpus_per_node=gpus) for i, gpus in enumerate([0.5, 1, 2, 0, 4])]
    more, fewer = drawn(jobs, 20, seed=1), drawn(jobs, 5, seed=1)
    assert sorted(job.gpus_per_node for job in more[:5]) == [0, 0.5, 1, 2, 4]
    assert 16 < sum(job.gpus_per_node for job in more) <= 23
    assert sum(job.gpus_per_node for job in fewer) <= 5
    assert [job.submit for job in fewer] == list(range(len(fewer)))
    assert more == drawn(jobs, 20, seed=1) != drawn(jobs, 20, seed=2)


def compare(workload, placements, seeds, within):
    with data_file("gpu/fgd_published.csv").open() as file:
        published = {(row["workload"], row["sc_policy"]): row for row in csv.DictReader(file)}
    found = fill_study(
        data_file(f"gpu/openb_pod_list_{workload}.csv.gz"),
        data_file("gpu/openb_node_list_all_node.csv.gz"),
        placements=placements,
        seeds=seeds,
    )
    for name in placements:
        for asked in (60, 80, 100, 130):
            here = (found["placement"] == name) & np.isclose(found["asked"], asked)
            expected = float(published[workload, NAMES[name]][f"mean_{asked}"])
            assert found["allocated"][here].mean() == pytest.approx(expected, abs=within), (name, asked)
    return found


def test_a_fill_is_near_the_published_ones():
    compare("default", ["gpu-best-fit"], [1], 1.0)


def cut_and_continued(pods, spec, policy, cuts):
    """Return how many starts were compared, and how many of them differ, if a run is cut at some instants."""
    whole = simulate(spec, pods, policy).jobs
    starts = dict(zip(whole["job"].tolist(), whole["start"].tolist(), strict=True))
    sim = start(spec, pods, policy)
    compared = differ = 0
    for at in np.quantile(np.unique(whole["submit"]), np.linspace(0.02, 0.99, cuts)).tolist():
        sim.run(until=at)
        rest = simulate(Snapshot.from_json(sim.snapshot().to_json())).jobs
        pairs = list(zip(rest["job"].tolist(), rest["start"].tolist(), strict=True))
        compared += len(pairs)
        differ += sum(starts[job] != begun for job, begun in pairs)
    return compared, differ


@pytest.mark.parametrize("placement", ["gpu-best-fit", "fgd"])
def test_a_replay_that_is_cut_and_continued_starts_the_same(placement):
    kinds = [NodeSpec(name="a", count=2, cores=16, gpus={"A": 2}), NodeSpec(name="b", cores=16, gpus={"B": 4})]
    rng = np.random.default_rng(3)
    asks = [{"gpus_per_node": 0.46}, {"gpus_per_node": 0.3, "gpu": "B"}, {"gpus_per_node": 2}, {}]
    pods = [
        Job(id=i, submit=i, run=float(rng.integers(5, 60)), nodes=1, cores_per_node=2, **asks[i % 4]) for i in range(40)
    ]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds)])
    placed = _placed(spec, pods, [placement], "lowest")[placement]
    compared, differ = cut_and_continued(pods, placed, "easy", 4)
    assert compared > 50
    assert differ == 0


@pytest.mark.long
@pytest.mark.parametrize("every", [1, 130])
@pytest.mark.parametrize("placement", ["gpu-best-fit", "fgd"])
def test_the_real_times_cut_at_twenty_instants_start_the_same(placement, every):
    pods = read_openb(data_file("gpu/openb_pod_list_default.csv.gz"))
    spec = read_openb_nodes(data_file("gpu/openb_node_list_all_node.csv.gz"))
    placed = _placed(spec, pods.jobs(), [placement], "lowest", every)[placement]
    assert cut_and_continued(pods, placed, "fcfs", 20)[1] == 0


@pytest.mark.long
def test_real_times_load_one_node_in_a_hundred():
    files = (data_file(f"gpu/openb_{name}.csv.gz") for name in ("pod_list_default", "node_list_all_node"))
    [row] = replay_study(*files, placements=["gpu-best-fit"], every=[100]).rows()
    assert (row["nodes"], row["gpus"], row["rejected"]) == (13, 56, 5)
    assert 0 < row["useless"] < row["gpus"] - row["allocated"]


@pytest.mark.exhaustive  # seven minutes
@pytest.mark.parametrize("workload", ["default", "gpushare100", "multigpu50"])
def test_fills_are_within_a_point_of_the_published_means(workload):
    found = compare(workload, FILL_PLACEMENTS, range(1, 11), 1.0)
    last = np.isclose(found["asked"], 130)
    for seed in range(1, 11):
        here = last & (found["seed"] == seed)
        best = found["placement"][here][int(found["allocated"][here].argmax())]
        assert best == "fgd"
