"""The README keeps its word: its Python runs and prints what it says, its commands exist and work."""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from simmodel import Cluster, Environment
from simmodel.catalogue import load_workload
from simmodel.cli import main
from simmodel.formats.swf import write_swf
from tests.helpers.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.removeprefix("$ ")
    for kind, text in BLOCKS
    if kind in ("sh", "console")
    for line in text.replace("\\\n", " ").splitlines()
]
OWN = [line for line in COMMANDS if line.startswith("simmodel ")]


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """Return a folder with the files that the README speaks of: a log, a snapshot, and the TOML it shows."""
    log = load_workload("lublin-128-week")
    write_swf(log, tmp_path / "my-log.swf")
    cluster = Cluster(Environment(), 128)
    cluster.replay(log)
    cluster.env.run(until=40_000)
    cluster.snapshot().to_json(tmp_path / "now.json")
    for kind, text in BLOCKS:
        if kind == "toml":
            (tmp_path / "machine.toml").write_text(text)
    return tmp_path


def test_python_blocks_run_in_order_and_print_what_the_text_says(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    names: dict[str, Any] = {"__name__": "readme"}
    ran = 0
    for i, (kind, text) in enumerate(BLOCKS):
        if kind != "python":
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(text, f"README block {i}", "exec"), names)
        ran += 1
        if i + 1 < len(BLOCKS) and BLOCKS[i + 1][0] == "text":
            assert said.getvalue() == BLOCKS[i + 1][1]
    assert ran >= 5


@pytest.mark.parametrize("line", OWN)
def test_commands_work(line: str, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workplace)
    words = shlex.split(line, comments=True)[1:]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(words) == 0
    assert said.getvalue()


def test_the_two_commands_of_a_fresh_machine_set_everything_up() -> None:
    first, second = (line for line in COMMANDS if line.startswith("python3 -m venv"))
    assert "simmodel batch lublin-128-week" in first
    assert "pytest" in second
    assert all("pip install" in line for line in (first, second))


def test_links_and_pictures_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
