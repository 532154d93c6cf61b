"""The benchmark of both forms runs its rows and says what each cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.new_process import environment
from tests.helpers.paths import ROOT


def forms(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks/forms.py"), *words]
    return subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, encoding="utf-8")


@pytest.mark.long  # each run measures the yardstick twice
def test_a_row_has_its_figure_and_its_limit() -> None:
    done = forms("--runs", "1", "slurm-cycle")
    assert done.returncode == 0, done.stderr
    cells = done.stdout.splitlines()[0].split(" | ")
    assert cells[:2] == ["one cycle of Slurm's backfill loop with 400 plans", "y"]
    assert cells[2] == "0.10"
    assert cells[3].endswith("(at most 0.07)")
    assert cells[4:] == ["-", "-"]


def test_an_unknown_row_is_refused() -> None:
    assert forms("lost").stderr.endswith("no such row: lost\n")
