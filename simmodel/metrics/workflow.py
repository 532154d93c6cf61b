"""Metrics of machines that run tasks, and their text: makespan, SLR, speedup, efficiency, executions against plans.

Times are in the machine's time unit. The schedule length ratio (SLR) is the makespan over the longest path of the task
graph, each task with its shortest run time on any processor, without communication [H. Topcuoglu, S. Hariri,
M.-Y. Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing", TPDS 13(3), 2002].
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.display import figures, text_table
from simmodel.foundation.errors import ByName
from simmodel.foundation.units import show_quantity
from simmodel.metrics.batch import MACHINE_METRICS
from simmodel.metrics.critical import critical_shares
from simmodel.metrics.processors import busy_seconds, energy
from simmodel.metrics.report import duration
from simmodel.records.task_record import PHASES
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.task_record import TaskRecord

__all__ = [
    "against_recorded",
    "best_single",
    "by_set",
    "longest_path",
    "machine_rows",
    "machine_text",
    "makespan",
    "number_text",
    "planned",
    "setup_costs",
    "slr",
    "speedup",
    "summary",
    "summary_text",
    "time_text",
]


def makespan(result: TaskRecord) -> float:
    """Return the time from the first submission to the last end; nan if a task is not done.

    >>> from simmodel.metrics._examples import two_kinds
    >>> makespan(two_kinds())
    7.0
    """
    if not len(result.tasks):
        return 0.0
    return float(result.tasks["end"].max() - result.tasks["submit"].min())


def longest_path(result: TaskRecord, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the earliest end of each task if only its parents and its arrival delay it.

    Parameters
    ----------
    seconds
        the duration of each task, in order of ``result.tasks``

    Returns
    -------
    array
        instants since the first submission; the maximum is the length of the longest path

    >>> from simmodel.metrics._examples import two_kinds
    >>> longest_path(two_kinds(), np.array([2.0, 3.0]))
    array([2., 5.])
    """
    submit = result.tasks["submit"]
    start: list[float] = (submit - submit.min() if len(submit) else submit).tolist()
    took: list[float] = seconds.tolist()
    ends = [begin + took[i] for i, begin in enumerate(start)]
    edges = result.edges
    for parent, child in zip(edges["parent"].tolist(), edges["child"].tolist(), strict=True):
        reached = ends[parent] + took[child]
        if reached > ends[child]:
            ends[child] = reached
    return np.array(ends)


def _over(a: float, b: float) -> float:
    return a / b if b > 0 else float("nan")


def _length(result: TaskRecord, seconds: NDArray[np.float64]) -> float:
    return float(longest_path(result, seconds).max(initial=0.0))


def setup_costs(result: TaskRecord) -> NDArray[np.float64]:
    """Return expected seconds with setup and reconfiguration, tasks x kinds of processors; ``inf``: cannot run there.

    On a kind that reconfigures, a task counts the reconfiguration time of its family, as its task set has it, else the
    middle of the kind's interval.
    """
    costs = result.kind_runs.copy()
    family = result.tasks["family"]
    for k, kind in enumerate(result.spec.processors):
        costs[:, k] += kind.setup
        middle = sum(kind.reconfiguration) / 2
        if not kind.reconfiguration[1]:
            continue
        for i, first in enumerate(result.set_table["first"].tolist()):
            rows = slice(first, first + int(result.set_table["tasks"][i]))
            said = result.family_seconds[i] if i < len(result.family_seconds) else {}
            names, of = np.unique(family[rows], return_inverse=True)
            each = np.array([said.get(name, middle) for name in names.tolist()])
            costs[rows, k] += each[of.reshape(-1)]
    return costs


def slr(result: TaskRecord, *, setup: bool = False) -> float:
    """Return the makespan over the longest path through the task graph, without communication.

    Parameters
    ----------
    setup
        count setup and reconfiguration on the path: the minimum over processors of setup + reconfiguration + run,
        instead of that of run. Then the ratio leaves out setup that no policy can avoid. It is not a lower bound if a
        family stays loaded

    >>> from simmodel.metrics._examples import two_kinds
    >>> slr(two_kinds()), slr(two_kinds(), setup=True)
    (1.75, 1.1666666666666667)
    """
    if not setup:
        return _over(makespan(result), _length(result, result.tasks["run_best"].astype(np.float64)))
    costs = setup_costs(result)
    return _over(makespan(result), _length(result, costs.min(axis=1)) if len(costs) else 0.0)


