"""Random machines, tasks and options under simple policies: what must hold whatever happens."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, event, given, settings
from machine_cases import MachineCase, machine_cases
from oracles.machine import Witness, check, could_go_on

from simmodel.environment import Environment
from simmodel.errors import ImpossibleWork
from simmodel.scheduling.protocol import Preempt, Start, WakeAt
from simmodel.systems.machine.system import Machine


def anywhere(view: Any) -> Any:
    """Any processor that can run it."""
    for task in view.waiting:
        able = [place for place in view.places if place.can_run(task)]
        yield Start(task, able[int(view.rng.integers(len(able)))])


def first(view: Any) -> Any:
    """All to the first processor that can run them."""
    for task in view.waiting:
        yield Start(task, next(place for place in view.places if place.can_run(task)))


def earliest(view: Any) -> Any:
    """Where it is expected to end first; all estimates are numbers."""
    for task in view.waiting:
        able = [place for place in view.places if place.can_run(task)]
        estimates = {place: view.estimate(task, place) for place in able}
        assert all(0 <= value < float("inf") for estimate in estimates.values() for value in estimate)
        yield Start(task, min(able, key=lambda place: (estimates[place].finish, place.index)))


class Lazy:
    """One task at a time, the last of those that wait, and the next one a while later."""

    name = "lazy"

    def decide(self, view: Any) -> Any:
        waiting = list(view.waiting)
        assert len(waiting) == len(view.waiting) == len(dict.fromkeys(waiting)), waiting
        if waiting:
            ready = [task for task in waiting if task.state == "waiting"]
            task = (ready or waiting)[-1]
            yield Start(task, [place for place in view.places if place.can_run(task)][-1])
            yield WakeAt(view.now + 0.5)


class Restless:
    """Anywhere, and now and then a running task is stopped for no reason."""

    name = "restless"

    def __init__(self) -> None:
        self.left = 8
        self.wakes = 40

    def decide(self, view: Any) -> Any:
        if self.left:
            for run in view.running:
                if self.left and run.place.spec.preemption != "no" and run.place.why_not_stop(run.work) is None:
                    self.left -= 1
                    yield Preempt(run.work, "suspend" if self.left % 2 else "requeue", "no reason")
            self.wakes -= 1
            if self.wakes > 0:
                yield WakeAt(view.now + 1.5)
        waiting = list(view.waiting)
        assert len(waiting) == len(view.waiting) == len(dict.fromkeys(waiting)), waiting
        if self.wakes <= 0 or self.left % 3 != 2:
            yield from anywhere(view)


POLICIES = {"anywhere": lambda: anywhere, "first": lambda: first, "earliest": lambda: earliest, "lazy": Lazy,
            "restless": Restless}  # fmt: skip


def run(case: MachineCase) -> Witness | None:
    """Run a case and check it; ``None`` where its tasks are impossible."""
    env = Environment(seed=case.seed)
    machine = Machine(env, case.spec, POLICIES[case.policy](), **case.options)
    witness = Witness(machine)
    try:
        for at, tasks in case.work:
            machine.submit(tasks, at=at)
    except ImpossibleWork:
        return None
    witness.run()
    stands = any(task.state != "done" for task in machine.tasks)
    event("stands" if stands else "runs to its end")
    check(witness, finished=not stands)
    if stands:
        assert not could_go_on(machine), could_go_on(machine)
    return witness


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(machine_cases(tuple(POLICIES)))
def test_what_must_hold_holds(case: MachineCase) -> None:
    run(case)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(machine_cases(tuple(POLICIES)))
def test_the_same_seed_gives_the_same_run(case: MachineCase) -> None:
    one, other = run(case), run(case)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        tables = [witness.machine.result().tasks for witness in (one, other)]
        assert repr(list(tables[0].rows())) == repr(list(tables[1].rows()))
        assert [moved for moved, _ in one.moves] == [moved for moved, _ in other.moves] or all(
            a[:6] == b[:6] for (a, _), (b, _) in zip(one.moves, other.moves, strict=True)
        )
