"""The writing of scripts for schedulers, with their settings and paths, where no other file is; the hook of PBS."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from importlib.resources import files
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.writing import write_text
from simmodel.twin.acting.actions import ActSettings
from simmodel.twin.streams import RedisSettings, stream_key

__all__ = ["SETTINGS", "check_paths", "install_pbs_hook", "lua", "stream_settings", "template", "write_scripts"]


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


_LINES = """\
# The mark of jobs that are held or preferred for a twin, which users cannot change:
create resource simmodel_mark type=string,flag=r
# Submissions, starts and ends of jobs:
create hook simmodel
set hook simmodel event = "queuejob,runjob,jobobit"
set hook simmodel alarm = 5
import hook simmodel application/x-python default {folder}/pbs_hook.py
set hook simmodel enabled = true
# In a release of PBS without jobobit leave it out: ends are seen in the next report.
# Undo it all: delete hook simmodel
"""


def install_pbs_hook(
    folder: str | Path,
    cluster: str,
    server: RedisSettings | None = None,
    stream: str | None = None,
    *,
    spool: str | Path | None = None,
    python: str = "/usr/bin/python3",
    hold: ActSettings | None = None,
    programs: str = "/opt/pbs/bin",
) -> str:
    """Write the hook for PBS into a folder, and return the lines for ``qmgr`` that an administrator gives.

    Parameters
    ----------
    folder, cluster, server, stream, spool, python
        as of :func:`~simmodel.twin.hooks.install_hooks`; the host is that of PBS's server
    hold
        the settings of a twin that acts with ``"hold-and-release"``: while its heartbeat, an absolute path, is fresh,
        batch jobs get an execution time ``maximum_delay`` seconds later. Default: nothing is held
    programs
        the folder of PBS's commands

    Raises
    ------
    InputError
        the folder has characters that qmgr cannot hold, a path is not absolute, or a file of another origin is in the
        way

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     lines = install_pbs_hook(folder, "alps")
    ...     sorted(each.name for each in Path(folder).iterdir())
    ['pbs_hook.py', 'spool', 'tell.py']
    """
    folder = Path(folder).absolute()
    entries = Path(spool).absolute() if spool is not None else folder / "spool" / "entries"
    heartbeat = "" if hold is None else hold.heartbeat
    check_paths(folder, "qmgr", spool=str(entries), python=python, programs=programs, heartbeat=heartbeat or "/")
    settings = {"tell": f"{folder}/tell.py", "python": python, "bin": programs, "release": f"{folder}/release"}
    if hold is not None:
        settings |= {
            "heartbeat": heartbeat,
            "stale_after": f"{hold.stale_after:g}",
            "maximum_delay": f"{hold.maximum_delay:g}",
            "queues": ",".join(hold.partitions),
        }
    tell = stream_settings(cluster, server, stream, entries)
    texts = {
        "tell.py": template("tell.py").replace(SETTINGS, SETTINGS.replace("{}", repr(tell))),
        "pbs_hook.py": template("pbs_hook.py").replace(SETTINGS, SETTINGS.replace("{}", repr(settings))),
    }
    if hold is not None:
        texts["release"] = template("release_pbs.sh").replace("HEARTBEAT", quote(heartbeat))
    write_scripts(folder, texts, runnable=("release",), spool=None if spool is not None else entries.parent)
    return _LINES.format(folder=folder)
