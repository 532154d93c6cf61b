"""What is recorded of a case: digests of what is exact, and a few values for people."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.lock.api import named

Figure = dict[str, Any]

JOBS = [
    "job",
    "submit",
    "eligible",
    "start",
    "end",
    "processors",
    "status",
    "requested",
    "run",
    "wait",
    "attempts",
    "reason",
    "started_by",
    "origin",
    "destination",
    "asked",
    "slowdown",
    "handed",
    "expected_start",
    "expected_end",
]
RUNS = ["job", "attempt", "start", "end", "place", "processors", "status", "nodes"]
CHANGES = ["time", "place", "cause", "processors", "down"]
EVENTS = ["time", "event", "job", "place", "free", "waiting", "running"]
TASKS = [
    "task",
    "processor",
    "ready",
    "setup_start",
    "setup_end",
    "reconfiguration_end",
    "transfer_start",
    "transfer_end",
    "start",
    "end",
    "submit",
    "assigned",
    "taken",
    "set",
    "status",
    "attempts",
    "expected_run",
    "run_best",
    "setup_core",
    "family",
    "pool",
    "cores",
]
TRANSFERS = ["object", "bytes", "source", "destination", "start", "end", "task", "cause", "count"]
CPU = ["core", "task", "what", "start", "end"]
STOPPED = ["task", "processor", "taken", "end"]
PLAN = ["task", "processor", "start", "end"]

JOB_METRICS = [
    "jobs",
    "counted",
    "outside_window",
    "status",
    "interrupted",
    "wait_mean",
    "wait_median",
    "wait_p95",
    "wait_max",
    "turnaround_mean",
    "slowdown_mean",
    "bounded_slowdown_mean",
    "bounded_slowdown_median",
    "bounded_slowdown_p95",
    "per_processor_slowdown_mean",
    "utilisation",
    "makespan",
    "throughput",
    "queue_length_mean",
    "queue_length_max",
    "queued_processors_mean",
    "wait_std",
    "fairness_users",
    "unfairness",
    "energy",
]
TASK_METRICS = [
    "tasks",
    "sets",
    "processors",
    "status",
    "makespan",
    "slr",
    "slr_setup",
    "speedup",
    "efficiency",
    "utilisation",
    "energy",
    "delay_mean",
    "setup",
    "reconfiguration",
    "transfer",
    "execution",
    "transfers",
    "bytes",
    "lateness",
    "decisions",
    "best_single",
    "phases",
    "peaks",
]


def exact(value: Any) -> str:
    """Return a value as text: the same for equal numbers, whatever their type."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if math.isfinite(value) and value == int(value):
            return str(int(value))
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{exact(key)}:{exact(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ",".join(map(exact, value)) + ")"
    return str(value)


def rounded(value: Any) -> Any:
    """Return a value with its floats rounded to 9 significant digits."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        value = 0.0 if abs(value) < 1e-12 else float(f"{value:.9g}")
        return int(value) if value == int(value) else value
    if isinstance(value, Mapping):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return value


def digest(lines: Iterable[str]) -> str:
    """Return a short digest of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def columns(table: Any, names: Sequence[str], *, by: Any = exact) -> list[str]:
    """Return one line for each column that the table has."""
    found = [] if table is None else [(name, named(table, name)) for name in names]
    return [f"{name} {'|'.join(str(by(each)) for each in column)}" for name, column in found if column is not None]


def measures(values: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the digest of metrics, rounded."""
    return digest(f"{name} {exact(rounded(named(values, name)))}" for name in names)


def of_jobs(result: Any, *, runs: bool = True, more: Iterable[str] = ()) -> Figure:
    """Return the figure of a run of jobs."""
    metrics = result.metrics()
    lines = columns(result.jobs, JOBS)
    if runs:
        lines += columns(result.runs, RUNS)
    lines += columns(result.changes, CHANGES) + columns(result.events, EVENTS) + list(more)
    for name, each in (getattr(result, "clusters", None) or {}).items():
        lines += [name, *columns(each.jobs, JOBS)]
    if result.choices is not None:
        lines += columns(result.choices, ("time", "policy", "chosen"))
        lines += columns(result.choices, ("score",), by=rounded)
    return {
        "schedule": digest(lines),
        "metrics": measures(metrics, JOB_METRICS),
        "status": dict(sorted(named(metrics, "status").items())),
        "makespan": rounded(named(metrics, "makespan")),
        "mean wait": rounded(named(metrics, "wait_mean")),
    }


def of_tasks(result: Any) -> Figure:
    """Return the figure of a run of tasks."""
    metrics = result.metrics()
    lines = columns(result.tasks, TASKS) + columns(result.transfers, TRANSFERS)
    lines += columns(result.cpu_phases, CPU) + columns(result.stopped, STOPPED) + columns(result.plan, PLAN)
    return {
        "schedule": digest(lines),
        "metrics": measures(metrics, TASK_METRICS),
        "status": dict(sorted(named(metrics, "status").items())),
        "makespan": rounded(named(metrics, "makespan")),
        "transfers": rounded(named(metrics, "transfers")),
    }


def of_whatif(found: Any) -> Figure:
    """Return the figure of a what-if: what each policy starts, its measures and scores, and the best."""
    lines = []
    for outcome in found:
        lines.append(f"{outcome.name} {outcome.status} {outcome.counted}")
        lines.append(exact([rounded(outcome.scores), rounded(outcome.measures), outcome.unstarted]))
        for sample in outcome.samples:
            if sample is not None:
                lines.append(exact([[tuple(each) for each in sample.starts], [tuple(each) for each in sample.now]]))
                lines.append(exact([sample.ended, sample.unstarted, rounded(sample.measures)]))
                lines += columns(sample.jobs, [*JOBS, "task", "processor", "waiting"])
    return {
        "outcomes": digest(lines),
        "best": None if found.best is None else found.best.name,
        "scores": {outcome.name: rounded(outcome.score) for outcome in found},
    }


def of_values(**values: Any) -> Figure:
    """Return the figure of any values, rounded."""
    return {"values": digest(f"{name} {exact(rounded(each))}" for name, each in values.items())}


def of_rows(rows: Sequence[Sequence[Any]]) -> Figure:
    """Return the figure of rows, exact."""
    return {"rows": len(rows), "digest": digest(exact(row) for row in rows)}
