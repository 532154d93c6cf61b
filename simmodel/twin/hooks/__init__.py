"""The scripts that tell a stream what a scheduler does: written to a folder, for an administrator to put in place.

They import nothing of simmodel and need no more than ``sh`` and Python's standard library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from simmodel.errors import InputError, shown
from simmodel.twin.acting.settings import ActSettings
from simmodel.twin.redis_settings import RedisSettings
from simmodel.twin.streams import stream_key
from simmodel.writing import write_text

__all__ = ["CALLS", "install_hooks"]

CALLS: Mapping[str, str] = {
    "prolog-slurmctld": "started",
    "epilog-slurmctld": "ended",
    "jobcomp": "completed",
    "submitted": "submitted",
}
"""The scripts that Slurm calls, and what each tells."""

_MARK = "simmodel twin install-hooks"
_SETTINGS = 'SETTINGS: "dict[str, str]" = {}'
_PLAIN = re.compile(r"/[\w./+@=-]*", re.ASCII)  # paths that need quotes nowhere

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
        a path has characters that slurm.conf or a shell would read otherwise, or a file of another origin is in the way

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     lines = install_hooks(folder, "alps")
    ...     sorted(each.name for each in Path(folder).iterdir())
    ['epilog-slurmctld', 'job_submit.lua', 'jobcomp', 'prolog-slurmctld', 'spool', 'submitted', 'tell.py']
    """
    folder = Path(folder).absolute()
    entries = Path(spool).absolute() if spool is not None else folder / "spool" / "entries"
    paths = [("folder", str(folder)), ("spool", str(entries)), ("python", python)]
    if hold is not None:
        paths.append(("heartbeat", hold.heartbeat))
    for place, path in paths:
        if not _PLAIN.fullmatch(path):
            raise InputError(f"must be an absolute path of letters, digits and ./_+@=-, got {shown(path)}", place=place)
    settings = _settings(server or RedisSettings()) | {
        "cluster": cluster,
        "stream": stream or stream_key(cluster),
        "spool": str(entries),
    }
    if len(cluster) > 200 or not cluster.isprintable():
        raise InputError(f"must be at most 200 printable characters, got {shown(cluster)}", place="cluster")
    tell = _template("tell.py").replace(_SETTINGS, _SETTINGS.replace("{}", repr(settings)))
    texts = {"tell.py": tell, "job_submit.lua": _submission(folder, hold)}
    if hold is not None:
        texts["release"] = _template("release.sh").replace("HEARTBEAT", hold.heartbeat)
    for name, what in CALLS.items():
        text = _template("call.sh").replace("PYTHON", python).replace("TELL", f"{folder}/tell.py")
        texts[name] = text.replace("WHAT", what)
    for name in texts:
        _refuse_others(folder / name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if spool is None:
            entries.parent.mkdir(exist_ok=True)
        for name, text in texts.items():
            write_text(folder / name, text)
            (folder / name).chmod(0o755 if name in CALLS or name == "release" else 0o644)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(error.filename or folder)) from None
    return _LINES.format(folder=folder)


def _submission(folder: Path, hold: ActSettings | None) -> str:
    """Return the script that Slurm asks about each submission."""
    values = {"SCRIPT": f'"{folder}/submitted"', "RELEASE": f'"{folder}/release"'}
    if hold is None:
        values |= {"HEARTBEAT": "nil", "STALE_AFTER": "0", "MAXIMUM_DELAY": "0", "PARTITIONS": "nil"}
    else:
        values |= {"HEARTBEAT": f'"{hold.heartbeat}"', "STALE_AFTER": f"{hold.stale_after:.0f}"}
        values["MAXIMUM_DELAY"] = f"{hold.maximum_delay:.0f}"
        names = ", ".join(f'["{name}"] = true' for name in hold.partitions)
        values["PARTITIONS"] = f"{{{names}}}" if names else "nil"
    text = _template("job_submit.lua")
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _template(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")


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
