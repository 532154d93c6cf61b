"""The scripts that send a scheduler's events to a stream: written to a folder, for an administrator to install.

They import nothing of simmodel and need no more than ``sh`` and Python's standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from simmodel.twin.acting.actions import ActSettings
from simmodel.twin.hooks.scripts import SETTINGS, check_paths, lua, stream_settings, template, write_scripts
from simmodel.twin.streams import RedisSettings

__all__ = ["CALLS", "install_hooks"]

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
