"""Invariants of every policy of machines on random machines, tasks and options."""

from __future__ import annotations

from hypothesis import HealthCheck, event, given, settings

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork
from simmodel.scheduling.registry import policy_names
from simmodel.systems.machine.system import Machine
from tests.helpers.examples import up_to
from tests.helpers.machine_cases import MachineCase, machine_cases
from tests.oracles.machine import Witness, check

NAMES = tuple(sorted(policy_names("tasks")))


@settings(max_examples=up_to(150), suppress_health_check=[HealthCheck.too_slow])
@given(machine_cases(NAMES))
def test_what_must_hold_holds_under_every_policy(case: MachineCase) -> None:
    env = Environment(seed=case.seed)
    machine = Machine(env, case.spec, case.policy, **case.options)
    witness = Witness(machine)
    try:
        for at, tasks in case.work:
            machine.submit(tasks, at=at)
    except ImpossibleWork:
        return
    witness.run()
    stands = any(task.state != "done" for task in machine.tasks)
    event(f"{case.policy} {'stands' if stands else 'runs to its end'}")
    check(witness, finished=not stands)
    planner = machine.scheduler.policy
    if getattr(planner, "plans", False) and case.options["decide"] == "submit":
        planned = [task for task, *_ in planner.planned]
        assert len(planned) == len(dict.fromkeys(planned)) == len(machine.tasks)
        for task, place, start, finish in planner.planned:
            assert place.can_run(task)
            assert start <= finish
