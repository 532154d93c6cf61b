"""Play episodes, by policies and at random, and draw other futures of the jobs at a decision."""

from collections.abc import Callable

import numpy as np

from simmodel import Workload
from simmodel.learn import SchedulingEnv
from simmodel.scheduling.registry import policy

Chooses = Callable[[SchedulingEnv, dict], int]


def play(env, choose: Chooses, *, seed=0, steps=10**9):
    """Play an episode, or some steps of it; return the last observation, the sum of the rewards and the last info."""
    observation, info = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended and steps:
        observation, reward, terminated, truncated, info = env.step(choose(env, info))
        total += reward
        ended, steps = terminated or truncated, steps - 1
    return observation, total, info


def first(_env, _info):
    return 0


def first_allowed(_env, info):
    return int(info["action_mask"].argmax())


def row_of(env, job):
    """Return the row of a job in the window."""
    return env.observe.jobs(env.view).index(job)


def by_order(order):
    """Return who chooses the head of the queue in an order."""
    order = policy(order)
    return lambda env, _: row_of(env, env.view.waiting.by(order).head())


def by_policy(name):
    """Return who chooses the place that a policy of brokers does."""
    made = {}

    def choose(env, _):
        if env.view not in made:
            made.clear()
            made[env.view] = policy(name).fresh()
        return env.view.places.index(next(iter(made[env.view].decide(env.view))).place)

    return choose


def at_random(seed):
    """Return who chooses one of the allowed actions by a stream of its own."""
    rng = np.random.default_rng(seed)
    return lambda _env, info: int(rng.choice(np.flatnonzero(info["action_mask"])))


def mixed_log(jobs=60, seed=3):
    """Return jobs of a small busy machine, a third of which have no request."""
    rng = np.random.default_rng(seed)
    run = np.ceil(rng.exponential(900.0, jobs))
    requested = np.where(rng.random(jobs) < 1 / 3, np.nan, np.ceil(run * rng.uniform(1.0, 4.0, jobs)))
    submit = np.floor(np.cumsum(rng.exponential(60.0, jobs)))
    return Workload({"submit": submit, "run": run, "processors": rng.integers(1, 9, jobs), "requested": requested})


def other_future(log, jobs, now, rng):
    """Return the log with another future: what happens after an instant (s) is drawn anew.

    Jobs that have ended stay; running ones run on for other times, within their requests; of waiting ones all but the
    run times stay; later ones are others.
    """
    columns = {name: log[name].astype(float) for name in ("submit", "run", "processors", "requested")}
    start, end = (np.nan_to_num(jobs[name], nan=np.inf) for name in ("start", "end"))
    limit = np.where(np.isnan(columns["requested"]), 5e3, columns["requested"])
    going = (columns["submit"] <= now) & (end > now)
    elapsed = np.where(start <= now, now - start, 0.0)
    drawn = elapsed + (np.maximum(limit, elapsed + 1.0) - elapsed) * rng.uniform(0.01, 1.0, len(log))
    columns["run"] = np.where(
        going, np.minimum(drawn, np.where(np.isnan(columns["requested"]), np.inf, limit)), columns["run"]
    )
    later = columns["submit"] > now
    n = int(later.sum())
    columns["submit"][later] = now + np.cumsum(rng.exponential(50.0, n) + 1e-3)
    columns["run"][later] = rng.exponential(500.0, n) + 1.0
    columns["requested"][later] = columns["run"][later] * 2
    columns["processors"][later] = rng.integers(1, 9, n)
    return Workload({**columns, "processors": columns["processors"].astype(int)})
