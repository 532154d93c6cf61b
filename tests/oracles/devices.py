"""Scheduling on devices by brute force: what is free is summed from all that is held, at every instant that matters.

Jobs are for nodes with cores and devices of each. A node gives its devices as the rule says: whole ones by number, a
share on the device with the least that is enough, among equals the first. Nodes are taken by number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["DeviceJob", "Node", "starts_of"]


@dataclass(frozen=True)
class DeviceJob:
    """A job for ``nodes`` nodes: cores and thousandths of each of ``count`` devices of some types; times in seconds."""

    submit: int
    run: int
    requested: int
    nodes: int
    cores: int
    count: int
    each: int
    types: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """Its cores, and the type of each of its devices."""

    cores: int
    devices: tuple[str, ...]


Parts = dict[int, dict[int, int]]  # by node, the thousandths by device


@dataclass
class Held:
    """What a job holds from an instant until another one."""

    job: DeviceJob
    start: float
    end: float
    parts: Parts


def free_at(nodes: Sequence[Node], held: Iterable[Held], at: float) -> list[tuple[int, list[int]]]:
    """Return the free cores and thousandths of each node at an instant."""
    free = [(node.cores, [1000] * len(node.devices)) for node in nodes]
    for each in held:
        if each.start <= at < each.end:
            for number, parts in each.parts.items():
                cores, left = free[number]
                free[number] = cores - each.job.cores, left
                for device, thousandths in parts.items():
                    left[device] -= thousandths
    return free


def free_through(nodes: Sequence[Node], held: Sequence[Held], at: float, end: float) -> list[tuple[int, list[int]]]:
    """Return what is free all the time from an instant until another one."""
    instants = {at, *(each.start for each in held if at < each.start < end)}
    states = [free_at(nodes, held, instant) for instant in instants]
    return [
        (min(cores for cores, _ in of), [min(column) for column in zip(*(left for _, left in of), strict=True)])
        for of in ([state[number] for state in states] for number in range(len(nodes)))
    ]


def parts_on(job: DeviceJob, node: Node, free: tuple[int, list[int]]) -> dict[int, int] | None:
    """Return the devices of a node that a job gets, or ``None`` if it does not fit on it."""
    cores, left = free
    fit = [d for d, kind in enumerate(node.devices) if kind in job.types and left[d] >= job.each]
    if cores < job.cores or (job.count and len(fit) < job.count):
        return None
    if job.each < 1000:
        fit.sort(key=lambda device: (left[device], device))
    return dict.fromkeys(fit[: job.count], job.each)


def choice(job: DeviceJob, nodes: Sequence[Node], free: Sequence[tuple[int, list[int]]]) -> Parts | None:
    """Return the first nodes that a job fits on, and its parts of each, or ``None``."""
    found = {}
    for number, node in enumerate(nodes):
        parts = parts_on(job, node, free[number])
        if parts is not None and len(found) < job.nodes:
            found[number] = parts
    return found if len(found) == job.nodes else None


def earliest(job: DeviceJob, nodes: Sequence[Node], held: Sequence[Held], now: float) -> tuple[float, Parts]:
    """Return the earliest instant at which a job fits for its requested time, and its parts then."""
    for at in sorted({now, *(each.end for each in held if each.end > now)}):
        parts = choice(job, nodes, free_through(nodes, held, at, at + job.requested))
        if parts is not None:
            return at, parts
    raise AssertionError(job)


def beside(job: DeviceJob, head: Held, nodes: Sequence[Node], held: list[Held], now: float) -> Parts | None:
    """Return the parts with which a job starts now and the promise to the head stands, or ``None``."""
    end = now + job.requested
    free = free_through(nodes, held, now, end)
    if end <= head.start:
        return choice(job, nodes, free)
    found, others = {}, {}
    then = free_at(nodes, held, head.start)
    for number, node in enumerate(nodes):
        parts = parts_on(job, node, free[number])
        if parts is None:
            continue
        cores, left = then[number]
        rest = cores - job.cores, [have - parts.get(device, 0) for device, have in enumerate(left)]
        hurt = parts_on(head.job, node, then[number]) is not None and parts_on(head.job, node, rest) is None
        (others if hurt else found)[number] = parts
    found = dict(list((found | others).items())[: job.nodes])
    if len(found) < job.nodes:
        return None
    mine = [*held, Held(job, now, end, found)]
    moved = choice(head.job, nodes, free_through(nodes, mine, head.start, head.start + head.job.requested))
    return None if moved is None else found


def starts_of(jobs: Sequence[DeviceJob], nodes: Sequence[Node], policy: str) -> list[float]:
    """Return the start of each job under fcfs, easy, conservative or conservative-keep."""
    starts: dict[int, float] = {}
    running: dict[int, Held] = {}
    waiting: list[int] = []
    promised: dict[int, Held] = {}
    coming = list(range(len(jobs)))
    now = -math.inf
    while coming or running or waiting:
        ends = [starts[row] + jobs[row].run for row in running]
        due = [each.start for each in promised.values() if each.start > now]
        now = min([jobs[row].submit for row in coming[:1]] + ends + due)
        for row in [row for row in running if starts[row] + jobs[row].run <= now]:
            del running[row]
        while coming and jobs[coming[0]].submit <= now:
            waiting.append(coming.pop(0))

        def begin(row: int, parts: Parts, now: float = now) -> None:
            starts[row] = now
            running[row] = Held(jobs[row], now, now + jobs[row].requested, parts)
            waiting.remove(row)

        if policy == "conservative-keep":
            for row in waiting[:]:
                promised.pop(row, None)
                others = [*running.values(), *promised.values()]
                at, parts = earliest(jobs[row], nodes, others, now)
                if at == now:
                    begin(row, parts)
                else:
                    promised[row] = Held(jobs[row], at, at + jobs[row].requested, parts)
            continue
        while waiting:
            parts = choice(jobs[waiting[0]], nodes, free_at(nodes, running.values(), now))
            if parts is None:
                break
            begin(waiting[0], parts)
        if policy == "easy" and waiting:
            head = jobs[waiting[0]]
            at, parts = earliest(head, nodes, list(running.values()), now)
            plan = Held(head, at, at + head.requested, parts)
            for row in waiting[1:]:
                found = beside(jobs[row], plan, nodes, list(running.values()), now)
                if found is not None:
                    begin(row, found)
        if policy == "conservative":
            planned: list[Held] = []
            for row in waiting[:]:
                at, parts = earliest(jobs[row], nodes, [*running.values(), *planned], now)
                if at == now:
                    begin(row, parts)
                else:
                    planned.append(Held(jobs[row], at, at + jobs[row].requested, parts))
    return [starts[row] for row in range(len(jobs))]
