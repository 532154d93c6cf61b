"""Results of machines in notebooks: the metrics as a table and the busy processors as a sparkline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.display import counted
from simmodel.metrics.workflow_report import machine_rows, time_text
from simmodel.view.html import result_page, sparkline

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
    span = time_text(result.ended - result.started, result.time_unit)
    label = f"busy processors over {span}, 0 to {count}"
    head = f"{counted(len(result.tasks), 'task')} on {result.spec.name} ({counted(count, 'processor')})"
    line = sparkline(result.busy(), count, label)
    return result_page(result.name, head, line, label, machine_rows(result), result.report)
