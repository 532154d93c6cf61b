"""Metrics of several results side by side, of whatever work they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from simmodel.errors import unknown
from simmodel.metrics.batch import METRICS
from simmodel.metrics.workflow import MACHINE_METRICS
from simmodel.work.table import Table

__all__ = ["METRICS_OF", "Measured", "compare"]

METRICS_OF: Mapping[str, Mapping[str, tuple[str, str]]] = {"jobs": METRICS, "tasks": MACHINE_METRICS}
"""The numbers that are measured, by what a system runs: of each its unit and what it is."""


class Measured(Protocol):
    """A result with metrics.

    ``METRICS``: those that are numbers, each with its unit and what it is; ``COUNTS``: those that say how much work
    there was; :meth:`metric_text`: one with its unit, for people.
    """

    METRICS: ClassVar[Mapping[str, tuple[str, str]]]
    COUNTS: ClassVar[tuple[str, ...]]

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def metrics(self, **options: Any) -> dict[str, Any]:
        """Return the metrics by name."""
        ...

    def metric_text(self, name: str, value: float) -> str:
        """Return a metric with its unit."""
        ...


def compare(results: Sequence[Measured], metrics: Sequence[str] | None = None, **options: Any) -> Table:
    """Return a table with one row a result: ``result``, its counts, and one column a metric.

    Parameters
    ----------
    results
        what to compare: at least one, all of one kind of work
    metrics
        which of their ``METRICS``; default: all
    options
        as of their ``metrics()``

    Raises
    ------
    InputError
        a metric is unknown

    >>> from simmodel import Result
    >>> jobs = {"submit": [0], "start": [2], "end": [9], "processors": [1]}
    >>> for row in compare([Result(name="a", jobs=jobs), Result(name="b", jobs=jobs)], ["wait_mean"]).rows():
    ...     print(row)
    {'result': 'a', 'jobs': 1, 'counted': 1, 'wait_mean': 2.0}
    {'result': 'b', 'jobs': 1, 'counted': 1, 'wait_mean': 2.0}
    """
    known = results[0].METRICS
    wanted = tuple(known) if metrics is None else tuple(metrics)
    for name in wanted:
        if name not in known:
            raise unknown("metric", name, known)
    found = [result.metrics(**options) for result in results]
    columns = {name: np.array([each[name] for each in found]) for name in (*results[0].COUNTS, *wanted)}
    return Table({"result": np.array([result.name for result in results], dtype=str), **columns})
