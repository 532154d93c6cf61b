"""Planners: policies that assign all tasks at submission, before they are ready, to places with queues.

With phases: HEFT and PEFT model only processors and distances. Here a task holds a processor from the instant at
which its parents are done and the processor is free. Then a CPU core sets it up, its family is loaded if another one
is, the data missing in the pool move there (earlier, if the processor fetches data while busy), and it runs, one
phase after another. The time of CPU cores spent on setups is planned like that of their own tasks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from simmodel.policies.planners.list_scheduling import (
    by_rank,
    cpop,
    heft,
    lookahead_heft,
    optimistic_costs,
    optimistic_ranks,
    peft,
    ready_first,
    upward_ranks,
)
from simmodel.policies.planners.timetable import IdleGaps, first_joint, joints_of, take_gap
from simmodel.scheduling.problem import Plan, Problem
from simmodel.scheduling.protocol import Decides, Decision, Policy, Start, View

__all__ = [
    "CPOP",
    "HEFT",
    "PEFT",
    "HEFTSetup",
    "LookaheadHEFT",
    "PEFTSetup",
    "PhaseTable",
    "Planner",
    "heft_setup",
    "peft_setup",
]


Held = tuple[int, float, float]
"""A CPU core, and the begin and end of the time for which it is held (s)."""


class Course(NamedTuple):
    """The course of a task on a processor: instants of its phases (s), CPU cores held, and data objects fetched."""

    processor: int
    taken: float
    start: float
    finish: float
    held: tuple[Held, ...]
    brought: tuple[tuple[int, float], ...]  # data objects, and their arrivals in the pool (s)


class PhaseTable:
    """A partial plan with the phases of tasks.

    Tasks fill gaps between others (those of no length also the boundary between two that follow each other), except on
    processors that reconfigure, where they are appended: there the order determines the reconfigurations.

    Parameters
    ----------
    problem
        the scheduling problem

    >>> table = PhaseTable(Problem([[9.0, 2.0]], [()], [[0, 0], [0, 0]], [[0, 0], [0, 0]], setup=[0.0, 5.0],
    ...                            setup_core=[None, 0]))
    >>> table.course(0, 1, 0.0)
    Course(processor=1, taken=0.0, start=5.0, finish=7.0, held=((0, 0.0, 5.0),), brought=())
    """

    def __init__(self, problem: Problem) -> None:
        n = len(problem.run)
        self.problem = problem
        self.processor = [-1] * n
        self.start = [0.0] * n
        self.finish = [0.0] * n
        self.taken = [0.0] * n
        self.held: list[tuple[int, int, float, float]] = []
        self.starts: list[list[float]] = [[at] for at in problem.available]
        self.ends: list[list[float]] = [[inf] for _ in problem.available]
        self.loaded = list(problem.loaded)
        self._wide = {j: IdleGaps(cores, problem.available[j]) for j, cores in enumerate(problem.capacity) if cores > 1}
        self._joints = joints_of(problem)
        self._cores = [
            () if cores is None else (cores,) if isinstance(cores, int) else tuple(cores)
            for cores in problem.setup_core
        ]
        if problem.reads is None or problem.writes is None:
            self._each_edge(problem)
        else:
            self.sizes, self.reads, self.writes = problem.sizes, problem.reads, problem.writes
            self.copies = [dict(found) for found in problem.copies or [{}] * len(problem.sizes)]
            self._late = False

    def _each_edge(self, problem: Problem) -> None:
        """Create one data object per edge; ``arrival`` covers data from outside."""
        self.sizes = [size for found in problem.parents for _, size in found]
        reads: list[list[int]] = []
        writes: list[list[int]] = [[] for _ in problem.run]
        count = 0
        for found in problem.parents:
            reads.append(list(range(count, count + len(found))))
            for parent, _ in found:
                writes[parent].append(count)
                count += 1
        self.reads, self.writes = reads, writes
        self.copies = [{} for _ in range(count)]
        self._late = problem.arrival is not None

    def done(self, task: int) -> float:
        """Return the instant (s) at which the parents of a task are done and its data exist."""
        problem, copies = self.problem, self.copies
        done = problem.now
        for parent, _ in problem.parents[task]:
            done = max(done, self.finish[parent])
        for data in self.reads[task]:
            if copies[data]:
                done = max(done, min(copies[data].values()))
        if self._late and problem.arrival is not None:
            done = max(done, min(problem.arrival[task]))
        return done

    def course(self, task: int, j: int, done: float, least: float = inf) -> Course | None:
        """Return the course of a task on a processor with the earliest end; ``None`` if not before ``least`` (s).

        Parameters
        ----------
        done
            the instant (s) that :meth:`done` returns for the task
        """
        problem = self.problem
        shortest = problem.setup[j] + problem.run[task][j]
        if done + shortest >= least:
            return None
        if j in self._wide:
            profile = self._wide[j]
            taken = done
            while True:
                course = self._from(task, j, taken)
                if course.finish >= least:
                    return None
                begin = profile.earliest(taken, course.finish - taken, problem.cores[task])
                if begin <= taken:
                    return course
                taken = begin
        starts, ends = self.starts[j], self.ends[j]
        gap = len(starts) - 1 if problem.reconfigures[j] else bisect_left(ends, done + shortest)
        if not shortest and self._joints is not None and not problem.reconfigures[j]:
            taken = first_joint(self._joints[j], done)
            if taken < max(starts[gap], done):
                course = self._from(task, j, taken)
                if course.finish == taken:  # no transfer, either
                    return course if taken < least else None
        while True:
            taken = max(starts[gap], done)
            if taken + shortest <= ends[gap]:
                course = self._from(task, j, taken)
                if course.finish >= least:
                    return None
                if course.finish <= ends[gap]:
                    return course
            gap += 1

    def _from(self, task: int, j: int, taken: float) -> Course:
        """Return the course of a task that holds a processor from the instant ``taken`` (s)."""
        problem = self.problem
        at = taken
        held: list[Held] = []
        if problem.setup[j]:
            at = self._hold(j, at, problem.setup[j], held)
        if problem.reconfigures[j] and problem.family[task] != self.loaded[j]:
            at += problem.reconfiguration[task]
        brought: list[tuple[int, float]] = []
        start = max(at, self._bring(task, j, problem.now if problem.overlap[j] else at, brought))
        if start > at and not problem.dma[j]:
            end = self._hold(j, at, start - at, held)
            brought = [(data, when + (end - start)) for data, when in brought]
            start = end
        if self._late and problem.arrival is not None:
            start = max(start, problem.arrival[task][j])
        return Course(j, taken, start, start + problem.run[task][j], tuple(held), tuple(brought))

    def _hold(self, j: int, at: float, seconds: float, held: list[Held]) -> float:
        """Hold the CPU core that is free first for some seconds, and return the end (s)."""
        cores = self._cores[j]
        if not cores or j in cores:
            return at + seconds
        first: Held | None = None
        for core in cores:
            starts, ends = self.starts[core], self.ends[core]
            own = [each for each in held if each[0] == core]
            begin = max([at, *(end for _, _, end in own)])
            gap = bisect_left(ends, begin + seconds)
            while max(starts[gap], begin) + seconds > ends[gap]:
                gap += 1
            begin = max(starts[gap], begin)
            if first is None or begin < first[1]:
                first = core, begin, begin + seconds
        assert first is not None
        held.append(first)
        return first[2]

    def _bring(self, task: int, j: int, at: float, brought: list[tuple[int, float]]) -> float:
        """Fetch the inputs of a task from the instant ``at``, and return the instant at which all have arrived (s)."""
        problem = self.problem
        pool = problem.pools[j]
        links = problem.links
        last = at
        one_by_one = not problem.parallel and not problem.overlap[j]
        for data in self.reads[task]:
            copies = self.copies[data]
            begin = last if one_by_one else at
            here = copies.get(pool, inf)
            if here > begin:
                size = self.sizes[data]
                for source, since in copies.items():
                    if source != pool:
                        latency, per_byte = links[source][pool]
                        here = min(here, max(begin, since) + latency + size * per_byte)
                if here == inf:  # no known copy: assume one here
                    continue
                brought.append((data, here))
                last = max(last, here)
        return last

    def place(self, task: int, course: Course) -> None:
        """Place a task with this course."""
        j, taken, start, finish, held, brought = course
        problem = self.problem
        pool = problem.pools[j]
        self.processor[task], self.taken[task] = j, taken
        self.start[task], self.finish[task] = start, finish
        if j in self._wide:
            self._wide[j].take(taken, finish, problem.cores[task])
        else:
            take_gap(self.starts[j], self.ends[j], taken, finish, None if self._joints is None else self._joints[j])
        for core, begin, end in held:
            take_gap(
                self.starts[core], self.ends[core], begin, end, None if self._joints is None else self._joints[core]
            )
            self.held.append((core, task, begin, end))
        if problem.reconfigures[j]:
            self.loaded[j] = problem.family[task]
        for data, at in brought:
            self.copies[data][pool] = min(at, self.copies[data].get(pool, inf))
        for data in self.writes[task]:
            self.copies[data] = {pool: finish}

    def plan(self) -> Plan:
        """Return the plan, once all tasks are placed."""
        return Plan.of(self.problem, self.processor, self.start, self.finish, self.taken, sorted(self.held))


def _with_setup(problem: Problem) -> list[list[float]]:
    """Return the seconds that tasks hold processors, without transfers: setup, reconfiguration if needed now, run."""
    extra = list(zip(problem.setup, problem.reconfigures, problem.loaded, strict=True))
    return [
        [
            seconds + setup + (load if reconfigures and loaded != family else 0.0)
            for seconds, (setup, reconfigures, loaded) in zip(row, extra, strict=True)
        ]
        for row, load, family in zip(problem.run, problem.reconfiguration, problem.family, strict=True)
    ]


def _plan(problem: Problem, tasks: Iterable[int], extra: Sequence[Sequence[float]] | None = None) -> Plan:
    """Place tasks in turn where their end plus ``extra``, by task and pool, is least."""
    table = PhaseTable(problem)
    pools = problem.pools
    for task in tasks:
        done = table.done(task)
        row = None if extra is None else extra[task]
        best, least = None, inf
        for j, seconds in enumerate(problem.run[task]):
            if seconds < inf:
                more = 0.0 if row is None else row[pools[j]]
                course = table.course(task, j, done, least - more)
                if course is not None and course.finish + more < least:
                    best, least = course, course.finish + more
        assert best is not None
        table.place(task, best)
    return table.plan()


def heft_setup(problem: Problem) -> Plan:
    """Return the plan of HEFT with setup, reconfiguration and transfers planned as separate phases.

    Ranks include the setup and reconfiguration of a task in its run time.

    >>> problem = Problem([[10.0, 2.0], [10.0, 2.0]], [(), ()], [[0, 0], [0, 0]], [[0, 0], [0, 0]], setup=[0.0, 5.0],
    ...                   setup_core=[None, 0])
    >>> plan = heft_setup(problem)
    >>> plan.processor, plan.start, plan.held
    ([1, 1], [5.0, 12.0], ((0, 0, 0.0, 5.0), (0, 1, 7.0, 12.0)))
    """
    costs = _with_setup(problem)
    means = [_mean(row) for row in costs]
    return _plan(problem, by_rank(problem, upward_ranks(problem, means)))


def peft_setup(problem: Problem) -> Plan:
    """Return the plan of PEFT with setup, reconfiguration and transfers planned as separate phases.

    The optimistic costs include the setup and reconfiguration of a task in its run time.

    >>> problem = Problem([[10.0, 2.0], [10.0, 2.0]], [(), ()], [[0, 0], [0, 0]], [[0, 0], [0, 0]], setup=[0.0, 5.0],
    ...                   setup_core=[None, 0])
    >>> peft_setup(problem).makespan
    14.0
    """
    table = optimistic_costs(problem, _with_setup(problem))
    return _plan(problem, ready_first(problem, optimistic_ranks(problem, table)), table)


def _mean(row: Sequence[float]) -> float:
    found = [seconds for seconds in row if seconds < inf]
    return sum(found) / len(found)


class Planner(Policy):
    """A policy that plans all waiting tasks, ready or not, and queues them in the order of the plan.

    Tasks that are submitted later are planned then, behind the queued ones. A grid sends each task to its planned site
    once it is ready.

    Parameters
    ----------
    plan
        a function of a :class:`~simmodel.scheduling.problem.Problem` that returns a
        :class:`~simmodel.scheduling.problem.Plan`
    name
        its name in results and errors

    Attributes
    ----------
    planned
        the planned tasks so far: task, place, start, finish (s), in the order of the queues

    >>> from simmodel.policies.planners.list_scheduling import heft
    >>> Planner(lambda problem: heft(problem, insertion=False), "heft-append").name
    'heft-append'
    """

    decides: Decides = "plans"
    plans = True

    def __init__(self, plan: Callable[[Problem], Plan], name: str) -> None:
        self.plan = plan
        self.name = name
        self.planned: list[tuple[Any, Any, float, float]] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self.planned)} tasks planned>"

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Plan and queue the waiting tasks."""
        assert view.problem is not None
        problem = view.problem()
        processor, start, finish, order = self.plan(problem)[:4]
        tasks, places = problem.tasks, problem.places
        for i in order:
            task, place = tasks[i], places[processor[i]]
            self.planned.append((task, place, start[i], finish[i]))
            yield Start(task, place)


