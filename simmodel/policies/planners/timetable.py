"""Timetables of partial plans: gaps on processors, arrivals of data in pools, and the earliest end of a task."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.scheduling.problem import Plan, Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MANY", "IdleGaps", "Slot", "Timetable", "first_joint", "joints_of", "take_gap"]

Slot = tuple[int, float, float]
"""A processor, and the begin and end of the time for which it would be held (s)."""

MANY = 300  # count of numbers from which numpy is faster than Python


def take_gap(
    starts: list[float], ends: list[float], start: float, finish: float, joints: list[float] | None = None
) -> None:
    """Remove the time from ``start`` to ``finish`` from the gap that contains it.

    Parameters
    ----------
    starts, ends
        starts and ends of the gaps, in order (s); gaps of zero length are omitted
    joints
        starts and ends of all that was taken, in order (s), where tasks of no length may stand; ``None``: not needed

    >>> starts, ends = [0.0, 8.0], [5.0, inf]
    >>> take_gap(starts, ends, 1.0, 5.0)
    >>> starts, ends
    ([0.0, 8.0], [1.0, inf])
    """
    gap = bisect_right(starts, start) - 1
    if joints is not None:
        insort(joints, start)
        insort(joints, finish)
        if start == finish and (gap < 0 or start > ends[gap]):
            return
    before, after = starts[gap] < start, finish < ends[gap]
    if before and after:
        starts.insert(gap + 1, finish)
        ends.insert(gap, start)
    elif before:
        ends[gap] = start
    elif after:
        starts[gap] = finish
    else:
        del starts[gap], ends[gap]


def first_joint(joints: list[float], early: float) -> float:
    """Return the first of the joints of :func:`take_gap` that is not before ``early`` (s); infinity if none is."""
    at = bisect_left(joints, early)
    return joints[at] if at < len(joints) else inf


def joints_of(problem: Problem) -> list[list[float]] | None:
    """Return an empty list of joints for each processor, or ``None`` if no task of the problem has no length."""
    return [[] for _ in problem.available] if any(0.0 in row for row in problem.run) else None


class IdleGaps:
    """The free cores of one processor over time.

    A task of no length holds its cores for an instant: tasks placed later do not run across it.

    >>> profile = IdleGaps(4, at=0.0)
    >>> profile.take(0.0, 10.0, 3)
    >>> profile.earliest(0.0, 5.0, 1), profile.earliest(0.0, 5.0, 2)
    (0.0, 10.0)
    """

    __slots__ = ("free", "times")

    def __init__(self, capacity: float, at: float) -> None:
        self.times = [at]
        self.free = [capacity]

    def earliest(self, at: float, seconds: float, cores: float) -> float:
        """Return the first instant (s), not before ``at``, from which ``cores`` cores are free for ``seconds``."""
        times, free = self.times, self.free
        start = max(at, times[0])
        i = bisect_right(times, start) - 1
        while i < len(times) and (times[i] < start + seconds or times[i] == start):
            i += 1
            if free[i - 1] < cores:
                start = times[i]
        return start

    def take(self, start: float, finish: float, cores: float) -> None:
        """Take cores from ``start`` to ``finish`` (s)."""
        self._at(start)
        first = bisect_right(self.times, start) - 1
        if start == finish:
            self.times.insert(first, start)
            self.free.insert(first, self.free[first] - cores)
            return
        for i in range(first, self._at(finish)):
            self.free[i] -= cores

    def _at(self, instant: float) -> int:
        i = bisect_left(self.times, instant)
        if i == len(self.times) or self.times[i] != instant:
            self.times.insert(i, instant)
            self.free.insert(i, self.free[i - 1])
        return i


class Timetable:
    """The placed tasks, and the remaining gaps on each processor.

    The last gap of each processor never ends. Among equally good slots the first one is taken. A task of no length may
    stand between two tasks that follow each other without a gap (on a processor of one core).

    Parameters
    ----------
    problem
        the scheduling problem
    insertion
        whether a task may fill a gap between others; else it is appended

    Attributes
    ----------
    processor, start, finish
        for each task as in a :class:`~simmodel.scheduling.problem.Plan`; processor -1: not placed yet
    starts, ends
        starts and ends of the gaps of each processor (s)

    >>> table = Timetable(Problem([[4.0, 9.0], [4.0, 9.0]], parents=[(), ()], latency=[[0, 1], [1, 0]],
    ...                           per_byte=[[0, 0], [0, 0]]))
    >>> table.place(0, table.best(0, table.ready(0)))
    >>> table.best(1, table.ready(1))
    (0, 4.0, 8.0)
    """

    def __init__(self, problem: Problem, *, insertion: bool = True) -> None:
        n = len(problem.run)
        self.problem = problem
        self.insertion = insertion
        self.processor = [-1] * n
        self.start = [0.0] * n
        self.finish = [0.0] * n
        self.starts: list[list[float]] = [[at] for at in problem.available]
        self.ends: list[list[float]] = [[inf] for _ in problem.available]
        self._nothing = [0.0] * len(problem.pools)
        self._wide = {j: IdleGaps(cores, problem.available[j]) for j, cores in enumerate(problem.capacity) if cores > 1}
        self._joints = joints_of(problem) if insertion else None
        self._links: NDArray[np.float64] | None = None
        # All links between different pools are equal: see _with_uniform.
        between = {link for i, row in enumerate(problem.links) for j, link in enumerate(row) if i != j}
        self._uniform = next(iter(between)) if len(between) == 1 else None

    def ready(self, task: int) -> list[float]:
        """Return for each pool the instant (s) at which all inputs of a task can be there.

        Parents that are not placed yet are ignored.
        """
        problem = self.problem
        if problem.arrival is None:
            ready = [problem.now] * len(problem.links)
        else:
            row = problem.arrival[task]
            ready = [row[j] for j in problem.first]
        return self.with_parents(ready, problem.parents[task])

    def with_parents(self, ready: list[float], parents: Sequence[tuple[int, float]]) -> list[float]:
        """Return for each pool the later of a given instant and the arrival of the data from parents (s).

        Parameters
        ----------
        ready
            an instant for each pool (s)
        parents
            pairs (position, bytes); parents that are not placed yet are ignored
        """
        pools, links, finish, processor = self.problem.pools, self.problem.links, self.finish, self.processor
        if self._uniform is not None and len(links) > 2:
            return self._with_uniform(ready, parents, *self._uniform)
        if len(parents) * len(links) >= MANY:
            return self._with_many(ready, parents)
        for parent, size in parents:
            j = processor[parent]
            if j >= 0:
                end = finish[parent]
                ready = [
                    at if at >= (here := end + latency + size * per_byte) else here
                    for at, (latency, per_byte) in zip(ready, links[pools[j]], strict=True)
                ]
        return ready

    def _with_many(self, ready: list[float], parents: Sequence[tuple[int, float]]) -> list[float]:
        """Return the same for many parents and pools, with numpy."""
        processor, pools, finish = self.processor, self.problem.pools, self.finish
        known = [(finish[parent], size, pools[processor[parent]]) for parent, size in parents if processor[parent] >= 0]
        if not known:
            return ready
        if self._links is None:
            self._links = np.array(self.problem.links)
        columns = np.array(known)
        links = self._links[columns[:, 2].astype(np.intp)]
        there = columns[:, :1] + links[:, :, 0] + columns[:, 1:2] * links[:, :, 1]
        found: list[float] = np.maximum(there.max(axis=0), ready).tolist()
        return found

    def _with_uniform(
        self, ready: list[float], parents: Iterable[tuple[int, float]], latency: float, per_byte: float
    ) -> list[float]:
        """Return the same if all pools are equally far from each other, from two arrivals."""
        pools, finish, processor = self.problem.pools, self.finish, self.processor
        ready = list(ready)
        latest = second = -inf  # arrivals from the pool that sends the latest, and from all others
        sender = -1
        for parent, size in parents:
            j = processor[parent]
            if j < 0:
                continue
            pool, end = pools[j], finish[parent]
            if end > ready[pool]:
                ready[pool] = end
            here = end + latency + size * per_byte
            if pool == sender:
                if here > latest:
                    latest = here
            elif here > latest:
                latest, second, sender = here, latest, pool
            elif here > second:
                second = here
        if sender < 0:
            return ready
        own = ready[sender]
        ready = [at if at >= latest else latest for at in ready]
        ready[sender] = own if own >= second else second
        return ready

    def best(self, task: int, ready: Sequence[float], extra: Sequence[float] | None = None) -> Slot:
        """Return the slot with the least end (s) of a task, after adding ``extra`` on each processor (default: 0)."""
        if self._wide or (self._joints is not None and 0.0 in self.problem.run[task]):
            return self._best_of_all(task, ready, extra)
        insertion = self.insertion
        least = inf
        chosen, start, finish = -1, 0.0, 0.0
        rows = zip(
            self.problem.run[task], self.problem.pools, extra or self._nothing, self.starts, self.ends, strict=True
        )
        for j, (seconds, pool, more, starts, ends) in enumerate(rows):
            early = ready[pool]
            end = early + seconds
            if end + more >= least:  # no gap can be better
                continue
            gap = bisect_left(ends, end) if insertion else len(ends) - 1
            begin = starts[gap]
            if begin <= early:
                begin = early
            else:
                end = begin + seconds
                while end > ends[gap] and end + more < least:
                    gap += 1
                    begin = starts[gap]
                    end = begin + seconds
                if end + more >= least:
                    continue
            least = end + more
            chosen, start, finish = j, begin, end
        return chosen, start, finish

    def slot(self, task: int, j: int, early: float) -> Slot:
        """Return the first slot of a task on one processor, not before ``early`` (s)."""
        problem = self.problem
        seconds = problem.run[task][j]
        if j in self._wide:
            profile = self._wide[j]
            at = early if self.insertion else max(early, profile.times[-1])
            begin = profile.earliest(at, seconds, problem.cores[task])
            return j, begin, begin + seconds
        starts, ends = self.starts[j], self.ends[j]
        gap = bisect_left(ends, early + seconds) if self.insertion else len(ends) - 1
        begin = max(starts[gap], early)
        while begin + seconds > ends[gap]:
            gap += 1
            begin = starts[gap]
        if not seconds and self._joints is not None:
            begin = min(begin, first_joint(self._joints[j], early))
        return j, begin, begin + seconds

    def _best_of_all(self, task: int, ready: Sequence[float], extra: Sequence[float] | None) -> Slot:
        extra = extra or self._nothing
        pools = self.problem.pools
        able = [j for j, seconds in enumerate(self.problem.run[task]) if seconds < inf]
        slots = [self.slot(task, j, ready[pools[j]]) for j in able]
        return min(slots, key=lambda slot: slot[2] + extra[slot[0]])

    def place(self, task: int, slot: Slot) -> None:
        """Place a task in a free slot."""
        j, start, finish = slot
        self.processor[task] = j
        self.start[task] = start
        self.finish[task] = finish
        if j in self._wide:
            self._wide[j].take(start, finish, self.problem.cores[task])
        else:
            take_gap(self.starts[j], self.ends[j], start, finish, None if self._joints is None else self._joints[j])

    def remember(self, j: int) -> tuple[list[float], ...]:
        """Return the free time of a processor, for :meth:`restore`."""
        if j in self._wide:
            profile = self._wide[j]
            return profile.times[:], profile.free[:]
        joints = () if self._joints is None else (self._joints[j][:],)
        return self.starts[j][:], self.ends[j][:], *joints

    def restore(self, j: int, free: tuple[list[float], ...]) -> None:
        """Restore the free time of a processor; the entries of tasks placed since remain."""
        if j in self._wide:
            self._wide[j].times, self._wide[j].free = free
            return
        self.starts[j], self.ends[j], *joints = free
        if self._joints is not None:
            self._joints[j] = joints[0]

    def plan(self) -> Plan:
        """Return the plan, once all tasks are placed."""
        return Plan.of(self.problem, self.processor, self.start, self.finish)
