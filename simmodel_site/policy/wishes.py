"""The options of sbatch by which a job chooses its nodes and its time, as a job of simmodel carries them in a text.

Source: sbatch(1) of Slurm 22.05.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from simmodel import InputError
from simmodel.extending import Fields, shown

if TYPE_CHECKING:
    from simmodel.work import LiveJob

__all__ = ["NOTHING", "Wishes", "typed_gpus", "wishes_of"]

MIB = 2.0**20
_UNITS = {"K": MIB / 1024, "M": MIB, "G": MIB * 1024, "T": MIB * 1024**2}


@attrs.frozen(kw_only=True, repr=False)
class Wishes(Fields):
    """What a job asks for beside nodes, cores, time and licences: options of sbatch.

    Parameters
    ----------
    nodelist, exclude
        lists of nodes that it must have, and that it must not have (``-w``, ``-x``)
    constraint
        the features of its nodes (``-C``): names with ``&`` and ``|``, ``[a|b]`` for all nodes alike, ``a*2&b*1`` for
        numbers of nodes
    switches, switch_wait
        whether all its nodes must have one leaf switch, and for how long at most (s): ``--switches=1@TIME``, where a
        number without a colon is minutes
    memory_per_cpu
        bytes of each core; ``None``: none are asked for
    whole_memory
        whether it gets all memory of its nodes (``--mem=0``)
    memory_per_gpu
        bytes of each GPU; ``None``: none are asked for
    nodes
        the least and the most of its nodes (``-N``), if its cores may be spread over them as slurmctld does; ``None``:
        the job itself says how many, or any number
    cores_per_task, tasks_per_node
        cores that stand together on a node (``-c``), and how many such tasks each node has (``--ntasks-per-node``; 0:
        any number)
    memory_per_node, gpus_per_node
        bytes and GPUs of each node (``--mem``, ``--gres``), if the job itself does not ask for more
    gpus, gpus_per_task
        GPUs in all (``--gpus``), and of each task
    gpu_type
        the type of its GPUs
    array, array_limit
        the tasks of its array and their limit (``-a``), and how many of them may run at once; 0: any number
    begin
        seconds after its submission before which it does not start (``--begin=now+N``)
    hold
        seconds after its submission from and until which it is held: ``-H`` (until ``inf``), ``--hold=now+600`` (until
        it is released), ``--hold=now+60,now+600`` (held later); ``None``: it is not
    deadline
        seconds after its submission by which it must have ended (``--deadline=now+N``); ``inf``: any time
    components
        of a heterogeneous job: of how many it is one (``--hetjob=N``, for ids such as ``17+0``); 0: it is none
    requeued
        the job of which it is a run: all its runs have one place in the order (``--requeued=ID``)
    partitions
        the partitions in which it may run (``-p``)
    qos
        its QOS (``-q``)
    reservation
        the reservation that it is for (``--reservation``)
    unread
        options that are not known here

    >>> Wishes.of("-w n[1-2] --switches=1@0:90 -a 0-9%2").switch_wait
    90.0
    """

    nodelist: str = ""
    exclude: str = ""
    constraint: str = ""
    switches: bool = False
    switch_wait: float = inf
    memory_per_cpu: float | None = None
    whole_memory: bool = False
    memory_per_gpu: float | None = None
    nodes: tuple[int, int] | None = None
    cores_per_task: int = 1
    tasks_per_node: int = 0
    memory_per_node: float = 0.0
    gpus_per_node: int = 0
    gpus: int = 0
    gpus_per_task: int = 0
    gpu_type: str = ""
    array: str = ""
    array_limit: int = 0
    begin: float = 0.0
    hold: tuple[float, float] | None = None
    deadline: float = inf
    components: int = 0
    requeued: str = ""
    partitions: tuple[str, ...] = ()
    qos: str = ""
    reservation: str = ""
    unread: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Wishes:
        """Return the wishes in a text of options; jobs with the same text share them.

        Raises
        ------
        InputError
            an option has a value that sbatch does not accept
        """
        return _read(text) if text else NOTHING

    @property
    def spread(self) -> tuple[Any, ...]:
        """What it asks of its nodes; jobs with the same request and the same of these have one shape."""
        nodes = self.nodes, self.cores_per_task, self.tasks_per_node, self.memory_per_node, self.gpus_per_node
        return (*nodes, self.memory_per_cpu, self.memory_per_gpu, self.whole_memory, self.gpus, self.gpus_per_task)

    @property
    def timed(self) -> bool:
        """Whether time alone may let it start."""
        return bool(self.begin) or self.switches or self.deadline < inf


def wishes_of(job: LiveJob) -> Wishes:
    return Wishes.of("" if job.spec is None else job.spec.options)


@lru_cache(maxsize=4096)
def _read(text: str) -> Wishes:
    found: dict[str, Any] = {}
    unread = []
    for name, value in _options(text):
        read = _READ.get(name)
        if read is None:
            unread.append(f"{name}={value}" if value else name)
            continue
        try:
            found.update(read(value))
        except ValueError:
            raise InputError(f"must be what sbatch accepts, got {shown(value)}", place=name) from None
    return Wishes(**found, unread=tuple(unread))


def _options(text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a text by their long names, and their values.

    >>> list(_options("-w n1 -xn2 --switches=1@60 --exclude n3 -H"))
    [('--nodelist', 'n1'), ('--exclude', 'n2'), ('--switches', '1@60'), ('--exclude', 'n3'), ('--hold', '')]
    """
    words = shlex.split(text)
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            name, equals, value = word.partition("=")
        else:
            name, value = _SHORT.get(word[:2], word[:2]), word[2:].removeprefix("=")
            equals = value
        if not equals and name not in _FLAGS and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield name, value


