"""Slurm's main loop: jobs in order, until the first of a partition that finds its nodes busy.

Source: ``schedule`` of slurmctld 22.05, by its behaviour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from simmodel_site.policy.board import Board, Pending

if TYPE_CHECKING:
    from simmodel.extending import Allocation
    from simmodel_site.policy.preemption import Preemption, Victims
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["main_cycle"]


def main_cycle(
    queue: Iterable[Pending],
    settings: SlurmConf,
    *,
    full: bool = False,
    preemption: Preemption | None = None,
    note: Callable[[], None] = lambda: None,
    partitions: Collection[str] = (),
    cut: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Pending, Allocation | Victims | str]]:
    """Yield the starts of one run of the main loop, and the jobs that make way; whoever asks has made each at once.

    A job that is reached and cannot meet its deadline any more comes with the reason why it is cancelled.

    The first job that finds its nodes busy closes its partition, and no later job of any partition gets the nodes of
    that. A job that names all its nodes takes only these from later ones. A job that waits for a licence or
    has reached a limit is skipped and closes nothing.

    Parameters
    ----------
    queue
        the jobs, sorted
    full
        whether the whole queue is tested; else ``default_queue_depth`` jobs, and one more
    preemption
        the rules of preemption, if there are any
    note
        called for each job whose reason for waiting is noted: because its partition is closed, its nodes are kept for
        others, or a licence is not free
    partitions
        the names of the partitions of all places, if the loop may end once all are closed
    cut
        called where a run that is not full ends for its depth
    """
    closed = _Closed(settings)
    started = 0
    for job in _tested(queue, settings, full, cut):
        board, own = job.board, job.reservation
        if closed.has(job):
            note()
            if own is None and len(closed.partitions) == len(partitions):
                return
            continue
        if (missed := job.missed) is not None:
            yield job, missed
            continue
        if not job.allowed:
            if not job.ready:
                note()
            if settings.assoc_limit_stop:
                closed.partitions.add((job.site.spec.name, board))
            continue
        nodes = closed.left.setdefault(board, board.up) & job.site.nodes
        if job.hetero is not None:  # the backfill loop alone starts its components
            closed.close(job)
            continue
        if nodes.bit_count() < job.shape.nodes:
            note()
        seen, barred, _ = board.seen_by(job, board.now)
        nodes &= ~(board.completing | barred | board.closed(board.now + job.limit))
        allocation = seen.select(job, nodes)
        if allocation is None and preemption is not None:
            victims = preemption.victims(board, job, nodes)
            if victims is not None:
                yield job, victims
                allocation = board.select(job, nodes) if victims.suspended else None
        if allocation is None:
            closed.found_busy(job)
            continue
        yield job, allocation
        started += 1
        if started == settings.sched_max_job_start:
            return


def _tested(queue: Iterable[Pending], settings: SlurmConf, full: bool, cut: Callable[[], None]) -> Iterator[Pending]:
    """Yield the jobs of a queue that a run tests, as far as its depth reaches."""
    tested = 0
    of_partition: Counter[str] = Counter()
    for job in queue:
        if not job.waits or job.barred:
            continue
        if settings.partition_job_depth:
            name = job.site.spec.name
            of_partition[name] += 1
            if of_partition[name] > settings.partition_job_depth:
                continue
        if tested > settings.default_queue_depth:
            cut()
            if not full:
                return
        tested += 1
        yield job


class _Closed:
    """The partitions and reservations in which a job has found its nodes busy.

    Attributes
    ----------
    partitions
        by their names and boards: reservations of the platform are boards of their own
    left
        the nodes of each board that are left for later jobs, as bits
    """

    def __init__(self, settings: SlurmConf) -> None:
        self._settings = settings
        self.partitions: set[tuple[str, Board]] = set()
        self._reservations: set[tuple[str, Board]] = set()
        self.left: dict[Board, int] = {}

    def has(self, job: Pending) -> bool:
        own = job.reservation
        name, closed = (job.site.spec.name, self.partitions) if own is None else (own.name, self._reservations)
        return (name, job.board) in closed

    def found_busy(self, job: Pending) -> None:
        """Note a job that finds its nodes busy; one that names all its nodes takes only these from later ones."""
        own, must = job.reservation, job.where.must
        if own is not None:
            self._reservations.add((own.name, job.board))
        elif must and must.bit_count() >= job.shape.nodes:
            self.left[job.board] &= ~must
        else:
            self.close(job)

    def close(self, job: Pending) -> None:
        """Close the partition of a job that is old and high enough, and take its nodes from later ones."""
        if reserves(job, self._settings):
            self.partitions.add((job.site.spec.name, job.board))
            self.left[job.board] &= ~job.site.nodes


def reserves(job: Pending, settings: SlurmConf) -> bool:
    """Whether a job is old and high enough to keep nodes from others."""
    if settings.bf_min_age_reserve and job.board.now - job.submitted < settings.bf_min_age_reserve:
        return False
    return not settings.bf_min_prio_reserve or job.priority >= settings.bf_min_prio_reserve
