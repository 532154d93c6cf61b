"""Which running jobs make way for a waiting one: preempt/partition_prio and preempt/qos.

Source: ``_run_now`` and ``_will_run_test`` of select/cons_tres and the plug-ins of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING, NamedTuple

from simmodel.resources.pools.allocation import Allocation

if TYPE_CHECKING:
    from simmodel.policies.slurm.board import Board, Held, Pending, Stake
    from simmodel.policies.slurm.settings import SlurmConf

__all__ = ["Preemption", "Victims"]

BEGINS = 121.0
"""Seconds from a requeue to the instant from which the job may start again."""


class Victims(NamedTuple):
    """The jobs that make way for a waiting one, in order, by what they hold, and what happens to each."""

    held: tuple[Held, ...]
    modes: tuple[str, ...]

    @property
    def suspended(self) -> bool:
        """Whether all of them are suspended, so that their cores are free at once."""
        return all(mode == "suspend" for mode in self.modes)


class Preemption:
    """The rules of preemption of a cluster.

    Parameters
    ----------
    settings
        of slurm.conf
    """

    def __init__(self, settings: SlurmConf) -> None:
        self._settings = settings
        self._by_qos = settings.preempt == "qos"

    @property
    def exempts(self) -> bool:
        """Whether time alone may make a job preemptible."""
        return self._by_qos or self._settings.preempt_exempt_time > 0

    def mode_of(self, stake: Stake) -> str:
        """Return what happens to a job that is preempted: ``requeue``, ``cancel``, ``suspend``, or ``off``: nothing."""
        own = (None if stake.qos is None else stake.qos.preempt_mode) if self._by_qos else stake.partition.preempt_mode
        return own or self._settings.preempt_mode

    def grace_of(self, stake: Stake) -> float:
        """Return the seconds that a preempted job still has."""
        if self._by_qos:
            return 0.0 if stake.qos is None else stake.qos.grace_time
        return stake.partition.grace_time

    def over(self, job: Pending, other: Pending) -> bool:
        """Whether a waiting job goes before another one since it may preempt it."""
        if not self._by_qos:
            return job.site.spec.tier > other.site.spec.tier
        return job.qos is not None and other.qos is not None and other.qos.name in job.qos.preempts

    def sorted(self, queue: Sequence[Pending]) -> list[Pending]:
        """Return waiting jobs in the order of both loops: preemptors first."""
        if not self._by_qos:
            return list(queue)

        def compare(one: Pending, other: Pending) -> int:
            if self.over(one, other):
                return -1
            if self.over(other, one):
                return 1
            return -1 if one.key() < other.key() else 1

        return sorted(queue, key=cmp_to_key(compare))

    def candidates(self, job: Pending, running: Sequence[Held], now: float) -> list[Held]:
        """Return what the jobs hold that may make way for a waiting one: the lowest and smallest first."""
        found = [(held, held.stake) for held in running if held.stake is not None and held.nodes & job.site.nodes]
        mine = [(held, stake) for held, stake in found if self._may(job, stake, now)]
        if self._settings.preempt_youngest_first:
            mine.sort(key=lambda each: (-each[1].since, each[1].number))
        else:
            mine.sort(key=lambda each: (self._rank(each[1]), each[0].nodes.bit_count(), each[1].number))
        return [held for held, _ in mine]

    def _rank(self, stake: Stake) -> int:
        if self._by_qos:
            return 0 if stake.qos is None else min(stake.qos.priority, 0xFFFF)
        return stake.partition.tier

    def _may(self, job: Pending, stake: Stake, now: float) -> bool:
        """Whether a waiting job may preempt a running one now."""
        if self.mode_of(stake) == "off":
            return False
        if self._by_qos:
            if job.qos is None or stake.qos is None or stake.qos.name not in job.qos.preempts:
                return False
        elif stake.partition.tier >= job.site.spec.tier:
            return False
        own = None if stake.qos is None else stake.qos.exempt_time
        exempt = self._settings.preempt_exempt_time if own is None else own
        return exempt <= 0 or int(stake.since) + exempt <= int(now)

    def seen_by(self, board: Board, job: Pending, nodes: int) -> Board:
        """Return the board as the plan of a waiting job sees it: without candidates, unless it fits beside them."""
        if board.fits(job, nodes):
            return board
        candidates = self.candidates(job, board.running, board.now)
        return self._without(board, candidates) if candidates else board

    def _without(self, board: Board, held: Sequence[Held]) -> Board:
        table = board.table.copy()
        gone = {id(each) for each in held}
        for each in held:
            table.release(self._freed(each))
        return board.like(table, [each for each in board.running if id(each) not in gone])

    def _freed(self, held: Held) -> Allocation:
        """Return what a job gives back when it is preempted: not its memory if it is suspended."""
        if held.stake is None or self.mode_of(held.stake) != "suspend":
            return held.allocation
        rows = zip(held.allocation.numbers, *held.allocation.amounts[:2].tolist(), strict=True)
        return Allocation.of([(node, cores, gpus, 0.0) for node, cores, gpus in rows])

    def victims(self, board: Board, job: Pending, nodes: int) -> Victims | None:
        """Return the jobs that make way so that a waiting one gets some of these nodes; ``None``: none of them can.

        Candidates go one after another until the job fits. Then those that overlap most with its nodes come first, the
        last one in front, and all starts again, at most ``reorder_count`` + 1 times: so few jobs are preempted.
        """
        everyone = self.candidates(job, board.running, board.now)
        order = [held for held in everyone if held.nodes & nodes]
        settings, passes = self._settings, 0
        while True:
            table = board.table.copy()
            chosen = last = 0
            for last, held in enumerate(order):  # noqa: B007
                table.release(self._freed(held))
                found = board.like(table, ()).select(job, nodes)
                if found is not None:
                    chosen = sum(1 << node for node in found.numbers)
                    break
            if not chosen:
                return None
            passes += 1
            if passes - 1 > settings.preempt_reorder_count or len(everyone) <= passes:
                break
            if settings.preempt_strict_order:
                order.insert(0, order.pop(last))
            else:
                first, rest = order[:last], order[last + 1 :]
                first.sort(key=lambda held: -(held.nodes & chosen).bit_count())
                order = [order[last], *first, *rest]
        found_held = tuple(held for held in order[: last + 1] if held.nodes & chosen)
        return Victims(found_held, tuple(self.mode_of(held.stake) for held in found_held if held.stake is not None))
