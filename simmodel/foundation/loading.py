"""Safe loading, for every reader: files within limits, and one sentence for each error of a parser.

A source is a path, ``-`` (standard input) or an open file; pipes and devices are read once. Gzip is recognised by its
first bytes. The limits stop files that no memory holds; real files stay far below them. To raise one::

    with limits(size=16e9, count=100_000_000):
        log = load_workload("everything.swf.gz")

On the command line: ``--limit size=16GB --limit count=1e8``. How logs are read is said in the same way, on the command
line by ``--skip-bad`` and ``--timezone Europe/Berlin``::

    with reading(skip_bad=True, timezone="Europe/Berlin"):
        log = load_workload("sacct.txt")
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import attrs

from simmodel.foundation.errors import InputError, Plain, shown

__all__ = [
    "Limits",
    "ReadingOptions",
    "Source",
    "check_count",
    "current_limits",
    "current_reading",
    "decode",
    "files_named_in",
    "held",
    "in_memory",
    "is_strict",
    "keeping_limits",
    "limits",
    "one_sentence",
    "parse_json",
    "parse_toml",
    "peek",
    "read_blocks",
    "read_bytes",
    "read_lines",
    "reader",
    "reading",
    "source_name",
    "title_of",
    "within_count",
]

Source = str | Path | IO[Any]
"""A path, ``-`` for standard input, or a file open for reading (text or binary)."""
F = TypeVar("F", bound=Callable[..., Any])
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


# ---------------------------------------------------------------------- limits


def _positive(limits: Limits, attribute: attrs.Attribute[Any], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InputError(f"must be a number > 0, got {shown(value)}", place=f"limit {attribute.name}")


@attrs.frozen(kw_only=True)
class Limits:
    """The limits on input: sizes of files and documents.

    Parameters
    ----------
    size
        bytes of a file, after decompression
    depth
        levels of nesting of a document
    digits
        digits of a number
    count
        nodes, processors of a machine, jobs, tasks or layers that one number of a document or of a text creates

    >>> Limits().depth
    100
    """

    size: float = attrs.field(default=2e9, validator=_positive)
    depth: float = attrs.field(default=100, validator=_positive)
    digits: float = attrs.field(default=300, validator=_positive)
    count: float = attrs.field(default=10_000_000, validator=_positive)


@attrs.frozen(kw_only=True)
class ReadingOptions:
    """How files are read, where a call does not say it itself.

    Parameters
    ----------
    skip_bad
        whether lines of logs that cannot be read are passed over, and counted, instead of refused
    timezone
        the zone of local times, such as ``"Europe/Berlin"``; ``None``: UTC
    repair
        whether values of workflows that cannot be, such as negative sizes, are repaired, and counted
    limits
        the limits on input

    >>> ReadingOptions().skip_bad
    False
    """

    skip_bad: bool = False
    timezone: str | None = None
    repair: bool = False
    limits: Limits = attrs.field(factory=Limits)


_READING: ContextVar[ReadingOptions] = ContextVar("reading")
_USUAL = ReadingOptions()


def current_reading() -> ReadingOptions:
    """Return how files are read now."""
    return _READING.get(_USUAL)


def is_strict(strict: bool | None) -> bool:
    """Return whether a bad line is refused: as a call says, or else :func:`reading`."""
    return not current_reading().skip_bad if strict is None else strict


def current_limits() -> Limits:
    return current_reading().limits


@contextmanager
def reading(*, skip_bad: bool = False, timezone: str | None = None, repair: bool = False) -> Iterator[ReadingOptions]:
    """Read files as said inside a ``with`` block; the parameters are those of :class:`ReadingOptions`.

    >>> from simmodel.formats.sacct import read_sacct
    >>> lines = ["JobID|Submit|AllocCPUS|Elapsed", "1|1970-01-01T01:00:00|4|00:01:00", "slurm: error"]
    >>> with reading(skip_bad=True, timezone="Europe/Berlin"):
    ...     log = read_sacct(io.StringIO("\\n".join(lines)))
    >>> log["submit"], log.report.skipped
    (array([0.]), Counter({'bad lines': 1}))
    """
    changed = attrs.evolve(current_reading(), skip_bad=skip_bad, timezone=timezone, repair=repair)
    with _reading_as(changed) as found:
        yield found


@contextmanager
def _reading_as(how: ReadingOptions) -> Iterator[ReadingOptions]:
    token = _READING.set(how)
    try:
        yield how
    finally:
        _READING.reset(token)


@contextmanager
def limits(**changes: float) -> Iterator[Limits]:
    """Read with other limits inside a ``with`` block; the parameters are those of :class:`Limits`.

    Raises
    ------
    InputError
        a limit is unknown, or not a number > 0

    >>> with limits(depth=2):
    ...     parse_json("[[[1]]]")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: must not be nested deeper than 2 levels (limit depth)
    """
    for name in changes:
        if name not in attrs.fields_dict(Limits):
            from simmodel.foundation.errors import unknown

            raise unknown("limit", name, attrs.fields_dict(Limits))
    with _reading_as(attrs.evolve(current_reading(), limits=attrs.evolve(current_limits(), **changes))) as found:
        yield found.limits


def keeping_limits(function: F) -> F:
    """Return a function that reads files as now in other threads and processes, too."""
    return cast(F, partial(_under, current_reading(), function))


def _under(kept: ReadingOptions, function: Callable[..., Any], *args: Any) -> Any:
    with _reading_as(kept):
        return function(*args)


def check_count(name: str, count: float) -> None:
    """Raise ``InputError`` if a number of nodes, jobs or the like is above the limit.

    >>> check_count("jobs", 10**12)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: jobs: must be at most 10,000,000 (limit count), got 1000000000000
    """
    most = current_limits().count
    if not count <= most:  # nor nan
        raise InputError(f"must be at most {most:,.0f} (limit count), got {shown(count)}", place=name)


def within_count(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    """Check a field of a spec by :func:`check_count`; a validator of ``attrs``."""
    check_count(attribute.name, value)


# ---------------------------------------------------------------------- bytes


class _Held(io.BytesIO):
    """A file in memory that keeps the name of its source."""

    name = ""


def source_name(source: Source) -> str:
    """Return the name of a source for messages.

    >>> source_name("-"), source_name(io.StringIO("")), source_name(Path("log.swf"))
    ('standard input', 'an open file', 'log.swf')
    """
    if isinstance(source, str | Path):
        return "standard input" if str(source) == "-" else str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "an open file"


def title_of(name: str, *endings: str) -> str:
    """Return the name of a file without its folder, ``.gz`` and then these endings.

    >>> title_of("logs/one.swf.gz", ".swf")
    'one'
    """
    title = Path(name).name
    for ending in (".gz", *endings):
        title = title.removesuffix(ending)
    return title


def in_memory(data: bytes, name: str) -> IO[bytes]:
    """Return bytes as a file with the name of their source."""
    file = _Held(data)
    file.name = name
    return file


def held(source: Source) -> Path | IO[bytes]:
    """Return a file that can be read twice: its path, or the contents of a pipe, a device or an open file."""
    if isinstance(source, str | Path) and str(source) != "-":
        path = Path(source)
        if path.is_file() or path.is_dir() or not path.exists():
            return path
    return in_memory(_raw(source, source_name(source)), source_name(source))


def peek(file: Path | IO[bytes], size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file, decompressed if they are gzip; an open file is left at its start.

    Raises
    ------
    InputError
        the file cannot be read, or is a corrupt gzip file
    """
    if isinstance(file, Path):
        try:
            with file.open("rb") as opened:
                data = opened.read(size)
        except (OSError, ValueError) as error:
            raise _unreadable(error, source_name(file)) from None
    else:
        data = file.read(size)
        file.seek(0)
    if data[:2] != _GZIP:
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, size)
    except zlib.error as error:
        raise InputError(f"corrupt gzip file: {error}", source=source_name(file)) from None


