"""Commands with only some optional packages installed."""

import tomllib
from pathlib import Path

import pytest

from simmodel.foundation.errors import EXTRAS
from tests.helpers.new_process import printed
from tests.helpers.paths import ROOT

PROGRAM = """
import contextlib, io, os, sys
sys.modules.update(dict.fromkeys({missing!r}))  # their import fails as if they were not installed
from simmodel.cli import main
os.chdir({folder!r})
with contextlib.redirect_stderr(io.StringIO()) as said:
    status = main({arguments!r})
print("status", status, said.getvalue())
"""
OTHERS = {"IPython", "jupyter", "ipywidgets", "scipy"}


def run(arguments: list[str], folder: Path, installed: set[str]) -> str:
    """Run a command as if only these of the optional packages were installed; return what it prints at its end."""
    missing = (EXTRAS.keys() | OTHERS) - installed
    return printed(PROGRAM.format(missing=missing, folder=str(folder), arguments=arguments)).rpartition("status ")[2]


def packages(extra: str) -> set[str]:
    return {module for module, found in EXTRAS.items() if found == extra}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["batch", "lublin-128-week", "--plot", "overview.png"], marks=pytest.mark.long),
        ["batch", "lublin-128-week", "--plot", "overview.png", "--progress", "--db", "r.sqlite", "--schedule", "s.csv"],
        ["compare", "probe-4", "--policies", "fcfs,easy", "--plot", "overview.png", "--table", "t.csv"],
        ["machine", "hetsim-slow", "fork-join", "--plot", "overview.png", "--trace", "t.json"],
    ],
    ids=" ".join,
)
def test_the_extra_plot_is_enough_for_pictures(arguments: list[str], tmp_path: Path) -> None:
    assert run(arguments, tmp_path, packages("plot")).startswith("0")
    assert (tmp_path / "overview.png").read_bytes().startswith(b"\x89PNG")


def test_no_extra_is_needed_without_pictures(tmp_path: Path) -> None:
    assert run(["batch", "lublin-128-week", "--schedule", "s.csv", "--db", "r.sqlite"], tmp_path, set()) == "0 \n"


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--plot", "p.png"], "--plot: matplotlib is not installed: pip install 'simmodel[plot]'"),
        (["--progress"], "--progress: tqdm is not installed: pip install 'simmodel[plot]'"),
    ],
    ids=["plot", "progress"],
)
def test_a_missing_package_is_one_sentence_that_names_the_extra(
    option: list[str], sentence: str, tmp_path: Path
) -> None:
    assert run(["batch", "probe-4", *option], tmp_path, set()) == f"2 simmodel: {sentence}\n\n"


def test_the_extras_are_those_that_texts_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {"plot", "learn", "tables", "notebook", "scale", "site", "twin", "calibrate", "completion", "docs", "dev"}
    assert set(project["optional-dependencies"]) == extras
    assert not any(module in requirement for module in EXTRAS for requirement in project["dependencies"])
