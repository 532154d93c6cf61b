"""The commands ``calibrate`` and ``resume``: configurations, studies that are continued, and wrong input."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from simmodel.cli import main
from simmodel.experiments import Study
from simmodel.platform.toml import to_toml
from simmodel.work.table import Table, rows_of
from tests.helpers.calibration_cases import hidden_grid
from tests.helpers.examples import up_to
from tests.helpers.paths import ROOT

CONFIG = """\
record = "record.csv"

[model]
platform = "grid.toml"
workload = "jobs.csv"
policy = "recorded"

[parameters]
"sites.*.speed" = [0.25, 4, "log", "each"]
"sites.*.overhead.mean" = [30, 3600, "log", "each"]

[loss]
walltime = 1
queue_time = 1

[method]
name = "cmaes"
budget = 12
intervals = false
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with the configuration of a small grid, its jobs and its record."""
    case = hidden_grid(2, 15, cores=(100, 200), seed=5)
    (tmp_path / "grid.toml").write_text(to_toml(case.model.platform))
    row = rows_of(case.model.workload["job"], case.record["job"])
    panda = {"pandaid": case.record["job"], "creationtime": case.record["submit"], "starttime": case.record["start"]}
    panda |= {"endtime": case.record["end"], "computingsite": case.record["site"], "inputfilebytes": np.zeros(len(row))}
    panda |= {"corecount": case.record["processors"], "cpuconsumptiontime": case.model.workload["run"][row]}
    for name in ("jobs.csv", "record.csv"):
        Table(panda).to_csv(tmp_path / name)
    (tmp_path / "c.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_budget(budget: int) -> None:
    """Write the configuration with another number of trials."""
    Path("c.toml").write_text(CONFIG.replace("budget = 12", f"budget = {budget}"))


def test_a_calibration_is_continued_and_resumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budget = up_to(12, 7)
    with_budget(budget)
    whole = ["calibrate", "c.toml", "--study", "whole.sqlite", "--runs", "whole.csv"]
    assert main(whole) == 0
    said = capsys.readouterr().out
    assert said.startswith("Calibration of 4 parameters: loss ")
    assert f"{budget} trials" in said
    with_budget(5)
    assert main(["calibrate", "c.toml", "--study", "parts.sqlite", "-q"]) == 0
    with_budget(budget)
    assert main(["calibrate", "c.toml", "--study", "parts.sqlite", "--runs", "parts.csv", "--plot", "e.png"]) == 0
    assert (folder / "parts.csv").read_text() == (folder / "whole.csv").read_text()
    assert (folder / "e.png").stat().st_size > 5000
    assert main(["resume", "parts.sqlite", "--table", "v.csv"]) == 0
    assert len(Study("parts.sqlite")) == budget
    assert len((folder / "v.csv").read_text().splitlines()) == 5


def test_no_trial_is_lost_or_counted_twice_when_a_process_is_killed(folder: Path) -> None:
    budget = up_to(18, 10)
    with_budget(budget)
    command = [sys.executable, "-m", "simmodel", "calibrate", "c.toml", "--study", "s.sqlite", "-q"]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    while process.poll() is None and _ended("s.sqlite") < 5:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = _ended("s.sqlite")
    assert before >= 5
    assert main(["resume", "s.sqlite", "-q"]) == 0
    assert main(["calibrate", "c.toml", "--study", "again.sqlite", "-q"]) == 0
    with Study("s.sqlite") as killed, Study("again.sqlite") as again:
        assert [trial.number for trial in killed.trials("finished")] == list(range(budget))
        assert killed.table["loss"].tolist() == again.table["loss"].tolist()


def _ended(path: str) -> int:
    if not Path(path).exists():
        return 0
    try:
        with sqlite3.connect(path, timeout=10) as database:
            return int(database.execute("SELECT count(*) FROM trials WHERE state = 'finished'").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.exhaustive
def test_four_processes_share_one_study(folder: Path) -> None:
    with_budget(40)
    command = [sys.executable, "-m", "simmodel", "calibrate", "c.toml", "-q", "--study"]
    several = [subprocess.Popen([*command, "s.sqlite"], env={**os.environ, "PYTHONPATH": str(ROOT)}) for _ in range(4)]
    assert [process.wait() for process in several] == [0, 0, 0, 0]
    assert subprocess.run([*command, "one.sqlite"], env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode == 0
    with Study("s.sqlite") as shared, Study("one.sqlite") as one:
        assert [trial.number for trial in shared.trials("finished")] == list(range(40))
        assert shared.table["loss"].tolist() == one.table["loss"].tolist()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"sites.*.speed"', '"sites.S07.speed"', "sites.S07.speed: unknown name 'S07'; did you mean"),
        ("[0.25, 4,", "[4, 0.25,", "c.toml, parameters.sites.*.speed: must have low < high, got 4 and 0.25"),
        ("walltime = 1", "walltime = nan", "c.toml, loss.walltime: must be a number > 0, got nan"),
        ("walltime = 1", "waltime = 1", "c.toml, loss: unknown loss 'waltime'; did you mean 'walltime'?"),
        ('"cmaes"', '"cma"', "c.toml, method.name: unknown method 'cma'; did you mean 'cmaes'?"),
        ("budget = 12", "budgets = 12", "c.toml, method.budgets: unknown key 'budgets'; did you mean 'budget'?"),
        ('"record.csv"', '"gone.csv"', "gone.csv"),
    ],
)
def test_a_wrong_configuration_is_refused(
    old: str, new: str, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "c.toml").write_text(CONFIG.replace(old, new))
    assert main(["calibrate", "c.toml"]) == 2
    out, err = capsys.readouterr()
    assert sentence in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_record_without_a_site_or_of_others_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (folder / "record.csv").read_text().splitlines()
    (folder / "record.csv").write_text("\n".join([lines[0], *(line for line in lines if ",S00," in line)]))
    assert main(["calibrate", "c.toml"]) == 2
    assert "sites.S01.speed: the record has no jobs of 'S01' to fit it to" in capsys.readouterr().err
    (folder / "record.csv").write_text("\n".join(line.replace(",S0", ",X0") for line in lines))
    assert main(["calibrate", "c.toml"]) == 2
    assert "has no jobs of the sites of the parameters: it has 'X01', 'X00', not" in capsys.readouterr().err


def test_a_study_of_something_else_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_budget(3)
    assert main(["calibrate", "c.toml", "--study", "s.sqlite", "-q"]) == 0
    (folder / "c.toml").write_text(CONFIG.replace("0.25, 4", "0.25, 5"))
    assert main(["calibrate", "c.toml", "--study", "s.sqlite"]) == 2
    assert "s.sqlite: is a study with another parameters" in capsys.readouterr().err
    assert main(["calibrate", "size-from-starts"]) == 0
    assert "partitions[0].processors       8" in capsys.readouterr().out
    assert np.isfinite(Study("s.sqlite").table["loss"]).all()
