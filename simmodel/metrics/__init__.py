"""Metrics of results: of jobs, users and tasks, in bins, over time; energy; and the statistics of simulations."""

from simmodel.metrics.batch import (
    METRICS,
    bounded_slowdown,
    job_values,
    per_processor_slowdown,
    slowdown,
    summary,
    turnaround,
    wait,
)
from simmodel.metrics.bins import binned, grouped
from simmodel.metrics.comparison import METRICS_OF, compare
from simmodel.metrics.critical import critical_path, critical_shares
from simmodel.metrics.fairness import discrimination, jain, unfairness
from simmodel.metrics.node_energy import Energy, energy, node_energy, power
from simmodel.metrics.statistics import (
    Interval,
    batch_means,
    mean_interval,
    mser,
    paired_difference,
    replications,
)
from simmodel.metrics.workflow import MACHINE_METRICS, longest_path, makespan, slr, speedup

__all__ = [
    "MACHINE_METRICS",
    "METRICS",
    "METRICS_OF",
    "Energy",
    "Interval",
    "batch_means",
    "binned",
    "bounded_slowdown",
    "compare",
    "critical_path",
    "critical_shares",
    "discrimination",
    "energy",
    "grouped",
    "jain",
    "job_values",
    "longest_path",
    "makespan",
    "mean_interval",
    "mser",
    "node_energy",
    "paired_difference",
    "per_processor_slowdown",
    "power",
    "replications",
    "slowdown",
    "slr",
    "speedup",
    "summary",
    "turnaround",
    "unfairness",
    "wait",
]
