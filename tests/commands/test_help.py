"""The help of the command line: its examples, its cost, and the suggestions for misspelled words."""

import os
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import simmodel.commands
from simmodel import __version__
from simmodel.cli import HELP, START, main
from simmodel.commands import COMMANDS, MODULES
from simmodel.commands.parser import command_parser
from simmodel.commands.values import DECLARED
from tests.helpers.commands_there import ALL, SPELLED
from tests.helpers.new_process import printed

HELPS = ("", "--help", "--version", *ALL)
HEAVY = ("numpy", "simpy", "networkx", "cattrs", "pandas", "matplotlib", "tqdm")


def examples(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  simmodel ")]


@cache
def imported_by_help() -> dict[str, set[str]]:
    """Return the modules that a new process has imported after the help of each command: copies of one process."""
    program = (
        "import contextlib, io, os, sys; from simmodel.cli import main\n"
        f"for arguments in {[arguments_of(name) for name in HELPS]}:\n"
        "    if os.fork():\n"
        "        os.wait()\n"
        "    else:\n"
        "        with contextlib.redirect_stdout(io.StringIO()): status = main(arguments)\n"
        "        print(status, *sys.modules, flush=True)\n"
        "        os._exit(0)\n"
    )
    found = {}
    for name, line in zip(HELPS, printed(program).splitlines(), strict=True):
        status, *modules = line.split()
        assert status == "0"
        found[name] = set(modules)
    return found


def arguments_of(name: str) -> list[str]:
    return name.split() if name.startswith("--") or not name else [name, "--help"]


# ---------------------------------------------------------------------- cost


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="copies of a process, as POSIX has them")


@needs_fork
@pytest.mark.parametrize("name", HELPS[:3])
def test_the_help_imports_no_command_and_no_library(name: str) -> None:
    modules = imported_by_help()[name]
    assert modules.isdisjoint([*HEAVY, "attrs", "argparse"])
    assert {name for name in modules if name.startswith(("simmodel.commands.", "simmodel_site"))} == set()


@needs_fork
@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_imports_no_other_and_nothing_heavy(name: str) -> None:
    modules = imported_by_help()[name]
    assert modules.isdisjoint(HEAVY)
    others = set(MODULES.values()) - {MODULES[name]}
    assert modules & others <= (
        {"simmodel.commands.machine", "simmodel.commands.experiments"} if name == "explore" else set()
    )


def test_every_command_is_in_the_table() -> None:
    for each in walk_packages(simmodel.commands.__path__, "simmodel.commands."):
        import_module(each.name)
    for name in SPELLED:
        assert command_parser(name)[0] is DECLARED[name].run
    assert set(DECLARED) == set(SPELLED)
    assert set(COMMANDS) == set(MODULES)


# ---------------------------------------------------------------------- texts


def test_the_command_alone_shows_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert len(examples(said.out)) == 3
    assert len(said.out.splitlines()) <= 13


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in (
        (["--version"], f"simmodel {__version__}"),
        (["--help"], "simmodel list policies"),
        (["-h"], "usage: simmodel COMMAND"),
        (["batch", "--help"], "--event-order"),
    ):
        assert main(arguments) == 0
        assert text in capsys.readouterr().out


@pytest.mark.parametrize("name", ALL)
def test_the_help_of_a_command_ends_with_its_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    said = capsys.readouterr().out
    found = examples(said)
    assert 1 <= len(found) <= 2
    assert [line.strip() for line in said.splitlines()[-len(found) :]] == found
    assert ("TIME is in seconds" in said) == ("TIME\n" in said or "TIME  " in said)


def test_options_that_no_text_can_give_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["meta", "--help"]) == 0
    said = capsys.readouterr().out
    assert "--by" in said
    assert "--below" not in said


@pytest.mark.parametrize("name", ALL)
def test_examples_are_read(name: str) -> None:
    for line in examples(command_parser(name)[1].epilog or ""):
        program, command, *arguments = shlex.split(line)
        assert program == "simmodel"
        command_parser(command)[1].read(arguments)


LONG = {"grid", "meta", "optimise", "twin"}
ON_A_FOLDER = {"slurm"}  # of a site's own files


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "name",
    [
        None,
        *(
            pytest.param(each, marks=[pytest.mark.long] if each in LONG else [])
            for each in ALL
            if each not in ON_A_FOLDER
        ),
    ],
)
def test_examples_work(name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = examples(START + HELP if name is None else command_parser(name)[1].epilog or "")
    for line in lines:
        program, command, *arguments = shlex.split(line)
        assert program == "simmodel"
        command_parser(command)[1].read(arguments)
        assert main([command, *arguments]) == 0


# ---------------------------------------------------------------------- suggestions


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bacth"], "simmodel: unknown command 'bacth'; did you mean 'batch'? Known commands: batch, calibrate,"),
        (["frobnicate"], "simmodel: unknown command 'frobnicate'; known commands: batch,"),
        (["--versoin"], "simmodel: unknown option '--versoin'; did you mean '--version'?"),
        ([""], "simmodel: unknown command ''; known commands: batch,"),
        (["batch", "probe-4", "--polcy", "easy"], "unknown option '--polcy'; did you mean '--policy'?"),
        (["batch", "probe-4", "--polcy=easy"], "unknown option '--polcy'; did you mean '--policy'?"),
        (["batch", "probe-4", "-p", "easy"], "unknown option '-p'; "),
        (["compare", "probe-4", "--polices", "easy"], "unknown option '--polices'; did you mean '--policies'?"),
        (["whatif", "probe-4"], "simmodel whatif: missing --policies"),
        (["batch", "probe-4", "--until"], "--until: missing value"),
        (["batch", "probe-4", "probe-4"], "unexpected argument 'probe-4'"),
        (["list", "polices"], "unknown kind 'polices'; did you mean 'policies'? Known kinds: policies,"),
    ],
    ids=str,
)
def test_misspelled_words_get_a_suggestion(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert sentence in err
    assert (out, err.count("\n")) == ("", 1)


def test_values_that_begin_like_options_are_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "poisson", "--jobs", "3", f"-o{tmp_path / 'drawn.swf'}"]) == 0
    assert main(["generate", "poisson", "--jobs=3", "--seed", "-1"]) == 2
    assert "--seed: must be a whole number >= 0, got '-1'" in capsys.readouterr().err
    assert main(["batch", "--", "--no-such-log"]) == 2
    assert "--no-such-log" in capsys.readouterr().err
