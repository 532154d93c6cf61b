"""The benchmark beside other simulators writes a page that names missing peers and counts the starts that differ."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec

import pytest

from simmodel import Workload
from simmodel.formats.swf import write_swf
from simmodel.generators.lublin_feitelson import lublin
from tests.helpers.new_process import environment
from tests.helpers.paths import ROOT

JOBS = 40
LATE = """import csv, sys
from simmodel import simulate
log, policy, schedule, late = sys.argv[1:]
jobs = simulate(None, log, policy).jobs
starts = dict(zip(jobs["job"].tolist(), jobs["start"].tolist()))
starts[max(starts, key=starts.get)] += float(late)
with open(schedule, "w", newline="") as file:
    csv.writer(file).writerows([("job", "start"), *starts.items()])
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of a log of 40 jobs, for which three other programs claim to write a schedule."""
    folder = tmp_path_factory.mktemp("peers")
    made = lublin(JOBS, processors=64, seed=3)
    whole = {name: made[name].round() for name in ("submit", "run")}
    log = Workload({**whole, "processors": made["processors"], "requested": whole["run"] + 60}, processors=64)
    write_swf(log.replace(run=whole["run"] + 1), folder / "drawn.swf")
    (folder / "late.py").write_text(LATE, "utf-8")
    (folder / "broken.py").write_text("raise SystemExit('the licence has expired')", "utf-8")
    python = shlex.quote(sys.executable)
    program = f"{python} {shlex.quote(str(folder / 'late.py'))} {{log}} {{policy}} {{schedule}}"
    peers = {
        "Late": f"{program} 1",
        "Punctual": f"{program} 0",
        "Broken": f"{python} {shlex.quote(str(folder / 'broken.py'))}",
        "Lost": shlex.quote(str(folder / "lost")),
    }
    options = [part for name, command in peers.items() for part in ("--peer", f"{name}={command}")]
    benchmark = [sys.executable, str(ROOT / "benchmarks/peers.py"), "--logs", str(folder / "drawn.swf"), *options]
    fixed = ["--policies", "easy", "--transfers", "50", "--runs", "1", "--out", str(folder / "page.md")]
    done = subprocess.run([*benchmark, *fixed], env=environment(), cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return (folder / "page.md").read_text("utf-8")


def table(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, with its header."""
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.split(" | ") for line in re.findall(r"^\| (.+) \|$", section, re.MULTILINE)]
    return [lines[0], *lines[2:]]


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table below a heading, by the simulator that each is about."""
    header, *body = table(page, heading)
    return {row[header.index("simulator")]: row for row in body}


@pytest.mark.long  # the page takes seconds
def test_missing_peers_are_named_with_the_reason_and_the_command(page: str) -> None:
    missing, found = rows(page, "Not measured"), rows(page, "Simulators")
    for name, module in (("AccaSim", "accasim"), ("SimGrid's Python", "simgrid"), ("SimPy", "simpy")):
        if find_spec(module) is None:
            assert missing[name][1] == f"ModuleNotFoundError: No module named '{module}'"
            assert "install" in missing[name][2]
            assert name not in found
        else:
            assert name in found
            assert name not in missing
    assert ("SimGrid's C++" in found) != ("SimGrid's C++" in missing)  # built where its library and a compiler are
    for name in ("Batsim", "CQSim", "ElastiSim"):
        assert len(missing[name]) == 3
        assert all(missing[name])


@pytest.mark.long  # the page takes seconds
def test_starts_that_differ_are_counted_and_judged(page: str) -> None:
    logs = rows(page, "Logs")
    assert [row[:3] for row in logs.values()] == [["drawn", str(JOBS), "easy"]] * 5
    assert logs["simmodel"][-2:] == logs["Punctual"][-2:] == ["0", "every start is easy's"]
    assert logs["Late"][-2] == "1"
    assert logs["Late"][-1].startswith("1 start not easy's")
    assert logs["simmodel"][6] == "1.00"


@pytest.mark.long  # the page takes seconds
def test_a_program_that_fails_is_named_with_its_last_line(page: str) -> None:
    logs = rows(page, "Logs")
    assert logs["Broken"][4:] == ["failed: the licence has expired", "-", "-", "-", "-", "-"]
    assert logs["Lost"][4].endswith("lost: No such file or directory")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--logs", "lost.swf:100"], "no such log: lost.swf"),
        (["--peer", "Batsim"], "--peer: must be NAME=COMMAND, got 'Batsim'"),
    ],
)
def test_wrong_options_end_it_with_one_sentence(option: list[str], sentence: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks/peers.py"), *option]
    done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: {sentence}\n")


@pytest.mark.long  # the page takes seconds
def test_the_page_in_the_documentation_has_the_same_parts(page: str) -> None:
    kept = (ROOT / "docs/explanation/peers.md").read_text("utf-8")
    assert re.findall(r"^## .+$", kept, re.MULTILINE) == re.findall(r"^## .+$", page, re.MULTILINE)
    stored = table(kept, "Stored schedules")[1:]
    assert {row[2] for row in stored} == {"pyss", "CQSim"}
    assert {row[4] for row in stored} == {"0"}
    assert {*rows(kept, "Simulators"), *rows(kept, "Not measured")} >= {
        "simmodel",
        "AccaSim",
        "SimPy",
        "Batsim",
        "CQSim",
    }
