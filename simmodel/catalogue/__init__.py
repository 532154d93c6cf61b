"""The ready platforms, workloads and work for machines by name, and files of every format that is read."""

from simmodel.catalogue.formats import FORMATS, WORKFLOW_FORMATS, Format
from simmodel.catalogue.platforms import load_platform, platform_names
from simmodel.catalogue.ready import ready_file, ready_folder, ready_names
from simmodel.catalogue.task_work import make_work, task_work, task_work_names
from simmodel.catalogue.workflows import load_workflow
from simmodel.catalogue.workloads import load_workload

__all__ = [
    "FORMATS",
    "WORKFLOW_FORMATS",
    "Format",
    "load_platform",
    "load_workflow",
    "load_workload",
    "make_work",
    "platform_names",
    "ready_file",
    "ready_folder",
    "ready_names",
    "task_work",
    "task_work_names",
]
