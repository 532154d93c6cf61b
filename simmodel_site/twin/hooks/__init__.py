"""The scripts that send a scheduler's events to a stream: written to a folder, for an administrator to install.

They import nothing of simmodel and need no more than ``sh`` and Python's standard library.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from importlib.resources import files
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

from simmodel import InputError
from simmodel.extending import shown, write_text
from simmodel_site.twin.acting.actions import ActSettings
from simmodel_site.twin.streams import RedisSettings, stream_key

__all__ = [
    "CALLS",
    "SETTINGS",
    "check_paths",
    "install_hooks",
    "install_pbs_hook",
    "lua",
    "stream_settings",
    "template",
    "write_scripts",
]


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
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


def template(name: str) -> str:
    """Return the text of a script before its settings are in it."""
    return files("simmodel_site.twin.hooks").joinpath(name).read_text("utf-8")


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


_OF_PBS = """\
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
        as of :func:`~simmodel_site.twin.hooks.install_hooks`; the host is that of PBS's server
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
    return _OF_PBS.format(folder=folder)


CALLS: Mapping[str, str] = {
    "prolog-slurmctld": "started",
    "epilog-slurmctld": "ended",
    "jobcomp": "completed",
    "submitted": "submitted",
}
"""The scripts that Slurm calls, and the kind of event that each sends."""

_LINES = """\
# Starts of jobs:
PrologSlurmctld={folder}/prolog-slurmctld
# Ends of jobs, with all of their times:
JobCompType=jobcomp/script
JobCompLoc={folder}/jobcomp
# Submissions, with {folder}/job_submit.lua beside slurm.conf:
JobSubmitPlugins=lua
# Ends, only where JobCompType is in use for something else: with any EpilogSlurmctld the main loop of Slurm 22.05 does
# not look for jobs to start when one ends, but once a minute (sched_interval) or in the next cycle of backfilling.
#EpilogSlurmctld={folder}/epilog-slurmctld
"""


def install_hooks(
    folder: str | Path,
    cluster: str,
    server: RedisSettings | None = None,
    stream: str | None = None,
    *,
    spool: str | Path | None = None,
    python: str = "/usr/bin/python3",
    hold: ActSettings | None = None,
) -> str:
    """Write the scripts for Slurm into a folder, and return the lines for slurm.conf that call them.

    Nothing else is written; the scripts work once an administrator has added the lines.

    Parameters
    ----------
    folder
        the folder; it is made if it is missing
    cluster
        the name of the cluster in the events
    server
        the server of the stream, as the hosts that run the scripts reach it
    stream
        the key of the stream; default: ``simmodel:CLUSTER``
    spool
        the file that keeps entries while the stream is away, which the user of Slurm must be able to write; default:
        ``spool/entries`` in the folder
    python
        the interpreter of those hosts
    hold
        the settings of a twin that acts with ``"hold-and-release"``: while its heartbeat, an absolute path, is fresh,
        batch jobs get a begin time ``maximum_delay`` seconds later. Default: nothing is held

    Raises
    ------
    InputError
        the folder has characters that slurm.conf cannot hold, a path is not absolute, or a file of another origin is in
        the way

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     lines = install_hooks(folder, "alps")
    ...     sorted(each.name for each in Path(folder).iterdir())
    ['epilog-slurmctld', 'job_submit.lua', 'jobcomp', 'prolog-slurmctld', 'spool', 'submitted', 'tell.py']
    """
    folder = Path(folder).absolute()
    entries = Path(spool).absolute() if spool is not None else folder / "spool" / "entries"
    heartbeat = "/" if hold is None else hold.heartbeat
    check_paths(folder, "slurm.conf", spool=str(entries), python=python, heartbeat=heartbeat)
    settings = stream_settings(cluster, server, stream, entries)
    tell = template("tell.py").replace(SETTINGS, SETTINGS.replace("{}", repr(settings)))
    texts = {"tell.py": tell, "job_submit.lua": _submission(folder, hold)}
    if hold is not None:
        texts["release"] = template("release.sh").replace("HEARTBEAT", quote(hold.heartbeat))
    for name, what in CALLS.items():
        text = template("call.sh").replace("PYTHON", quote(python)).replace("TELL", f"{folder}/tell.py")
        texts[name] = text.replace("WHAT", what)
    write_scripts(folder, texts, runnable=(*CALLS, "release"), spool=None if spool is not None else entries.parent)
    return _LINES.format(folder=folder)


def _submission(folder: Path, hold: ActSettings | None) -> str:
    """Return the script that Slurm asks about each submission."""
    values = {"SCRIPT": f'"{folder}/submitted"', "RELEASE": f'"{folder}/release"'}
    if hold is None:
        values |= {"HEARTBEAT": "nil", "STALE_AFTER": "0", "MAXIMUM_DELAY": "0", "PARTITIONS": "nil"}
    else:
        values |= {"HEARTBEAT": lua(hold.heartbeat), "STALE_AFTER": f"{hold.stale_after:.0f}"}
        values["MAXIMUM_DELAY"] = f"{hold.maximum_delay:.0f}"
        names = ", ".join(f'["{name}"] = true' for name in hold.partitions)
        values["PARTITIONS"] = f"{{{names}}}" if names else "nil"
    text = template("job_submit.lua")
    for name, value in values.items():
        text = text.replace(name, value)
    return text
