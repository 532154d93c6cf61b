"""The commands machine and explore: their output files, and one sentence for each invalid input."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.results import load_result

BEGIN = "task,processor,ready,setup_start,setup_end,reconfiguration_end,transfer_start,transfer_end,start,end"

MACHINE = """
kind = "machine"
pools = [{ name = "ram" }, { name = "hbm", size = "16GB" }]
architectures = [{ name = "x86" }, { name = "gpu", performance = [1, 4] }]
links = [{ name = "bus", bandwidth = "25MBps", between = ["ram", "hbm"] }]

[[processors]]
name = "cpu"
count = 2
type = "CPUCore"
architecture = "x86"
pool = "ram"

[[processors]]
name = "gpu"
type = "GPU"
architecture = "gpu"
pool = "hbm"
setup = 10
dma = true
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(MACHINE)
    (tmp_path / "two.dot").write_text('digraph { 1 [size="2e9"] 2 [size="3e9"] 1 -> 2 [size="800"] }')
    return tmp_path


def rows(path: str) -> list[list[str]]:
    with open(path, newline="") as file:
        return list(csv.reader(file))


# ---------------------------------------------------------------------- machine


def test_machine_writes_every_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--schedule", "s.csv", "--json", "j.json", "--db", "d.sqlite", "--trace", "t.json", "--plot", "p.png"]
    assert main(["machine", "mine.toml", "random:tasks=12", "--policy", "heft", "--seed", "2", *options]) == 0
    said = capsys.readouterr().out
    assert said.startswith("random:tasks=12 under heft on ")
    assert "makespan" in said
    assert "plot written to p.png" in said
    found = rows("s.csv")
    assert ",".join(found[0]).startswith(BEGIN)
    assert len(found) == 13
    document = json.loads(Path("j.json").read_text())
    assert document["metrics"]["tasks"] == 12
    assert document["scenario"]["seed"] == 2
    with sqlite3.connect("d.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (12,)
    connection.close()
    assert load_result("d.sqlite").metrics()["makespan"] == document["metrics"]["makespan"]
    assert json.loads(Path("t.json").read_text())["traceEvents"]
    assert Path("p.png").stat().st_size > 1000


def ends(*options: str) -> list[str]:
    assert (
        main(["machine", "mine.toml", "layered:n=15,fat=0.6", "--policy", "hrr", "--schedule", "o.csv", *options]) == 0
    )
    found = rows("o.csv")
    return [row[found[0].index("end")] for row in found[1:]]


def test_seeds_and_rules_reach_the_run(folder: Path) -> None:
    plain = ends("--seed", "1")
    assert ends("--seed", "1") == plain
    for other in (["--seed", "2"], ["--seed", "1", "--overlap"]):
        assert ends(*other) != plain, other
    json_of = ["--seed", "1", "--no-contention", "--decide", "submit", "--transfers", "parallel", "--json", "j.json"]
    ends(*json_of)
    scenario = json.loads(Path("j.json").read_text())["scenario"]
    assert scenario["options"] == {
        "contention": False,
        "decide": "submit",
        "transfers": "parallel",
        "overlap": False,
        "core_held": "run",
    }
    assert scenario["until"] is None


def test_a_configuration_of_hetsim_says_what_is_drawn(folder: Path) -> None:
    (folder / "h.cfg").write_text("min_task_runtime = 5\nmax_task_runtime = 5\n")
    assert main(["machine", "mine.toml", "random:tasks=4", "--config", "h.cfg", "--schedule", "s.csv"]) == 0
    found = rows("s.csv")
    at = found[0].index("expected_run")
    on_cores = [float(row[at]) for row in found[1:] if row[1].startswith("cpu")]
    assert on_cores
    assert set(on_cores) == {5.0}


def test_the_critical_path_is_said_step_by_step(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machine", "mine.toml", "random:tasks=3", "--critical", "--until", "1e9"]) == 0
    said = capsys.readouterr().out
    assert "because of" in said
    assert "arrival" in said


ONE = ["--platforms", "mine.toml", "--workloads", "random:tasks=3", "--policies"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["machine", "hetsim-slw", "random:tasks=3"], "unknown platform 'hetsim-slw'; did you mean 'hetsim-slow'"),
        (["machine", "kth-sp2", "random:tasks=3"], "kth-sp2: must be a platform that runs tasks, got a cluster"),
        (["machine", "mine.toml", "random:task=3"], "unknown key 'task'; did you mean 'tasks'?"),
        (["machine", "mine.toml", "nowhere.dax"], "nowhere.dax"),
        (["machine", "mine.toml", ""], "must be a generator, the name of a machine workload or a path, got ''"),
        (["machine", "mine.toml", "layered:n=nan"], "n: must be a whole number >= 1, got 'nan'"),
        (["machine", "mine.toml", "layered:n=5,fat=nan"], "fat: must be a number from 0 to 1, got 'nan'"),
        (["explore", *ONE, "hrr", "--metrics", ","], "--metrics: must name at least one metric, got ','"),
        (["explore", "--platforms", "mine.toml,mine.toml", "--workloads", "x", "--policies", "hrr"], "platform once"),
        (["machine", "mine.toml", "random:tasks=3", "--policy", "hft"], "unknown policy 'hft'; did you mean 'heft'"),
        (["machine", "mine.toml", "random:tasks=3", "--policy", "easy"], "decides when jobs start on"),
        (["machine", "mine.toml", "random:tasks=3", "--policy", "sjf"], "decides when jobs start on"),
        (["machine", "mine.toml", "two.dot"], "task"),
        (["machine", "mine.toml", "random:tasks=3", "--config", "none.cfg"], "none.cfg"),
        (["machine", "mine.toml", "random:tasks=3", "--plot", "p.doc"], "a picture"),
        (["machine", "mine.toml", "random:tasks=3", "--trace", "no/t.json"], "no folder"),
        (["explore", "--platforms", "mine.toml,kth-sp2", "--workloads", "x", "--policies", "hrr"], "got both"),
        (["batch", "layered:n=40"], "layered:n=40, generator: 'layered' generates tasks for a machine, not jobs"),
        (["batch", "lublin:job=40"], "parameters.job: unknown key 'job'; did you mean 'jobs'?"),
        (["explore", *ONE, "hrr,hrr"], "duplicate policy 'hrr'"),
        (["explore", *ONE, "hrr", "--metrics", "sl"], "unknown metric 'sl'; did you mean 'slr'?"),
        (["explore", "--platforms", "kth-sp2", "--workloads", "probe-4", "--policies", "easy", "--overlap"],
         "a cluster has no option --overlap"),
    ],
)  # fmt: skip
def test_wrong_input_gets_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("simmodel: ")
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("seeds", ["0", "x", "", "1,x"])
def test_wrong_seeds_are_refused(folder: Path, capsys: pytest.CaptureFixture[str], seeds: str) -> None:
    assert main(["explore", "--platforms", "a", "--workloads", "b", "--policies", "c", "--seeds", seeds]) == 2
    assert "--seeds: must be a whole number >= 1, or seeds separated by commas" in capsys.readouterr().err


