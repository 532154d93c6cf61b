"""Which running jobs make way for a waiting one, by preempt/partition_prio and preempt/qos, and how they are stopped.

Source: ``_run_now`` and ``_will_run_test`` of select/cons_tres and the plug-ins of Slurm 22.05, by their behaviour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cmp_to_key
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.extending import Allocation
from simmodel.resources import NodePool
from simmodel.scheduling import Decision, Preempt

if TYPE_CHECKING:
    from simmodel.work import LiveJob, Run
    from simmodel_site.policy.board import Board, Held, Pending, Stake
    from simmodel_site.policy.running import Running
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["BEGINS", "Preemption", "Stops", "Victims"]

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
        mode = own or self._settings.preempt_mode
        return mode if mode != "requeue" or self._settings.requeue else "cancel"

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


class Stops:
    """The stops of running jobs that make way, at once or after their GraceTime, and when requeued ones begin again.

    Parameters
    ----------
    rules
        the rules of preemption, if there are any
    running
        what running jobs hold
    """

    def __init__(self, rules: Preemption | None, running: Running) -> None:
        self._rules = rules
        self._running = running
        self._graces: dict[int, float] = {}  # when preempted jobs, by number, are stopped
        self._begins: dict[int | str, float] = {}  # from when requeued jobs may start
        self._made: set[int] = set()  # the numbers of jobs that have been stopped since the last decision

    @property
    def next_end(self) -> float:
        """The first instant at which a GraceTime ends (s)."""
        return min(self._graces.values(), default=inf)

    @property
    def some(self) -> bool:
        """Whether a GraceTime has begun."""
        return bool(self._graces)

    def make_way(self, job: Pending, victims: Victims, now: float) -> Iterator[Decision]:
        """Preempt jobs for a waiting one at an instant (s), or let their GraceTime begin."""
        runs = {held.stake.number: run for run, held in self._running.held.items() if held.stake is not None}
        for held in victims.held:
            if held.stake is None or self._rules is None:
                continue
            run, number = runs[held.stake.number], held.stake.number
            grace = self._rules.grace_of(held.stake)
            if grace and self._rules.mode_of(held.stake) != "suspend":
                until = self._graces.setdefault(number, int(now) + grace)
                if now < until:
                    continue
            yield from self._stop(run, held, f"makes way for job {job.job.id}", now)
            job.board.stopped(held, completing=not victims.suspended)
            if not isinstance(job.job.place, NodePool):
                job.board.table.release(held.allocation)

    def end_graces(self, now: float) -> Iterator[Decision]:
        """Preempt the jobs whose GraceTime has passed at an instant (s)."""
        for run, held in list(self._running.held.items()):
            if held.stake is not None and self._graces.get(held.stake.number, inf) <= int(now):
                yield from self._stop(run, held, "its GraceTime has passed", now)

    def _stop(self, run: Run, held: Held, reason: str, now: float) -> Iterator[Decision]:
        """Preempt a running job in its mode."""
        stake = held.stake
        if stake is None or self._rules is None:
            return
        self._graces.pop(stake.number, None)
        mode = self._rules.mode_of(stake)
        if mode != "suspend":
            self._made.add(stake.number)
        if mode == "requeue":
            self._begins[run.work.id] = int(now) + BEGINS
            yield Preempt(run.work, "requeue", reason)
        elif mode == "cancel":
            yield Preempt(run.work, "cancel", reason)
        else:
            self._running.suspended(held, now)
            yield Preempt(run.work, "suspend", reason)

    def made(self, held: Held) -> bool:
        """Whether a job was stopped since the last decision, by what it held."""
        return held.stake is not None and held.stake.number in self._made

    def forget_made(self) -> None:
        """Forget the jobs that were stopped, whose ends have been noted."""
        self._made.clear()

    def begin_of(self, job: LiveJob, now: float) -> float:
        """Return the instant (s) from which a requeued job may start, once; without a stop: counted from now on."""
        return self._begins.pop(job.id, int(now) + BEGINS)

    def state(self, waiting: Iterable[Pending]) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes; ``waiting`` jobs that were requeued begin as they would."""
        begins = {job.job.id: job.begin for job in waiting if job.submitted != job.job.submit and job.waits}
        begins |= self._begins
        if not begins and not self._graces:
            return {}
        return {
            "begins": [list(each) for each in begins.items()],
            "graces": [list(each) for each in self._graces.items()],
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        self._begins = dict(values.get("begins", ()))
        self._graces = dict(values.get("graces", ()))
