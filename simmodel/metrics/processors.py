"""Metrics of the processors, links and memory pools of a machine: load, phases, energy, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.metrics.power_and_energy import Energy
from simmodel.platform.network import NetworkSpec
from simmodel.records.steps import Steps
from simmodel.records.task_record import HELD, MOMENTS, PHASES, WORKING, positions
from simmodel.work.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray
    from simpy.events import Event

    from simmodel.records.task_record import TaskRecord

__all__ = ["busy_seconds", "energy", "link_load", "links", "load", "phase_seconds", "pools", "routes"]


def phase_seconds(result: TaskRecord) -> NDArray[np.float64]:
    """Return the time that tasks spent in each phase, queueing included, phases x processors.

    On a processor with several cores, a task counts with its share of the cores.

    >>> from simmodel.metrics._examples import two_kinds
    >>> phase_seconds(two_kinds())[PHASES.index("execution")]
    array([3., 2.])
    """
    start, end = result.spans
    count = len(result.processors)
    known = result.placed >= 0
    where = result.placed[known]
    part = (result.tasks["cores"][known] / result.processors["cores"][where]) if len(where) else np.zeros(0)
    taken = np.nan_to_num((end - start)[:, known])
    held = np.array([name in HELD for name in PHASES])
    weights = np.where(held[:, None], part, 1.0)
    counted = [np.bincount(where, weights=row, minlength=count) for row in taken * weights]
    found = np.stack(counted).astype(np.float64)
    if len(result.stopped):
        found[held] += _stopped_seconds(result)
    return found


def _stopped_seconds(result: TaskRecord) -> NDArray[np.float64]:
    """Return the time of stopped executions in each phase that holds the processor, phases x processors."""
    table = result.stopped
    where = positions(table["processor"], result.processors["processor"].tolist())
    part = table["cores"] / result.processors["cores"][where]
    spent = np.diff(np.stack([table[name] for name in MOMENTS[2:]]), axis=0) * part
    counted = [np.bincount(where, weights=row, minlength=len(result.processors)) for row in spent]
    return np.stack(counted).astype(np.float64)


def _own_seconds(result: TaskRecord) -> NDArray[np.float64]:
    """Return the time that each processor was busy with its own tasks."""
    seconds = phase_seconds(result)
    return np.asarray(sum(seconds[PHASES.index(name)] for name in WORKING))


def busy_seconds(result: TaskRecord) -> NDArray[np.float64]:
    """Return the time that each processor was busy: setup, reconfiguration, transfer, execution, work for others.

    A CPU core that sets up another processor while its own task receives data counts as busy once.
    """
    found = _own_seconds(result)
    table = result.cpu_phases
    core = positions(table["core"], result.processors["processor"].tolist())
    ends = np.where(np.isnan(table["end"]), result.ended, table["end"])
    place = positions(result.stopped["processor"], result.processors["processor"].tolist())
    for each in np.unique(core[core >= 0]).tolist():
        starts, stops = [table["start"][core == each]], [ends[core == each]]
        for at in (PHASES.index(name) for name in WORKING):
            starts += [result.spans[0][at][result.placed == each], result.stopped[MOMENTS[at]][place == each]]
            stops += [result.spans[1][at][result.placed == each], result.stopped[MOMENTS[at + 1]][place == each]]
        found[each] = _together(np.concatenate(starts), np.concatenate(stops))
    return found


def _together(start: NDArray[np.float64], end: NDArray[np.float64]) -> float:
    """Return the length of the union of intervals; intervals with nan are left out."""
    known = np.isfinite(start) & np.isfinite(end)
    order = np.argsort(start[known], kind="stable")
    start, end = start[known][order], end[known][order]
    before = np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])
    return float(np.maximum(end - np.maximum(start, before), 0.0).sum())


def load(result: TaskRecord) -> Table:
    """Return one row per processor: its tasks, busy time, time in each phase, and energy.

    Columns: ``processor, type, tasks, busy`` (time), ``utilisation`` (share of the run), the :data:`PHASES` in which a
    task has its processor, ``for others`` (a CPU core sets up others or moves their data, and nothing else), and
    ``energy``.

    >>> from simmodel.metrics._examples import two_kinds
    >>> table = load(two_kinds())
    >>> table["busy"].tolist(), table["energy"].tolist()
    ([4.0, 4.0], [47.0, 94.0])
    """
    seconds, busy = phase_seconds(result), busy_seconds(result)
    span = result.ended - result.started
    known = result.placed[result.placed >= 0]
    return Table(
        {
            "processor": result.processors["processor"],
            "type": result.processors["type"],
            "tasks": np.bincount(known, minlength=len(busy)),
            "busy": busy,
            "utilisation": busy / span if span > 0 else np.full(len(busy), np.nan),
            **{name: seconds[PHASES.index(name)] for name in HELD},
            "for others": busy - _own_seconds(result),
            "energy": _joules(result, busy),
        }
    )


def _joules(result: TaskRecord, busy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the energy of each processor; ``busy``: from :func:`busy_seconds`."""
    idle, full = (result.processors[name].astype(np.float64) for name in ("idle_power", "load_power"))
    found = np.asarray(idle * (result.ended - result.started - busy) + full * busy)
    specs = [spec for _, spec in result.spec.each_processor()]
    for phase in WORKING[:-1]:
        given = [getattr(spec, f"{phase}_power") for spec in specs]
        if any(watts is not None for watts in given):
            other = np.array([own if watts is None else watts for watts, own in zip(given, full, strict=True)])
            found = found + (other - full) * _seconds_of_phase(result, phase)
    return found


