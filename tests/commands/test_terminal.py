"""The command line as a process among others: standard output as a file, progress bars, and interrupts."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.commands import outputs

BLOCKING = """import os, pathlib, threading
def blocks(view):
    pathlib.Path(f"worker-{os.getpid()}").touch()
    threading.Event().wait(600)
def blocks_too(view):
    return blocks(view)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---------------------------------------------------------------------- standard output


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("command", "option", "begin"),
    [
        (["batch", "probe-4"], "--schedule", "job,submit,start,end"),
        (["batch", "probe-4"], "--json", "{"),
        (["batch", "probe-4"], "--trace", "{"),
        (["batch", "probe-4"], "--plot", "\x89PNG"),
        (["batch", "probe-4", "--at", "10min"], "--snapshot", "{"),
        (["compare", "probe-4", "--policies", "fcfs,easy"], "--table", "result,"),
        (["machine", "hetsim-slow", "fork-join"], "--schedule", "task,"),
        (["meta", "probe-4", "--clusters", "12,12"], "--json", "{"),
        (["portfolio", "probe-4"], "--choices", "time,"),
        (["generate", "poisson", "--jobs", "3"], "--output", "; "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value.strip(),
)
def test_a_dash_is_standard_output(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], command: list[str], option: str, begin: str
) -> None:
    assert main([*command, option, "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(begin.encode("latin-1"))
    if begin == "{":
        json.loads(out)
    assert (b"written to" in err, list(folder.iterdir())) == (False, [])
    assert bool(err) == (command[0] != "generate")  # the summary


def test_a_file_may_be_called_dash(folder: Path) -> None:
    assert main(["batch", "probe-4", "--schedule", "./-"]) == 0
    assert [path.name for path in folder.iterdir()] == ["-"]


def test_only_one_file_is_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "probe-4", "--json", "-", "--schedule", "-"]) == 2
    assert capsys.readouterr().err == "simmodel: --schedule - and --json - exclude each other\n"
    assert main(["batch", "probe-4", "--db", "-"]) == 2
    assert capsys.readouterr().err == "simmodel: --db: must be a file, got standard output\n"


def test_a_quiet_command_prints_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "probe-4", "--quiet", "--json", "r.json"]) == 0
    assert capsys.readouterr() == ("", "")
    assert json.loads(Path("r.json").read_text())["metrics"]["jobs"] == 4


# ---------------------------------------------------------------------- times


def test_times_may_have_units(folder: Path) -> None:
    for until in ("86400", "1d", "24h", "1440min"):
        assert main(["batch", "lublin-128-week", "--until", until, "--schedule", f"{until}.csv"]) == 0
    assert len({path.read_text() for path in folder.glob("*.csv")}) == 1
    for options in (["--gap", "60", "--run", "3600"], ["--gap", "1min", "--run", "1h"]):
        assert main(["generate", "poisson", "--jobs", "20", *options, "-o", f"{options[1]}.swf"]) == 0
    assert len({path.read_text() for path in folder.glob("*.swf")}) == 1


# ---------------------------------------------------------------------- progress

LOG = ["batch", "lublin-128-week"]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("terminal", "lasting", "arguments", "shown"),
    [
        (True, 0.0, LOG, True),
        (True, 60.0, LOG, False),  # the run is shorter
        (False, 0.0, LOG, False),
        (True, 0.0, [*LOG, "--no-progress"], False),
        (True, 0.0, [*LOG, "--quiet"], False),
        (False, 60.0, [*LOG, "--progress"], True),
        (True, 0.0, ["compare", "probe-4", "--policies", "fcfs,easy"], True),
        (True, 0.0, ["machine", "hetsim-slow", "fork-join"], True),
        (True, 0.0, ["list", "platforms"], False),
    ],
)
def test_a_bar_appears_in_a_terminal_if_the_run_lasts(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    lasting: float,
    arguments: list[str],
    shown: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(outputs, "LASTING", lasting)
    assert main(arguments) == 0
    assert ("100%" in capsys.readouterr().err) == shown


# ---------------------------------------------------------------------- interrupts


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.few(1)
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    "command",
    [
        ["compare", "probe-4"],
        ["explore", "--platforms", "small", "--workloads", "probe-4", "--seeds", "1"],
        ["whatif", "s.json"],
    ],
    ids=lambda command: command[0],
)
def test_an_interrupt_of_the_parent_ends_its_workers(folder: Path, command: list[str]) -> None:
    assert main(["batch", "probe-4", "--snapshot", "s.json", "--at", "955"]) == 0
    (folder / "blocking_policies.py").write_text(BLOCKING)
    policies = "blocking_policies:blocks,blocking_policies:blocks_too"
    with subprocess.Popen(
        [sys.executable, "-m", "simmodel", *command, "--policies", policies, "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    ) as parent:
        for _ in range(600):
            if len(workers := list(folder.glob("worker-*"))) == 2 or parent.poll() is not None:
                break
            time.sleep(0.1)
        assert len(workers) == 2
        begin = time.monotonic()
        parent.send_signal(signal.SIGINT)
        out, err = parent.communicate(timeout=60)
        took = time.monotonic() - begin
    assert (parent.returncode, out, err) == (130, "", "\n")
    for each in workers:
        process = int(each.name.removeprefix("worker-"))
        for _ in range(100):
            if not alive(process):
                break
            time.sleep(0.05)
        assert not alive(process)
    assert took < 30  # of the 600 s that the workers block; about a tenth of a second on an idle machine


@pytest.mark.few(1)
@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
@pytest.mark.parametrize(
    "command",
    [["batch", "probe-4"], ["grid", "tiers-30", "--broker", "least-loaded", "--until", "100"]],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("on_a_terminal", [True, False])
def test_a_live_page_outlasts_its_run_on_a_terminal_alone(command: list[str], on_a_terminal: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "simmodel", *command, "--live"],
        stdin=theirs if on_a_terminal else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    ) as run:
        os.close(theirs)
        said = ""
        while "until Ctrl-C" not in said:
            try:
                read = os.read(ours, 4096).decode()
            except OSError:  # the other side has been closed
                break
            if not read:
                break
            said += read
        assert "the run is shown at http://127.0.0.1:" in said
        assert ("the run is over; its page is served until Ctrl-C" in said) == on_a_terminal
        if on_a_terminal:
            run.send_signal(signal.SIGINT)
        assert run.wait(60) == 0
    os.close(ours)
