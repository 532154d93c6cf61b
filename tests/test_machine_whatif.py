"""What-ifs of machines: futures of their snapshots under other policies, from what a policy may know."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from simmodel import Branch, Environment, InputError, Job, Task, Workflow, what_if
from simmodel.catalogue import load_platform
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from tests.machines import MB, small_machine


def makespan(sample: Any) -> float:
    return sample.ended


def started(policy: str = "hrr") -> Machine:
    machine = Machine(Environment(seed=0), small_machine({"name": "gpu0", "setup": 100}), policy)
    machine.submit(Workflow([Task(id="p", run=10), Task(id="c", run=50)], [("p", "c", 50 * MB)]))
    machine.submit(TaskSet([7.0], ids=["later"]), at=1000)
    machine.env.run(until=5)
    return machine


def test_each_policy_has_its_future_and_nothing_is_to_come() -> None:
    # hRR sends c to the GPU: setup 10-110, transfer 110-112, run 112-162; GreedyET keeps it on the core.
    found = what_if(started().snapshot(), ["hrr", "greedy-et"], objective=makespan)
    assert {outcome.name: outcome.samples[0].ended for outcome in found} == {"hrr": 162, "greedy-et": 60}
    assert found.best.name == "greedy-et"
    assert [tuple(start) for start in found["hrr"].starts] == [("c", "gpu0", 10.0)]
    assert found["hrr"].samples[0].jobs["job"].tolist() == ["c"]


def test_what_runs_is_expected_to_take_its_expected_time_and_now_where_that_is_past() -> None:
    spec = small_machine(model_error=0.5)
    machine = Machine(Environment(seed=3), spec, "hrr")
    machine.submit(TaskSet([100.0, 100.0], ids=["a", "b"]))
    machine.env.run(until=101)
    running = machine.places[0].current
    assert running is not None
    ends = [outcome.samples[0].ended for outcome in what_if(machine.snapshot(), ["hrr"])]
    machine.env.run()
    actual = machine.result().tasks["end"].tolist()
    if running.id == "a":  # longer than expected: it is expected to end now
        assert ends == [201]
    else:
        assert ends == [actual[0] + 100]
    assert actual[1] not in ends


def test_the_same_in_other_processes() -> None:
    machine = Machine(Environment(seed=1), load_platform("hetsim-fast-setup"), "hrr")
    machine.submit(TaskSet([50.0 + i for i in range(20)], families=["x", "y"] * 10))
    machine.env.run(until=60)
    names = ["hrr", "earliest-finish", "heft-setup"]
    here = what_if(machine.snapshot(), names, objective=makespan)
    with ProcessPoolExecutor(2) as pool:
        there = what_if(machine.snapshot(), names, objective=makespan, executor=pool)
    assert [outcome.samples for outcome in here] == [outcome.samples for outcome in there]


def test_what_a_machine_has_not() -> None:
    snapshot = started().snapshot()
    with pytest.raises(InputError, match="a policy alone expected for a machine"):
        what_if(snapshot, [Branch("hrr").switch(50, "heft")])
    with pytest.raises(InputError, match="no arrivals expected for a machine"):
        what_if(snapshot, ["hrr"], arrivals=[Job(id=1, submit=10, run=5)])
