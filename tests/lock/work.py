"""Work and platforms of the cases, drawn by Python's own generator so that they are the same everywhere."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from simmodel import Job, Task, TaskSet, Workflow
from simmodel.platform import (
    ArchitectureSpec,
    ClusterSpec,
    ConsumableSpec,
    FailureModel,
    LinkSpec,
    MachineSpec,
    MemoryPoolSpec,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    ProcessorSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.work import Dependency
from tests.lock import api

MODES: dict[str, dict[str, Any]] = {
    "instant": {},
    "event, submits first": {"decide_on": "event", "event_order": "submits-first"},
    "event, ends first": {"decide_on": "event", "event_order": "ends-first"},
}


class Draw:
    """Whole numbers by chance, from ``random()`` alone, whose values Python guarantees."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def whole(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def of(self, values: Any) -> Any:
        return values[self.whole(0, len(values) - 1)]

    def chance(self, share: float) -> bool:
        return self._random() < share


@cache
def log(
    seed: int,
    jobs: int = 60,
    processors: int = 16,
    *,
    gap: int = 12,
    longest: int = 90,
    first: int = 1,
    fractions: bool = False,
    overrun: bool = True,
) -> Any:
    """Return a log with many ties of instants; some jobs run longer than they asked for."""
    draw = Draw(seed)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("job", "submit", "run", "requested", "processors", "user", "group", "queue")
    }
    now = 0.0
    for number in range(first, first + jobs):
        now += draw.of((0, 0, 1, 2, 5, gap, gap * 2))
        run = float(draw.of((0, 1, 5, 10, 10, 20, longest, draw.whole(1, longest))))
        if fractions:
            run += draw.whole(0, 99) / 100 + 0.1
        factor = draw.of((0.5, 1, 1, 1.5, 3, 10) if overrun else (1, 1, 1.5, 3, 10))
        columns["job"].append(number)
        columns["submit"].append(now)
        columns["run"].append(run)
        columns["requested"].append(max(1.0, run) * factor)
        columns["processors"].append(min(processors, draw.of((1, 1, 2, 3, 4, 8, draw.whole(1, processors)))))
        columns["user"].append(draw.whole(1, 4))
        columns["group"].append(draw.whole(1, 2))
        columns["queue"].append(draw.whole(0, 1))
    return api.log(columns, name=f"drawn {seed}", processors=processors)


# ---------------------------------------------------------------------- clusters with details


def nodes(placement: str = "first-fit", *, exclusive: bool = False) -> ClusterSpec:
    """Return two partitions of nodes with GPUs, memory, power, and licences."""
    return ClusterSpec(
        name="nodes",
        partitions=[
            PartitionSpec(
                name="cpu",
                nodes=[
                    NodeSpec(name="thin", count=4, cores=8, memory=64e9, idle_power=50, load_power=200),
                    NodeSpec(name="fat", count=2, cores=16, memory=256e9, idle_power=80, load_power=400),
                ],
                placement=placement,
                exclusive=exclusive,
            ),
            PartitionSpec(
                name="gpu",
                nodes=[NodeSpec(name="gpu", count=3, cores=8, gpus=2, memory=128e9, idle_power=100, load_power=900)],
                placement=placement,
                exclusive=exclusive,
                priority=2,
            ),
        ],
        queues=[
            QueueSpec(name="short", partition="cpu", priority=5, max_requested=100, max_waiting_per_user=3),
            QueueSpec(name="long", partition="cpu", max_running=4, max_running_per_user=2, max_processors=40),
            QueueSpec(name="gpu", partition="gpu", max_running_per_user=2),
        ],
        consumables=[ConsumableSpec(name="licence", amount=3), ConsumableSpec(name="bandwidth", amount=10.0)],
        default_partition="cpu",
    )


def preempting(mode: str) -> ClusterSpec:
    """Return a cluster where one queue preempts another."""
    return ClusterSpec(
        name="preempting",
        partitions=[PartitionSpec(processors=12)],
        queues=[
            QueueSpec(name="normal", priority=1, preempts=["spare"]),
            QueueSpec(name="spare", preemptible=mode),
        ],
    )


