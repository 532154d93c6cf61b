from .backfilling import Backfill as Backfill, Easy as Easy
from .batch_mapping import MaxMin as MaxMin, MinMin as MinMin, Sufferage as Sufferage
from .brokers import (
    DataLocality as DataLocality,
    LeastLoaded as LeastLoaded,
    Panda as Panda,
    ShortestWait as ShortestWait,
    Siloed as Siloed,
)
from .data import (
    DataPolicy as DataPolicy,
    LeastUsedLink as LeastUsedLink,
    Prefetch as Prefetch,
    Replicate as Replicate,
    Subscribe as Subscribe,
    Timed as Timed,
    Transfers as Transfers,
)
from .estimates import (
    EarliestFinish as EarliestFinish,
    EarliestStart as EarliestStart,
    FastestExecution as FastestExecution,
    GreedyDS as GreedyDS,
)
from .malleable import EqualShares as EqualShares, KeepPreferred as KeepPreferred, ShrinkToStart as ShrinkToStart
from .mapping import (
    MappingPolicy as MappingPolicy,
    Random as Random,
    RoundRobin as RoundRobin,
    Share as Share,
)
from .multifactor import Multifactor as Multifactor
from .ordering import Order as Order
from .orders import order as order
from .placement import BestFit as BestFit
from .planners import (
    CPOP as CPOP,
    HEFT as HEFT,
    PEFT as PEFT,
    HEFTSetup as HEFTSetup,
    LookaheadHEFT as LookaheadHEFT,
    PEFTSetup as PEFTSetup,
    Planner as Planner,
)
from .planning import Conservative as Conservative, ConservativeKeep as ConservativeKeep
from .portfolio import Portfolio as Portfolio
from .preemption import Preemptive as Preemptive
from .shares import Shares as Shares
from .window import Window as Window
