"""The reasons of policies as a table of the record."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.scheduling.scheduler import GivenReason

__all__ = ["REASONS", "reason_table"]

REASONS = ("time", "decision", "work", "place", "at", "reason")
"""The columns of the table: see :class:`~simmodel.scheduling.scheduler.GivenReason`."""


def reason_table(given: Sequence[GivenReason], names: Collection[str] | None = None) -> Table | None:
    """Return one row per reason, or ``None`` if there is none.

    Parameters
    ----------
    given
        the reasons, in order
    names
        those of the jobs of a broker, whose ids may repeat: an id that is none of them is that of a job of its home

    >>> from simmodel.scheduling.scheduler import GivenReason
    >>> reason_table([GivenReason(0.0, "Start", 7, "batch", float("nan"), "the narrowest")])["work"].tolist()
    ['7']
    """
    if not given:
        return None
    time, decision, work, place, at, reason, home = zip(*given, strict=True)
    ids = ["" if each is None else str(each) for each in work]
    if names is not None:
        pairs = zip(ids, home, strict=True)
        ids = [each if each in names or not each else f"{origin}:{each}" for each, origin in pairs]
    return Table(
        {
            "time": np.array(time, dtype=np.float64),
            "decision": np.array(decision, dtype=str),
            "work": np.array(ids, dtype=str),
            "place": np.array(place, dtype=str),
            "at": np.array(at, dtype=np.float64),
            "reason": np.array(reason, dtype=object),
        }
    )
