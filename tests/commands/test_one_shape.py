"""One shape of commands: common options mean the same everywhere, texts fit the terminal, runs differ in times."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from simmodel import simulate
from simmodel.cli import main
from simmodel.commands.parser import command_parser
from simmodel.commands.values import output
from simmodel.results import load_result
from tests.helpers.commands_there import ALL, SPELLED
from tests.helpers.terminals import lines_in_terminal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")

COMMANDS = {
    "batch": "probe-4 --set nodes=+2",
    "calibrate": "size-from-starts",
    "compare": "lublin-128-week --policies fcfs,easy,sjf+easy --set nodes=x1.1",
    "completion": "bash",
    "explain": "probe-4 3",
    "explore": "--platforms hetsim-slow --workloads layered:n=20 --policies hrr,heft --seeds 2",
    "generate": "poisson --jobs 3",
    "grid": "tiers-30 --broker least-loaded --until 300",
    "identify": "small.swf",
    "list": "policies",
    "machine": "hetsim-slow fork-join --critical",
    "meta": "probe-4 --clusters 12,12 --broker sgs-t,least-loaded",
    "optimise": "front.toml",
    "portfolio": "probe-4",
    "resume": "kept.sqlite",
    "sensitivity": "screen.toml",
    "verify": "small.swf --policy easy",
    "whatif": "now.json --policies fcfs,easy,sjf+easy",
    "slurm read": "site",
    "slurm replay": "site",
    "twin replay": "probe-4",
    "twin shadow": "small.swf --policy easy",
}
"""A short run of each command."""

LIVE = {
    *("twin check", "twin describe", "twin explain", "twin install-hooks", "twin predict", "twin release"),
    *("twin replay-audit", "twin run", "twin status", "twin submit", "twin watchdog"),
    "demo",
}
"""Those that need a scheduler, or a configuration of one, and the demo, which runs other commands."""

COMMON = {"--json": "all.json", "--csv": "main.csv", "--plot": "picture.png", "--html": "page.html"}
COMMON |= {"--progress": "", "--seed": "1", "--workers": "1"}

SMALL = "; MaxProcs: 8\n" + "".join(
    f"{i + 1} {10 * i} {0 if i < 4 else 60} 100 2 -1 -1 2 200 -1 1 {i % 3} 1 1 1 1 -1 -1\n" for i in range(8)
)
SCREEN = """outputs = ["wait_mean"]
[model]
platform = 12
workload = "probe-4"
policy = "easy"
[parameters]
"partitions[0].processors" = [12, 24, "integer"]
[method]
name = "morris"
samples = 2
"""

FRONT = """[model]
platform = 12
workload = "probe-4"
[parameters]
"partitions[0].processors" = [12, 24, "integer"]
policy = ["fcfs", "easy"]
[objectives]
wait = "wait_mean"
size = { "partitions[0].processors" = 1 }
[method]
name = "random"
budget = 4
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the inputs of the commands."""
    folder = tmp_path_factory.mktemp("shape")
    (folder / "small.swf").write_text(SMALL)
    (folder / "screen.toml").write_text(SCREEN)
    (folder / "front.toml").write_text(FRONT)
    here = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["batch", "probe-4", "--snapshot", "now.json", "--at", "955", "-q"]) == 0
        assert main(["sensitivity", "screen.toml", "--study", "kept.sqlite", "-q"]) == 0
    finally:
        os.chdir(here)
    if "slurm" in ALL:
        from tests.site.helpers.slurm_sacct import sacct_line, site_folder

        (folder / "site").mkdir()
        lines = [sacct_line(i, "-N 4", submit=10 * i, start=100 * i, run=30) for i in range(1, 6)]
        site_folder(folder / "site", lines)
    return folder


def options_of(name: str) -> set[str]:
    return set(command_parser(name)[1]._option_string_actions)


def with_options(name: str) -> str:
    """Return the short run of a command with all common options that it has."""
    files = name.replace(" ", "-")
    has = options_of(name)
    given = [
        f"{option} {files}-{value}" if "." in value else f"{option} {value}"
        for option, value in COMMON.items()
        if option in has
    ]
    return " ".join([name, COMMANDS[name], *given]).strip()


THERE = [name for name in SPELLED if name in COMMANDS]


def test_every_command_is_walked() -> None:
    assert [name for name in SPELLED if name not in COMMANDS and name not in LIVE] == []


@pytest.fixture(scope="module")
def walked(folder: Path) -> dict[str, tuple[int, list[str]]]:
    runs = [with_options(name) for name in THERE]
    kinds = ("brokers", "placements", "resources", "platforms", "workloads", "generators", "experiments")
    lists = [f"list {kind}" for kind in kinds]
    helps = [f"help {name}" for name in ["", *ALL, *SPELLED]]
    return lines_in_terminal(["", *runs, *lists, *map(str.strip, helps)], folder)


FILES = {"completion bash", "generate poisson --jobs 3 --seed 1"}


def test_no_line_is_wider_than_the_terminal(walked: dict[str, tuple[int, list[str]]]) -> None:
    wide = {
        command: line
        for command, (_, lines) in walked.items()
        for line in lines
        if len(line) > 80 and command not in FILES
    }
    assert wide == {}
    assert {command: status for command, (status, _) in walked.items() if status} == {}


def test_what_is_no_terminal_stays_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "lublin-128-week", "--policies", "fcfs,easy"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 80


@pytest.mark.parametrize("name", [name for name in THERE if "--json" in options_of(name)])
def test_json_is_read(name: str, folder: Path, walked: dict[str, tuple[int, list[str]]]) -> None:
    found = json.loads((folder / f"{name.replace(' ', '-')}-all.json").read_text())
    assert isinstance(found, dict)
    assert found


def test_json_is_where_an_answer_is() -> None:
    without = {"completion", "generate", "resume", *LIVE}
    assert {name for name in SPELLED if "--json" not in options_of(name)} <= without
    assert {name for name in THERE if "--json" not in options_of(name)} <= {"completion", "generate"}


ONE_RUN = {
    "batch",
    "completion",
    "explain",
    "generate",
    "grid",
    "list",
    "machine",
    "verify",
    "slurm read",
    "slurm replay",
}


def test_common_options_are_where_they_make_sense() -> None:
    for option, without in {
        "--quiet": {"completion", *LIVE},
        "--progress": {"completion", "generate", "list", "slurm read", *LIVE},
        "--workers": {*ONE_RUN, "twin shadow", *LIVE},
        "--csv": {"completion", "explain", "generate", *LIVE},
    }.items():
        assert {name for name in SPELLED if option not in options_of(name)} <= without, option


@pytest.mark.parametrize("name", SPELLED)
def test_common_options_are_declared_once(name: str) -> None:
    """The files that stand alone do so everywhere, and the csv is that of the main table."""
    actions = command_parser(name)[1]._option_string_actions
    for option in ("--json", "--csv", "--plot"):
        if option in actions:
            assert (actions[option].nargs, actions[option].type) == ("?", output)
    if "--table" in actions and name != "compare":
        assert actions["--csv"] is actions["--table"]
    if "--schedule" in actions and name not in ("identify", "verify", "grid"):
        assert actions["--csv"] is actions["--schedule"]


def test_a_page_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "probe-4", "--html", "run.pdf"]) == 2
    assert capsys.readouterr().err == "simmodel: run.pdf: must end in .html, got '.pdf'\n"


def test_options_that_stand_alone(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(folder)
    assert main(["batch", "probe-4", "--plot", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["jobs"] == 4
    assert Path("overview.png").read_bytes().startswith(b"\x89PNG")
    assert main(["list", "platforms", "--csv", "-q"]) == 0
    assert capsys.readouterr().out.startswith("name,kind,description\r\n")
    assert main(["grid", "tiers-30", "--until", "100", "--csv", "jobs.csv", "-q"]) == 0
    assert Path("jobs.csv").read_text().startswith("job,")


# ---------------------------------------------------------------------- two runs


def without_timing(text: str) -> str:
    document = json.loads(text)
    document.pop("timing", None)
    return json.dumps(document)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", [name for name in THERE if "--json" in options_of(name) and name != "resume"])
def test_two_runs_differ_in_their_timing_alone(
    name: str, folder: Path, walked: dict[str, tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words = [*with_options(name).split(), "-q", "--no-progress"]
    at = words.index("--json") + 1
    before = Path(words[at]).read_text()
    words = [word for word in words if word != "--progress"]
    if "--no-progress" not in options_of(name):
        words.remove("--no-progress")
    at = words.index("--json") + 1
    words[at] = "again.json"
    assert main(words) == 0
    assert without_timing(Path("again.json").read_text()) == without_timing(before)


def test_times_are_read_where_they_stood_and_where_they_stand(tmp_path: Path) -> None:
    result = simulate(4, "probe-4", "easy")
    for name in ("now.json", "before.json"):
        document = json.loads(result.to_json(tmp_path / name, jobs=True))
        if name == "before.json":  # of version 0.2
            document["decisions"] |= document.pop("timing")["decisions"]
            (tmp_path / name).write_text(json.dumps(document))
        assert load_result(tmp_path / name).decisions == result.decisions
    result.to_sqlite(tmp_path / "now.sqlite")
    assert load_result(tmp_path / "now.sqlite").decisions == result.decisions


def test_only_the_line_of_decisions_differs_in_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for _ in range(2):
        assert main(["machine", "hetsim-slow", "fork-join"]) == 0
        said.append([line for line in capsys.readouterr().out.splitlines() if "microseconds" not in line])
    assert said[0] == said[1]


# ---------------------------------------------------------------------- help and completion


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "batch"], ["batch", "--help"], ["help"], ["--help"]):
        assert main(words) == 0
    said = capsys.readouterr().out
    assert said.count("usage: simmodel batch ") == 2
    assert said.count("usage: simmodel COMMAND") == 2
    assert main(["help", "bacth"]) == 2
    assert "did you mean 'batch'?" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_options_and_names(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    for name in ("easy-sjbf", "lublin-128-week", "kth-sp2", "least-loaded", "conservative-keep"):
        assert name in said
    for option in ("backfill-order", "resample"):
        assert option in said


COMPLETED = {
    "simmodel comp": "compare completion",
    "simmodel batch --pl": "--platform --plot",
    "simmodel batch --policy easy-": "easy-sjbf",
    "simmodel compare x --policies easy,cons": "easy,conservative easy,conservative-keep",
    "simmodel batch lublin-2": "lublin-256",
    "simmodel help whati": "whatif",
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import subprocess

    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    tried = "COMP_WORDS=({}); COMP_CWORD={}; _shtab_simmodel; echo ${{COMPREPLY[@]}}"
    lines = [tried.format(line, len(line.split()) - 1) for line in COMPLETED]
    (tmp_path / "try.bash").write_text("\n".join([capsys.readouterr().out, *lines]))
    done = subprocess.run(["bash", "try.bash"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(COMPLETED.values())
