"""All that the watching twin runs of PBS: a fixed list of commands, each of which only reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from simmodel.foundation.errors import InputError
from simmodel.twin.pbs.documents import Document, read_document
from simmodel.twin.pbs.values import pbs_id
from simmodel.twin.programs import Commands, ProgramError

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


class PbsError(ProgramError):
    """A command of PBS is missing, does not answer, or answers with an error."""


class PbsCommands(Commands):
    """PBS's commands on this computer, those that read, in UTC: they write times in the zone of their environment.

    >>> PbsCommands(folder="/nowhere").read("server")
    Traceback (most recent call last):
    ...
    simmodel.twin.pbs.commands.PbsError: /nowhere/qstat: not found; the twin needs PBS's client commands
    """

    scheduler = "PBS"
    error = PbsError
    conf_variable = "PBS_CONF_FILE"
    fixed = MappingProxyType({"TZ": "UTC"})
    reads = READS
    of_jobs = frozenset(("job", "ended"))
    word_of = staticmethod(pbs_id)

    def document(self, name: str, jobs: Iterable[int | str] = ()) -> Document:
        """Run a command as :meth:`read` does, and return the document that it prints.

        Raises
        ------
        PbsError
            the command is missing, fails, takes too long, or prints no JSON
        """
        text = self.read(name, jobs)
        if not text.strip():  # some releases print nothing where there are no jobs
            return {}
        try:
            return read_document(text)
        except InputError as error:
            raise PbsError(f"{' '.join(READS[name])}: {error}") from None
