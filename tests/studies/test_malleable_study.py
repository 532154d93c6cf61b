"""The study of malleable jobs: its ratios are those of single simulations, and a real log gains as the page says."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from simmodel import Workload, load_workload, simulate
from simmodel.studies import malleable_study
from simmodel.studies.malleable import MALLEABLE_POLICIES, PAPER_GAINS
from simmodel.work import first, make_malleable
from tests.helpers.data_files import data_file
from tests.helpers.paths import ROOT

MEASURES = ("turnaround", "wait", "run", "utilisation")


@pytest.fixture(scope="module")
def log() -> Workload:
    return first(load_workload("lublin-128-week"), 150)


def test_ratios_are_those_of_single_runs(log: Workload) -> None:
    shares = (0.0, 0.4)
    runs = malleable_study(log, shares=shares, seeds=2, policies=["shrink-to-start"], serial=0.1, each=True)
    assert list(zip(runs["share"].tolist(), runs["seed"].tolist(), strict=True)) == [(0.0, 0), (0.4, 0), (0.4, 1)]
    rigid = simulate(None, log, "easy").jobs
    for row in runs.rows():
        some = make_malleable(log, row["share"], serial=0.1, seed=row["seed"])
        jobs = simulate(None, some, "shrink-to-start").jobs
        assert row["wait"] == pytest.approx(jobs["wait"].mean() / rigid["wait"].mean())
        ends, before = (each["end"] - each["submit"] for each in (jobs, rigid))
        assert row["turnaround"] == pytest.approx(ends.mean() / before.mean())
    assert [runs[name][0] for name in MEASURES] == [1.0] * 4  # rigid jobs, as under EASY
    assert runs["wait"][1] != runs["wait"][2]
    assert (runs["cost"] > 0).all()


def test_means_are_those_of_the_runs_on_any_executor(log: Workload) -> None:
    options = {"shares": (0.3, 1.0), "seeds": 3, "policies": ["keep-preferred", "equal-shares"]}
    runs = malleable_study(log, each=True, **options)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as pool:
        means = malleable_study(log, executor=pool, **options)  # type: ignore[arg-type]
    assert means["seeds"].tolist() == [3, 3, 1, 1]
    for row in means.rows():
        own = (runs["policy"] == row["policy"]) & (runs["share"] == row["share"])
        assert own.sum() == row["seeds"]
        assert [row[name] for name in MEASURES] == pytest.approx([runs[name][own].mean() for name in MEASURES])


def test_the_table_of_the_page_is_that_of_the_picture() -> None:
    runs = json.loads((ROOT / "docs" / "malleable_study.json").read_text())["runs"]
    columns = {name: np.array(values) for name, values in runs.items()}
    shown, policy = 0, ""
    for line in (ROOT / "docs" / "explanation" / "malleable_gains.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 7 or not cells[1].endswith("%"):
            continue
        policy = cells[0].strip("`") or policy
        own = (columns["policy"] == policy) & (columns["share"] == float(cells[1].rstrip(" %")) / 100)
        means = [columns[name][own].mean() for name in MEASURES]
        assert [float(cell) for cell in cells[2:6]] == pytest.approx(means, abs=0.00501)
        shown += 1
    assert shown == 3 * len(MALLEABLE_POLICIES)


@pytest.mark.exhaustive
def test_jobs_of_a_real_log_gain_as_in_the_paper() -> None:
    theta = first(load_workload(data_file("swf/theta_2022.swf.gz")), 5000)
    found = malleable_study(theta, seeds=3)
    for policy in ("shrink-to-start", "equal-shares"):
        own = found.where(found["policy"] == policy)
        for measure in ("turnaround", "wait"):
            values = own[measure].tolist()
            assert values == sorted(values, reverse=True), "the more malleable jobs, the lower"
            assert values[0] < 0.75, "gains from 20 % on"
            assert values[-1] < 1 - PAPER_GAINS[measure][0]
        assert own["wait"][-1] < 0.05
        assert (np.abs(own["run"] - 1) < 0.12).all()
        assert (own["utilisation"] < 1.01).all(), "fewer processors waste less"
    kept = found.where(found["policy"] == "keep-preferred")
    assert (np.abs(kept["wait"] - 1) < 0.1).all()
    assert (kept["run"] < 1).all()
    assert (kept["utilisation"] > 1.02).all()
