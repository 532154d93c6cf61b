"""Readers in chunks, made of readers of whole files: each block of lines is read as a file of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from simmodel.foundation.errors import InputError
from simmodel.foundation.loading import in_memory, read_blocks, source_name
from simmodel.work.chunks import ChunkedWorkload
from simmodel.work.workload import Workload

__all__ = ["by_blocks"]

_ON_A_LINE = re.compile(r"line (\d+)")


def by_blocks(
    read: Callable[..., Workload], *, head: bool = False, quotes: bool = False
) -> Callable[..., ChunkedWorkload]:
    """Return a function of a file and options that reads a log in chunks.

    Parameters
    ----------
    read
        the reader of whole files
    head
        whether the first line that is not blank names the columns
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

        def chunks() -> Iterator[Workload]:
            names, lines, empty = b"", 0, True
            for block in read_blocks(file, quotes=quotes):
                if head and not names:
                    names = re.match(rb"\s*[^\n]*\n?", block)[0]  # type: ignore[index] # it matches anything
                    first = block
                else:
                    first = names + block
                    lines -= names.count(b"\n")
                try:
                    chunk = read(in_memory(first, name), **options)
                except InputError as error:
                    if error.message.startswith("no jobs"):
                        continue
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
    return error if found is None else InputError(error.message, error.source, f"line {int(found[1]) + lines}")
