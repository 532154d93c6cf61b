"""Workloads and workflows by name or by file: the ready ones of the package, and files of every format that is read."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.errors import InputError
from simmodel.formats.columns import read_columns
from simmodel.formats.gwf import read_gwf
from simmodel.formats.pbs import read_pbs
from simmodel.formats.sacct import read_sacct
from simmodel.formats.source import decode
from simmodel.formats.swf import read_swf
from simmodel.scheduling.registry import unknown
from simmodel.work.ready import ready_file, ready_names
from simmodel.work.workload import COLUMNS, Workload

if TYPE_CHECKING:
    from simmodel.work.workflow import Workflow

__all__ = ["FORMATS", "WORKFLOW_FORMATS", "Format", "load_workflow", "load_workload"]


@attrs.frozen
class Format:
    """A format of workloads or workflows: what it is, the endings of its files, how one knows it, and its reader."""

    description: str
    endings: tuple[str, ...]
    is_this: Callable[[list[str]], bool] = attrs.field(repr=False)
    read: Callable[..., Any] = attrs.field(repr=False)


def _read_settings(source: Any, **options: Any) -> Workload:
    from simmodel.generators.settings import read_settings

    return read_settings(source, **options)


def _is_swf(lines: list[str]) -> bool:
    return any(line.startswith(";") for line in lines[:1]) or any(_numbers(line) == 18 for line in lines)


def _numbers(line: str) -> int:
    fields = line.split()
    return len(fields) if all(re.fullmatch(r"-?\d+(\.\d*)?", field) for field in fields) else 0


def _is_gwf(lines: list[str]) -> bool:
    return any(len(line.split("\t")) in (28, 29, 30) for line in lines)


def _is_sacct(lines: list[str]) -> bool:
    return bool(lines) and "|" in lines[0] and "jobid" in lines[0].lower().split("|")


def _is_pbs(lines: list[str]) -> bool:
    return any(re.match(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;\w+;", line) for line in lines)


def _is_settings(lines: list[str]) -> bool:
    return any(re.match(r'\s*generator\s*=\s*"', line) for line in lines)


def _is_csv(lines: list[str]) -> bool:
    return bool(lines) and len(set(re.split(r"[,;\t]", lines[0])) & set(COLUMNS)) >= 2


FORMATS: Mapping[str, Format] = {
    "swf": Format("Standard Workload Format (Parallel Workloads Archive)", (".swf",), _is_swf, read_swf),
    "gwf": Format("Grid Workloads Format (Grid Workloads Archive)", (".gwf",), _is_gwf, read_gwf),
    "sacct": Format("Slurm accounting: output of sacct --parsable2", (".sacct",), _is_sacct, read_sacct),
    "pbs": Format("accounting logs of PBS Professional, OpenPBS and Torque", (".pbs",), _is_pbs, read_pbs),
    "toml": Format("settings of a generator", (".toml",), _is_settings, _read_settings),
    "csv": Format("a table with named columns", (".csv", ".tsv"), _is_csv, read_columns),
}
"""The formats of workloads by name, in the order in which a file's content is tried."""


def _reader(module: str, function: str) -> Callable[..., Any]:
    """Return a reader that is imported when it is first called."""

    def read(source: Any, **options: Any) -> Any:
        return getattr(import_module(f"simmodel.formats.{module}"), function)(source, **options)

    return read


def _has(pattern: str) -> Callable[[list[str]], bool]:
    return lambda lines: re.search(pattern, "\n".join(lines)) is not None


_ADAG = _has(r"<adag\b")
_DAGGEN = _has(r"(?m)^\s*(strict\s+)?digraph\b|^NODE(_COUNT)? ")
_WFFORMAT = _has(r'"(schemaVersion|specification)"')
_SST = _has(r'"execution_time"')

WORKFLOW_FORMATS: Mapping[str, Format] = {
    "dax": Format("DAX of Pegasus 2.1 and 3.x", (".dax", ".xml"), _ADAG, _reader("dax", "read_dax")),
    "daggen": Format("DAGGEN, text or DOT", (".daggen", ".dot"), _DAGGEN, _reader("daggen", "read_daggen")),
    "wfformat": Format("WfFormat of WfCommons 1.5 and 1.6", (), _WFFORMAT, _reader("wfformat", "read_wfformat")),
    "sst": Format("workflow of the job scheduler of SST", (), _SST, _reader("sst", "read_sst")),
}
"""The formats of workflows by name, in the order in which a file's content is tried."""


def load_workload(name_or_path: str | Path, *, format: str | None = None, **options: Any) -> Workload:
    """Return a ready workload by its name, or read one from a file.

    Parameters
    ----------
    name_or_path
        a name of ``ready_names("workloads")``, or a path; the format is seen from its ending (``.swf``, ``.swf.gz`` and
        so on), else from its content
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
    path, ready = _path_of("workload", name_or_path, format, FORMATS)
    workload: Workload = _read(path, FORMATS[format] if format else _format_of(path, "workload", FORMATS), options)
    if ready:
        workload.name = str(name_or_path)
    return workload


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
    found, _ = _path_of("workflow", path, format, WORKFLOW_FORMATS)
    chosen = WORKFLOW_FORMATS[format] if format else _format_of(found, "workflow", WORKFLOW_FORMATS)
    workflow: Workflow = _read(found, chosen, options)
    return workflow


def _path_of(
    kind: str, name_or_path: str | Path, format: str | None, formats: Mapping[str, Format]
) -> tuple[Path, bool]:
    """Return the path of a file or of a ready workload, and whether it is ready."""
    if format is not None and format not in formats:
        raise unknown("format", format, formats)
    if name_or_path == "":
        raise InputError(f"the name of a {kind} or a file expected, found ''")
    bare = isinstance(name_or_path, str) and kind == "workload"
    ready = ready_file("workloads", str(name_or_path)) if bare else None
    path = ready or Path(name_or_path)
    if not path.exists():
        if bare and not re.search(r"[/\\.]", str(name_or_path)):
            from simmodel.generators.task_work import task_work_names

            tasks = task_work_names()  # these are no workloads of jobs
            names = [name for name in ready_names("workloads") if name not in tasks]
            raise unknown("workload", str(name_or_path), names)
        raise InputError("no such file", source=str(path))
    return path, ready is not None


def _read(path: Path, chosen: Format, options: Mapping[str, Any]) -> Any:
    try:
        return chosen.read(path, **options)
    except TypeError as error:
        if options and "unexpected keyword" in str(error):
            raise InputError(f"option of the reader expected: {error}", source=str(path)) from None
        raise


def _format_of(path: Path, kind: str, formats: Mapping[str, Format]) -> Format:
    plain = path.name.lower().removesuffix(".gz")
    for each in formats.values():
        if each.endings and plain.endswith(each.endings):
            return each
    if path.is_dir() and kind == "workload":
        return FORMATS["pbs"]
    lines = _first_lines(path)
    for each in formats.values():
        if each.is_this(lines):
            return each
    found = f"found {lines[0][:60]!r}" if lines else "found an empty file"
    raise InputError(f"a {kind} in one of the formats {', '.join(formats)} expected, {found}", source=str(path))


def _first_lines(path: Path) -> list[str]:
    """Return the first lines of a file that are not blank."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as opened:
            data = opened.read(1 << 16)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {error}", source=str(path)) from None
    if b"\0" in data:
        raise InputError("text expected, found binary data", source=str(path))
    return [line for line in decode(data).splitlines() if line.strip()]
