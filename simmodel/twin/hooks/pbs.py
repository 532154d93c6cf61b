"""The hook of PBS that sends its events to a stream, written to a folder for an administrator to import."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from simmodel.twin.acting.settings import ActSettings
from simmodel.twin.hooks.scripts import SETTINGS, check_paths, stream_settings, template, write_scripts
from simmodel.twin.redis_settings import RedisSettings

__all__ = ["install_pbs_hook"]

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
