"""Metrics of grids: per site and of the whole grid, and the error against recorded times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.errors import InputError
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.job_record import JobRecord

__all__ = ["by_site", "geometric_mean_error", "recorded_errors"]


def by_site(record: JobRecord) -> Table:
    """Return one row per site and a last one of the whole grid.

    Columns: ``site, cores, jobs, finished, failed, queue_time`` and ``walltime`` (means, s), ``cpu_efficiency`` (the
    share of the held core seconds in which jobs executed), ``utilisation``, ``throughput`` (jobs that ended well a
    day), ``attempts``, ``bytes_in, bytes_out``.
    """
    jobs = record.jobs
    cores = dict(zip(record.places["place"].tolist(), record.places["processors"].tolist(), strict=True))
    rows = [_of(record, jobs.where(jobs["site"] == site), site, cores[site]) for site in cores]
    rows.append(_of(record, jobs, None, record.processors))
    names = list(rows[0])
    return Table({name: np.array([row[name] for row in rows]) for name in names})


def _of(record: JobRecord, jobs: Table, site: str | None, cores: int) -> dict[str, Any]:
    started = jobs.where(np.isfinite(jobs["start"]) & np.isfinite(jobs["end"]))
    held = (started["end"] - started["start"]) * started["processors"]
    used = (started["end"] - started["executing"]) * started["processors"]
    days = (record.ended - record.started) / 86400
    finished = int((jobs["state"] == "finished").sum())
    return {
        "site": "all" if site is None else site,
        "cores": cores,
        "jobs": len(jobs),
        "finished": finished,
        "failed": int((jobs["state"] == "failed").sum()),
        "queue_time": _mean(jobs["wait"]),
        "walltime": _mean(started["end"] - started["start"]),
        "cpu_efficiency": float(used.sum() / held.sum()) if held.sum() else float("nan"),
        "utilisation": record.utilisation(site).mean(),
        "throughput": finished / days if days else float("nan"),
        "attempts": int(jobs["attempts"].sum()),
        "bytes_in": float(jobs["bytes_in"].sum()),
        "bytes_out": float(jobs["bytes_out"].sum()),
    }


def _mean(values: NDArray[np.float64]) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def recorded_errors(record: JobRecord) -> Table:
    """Return CGSim's error of walltimes and queue times against the recorded ones, per site and class.

    One row for each site and class of jobs (``single`` and ``multi`` core) with recorded times: ``site, class, jobs,
    walltime, queue_time``, the relative mean absolute errors mean(abs(simulated - recorded)) / mean(recorded).

    Raises
    ------
    InputError
        no job has recorded times

    Source: CGSim's calibration against PanDA.
    """
    jobs = record.jobs
    if "recorded_start" not in jobs or not (known := _known(jobs)).any():
        raise InputError("must have jobs with recorded_start and recorded_end, got none", place="result")
    rows = []
    for site in dict.fromkeys(jobs["site"][known].tolist()):
        for name, several in (("single", False), ("multi", True)):
            here = known & (jobs["site"] == site) & ((jobs["processors"] > 1) == several)
            if here.any():
                of = jobs.where(here)
                walls = of["end"] - of["start"], of["recorded_end"] - of["recorded_start"]
                waits = of["wait"], of["recorded_start"] - of["submit"]
                rows.append((site, name, int(here.sum()), _error(*walls), _error(*waits)))
    names = ("site", "class", "jobs", "walltime", "queue_time")
    return Table(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)))


def _known(jobs: Table) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = np.isfinite(jobs["recorded_start"]) & np.isfinite(jobs["recorded_end"])
    known &= np.isfinite(jobs["start"]) & np.isfinite(jobs["end"])
    return known


def _error(simulated: NDArray[np.float64], recorded: NDArray[np.float64]) -> float:
    mean = float(recorded.mean())
    return float(np.abs(simulated - recorded).mean()) / mean if mean > 0 else float("nan")


def geometric_mean_error(errors: Table, what: str = "walltime") -> float:
    """Return the geometric mean of an error over sites and classes, each counted once.

    >>> errors = Table({"walltime": [0.1, 0.4]})
    >>> round(geometric_mean_error(errors), 3)
    0.2
    """
    values = errors[what].astype(np.float64)
    values = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(values).mean())) if len(values) else float("nan")
