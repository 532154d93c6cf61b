"""Models of processors that serve several tasks and remember something: idle time, and snapshots."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from simmodel import TaskSet, simulate, start
from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.resources import BatchedProcessor, SharedProcessor
from simmodel.snapshots.snapshot import Snapshot
from simmodel.testing import check_resource


def machine(model: Any, cores: int = 4) -> MachineSpec:
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram")],
        architectures=[ArchitectureSpec(name="x")],
        processors=[ProcessorSpec(name="gpu", type="GPU", architecture="x", pool="ram", cores=cores, model=model)],
    )


class Asked(SharedProcessor):
    """Remembers when it was asked, and of how many tasks."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked: list[tuple[float, int]] = []

    def rates(self, running: Any) -> list[float]:
        self.asked.append((self.env.now, len(running)))
        return [1.0 / len(running)] * len(running)  # of no tasks this is an error, which nobody hears

    def own_state(self) -> Any:
        return [list(each) for each in self.asked]

    def restore_own(self, values: Any) -> None:
        self.asked = [(at, count) for at, count in values]


def test_rates_are_asked_when_the_last_task_ends() -> None:
    simulation = start(machine(Asked), TaskSet([2.0, 2.0, 1.0], submit=[0, 1, 10]), "hrr").run()
    assert simulation.system.processors["gpu"].asked == [(0, 1), (1, 2), (3, 1), (4, 0), (10, 1), (11, 0)]


class Throttled(SharedProcessor):
    """Heats by 1 K/s at work and cools by 1 K/s idle; half the clock from 10 K on."""

    heat, since, works = 0.0, 0.0, False

    def rates(self, running: Any) -> list[float]:
        now = self.env.now
        self.heat = max(0.0, self.heat + (now - self.since) * (1 if self.works else -1))
        self.since, self.works = now, bool(running)
        return [(0.5 if self.heat >= 10 else 1.0) / max(1, len(running))] * len(running)

    def until(self, now: float) -> float:
        return now + 10 - self.heat if self.heat < 10 else inf

    def own_state(self) -> Any:
        return [self.heat, self.since, self.works]

    def restore_own(self, values: Any) -> None:
        self.heat, self.since, self.works = values


class Cooperative(Throttled):
    """As one that keeps the state of its base class itself."""

    def own_state(self) -> Any:
        return {"heat": super().own_state(), "base": SharedProcessor.own_state(self)}

    def restore_own(self, values: Any) -> None:
        super().restore_own(values["heat"])
        if values["base"] is not None:
            SharedProcessor.restore_own(self, values["base"])


class Steps(BatchedProcessor):
    """Steps that take a second more each."""

    took = 0.0

    def steps(self, task: Any) -> int:
        return 3

    def step(self, batch: Any) -> float:
        self.took += 1
        return self.took

    def own_state(self) -> Any:
        return self.took

    def restore_own(self, values: Any) -> None:
        self.took = values


def test_a_processor_that_cools_while_it_is_idle() -> None:
    work = TaskSet([8.0, 8.0], submit=[0, 12])
    assert simulate(machine(Throttled), work, "hrr").tasks["end"].tolist() == [8.0, 22.0]


@pytest.mark.parametrize("model", [Throttled, Cooperative, Steps])
def test_the_memory_of_a_model_stands_beside_the_work_of_its_base_class(model: Any) -> None:
    work = TaskSet([8.0, 5.0, 8.0, 3.0], submit=[0, 1, 12, 13])
    whole = simulate(machine(model), work, "hrr").tasks["end"].tolist()
    for cut in (0.5, 3, 7.5, 10, 12.5, 15, 20):
        document = start(machine(model), work, "hrr").run(until=cut).snapshot().to_json()
        result = simulate(Snapshot.from_json(document, trust=True))
        ends = dict(zip(result.tasks["task"].tolist(), result.tasks["end"].tolist(), strict=True))
        assert all(ends[task] == pytest.approx(whole[task], rel=1e-12) for task in ends), cut
    check_resource(model)


def test_snapshots_of_a_former_version_in_which_a_model_kept_the_work_of_its_base_class() -> None:
    work = TaskSet([8.0, 5.0], submit=[0, 1])
    for model in (SharedProcessor, Cooperative):
        document = json.loads(start(machine(model), work, "hrr").run(until=3).snapshot().to_json())
        (place,) = document["places"]
        if model is Cooperative:
            place["own"] = {"heat": place["own"]["own"]["heat"], "base": place["own"]["work"]}
        else:
            assert set(place["own"]) == {"since", "left"}
        result = simulate(Snapshot.from_json(json.dumps(document), trust=True))
        assert result.tasks["end"].tolist() == simulate(machine(model), work, "hrr").tasks["end"].tolist()
