"""Environments for learning agents, which gymnasium makes by name, and their agents as policies.

Its names are imported at once, since gymnasium is here to stay once it is asked for, and are not promised yet.
"""

from simmodel.foundation.errors import optional_imports

with optional_imports():
    from gymnasium import register, registry

    from simmodel.learn.agents import AgentPolicy as AgentPolicy, agent_policy as agent_policy
    from simmodel.learn.clusters import (
        ChooseNext as ChooseNext,
        JobWindow as JobWindow,
        ReserveAndFill as ReserveAndFill,
        backfill_env as backfill_env,
        batch_env as batch_env,
    )
    from simmodel.learn.environment import (
        Act as Act,
        Columns as Columns,
        Observe as Observe,
        SchedulingEnv as SchedulingEnv,
    )
    from simmodel.learn.episodes import Episodes as Episodes, Filter as Filter, split_by_time as split_by_time
    from simmodel.learn.judging import Judgement as Judgement, Trained as Trained, judge as judge
    from simmodel.learn.rewards import Reward as Reward
    from simmodel.learn.routes import ChoosePlace as ChoosePlace, Sites as Sites, route_env as route_env

for _name, _make in (("Batch", batch_env), ("Backfill", backfill_env), ("Route", route_env)):
    if f"simmodel/{_name}-v0" not in registry:
        register(f"simmodel/{_name}-v0", f"{_make.__module__}:{_make.__name__}")