def _seconds_of_phase(result: TaskRecord, phase: str) -> NDArray[np.float64]:
    """Return the time of each processor in a phase of its own tasks, while it does not work for others."""
    at = PHASES.index(phase)
    found: NDArray[np.float64] = phase_seconds(result)[at].copy()
    table = result.cpu_phases
    core = positions(table["core"], result.processors["processor"].tolist())
    ends = np.where(np.isnan(table["end"]), result.ended, table["end"])
    place = positions(result.stopped["processor"], result.processors["processor"].tolist())
    task_of = dict(zip(result.tasks["task"].tolist(), result.placed.tolist(), strict=True))
    own = np.array([task_of.get(task, -1) for task in table["task"].tolist()], dtype=np.int64) == core
    for each in np.unique(core[(core >= 0) & ~own]).tolist():
        here = (core == each) & ~own
        others = table["start"][here], ends[here]
        starts = [others[0], result.spans[0][at][result.placed == each], result.stopped[MOMENTS[at]][place == each]]
        stops = [others[1], result.spans[1][at][result.placed == each], result.stopped[MOMENTS[at + 1]][place == each]]
        found[each] = _together(np.concatenate(starts), np.concatenate(stops)) - _together(*others)
    return found


def energy(result: TaskRecord) -> Energy:
    """Return the energy of the run: idle power times idle time, plus load power times busy time, of each processor.

    Setup, reconfiguration and transfers draw the power of the spec for them, if it has one, instead of the load power.

    In watts times the machine's time unit: joules where that is a second. ``load`` is the energy that the load added to
    standing idle all the time. Busy are :data:`WORKING`, and a CPU core's work for others.

    >>> from simmodel.metrics._examples import two_kinds
    >>> energy(two_kinds()).total
    141.0
    """
    idle = float((result.processors["idle_power"] * (result.ended - result.started)).sum())
    return Energy(idle, float(_joules(result, busy_seconds(result)).sum()) - idle)


# ---------------------------------------------------------------------- links


def routes(result: TaskRecord) -> list[tuple[str, ...]]:
    """Return the links of each transfer of the run, by the routes of the machine's network."""
    from simmodel.resources.network.routing import Router

    router = Router(NetworkSpec(links=result.spec.links))
    pairs = zip(result.transfers["source"].tolist(), result.transfers["destination"].tolist(), strict=True)
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    ways = []
    for pair in pairs:
        if pair not in found:
            found[pair] = router.route(*pair) if pair[0] != pair[1] else ()
        ways.append(found[pair])
    return ways


