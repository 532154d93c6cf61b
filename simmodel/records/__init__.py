"""Records: observers that fill columns, the result that a run returns, and where it is stored."""

from simmodel.records.observers import EventRecorder, Progress, UsageMeter
from simmodel.records.recorder import JobRecorder
from simmodel.records.result import Result, recorded
from simmodel.records.steps import Steps
from simmodel.records.stores import load_result, read_scenario
from simmodel.records.tasks import MachineResult

__all__ = [
    "EventRecorder",
    "JobRecorder",
    "MachineResult",
    "Progress",
    "Result",
    "Steps",
    "UsageMeter",
    "load_result",
    "read_scenario",
    "recorded",
]
