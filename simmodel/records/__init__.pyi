from .grid_events import GRID_EVENTS as GRID_EVENTS, GRID_JOBS as GRID_JOBS
from .job_record import JobRecord as JobRecord
from .network_recorder import NetworkRecorder as NetworkRecorder
from .recorder import JobRecorder as JobRecorder
