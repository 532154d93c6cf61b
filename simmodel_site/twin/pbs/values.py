"""Values as PBS's commands write them: times, memory, chunks of nodes, ids of jobs.

Sources: the manual pages pbs_resources, pbs_job_attributes, pbs_node_attributes, qstat and qalter of OpenPBS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite

import attrs

from simmodel import InputError
from simmodel.extending import Fields, check_count, shown, tables

__all__ = ["SelectedChunk", "allocated", "chunks", "instant", "job_of", "memory", "number", "pbs_id", "seconds"]

_ID = re.compile(r"(\d{1,18})(?:\[(\d{0,9})\])?(?:\.([A-Za-z0-9._-]{1,255}))?", re.ASCII)
_OWN_ID = re.compile(r"(\d{1,18})(?:_(\d{1,9}))?(?:\.([A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,3}))?", re.ASCII)


def _read(text: str, read: Callable[[str], float], accepted: str) -> float | None:
    if not text.strip():
        return None
    try:
        found = read(text.strip())
    except (ValueError, OverflowError):
        found = float("nan")
    if not isfinite(found):
        raise InputError(f"must be {accepted}, got {shown(text)}")
    return found


def seconds(text: str) -> float | None:
    """Return a duration in seconds; ``None``: none is given.

    >>> seconds("01:00:00"), seconds("90"), seconds("100:00:00"), seconds("")
    (3600.0, 90.0, 360000.0, None)
    """
    return _read(text, tables.duration, "a duration such as '01:00:00'")


def instant(text: str) -> float | None:
    """Return an instant in seconds since 1970, of UTC as ``ctime`` writes it or of a number; ``None``: none is given.

    >>> instant("Sun Nov 16 19:36:09 2025"), instant("1763321769"), instant("")
    (1763321769.0, 1763321769.0, None)
    """

    def read(text: str) -> float:
        if text.isdecimal():
            return float(text)
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()

    return _read(text, read, "an instant such as 'Sun Nov 16 19:36:09 2025'")


def memory(text: str) -> float | None:
    """Return memory in bytes: a number of bytes, or with ``b``, ``kb`` to ``pb``, or words of 8 bytes; ``None``: none.

    >>> memory("4gb") / 2**30, memory("1048576kb") / 2**30, memory("100b"), memory("2kw"), memory("7")
    (4.0, 1.0, 100.0, 16384.0, 7.0)
    """
    words = text.strip().lower()
    if words.endswith("w"):
        found = _read(words[:-1] + "b", tables.memory, "an amount of memory such as '4gb'")
        return None if found is None else 8.0 * found
    return _read(words, tables.memory, "an amount of memory such as '4gb'")


def number(text: str) -> float | None:
    """Return a number; ``None``: none is given.

    >>> number("12"), number("")
    (12.0, None)
    """
    return _read(text, float, "a number")


@attrs.frozen(kw_only=True, repr=False)
class SelectedChunk(Fields):
    """Equal chunks of a request: their count, and the resources of each on one node; memory in bytes.

    ``others`` are further resources by name, as they were asked for.
    """

    count: int = 1
    cpus: int = 1
    memory: float = 0.0
    gpus: int = 0
    others: Mapping[str, str] = attrs.field(factory=dict)


_PASSED_OVER = frozenset(("mpiprocs", "ompthreads"))  # they are no resources of nodes


def chunks(text: str) -> tuple[SelectedChunk, ...]:
    """Return the chunks of a ``select`` statement.

    Raises
    ------
    InputError
        it is none

    >>> chunks("2:ncpus=8:mem=16gb+ncpus=1:ngpus=2")
    (SelectedChunk(count=2, cpus=8, memory=17179869184.0), SelectedChunk(gpus=2))
    """
    found = []
    for part in text.split("+") if text else ():
        first, *rest = part.split(":")
        counted = first.isdecimal()
        items = [item.partition("=") for item in (rest if counted else [first, *rest])]
        values = {name: value for name, _, value in items}
        count = int(first) if counted and len(first) < 10 else 0 if counted else 1
        sizes = {name: values.pop(name, "") for name in ("ncpus", "mem", "ngpus")}
        whole = all((sizes[name] or "1").isdecimal() for name in ("ncpus", "ngpus"))
        if count < 1 or not whole or not all(name and sign for name, sign, _ in items):
            raise InputError(f"must be chunks such as '2:ncpus=8:mem=16gb', got {shown(text)}")
        check_count("chunks", count)
        found.append(
            SelectedChunk(
                count=count,
                cpus=_small(sizes["ncpus"] or "1"),
                memory=memory(sizes["mem"]) or 0.0,
                gpus=_small(sizes["ngpus"] or "0"),
                others={name: value for name, value in values.items() if name not in _PASSED_OVER},
            )
        )
    return tuple(found)


def _small(text: str) -> int:
    found = int(text[:18])
    check_count("cores of a chunk", found)
    return found


def allocated(text: str) -> tuple[tuple[str, int], ...]:
    """Return the nodes of ``exec_vnode`` with the cores on each, in order.

    >>> allocated("(n1:ncpus=8:mem=1gb)+(n1:ncpus=2+n2:ncpus=4)")
    (('n1', 10), ('n2', 4))
    """
    found: dict[str, int] = {}
    for item in re.sub(r"[()]", "", text).split("+") if text else ():
        name, *rest = item.split(":")
        cpus = next((each.partition("=")[2] for each in rest if each.startswith("ncpus=")), "0")
        if not name or not cpus.isdecimal():
            raise InputError(f"must be nodes such as '(n1:ncpus=8)+(n2:ncpus=8)', got {shown(text)}")
        found[name] = found.get(name, 0) + _small(cpus)
    return tuple(found.items())


def task_ranges(text: str) -> Iterator[int]:
    """Yield the numbers of an array such as ``0-9:2,12``."""
    for item in text.split(",") if text not in ("", "-") else ():
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", item.strip())
        if match is None:
            raise InputError(f"must be numbers such as '0-9:2', got {shown(text)}")
        numbers = range(int(match[1]), int(match[2] or match[1]) + 1, max(int(match[3] or 1), 1))
        check_count("array tasks", len(numbers))
        yield from numbers


def job_of(text: str, server: str = "") -> tuple[int | str, int | str | None, bool]:
    """Return the twin's id of a job, the id of its array, and whether it is an array as a whole.

    The name of the server is left out, unless it is another one: then ``12.other`` has come from there.

    Raises
    ------
    InputError
        it is not an id

    >>> job_of("12.pbs", "pbs"), job_of("12[3].pbs", "pbs.example.com"), job_of("12[].pbs"), job_of("7.far", "pbs")
    ((12, None, False), ('12_3', 12, False), (12, 12, True), ('7.far', None, False))
    """
    match = _ID.fullmatch(text)
    if match is None:
        raise InputError(f"must be an id of a job such as '12.server', got {shown(text)}")
    name, task, given = match[1], match[2], match[3] or ""
    own = not server or not given or given.partition(".")[0] == server.partition(".")[0]
    end = "" if own else f".{given}"
    whole: int | str = int(name) if own else f"{name}{end}"
    if task is None:
        return whole, None, False
    return (f"{name}_{task}{end}" if task else whole), whole, not task


def pbs_id(job: int | str) -> str:
    """Return the id of a job for PBS's commands.

    Raises
    ------
    InputError
        it is not an id

    >>> pbs_id(12), pbs_id("12_3"), pbs_id("7.far.example")
    ('12', '12[3]', '7.far.example')
    """
    match = _OWN_ID.fullmatch(str(job))
    if match is None:
        raise InputError(f"must be an id such as 12 or 12_1, got {shown(str(job))}", place="job")
    task = "" if match[2] is None else f"[{match[2]}]"
    return f"{match[1]}{task}" + ("" if match[3] is None else f".{match[3]}")
