"""Policies: one family a file; simmodel.scheduling.built_in has their names."""

from simmodel.policies.backfilling import Backfill, Easy
from simmodel.policies.batch_mapping import MaxMin, MinMin, Sufferage
from simmodel.policies.brokers import LeastLoaded, Siloed
from simmodel.policies.mapping import (
    EarliestFinish,
    EarliestStart,
    FastestExecution,
    GreedyDS,
    MappingPolicy,
    Random,
    RoundRobin,
    Share,
)
from simmodel.policies.placement import BestFit
from simmodel.policies.planners import CPOP, HEFT, PEFT, HEFTSetup, LookaheadHEFT, PEFTSetup
from simmodel.policies.planning import Conservative, ConservativeKeep
from simmodel.policies.portfolio import Portfolio
from simmodel.policies.preemption import Preemptive
from simmodel.policies.window import Window

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
    "LeastLoaded",
    "LookaheadHEFT",
    "MappingPolicy",
    "MaxMin",
    "MinMin",
    "PEFTSetup",
    "Portfolio",
    "Preemptive",
    "Random",
    "RoundRobin",
    "Share",
    "Siloed",
    "Sufferage",
    "Window",
]
