"""Grids: a broker over sites, which have a cluster, a storage and a place in a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.systems.grid.core import GridCore
from simmodel.systems.grid.record import grid_result

if TYPE_CHECKING:
    from simmodel.results.grid import GridResult

__all__ = ["Grid"]


class Grid(GridCore):
    """Sites under one broker: each job goes to a site, where its files are brought before it runs.

    Parameters
    ----------
    env
        the environment
    spec
        the sites, their network and files
    policy
        the broker: a name, a policy, or a function of a view whose places are the sites
    policies
        the policies of the sites: one for all, or by name; default: ``"fcfs"``
    by
        whether estimates use ``"requested"`` or ``"actual"`` run times
    name, rank
        its name in reports; its turn among schedulers that share an instant

    Attributes
    ----------
    sites
        the sites by name
    data, stays, outages
        its parts: files; jobs on their way to and from sites, with their files; sites that are down or closed
    dispatching
        whether it assigns jobs

    Observers may have ``job_assigned(job, site)``, ``job_queued(job, site)``, ``job_retried(job, site, reason)`` and
    ``job_finished(job, site)``, and the hooks of brokers and clusters.

    Raises
    ------
    InputError
        if a policy is unknown

    >>> from simmodel import Environment, Job
    >>> from simmodel.platform import SiteSpec
    >>> env = Environment()
    >>> grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=2), SiteSpec(name="b", cores=2)]), "round-robin")
    >>> jobs = [grid.submit(Job(processors=2, run=10)) for _ in range(3)]; env.run()
    >>> grid.result().jobs["site"].tolist(), grid.result().jobs["end"].tolist()
    (['a', 'b', 'a'], [10.0, 10.0, 20.0])
    """

    # ------------------------------------------------------------------ results

    def result(self, name: str | None = None) -> GridResult:  # type: ignore[override]
        """Return the result so far; ``name`` is its name in tables."""
        return grid_result(self, name or self.scheduler.policy_name)