_SHORT = {
    "-N": "--nodes",
    "-c": "--cpus-per-task",
    "-G": "--gpus",
    "-w": "--nodelist",
    "-x": "--exclude",
    "-C": "--constraint",
    "-a": "--array",
    "-b": "--begin",
    "-H": "--hold",
    "-p": "--partition",
    "-q": "--qos",
}
_FLAGS = ("--hold",)


def _switches(value: str) -> dict[str, Any]:
    count, _, wait = value.partition("@")
    # the plug-in of trees takes any number as a wish for one leaf switch, but for 0
    return {"switches": int(count) > 0, "switch_wait": _time(wait) if wait else inf}


def _time(text: str) -> float:
    """Return the seconds of a time of sbatch; a number alone is minutes.

    >>> _time("60"), _time("1:30"), _time("1-0")
    (3600.0, 90.0, 86400.0)
    """
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if len(parts) > 3:
        raise ValueError(text)
    if dash:  # hours, minutes, seconds
        hours, minutes, seconds = [*parts, 0, 0][:3]
    else:
        hours, minutes, seconds = (0, parts[0], 0) if len(parts) == 1 else ([0, *parts])[-3:]
    return (int(days) * 86400.0 if dash else 0.0) + hours * 3600 + minutes * 60 + seconds


def _bytes(text: str) -> float:
    """Return bytes; without a unit they are MiB."""
    unit = text[-1:].upper()
    return float(text[:-1]) * _UNITS[unit] if unit in _UNITS else float(text) * MIB


def _memory(value: str) -> dict[str, Any]:
    return {"memory_per_node": _bytes(value), "whole_memory": not _bytes(value)}


def _begin(value: str) -> dict[str, Any]:
    word, plus, rest = value.partition("+")
    if word != "now":
        raise ValueError(value)
    number = rest.rstrip("abcdefghijklmnopqrstuvwxyz")
    scale = {"": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
    unit = rest[len(number) :].removesuffix("s")
    if unit not in scale:
        raise ValueError(value)
    return {"begin": float(number) * scale[unit] if plus else 0.0}


def _hold(value: str) -> dict[str, Any]:
    """Return from when and until when a job is held, in seconds after its submission; sbatch takes no value."""
    first, comma, last = value.partition(",")
    begin = _begin(first)["begin"] if comma else 0.0
    until = _begin(last if comma else first)["begin"] if value else inf
    if not begin < until:
        raise ValueError(value)
    return {"hold": (begin, until)}


def _array(value: str) -> dict[str, Any]:
    _, _, limit = value.partition("%")
    return {"array": value, "array_limit": int(limit) if limit else 0}


def typed_gpus(value: str) -> tuple[int, str]:
    """Return the number and the type of GPUs in a text such as ``2``, ``a100:2``, ``gpu:2`` or ``gpu:a100``.

    Raises
    ------
    ValueError
        it asks for something else, or for several types

    >>> typed_gpus("gres:gpu:a100:2"), typed_gpus("3"), typed_gpus("gpu=2")
    ((2, 'a100'), (3, ''), (2, ''))
    """
    words = value.removeprefix("gres:").replace("=", ":").split(":")
    words = words[1:] if words[0] == "gpu" else words
    count = int(words.pop()) if words and words[-1].isdecimal() else 1
    if len(words) > 1 or "," in value or "/" in value:
        raise ValueError(value)
    return count, words[0] if words else ""


def _gres(value: str) -> dict[str, Any]:
    if value.removeprefix("gres:").replace("=", ":").partition(":")[0] != "gpu":
        raise ValueError(value)
    return _gpus("gpus_per_node")(value)


def _gpus(name: str) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        count, kind = typed_gpus(value)
        return {name: count, "gpu_type": kind}

    return read


def _nodes(value: str) -> dict[str, Any]:
    least, dash, most = value.partition("-")
    found = int(least), int(most if dash else least)
    if not 0 < found[0] <= found[1]:
        raise ValueError(value)
    return {"nodes": found}


def _count(name: str) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        if not int(value) > 0:
            raise ValueError(value)
        return {name: int(value)}

    return read


def _text(name: str) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        if not value:
            raise ValueError(value)
        return {name: value}

    return read


_READ: dict[str, Callable[[str], dict[str, Any]]] = {
    "--nodelist": _text("nodelist"),
    "--exclude": _text("exclude"),
    "--constraint": _text("constraint"),
    "--switches": _switches,
    "--mem-per-cpu": lambda value: {"memory_per_cpu": _bytes(value)},
    "--mem": _memory,
    "--mem-per-gpu": lambda value: {"memory_per_gpu": _bytes(value)},
    "--nodes": _nodes,
    "--cpus-per-task": _count("cores_per_task"),
    "--ntasks-per-node": _count("tasks_per_node"),
    "--gpus-per-node": _gpus("gpus_per_node"),
    "--gpus": _gpus("gpus"),
    "--gpus-per-task": _gpus("gpus_per_task"),
    "--gres": _gres,
    "--array": _array,
    "--begin": _begin,
    "--partition": lambda value: {"partitions": tuple(dict.fromkeys(filter(None, value.split(","))))},
    "--qos": _text("qos"),
    "--requeued": _text("requeued"),
    "--reservation": _text("reservation"),
    "--hetjob": lambda value: {"components": int(value)},
    "--hold": _hold,
    "--deadline": lambda value: {"deadline": _begin(value)["begin"]},
}
"""The options that are known, by what they set."""

NOTHING = Wishes()
"""No wishes."""
