from .agents import AgentPolicy as AgentPolicy, agent_policy as agent_policy
from .coding import Act as Act, Columns as Columns, Observe as Observe
from .environment import SchedulingEnv as SchedulingEnv
from .episodes import Episodes as Episodes, Filter as Filter, split_by_time as split_by_time
from .games import ChooseNext as ChooseNext, ReserveAndFill as ReserveAndFill
from .ready import backfill_env as backfill_env, batch_env as batch_env, route_env as route_env
from .rewards import Reward as Reward
from .routes import ChoosePlace as ChoosePlace, Sites as Sites
from .window import JobWindow as JobWindow
