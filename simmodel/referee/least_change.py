"""The least changes of a request with which a job that waits would start now, each confirmed by asking the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.environment import Environment
from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import show_quantity
from simmodel.futures.asking import started_now
from simmodel.referee.explanation_parts import Change
from simmodel.snapshots.jobs import Choice
from simmodel.systems.cluster.queueing import places_to_wait
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job

if TYPE_CHECKING:
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.jobs import WorkState

__all__ = ["MEGABYTE", "Request", "largest", "least_changes"]

MEGABYTE = 10**6
"""Bytes: memory is changed by whole megabytes."""


def least_changes(seen: ClusterSnapshot, work: WorkState, policy: PolicyLike | None = None) -> Iterator[Change]:
    """Yield, of each kind, the least change that starts a job now.

    A number is the largest that starts the job such that the next larger one does not: processors, or nodes, cores,
    GPUs and memory (whole MB) of each node; licences; bandwidth (whole MB/s); the requested time (whole s). Then other
    partitions, open reservations that admit the job, and queues. A job that was suspended resumes as it was: nothing is
    tried.

    Parameters
    ----------
    seen
        a cluster at one instant, as a policy may see it
    work
        the job: waiting, or held by a limit of its queue, for which only another queue helps
    policy
        default: that of the snapshot
    """
    if work.past is not None and work.past.resumes is not None:
        return
    asked = Request(seen, work, policy)
    if work in seen.waiting:
        yield from _smaller(asked)
        yield from _shorter(asked)
        yield from _elsewhere(asked)
    yield from _other_queues(asked)


class Request:
    """The request of a waiting job, and whether another one would start now.

    Parameters
    ----------
    seen, work, policy
        as of :func:`least_changes`

    Attributes
    ----------
    seen, spec, place
        the snapshot; the request; the partition that it waits for
    """

    def __init__(self, seen: ClusterSnapshot, work: WorkState, policy: PolicyLike | None = None) -> None:
        self.seen = seen
        self.spec = work.spec or _plain(work)
        self.place = work.place
        self._work = work
        self._policy = policy
        parts: dict[str, Any] = {
            part: tuple(each for each in getattr(seen, part) if each is not work) for part in ("waiting", "held")
        }
        choices = tuple(each for each in seen.choices if each.number != work.number)
        self._others = attrs.evolve(seen, **parts, choices=choices, new=())
        before = (each for each in self._others.waiting if (each.submit, each.number) < (work.submit, work.number))
        self._row = seen.waiting.index(work) if work in seen.waiting else sum(1 for _ in before)
        self._there = Cluster.from_snapshot(Environment(seen.now), self._others, policy, record=False)
        self._priority = self._there.intake.live(self.spec, work.number, 0)[0].priority

    def starts(self, **changes: Any) -> bool:
        """Whether the policy would start the job now if these fields of its request were other ones."""
        changed = self.changed(**changes)
        return changed is not None and self._work.id in started_now(changed, self._policy)

    def changed(self, **changes: Any) -> ClusterSnapshot | None:
        """Return the snapshot with the changed request; ``None``: the cluster would not take it, or would hold it."""
        work = self._work
        spec = attrs.evolve(self.spec, **changes)
        try:
            live, reason = self._there.intake.live(spec, work.number, 0)
        except InputError:
            return None
        if reason is not None or (live.rules is not None and live.rules.full(live.user)):
            return None
        places = [pool.name for pool in places_to_wait(live, self._there.core)]
        limit: dict[str, Any] = (
            {}
            if spec.requested is None
            else {"requested": spec.requested, "expected": spec.requested, "unrequested": False}
        )
        new = work._replace(
            processors=spec.processors,
            priority=work.priority + live.priority - self._priority,
            place=places[0],
            spec=None if work.spec is None and spec.plain else spec,
            **(limit if "requested" in changes else {}),
        )
        others = self._others
        choices = (*others.choices, Choice(work.number, tuple(places))) if len(places) > 1 else others.choices
        waiting = (*others.waiting[: self._row], new, *others.waiting[self._row :])
        return attrs.evolve(others, waiting=waiting, choices=choices)


def _plain(work: WorkState) -> Job:
    """Return the request of a job that asked for processors and time only."""
    requested = None if work.unrequested else work.requested or None
    return Job(
        id=work.id, submit=work.submit, processors=work.processors, run=work.expected, requested=requested,
        user=work.user,
    )  # fmt: skip


# ---------------------------------------------------------------------- one kind each


def _smaller(asked: Request) -> Iterator[Change]:
    """Yield fewer processors, or less of the nodes, and fewer licences."""
    spec = asked.spec
    if spec.nodes is None:
        yield from _fewer(asked, "processors", spec.processors, "processor")
    else:
        yield from _fewer(asked, "nodes", spec.nodes, "node")
        yield from _fewer(asked, "cores_per_node", spec.cores_per_node, "core", " per node")
    yield from _fewer(asked, "gpus_per_node", int(spec.gpus_per_node), "GPU", " per node", least=0)
    memory = spec.memory_per_node
    found = largest(
        lambda count: asked.starts(memory_per_node=float(count * MEGABYTE)), ceil(memory / MEGABYTE) - 1, least=0
    )
    if found is not None:
        less, before = (show_quantity(float(each), "B") for each in (found * MEGABYTE, memory))
        yield Change("memory_per_node", float(found * MEGABYTE), f"with {less} of memory per node instead of {before}")
    for name, amount in spec.consumables.items():

        def with_fewer(count: int, name: str = name) -> bool:
            return asked.starts(consumables={**spec.consumables, name: float(count)})

        fewer = largest(with_fewer, ceil(amount) - 1, least=0)
        if fewer is not None:
            yield Change(name, float(fewer), f"with {fewer} of {name} instead of {amount:g}")
    yield from _narrower(asked)


def _narrower(asked: Request) -> Iterator[Change]:
    """Yield less of each bandwidth, in whole MB/s."""
    given = asked.spec.bandwidth
    for name, rate in given.items():

        def with_less(count: int, name: str = name) -> bool:
            return asked.starts(bandwidth={**given, name: float(count * MEGABYTE)})

        found = largest(with_less, ceil(rate / MEGABYTE) - 1, least=0)
        if found is not None:
            less = show_quantity(float(found * MEGABYTE), "B/s") if found else "nothing"
            text = f"with {less} of {name} instead of {show_quantity(rate, 'B/s')}"
            yield Change(name, float(found * MEGABYTE), text)


def _fewer(asked: Request, field: str, most: int, noun: str, of: str = "", least: int = 1) -> Iterator[Change]:
    found = largest(lambda count: asked.starts(**{field: count}), most - 1, least)
    if found is not None:
        yield Change(field, found, f"with {counted(found, noun)}{of} instead of {most:,}")


def _shorter(asked: Request) -> Iterator[Change]:
    """Yield a shorter limit, where jobs are planned with their limits."""
    before = asked.spec.asked
    if asked.seen.options.estimates != "requested" or not before < 1e15:
        return
    found = largest(lambda seconds: asked.starts(requested=float(seconds), run=float(seconds)), ceil(before) - 1)
    if found is not None:
        yield Change("requested", float(found), f"with a limit of {found} s instead of {before:.10g} s")


def _elsewhere(asked: Request) -> Iterator[Change]:
    """Yield other partitions, and reservations."""
    platform, spec = asked.seen.platform, asked.spec
    tried = {str(spec.partition), *map(str, spec.partitions), asked.place}
    for kind, parts in (("partition", platform.partitions), ("reservation", platform.reservations)):
        for name in [each.name for each in parts if each.name not in tried]:
            if asked.starts(partition=name, partitions=()):
                yield Change("partition", name, f"on {kind} {name}")


def _other_queues(asked: Request) -> Iterator[Change]:
    spec = asked.spec
    for queue in asked.seen.platform.queues if spec.queue is not None else ():
        if queue.name != str(spec.queue) and asked.starts(
            queue=queue.name, partition=queue.partition or spec.partition
        ):
            yield Change("queue", queue.name, f"in queue {queue.name}")


def largest(starts: Callable[[int], bool], most: int, least: int = 1) -> int | None:
    """Return a value up to ``most`` that starts a job, while the next larger one does not; ``None``: none was found.

    A larger value may start it all the same, where a policy prefers large jobs. Tried are ``most``, its halves, and
    ``least``; from the largest of these that starts the job the search goes on by bisection.

    >>> largest(lambda value: value <= 37, 100), largest(lambda value: False, 100)
    (37, None)
    """
    if most < least:
        return None
    above, value = most + 1, most
    while not starts(value):
        if value == least:
            return None
        above, value = value, max(value // 2, least)
    while above - value > 1:
        middle = (value + above) // 2
        if starts(middle):
            value = middle
        else:
            above = middle
    return value
