from .batch import (
    METRICS as METRICS,
    bounded_slowdown as bounded_slowdown,
    job_values as job_values,
    per_processor_slowdown as per_processor_slowdown,
    slowdown as slowdown,
    summary as summary,
    turnaround as turnaround,
    wait as wait,
)
from .bins import binned as binned, grouped as grouped
from .comparison import METRICS_OF as METRICS_OF, compare as compare
from .critical import critical_path as critical_path, critical_shares as critical_shares
from .fairness import discrimination as discrimination, jain as jain, unfairness as unfairness
from .names import CHECKPOINT_METRICS as CHECKPOINT_METRICS, JOB_METRICS as JOB_METRICS
from .pareto import hypervolume as hypervolume, pareto_front as pareto_front
from .power_and_energy import Energy as Energy, energy as energy, node_energy as node_energy, power as power
from .statistics import (
    Interval as Interval,
    batch_means as batch_means,
    correlation_length as correlation_length,
    mean_interval as mean_interval,
    mser as mser,
    paired_difference as paired_difference,
    replications as replications,
)
from .workflow import (
    MACHINE_METRICS as MACHINE_METRICS,
    longest_path as longest_path,
    makespan as makespan,
    slr as slr,
    speedup as speedup,
)
