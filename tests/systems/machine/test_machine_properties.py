"""Invariants of random machines, tasks and options under simple policies."""

from __future__ import annotations

from hypothesis import HealthCheck, event, given, settings

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork
from simmodel.systems.machine.system import Machine
from tests.helpers.examples import up_to
from tests.helpers.machine_cases import MachineCase, machine_cases
from tests.helpers.simple_machine_policies import POLICIES
from tests.oracles.machine import Witness, check, could_go_on


def run(case: MachineCase) -> Witness | None:
    """Run a case and check it; ``None`` if its tasks are impossible."""
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


@settings(max_examples=up_to(150), suppress_health_check=[HealthCheck.too_slow])
@given(machine_cases(tuple(POLICIES)))
def test_invariants_hold_on_random_machines(case: MachineCase) -> None:
    run(case)


@settings(max_examples=up_to(20), suppress_health_check=[HealthCheck.too_slow])
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
