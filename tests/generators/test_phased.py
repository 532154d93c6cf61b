"""Workloads in phases: the classes of the SchedTwin experiment."""

from __future__ import annotations

import numpy as np
import pytest

from simmodel.generators.phased import SCHEDTWIN, schedtwin


def test_classes_and_bounds_of_the_paper_s_workload():
    assert [(each.jobs, each.nodes, each.walltime) for each in SCHEDTWIN] == [
        (25, (2, 4), (60, 180)),
        (35, (16, 20), (500, 700)),
        (40, (6, 8), (200, 300)),
        (50, (2, 4), (60, 180)),
    ]
    seen = []
    for seed in range(20):
        log = schedtwin(seed=seed)
        assert log["submit"].tolist() == [5.0 * i for i in range(150)]
        assert (log["run"] == log["requested"]).all()
        first = 0
        for each in SCHEDTWIN:
            rows = slice(first, first + each.jobs)
            for name, (low, high) in (("processors", each.nodes), ("requested", each.walltime)):
                assert low <= log[name][rows].min() <= log[name][rows].max() <= high
            first += each.jobs
        seen.append(log)
    assert {int(n) for log in seen for n in log["processors"][25:60]} == {16, 17, 18, 19, 20}
    assert {float(log["requested"][60:100].max()) for log in seen} >= {300.0}
    assert (seen[0]["requested"] != seen[1]["requested"]).any()
    assert (schedtwin(seed=0)["requested"] == schedtwin(rng=np.random.default_rng(0))["requested"]).all()


def test_run_times_are_shares_of_the_walltime():
    half, drawn = schedtwin(run_share=0.5, seed=2), schedtwin(run_share=(0.2, 0.8), seed=2)
    assert (half["run"] == half["requested"] / 2).all()
    share = drawn["run"] / drawn["requested"]
    assert 0.2 <= share.min() < 0.3 < 0.7 < share.max() <= 0.8
    assert (half["requested"] == drawn["requested"]).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"run_share": 0}, "run_share: must be 0 < least <= most <= 1, got 0"),
        ({"run_share": (0.5, 2)}, "run_share: must be 0 < least <= most <= 1"),
        ({"processors": 19}, "classes: must have at most 19 nodes per job, got 20"),
        ({"gap": -1}, "gap: must be >= 0 s"),
        ({"classes": []}, "classes: must have at least one job, got none"),
        (
            {"classes": [{"jobs": 1, "nodes": [4, 2], "walltime": 60}]},
            "nodes: must be whole numbers 1 <= least <= most",
        ),
        ({"classes": [{"jobs": 1, "node": 2, "walltime": 60}]}, "classes: each must have jobs, nodes and walltime"),
        ({"classes": [{"jobs": -1, "nodes": 2, "walltime": 60}]}, "jobs: must be a whole number >= 0"),
    ],
)
def test_wrong_classes_get_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        schedtwin(**options)
