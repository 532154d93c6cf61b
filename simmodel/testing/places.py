"""The check of places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from simmodel.policies.ordering import FCFS
from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.pools.pool import Pool
from simmodel.scheduling.waiting import WaitingQueue

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob
    from simmodel.work.livetask import LiveTask

__all__ = ["check_place"]


def check_place(place: Place, work: Iterable[LiveJob | LiveTask] = ()) -> None:
    """Check that a place has the attributes that schedulers need, and that its questions change nothing.

    Parameters
    ----------
    place
        the place
    work
        live work for the questions; if it is the queue of a pool, its promises are asked for, too

    Raises
    ------
    AssertionError
        an attribute is missing, a question changes the place, or two answers contradict each other

    >>> from simmodel import Environment
    >>> from simmodel.resources import CountPool
    >>> check_place(CountPool(Environment(), "slots", 4))
    """
    for name in ("name", "capacity", "free", "queues", "version", "backlog", "can_run", "why_not", "fits"):
        assert hasattr(place, name), f"a place must have {name!r}"
    assert isinstance(place.name, str), f"the name of a place must be a text, got {place.name!r}"
    assert place.name, "the name of a place must not be empty"
    assert isinstance(place.queues, bool), f"queues must be True or False, got {place.queues!r}"
    for each in work:
        before = place.free, place.version
        able, fits = place.can_run(each), place.fits(each)
        assert able == (place.why_not(each) is None), (
            f"{place.name}: can_run and why_not contradict each other on {each}"
        )
        assert (able, fits) == (place.can_run(each), place.fits(each)), (
            f"{place.name} answers differently when asked again about {each}"
        )
        assert (place.free, place.version) == before, f"a question about {each} changes {place.name}"
        assert able or not fits, f"{each} fits in {place.name}, which can never run it"
    if isinstance(place, Pool):
        _check_pool(place, work)


def _check_pool(pool: Pool, work: Iterable[LiveJob | LiveTask]) -> None:
    """Check the requirement of backfilling on a pool: the promise of a start to a job that does not fit."""
    for name in () if isinstance(pool, NodePool) else ("counts_hosts", "offer", "states"):
        assert not hasattr(pool, name), (
            f"{type(pool).__name__} has {name!r}, which no policy asks of a pool: override 'promise' instead"
        )
    if not isinstance(work, WaitingQueue):
        return
    for head in work:
        if pool.fits(head) or not pool.can_run(head):
            continue
        before = pool.free, pool.version
        promise = pool.promise(head, work, FCFS)
        assert promise.at >= pool.env.now, f"{pool.name} promises {head} a start in the past, at {promise.at:g} s"
        found = promise.next()
        assert (pool.free, pool.version) == before, f"the promise to {head} changes {pool.name}"
        assert found is None or (found[0] is not head and pool.fits(found[0])), (
            f"{pool.name} starts {found and found[0]} beside {head}, though it does not fit"
        )
