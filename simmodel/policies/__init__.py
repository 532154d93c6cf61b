"""Policies: one family a file. Importing the package makes them known by name."""

from simmodel.policies.backfilling import Backfill, Easy
from simmodel.policies.ordering import ORDERS
from simmodel.policies.ordering import order as _order
from simmodel.policies.placement import BestFit
from simmodel.policies.planning import Conservative, ConservativeKeep
from simmodel.policies.preemption import Preemptive
from simmodel.policies.window import Window
from simmodel.scheduling.registry import register_policy as _register

__all__ = ["Backfill", "BestFit", "Conservative", "ConservativeKeep", "Easy", "Preemptive", "Window"]

for _name in ORDERS:
    _register(_name, lambda name=_name: _order(name), f"{_order(_name).description}; no backfilling")  # type: ignore[misc]
_register("easy", Easy, "EASY backfilling: the head of the queue has a promised start")
_register("easy-sjbf", lambda: Easy(candidates="sjf"), "EASY, the shortest candidates first")
_register("conservative", Conservative, "conservative backfilling: every job is planned, anew at each decision")
_register("conservative-keep", ConservativeKeep, "conservative backfilling that keeps its promises")
_register("best-fit", BestFit, "the job that leaves the fewest processors free, while one fits")
_register("window", Window, "the best order of the first five jobs, by the planned makespan (CQSim)")
_register("preemptive", Preemptive, "EASY, and queues that may preempt others do")
