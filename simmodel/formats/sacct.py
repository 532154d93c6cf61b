"""Slurm accounting: the output of ``sacct --parsable2``, and the file of ``jobcomp/filetxt``.

Source: the manual pages of sacct and slurm.conf (SchedMD). This call prints every field that the reader uses::

    sacct --allusers --allocations --duplicates --parsable2 --starttime=2024-01-01 --endtime=now --format=JobID,\\
    Submit,Eligible,Start,End,Elapsed,Timelimit,AllocCPUS,ReqCPUS,ReqNodes,NNodes,State,User,Account,Partition,QOS,\\
    ExitCode,ReqTRES,AllocTRES,Priority,NodeList,Reservation,Constraints,Reason,JobName,SubmitLine
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, tzinfo
from itertools import chain
from typing import Any

from simmodel.formats.tables import (
    AMBIGUOUS,
    columns_of,
    duration,
    in_order,
    limit,
    memory,
    moments,
    passed_over,
    taken,
    whole,
    zone,
)
from simmodel.foundation.errors import InputError, NoJobs, shown
from simmodel.foundation.loading import Source, read_lines, reader, title_of
from simmodel.work.node_chunks import MOST_CHUNKS, chunk_text, packed, spread
from simmodel.work.outcomes import STATUS_OF, outcome_in
from simmodel.work.workload import Report, Workload

__all__ = ["read_sacct"]

_WAITING_ARRAY = re.compile(r"\d+_\[.*\]")
# A type has another character than digits, or is followed by a number; 7696487 is the number of the plug-in gpu.
_TYPE = r":([^:=,(]*[^:=,(\d][^:=,(]*|[^:=,(]+(?=[:=]))"
_GPUS = re.compile(rf"(?:^|,)(?:gres[/:])?(?:gpu|7696487)(?:{_TYPE})?(?:[:=](\d+))?(?=[,(]|$)")
_SHARES = re.compile(rf"(?:^|,)(?:gres[/:])?(shard|mps)(?:{_TYPE})?[:=](\d+)(?=[,(]|$)")
_MPS = {"mps": 100}
"""Slurm's percentages of a GPU."""
SHARED = "shards, whose number on a GPU is not told (shares=): taken as no GPU"
SEVERAL = "GPUs of several types: any of them"
MORE = "shards of more than one GPU: whole GPUs"
NO_TYPE = "CPUs or GPUs not the same on all nodes: without their type"
_MEMORY = re.compile(r"(?:^|,)mem=([^,]*)")
_ALWAYS = ("job", "submit", "wait", "run", "processors", "requested", "status", "state")
_NO_NODES = ("", "None assigned", "(null)", "None")
_IN_QUEUE = ("CANCELLED", "DEADLINE", "REVOKED")
"""States of jobs that did not start, if they ran for 0 s."""
_AGAIN = ("REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING")
"""States of runs that ended, of jobs that did not."""


