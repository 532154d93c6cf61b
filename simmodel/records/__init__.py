"""Records: observers that fill columns, and what they make of them."""

from simmodel.records.broker_record import BrokerRecord
from simmodel.records.job_record import JobRecord
from simmodel.records.network_recorder import NetworkRecorder
from simmodel.records.observers import EventRecorder, Progress, UsageMeter
from simmodel.records.recorder import JobRecorder
from simmodel.records.steps import Steps
from simmodel.records.task_record import TaskRecord

__all__ = [
    "BrokerRecord",
    "EventRecorder",
    "JobRecord",
    "JobRecorder",
    "NetworkRecorder",
    "Progress",
    "Steps",
    "TaskRecord",
    "UsageMeter",
]
