"""The ready platforms, workloads and work for machines by name, and files of every format that is read."""

from simmodel.catalogue.bundled import bundled_file, bundled_folder, bundled_names
from simmodel.catalogue.formats import FORMATS, WORKFLOW_FORMATS, Format
from simmodel.catalogue.platforms import load_platform, platform_names
from simmodel.catalogue.tasks import load_tasks, make_work, task_names
from simmodel.catalogue.workflows import load_workflow
from simmodel.catalogue.workloads import load_workload

__all__ = [
    "FORMATS",
    "WORKFLOW_FORMATS",
    "Format",
    "bundled_file",
    "bundled_folder",
    "bundled_names",
    "load_platform",
    "load_tasks",
    "load_workflow",
    "load_workload",
    "make_work",
    "platform_names",
    "task_names",
]
