"""Results of grids come back from files as they were, and wrong files are refused in one sentence."""

import json

import matplotlib as mpl

mpl.use("Agg")

import pytest

from simmodel import Environment, simulate
from simmodel.foundation.errors import InputError
from simmodel.generators import grid_jobs, tiered_grid
from simmodel.results import load_result
from simmodel.results.grid import GridResult
from simmodel.systems.grid.system import Grid

SPEC = tiered_grid(6, files=20, seed=1)
RESULT = simulate(SPEC, grid_jobs(SPEC, 40, seed=1), "round-robin")


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite"])
def test_a_stored_result_comes_back(kind, tmp_path):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "stored"
    getattr(RESULT, f"to_{kind}")(path)
    found = load_result(path)
    assert isinstance(found, GridResult)
    assert list(found.flows.rows()) == list(RESULT.flows.rows())
    assert list(found.sites.rows()) == list(RESULT.sites.rows())
    assert found.places["tier"].tolist() == RESULT.places["tier"].tolist()
    assert found.numbers() == pytest.approx(RESULT.numbers(), nan_ok=True)
    assert found.plot.flows().get_xlabel() == "to"


def test_json_with_jobs_comes_back_without_the_other_tables(tmp_path):
    RESULT.to_json(tmp_path / "grid.json", jobs=True)
    found = load_result(tmp_path / "grid.json")
    assert isinstance(found, GridResult)
    assert found.jobs["site"].tolist() == RESULT.jobs["site"].tolist()
    assert len(found.flows) == 0


def test_an_empty_grid_is_stored_and_drawn(tmp_path):
    empty = Grid(Environment(), SPEC).result()
    empty.to_csv(tmp_path / "empty")
    assert len(load_result(tmp_path / "empty").flows) == 0
    assert empty.plot.overview().axes


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("\nT1-1,", "\nT9,", 1), "flows.source, row 1: must be one of 6 sites, got 'T9'"),
        (lambda text: text.replace("failed", "fialed"), "flows: missing column failed"),
        (lambda text: text.replace(",0\n", ",-1\n"), "flows.failed, row 1: must be a number >= 0, got -1"),
    ],
)
def test_wrong_flows_are_refused(tmp_path, change, sentence):
    RESULT.to_csv(tmp_path / "stored")
    file = tmp_path / "stored" / "flows.csv"
    file.write_text(change(file.read_text()))
    with pytest.raises(InputError, match=sentence):
        load_result(tmp_path / "stored")


def test_a_trace_has_a_process_for_each_site(tmp_path):
    RESULT.to_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    named = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert [name.split(",")[0] for name in named] == [*(site.name for site in SPEC.sites), "queue"]
    assert sum(event["ph"] == "X" for event in events) == len(RESULT.runs)
