"""Planners: policies that assign all tasks at submission, before they are ready, to places with queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from simmodel.policies.planners.list_scheduling import cpop, heft, lookahead_heft, peft
from simmodel.policies.planners.phases import heft_setup, peft_setup
from simmodel.scheduling.problem import Plan, Problem
from simmodel.scheduling.protocol import Decides, Decision, Policy, Start, View

__all__ = ["CPOP", "HEFT", "PEFT", "HEFTSetup", "LookaheadHEFT", "PEFTSetup", "Planner"]


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
    """HEFT with the phases of tasks: see :func:`~simmodel.policies.planners.phases.heft_setup`."""

    decides = "tasks"

    def __init__(self) -> None:
        super().__init__(heft_setup, "heft-setup")


class PEFTSetup(Planner):
    """PEFT with the phases of tasks: see :func:`~simmodel.policies.planners.phases.peft_setup`."""

    decides = "tasks"

    def __init__(self) -> None:
        super().__init__(peft_setup, "peft-setup")