def best_single(result: TaskRecord) -> tuple[str, float]:
    """Return the kind of processor that would run all tasks one after another in the shortest time, and that time.

    Setup and transfers are left out. If no kind can run all tasks: an empty name and nan.

    >>> from simmodel.metrics._examples import two_kinds
    >>> best_single(two_kinds())
    ('gpu', 4.0)
    """
    sums = result.kind_runs.sum(axis=0)
    able = np.flatnonzero(np.isfinite(sums))
    if not len(able) or not len(result.tasks):
        return "", float("nan")
    best = able[np.argmin(sums[able])]
    return result.spec.processors[best].name, float(sums[best])


def speedup(result: TaskRecord) -> float:
    """Return the time of the best single processor that can run all tasks over the makespan; nan if none can.

    >>> from simmodel.metrics._examples import two_kinds
    >>> round(speedup(two_kinds()), 3)
    0.571
    """
    return _over(best_single(result)[1], makespan(result))


def summary(result: TaskRecord) -> dict[str, Any]:
    """Return the metrics of a run by name: counts, the numbers of :data:`MACHINE_METRICS`, and totals by part.

    The efficiency is the speedup over the number of processors; each core of a processor counts.

    Returns
    -------
    dict
        ``tasks, sets, processors, status`` (counts), the numbers (nan: unknown, or the run has not ended),
        ``best_single`` (a kind of processor), ``phases`` (time of all tasks by phase) and ``peaks`` (bytes by pool)

    >>> from simmodel.metrics._examples import two_kinds
    >>> found = summary(two_kinds())
    >>> found["makespan"], found["setup"], found["status"], found["peaks"]
    (7.0, 1.0, {'done': 2}, {'ram': 10.0, 'hbm': 10.0})
    """
    tasks, count = result.tasks, len(result.processors)
    took, ratio = makespan(result), speedup(result)
    start, end = result.spans
    totals = dict(zip(PHASES, np.nansum(end - start, axis=1).tolist(), strict=True))
    span = result.ended - result.started
    delay = tasks["start"] - tasks["ready"]
    delay = delay[np.isfinite(delay)]
    decided = result.decisions
    found = {
        "tasks": len(tasks),
        "sets": len(result.set_table),
        "processors": count,
        "status": dict(Counter(tasks["status"].tolist()).most_common()),
        "makespan": took,
        "slr": slr(result),
        "slr_setup": slr(result, setup=True),
        "speedup": ratio,
        "efficiency": ratio / float(result.processors["cores"].sum()),
        "utilisation": _over(float(busy_seconds(result).sum()), span * count),
        "energy": energy(result).total,
        "delay_mean": float(delay.mean()) if len(delay) else float("nan"),
        **{name: totals[name] for name in ("setup", "reconfiguration", "transfer", "execution")},
        "transfers": int(result.transfers["count"].sum()),
        "bytes": float(result.transfers["bytes"].sum()),
        "lateness": _lateness(result),
        "decisions": decided.get("count", 0),
        **{f"decision_{name}": decided.get(name, float("nan")) for name in ("min", "mean", "max")},
        "best_single": best_single(result)[0],
        "phases": totals,
        "peaks": dict(result.peaks),
    }
    return ByName("metric", found)


def by_set(result: TaskRecord) -> Table:
    """Return one row per task set: ``set, tasks, submit, end, makespan, slr``.

    The makespan of a set is the time from its submission to the end of its last task; the SLR is as of :func:`slr`.

    >>> from simmodel.metrics._examples import two_kinds
    >>> by_set(two_kinds())["slr"]
    array([1.75])
    """
    sets, tasks = result.set_table, result.tasks
    ends = longest_path(result, tasks["run_best"].astype(np.float64)) + tasks["submit"].min(initial=np.inf)
    rows = []
    for first, count in zip(sets["first"].tolist(), sets["tasks"].tolist(), strict=True):
        here = slice(int(first), int(first) + int(count))
        submit = float(tasks["submit"][here].min(initial=np.inf)) if count else 0.0
        end = float(tasks["end"][here].max()) if count else 0.0
        rows.append((submit, end, end - submit, _over(end - submit, float(ends[here].max(initial=submit)) - submit)))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    names = ("submit", "end", "makespan", "slr")
    return Table({"set": sets["set"], "tasks": sets["tasks"], **dict(zip(names, columns, strict=True))})


