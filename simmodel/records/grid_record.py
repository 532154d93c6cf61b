"""Records of grids: their jobs, and the transfers between their sites, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from simmodel.records.job_record import JobRecord, runs_of
from simmodel.work.table import Table

__all__ = ["FLOWS", "GridRecord"]

FLOWS: Mapping[str, Any] = {"source": "<U1", "destination": "<U1", "files": int, "bytes": float, "failed": int}
"""The columns of the table of flows, and their types."""


def _no_flows() -> Table:
    return Table({name: np.array([], dtype=kind) for name, kind in FLOWS.items()})


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class GridRecord(JobRecord):
    """The record of a grid: the columns of :class:`~simmodel.records.job_record.JobRecord`, whose places are the sites.

    ``start`` and ``end`` are those of holding cores. Its jobs have these additional columns:

    ``site``, ``origin``
        the site that it was assigned to last, and its home; empty if none
    ``state``
        created, pending, staging in, queued, running, staging out, finished, failed, rejected or cancelled
    ``assigned``, ``queued``, ``executing``, ``finished``
        instants (s): assigned to the site, in its queue, its inputs read, ended with its outputs in place
    ``bytes_in``, ``bytes_out``
        bytes brought to the site for it, and written there
    ``reason``
        why it failed or was rejected

    Its places have a ``tier`` (-1: none).

    Parameters
    ----------
    flows
        one row per pair of sites with transfers: ``source, destination``, the ``files`` that arrived, their ``bytes``,
        and the number of transfers that ``failed`` or were broken off

    >>> jobs = {"submit": [0], "start": [0], "end": [10], "processors": [2], "site": ["a"]}
    >>> len(GridRecord(jobs=jobs, processors=4).flows)
    0
    """

    flows: Table = attrs.field(factory=_no_flows)

    @cached_property
    def runs(self) -> Table:
        """One row per execution: ``job, attempt, start, end, place, processors, status, nodes``."""
        return runs_of(self.jobs, self.jobs["site"], self.jobs["attempts"]) if self._runs is None else self._runs

    @property
    def one_run_each(self) -> bool:
        """Whether each started job ran once, at the only site."""
        return self._runs is None and len(self.places) == 1

    __repr__ = JobRecord.__repr__
