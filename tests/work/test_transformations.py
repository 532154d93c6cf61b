"""Transformations return a new workload with the requested property, and leave the old one unchanged."""

import numpy as np
import pytest

from simmodel.formats.swf import read_swf
from simmodel.generators.lublin_feitelson import lublin
from simmodel.work.transformations import between, first, merge, offered_load, scale_load, select, shift
from simmodel.work.workload import Workload
from tests.helpers.data_files import data_file


def workload(**columns):
    base = {"submit": [10, 20, 40], "run": [5, np.nan, 7], "processors": [2, 1, -1], "requested_processors": [2, 1, 3]}
    return Workload({**base, **columns}, name="w", processors=4)


def test_the_load_is_the_processor_seconds_by_the_machine_s():
    assert offered_load(workload()) == (2 * 5 + 3 * 7) / (4 * 30)
    assert offered_load(workload(), 8) == (2 * 5 + 3 * 7) / (8 * 30)
    with pytest.raises(ValueError, match="does not have the size"):
        offered_load(Workload({"submit": [1, 2], "run": [1, 1], "processors": [1, 1]}))
    with pytest.raises(ValueError, match="more than one instant"):
        offered_load(workload(submit=[1, 1, 1]))


@pytest.mark.parametrize(
    ("name", "load"),
    [("KTH-SP2-1996-2-filtered", 0.686), ("SDSC-SP2-1998-4-filtered", 0.823), ("NASA-iPSC-1993-3.1-cln", 0.466)],
)
def test_the_load_of_real_logs(name, load):
    assert offered_load(read_swf(data_file(f"swf/{name}.swf.gz"))) == pytest.approx(load, abs=0.0006)


def test_scale_load_scales_the_gaps_between_submissions():
    log = lublin(500, seed=1)
    before = log["submit"].copy()
    assert offered_load(scale_load(log, 1.5)) == pytest.approx(1.5 * offered_load(log))
    assert offered_load(scale_load(log, to=0.9)) == pytest.approx(0.9)
    assert offered_load(scale_load(log, to=0.9, processors=64), 64) == pytest.approx(0.9)
    assert (scale_load(log, 2)["run"] == log["run"]).all()
    assert scale_load(log, 2)["submit"][0] == before[0]
    assert (log["submit"] == before).all()
    scaled = scale_load(workload(cancel=[np.nan, 25, np.nan]), 2)
    assert scaled["submit"].tolist() == [10, 15, 25]
    assert scaled["cancel"][1] == 20  # still five seconds after the submission
    for wrong in ({}, {"factor": 1, "to": 1}, {"factor": 0}, {"to": -1}):
        with pytest.raises(ValueError, match=r"must (have|be)"):
            scale_load(log, **wrong)


def test_parts_and_selections():
    log = workload(user=[1, 2, 1], queue=["a", "b", "c"])
    assert first(log, 2)["submit"].tolist() == [10, 20]
    assert first(log, 9)["submit"].tolist() == [10, 20, 40]
    assert between(log, 20)["submit"].tolist() == [20, 40]
    assert between(log, end=20)["submit"].tolist() == [10]
    assert select(log, user=1)["submit"].tolist() == [10, 40]
    assert select(log, lambda jobs: jobs["submit"] > 10, queue=["a", "c"])["submit"].tolist() == [40]
    assert shift(log, 5)["submit"].tolist() == [15, 25, 45]
    assert len(log) == 3
    with pytest.raises(KeyError, match="unknown column 'account'"):
        select(log, account=1)
    with pytest.raises(ValueError, match="jobs: must be >= 0"):
        first(log, -1)


def test_merge_numbers_anew_and_keeps_who_precedes_whom():
    one = workload(preceding=[-1, 1, 2], user=[5, 6, -1])
    two = Workload(
        {
            "submit": [20, 5],
            "run": [1, 2],
            "processors": [1, 1],
            "job": [2, 1],
            "preceding": [1, 77],
            "queue": ["q", ""],
        },
        name="two",
        processors=9,
    )
    both = merge(one, two)
    assert both["job"].tolist() == [1, 2, 3, 4, 5]
    assert both["submit"].tolist() == [5, 10, 20, 20, 40]
    assert both["source"].tolist() == ["two", "w", "w", "two", "w"]
    assert both["preceding"].tolist() == [-1, -1, 2, 1, 3]
    assert both["user"].tolist() == [-1, 5, 6, -1, -1]
    assert both["queue"].tolist() == ["", "", "", "q", ""]
    assert both["requested_processors"].tolist() == [-1, 2, 1, -1, 3]
    assert (both.name, both.processors) == ("w+two", 9)
    assert "_new" not in both
    aligned = merge(one, two, align=True, own_users=True)
    assert aligned["submit"].tolist() == [0, 0, 10, 15, 30]
    assert aligned["user"].tolist() == ["w:5", "", "w:6", "", ""]
    with pytest.raises(ValueError, match="workloads: must have at least one"):
        merge()


def test_merge_keeps_numbers_that_do_not_meet():
    one = workload(job=[1, 2, 3])
    two = workload(job=[10, 20, 30])
    both = merge(one, two)
    assert both["job"].tolist() == [1, 10, 2, 20, 3, 30]
    assert merge(one)["job"].tolist() == [1, 2, 3]


def test_merged_reports_add_up():
    one, two = workload(job=[1, 2, 3]), workload(job=[4, 5, 6])
    one.report.skipped["x"] += 2
    two.report.skipped["x"] += 3
    assert merge(one, two).report.skipped == {"x": 5}
    assert one.report.skipped == {"x": 2}