def planned(result: TaskRecord) -> Table:
    """Return planned and actual executions, one row per planned task, in order of the plan.

    Columns: ``task, planned_processor, processor, planned_start, start, planned_end, end, lateness`` (end - planned
    end). There are no rows if the policy made no plan. Tasks of one id are matched in order.
    """
    plan = result.plan
    if plan is None:
        plan = Table({name: np.zeros(0) for name in ("task", "processor", "start", "end")})
    rows: dict[Any, list[int]] = {}
    for row, task in reversed(list(enumerate(result.tasks["task"].tolist()))):
        rows.setdefault(str(task), []).append(row)
    found = np.array([rows[str(task)].pop() for task in plan["task"].tolist()], dtype=np.int64)
    return Table(
        {
            "task": result.tasks["task"][found],
            "planned_processor": plan["processor"],
            "processor": result.tasks["processor"][found],
            "planned_start": plan["start"],
            "start": result.tasks["start"][found],
            "planned_end": plan["end"],
            "end": result.tasks["end"][found],
            "lateness": result.tasks["end"][found] - plan["end"],
        }
    )


def _lateness(result: TaskRecord) -> float:
    """Return the end of the last planned task less its planned end; nan without a plan."""
    table = planned(result)
    return float(table["end"].max() - table["planned_end"].max()) if len(table) else float("nan")


def against_recorded(result: TaskRecord) -> Table:
    """Return recorded and simulated executions, one row per task with a recorded execution.

    Columns: ``task, recorded_start, start, recorded_end, end, recorded_run, run, difference`` (end - recorded end),
    all instants since the start of the workflow.
    """
    record = result.recorded
    if record is None:
        record = Table({"row": np.zeros(0, dtype=np.int64), "start": np.zeros(0), "end": np.zeros(0)})
    row = record["row"].astype(np.int64)
    sets = result.set_table
    first = sets["first"].astype(np.int64)
    begins = np.array(
        [result.tasks["submit"][i : i + int(n)].min() if n else 0.0 for i, n in zip(first, sets["tasks"], strict=True)],
        dtype=np.float64,
    )
    of = np.searchsorted(first, row, side="right") - 1
    since = begins[of] if len(row) else np.zeros(0)
    start, end = result.tasks["start"][row] - since, result.tasks["end"][row] - since
    return Table(
        {
            "task": result.tasks["task"][row],
            "recorded_start": record["start"],
            "start": start,
            "recorded_end": record["end"],
            "end": end,
            "recorded_run": record["end"] - record["start"],
            "run": end - start,
            "difference": end - record["end"],
        }
    )


_LATER = ("decisions", "decision_min", "decision_mean", "decision_max", "bytes")  # on a line with others


def number_text(value: float) -> str:
    """Return a number as text: four figures, with thousands separators.

    >>> [number_text(value) for value in (0.123456, 12345.678, 3.0, float("nan"))]
    ['0.1235', '12,346', '3', '-']
    """
    if not math.isfinite(value):
        return "-"
    return figures(value, 4)


def time_text(value: float, unit: str) -> str:
    """Return a time as text: seconds as hours and minutes, other units by name, abstract ones as a number.

    >>> time_text(7384, "s"), time_text(7384, "ms"), time_text(7384, "a unit of time")
    ('2 h 3 min', '7,384 ms', '7,384')
    """
    if unit == "s" or not math.isfinite(value):
        return duration(value)
    return number_text(value) if " " in unit else f"{number_text(value)} {unit}"


def machine_text(name: str, value: float, unit: str = "s") -> str:
    """Return one of :data:`~simmodel.metrics.batch.MACHINE_METRICS` with its unit as text.

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
        return duration(value) if value >= 1 else f"{figures(1e6 * value)} microseconds"
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
        times = [figures(1e6 * found[f"decision_{name}"]) for name in ("min", "mean", "max")]
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
