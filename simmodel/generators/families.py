"""Families of tasks, their implementations by type of processor, and the times to load them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.generators.distributions import Amount, amounts, share, whole
from simmodel.generators.tasksets import changed
from simmodel.platform.machine import CPU_CORES, MachineSpec
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

__all__ = ["implementations", "only_possible", "with_families"]

_TYPES = ("CPUCore", "GPU", "FPGA")


def implementations(
    families: Sequence[str], types: Sequence[str] = _TYPES, *, partial: float = 0.0, rng: np.random.Generator
) -> dict[str, tuple[str, ...]]:
    """Draw the types of processors that can run each family of tasks.

    Parameters
    ----------
    families
        the names of the families
    types
        the types of processors
    partial
        the probability that a family lacks an implementation for a type other than CPU cores (HetSim's
        ``partial_task_families``). A family without any gets one of the types
    rng
        the random stream

    >>> implementations(["sort", "scan"], partial=0.5, rng=np.random.default_rng(3))
    {'sort': ('CPUCore', 'FPGA'), 'scan': ('CPUCore',)}
    """
    chance = share("partial", partial)
    if not types or any(not isinstance(each, str) or not each for each in types):
        raise InputError(f"must be types of processors, got {list(types)!r}", place="types")
    missing = rng.random((len(families), len(types))) < chance
    one = rng.integers(0, len(types), len(families)).tolist()
    found = {}
    for family, without, only in zip(families, missing.tolist(), one, strict=True):
        kept = tuple(kind for kind, out in zip(types, without, strict=True) if kind in CPU_CORES or not out)
        found[family] = kept or (types[only],)
    return found


def with_families(
    work: TaskSet | Workflow,
    families: int | Sequence[str] | None = None,
    *,
    types: str | Sequence[str] | None = None,
    partial: float | None = None,
    reconfiguration: Amount | None = None,
    rng: np.random.Generator,
) -> TaskSet:
    """Return tasks with random families, implementations, and times to load each family (s).

    Parameters
    ----------
    work
        the tasks
    families
        number of families (``family0``, ``family1`` ...) or their names, one drawn for each task; ``None``: unchanged
    types
        the types of processors with implementations, default all; text joins several with ``+``
    partial
        the probability that a family lacks a type, see :func:`implementations`; ``types`` then defaults to CPUCore, GPU
        and FPGA
    reconfiguration
        time to load a family, s, drawn for each; ``None``: that of the processor
    rng
        the random stream

    Raises
    ------
    InputError
        a parameter is invalid, or ``partial`` or ``reconfiguration`` is passed for tasks without families

    >>> work = with_families(TaskSet([1.0] * 4), 2, reconfiguration=(100, 200), rng=np.random.default_rng(1))
    >>> work.families, sorted(work.reconfiguration)
    (['family0', 'family1', 'family1', 'family1'], ['family0', 'family1'])
    """
    tasks = TaskSet.of(work)
    columns: dict[str, Any] = {}
    drawn: Sequence[str | None] | None = tasks.families
    if families is not None:
        count = families if isinstance(families, int | float) else None
        names = list(families) if count is None else [f"family{i}" for i in range(whole("families", count, least=1))]  # type: ignore[arg-type]
        if not names or any(not isinstance(each, str) for each in names):
            raise InputError(f"must be a number or names, got {families!r}", place="families")
        drawn = columns["families"] = [names[i] for i in rng.integers(0, len(names), len(tasks)).tolist()]
    known = list(dict.fromkeys(each for each in drawn or () if each is not None))
    for what, given in (("partial", partial), ("reconfiguration", reconfiguration)):
        if given and not known:
            raise InputError("cannot apply to tasks without families", place=what)
    if types is not None or partial:
        kinds = tuple(types.split("+") if isinstance(types, str) else types or _TYPES)
        found = implementations(known, kinds, partial=partial or 0.0, rng=rng)
        columns["implementations"] = [found.get(each or "", kinds) for each in drawn or [None] * len(tasks)]
    if reconfiguration is not None:
        seconds = amounts("reconfiguration", reconfiguration, len(known), rng).tolist()
        columns["reconfiguration"] = {**tasks.reconfiguration, **dict(zip(known, seconds, strict=True))}
    return changed(tasks, **columns) if columns else tasks


def only_possible(work: TaskSet | Workflow, machine: MachineSpec) -> TaskSet:
    """Return the tasks that a machine can run; the others and their descendants are counted as rejected.

    HetSim does this without ``strict_exceptions``; simmodel itself rejects such work when it is submitted.

    >>> from simmodel import load_platform
    >>> work = TaskSet([1.0, 2.0, 3.0], implementations=[("GPU",), ("TPU",), None], parents=[(), (), (1,)])
    >>> left = only_possible(work, load_platform("hetsim-slow"))
    >>> list(left.ids), str(left.report)
    ([0], 'rejected 2 (task that no processor can run 1, task that waits for one that no processor can run 1)')
    """
    tasks = TaskSet.of(work)
    answers: dict[Any, bool] = {}
    n = len(tasks)
    out = [False] * n
    for i in range(n):
        need = (
            tasks.implementations[i] if tasks.implementations else None,
            tasks.cores[i] if tasks.cores else 1,
            tasks.memory[i] if tasks.memory else 0.0,
            # The run time is known everywhere, or for a speed, or on some architectures.
            (tasks.run[i] == tasks.run[i], bool(tasks.flop and tasks.flop[i] is not None)),
            tuple((tasks.run_on[i] if tasks.run_on else None) or ()),
        )
        if need not in answers:
            answers[need] = _some_processor(machine, *need)
        out[i] = not answers[need]
    impossible = sum(out)
    if not impossible:
        return tasks
    ahead = [i for i in range(n) if out[i]] if tasks.children is not None else []
    while ahead:
        assert tasks.children is not None
        for child in tasks.children[ahead.pop()]:
            if not out[child]:
                out[child] = True
                ahead.append(child)
    left = [i for i in range(n) if not out[i]]
    row = {i: new for new, i in enumerate(left)}
    names = ("run", "families", "implementations", "inputs", "outputs", "submit", "flop", "run_on", "cores")
    columns = {
        name: [found[i] for i in left]
        for name in (*names, "memory", "priority", "amounts", "ids")
        if (found := getattr(tasks, name)) is not None
    }
    if tasks.parents is not None:
        columns["parents"] = [tuple(row[parent] for parent in tasks.parents[i]) for i in left]
    report = type(tasks.report)() + tasks.report
    report.rejected["task that no processor can run"] += impossible
    if n - len(left) > impossible:
        report.rejected["task that waits for one that no processor can run"] += n - len(left) - impossible
    return changed(tasks, **{"parents": [()] * len(left), **columns, "report": report})


def _some_processor(
    machine: MachineSpec,
    kinds: tuple[str, ...] | None,
    cores: float,
    memory: float,
    known: tuple[bool, bool],
    on: tuple[str, ...],
) -> bool:
    sizes = {pool.name: pool.size for pool in machine.pools}
    speeds = {each.name: each.speed for each in machine.architectures}
    run, flop = known
    return any(
        (kinds is None or each.type in kinds)
        and cores <= each.cores
        and memory <= sizes[each.pool]
        and (run or each.architecture in on or each.type in on or (flop and speeds[each.architecture] is not None))
        for each in machine.processors
    )
