"""Agents are policies like all others, and refused where they do not belong."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import gymnasium
import numpy as np
import pytest

from simmodel import Portfolio, compare, explore, simulate, start, what_if
from simmodel.foundation.errors import InputError
from simmodel.learn import agent_policy, backfill_env, batch_env, route_env
from simmodel.referee import verify
from simmodel.testing import check_policy
from simmodel.twin.mirror.mirror import Mirror
from simmodel.twin.shadow import Shadow
from simmodel.twin.sources.log import EventsOf
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


def test_a_shadow_explains_the_starts_of_an_agent(fcfs):
    told = []
    simulation = start(8, LOG, fcfs)
    simulation.env.observe(EventsOf(simulation.system, told.append, "alps"))
    simulation.run()
    shadow = Shadow(Mirror(8, "alps"), fcfs)
    for event in told:
        shadow.take(event)
    assert shadow.report().explained == 1.0


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
