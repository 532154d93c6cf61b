"""A file of runs answers for the experiment that it was asked: what has changed is named, and refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import simmodel
from simmodel import InputError, Job, Workload, explore, replicate
from simmodel.cli import main
from simmodel.experiments import calibrate

SCRIPT = """
from functools import partial
from pathlib import Path
from simmodel import Backfill, Job, Workload, explore, replicate
from simmodel.experiments import calibrate

FACTOR = 2.0

def doubled(value):
    return FACTOR * value

def make(scale):
    def model(seed, offset=1.0):
        return {{"v": scale * doubled(seed) + offset}}
    return model

class Narrow:
    def __init__(self, most=2):
        self.most = most
    def decide(self, view):
        from simmodel import Start
        for job in view.waiting:
            if view.places[0].fits(job) and job.processors <= self.most:
                yield Start(job, view.places[0])

class Greedy:
    def decide(self, view):
        from simmodel import Start
        for job in view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])

def fcfs(view):
    from simmodel import Start
    for job in view.waiting:
        if not view.places[0].fits(job):
            break
        yield Start(job, view.places[0])

jobs = Workload({{"submit": [0, 0, 1], "run": [5, 10, 20], "processors": [2, 2, 1]}})
calls = []

def times(x):
    calls.append(x)
    return {{"walltime": [x * 2, x * 3]}}

