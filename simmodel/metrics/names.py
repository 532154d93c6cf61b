"""The metrics of batch systems by name, and the types and defaults of their options."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["CHECKPOINT_METRICS", "JOB_METRICS", "METRICS", "TAU", "Cut"]

TAU = 10.0
"""Default bound of bounded slowdowns, s."""
Cut: TypeAlias = float | str | None
"""A cut at an end of a run: seconds, a share such as ``"10%"``, or a rule (``"mser-5"``)."""

METRICS = {
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

CHECKPOINT_METRICS = {
    "saved_work": ("processor-s", "work saved by checkpoints or done"),
    "lost_work": ("processor-s", "work lost since the last checkpoint"),
    "checkpoint_time": ("processor-s", "time in checkpoints"),
    "restart_time": ("processor-s", "time in restarts from checkpoints"),
}
"""The further metrics of runs with jobs that write checkpoints: sums over these jobs; other runs have none of them."""

JOB_METRICS = METRICS | CHECKPOINT_METRICS
"""All of them."""
