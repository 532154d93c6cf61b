"""SchedTwin's experiment on a real Slurm: a portfolio decides on the start of each job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.helpers.live_schedtwin import live_run
from tests.site.helpers.slurm_cluster import PROGRAMS, require

pytestmark = pytest.mark.live


@pytest.mark.exhaustive
def test_a_portfolio_starts_each_of_150_jobs_once(tmp_path: Path) -> None:
    require(*PROGRAMS)
    delay = 600.0
    found = live_run("portfolio", tmp_path, delay=delay)
    assert sorted(found.runs.values()) == [1] * 150
    assert found.longest < delay
    assert found.released == 150
    assert (found.replay.decisions - found.replay.reproduced, found.replay.first) == (0, "")
