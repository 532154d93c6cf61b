"""README, CONTRIBUTING and docs are true: their Python runs and prints the text that follows; links work."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from simmodel import Cluster, Environment, Workload
from simmodel.catalogue import load_workload
from simmodel.cli import main
from simmodel.commands.parser import command_parser
from simmodel.formats import write_swf
from simmodel.foundation.entries import Entries
from simmodel.platform import models as platform_models
from simmodel.platform.kinds import KINDS as SPECS
from simmodel.scheduling import registry
from simmodel.snapshots import snapshot
from simmodel.systems import kinds
from tests.helpers.doc_pages import PAGES, Page, can_run
from tests.helpers.paths import ROOT, is_absent

README = PAGES["README.md"]
OWN = {
    f"{name}: {line}": (page, line)
    for name, page in PAGES.items()
    for line in page.commands
    if line.startswith("simmodel ") and can_run(line)
}
LONG = {
    *(
        f"docs/how_to/{name}.md"
        for name in ("broker", "calibrate", "explore", "grid_what_if", "learn", "network_placement")
    ),
    *(f"docs/how_to/{name}.md" for name in ("noisy_neighbours", "optimise", "papers", "placement", "portfolio")),
    *(f"docs/how_to/{name}.md" for name in ("record_limits", "recorded_machines", "sensitivity", "shared_processor")),
    "docs/how_to/surrogates.md",
    *(f"docs/tutorial/{name}.md" for name in ("1_a_first_log", "5_a_grid")),
    "docs/gallery.md",
}
"""Pages whose examples run for seconds: by default they are only compiled, and what they import exists."""


def is_long(page: str, line: str) -> bool:
    """Whether a command runs for seconds, or draws what another page draws: by default its arguments are only read."""
    if page != README.name and "--plot" in line:
        return True
    words = (
        "tiers-30",
        "portfolio schedtwin",
        "replay schedtwin",
        "simmodel explore",
        "simmodel calibrate",
        "identify",
    )
    return any(word in line for word in (*words, "--workers"))


@pytest.fixture(scope="module")
def log_and_snapshot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files of a log and of a snapshot of its replay."""
    folder = tmp_path_factory.mktemp("pages")
    log = load_workload("lublin-128-week")
    jobs = [attrs.evolve(job, user=job.id % 7) for job in log.jobs()]
    later = [attrs.evolve(job, id=job.id + len(log), submit=job.submit + 1_209_600) for job in jobs]
    write_swf(Workload.from_jobs([*jobs, *later], name="my-log", processors=128), folder / "my-log.swf")
    cluster = Cluster(Environment(), 128)
    cluster.replay(log)
    cluster.env.run(until=40_000)
    cluster.snapshot().to_json(folder / "now.json")
    return folder / "my-log.swf", folder / "now.json"


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what a page registers: policies, kinds of system and their snapshots, models of a platform."""
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    models = [each for each in vars(platform_models).values() if isinstance(each, Entries)]
    for entries in (kinds._KINDS, SPECS, snapshot._KINDS, *models):
        monkeypatch.setattr(entries, "_entries", dict(entries._entries))


@pytest.fixture
def workplace(
    tmp_path: Path, log_and_snapshot: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """Return the working folder, with the files that a page names: a log, a snapshot, and the files that it shows."""
    for file in log_and_snapshot:
        shutil.copy(file, tmp_path)
    for name, text in request.getfixturevalue("page").files.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[pytest.mark.long] if name in LONG else [])
        for name, page in PAGES.items()
        if page.examples and all(can_run(source) for _, source, _ in page.examples)
    ],
)
def test_python_blocks_run_in_order_and_print_the_text_that_follows(
    page: Page, workplace: Path, registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)  # classes of a script are found there by name
    monkeypatch.syspath_prepend(workplace)
    for line, source, expected in page.examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + source, page.name, "exec"), vars(script))
        if expected is not None:
            assert printed.getvalue() == expected, f"{page.name}, line {line}"


@pytest.mark.parametrize("name", sorted(LONG))
def test_what_long_pages_import_exists(name: str) -> None:
    for line, source, _ in PAGES[name].examples:
        for node in ast.walk(ast.parse("\n" * line + source, name)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("simmodel"):
                for each in node.names:
                    assert hasattr(importlib.import_module(node.module or ""), each.name), f"{name}, line {node.lineno}"


@pytest.mark.parametrize("line", [line for _, line in OWN.values()], ids=OWN)
def test_commands_are_read(line: str) -> None:
    command, *arguments = shlex.split(line, comments=True)[1:]
    command_parser(command)[1].read(arguments)


@pytest.mark.parametrize(
    ("page", "line"),
    [
        pytest.param(page, line, id=name, marks=[pytest.mark.long] if is_long(page.name, line) else [])
        for name, (page, line) in OWN.items()
    ],
)
def test_commands_work(page: Page, line: str, workplace: Path) -> None:
    words = shlex.split(line, comments=True)[1:]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(words) == 0
    assert printed.getvalue()


def test_the_two_commands_of_a_fresh_clone_install_everything() -> None:
    first, second = (line for line in README.commands if line.startswith("python3 -m venv"))
    assert "simmodel batch lublin-128-week" in first
    assert "pip install -q -e '.[plot]'" in first
    assert "pytest" in second
    assert "pip install -q -e '.[dev]'" in second


def test_the_first_command_works_in_the_folder_as_it_stands() -> None:
    assert README.commands[0].startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert [word for line in README.commands for word in line.split() if re.search(r"[A-Z]{3}-[A-Z]{2}", word)] == []


def test_readme_is_an_entrance_with_at_most_12_lines_under_a_heading() -> None:
    assert len(README.text.splitlines()) <= 110
    sections = re.split(r"^#+ (.+)\n", README.text, flags=re.MULTILINE)[1:]
    lines = {
        heading: len([line for line in text.splitlines() if line and not line.startswith("```")])
        for heading, text in zip(sections[::2], sections[1::2], strict=True)
    }
    assert {heading: count for heading, count in lines.items() if count > 12} == {}


def test_readme_commands_run_as_typed_in_a_fresh_folder(tmp_path: Path) -> None:
    typed = [line for line in README.commands if not line.startswith(("python3 -m venv", "source "))]
    assert len(typed) > 5
    for name, text in README.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    activated = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    for line in typed:
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=activated, capture_output=True, encoding="utf-8")
        assert (done.returncode, done.stdout != "") == (0, True), f"{line}\n{done.stderr}"


@pytest.mark.parametrize("name", [*PAGES, "CHANGELOG.md"])
def test_links_and_pictures_exist(name: str) -> None:
    folder = (ROOT / name).parent
    missing = []
    for link in re.findall(r"\]\(([^)]+)\)", Page(ROOT / name).without_code):
        path, _, heading = link.partition("#")
        if "://" in path:
            continue
        target = (folder / path).resolve() if path else ROOT / name
        if is_absent(str(target.relative_to(ROOT))):
            continue
        page = PAGES.get(str(target.relative_to(ROOT)))
        if not target.exists() or (heading and (page is None or heading not in page.anchors)):
            missing.append(link)
    assert missing == []
