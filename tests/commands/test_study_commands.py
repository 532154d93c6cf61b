"""Experiments in files: what they describe, the sentences for wrong ones, interrupts and continuation."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from simmodel import InputError, Scenario, simulate
from simmodel.cli import main
from simmodel.commands.experiments import EXPERIMENTS
from simmodel.experiments import Study, optimise, sensitivity
from simmodel.experiments.configuration import Weighted, configuration_of_study, read_configuration
from tests.helpers.new_process import environment

MODEL = """
[model]
platform = 16
workload = "probe-4"
policy = "fcfs"
"""
PROCESSORS = '[parameters]\n"partitions[0].processors" = [8, 16, "integer"]\n'
GOOD = f'outputs = ["wait_mean", "makespan"]\n{MODEL}\n{PROCESSORS}\n[method]\nsamples = 4\nseed = 3\n'
SEARCH = f"""
objectives = {{ wait = "wait_mean", size = {{ "partitions[0].processors" = 2 }} }}
{MODEL}
{PROCESSORS}policy = ["fcfs", "easy"]
[method]
budget = 10
population = 4
"""


def written(folder: Path, text: str, name: str = "study.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ---------------------------------------------------------------------- what a file describes


def test_a_file_is_the_call_that_it_describes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, GOOD)
    assert main(["sensitivity", str(path), "--table", str(tmp_path / "t.csv"), "--runs", str(tmp_path / "r.csv")]) == 0
    said = capsys.readouterr().out
    model = Scenario.of(16, "probe-4", "fcfs")
    ranges = {"partitions[0].processors": (8, 16, "integer")}
    same = sensitivity(model, ranges, ["wait_mean", "makespan"], samples=4, seed=3)
    assert same.summary("wait_mean") in said
    assert same.summary("makespan") in said
    same.table.to_csv(tmp_path / "same.csv")
    assert (tmp_path / "t.csv").read_text() == (tmp_path / "same.csv").read_text()
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 1 + len(same.runs)

    path = written(tmp_path, SEARCH)
    assert main(["optimise", str(path)]) == 0
    objectives: Any = {"wait": "wait_mean", "size": Weighted({"partitions[0].processors": 2})}
    choices = {**ranges, "policy": ["fcfs", "easy"]}
    assert optimise(model, choices, objectives, budget=10, population=4).summary() in capsys.readouterr().out


def test_paths_are_those_of_the_folder_and_results_are_models(tmp_path: Path) -> None:
    simulate(12, "probe-4", "easy", until=5000).to_json(tmp_path / "run.json")
    path = written(tmp_path, GOOD.replace(MODEL, '[model]\nscenario = "run.json"\nuntil = "1h"\n'))
    found = read_configuration(path, EXPERIMENTS["sensitivity"].shape())
    assert isinstance(found.model, Scenario)
    assert (found.model.platform.processors, found.model.policy, found.model.until) == (12, "easy", 3600)
    (tmp_path / "mine.toml").write_text('kind = "cluster"\npartitions = [{ processors = 9 }]\n')
    (tmp_path / "log.csv").write_text("submit,run,processors\n0,5,2\n")
    changed = GOOD.replace("platform = 16", 'platform = "mine.toml"').replace("probe-4", "log.csv")
    model = read_configuration(
        written(tmp_path, 'study = "kept.sqlite"\n' + changed), EXPERIMENTS["sensitivity"].shape()
    ).model
    assert isinstance(model, Scenario)
    assert model.platform.processors == 9
    assert len(model.workload) == 1


def test_functions_are_models_and_outputs_of_files_that_are_trusted(tmp_path: Path) -> None:
    text = """
    outputs = { whole = "operator:itemgetter" }
    [model]
    function = "tests.commands.test_study_commands:parabola"
    arguments = { shift = 2 }
    [parameters]
    x = [0, 1, "linear"]
    """
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=r"model.function: must not import code, got .*pass trust=True \(--trust\)"):
        read_configuration(path, EXPERIMENTS["sensitivity"].shape())
    found = read_configuration(path, EXPERIMENTS["sensitivity"].shape(), trust=True)
    assert found.model(x=3) == 11  # type: ignore[operator]
    assert callable(found.outputs("outputs")["whole"])
    assert sensitivity(found.model, found.space, samples=3).influential() == ["x"]


def parabola(x: float, shift: float = 0) -> float:
    return x**2 + shift


WRONG = [
    (GOOD.replace("[method]", "[mehtod]"), "mehtod: unknown key 'mehtod'; did you mean 'method'?"),
    (GOOD.replace("samples = 4", "sample = 4"), "method.sample: unknown key 'sample'; did you mean 'samples'?"),
    (GOOD.replace("samples = 4", "samples = 1"), "method.samples: must be a whole number >= 2, got 1"),
    (GOOD.replace("samples = 4", 'name = "moris"'), "method.name: unknown method 'moris'; did you mean 'morris'?"),
    (GOOD.replace("seed = 3", "seed = -3"), "method.seed: must be a whole number >= 0, got -3"),
    (GOOD.replace('processors"', 'procesors"'), "unknown field 'procesors'; did you mean 'processors'?"),
    (GOOD.replace("8, 16,", "16, 8,"), "parameters.partitions[0].processors: must have low < high, got 16 and 8"),
    (
        GOOD.replace(', "integer"', ""),
        'must be [8, 16, "linear"], or another scale, for a range, or {',
    ),
    (GOOD.replace('"wait_mean"', '"wait"'), "outputs: unknown metric 'wait'"),
    (GOOD.replace('"wait_mean"', '"makespan"'), "outputs[0]: duplicate name 'makespan'"),
    (GOOD.replace('"wait_mean"', '"a:b"'), "outputs[0]: must not import code, got 'a:b'"),
    (GOOD.replace('"fcfs"', '"a:b"'), "model.policy: must be a known policy, got 'a:b', which imports code"),
    (GOOD.replace('"fcfs"', '"fcsf"'), "unknown policy 'fcsf'; did you mean 'fcfs'?"),
    (GOOD.replace('"probe-4"', '"probe-5"'), "unknown workload 'probe-5'; did you mean 'probe-4'?"),
    (GOOD.replace("platform = 16", 'platform = "smal"'), "model: unknown platform 'smal'; did you mean 'small'?"),
    (
        GOOD.replace("platform = 16", "platfrom = 16"),
        "model.platfrom: unknown key 'platfrom'",
    ),
    (GOOD.replace("platform = 16", "until = 2020-01-01"), "must have texts, numbers, lists and tables, got a date"),
    (GOOD.replace(MODEL, "[model]\n"), "model: missing key 'workload'"),
    (GOOD.replace(MODEL, ""), "missing key 'model'"),
    (GOOD.replace(PROCESSORS, "[parameters]\n"), "parameters: must have a parameter, got none"),
    (GOOD.replace("[method]", "[method"), "invalid TOML"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_wrong_files_get_one_sentence(
    text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, text)
    assert main(["sensitivity", str(path)]) == 2
    out, err = capsys.readouterr()
    assert sentence in err
    assert err.startswith(f"simmodel: {path}")
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("budget = 10", "budget = 0", "method.budget: must be a whole number >= 1, got 0"),
        ('"wait_mean"', '"-wiat_mean"', "unknown metric 'wiat_mean'; did you mean 'wait_mean'?"),
        ('= 2 }', '= "x" }', "objectives.size.partitions[0].processors: must be a number, got \"x\""),
        ('{ "partitions[0].processors" = 2 }', "{ policy = 2 }", "objectives.size.policy: unknown key 'policy'"),
        ('"easy"]', '"fcfs"]', "parameters.policy: choices: must be different values, got ['fcfs', 'fcfs']"),
        ('"easy"]', '"m:f"]', "parameters.policy: must be a known policy, got 'm:f', which imports code"),
    ],
)  # fmt: skip
def test_wrong_searches_get_one_sentence(
    old: str, new: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in SEARCH
    assert main(["optimise", str(written(tmp_path, SEARCH.replace(old, new)))]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1


def test_wrong_names_and_studies_get_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    study = tmp_path / "by-hand.sqlite"
    optimise(parabola, {"x": (0, 1)}, ["value"], budget=2, study=study)
    for arguments, sentence in (
        (["sensitivity", "screen-machin"], "unknown experiment 'screen-machin'; did you mean 'screen-machine'?"),
        (["sensitivity", str(tmp_path / "none.toml")], "no such file"),
        (["sensitivity", "size-cluster"], "objectives: unknown key 'objectives'"),
        (["resume", str(tmp_path / "none.sqlite")], "no such study"),
        (["resume", str(tmp_path)], "must be a file, got a folder"),
        (["resume", str(empty)], "must be a study, got an empty file"),
        (["resume", str(written(tmp_path, GOOD))], "must be a study, got a file that is no SQLite database"),
        (["resume", str(study)], "one that was begun in Python goes on by the same call"),
    ):
        assert main(arguments) == 2
        assert sentence in capsys.readouterr().err.lower().replace("sqlite", "SQLite").replace("python", "Python")


# ---------------------------------------------------------------------- studies


def test_a_study_goes_on_without_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, study = written(tmp_path, SEARCH), tmp_path / "runs.sqlite"
    assert main(["optimise", str(path)]) == 0
    whole = capsys.readouterr().out
    few = written(tmp_path, SEARCH.replace("budget = 10", "budget = 6"))
    assert main(["optimise", str(few), "--study", str(study)]) == 0
    assert "6 runs" in capsys.readouterr().out
    assert main(["optimise", str(written(tmp_path, SEARCH)), "--study", str(study)]) == 0  # with a larger budget
    assert capsys.readouterr().out == whole
    path.unlink()
    with Study(study) as kept:
        kept.retry()
        again = configuration_of_study(kept, EXPERIMENTS["optimise"].shape())
    assert again.kept is not None
    assert again.method["budget"] == 10
    assert main(["resume", str(study)]) == 0
    assert capsys.readouterr().out == whole
    other = written(tmp_path, SEARCH.replace("population = 4", "population = 5"))
    assert main(["optimise", str(other), "--study", str(study)]) == 2
    assert "is a study with another method" in capsys.readouterr().err


SLOW = """
import time

