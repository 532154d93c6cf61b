"""All that the watching twin runs of PBS: a fixed list of commands, each of which only reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

from simmodel.display import Fields
from simmodel.errors import InputError, unknown
from simmodel.twin.pbs.documents import Document, read_document
from simmodel.twin.pbs.program import PbsError, run_program
from simmodel.twin.pbs.values import pbs_id

__all__ = ["READS", "PbsCommands", "PbsError"]

READS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "jobs": ("qstat", "-f", "-t", "-F", "json"),
        "job": ("qstat", "-f", "-F", "json"),
        "ended": ("qstat", "-x", "-f", "-F", "json"),
        "nodes": ("pbsnodes", "-a", "-F", "json"),
        "server": ("qstat", "-B", "-f", "-F", "json"),
        "queues": ("qstat", "-Q", "-f", "-F", "json"),
    }
)
"""All that the twin ever reads of PBS, by name; ``job`` and ``ended`` take ids of jobs."""

_WITH_JOBS = frozenset(("job", "ended"))


@attrs.frozen(kw_only=True, repr=False)
class PbsCommands(Fields):
    """PBS's commands on this computer, those that read.

    Parameters
    ----------
    conf
        path of pbs.conf; default: that of the environment
    folder
        the folder of the commands, often ``/opt/pbs/bin``; default: they are on the path
    timeout
        the longest time of a command (s)

    >>> PbsCommands(folder="/nowhere").read("server")
    Traceback (most recent call last):
    ...
    simmodel.twin.pbs.program.PbsError: /nowhere/qstat: not found; the twin needs PBS's client commands
    """

    conf: str | None = None
    folder: str | None = None
    timeout: float = 30.0

    def __attrs_post_init__(self) -> None:
        if not self.timeout > 0:
            raise InputError(f"must be a number > 0 (s), got {self.timeout!r}", place="timeout")

    def read(self, name: str, jobs: Iterable[int | str] = ()) -> Document:
        """Run a command of :data:`READS`, for some jobs by their ids, and return the document that it prints.

        Raises
        ------
        PbsError
            the command is missing, fails, takes too long, or prints no JSON
        """
        if name not in READS:
            raise unknown("command", name, READS)
        given = [pbs_id(job) for job in jobs]
        if given and name not in _WITH_JOBS:
            raise InputError(f"must be none for {name!r}, got {len(given)}", place="jobs")
        text = run_program([*READS[name], *given], folder=self.folder, conf=self.conf, timeout=self.timeout)
        if not text.strip():  # some releases print nothing where there are no jobs
            return {}
        try:
            return read_document(text)
        except InputError as error:
            raise PbsError(f"{' '.join(READS[name])}: {error}") from None
