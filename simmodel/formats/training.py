"""Jobs of deep learning on clusters of GPUs: the published logs of Helios and Acme, Philly, Tiresias and Gavel.

Sources: https://github.com/S-Lab-System-Group/HeliosData (Hu et al., SC 2021);
https://github.com/InternLM/AcmeTrace (Hu et al., NSDI 2024); https://github.com/msr-fiddle/philly-traces (Jeon et al.,
USENIX ATC 2019); https://github.com/SymbioticLab/Tiresias (Gu et al., NSDI 2019);
https://github.com/stanford-futuredata/gavel (Narayanan et al., OSDI 2020).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

from simmodel.formats.documents import read_json
from simmodel.formats.tables import columns_of, duration, in_order, moments, named_rows, of_nodes, taken, zone
from simmodel.foundation.errors import InputError, NoJobs, shown
from simmodel.foundation.loading import Source, read_lines, reader, title_of
from simmodel.work.node_chunks import Chunk, chunk_text
from simmodel.work.outcomes import STATUS_OF, outcome_in
from simmodel.work.workload import Report, Workload

__all__ = ["read_gavel", "read_helios", "read_philly", "read_tiresias"]

_ALWAYS = ("job", "submit", "wait", "run", "processors")
UNEVEN = "GPUs not the same on all nodes: spread evenly"
NO_RUN = "run time not told: unknown"
NO_CPUS = "no CPUs: one for each GPU, at least one"
_WORDS = {"pass": "completed", "killed": "cancelled"}  # of Philly
_GB = 1e9


def _whole(row: Mapping[str, str], column: str, least: int = 0) -> int:
    """Return a whole number of a cell, which may be written as 8.0."""
    text = row.get(column, "").strip()
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not (least <= found < 1e15 and found == int(found)):
        raise InputError(f"{column}: must be a whole number >= {least}, got {shown(text)}")
    return int(found)


def _instant(row: Mapping[str, str], column: str, local: tzinfo) -> tuple[float, ...]:
    text = row.get(column, "").strip()
    try:
        return () if text.lower() in ("null", "nan") else moments(text, local)
    except ValueError:
        raise InputError(f"{column}: must be an instant (seconds or a timestamp), got {shown(text)}") from None


def _seconds(row: Mapping[str, str], column: str) -> float:
    text = row.get(column, "").strip()
    try:
        found = duration(text)
    except ValueError:
        raise InputError(f"{column}: must be seconds, got {shown(text)}") from None
    if found < 0:
        raise InputError(f"{column}: must be >= 0, got {shown(text)}")
    return found


def _ended(word: str, left: float, report: Report, *, started: bool, run: float) -> dict[str, Any]:
    """Return how a job ended; one that left the queue without a start has the instant at which it did."""
    outcome = outcome_in(_WORDS.get(word.strip().lower(), word)) if word.strip() else ""
    waiting = not started and outcome == "cancelled" and left == left
    if not run >= 0 and not waiting:
        report.repaired[NO_RUN] += 1
    return {"status": STATUS_OF.get(outcome, 0), "outcome": outcome, "cancel": left if waiting else math.nan}


def _as_workload(rows: list[dict[str, Any]], name: str, report: Report, ending: str) -> Workload:
    if not rows:
        raise NoJobs("no jobs", name, report=report)
    return Workload(columns_of(rows, _ALWAYS), name=title_of(name, ending), report=report)


def _of_gpus(gpus: int, per_node: int) -> dict[str, Any]:
    """Return the shape of a job that says its GPUs only: as few nodes as can be, each full but for the last."""
    full, rest = divmod(gpus, per_node)
    found = {"processors": max(gpus, 1), "nodes": max(full + (rest > 0), 1), "gpus_per_node": min(gpus, per_node)}
    parts = Counter({Chunk(per_node, per_node): full, Chunk(rest or 1, rest): 1})
    return {
        **found,
        "cores_per_node": max(min(gpus, per_node), 1),
        "chunks": chunk_text(parts) if full and rest else "",
    }


def _check(per_node: int) -> None:
    if type(per_node) is not int or per_node < 1:
        raise InputError(f"must be a whole number >= 1, got {shown(per_node)}", place="per_node")


@reader
def read_helios(source: Source, *, strict: bool | None = None, timezone: str | None = None) -> Workload:
    """Read the jobs of Helios (``cluster_log.csv``) or Acme (``trace_seren.csv``, ``trace_kalos.csv``).

    ``gpu_num`` and ``cpu_num`` are those of the job, spread over its ``node_num`` nodes as evenly as possible;
    ``mem_per_pod_GB`` is the memory of each node. The virtual cluster ``vc`` is the queue; ``type`` is kept as it is.
    The run time is from start to end, or else ``duration``. A job that was cancelled and has no start left the queue at
    its end.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    strict
        whether a bad row is an error; else it is skipped, and counted
    timezone
        of times without a zone, such as ``"Asia/Shanghai"``; default UTC

    Raises
    ------
    InputError
        the file cannot be read, lacks a column, has no jobs, or a bad row: with its line and column

    >>> import io
    >>> log = read_helios(io.StringIO(
    ...     "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\\n"
    ...     "7,u1,vc2,16,64,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,60\\n"))
    >>> log["gpus_per_node"], log["nodes"], log["cores_per_node"], log["run"], log["wait"]
    (array([8]), array([2]), array([32]), array([3600.]), array([60.]))
    """
    local, report = zone(timezone), Report()
    name, rows = named_rows(source, ("job_id", "gpu_num", "node_num", "state", "submit_time"))

    def take(row: dict[str, str]) -> dict[str, Any]:
        gpus, told = _whole(row, "gpu_num"), row.get("cpu_num", "").strip()
        nodes, cores = max(_whole(row, "node_num"), 1), _whole(row, "cpu_num") if told else 0
        if cores < 1:
            report.repaired[NO_CPUS] += 1
        lasted = _seconds(row, "duration")
        cells = [_instant(row, column, local) for column in ("submit_time", "start_time", "end_time")]
        (submit, start, end), _ = in_order(cells, lasted)
        if submit != submit:
            raise InputError("submit_time: must be an instant (seconds or a timestamp), got ''")
        if start < submit or end < start:
            raise InputError("times: must be in the order submit_time, start_time, end_time")
        began = start == start or ("start_time" not in row and lasted == lasted)
        run = (end - start if end == end else lasted) if began else math.nan
        queued = _seconds(row, "queue")
        memory = _seconds(row, "mem_per_pod_GB") * _GB
        shape = of_nodes(gpus, nodes, cores or max(gpus, 1), memory if memory == memory else 0.0)
        if shape["chunks"]:
            report.repaired[UNEVEN] += 1
        return {
            "job": row["job_id"].strip(),
            "submit": submit,
            "wait": start - submit if start == start else queued if began else math.nan,
            "run": run,
            **shape,
            "user": row.get("user", "").strip(),
            "queue": row.get("vc", "").strip(),
            "type": row.get("type", "").strip(),
            **_ended(row["state"], end, report, started=began, run=run),
        }

    return _as_workload(list(taken(rows, take, name, report, strict=strict)), name, report, ".csv")


@reader
def read_tiresias(source: Source, *, per_node: int = 8, strict: bool | None = None) -> Workload:
    """Read the jobs of Tiresias: submission, GPUs and duration; iterations and model are kept as columns.

    Such a job has one processor for each GPU. It runs on as few nodes as can be, each full but for the last.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    per_node
        how many GPUs a node has
    strict
        whether a bad row is an error; else it is skipped, and counted

    Raises
    ------
    InputError
        the file cannot be read, lacks a column, has no jobs, or a bad row: with its line and column

    >>> import io
    >>> log = read_tiresias(io.StringIO("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\\n"
    ...     "0,1,0,606,vgg19,164,30\\n1,12,30,133,vgg11,147,23\\n"))
    >>> log["run"], log["gpus_per_node"], log["nodes"], log["chunks"].tolist()
    (array([164., 147.]), array([1, 8]), array([1, 2]), ['', '8:gpus=8+4:gpus=4'])
    """
    _check(per_node)
    report = Report()
    name, rows = named_rows(source, ("job_id", "num_gpu", "submit_time", "duration"))

    def take(row: dict[str, str]) -> dict[str, Any]:
        submit, run = _seconds(row, "submit_time"), _seconds(row, "duration")
        if submit != submit:
            raise InputError("submit_time: must be seconds, got ''")
        if not run >= 0:
            report.repaired[NO_RUN] += 1
        return {
            "job": row["job_id"].strip(),
            "submit": submit,
            "wait": math.nan,
            "run": run,
            **_of_gpus(_whole(row, "num_gpu"), per_node),
            "iterations": _seconds(row, "iterations"),
            "model": row.get("model_name", "").strip(),
        }

    return _as_workload(list(taken(rows, take, name, report, strict=strict)), name, report, ".csv")


@reader
def read_gavel(
    source: Source,
    *,
    throughputs: str | Path | Mapping[str, float] | None = None,
    gpu: str = "v100",
    per_node: int = 8,
    strict: bool | None = None,
) -> Workload:
    """Read a trace of Gavel, whose jobs say how many steps they make, and not how long these take.

    Such a job has one processor for each GPU. It runs on as few nodes as can be, each full but for the last.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file: lines of 7 or 10 fields with tabs between them
    throughputs
        steps per second of a job, by its type; or the file of Gavel that has them by type of GPU, of job and number of
        GPUs. Default: run times are unknown
    gpu
        the type of GPU in that file
    per_node
        how many GPUs a node has
    strict
        whether a bad line is an error; else it is skipped, and counted

    Raises
    ------
    InputError
        the file cannot be read, has no jobs, or a bad line

    >>> import io
    >>> line = "ResNet-18 (batch size 32)\\tpython3 main.py\\t--num_steps\\t1\\t500\\t60.0\\t2\\n"
    >>> log = read_gavel(io.StringIO(line), throughputs={"ResNet-18 (batch size 32)": 5})
    >>> log["submit"], log["run"], log["gpus_per_node"], log["model"].tolist()
    (array([60.]), array([100.]), array([2]), ['ResNet-18 (batch size 32)'])
    """
    _check(per_node)
    lines, name = read_lines(source)
    report, rates = Report(), _rates(throughputs, gpu)

    def take(numbered: tuple[int, str]) -> dict[str, Any]:
        cells = numbered[1].split("\t")
        if len(cells) not in (7, 10):
            raise InputError(f"must have 7 or 10 fields with tabs between them, got {len(cells)}")
        names = ("steps", "arrival", "gpus") if len(cells) == 7 else ("steps", "gpus", "priority", "slo", "arrival")
        row = dict(zip(names, cells[-len(names) :], strict=True))
        gpus, submit = _whole(row, "gpus", 1), _seconds(row, "arrival")
        if submit != submit:
            raise InputError("arrival: must be seconds, got ''")
        steps, model = _whole(row, "steps"), cells[0].strip()
        rate = rates.get(f"('{model}', {gpus})", rates.get(model, 0.0))
        if not rate > 0:
            report.repaired[NO_RUN] += 1
        return {
            "job": str(numbered[0]),
            "submit": submit,
            "wait": math.nan,
            "run": steps / rate if rate > 0 else math.nan,
            **_of_gpus(gpus, per_node),
            "iterations": float(steps),
            "model": model,
        }

    given = ((at, (at, line)) for at, line in lines if line.strip())
    seen = list(taken(given, take, name, report, strict=strict))
    if report.repaired[NO_RUN]:
        report.note("steps tell no run time: read_gavel takes throughputs=, steps per second by type of job")
    return _as_workload(seen, name, report, ".trace")


def _rates(given: str | Path | Mapping[str, float] | None, gpu: str) -> Mapping[str, float]:
    """Return steps per second by type of job, or by type and number of GPUs as Gavel writes them."""
    if given is None or isinstance(given, Mapping):
        return given or {}
    of_type = read_json(given)[gpu].table()
    alone = {job: each.get("null") for job, each in of_type.items() if isinstance(each, dict)}
    return {job: float(rate) for job, rate in alone.items() if isinstance(rate, int | float)}


@reader
def read_philly(source: Source, *, strict: bool | None = None, timezone: str | None = None) -> Workload:
    """Read the jobs of Philly (``cluster_job_log``), a list in JSON.

    A job has the GPUs of its last attempt, on as many nodes, with one processor for each GPU. Its run time is the sum
    of its attempts, and the report counts the jobs with several; the virtual cluster is the queue.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    strict
        whether a bad job is an error; else it is skipped, and counted
    timezone
        of times without a zone, such as ``"America/Los_Angeles"``; default UTC

    Raises
    ------
    InputError
        the file cannot be read, has no jobs, or a bad job, which is named by its number

    >>> import io
    >>> log = read_philly(io.StringIO('''[{"status": "Pass", "vc": "v", "jobid": "a", "user": "u",
    ... "submitted_time": "2017-10-01 12:00:00", "attempts": [{"start_time": "2017-10-01 12:01:00",
    ... "end_time": "2017-10-01 12:02:00", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]}]'''))
    >>> log["run"], log["wait"], log["gpus_per_node"], log["outcome"].tolist()
    (array([60.]), array([60.]), array([2]), ['completed'])
    """
    local, report = zone(timezone), Report()
    document = read_json(source)
    found, name = [each.data for each in document.list()], document.source

    def take(given: Any) -> dict[str, Any]:
        attempts = given.get("attempts") if isinstance(given, dict) else None
        if not isinstance(attempts, list) or not all(isinstance(each, dict) for each in attempts):
            raise InputError("attempts: must be a list of tables")
        texts = {key: str(given.get(key) or "") for key in ("submitted_time", "status", "vc", "user", "jobid")}
        submit = next(iter(_instant(texts, "submitted_time", local)), math.nan)
        if submit != submit:
            raise InputError("submitted_time: must be a timestamp, got ''")
        spans, gpus = [], list[int]()
        for each in attempts:
            times = {key: str(each.get(key) or "") for key in ("start_time", "end_time")}
            spans.append([next(iter(_instant(times, key, local)), math.nan) for key in times])
            gpus = [len(part.get("gpus") or ()) for part in each.get("detail") or ()] or gpus
        start = next((start for start, _ in spans if start == start), math.nan)
        run = sum(end - begin for begin, end in spans) if spans and start == start else math.nan
        end = spans[-1][1] if spans else math.nan
        report.repaired.update({"several attempts: run times added": 1} if len(spans) > 1 else {})
        uneven = len(set(gpus)) > 1
        return {
            "job": texts["jobid"],
            "submit": submit,
            "wait": start - submit,
            "run": run if run >= 0 else math.nan,
            "processors": max(sum(gpus), 1),
            "nodes": max(len(gpus), 1),
            "cores_per_node": max([1, *gpus]),
            "gpus_per_node": max([0, *gpus]),
            "chunks": chunk_text(Counter(Chunk(max(each, 1), each) for each in gpus)) if uneven else "",
            "user": texts["user"],
            "queue": texts["vc"],
            **_ended(texts["status"], end if end == end else submit, report, started=start == start, run=run),
        }

    rows = list(taken(enumerate(found, 1), take, name, report, strict=strict, place="job"))
    return _as_workload(rows, name, report, ".json")
