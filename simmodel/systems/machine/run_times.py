"""How long tasks are expected to run on the processors of a machine, and how much memory they need."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.processors.processor import Processor
    from simmodel.systems.machine.state import MachineState

__all__ = ["expected_speeds", "need_of", "speeds_of", "stream_of"]


def expected_speeds(machine: MachineState, tasks: TaskSet) -> NDArray[np.float64]:
    """Return the seconds of each task (rows) on each kind of processor, at the middle of the performance interval."""
    return speeds_of(machine, tasks)


def stream_of(machine: MachineState) -> np.random.Generator | None:
    """Return the random stream of performance factors, or ``None`` if every architecture fixes its factor."""
    if all(low == high for low, high in (each.performance for each in machine.spec.architectures)):
        return None
    return machine.env.rng(f"{machine.stream}.performance")


def speeds_of(machine: MachineState, tasks: TaskSet, stream: np.random.Generator | None = None) -> NDArray[np.float64]:
    """Return the expected seconds of each task (rows) on each kind of processor; ``inf`` if it cannot run there.

    ``stream``: draws the performance factors; default: the middle of each interval.
    """
    n = len(tasks)
    architectures = {each.name: (i, each) for i, each in enumerate(machine.spec.architectures)}
    low = np.array([each.performance[0] for each in machine.spec.architectures])
    high = np.array([each.performance[1] for each in machine.spec.architectures])
    middle = np.full((n, len(architectures)), 0.5)
    # One draw for each task and architecture, mapped to the interval of the architecture.
    draws = middle if stream is None else stream.random(middle.shape)
    factors = low + (high - low) * draws
    run = np.array(tasks.run, dtype=float)
    found = np.empty((n, len(machine.kinds)))
    for k, kind in enumerate(machine.kinds):
        a, architecture = architectures[kind.architecture]
        column = run / factors[:, a]
        if tasks.flop is not None and architecture.speed is not None:
            unknown = np.isnan(column)
            flop = np.array([np.nan if each is None else each for each in tasks.flop], dtype=float)
            column[unknown] = (flop / architecture.speed / factors[:, a])[unknown]
        if tasks.run_on is not None:
            for i, seconds in enumerate(tasks.run_on):
                if seconds:
                    column[i] = seconds.get(kind.architecture, seconds.get(kind.type, column[i]))
        if kind.own is None:
            column[np.isnan(column)] = inf
        if tasks.implementations is not None:
            column[[each is not None and kind.type not in each for each in tasks.implementations]] = inf
        if kind.own is not None:
            _by_model(next(place for place in machine.places if place.kind == k), tasks, column)
        if tasks.cores is not None:
            column[np.array(tasks.cores, dtype=float) > kind.cores] = inf
        found[:, k] = column
    _fit_memory(machine, tasks, found)
    return found


def _by_model(place: Processor, tasks: TaskSet, column: NDArray[np.float64]) -> None:
    """Set the run times of a model's own; it cannot run tasks without the amounts that it reads."""
    for i in np.flatnonzero(~(column == inf)).tolist():
        amounts = (tasks.amounts[i] if tasks.amounts else None) or {}
        if any(name not in amounts for name in place.amounts):
            column[i] = inf
            continue
        seconds = place.run_time(amounts)
        if seconds is not None:
            column[i] = seconds
        elif np.isnan(column[i]):
            column[i] = inf


def _fit_memory(machine: MachineState, tasks: TaskSet, speeds: NDArray[np.float64]) -> None:
    """Exclude processors whose pool can never hold the data and the memory of a task."""
    sizes = [machine.pools[kind.pool].size for kind in machine.kinds]
    if min(sizes) >= sum(tasks.sizes) + max(tasks.memory or [0.0], default=0.0):
        return
    needs = np.array([need_of(tasks, i) for i in range(len(tasks))])
    for k, size in enumerate(sizes):
        speeds[needs > size, k] = inf


def need_of(tasks: TaskSet, i: int) -> float:
    """Return the bytes of the data and the own memory of a task."""
    inputs = tasks.inputs[i] if tasks.inputs else ()
    outputs = tasks.outputs[i] if tasks.outputs else ()
    own = tasks.memory[i] if tasks.memory else 0.0
    return own + sum(tasks.sizes[d] for d in dict.fromkeys((*inputs, *outputs)))
