"""The fill of openb: the published figures, and what the study draws."""

import csv

import numpy as np
import pytest

from simmodel import Job
from simmodel.studies.openb import FILL_PLACEMENTS, drawn, fill_study
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


@pytest.mark.exhaustive  # seven minutes
@pytest.mark.parametrize("workload", ["default", "gpushare100", "multigpu50"])
def test_fills_are_within_a_point_of_the_published_means(workload):
    found = compare(workload, FILL_PLACEMENTS, range(1, 11), 1.0)
    last = np.isclose(found["asked"], 130)
    for seed in range(1, 11):
        here = last & (found["seed"] == seed)
        best = found["placement"][here][int(found["allocated"][here].argmax())]
        assert best == "fgd"
