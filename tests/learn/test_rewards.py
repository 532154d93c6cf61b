"""The sum of the rewards of an episode is the metric of its jobs, and no episode is worth more for serving fewer."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from simmodel import Job, Start, Workload, simulate, start
from simmodel.foundation.errors import InputError
from simmodel.learn import Episodes, Filter, SchedulingEnv, batch_env, route_env
from simmodel.platform import ClusterSpec, GridSpec, OutageSpec, PartitionSpec, SiteSpec
from simmodel.work import Dependency
from tests.helpers.examples import seeds
from tests.helpers.learning import first_allowed, play
from tests.helpers.odd_episodes import KINDS, odd_env, play_at_random, value_of

OBJECTIVES = ("wait_mean", "turnaround_mean", "slowdown_mean", "bounded_slowdown_mean", "bounded_slowdown_max")


@pytest.mark.few(20)
@pytest.mark.parametrize("seed", seeds(60, 2000))
@pytest.mark.parametrize("kind", KINDS)
def test_the_rewards_of_odd_episodes_add_up_to_the_metric(kind: str, seed: int) -> None:
    """With cancelled jobs, failed dependencies, outages, stalls, limits, warm beginnings; 2,000 of each kind in all."""
    env, objective = odd_env(kind, seed)
    found = play_at_random(env, seed)
    if found is None:
        return
    total, info = found
    assert -total == pytest.approx(info["objective"], rel=1e-9, abs=1e-9, nan_ok=True)
    if info["reason"] != "done":
        return
    result = env.simulation.result()  # type: ignore[union-attr]
    assert info["objective"] == pytest.approx(value_of(result, objective), rel=1e-9, abs=1e-9, nan_ok=True)
    metrics = result.metrics()
    if objective in metrics and objective != "utilisation":
        assert info["objective"] == pytest.approx(metrics[objective], rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("kind", "seed"), [("Batch", 369), ("Batch", 557), ("Backfill", 1655)])
def test_the_utilisation_is_known_in_episodes_without_a_job_that_counts(kind: str, seed: int) -> None:
    test_the_rewards_of_odd_episodes_add_up_to_the_metric(kind, seed)


CANCELLED = [
    Job(id=1, processors=4, run=1000),
    Job(id=2, processors=4, run=10, cancel=5),
    Job(id=3, submit=10, run=100),
]
FAILED = [Job(id=1, run=9, requested=5), Job(id=2, run=5, dependencies=[Dependency(1, "success")]), Job(id=3, run=50)]
DOWN = ClusterSpec(partitions=[PartitionSpec(processors=4)], outages=[OutageSpec(at=90, until=1000, processors=4)])
NOWHERE = [Job(id=1, run=9, inputs=["nowhere"]), Job(id=2, run=50), Job(id=3, submit=500, run=50)]
GRID = GridSpec(sites=[SiteSpec(name="a", cores=2), SiteSpec(name="b", cores=2)])


@pytest.mark.parametrize("when", ["end", "differences"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "make",
    [
        lambda **options: batch_env(4, CANCELLED, window=4, **options),
        lambda **options: batch_env(4, FAILED, window=4, **options),
        lambda **options: batch_env(DOWN, [Job(processors=4, run=100, requested=100), Job(run=5)], window=4, **options),
        lambda **options: route_env(GRID, NOWHERE, **options),
    ],
    ids=["cancelled", "dependency failed", "outage", "a file that exists nowhere"],
)
def test_jobs_that_are_over_do_not_wait(make: Any, objective: str, when: str) -> None:
    env = make(reward=objective, when=when)
    _, total, info = play(env, first_allowed)
    assert info["reason"] == "done"
    assert -total == pytest.approx(value_of(env.simulation.result(), objective), abs=1e-9)


@pytest.mark.parametrize("log", [False, True])
def test_a_failed_run_that_came_to_its_own_end_is_rewarded_when_it_ends(log: bool) -> None:
    jobs = [Job(processors=4, run=10, outcome="failed"), Job(processors=4, run=10), Job(processors=4, run=10)]
    columns = {"submit": [0] * 3, "run": [10] * 3, "processors": [4] * 3, "outcome": ["failed", "completed", "failed"]}
    env = batch_env(4, Workload(columns) if log else jobs, window=4, reward="turnaround_mean", when="differences")
    env.reset(seed=0)
    rewards = [env.step(0)[1] for _ in range(3)]
    assert rewards == pytest.approx([0, -10 / 3, -(20 + 30) / 3])  # the third job is chosen while the second one waits


def test_filters_value_episodes_as_metrics_do() -> None:
    draw = Episodes(4, CANCELLED)
    value = simulate(4, CANCELLED, "sjf").metrics()["bounded_slowdown_mean"]
    assert Filter(value, value)(draw(np.random.default_rng(0), "sjf"))


def test_a_warm_episode_counts_the_jobs_that_had_not_started() -> None:
    queue = start(128, "lublin-128-week", "fcfs").run(until="4.5d").snapshot()
    env = batch_env(warm=[queue], window=16)
    _, total, info = play(env, lambda _env, _info: 0)
    metric = env.simulation.result().metrics()["bounded_slowdown_mean"]
    assert -total == info["objective"] == pytest.approx(metric, abs=1e-9)
    env.reset(seed=0)
    fork = env.fork()
    while "reason" not in info or fork.view is not None:
        *_, info = fork.step(0)
    assert info["objective"] == pytest.approx(metric, abs=1e-9)


FIVE = [Job(processors=4, run=run, requested=run) for run in (10, 20, 5, 40, 1)]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_stall_costs_more_than_any_schedule(objective: str) -> None:
    """Of an agent that may do nothing: the jobs left count as if each of them came last."""

    def act(view: Any, action: Any) -> Any:
        fitting = [job for job in view.waiting if view.places[0].fits(job)]
        return [Start(fitting[0], view.places[0])] if action and fitting else []

    def observe(view: Any) -> Any:
        return np.zeros(1, dtype=np.float32)

    box, choice = spaces.Box(0, 1, (1,)), spaces.Discrete(2)
    worst = -math.inf
    for order in permutations(FIVE):
        served = simulate(4, list(order), "fcfs")
        worst = max(worst, value_of(served, objective))
    for served in range(5):
        env = SchedulingEnv(Episodes(4, FIVE), observe, act, objective, observation_space=box, action_space=choice)
        env.reset(seed=0)
        info: dict[str, Any] = {}
        for number in range(9):
            if "reason" not in info:
                *_, info = env.step(int(number < served))
        assert info["reason"].startswith("stalled: ")
        best = value_of(simulate(4, FIVE, "fcfs"), objective)
        assert info["objective"] >= (worst if not served else best)
    masked = batch_env(4, FIVE, window=8, wait=True, reward=objective)
    masked.reset(seed=0)
    with pytest.raises(InputError, match="mask allows"):
        masked.step(8)


@pytest.mark.few(6)
@pytest.mark.parametrize("seed", seeds(20, 500))
@pytest.mark.parametrize("objective", ["wait_mean", "bounded_slowdown_mean"])
def test_playing_at_random_never_beats_the_best_order(objective: str, seed: int) -> None:
    """Jobs that take the whole machine: what waits, and for how long, costs no less than the best order of all."""
    rng = np.random.default_rng(seed)
    runs = rng.choice([1, 5, 20, 60], size=int(rng.integers(2, 6))).tolist()
    jobs = [Job(processors=4, run=float(run), requested=float(run)) for run in runs]
    best = min(value_of(simulate(4, list(order), "fcfs"), objective) for order in permutations(jobs))
    for hold in (True, False):
        env = batch_env(4, jobs, window=8, wait=True, hold=hold, reward=objective)
        found = play_at_random(env, seed)
        assert found is not None
        assert found[1]["reason"] == "done"
        assert -found[0] >= best - 1e-9
