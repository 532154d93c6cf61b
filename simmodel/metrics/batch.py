"""Metrics of batch systems: of jobs (arrays in, arrays out), of results, and how evenly users and jobs are served.

Averages are over the jobs that ended well: completed, or stopped at their requested time. Jobs that never started,
failed, were cancelled or lost are counted separately.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from simmodel.foundation.errors import ByName, InputError, unknown
from simmodel.metrics.statistics import mser
from simmodel.records.job_record import delays, has_gpus, interrupted, needed, never_started, since
from simmodel.records.steps import Steps
from simmodel.work.table import Table, distinct, rows_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from simmodel.platform.signals import GivenSignals
    from simmodel.records.job_record import JobRecord

__all__ = [
    "CHECKPOINT_METRICS",
    "FURTHER_METRICS",
    "GPU_METRICS",
    "INTERRUPTION_METRICS",
    "JOB_METRICS",
    "MACHINE_METRICS",
    "METRICS",
    "MORE_IS_BETTER",
    "TAU",
    "Cut",
    "bounded_slowdown",
    "discrimination",
    "in_window",
    "jain",
    "job_values",
    "metrics_of",
    "per_processor_slowdown",
    "slowdown",
    "summary",
    "turnaround",
    "unfairness",
    "values_of",
    "wait",
    "window",
]


TAU = 10.0
"""Default bound of bounded slowdowns, s."""
Cut: TypeAlias = float | str | None
"""A cut at an end of a run: seconds, a share such as ``"10%"``, or a rule (``"mser-5"``)."""

METRICS: dict[str, tuple[str, str]] = {
    "wait_mean": ("s", "mean wait"),
    "wait_median": ("s", "median wait"),
    "wait_p95": ("s", "95th percentile of the wait"),
    "wait_max": ("s", "longest wait"),
    "turnaround_mean": ("s", "mean turnaround"),
    "slowdown_mean": ("", "mean slowdown"),
    "bounded_slowdown_mean": ("", "mean bounded slowdown"),
    "bounded_slowdown_median": ("", "median bounded slowdown"),
    "bounded_slowdown_p95": ("", "95th percentile bounded slowdown"),
    "per_processor_slowdown_mean": ("", "mean per-processor bounded slowdown"),
    "utilisation": ("", "utilisation"),
    "makespan": ("s", "makespan"),
    "throughput": ("jobs/s", "throughput"),
    "queue_length_mean": ("jobs", "mean queue length"),
    "queue_length_max": ("jobs", "longest queue"),
    "queued_processors_mean": ("processors", "mean of processors waited for"),
    "wait_std": ("s", "standard deviation of the wait"),
    "fairness_users": ("", "fairness among users"),
    "unfairness": ("", "unfairness among jobs"),
}
"""The unit and the label of each metric, in the order in which results list them."""

CHECKPOINT_METRICS: dict[str, tuple[str, str]] = {
    "saved_work": ("processor-s", "work saved by checkpoints or done"),
    "lost_work": ("processor-s", "work lost since the last checkpoint"),
    "checkpoint_time": ("processor-s", "time in checkpoints"),
    "restart_time": ("processor-s", "time in restarts from checkpoints"),
}
"""The further metrics of runs with jobs that write checkpoints: sums over these jobs; other runs have none of them."""

INTERRUPTION_METRICS: dict[str, tuple[str, str]] = {
    "wait_to_start_mean": ("s", "mean wait to the first start"),
    "slowdown_to_start_mean": ("", "mean slowdown by the first start"),
    "bounded_slowdown_to_start_mean": ("", "mean bounded slowdown by the first start"),
}
"""The further metrics of runs with interrupted jobs: as if these had run without a break from their first start on."""

FURTHER_METRICS: dict[str, dict[str, tuple[str, str]]] = {
    "checkpoint_time": CHECKPOINT_METRICS,
    "interruptions": INTERRUPTION_METRICS,
}
"""The metrics that only some runs have, by the column of jobs that these runs have."""

GPU_METRICS: dict[str, tuple[str, str]] = {
    "gpu_utilisation": ("", "GPU utilisation"),
    "gpu_fragmentation": ("", "GPUs of no use to the mix"),
}
"""The further metrics of runs on nodes with GPUs; the second one is nan unless the devices are told apart."""

JOB_METRICS: dict[str, tuple[str, str]] = METRICS | CHECKPOINT_METRICS | INTERRUPTION_METRICS | GPU_METRICS
"""All metrics of jobs."""


MACHINE_METRICS: dict[str, tuple[str, str]] = {
    "makespan": ("time", "makespan"),
    "slr": ("", "SLR"),
    "slr_setup": ("", "SLR, setup and reconfiguration on the path"),
    "speedup": ("", "speedup over the best processor alone"),
    "efficiency": ("", "efficiency"),
    "utilisation": ("share", "busy processors"),
    "energy": ("energy", "energy"),
    "delay_mean": ("time", "mean time from ready to start"),
    "setup": ("time", "setup, all tasks"),
    "reconfiguration": ("time", "reconfiguration, all tasks"),
    "transfer": ("time", "transfer, all tasks"),
    "execution": ("time", "execution, all tasks"),
    "transfers": ("", "data objects moved"),
    "bytes": ("B", "bytes moved"),
    "lateness": ("time", "end after the planned end"),
    "decisions": ("", "decisions"),
    "decision_min": ("wall", "shortest decision"),
    "decision_mean": ("wall", "mean decision"),
    "decision_max": ("wall", "longest decision"),
}
"""The metrics of machines that run tasks, in order: unit and label. Units: ``time``: the machine's unit;
``energy``: watts times that; ``wall``: seconds of this computer; ``share``; ``B``: bytes."""


MORE_IS_BETTER = frozenset(
    {"utilisation", "throughput", "fairness_users", "saved_work", "speedup", "efficiency", "gpu_utilisation"}
)
"""The metrics of which more is better; of all others less is."""


def metrics_of(columns: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the metrics of runs whose table of jobs has these columns: unit and label of each.

    >>> [*metrics_of(["job", "interruptions"])][-1]
    'bounded_slowdown_to_start_mean'
    """
    found = dict(METRICS)
    for column, metrics in FURTHER_METRICS.items():
        found |= metrics if column in columns else {}
    return found


