"""The metrics of a run as a short text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.foundation.display import figures, text_table
from simmodel.foundation.units import seconds_in
from simmodel.metrics.batch import CHECKPOINT_METRICS, GPU_METRICS, JOB_METRICS, METRICS, TAU, Cut, summary

if TYPE_CHECKING:
    from simmodel.platform.signals import GivenSignals
    from simmodel.records.job_record import JobRecord
    from simmodel.work.workload import Report

__all__ = ["duration", "figures", "in_seconds", "lines_of", "metric_rows", "metric_text", "summary_text"]

_SHARES = ("utilisation", "unfairness", *GPU_METRICS)


def duration(seconds: float, *, days: int = 1) -> str:
    """Return seconds as text, in at most two units, hours up to some days.

    >>> [duration(s) for s in (0, 3.25, 75, 7384, 200_000, float("nan"))]
    ['0 s', '3.25 s', '1 min 15 s', '2 h 3 min', '2 d 7 h', '-']
    >>> duration(87_692), duration(87_692, days=3)
    ('1 d', '24 h 21 min')
    """
    if not math.isfinite(seconds):
        return "-"
    if abs(seconds) < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for size, name, smaller, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size * (days if name == "d" else 1):
            rest = whole % size // smaller
            return f"{whole // size:,} {name}" + (f" {rest} {small}" if rest else "")
    return f"{seconds:.3g} s"


def metric_text(name: str, value: float) -> str:
    """Return one metric with its unit as text.

    >>> metric_text("utilisation", 0.7152), metric_text("wait_mean", 5000), metric_text("throughput", 0.01)
    ('71.5 %', '1 h 23 min', '864 jobs/d')
    """
    if not math.isfinite(value):
        return "-"
    if name in _SHARES:
        return f"{100 * value:.1f} %"
    unit = JOB_METRICS[name][0]
    if unit == "s":
        return duration(value)
    if unit == "jobs/s":
        return f"{figures(86400 * value, 4)} jobs/d"
    if unit == "processor-s":
        return f"{value:,.0f} processor seconds"
    return f"{figures(value)} {unit}".strip()


def metric_rows(metrics: dict[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of label and text: the jobs, then each metric that is not nan."""
    states = ", ".join(f"{count:,} {status}" for status, count in metrics["status"].items())
    rows = [("jobs", f"{metrics['jobs']:,} ({states})" if states else "0")]
    if metrics["counted"] != metrics["jobs"]:
        rows.append(("jobs counted below", f"{metrics['counted']:,}"))
    if "never_started" in metrics:
        rows.append(("jobs never started", ", ".join(f"{n:,} {why}" for why, n in metrics["never_started"].items())))
    if metrics["interrupted"]:
        rows.append(("jobs interrupted", f"{metrics['interrupted']:,}"))
    rows += [(METRICS[name][1], metric_text(name, metrics[name])) for name in METRICS if math.isfinite(metrics[name])]
    kept = CHECKPOINT_METRICS if "checkpoint_time" in metrics else ()
    rows += [(CHECKPOINT_METRICS[name][1], metric_text(name, metrics[name])) for name in kept]
    if metrics.get("energy") == 0:
        rows.append(("energy", "not known: nothing on the platform has watts"))
    elif "energy" in metrics:
        rows.append(("energy", f"{figures(metrics['energy'])} kWh, {figures(metrics['energy_idle'])} kWh of it idle"))
        rows += [(name, figures(amount)) for name, amount in metrics["costs"].items()]
    of_gpus = [name for name in GPU_METRICS if math.isfinite(metrics.get(name, math.nan))]
    rows += [(GPU_METRICS[name][1], metric_text(name, metrics[name])) for name in of_gpus]
    return rows


def summary_text(
    result: JobRecord,
    *,
    warmup: Cut = None,
    cooldown: Cut = None,
    tau: float = TAU,
    signals: GivenSignals | None = None,
) -> str:
    """Return the metrics of a run as a table of text; options as of :func:`~simmodel.metrics.batch.summary`.

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> print(summary_text(JobRecord(name="two jobs", jobs=jobs, processors=4)))
    two jobs on 4 processors
      jobs         ...
    """
    metrics = summary(result, warmup=warmup, cooldown=cooldown, tau=tau, signals=signals)
    return lines_of(result, in_seconds(result, metrics))


def in_seconds(result: JobRecord, metrics: dict[str, Any]) -> dict[str, Any]:
    """Return metrics of a result with their times in seconds, whatever the unit of the result is."""
    scale = seconds_in(result.time_unit)
    power = {"s": 1, "processor-s": 1, "jobs/s": -1}
    units = {name: power.get(unit, 0) for name, (unit, _) in {**JOB_METRICS, **CHECKPOINT_METRICS}.items()}
    return {name: value * scale ** units[name] if units.get(name) else value for name, value in metrics.items()}


class Described(Protocol):
    """A result: the fields that the text shows of it besides its metrics."""

    name: str
    processors: int
    decisions: dict[str, float]
    report: Report


def lines_of(result: Described, metrics: dict[str, Any]) -> str:
    """Return these metrics of a result as a table of text."""
    rows = metric_rows(metrics)
    if result.decisions.get("count"):
        count, mean = result.decisions["count"], result.decisions.get("mean", math.nan)
        rows.append(("decisions of the policy", f"{count:,.0f}, {figures(1e6 * mean)} microseconds each"))
    lines = [f"{result.name} on {result.processors:,} processors", *text_table(rows, left=2, indent=2)]
    return "\n".join(lines + [f"  {line}" for line in result.report.lines()])
