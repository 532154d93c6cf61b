"""All that the watching twin runs of Slurm: a fixed list of commands, each of which only reads.

In formats of our own the names that users give stand between marks that are drawn anew at each call, so that no name,
whatever its characters, ends a field or a row. An answer has a header and ends with such a mark, or it is refused.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

from simmodel import InputError
from simmodel.extending import shown
from simmodel_site.twin.programs import Commands, ProgramError
from simmodel_site.twin.slurm.jobs import task_numbers

__all__ = ["READS", "TABLES", "UNKNOWN_JOB", "SlurmCommands", "SlurmError", "check_id"]

UNKNOWN_JOB = "Invalid job id"
"""The message of Slurm's commands for a job that does not exist."""
_JOB = re.compile(r"[0-9]{1,18}(_[0-9]{1,9})?", re.ASCII)

_FIELD, _ROW = "\x1f", "\x1e"
"""Where the marks between fields and after rows stand in a format."""

TABLES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "jobs": {
            "id": "%A",
            "array": "%F",
            "task": "%K",
            "state": "%T",
            "submit": "%V",
            "start": "%S",
            "end": "%e",
            "limit": "%l",
            "nodes": "%D",
            "cpus": "%C",
            "least_cpus": "%c",
            "memory": "%m",
            "gres": "%b",
            "licenses": "%W",
            "exclusive": "%h",
            "priority": "%Q",
            "reason": "%r",
            "dependency": "%E",
            "partition": "%P",
            "reservation": "%v",
            "allocated": "%N",
            "user": "%u",
            "account": "%a",
            "qos": "%q",
            "name": "%j",
            "comment": "%k",
            "required": "%n",
            "excluded": "%x",
            "features": "%f",
        },
        "arrays": {"array": "%F", "tasks": "%K"},
        "nodes": {"name": "%N", "state": "%T", "cpus": "%c", "memory": "%m", "partition": "%P"},
        "marks": {"job": "JobID:24", "task": "ArrayTaskID:24", "begin": "EligibleTime:24", "mark": "admin_comment:40"},
    }
)
"""The fields of the tables, each with its letter in the format of ``squeue`` and ``sinfo``, or its name and width."""
_HEADING = re.compile(r"[A-Z_:/() ]*")  # of a column
_LISTED = re.compile(r"^JobId=(\d{1,18}) (?:ArrayJobId=(\d+) ArrayTaskId=(\S+) )?", re.MULTILINE)
_NODE = re.compile(r"^NodeName=(\S+) .*\bPartitions=\S", re.MULTILINE)


def _format(table: str) -> str:
    return f"--format={_FIELD.join(TABLES[table].values())}{_ROW}"


def _names(table: str) -> str:
    return f"--Format={f'{_FIELD},'.join(TABLES[table].values())}{_ROW}"


_JOBS = ("squeue", "--all", "--array", "--states=all")

READS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "jobs": (*_JOBS, _format("jobs")),
        "arrays": ("squeue", "--all", "--states=PENDING", _format("arrays")),
        "nodes": ("sinfo", "--all", "--Node", _format("nodes")),
        "marks": (*_JOBS, _names("marks")),
        "job": ("scontrol", "show", "job"),
        "jobs.json": ("squeue", "--all", "--states=all", "--json"),
        "nodes.json": ("sinfo", "--all", "--json"),
        "config": ("scontrol", "show", "config"),
        "partition": ("scontrol", "--all", "--oneliner", "show", "partition"),
        "node": ("scontrol", "--all", "--oneliner", "show", "node"),
        "reservation": ("scontrol", "--oneliner", "show", "reservation"),
        "license": ("scontrol", "--oneliner", "show", "license"),
        "topology": ("scontrol", "--oneliner", "show", "topology"),
        "ping": ("scontrol", "ping"),
    }
)
"""All that the twin ever runs of Slurm, by name: each only reads; ``job`` takes the id of a job."""


class SlurmError(ProgramError):
    """A command of Slurm is missing, does not answer, or answers with an error."""


def check_id(job: int | str) -> str:
    """Return the id of a job as a word for Slurm's commands.

    Raises
    ------
    InputError
        it is not such an id

    >>> check_id("12_1")
    '12_1'
    """
    text = str(job)
    if not _JOB.fullmatch(text):
        raise InputError(f"must be an id such as 12 or 12_1, got {shown(text)}", place="job")
    return text


class SlurmCommands(Commands):
    """Slurm's commands on this computer, those that read.

    Its times are in seconds since 1970. Variables such as SQUEUE_STATES, which would change answers, are not handed on.

    >>> SlurmCommands(folder="/nowhere").read("ping")
    Traceback (most recent call last):
    ...
    simmodel_site.twin.slurm.commands.SlurmError: /nowhere/scontrol: not found; the twin needs Slurm's client commands
    """

    scheduler = "Slurm"
    error = SlurmError
    conf_variable = "SLURM_CONF"
    kept = ("TZ", "SLURM_JWT")
    fixed = MappingProxyType({"SLURM_TIME_FORMAT": "%s"})
    reads = READS
    of_jobs = frozenset(("job",))
    word_of = staticmethod(check_id)

    def rows(self, name: str) -> list[dict[str, str]]:
        """Run a command of :data:`TABLES` and return its rows: texts by field.

        Raises
        ------
        SlurmError
            the command is missing, fails, or takes too long, or its answer is not whole
        """
        mark = secrets.token_hex(8)
        program, fields = READS[name][0], TABLES[name]
        words = [word.replace(_FIELD, _FIELD + mark).replace(_ROW, _ROW + mark) for word in READS[name]]
        try:
            header, *rows = self.run(words).split(f"{_ROW}{mark}\n")
        except SlurmError as error:
            raise SlurmError(str(error).replace(mark, "")) from None
        if not rows or not all(map(_HEADING.fullmatch, header.split(_FIELD + mark))):
            raise SlurmError(f"{program}: its answer must begin with a header")
        if rows.pop():
            raise SlurmError(f"{program}: its answer must end with a row")
        found = [row.split(_FIELD + mark) for row in (header, *rows)]
        if any(len(cells) != len(fields) for cells in found):
            raise SlurmError(f"{program}: must tell {len(fields)} fields of each row")
        return [dict(zip(fields, map(str.strip, cells), strict=True)) for cells in found[1:]]

    def jobs(self) -> list[int | str]:
        """Return the ids of all jobs that ``scontrol`` lists, and perhaps some that users made up.

        Raises
        ------
        SlurmError
            the command is missing, fails, or takes too long
        """
        found: list[int | str] = []
        for job, array, tasks in _LISTED.findall(self.read("job")):
            with suppress(InputError):
                found += [f"{array}_{task}" for task in task_numbers(tasks)] if array else [int(job)]
        return found

    def nodes(self) -> frozenset[str]:
        """Return the names of all nodes in partitions, as ``scontrol`` lists them.

        Raises
        ------
        SlurmError
            the command is missing, fails, or takes too long
        """
        return frozenset(_NODE.findall(self.read("node")))

    def states(self, job: int | str) -> tuple[str, ...]:
        """Return the words of the state of a single job, among others that its user may have written; none: unknown.

        Raises
        ------
        SlurmError
            the command is missing, fails, or takes too long, or prints no job
        """
        try:
            answer = self.read("job", [job])
        except SlurmError as error:
            if UNKNOWN_JOB in str(error):
                return ()
            raise
        if not answer.startswith("JobId="):
            raise SlurmError("scontrol: must tell of a job")
        return tuple(re.findall(r"\bJobState=([A-Z_]+)", answer))
