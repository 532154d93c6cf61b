"""Hosts that a broker names for its jobs."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import PolicyError, unknown
from simmodel.resources.pools.allocation import Allocation
from simmodel.resources.pools.claims import Grant

if TYPE_CHECKING:
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.site import Site

__all__ = ["grant_on"]


def grant_on(site: Site, named: Any, job: BrokeredJob) -> Grant:
    """Return what a job would take of one host of a site; nothing is taken.

    Parameters
    ----------
    site
        the site
    named
        the name of the host, or its number from 0 on
    job
        the job

    Raises
    ------
    PolicyError
        if the site has no such host, or it is too small for the job
    """
    number, reason = _number(site, named)
    if reason is None:
        spec = job._job
        gpus, memory = (0, 0.0) if spec is None else (spec.gpus_per_node, float(ceil(spec.memory_per_node)))
        pool: Any = site.system.places[0]
        cores, all_gpus, all_memory = pool.table.capacity[:, number].tolist()
        if job.processors <= cores and gpus <= all_gpus and memory <= all_memory:
            return Grant(job.processors, (number,), Allocation.alike((number,), job.processors, gpus, memory))
        amounts = zip(
            ("cores", "GPUs", "bytes"), (job.processors, gpus, memory), (cores, all_gpus, all_memory), strict=True
        )
        missing = ", ".join(
            f"{asked:g} {unit} requested, {there:g} there" for unit, asked, there in amounts if asked > there
        )
        reason = f"allocation: host {pool.nodes[number]} is too small: {missing}"
    raise PolicyError(reason, work=f"job {job.id}", place=site.name)


def _number(site: Site, named: Any) -> tuple[int, str | None]:
    """Return the number of a host, and why there is none, or ``None``."""
    names = list(site.hosts)
    if not names:
        return -1, f"allocation: must be None: {site.name} has no hosts, got {named!r}"
    if isinstance(named, str):
        found = names.index(named) if named in names else -1
        return found, None if found >= 0 else f"allocation: {unknown('host', named, names).message}"
    if isinstance(named, int) and not isinstance(named, bool) and 0 <= named < len(names):
        return named, None
    return -1, f"allocation: must be the name of a host or a number from 0 to {len(names) - 1}, got {named!r}"
