"""Write files: a new file is written beside the old one and renamed into its place.

Every file that simmodel writes goes through :func:`replacing`: another process sees the old file or the new one, each
complete. If writing fails, the old file stays and the unfinished one is removed. A killed process leaves the unfinished
one, ``.NAME.HOST-PROCESS-TOKEN.part``; the next writer of the same file on that host removes it.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TextIO
from zlib import crc32

from simmodel.foundation.errors import InputError

__all__ = ["STDOUT", "check_output", "holds_parquet", "is_database", "replacing", "text_file", "write_text"]

STDOUT = Path("-")
"""Standard output as a path, compared by identity: ``Path("-")`` is a file, the text ``"-"`` is standard output."""

_JOURNALS = ("-journal", "-wal", "-shm")  # files of SQLite beside a database in use


@contextmanager
def replacing(path: str | Path, *endings: str, force: bool = False, unfinished: Path | None = None) -> Iterator[Path]:
    """Yield the path of a new empty file, which replaces ``path`` when the block ends without an error.

    A link is followed: its target is replaced. The new file has the permissions of the old one, and its owner if the
    process may set it. Standard output, character devices and pipes are written when the block ends.

    Parameters
    ----------
    path
        the file to write; ``"-"`` or :data:`STDOUT` is standard output
    endings
        as of :func:`check_output`
    force
        whether to replace a database of another program
    unfinished
        the new file, which then stays if the block ends with an error; default: a file with a name of its own

    Raises
    ------
    InputError
        the file must not be replaced (see :func:`check_output`), or writing fails, as on a full disk

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/numbers.txt") as part:
    ...         _ = part.write_text("1 2 3")
    ...     [each.read_text() for each in Path(folder).iterdir()]
    ['1 2 3']
    """
    target = check_output(path, *endings, force=force)
    with _refusing(path):
        part = _new_part(target) if unfinished is None else unfinished
        try:
            yield part
            if target is None:
                _copy(part, path)
                part.unlink()
            else:
                _replace(part, target)
        except BaseException:
            if unfinished is None:
                part.unlink(missing_ok=True)
            raise


@contextmanager
def text_file(path: str | Path, *endings: str) -> Iterator[TextIO]:
    """Yield an open text file that replaces ``path`` as :func:`replacing` does.

    The text is written as UTF-8 with its line ends as they are, and compressed if the path ends in ``.gz``; the same
    text gives the same bytes. ``endings``: as of :func:`check_output`.
    """
    from gzip import GzipFile
    from io import TextIOWrapper

    with replacing(path, *endings) as part, open(part, "wb") as raw:
        packed = GzipFile("", "wb", fileobj=raw, mtime=0) if str(path).endswith(".gz") else raw
        with TextIOWrapper(packed, encoding="utf-8", newline="") as file:
            yield file


def write_text(path: str | Path, text: str, *endings: str) -> None:
    """Write text to a file as :func:`text_file` does."""
    with text_file(path, *endings) as file:
        file.write(text)


_ENDINGS = {
    ".htm": ".html",
    ".db": ".sqlite",
    ".jpeg": ".jpg",
    ".yml": ".yaml",
    **{end: end for end in (".csv", ".dot", ".html", ".jpg", ".json", ".md", ".parquet", ".pdf", ".png", ".sqlite")},
    **{end: end for end in (".svg", ".swf", ".tex", ".toml", ".xlsx", ".xml", ".yaml")},
}
"""Endings that say what a file holds, and the usual one for it; others are as good as none."""


def check_ending(path: str | Path, *endings: str) -> None:
    """Refuse a path whose ending says that it holds something else than what is written.

    >>> check_ending("run.htm", ".html")
    >>> check_ending("run.pdf", ".html")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: run.pdf: must end in .html, got '.pdf'
    """
    ending = Path(str(path).removesuffix(".gz")).suffix.lower()
    if endings and _ENDINGS.get(ending, endings[0]) not in endings:
        raise InputError(f"must end in {' or '.join(endings)}, got {ending!r}", source=str(path))


def check_output(path: str | Path, *endings: str, force: bool = False) -> Path | None:
    """Return the file that writing to a path replaces, links followed; ``None`` if the path is written directly.

    Written directly are standard output, character devices such as ``/dev/null``, and pipes.

    Parameters
    ----------
    endings
        those of what is written: another kind's is refused (see :func:`check_ending`); none: anything goes

    Raises
    ------
    InputError
        the path is a folder, a disk or a socket, its folder does not exist, permission is missing, or it is a database
        of another program (unless ``force``) or one that another process has open

    >>> check_output("-") is check_output("/dev/null") is None
    True
    """
    if _is_stdout(path):
        return None
    check_ending(path, *endings)
    target = Path(path)
    with _refusing(path):
        try:
            kind = target.stat().st_mode
        except FileNotFoundError:
            kind = 0
        if stat.S_ISDIR(kind):
            raise InputError("must be a file to write, got a folder", source=str(path))
        if kind and not os.access(target, os.W_OK):
            raise PermissionError(0, "permission denied")
        if stat.S_ISCHR(kind) or stat.S_ISFIFO(kind):
            return None
        if kind and not stat.S_ISREG(kind):
            raise InputError("must be a file to write, got a device", source=str(path))
        target = Path(os.path.realpath(target))
        if not target.parent.is_dir():
            raise FileNotFoundError(0, f"no folder {target.parent}")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(0, f"permission denied in folder {target.parent}")
        if kind and not force and is_database(target):
            _check_database(target, path)
    return target


def holds_parquet(path: Path) -> bool:
    """Whether a streamed record becomes a folder of Parquet files: if it is a folder, or by its name.

    >>> holds_parquet(Path("record.parquet")), holds_parquet(Path("record.db"))
    (True, False)
    """
    return path.suffix == ".parquet" or path.is_dir()


def _is_stdout(path: str | Path) -> bool:
    return path is STDOUT or path == "-"  # a Path never equals a text


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """Turn the errors of the operating system into one sentence."""
    try:
        yield
    except OSError as error:
        if _is_stdout(path) and isinstance(error, BrokenPipeError):  # the reader has seen enough
            raise
        reason = error.strerror or str(error)
        raise InputError(f"cannot be written: {reason[:1].lower()}{reason[1:]}", source=_shown(path)) from None
    except UnicodeEncodeError as error:
        found = error.object[error.start : error.end]
        raise InputError(f"must be text that UTF-8 can encode, got {found!r}", source=_shown(path)) from None


def _shown(path: str | Path) -> str:
    return "standard output" if _is_stdout(path) else str(path)


# ---------------------------------------------------------------------- the new file


def _new_part(target: Path | None) -> Path:
    """Create an empty file: beside the target, or, if that is written directly, in the folder of temporary files."""
    if target is None:
        from tempfile import gettempdir

        target = Path(gettempdir(), "simmodel")
    prefix = f".{target.name[:50]}.{_host()}-"
    _remove_left(target.parent, prefix)
    while True:
        part = target.with_name(f"{prefix}{os.getpid()}-{os.urandom(4).hex()}.part")
        with suppress(FileExistsError):
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # less the umask
            return part


def _host() -> str:
    """Return a short name of this computer: the same number is another process elsewhere."""
    from platform import node

    return f"{crc32(node().encode()):08x}"


def _remove_left(folder: Path, prefix: str) -> None:
    """Remove unfinished files whose writers have been killed."""
    if os.name == "nt":  # where os.kill(process, 0) kills
        return
    with suppress(OSError), os.scandir(folder) as files:
        for each in files:
            if each.name.startswith(prefix) and each.name.endswith(".part"):
                writer = each.name.removeprefix(prefix).partition("-")[0]
                if writer.isdecimal() and not _runs(int(writer)):
                    os.unlink(each.path)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user, or no number of a process
        return True
    return True


def _replace(part: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        _keep_owner_and_permissions(part, target.stat())
    with open(part, "rb+") as file:  # some file systems report a full disk only now
        os.fsync(file.fileno())
    if target.exists() and is_database(target):
        for ending in _JOURNALS:  # SQLite would apply them to the new database
            Path(f"{target}{ending}").unlink(missing_ok=True)
    part.replace(target)


def _keep_owner_and_permissions(part: Path, old: os.stat_result) -> None:
    if sys.platform != "win32" and (old.st_uid, old.st_gid) != (part.stat().st_uid, part.stat().st_gid):
        with suppress(PermissionError):
            os.chown(part, old.st_uid, old.st_gid)
    part.chmod(stat.S_IMODE(old.st_mode))


def _copy(part: Path, path: str | Path) -> None:
    """Copy a file to standard output, a device or a pipe."""
    with open(part, "rb") as source:
        if not _is_stdout(path):
            with open(path, "wb") as target:
                shutil.copyfileobj(source, target)
            return
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):
            shutil.copyfileobj(source, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:  # a text stream in its place
            sys.stdout.write(source.read().decode())


# ---------------------------------------------------------------------- databases


def is_database(path: Path) -> bool:
    """Whether a file is an SQLite database.

    Raises
    ------
    OSError
        if the file cannot be read
    """
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _check_database(database: Path, path: str | Path) -> None:
    """Refuse to replace a database that simmodel did not write, or that another process is writing."""
    if not _is_ours(database):
        raise InputError("cannot be replaced: it is a database of another program", source=str(path))
    used = [name for ending in _JOURNALS[:2] if (name := Path(f"{database}{ending}")).exists() and name.stat().st_size]
    if used:
        raise InputError(f"cannot be replaced: another process has it open, see {used[0]}", source=str(path))


def _is_ours(database: Path) -> bool:
    import sqlite3

    uri = f"{database.as_uri()}?mode=ro&immutable=1"  # neither waits for a lock nor creates a file
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute("SELECT 1 FROM meta WHERE key = 'simmodel'").fetchone() is not None
    except sqlite3.Error:
        return False
