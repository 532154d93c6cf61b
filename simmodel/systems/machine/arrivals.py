"""Live tasks of the sets submitted to a machine: expected run times, data, arrivals, and checks for impossible work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.errors import ImpossibleWork
from simmodel.foundation.units import show_quantity
from simmodel.resources.processors.taskplace import TaskShares
from simmodel.scheduling.protocol import Estimate
from simmodel.systems.machine.state import LiveSet, MachineState
from simmodel.work.task import shares_of
from simmodel.work.taskset import LiveData, LiveTask, TaskSet
from simmodel.work.workflow import topological_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.processors.processor import Processor

__all__ = ["bring_to_life", "estimate_set", "expected_speeds", "need_of", "speeds_of", "stream_of", "why_not"]


def bring_to_life(machine: MachineState, tasks: TaskSet, at: float) -> LiveSet:
    """Return the live tasks of a set, with their expected run times and data.

    Raises
    ------
    ImpossibleWork
        if no processor can ever run a task, or data fit in no pool that could hold them
    """
    live = LiveSet(machine, tasks, at)
    n = len(tasks)
    stream = stream_of(machine)
    before = {} if stream is None else stream.bit_generator.state
    speeds = live.speeds = speeds_of(machine, tasks, stream)
    given = _given(tasks)
    reason = _why_not_set(machine, tasks, speeds, given)
    if reason is not None:
        if stream is not None:
            stream.bit_generator.state = before  # a refused set leaves no trace
        raise ImpossibleWork(f"{machine.name}: {reason}")
    names = range(len(tasks.sizes)) if tasks.names is None else tasks.names
    data = live.data = list(map(LiveData, names, tasks.sizes))
    inputs = live.inputs = _rows(tasks.inputs, data, n)
    outputs = live.outputs = _rows(tasks.outputs, data, n)
    for read in inputs:
        for each in read:
            each.readers += 1
    for written in outputs:
        for each in written:
            each.kept = not each.readers
    live.given = [data[d] for d in given]
    errors: Iterable[float] = repeat(0.0)
    if any(spec.model_error for spec in machine.spec.processors):
        errors = machine.env.rng(f"{machine.stream}.error").uniform(-1.0, 1.0, n).tolist()
    base = len(machine.tasks)
    missing = repeat(0) if tasks.parents is None else map(len, tasks.parents)
    numbers = range(base, base + n)
    rows = live.rows = _tuples(speeds)
    found = live.tasks = list(
        map(LiveTask, tasks.ids, repeat(tasks), range(n), numbers, rows, errors, inputs, outputs, missing, repeat(live))
    )
    if tasks.children is not None:
        _link(found, tasks.children)
    if tasks.families is not None:
        for task, family in zip(found, tasks.families, strict=True):
            if family is not None:
                task.family = family
    for column in ("cores", "memory", "priority"):
        values = getattr(tasks, column)
        if values is not None:
            for task, value in zip(found, values, strict=True):
                setattr(task, column, value)
    machine.draw_loads(found)
    machine.tasks += found
    return live


def _tuples(speeds: NDArray[np.float64]) -> list[tuple[float, ...]]:
    """Return the rows as tuples; equal columns share their numbers."""
    columns: list[list[float]] = []
    for k, column in enumerate(speeds.T):
        same = next((j for j in range(k) if np.array_equal(speeds[:, j], column)), None)
        columns.append(column.tolist() if same is None else columns[same])
    return list(zip(*columns, strict=True))


def _link(found: list[LiveTask], children: Sequence[Sequence[int]]) -> None:
    """Give each task its children; tasks with the same only child after each other share one tuple."""
    only, last = -1, ()
    for task, below in zip(found, children, strict=True):
        if len(below) == 1:
            if below[0] != only:
                only, last = below[0], (found[below[0]],)  # type: ignore[assignment]
            task.children = last
        elif below:
            task.children = [found[i] for i in below]


def why_not(machine: MachineState, tasks: TaskSet) -> str | None:
    """Return why the machine can never run all tasks of a set, or ``None``; changes nothing."""
    return _why_not_set(machine, tasks, expected_speeds(machine, tasks), _given(tasks))


def _rows(rows: Sequence[tuple[int, ...]] | None, data: list[LiveData], n: int) -> Sequence[tuple[LiveData, ...]]:
    if rows is None:
        return [()] * n
    if len(data) == 1:  # one object, read by all
        whole = (data[0],)
        return [whole if row else () for row in rows]
    made: dict[int, tuple[LiveData, ...]] = {}  # rows that share one tuple share it again
    found: list[tuple[LiveData, ...]] = []
    for row in rows:
        if not row:
            found.append(())
        elif len(row) == 1:
            found.append((data[row[0]],))
        else:
            key = id(row)
            if key not in made:
                made[key] = tuple([data[d] for d in row])
            found.append(made[key])
    return found


def _why_not(machine: MachineState, tasks: TaskSet, i: int) -> str:
    """Return why no processor can ever run a task."""
    types = machine.spec.types
    allowed = tasks.implementations[i] if tasks.implementations else None
    if allowed is not None and not any(each in types for each in allowed):
        return f"no processor of type {' or '.join(allowed)}; known types: {', '.join(types)}"
    kinds = [kind for kind in machine.kinds if allowed is None or kind.type in allowed]
    cores = tasks.cores[i] if tasks.cores else 1
    wide = [kind for kind in kinds if cores <= kind.cores]
    if not wide:
        most = max(kind.cores for kind in kinds)
        return f"no suitable processor has {cores:g} cores; the largest has {most}"
    need = need_of(tasks, i)
    pools = {kind.pool: machine.pools[kind.pool] for kind in wide}
    if all(need > pool.size for pool in pools.values()):
        reads = (*(tasks.inputs[i] if tasks.inputs else ()), *(tasks.outputs[i] if tasks.outputs else ()))
        largest = max(reads, key=lambda d: tasks.sizes[d], default=None)
        what = f"its data and memory, {show_quantity(need, 'B')} in all"
        if largest is not None:
            what += f" (the largest: {tasks.data_name(largest)}, {show_quantity(tasks.sizes[largest], 'B')})"
        sizes = ", ".join(f"{name} has {show_quantity(pool.size, 'B')}" for name, pool in pools.items())
        return f"{what}, fit in no pool of a suitable processor: {sizes}"
    given = (tasks.amounts[i] if tasks.amounts else None) or {}
    lacking = [name for place in machine.places for name in place.amounts if name not in given]
    if lacking:
        return f"it has no amount {lacking[0]!r}, which the model of its processors needs (Task(amounts=...))"
    return "no run time is known on any suitable processor"


# ---------------------------------------------------------------------- initial data


def _given(tasks: TaskSet) -> list[int]:
    """Return the initial data, in order: those that some task reads although no ancestor writes them."""
    if tasks.inputs is None:
        return []
    first = [-1] * len(tasks.sizes)  # the first writer of each object; the others, if any
    others: dict[int, list[int]] = {}
    for i, row in enumerate(tasks.outputs or ()):
        for d in row:
            if first[d] < 0:
                first[d] = i
            else:
                others.setdefault(d, []).append(i)
    found: dict[int, None] = {}
    parents = tasks.parents
    for i, row in enumerate(tasks.inputs):
        above: Collection[int] = () if parents is None else parents[i]
        if len(row) > 4 < len(above):
            above = frozenset(above)
        for d in row:
            writer = first[d]
            if (writer < 0 or writer not in above) and d not in found:
                writers = [writer, *others.get(d, ())] if writer >= 0 else ()
                if not _written_before(tasks, i, writers):
                    found[d] = None
    return sorted(found)


def _written_before(tasks: TaskSet, reader: int, writers: Sequence[int]) -> bool:
    parents = tasks.parents
    if not writers or parents is None:
        return False
    if any(writer in parents[reader] for writer in writers[:4]):
        return True
    waiting, seen = [reader], {reader}
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent in writers:
                return True
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return False


def _why_not_set(
    machine: MachineState, tasks: TaskSet, speeds: NDArray[np.float64], given: Sequence[int]
) -> str | None:
    """Return why tasks with these speeds and initial data can never run, or ``None``."""
    stuck: list[int] = np.flatnonzero(np.all(speeds == inf, axis=1)).tolist() if len(tasks) else []
    if stuck:
        return f"task {tasks.ids[stuck[0]]!r}: {_why_not(machine, tasks, stuck[0])}"
    for i, amounts in enumerate(tasks.amounts or ()):
        need = shares_of(amounts or {})
        reason = TaskShares(machine.env, machine.network).why_not(need) if need else None
        if reason is not None:
            return f"task {tasks.ids[i]!r}: {reason}"
    pools = machine.pools.values()
    most, room = max(pool.size for pool in pools), sum(pool.size for pool in pools)
    together = sum(tasks.sizes[d] for d in given)
    if together > room * (1 + 1e-12):
        return (
            f"the {len(given)} initial data objects of {tasks.name}, "
            f"{show_quantity(together, 'B')} in all, do not fit in the pools, {show_quantity(room, 'B')} in all"
        )
    for d in given:
        if tasks.sizes[d] > most:
            sizes = ", ".join(f"{pool.name} has {show_quantity(pool.size, 'B')}" for pool in pools)
            return f"{tasks.data_name(d)} ({show_quantity(tasks.sizes[d], 'B')}) fits in no pool: {sizes}"
    return None


def estimate_set(machine: MachineState, tasks: TaskSet) -> Estimate:
    """Return when the first task of a set would start, and how long the whole set would take from then on.

    Tasks are taken in topological order; each goes to the processor with the earliest expected finish, including
    setup and the work already queued there. Transfers and reconfiguration are ignored; the work of tasks that wait for
    a decision is shared evenly among the processors.

    Raises
    ------
    ImpossibleWork
        if the machine can never run the whole set
    """
    reason = why_not(machine, tasks)
    if reason is not None:
        raise ImpossibleWork(f"{machine.name}: {reason}")
    now = machine.env.now
    speeds = expected_speeds(machine, tasks).tolist()
    cores = tasks.cores
    waiting = sum(task.planned * task.cores for task in machine.waiting) / machine.capacity
    free = [max(now, place.available) + waiting for place in machine.places]
    ends = [now] * len(tasks)
    first, last = inf, now
    for i in _order(tasks):
        ready = max([ends[parent] for parent in tasks.parents[i]], default=now) if tasks.parents is not None else now
        wide = 1.0 if cores is None else float(cores[i])
        best, chosen = (inf, inf), 0
        for p, place in enumerate(machine.places):
            start = max(ready, free[p])
            end = start + place.spec.setup + speeds[i][place.kind]
            if (end, start) < best:
                best, chosen = (end, start), p
        ends[i], start = best
        free[chosen] += (ends[i] - start) * wide / machine.places[chosen].capacity
        if machine.places[chosen].capacity == 1:
            free[chosen] = ends[i]
        first, last = min(first, start), max(last, ends[i])
    first = min(first, last)
    return Estimate(first, 0.0, 0.0, last - first)


def _order(tasks: TaskSet) -> list[int]:
    """Return the rows of a set in topological order."""
    if tasks.parents is None or tasks.children is None:
        return list(range(len(tasks)))
    return list(topological_order(dict(enumerate(tasks.parents)), dict(enumerate(tasks.children))))


# ---------------------------------------------------------------------- run times


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
