"""Impossible schedules: starts before the submission or a dependency, and more processors in use than there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.referee.schedules import Devices, Fault, Held, Schedule
from simmodel.resources.pools.allocation import Request
from simmodel.resources.pools.devices import DeviceTable
from simmodel.work.workload import jobs_of_rows, processors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import ClusterSpec, OutageSpec, PartitionSpec
    from simmodel.work.job import Job
    from simmodel.work.workload import Workload

__all__ = ["allowed", "impossible", "impossible_on_nodes"]

_PARTS = (
    ("too many cores of a node", "cores"),
    ("too many GPUs of a node", "GPUs"),
    ("too much memory of a node", "bytes"),
)
_AWAY = {"failure": "down", "maintenance": "in maintenance", "drain": "draining"}


class _Nodes(NamedTuple):
    """The nodes of a cluster, numbered through all partitions."""

    partitions: Mapping[str, PartitionSpec]
    first: Mapping[str, int]
    names: Sequence[str]
    partition: Sequence[str]
    parts: NDArray[np.float64]  # shape (nodes, 3): cores, GPUs, bytes
    exclusive: NDArray[np.bool_]
    devices: Mapping[str, DeviceTable]  # of the partitions with GPUs

    @classmethod
    def of(cls, spec: ClusterSpec) -> _Nodes:
        """Return the nodes of a cluster, reservations among its partitions; memory that is not modelled is endless."""
        first: dict[str, int] = {}
        names: list[str] = []
        partition: list[str] = []
        parts: list[tuple[float, float, float]] = []
        exclusive: list[bool] = []
        for part in spec.partitions:
            here = part.node_names if part.nodes else ()
            first[part.name] = len(names)
            names += here
            partition += [part.name] * len(here)
            exclusive += [part.exclusive or part.placed_by == "exclusive-by-switch"] * len(here)
            for kind in part.nodes:
                parts += [(kind.cores, kind.gpus, kind.memory or np.inf)] * kind.count
        shaped = np.array(parts, dtype=np.float64).reshape(-1, 3)
        by_name = {part.name: part for part in spec.partitions}
        for each in spec.reservations:
            by_name[each.name] = part = spec.partition(each.partition)
            first[each.name] = first[part.name]
        with_gpus = [part for part in spec.partitions if any(kind.gpus for kind in part.nodes)]
        devices = {part.name: DeviceTable.of_partition(part) for part in with_gpus}
        return cls(by_name, first, names, partition, shaped, np.array(exclusive, dtype=bool), devices)

    def number(self, node: int | str, place: str | None, asked: Sequence[str]) -> int | None:
        """Return the number of a node through all partitions, if there is such a node.

        A name is looked for in the partition that the schedule names, in those that the job asked for, and in all. A
        number counts from 0 in the first of these; in the whole cluster if there is none.
        """
        if place not in self.partitions:
            place = asked[0] if len(asked) == 1 else None
        if isinstance(node, int) and place is None:
            return node if 0 <= node < len(self.names) else None
        wanted = [] if place is None else [place]
        for name in wanted if isinstance(node, int) else dict.fromkeys((*wanted, *asked, *self.first)):
            part = self.partitions.get(name)
            if part is not None and part.nodes and part.has_node(node):
                return self.first[name] + part.node_number(node)
        return None

    def devices_of(self, node: int) -> tuple[DeviceTable | None, int]:
        """Return the devices of the partition of a node, if it has GPUs, and the number of the node there."""
        return self.devices.get(self.partition[node]), node - self.first[self.partition[node]]

    def thousandths(self, node: int, device: int) -> int:
        """Return how much a device of a node has, 0 if there is none such."""
        table, here = self.devices_of(node)
        return 0 if table is None or not 0 <= device < len(table.devices) else int(table.all_devices[device, here])


class _Use(NamedTuple):
    """The part of a node that a job holds: the row of the job, the number of the node; cores, GPUs, bytes; devices."""

    row: int
    node: int
    parts: tuple[float, float, float]
    devices: Devices = ()


def impossible_on_nodes(
    schedule: Schedule, spec: ClusterSpec, asked: Mapping[int, Job], tolerance: float = 0.0
) -> Iterator[Fault]:
    """Yield the faults in the nodes that a schedule names, with a tolerance in seconds.

    A job of which only the nodes are known is taken to hold as little of each as it can.

    Parameters
    ----------
    schedule
        the schedule; jobs without nodes are not judged
    spec
        the cluster
    asked
        by row, the jobs that can run
    tolerance
        s

    >>> from simmodel import Job, Workload
    >>> from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
    >>> from simmodel.referee.schedules import schedule_of
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4)])])
    >>> jobs = [Job(nodes=1, cores_per_node=3, run=10) for _ in range(2)]
    >>> given = {"job": [1, 2], "start": [0, 5], "nodes": [("node1",), ("node1",)]}
    >>> schedule = schedule_of(Workload.from_jobs(jobs), given)
    >>> [fault.text for fault in impossible_on_nodes(schedule, spec, dict(enumerate(jobs)))]
    ['6 of 4 cores of node node1 are used from 5 s on, when job 2 starts']
    """
    if not any(each.nodes for each in schedule.held or ()) or not any(part.nodes for part in spec.partitions):
        return
    nodes = _Nodes.of(spec)
    names = schedule.workload["job"].tolist()
    uses: list[_Use] = []
    for row, held in enumerate(schedule.held or ()):
        if held.nodes and row in asked:
            for kind, text in _of_job(nodes, spec, row, asked[row], held, uses):
                yield Fault(kind, names[row], float(schedule.start[row]), f"job {names[row]} {text}")
    for outage in spec.outages:
        yield from _away(nodes, spec, schedule, outage, uses, tolerance)
    yield from _used_twice(nodes, schedule, uses, tolerance)


def allowed(spec: ClusterSpec, job: Job) -> list[str]:
    """Return the partitions of the cluster that a job asked for; none: it may run in any.

    >>> from simmodel import Job
    >>> from simmodel.platform import ClusterSpec, PartitionSpec
    >>> spec = ClusterSpec(partitions=[PartitionSpec(name=name, processors=1) for name in "abc"])
    >>> allowed(spec, Job(run=1, partitions=["c", "a"])), allowed(spec, Job(run=1, partitions="any"))
    (['c', 'a'], [])
    """
    names = {part.name for part in spec.partitions}
    return [str(name) for name in job.partitions or (job.partition,) if str(name) in names]


def _of_job(
    nodes: _Nodes, spec: ClusterSpec, row: int, job: Job, held: Held, uses: list[_Use]
) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each fault in the nodes of one job; note its uses of them."""
    wanted = allowed(spec, job)
    numbers: list[int] = []
    for node in held.nodes:
        number = nodes.number(node, held.place, wanted)
        if number is None:
            yield "unknown node", f"runs on node {node}, which {spec.name} does not have"
            continue
        if number in numbers:
            yield "node named twice", f"names node {nodes.names[number]} twice"
            continue
        numbers.append(number)
        if wanted and nodes.partition[number] not in wanted:
            there = f"node {nodes.names[number]} of partition {nodes.partition[number]}"
            yield "node of another partition", f"runs on {there}, but asked for {' or '.join(wanted)}"
    if len(numbers) < len(held.nodes):
        return
    request, cores = Request.of(job), float(nodes.parts[numbers, 0].sum())
    if request.nodes is not None and len(numbers) < request.nodes:
        yield "too few nodes", f"runs on {len(numbers)} nodes, but asked for {request.nodes}"
    elif cores < request.processors:
        yield "too few nodes", f"runs on nodes with {cores:g} cores, but asked for {request.processors}"
    else:
        yield from _of_devices(nodes, numbers, request, held)
        uses += _uses(nodes, row, numbers, request, held)


