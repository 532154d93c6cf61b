"""The writing of scripts for schedulers: their settings, their paths, and that no other file is in the way."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.writing import write_text
from simmodel.twin.redis_settings import RedisSettings
from simmodel.twin.streams import stream_key

__all__ = ["SETTINGS", "check_paths", "lua", "stream_settings", "template", "write_scripts"]

SETTINGS = 'SETTINGS: "dict[str, str]" = {}'
"""The line of a script that its settings replace."""

_MARK = "simmodel twin install-hooks"
_PLAIN = re.compile(r"/[\w./+@=-]*", re.ASCII)  # paths that need quotes nowhere


def check_paths(folder: Path, holder: str, **paths: str) -> None:
    """Raise :class:`~simmodel.foundation.errors.InputError` if a path cannot be used.

    Parameters
    ----------
    folder, holder
        the folder of the scripts, and the file of the scheduler that names it, which knows no quotes
    paths
        others, which the scripts quote, by the name of their argument
    """
    if not _PLAIN.fullmatch(str(folder)):
        message = f"must be a path of letters, digits and ./_+@=-, as {holder} can hold it, got {shown(str(folder))}"
        raise InputError(message, place="folder")
    for place, path in paths.items():
        if not (path.startswith("/") and path.isprintable()):
            raise InputError(f"must be an absolute path of printable characters, got {shown(path)}", place=place)


def lua(text: str) -> str:
    """Return a text as a string of Lua."""
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


def template(name: str) -> str:
    """Return the text of a script before its settings are in it."""
    return files("simmodel.twin.hooks").joinpath(name).read_text("utf-8")


def stream_settings(cluster: str, server: RedisSettings | None, stream: str | None, spool: Path) -> dict[str, str]:
    """Return the settings of ``tell.py``; raises :class:`~simmodel.foundation.errors.InputError`."""
    if len(cluster) > 200 or not cluster.isprintable():
        raise InputError(f"must be at most 200 printable characters, got {shown(cluster)}", place="cluster")
    return _settings(server or RedisSettings()) | {
        "cluster": cluster,
        "stream": stream or stream_key(cluster),
        "spool": str(spool),
    }


def write_scripts(folder: Path, texts: Mapping[str, str], *, runnable: Container[str], spool: Path | None) -> None:
    """Write scripts into a folder, and make it and that of the spool if they are missing.

    Raises
    ------
    InputError
        a file of another origin is in the way, or one cannot be written
    """
    for name in texts:
        _refuse_others(folder / name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if spool is not None:
            spool.mkdir(exist_ok=True)
        for name, text in texts.items():
            write_text(folder / name, text)
            (folder / name).chmod(0o755 if name in runnable else 0o644)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(error.filename or folder)) from None


def _settings(server: RedisSettings) -> dict[str, str]:
    """Return the settings of the script: it knows no variables of the environment, and reads a password from a file."""
    parts = urlsplit(server.url)
    found = {"host": parts.hostname or "", "port": str(parts.port or 6379)}
    if parts.scheme == "unix":
        found = {"socket": parts.path}
    elif parts.scheme == "rediss":
        found["tls"] = "yes"
    for name in ("user", "password_file", "ca_file", "certificate_file", "key_file"):
        value = getattr(server, name)
        if value is not None:
            found[name] = value if name == "user" else str(Path(value).absolute())
    if server.user is not None and server.password_file is None:
        raise InputError("missing value: the scripts read the password of the user there", place="password_file")
    return found


def _refuse_others(path: Path) -> None:
    """Raise an error if there is a file that is none of these scripts."""
    if path.exists() and _MARK not in path.read_text("utf-8", "replace")[:1000]:
        raise InputError("exists, and is none of these scripts; choose an empty folder", source=str(path))
