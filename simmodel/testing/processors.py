"""The check of custom processors."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import attrs

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.resources.processors.serving import SharedProcessor
from simmodel.systems.machine.system import Machine
from simmodel.testing.machines import Arrivals, check_machine
from simmodel.testing.resources import CLOCK
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

__all__ = ["check_processor"]


def check_processor(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of processors on machines with one and with two of them (see :func:`check_machine`).

    If its rates follow the clock, it says so, and a run over the instant at which they may differ first is checked too.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    for cores in (1, 4):
        try:
            spec = _machine(model, options, cores)
            change = _first_change(spec, model) if issubclass(model, SharedProcessor) else inf
            check_machine(spec, _work(model, 1), model)
        except InputError as error:
            if cores == 1 and "cores" not in str(error):
                raise
            continue  # a model may refuse a number of cores
        check_machine(spec, _work(model, cores), model)
        if 10 < change < inf:
            check_machine(spec, [(at + change - 10, work) for at, work in _work(model, cores)], model)


def _first_change(spec: MachineSpec, model: type[SharedProcessor]) -> float:
    """Return the first instant (s) at which rates may differ; check that they stay if the model says that they do."""
    kinds = [attrs.evolve(each, setup=0.0) for each in spec.processors]
    machine = Machine(Environment(seed=1), attrs.evolve(spec, processors=kinds), "hrr")
    place = machine.processors["own0"]
    assert isinstance(place, SharedProcessor)
    if model.until is not SharedProcessor.until:
        return place.until(0.0)
    amounts = dict.fromkeys(model.amounts, 1e9)
    endless = [Task(id=f"t{i}", run=1e12, implementations=("OWN",), priority=i % 3, amounts=amounts) for i in range(6)]
    machine.submit(Workflow(endless))
    before: tuple[float, float, list[float]] | None = None
    for now in CLOCK:
        machine.env.run(until=now)
        running = place.executing
        if not running:
            break
        first, again = list(place.rates(running)), list(place.rates(running))
        if first != again:
            break  # it changes when it is asked: the runs will tell
        if before is not None and before[0] == place.rated:
            assert first == before[2], (
                f"{model.__name__}: rates are {before[2]} at {before[1]:g} s and {first} at {now:g} s for the same "
                "tasks, but are asked at starts and ends only: until(now) returns the next instant from which they may "
                "differ (or the model calls rates_changed() then)"
            )
        before = place.rated, now, first
    return inf


def _machine(model: type[Any], options: Mapping[str, Any], cores: int) -> MachineSpec:
    """Return a machine with a CPU core and two processors of the model, on a small pool."""
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="hbm", size=100.0)],
        architectures=[ArchitectureSpec(name="x86"), ArchitectureSpec(name="own")],
        processors=[
            ProcessorSpec(name="cpu", type="CPU", architecture="x86", pool="ram"),
            ProcessorSpec(
                name="own", count=2, type="OWN", architecture="own", pool="hbm", cores=cores, setup=0.25,
                model=model, options=options,
            ),
        ],
        links=[LinkSpec(name="bus", bandwidth=20, between=("ram", "hbm"))],
    )  # fmt: skip


def _work(model: type[Any], cores: int) -> Arrivals:
    """Return tasks of different lengths, with and without data and dependencies, that arrive in two groups."""
    groups: list[tuple[float, Workflow]] = []
    for group, at in enumerate((0.0, 9.5)):
        tasks = [
            Task(
                id=f"{'ab'[group]}{i}",
                amounts={name: 1 + (i * 7 + k * 5) % 23 for k, name in enumerate(model.amounts)},
                run=2.0 + (i * i) % 7 + i / 64,
                family=(None, "f", "g")[i % 3],
                implementations=("OWN",) if i % 5 else ("CPU",),
                cores=1 + i % cores if i % 5 else 1,
                memory=3.0 * (i % 2),
            )
            for i in range(12)
        ]
        names = [task.id for task in tasks]
        edges = [(names[i], names[i + 5], 6.0 * (i % 3)) for i in range(0, 7, 2)]
        groups.append((at, Workflow(tasks, edges)))
    return groups
