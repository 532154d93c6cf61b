"""Results in notebooks: the metrics as a table, and the use over time as a sparkline."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.display import counted, html_notes, html_table
from simmodel.metrics.batch import summary
from simmodel.metrics.report import duration, in_seconds, metric_rows
from simmodel.metrics.workflow import machine_rows, time_text

if TYPE_CHECKING:
    from simmodel.records.job_record import JobRecord
    from simmodel.records.steps import Steps
    from simmodel.records.task_record import TaskRecord
    from simmodel.work.workload import Report

__all__ = ["machine_html", "result_html", "result_page", "sparkline"]

_WIDTH, _HEIGHT = 480, 64


def sparkline(steps: Steps, top: float, label: str, colour: str = "#3b6ea5") -> str:
    """Return a step function as a filled curve in SVG, averaged over each pixel.

    Parameters
    ----------
    steps
        the step function
    top
        the value at the upper edge
    label
        the title, also for screen readers

    >>> from simmodel.records.steps import Steps
    >>> sparkline(Steps([0, 5], [1, 0], end=10), top=1, label="use").startswith("<svg")
    True
    """
    if steps.end <= steps.start or top <= 0:
        return ""
    heights = _HEIGHT * (1 - np.clip(steps.averages(np.linspace(steps.start, steps.end, _WIDTH + 1)) / top, 0, 1))
    points = " ".join(f"{x},{y:.1f} {x + 1},{y:.1f}" for x, y in enumerate(heights.tolist()))
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{html.escape(label)}">'
        f"<title>{html.escape(label)}</title>"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="currentColor" opacity="0.06"/>'
        f'<polygon points="0,{_HEIGHT} {points} {_WIDTH},{_HEIGHT}" fill="{colour}" opacity="0.8"/></svg>'
    )


def result_page(name: str, head: str, line: str, label: str, rows: Sequence[tuple[str, str]], report: Report) -> str:
    """Return the HTML of a result: name and head, a sparkline with its label, the metrics, and the report."""
    return (
        f"<div><b>{html.escape(name)}</b>: {html.escape(head)}</div>"
        f"<div>{line}</div><div><small>{html.escape(label)}</small></div>"
        f"{html_table([('', 'value'), *rows], left=2, most=len(rows))}{html_notes(report.lines())}"
    )


def result_html(result: JobRecord) -> str:
    """Return a result as HTML: its name, the utilisation over time, and the metrics."""
    metrics, result = in_seconds(result, summary(result)), result.in_seconds
    label = f"utilisation over {duration(result.ended - result.started)}, 0 to 100 %"
    head = f"{counted(len(result.jobs), 'job')} on {counted(result.processors, 'processor')}"
    line = sparkline(result.utilisation(), 1.0, label)
    return result_page(result.name, head, line, label, metric_rows(metrics), result.report)


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
