"""The places of a broker simulated apart: its choices are made first, and each process keeps the jobs of its places."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simmodel.scheduling.protocol import Start, View
from simmodel.work.job import Job

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.results.result import Result
    from simmodel.systems.broker.core import BrokerCore, Coming, Source
    from simmodel.work.table import Table

__all__ = ["Part", "keep_share", "why_coupled"]


class Part(NamedTuple):
    """The part of the record of a broker that one process has.

    ``places``: the result of each place, and its jobs as in ``Destination.handed``; of a grid, ``rows``, ``jobs`` and
    ``unfinished``: its jobs by row, and whether any has not ended.
    """

    places: Mapping[str, tuple[Result, list[tuple[int, int]]]]
    rows: NDArray[np.int64] | None = None
    jobs: Table | None = None
    unfinished: bool = False


def why_coupled(broker: BrokerCore) -> str | None:
    """Return why the places of a broker cannot be simulated apart from each other, or ``None``."""
    policy = broker.scheduler.policy
    if broker.work != "jobs":
        return "its places run tasks, not jobs"
    if not policy.blind:
        return f"policy {policy.name} may look at what happens at its places"
    if len(broker.sources) > 1 and not policy.at_home:
        return f"policy {policy.name} takes the jobs of several workloads in turn"
    for job in chain.from_iterable(source.left() for source in broker.sources):
        spec = job.spec
        if isinstance(spec, Job):
            if spec.dependencies:
                return f"job {job.id} waits for others"
            if spec.has_body:
                return f"job {job.id} has a body, which may look at anything"
            if spec.inputs or spec.outputs:
                return f"job {job.id} has files, which move between sites"
    return None


def keep_share(broker: BrokerCore, mine: Collection[str], *, first: bool) -> NDArray[np.int16]:
    """Choose a place for each job to come, and have a broker run those of some places only.

    Parameters
    ----------
    broker
        the broker, before it runs
    mine
        the names of the places
    first
        whether to keep the jobs that no place can run, too

    Returns
    -------
    numpy.ndarray
        the number of the place of each job, by row; -1: none
    """
    places = broker.places
    number = {place: i for i, place in enumerate(places)}
    chosen = np.full(broker.submitted, -1, dtype=np.int16)
    keep = {number[broker.named[name]] for name in mine} | ({-1} if first else set())

    def share(source: Source) -> list[Coming]:
        coming = source.left()
        jobs = map(source.live, coming)
        able = (job for job in jobs if any(place.why_not(job) is None for place in broker.allowed(job.home)))
        view = View(broker.env, able, places, f"{broker.name}.policy")
        for decision in broker.scheduler.policy.decide(view) or ():
            assert isinstance(decision, Start)
            chosen[decision.work.row] = number[decision.place]
        of = chosen[[job.row for job in coming]].tolist()
        return [job for job, place in zip(coming, of, strict=True) if place in keep]

    broker.expect_only(share)
    broker.scheduler.answer_by(lambda view: (Start(job, places[chosen[job.row]]) for job in view.waiting))
    return chosen
