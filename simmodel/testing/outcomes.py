"""The outcomes of a system in a form that can be compared."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.systems.system import Live, System

__all__ = ["rows_of"]

_COLUMNS = {"jobs": ("job", "start", "end", "status"), "tasks": ("task", "start", "end", "processor")}


def rows_of(system: System[Live]) -> Counter[tuple[str, ...]]:
    """Return the outcome of each piece of work; equal outcomes are counted.

    >>> from simmodel import Cluster, Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> job = cluster.submit(Job(run=5)); cluster.env.run()
    >>> rows_of(cluster)
    Counter({('1', '0.0', '5.0', 'completed'): 1})
    """
    table = getattr(system.result(), system.work)
    columns = [map(str, table[name].tolist()) for name in _COLUMNS[system.work]]
    return Counter(zip(*columns, strict=True))
