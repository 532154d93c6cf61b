"""Workflows by file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.catalogue.formats import WORKFLOW_FORMATS, check_format, read_file
from simmodel.errors import InputError

if TYPE_CHECKING:
    from simmodel.work.workflow import Workflow

__all__ = ["load_workflow"]


def load_workflow(path: str | Path, *, format: str | None = None, **options: Any) -> Workflow:
    """Read a workflow from a file.

    Parameters
    ----------
    path
        the file; its format is seen from its ending (``.dax``, ``.dot``, ``.xml.gz`` and so on), else from its content
    format
        a name of :data:`WORKFLOW_FORMATS`, where it cannot be seen
    options
        handed to the reader: ``repair=True``, ``memory_unit=...``

    Raises
    ------
    InputError
        there is no such file, the format is not known, or the reader refuses the file or an option

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.dot")
    ...     _ = file.write_text('digraph { 1 [size="2e9"] 2 [size="3e9"] 1 -> 2 [size="800"] }')
    ...     load_workflow(file)
    <Workflow two: 2 tasks, 1 edges, 1 data objects>
    """
    check_format(format, WORKFLOW_FORMATS)
    if path == "":
        raise InputError("the name of a workflow or a file expected, found ''")
    workflow: Workflow = read_file(Path(path), "workflow", WORKFLOW_FORMATS, format, options)
    return workflow
