"""Results of grids: the record with metrics per site, plots, files and exports."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from simmodel.metrics.names import TAU, Cut
from simmodel.results.result import Result

if TYPE_CHECKING:
    from simmodel.work.table import Table

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

    >>> from simmodel import Environment, Grid, Job
    >>> from simmodel.platform import GridSpec, SiteSpec
    >>> grid = Grid(Environment(), GridSpec(sites=[SiteSpec(name="a", cores=2), SiteSpec(name="b", cores=2)]))
    >>> jobs = [grid.submit(Job(processors=2, run=10)) for _ in range(3)]; grid.env.run()
    >>> table = grid.result().sites
    >>> table["site"].tolist(), table["finished"].tolist(), table["queue_time"].tolist()[-1]
    (['a', 'b', 'all'], [2, 1, 3], 3.3333333333333335)
    """

    @property
    def sites(self) -> Table:
        """One row per site, and a last one of all; see :func:`simmodel.metrics.grid.by_site`."""
        from simmodel.metrics.grid import by_site

        return by_site(self)

    @property
    def errors(self) -> Table:
        """Errors against recorded times; see :func:`simmodel.metrics.grid.recorded_errors`."""
        from simmodel.metrics.grid import recorded_errors

        return recorded_errors(self)

    def summary(self, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU) -> str:
        """Return the metrics of all jobs and of the busiest sites as text; parameters as of :meth:`metrics`."""
        lines = [super().summary(warmup=warmup, cooldown=cooldown, tau=tau)]
        table = self.sites
        counts = Counter(self.jobs["state"].tolist())
        lines.append("  states  " + ", ".join(f"{count:,} {state}" for state, count in counts.items()))
        heads = f"{'cores':>9}{'jobs':>9}{'failed':>8}{'queue time':>12}{'used':>8}{'in':>10}{'out':>10}"
        lines.append(f"  {'site':<24}{heads}")
        rows = list(table.rows())
        for row in [*sorted(rows[:-1], key=lambda row: -row["jobs"])[:_SHOWN], rows[-1]]:
            moved = "".join(f"{row[name] / 1e9:>8.4g}GB" for name in ("bytes_in", "bytes_out"))
            lines.append(
                f"  {row['site'][:23]:<24}{row['cores']:>9,}{row['jobs']:>9,}{row['failed']:>8,}"
                f"{row['queue_time']:>11.4g}s{row['utilisation']:>8.1%}{moved}"
            )
        return "\n".join(lines)


_SHOWN = 12  # sites in a summary
