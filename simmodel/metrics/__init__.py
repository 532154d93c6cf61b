"""Metrics of results: of jobs, of users, in bins, over time; energy; and the statistics of simulations."""

from simmodel.metrics.batch import (
    METRICS,
    bounded_slowdown,
    compare,
    job_values,
    per_processor_slowdown,
    slowdown,
    summary,
    turnaround,
    wait,
)
from simmodel.metrics.bins import binned, grouped
from simmodel.metrics.energy import Energy, energy, node_energy, power
from simmodel.metrics.fairness import discrimination, jain, unfairness
from simmodel.metrics.statistics import (
    Interval,
    batch_means,
    mean_interval,
    mser,
    paired_difference,
    replications,
)

__all__ = [
    "METRICS",
    "Energy",
    "Interval",
    "batch_means",
    "binned",
    "bounded_slowdown",
    "compare",
    "discrimination",
    "energy",
    "grouped",
    "jain",
    "job_values",
    "mean_interval",
    "mser",
    "node_energy",
    "paired_difference",
    "per_processor_slowdown",
    "power",
    "replications",
    "slowdown",
    "summary",
    "turnaround",
    "unfairness",
    "wait",
]
