"""The formats of workloads and workflows: their names, recognition and readers, of whole files and in chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.entries import Entries, load
from simmodel.foundation.errors import InputError, NoJobs, unknown
from simmodel.foundation.loading import (
    Source,
    decode,
    held,
    in_memory,
    keeping_limits,
    one_sentence,
    peek,
    read_blocks,
    source_name,
)
from simmodel.work.chunks import ChunkedWorkload
from simmodel.work.workload import COLUMNS, Report, Workload

if TYPE_CHECKING:
    from simmodel.work.workflow import Workflow

__all__ = [
    "FORMATS",
    "WORKFLOW_FORMATS",
    "Format",
    "by_blocks",
    "check_format",
    "format_of",
    "is_workflow",
    "load_workflow",
    "looks_like",
    "read_file",
]


@attrs.frozen(repr=False)
class Format(Fields):
    """A format of workloads or workflows: its description, file endings, test of first lines, and reader.

    ``in_chunks`` reads a file block by block, where the format can be read so.
    """

    description: str
    endings: tuple[str, ...]
    is_this: Callable[[list[str]], bool] = attrs.field(repr=False)
    read: Callable[..., Any] = attrs.field(repr=False)
    in_chunks: Callable[..., ChunkedWorkload] | None = attrs.field(default=None, repr=False)


def _is_swf(lines: list[str]) -> bool:
    return any(line.startswith(";") for line in lines[:1]) or any(_numbers(line) == 18 for line in lines)


def _numbers(line: str) -> int:
    fields = line.split()
    return len(fields) if all(re.fullmatch(r"-?\d+(\.\d*)?", field) for field in fields) else 0


def _is_gwf(lines: list[str]) -> bool:
    return any(len(line.split("\t")) in (28, 29, 30) for line in lines)


_COMPLETED = "JobId="  # how each line of jobcomp/filetxt begins


def _is_sacct(lines: list[str]) -> bool:
    first = lines[0] if lines else ""
    return ("|" in first and "jobid" in first.lower().split("|")) or (
        first.startswith(_COMPLETED) and " UserId=" in first
    )


def _is_pbs(lines: list[str]) -> bool:
    return any(re.match(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;\w+;", line) for line in lines)


def _is_cgsim(lines: list[str]) -> bool:
    columns = {cell.strip().lower() for cell in lines[0].split(",")} if lines else set()
    return "pandaid" in columns or {"job_id", "cpu_consumption_time"} <= columns


def _is_openb(lines: list[str]) -> bool:
    return {"cpu_milli", "num_gpu", "gpu_milli"} <= _columns(lines)


def _columns(lines: list[str]) -> set[str]:
    return {cell.strip() for cell in lines[0].split(",")} if lines else set()


def _is_helios(lines: list[str]) -> bool:
    return {"job_id", "gpu_num", "node_num", "submit_time"} <= _columns(lines)


def _is_tiresias(lines: list[str]) -> bool:
    return {"job_id", "num_gpu", "submit_time", "duration"} <= _columns(lines)


def _is_gavel(lines: list[str]) -> bool:
    cells = lines[0].split("\t") if lines else []
    return len(cells) in (7, 10) and _numbers(cells[-2]) == _numbers(cells[-1]) == 1 and not _numbers(cells[0])


def _is_philly(lines: list[str]) -> bool:
    text = "\n".join(lines)
    return text.lstrip()[:1] == "[" and re.search(r'"(submitted_time|attempts)"\s*:', text) is not None


def _is_settings(lines: list[str]) -> bool:
    return any(re.match(r'\s*generator\s*=\s*"', line) for line in lines)


def _is_csv(lines: list[str]) -> bool:
    return bool(lines) and len(set(re.split(r"[,;\t]", lines[0])) & set(COLUMNS)) >= 2


def _is_batsim(lines: list[str]) -> bool:
    text = "\n".join(lines)
    return text.lstrip()[:1] == "{" and re.search(r'"(nb_res|subtime|DelayProfile)"\s*[:,}]', text) is not None


def _is_other_of_slurm(lines: list[str]) -> bool:
    """Whether lines are of a command of Slurm in a form that is not read: JSON, columns of a fixed width, no header."""
    text = "\n".join(lines)
    if text.lstrip()[:1] == "{":
        return re.search(r'"(job_id|slurm|data_parser)"\s*:', text) is not None
    return (
        re.search(r"\A\s*(JobID|\d[\w.+\[\]-]*)[ |].*(Submit|Elapsed|State|\d-\d\dT\d\d:\d\d:\d\d)", text) is not None
    )


_ON_A_LINE = re.compile(r"line (\d+)")


def by_blocks(
    read: Callable[..., Workload],
    *,
    head: bool = False,
    unless: str = "",
    begins: re.Pattern[bytes] | None = None,
    quotes: bool = False,
) -> Callable[..., ChunkedWorkload]:
    """Return a function of a file and options that reads a log in chunks.

    Parameters
    ----------
    read
        the reader of whole files
    head
        whether the first line that is not blank names the columns
    unless
        how a file begins that has no such line
    begins
        a pattern of the beginning of a job, where one may have several lines
    quotes
        whether a line may go on inside quotation marks

    >>> import io
    >>> from simmodel.formats.named_columns import read_columns
    >>> log = by_blocks(read_columns, head=True)(io.BytesIO(b"submit,run,processors\\n0,5,1\\n3,5,1\\n"))
    >>> [chunk["submit"].tolist() for chunk in log]
    [[0.0, 3.0]]
    """

    def in_chunks(file: Path | IO[bytes], **options: Any) -> ChunkedWorkload:
        name = source_name(file)
        read_block = keeping_limits(read)

        def chunks() -> Iterator[Workload]:
            names, lines, empty = b"", 0, True
            for block in read_blocks(file, quotes=quotes, begins=begins):
                if head and not names:
                    first = block
                    if not (unless and block.startswith(unless.encode())):
                        names = re.match(rb"\s*[^\n]*\n?", block)[0]  # type: ignore[index] # it matches anything
                else:
                    first = names + block
                    lines -= names.count(b"\n")
                try:
                    chunk = read_block(in_memory(first, name), **options)
                except NoJobs as error:
                    if isinstance(error.report, Report) and error.report:
                        yield Workload({"submit": [], "run": [], "processors": []}, name=name, report=error.report)
                    continue
                except InputError as error:
                    raise _moved(error, lines) from None
                finally:
                    lines += first.count(b"\n")
                empty = False
                yield chunk
            if empty:
                raise InputError("no jobs", source=name)

        first = next(chunks())  # its errors are those of the file
        return ChunkedWorkload(chunks, name=first.name, processors=first.processors, header=first.header)

    return in_chunks


def _moved(error: InputError, lines: int) -> InputError:
    """Return an error of a block with the line in the file."""
    found = _ON_A_LINE.fullmatch(error.place or "")
    return error if found is None else type(error)(error.message, error.source, f"line {int(found[1]) + lines}")


def _reader(function: str) -> Callable[..., Any]:
    """Return a reader, given as ``"module:name"``, that is imported when it is first called."""

    def read(file: Path | IO[bytes], **options: Any) -> Any:
        found: Callable[..., Any] = load(function)
        return found(file, **options)

    read.__name__ = function.rpartition(":")[2]
    return read


_SWF, _SWF_IN_CHUNKS = _reader("simmodel.formats.swf:read_swf"), _reader("simmodel.formats.swf:swf_in_chunks")
_GWF, _SACCT = _reader("simmodel.formats.gwf:read_gwf"), _reader("simmodel.formats.sacct:read_sacct")
_CGSIM, _PBS = _reader("simmodel.formats.cgsim_jobs:read_cgsim_jobs"), _reader("simmodel.formats.pbs:read_pbs")
_OPENB, _HELIOS = _reader("simmodel.formats.openb:read_openb"), _reader("simmodel.formats.training:read_helios")
_TIRESIAS, _GAVEL, _PHILLY = (
    _reader(f"simmodel.formats.training:read_{name}") for name in ("tiresias", "gavel", "philly")
)
_SETTINGS = _reader("simmodel.generators.settings:read_settings")
_CSV = _reader("simmodel.formats.named_columns:read_columns")
_BATSIM = _reader("simmodel.formats.batsim:read_batsim")

FORMATS = Entries[Format](
    {
        "swf": Format(
            "Standard Workload Format (Parallel Workloads Archive)", (".swf",), _is_swf, _SWF, _SWF_IN_CHUNKS
        ),
        "gwf": Format("Grid Workloads Format (Grid Workloads Archive)", (".gwf",), _is_gwf, _GWF, by_blocks(_GWF)),
        "sacct": Format(
            "Slurm accounting: output of sacct --parsable2, or file of jobcomp/filetxt",
            (".sacct",),
            _is_sacct,
            _SACCT,
            by_blocks(_SACCT, head=True, unless=_COMPLETED, begins=re.compile(rb"\d[^|\n]*\||JobId=")),
        ),
        "cgsim": Format("jobs of PanDA as CGSim reads them, CSV", (".csv",), _is_cgsim, _CGSIM),
        "openb": Format("pods of openb, a GPU cluster of Alibaba, CSV", (".csv",), _is_openb, _OPENB),
        "helios": Format("jobs of the GPU clusters Helios and Acme, CSV", (".csv",), _is_helios, _HELIOS),
        "tiresias": Format("jobs of Tiresias, CSV", (".csv",), _is_tiresias, _TIRESIAS),
        "gavel": Format("traces of Gavel", (".trace",), _is_gavel, _GAVEL),
        "philly": Format("jobs of the GPU cluster Philly, JSON", (), _is_philly, _PHILLY),
        "pbs": Format("accounting logs of PBS Professional, OpenPBS and Torque", (".pbs",), _is_pbs, _PBS),
        "batsim": Format("workloads of Batsim, JSON", (), _is_batsim, _BATSIM),
        "toml": Format("settings of a generator", (".toml",), _is_settings, _SETTINGS),
        "csv": Format(
            "a table with named columns", (".csv", ".tsv"), _is_csv, _CSV, by_blocks(_CSV, head=True, quotes=True)
        ),
    },
    group="simmodel.formats",
)
"""The formats of workloads by name, in the order in which they are tried on the content of a file; others follow."""


def _has(pattern: str) -> Callable[[list[str]], bool]:
    return lambda lines: re.search(pattern, "\n".join(lines)) is not None


_ADAG = _has(r"<adag\b")
_DAGGEN = _has(r"(?m)^\s*(strict\s+)?digraph\b|^NODE(_COUNT)? ")
_WFFORMAT = _has(r'"(schemaVersion|specification)"')
_SST = _has(r'"execution_time"')

WORKFLOW_FORMATS = Entries[Format](
    {
        "dax": Format("DAX of Pegasus 2.1 and 3.x", (".dax", ".xml"), _ADAG, _reader("simmodel.formats.dax:read_dax")),
        "daggen": Format(
            "DAGGEN, text or DOT", (".daggen", ".dot"), _DAGGEN, _reader("simmodel.formats.daggen:read_daggen")
        ),
        "wfformat": Format(
            "WfFormat of WfCommons 1.5 and 1.6", (), _WFFORMAT, _reader("simmodel.formats.wfformat:read_wfformat")
        ),
        "sst": Format("workflow of the job scheduler of SST", (), _SST, _reader("simmodel.formats.sst:read_sst")),
    },
    group="simmodel.workflow_formats",
)
"""The formats of workflows by name, in the order in which they are tried on the content of a file."""


def read_file(
    file: Path | IO[bytes],
    kind: str,
    formats: Entries[Format],
    format: str | None,
    options: Mapping[str, Any],
    *,
    in_chunks: bool = False,
) -> Any:
    """Return the contents of a file, read in a named format or in the one detected from its ending or content.

    Parameters
    ----------
    file
        the file: a path, or the contents of a pipe (see :func:`~simmodel.foundation.loading.held`)
    kind
        "workload" or "workflow", for errors
    formats
        the formats by name
    format
        the name of a format; ``None``: detected from the file
    options
        passed to the reader
    in_chunks
        return a workload that is read in chunks; in a format that cannot be, the whole file is read first

    Raises
    ------
    InputError
        the file is missing, the format is unknown, or the reader rejects the file or an option
    """
    if isinstance(file, Path) and not file.exists():
        raise InputError("no such file", source=str(file))
    chosen = formats[format] if format else format_of(file, kind, formats)
    try:
        with one_sentence(source_name(file)):
            if in_chunks and chosen.in_chunks is not None:
                return chosen.in_chunks(file, **options)
            whole = chosen.read(file, **options)
            return ChunkedWorkload.of(whole) if in_chunks else whole
    except TypeError as error:
        if options and "unexpected keyword" in str(error):
            raise InputError(f"unknown option of the reader: {error}", source=source_name(file)) from None
        raise


def looks_like(file: Path | IO[bytes], format: str) -> bool:
    """Return whether a file begins as one in a format of workloads, of those in :data:`FORMATS`."""
    return FORMATS[format].is_this(_first_lines(file))


def is_workflow(file: Path) -> bool:
    """Return whether a file is a workflow, by its ending or its content, and not a workload of jobs."""
    plain = file.name.lower().removesuffix(".gz")
    if any(each.endings and plain.endswith(each.endings) for each in FORMATS.values()):
        return False
    if any(each.endings and plain.endswith(each.endings) for each in WORKFLOW_FORMATS.values()):
        return True
    lines = _first_lines(file)
    return not any(each.is_this(lines) for each in FORMATS.values()) and any(
        each.is_this(lines) for each in WORKFLOW_FORMATS.values()
    )


def check_format(format: str | None, formats: Entries[Format]) -> None:
    """Raise :class:`InputError` for an unknown format; ``None`` means any.

    >>> check_format("swf", FORMATS)
    """
    if format is not None and format not in formats:
        raise unknown("format", format, formats)


def format_of(file: Path | IO[bytes], kind: str, formats: Entries[Format]) -> Format:
    """Return the format of a file, from its ending or its first lines; raises ``InputError`` if it has none."""
    name = source_name(file)
    if isinstance(file, Path) and file.is_dir():
        if kind == "workload" and any(_begins_as_pbs(each) for each in sorted(file.iterdir())[:10]):
            return FORMATS["pbs"]
        accepted = " or a folder of PBS accounting logs" if kind == "workload" else ""
        raise InputError(f"must be a file{accepted}, got {'another' if accepted else 'a'} folder", source=name)
    plain = name.lower().removesuffix(".gz")
    lines = _first_lines(file)
    matching: list[Format] = []
    for known in (formats.known(), formats):  # other packages are asked last
        matching = [each for each in known.values() if each.endings and plain.endswith(each.endings)]
        for each in (*matching, *known.values()):  # the content decides where the reader of the ending does not know it
            if each.is_this(lines):
                return each
    if matching:
        return matching[-1]
    accepted = f"a {kind} in one of the formats {', '.join(formats)}"
    if formats is FORMATS:
        accepted += f", or a workflow in one of {', '.join(WORKFLOW_FORMATS)}"
    found = repr(lines[0][:60]) if lines else "an empty file"
    hint = (
        "; of Slurm's commands the output of sacct --parsable2 with its header is read"
        if _is_other_of_slurm(lines)
        else ""
    )
    raise InputError(f"must be {accepted}, got {found}{hint}", source=name)


def _begins_as_pbs(path: Path) -> bool:
    try:
        return path.is_file() and _is_pbs(_first_lines(path))
    except InputError:  # not a text
        return False


def _first_lines(file: Path | IO[bytes]) -> list[str]:
    """Return the first non-blank lines of a file."""
    data = peek(file)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "ignore").encode()
    if b"\0" in data:
        raise InputError("must be text, got binary data", source=source_name(file))
    return [line for line in decode(data).splitlines() if line.strip()]


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
