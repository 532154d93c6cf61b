"""Runs of small machines with a custom part, the checks that they share, and the check of memory pools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isclose
from typing import TYPE_CHECKING, Any

from simmodel.environment import Environment
from simmodel.foundation.errors import SnapshotError, Stalled
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.resources.processors.services import STAMPS
from simmodel.runs.simulation import Simulation
from simmodel.snapshots.machine import MachineSnapshot
from simmodel.systems.machine.system import Machine
from simmodel.work.task import DataObject, Task
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult

__all__ = ["Arrivals", "check_machine", "check_pool"]

Arrivals = Sequence[tuple[float, Workflow]]
"""Workflows with the instants (s) at which they are submitted."""

_CUTS = (0.06, 0.2, 0.35, 0.5, 0.65, 0.8)  # shares of the duration of the run
_ROUNDING = 1e-9
_Row = tuple[str, str, list[float]]


def check_machine(spec: MachineSpec, work: Arrivals, model: type[Any]) -> MachineResult:
    """Run work on a machine with a custom part and check it; return the result.

    The checks: all tasks end, in the order of their dependencies; the record has each task once, with all its instants
    in order; pools never hold more than their size, and hold at the end the bytes of their data; the same run gives the
    same record; a run cut by a snapshot ends as the whole one, unless the model says that it has no snapshots.

    Parameters
    ----------
    model
        the class that is checked, for the messages

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    name = model.__name__
    machine = _started(spec, work)
    _run(machine, name)
    rows = _rows(machine)
    _check_record(machine, rows, work, name)
    _check_pools(machine, name)
    again = _started(spec, work)
    _run(again, name)
    assert _rows(again) == rows, f"{name}: the same run gives another result (does it share state between objects?)"
    first = min(at for at, _ in work)
    for share in _CUTS:
        cut = first + (float(machine.env.now) - first) * share
        _check_cut(spec, work, cut, {row[0]: row for row in rows}, model)
    return machine.result()


def _started(spec: MachineSpec, work: Arrivals) -> Machine:
    machine = Machine(Environment(seed=1), spec, "hrr")
    for at, workflow in work:
        machine.submit(workflow, at)
    return machine


def _run(machine: Machine, name: str) -> None:
    try:
        Simulation(machine).run()
    except Stalled as error:
        raise AssertionError(f"{name}: tasks never end: {error}") from None
    left = [str(task.id) for task in machine.present()]
    assert not left, f"{name}: tasks never end: {', '.join(left[:5])}"


def _rows(machine: Machine) -> list[_Row]:
    """Return the processor and the instants of each task, by the order of the tasks."""
    tasks = machine.result().tasks
    stamps = [[float(tasks[each][i]) for each in STAMPS] for i in range(len(tasks))]
    return list(zip(map(str, tasks["task"].tolist()), tasks["processor"].tolist(), stamps, strict=True))


def _check_record(machine: Machine, rows: Sequence[_Row], work: Arrivals, name: str) -> None:
    tasks = machine.result().tasks
    for (task, _, stamps), ready in zip(rows, tasks["ready"].tolist(), strict=True):
        assert stamps == sorted(stamps), f"{name}: the instants of task {task} are not in order: {stamps}"
        assert stamps[0] >= ready, f"{name}: task {task} begins at {stamps[0]:g} s, before it is ready at {ready:g} s"
    ends = {task: stamps[-1] for task, _, stamps in rows}
    starts = {task: stamps[0] for task, _, stamps in rows}
    for _, workflow in work:
        for parent, child in workflow.graph.edges:
            assert starts[str(child)] >= ends[str(parent)], f"{name}: task {child} begins before task {parent} ends"
    for place in machine.places:
        assert place.free == place.capacity, (
            f"{name}: {place.name} has {place.free} of {place.capacity} free at the end"
        )
        assert not place.waiting, f"{name}: {place.name} still has tasks in its queue at the end"


