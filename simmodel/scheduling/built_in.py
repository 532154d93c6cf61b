"""The names of the package's own policies: where each is, as ``module:Class(parameters)``, and a line about it."""

from __future__ import annotations

__all__ = ["BUILT_IN"]

_ORDERS = "simmodel.policies.ordering:"
_BACKFILLING = "simmodel.policies.backfilling:"
_PLANNING = "simmodel.policies.planning:"
_MAPPING = "simmodel.policies.mapping:"
_BATCH = "simmodel.policies.batch_mapping:"
_PLANNERS = "simmodel.policies.planners:"

BUILT_IN: dict[str, tuple[str, str]] = {
    # jobs of a cluster
    "fcfs": (_ORDERS + "FCFS", "first come, first served; no backfilling"),
    "sjf": (_ORDERS + "SJF", "shortest requested time first; no backfilling"),
    "ljf": (_ORDERS + "LJF", "longest requested time first; no backfilling"),
    "smallest": (_ORDERS + "SMALLEST", "fewest processors first; no backfilling"),
    "largest": (_ORDERS + "LARGEST", "most processors first; no backfilling"),
    "wfp": (_ORDERS + "WFP", "(wait / requested)^3 x processors; no backfilling"),
    "unicef": (
        _ORDERS + "UNICEF",
        "wait / (log2(processors) x requested): small, short, long waiting first; no backfilling",
    ),
    "f1": (_ORDERS + "F1", "log10(requested) x processors + 870 log10(submit); no backfilling"),
    "f2": (_ORDERS + "F2", "sqrt(requested) x processors + 25600 log10(submit); no backfilling"),
    "f3": (_ORDERS + "F3", "requested x processors + 6860000 log10(submit); no backfilling"),
    "f4": (_ORDERS + "F4", "requested x sqrt(processors) + 530000 log10(submit); no backfilling"),
    "multifactor": (
        "simmodel.policies.multifactor:Multifactor",
        "weighted age, size and fair share by user; no backfilling",
    ),
    "easy": (_BACKFILLING + "Easy", "EASY backfilling: the head of the queue has a promised start"),
    "easy-sjbf": (_BACKFILLING + "Easy(candidates=sjf)", "EASY, the shortest candidates first"),
    "conservative": (
        _PLANNING + "Conservative",
        "conservative backfilling: every job is planned, anew at each decision",
    ),
    "conservative-keep": (_PLANNING + "ConservativeKeep", "conservative backfilling that keeps its promises"),
    "best-fit": (
        "simmodel.policies.placement:BestFit",
        "the job that leaves the fewest processors free, while one fits",
    ),
    "window": (
        "simmodel.policies.window:Window",
        "the best order of the first five jobs, by the planned makespan (CQSim)",
    ),
    "preemptive": ("simmodel.policies.preemption:Preemptive", "EASY, and queues that may preempt others do"),
    "portfolio": (
        "simmodel.policies.portfolio:Portfolio",
        "of wfp, fcfs and sjf with EASY the one whose simulated future is best decides",
    ),
    # tasks of a machine; some serve brokers too
    "hrr": (_MAPPING + "RoundRobin(name=hrr)", "the next place that can run it, in turn (HetSim)"),
    "greedy-et": (_MAPPING + "FastestExecution", "where it runs fastest, blind to queues (HetSim)"),
    "greedy-ds": (_MAPPING + "GreedyDS", "where setup, transfers and run take least, blind to queues (HetSim)"),
    "earliest-start": (_MAPPING + "EarliestStart", "where it is expected to start first"),
    "earliest-finish": (_MAPPING + "EarliestFinish", "where it is expected to end first"),
    "min-min": (_BATCH + "MinMin", "of all that wait, the one that can end first, then the next"),
    "max-min": (_BATCH + "MaxMin", "of all that wait, the one whose earliest end is latest, then the next"),
    "sufferage": (_BATCH + "Sufferage", "of all that wait, the one that loses most at its second best place"),
    "heft": (_PLANNERS + "HEFT", "planned: by upward rank, each where it ends first"),
    "cpop": (_PLANNERS + "CPOP", "planned: the critical path on one processor, all else where it ends first"),
    "peft": (_PLANNERS + "PEFT", "planned: by an optimistic cost table"),
    "lookahead": (_PLANNERS + "LookaheadHEFT", "planned: HEFT that looks where the children would end"),
    "heft-setup": (_PLANNERS + "HEFTSetup", "planned: HEFT that knows setup, reconfiguration and transfers"),
    "peft-setup": (_PLANNERS + "PEFTSetup", "planned: PEFT that knows setup, reconfiguration and transfers"),
    # jobs of a broker, tasks of a machine
    "round-robin": (_MAPPING + "RoundRobin", "the next place that can run it, in turn"),
    "random": (_MAPPING + "Random", "any place, by chance; random(3, 1): with these weights"),
    "share": (_MAPPING + "Share", "share(P): the first place with probability P, the others alike"),
    "sgs-t": (_MAPPING + "EarliestFinish(name=sgs-t)", "the lowest turnaround, where estimates are simulations"),
    "sgs-w": (_MAPPING + "EarliestStart(name=sgs-w)", "the lowest wait, where estimates are simulations"),
    # jobs of a broker
    "least-loaded": (
        "simmodel.policies.brokers:LeastLoaded",
        "the least work a processor; least-loaded(LOAD): by work | processors | jobs",
    ),
    "siloed": ("simmodel.policies.brokers:Siloed", "every job at home"),
}
