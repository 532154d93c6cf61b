"""Heuristics through the environments make the schedules of ``simulate``."""

import numpy as np
import pytest

from simmodel import Workload, load_platform, load_workload, simulate
from simmodel.learn import backfill_env, batch_env, route_env
from simmodel.metrics import bounded_slowdown
from tests.helpers.data_files import data_file
from tests.helpers.learning import by_order, by_policy, first, first_allowed, mixed_log, play


def differing(env, choose, result):
    """Return how many starts of an episode differ from those of a result, and the value of its objective."""
    _, total, info = play(env, choose)
    starts = env.simulation.result().jobs["start"]
    assert len(starts) == len(result.jobs)
    assert total == pytest.approx(-info["objective"], abs=1e-9)
    return int((starts != result.jobs["start"]).sum()), info["objective"]


CASES = [
    ("fcfs", first, {}),
    ("easy", first, {"backfill": "easy"}),
    ("sjf", by_order("sjf"), {"hold": False}),
    ("sjf+easy", by_order("sjf"), {"hold": False, "backfill": "easy", "candidates": "sjf"}),
]


@pytest.mark.parametrize(("name", "choose", "options"), CASES, ids=[name for name, *_ in CASES])
def test_an_agent_that_orders_starts_as_the_policy(name, choose, options):
    log = mixed_log(200)
    if "backfill" in options:  # jobs that request no time are planned as if they had no end
        log = log.replace(requested=np.where(np.isnan(log["requested"]), np.inf, log["requested"]))
    assert differing(batch_env(16, log, window=200, **options), choose, simulate(16, log, name))[0] == 0


def test_an_agent_that_backfills_first_fit_starts_as_easy():
    log = mixed_log(200)
    log = log.replace(requested=np.where(np.isnan(log["requested"]), log["run"], log["requested"]))
    assert differing(backfill_env(16, log, window=200), first_allowed, simulate(16, log, "easy"))[0] == 0


def kth():
    return load_workload(data_file("swf/KTH-SP2-1996-2.1-cln.swf.gz")).where(slice(2000, 4000))


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "choose", "options"), CASES, ids=[name for name, *_ in CASES])
def test_orders_through_batch_on_kth(name, choose, options):
    log = kth()
    assert differing(batch_env(100, log, window=512, **options), choose, simulate(100, log, name))[0] == 0


def test_easy_through_backfill_on_kth():
    log = kth()
    assert differing(backfill_env(100, log, window=512), first_allowed, simulate(100, log, "easy"))[0] == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["least-loaded", "data-locality"])
@pytest.mark.parametrize("jobs", [400, pytest.param(5000, marks=pytest.mark.long)])
def test_routes_over_a_grid_with_files(name, jobs):
    grid, log = load_platform("tiers-30"), load_workload("tiers-30-day").where(slice(jobs))
    env = route_env(grid, log)
    result = simulate(grid, log.replace(requested=np.full(jobs, np.inf)), name)  # they request none
    assert differing(env, by_policy(name), result)[0] == 0
    assert (env.simulation.result().jobs["site"] == result.jobs["site"]).all()


@pytest.mark.parametrize("sequences", [1, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["fcfs", "sjf", "f1", "unicef", "wfp"])
def test_rewards_are_rlschedulers_metric(name, sequences):
    """RLScheduler's metric, bounded slowdown with 10 s, with run times as requests: that of ``simulate``."""
    log = load_workload(data_file("swf/lublin_256.swf.gz"))
    for number in range(sequences):
        part = log.where(slice(900 * number, 900 * number + 1024))
        env = batch_env(256, part, window=1024, hold=False, estimates="exact")
        result = simulate(256, part, name, estimates="exact")
        differ, value = differing(env, by_order(name), result)
        assert differ == 0
        waits = result.jobs["start"] - part["submit"]
        assert value == pytest.approx(float(bounded_slowdown(waits, part["run"], 10.0).mean()), abs=1e-9)


def held_next(log, processors, key):
    """Return the starts of the game of RLScheduler, without an event queue: the chosen job is next until it starts."""
    submit, run, size = (log[name].tolist() for name in ("submit", "run", "processors"))
    waiting, running, start = [], [], [0.0] * len(log)
    arrived, now = 0, 0.0
    while arrived < len(log) or waiting:
        while arrived < len(log) and (submit[arrived] <= now or not waiting):
            now = max(now, submit[arrived])
            waiting.append(arrived)
            arrived += 1
        running = [each for each in running if each[0] > now]
        job = min(waiting, key=lambda i: (key(i), i))
        waiting.remove(job)
        while processors - sum(each[1] for each in running) < size[job]:
            now = min(running)[0]
            running = [each for each in running if each[0] > now]
        start[job] = now
        running.append((now + run[job], size[job]))
        while arrived < len(log) and submit[arrived] <= now:
            waiting.append(arrived)
            arrived += 1
    return start


def test_the_chosen_job_is_next():
    """Jobs are chosen as in RLScheduler: a shorter one that comes later does not overtake, unlike in ``simulate``."""
    log = mixed_log(150, seed=8)
    log = log.replace(requested=log["run"])
    env = batch_env(16, log, window=150)
    play(env, by_order("sjf"))
    starts = env.simulation.result().jobs["start"]
    assert starts.tolist() == held_next(log, 16, lambda i: float(log["run"][i]))
    assert (starts != simulate(16, log, "sjf").jobs["start"]).any()


def test_a_job_behind_the_window_is_not_seen():
    log = Workload({"submit": [0, 0, 0], "run": [9, 5, 1], "processors": [4, 4, 4], "requested": [9, 5, 1]})
    env = batch_env(4, log, window=2)
    observation, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [True, True]
    assert observation["jobs"][:, 2].argmin() == 1
    assert play(env, by_order("fcfs"))[2]["objective"] == pytest.approx((1 + 1.4 + 1.5) / 3)


def test_copies_keep_what_is_kept_for_a_job_that_no_known_end_frees():
    log = mixed_log(40)
    env = batch_env(16, log.replace(requested=np.full(40, np.inf)), window=200, hold=False, backfill="easy")
    _, _, info = play(env, first_allowed, steps=25)
    copies = []
    while "reason" not in info:
        copies.append(env.fork())
        *_, info = env.step(first_allowed(env, info))
    jobs = env.simulation.result().jobs
    starts = dict(zip(jobs["job"].tolist(), jobs["start"].tolist(), strict=True))
    for copy in copies:
        while "reason" not in copy.step(first_allowed(copy, {"action_mask": copy.action_masks()}))[-1]:
            pass
        own = copy.simulation.result().jobs
        assert dict(zip(own["job"].tolist(), own["start"].tolist(), strict=True)).items() <= starts.items()