def failing(on_failure: str, distribution: str = "exponential") -> ClusterSpec:
    """Return a cluster with outages, failures by chance and a reservation."""
    return ClusterSpec(
        name="failing",
        partitions=[PartitionSpec(name="cpu", nodes=[NodeSpec(name="n", count=4, cores=4, memory=16e9)])],
        queues=[QueueSpec(name="normal"), QueueSpec(name="spare")],
        outages=[
            OutageSpec(at=40, until=90, nodes=[1], kind="failure", reason="fan"),
            OutageSpec(at=150, until=200, nodes=[0, 2], kind="maintenance"),
            OutageSpec(at=260, until=300, nodes=[3], kind="drain"),
        ],
        failures=[
            FailureModel(
                mean_time_between_failures=400.0, mean_time_to_repair=30.0, distribution=distribution, shape=0.8
            )
        ],
        reservations=[ReservationSpec(name="course", start=100, end=140, nodes=[1, 3], users=[1, 2])],
        on_failure=on_failure,
    )


def plain_outages() -> ClusterSpec:
    """Return processors only, with outages and a reservation of a part of them."""
    return ClusterSpec(
        name="outages",
        partitions=[PartitionSpec(processors=16)],
        queues=[QueueSpec(name="normal"), QueueSpec(name="vip")],
        outages=[
            OutageSpec(at=30, until=80, processors=6, kind="failure"),
            OutageSpec(at=200, until=230, processors=16, kind="maintenance"),
        ],
        reservations=[ReservationSpec(name="vip", start=100, end=180, processors=8, queues=["vip"])],
    )


@cache
def hosts(placement: str | None = None, *, speed: float = 1.0) -> ClusterSpec:
    """Return two kinds of hosts, one of them of another speed, of which one fails."""
    kinds = [NodeSpec(name="small", count=3, cores=12), NodeSpec(name="large", count=2, cores=16, speed=speed)]
    return ClusterSpec(
        name="hosts",
        partitions=[PartitionSpec(nodes=kinds, one_host=True, placement=placement)],
        outages=[OutageSpec(at=40, until=90, nodes=["small0"])],
    )


def jobs(seed: int, count: int = 50, *, kind: str = "nodes", gap: int = 8, waits: bool = False) -> tuple[Job, ...]:
    """Return jobs for one of the clusters above, some of them waiting for others or withdrawn."""
    draw = Draw(seed)
    made: list[Job] = []
    now = 0
    for number in range(1, count + 1):
        now += draw.of((0, 0, 1, 3, gap))
        run = float(draw.of((0, 5, 10, 10, 30, draw.whole(1, 60))))
        values: dict[str, Any] = {
            "id": number,
            "submit": float(now),
            "run": run,
            "requested": max(1.0, run) * draw.of((0.5, 1, 1, 2, 4)),
            "user": draw.whole(1, 3),
            "priority": float(draw.of((0, 0, 0, 1, 5))),
        }
        if kind == "nodes":
            queue = draw.of(("short", "long", "long", "gpu", None))
            values |= {
                "queue": queue,
                "nodes": draw.whole(1, 3),
                "cores_per_node": draw.whole(1, 8),
                "memory_per_node": draw.of((0.0, 8e9, 60e9)),
                "gpus_per_node": draw.whole(0, 2) if queue == "gpu" else 0,
            }
            if draw.chance(0.3):
                values["consumables"] = {"licence": 1.0} if draw.chance(0.5) else {"bandwidth": 4.5}
        else:
            values |= {
                "queue": draw.of(("normal", "spare")) if kind == "queues" else None,
                "processors": draw.whole(1, 12),
                "on_preempt": draw.of(("requeue", "requeue", "suspend", "no")) if kind == "queues" else "requeue",
                "keeps_work": draw.chance(0.3),
            }
        if waits and made and draw.chance(0.4):
            other = draw.of(made).id
            values["dependencies"] = [
                Dependency(other, after=draw.of(("end", "start", "success")), think_time=float(draw.of((0, 0, 5))))
            ]
        if waits and draw.chance(0.15):
            values["cancel"] = float(now + draw.of((0, 5, 40)))
        made.append(Job(**values))
    return tuple(made)


