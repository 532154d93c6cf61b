"""The metrics of a machine's run as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from simmodel.foundation.display import text_table
from simmodel.foundation.units import show_quantity
from simmodel.metrics.critical import critical_shares
from simmodel.metrics.report import duration
from simmodel.metrics.workflow import MACHINE_METRICS, by_set, summary

if TYPE_CHECKING:
    from simmodel.records.task_record import TaskRecord

__all__ = ["machine_rows", "machine_text", "number_text", "summary_text", "time_text"]

_LATER = ("decisions", "decision_min", "decision_mean", "decision_max", "bytes")  # on a line with others


def number_text(value: float) -> str:
    """Return a number as text: four figures, with thousands separators.

    >>> [number_text(value) for value in (0.123456, 12345.678, 3.0, float("nan"))]
    ['0.1235', '12,346', '3', '-']
    """
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def time_text(value: float, unit: str) -> str:
    """Return a time as text: seconds as hours and minutes, other units by name, abstract ones as a number.

    >>> time_text(7384, "s"), time_text(7384, "ms"), time_text(7384, "a unit of time")
    ('2 h 3 min', '7,384 ms', '7,384')
    """
    if unit == "s" or not math.isfinite(value):
        return duration(value)
    return number_text(value) if " " in unit else f"{number_text(value)} {unit}"


def machine_text(name: str, value: float, unit: str = "s") -> str:
    """Return one of :data:`~simmodel.metrics.workflow.MACHINE_METRICS` with its unit as text.

    Parameters
    ----------
    name, value
        of the metric
    unit
        the time unit of the machine

    >>> machine_text("makespan", 75, "s"), machine_text("slr", 1.23456), machine_text("utilisation", 0.5)
    ('1 min 15 s', '1.235', '50.0 %')
    """
    kind = MACHINE_METRICS[name][0]
    if not math.isfinite(value):
        return "-"
    if kind == "time":
        return time_text(value, unit)
    if kind == "wall":
        return duration(value) if value >= 1 else f"{1e6 * value:.3g} microseconds"
    if kind == "share":
        return f"{100 * value:.1f} %"
    if kind == "energy":
        joules = unit == "s"
        return show_quantity(float(f"{value:.4g}"), "W").replace("W", "J") if joules else number_text(value)
    if kind == "B":
        return show_quantity(float(f"{value:.4g}"), "B")
    return number_text(value)


def machine_rows(result: TaskRecord, metrics: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return pairs of label and text: the tasks, each metric that has a value, and totals by part."""
    found = summary(result) if metrics is None else metrics
    unit = result.time_unit
    states = ", ".join(f"{count:,} {status}" for status, count in found["status"].items())
    rows = [("tasks", f"{found['tasks']:,} ({states})" if states else "0")]
    for name, (_, label) in MACHINE_METRICS.items():
        if name in _LATER or not math.isfinite(found[name]):
            continue
        text = machine_text(name, found[name], unit)
        if name == "transfers":
            text += f", {machine_text('bytes', found['bytes'])}"
        if name == "speedup":
            text += f" ({found['best_single']})"
        if found[name] or name not in ("energy", "setup", "reconfiguration", "transfer", "transfers"):
            rows.append((label, text))
    if found["tasks"] and not found["best_single"]:
        rows.append((MACHINE_METRICS["speedup"][1], "-, no processor alone can run all tasks"))
    peaks = [f"{pool} {show_quantity(float(f'{most:.4g}'), 'B')}" for pool, most in found["peaks"].items() if most]
    if peaks:
        rows.append(("peak of memory", ", ".join(peaks)))
    shares = critical_shares(result)
    total = sum(shares.values())
    if total > 0:
        rows.append(("critical path", ", ".join(f"{100 * s / total:.0f} % {phase}" for phase, s in shares.items())))
    if found["decisions"]:
        times = [f"{1e6 * found[f'decision_{name}']:.3g}" for name in ("min", "mean", "max")]
        rows.append(("decisions", f"{found['decisions']:,.0f}, {' / '.join(times)} microseconds (min / mean / max)"))
    return rows


def summary_text(result: TaskRecord) -> str:
    """Return the metrics of a run as a table of text, with a line per task set if there are several.

    >>> from simmodel.metrics._examples import two_kinds
    >>> print("\\n".join(summary_text(two_kinds()).splitlines()[:4]))
    example on machine: 2 processors
      tasks                                       2 (2 done)
      makespan                                    7 s
      SLR                                         1.75
    """
    rows = machine_rows(result)
    count = len(result.processors)
    lines = [f"{result.name} on {result.spec.name}: {count} processor{'' if count == 1 else 's'}"]
    lines += text_table(rows, left=2, indent=2)
    sets = by_set(result)
    if 1 < len(sets) <= 20:
        lines.append("")
        names = max(len(str(name)) for name in sets["set"])
        for row in sets.rows():
            took = time_text(row["makespan"], result.time_unit)
            lines.append(f"  {row['set']:<{names}}  makespan {took}, SLR {number_text(row['slr'])}")
    return "\n".join(lines + [f"  {line}" for line in result.report.lines()])
