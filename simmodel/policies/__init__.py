"""Policies: one family a file. Importing the package makes them known by name."""

from simmodel.policies.backfilling import Backfill, Easy
from simmodel.policies.batch_mapping import MaxMin, MinMin, Sufferage
from simmodel.policies.mapping import EarliestFinish, EarliestStart, FastestExecution, GreedyDS, RoundRobin
from simmodel.policies.ordering import ORDERS
from simmodel.policies.ordering import order as _order
from simmodel.policies.placement import BestFit
from simmodel.policies.planners import CPOP, HEFT, PEFT, HEFTSetup, LookaheadHEFT, PEFTSetup
from simmodel.policies.planning import Conservative, ConservativeKeep
from simmodel.policies.portfolio import Portfolio
from simmodel.policies.portfolio_text import portfolio as _portfolio
from simmodel.policies.preemption import Preemptive
from simmodel.policies.window import Window
from simmodel.scheduling.registry import register_family as _family
from simmodel.scheduling.registry import register_policy as _register

__all__ = [
    "CPOP",
    "HEFT",
    "PEFT",
    "Backfill",
    "BestFit",
    "Conservative",
    "ConservativeKeep",
    "EarliestFinish",
    "EarliestStart",
    "Easy",
    "FastestExecution",
    "GreedyDS",
    "HEFTSetup",
    "LookaheadHEFT",
    "MaxMin",
    "MinMin",
    "PEFTSetup",
    "Portfolio",
    "Preemptive",
    "RoundRobin",
    "Sufferage",
    "Window",
]

for _name in ORDERS:
    _register(_name, lambda name=_name: _order(name), f"{_order(_name).description}; no backfilling")  # type: ignore[misc]
_register("easy", Easy, "EASY backfilling: the head of the queue has a promised start")
_register("easy-sjbf", lambda: Easy(candidates="sjf"), "EASY, the shortest candidates first")
_register("conservative", Conservative, "conservative backfilling: every job is planned, anew at each decision")
_register("conservative-keep", ConservativeKeep, "conservative backfilling that keeps its promises")
_register("best-fit", BestFit, "the job that leaves the fewest processors free, while one fits")
_register("window", Window, "the best order of the first five jobs, by the planned makespan (CQSim)")
_register("preemptive", Preemptive, "EASY, and queues that may preempt others do")
_register("portfolio", Portfolio, "of wfp, fcfs and sjf with EASY the one whose simulated future is best decides")
_family(
    "portfolio", _portfolio, "A, B, ... [, backfill=] [, objective=] [, interval=] [, hysteresis=]: the best of them"
)
_PLACING = {
    "hrr": (RoundRobin, "on the next processor that can run them, in turn (HetSim)"),
    "greedy-et": (FastestExecution, "where they run fastest, blind to queues (HetSim)"),
    "greedy-ds": (GreedyDS, "where setup, transfers and run take least, blind to queues (HetSim)"),
    "earliest-start": (EarliestStart, "where the queue is expected to be empty first"),
    "earliest-finish": (EarliestFinish, "where they are expected to end first"),
    "min-min": (MinMin, "of all that wait, the one that can end first, then the next"),
    "max-min": (MaxMin, "of all that wait, the one whose earliest end is latest, then the next"),
    "sufferage": (Sufferage, "of all that wait, the one that loses most at its second best place"),
    "heft": (HEFT, "planned: by upward rank, each where it ends first"),
    "cpop": (CPOP, "planned: the critical path on one processor, all else where it ends first"),
    "peft": (PEFT, "planned: by an optimistic cost table"),
    "lookahead": (LookaheadHEFT, "planned: HEFT that looks where the children would end"),
    "heft-setup": (HEFTSetup, "planned: HEFT that knows setup, reconfiguration and transfers"),
    "peft-setup": (PEFTSetup, "planned: PEFT that knows setup, reconfiguration and transfers"),
}
for _name, (_factory, _line) in _PLACING.items():
    _register(_name, _factory, _line, decides="tasks")
