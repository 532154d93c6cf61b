"""The table of built-in policies: the ``module:Class(parameters)`` and a one-line description of each name."""

from __future__ import annotations

__all__ = ["BUILT_IN"]

_ORDERS = "simmodel.policies.ordering:"
_BACKFILLING = "simmodel.policies.backfilling:"
_PLANNING = "simmodel.policies.planning:"
_MAPPING = "simmodel.policies.mapping:"
_ESTIMATES = "simmodel.policies.estimates:"
_BATCH = "simmodel.policies.batch_mapping:"
_DATA = "simmodel.policies.data:"
_PLANNERS = "simmodel.policies.planners.planner:"

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
        "wait / (log2(processors) x requested): small, short and long-waiting first; no backfilling",
    ),
    "f1": (_ORDERS + "F1", "log10(requested) x processors + 870 log10(submit); no backfilling"),
    "f2": (_ORDERS + "F2", "sqrt(requested) x processors + 25600 log10(submit); no backfilling"),
    "f3": (_ORDERS + "F3", "requested x processors + 6860000 log10(submit); no backfilling"),
    "f4": (_ORDERS + "F4", "requested x sqrt(processors) + 530000 log10(submit); no backfilling"),
    "multifactor": (
        "simmodel.policies.multifactor:Multifactor",
        "weighted age, size and fair share by user; no backfilling",
    ),
    "easy": (_BACKFILLING + "Easy", "EASY backfilling: a promised start for the head of the queue"),
    "easy-sjbf": (_BACKFILLING + "Easy(candidates=sjf)", "EASY, shortest candidates first"),
    "conservative": (
        _PLANNING + "Conservative",
        "conservative backfilling: all jobs are planned, again at each decision",
    ),
    "conservative-keep": (_PLANNING + "ConservativeKeep", "conservative backfilling that keeps its promises"),
    "best-fit": (
        "simmodel.policies.placement:BestFit",
        "the fitting job that leaves the fewest processors free, repeatedly",
    ),
    "window": (
        "simmodel.policies.window:Window",
        "the best order of the first five jobs by planned makespan (CQSim)",
    ),
    "preemptive": ("simmodel.policies.preemption:Preemptive", "EASY, with preemption between queues that allow it"),
    "keep-preferred": (
        "simmodel.policies.malleable:KeepPreferred",
        "EASY; elastic jobs start as they prefer, and grow into idle processors",
    ),
    "shrink-to-start": (
        "simmodel.policies.malleable:ShrinkToStart",
        "EASY; running elastic jobs shrink so that others start, and grow into idle processors",
    ),
    "equal-shares": (
        "simmodel.policies.malleable:EqualShares",
        "EASY; elastic jobs start if they fit at their minimum, and have equal shares",
    ),
    "slurm": (
        "simmodel.policies.slurm.policy:Slurm",
        "Slurm's main and backfill loops at their own instants; slurm(bf_interval=60, ...): by Slurm's names",
    ),
    "portfolio": (
        "simmodel.policies.portfolio:Portfolio",
        "of wfp, fcfs and sjf, each with EASY, the one with the best simulated future",
    ),
    # tasks of a machine; some also for brokers
    "hrr": (_MAPPING + "RoundRobin(name=hrr)", "the next place that can run it, in turn (HetSim)"),
    "greedy-et": (_ESTIMATES + "FastestExecution", "the place with the shortest run time, ignoring queues (HetSim)"),
    "greedy-ds": (
        _ESTIMATES + "GreedyDS",
        "the place with the shortest setup + transfer + run, ignoring queues (HetSim)",
    ),
    "earliest-start": (_ESTIMATES + "EarliestStart", "the place with the earliest expected start"),
    "earliest-finish": (_ESTIMATES + "EarliestFinish", "the place with the earliest expected end"),
    "min-min": (_BATCH + "MinMin", "repeatedly the work that can end first"),
    "max-min": (_BATCH + "MaxMin", "repeatedly the work with the latest earliest end"),
    "sufferage": (_BATCH + "Sufferage", "repeatedly the work that loses most at its second-best place"),
    "heft": (_PLANNERS + "HEFT", "planned: by upward rank, each task where it ends first"),
    "cpop": (_PLANNERS + "CPOP", "planned: the critical path on one processor, other tasks where they end first"),
    "peft": (_PLANNERS + "PEFT", "planned: by an optimistic cost table"),
    "lookahead": (_PLANNERS + "LookaheadHEFT", "planned: HEFT with a look-ahead to the ends of the children"),
    "heft-setup": (_PLANNERS + "HEFTSetup", "planned: HEFT with setup, reconfiguration and transfers"),
    "peft-setup": (_PLANNERS + "PEFTSetup", "planned: PEFT with setup, reconfiguration and transfers"),
    # jobs of a broker, tasks of a machine
    "round-robin": (_MAPPING + "RoundRobin", "the next place that can run it, in turn"),
    "random": (_MAPPING + "Random", "a random place; random(3, 1): with these weights"),
    "share": (_MAPPING + "Share", "share(P): the first place with probability P, the others equally likely"),
    "sgs-t": (_ESTIMATES + "EarliestFinish(name=sgs-t, simulated=1)", "the lowest turnaround, estimated by simulation"),
    "sgs-w": (_ESTIMATES + "EarliestStart(name=sgs-w, simulated=1)", "the lowest wait, estimated by simulation"),
    # jobs of a broker
    "least-loaded": (
        "simmodel.policies.brokers:LeastLoaded",
        "the least work per processor; least-loaded(LOAD): by work | processors | jobs",
    ),
    "shortest-wait": (
        "simmodel.policies.brokers:ShortestWait",
        "the shortest estimated wait: none with free processors, else the work per processor",
    ),
    "data-locality": (
        "simmodel.policies.brokers:DataLocality",
        "the site with most bytes of the inputs, then the least work per processor",
    ),
    "shares": (
        "simmodel.policies.shares:Shares",
        "shares(3, 1), shares(NAME=3, ...): the site that is furthest behind its share; default: by processors",
    ),
    "panda": (
        "simmodel.policies.brokers:Panda",
        "the highest weight: running jobs and free slots per queued job, and local inputs (PanDA)",
    ),
    # files of a grid
    "nearest": (_DATA + "DataPolicy", "files come from the nearest replica, outputs stay"),
    "least-used-link": (_DATA + "LeastUsedLink", "files come over the route with the fewest transfers"),
    "prefetch": (_DATA + "Prefetch", "inputs are sent when a job is assigned, and to its home while it waits"),
    "replicate": (_DATA + "Replicate", "replicate(THRESHOLD, COPIES): files asked for often get more replicas"),
    # jobs of a broker
    "siloed": ("simmodel.policies.brokers:Siloed", "every job at home"),
    "recorded": ("simmodel.policies.brokers:Siloed(name=recorded)", "each job of a grid at the site of its record"),
}
