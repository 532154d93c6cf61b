"""``simmodel grid``: what it writes, and that wrong input ends it with one sentence."""

import csv
import json
import sqlite3

import pytest

from simmodel.cli import main
from simmodel.generators import tiered_grid
from simmodel.platform import write_toml
from simmodel.results import load_result

JOBS = "job,submit,run,processors\n1,0,10,1\n2,5,10,8\n"


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_toml(tiered_grid(3, files=5, seed=1), "grid.toml")
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def refused(capsys, *arguments):
    """Return the one sentence with which the command ends."""
    assert main(["grid", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1
    return said.err


@pytest.mark.long  # smaller grids: the other tests of the file
def test_a_ready_grid_has_ready_jobs(capsys):
    assert main(["grid", "tiers-30", "--broker", "round-robin"]) == 0
    said = capsys.readouterr().out
    assert "6,000 finished" in said
    assert "T1-3" in said
    assert "nothing skipped" not in said


def test_what_was_skipped_is_told_once(grid, capsys):
    head = "pandaid,creationtime,cpuconsumptiontime,computingsite,corecount,inputfilebytes,outputfilebytes\n"
    (grid / "bad.csv").write_text(head + "7,10,100,T0,8,0,50\n8,25,ten,T0,1,0,0\n")
    assert main(["grid", "grid.toml", "--jobs", "bad.csv", "--skip-bad-rows"]) == 0
    said = capsys.readouterr().out
    assert said.count("skipped") == said.count("skipped 1 (bad cpuconsumptiontime 1)") == 1


def test_rejected_jobs_are_in_the_data_set(grid):
    (grid / "wide.csv").write_text(JOBS + "3,7,10,1000\n4,2,10,2000\n")
    arguments = ["--db", "a.sqlite", "--csv", "rows", "--json", "a.json"]
    assert main(["grid", "grid.toml", "--jobs", "wide.csv", *arguments]) == 0
    assert json.loads((grid / "a.json").read_text())["metrics"]["jobs"] == 4
    with sqlite3.connect(grid / "a.sqlite") as database:
        jobs = database.execute("SELECT job, state, submit, reason <> '' FROM jobs ORDER BY job").fetchall()
        told = database.execute("SELECT job, time, event, free_cores FROM events WHERE job > 2 ORDER BY job").fetchall()
    assert jobs == [(1, "finished", 0, 0), (2, "finished", 5, 0), (3, "rejected", 7, 1), (4, "rejected", 2, 1)]
    assert told == [(job, at, event, None) for job, at in ((3, 7), (4, 2)) for event in ("created", "rejected")]
    with open(grid / "rows" / "jobs.csv", encoding="utf-8", newline="") as file:
        rows = {row["job"]: row for row in csv.DictReader(file)}
    assert (rows["3"]["state"], rows["3"]["grid_pending"], rows["1"]["grid_pending"]) == ("rejected", "", "0")


def test_every_file_is_written(grid, capsys):
    pytest.importorskip("matplotlib")
    arguments = ["--db", "a.sqlite", "--csv", "rows", "--json", "a.json", "--plot", "a.png"]
    assert main(["grid", "grid.toml", "--jobs", "jobs.csv", *arguments]) == 0
    said = capsys.readouterr().out
    assert "data set (simmodel) written to a.sqlite and rows" in said
    assert json.loads((grid / "a.json").read_text())["metrics"]["jobs"] == 2
    assert (grid / "a.png").read_bytes()[1:4] == b"PNG"
    with sqlite3.connect(grid / "a.sqlite") as database:
        rows = database.execute("SELECT count(*) FROM jobs").fetchone()[0]
    assert rows == 2
    with open(grid / "rows" / "jobs.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2


@pytest.mark.parametrize("name", ["jobs.db", "jobs.parquet"])
def test_jobs_are_streamed_and_told_as_those_in_memory(grid, capsys, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    arguments = ["grid", "grid.toml", "--jobs", "jobs.csv", "--broker", "round-robin"]
    assert main([*arguments, "--json", "whole.json"]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert main([*arguments, "--stream", name, "--db", "events.db", "--json", "streamed.json"]) == 0
    streamed = capsys.readouterr().out.splitlines()
    assert [line for line in streamed if line not in whole and "microseconds" not in line] == [
        "  data set (simmodel) written to events.db: 12 rows of events, 2 rows of jobs",
        f"  jobs written to {name}",
        "  json written to streamed.json",
    ]
    assert load_result(name).jobs["state"].tolist() == ["finished", "finished"]
    documents = [json.loads((grid / f"{each}.json").read_text()) for each in ("whole", "streamed")]
    assert documents[0]["metrics"] == documents[1]["metrics"]


def test_a_streamed_run_has_no_picture(grid, capsys):
    pytest.importorskip("matplotlib")
    said = refused(capsys, "grid.toml", "--jobs", "jobs.csv", "--stream", "jobs.db", "--plot", "a.png")
    assert "--stream and --plot exclude each other" in said


@pytest.mark.parametrize("schema", ["cgsim-states", "cgsim-events"])
def test_the_grid_command_writes_cgsims_schemas(grid, schema):
    assert main(["grid", "grid.toml", "--jobs", "jobs.csv", "--db", "a.sqlite", "--schema", schema]) == 0
    with sqlite3.connect(grid / "a.sqlite") as database:
        assert database.execute("SELECT count(*) FROM EVENTS").fetchone()[0] > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["grid.toml"], "grid.toml: missing jobs: CONFIG names none; pass --jobs"),
        (
            ["kth-sp2", "--jobs", "jobs.csv"],
            "kth-sp2: must be a grid, got a cluster: 'simmodel batch' replays logs on it",
        ),
        (["a100x4"], "a100x4: must be a grid, got a machine: 'simmodel machine' runs tasks on it"),
        (["tiers-31"], "unknown platform 'tiers-31'; did you mean 'tiers-30'?"),
        (["grid.toml", "--jobs", "nothing.csv"], "nothing.csv"),
        (["grid.toml", "--jobs", "jobs.csv", "--sites", "s.json"], "--sites needs a configuration of CGSim (JSON)"),
        (["grid.toml", "--jobs", "jobs.csv", "--broker", "least-laoded"], "did you mean 'least-loaded'?"),
        (["grid.toml", "--jobs", "elsewhere.csv", "--broker", "recorded"], "T9"),
        (["grid.toml", "--jobs", "jobs.csv", "--skip-bad-rows"], "--skip-bad-rows needs jobs of CGSim, got jobs.csv"),
        (["grid.toml", "--jobs", "jobs.csv", "--data-policy", "fcfs"], "policy 'fcfs' decides when jobs start"),
        (["grid.toml", "--jobs", "jobs.csv", "--broker", "prefetch"], "policy 'prefetch' decides which files"),
        (["grid.toml", "--jobs", "jobs.csv", "--policy", "recorded"], "policy 'recorded' decides which system"),
        (["config.json"], "config.json"),
    ],
)
def test_wrong_input_is_one_sentence(grid, capsys, arguments, sentence):
    (grid / "elsewhere.csv").write_text("job,submit,run,processors,site\n1,0,10,1,T9\n")
    assert sentence in refused(capsys, *arguments)


DAX = """<adag jobCount="3">
  <job id="a" name="first" runtime="10"><uses file="raw" link="input" size="1000"/>
    <uses file="x" link="output" size="{size}"/></job>
  <job id="b" name="next" runtime="10"><uses file="x" link="input" size="{size}"/></job>
  <job id="c" name="next" runtime="10"><uses file="x" link="input" size="{size}"/></job>
  <child ref="b"><parent ref="{parent}"/></child>
  <child ref="c"><parent ref="a"/></child>
</adag>
"""


@pytest.mark.parametrize("broker", ["round-robin", "heft"])
def test_a_workflow_runs_over_the_sites(grid, capsys, broker):
    (grid / "flow.dax").write_text(DAX.format(size=5e6, parent="a"))
    assert main(["grid", "grid.toml", "--workload", "flow.dax", "--broker", broker, "--json", "a.json"]) == 0
    said = capsys.readouterr().out
    assert "flow: 1 file that must exist before its tasks run begin at T0" in said
    assert "3 finished" in said
    assert json.loads((grid / "a.json").read_text())["metrics"]["jobs"] == 3
    assert main(["grid", "grid.toml", "--jobs", "flow.dax", "--home", "T1-1", "--html", "page.html"]) == 0
    assert "begin at T1-1" in capsys.readouterr().out
    assert (grid / "page.html").stat().st_size > 10_000


def test_wrong_workflows_are_refused_as_by_their_readers(grid, capsys):
    (grid / "bad.dax").write_text(DAX.format(size=5, parent="x"))
    assert "bad.dax, line 6: ref of <parent>: unknown job 'x'" in refused(capsys, "grid.toml", "--jobs", "bad.dax")
    (grid / "ring.dax").write_text(DAX.format(size=5, parent="b"))
    assert "cycle" in refused(capsys, "grid.toml", "--jobs", "ring.dax")
    (grid / "flow.dax").write_text(DAX.format(size=5, parent="a"))
    assert "unknown place 'T9'" in refused(capsys, "grid.toml", "--jobs", "flow.dax", "--home", "T9")
    streamed = refused(capsys, "grid.toml", "--jobs", "flow.dax", "--stream", "jobs.db")
    assert "wait" in streamed
