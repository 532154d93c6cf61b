"""Results of grids: the record with metrics per site, plots, files and exports."""

from __future__ import annotations

import attrs

from simmodel.results.result import Result

__all__ = ["GridResult"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class GridResult(Result):
    """The result of a grid: the columns of :class:`~simmodel.records.job_record.JobRecord`, whose places are the sites.

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
    """
