"""The audit log of a twin: JSON lines that are only appended, each with the hash of the line before it.

A line is an object with ``line`` (its number, from 1), ``before`` (the SHA-256 of the line before, as hexadecimal
digits), ``kind`` and the fields of its kind:

- ``head``: a twin began: versions, cluster, platform and policies;
- ``state``: all that the twin knows, from which it can continue (``whole``: the lines before do not lead to it);
- ``event``: an event that was applied;
- ``position``: the place in the source up to which events were read;
- ``advice``: a decision;
- ``action``: a command that is about to be sent to the scheduler, with the number of the decision that it follows from;
- ``outcome``: the result of an action, as read back;
- ``note``: a sentence, such as that a cut line was removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from simmodel import InputError, SimmodelError
from simmodel.extending import shown

__all__ = ["AuditError", "AuditLog", "AuditRecord", "read_audit"]

_BLOCK = 1 << 20


class AuditError(SimmodelError):
    """The audit log cannot be written, for instance since the disk is full."""


class AuditRecord(NamedTuple):
    """A line of an audit log.

    Attributes
    ----------
    line
        its number, from 1
    kind
        ``"head"``, ``"state"``, ``"event"``, ``"position"``, ``"advice"``, ``"action"``, ``"outcome"`` or ``"note"``
    values
        its fields
    """

    line: int
    kind: str
    values: Mapping[str, Any]


class AuditLog:
    """Appends to an audit log; one process at a time.

    A line that a killed process left unfinished is removed, and a note says so.

    Parameters
    ----------
    path
        the file; made if it does not exist

    Attributes
    ----------
    lines, size
        the number of its lines, and of its bytes; added ones count
    failed
        why it cannot be written, or ``""``

    Raises
    ------
    InputError
        another process writes it, its last line is not one of an audit log, or the file cannot be opened

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "audit.jsonl")
    ...     with AuditLog(path) as audit:
    ...         audit.add("note", text="hello")
    ...         audit.flush(sync=True)
    ...     [(each.line, each.kind, each.values) for each in read_audit(path)]
    [(1, 'note', {'text': 'hello'})]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.lines = self.size = 0
        self.failed = ""
        self._before = ""
        self._waiting: list[bytes] = []
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from None
        try:
            _lock(self._file, self.path)
            cut = self._continue()
        except BaseException:
            os.close(self._file)
            raise
        if cut:
            self.add("note", text=f"removed an unfinished line of {cut} bytes")

    def __repr__(self) -> str:
        return f"<AuditLog {self.path}: {self.lines} lines{', failed' if self.failed else ''}>"

    def __enter__(self) -> AuditLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _continue(self) -> int:
        """Remove an unfinished last line, and find the number and the hash of the one before; return bytes removed."""
        size = os.fstat(self._file).st_size
        good, last = _last_line(self._file, size)
        if good < size:
            os.ftruncate(self._file, good)
        self._end = self.size = good
        if last:
            values = _read_line(last, None, str(self.path))
            self.lines, self._before = values["line"], sha256(last).hexdigest()
        return size - good

    # ------------------------------------------------------------------ writing

    def add(self, kind: str, **values: Any) -> None:
        """Add a line, which :meth:`flush` writes."""
        number = self.lines + 1
        document = {"line": number, "before": self._before, "kind": kind, **values}
        line = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        self._before = sha256(line).hexdigest()
        self.lines = number
        self.size += len(line) + 1
        self._waiting.append(line + b"\n")

    def flush(self, *, sync: bool = False) -> None:
        """Write the lines added since; ``sync``: onto the disk.

        Raises
        ------
        AuditError
            the lines cannot be written; all of them are dropped, and the file stays a whole log
        """
        if not self._waiting:
            return
        data = b"".join(self._waiting)
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written : written + _BLOCK])
            if sync:
                os.fsync(self._file)
        except OSError as error:
            self._waiting.clear()
            os.ftruncate(self._file, self._end)
            self._continue_after(error)
        self._waiting.clear()
        self._end += len(data)
        self.failed = ""

    def _continue_after(self, error: OSError) -> None:
        self.lines, self._before = 0, ""
        self._continue()
        self.failed = f"{self.path}: cannot be written: {error.strerror}"
        raise AuditError(self.failed) from None

    def close(self) -> None:
        """Write the pending lines, if possible, and close the file."""
        if self._file >= 0:
            try:
                self.flush(sync=True)
            except AuditError:
                pass
            finally:
                os.close(self._file)
                self._file = -1


def _lock(file: int, path: Path) -> None:
    """Refuse a file that another process writes."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError("is written by another process", source=str(path)) from None


def _last_line(file: int, size: int) -> tuple[int, bytes]:
    """Return the number of bytes up to the last end of a line, and the line before it, without its end."""
    data, begin = b"", size
    while begin > 0:
        step = min(_BLOCK, begin)
        begin -= step
        data = os.pread(file, step, begin) + data
        end = data.rfind(b"\n")
        start = data.rfind(b"\n", 0, end) if end >= 0 else -1
        if start >= 0 or (begin == 0 and end >= 0):
            return begin + end + 1, data[start + 1 : end]
    return 0, b""


# ---------------------------------------------------------------------- reading


def read_audit(path: str | Path) -> Iterator[AuditRecord]:
    """Yield the lines of an audit log; an unfinished last line is left out.

    Raises
    ------
    InputError
        the file cannot be read, a line is none of an audit log, or one was changed, added or removed
    """
    source = str(path)
    number, before = 0, ""
    try:
        with open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                number += 1
                line = line[:-1]
                values = _read_line(line, number, source)
                if values["line"] != number or values["before"] != before:
                    raise InputError("does not follow the line before: the log was changed", source, f"line {number}")
                before = sha256(line).hexdigest()
                kind = values.pop("kind")
                del values["line"], values["before"]
                yield AuditRecord(number, kind, values)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source) from None


def _read_line(line: bytes, number: int | None, source: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    keys = {"line": int, "before": str, "kind": str}
    if not isinstance(values, dict) or any(type(values.get(key)) is not kind for key, kind in keys.items()):
        place = "last line" if number is None else f"line {number}"
        raise InputError(f"must be a line of an audit log, got {shown(line)}", source, place)
    return values
