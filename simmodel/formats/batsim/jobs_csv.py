"""Batsim's ``jobs.csv``: what happened to each job, of any run.

Source: https://batsim.readthedocs.io, "Jobs".
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from math import inf, isnan
from pathlib import Path

import numpy as np

from simmodel.foundation.writing import write_text
from simmodel.records.job_record import JobRecord
from simmodel.work.workload import Workload

__all__ = ["JOBS_CSV", "write_batsim_jobs"]

JOBS_CSV = (
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time"),
    *("success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time"),
    *("stretch", "allocated_resources", "consumed_energy", "metadata"),
)
"""The columns of Batsim's ``jobs.csv``."""
_STATES = {
    "completed": "COMPLETED_SUCCESSFULLY",
    "timeout": "COMPLETED_WALLTIME_REACHED",
    "failed": "COMPLETED_FAILED",
    "lost": "COMPLETED_FAILED",
    "cancelled": "COMPLETED_KILLED",
    "rejected": "REJECTED",
}


def write_batsim_jobs(result: JobRecord, path: str | Path, workload: Workload | None = None) -> None:
    """Write a run as Batsim's ``jobs.csv``: a row for each job that ended or was rejected.

    A node is a resource, by its number. Energy is not recorded by job: it is -1, as in Batsim without its plugin.

    Parameters
    ----------
    result
        the run
    path
        the file
    workload
        that of the run, which has the names of the profiles; otherwise they are empty
    """
    specs = {} if workload is None or workload.specs is None else {job.id: job for job in workload.specs}
    title = "w0" if workload is None else workload.name
    nodes: dict[int | str, tuple[int, ...]] = {}
    if result.runs is not None and "nodes" in result.runs:
        nodes = dict(zip(result.runs["job"].tolist(), result.runs["nodes"].tolist(), strict=True))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(JOBS_CSV)
    for row in result.jobs.rows():
        if row["status"] not in _STATES:
            continue
        spec = specs.get(row["job"])
        submit, start, end, limit = (float(row[key]) for key in ("submit", "start", "end", "requested"))
        ran = end - start
        times: list[float] = [start, ran, end, start - submit, end - submit, (end - submit) / ran if ran else inf]
        if isnan(start):
            times = [-1.0] * 6
        asked = [submit, row["processors"], -1 if isnan(limit) else limit]
        ended = [int(row["status"] == "completed"), _STATES[row["status"]], *times]
        resources = _intervals(nodes.get(row["job"]) or ())
        writer.writerow([row["job"], title, spec.name if spec else "", *asked, *ended, resources, -1, ""])
    write_text(path, out.getvalue())


def _intervals(numbers: Iterable[int]) -> str:
    """Return numbers as Batsim writes a set of them.

    >>> _intervals((0, 1, 2, 5))
    '0-2 5'
    """
    ordered = np.array(sorted(numbers), dtype=np.int64)
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1) if len(ordered) else []
    return " ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)