# ---------------------------------------------------------------------- explore


def test_a_seed_counts_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", *ONE, "hrr", "--seeds", "1,1"]) == 2
    assert "--seeds: must name each seed once, got '1,1'" in capsys.readouterr().err


def test_explore_prints_means_with_intervals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    varied = ["--platforms", "mine.toml,hetsim-slow", "--workloads", "random:tasks=9", "layered:n=9", "--seeds", "3"]
    files = ["--table", "t.csv", "--samples", "s.csv", "--plot", "e.png"]
    assert main(["explore", *varied, "--policies", "hrr,heft", *files]) == 0
    said = capsys.readouterr().out
    assert "2 platforms x 2 workloads x 2 policies x 3 seeds" in said
    assert said.count(" ± ") >= 8
    assert len(rows("t.csv")) == 9
    assert rows("t.csv")[0][:7] == [
        "platform",
        "workload",
        "policy",
        "seeds",
        "makespan",
        "makespan_low",
        "makespan_high",
    ]
    assert len(rows("s.csv")) == 1 + 2 * 2 * 2 * 3
    assert Path("e.png").stat().st_size > 1000


def test_explore_runs_on_several_processes_alike(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explore", "--platforms", "mine.toml", "--workloads", "layered:n=9", "--policies", "hrr,heft",
                 "--seeds", "1,2,7", "--metrics", "slr"]  # fmt: skip
    assert main([*arguments, "--samples", "one.csv"]) == 0
    first = capsys.readouterr().out
    assert main([*arguments, "--samples", "two.csv", "--workers", "2"]) == 0
    assert capsys.readouterr().out.replace("two.csv", "one.csv") == first

    def measured(path: str) -> list[list[str]]:
        found = rows(path)
        return [[v for name, v in zip(found[0], row, strict=True) if not name.startswith("decision_")] for row in found]

    assert measured("one.csv") == measured("two.csv")
    assert [row[3] for row in rows("one.csv")[1:4]] == ["1", "2", "7"]


def test_explore_compares_clusters_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--platforms", "small", "--workloads", "poisson-mm4", "--policies", "fcfs,easy",
                 "--seeds", "1"]) == 0  # fmt: skip
    assert "mean wait" in capsys.readouterr().out
    assert main(["explore", "--platforms", "128", "--workloads", "lublin:jobs=60,processors=128", "--policies",
                 "fcfs,easy", "--seeds", "2"]) == 0  # fmt: skip
    assert "±" in capsys.readouterr().out
    assert main(["batch", "lublin:jobs=60,processors=128", "--seed", "2"]) == 0
    assert "60 (60 completed)" in capsys.readouterr().out
