"""What a machine costs: tasks a CPU second online and planned, with a yardstick beside them.

Run ``python benchmarks/machine.py`` for all cases, or name some of them. Machines are noisy: compare figures of one
run, against the yardsticks. HetSim, in C++, claims 2.2 s for 500,000 tasks of database queries.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import simpy

from simmodel.catalogue import load_platform
from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.generators.layers import layered_with_costs
from simmodel.generators.tasksets import database
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.results.machine import MachineResult
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

SEED = 1


def show(name: str, figure: float, unit: str, target: str = "") -> None:
    print(f"{name:72} {figure:9.2f} {unit:10} {target}", flush=True)


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def yardsticks() -> None:
    """CPU seconds of a fixed piece of plain Python, and of SimPy with one timeout for each of 500,000 tasks."""
    show("yardstick: 10,000,000 squares", yardstick(), "s")

    def processor(env, tasks):
        for _ in range(tasks):
            yield env.timeout(1.0)

    env = simpy.Environment()
    for _ in range(10):
        env.process(processor(env, 50_000))
    begin = time.process_time()
    env.run()
    show("yardstick: SimPy, 10 processes, 500,000 timeouts", time.process_time() - begin, "s")


def drive(spec: MachineSpec, work: TaskSet | Workflow, policy: str, **options: object) -> tuple[float, float, Machine]:
    """Run work; return CPU seconds of the run from submission on, and of the tables of its result."""
    with quiet_garbage_collector():
        begin = time.process_time()
        env = Environment(seed=SEED)
        machine = Machine(env, spec, policy, **options)
        env.run(machine.submit(work))
        spent = time.process_time() - begin
        begin = time.process_time()
        result: MachineResult = machine.result()
        tables = time.process_time() - begin
    assert (result.tasks["status"] == "done").all()
    return spent, tables, machine


def queries(tasks: int) -> TaskSet:
    """Queries that read one table, and return nothing that must be moved."""
    run = np.random.default_rng(SEED).uniform(10, 500, tasks).tolist()
    return TaskSet(run, inputs=[(0,)] * tasks, sizes=[1e9], families=["query"] * tasks, name="queries")


def online() -> None:
    """Database queries under hRR on the machine of HetSim's section 5, fast and with setup."""
    spec = load_platform("hetsim-fast-setup")
    for count, target in ((10_000, ""), (100_000, ""), (500_000, "target: 4 s")):
        begin = time.process_time()
        work = queries(count)
        built = time.process_time() - begin
        spent, tables, _ = drive(spec, work, "hrr")
        show(f"{count:,} queries of one table, hrr: run", spent, "s", target)
        show(f"{count:,} queries of one table, hrr: each", spent / count * 1e6, "us/task")
        show(
            f"{count:,} queries of one table, hrr: the tables of the result; building the set",
            tables,
            "s",
            f"{built:.2f} s",
        )


def gathered() -> None:
    """The same with a result of each query, gathered in a tree: two thirds of the results cross a link."""
    spec = load_platform("hetsim-fast-setup")
    for count in (10_000, 100_000, 500_000):
        begin = time.process_time()
        work = database(count, rng=np.random.default_rng(SEED))
        built = time.process_time() - begin
        spent, _, machine = drive(spec, work, "hrr")
        what = f"{count:,} queries with results gathered, {len(machine.mover.moved):,} transfers, hrr"
        limit = " (target: 12)" if count == 500_000 else ""
        share = f"{spent / yardstick():.1f} s/y{limit}"
        show(what, spent, "s", f"{share}; {spent / count * 1e6:.1f} us/task; built in {built:.2f} s")


def many_processors(processors: int = 32) -> MachineSpec:
    """32 processors of 4 speeds in 4 pools."""
    kinds = [ArchitectureSpec(name=f"x{i}", performance=(0.5 + i, 1.5 + i)) for i in range(4)]
    each = processors // 4
    pools = [f"n{i}" for i in range(4)]
    return MachineSpec(
        pools=[MemoryPoolSpec(name=name) for name in pools],
        architectures=kinds,
        processors=[
            ProcessorSpec(name=f"p{i}-", count=each, type="CPUCore", architecture=f"x{i}", pool=pools[i])
            for i in range(4)
        ],
        links=[
            LinkSpec(name=f"{a}-{b}", bandwidth=100e6, between=(a, b)) for i, a in enumerate(pools) for b in pools[:i]
        ],
    )


def planned() -> None:
    """A layered graph of 10,000 tasks and 54,000 edges on 32 processors: planned and run."""
    work = layered_with_costs(10_000, density=0.1, objects=1, rng=np.random.default_rng(SEED))
    for policy, target in (("heft", "targets: plan 1 s, in all 2 s"), ("peft", ""), ("cpop", ""), ("heft-setup", "")):
        spent, _, machine = drive(many_processors(), work, policy)
        show(f"10,000 tasks planned by {policy}: the decision", machine.scheduler.seconds, "s")
        show(f"10,000 tasks planned by {policy}: plan and run", spent, "s", target)


def crowded(pools: int = 32) -> None:
    """A layered graph of 10,000 tasks with all its edges on 32 processors, each with a pool and links to all others."""
    names = [f"n{i}" for i in range(pools)]
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name=name) for name in names],
        architectures=[ArchitectureSpec(name=f"x{i}", performance=(0.5 + i, 1.5 + i)) for i in range(4)],
        processors=[
            ProcessorSpec(name=f"p{i}", type="CPUCore", architecture=f"x{i % 4}", pool=name)
            for i, name in enumerate(names)
        ],
        links=[
            LinkSpec(name=f"{a}-{b}", bandwidth=100e6, between=(a, b)) for i, a in enumerate(names) for b in names[:i]
        ],
    )
    spent, _, machine = drive(spec, layered_with_costs(10_000, rng=np.random.default_rng(SEED)), "hrr")
    moved = len(machine.mover.moved)
    show(f"10,000 tasks in layers on {pools} pools, {moved:,} transfers", spent, "s", f"{spent / yardstick():.1f} s/y")


CASES: dict[str, Callable[[], None]] = {
    "online": online,
    "gathered": gathered,
    "planned": planned,
    "crowded": crowded,
}

if __name__ == "__main__":
    yardsticks()
    for name in sys.argv[1:] or CASES:
        CASES[name]()
