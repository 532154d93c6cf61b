from .job_record import JobRecord as JobRecord
from .network_recorder import NetworkRecorder as NetworkRecorder
from .recorder import JobRecorder as JobRecorder