class HEFT(Planner):
    """Heterogeneous earliest finish time: see :func:`~simmodel.policies.planners.list_scheduling.heft`.

    Parameters
    ----------
    insertion
        whether a task may fill a gap between others

    >>> HEFT().name, HEFT(insertion=False).name
    ('heft', 'heft-append')
    """

    def __init__(self, *, insertion: bool = True) -> None:
        self.insertion = insertion
        super().__init__(partial(heft, insertion=insertion), "heft" if insertion else "heft-append")


class CPOP(Planner):
    """Critical path on a processor: see :func:`~simmodel.policies.planners.list_scheduling.cpop`."""

    def __init__(self) -> None:
        super().__init__(cpop, "cpop")


class PEFT(Planner):
    """Predict earliest finish time: see :func:`~simmodel.policies.planners.list_scheduling.peft`."""

    def __init__(self) -> None:
        super().__init__(peft, "peft")


class LookaheadHEFT(Planner):
    """HEFT with lookahead to the children: see :func:`~simmodel.policies.planners.list_scheduling.lookahead_heft`."""

    def __init__(self) -> None:
        super().__init__(lookahead_heft, "lookahead")


class HEFTSetup(Planner):
    """HEFT with the phases of tasks: see :func:`~simmodel.policies.planners.planner.heft_setup`."""

    decides = "tasks"

    def __init__(self) -> None:
        super().__init__(heft_setup, "heft-setup")


class PEFTSetup(Planner):
    """PEFT with the phases of tasks: see :func:`~simmodel.policies.planners.planner.peft_setup`."""

    decides = "tasks"

    def __init__(self) -> None:
        super().__init__(peft_setup, "peft-setup")
