from .broker_record import BrokerRecord as BrokerRecord
from .grid_record import GridRecord as GridRecord
from .job_record import JobRecord as JobRecord
from .network_recorder import NetworkRecorder as NetworkRecorder
from .observers import (
    EventRecorder as EventRecorder,
    Progress as Progress,
    UsageMeter as UsageMeter,
    progress_bar as progress_bar,
)
from .recorder import JobRecorder as JobRecorder
from .steps import Steps as Steps
from .task_record import TaskRecord as TaskRecord
