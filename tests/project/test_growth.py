"""The benchmark of growth runs its cases and prints a point for each size, an exponent and a row of the table."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from simmodel.scheduling.registry import policy_names
from tests.helpers.new_process import environment
from tests.helpers.paths import ROOT

TABLE, PAGE = ROOT / "benchmarks/growth.txt", ROOT / "docs/explanation/benchmarks.md"
ROW = re.compile(
    r"\| ([\w/+.-]+) \| ([\d,]+) to ([\d,]+) [\w ]+ \| \S+ \| \S+ \| \S+ \| \S+ \| (-|no|yes, to [\d,]+) \|"
)


def growth(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "benchmarks/growth.py"), *arguments]
    return subprocess.run(program, env=environment(), cwd=ROOT, capture_output=True, encoding="utf-8")


@pytest.mark.long  # its words alone: the next test
def test_two_cases_in_their_quick_form() -> None:
    done = growth("--quick", "links/one-link-at-once", "policies/fcfs")
    assert done.returncode == 0, done.stderr
    points = re.findall(r"^(\S+) +([\d,]+) (?:jobs|transfers) +\d\S* +\d\S*( +\d\S*)?$", done.stdout, re.MULTILINE)
    names = ["links/one-link-at-once", "policies/fcfs/0.8", "policies/fcfs/1.3"]
    for name, first in zip(names, (500, 250, 250), strict=True):  # a slow machine may end a line before its last size
        sizes = [int(size.replace(",", "")) for found, size, _ in points if found == name]
        assert sizes == [first << double for double in range(len(sizes))]
        assert len(sizes) == 3 or f"{name} " in "".join(re.findall(r"^\S+ +stopped: ", done.stdout, re.MULTILINE))
        assert all(bool(waiting) == (name != names[0]) for found, _, waiting in points if found == name)
    exponents = re.findall(r"^(\S+) +exponent (?:-?\d+\.\d\d|nan)   queue grows: (.+)$", done.stdout, re.MULTILINE)
    assert [name for name, _ in exponents] == names
    rows = ROW.findall(done.stdout)
    assert [(name, grows) for name, _, _, grows in rows] == exponents
    assert exponents[0][1] == "-"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("clouds", "unknown case 'clouds'; known cases: batch, "),
        ("links/lost", "no line of links begins with 'links/lost'"),
    ],
)
def test_unknown_cases_and_lines_end_it(case: str, sentence: str) -> None:
    assert sentence in growth(case).stderr


def test_the_table_has_a_line_for_each_policy_at_both_loads() -> None:
    names = {name for name, *_ in ROW.findall(TABLE.read_text("utf-8"))}
    wanted = {f"policies/{name}/{load}" for name in policy_names("jobs") for load in (0.8, 1.3)}
    assert sorted(wanted - names) == []


def test_the_page_of_benchmarks_has_lines_of_the_table() -> None:
    shown = [line for line in PAGE.read_text("utf-8").splitlines() if ROW.match(line)]
    assert len(shown) > 10
    assert set(shown) <= set(TABLE.read_text("utf-8").splitlines())
