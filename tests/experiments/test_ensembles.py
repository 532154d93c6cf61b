"""Ensembles: runs that a file keeps are continued, shared and refused; comparisons stop when they are decided."""

import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Scenario, SimmodelError, Workload, compare, explore, replicate
from simmodel.experiments import Study
from simmodel.experiments.ensembles import digest_of
from simmodel.experiments.stopping import Decisions, Goal, Seeds, in_rounds
from simmodel.generators import lublin

SMALL = partial(lublin, 40, 32)


class Interrupting:
    """A workload drawn for each seed; the draw with a number is interrupted."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.draws = at, 0

    def __getstate__(self) -> dict[str, int]:
        return {}  # it is the same experiment

    def __call__(self, seed: int) -> Any:
        self.draws += 1
        if self.draws == self.at:
            raise KeyboardInterrupt
        return SMALL(seed=seed)


def samples(found: Any) -> str:
    return str({name: found.samples[name].tolist() for name in found.samples.names if "decision" not in name})


def test_an_interrupted_exploration_goes_on_where_it_was(tmp_path: Path) -> None:
    file, work = tmp_path / "runs.sqlite", Interrupting(6)
    whole = explore([32, 40], {"drawn": Interrupting()}, ["fcfs", "easy"], seeds=3)
    with pytest.raises(KeyboardInterrupt):
        explore([32, 40], {"drawn": work}, ["fcfs", "easy"], seeds=3, study=file)
    assert Study(file).counts == {"queued": 7, "running": 0, "finished": 5, "failed": 0}
    rows = sqlite3.connect(file).execute("SELECT policy, wait_mean FROM runs WHERE state = 'finished'").fetchall()
    assert [policy for policy, _ in rows] == ["fcfs"] * 3 + ["easy"] * 2
    found = explore([32, 40], {"drawn": work}, ["fcfs", "easy"], seeds=3, study=file)
    assert work.draws == 6 + 7
    assert samples(found) == samples(whole)
    more = explore([32, 40], {"drawn": work}, ["fcfs", "easy"], seeds=4, study=file)
    assert work.draws == 13 + 4
    assert samples(more) == samples(explore([32, 40], {"drawn": Interrupting()}, ["fcfs", "easy"], seeds=4))
    with pytest.raises(InputError, match="is a study with another policies"):
        explore([32, 40], {"drawn": work}, ["fcfs", "sjf"], seeds=3, study=file)


def test_kept_replications_are_one_table_of_a_database(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"
    found = replicate(_half, 4, study=file)
    rows = sqlite3.connect(file).execute("SELECT seed, half, state FROM runs ORDER BY number").fetchall()
    assert rows == [(str(row["seed"]), row["half"], "finished") for row in found.samples.rows()]
    assert np.isnan(found.samples["undefined"]).sum() == 4 - np.isfinite(found.samples["undefined"]).sum()
    again = replicate(_half, stop="half ± 50 %", study=file)
    assert again.samples["half"][:4].tolist() == found.samples["half"].tolist()
    assert len(Study(file)) == len(again.samples)
    with pytest.raises(InputError, match="is a study with another function"):
        replicate(_other, 4, study=file)


def _half(seed: int) -> dict[str, float]:
    return {"half": seed / 2**65, "undefined": float("nan") if seed % 2 else 1.0}


def _other(seed: int) -> float:
    return 1.0


def test_runs_that_failed_are_told_and_run_again(tmp_path: Path) -> None:
    file, wrong = tmp_path / "runs.sqlite", [True]

    def measured(seed: int) -> float:
        if wrong[0] and seed == 3:
            raise ValueError("out of order")
        return float(seed)

    with pytest.raises(SimmodelError, match="1 of 4 runs failed: ValueError: out of order"):
        replicate(measured, [1, 2, 3, 4], study=file)
    assert Study(file).counts["finished"] == 3
    wrong[0] = False  # which the function sees: it is another one now
    assert replicate(measured, [1, 2, 3, 4], study=file, force=True).samples["value"].tolist() == [1, 2, 3, 4]


@pytest.mark.long  # smaller: the other tests of the file
def test_another_process_knows_the_experiment_again(tmp_path: Path) -> None:
    log = lublin(30, 32, seed=3)
    code = "from simmodel.generators import lublin; from simmodel.experiments.ensembles import digest_of; "
    code += "from simmodel import Scenario; log = lublin(30, 32, seed=3); "
    code += "print(digest_of([log, Scenario(platform='hetsim-slow', workload='layered:n=5', policy='heft')]))"
    here = digest_of([log, Scenario(platform="hetsim-slow", workload="layered:n=5", policy="heft")])
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here
    assert digest_of(lublin(30, 32, seed=4)) != digest_of(log)


# ---------------------------------------------------------------------- decisions


def busy(seed: int) -> Workload:
    """Return 40 jobs of all widths that come faster than 32 processors can run them."""
    rng = np.random.default_rng(seed)
    run = rng.exponential(100, 40)
    columns = {"submit": np.sort(rng.uniform(0, 1000, 40)), "run": run, "processors": rng.integers(1, 33, 40)}
    return Workload({**columns, "requested": run})


@pytest.mark.long  # smaller: the other tests of the file
def test_policies_are_compared_until_it_is_decided() -> None:
    policies = ["fcfs", "easy", "conservative"]
    found = explore(32, {"busy": busy}, policies, seeds=16, stop="wait_mean decided", budget=40)
    assert found.stop is not None
    (table,) = found.decisions
    rows = {(row["first"], row["second"]): row for row in table.rows()}
    assert rows["fcfs", "easy"]["lower"] == "easy"
    assert rows["fcfs", "easy"]["low"] > 0
    assert rows["fcfs", "easy"]["replications"] <= found.stop.count
    assert found.stop.reached == all(row["lower"] for row in rows.values())
    assert found.summary().endswith(str(found.stop))
    assert len(found.samples) == 3 * found.stop.count
    assert found.interval("wait_mean", "fcfs").count == found.stop.count


def test_policies_that_never_differ_are_the_same() -> None:
    found = explore(32, {"drawn": SMALL}, {"one": "easy", "other": "easy"}, seeds=3, stop="wait_mean decided")
    assert found.decisions[0]["lower"].tolist() == ["same"]
    assert found.stop is not None
    assert found.stop.count == 3


@pytest.mark.parametrize("width", [4, 5, 8])
def test_a_width_is_reached_by_the_runs_that_give_a_number(width: int) -> None:
    def half(seed: int) -> float:
        rng = np.random.default_rng(seed)
        return rng.normal(10, 3) if rng.random() < 0.5 else float("nan")

    found = replicate(half, stop=f"value ± {width} %")
    assert found.stop is not None
    assert (found.stop.reached, found.stop.open) == (True, ())
    assert found["value"].half_width <= width / 100 * found["value"].mean
    with pytest.raises(InputError, match="stop: unknown metric 'valve'"):
        replicate(half, stop="valve ± 5 %")


@pytest.mark.long  # smaller: the other tests of the file
def test_explorations_stop_at_a_width_or_tell_what_is_missing() -> None:
    found = explore(32, {"drawn": SMALL}, ["fcfs", "easy"], stop="utilisation ± 90 %, wait_mean ± 1 %", budget=40)
    assert found.stop is not None
    assert not found.stop.reached
    assert len(found.stop.open) == 2
    assert "fcfs: wait_mean" in found.stop.open[0]
    wide = explore(32, {"drawn": SMALL}, ["fcfs", "easy"], stop="utilisation ± 25 %")
    for policy in ("fcfs", "easy"):
        interval = wide.interval("utilisation", policy)
        assert interval.half_width <= 0.25 * interval.mean
    assert explore(8, "probe-4", ["fcfs"], seeds=1, until=1100.0).samples["makespan"][0] <= 1100


@pytest.mark.parametrize(("spread", "skewed"), [(1.0, False), (1.0, True)])
def test_wrong_decisions_are_as_rare_as_the_level_says(spread: float, skewed: bool) -> None:
    wrong = 0
    for i in range(200):
        rng = np.random.default_rng(i)
        draws = rng.exponential(spread, (3, 300)) if skewed else rng.normal(0, spread, (3, 300))
        values = dict(zip("abc", draws, strict=True))
        pairs = [("p", "w", "a", "b"), ("p", "w", "a", "c"), ("p", "w", "b", "c")]
        decisions = Decisions.of(Goal("wait"), pairs, Seeds(10, 300), 0.9)
        in_rounds(
            lambda *_: None,
            lambda n, d=decisions, v=values: d.look(lambda pair: v[pair[2]][:n] - v[pair[3]][:n]),
            10,
            300,
        )
        wrong += bool(decisions.decided)  # all are equal: each decision is wrong
    assert wrong <= 0.1 * 200


def test_goals_of_comparisons_are_those_of_explore() -> None:
    with pytest.raises(InputError, match="until: must be a time; the rule of stopping is stop="):
        compare(8, "probe-4", ["fcfs", "easy"], until="wait_mean decided")
    with pytest.raises(InputError, match="stop: unknown metric 'wait'"):
        explore(8, "probe-4", ["fcfs", "easy"], stop="wait decided", budget=30)
    with pytest.raises(InputError, match="seeds: must be two or more for an interval, got 1"):
        explore(8, "probe-4", ["fcfs", "easy"], seeds=1, stop="wait_mean decided")


def test_measurements_that_are_no_numbers_are_told():
    def run(seed):
        return {"mean": 1.0, "status": {"completed": 3}}

    with pytest.raises(InputError, match=r"measurement status: must be a number, got .*; return the result itself"):
        replicate(run, 2)
