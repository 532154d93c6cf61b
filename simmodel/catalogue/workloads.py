"""Workloads by name or by file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.catalogue.bundled import bundled_file, bundled_names
from simmodel.catalogue.formats import FORMATS, check_format, read_file
from simmodel.catalogue.tasks import task_names
from simmodel.errors import InputError, unknown
from simmodel.loading import held

if TYPE_CHECKING:
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.workload import Workload

__all__ = ["load_workload", "workload_in_chunks"]


def load_workload(name_or_path: str | Path, *, format: str | None = None, **options: Any) -> Workload:
    """Return a bundled workload by name, or read a workload from a file.

    Parameters
    ----------
    name_or_path
        a name of ``bundled_names("workloads")``, or a path; the format is detected from its ending (``.swf``,
        ``.swf.gz`` and so on), else its content
    format
        a name of :data:`FORMATS`, if it cannot be detected
    options
        passed to the reader: ``strict=False``, ``timezone=...``, ``names=...``, ``seed=...``

    Raises
    ------
    InputError
        the name, file or format is unknown, or the reader rejects the file or an option

    >>> load_workload("probe-4")["run"]
    array([1000.,  500.,  100.,  400.])
    """
    workload: Workload = _loaded(name_or_path, format, options, in_chunks=False)
    return workload


def workload_in_chunks(name_or_path: str | Path, *, format: str | None = None, **options: Any) -> ChunkedWorkload:
    """Return a workload that is read in chunks; parameters and errors as of :func:`load_workload`.

    A log in SWF, GWF, CSV or the output of sacct is read from its file as a simulation goes on, any other workload at
    once.

    >>> [len(chunk) for chunk in workload_in_chunks("probe-4")]
    [4]
    """
    workload: ChunkedWorkload = _loaded(name_or_path, format, options, in_chunks=True)
    workload.source = str(name_or_path)
    return workload


def _loaded(name_or_path: str | Path, format: str | None, options: dict[str, Any], *, in_chunks: bool) -> Any:
    check_format(format, FORMATS)
    given: Any = name_or_path
    if not isinstance(given, (str, Path)):
        kind = type(given).__name__
        raise InputError(f"must be a name or a path (Workload(...) takes columns), got a {kind}", place="name_or_path")
    name = str(name_or_path)
    if name_or_path == "":
        raise InputError("must be the name of a workload or a path, got ''", place="name_or_path")
    bundled = bundled_file("workloads", name) if isinstance(name_or_path, str) else None
    path = bundled or Path(name_or_path)
    if isinstance(name_or_path, str) and not path.exists() and not re.search(r"[/\\.]|^-$", name):
        tasks = task_names()  # workloads of machines
        raise unknown("workload", name, [each for each in bundled_names("workloads") if each not in tasks])
    workload = read_file(held(path), "workload", FORMATS, format, options, in_chunks=in_chunks)
    if bundled:
        workload.name = name
    return workload
