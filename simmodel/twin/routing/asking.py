"""Reads the request of a submission from the arguments of ``sbatch`` and the lines of its script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from simmodel.foundation.errors import SimmodelError, clipped
from simmodel.twin.slurm.site.sbatch import IDLE, read_words
from simmodel.twin.slurm.values import memory, seconds

__all__ = ["Submission", "read_submission", "script_file"]

_READ = frozenset(("ntasks", "nodes", "cpus-per-task", "time", "partition", "ntasks-per-node", "mem"))
_SCRIPT_LINE = re.compile(r"#SBATCH\s+(.*)")


class Submission(NamedTuple):
    """A submission: the options and the script with its arguments, as given, and the options by their long names.

    The names are those of the command line and of the script; ``unknown``: options that are none of sbatch 22.05.
    """

    given: tuple[str, ...]
    script: tuple[str, ...]
    options: Mapping[str, str]
    unknown: tuple[str, ...] = ()

    def with_comment(self, comment: str) -> list[str]:
        """Return all words with a comment that comes after, and so replaces, any other.

        >>> read_submission(["-n", "4", "--comm=x", "job.sh", "--comment=y"]).with_comment("mine")
        ['-n', '4', '--comm=x', '--comment=mine', 'job.sh', '--comment=y']
        """
        return [*self.given, f"--comment={comment}", *self.script]

    @property
    def comment(self) -> str:
        """The comment that its user gave it."""
        return self.options.get("comment", "")

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """The options that Slurm heeds and :meth:`request` does not.

        >>> read_submission(["-w", "n1", "-Hn4", "--constraint=ib", "-o", "out", "--mem=2G", "job.sh"]).unmodelled
        ('--constraint ib', '--hold', '--mem 2G', '--nodelist n1')
        """
        read = self.request()
        left = {name: value for name, value in self.options.items() if name not in _READ | IDLE}
        if "memory_per_node" not in read and self.options.get("mem", "0") != "0":
            left["mem"] = self.options["mem"]
        if "-" in self.options.get("nodes", ""):
            left["nodes"] = self.options["nodes"]
        told = [f"--{name} {left[name]}".strip() for name in sorted(left)]
        return tuple(clipped(each, 100) for each in (*told, *self.unknown))

    def request(self) -> dict[str, Any]:
        """Return the fields of a request (see :class:`~simmodel.twin.events.Demand`) that it says.

        >>> read_submission(["-N2", "--ntasks-per-node=8", "-t", "1:00:00", "job.sh"]).request()
        {'processors': 16, 'nodes': 2, 'cores_per_node': 8, 'requested': 3600.0}
        """
        found = self.options
        each = _whole(found.get("cpus-per-task"), 1)
        nodes = _whole(found.get("nodes", "").partition("-")[0], 0)
        per_node = _whole(found.get("ntasks-per-node"), 0)
        tasks = _whole(found.get("ntasks"), max(nodes, 1) * max(per_node, 1))
        asked: dict[str, Any] = {"processors": tasks * each}
        if nodes:
            asked |= {"nodes": nodes, "cores_per_node": -(-tasks * each // nodes)}
            asked["processors"] = nodes * asked["cores_per_node"]
        time = found.get("time", "")
        with suppress(SimmodelError):
            if (limit := 60.0 * int(time) if time.isdecimal() else seconds(time)) is not None:
                asked["requested"] = limit
        with suppress(SimmodelError):
            if nodes and (bytes_there := memory(found.get("mem", ""))):
                asked["memory_per_node"] = bytes_there
        if found.get("partition"):
            asked["partition"] = found["partition"]
        return asked


def read_submission(words: Sequence[str], script: str = "") -> Submission:
    """Return the submission in the arguments of ``sbatch``, without the command, and in the text of its script.

    Options of the command line come before those of the script. Options that are not understood are left to Slurm.

    >>> found = read_submission(["--comment", "two words"], "#!/bin/sh\\n#SBATCH -n 4 --time=10\\n")
    >>> found.comment, found.request()
    ('two words', {'processors': 4, 'requested': 600.0})
    """
    own = read_words(words)
    there: dict[str, str] = {}
    unknown = own.unknown
    for line in script.splitlines():
        match = _SCRIPT_LINE.match(line)
        if match:
            with suppress(ValueError):
                found = read_words(shlex.split(match[1], comments=True))
                there |= found.values
                unknown += found.unknown
        elif line and not line.startswith("#"):
            break
    return Submission(tuple(words[: own.taken]), tuple(words[own.taken :]), {**there, **own.values}, unknown)


def script_file(submission: Submission) -> str | None:
    """Return the path of the script; ``None``: it comes from the standard input."""
    words = [word for word in submission.script if word != "--"]
    return words[0] if words else None


def _whole(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() and int(text) < 10**7 else default
