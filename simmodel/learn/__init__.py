"""Environments for learning agents, which gymnasium makes by name, and their agents as policies.

Its names are imported at once, since gymnasium is here to stay once it is asked for, and are not promised yet.
"""

from simmodel.foundation.errors import optional_imports

with optional_imports():
    from simmodel.learn.agents import AgentPolicy as AgentPolicy, agent_policy as agent_policy
    from simmodel.learn.coding import Act as Act, Columns as Columns, Observe as Observe
    from simmodel.learn.environment import SchedulingEnv as SchedulingEnv
    from simmodel.learn.episodes import Episodes as Episodes, Filter as Filter, split_by_time as split_by_time
    from simmodel.learn.games import ChooseNext as ChooseNext, ReserveAndFill as ReserveAndFill
    from simmodel.learn.judging import Judgement as Judgement, Trained as Trained, judge as judge
    from simmodel.learn.ready import (
        backfill_env as backfill_env,
        batch_env as batch_env,
        register_environments,
        route_env as route_env,
    )
    from simmodel.learn.rewards import Reward as Reward
    from simmodel.learn.routes import ChoosePlace as ChoosePlace, Sites as Sites
    from simmodel.learn.window import JobWindow as JobWindow

register_environments()