def links(result: TaskRecord) -> Table:
    """Return one row per link: ``link, transfers`` (data objects), ``bytes``, ``utilisation`` (of its capacity).

    >>> from simmodel.metrics._examples import two_kinds
    >>> [column.tolist() for column in links(two_kinds()).values()]
    [['bus'], [1], [10.0], [0.14285714285714285]]
    """
    rows = {link.name: i for i, link in enumerate(result.spec.links)}
    count, carried = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
    moved = zip(result.transfers["count"].tolist(), result.transfers["bytes"].tolist(), strict=True)
    for way, (objects, size) in zip(routes(result) if rows else (), moved, strict=False):
        for link in way:
            count[rows[link]] += objects
            carried[rows[link]] += size
    bandwidth = np.array([link.bandwidth for link in result.spec.links])
    span = result.ended - result.started
    return Table(
        {
            "link": np.array(list(rows), dtype=str),
            "transfers": count,
            "bytes": carried,
            "utilisation": carried / bandwidth / span if span > 0 else np.full(len(rows), np.nan),
        }
    )


def link_load(result: TaskRecord) -> dict[str, Steps]:
    """Return the load of each link over time, in bytes per time unit.

    Where transfers shared bandwidth, they are moved once more over a network of the same links, from their recorded
    starts: that gives the rates at every instant. Else each counts with its mean rate.
    """
    contention = result.scenario.get("options", {}).get("contention", True)
    found = _moved_again(result) if contention and result.spec.links else None
    if found is not None:
        return found
    table, ways = result.transfers, routes(result) if len(result.transfers) else []
    end = np.where(np.isnan(table["end"]), result.ended, table["end"])
    took = end - table["start"]
    rate = np.divide(table["bytes"], took, out=np.zeros(len(took)), where=took > 0)
    loads = {}
    for link in result.spec.links:
        here = np.array([link.name in way for way in ways], dtype=bool)
        times = np.append(table["start"][here], end[here])
        loads[link.name] = Steps.from_changes(
            times, np.append(rate[here], -rate[here]), result.started, max(result.ended, result.started)
        )
    return loads


def _moved_again(result: TaskRecord) -> dict[str, Steps] | None:
    """Return the loads of the transfers simulated again; ``None`` if they end at other instants than recorded."""
    from simmodel.environment import Environment
    from simmodel.records.network_recorder import NetworkRecorder
    from simmodel.resources.network.network import Network

    env = Environment(initial_time=result.started)
    network = Network(env, result.spec.links)
    record = NetworkRecorder(network)
    env.observe(record)
    table = result.transfers
    order = np.argsort(table["start"], kind="stable")
    ends: list[float] = []

    def compare(row: int) -> Callable[[Event], None]:
        return lambda event: ends.append(abs(env.now - table["end"][row]))

    def move() -> Generator[Event, Any, None]:
        for row in order.tolist():
            at = float(table["start"][row])
            if at > env.now:
                yield env.timeout(at - env.now)
            source, destination = str(table["source"][row]), str(table["destination"][row])
            if source != destination:
                arrival = network.transfer(float(table["bytes"][row]), source=source, destination=destination)
                if arrival.processed:  # no bytes to move
                    compare(row)(arrival)
                else:
                    arrival.callbacks.append(compare(row))

    env.process(move())
    env.run(until=max(result.ended, result.started + 1e-9))
    if max(ends, default=0.0) > 1e-6 * max(1.0, abs(result.ended)):
        return None
    return {link.name: record.load(link.name) for link in result.spec.links}


def pools(result: TaskRecord) -> Table:
    """Return one row per memory pool: ``pool, size, peak`` (bytes) and ``mean`` (bytes, over the run).

    >>> from simmodel.metrics._examples import two_kinds
    >>> pools(two_kinds())["peak"]
    array([10., 10.])
    """
    names = [pool.name for pool in result.spec.pools]
    return Table(
        {
            "pool": names,
            "size": [float(pool.size) for pool in result.spec.pools],
            "peak": [float(result.peaks.get(name, 0.0)) for name in names],
            "mean": [result.memory[name].mean() if name in result.memory else 0.0 for name in names],
        }
    )
