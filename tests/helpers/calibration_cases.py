"""Grids with hidden speeds, machines with hidden setup costs, and their records: cases whose answer is known."""

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from simmodel import Job, Scenario, Workflow, Workload
from simmodel.catalogue import load_platform
from simmodel.generators import layered
from simmodel.platform import GridSpec, NodeSpec, SiteSpec
from simmodel.work.table import Table


@attrs.frozen
class HiddenGrid:
    """A model, the record of the same grid with hidden values, and these values."""

    model: Scenario
    record: Table
    hidden: Mapping[str, float]
    parameters: Mapping[str, Any]


def hidden_grid(sites: int, jobs: int, *, cores: tuple[int, int] = (100, 2000), seed: int = 0) -> HiddenGrid:
    """Return a grid whose sites have speeds of 0.5 to 2 and overheads of 60 to 1,800 s that the model does not know.

    The recorded walltimes and queue times have a log-normal noise of 10 %.
    """
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(*np.log(cores), sites)).astype(int).tolist()
    names = [f"S{i:02}" for i in range(sites)]
    given = [
        SiteSpec(name=name, hosts=[NodeSpec(count=1, cores=size)], overhead=1800)
        for name, size in zip(names, sizes, strict=True)
    ]
    hidden: dict[str, float] = {}
    for name in names:
        hidden[f"sites.{name}.speed"] = float(np.exp(rng.uniform(np.log(0.5), np.log(2))))
        hidden[f"sites.{name}.overhead.mean"] = float(np.exp(rng.uniform(np.log(60), np.log(1800))))
    submit = np.sort(rng.uniform(0, 86400, sites * jobs)).tolist()
    where = rng.permutation(np.repeat(names, jobs)).tolist()
    wide, run = rng.choice([1, 1, 1, 8], sites * jobs).tolist(), rng.lognormal(7.5, 0.8, sites * jobs).tolist()
    work = [Job(id=i + 1, submit=submit[i], processors=wide[i], run=run[i], site=where[i]) for i in range(sites * jobs)]
    model = Scenario(platform=GridSpec(sites=given), workload=Workload.from_jobs(work), policy="recorded")
    found = model.evolve(hidden).run().jobs
    noise = np.exp(rng.normal(-0.005, 0.1, (2, len(found))))
    queue = (found["start"] - found["submit"]) * noise[0]
    start = found["submit"] + queue
    record = Table(
        {
            "job": found["job"],
            "site": found["site"],
            "processors": found["processors"],
            "submit": found["submit"],
            "start": start,
            "end": start + (found["end"] - found["start"]) * noise[1],
        }
    )
    ranges = {"sites.*.speed": (0.25, 4, "log", "each"), "sites.*.overhead.mean": (30, 3600, "log", "each")}
    return HiddenGrid(model, record, hidden, ranges)


# ---------------------------------------------------------------------- setup costs

SETUPS = {"gpu setup": 65.0, "fpga setup": 40.0, "fpga reconfiguration": 140.0, "igpu setup": 25.0}
"""The hidden costs of a machine, s."""
_ACCELERATORS = ("gpu", "fpga", "igpu")


def gaps(tasks: Table, flow: Workflow) -> dict[str, Any]:
    """Return how long each accelerator took to start a task, once it was free and the parents of the task had ended.

    A trace of starts and ends is enough. Columns: ``task``, ``class`` (the processor) and ``gap``, s.
    """
    end = dict(zip(tasks["task"].tolist(), tasks["end"].tolist(), strict=True))
    free: dict[str, float] = {}
    rows = []
    for i in np.argsort(tasks["start"], kind="stable").tolist():
        task, place = tasks["task"][i].item(), str(tasks["processor"][i])
        begin = max([free.get(place, 0.0), *(end[parent] for parent in flow.parents(task))])
        free[place] = end[task]
        if place in _ACCELERATORS:
            rows.append((task, place, float(tasks["start"][i]) - begin))
    return {
        name: np.array(column) for name, column in zip(("task", "class", "gap"), zip(*rows, strict=True), strict=True)
    }


@attrs.frozen(eq=False)
class HiddenMachine:
    """A machine that runs tasks where a trace says, as long as it says, but does not know the costs before a start.

    It is a model of these costs. ``record`` has the gaps of the trace of the same machine with :data:`SETUPS`.
    """

    scenario: Scenario
    flow: Workflow
    record: Table

    def __call__(self, **costs: float) -> dict[str, Any]:
        """Return the gaps with these costs."""
        return gaps(with_costs(self.scenario, costs).run().tasks, self.flow)


def with_costs(scenario: Scenario, costs: Mapping[str, float]) -> Scenario:
    """Return a scenario with costs as those of :data:`SETUPS`."""
    return scenario.evolve({f"processors.{name.replace(' ', '.')}": value for name, value in costs.items()})


def hidden_machine(count: int, families: int, *, noise: float = 3.0, seed: int = 0) -> HiddenMachine:
    """Return HetSim's machine with a trace of tasks, whose starts and ends are blurred by normal noise (s).

    Parameters
    ----------
    families
        those of the tasks; 0: each task has one of its own
    """
    rng = np.random.default_rng(seed)
    flow = layered(count, fat=0.05, rng=rng)
    where = dict(
        zip(flow.tasks, rng.choice(["gpu", "fpga", "igpu", "core"], count, p=[0.3, 0.4, 0.2, 0.1]), strict=True)
    )
    family = {task: f"family {rng.integers(families) if families else task}" for task in flow.tasks}
    run = {task: float(rng.uniform(20, 200)) for task in flow.tasks}

    def placed(seconds: Mapping[Any, float]) -> Workflow:
        return flow.map(
            lambda task: attrs.evolve(
                task,
                run=None,
                flop=None,
                run_on={str(where[task.id]): seconds[task.id]},
                implementations=None,
                family=family[task.id],
            ),
            data=0.01,
        )

    scenario = Scenario(platform=load_platform("hetsim-slow-setup"), workload=placed(run), policy="earliest-finish")
    found = with_costs(scenario, SETUPS).run().tasks
    start, end = (found[name] + rng.normal(0, noise, count) for name in ("start", "end"))
    trace = Table({"task": found["task"], "processor": found["processor"], "start": start, "end": end})
    known = placed(dict(zip(found["task"].tolist(), np.maximum(end - start, 0.0).tolist(), strict=True)))
    return HiddenMachine(attrs.evolve(scenario, workload=known), known, Table(gaps(trace, known)))