def _of_devices(nodes: _Nodes, numbers: Sequence[int], request: Request, held: Held) -> Iterator[tuple[str, str]]:
    """Yield the faults in the devices that a job holds: that there are none such, or that it asked for others."""
    for number, devices in zip(numbers, held.devices or (), strict=held.devices is not None):
        table, here = nodes.devices_of(number)
        on = f"of node {nodes.names[number]}"
        unknown = [device for device, _ in devices if not nodes.thousandths(number, device)]
        if unknown:
            yield "unknown device", f"runs on device {unknown[0]} {on}, which does not have it"
        elif table is not None and not (nodes.exclusive[number] or request.exclusive or request.chunks):
            ask = table.ask(request)
            if devices if ask is None else not table.meets(ask, here, devices):
                text = ", ".join(f"{part / 1000:g} of {device}" for device, part in devices) or "none"
                asked = Request(
                    1, 1, gpus_per_node=request.gpus_per_node, gpu=request.gpu, gpu_memory=request.gpu_memory
                )
                yield "other devices than asked for", f"runs on devices {on} ({text}) that do not meet {asked}"


def _uses(nodes: _Nodes, row: int, numbers: list[int], request: Request, held: Held) -> Iterator[_Use]:
    """Yield the least that a job can hold of each of its nodes."""
    total = float(nodes.parts[numbers, 0].sum())
    for position, number in enumerate(numbers):
        cores, gpus, _ = nodes.parts[number].tolist()
        devices = held.devices[position] if held.devices is not None else ()
        if nodes.exclusive[number]:
            yield _Use(row, number, (cores, gpus, request.memory_per_node), devices)
        elif held.amounts is not None:
            yield _Use(row, number, held.amounts[position], devices)
        else:
            rest = max(1.0, request.processors - (total - cores))
            least = rest if request.nodes is None else request.cores_per_node
            gpus = request.gpus_per_node if held.devices is None else sum(part for _, part in devices) / 1000
            each = least, gpus, request.memory_per_node
            if request.chunks:  # it is not known which of them is on the node
                every = [(chunk.cores, chunk.gpus, chunk.memory) for chunk in request.chunks]
                each = min(c for c, _, _ in every), min(g for _, g, _ in every), min(m for _, _, m in every)
            yield _Use(row, number, each, devices)


