"""Machines as systems: submissions are events, questions change nothing, work can be withdrawn."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from simpy import Interrupt

from simmodel import Environment, InputError, Task, Workflow
from simmodel.catalogue import load_platform
from simmodel.foundation.errors import ImpossibleWork
from simmodel.generators.tasksets import database
from simmodel.scheduling.protocol import Start
from simmodel.snapshots.machine import MachineSnapshot
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from tests.helpers.small_machines import MB, small_machine


def machine(policy: str = "hrr", **gpu: object) -> Machine:
    return Machine(Environment(seed=3), small_machine({"name": "gpu0", **gpu}), policy)


# ---------------------------------------------------------------------- a submission is an event


@pytest.mark.parametrize("at", [5, 10, 15])
def test_a_process_waits_for_a_submission_that_is_over_before_at_or_after_that(at: float) -> None:
    one = machine()
    submission = one.submit(TaskSet([10.0]))
    seen = []

    def user(env):
        yield env.timeout(at)
        found = yield submission
        seen.append((env.now, found is submission))
        again = yield submission
        seen.append((env.now, again is submission))

    one.env.process(user(one.env))
    one.env.run()
    assert seen == [(max(at, 10), True)] * 2


def test_submissions_go_with_other_events() -> None:
    one = machine()
    first, second = one.submit(TaskSet([10.0])), one.submit(TaskSet([10.0, 10.0], parents=[(), (0,)]))
    env = one.env
    seen = []

    def user(env):
        yield first | env.timeout(5)
        seen.append(env.now)
        yield env.timeout(1) | first
        seen.append(env.now)
        yield first & second
        seen.append(env.now)
        yield env.all_of([first, second])
        yield env.any_of([second, env.timeout(100)])
        seen.append(env.now)

    env.process(user(env))
    assert env.run(until=second) is second
    env.run()
    assert seen == [5, 6, 20, 20]
    assert second.processed
    assert second.value is second


def test_nobody_waits_and_no_event_is_made() -> None:
    one = machine()
    submission = one.submit(TaskSet([10.0]))
    one.env.run()
    assert submission.event is None
    assert submission.callbacks is None
    assert one.submit(TaskSet([])).processed


def test_a_process_that_waits_for_a_submission_can_be_interrupted() -> None:
    one = machine()
    submission = one.submit(TaskSet([10.0]))
    seen = []

    def user(env):
        try:
            yield submission
        except Interrupt:
            seen.append(env.now)

    process = one.env.process(user(one.env))
    one.env.run(until=4)
    process.interrupt()
    one.env.run()
    assert seen == [4]


def test_a_machine_is_idle_once_all_is_over() -> None:
    one = machine()
    assert one.idle().triggered
    later = machine()
    later.submit(TaskSet([10.0]))
    later.submit(TaskSet([10.0]), at=30)
    later.env.run(until=later.idle())
    assert later.env.now == 40


# ---------------------------------------------------------------------- questions

FLOW = Workflow([Task(id=i, run=10.0) for i in range(4)], [(0, 1), (1, 2), (0, 3, 50 * MB)])


def test_the_load_is_what_has_arrived_and_is_not_over() -> None:
    one = machine()
    assert one.load == (2, 0, 0, 0)
    one.submit(TaskSet([10.0, 20.0, 30.0]))
    one.submit(TaskSet([40.0]), at=12)
    one.env.run(until=5)
    assert one.load.free == 0
    assert one.load.queued == 1
    assert one.load.backlog == pytest.approx(60 - 2 * 5)
    again = Machine.from_snapshot(Environment(5), MachineSnapshot.from_json(one.snapshot().to_json()))
    assert again.load[1:] == one.load[1:]
    one.env.run(until=13)
    assert one.load.backlog == pytest.approx(sum(place.backlog for place in one.places))
    one.env.run()
    assert one.load == (2, 0, 0, 0)


def test_questions_change_nothing() -> None:
    asked, unasked = machine(setup=3), machine(setup=3)
    for each in (asked, unasked):
        each.submit(FLOW)
        each.env.run(until=15)
    before = asked.snapshot()
    assert asked.why_not(FLOW) is None
    assert asked.estimate(FLOW).finish > 15
    assert asked.load.queued > 0
    assert asked.snapshot() == before == unasked.snapshot()
    asked.env.run()
    unasked.env.run()
    assert asked.result().tasks["end"].tolist() == unasked.result().tasks["end"].tolist()


def test_an_estimate_is_behind_what_there_is_to_do() -> None:
    one = machine()
    assert one.estimate(TaskSet([10.0, 10.0, 10.0])) == (0.0, 0.0, 0.0, 20.0)
    one.submit(TaskSet([10.0, 30.0]))
    one.env.run(until=5)
    assert one.estimate(TaskSet([10.0])) == (10.0, 0.0, 0.0, 10.0)
    assert one.estimate(TaskSet([])) == (5.0, 0.0, 0.0, 0.0)


def test_why_a_machine_can_never_run_work() -> None:
    one = machine()
    never = TaskSet([1.0], implementations=[("QPU",)], ids=["q"])
    assert one.why_not(never) == "task 'q': no processor of type QPU; known types: CPUCore, GPU"
    with pytest.raises(ImpossibleWork, match="task 'q': no processor of type QPU"):
        one.estimate(never)
    with pytest.raises(ImpossibleWork, match="task 'q': no processor of type QPU"):
        one.submit(never)


# ---------------------------------------------------------------------- withdrawal


def test_what_has_not_started_is_taken_back_and_the_rest_goes_on_as_without_it() -> None:
    one, other = machine(), machine()
    for each in (one, other):
        each.submit(TaskSet([10.0, 10.0]))
    back = one.submit(FLOW)
    one.env.run(until=3)
    one.withdraw(back)
    assert back.processed
    assert one.load.queued == 0
    for each in (one, other):
        each.submit(TaskSet([5.0, 6.0]), at=4)
        each.env.run()
    tasks = one.result().tasks
    mine = tasks["set"] != 1
    assert tasks["end"][mine].tolist() == other.result().tasks["end"].tolist()
    assert set(tasks["status"][~mine]) == {"cancelled"}


def test_a_task_is_taken_back_with_those_that_wait_for_it() -> None:
    one = machine()
    submission = one.submit(FLOW)
    one.env.run(until=3)
    with pytest.raises(InputError, match=r"cannot withdraw <LiveSet.*: it has started or ended"):
        one.withdraw(submission)
    one.withdraw(submission.tasks[1])
    assert [task.state for task in submission.tasks] == ["running", "cancelled", "cancelled", "blocked"]
    with pytest.raises(InputError, match=r"cannot withdraw <LiveTask.*: it has started or ended"):
        one.withdraw(submission.tasks[1])
    one.env.run(until=submission)
    assert one.env.now < 25
    assert one.unfinished == 0


def test_what_is_still_to_come_can_be_taken_back() -> None:
    one = machine()
    submission = one.submit(TaskSet([1.0, 2.0], submit=[0.0, 20.0]), at=10)
    one.env.run(until=15)
    one.cancel(submission)
    one.env.run()
    assert one.result().tasks["status"].tolist() == ["done", "cancelled"]
    assert submission.processed


def test_a_system_above_hears_of_every_end() -> None:
    one = machine()
    ends = []
    one.changed.append(lambda: ends.append(one.env.now))
    one.submit(FLOW)
    one.env.run()
    assert len(ends) == 4


@pytest.mark.parametrize("transfers", ["sequential", "parallel"])
def test_observers_of_transfers_change_nothing(transfers: Literal["sequential", "parallel"]) -> None:
    # Without observers, the end of a transfer does not pass the event queue.
    class Watch:
        ended = 0

        def transfer_ended(self, transfer: object) -> None:
            self.ended += 1

    def record(watch: Watch | None) -> tuple[list[float], list[tuple[object, ...]]]:
        env = Environment(seed=1)
        if watch is not None:
            env.observe(watch)
        machine = Machine(env, load_platform("hetsim-fast-setup"), "hrr", transfers=transfers)
        env.run(machine.submit(database(500, fan_in=8, rng=np.random.default_rng(1))))
        return machine.phases.tolist(), [(*each[:6], each.task.id) for each in machine.mover.moved if each.task]

    watch = Watch()
    assert record(None) == record(watch)
    assert watch.ended > 300


# ---------------------------------------------------------------------- a policy that leaves tasks waiting


def where_idle(view):
    """Start each task where it would start now, and leave the others waiting."""
    for task in view.waiting:
        for place in view.places:
            if place.can_run(task) and place.fits(task):
                yield Start(task, place)
                break


def test_a_policy_is_asked_when_a_task_ends_while_others_wait() -> None:
    """The GPU takes tasks of 10, 5 and 7 time units one after another."""
    one = Machine(Environment(), small_machine({"name": "gpu0"}), where_idle)
    one.submit(TaskSet([10.0, 5.0, 7.0], implementations=[("GPU",)] * 3))
    one.env.run()
    assert one.result().tasks["end"].tolist() == [10, 15, 22]
