from .checkpoint import Checkpoint as Checkpoint, daly_interval as daly_interval
from .chunks import ChunkedWorkload as ChunkedWorkload
from .elastic import Amdahl as Amdahl, Elastic as Elastic, MeasuredSpeedup as MeasuredSpeedup
from .job import Dependency as Dependency, Job as Job, JobRequest as JobRequest, LiveJob as LiveJob, Run as Run
from .live import JobFailed as JobFailed
from .node_chunks import Chunk as Chunk
from .resampling import resampling_doubts as resampling_doubts, week_of as week_of
from .table import Table as Table
from .task import DataObject as DataObject, File as File, RecordedMachine as RecordedMachine, Task as Task
from .taskset import LiveTask as LiveTask, TaskSet as TaskSet
from .time_limits import TooLong as TooLong, within_limits as within_limits
from .traffic import Phase as Phase, Phases as Phases, Traffic as Traffic
from .transformations import (
    add_traffic as add_traffic,
    between as between,
    first as first,
    make_malleable as make_malleable,
    merge as merge,
    offered_load as offered_load,
    scale_load as scale_load,
    select as select,
    shift as shift,
)
from .workflow import Workflow as Workflow
from .workload import Report as Report, Workload as Workload
