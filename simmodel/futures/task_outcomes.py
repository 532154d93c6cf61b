"""What a what-if of a machine keeps of a simulated future: its tasks in the place of jobs."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from simmodel.futures.outcomes import Sample, Starting
from simmodel.scheduling.objective import measure
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult
    from simmodel.snapshots.machine import MachineSnapshot

__all__ = ["task_sample"]


def task_sample(snapshot: MachineSnapshot, result: MachineResult, until: float, seed: int) -> Sample:
    """Return the sample of a machine's future.

    A task is submitted when it is ready, starts when a processor is its own, and asks for its expected run time;
    ``ended`` is the end of the last one, so that ``objective=lambda sample: sample.ended`` compares makespans.

    >>> from simmodel.environment import Environment
    >>> from simmodel.catalogue import load_platform
    >>> from simmodel.systems.machine.system import Machine
    >>> from simmodel.work.taskset import TaskSet
    >>> machine = Machine(Environment(), load_platform("hetsim-slow"))
    >>> _ = machine.submit(TaskSet([3.0, 4.0])); machine.env.run(until=1)
    >>> machine.env.run(until=2); snapshot = machine.snapshot()
    >>> machine.env.run(); task_sample(snapshot, machine.result(), float("inf"), 0).ended
    4.0
    """
    now = snapshot.now
    tasks = result.tasks
    begun = {str(task.id) for task in snapshot.tasks if task.stamps}
    waited = np.array([str(name) not in begun for name in tasks["task"].tolist()], dtype=bool)
    own = Table(
        {
            "job": tasks["task"],
            "submit": tasks["ready"],
            "start": tasks["taken"],
            "end": tasks["end"],
            "processors": tasks["cores"],
            "requested": np.where(np.isnan(tasks["expected_run"]), tasks["run_best"], tasks["expected_run"]),
            "status": tasks["status"],
            "waiting": waited,
        }
    ).where(waited)
    place = tasks["processor"][waited]
    started = np.isfinite(own["start"])
    ended = until if until < inf else float(np.nanmax(np.append(tasks["end"], now)))
    counts = started & np.isfinite(own["submit"])
    run = np.where(np.isfinite(own["end"]), own["end"] - own["start"], own["requested"])
    span = (ended - now) * len(result.processors)
    measures = measure(
        own["submit"][counts],
        own["start"][counts],
        run[counts],
        until=ended,
        busy=result.busy().integral(now, ended) / span if span else nan,
    )
    rows = np.flatnonzero(started)
    rows = rows[np.argsort(own["start"][rows], kind="stable")]
    columns = (own["job"][rows].tolist(), place[rows].tolist(), own["start"][rows].tolist())
    starts = tuple(Starting(job, where, at) for job, where, at in zip(*columns, strict=True))
    return Sample(
        jobs=own,
        starts=starts,
        now=tuple(each for each in starts if each.at == now),
        measures=measures,
        unstarted=int((~started).sum()),
        ended=ended,
        seed=seed,
        result=None,
    )
