"""Policies for malleable jobs: who starts, who gives up processors for it, and who gets those that are idle.

They decide as EASY does, with the processors that running elastic jobs can give up counted as free, and give idle
processors to running elastic jobs. With rigid jobs alone they are EASY. The rules are those compared in the studies of
malleable scheduling with ElastiSim: Zojer, Posner, Özden, "Evaluating malleable job scheduling in HPC clusters using
real-world workloads" (2025); Özden et al., "ElastiSim: a batch-system simulator for malleable workloads", ICPP 2022.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from simmodel.policies.backfilling import Easy
from simmodel.policies.fast.easy import new_start
from simmodel.policies.ordering import FCFS, at_each_place
from simmodel.policies.spare import Keeping, Spares
from simmodel.resources.pools.elastic import can_resize, fits_at
from simmodel.scheduling.protocol import Decision, Resize, Start, View

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.waiting import SortedJobs
    from simmodel.work.job import LiveJob

__all__ = ["EqualShares", "KeepPreferred", "ShrinkToStart"]


INFINITY = float("inf")

new_resize = partial(tuple.__new__, Resize)  # a third of the cost of Resize(work, processors)

Room: TypeAlias = "tuple[int, float, int]"
"""The processors that are free or can be given up, when the head fits (s), and the processors left beside it then.

If all jobs are wider than that, the instant is infinite: it was not asked for."""


def equal_shares(limits: Sequence[tuple[int, int]], total: int) -> list[int]:
    """Return equal shares of processors within limits (least, most); the remainder goes to the first.

    >>> equal_shares([(1, 8), (2, 3), (1, 8)], 12), equal_shares([(1, 2)], 9)
    ([5, 3, 4], [2])
    """
    low = _level(limits, total)
    shares = [least if low < least else most if low > most else low for least, most in limits]
    rest = total - sum(shares)
    for i, (least, most) in enumerate(limits):
        if rest <= 0:
            break
        if least <= low < most:
            shares[i] += 1
            rest -= 1
    return shares


def _level(limits: Sequence[tuple[int, int]], total: int) -> int:
    """Return the largest equal share for which the shares within limits sum to the total at most, or 0."""
    rest, changes = total, dict[int, int]()
    for least, most in limits:
        rest -= least
        changes[least] = changes.get(least, 0) + 1
        changes[most] = changes.get(most, 0) - 1
    if rest < 0:
        return 0
    level = growing = 0  # the number of shares that grow with the level
    for point in sorted(changes):
        if growing * (point - level) > rest:
            return level + rest // growing
        rest -= growing * (point - level)
        level = point
        growing += changes[point]
    return level


class Malleable(Keeping):
    """EASY with elastic jobs: running ones give up processors for jobs that can start, and get those that are idle.

    The head of the queue starts if enough processors are free or can be given up; those that started last give up
    first. Else it is promised the instant at which it fits if all running jobs end as expected, and other jobs start
    as under EASY, at their preferred sizes. Processors that stay idle go to running jobs.
    """

    decides = "jobs"
    tries_every_submission = True
    below_preferred = True
    """Whether jobs run on fewer processors than they prefer so that another one can start."""

    def __init__(self, order: GivenOrder = FCFS) -> None:
        self.order = Easy(order).order
        self._spares = Spares()
        self._blocked: tuple[int, LiveJob, int, float, int] | None = None  # version of the place, head, its Room

    def forget(self) -> None:
        """Discard the state of the last decision: another policy has decided since."""
        self._blocked = None
        super().forget()

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start jobs and give idle processors to running ones, at each place."""
        if len(view.places) > 1:
            return at_each_place(view, self._at)
        place, last, waiting = view.places[0], self._blocked, view.waiting
        if last is None or last[0] != place.version or not place.simple:
            return self._at(view, place)
        _, head, room, at, extra = last
        limit = at - view.env._now
        if limit <= 0 or waiting.by(self.order).head() is not head:
            return self._at(view, place)
        new = [job for job in waiting.new if job.width <= room and (job.planned <= limit or job.width <= extra)]
        return self._at(view, place) if new else ()

    def _floor(self, job: LiveJob) -> int:
        if job.elastic is None or (job.history is not None and job.history.resumes):
            return job.processors
        return job.elastic.minimum if self.below_preferred else job.elastic.preferred

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        waiting, head, blocked = view.waiting.at(place), None, None
        if len(waiting):
            head = yield from self._heads(place, waiting.by(self.order))
            if head is not None:
                blocked = yield from self._behind(view, place, head)
        version = place.version
        if place.free > 0:
            yield from self._spread(place)
        if head is None or blocked is None or (place.version != version and blocked[1] < INFINITY):
            return
        runs, room = place.running.elastic, place.free + self._spare(place)
        if self._floor(head) > room == blocked[0] and (place.free <= 0 or runs.processors >= runs.maximum):
            self._blocked = (place.version, head, *blocked)

    def _heads(self, place: Pool, queue: SortedJobs) -> Generator[Decision, None, LiveJob | None]:
        """Start heads while they fit or room can be made; return the first that does not start."""
        while (head := queue.head()) is not None:
            if head.width <= place.free and place.fits(head):
                yield new_start((head, place, None, None, None, None, True))
                continue
            room = place.free + self._spare(place)
            if self._floor(head) > room:
                return head
            size = min(head.processors, room)
            yield from self._make_room(place, size if head.elastic is not None else head.width)
            size = min(size, place.free)
            if size == head.processors and place.fits(head):
                yield new_start((head, place, None, None, None, None, True))
            elif size >= self._floor(head) and fits_at(place, head, size):
                yield Start(head, place, processors=size)
            else:
                return head
        return None

    def _behind(self, view: View, place: Pool, head: LiveJob) -> Generator[Decision, None, Room | None]:
        """Start other jobs that do not delay the head; return what kept them if none does."""
        lanes = view.waiting.at(place).lanes(self.order)
        spare = self._spare(place)
        room = place.free + spare
        if room < lanes.narrowest and not place.running.endless:
            return room, INFINITY, 0
        at, extra = self._promise(place, head, spare)
        limit, kept = at - view.now, None
        if at == INFINITY and place.running.endless:
            kept = self._spares.at(place, head, room)
            limit, extra = -INFINITY, kept.cores
        elif self._spares:
            self._spares.pop(place.name, None)
        if (job := lanes.first_fitting(room, limit, extra)) is None:
            return room, at, extra
        while job is not None:
            if job.width > place.free:
                yield from self._make_room(place, job.width)
            if not place.fits(job):
                break
            if job.planned > limit:
                extra -= job.width
            yield new_start((job, place, None, None, None, None, True))
            if kept is not None:
                kept.take(job)
            job = lanes.first_fitting(place.free + self._spare(place), limit, extra)
        return None

    def _promise(self, place: Pool, head: LiveJob, spare: int) -> tuple[float, int]:
        """Return when the head fits if running jobs end as expected (s), and the processors left free beside it."""
        if not spare and head.elastic is None:
            return place.earliest(head)
        room, now, at = place.free + spare, place.env.now, None
        need = head.width if head.elastic is None else self._floor(head)
        below = self.below_preferred
        for end, _, processors, run in place.running.entries():
            if at is not None and end > at:
                break
            elastic = run.job.elastic
            if elastic is not None:
                processors = elastic.minimum if below else elastic.preferred
            room += processors
            if at is None and room >= need:
                at = max(end, now)
        return (at if at is not None else INFINITY), room - need

    def _spare(self, place: Pool) -> int:
        """Return the processors that running jobs can give up."""
        runs = place.running.elastic
        return runs.processors - (runs.minimum if self.below_preferred else runs.preferred)

    def _make_room(self, place: Pool, processors: int) -> Iterator[Decision]:
        """Shrink running jobs until the processors are free, those that started last first."""
        if place.free >= processors:
            return
        for job in reversed(place.running.elastic.jobs):
            missing = processors - place.free
            if missing <= 0:
                return
            smaller = max(self._floor(job), job.processors - missing)
            if smaller < job.processors:
                yield new_resize((job, smaller, None))

    def _spread(self, place: Pool) -> Iterator[Decision]:
        """Give idle processors to running jobs in the order of their starts: up to their preferred sizes, then more."""
        runs, simple = place.running.elastic, place.simple
        for preferred in (True, False):
            if runs.processors >= runs.maximum:
                return
            for job in runs.jobs:
                elastic, size = job.elastic, job.processors
                assert elastic is not None
                most = elastic.preferred if preferred else elastic.maximum
                if size < most:
                    larger = min(most, size + place.free)
                    if simple or can_resize(place, job, larger):
                        yield new_resize((job, larger, None))
                        if place.free <= 0:
                            return


