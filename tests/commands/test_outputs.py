"""The output files of commands: never an input of the command, another output, or a file that must not be replaced."""

import os
import re
import sqlite3
import subprocess
import sys
from inspect import getsource
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.commands.experiments import Experiment
from simmodel.commands.parser import command_parser
from simmodel.commands.values import output, source
from simmodel.results import load_result
from tests.helpers.commands_there import ALL, SPELLED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with a log, a snapshot, links to them, a platform and a generator's settings."""
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "poisson", "--jobs", "5", "--processors", "8", "-o", "in.swf"]) == 0
    assert main(["batch", "in.swf", "--snapshot", "in.json", "--at", "100", "-q"]) == 0
    Path("link").symlink_to("in.swf")
    Path("in-json").symlink_to("in.json")
    os.link("in.swf", "hard")
    Path("logs").mkdir()
    Path("logs", "in.swf").write_bytes(Path("in.swf").read_bytes())
    Path("small.toml").write_text('kind = "cluster"\n[[partitions]]\nprocessors = 8\n')
    Path("draw.toml").write_text('generator = "lublin"\n[parameters]\njobs = 5\nprocessors = 8\n')
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("batch in.swf --json in.swf", "in.swf: --json must be another file than an input"),
        ("batch in.swf --schedule link", "link: --schedule must be another file than an input"),
        ("batch link --trace ./in.swf", "in.swf: --trace must be another file than an input"),
        ("batch in.swf --db hard --force", "hard: --db must be another file than an input"),
        ("batch in.swf --platform small.toml --json small.toml", "small.toml: --json must be another file"),
        ("batch logs --json logs/in.swf", "logs/in.swf: --json must be another file than an input"),
        ("compare in.swf --policies fcfs --table in.swf", "in.swf: --table must be another file than an input"),
        ("whatif in.json --policies fcfs --json in.json", "in.json: --json must be another file than an input"),
        ("whatif in.json --policies fcfs --arrivals draw.toml --table draw.toml", "draw.toml: --table must be"),
        ("meta probe-4 in.swf --clusters 12,small.toml --schedule in.swf", "in.swf: --schedule must be another"),
        ("meta probe-4 --clusters 12,small.toml --schedule small.toml", "small.toml: --schedule must be another"),
        ("portfolio in.swf --choices in.swf", "in.swf: --choices must be another file than an input"),
        ("generate draw.toml -o draw.toml", "draw.toml: --output must be another file than an input"),
        ("batch in.swf --json out --schedule ./out", "out: --schedule and --json must be different files"),
        ("batch in.swf --json in.json --schedule in-json", "in.json: --schedule and --json must be different files"),
        ("batch in.swf --json logs", "logs: must be a file to write, got a folder"),
        ("batch in.swf --db -", "--db: must be a file, got standard output"),
    ],
)
def test_an_output_is_neither_an_input_nor_another_output(
    folder: Path, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    before = files(folder)
    capsys.readouterr()
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err[:10], err.count("\n")) == ("", "simmodel: ", 1)
    assert said in err
    assert files(folder) == before


WRITTEN_OTHERWISE = {"generate output", "grid csv", "grid db"}


@pytest.mark.parametrize("name", SPELLED)
def test_every_declared_output_is_written(name: str) -> None:
    run, parser = command_parser(name)
    text = getsource(Experiment if run.__module__ == Experiment.__module__ else run)
    outputs = {action.dest for action in parser._actions if action.type is output}
    assert [each for each in outputs if f"{each}=" not in text and f"{name} {each}" not in WRITTEN_OTHERWISE] == []


FILES = re.compile(r"FILE|LOG|CONFIG|PLATFORM|WORKLOAD|MODEL|SNAPSHOT|SCHEDULE\b|AUDIT|STUDY|OUT")


@pytest.mark.parametrize("name", SPELLED)
def test_every_argument_of_a_file_says_whether_it_is_read_or_written(name: str) -> None:
    for action in command_parser(name)[1]._actions:
        said = action.type in (source, output)
        elsewhere = name == "twin install-hooks" and action.dest != "hold"  # of the hosts of the scheduler
        assert said or elsewhere or not FILES.search(str(action.metavar)), action


PAIRS = [
    (name, read.dest, written.dest)
    for name in SPELLED
    for actions in [command_parser(name)[1]._actions]
    for read in actions
    for written in actions
    if read.type is source and written.type is output
]


@pytest.mark.few(40)
@pytest.mark.parametrize(("name", "read", "written"), PAIRS)
def test_no_output_of_any_command_is_its_input(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, read: str, written: str
) -> None:
    Path("mine.swf").write_text("mine")
    words = name.split()
    for action in command_parser(name)[1]._actions:
        value = "./mine.swf" if action.dest == written else "mine.swf" if action.dest == read else "other"
        value = str(action.choices[0]) if action.choices else "slurm" if action.dest == "scheduler" else value
        needed = action.required or action.dest in (read, written)
        if needed:
            words += [*action.option_strings[-1:], value]
    before = files(folder)
    capsys.readouterr()
    assert main(words) == 2
    option = "output" if written == "output" else written
    assert capsys.readouterr().err == f"simmodel: mine.swf: --{option} must be another file than an input\n"
    assert files(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        "verify in.swf starts.csv --policy easy --table starts.csv",
        "identify in.swf starts.csv --table starts.csv",
        *(["twin shadow in.swf --policy fcfs --table in.swf"] if "twin" in ALL else []),
        "calibrate study.toml --table in.swf",
        "calibrate study.toml --runs deep/other.csv",
        "calibrate study.toml --study runs.sqlite --table runs.sqlite",
    ],
)
def test_inputs_are_never_replaced(folder: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert main(["batch", "in.swf", "--schedule", "starts.csv", "-q"]) == 0
    Path("deep").mkdir()
    Path("deep", "other.csv").write_text("job\n")
    Path("study.toml").write_text('record = "in.swf"\n[parts]\nlists = [["deep/other.csv"]]\n')
    before = files(folder)
    assert main(words.split()) == 2
    assert "must be another file than an input\n" in capsys.readouterr().err
    assert files(folder) == before


def test_a_name_that_is_no_input_may_be_a_folder_of_outputs(folder: Path) -> None:
    Path("fcfs").mkdir()
    for _ in range(2):
        assert main(["compare", "in.swf", "--policies", "fcfs", "--table", "fcfs/table.csv"]) == 0


def test_a_foreign_database_is_replaced_only_by_force(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    before = files(folder)
    for option in ("--db", "--json", "--schedule"):
        assert main(["batch", "in.swf", option, "other.db"]) == 2
        assert capsys.readouterr().err.endswith("other.db: cannot be replaced: it is a database of another program\n")
    assert files(folder) == before
    assert main(["batch", "in.swf", "--db", "other.db", "--force"]) == 0
    assert len(load_result("other.db").jobs) == 5


def test_devices_are_written(folder: Path) -> None:
    words = ["--json", "/dev/null", "--schedule", "/dev/null", "--db", "/dev/null", "--trace", "/dev/null"]
    assert main(["batch", "in.swf", *words]) == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("target", ["/dev/stdout", "out.csv"])
def test_the_path_of_standard_output_is_standard_output(folder: Path, target: str) -> None:
    with open("out.csv", "w") as file:
        done = subprocess.run(
            [sys.executable, "-m", "simmodel", "batch", "in.swf", "--schedule", target],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        )
    lines = Path("out.csv").read_text().splitlines()
    assert (done.returncode, lines[0][:10], len(lines)) == (0, "job,submit", 6)
    assert "mean wait" in done.stderr
