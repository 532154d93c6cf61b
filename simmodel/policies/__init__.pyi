from .backfilling import Backfill as Backfill, Easy as Easy
from .caps import Cap as Cap
from .data import DataPolicy as DataPolicy, Transfers as Transfers
from .estimates import EarliestFinish as EarliestFinish, GreedyDS as GreedyDS
from .mapping import MappingPolicy as MappingPolicy
from .ordering import Order as Order, order as order
from .planners.planner import CPOP as CPOP, HEFT as HEFT, PEFT as PEFT, Planner as Planner
from .planning import Conservative as Conservative
from .portfolio import Portfolio as Portfolio
from .quotas import Quota as Quota, Quotas as Quotas, read_quotas as read_quotas
from .shares import Shares as Shares
from .signals import WaitFor as WaitFor
from .sleep import SleepAfter as SleepAfter
