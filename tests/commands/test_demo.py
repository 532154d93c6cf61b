"""The demo: five faces of simmodel, each by a command that can be typed, with its files in one folder."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from simmodel.cli import main
from simmodel.commands import COMMANDS, demo, others

MACHINE = demo.STEPS[2]


def commands_in(text: str) -> list[list[str]]:
    """Return the words of the commands that a text shows."""
    return [shlex.split(line)[2:] for line in text.replace("\\\n", "").splitlines() if line.startswith("   $ ")]


@pytest.mark.long
def test_the_demo_shows_five_faces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    text, errors = capsys.readouterr()
    assert errors == ""
    assert re.findall(r"^\d", text, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert [words[0] for words in commands_in(text)] == ["batch", "batch", "whatif", "machine", "grid", "twin"]
    named = {name for line in text.splitlines() if line.startswith("   -> ") for name in line[6:].split(", ")}
    assert named == {str(path) for path in Path("simmodel-demo").iterdir()} - {"simmodel-demo/now.json"}
    assert all(path.stat().st_size > 100 for path in Path("simmodel-demo").iterdir())
    assert "mean wait 4 h 12 min under EASY, utilisation 64.9 %" in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[-1] == "  simmodel help"


def test_files_go_to_a_folder_with_spaces_and_are_replaced_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "STEPS", (MACHINE,))
    folder = tmp_path / "in parts" / "own demo"
    for _ in range(2):
        assert main(["demo", str(folder)]) == 0
        text = capsys.readouterr().out
        assert {path.name for path in folder.iterdir()} == {"machine.html", "machine.png"}
    ((_, *words),) = commands_in(text)
    assert words[-4:] == ["--html", str(folder / "machine.html"), "--plot", str(folder / "machine.png")]
    assert f"-> {folder / 'machine.html'}, {folder / 'machine.png'}" in text


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert main(["demo", str(tmp_path)]) == 2
    said = f"{tmp_path}: must be a new folder, or that of an earlier demo, got one with thesis.tex\n"
    assert capsys.readouterr() == ("", f"simmodel: {said}")
    assert main(["demo", str(tmp_path / "thesis.tex")]) == 2
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_without_matplotlib_there_are_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(name: str) -> Any:
        return None if name == "matplotlib" else find_spec(name)

    monkeypatch.setattr(demo, "find_spec", without)
    monkeypatch.setattr(demo, "STEPS", (MACHINE,))
    assert main(["demo", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["machine.html"]
    assert all(any(not each.startswith("--plot") for each in step.files) for step in demo.STEPS)
    assert "machine.png" not in capsys.readouterr().out


def test_a_command_of_a_package_that_is_not_installed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "STEPS", (MACHINE._replace(commands=("nowhere run",)),))
    assert main(["demo", str(tmp_path)]) == 0
    assert "left out" in capsys.readouterr().out
    first = {step.commands[0].split()[0] for step in demo.STEPS}
    assert first <= {*COMMANDS, *others(), "nowhere"}


def test_a_step_that_fails_ends_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "STEPS", (MACHINE._replace(commands=("machine nothing fork-join",)), MACHINE))
    assert main(["demo", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "unknown platform" in said.err
    assert "2. " not in said.out