def _away(
    nodes: _Nodes, spec: ClusterSpec, schedule: Schedule, outage: OutageSpec, uses: Sequence[_Use], tolerance: float
) -> Iterator[Fault]:
    """Yield the jobs that run on nodes while these are away, each with the first of its nodes."""
    part = spec.partition(outage.partition)
    if not part.nodes:
        return
    gone = {nodes.first[part.name] + part.node_number(node) for node in outage.nodes}
    away = f"{_AWAY[outage.kind]} from {outage.at:.10g} s to {outage.until:.10g} s"
    jobs = schedule.workload["job"].tolist()
    first = {use.row: use.node for use in reversed(uses) if use.node in gone}
    for row in sorted(first):
        start, end = float(schedule.start[row]), float(schedule.end[row])
        starts = outage.at + tolerance <= start < outage.until - tolerance
        if starts or (outage.kind != "drain" and start < outage.at < end - tolerance):
            text = f"job {jobs[row]} runs on node {nodes.names[first[row]]}, which is {away}"
            yield Fault("node that is down", jobs[row], max(start, outage.at), text)


def _used_twice(nodes: _Nodes, schedule: Schedule, uses: Sequence[_Use], tolerance: float) -> Iterator[Fault]:
    """Yield the starts from which on more of a node, or of a device, is used than it has, the first of each excess."""
    node = np.array([use.node for use in uses], dtype=np.intp)
    parts = np.array([use.parts for use in uses], dtype=np.float64).reshape(-1, 3)
    row = np.array([use.row for use in uses], dtype=np.intp)
    for column, each, used, at, job in _excesses(schedule, row, node, parts, nodes.parts[node], tolerance):
        number, (kind, what) = int(node[each]), _PARTS[column]
        name, when = nodes.names[number], f"from {at:.10g} s on, when job {job} starts"
        if not nodes.exclusive[number]:
            text = f"{used:.10g} of {nodes.parts[number, column]:.10g} {what} of node {name} are used {when}"
            yield Fault(kind, job, at, text)
        elif column == 0:
            text = f"node {name} has two jobs, but is for one at a time, {when}"
            yield Fault("two jobs on an exclusive node", job, at, text)
    held = [(use, *each) for use in uses for each in use.devices if nodes.thousandths(use.node, each[0])]
    most = max((device + 1 for _, device, _ in held), default=1)
    devices = np.array([use.node * most + device for use, device, _ in held], dtype=np.intp)
    taken = np.array([part for *_, part in held], dtype=np.float64).reshape(-1, 1)
    room = np.array([nodes.thousandths(use.node, device) for use, device, _ in held], dtype=np.float64).reshape(-1, 1)
    row = np.array([use.row for use, *_ in held], dtype=np.intp)
    for _, each, used, at, job in _excesses(schedule, row, devices, taken, room, tolerance):
        use, number, _ = held[each]
        what = f"{used:g} of {room[each, 0]:g} thousandths of device {number} of node {nodes.names[use.node]}"
        yield Fault("too much of a device", job, at, f"{what} are used from {at:.10g} s on, when job {job} starts")


