"""Replications that are copies of one run: they are said to be equal, and nothing is concluded from them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from simmodel import Job, Workload, simulate
from simmodel.experiments import compare, explore, replicate, sensitivity
from simmodel.experiments.broker_comparison import compare_brokers
from simmodel.experiments.portfolio_comparison import replicate_portfolio
from simmodel.experiments.runs import Runs
from simmodel.experiments.stopping import EQUAL, Seeds, depends_on_seed, goal_of
from simmodel.generators import lublin
from simmodel.learn import agent_policy, batch_env, judge
from simmodel.policies.portfolio import Portfolio

LOG = Workload(
    {"submit": [0, 1, 2, 3], "run": [9, 40, 3, 5], "processors": [3, 4, 1, 1], "requested": [9, 40, 3, 5]}, processors=4
)
DRAWN = partial(lublin, 30, 64)


def test_one_log_is_no_sample_in_an_exploration() -> None:
    found = explore(4, {"log": LOG}, ["fcfs", "easy"], seeds=3)
    assert found.interval("wait_mean", "easy").why == "all 3 samples are equal"
    assert found.difference("fcfs", "easy", metric="wait_mean").why == "all 3 samples are equal"
    assert np.isnan(found.table["wait_mean_low"]).all()
    assert found.summary().splitlines()[-1] == EQUAL
    assert "±" not in found.summary()
    assert EQUAL not in explore(4, {"log": LOG}, ["fcfs"], seeds=1).summary()  # one run is a run
    bars = [lines for ax in found.plot().axes for drawn in ax.containers for lines in drawn.lines[2]]
    assert len(bars) == 4
    assert not any(len(segment) for lines in bars for segment in lines.get_segments())


@pytest.mark.parametrize("goal", ["wait_mean decided", "wait_mean ± 5 %", "wait_mean ± 5 %, makespan ± 1"])
def test_a_sequence_of_copies_stops_after_a_few(goal: str) -> None:
    found = explore(4, {"log": LOG}, ["fcfs", "easy"], stop=goal, budget=60)
    assert found.stop is not None
    assert (found.stop.reached, found.stop.count, len(found.samples)) == (False, 5, 10)
    assert str(found.stop) == f"{goal}: stopped after 5 replications; {EQUAL}"
    assert found.summary().count(EQUAL) == 1
    for each in found.decisions:
        assert (each["lower"].tolist(), each["replications"].tolist()) == ([""], [5])
        assert np.isnan(each["low"]).all()
        assert each["difference"][0] == pytest.approx(25.25 - 13.5)


def test_copies_beside_a_sample_are_told_apart() -> None:
    works: dict[str, object] = {"log": LOG, "drawn": DRAWN}
    found = explore(64, works, ["fcfs", "easy"], seeds=3)  # type: ignore[arg-type]
    lines = found.summary().splitlines()
    assert f"log fcfs, log easy: {EQUAL}" in lines
    assert sum("±" in line for line in lines) == 2
    until = explore(64, works, ["fcfs", "easy"], stop="wait_mean decided", budget=60)  # type: ignore[arg-type]
    assert until.stop is not None
    assert not until.stop.reached
    assert any("with log: difference of wait_mean 0 (no interval: all" in line for line in until.stop.notes)
    assert dict(zip(until.decisions[0]["workload"], until.decisions[0]["lower"], strict=True))["log"] == "same"


def test_metrics_that_do_not_move_are_named_beside_those_that_do() -> None:
    found = replicate(lambda seed: {"moves": float(seed % 7), "stays": 3.0, "mostly": float(seed == 0)}, range(10))
    lines = found.summary().splitlines()
    assert "stays   3 (no interval: all 10 samples are equal)" in lines
    assert lines[-2:] == [
        "no interval, all replications are equal: stays",
        "extremes carry the mean, its interval may not hold: mostly",
    ]
    assert np.isnan(found.table["low"].tolist()[1])
    assert "±" in lines[0]


def test_replications_of_one_log_have_no_interval() -> None:
    found = replicate(simulate, 5, platform=4, workload=LOG, policy="easy")
    assert str(found["wait_mean"]) == "13.5 (no interval: all 5 samples are equal)"
    assert found.summary().splitlines()[-1] == EQUAL
    other = replicate(simulate, 5, platform=4, workload=LOG, policy="fcfs")
    assert other.difference(found, metric="wait_mean").why == "all 5 samples are equal"
    same = replicate(lambda _: 3.0, stop="± 1 %")
    assert str(same.stop) == f"value ± 1 %: stopped after 5 replications; {EQUAL}"
    assert "±" not in same.summary().splitlines()[0]


def test_a_sequence_goes_on_where_only_the_goal_stays() -> None:
    """Idle systems have no waits in the first runs, but the seed moves other metrics."""

    def measured(seed: int) -> dict[str, float]:
        return {"wait": float(seed >= 6) * seed, "makespan": float(seed)}

    found = replicate(measured, range(40), stop="wait ± 50")
    assert found.stop is not None
    assert (found.stop.reached, found.stop.count) == (True, 30)


@pytest.mark.parametrize(
    ("values", "moves"),
    [
        ({"wait": [1.0, 1.0]}, False),
        ({"wait": [5e5, 5e5 + 1e-10]}, False),
        ({"wait": [1.0, np.nan]}, True),
        ({"wait": [np.nan, np.nan], "decision_mean": [1.0, 2.0]}, False),
        ({"wait": [1.0, 1.0], "makespan": [1.0, 2.0]}, True),
    ],
)
def test_only_differences_beyond_rounding_depend_on_the_seed(values: dict[str, list[float]], moves: bool) -> None:
    assert depends_on_seed((name, np.array(each)) for name, each in values.items()) == moves


def test_decided_differences_that_extremes_carry_are_marked() -> None:
    rng = np.random.default_rng(2)
    long_tail = {str(seed): 2.0 + float(rng.pareto(2.0)) for seed in range(30)}

    def measure(_: None, item: object) -> dict[str, float]:
        assert isinstance(item, dict)
        return {"wait": long_tail[item["seed"]] if item["policy"] == "a" else 0.5}

    runs = Runs(
        measure=measure, shared=None, seeds=Seeds(30, 30, tuple(range(30))), goals=goal_of("wait decided"),
        cells=[("p", "w", "a"), ("p", "w", "b")], axes=("platform", "workload", "policy"),
    )  # fmt: skip
    stop = runs.run()
    assert stop is not None
    assert stop.reached
    assert stop.notes[0].startswith("extremes carry the mean of a and b on p with w: difference of wait 2.")
    assert "wait decided: reached after 30 replications; extremes carry" in str(stop)


def test_brokers_and_portfolios_of_one_log() -> None:
    both = compare_brokers({"a": 4, "b": 4}, LOG, ["random"], repeat=3)
    interval = both.interval("random")
    assert interval is not None
    assert interval.why in ("", "all 3 samples are equal")
    alone = compare_brokers({"a": 4}, LOG, ["random"], repeat=3)
    assert f"random: {EQUAL}" in alone.summary()
    assert "±" not in alone.summary()
    drawn: Callable[..., Workload] = lambda seed: LOG  # noqa: E731
    runs = replicate_portfolio(4, drawn, Portfolio(["fcfs", "easy"]), seeds=3)
    assert runs.summary().splitlines()[-1] == EQUAL
    assert "nan" not in runs.summary()


def test_weeks_that_are_equal_and_effects_that_are() -> None:
    agent = agent_policy(lambda observation, mask: int(mask.argmax()), batch_env(window=4))
    jobs = [Job(id=i, submit=86400 * (i // 3), processors=4, run=9) for i in range(18)]
    days = [(f"{day}d", f"{day + 1}d") for day in range(6)]
    found = judge({"agent": agent}, Workload.from_jobs(jobs, processors=4), days, platform=4, heuristics=["fcfs"])
    assert found.interval("agent").why == "all 6 samples are equal"
    assert "(all weeks equal)" in found.summary()
    effects = sensitivity(lambda x, y: 3 * x + y, {"x": (0, 1), "y": (0, 1)})
    assert np.isnan(effects.table["mu_star_low"]).all()
    assert "±" not in effects.summary()


def test_a_comparison_has_the_difference_and_why_it_has_no_interval() -> None:
    both = compare(4, LOG, ["fcfs", "easy"])
    found = both.difference("fcfs", "easy")
    assert found.mean == pytest.approx(25.25 - 13.5)
    assert found.why.startswith("worth ")
    assert both.difference("easy", "easy").why == "all 4 observations are equal"
    with pytest.raises(KeyError, match="unknown result 'sjf'"):
        both.difference("sjf", "easy")
