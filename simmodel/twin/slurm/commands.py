"""All that the watching twin runs of Slurm: a fixed list of commands, each of which only reads.

In formats of our own the names that users give stand between marks that are drawn anew at each call, so that no name,
whatever its characters, ends a field or a row.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from simmodel.display import Fields
from simmodel.errors import InputError, shown, unknown
from simmodel.twin.slurm.program import SlurmError, run_program

__all__ = ["READS", "TABLES", "SlurmCommands", "SlurmError"]

_FIELD, _ROW = "\x1f", "\x1e"
"""Where the marks between fields and before rows stand in a format."""

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
        },
        "nodes": {"name": "%N", "state": "%T", "cpus": "%c", "partition": "%P"},
    }
)
"""The fields of the tables, each with its letter in the format of ``squeue`` and ``sinfo``."""


def _format(table: str) -> str:
    return f"--format={_ROW}{_FIELD.join(TABLES[table].values())}"


_MARKS = "--Format=JobID:24,ArrayTaskID:24,admin_comment:24"

READS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "jobs": ("squeue", "--noheader", "--all", "--array", "--states=all", _format("jobs")),
        "nodes": ("sinfo", "--noheader", "--all", "--Node", _format("nodes")),
        "marks": ("squeue", "--noheader", "--all", "--array", "--states=PENDING", _MARKS),
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
"""All that the twin ever runs of Slurm, by name: each only reads."""


@attrs.frozen(kw_only=True, repr=False)
class SlurmCommands(Fields):
    """Slurm's commands on this computer, those that read.

    Parameters
    ----------
    conf
        path of slurm.conf; default: that of the environment
    folder
        the folder of the commands; default: they are on the path
    timeout
        the longest time of a command (s)

    >>> SlurmCommands(folder="/nowhere").read("ping")
    Traceback (most recent call last):
    ...
    simmodel.twin.slurm.program.SlurmError: /nowhere/scontrol: not found; the twin needs Slurm's client commands
    """

    conf: str | None = None
    folder: str | None = None
    timeout: float = 30.0

    def __attrs_post_init__(self) -> None:
        if not self.timeout > 0:
            raise InputError(f"must be a number > 0 (s), got {self.timeout!r}", place="timeout")

    def read(self, name: str) -> str:
        """Run a command of :data:`READS` and return what it prints.

        Bytes that are no UTF-8 are replaced.

        Raises
        ------
        SlurmError
            the command is missing, fails, or takes too long
        """
        return self._run(name, "")

    def rows(self, name: str) -> Iterator[dict[str, str]]:
        """Run a command of :data:`TABLES` and yield its rows: texts by field.

        Raises
        ------
        SlurmError
            the command is missing, fails, or takes too long
        """
        mark = secrets.token_hex(8)
        fields = TABLES[name]
        for row in self._run(name, mark).split(_ROW + mark)[1:]:
            cells = row.removesuffix("\n").split(_FIELD + mark)
            if len(cells) != len(fields):
                raise SlurmError(f"{READS[name][0]}: must tell {len(fields)} fields of a row, got {shown(row)}")
            yield dict(zip(fields, map(str.strip, cells), strict=True))

    def _run(self, name: str, mark: str) -> str:
        if name not in READS:
            raise unknown("command", name, READS)
        words = READS[name]
        arguments = [word.replace(_FIELD, _FIELD + mark).replace(_ROW, _ROW + mark) for word in words[1:]]
        return run_program([words[0], *arguments], folder=self.folder, conf=self.conf, timeout=self.timeout)
