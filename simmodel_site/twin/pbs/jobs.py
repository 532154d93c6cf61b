"""The jobs of PBS as reports of the twin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Set as AbstractSet
from math import inf
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import Fields, clipped, inside, shown
from simmodel_site.twin.acting.actions import HELD, mark_parts
from simmodel_site.twin.events import Demand, JobReport, JobState
from simmodel_site.twin.mirror.job_history import natural_order
from simmodel_site.twin.pbs.commands import Document, table_of, text_of
from simmodel_site.twin.pbs.nodes import Size
from simmodel_site.twin.pbs.values import (
    SelectedChunk,
    allocated,
    chunks,
    instant,
    job_of,
    number,
    seconds,
    task_ranges,
)
from simmodel_site.twin.programs import is_garbled
from simmodel_site.twin.sources import Refused

__all__ = ["LONGEST_NAME", "MARK", "Reading", "dependencies_of", "ended_state", "jobs_in"]

LONGEST_NAME = 256
"""Characters of a name that are kept."""

MARK = "simmodel_mark"
"""The resource of jobs, made by an administrator, in which the mark of a twin stands."""

_WAITS = {"after": "start", "afterany": "end", "afterok": "success"}
_RUNNING = frozenset("RESUB")
_HOLDS = re.compile(
    r"(?i).*(would exceed|limit|quota|not started|not enabled|dedicated time|prime ?time|can never run|"
    r"reservation .*(state|degraded)|waiting for)"
)
"""Comments of the scheduler on jobs that neither the jobs before it nor busy nodes keep from starting."""
_KNOWN = frozenset(
    (
        *("ncpus", "mem", "ngpus", "nodect", "nodes", "neednodes", "place", "select", "walltime", "mpiprocs"),
        *("ompthreads", "cput", "vmem", "pmem", "pvmem", "file", "nice", "preempt_targets", "soft_walltime", MARK),
    )
)
_KILLED = 271  # 256 and the signal TERM
_OVER_TIME = -29


@attrs.frozen(kw_only=True, repr=False)
class Reading(Fields):
    """How jobs are read.

    Parameters
    ----------
    server
        the name of the server, which ids leave out
    node
        the largest node, by which chunks are packed
    licences
        the names of the resources that the server counts, such as licences
    priorities
        whether requests have the priorities of jobs
    """

    server: str = ""
    node: Size = attrs.field(factory=Size)
    licences: frozenset[str] = frozenset()
    priorities: bool = False


_FREE = frozenset(("Job_Name", "comment", "Variable_List", "Submit_arguments", "Output_Path", "Error_Path"))
"""Fields that hold free text of users."""


def jobs_in(
    document: Document,
    reading: Reading | None = None,
    *,
    refused: Refused | None = None,
    others: Counter[str] | None = None,
) -> tuple[JobReport, ...]:
    """Return the jobs of an answer of ``qstat``: in the order of their priorities if these count, queueing and ids.

    Parameters
    ----------
    reading
        how they are read
    refused
        counts the jobs that make no sense; default: they raise an error
    others
        counts the resources that requests do not express, by name

    Raises
    ------
    InputError
        a job makes no sense, and none are counted

    >>> job = {"job_state": "Q", "queue": "workq", "ctime": "5", "Resource_List": {"select": "2:ncpus=8"}}
    >>> [(job.job, job.state, job.request.processors) for job in jobs_in({"Jobs": {"7.pbs": job}})]
    [(7, 'waiting', 16)]
    """
    told = table_of(document, "Jobs")
    reading = reading or Reading()
    reading = attrs.evolve(reading, server=reading.server or text_of(document, "pbs_server"))
    expanded = {name.partition("[")[0] for name in told if re.match(r"\d+\[\d", name)}
    found: list[tuple[Any, JobReport]] = []
    for name, given in told.items():
        try:
            if not isinstance(given, dict):
                raise InputError(f"must be an object, got {shown(given)}")
            if is_garbled({name: given}, _FREE):
                raise InputError("must be readable text")
            queued = instant(text_of(given, "qtime")) or 0.0
            priority = number(text_of(given, "Priority")) or 0.0 if reading.priorities else 0.0
            told_of = list(_reports(name, given, reading, expanded, others))
            found += [((-priority, queued, natural_order(job.job)), job) for job in told_of]
        except InputError as error:
            wrong = inside(f"job {shown(name)}", error)
            if refused is None:
                raise wrong from None
            refused.count(wrong)
    found.sort(key=lambda each: each[0])
    return tuple(job for _, job in found)


def _reports(
    name: str, given: Document, reading: Reading, expanded: AbstractSet[str], others: Counter[str] | None
) -> Iterator[JobReport]:
    """Yield the report of a job; of an array whose tasks are not listed, one for each that is left."""
    job, array, whole = job_of(name, reading.server)
    if whole and name.partition("[")[0] in expanded:
        return
    submit = instant(text_of(given, "ctime"))
    if submit is None:
        raise InputError("must be known", place="ctime")
    state = _state(given)
    started = instant(text_of(given, "stime")) if state not in ("waiting", "held") else None
    nodes = _at("exec_vnode", lambda: allocated(text_of(given, "exec_vnode"))) if started is not None else ()
    request = _request(given, nodes, array, reading, others)
    over = state not in ("waiting", "held", "running")
    report = JobReport(
        job=job,
        submit=submit,
        state=state,
        request=request,
        started=started,
        ended=_ended(given, started) if over else None,
        partition=(text_of(given, "queue") or None) if nodes else None,
        nodes=_counted(nodes, request.processors),
        foretold=instant(text_of(table_of(given, "estimated"), "start_time")) if state == "waiting" else None,
    )
    if not whole:
        yield report
        return
    left = text_of(given, "array_indices_remaining") or text_of(given, "array_indices_submitted")
    if text_of(given, "array_indices_remaining") == "-":
        left = ""
    begin, end = re.fullmatch(r"(\d+)(.*)", str(job)).groups()  # type: ignore[union-attr]
    for number_ in task_ranges(left):
        yield attrs.evolve(report, job=f"{begin}_{number_}{end}")


def _at(place: str, read: Any) -> Any:
    try:
        return read()
    except InputError as error:
        raise inside(place, error) from None


def _counted(nodes: tuple[tuple[str, int], ...], cpus: int) -> tuple[tuple[str, int], ...]:
    """Return nodes with at least one core each: those of a chunk without cores hold none."""
    return tuple((name, max(count, 1)) for name, count in nodes)


# ---------------------------------------------------------------------- states


def _state(given: Document) -> JobState:
    word = text_of(given, "job_state")
    if word in _RUNNING:
        return "running" if word != "B" else "waiting"
    if word in ("F", "X", "M"):
        return ended_state(given)
    if word not in ("Q", "T", "H", "W"):
        raise InputError(f"must be a state of jobs such as 'Q', got {shown(word)}", place="job_state")
    waits, told = dependencies_of(text_of(given, "depend"))
    holds = set(text_of(given, "Hold_Types")) - set("n")
    if word == "H" or holds:
        return "waiting" if holds <= {"s"} and waits and told else "held"
    if word == "W":
        word, until = mark_parts(mark_of(given))
        return "waiting" if word == HELD and instant(text_of(given, "Execution_Time")) == until else "held"
    comment = text_of(given, "comment")
    return "held" if not told or _HOLDS.match(comment[:1000]) else "waiting"


def mark_of(given: Document) -> str:
    """Return the mark of a twin, or any other text in its place; empty if there is none."""
    text = text_of(table_of(given, "Resource_List"), MARK)
    return "" if text in ("", "none") else text


def ended_state(given: Document) -> JobState:
    """Return how a job has ended, by its exit status and its substate.

    >>> [ended_state({"Exit_status": each}) for each in ("0", "1", "-29", "271", "-1", "")]
    ['completed', 'failed', 'timeout', 'cancelled', 'lost', 'cancelled']
    >>> used, asked = {"walltime": "00:01:02"}, {"walltime": "00:01:00"}
    >>> ended_state({"Exit_status": "271", "resources_used": used, "Resource_List": asked})
    'timeout'
    """
    status = number(text_of(given, "Exit_status"))
    if text_of(given, "job_state") == "M":
        return "cancelled"
    if status == _OVER_TIME:
        return "timeout"
    if status == _KILLED:
        used = seconds(text_of(table_of(given, "resources_used"), "walltime")) or 0.0
        limit = seconds(text_of(table_of(given, "Resource_List"), "walltime")) or inf
        return "timeout" if used >= limit else "cancelled"
    if status is None or text_of(given, "substate") == "91":
        return "cancelled"
    return "completed" if status == 0 else "failed" if status > 0 else "lost"


def _ended(given: Document, started: float | None) -> float | None:
    """Return when a job has ended: as PBS says it, or by its start and the time that it used."""
    told = instant(text_of(given, "obittime"))
    used = seconds(text_of(table_of(given, "resources_used"), "walltime"))
    if told is None and started is not None and used is not None:
        return started + used
    return instant(text_of(given, "mtime")) if told is None else told


def dependencies_of(text: str) -> tuple[tuple[tuple[int | str, str], ...], bool]:
    """Return the jobs that a job waits for, each with the event awaited, and whether these are all its dependencies.

    >>> dependencies_of("afterok:5.pbs@pbs:6.pbs@pbs,beforeany:9.pbs@pbs")
    (((5, 'success'), (6, 'success')), True)
    >>> dependencies_of("afternotok:5.pbs@pbs"), dependencies_of("on:2"), dependencies_of("")
    (((), False), ((), False), ((), True))
    """
    found: list[tuple[int | str, str]] = []
    told = True
    for item in text.split(",") if text else ():
        kind, *jobs = item.split(":")
        if kind.startswith("before"):
            continue
        wait = _WAITS.get(kind)
        for each in jobs:
            try:
                job, _, whole = job_of(each.partition("@")[0])
            except InputError:
                told = False
            else:
                if wait is None or whole:
                    told = False
                else:
                    found.append((job, wait))
        told = told and wait is not None
    return tuple(found), told


# ---------------------------------------------------------------------- requests


def _request(
    given: Document,
    nodes: tuple[tuple[str, int], ...],
    array: int | str | None,
    reading: Reading,
    others: Counter[str] | None,
) -> Demand:
    asked = table_of(given, "Resource_List")
    wanted = _at("Resource_List.select", lambda: chunks(text_of(asked, "select")))
    if not wanted:
        wanted = (SelectedChunk(cpus=int(number(text_of(asked, "ncpus")) or 1)),)
    place = text_of(asked, "place").split(":")
    unmodelled = _others(asked, wanted, reading)
    if others is not None:
        others.update(other if len(others) < 100 or other in others else "others" for other in unmodelled)
    shape = _shape(wanted, place, reading.node)
    if nodes:
        cpus = max(sum(count for _, count in nodes), 1)
        if _alone(place):
            cpus = max(cpus, shape["processors"])
        each = -(-cpus // len(nodes))
        shape |= {"processors": cpus, "nodes": len(nodes), "cores_per_node": each}
    owner = text_of(given, "Job_Owner").partition("@")[0]
    project = text_of(given, "project")
    group = text_of(given, "Account_Name") or ("" if project == "_pbs_project_default" else project)
    held = {name: amount for name in reading.licences if (amount := number(text_of(asked, name)) or 0.0) > 0}
    waits, _ = dependencies_of(text_of(given, "depend"))
    return Demand(
        **shape,
        consumables=dict(sorted(held.items())),
        requested=_at("Resource_List.walltime", lambda: seconds(text_of(asked, "walltime"))),
        user=owner or None,
        group=group or None,
        partition=text_of(given, "queue") or None,
        priority=number(text_of(given, "Priority")) or 0.0 if reading.priorities else 0.0,
        name=text_of(given, "Job_Name")[:LONGEST_NAME] or None,
        dependencies=waits,
        array=array,
        unmodelled=tuple(clipped(other if " " in other else f"resource {other}", 100) for other in unmodelled),
    )


def _alone(place: list[str]) -> bool:
    return "excl" in place or "exclhost" in place


def _shape(wanted: tuple[SelectedChunk, ...], place: list[str], node: Size) -> dict[str, Any]:
    """Return how many processors on how many nodes chunks are; those that may share nodes are packed."""
    count = sum(chunk.count for chunk in wanted)
    cpus = max(sum(chunk.count * chunk.cpus for chunk in wanted), 1)
    gpus = sum(chunk.count * chunk.gpus for chunk in wanted)
    memory = sum(chunk.count * chunk.memory for chunk in wanted)
    if "pack" in place:
        nodes = 1
    elif "scatter" in place or "vscatter" in place:
        nodes = count
    else:
        nodes = sum(-(-each.count // node.holds(each.cpus, each.memory, each.gpus)) for each in wanted)
        if not (gpus or memory or _alone(place) or count == 1):
            return {"processors": cpus}
    if _alone(place):
        cpus = max(cpus, nodes * node.cores)
    each = -(-cpus // nodes)
    return {
        "processors": cpus,
        "nodes": nodes,
        "cores_per_node": each,
        "gpus_per_node": -(-gpus // nodes),
        "memory_per_node": memory / nodes,
    }


def _others(asked: Document, wanted: tuple[SelectedChunk, ...], reading: Reading) -> list[str]:
    """Return the resources of a request that are not expressed."""
    names = {name for name in asked if name not in _KNOWN and name not in reading.licences}
    for chunk in wanted:
        names.update(chunk.others)
    if len(wanted) > 1 and len({(each.cpus, each.memory, each.gpus) for each in wanted}) > 1:
        names.add("chunks unlike each other")
    return sorted(names)