@reader
def read_sacct(
    source: Source,
    *,
    strict: bool | None = None,
    delimiter: str = "|",
    timezone: str | None = None,
    shares: Mapping[str, float] | None = None,
) -> Workload:
    """Read the jobs of ``sacct --parsable2`` output; the first line names the fields, in any order.

    Required are ``JobID``, ``Submit``, a number of processors (``AllocCPUS``, ``NCPUS`` or ``ReqCPUS``) and a run time
    (``Elapsed``, ``ElapsedRaw``, or ``Start`` and ``End``). Also read are ``Timelimit``, ``NNodes``, ``State``,
    ``User``, ``Group``, ``Account`` (the group if there is no ``Group``), ``Partition``, ``QOS`` (the queue),
    ``ReqTRES`` and ``AllocTRES`` (memory and GPUs), ``AllocGRES`` and ``ReqGRES`` (GPUs, before Slurm 20.11),
    ``ReqMem``, ``Priority``, ``TotalCPU``, ``ExitCode``, ``Suspended`` (no part of the run time); and as further
    columns ``Eligible``, ``ReqNodes``, ``NodeList``, ``Reservation``, ``Constraints``, ``Reason``, ``JobName`` and
    ``SubmitLine``, which ``simmodel slurm`` uses. Of the other fields, the report names those that may change the
    result or that sacct does not have. Lines of ``jobcomp/filetxt`` have the names of their fields. A name, comment or
    submit line may contain the delimiter and line breaks: the fields around it tell where it ends.

    sacct tells the totals of a job only. If these are not multiples of the number of its nodes, the first nodes have as
    many CPUs as any job of its partition has per node, as Slurm fills nodes, and each has at least one; GPUs are spread
    evenly (column ``chunks``). The report counts such jobs. A time limit of ``UNLIMITED`` or ``Partition_Limit`` is
    infinite: nobody knows when such a job ends.

    ``gpu`` has the types of GPUs that a job asked for (``gres/gpu:a100=2``, ``gres/gpu:1g.5gb=1``), or if it asked for
    none, those that it got. A job with ``gres/shard`` or ``gres/mps`` has a share of a GPU.

    Job steps and job arrays pending as a whole (``12_[3-9]``) are skipped and counted in the report; array members
    (``12_3``) and components of heterogeneous jobs (``12+0``) are jobs, and so is each run of a job that was requeued
    (``--duplicates``). A job that never started, or has not ended, has no run time and no wait; a job that left the
    queue without a start has a ``cancel`` time: its start is ``None``, or its end after 0 s without nodes. ``outcome``
    and ``exit_code`` say how a run ended, ``status`` is 1 for completed, 5 for cancelled, else 0; ``state`` is Slurm's
    own word.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    strict
        reject a bad line; ``False``: skip it and count it in ``report.skipped``; ``None``: as
        :func:`~simmodel.foundation.loading.reading` says
    delimiter
        the field separator
    timezone
        the time zone, such as ``"Europe/Paris"``; default: that of :func:`~simmodel.foundation.loading.reading`, or
        UTC. Of two instants that a change of the clock shows alike, those are taken that follow each other as the
        columns of the job do; where both do, the earlier, which the report counts
    shares
        how many ``shard`` or ``mps`` a GPU has; default: 100 of ``mps``, and those of ``shard`` are not known: the
        report counts such jobs

    Raises
    ------
    InputError
        the file cannot be read, lacks a required field, has no jobs, or has a bad line (the message has its number)

    >>> import io
    >>> log = read_sacct(io.StringIO('''JobID|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|State|User
    ... 17|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00|1-00:00:00|64|COMPLETED|ann
    ... 17.batch|2024-05-01T12:01:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00||64|COMPLETED|
    ... '''))
    >>> log["wait"], log["run"], log["requested"]
    (array([60.]), array([3600.]), array([86400.]))
    >>> print(log.report)
    skipped 1 (job steps 1)
    """
    local = zone(timezone)
    lines, name = read_lines(source)
    report = Report()
    lines = _as_table(((number, line) for number, line in lines if line.strip()), delimiter)
    number, head = next(lines, (0, None))
    if head is None:
        raise InputError("must start with a line of sacct field names, got an empty file", source=name)
    fields = [cell.strip().lower() for cell in head.split(delimiter)]
    _check_fields(fields, name, number)
    written = dict(zip(fields, map(str.strip, head.split(delimiter)), strict=True))
    others, ignored = written.keys() - _KNOWN - {""}, Counter[str]()
    per_gpu = _MPS | dict(shares or {})
    table, most = _records(lines, fields, delimiter, report), dict[str, int]()

    def take(cells: list[str]) -> dict[str, Any] | None:
        record = dict(zip(fields, _aligned(cells, fields, delimiter), strict=True))
        kind = "job steps" if "." in record["jobid"] else "arrays that wait as a whole"
        if kind == "job steps" or _WAITING_ARRAY.fullmatch(record["jobid"]):
            report.skipped[kind] += 1
            return None
        ignored.update(field for field in others if record[field])
        return _job(record, local, report, most, per_gpu)

    rows = list(taken(table, take, name, report, strict=strict))
    if not rows:
        raise NoJobs("no jobs", name, report=report)
    for row in rows:
        if row["chunks"]:
            gpus, memory, per_core = row["chunks"]
            cores, nodes = row["processors"], row["nodes"]
            parts = packed(cores, nodes, most[row["partition"]]) if cores % nodes else cores
            row["chunks"] = chunk_text(spread(parts, nodes, gpus, memory, per_core=per_core))
    if all(row["gpus_per_node"] == int(row["gpus_per_node"]) for row in rows):
        for row in rows:
            row["gpus_per_node"] = int(row["gpus_per_node"])
    written |= {name.lower(): name for name in _CHANGES}
    passed_over(report, {written[field]: count for field, count in ignored.items()}, _CHANGES, "field")
    return Workload(columns_of(rows, _ALWAYS), name=title_of(name), report=report)