class KeepPreferred(Malleable):
    """Jobs start at their preferred sizes; running ones grow into idle processors, and give those up again.

    >>> from simmodel import Elastic, Job, simulate
    >>> jobs = [Job(run=100, elastic=Elastic(2, 4, 8)), Job(submit=25, processors=4, run=10)]
    >>> simulate(8, jobs, "keep-preferred").runs["processors"].tolist()
    [8, 4, 4, 8]
    """

    name = "keep-preferred"
    below_preferred = False


class ShrinkToStart(Malleable):
    """Running jobs shrink to their minimum so that others start, which may also start smaller than they prefer.

    >>> from simmodel import Elastic, Job, simulate
    >>> jobs = [Job(run=100, elastic=Elastic(2, 8, 8)), Job(submit=50, processors=6, run=10)]
    >>> simulate(8, jobs, "shrink-to-start").runs["processors"].tolist()
    [8, 2, 6, 8]
    """

    name = "shrink-to-start"


class EqualShares(Malleable):
    """As many jobs run as fit at their minimum, and all elastic ones get equal shares within their limits.

    >>> from simmodel import Elastic, Job, simulate
    >>> jobs = [Job(run=100, elastic=Elastic(1, 2, 8)), Job(submit=5, run=50, elastic=Elastic(1, 4, 8))]
    >>> simulate(8, jobs, "equal-shares").runs["processors"].tolist()
    [8, 4, 4, 8]
    """

    name = "equal-shares"

    def _spread(self, place: Pool) -> Iterator[Decision]:
        """Give each running elastic job the same number of processors, within its limits."""
        runs = place.running.elastic
        if runs.processors >= runs.maximum:
            return
        shares = equal_shares(runs.limits, place.free + runs.processors)
        others = [(job, share) for job, share in zip(runs.jobs, shares, strict=True) if share != job.processors]
        for job, share in others:
            if share < job.processors:
                yield new_resize((job, share, None))
        for job, share in others:
            if share > job.processors:
                larger = min(share, job.processors + place.free)
                if larger > job.processors and (place.simple or can_resize(place, job, larger)):
                    yield new_resize((job, larger, None))