_VALUES = (
    *("wait", "turnaround", "slowdown", "bounded_slowdown", "per_processor_slowdown"),
    *("wait_to_start", "slowdown_to_start", "bounded_slowdown_to_start"),
)


def _floats(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def wait(submit: ArrayLike, start: ArrayLike) -> NDArray[np.float64]:
    """Return the seconds from submission to start.

    >>> wait([0, 5], [0, 12])
    array([0., 7.])
    """
    return _floats(start) - _floats(submit)


def turnaround(submit: ArrayLike, end: ArrayLike) -> NDArray[np.float64]:
    """Return the seconds from submission to end (also called response or flow time).

    >>> turnaround([0, 5], [10, 22])
    array([10., 17.])
    """
    return _floats(end) - _floats(submit)


def slowdown(wait: ArrayLike, run: ArrayLike) -> NDArray[np.float64]:
    """Return turnaround over run time, ``(wait + run) / run``; nan for jobs of zero run time.

    Parameters
    ----------
    wait, run
        seconds; for interrupted jobs the run that they needed, and the rest of the turnaround as wait: see
        :func:`job_values`

    >>> slowdown([0, 30, 5], [10, 10, 0])
    array([ 1.,  4., nan])
    """
    waited, ran = _floats(wait), _floats(run)
    found = np.full(np.broadcast(waited, ran).shape, np.nan)
    np.divide(waited + ran, ran, out=found, where=ran > 0)
    return found


def bounded_slowdown(wait: ArrayLike, run: ArrayLike, tau: float = TAU) -> NDArray[np.float64]:
    """Return ``max(1, (wait + run) / max(run, tau))``: a slowdown that short jobs do not dominate.

    Parameters
    ----------
    wait, run, tau
        seconds

    Source: D. G. Feitelson, "Metrics for parallel job scheduling and their convergence", JSSPP 2001.

    >>> bounded_slowdown([0, 30, 40], [1, 10, 0])
    array([1., 4., 4.])
    """
    waited, ran = _floats(wait), _floats(run)
    return np.maximum(1.0, (waited + ran) / np.maximum(ran, tau))


def per_processor_slowdown(
    wait: ArrayLike, run: ArrayLike, processors: ArrayLike, tau: float = TAU
) -> NDArray[np.float64]:
    """Return ``max(1, (wait + run) / (processors * max(run, tau)))``: waits of wide jobs weigh less.

    Parameters
    ----------
    wait, run, tau
        seconds
    processors
        of each job

    Source: D. Zotkin and P. J. Keleher, "Job-length estimation and performance in backfilling schedulers", HPDC 1999.

    >>> per_processor_slowdown([70, 70], [10, 10], [1, 4])
    array([8., 2.])
    """
    waited, ran = _floats(wait), _floats(run)
    return np.maximum(1.0, (waited + ran) / (_floats(processors) * np.maximum(ran, tau)))


def job_values(result: JobRecord, value: str, tau: float = TAU) -> NDArray[np.float64]:
    """Return one number per job: wait, turnaround, slowdown, bounded_slowdown, per_processor_slowdown or a column.

    Waits and turnarounds count from the instant at which a job was eligible, if the result has it. Slowdowns are
    turnarounds over the seconds that jobs needed: their runs without interruptions. ``wait_to_start``,
    ``slowdown_to_start`` and ``bounded_slowdown_to_start`` are as if jobs ran without a break from their start on.
    ``asked_there``, of brokered jobs: the time asked for, times the slowdown at the cluster where the job ran.

    Raises
    ------
    InputError
        if there is no such value or column of numbers

    >>> from simmodel.records import JobRecord
    >>> result = JobRecord(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]})
    >>> job_values(result, "turnaround"), job_values(result, "processors")
    (array([10., 30.]), array([4., 2.]))
    """
    return values_of(result.jobs, value, tau)


def values_of(jobs: Table, value: str, tau: float = TAU) -> NDArray[np.float64]:
    """Return one number per row of a table of jobs, as :func:`job_values`."""
    if value == "turnaround":
        return turnaround(since(jobs), jobs["end"])
    if value == "wait_to_start":
        return wait(since(jobs), jobs["start"])
    if value == "slowdown":
        return slowdown(delays(jobs), needed(jobs))
    if value == "slowdown_to_start":
        return slowdown(jobs["start"] - since(jobs), jobs["run"])
    if value == "bounded_slowdown":
        return bounded_slowdown(delays(jobs), needed(jobs), tau)
    if value == "bounded_slowdown_to_start":
        return bounded_slowdown(jobs["start"] - since(jobs), jobs["run"], tau)
    if value == "per_processor_slowdown":
        return per_processor_slowdown(delays(jobs), needed(jobs), jobs["processors"], tau)
    if value == "asked_there" and "asked" in jobs and "slowdown" in jobs:
        return np.asarray(jobs["asked"] * jobs["slowdown"], dtype=np.float64)
    if value not in jobs or jobs[value].dtype.kind not in "fiub":
        numeric = [name for name, column in jobs.items() if column.dtype.kind in "fiub"]
        raise unknown("value", value, dict.fromkeys([*_VALUES, *numeric]))
    return jobs[value].astype(np.float64)


def _seconds(cut: Cut, span: float, name: str) -> float:
    """Return a cut in seconds, given as seconds or as a share of the span such as ``"10%"``."""
    if cut is None:
        return 0.0
    if isinstance(cut, str):
        try:
            share = float(cut.removesuffix("%")) / 100 if cut.endswith("%") else float("nan")
        except ValueError:
            share = float("nan")
        if not 0 <= share < 1:
            raise InputError(f'must be seconds or a share such as "10%", got {cut!r}', place=name)
        return share * span
    if not cut >= 0:
        raise InputError(f"must be >= 0 s, got {cut!r}", place=name)
    return float(cut)


def window(result: JobRecord, warmup: Cut = None, cooldown: Cut = None) -> tuple[float, float]:
    """Return the interval of a run that metrics cover: its first and last instant, s.

    Without cuts it is the whole run. The warm-up is cut off after the first submission, the cool-down before the last:
    jobs submitted in between count, and averages over time are taken in between.

    Parameters
    ----------
    warmup, cooldown
        seconds, or a share of the time between first and last submission such as ``"10%"``; ``warmup``
        may be ``"mser-5"``: the jobs that this rule deletes from the series of waits [White 1997]

    >>> from simmodel.records import JobRecord
    >>> result = JobRecord(jobs={"submit": [0, 100], "start": [0, 100], "end": [10, 130], "processors": [1, 1]})
    >>> window(result), window(result, warmup=20, cooldown="10%")
    ((0.0, 130.0), (20.0, 90.0))
    """
    if (warmup is None and cooldown is None) or not len(result.jobs):
        return result.started, result.ended
    submit = result.jobs["submit"]
    first, last = float(submit.min()), float(submit.max())
    if warmup == "mser-5":
        counted = np.flatnonzero(result.counted)
        order = counted[np.argsort(submit[counted], kind="stable")]
        cut = mser(result.jobs["wait"][order])
        low = float(submit[order[cut]]) if cut < len(order) else last
        return cut_window(result, first, last, warmup, cooldown, low)
    return cut_window(result, first, last, warmup, cooldown)


class Lasting(Protocol):
    """Something with a first and a last instant, s."""

    @property
    def started(self) -> float:
        """The first instant."""
        ...

    @property
    def ended(self) -> float:
        """The last instant."""
        ...


def cut_window(
    run: Lasting, first: float, last: float, warmup: Cut, cooldown: Cut, low: float | None = None
) -> tuple[float, float]:
    """Return the interval that metrics cover, as of :func:`window`, given the first and the last submit time (s)."""
    if warmup is None and cooldown is None:
        return run.started, run.ended
    if low is None:
        low = first + _seconds(warmup, last - first, "warmup")
    high = last - _seconds(cooldown, last - first, "cooldown") if cooldown is not None else run.ended
    if low > high:
        raise InputError(f"warmup and cooldown leave nothing of {last - first:g} s of submissions")
    return low, high


def in_window(jobs: Table, low: float, high: float, *, cut: bool = False) -> NDArray[np.bool_]:
    """Return which jobs belong to an interval (s) of a run: those submitted within it.

    Unless it is ``cut``, also those that start in it: in a run that continues from a snapshot, the jobs that waited
    there.

    >>> in_window(Table({"submit": [0.0, 0.0, 5.0], "start": [1.0, 6.0, 9.0]}), 4, 9)
    array([False,  True,  True])
    """
    submit = jobs["submit"]
    inside: NDArray[np.bool_] = (submit >= low) & (submit <= high)
    return inside if cut else inside | (jobs["start"] >= low)


def summary(
    result: JobRecord,
    *,
    warmup: Cut = None,
    cooldown: Cut = None,
    tau: float = TAU,
    signals: GivenSignals | None = None,
) -> dict[str, Any]:
    """Return the metrics of a run by name: counts of jobs, then all of :data:`METRICS` in their units.

    ``utilisation`` is the busy share of the processors that were up, ``makespan`` the last end less the first
    submission, ``throughput`` the number of counted jobs that ended per second, ``queued_processors_mean`` the time
    average of the processors that waiting jobs ask for, ``fairness_users`` Jain's index of the users' mean bounded
    slowdowns, ``unfairness`` the share of the work done that an equal division would have given to other jobs (over
    the whole run). Undefined metrics are nan.

    ``never_started``, if any job left the queue without a start, counts them by why: cancelled while they waited, would
    have started (``withdrawn``: their turn came before their recorded cancellation), or after a job that ended
    otherwise than they need.

    If jobs write checkpoints, :data:`~simmodel.metrics.batch.CHECKPOINT_METRICS` follow: over all jobs that wrote some
    in the window, in processor seconds at the speed of their run times. If jobs were interrupted,
    :data:`~simmodel.metrics.batch.INTERRUPTION_METRICS` do. On nodes with GPUs
    :data:`~simmodel.metrics.batch.GPU_METRICS` do.

    Parameters
    ----------
    warmup, cooldown
        the cuts, as of :func:`window`
    tau
        the bound of the bounded slowdowns, s
    signals
        adds ``energy`` and of it ``energy_idle``, what nobody holds (kWh), with a supply also ``energy_nodes``, what
        the nodes draw, and ``costs`` by each of these signals

    >>> from simmodel.records import JobRecord
    >>> nan = float("nan")
    >>> jobs = {"submit": [0, 0, 5], "start": [0, 10, nan], "end": [10, 30, nan], "processors": [4, 2, 9]}
    >>> metrics = summary(JobRecord(jobs=jobs, processors=4))
    >>> metrics["jobs"], metrics["counted"], metrics["status"]
    (3, 2, {'completed': 2, 'waiting': 1})
    >>> metrics["wait_mean"], metrics["makespan"], metrics["bounded_slowdown_mean"]
    (5.0, 30.0, 1.25)
    """
    jobs = result.jobs
    low, high = window(result, warmup, cooldown)
    submit = jobs["submit"]
    inside = in_window(jobs, low, high, cut=warmup is not None or cooldown is not None)
    counted = result.counted & inside
    found: dict[str, Any] = {
        "jobs": len(jobs),
        "counted": int(counted.sum()),
        "outside_window": int((~inside).sum()),
        "status": result.status.counts(),
        "interrupted": int(interrupted(jobs).sum()),
    }
    waits = jobs["wait"][counted]
    bounded = job_values(result, "bounded_slowdown", tau)[counted]
    ends = jobs["end"]
    ended_inside = np.isfinite(ends) & (ends >= low) & (ends <= high) & result.counted
    queue, busy = result.queue_length(), result.busy()
    capacity = result.capacity().integral(low, high)
    values = {
        "wait_mean": _mean(waits),
        "wait_median": _percentile(waits, 50),
        "wait_p95": _percentile(waits, 95),
        "wait_max": float(waits.max()) if len(waits) else float("nan"),
        "turnaround_mean": _mean(job_values(result, "turnaround")[counted]),
        "slowdown_mean": _mean(job_values(result, "slowdown")[counted]),
        "bounded_slowdown_mean": _mean(bounded),
        "bounded_slowdown_median": _percentile(bounded, 50),
        "bounded_slowdown_p95": _percentile(bounded, 95),
        "per_processor_slowdown_mean": _mean(job_values(result, "per_processor_slowdown", tau)[counted]),
        "utilisation": busy.integral(low, high) / capacity if capacity else float("nan"),
        "makespan": float(np.nanmax(ends) - submit.min()) if np.isfinite(ends).any() else float("nan"),
        "throughput": float(ended_inside.sum() / (high - low)) if high > low else float("nan"),
        "queue_length_mean": queue.mean(low, high),
        "queue_length_max": queue.max(),
        "queued_processors_mean": result.queued_processors().mean(low, high),
        "wait_std": float(waits.std()) if len(waits) else float("nan"),
        "fairness_users": _among_users(result, bounded, counted),
        "unfairness": unfairness(result, busy),
    }
    if unstarted := never_started(jobs):
        found["never_started"] = unstarted
    if "checkpoint_time" in jobs:
        for name in CHECKPOINT_METRICS:
            found[name] = float(np.nansum((jobs[name] * jobs["processors"])[inside]))
    if "interruptions" in jobs:
        for name in INTERRUPTION_METRICS:
            found[name] = _mean(job_values(result, name.removesuffix("_mean"), tau)[counted])
    if signals is not None:
        from simmodel.metrics.power_and_energy import energy_metrics

        found |= energy_metrics(result, signals, low, high)
    if has_gpus(result):
        from simmodel.metrics.devices import gpu_metrics

        values |= gpu_metrics(result, low, high)
    return ByName("metric", {**found, **{name: values[name] for name in (*METRICS, *GPU_METRICS) if name in values}})


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not nan; nan if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _percentile(values: NDArray[np.float64], percent: float) -> float:
    return float(np.percentile(values, percent)) if len(values) else float("nan")


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


def _among_users(result: JobRecord, values: NDArray[np.float64], counted: NDArray[np.bool_]) -> float:
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

    At each instant the busy processors are divided equally among the jobs in the system (waiting or running); what a
    job received less the sum of its shares is its discrimination. Over all jobs it adds up to 0. nan for jobs that
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
    submit = since(jobs)
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