_TEXTS = ("jobname", "comment", "admincomment", "systemcomment", "extra", "workdir", "submitline", "reason")
"""Fields in which users write what they like."""
_STATE = re.compile(r"[A-Z_]+\+?( by .*)?$")
_JOB = re.compile(r"\d+(_\d+|_\[.*\])?(\+\d+)?(\..+)?")


def _records(
    lines: Iterable[tuple[int, str]], fields: list[str], delimiter: str, report: Report
) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each record with the number of its first line; texts in it may have line breaks.

    A line that does not begin a record goes on with a text of the one before: where that lacks fields, or ends with a
    text.
    """
    at, open_end = fields.index("jobid"), fields[-1] in _TEXTS
    record: tuple[int, list[str]] | None = None
    for number, line in lines:
        cells = line.split(delimiter)
        begins = len(cells) > at and _JOB.fullmatch(cells[at].strip())
        if record is not None and not begins and (len(record[1]) < len(fields) or open_end):
            record[1][-1:] = [f"{record[1][-1]}\n{cells[0]}", *cells[1:]]
            report.repaired["line breaks inside of fields"] += 1
            continue
        if record is not None:
            yield record
        record = number, cells
    if record is not None:
        yield record


def _aligned(cells: list[str], fields: list[str], delimiter: str) -> list[str]:
    """Return one cell a field: surplus delimiters stand in a text, which is the one that leaves all others readable.

    Raises
    ------
    ValueError
        there are other numbers of cells and fields
    """
    more = len(cells) - len(fields)
    found = []
    for at in (at for at, field in enumerate(fields) if field in _TEXTS) if more > 0 else ():
        joined = delimiter.join(cells[at : at + more + 1])
        tried = [cell.strip() for cell in (*cells[:at], joined, *cells[at + more + 1 :])]
        record = dict(zip(fields, tried, strict=True))
        with suppress(ValueError):
            _job(record, UTC, Report(), {}, {})
            if _JOB.fullmatch(record["jobid"]) and _STATE.match(record.get("state", "UNKNOWN")):
                found.append(tried)
    if more and not found:
        raise InputError(f"must have {len(fields)} fields, got {len(cells)}")
    return found[-1] if found else [cell.strip() for cell in cells]


_FIELDS: Mapping[str, str] = {
    "read": """
        jobid submit eligible start end elapsed elapsedraw suspended timelimit timelimitraw alloccpus ncpus reqcpus
        allocnodes nnodes reqnodes state exitcode jobname reason user group account partition qos alloctres reqtres
        allocgres reqgres reqmem totalcpu priority nodelist reservation constraints submitline consumedenergyraw""",
    "harmless": """
        admincomment associd avecpu avecpufreq avediskread avediskwrite avepages averss avevmsize blockid cluster
        comment consumedenergy container cputime cputimeraw dbindex derivedexitcode extra
        failednode flags gid hetjobid hetjoboffset jobidraw layout maxdiskread maxdiskreadnode maxdiskreadtask
        maxdiskwrite maxdiskwritenode maxdiskwritetask maxpages maxpagesnode maxpagestask maxrss maxrssnode maxrsstask
        maxvmsize maxvmsizenode maxvmsizetask mcslabel mincpu mincpunode mincputask ntasks planned plannedcpu
        plannedcpuraw qosraw qosreq reqcpufreq reqcpufreqgov reqcpufreqmax reqcpufreqmin reservationid reserved
        restarts resvcpu resvcpuraw sluid stderr stdin stdout systemcomment systemcpu tresusageinave tresusageinmax
        tresusageinmaxnode tresusageinmaxtask tresusageinmin tresusageinminnode tresusageinmintask tresusageintot
        tresusageoutave tresusageoutmax tresusageoutmaxnode tresusageoutmaxtask tresusageoutmin tresusageoutminnode
        tresusageoutmintask tresusageouttot uid usercpu wckey wckeyid workdir""",
}
"""The fields of sacct, in lower case: those that are read, and those that tell names, what a job did while it ran, or
what other fields tell, too."""
_KNOWN = frozenset(" ".join(_FIELDS.values()).split())
_CHANGES = {
    "Licenses": "licences that jobs hold are not simulated",
    "SegmentSize": "nodes that must be near each other are chosen by the placement of the platform",
}
"""Other fields of sacct, and why a simulation without them may differ."""

_COMPLETION = {
    "UserId": "User",
    "JobState": "State",
    "Partition": "Partition",
    "TimeLimit": "TimelimitRaw",
    "StartTime": "Start",
    "EndTime": "End",
    "NodeList": "NodeList",
    "NodeCnt": "NNodes",
    "ProcCnt": "AllocCPUS",
    "ReservationName": "Reservation",
    "Tres": "ReqTRES",
    "Account": "Account",
    "QOS": "QOS",
    "SubmitTime": "Submit",
    "EligibleTime": "Eligible",
    "ExitCode": "ExitCode",
    "Gres": "ReqGRES",
}
"""Fields of jobcomp/filetxt, and those of sacct that say the same."""
_COMPLETED = re.compile(r"(?:^| )(JobId|ArrayJobId|ArrayTaskId|" + "|".join(_COMPLETION) + r")=(\S*)")


def _as_table(lines: Iterator[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, str]]:
    """Return the lines of sacct, or those that say what lines of jobcomp/filetxt say."""
    first = next(lines, None)
    if first is None:
        return iter(())
    everything = chain([first], lines)
    if not first[1].startswith("JobId="):
        return everything
    head = delimiter.join(["JobID", *_COMPLETION.values()])
    return chain([(first[0], head)], ((number, _completed(line, delimiter)) for number, line in everything))


def _completed(line: str, delimiter: str) -> str:
    """Return a line of jobcomp/filetxt as one of sacct."""
    found = dict(_COMPLETED.findall(line))
    if not found:
        return line
    name = found.get("JobId", "")
    if "ArrayTaskId" in found:
        name = f"{found.get('ArrayJobId', name)}_{found['ArrayTaskId']}"
    found["UserId"] = found.get("UserId", "").partition("(")[0]
    return delimiter.join([name, *(found.get(field, "") for field in _COMPLETION)])


def _check_fields(fields: list[str], name: str, number: int) -> None:
    place = f"line {number}"
    if "jobid" not in fields:
        excerpt = "|".join(fields)[:80]
        raise InputError(f"must be sacct field names (JobID|Submit|...), got {excerpt!r}", name, place)
    if "submit" not in fields:
        raise InputError("missing field Submit", name, place)
    if not {"alloccpus", "ncpus", "reqcpus"} & set(fields):
        raise InputError("missing field AllocCPUS, NCPUS or ReqCPUS", name, place)
    if not {"elapsed", "elapsedraw"} & set(fields) and not {"start", "end"} <= set(fields):
        raise InputError("missing field Elapsed, or Start and End", name, place)


def _amount(record: Mapping[str, str], convert: Callable[[str], float], *fields: str) -> float:
    """Convert the first of these fields that is not empty; nan: all are."""
    for field in fields:
        text = record.get(field, "")
        if text:
            try:
                return convert(text)
            except ValueError:
                raise InputError(f"field {field}: cannot read {shown(text)}") from None
    return math.nan


def _count(record: Mapping[str, str], *fields: str) -> int:
    """Return the first positive number (a waiting job has no processors allocated), else -1."""
    found = [_amount(record, _number, field) for field in fields]
    return int(next((number for number in found if number > 0), -1))


def _number(text: str) -> int:
    """Return a whole number; Slurm abbreviates large ones (``12K``)."""
    return int(memory(text)) if text[-1:] in "KMG" else whole(text)


def _moments(record: Mapping[str, str], local: tzinfo, field: str) -> tuple[float, ...]:
    """Return the instants that a field may mean."""
    text = record.get(field, "")
    try:
        return moments(text, local)
    except ValueError:
        raise InputError(f"field {field}: cannot read {shown(text)}") from None


def _job(
    record: Mapping[str, str], local: tzinfo, report: Report, most: dict[str, int], per_gpu: Mapping[str, float]
) -> dict[str, Any]:
    """Return the row of a record, with what its chunks follow from; ``most``: CPUs per node, by partition."""
    cells = [_moments(record, local, field) for field in ("submit", "eligible", "start", "end")]
    elapsed = _amount(record, duration, "elapsedraw", "elapsed")
    (submit, eligible, start, end), ambiguous = in_order(cells, elapsed)
    if math.isnan(submit):
        raise InputError("missing submit time")
    if ambiguous:
        report.repaired[AMBIGUOUS] += 1
    state = (record.get("state", "").split() or [""])[0].rstrip("+")
    outcome = outcome_in(state) if state and not (state in _AGAIN and math.isnan(end)) else ""
    runs_on = state != "" and not outcome and math.isnan(end)
    suspended = _amount(record, duration, "suspended")
    whole_run = end - start - (suspended if suspended > 0 else 0.0)
    run = elapsed if {"elapsedraw", "elapsed"} & record.keys() else whole_run
    nowhere = record.get("nodelist", "") in _NO_NODES
    started = "start" not in record or not math.isnan(start)
    if run == 0 and nowhere and (state in _IN_QUEUE or "nodelist" in record):  # as Slurm before 21 has it
        started = False
    cancelled_waiting = not started and not math.isnan(end) and outcome != "completed"
    processors = _count(record, "alloccpus", "ncpus", "reqcpus")
    nodes = _count(record, "allocnodes", "nnodes", "reqnodes")
    minutes, partition = _amount(record, limit, "timelimitraw"), record.get("partition", "")
    job = {
        "job": record["jobid"],
        "submit": submit,
        "wait": start - submit if started else math.nan,
        "run": run if started and not runs_on else math.nan,
        "processors": processors,
        "requested_processors": _count(record, "reqcpus"),
        "requested": _amount(record, limit, "timelimit") if math.isnan(minutes) else minutes * 60,
        "cpu_time": _amount(record, duration, "totalcpu") / max(processors, 1),
        "status": STATUS_OF.get(outcome, 0),
        "outcome": outcome,
        "exit_code": _exit_code(record.get("exitcode", "")),
        "state": state,
        "user": record.get("user", ""),
        "group": record.get("group") or record.get("account", ""),
        "queue": record.get("qos", ""),
        "partition": partition,
        "nodes": nodes,
        "cores_per_node": -(-processors // nodes) if nodes > 0 and processors > 0 else -1,
        "cancel": end if cancelled_waiting else math.nan,
        "priority": _count(record, "priority"),
        "eligible": eligible,
        "requested_nodes": _count(record, "reqnodes"),
        "node_list": record.get("nodelist", "") if started else "",
        "reservation": record.get("reservation", ""),
        "constraints": record.get("constraints", ""),
        "submit_line": record.get("submitline", ""),
        "requested_tres": record.get("reqtres", ""),
        "allocated_tres": record.get("alloctres", "") if started else "",
        "reason": record.get("reason", ""),
        "name": record.get("jobname", ""),
    }
    joules = _amount(record, float, "consumedenergyraw")  # 0 where nothing is measured
    job["power"] = joules / (run * max(nodes, 1)) if joules > 0 and run > 0 and started else math.nan
    gpus, types = _gpus(record, nodes), _types(record)
    amount = _memory(record, processors, nodes)
    job["chunks"] = ""
    if nodes > 0:
        most[partition] = max(most.get(partition, 1), -(-processors // nodes))
    if 0 < nodes <= min(processors, MOST_CHUNKS) and (processors % nodes or gpus % nodes):
        per_core = record.get("reqmem", "").endswith("c")
        each = 0.0 if math.isnan(amount) else amount / (processors if per_core else nodes)
        job["chunks"] = gpus, each, per_core
        report.repaired["CPUs or GPUs not the same on all nodes: first nodes filled"] += 1
    job["requested_memory"] = amount / processors if processors > 0 else math.nan
    job["gpus_per_node"] = float(-(-gpus // max(nodes, 1)) or _share(record, nodes, per_gpu, report))
    job["gpu"] = "|".join(types) if not job["chunks"] else ""
    if len(types) > 1:
        report.repaired[SEVERAL] += 1
    if types and job["chunks"]:
        report.repaired[NO_TYPE] += 1
    job["memory_per_node"] = amount / max(nodes, 1)
    return job


def _exit_code(text: str) -> int:
    """Return an exit code as a shell has it, 128 more than the number of a signal; -1: unknown.

    >>> _exit_code("1:0"), _exit_code("0:9"), _exit_code("")
    (1, 137, -1)
    """
    found = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", text)
    if found is None:
        return -1
    signal = int(found[2] or 0)
    return int(found[1]) or (128 + signal if signal else 0)


def _gpus(record: Mapping[str, str], nodes: int) -> int:
    """Count the GPUs of a job: the untyped count, which includes all types, or else the sum of the typed ones.

    ``ReqGRES`` counts those of each node, the other fields those of the job.
    """
    for field in ("alloctres", "reqtres", "allocgres", "reqgres"):
        found = _GPUS.findall(record.get(field, ""))
        if found:
            count = next((n for kind, n in found if not kind), None)
            total = int(count or 1) if count is not None else sum(int(n or 1) for _, n in found)
            return total * max(nodes, 1) if field == "reqgres" else total
    return 0


def _types(record: Mapping[str, str]) -> tuple[str, ...]:
    """Return the types of GPUs that a job asked for; of one whose request has no GPUs, those that it got."""
    for field in ("reqtres", "reqgres", "alloctres", "allocgres"):
        found = _GPUS.findall(record.get(field, ""))
        if found:
            return tuple(dict.fromkeys(kind.replace("|", "_") for kind, count in found if kind and count != "0"))
    return ()


def _share(record: Mapping[str, str], nodes: int, per_gpu: Mapping[str, float], report: Report) -> float:
    """Return the share of a GPU of each node that a job has, in whole thousandths, or GPUs if it has more than one."""
    for field in ("alloctres", "reqtres", "allocgres", "reqgres"):
        for name, _, count in _SHARES.findall(record.get(field, "")):
            each = float(count) / (1 if field == "reqgres" else max(nodes, 1))
            if each and not per_gpu.get(name):
                report.repaired[SHARED] += 1
                return 0.0
            share = each / per_gpu[name] if each else 0.0
            if share > 1 and share != int(share):
                report.repaired[MORE] += 1
            if share:
                return float(math.ceil(share)) if share >= 1 else max(math.floor(share * 1000) / 1000, 0.001)
    return 0.0


def _memory(record: Mapping[str, str], processors: int, nodes: int) -> float:
    """Return the bytes requested by the whole job; ``4Gc`` is per processor, ``4Gn`` per node."""
    for field in ("reqtres", "alloctres"):
        found = _MEMORY.search(record.get(field, ""))
        if found:
            return _amount({field: found[1]}, memory, field)
    text = record.get("reqmem", "")
    if text[-1:] in ("c", "n"):
        each = _amount({"reqmem": text[:-1]}, _megabytes, "reqmem")
        return each * max(processors if text[-1] == "c" else nodes, 1)
    return _amount(record, _megabytes, "reqmem")


def _megabytes(text: str) -> float:
    return memory(text + "M" if text[-1:].isdigit() else text)
