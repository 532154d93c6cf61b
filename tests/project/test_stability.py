"""docs/reference/stability.md holds: whatever was public in this minor version, and in the one before, is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import simmodel
from simmodel.moved import MOVED
from tests.helpers.doc_pages import PAGES
from tests.helpers.paths import ROOT, SITE, is_absent
from tests.helpers.public_interface import broken, files_of, list_of, parameters, public_interface, read_list
from tests.helpers.written_files_of_a_version import KINDS, end_of_result, end_of_snapshot

PAGE = PAGES["docs/reference/stability.md"]
DEPRECATED = [row for row in PAGE.table("Deprecation") if len(row) == 4]


@pytest.fixture(scope="module")
def present() -> dict[str, str]:
    return public_interface()


def number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def lists() -> list[Path]:
    """Return the lists of this minor version and of the one before, where there is one."""
    major, minor = number(simmodel.__version__)
    before = list_of(f"{major}.{minor - 1}")
    return [list_of(simmodel.__version__), *([before] if before.exists() else [])]


def missing(recorded: dict[str, str], present: dict[str, str], removed: set[str]) -> dict[str, str]:
    """Return what is recorded and no longer holds, each with the reason, but for what was removed as announced."""
    found = {}
    for name, called in recorded.items():
        if name in removed:
            continue
        for old, new in MOVED.items():
            name = re.sub(rf"^{re.escape(old)}\b", new, name)
        if is_absent(name) or (not SITE.exists() and re.search(r"\b(twin|slurm)\b", name)):
            continue
        reason = broken(called, present[name]) if name in present else "it is gone"
        if reason:
            found[name] = reason
    return found


@pytest.mark.parametrize("path", lists(), ids=lambda path: path.stem)
def test_what_is_listed_as_public_is_there_and_takes_what_is_listed(path: Path, present: dict[str, str]) -> None:
    now = number(simmodel.__version__)
    removed = {name.strip("`") for name, _, _, gone in DEPRECATED if number(gone) <= now}
    recorded = read_list(path)
    assert len(recorded) > 2000
    assert missing(recorded, present, removed) == {}


def test_a_list_names_commands_options_names_and_ready_things() -> None:
    recorded = read_list(list_of(simmodel.__version__))
    assert recorded["simmodel.simulate"].startswith("(platform, workload")
    assert recorded["$ simmodel batch"] == "(LOG)"
    assert {"$ simmodel batch --html", "$ simmodel twin run", "simmodel list policies: easy"} <= recorded.keys()
    assert {"simmodel list formats: swf", "metric of jobs: wait_mean"} <= recorded.keys()
    assert recorded["simmodel.systems.Cluster.submit"].startswith("(work")
    assert "simmodel.systems.Cluster.handlers" not in recorded  # no page names it


@pytest.mark.parametrize(
    ("recorded", "changed", "reason"),
    [
        ("(a, b=)", "(a, b=, c=)", None),
        ("(a, *, b=)", "(a, b=)", None),
        ("(a)", "(a=, **more)", None),
        ("(a, /)", "(other)", None),
        ("(a)", "(*a, **more)", "a is no longer taken by position"),
        ("(a, b)", "(b, a)", "a is no longer taken by position"),
        ("(a, b=)", "(a)", "b is no longer taken by position"),
        ("(*, b=)", "(**more)", None),
        ("(*, b=)", "(*, c=)", "b is no longer taken"),
        ("(a=)", "(a)", "a is no longer optional"),
        ("(a)", "(a, b)", "b is new and not optional"),
        ("(*a)", "(a)", "* is no longer taken"),
        ("(a)", "", "it is no longer called"),
        ("", "(a)", None),
    ],
)
def test_a_change_that_breaks_a_call_is_found(recorded: str, changed: str, reason: str | None) -> None:
    assert broken(recorded, changed) == reason
    assert missing({"f": recorded}, {"f": changed}, set()) == ({"f": reason} if reason else {})


def test_a_removed_name_is_found_unless_it_was_announced() -> None:
    assert missing({"f": "()"}, {}, set()) == {"f": "it is gone"}
    assert missing({"f": "()"}, {}, {"f"}) == {}


def test_parameters_are_read_as_they_are_written() -> None:
    found = parameters("(a, /, b=, *rest, c, **more)")
    assert [each.name for each in found] == ["a", "b", "*", "c", "**"]
    assert [each.by_position for each in found] == [True, True, False, False, False]
    assert [each.by_name for each in found] == [False, True, False, True, False]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [path.stem.removeprefix("public_").replace("_", ".") for path in lists()])
def test_results_and_snapshots_written_by_this_version_and_the_one_before_are_read(
    version: str, kind: str, tmp_path: Path
) -> None:
    folder = files_of(version)
    ends = json.loads((folder / "ends.json").read_text("utf-8"))[kind]
    assert end_of_result(folder / f"{kind}.sql", tmp_path) == ends["result"]
    assert end_of_snapshot(folder / f"{kind}.json") == ends["snapshot"]


def test_what_is_deprecated_names_a_successor_and_stays_for_one_minor_version(present: dict[str, str]) -> None:
    rows = re.findall(r"^\| `", PAGE.section("Deprecation"), re.MULTILINE)
    assert len(rows) == len(DEPRECATED)
    for name, successor, since, gone in DEPRECATED:
        assert successor
        assert number(since) < number(gone), name
        assert name.strip("`") in present or number(gone) <= number(simmodel.__version__), name


def test_the_version_is_that_of_the_changelog_and_of_the_citation() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = re.search(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert found
    assert found[1] == simmodel.__version__
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {found[1]}\n" in citation
    assert f"\ndate-released: {found[2]}\n" in citation


def test_the_citation_is_one() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {
        "cff-version",
        "message",
        "title",
        "authors",
        "version",
        "date-released",
        "license",
        "abstract",
    } <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["license"] == "MIT"
    assert [{*author} for author in citation["authors"]] == [{"name"}]
    assert all(isinstance(word, str) for word in citation["keywords"])
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
