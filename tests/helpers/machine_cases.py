"""Hypothesis strategies: small machines and task sets, rich in corner cases."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.work.taskset import TaskSet

__all__ = ["MachineCase", "machine_cases"]


class MachineCase(NamedTuple):
    """A machine, its submissions with their instants, its options, and the name of a test policy."""

    spec: MachineSpec
    work: list[tuple[float, TaskSet]]
    options: dict[str, Any]
    policy: str
    seed: int


_RUNS = st.sampled_from([0, 0.5, 1, 1, 2, 3, 5, 8])
_SIZES = st.sampled_from([0, 1, 2, 3, 5, 5, 8, 13])


@st.composite
def machine_cases(draw: st.DrawFn, policies: tuple[str, ...], max_tasks: int = 10) -> MachineCase:
    """Draw a machine of a few processors and pools, and a few sets of tasks."""
    decide = draw(st.sampled_from(["ready", "ready", "submit"]))
    spec = draw(_machines())
    work = []
    at = 0.0
    for k in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        work.append((at, draw(_task_sets(spec, k, max_tasks))))
        at += draw(st.sampled_from([0, 0, 1, 2.5, 7]))
    options = {
        "decide": decide,
        "overlap": draw(st.booleans()),
        "transfers": draw(st.sampled_from(["sequential", "parallel"])),
        "contention": draw(st.booleans()),
        "core_held": draw(st.sampled_from(["run", "transfer"])),
    }
    return MachineCase(spec, work, options, draw(st.sampled_from(policies)), draw(st.integers(0, 3)))


@st.composite
def _machines(draw: st.DrawFn) -> MachineSpec:
    pools = [f"m{i}" for i in range(draw(st.integers(1, 3)))]
    architectures = [
        ArchitectureSpec(name="one"),
        ArchitectureSpec(name="other", performance=draw(st.sampled_from([(1, 1), (2, 2), (0.5, 2)]))),
    ]
    wide = not draw(st.integers(0, 5))  # the first CPU has several cores: no core runs setups
    first = {"cores": draw(st.sampled_from([2, 4]))} if wide else {"count": draw(st.sampled_from([1, 1, 2]))}
    processors = [ProcessorSpec(name="cpu", type="CPUCore", architecture="one", pool=draw(st.sampled_from(pools)),
                                **first, **draw(_options([])))]  # fmt: skip
    names = [] if wide else list(processors[0].names)
    for i in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["CPUCore", "GPU", "GPU", "FPGA", "CPU"]))
        options = draw(_options(names))
        if wide:
            options |= {"setup": 0, "dma": True}
        processors.append(
            ProcessorSpec(
                name=f"{kind.lower()}{i}:",
                type=kind,
                architecture=draw(st.sampled_from(["one", "other"])),
                pool=draw(st.sampled_from(pools)),
                cores=draw(st.sampled_from([1, 1, 2, 3])),
                **options,
            )
        )
    pairs = [(a, b) for i, a in enumerate(pools) for b in pools[i + 1 :]]
    return MachineSpec(
        pools=[
            MemoryPoolSpec(
                name=name,
                size=draw(st.sampled_from([float("inf"), 8.0, 13.0, 20.0, 30.0])),
                spill=draw(st.sampled_from([None, None, *(other for other in pools if other != name)])),
                evict=draw(st.sampled_from(["lru", "lfu", "size", "fifo"])),
            )
            for name in pools
        ],
        architectures=architectures,
        processors=processors,
        links=[
            LinkSpec(
                name=f"{a}-{b}",
                bandwidth=draw(st.sampled_from([1, 2, 4])),
                latency=draw(st.sampled_from([0, 0, 0.5])),
                between=(a, b),
            )
            for a, b in pairs
        ],
        home=draw(st.sampled_from([None, None, *pools])),
    )


@st.composite
def _options(draw: st.DrawFn, cores: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "setup": draw(st.sampled_from([0, 0, 1, 2.5])),
        "reconfiguration": draw(st.sampled_from([0, 0, 0, 2, (1, 4)])),
        "dma": draw(st.sampled_from([True, True, False])),
        "model_error": draw(st.sampled_from([0, 0, 0, 0.5])),
        "overlap": draw(st.sampled_from([None, None, True, False])),
        "queue": draw(st.sampled_from(["fifo", "fifo", "priority"])),
        "preemption": draw(st.sampled_from(["no", "no", "requeue", "suspend"])),
    }
    if cores and draw(st.booleans()):
        found["setup_on"] = draw(st.lists(st.sampled_from(cores), unique=True, min_size=1))
    return found


@st.composite
def _task_sets(draw: st.DrawFn, spec: MachineSpec, number: int, max_tasks: int) -> TaskSet:
    n = draw(st.integers(1, max_tasks))
    most = max(each.cores for each in spec.processors)
    count = draw(st.integers(0, 6))
    data = st.lists(st.integers(0, count - 1), unique=True, max_size=3).map(tuple) if count else st.just(())
    inputs, outputs, parents = [], [], []
    tidy = draw(st.booleans())  # each object has at most one writer, and its readers wait for it
    writers: dict[int, list[int]] = {}
    for i in range(n):
        read, written = draw(data), draw(data)
        if tidy:
            written = tuple(d for d in written if d not in writers and d not in read)
        above = [j for d in read for j in writers.get(d, ())]
        above += [j for d in written for j in writers.get(d, ())] if draw(st.booleans()) else []
        above += draw(st.lists(st.integers(0, i - 1), max_size=2)) if i else []
        for d in written:
            writers.setdefault(d, []).append(i)
        inputs.append(read)
        outputs.append(written)
        parents.append(tuple(dict.fromkeys(above)))

    def column(values: Any) -> Any:
        return draw(st.none() | st.lists(values, min_size=n, max_size=n))

    return TaskSet(
        draw(st.lists(_RUNS, min_size=n, max_size=n)),
        ids=[f"t{number}.{i}" for i in range(n)],
        inputs=inputs,
        outputs=outputs,
        sizes=draw(st.lists(_SIZES, min_size=count, max_size=count)),
        names=[f"d{number}.{d}" for d in range(count)],
        parents=parents,
        families=column(st.sampled_from([None, "f", "f", "g"])),
        implementations=column(st.sampled_from([None, None, None, ("CPUCore",), ("GPU", "CPUCore")])),
        cores=column(st.sampled_from([1, 1, 1, 1, 0.1, 0.7, 2] if most > 1 else [1])),
        memory=column(st.sampled_from([0, 0, 1, 4])),
        priority=column(st.sampled_from([0, 0, 1, 5])),
        submit=column(st.sampled_from([0, 0, 0.5, 3])),
        reconfiguration=draw(st.sampled_from([{}, {}, {"f": 1.5}])),
        name=f"set {number}",
    )
