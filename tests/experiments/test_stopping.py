"""Sequential stopping: its intervals cover the truth as often as they say, and its numbers follow from the samples."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from simmodel import InputError, Workload, replicate, simulate
from simmodel.experiments.stopping import Decisions, Goal, Seeds, chosen_seeds, goal_of, in_rounds, looks
from simmodel.metrics.statistics import Interval, cautious_interval, mean_interval

LOAD = 0.5
TRUTH = LOAD / (1 - LOAD)  # the mean wait in an M/M/1 queue, in mean run times


def wait_of_mm1(seed: int, jobs: int = 200, shift: int = 0) -> float:
    """Return the mean wait of jobs that arrive in an M/M/1 queue in equilibrium, simulated."""
    rng = np.random.default_rng([seed, shift])
    before = rng.geometric(1 - LOAD) - 1  # jobs in the queue in equilibrium; the first one runs, without memory
    submit = np.concatenate([np.zeros(before), np.cumsum(rng.exponential(1 / LOAD, jobs))])
    log = Workload(
        {"submit": submit, "run": rng.exponential(1, before + jobs), "processors": np.ones(before + jobs, int)}
    )
    waits = simulate(1, log, "fcfs").jobs["wait"]
    return float(waits[before:].mean())


def found_by(function: Callable[[int], float], goal: str, seeds: Sequence[int] | None = None) -> Interval:
    """Return the interval of a sequence, which reaches its goal."""
    found = replicate(function, seeds, stop=goal, budget=10**5)
    assert found.stop is not None
    assert found.stop.reached
    width = found.stop.goals[0].width
    assert width is not None
    assert found["value"].half_width <= width * found["value"].mean
    return found["value"]


@pytest.mark.exhaustive
def test_the_intervals_of_sequences_cover_the_wait_of_an_mm1_queue_in_95_of_100_cases() -> None:
    inside = 0
    for i in range(500):
        interval = found_by(partial(wait_of_mm1, shift=i), "± 10 %")
        inside += TRUTH in interval
    assert 0.93 <= inside / 500 <= 0.97


def waits_of_mm1(repetitions: int, load: float, jobs: int, seed: int = 0) -> np.ndarray:
    """Return mean waits as :func:`wait_of_mm1` simulates them, many at once, by Lindley's recursion."""
    rng = np.random.default_rng(seed)
    wait = np.where(rng.random(repetitions) < 1 - load, 0, rng.exponential(1 / (1 - load), repetitions))
    sums = np.zeros(repetitions)
    for _ in range(jobs):
        sums += wait
        wait = np.maximum(0, wait + rng.exponential(1, repetitions) - rng.exponential(1 / load, repetitions))
    return sums / jobs


@pytest.mark.parametrize(("load", "jobs", "goal"), [(0.5, 200, "± 10 %"), (0.8, 500, "± 10 %")])
def test_intervals_of_sequences_cover_as_often_as_they_say(load: float, jobs: int, goal: str) -> None:
    waits = waits_of_mm1(40_000, load, jobs)
    truth = load / (1 - load)
    assert waits.mean() == pytest.approx(truth, rel=0.02)
    parts = [range(200 * i, 200 * i + 2000) for i in range(200)]  # of 40,000 waits
    intervals = [found_by(lambda seed: float(waits[seed % 40_000]), goal, part) for part in parts]
    assert 0.93 <= np.mean([truth in interval for interval in intervals]) <= 0.97
    assert np.mean([interval.count for interval in intervals]) > 40


@pytest.mark.long  # smaller: the other tests of the file
def test_a_simulated_queue_is_that_of_the_recursion() -> None:
    simulated = [wait_of_mm1(seed, 100) for seed in range(150)]
    assert (
        np.mean(simulated) in mean_interval(waits_of_mm1(2000, LOAD, 100), 0.999)
        or abs(np.mean(simulated) - TRUTH) < 0.15
    )


def test_the_number_of_replications_depends_on_the_samples_alone() -> None:
    waits = waits_of_mm1(1000, 0.5, 50)

    def measured(seed: int) -> dict[str, float]:
        return {"wait_mean": float(waits[seed % 1000]), "other": float(seed % 7)}

    here = replicate(measured, stop="wait_mean ± 10 %, other ± 0.3")
    with ThreadPoolExecutor(3) as threads:
        there = replicate(measured, stop="wait_mean +- 10%, other +- 0.3", executor=threads)
    assert here.samples["seed"].tolist() == there.samples["seed"].tolist()
    assert here["wait_mean"].half_width <= 0.1 * here["wait_mean"].mean
    assert here["other"].half_width <= 0.3
    assert "reached after" in here.summary()
    longer = replicate(measured, len(here.samples) + 10)
    assert longer.samples["seed"][: len(here.samples)].tolist() == here.samples["seed"].tolist()


