"""Workloads by name or by file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.catalogue.bundled import bundled_file, bundled_names
from simmodel.catalogue.formats import FORMATS, check_format, read_file
from simmodel.catalogue.tasks import task_names
from simmodel.errors import InputError, unknown

if TYPE_CHECKING:
    from simmodel.work.workload import Workload

__all__ = ["load_workload"]


def load_workload(name_or_path: str | Path, *, format: str | None = None, **options: Any) -> Workload:
    """Return a ready workload by its name, or read one from a file.

    Parameters
    ----------
    name_or_path
        a name of ``bundled_names("workloads")``, or a path; the format is seen from its ending (``.swf``, ``.swf.gz``
        and so on), else from its content
    format
        a name of :data:`FORMATS`, where it cannot be seen
    options
        handed to the reader: ``strict=False``, ``timezone=...``, ``names=...``, ``seed=...``

    Raises
    ------
    InputError
        there is no such name or file, the format is not known, or the reader refuses the file or an option

    >>> load_workload("probe-4")["run"]
    array([1000.,  500.,  100.,  400.])
    """
    check_format(format, FORMATS)
    name = str(name_or_path)
    if name_or_path == "":
        raise InputError("the name of a workload or a file expected, found ''")
    ready = bundled_file("workloads", name) if isinstance(name_or_path, str) else None
    path = ready or Path(name_or_path)
    if isinstance(name_or_path, str) and not path.exists() and not re.search(r"[/\\.]", name):
        tasks = task_names()  # these are no workloads of jobs
        raise unknown("workload", name, [each for each in bundled_names("workloads") if each not in tasks])
    workload: Workload = read_file(path, "workload", FORMATS, format, options)
    if ready:
        workload.name = name
    return workload
