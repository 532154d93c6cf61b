"""Processes and calls of models that go on for ever: simulations and checks end with the work, or name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simmodel import Cluster, Environment, Job, Machine, Observer, Task, Workflow, simulate, start
from simmodel.foundation.errors import Stalled
from simmodel.platform import (
    ArchitectureSpec,
    FileSpec,
    GridSpec,
    MachineSpec,
    MemoryPoolSpec,
    ProcessorSpec,
    SiteSpec,
    StorageSpec,
)
from simmodel.resources import MemoryPool, SharedProcessor, Storage
from simmodel.resources.alarm import Alarm
from simmodel.runs import Simulation, ticking
from simmodel.testing import check_resource


class Ticking(SharedProcessor):
    """A processor that asks its rates anew each second."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.keep_on()

    def keep_on(self) -> None:
        self.env.process(self.tick())

    def tick(self) -> Any:
        while True:
            yield self.env.timeout(1)
            self.rates_changed()


def tick(env: Environment, processor: SharedProcessor) -> Any:
    while True:
        yield env.timeout(0.5) | env.timeout(2)
        processor.rates_changed()


class ByFunction(Ticking):
    def keep_on(self) -> None:
        self.env.process(tick(self.env, self))


class ByCalls(Ticking):
    def keep_on(self) -> None:
        self.env.call_at(self.env.now + 1, self.keep_on)
        self.rates_changed()


class ByClosures(Ticking):
    def keep_on(self) -> None:
        self.env.call_at(self.env.now + 1, lambda: self.keep_on())


class ByAlarm(Ticking):
    def keep_on(self) -> None:
        self.alarm = Alarm(self.env, self.ring)
        self.alarm.set(1)

    def ring(self) -> None:
        self.alarm.set(self.env.now + 1)


class AtFirstUse(Ticking):
    began = False

    def keep_on(self) -> None:
        pass

    def execute(self, task: Any, seconds: float) -> Any:
        if not self.began:
            self.began = True
            self.env.process(self.tick())
        yield from super().execute(task, seconds)


class Scrubbed(Storage):
    """A storage with a scrubber."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.env.process(self.scrub())

    def scrub(self) -> Any:
        while True:
            yield self.env.timeout(10)
            self.reading.ask_again()


class Sweeping(MemoryPool):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.machine_env().process(self.sweep())

    def machine_env(self) -> Environment:
        return self.env

    def sweep(self) -> Any:
        while True:
            yield self.env.timeout(3)


PROCESSORS = (Ticking, ByFunction, ByCalls, ByClosures, ByAlarm, AtFirstUse)
WORK = Workflow([Task(id=i, run=5.0 + i) for i in range(4)])


def machine(model: Any, pool: Any = None) -> MachineSpec:
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram", size="1GB", model=pool)],
        architectures=[ArchitectureSpec(name="x")],
        processors=[ProcessorSpec(name="gpu", type="GPU", architecture="x", pool="ram", cores=2, model=model)],
    )


def grid() -> GridSpec:
    storage = StorageSpec(capacity=1000, read_bandwidth=10.0, model=Scrubbed)
    return GridSpec(
        sites=[SiteSpec(name="a", cores=2, storage=storage)], files=[FileSpec(name="f", size=100.0, sites=["a"])]
    )


@pytest.mark.parametrize("model", PROCESSORS)
def test_a_machine_ends_with_its_work(model: Any) -> None:
    result = simulate(machine(model), WORK, "hrr")
    assert (result.tasks["end"].tolist(), result.ended) == ([10.0, 12.0, 24.0, 26.0], 26.0)
    assert simulate(machine(model), Workflow([]), "hrr").ended == 0


def test_pools_grids_and_machines_of_scripts_end_with_their_work() -> None:
    assert simulate(machine(None, Sweeping), WORK, "hrr").ended == 14.0
    assert simulate(grid(), [Job(id=1, run=5, inputs=["f"])], "round-robin").ended == 15.0
    env = Environment()
    live = Machine(env, machine(Ticking), "hrr")
    live.submit(WORK)
    assert Simulation(live).run().result().ended == 26.0
    live.submit(WORK)
    assert Simulation(live).run().result().ended == 52.0
    snapshot = start(machine(Ticking), WORK, "hrr").run(until=7).snapshot()
    assert simulate(snapshot).ended == 26.0
    assert start(grid(), [Job(id=1, run=5, inputs=["f"])], "round-robin").run(until=99).env.now == 99


def test_a_system_is_idle_again_when_later_work_has_ended() -> None:
    cluster = Cluster(Environment(), 4)
    for end in (5, 10):
        cluster.submit(Job(run=5))
        cluster.env.run(until=cluster.idle())
        assert cluster.env.now == end


class Sampler(Observer):
    """An observer with a process that samples for ever."""

    def __init__(self, env: Environment) -> None:
        self.samples: list[float] = []
        env.process(self.sample(env))

    def sample(self, env: Environment) -> Any:
        while True:
            yield env.timeout(3)
            self.samples.append(env.now)


def test_observers_that_sample_for_ever_do_not_hold_a_simulation_up() -> None:
    assert simulate(4, [Job(run=10)], "fcfs", observers=[Sampler]).ended == 10


def test_processes_of_users_prolong_a_simulation_as_ever() -> None:
    simulation = start(4, [Job(run=10)], "fcfs")

    def later(env: Environment) -> Any:
        yield env.timeout(100)
        simulation.system.submit(Job(run=5))

    simulation.env.process(later(simulation.env))
    assert simulation.run().result().jobs["end"].tolist() == [10, 105]
    simulation = start(machine(Ticking), WORK, "hrr")
    simulation.env.process(later(simulation.env))
    with pytest.raises(Exception, match="must be"):  # not a job's system: the process has gone on to 100 s
        simulation.env.run(until=101)


def never(view: Any) -> Any:
    """Decide nothing."""
    return
    yield


@pytest.mark.parametrize(
    ("spec", "work", "says"),
    [
        (machine(Ticking), WORK, "process Ticking.tick"),
        (machine(ByFunction), WORK, "process tick"),
        (machine(ByCalls), WORK, "call Ticking"),
        (grid(), [Job(id=1, run=5, inputs=["f"])], "process Scrubbed.scrub"),
    ],
)
def test_work_that_waits_for_ever_is_named_with_what_goes_on(
    spec: Any, work: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "_PATIENCE", 500)
    with pytest.raises(Stalled, match=r"work still waits at \d+ s, and nothing goes on but ") as caught:
        simulate(spec, work, never)
    assert says in caught.value.message or "ByCalls.keep_on" in caught.value.message
    assert caught.value.waiters


class Warming(Ticking):
    """A processor that does nothing before its tick has found it warm, at 200 s."""

    def rates(self, running: Any) -> list[float]:
        return [float(self.env.now >= 200) / len(running)] * len(running)


def test_work_that_a_tick_sets_going_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticking, "_PATIENCE", 5000)
    assert simulate(machine(Warming), WORK, "hrr").tasks["end"].tolist() == [210.0, 212.0, 224.0, 226.0]


def test_a_run_of_many_ticks_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticking, "_PATIENCE", 100)
    work = Workflow([Task(id=0, run=3000.0), Task(id=1, run=1.0), Task(id=2, run=3000.0)])
    assert simulate(machine(Ticking), work, "hrr").tasks["end"].tolist() == [6000.0, 2.0, 6001.0]


@pytest.mark.parametrize("model", [Scrubbed, Ticking, Sweeping])
def test_models_that_tick_pass_their_check(model: Callable[..., Any]) -> None:
    check_resource(model)
