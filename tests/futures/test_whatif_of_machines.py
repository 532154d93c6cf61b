"""What-ifs of machines: futures under other policies, with the information that a policy has."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from simmodel import Branch, Environment, InputError, Job, Task, Workflow, what_if
from simmodel.catalogue import load_platform
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from tests.helpers.small_machines import MB, small_machine


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
    if running.id == "a":  # it runs longer than expected: its expected end is now
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


def test_a_policy_follows_another_on_a_machine_and_tasks_are_started_and_withdrawn_by_hand() -> None:
    # Alone, hRR sends c to the GPU and d to the core; GreedyET keeps what it places on the core.
    machine = Machine(Environment(seed=0), small_machine({"name": "gpu0", "setup": 100}), "hrr")
    flow = Workflow([Task(id="p", run=10), Task(id="c", run=50), Task(id="d", run=50)], [("p", "c", 0), ("c", "d", 0)])
    machine.submit(flow)
    machine.env.run(until=5)
    branches = {
        "hrr": "hrr",
        "at once": Branch("hrr").switch(7, "greedy-et"),
        "by hand": Branch("hrr").start("c", "cpu0", at=10).cancel("d", at=20),
    }
    found = what_if(machine.snapshot(), branches, objective=makespan)
    places = {name: [each.place for each in found[name].starts] for name in branches}
    assert places == {
        "hrr": ["gpu0", "cpu0"],
        "at once": ["cpu0", "cpu0"],
        "by hand": ["cpu0"],
    }
    nowhere = what_if(machine.snapshot(), [Branch("hrr").start("c", at=10)])
    assert "missing place" in nowhere.outcomes[0].reason


def test_jobs_and_arrivals_are_refused_on_a_machine() -> None:
    snapshot = started().snapshot()
    with pytest.raises(InputError, match="cannot submit a job to a machine: it runs tasks"):
        what_if(snapshot, [Branch("hrr").submit(Job(run=5))])
    with pytest.raises(InputError, match="policies: must be None for a machine"):
        what_if(snapshot, [Branch("hrr", policies="heft")])
    with pytest.raises(InputError, match="arrivals: must be None for a machine"):
        what_if(snapshot, ["hrr"], arrivals=[Job(id=1, submit=10, run=5)])


def test_whole_results_are_kept() -> None:
    found = what_if(started().snapshot(), ["hrr"], results=True)
    assert found["hrr"].first.result.metrics()["tasks"] == 2
