"""Agents are policies like all others, and refused where they do not belong."""

import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from simmodel import Portfolio, Start, compare, explore, simulate, start, what_if
from simmodel.foundation.errors import InputError
from simmodel.learn import Episodes, SchedulingEnv, agent_policy, backfill_env, batch_env, judge, route_env
from simmodel.referee import verify
from simmodel.testing import check_policy
from tests.helpers.learning import mixed_log

LOG = mixed_log(80)


def oldest(observation, mask):
    """Choose as FCFS does."""
    assert observation["jobs"].shape == (len(mask), 6)
    return int(mask.argmax())


def first_allowed(observation, mask):
    return int(mask.argmax())


class Weighted:
    """A linear agent, with the spaces of the environment that it has learned in, as models of libraries have."""

    def __init__(self, env, weights=(0, 1, 1, 0, -1, 0)):
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.weights = np.array(weights, dtype=np.float32)

    def predict(self, observation, *, action_masks):
        scores = np.where(action_masks, observation["jobs"] @ self.weights, np.inf)
        return np.array(scores.argmin()), None


class Unmasked:
    """A model with the signature of those of Stable-Baselines3, whose actions are drawn unless it is told otherwise."""

    def __init__(self, env, action=None):
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.fixed, self.asked = action, []

    def choose(self, observation, mask):
        return self.action_space.n - 1 if self.fixed is None else self.fixed

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.asked.append(deterministic)
        action = self.choose(observation, None) if deterministic else np.random.default_rng().integers(2)
        return np.array(action), state