def read_bytes(source: Source, *, binary: bool = False) -> tuple[bytes, str]:
    """Return all bytes of a source, decompressed if they are gzip, and the name of the source.

    UTF-16 with a byte order mark becomes UTF-8.

    Parameters
    ----------
    source
        a path, ``-``, or an open file
    binary
        accept other data than text

    Raises
    ------
    InputError
        the file is missing, cannot be read, is a corrupt gzip file, is binary, or exceeds the limit of the size

    >>> read_bytes(io.StringIO("1 2 3"))
    (b'1 2 3', 'an open file')
    """
    name = source_name(source)
    data = _raw(source, name)
    if data[:2] == _GZIP:
        try:
            data = _within_size(gzip.GzipFile(fileobj=io.BytesIO(data)).read, name)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"corrupt gzip file: {error}", source=name) from None
    if data[:2] in _UTF16:
        try:
            data = data.decode("utf-16").encode()
        except UnicodeDecodeError:
            raise InputError("must be text, got incomplete UTF-16", source=name) from None
    if not binary and b"\0" in data:
        raise InputError("must be text, got binary data", source=name)
    return data, name


def _raw(source: Source, name: str) -> bytes:
    try:
        if not isinstance(source, str | Path):
            return _within_size(source.read, name)
        if str(source) == "-":
            return _within_size(sys.stdin.buffer.read, name)
        with Path(source).open("rb") as file:
            return _within_size(file.read, name)
    except FileNotFoundError:
        raise InputError("no such file", source=name) from None
    except IsADirectoryError:
        raise InputError("must be a file, got a folder", source=name) from None
    except UnicodeDecodeError as error:  # of a file that is open as text
        raise InputError(f"must be {error.encoding} text, got byte {_first_byte(error)}", source=name) from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise _unreadable(error, name) from None