def _check_pools(machine: Machine, name: str) -> None:
    for pool in machine.pools.values():
        used = pool.steps()[1]
        assert used.max() <= pool.size * (1 + _ROUNDING), (
            f"{name}: {pool.name} holds {used.max():g} bytes, more than its size of {pool.size:g} bytes"
        )
        assert used.min() >= -_ROUNDING * max(1.0, pool.peak), f"{name}: {pool.name} holds {used.min():g} bytes"
        held = sum(data.size for data in pool.held) + sum(pool.parts.values())
        assert isclose(pool.used, held, rel_tol=1e-9, abs_tol=1e-6), (
            f"{name}: {pool.name} counts {pool.used:g} bytes at the end, but its data have {held:g}"
        )


def _check_cut(spec: MachineSpec, work: Arrivals, cut: float, whole: dict[str, _Row], model: type[Any]) -> None:
    """Check that a run cut by a snapshot ends as the whole one, and that the snapshot changes nothing."""
    name = model.__name__
    machine = _started(spec, work)
    machine.env.run(until=cut)
    try:
        document = machine.snapshot().to_json()
    except SnapshotError:  # a processor inside a phase of its own cannot be copied either
        return
    assert model.snapshots, f"{name} has snapshots = False, but its snapshot is not refused"
    assert machine.snapshot().to_json() == document, f"{name}: a snapshot at {cut:g} s changes the machine"
    snapshot = MachineSnapshot.from_json(document, trust=True)
    assert json.loads(snapshot.to_json()) == json.loads(document), f"{name}: its snapshot changes when read from JSON"
    hint = "own_state() and restore_own() keep what a model remembers; snapshots = False says that it cannot be copied"
    for kind, going in (("asked for a snapshot", machine), ("continued from its snapshot", None)):
        here = going or Machine.from_snapshot(Environment(cut, seed=1), snapshot)
        _run(here, f"{name}, {kind} at {cut:g} s")
        for task, place, stamps in _rows(here):
            _, at, expected = whole[task]
            pairs = zip(stamps, expected, strict=True)
            same = place == at and all(isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)
            assert same, (
                f"{name}, {kind} at {cut:g} s: task {task} ends at {stamps[-1]:g} s on {place}, "
                f"not at {expected[-1]:g} s on {at} ({hint})"
            )


def check_pool(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of memory pools on machines with ample and with scarce memory (see :func:`check_machine`).

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    for size in (1000.0, 64.0, 40.0):
        spec = MachineSpec(
            pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="own", size=size, model=model, options=options)],
            architectures=[ArchitectureSpec(name="x")],
            processors=[
                ProcessorSpec(name="cpu", type="CPU", architecture="x", pool="ram"),
                ProcessorSpec(name="gpu", count=2, type="GPU", architecture="x", pool="own"),
            ],
            links=[LinkSpec(name="bus", bandwidth=20, between=("ram", "own"))],
        )
        check_machine(spec, _in_two_groups(), model)


def _in_two_groups() -> Arrivals:
    """Return tasks that read common data and write data of their own, some of which others read, in two groups."""
    groups: list[tuple[float, Workflow]] = []
    for group, at in enumerate((0.0, 9.5)):
        letter = "ab"[group]
        data = [DataObject(f"{letter}-in{d}", 4.0 + 3 * d) for d in range(5)]
        data += [DataObject(f"{letter}-out{i}", 2.0 + i % 4) for i in range(12)]
        tasks = [
            Task(
                id=f"{letter}{i}",
                run=1.0 + (i * i) % 5 + i / 64,
                implementations=("GPU",) if i % 5 else ("CPU",),
                inputs=[f"{letter}-in{i * 3 % 5}", f"{letter}-in{i * 2 % 5}"][: 1 + (i * 3 % 5 != i * 2 % 5)]
                + ([f"{letter}-out{i - 5}"] if i >= 5 else []),
                outputs=[f"{letter}-out{i}"],
                memory=2.0 * (i % 3),
            )
            for i in range(12)
        ]
        groups.append((at, Workflow(tasks, files=data)))
    return groups
