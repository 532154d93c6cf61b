"""Random clusters and jobs with all kinds of events, and a policy that preempts jobs for no reason."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import attrs
import simpy
from hypothesis import strategies as st

from simmodel.foundation.errors import InputError, JobFailed
from simmodel.platform.cluster import (
    ClusterSpec,
    ConsumableSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.policies import Easy
from simmodel.scheduling.protocol import Preempt, WakeAt
from simmodel.work.checkpoint import Checkpoint
from simmodel.work.job import Dependency, Job

UNTIL = 5000.0  # s, the end of runs in which failures never end
CLEAN_UP = 3.0  # s, the longest clean-up of an interrupted body
INFINITY = float("inf")


class Body(NamedTuple):
    """The body of a job: it runs and may fail; once interrupted it may clean up, and may then fail."""

    run: float
    fails: bool
    clean_up: float | None
    raises: bool

    def __call__(self, env: Any, job: Any, grant: Any) -> Any:
        try:
            yield env.timeout(self.run)
        except simpy.Interrupt:
            if self.clean_up is None:
                raise
            yield env.timeout(self.clean_up)
            if self.raises:
                raise
            return
        if self.fails:
            raise JobFailed("as drawn")


class Case(NamedTuple):
    spec: ClusterSpec
    jobs: list[Job]
    options: dict[str, str]
    way: str  # "script": submitted by a process; "jobs": replayed; "log": replayed, from few columns
    seed: int


class Restless:
    """EASY that preempts running jobs every few seconds for no reason."""

    def __init__(self) -> None:
        self.easy = Easy()
        self.left = 6
        self.next = 3.0
        self.name = "restless"
        self.tries_every_submission = True

    def attach(self, system: Any) -> None:
        self.system = system

    def decide(self, view: Any) -> Any:
        if self.left and view.now >= self.next:
            self.left -= 1
            self.next = view.now + 4
            mode = "suspend" if self.left % 2 else "requeue"
            for place in view.places:
                able = [run for run in place.running if self.system.why_not_preempt(run.job, mode) is None]
                if able:
                    yield Preempt(able[-1].job, mode, "no reason")
        yield from self.easy.decide(view)
        if self.left:
            yield WakeAt(self.next)


# ---------------------------------------------------------------------- strategies

TIMES = st.sampled_from([0, 0, 1, 2, 3, 5, 5, 8, 10, 13, 20, 30])


@st.composite
def partitions(draw: st.DrawFn, name: str, identified: bool | None = None) -> PartitionSpec:
    """Draw a partition; ``identified``: whether its nodes are, by default drawn too."""
    limits = {
        "max_processors": draw(st.sampled_from([None, None, None, 3])),
        "max_requested": draw(st.sampled_from([None, None, None, 15])),
        "priority": draw(st.sampled_from([0, 0, 2])),
    }
    if bool(draw(st.integers(0, 2))) if identified is None else not identified:
        return PartitionSpec(name=name, processors=draw(st.integers(1, 8)), idle_power=2, load_power=7, **limits)
    kinds = [
        NodeSpec(
            name=f"n{i}",
            count=draw(st.integers(1, 3)),
            cores=draw(st.integers(1, 4)),
            gpus=draw(st.integers(0, 2)),
            memory=draw(st.sampled_from([0, 8])),
            idle_power=3 + i,
            load_power=11 + 4 * i,
            speed=draw(st.sampled_from([1.0, 1.0, 2.0, 0.5])),
        )
        for i in range(draw(st.integers(1, 2)))
    ]
    placement = draw(st.sampled_from(["first-fit", "best-fit", "packed"]))
    limits["one_host"] = not draw(st.integers(0, 2))
    return PartitionSpec(name=name, nodes=kinds, placement=placement, exclusive=draw(st.booleans()), **limits)


@st.composite
def outages(draw: st.DrawFn, parts: list[PartitionSpec]) -> OutageSpec:
    part = draw(st.sampled_from(parts))
    at = draw(TIMES)
    until = at + draw(st.sampled_from([1, 4, 10, 25, 40, INFINITY]))
    what: dict[str, Any] = {}
    if part.nodes:
        numbers = range(len(part.node_names))
        what["nodes"] = sorted(draw(st.sets(st.sampled_from(numbers), min_size=1)))
    else:
        what["processors"] = draw(st.integers(1, part.capacity))
    kind = draw(st.sampled_from(["failure", "maintenance", "drain"]))
    return OutageSpec(at=at, until=until, partition=part.name, kind=kind, **what)


@st.composite
def queues(draw: st.DrawFn, parts: list[PartitionSpec]) -> list[QueueSpec]:
    if not draw(st.booleans()):
        return []
    limit = st.sampled_from([None, None, None, 1, 2])
    mode = draw(st.sampled_from([None, "requeue", "suspend"]))

    def one(name: str, **more: Any) -> QueueSpec:
        return QueueSpec(
            name=name,
            partition=draw(st.sampled_from([None, parts[-1].name])),
            max_running=draw(limit),
            max_running_per_user=draw(limit),
            max_waiting_per_user=draw(st.sampled_from([None, None, None, 2])),
            max_requested=draw(st.sampled_from([None, None, None, 10])),
            priority=draw(st.sampled_from([0, 0, 1])),
            **more,
        )

    return [one("a", preempts=["b"] if mode else []), one("b", preemptible=mode)]


@st.composite
def with_reservations(draw: st.DrawFn, spec: ClusterSpec, starts: st.SearchStrategy[float], most: int) -> ClusterSpec:
    """Add several reservations to a cluster, without those that would overlap."""
    for number in range(draw(st.integers(0, most))):
        part = draw(st.sampled_from(spec.partitions))
        what: dict[str, Any] = {"processors": draw(st.integers(1, part.capacity))}
        if part.nodes:
            what = {"nodes": sorted(draw(st.sets(st.sampled_from(range(len(part.node_names))), min_size=1)))}
        start = draw(starts)
        end = start + draw(st.sampled_from([1, 3, 7, 20, 50]))
        reservation = ReservationSpec(name=f"r{number}", partition=part.name, start=start, end=end, **what)
        with suppress(InputError):
            spec = attrs.evolve(spec, reservations=[*spec.reservations, reservation])
    return spec


KEEPING = st.sampled_from(
    [
        {},
        {"keeps_work": True},
        {"checkpoint": Checkpoint(1)},
        {"checkpoint": Checkpoint(2, cost=1, restart=1)},
        {"checkpoint": Checkpoint(3.3, cost=0.1, restart=2)},
    ]
)
"""What jobs keep of their work when they are stopped."""


@st.composite
def jobs(draw: st.DrawFn, number: int, count: int, spec: ClusterSpec) -> Job:
    run = float(draw(TIMES))
    requested = draw(st.sampled_from([None, max(1.0, run), run + 1, run + 10, max(1.0, run / 2)]))
    submit = float(draw(TIMES))
    asked: dict[str, Any] = {"processors": draw(st.integers(1, 5))}
    if any(part.nodes for part in spec.partitions) and draw(st.booleans()):
        asked = {
            "nodes": draw(st.integers(1, 3)),
            "cores_per_node": draw(st.integers(0, 3)),
            "gpus_per_node": draw(st.sampled_from([0, 0, 1])),
            "memory_per_node": draw(st.sampled_from([0, 0, 3])),
        }
    if spec.queues:
        asked["queue"] = draw(st.sampled_from(["a", "b"]))
    if len(spec.partitions) > 1 or spec.reservations:
        places = [*spec.partitions, *spec.reservations]
        asked["partition"] = draw(st.sampled_from([None, None, *(place.name for place in places)]))
    if len(spec.partitions) > 1 and draw(st.booleans()):
        del asked["partition"]
        names = [part.name for part in spec.partitions]
        asked["partitions"] = draw(st.permutations(names) | st.just("any") | st.sampled_from(names))
    if spec.consumables and draw(st.booleans()):
        asked["consumables"] = {"licence": draw(st.sampled_from([0.1, 0.2, 0.7, 1.0]))}
    if draw(st.integers(0, 2)) == 0:
        asked["body"] = Body(
            run, draw(st.booleans()), draw(st.sampled_from([None, 0.0, 1.0, CLEAN_UP])), draw(st.booleans())
        )
        asked["grace"] = draw(st.sampled_from([30.0, 30.0, 0.0, 2.0]))
    if draw(st.integers(0, 2)) == 0:
        names = st.sampled_from([*range(1, number), *range(1, count + 1), count + 1])
        asked["dependencies"] = [
            Dependency(
                draw(names), draw(st.sampled_from(["end", "start", "success"])), draw(st.sampled_from([0, 0, 2, 7]))
            )
            for _ in range(draw(st.integers(1, 2)))
        ]
    return Job(
        id=number,
        submit=submit,
        run=None if asked.get("body") and draw(st.booleans()) else run,
        requested=requested,
        user=draw(st.sampled_from(["ada", "bob"])),
        priority=draw(st.sampled_from([0, 0, 0, 1, 3])),
        cancel=draw(st.sampled_from([None, None, None, submit - 1, submit, submit + 2, submit + 11])),
        on_preempt=draw(st.sampled_from(["no", "requeue", "requeue", "suspend"])),
        **({} if "body" in asked else draw(KEEPING)),
        **asked,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    parts = [draw(partitions(f"p{i}")) for i in range(draw(st.sampled_from([1, 1, 2])))]
    spec = ClusterSpec(
        partitions=parts,
        queues=draw(queues(parts)),
        consumables=[ConsumableSpec(name="licence", amount=1.0)] if draw(st.booleans()) else [],
        outages=draw(st.lists(outages(parts), max_size=3)),
        failures=[FailureModel(mean_time_between_failures=1000, mean_time_to_repair=9)]
        if not draw(st.integers(0, 3))
        else [],
        on_failure=draw(st.sampled_from(["resubmit", "lose"])),
    )
    spec = draw(with_reservations(spec, TIMES, 3))
    count = draw(st.integers(1, 9))
    options = {
        "decide_on": draw(st.sampled_from(["instant", "event"])),
        "event_order": draw(st.sampled_from(["submits-first", "ends-first"])),
        "estimates": draw(st.sampled_from(["requested", "exact", "cqsim", "recent-two", "predicted"])),
        "overrun": draw(st.sampled_from(["stop", "continue"])),
    }
    drawn = [draw(jobs(number, count, spec)) for number in range(1, count + 1)]
    way = draw(st.sampled_from(["script", "jobs", "log"]))
    if way == "log":
        spec = attrs.evolve(spec, queues=[], reservations=[])
        drawn = [_plain(job) for job in drawn]
    return Case(spec, drawn, options, way, draw(st.integers(0, 3)))


def _plain(job: Job) -> Job:
    run = job.run if job.run is not None else 4.0
    return Job(id=job.id, submit=job.submit, run=run, requested=job.requested, processors=job.processors)
