"""Workflows by file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.catalogue.formats import WORKFLOW_FORMATS, check_format, read_file
from simmodel.foundation.errors import InputError
from simmodel.foundation.loading import Source, held

if TYPE_CHECKING:
    from simmodel.work.workflow import Workflow

__all__ = ["load_workflow"]


def load_workflow(path: Source, *, format: str | None = None, **options: Any) -> Workflow:
    """Read a workflow from a file.

    Parameters
    ----------
    path
        the file, ``-`` (standard input) or an open file; its format is detected from its ending (``.dax``, ``.dot``,
        ``.xml.gz`` and so on), else its content
    format
        a name of :data:`WORKFLOW_FORMATS`, if it cannot be detected
    options
        passed to the reader: ``repair=True``, ``memory_unit=...``

    Raises
    ------
    InputError
        the file is missing, the format is unknown, or the reader rejects the file or an option

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.dot")
    ...     _ = file.write_text('digraph { 1 [size="2e9"] 2 [size="3e9"] 1 -> 2 [size="800"] }')
    ...     load_workflow(file)
    <Workflow two: 2 tasks, 1 edges, 1 data objects>
    """
    check_format(format, WORKFLOW_FORMATS)
    if str(path) == "":
        raise InputError("must be the path of a workflow, got ''", place="path")
    workflow: Workflow = read_file(held(path), "workflow", WORKFLOW_FORMATS, format, options)
    return workflow
