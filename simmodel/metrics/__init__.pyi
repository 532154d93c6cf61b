from .batch import (
    bounded_slowdown as bounded_slowdown,
    jain as jain,
    slowdown as slowdown,
    summary as summary,
    turnaround as turnaround,
    unfairness as unfairness,
    wait as wait,
)
from .comparison import compare as compare, weekly_sums as weekly_sums
from .critical import critical_path as critical_path
from .devices import GpuUse as GpuUse
from .differences import (
    Difference as Difference,
    Source as Source,
    compared as compared,
    difference_table as difference_table,
)
from .features import (
    JOB_FEATURES as JOB_FEATURES,
    export_features as export_features,
    job_features as job_features,
    task_features as task_features,
)
from .objective_scores import hypervolume as hypervolume, pareto_front as pareto_front
from .power_and_energy import (
    Energy as Energy,
    energy as energy,
    energy_by as energy_by,
    footprint as footprint,
    node_energy as node_energy,
    power as power,
    power_by_state as power_by_state,
)
from .statistics import (
    Interval as Interval,
    batch_means as batch_means,
    mean_interval as mean_interval,
    mser as mser,
    paired_difference as paired_difference,
    replications as replications,
    series_interval as series_interval,
    share_interval as share_interval,
    spread_interval as spread_interval,
)
from .workflow import makespan as makespan, slr as slr, speedup as speedup