# ---------------------------------------------------------------------- machines


def machine(**changes: Any) -> MachineSpec:
    """Return two cores, a GPU and an FPGA with pools of their own, all of which the changes go to."""
    return MachineSpec(
        name="made",
        pools=[
            MemoryPoolSpec(name="ram"),
            MemoryPoolSpec(
                name="vram", size=changes.get("vram", 400.0), spill="ram", evict=changes.get("evict", "lru")
            ),
            MemoryPoolSpec(name="card", size=changes.get("card", 300.0)),
        ],
        architectures=[
            ArchitectureSpec(name="x86"),
            ArchitectureSpec(name="cuda", performance=(2, 4)),
            ArchitectureSpec(name="fabric", performance=(1, 5)),
        ],
        processors=[
            ProcessorSpec(
                name="cpu", count=2, type="CPUCore", architecture="x86", pool="ram", load_power=20, idle_power=5
            ),
            ProcessorSpec(
                name="gpu",
                type="GPU",
                architecture="cuda",
                pool="vram",
                setup=3,
                setup_on=("cpu0",),
                load_power=300,
                idle_power=30,
                queue=changes.get("queue", "fifo"),
                preemption=changes.get("preemption", "no"),
            ),
            ProcessorSpec(
                name="fpga",
                type="FPGA",
                architecture="fabric",
                pool="card",
                setup=1,
                reconfiguration=(5, 15),
                dma=changes.get("dma", True),
                model_error=changes.get("model_error", 0.0),
                load_power=60,
                idle_power=10,
            ),
        ],
        links=[
            LinkSpec(name="pcie", bandwidth=10.0, latency=0.5, between=("ram", "vram")),
            LinkSpec(name="bus", bandwidth=4.0, between=("ram", "card")),
        ],
    )


@cache
def flow(seed: int, count: int = 25) -> Workflow:
    """Return a workflow with data on its edges."""
    draw = Draw(seed)
    tasks, edges = [], []
    for number in range(count):
        tasks.append(Task(id=f"t{number}", run=float(draw.whole(1, 40)), family=draw.of(("x", "y", "z", None))))
        above = {draw.whole(max(0, number - 8), number - 1) for _ in range(draw.whole(0, 2))} if number else set()
        edges += [(f"t{each}", f"t{number}", float(draw.of((0, 5, 20, 60)))) for each in sorted(above)]
    return Workflow(tasks, edges)


@cache
def tasks(seed: int, count: int = 30, *, at_once: bool = True) -> TaskSet:
    """Return tasks of families, some for one type of processor, with data that several read."""
    draw = Draw(seed)
    families = [draw.of(("f", "g", "h", None)) for _ in range(count)]
    able = [draw.of((None, None, ("CPUCore", "GPU"), ("FPGA", "CPUCore"))) for _ in range(count)]
    return TaskSet(
        [float(draw.whole(0, 30)) for _ in range(count)],
        ids=[f"s{seed}.{number}" for number in range(count)],
        families=families,
        implementations=able,
        inputs=[tuple(sorted({draw.whole(0, 9) for _ in range(draw.whole(0, 2))})) for _ in range(count)],
        outputs=[(10 + number,) if draw.chance(0.5) else () for number in range(count)],
        sizes=[float(draw.whole(0, 60)) for _ in range(10 + count)],
        names=[f"d{seed}.{number}" for number in range(10 + count)],
        priority=[float(draw.whole(0, 3)) for _ in range(count)],
        submit=None if at_once else [float(draw.whole(0, 60)) for _ in range(count)],
        reconfiguration={"f": 4.0},
        name=f"set {seed}",
    )
