"""A grid as planners see it: jobs without a site, and sites as processors of many cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from simmodel.scheduling.problem import Problem
from simmodel.systems.grid.data import FAR

if TYPE_CHECKING:
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.data import DataManager
    from simmodel.systems.grid.site import Site

__all__ = ["problem_of_sites"]


def problem_of_sites(
    jobs: Iterable[BrokeredJob],
    sites: Sequence[Site],
    data: DataManager,
    planned: Mapping[BrokeredJob, Site],
    now: float,
) -> Problem:
    """Return the planning problem of jobs on the sites that take jobs now; those that none takes are left out.

    A site is a processor with all its cores, of their mean speed. An edge carries the bytes of the files that the
    parent writes and the child reads, at the rate of idle links; other inputs come from the nearest replica. A site is
    busy for its backlog, and for the jobs that are planned there, per core.
    """
    runs = {job: [_run(job, site) if site.can_run(job) else inf for site in sites] for job in jobs}
    tasks = [job for job in runs if min(runs[job]) < inf]
    busy = dict.fromkeys(sites, 0.0)
    for job, site in planned.items():
        busy[site] += job.processors * _run(job, site)
    ways = [[data.way(source, site) for site in sites] for source in sites]
    return Problem(
        [runs[job] for job in tasks],
        _parents(tasks),
        [[latency for latency, _ in row] for row in ways],
        [[per_byte for _, per_byte in row] for row in ways],
        pools=range(len(sites)),
        now=now,
        available=[now + min(site.expected_wait(1) + busy[site] / site.capacity, FAR) for site in sites],
        arrival=[[now + _seconds_of_inputs(data, job, site) for site in sites] for job in tasks],
        cores=[job.processors for job in tasks],
        capacity=[site.capacity for site in sites],
        tasks=tasks,
        places=sites,
    )


def _run(job: BrokeredJob, site: Site) -> float:
    return site.nominal_run(job) / site.speed


def _parents(tasks: list[BrokeredJob]) -> list[tuple[tuple[int, float], ...]]:
    """Return the parents of each task among these, with the bytes of the files that move between them."""
    position = {job: i for i, job in enumerate(tasks)}
    found: list[tuple[tuple[int, float], ...]] = []
    for job in tasks:
        edges: dict[int, float] = {}
        for each in () if job.spec is None else job.spec.dependencies:
            parent = job.family.known.get(each.job)
            if parent in position:
                moved = [file.size for file in parent.outputs if file.name in job.inputs]
                edges[position[parent]] = float(sum(moved))
        found.append(tuple(edges.items()))
    return found


def _seconds_of_inputs(data: DataManager, job: BrokeredJob, site: Site) -> float:
    """Return how long the inputs that exist take to a site on idle links (s), one after another."""
    return min(sum([data.seconds(file, site) for file in job.inputs if data.replicas(file)]), FAR)
