"""Values as Slurm's commands and its REST interface write them: times, limits, memory, TRES, GRES, licences.

Sources: the manual pages of scontrol, squeue, sinfo, slurm.conf and gres.conf.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from math import inf, isfinite
from typing import NamedTuple

import attrs

from simmodel import InputError
from simmodel.extending import shown, tables

__all__ = [
    "Cpus",
    "Gres",
    "amount",
    "amounts",
    "count_of",
    "cpus_of",
    "gres",
    "instant",
    "is_none",
    "is_readable",
    "memory",
    "nodes_of",
    "seconds",
    "split_list",
    "whole",
]

_NOTHING = frozenset(("", "(null)", "none", "n/a", "none assigned", "unknown", "not_set", "partition_limit", "invalid"))
_ENDLESS = frozenset(("unlimited", "infinite", "infinity"))
_COUNTED = re.compile(r"\d+(\.\d+)?[KMGTPE]?", re.ASCII | re.IGNORECASE)


def is_none(text: str) -> bool:
    """Whether a text stands for no value.

    >>> is_none("(null)"), is_none("N/A"), is_none("n1")
    (True, True, False)
    """
    return text.strip().lower() in _NOTHING


def is_readable(text: str) -> bool:
    """Whether a text has no characters that words of Slurm's own never have: control characters, replaced bytes.

    >>> is_readable("Resources"), is_readable("Res\ufffdurces"), is_readable("\\x1e")
    (True, False, False)
    """
    return text.isprintable() and "\ufffd" not in text


def seconds(text: str) -> float | None:
    """Return a limit or a duration in seconds; ``None``: there is none, or it is not set.

    Raises
    ------
    InputError
        it is not a duration

    >>> seconds("1-00:00:00"), seconds("02:30"), seconds("1-12"), seconds("30 sec"), seconds("UNLIMITED")
    (86400.0, 150.0, 129600.0, 30.0, None)
    """
    return _read(text, tables.duration, "a duration such as '1-00:00:00' or 'UNLIMITED'", " sec", " min")


def instant(text: str, local: tzinfo | None = None) -> float | None:
    """Return an instant in seconds since 1970; ``None``: not known yet.

    Slurm writes local time, or seconds since 1970 if the environment has ``SLURM_TIME_FORMAT=%s``.

    Parameters
    ----------
    local
        the zone of times without one; default: that of this computer

    Raises
    ------
    InputError
        it is not an instant

    >>> instant("1763321769"), instant("Unknown"), instant("2025-11-16T19:36:09+00:00")
    (1763321769.0, None, 1763321769.0)
    """

    def read(text: str) -> float:
        if local is not None or _COUNTED.fullmatch(text):
            return tables.instant(text, local or UTC)
        return datetime.fromisoformat(text).timestamp()

    return _read(text, read, "an instant such as '2026-01-31T12:00:00'")


def amount(text: str) -> float | None:
    """Return a number with an optional K, M, G, T, P or E (powers of 1024); ``None``: none, or no limit.

    Raises
    ------
    InputError
        it is not such a number

    >>> amount("4"), amount("2K"), amount("INFINITE")
    (4.0, 2048.0, None)
    """
    return _read(text, tables.memory, "a number such as '4' or '128G'")


def _read(text: str, read: Callable[[str], float], accepted: str, *units: str) -> float | None:
    """Return a finite number; ``None``: none, or no limit."""
    given = text.strip()
    if is_none(given) or given.lower() in _ENDLESS:
        return None
    scale = 1.0
    for unit, worth in zip(units, (1.0, 60.0), strict=False):
        if given.endswith(unit):
            given, scale = given.removesuffix(unit), worth
    try:
        found = read(given) * scale
    except (ValueError, OverflowError, OSError):
        found = inf
    if not isfinite(found):
        raise InputError(f"must be {accepted}, got {shown(text)}")
    return found


def whole(text: str) -> int | None:
    """Return a whole number; ``None``: none, or no limit. Of a range such as ``2-4`` it is the first.

    >>> whole("16"), whole("2-4"), whole("UNLIMITED")
    (16, 2, None)
    """
    found = amount(text.partition("-")[0])
    return None if found is None else int(found)


def memory(text: str, unit: str = "M") -> float | None:
    """Return memory in bytes; a number without a letter is in ``unit``; ``None``: none, or no limit.

    >>> memory("128G"), memory("2000"), memory("1.5T") / 2**40, memory("0")
    (137438953472.0, 2097152000.0, 1.5, 0.0)
    """
    text = text.strip().rstrip("nc")  # squeue marks memory per node and per cpu
    return amount(f"{text}{unit}" if text[-1:].isdecimal() else text)


def split_list(text: str) -> Iterator[str]:
    """Yield the items of a list at the commas outside of brackets and parentheses.

    >>> list(split_list("gpu:h100:4(IDX:0,2),shard:8"))
    ['gpu:h100:4(IDX:0,2)', 'shard:8']
    """
    depth, start = 0, 0
    for at, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:]:
        yield text[start:]


def nodes_of(text: str) -> tuple[str, ...]:
    """Return the names of a list of nodes; none if Slurm says ``(null)``.

    >>> nodes_of("n[1-3]"), nodes_of("(null)")
    (('n1', 'n2', 'n3'), ())
    """
    from simmodel.extending import node_names

    return () if is_none(text) else node_names(text)


@attrs.frozen
class Gres:
    """Generic resources of a node or a job: a name, such as ``gpu``, possibly a type, and a count."""

    name: str
    count: float
    type: str = ""


def gres(text: str) -> tuple[Gres, ...]:
    """Return generic resources, of nodes (``gpu:h100:4(S:0-1)``) and of requests (``gres:gpu:2``, ``gres/gpu:h100=2``).

    >>> gres("gpu:h100:4(S:0-1),shard:8")
    (Gres(name='gpu', count=4.0, type='h100'), Gres(name='shard', count=8.0, type=''))
    >>> gres("gres:gpu"), gres("gres/gpu:a100=2")
    ((Gres(name='gpu', count=1.0, type=''),), (Gres(name='gpu', count=2.0, type='a100'),))
    """
    found = []
    for item in () if is_none(text) else split_list(text):
        words = re.sub(r"\(.*\)", "", item).removeprefix("gres:").removeprefix("gres/").replace("=", ":").split(":")
        counted = len(words) > 1 and _COUNTED.fullmatch(words[-1])
        count = amount(words.pop()) if counted else None
        found.append(Gres(words[0], 1.0 if count is None else count, ":".join(words[1:])))
    return tuple(found)


def amounts(text: str) -> Mapping[str, float]:
    """Return trackable resources, or licences, by name; memory in bytes.

    >>> amounts("cpu=64,mem=128G,billing=64,gres/gpu=4,license/matlab=2")["mem"] / 2**30
    128.0
    >>> dict(amounts("matlab:3,fluent@server"))
    {'matlab': 3.0, 'fluent@server': 1.0}
    """
    found: dict[str, float] = {}
    for item in () if is_none(text) else split_list(text):
        name, sign, value = item.rpartition("=" if "=" in item else ":")
        if not sign:
            name, value = item, "1"
        given = memory(value) if name == "mem" else amount(value)
        found[name] = found.get(name, 0.0) + (inf if given is None else given)
    return found


def count_of(found: Mapping[str, float], name: str) -> int | None:
    """Return a whole number of resources; ``None``: not there, or no limit.

    >>> count_of({"cpu": 4.0, "node": inf}, "cpu"), count_of({"cpu": 4.0, "node": inf}, "node")
    (4, None)
    """
    value = found.get(name, inf)
    return int(value) if isfinite(value) else None


class Cpus(NamedTuple):
    """The CPUs of a node: all of them, those kept for the system, those of a core and those of a socket.

    ``odd``: they are as many as neither its sockets, its cores nor its threads.
    """

    total: int
    kept: int
    threads: int
    socket: int
    odd: bool


def cpus_of(record: Mapping[str, str]) -> Cpus:
    """Return the CPUs of a node by the keys of its line in slurm.conf, as slurmctld counts them.

    Threads of a core are CPUs only if there are more CPUs than cores. ``CPUSpecList`` keeps whole cores, and goes
    before ``CoreSpecCount``.

    Raises
    ------
    InputError
        a value is not a whole number, or less than 1

    >>> cpus_of({"CPUs": "16", "Sockets": "2", "CoresPerSocket": "4", "ThreadsPerCore": "2", "CoreSpecCount": "2"})
    Cpus(total=16, kept=4, threads=2, socket=8, odd=False)
    >>> cpus_of({"CPUs": "8", "Sockets": "2", "CoresPerSocket": "4", "ThreadsPerCore": "2", "CPUSpecList": "0-1,3"})
    Cpus(total=8, kept=3, threads=1, socket=4, odd=False)
    """
    from simmodel.extending import node_names

    names = ("Boards", "SocketsPerBoard", "Sockets", "CoresPerSocket", "ThreadsPerCore")
    boards, on_board, sockets, cores, threads = (_count(record, name) for name in names)
    given = next((_count(record, name) for name in ("CPUs", "Procs") if name in record), 0)
    if "SocketsPerBoard" in record or "Sockets" not in record:
        inferred = given and not given % (cores * threads) and "SocketsPerBoard" not in record
        sockets = given // (cores * threads) if inferred else boards * on_board
    counts = sockets, sockets * cores, sockets * cores * threads
    total = given or counts[-1]
    of_core = threads if total > sockets * cores else 1
    kept = whole(record.get("CoreSpecCount", "0")) or 0
    if record.get("CPUSpecList"):
        kept = len({(whole(each) or 0) // of_core for each in node_names(f"[{record['CPUSpecList']}]")})
    elif kept >= sockets * cores:
        kept = 1
    return Cpus(total, kept * of_core, of_core, max(total // sockets, 1), total not in counts)


def _count(record: Mapping[str, str], name: str) -> int:
    """Return a number of parts, 1 if it is not told."""
    count = whole(record.get(name, "1"))
    if count is None or count < 1:
        raise InputError(f"{name} must be >= 1, got {shown(record[name])}")
    return count
