"""Records: observers that fill columns."""

from simmodel.records.observers import EventRecorder, Progress, UsageMeter
from simmodel.records.recorder import JobRecorder
from simmodel.records.steps import Steps

__all__ = ["EventRecorder", "JobRecorder", "Progress", "Steps", "UsageMeter"]
