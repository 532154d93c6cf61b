"""Submits a job to the cluster where it should end first, once and nowhere else.

The job carries a token in its comment. When it is not known whether a controller has taken it, the token is looked up
there before anything is tried again; while that is not possible, nothing is.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ctypes import CDLL
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic, sleep
from typing import Any, NamedTuple
from urllib.parse import quote

import attrs

from simmodel import InputError, SimmodelError
from simmodel.extending import Fields, clipped, parse_toml, read_bytes, shown, strict_converter, unknown
from simmodel_site.twin.slurm.site.sbatch import IDLE, read_words
from simmodel_site.twin.slurm.values import memory, seconds

__all__ = [
    "Choice",
    "RouteSettings",
    "RoutedCluster",
    "Submission",
    "Submitted",
    "Unclear",
    "choose",
    "new_token",
    "read_route",
    "read_submission",
    "script_file",
    "submit",
]


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
        """Return the fields of a request (see :class:`~simmodel_site.twin.events.Demand`) that it says.

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


@attrs.frozen(kw_only=True, repr=False)
class RoutedCluster(Fields):
    """A cluster that takes submissions.

    Parameters
    ----------
    name
        its name
    conf
        path of its slurm.conf
    port
        the port on this machine at which its twin serves; default: its twin is never asked
    commands
        the folder of its ``sbatch``; default: on the path
    """

    name: str
    conf: str
    port: int | None = None
    commands: str | None = None


@attrs.frozen(kw_only=True, repr=False)
class RouteSettings(Fields):
    """Clusters among which submissions are routed.

    Parameters
    ----------
    default
        the name of the cluster that takes the jobs for which no twin has an answer
    clusters
        the clusters; of equal ones the first is chosen
    patience
        the longest time (s) that the twins have for their answers
    timeout
        the longest time (s) of a command of Slurm

    Raises
    ------
    InputError
        there is no cluster, two have the same name, or the default is none of them

    >>> RouteSettings(default="b", clusters=(RoutedCluster(name="a", conf="/etc/slurm/slurm.conf"),))
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: default: unknown cluster 'b'; known clusters: a
    """

    default: str
    clusters: tuple[RoutedCluster, ...]
    patience: float = 0.1
    timeout: float = 30.0

    def __attrs_post_init__(self) -> None:
        names = [cluster.name for cluster in self.clusters]
        if len(set(names)) < len(names):
            raise InputError(f"must have different names, got {', '.join(names)}", place="clusters")
        if self.default not in names:
            raise InputError(unknown("cluster", self.default, names).message, place="default")
        for name in ("patience", "timeout"):
            if not getattr(self, name) > 0:
                raise InputError(f"must be a number > 0 (s), got {getattr(self, name)!r}", place=name)


def read_route(path: str | Path) -> RouteSettings:
    """Return the configuration in a TOML file; relative paths in it are those of its folder.

    Raises
    ------
    InputError
        the file is missing or no TOML, a key is unknown or missing, or a value is invalid
    """
    values, source = parse_toml(*read_bytes(path)), str(path)
    try:
        found: RouteSettings = strict_converter().structure(values, RouteSettings)
    except InputError as error:
        raise InputError(error.message, source, error.place) from None
    folder = Path(path).parent
    clusters = tuple(attrs.evolve(each, conf=str(folder / each.conf)) for each in found.clusters)
    return attrs.evolve(found, clusters=clusters)


MARK = "simmodel-token:"
_TOKEN = re.compile(r"[0-9a-f]{8,64}", re.ASCII)
_NEVER_SENT = re.compile(rb"connect failure|Unable to resolve|Connection refused|No such file", re.IGNORECASE)
_UNCLEAR = re.compile(rb"timed out|Zero Bytes|Unable to contact|communication|Unexpected message", re.IGNORECASE)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LOOKS = 5  # attempts to look a token up


class Unclear(SimmodelError):
    """It is not known whether a cluster has taken a job, and it cannot be asked now."""


class Choice(NamedTuple):
    """A cluster, its simulated turnaround (s) or ``None`` with the reason, and properties its twin does not model."""

    cluster: RoutedCluster
    turnaround: float | None = None
    why: str = ""
    unmodelled: tuple[str, ...] = ()


class Submitted(NamedTuple):
    """The place of a job: the cluster, its id there, the output of ``sbatch``, and whether it was there before."""

    cluster: str
    job: int | None
    output: bytes = b""
    status: int = 0
    errors: bytes = b""
    found: bool = False


def new_token() -> str:
    return os.urandom(12).hex()  # the module secrets would be one more to load while a user waits


def choose(settings: RouteSettings, submission: Submission) -> list[Choice]:
    """Return the clusters, the one with the least turnaround first; the default comes first if no twin answers.

    Twins that do not answer in time count as away.
    """
    question = quote(json.dumps(submission.request()))
    asked = [cluster for cluster in settings.clusters if cluster.port is not None]
    until = monotonic() + settings.patience
    said: SimpleQueue[Choice] = SimpleQueue()
    for each in asked:
        Thread(target=lambda to: said.put(_ask(to, question, settings.patience)), args=(each,), daemon=True).start()
    answers: dict[str, Choice] = {}
    with suppress(Empty):
        while len(answers) < len(asked):
            choice = said.get(timeout=max(0.0, until - monotonic()))
            answers[choice.cluster.name] = choice
    found = [answers.get(each.name, Choice(each, None, "no answer")) for each in settings.clusters]
    first = None if any(each.turnaround is not None for each in found) else settings.default
    return sorted(
        found,
        key=lambda each: (
            each.cluster.name != first,
            each.turnaround is None,
            0.0 if each.turnaround is None else each.turnaround,
            each.cluster.name != settings.default if each.turnaround is None else False,
        ),
    )


