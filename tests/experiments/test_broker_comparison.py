"""Comparison of brokers: repeated runs, tables and errors."""

import pytest

from simmodel.experiments.broker_comparison import compare_brokers, inner_jobs
from simmodel.foundation.display import text_table
from simmodel.foundation.errors import InputError
from simmodel.generators.lublin_feitelson import lublin
from simmodel.policies.mapping import RoundRobin
from simmodel.work.job import Job
from simmodel.work.transformations import scale_load
from simmodel.work.workload import Workload


def test_brokers_that_draw_are_repeated_and_the_others_are_not() -> None:
    log = scale_load(lublin(120, 16, seed=2), to=3)
    found = compare_brokers([16, 16], log, {"chance": "random", "turns": RoundRobin(), "best": "sgs-t"}, repeat=4)
    assert [len(found.waits(label)) for label in found.results] == [4, 1, 1]
    assert found.interval("best") is None
    interval = found.interval("chance")
    assert interval is not None
    assert interval.mean == pytest.approx(found.waits("chance").mean())
    table = found.by("processors")
    assert table["chance error"][-1] == pytest.approx(interval.half_width)
    assert table["best error"][-1] == 0
    assert table["change"][-1] == pytest.approx(table["best"][-1] / table["chance"][-1] - 1)
    assert table["jobs"][-1] == 120
    assert found["best"].name == "best"
    tied = compare_brokers([16, 16], log, {"random": "random", "sgs-t": "sgs-t(ties=random)"}, repeat=2)
    assert [len(tied.waits(label)) for label in tied.results] == [2, 2]
    assert tied.by("walltime")["jobs"][-1] == 120
    own = compare_brokers([16, 16], log, ["sgs-t"], bins={"processors": [0, 4, 16]})
    assert own.by("processors")["bin"].tolist()[:2] == ["(0,4]", "(4,16]"]


def test_wrong_comparisons_are_refused() -> None:
    jobs = [Job(run=1)]
    with pytest.raises(InputError, match="brokers: must be a list of brokers, got 'random'"):
        compare_brokers([4, 4], jobs, "random")
    with pytest.raises(InputError, match="brokers: must have at least one broker"):
        compare_brokers([4, 4], jobs, [])
    with pytest.raises(InputError, match="repeat: must be at least one run"):
        compare_brokers([4, 4], jobs, ["random"], repeat=[])


def test_edges_are_taken_off_what_can_run() -> None:
    log = Workload({"submit": [0, 1, 2, 3, 4], "run": [1] * 5, "processors": [1, 9, 1, 1, 1]})
    found = compare_brokers([4, 4], log, ["sgs-t"], edges=1)
    assert found["sgs-t"].jobs["submit"].tolist() == [2, 3]
    assert inner_jobs(found["sgs-t"], 0) is found["sgs-t"]


def test_text_tables_stand_in_columns() -> None:
    assert text_table([["a", "n"], ["longer", "1"]], indent=2) == ["  a       n", "  longer  1"]


def test_jobs_that_can_be_read_once_are_read_for_all_brokers() -> None:
    jobs = [Job(processors=4, run=10), Job(processors=4, run=10)]
    found = compare_brokers([4, 4], iter(jobs), ["random", "sgs-t"])
    assert [len(found[label].jobs) for label in found.results] == [2, 2]
