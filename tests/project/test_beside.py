"""The package of docs/how_to/beside.md is installed; its names are known by the doors that are open to all packages."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers.doc_pages import PAGES
from tests.helpers.paths import ROOT

FILES = PAGES["docs/how_to/beside.md"].files
SESSION = FILES["session"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the page, and the package installed in a folder of it."""
    folder = tmp_path_factory.mktemp("lab")
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--isolated",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--target", folder / "installed", folder], check=True, capture_output=True)
    return folder


def said(line: str, folder: Path) -> str:
    """Return what a command prints where the package is installed."""
    path = os.pathsep.join(map(str, (folder / "installed", ROOT)))
    command = [sys.executable, "-m", *shlex.split(line)]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "100"}
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("shown", SESSION.split("$ ")[1:], ids=lambda shown: shown.partition("\n")[0])
def test_the_session_is_as_shown(shown: str, lab: Path) -> None:
    line, _, expected = shown.partition("\n")
    pattern = "".join(".*" if each == "...\n" else re.escape(each) for each in expected.splitlines(keepends=True))
    assert re.fullmatch(pattern, said(line, lab), re.DOTALL)


def test_the_page_names_the_toolkit() -> None:
    toolkit = PAGES["docs/how_to/beside.md"].table("The toolkit")
    named = {name for row in toolkit for name in re.findall(r"`(\w+)`", row[1])}
    assert sorted(named) == sorted(import_module("simmodel.extending").__all__)


def test_the_package_is_small_and_takes_what_is_open() -> None:
    text = FILES["simmodel_lab.py"]
    assert len([line for line in text.splitlines() if line.strip()]) <= 60
    assert set(re.findall(r"from (simmodel\S*)", text)) == {
        *("simmodel", "simmodel.catalogue", "simmodel.extending", "simmodel.resources", "simmodel.work"),
    }