class Masked(Unmasked):
    """One with the signature of MaskablePPO of sb3-contrib."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False, action_masks=None):
        self.asked.append(deterministic)
        allowed = np.flatnonzero(action_masks) if action_masks is not None else np.arange(2)
        return np.array(allowed[-1] if deterministic else np.random.default_rng().choice(allowed)), state


def starts(result):
    return result.jobs["start"].tolist()


@pytest.fixture
def fcfs():
    return agent_policy(oldest, batch_env(8, LOG, window=16), "oldest")


def test_an_agent_runs_wherever_a_policy_does(fcfs):
    wanted = starts(simulate(8, LOG, "fcfs"))
    assert starts(simulate(8, LOG, fcfs)) == wanted
    results = compare(8, LOG, [fcfs, "fcfs"])
    assert starts(results["oldest"]) == starts(results["fcfs"]) == wanted
    assert starts(simulate(8, LOG, Portfolio({"agent": fcfs}))) == wanted
    verdict = verify(LOG, simulate(8, LOG, "fcfs"), 8, fcfs)
    assert verdict.right
    snapshot = start(8, LOG, "fcfs").run(until=2000).snapshot()
    found = what_if(snapshot, {"agent": fcfs, "fcfs": "fcfs"})
    assert found["agent"].measures == found["fcfs"].measures


def test_agents_run_in_other_processes(fcfs):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = explore(8, LOG, [fcfs, "fcfs"], seeds=2, executor=pool)
    waits = [found["8", "workload", name]["wait_mean"] for name in ("oldest", "fcfs")]
    assert waits[0].mean == waits[1].mean


@pytest.mark.parametrize(
    ("make", "predict"), [(batch_env, first_allowed), (backfill_env, first_allowed), (route_env, first_allowed)]
)
def test_agents_are_checked_as_policies_are(make, predict):
    platform = (8, 4) if make is route_env else 8
    check_policy(agent_policy(predict, make(platform, LOG)))


def test_a_model_with_spaces():
    env = batch_env(8, LOG, window=16)
    agent = agent_policy(Weighted(env), gymnasium.wrappers.RecordEpisodeStatistics(env))
    check_policy(agent)
    assert starts(simulate(8, LOG, agent)) != starts(simulate(8, LOG, "fcfs"))


def test_the_job_that_is_next_stays_so_in_copies():
    agent = agent_policy(Weighted(batch_env(8, LOG, window=16)), batch_env(8, LOG, window=16))
    whole = starts(simulate(8, LOG, agent))
    for instant in (300, 1000, 2500):
        snapshot = start(8, LOG, agent).run(until=instant).snapshot()
        left = simulate(snapshot, policy=agent).jobs
        for job, began in zip(left["job"].tolist(), left["start"].tolist(), strict=True):
            assert began == whole[job - 1]


def own_env():
    """Return the environment without masks of the page."""
    return SchedulingEnv(
        Episodes(8, LOG),
        nothing,
        in_order,
        observation_space=spaces.Box(0, 1, (2,)),
        action_space=spaces.Discrete(2),
    )


def nothing(_view):
    return np.zeros(2, dtype=np.float32)


def in_order(view, _action):
    for job in view.waiting:
        if not view.places[0].fits(job):
            return
        yield Start(job, view.places[0])


@pytest.mark.parametrize("kind", [Unmasked, Masked])
@pytest.mark.parametrize("make", [lambda: batch_env(8, LOG, window=16, hold=False), own_env], ids=["masks", "none"])
def test_models_with_and_without_masks_give_the_same_run_each_time(kind, make):
    env = make()
    model = kind(env)
    agent = agent_policy(model, env)
    runs = [simulate(8, LOG, agent) for _ in range(2)]
    assert starts(runs[0]) == starts(runs[1])
    assert set(model.asked) == {True}
    if make is own_env:
        assert starts(runs[0]) == starts(simulate(8, LOG, "fcfs"))
    check_policy(agent)


def test_masked_actions_of_a_model_without_masks_are_replaced_and_counted():
    env = batch_env(8, LOG, window=16)
    result = simulate(8, LOG, agent_policy(Unmasked(env), env, "ppo"))
    assert (result.status == "completed").all()
    (note,) = result.report.notes
    assert re.fullmatch(r"agent ppo, which knows no masks: \d+ actions replaced by the first allowed one", note)
    assert simulate(8, LOG, agent_policy(Masked(env), env)).report.notes == ()
    with pytest.raises(InputError, match=r"agent: must return actions in Discrete\(16\), got array\(16\)"):
        agent_policy(Unmasked(env, 16), env)


def test_a_judged_model_has_the_same_value_each_time():
    env = batch_env(128, "lublin-128-week", window=8, hold=False)
    agent = agent_policy(Masked(env), env, "model")
    days = [(f"{day}d", f"{day + 1}d") for day in range(2)]
    values = [judge({"model": agent}, "lublin-128-week", days, heuristics=["fcfs"]).values["model"] for _ in range(2)]
    assert values[0].tolist() == values[1].tolist()


def test_agents_of_other_environments_are_refused():
    agent = Weighted(batch_env(8, LOG, window=16))
    with pytest.raises(InputError, match="agent: must be made for observations in Dict"):
        agent_policy(agent, batch_env(8, LOG, window=32))
    with pytest.raises(InputError, match="agent: must be made for observations in Dict"):
        agent_policy(agent, backfill_env(8, LOG, window=16))
    with pytest.raises(InputError, match="agent: must be made for actions in "):
        agent_policy(agent, batch_env(8, LOG, window=16, wait=True))
    with pytest.raises(InputError, match=r"agent: must take observations in Dict.*, got KeyError: 'jobs'"):
        agent_policy(oldest, route_env((8, 8), LOG))
    with pytest.raises(InputError, match=r"agent: must return actions in Discrete\(16\), got 16"):
        agent_policy(lambda seen, mask: 16, batch_env(8, LOG, window=16))
    with pytest.raises(InputError, match="env: must be a SchedulingEnv, got None"):
        agent_policy(oldest, None)
    with pytest.raises(InputError, match="env: must be a SchedulingEnv, got"):
        agent_policy(oldest, gymnasium.make("CartPole-v1"))


def test_a_policy_of_jobs_is_none_of_brokers(fcfs):
    with pytest.raises(InputError, match="decides when jobs start on the nodes of a cluster"):
        simulate((8, 8), LOG, fcfs)
