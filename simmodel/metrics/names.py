"""The metrics of batch systems and of machines by name, and the types and defaults of their options."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["CHECKPOINT_METRICS", "JOB_METRICS", "MACHINE_METRICS", "METRICS", "TAU", "Cut"]

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
"""All metrics of jobs."""

MACHINE_METRICS = {
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
