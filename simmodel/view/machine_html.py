"""Results of machines in notebooks: the metrics as a table and the busy processors as a sparkline."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from simmodel.metrics.workflow_report import machine_rows, time_text
from simmodel.view.html import sparkline

if TYPE_CHECKING:
    from simmodel.records.task_record import TaskRecord

__all__ = ["machine_html"]


def machine_html(result: TaskRecord) -> str:
    """Return a result as HTML: its name, the busy processors over time, and the metrics.

    >>> from simmodel.metrics._examples import two_kinds
    >>> machine_html(two_kinds()).startswith("<div><b>example</b>: 2 tasks on machine")
    True
    """
    count = len(result.processors)
    rows = "".join(
        f"<tr><td style='text-align:left'>{html.escape(label)}</td>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for label, text in machine_rows(result)
    )
    span = time_text(result.ended - result.started, result.time_unit)
    label = f"processors that execute, over {span}, 0 to {count}"
    report = "".join(f"<div>{html.escape(line)}</div>" for line in result.report.lines())
    return (
        f"<div><b>{html.escape(result.name)}</b>: {len(result.tasks):,} tasks on {html.escape(result.spec.name)} "
        f"({count} processors)</div><div>{sparkline(result.busy(), count, label)}</div>"
        f"<div><small>{html.escape(label)}</small></div><table>{rows}</table>{report}"
    )