replicate(make(3.0), 3, study={folder!r} + "/closure.sqlite")
replicate(lambda seed: {{"v": 7.0 + seed}}, 3, study={folder!r} + "/lambda.sqlite")
explore("small.toml", "log.swf", ["easy"], seeds=1, study={folder!r} + "/files.sqlite")
policies = {{"mine": fcfs, "narrow": Narrow(2), "greedy": Greedy()}}
explore(4, jobs, policies, seeds=1, study={folder!r} + "/policies.sqlite")
kept = {folder!r} + "/model.sqlite"
calibrate(times, {{"walltime": [4.0, 6.0]}}, {{"x": (0, 10)}}, method="random", budget=4, study=kept)
"""
LOG = "; MaxProcs: 4\n1 0 0 100 2 -1 -1 -1 200 -1 1 1 1 -1 -1 -1 -1 -1\n"
PLATFORM = 'kind = "cluster"\n[[partitions]]\nprocessors = 4\n'
EDITS = [
    ("scale * doubled(seed) + offset", "scale * doubled(seed) - offset", "function"),
    ("make(3.0)", "make(4.0)", "function"),
    ("offset=1.0", "offset=2.0", "function"),
    ("FACTOR = 2.0", "FACTOR = 3.0", "function"),
    ("return FACTOR * value", "return FACTOR + value", "function"),
    ("7.0 + seed", "9.0 + seed", "function"),
    ("            break\n", "            continue\n", "policies mine"),
    ("Narrow(2)", "Narrow(1)", "policies narrow"),
    ("if view.places[0].fits(job):\n", "if view.places[0].fits(job) and job.id:\n", "policies greedy"),
    ("job.processors <= self.most", "job.processors < self.most", "policies narrow"),
    ('"run": [5, 10, 20]', '"run": [5, 10, 21]', "workloads "),
    ('"x": (0, 10)', '"x": (0, 11)', "parameters"),
    ("[x * 2, x * 3]", "[x * 2, x * 4]", "model"),
    ("[4.0, 6.0]", "[4.0, 6.5]", "record walltime"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(LOG)
    Path("small.toml").write_text(PLATFORM)
    return tmp_path


def run(text: str, folder: Path, hash_seed: int = 0) -> str:
    """Run a script in a process of its own; return the last line of its error."""
    (folder / "script.py").write_text(text.format(folder=str(folder)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stderr.splitlines()[-1] if done.returncode else ""


@pytest.mark.parametrize("edits", [EDITS[:1], pytest.param(EDITS, marks=pytest.mark.long)], ids=len)
def test_an_unchanged_script_goes_on_and_each_edit_is_named(folder: Path, edits: list[tuple[str, str, str]]) -> None:
    assert run(SCRIPT, folder) == ""
    assert run(f"# a comment, which moves all lines\n{SCRIPT}", folder, hash_seed=1) == ""
    for before, after, part in edits:
        assert SCRIPT.count(before) >= 1
        said = run(SCRIPT.replace(before, after), folder)
        assert f"is a study with another {part}" in said, (before, said)
        assert said.endswith("; force=True (--force) goes on with it")
    for name, text, part in (
        ("log.swf", LOG.replace(" 100 ", " 150 "), "workloads log"),
        ("small.toml", PLATFORM.replace("4", "5"), "platforms small"),
    ):
        kept = Path(name).read_text()
        Path(name).write_text(text)
        if name == "log.swf" or len(edits) > 1:
            assert f"is a study with another {part}" in run(SCRIPT, folder)
        Path(name).write_text(kept)
    assert len(edits) == 1 or run(SCRIPT, folder) == ""


def test_another_version_of_simmodel_is_another_study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(seed: int) -> dict[str, float]:
        return {"v": 1.0}

    replicate(one, 3, study="s.sqlite")
    monkeypatch.setattr(simmodel, "__version__", "99.0")
    with pytest.raises(InputError, match=r"is a study with another version of simmodel: 0\.\d\.0 instead of 99\.0"):
        replicate(one, 3, study="s.sqlite")


def test_force_goes_on_and_from_then_on_it_is_the_new_experiment(folder: Path) -> None:
    replicate(lambda seed: {"v": 1.0}, 3, study="s.sqlite")
    with pytest.raises(InputError, match="is a study with another function"):
        replicate(lambda seed: {"v": 99.0}, 4, study="s.sqlite")
    forced = replicate(lambda seed: {"v": 99.0}, 4, study="s.sqlite", force=True)
    assert sorted(forced.samples["v"].tolist()) == [1.0, 1.0, 1.0, 99.0]
    again = replicate(lambda seed: {"v": 99.0}, 5, study="s.sqlite")
    assert sorted(again.samples["v"].tolist()) == [1.0, 1.0, 1.0, 99.0, 99.0]


def test_a_file_may_move_and_a_function_may_count_its_calls(folder: Path) -> None:
    calls: list[float] = []
    count = 0

    def model(x: float) -> dict[str, list[float]]:
        nonlocal count
        count += 1
        calls.append(x)
        return {"walltime": [2 * x]}

    for budget in (3, 6):
        calibrate(model, {"walltime": [4.0]}, {"x": (0, 10)}, method="random", budget=budget, study="m.sqlite")
    explore(4, "log.swf", ["easy"], seeds=1, study="s.sqlite")
    Path("deep").mkdir()
    Path("log.swf").rename("deep/log.swf")
    explore(4, Path("deep/log.swf"), ["easy"], seeds=1, study="s.sqlite")


def test_commands_go_on_with_force(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "explore --platforms small.toml --workloads log.swf --policies easy --seeds 1 --study s.sqlite"
    assert main(words.split()) == 0
    Path("log.swf").write_text(LOG.replace(" 100 ", " 150 "))
    capsys.readouterr()
    assert main(words.split()) == 2
    assert "is a study with another workloads" in capsys.readouterr().err
    assert main([*words.split(), "--force"]) == 0


def test_policies_that_are_redefined_do_not_answer_for_each_other(folder: Path) -> None:
    jobs = Workload.from_jobs([Job(submit=i, processors=1 + i % 4, run=100) for i in range(20)])
    first, second = (
        {"mine": eval(f"lambda view: (Start(j, view.places[0]) for j in view.waiting if view.places[0].free {sign} 1)")}
        for sign in (">", ">=")
    )
    for policies in (first, second):
        policies["mine"].__globals__["Start"] = simmodel.Start
    explore(4, jobs, first, seeds=1, study="s.sqlite", until=10)
    explore(4, jobs, first, seeds=1, study="s.sqlite", until=10)
    with pytest.raises(InputError, match="is a study with another policies mine"):
        explore(4, jobs, second, seeds=1, study="s.sqlite", until=10)