def _excesses(
    schedule: Schedule,
    row: NDArray[np.intp],
    of: NDArray[np.intp],
    parts: NDArray[np.float64],
    most: NDArray[np.float64],
    tolerance: float,
) -> Iterator[tuple[int, int, float, float, Any]]:
    """Yield column, use, amount in use, instant (s) and job of each start from which on more is used than there is.

    Parameters
    ----------
    row, of
        by use: the row of the job, and the number of what it uses
    parts, most
        by use and column: the amounts, and those that there are of what it uses
    """
    start, end = schedule.start[row] + tolerance, schedule.end[row] - tolerance
    there = np.flatnonzero(end > start)
    begins, time = np.repeat([False, True], len(there)), np.concatenate((end[there], start[there]))
    use = np.concatenate((there, there))
    order = np.lexsort((begins, time, of[use]))  # of each by time, ends before starts
    use, at, begins = use[order], time[order] - tolerance, begins[order]
    job: list[Any] = schedule.workload["job"][row[use]].tolist()
    which = of[use]
    first = np.searchsorted(which, which)
    again = np.concatenate(([False], which[1:] == which[:-1]))
    for column in range(parts.shape[1]):
        total = np.concatenate(([0.0], np.cumsum(np.where(begins, 1, -1) * parts[use, column])))
        used = np.round(total[1:] - total[first], 6)  # shares of GPUs are fractions
        over = used > most[use, column]
        for here in np.flatnonzero(over & begins & ~(again & np.concatenate(([False], over[:-1])))).tolist():
            yield column, int(use[here]), float(used[here]), float(at[here]), job[here]


def impossible(schedule: Schedule, spec: ClusterSpec, tolerance: float = 0.0) -> Iterator[Fault]:
    """Yield the faults that make a schedule impossible on a cluster, with a tolerance in seconds.

    Processors and parts of nodes that are released at an instant can be used at this instant. Processors are counted in
    the whole cluster and in each of several partitions, as far as it is known where jobs run; nodes are judged if the
    schedule names them (see :func:`~simmodel.referee.feasibility.impossible_on_nodes`).

    >>> from simmodel.referee.schedules import schedule_of
    >>> from simmodel import Workload
    >>> from simmodel.platform import ClusterSpec
    >>> log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [4, 4]})
    >>> [fault.text for fault in impossible(schedule_of(log, {1: 0, 2: 9}), ClusterSpec.simple(4))]
    ['8 of 4 processors are used from 9 s on, when job 2 starts']
    >>> [fault.kind for fault in impossible(schedule_of(log, {1: 0, 2: 4}), ClusterSpec.simple(8))]
    ['start before submission']
    """
    workload, start = schedule.workload, schedule.start
    jobs, submit = workload["job"].tolist(), workload["submit"].astype(np.float64)
    size, _ = processors_of(workload.table)
    for row in np.flatnonzero(start < submit - tolerance).tolist():
        text = f"job {jobs[row]} starts at {start[row]:.10g} s, before its submission at {submit[row]:.10g} s"
        yield Fault("start before submission", jobs[row], float(start[row]), text)
    yield from _dependencies(schedule, tolerance)
    for row in np.flatnonzero(size > spec.processors).tolist():
        text = f"job {jobs[row]} uses {size[row]} processors of {spec.processors}"
        yield Fault("larger than the machine", jobs[row], float(start[row]), text)
    yield from _oversubscribed(schedule, size, spec.processors, tolerance)
    several = len(spec.partitions) > 1
    if not several and (schedule.held is None or not spec.partitions[0].nodes):
        return
    asked = _asked(workload, size)
    places = _places(schedule, spec, asked) if several else np.zeros(0)
    for part in spec.partitions if several else ():
        yield from _oversubscribed(schedule, size, part.capacity, tolerance, places == part.name, f" of {part.name}")
    yield from impossible_on_nodes(schedule, spec, asked, tolerance)


