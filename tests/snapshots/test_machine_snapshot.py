"""Snapshots of machines: a cut run continues as the uncut one, also through JSON and on random machines."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel import Environment, InputError, simulate
from simmodel.catalogue import load_platform
from simmodel.foundation.errors import ImpossibleWork, SnapshotError, Stalled
from simmodel.snapshots.machine import MachineSnapshot
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from tests.helpers.examples import up_to
from tests.helpers.machine_cases import MachineCase, machine_cases
from tests.helpers.simple_machine_policies import POLICIES
from tests.helpers.small_machines import WIDE_FLOW, Placed, row, small_machine, two_tasks

MOMENTS = ("ready", "taken", "setup_start", "setup_end", "reconfiguration_end", "transfer_start", "start", "end")


def run_to(machine: Machine, at: float) -> None:
    if at > machine.env.now:
        machine.env.run(until=at)


def assert_goes_on(whole: Any, part: Any) -> None:
    """Check that each task unfinished at the cut has the same instants as in the uncut run."""
    position = {str(name): i for i, name in enumerate(whole.tasks["task"].tolist())}
    rows = [position[str(name)] for name in part.tasks["task"].tolist()]
    assert part.tasks["processor"].tolist() == whole.tasks["processor"][rows].tolist()
    for moment in MOMENTS:
        np.testing.assert_allclose(part.tasks[moment], whole.tasks[moment][rows], rtol=1e-9, atol=1e-9, err_msg=moment)


@pytest.mark.few(4)
@pytest.mark.parametrize("policy", ["hrr", "greedy-ds", "earliest-finish", "min-min", "heft", "peft-setup"])
@pytest.mark.parametrize("options", [{}, {"overlap": True}, {"contention": False, "transfers": "parallel"}])
def test_a_cut_run_goes_on_as_the_uncut_one(policy: str, options: dict[str, Any]) -> None:
    spec = load_platform("hetsim-fast-setup")

    def machine() -> Machine:
        machine = Machine(Environment(seed=5), spec, policy, **options)
        machine.submit(WIDE_FLOW)
        machine.submit(TaskSet([30.0, 40.0], ids=["later", "latest"], submit=[0.0, 60.0]), at=150.0)
        return machine

    whole = machine()
    whole.env.run()
    uncut = whole.result()
    for at in np.random.default_rng(1).uniform(0, uncut.ended, 12).round(3):
        cut = machine()
        run_to(cut, at)
        snapshot = cut.snapshot()
        again = MachineSnapshot.from_json(snapshot.to_json())
        assert again == snapshot
        assert hash(again) == hash(snapshot)
        on = Machine.from_snapshot(Environment(cut.env.now), again)
        on.env.run()
        assert_goes_on(uncut, on.result())
        cut.env.run()  # taking a snapshot changes nothing
        np.testing.assert_allclose(cut.result().tasks["end"], uncut.tasks["end"], rtol=1e-12)


def made(case: MachineCase) -> Machine:
    policy = POLICIES.get(case.policy)
    machine = Machine(
        Environment(seed=case.seed), case.spec, case.policy if policy is None else policy(), **case.options
    )
    for at, tasks in case.work:
        machine.submit(tasks, at=at)
    return machine


def ended(machine: Machine) -> bool:
    try:
        machine.env.run()
    except Stalled:
        return False
    return True


@settings(max_examples=up_to(120), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(machine_cases(("anywhere", "first", "earliest", "hrr")), st.lists(st.floats(0, 1), min_size=1, max_size=3))
def test_random_machines_cut_several_times_end_as_uncut_ones(case: MachineCase, shares: list[float]) -> None:
    try:
        whole = made(case)
    except ImpossibleWork:
        return
    finished = ended(whole)
    uncut = whole.result()
    machine = made(case)
    for share in sorted(shares):
        run_to(machine, share * uncut.ended * 1.01)
        snapshot = MachineSnapshot.from_json(machine.snapshot().to_json())
        policy = None if case.policy == "hrr" else POLICIES[case.policy]()
        machine = Machine.from_snapshot(Environment(machine.env.now, case.seed), snapshot, policy)
    assert ended(machine) == finished
    assert_goes_on(uncut, machine.result())


# ---------------------------------------------------------------------- by hand


def test_the_phases_go_on_where_they_were() -> None:
    # p on cpu0 0-10; c on gpu0: setup 10-110, transfer 110-112, execution 112-162.
    for at in (5, 60, 111, 130):
        machine = two_tasks()
        machine.env.run(until=at)
        on = simulate(machine.snapshot())
        assert row(on, "c", "setup_start", "setup_end", "transfer_start", "transfer_end", "start", "end") == (
            *(10, 110, 110, 112, 112, 162),
        )
        assert on.transfers["end"].tolist() == ([112] if at < 112 else [])


def test_a_snapshot_continues_under_another_policy_with_more_work() -> None:
    machine = two_tasks()
    machine.env.run(until=5)
    on = simulate(machine.snapshot(), [(20.0, TaskSet([7.0], ids=["x"]))], "greedy-et")
    assert row(on, "c", "processor") == ("cpu0",)
    assert row(on, "x", "start", "end") == (60, 67)
    assert simulate(machine.snapshot(), until=50).tasks["status"].tolist() == ["done", "running"]


def test_the_same_state_has_the_same_digest() -> None:
    one, other = two_tasks(), two_tasks()
    for machine in (one, other):
        machine.env.run(until=60)
    assert one.snapshot() == other.snapshot()
    other.env.run(until=61)
    assert one.snapshot() != other.snapshot()


def test_what_cannot_be_copied_is_named() -> None:
    spec = small_machine(
        {"name": "pim", "model": "tests.helpers.sliced_processor:Refreshed", "options": {"slice": 4, "pause": 1}}
    )
    machine = Machine(Environment(), spec, Placed({"t": "pim"}))
    machine.submit(TaskSet([10.0], ids=["t"]))
    machine.env.run(until=3)
    with pytest.raises(SnapshotError, match=r"task t cannot be copied: it is inside Refreshed.execute of pim"):
        machine.snapshot()


def test_a_policy_that_has_no_name_is_given_again() -> None:
    machine = Machine(Environment(), small_machine(), Placed({"t": "cpu0"}))
    machine.submit(TaskSet([10.0], ids=["t"]))
    machine.env.run(until=3)
    with pytest.raises(InputError, match="policy 'Placed' was passed as an object: pass it again"):
        simulate(machine.snapshot())
    assert simulate(machine.snapshot(), policy=Placed({"t": "cpu0"})).tasks["end"].tolist() == [10]


@pytest.mark.parametrize(("change", "message"), [
    ({"tasks": None}, "tasks: must be a mapping of columns, got None"),
    ({"waiting": [2.9]}, r"waiting\[0\]: must be a whole number >= 0, got 2.9"),
    ({"waiting": [7]}, r"waiting\[0\]: must be the number of a task, below 2, got 7"),
    ({"new": "many", "colour": 1}, "unknown key 'colour'"),
    ({"schema": 1}, "schema: must be 2, got 1, an older version"),
    ({"system": "engine"}, "system: unknown system 'engine'"),
])  # fmt: skip
def test_a_wrong_document_is_refused(change: dict[str, Any], message: str) -> None:
    document = json.loads(two_tasks().snapshot().to_json()) | change
    with pytest.raises(InputError, match=message):
        MachineSnapshot.from_json(json.dumps(document))


def test_a_missing_key_is_named() -> None:
    document = json.loads(two_tasks().snapshot().to_json())
    del document["tasks"]
    with pytest.raises(InputError, match="tasks: missing key"):
        MachineSnapshot.from_json(json.dumps(document))
