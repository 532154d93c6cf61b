"""Workloads by name or by file: the ready ones that come with the package, and files of every format that is read."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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

__all__ = ["FORMATS", "Format", "load_workload"]


@attrs.frozen
class Format:
    """A format that workloads are read from: what it is, the endings of its files, how one knows it, and its reader."""

    description: str
    endings: tuple[str, ...]
    is_this: Callable[[list[str]], bool] = attrs.field(repr=False)
    read: Callable[..., Workload] = attrs.field(repr=False)


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
    if format is not None and format not in FORMATS:
        raise unknown("format", format, FORMATS)
    ready = ready_file("workloads", name_or_path) if isinstance(name_or_path, str) else None
    path = ready or Path(name_or_path)
    if not path.exists():
        bare = isinstance(name_or_path, str) and not re.search(r"[/\\.]", name_or_path)
        if bare:
            raise unknown("workload", str(name_or_path), ready_names("workloads"))
        raise InputError("no such file", source=str(path))
    chosen = FORMATS[format] if format else _format_of(path)
    try:
        workload = chosen.read(path, **options)
    except TypeError as error:
        if options and "unexpected keyword" in str(error):
            raise InputError(f"option of the reader expected: {error}", source=str(path)) from None
        raise
    if ready:
        workload.name = str(name_or_path)
    return workload


def _format_of(path: Path) -> Format:
    plain = path.name.lower().removesuffix(".gz")
    for each in FORMATS.values():
        if plain.endswith(each.endings):
            return each
    if path.is_dir():
        return FORMATS["pbs"]
    lines = _first_lines(path)
    for each in FORMATS.values():
        if each.is_this(lines):
            return each
    found = f"found {lines[0][:60]!r}" if lines else "found an empty file"
    raise InputError(f"a workload in one of the formats {', '.join(FORMATS)} expected, {found}", source=str(path))


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