def _asked(workload: Workload, size: NDArray[np.int64]) -> dict[int, Job]:
    """Return the jobs that can run, by row."""
    if workload.specs is not None:
        return dict(enumerate(workload.specs))
    rows = np.flatnonzero((size > 0) & (workload["run"] >= 0) & np.isfinite(workload["submit"])).tolist()
    return dict(jobs_of_rows(workload.table, rows, size, Counter()))


def _places(schedule: Schedule, spec: ClusterSpec, asked: Mapping[int, Job]) -> NDArray[np.str_]:
    """Return the partition in which each job runs: as the schedule says, or the only one it asked for; else empty."""
    of_reservation = {each.name: spec.partition(each.partition).name for each in spec.reservations}
    places = []
    for row in range(len(schedule.start)):
        place = None if schedule.held is None else schedule.held[row].place
        wanted = allowed(spec, asked[row]) if row in asked and place is None else []
        place = wanted[0] if len(wanted) == 1 else place
        places.append(of_reservation.get(place, place) if place is not None else "")
    return np.array(places, dtype=str)


def _oversubscribed(
    schedule: Schedule,
    size: NDArray[np.int64],
    processors: int,
    tolerance: float,
    here: NDArray[np.bool_] | None = None,
    where: str = "",
) -> Iterator[Fault]:
    """Yield the starts at which some jobs use more processors than there are, the first of each excess."""
    jobs, start, end = schedule.workload["job"].tolist(), schedule.start, schedule.end
    counted = (end - start > 2 * tolerance) & (size <= processors)
    rows = np.flatnonzero(counted if here is None else counted & here)
    times = np.concatenate((end[rows] - tolerance, start[rows] + tolerance))
    change = np.concatenate((-size[rows], size[rows]))
    order = np.lexsort((change > 0, times))  # ends before starts
    used = np.cumsum(change[order])
    over = used > processors
    first = over & ~np.concatenate(([False], over[:-1]))
    for at in np.flatnonzero(first).tolist():
        job = jobs[int(rows[order[at] % len(rows)])]
        when = float(times[order[at]]) - tolerance
        text = f"{used[at]} of {processors} processors{where} are used from {when:.10g} s on, when job {job} starts"
        yield Fault("too many processors", job, when, text)


def _dependencies(schedule: Schedule, tolerance: float) -> Iterator[Fault]:
    specs = schedule.workload.specs
    jobs = schedule.workload["job"].tolist()
    when = {str(job): (at, end) for job, at, end in zip(jobs, schedule.start, schedule.end, strict=True)}
    preceding = schedule.workload.get("preceding", -1).tolist()
    think = np.nan_to_num(schedule.workload.get("think_time", 0.0).astype(np.float64))
    for row, job in enumerate(jobs):
        waits = (
            [(preceding[row], "end", max(0.0, float(think[row])))] if preceding[row] not in (-1, 0, "", None) else []
        )
        if specs is not None:
            waits += [(each.job, each.after, each.think_time) for each in specs[row].dependencies]
        for other, after, seconds in waits:
            known = when.get(str(other))
            if known is None:
                continue
            ready = (known[0] if after == "start" else known[1]) + seconds
            if schedule.start[row] < ready - tolerance:
                text = (
                    f"job {job} starts at {schedule.start[row]:.10g} s, before it may: job {other}, "
                    f"for whose {'start' if after == 'start' else 'end'} it waits, allows it from {ready:.10g} s on"
                )
                yield Fault("start before a dependency", job, float(schedule.start[row]), text)