def slow(x, y):
    time.sleep(0.02)
    return x + 2 * y
"""


@pytest.mark.long  # smaller: the other tests of the file
@pytest.mark.parametrize("experiment", ["optimise", pytest.param("sensitivity", marks=pytest.mark.exhaustive)])
def test_an_interrupted_command_keeps_its_runs_and_is_resumed(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, SLOW, "slow.py")
    key = "outputs" if experiment == "sensitivity" else "objectives"
    more = "[method]\nsamples = 12" if experiment == "sensitivity" else "[method]\nbudget = 36\npopulation = 6"
    written(
        tmp_path,
        f'{key} = ["value"]\nstudy = "runs.sqlite"\n[model]\nfunction = "slow:slow"\n'
        f'[parameters]\nx = [0, 1, "linear"]\ny = [0, 1, "linear"]\n{more}\n',
    )
    command = [sys.executable, "-m", "simmodel", experiment, "study.toml", "--trust"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment())
    file = tmp_path / "runs.sqlite"
    while process.poll() is None and (not file.exists() or _finished(file) < 4):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    with Study(file) as study:
        done = study.counts["finished"]
        assert 4 <= done < 36
        assert experiment == "optimise" or study.counts["queued"] == len(study) - done
        assert study.counts["running"] == 0
        kept = {trial.number: trial.outcome for trial in study.trials("finished")}
    assert err.strip().endswith(f"interrupted: {done} runs are kept; 'simmodel resume {file}' goes on")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["resume", str(file), "--trust"]) == 0
    resumed = capsys.readouterr().out
    assert main([experiment, str(tmp_path / "study.toml"), "--trust", "--study", str(tmp_path / "other.sqlite")]) == 0
    assert capsys.readouterr().out == resumed
    with Study(file) as study:
        assert study.counts == {"queued": 0, "running": 0, "finished": len(study), "failed": 0}
        assert {number: study.trials()[number].outcome for number in kept} == kept


def _finished(file: Path) -> int:
    try:
        with Study(file) as study:
            return study.counts["finished"]
    except InputError:  # its tables are not made yet
        return 0
