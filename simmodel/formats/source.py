"""Read files: plain or compressed paths and open files, with clear errors."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from simmodel.errors import InputError

__all__ = ["Source", "decode", "read_bytes", "read_lines"]

Source = str | Path | IO[Any]
"""A path, or a file open for reading (text or binary)."""


def read_bytes(source: Source) -> tuple[bytes, str]:
    """Return all bytes of a source, decompressed if they are gzip, and the name of the source.

    Gzip is recognised by its first bytes, not by the name.

    Raises
    ------
    InputError
        the file is missing, cannot be read, is a corrupt gzip file, or is binary

    >>> import io
    >>> read_bytes(io.StringIO("1 2 3"))
    (b'1 2 3', 'an open file')
    """
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "an open file"))
        found = source.read()
        data = found.encode() if isinstance(found, str) else bytes(found)
    else:
        name = str(source)
        data = _read_path(Path(source))
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"corrupt gzip file: {error}", source=name) from None
    if b"\0" in data:
        raise InputError("must be text, got binary data", source=name)
    return data, name


def _read_path(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", source=str(path)) from None
    except IsADirectoryError:
        raise InputError("must be a file, got a folder", source=str(path)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}", source=str(path)) from None


def decode(data: bytes) -> str:
    """Decode UTF-8 bytes, or Latin-1 if they are not valid UTF-8 (old logs)."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_lines(source: Source) -> tuple[Iterator[tuple[int, str]], str]:
    """Return the lines of a text source, numbered from 1, and the name of the source.

    >>> import io
    >>> lines, name = read_lines(io.StringIO("one\\ntwo\\n"))
    >>> list(lines)
    [(1, 'one'), (2, 'two')]
    """
    data, name = read_bytes(source)
    text = decode(data).replace("\r\n", "\n")
    return enumerate(text.removesuffix("\n").split("\n") if text else (), 1), name
