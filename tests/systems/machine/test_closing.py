"""Machines that are closed at any instant: nothing goes on, nothing is left in the event queue, nothing is lost."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import assume, given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, Stalled
from simmodel.systems.machine.system import Machine
from tests.helpers.examples import up_to
from tests.helpers.machine_cases import MachineCase, machine_cases
from tests.helpers.simple_machine_policies import POLICIES


def begun(case: MachineCase) -> Machine:
    env = Environment(seed=case.seed)
    machine = Machine(env, case.spec, POLICIES[case.policy](), **case.options)
    try:
        for at, tasks in case.work:
            machine.submit(tasks, at=at)
    except ImpossibleWork:
        assume(False)
    return machine


def end_of(machine: Machine) -> float:
    with suppress(Stalled):
        machine.env.run()
    return float(machine.env.now)


@settings(max_examples=up_to(80))
@given(machine_cases(tuple(POLICIES)), st.floats(0.02, 1))
def test_a_closed_machine_stands_still(case: MachineCase, share: float) -> None:
    at = share * end_of(begun(case))
    whole, cut = begun(case), begun(case)
    for machine in (whole, cut):
        machine.env.run(until=machine.env.event_at(at))
    before = whole.result()
    cut.close()
    cut.close()
    arrivals = {each.at + after for each in cut.sets for after in each.set.submit or (0,) if each.at + after > at}
    cut.env.run()
    assert cut.env.now == max(arrivals, default=at)
    after = cut.result()
    done = before.tasks["status"] == "done"
    assert (after.tasks["status"] == "done").tolist() == done.tolist()
    assert set(after.tasks["status"][~done].tolist()) <= {"cancelled"}
    assert after.tasks["end"][done].tolist() == before.tasks["end"][done].tolist()
    assert len(after.stopped) >= len(before.stopped)
    assert cut.env.waiting_report() == []
    assert all(submission.over for submission in cut.sets)