def test_a_spent_budget_is_told() -> None:
    found = replicate(lambda seed: float(seed % 1000), stop="± 0.1 %", budget=64)
    assert found.stop is not None
    assert not found.stop.reached
    assert len(found.samples) == 64
    assert "goal not reached" in repr(found)
    assert found.summary().endswith(f"not reached with the budget of 64 replications (value {found['value']})")
    zero = replicate(lambda seed: 1.0 - 2.0 * (seed % 2), [*range(40)], stop="± 1 %")
    assert len(zero.samples) == 40  # a share of nothing is never reached


def test_the_until_of_a_simulation_is_passed_on() -> None:
    found = replicate(simulate, 2, until=100.0, platform=8, workload="poisson-mm4", policy="fcfs")
    assert found.samples["makespan"].max() <= 100


def test_cautious_intervals_are_wider_for_few_and_skewed_samples() -> None:
    rng = np.random.default_rng(1)
    for draw, few, many in ((rng.standard_normal, 0.08, 0.015), (rng.standard_exponential, 0.10, 0.03)):
        for count, least in ((30, few), (1000, many)):
            samples = draw(count)
            wider = cautious_interval(samples, 0.95).half_width / mean_interval(samples, 0.95).half_width - 1
            assert least <= wider < 0.25
    assert cautious_interval([2.0, 2.0, 2.0], 0.95).why == "all 3 samples are equal"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"stop": "wait_mean"}, "stop: must be like 'wait_mean ± 5 %' or 'wait_mean decided', got 'wait_mean'"),
        ({"stop": "± -5 %"}, "stop: must be like"),
        ({"stop": "± nan"}, "stop: must be like"),
        ({"stop": "± 1e999"}, "stop: must be like"),
        ({"stop": "± 1-2"}, "stop: must be like"),
        ({"stop": ""}, "stop: must be like"),
        ({"stop": "value decided"}, "stop: must be a width, as 'wait_mean ± 5 %', got 'value decided'"),
        ({"stop": "vaule ± 5 %"}, "stop: unknown metric 'vaule'; did you mean 'value'?"),
        ({"stop": "± 5 %", "budget": 1}, "seeds: must be two or more for an interval, got 1"),
        ({"stop": "± 5 %", "seeds": 40, "budget": 30}, "budget: must be >= 40, the number of seeds at the first look"),
        ({"seeds": [1, 1, 2]}, "seeds: must name each seed once"),
    ],
)
def test_invalid_goals_are_refused(arguments: dict, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        replicate(lambda seed: float(seed % 5), **arguments)
    assert sentence in str(caught.value)


def test_rounds_grow_to_the_predicted_number() -> None:
    rounds: list[tuple[int, int]] = []
    assert in_rounds(
        lambda *ends: rounds.append(ends), lambda n: 31 if n == 30 else 500 if n < 200 else 0, 30, 150
    ) == (150, False)
    assert rounds == [(0, 30), (30, 33), (33, 66), (66, 132), (132, 150)]
    assert [looks(30, most) for most in (30, 31, 60, 61)] == [1, 2, 2, 3]


def test_goals_read_as_they_print() -> None:
    for text in ("wait_mean ± 5 %", "slr ± 0.25", "wait_mean decided", "a.b ± 12.5 %"):
        (goal,) = goal_of(text)
        assert str(goal) == text
    assert chosen_seeds(None, (), None, usual=7, fewest=1).part(2, 4) == chosen_seeds(9, (), None, 7, 1).part(2, 4)


@pytest.mark.parametrize("draw", ["log-normal", "normal", "exponential"])
def test_skewed_differences_of_equal_means_are_seldom_decided(draw: str) -> None:
    rng = np.random.default_rng(4)
    mean = {"log-normal": np.exp(1.125), "normal": 0.0, "exponential": 1.0}[draw]
    wrong = 0
    for _ in range(150):
        drawn = {"log-normal": rng.lognormal(0, 1.5, 480), "normal": rng.normal(size=480)}
        drawn["exponential"] = rng.exponential(size=480)
        decisions = Decisions.of(Goal("wait_mean"), [("p", "w", "a", "b")], Seeds(30, 480), 0.95)
        for count in (30, 60, 120, 240, 480):
            decisions.look(lambda _, values=drawn[draw][:count]: values - mean)
        wrong += len(decisions.decided)
    assert wrong <= 0.08 * 150  # 23 % of log-normal ones with intervals of Student's t alone
