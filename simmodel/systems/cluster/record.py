"""Columns of the record: of the jobs of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["columns_of_log"]


def columns_of_log(workload: Workload, prepared: Prepared) -> dict[str, Any]:
    """Return the columns of a workload for the record."""
    columns = {name: workload[name] for name in workload.table.names if name not in ("wait", "status", "run")}
    return columns | {
        "processors": prepared.processors,
        "requested": np.where(prepared.unrequested, np.nan, prepared.requested),
        "recorded_run": workload["run"],
    }