def _unreadable(error: OSError | ValueError, name: str) -> InputError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputError(f"cannot be read: {reason}", source=name)


def _within_size(read: Callable[[int], bytes | str], name: str) -> bytes:
    """Read all chunks, as long as their total is below the limit of the size."""
    most = current_limits().size
    parts: list[bytes] = []
    total = 0
    while found := read(_CHUNK):
        parts.append(found.encode() if isinstance(found, str) else bytes(found))
        total += len(parts[-1])
        if total > most:
            raise InputError(f"must be at most {most:,.0f} bytes (limit size), got more", source=name)
    return b"".join(parts)


def _first_byte(error: UnicodeDecodeError) -> str:
    return f"{error.object[error.start]:#x}"


def decode(data: bytes) -> str:
    """Decode UTF-8 bytes, or Latin-1 if they are not valid UTF-8 (old logs)."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_lines(source: Source) -> tuple[Iterator[tuple[int, str]], str]:
    """Return the lines of a text source, numbered from 1, and the name of the source.

    >>> lines, name = read_lines(io.StringIO("one\\ntwo\\n"))
    >>> list(lines)
    [(1, 'one'), (2, 'two')]
    """
    data, name = read_bytes(source)
    text = decode(data).replace("\r\n", "\n")
    return enumerate(text.removesuffix("\n").split("\n") if text else (), 1), name


def read_blocks(
    file: Path | IO[bytes], *, size: int = _CHUNK, quotes: bool = False, begins: re.Pattern[bytes] | None = None
) -> Iterator[bytes]:
    """Yield a text in blocks of whole lines, decompressed if it is gzip, so that a file of any length can be read.

    The limit of the size does not apply. With ``quotes``, a line may go on inside quotation marks, as in CSV; with
    ``begins``, a block ends where a line begins in this way.

    Raises
    ------
    InputError
        the file cannot be read, is a corrupt gzip file, is binary, or is UTF-16

    >>> list(read_blocks(io.BytesIO(b"one\\ntwo\\nthree"), size=5))
    [b'one\\n', b'two\\n', b'three']
    """
    name = source_name(file)
    packed = peek(file, 2)
    try:
        with ExitStack() as files:
            raw = files.enter_context(file.open("rb")) if isinstance(file, Path) else file
            if _starts_as_gzip(raw):
                raw = cast(IO[bytes], files.enter_context(gzip.GzipFile(fileobj=raw)))
            rest = b""
            while found := raw.read(size):
                if b"\0" in found:
                    kind = "UTF-16" if packed in _UTF16 else "binary data"
                    raise InputError(f"must be text in UTF-8, got {kind}", source=name)
                rest += found
                end = rest.rfind(b"\n") + 1
                while quotes and rest.count(b'"', 0, end) % 2:
                    end = rest.rfind(b"\n", 0, end - 1) + 1
                while begins is not None and end and not begins.match(rest, end):
                    end = rest.rfind(b"\n", 0, end - 1) + 1
                if end:
                    yield rest[:end]
                    rest = rest[end:]
            if rest:
                yield rest
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"corrupt gzip file: {error}", source=name) from None
    except OSError as error:
        raise _unreadable(error, name) from None


def _starts_as_gzip(file: IO[bytes]) -> bool:
    start = file.read(2)
    file.seek(0)
    return start == _GZIP


# ---------------------------------------------------------------------- errors


@contextmanager
def one_sentence(source: str | None) -> Iterator[None]:
    """Turn the errors of numbers, nesting and memory that too large data cause into an :class:`InputError`.

    >>> with one_sentence("log.swf"):
    ...     float(10**400)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: log.swf: has a number that is too large
    """
    try:
        yield
    except OverflowError:
        raise InputError("has a number that is too large", source=source) from None
    except RecursionError:
        raise _too_deep(source) from None
    except MemoryError:
        raise InputError("needs more memory than there is", source=source) from None


def reader(function: F) -> F:
    """Let a function whose first argument is a source raise :func:`one_sentence`."""

    @wraps(function)
    def read(*args: Any, **options: Any) -> Any:
        given: Any = args[0] if args else next(iter(options.values()), None)
        with one_sentence(source_name(given) if isinstance(given, str | Path) or hasattr(given, "read") else None):
            return function(*args, **options)

    return cast(F, read)


def _too_deep(source: str | None) -> InputError:
    depth = current_limits().depth
    if depth > _USUAL.limits.depth:  # the limit was raised, so Python's own may end the reading
        return InputError(f"must not be nested deeper than {depth:g} levels (limit depth) or than Python reads", source)
    return InputError(f"must not be nested deeper than {depth:g} levels (limit depth)", source=source)


# ---------------------------------------------------------------------- JSON and TOML


def parse_json(text: str | bytes, source: str | None = None) -> Plain:
    """Return the JSON document of a text.

    Raises
    ------
    InputError
        the text is not valid JSON, has a duplicate key, nan or infinity, is nested too deeply, or has a number with too
        many digits

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: duplicate key 'a'
    """

    def table(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise InputError(f"duplicate key {shown(twice)}", source=source)
        return found

    def constant(text: str) -> float:
        raise InputError(f"must be a finite number, got {text}", source=source)

    text = decode(text) if isinstance(text, bytes) else text
    _check_digits(text, source)
    try:
        document: Plain = json.loads(text, object_pairs_hook=table, parse_constant=constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"invalid JSON: {error.msg}", source, place) from None
    except RecursionError:
        raise _too_deep(source) from None
    except InputError:
        raise
    except ValueError as error:  # a number of more digits than Python reads
        raise InputError(f"invalid JSON: {error}", source) from None
    if text.count("[") + text.count("{") > current_limits().depth:
        _check_depth(document, source)
    return document


def parse_toml(data: bytes, source: str | None = None) -> dict[str, Any]:
    """Return the TOML document of a UTF-8 text.

    Raises
    ------
    InputError
        the text is not valid TOML in UTF-8, is nested too deeply, or has a number with too many digits

    >>> parse_toml(b"a = 1\\nb = \\n", "mine.toml")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: mine.toml, line 2: invalid TOML: Invalid value
    """
    import tomllib

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"must be UTF-8 text, got byte {_first_byte(error)}", source) from None
    _check_digits(text, source)
    dotted = rf"(?:[\w\"'-]\s*\.\s*){{{_repeated(current_limits().depth)}}}"
    if re.search(dotted, text):  # tomllib takes minutes for these
        raise _too_deep(source)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.fullmatch(r"(.*) \(at (?:(line \d+), column \d+|end of document)\)", str(error), re.DOTALL)
        message, place = (match[1], match[2] or "end") if match else (str(error), None)
        raise InputError(f"invalid TOML: {message}", source, place) from None
    except RecursionError:
        raise _too_deep(source) from None
    except ValueError as error:  # a date or a time that does not exist
        raise InputError(f"invalid TOML: {error}", source) from None
    _check_depth(document, source)
    return document


def _repeated(limit: float) -> int:
    """Return a limit as a number of repetitions that regular expressions take."""
    return int(min(limit, 1e9))


def _check_digits(text: str, source: str | None) -> None:
    most = _repeated(current_limits().digits)
    found = re.search(rf"[0-9]{{{most + 1}}}", text)
    if found:
        place = f"line {text.count(chr(10), 0, found.start()) + 1}"
        raise InputError(f"must be numbers of at most {most} digits (limit digits), got more", source, place)


def _check_depth(document: Plain, source: str | None) -> None:
    level: list[Any] = [document]
    depth = 0
    while level:
        depth += 1
        if depth > current_limits().depth + 1:
            raise _too_deep(source)
        inner: list[Any] = []
        for each in level:
            if type(each) is dict:
                inner += each.values()
            elif type(each) is list:
                inner += each
        level = inner


_CONFIGURATION = 1_000_000  # bytes that a configuration has at most


def files_named_in(path: Path) -> Iterator[Path]:
    """Yield the files that a configuration (TOML or JSON) names, from its folder or from the working folder.

    >>> list(files_named_in(Path("no.toml")))
    []
    """
    import tomllib

    try:
        if path.suffix not in (".toml", ".json") or path.stat().st_size > _CONFIGURATION:
            return
        document = (tomllib if path.suffix == ".toml" else json).loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    for text in _texts(document):
        for each in (Path(text), path.parent / text):
            with suppress(OSError, ValueError):  # a text that no file can be called
                if each.is_file():
                    yield each


def _texts(document: object) -> Iterator[str]:
    """Yield all texts in a document."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict | list):
        for each in document.values() if isinstance(document, dict) else document:
            yield from _texts(each)
