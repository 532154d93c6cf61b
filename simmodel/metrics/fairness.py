"""How evenly users and jobs are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.records.steps import Steps
from simmodel.work.table import distinct, rows_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from simmodel.records.job_record import JobRecord

__all__ = ["discrimination", "jain", "unfairness", "users"]


def jain(values: ArrayLike) -> float:
    """Return Jain's index of values: 1 if all are equal, 1/n if one has everything; nan of no values.

    Source: R. Jain, D.-M. Chiu and W. Hawe, "A quantitative measure of fairness and discrimination for resource
    allocation in shared computer systems", DEC-TR-301, 1984.

    >>> jain([3, 3, 3]), jain([1, 0, 0, 0])
    (1.0, 0.25)
    """
    amounts = np.asarray(values, dtype=np.float64)
    squares = float((amounts**2).sum())
    return float(amounts.sum() ** 2 / (len(amounts) * squares)) if squares else float("nan")


def users(result: JobRecord, values: NDArray[np.float64], counted: NDArray[np.bool_]) -> float:
    """Return Jain's index of the users' means of a value; nan where the result knows no users.

    Parameters
    ----------
    values
        of the jobs counted
    counted
        which jobs those are
    """
    if "user" not in result.jobs or not len(values):
        return float("nan")
    _, which = distinct(result.jobs["user"][counted])
    return jain(np.bincount(which, weights=values) / np.bincount(which))


def discrimination(result: JobRecord, busy: Steps | None = None) -> NDArray[np.float64]:
    """Return for each job the processor-seconds it received more (or less) than an equal division would have given.

    At each instant the busy processors are divided equally among the jobs in the system (waiting or running); a
    job's total less the sum of its shares is its discrimination. Over all jobs it adds up to 0. nan for jobs that
    never started; they get no shares. ``busy``: the busy processors over time, if they are known already.

    Source: D. Raz, H. Levy and B. Avi-Itzhak, "A resource-allocation queueing fairness measure", SIGMETRICS 2004; for
    parallel jobs as in G. Sabin and P. Sadayappan, "Unfairness metrics for space-sharing parallel job schedulers",
    JSSPP 2005.

    >>> from simmodel.records import JobRecord
    >>> result = JobRecord(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 20], "processors": [1, 1]})
    >>> discrimination(result)
    array([ 5., -5.])
    """
    jobs = result.jobs
    submit = jobs["eligible"] if "eligible" in jobs else jobs["submit"]
    entered = np.isfinite(jobs["start"])
    leaves = np.where(np.isnan(jobs["end"]), result.ended, jobs["end"])
    busy = result.busy() if busy is None else busy
    ones = np.ones(int(entered.sum()))
    times = np.append(submit[entered], leaves[entered])
    inside = Steps.from_changes(times, np.append(ones, -ones), result.started, result.ended)
    share = busy.share_of(inside)
    edges = np.append(share.times, share.end)
    area = np.append(0.0, np.cumsum(share.values * np.diff(edges)))
    deserved = np.interp(leaves, edges, area) - np.interp(submit, edges, area)
    found = np.full(len(jobs), np.nan)
    found[entered] = _received(result)[entered] - deserved[entered]
    return found


def _received(result: JobRecord) -> NDArray[np.float64]:
    """Return the processor-seconds of each job in all its executions."""
    if result.one_run_each:
        jobs = result.jobs
        end = np.where(np.isnan(jobs["end"]), result.ended, jobs["end"])
        seconds = np.where(np.isfinite(jobs["start"]), end - jobs["start"], 0.0)
        return np.asarray(seconds * jobs["processors"], dtype=np.float64)
    runs = result.runs
    end = np.where(np.isnan(runs["end"]), result.ended, runs["end"])
    row = rows_of(result.jobs["job"], runs["job"])
    work = np.asarray((end - runs["start"]) * runs["processors"], dtype=np.float64)
    return np.bincount(row, weights=work, minlength=len(result.jobs)).astype(np.float64)


def unfairness(result: JobRecord, busy: Steps | None = None) -> float:
    """Return the share of the work done that an equal division would have given to other jobs: 0 is perfectly fair.

    Half the sum of the absolute :func:`discrimination` over the processor-seconds done; nan if nothing ran. ``busy``:
    the busy processors over time, if they are known already.

    >>> from simmodel.records import JobRecord
    >>> unfairness(JobRecord(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 20], "processors": [1, 1]}))
    0.25
    """
    busy = result.busy() if busy is None else busy
    done = busy.integral()
    return float(np.nansum(np.abs(discrimination(result, busy))) / (2 * done)) if done else float("nan")