def _ask(cluster: RoutedCluster, question: str, patience: float) -> Choice:
    """Ask a twin by HTTP/1.0, whose answer ends with the connection: an HTTP client would take too long to load."""
    answered = b""
    try:
        with socket.socket() as link:
            link.settimeout(patience)
            link.connect(("127.0.0.1", cluster.port or 0))
            link.sendall(f"GET /turnaround?{question} HTTP/1.0\r\n\r\n".encode())
            while len(answered) < 1 << 16 and (part := link.recv(1 << 16)):
                answered += part
        answer: Any = json.loads(answered.partition(b"\r\n\r\n")[2])
    except (OSError, ValueError) as error:
        return Choice(cluster, None, str(error) or type(error).__name__)
    if isinstance(answer, dict) and isinstance(answer.get("turnaround"), int | float):
        marks = answer.get("unmodelled")
        told = tuple(map(str, marks)) if isinstance(marks, list) else ()
        return Choice(cluster, float(answer["turnaround"]), unmodelled=told)
    why = answer.get("error") if isinstance(answer, dict) else None
    return Choice(cluster, None, str(why or "no answer that is understood"))


def submit(
    settings: RouteSettings,
    submission: Submission,
    choices: Sequence[Choice],
    token: str,
    stdin: bytes = b"",
    *,
    again: bool = False,
) -> Submitted:
    """Submit a job to the first cluster that takes it, and return where it is.

    Parameters
    ----------
    settings
        the clusters
    submission
        the arguments of ``sbatch``
    choices
        the clusters in the order in which they are tried; the next only after one that has surely not taken the job
    token
        identifies the job among all others
    stdin
        the script, if it is not a file
    again
        whether the token has been used before: it is looked up on all clusters first

    Raises
    ------
    Unclear
        a cluster may have taken the job and does not answer; with the same token it can be tried again
    InputError
        the token is none
    """
    if not _TOKEN.fullmatch(token):
        raise InputError(f"must be 8 to 64 of 0-9 and a-f, got {shown(token)}", place="token")
    if again:
        for cluster in settings.clusters:
            job = _look_up(cluster, token, settings.timeout, looks=1)
            if job is not None:
                return Submitted(cluster.name, job, found=True)
    last: Submitted | None = None
    for each in choices:
        last, taken = _try(each.cluster, submission, token, stdin, settings.timeout)
        if taken:
            return last
    if last is None:
        raise InputError("must have at least one cluster", place="clusters")
    return last


def _try(
    cluster: RoutedCluster, submission: Submission, token: str, stdin: bytes, timeout: float
) -> tuple[Submitted, bool]:
    """Submit to one cluster; return the result, and whether it is final."""
    program = os.path.join(cluster.commands, "sbatch") if cluster.commands else "sbatch"
    comment = f"{submission.comment} {MARK}{token}".strip()
    try:
        done = subprocess.run(
            [program, *submission.with_comment(comment)],
            env={**os.environ, "SLURM_CONF": cluster.conf},
            input=stdin,
            capture_output=True,
            timeout=timeout,
            preexec_fn=_die_together,
        )
    except FileNotFoundError:
        raise InputError(f"{program}: not found", place=f"cluster {cluster.name}") from None
    except subprocess.TimeoutExpired as late:
        said = Submitted(cluster.name, None, late.stdout or b"", 1, b"timed out")
    else:
        said = Submitted(cluster.name, _job_in(done.stdout), done.stdout, done.returncode, done.stderr)
        if not done.returncode:
            return said, True
        if _NEVER_SENT.search(done.stderr):
            return said, False
        if not _UNCLEAR.search(done.stderr):
            return said, True  # refused by Slurm: its user must know why
    job = _look_up(cluster, token, timeout)
    return (Submitted(cluster.name, job, found=True), True) if job is not None else (said, False)


def _die_together() -> None:
    """Let ``sbatch`` end with this process: a later attempt must not look a token up while an earlier one goes on."""
    if sys.platform == "linux":
        CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _job_in(output: bytes) -> int | None:
    found = re.search(rb"(?:Submitted batch job )?(\d+)", output)
    return int(found[1]) if found else None


def _look_up(cluster: RoutedCluster, token: str, timeout: float, looks: int = _LOOKS) -> int | None:
    """Return the job with a token, ``None`` if there is none."""
    from simmodel_site.twin.slurm.commands import SlurmCommands, SlurmError

    commands = SlurmCommands(conf=cluster.conf, folder=cluster.commands, timeout=timeout)
    for number in range(looks):
        with suppress(SlurmError):
            for row in commands.rows("jobs"):
                if f"{MARK}{token}" in row["comment"].split() and row["id"].isdecimal():
                    return int(row["id"])
            return None
        if number + 1 < looks:
            sleep(0.2 * 2**number)
    why = f"cluster {cluster.name} may have taken the job and does not answer; try again with the token {token}"
    raise Unclear(why)
