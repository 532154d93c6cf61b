"""What draws power: spans of constant watts by node, state and holder, of which the figures of energy are sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.records.steps import Steps, held_spans
from simmodel.records.task_record import MOMENTS, PHASES, WORKING, TaskRecord, positions
from simmodel.work.measured import Measured
from simmodel.work.table import Table, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.signals import Signal
    from simmodel.platform.supply import Conversion, PowerSupply
    from simmodel.records.job_record import JobRecord

__all__ = [
    "CLAIMS",
    "NOBODY",
    "STATES",
    "Draws",
    "Model",
    "Segments",
    "as_steps",
    "draws_of",
    "model_by_node",
    "sums",
    "supply_of",
]

Model = Literal["node", "linear"]
STATES = ("idle", "load", "gpus", "boot", "stop", "off", "other", *WORKING[:-1])
"""What watts are drawn for: standing by, the cores of jobs and executions of tasks, GPUs of jobs, states of nodes, what
is no node, and the phases of tasks before their execution."""
IDLE, LOAD, GPUS, OTHER = (STATES.index(name) for name in ("idle", "load", "gpus", "other"))
NOBODY, CLAIMS = -1, -2
"""Holders that are no jobs."""

Spans: TypeAlias = "dict[str, NDArray[Any]]"
Row: TypeAlias = "dict[str, Any]"
_COLUMNS = ("place", "node", "start", "end", "watts", "holder", "state")


@attrs.frozen(eq=False)
class Draws:
    """Spans of constant power: ``place, node, start, end, watts, holder, state``, one row each.

    ``place`` is the number of a row of the record's places (-1: besides them), ``node`` -1 where nodes are not
    identified, ``holder`` the number of a row of its jobs, :data:`NOBODY` or :data:`CLAIMS`, ``state`` that of one of
    :data:`STATES`. ``work`` are the jobs or the tasks, ``places`` the names of the places or the processors, ``factor``
    is the PUE over time, ``None``: 1.
    """

    spans: Table
    started: float
    ended: float
    work: Table
    places: tuple[str, ...]
    factor: Steps | None = None

    def power(self, rows: NDArray[np.bool_] | slice = slice(None)) -> Steps:
        """Return the power of some of the spans over time, W."""
        spans = self.spans.where(rows)
        drawn = Steps.from_spans(spans, spans["watts"], self.started, self.ended)
        return drawn if self.factor is None else drawn.combine(self.factor, np.multiply)

    def amounts(self, signal: Signal | None = None) -> NDArray[np.float64]:
        """Return the energy of each span (J), or its cost by a signal per kWh.

        Raises
        ------
        InputError
            the signal begins later than the record, or ends before
        """
        start, end, watts = (self.spans[name] for name in ("start", "end", "watts"))
        if signal is None and self.factor is None:
            return np.asarray(watts * (end - start))
        if signal is None:
            weight, scale = self.factor, 1.0
        else:
            weight, scale = as_steps(signal, self.started, self.ended), 3.6e6
            weight = weight if self.factor is None else weight.combine(self.factor, np.multiply)
        assert weight is not None
        edges = np.append(weight.times, weight.end)
        area = np.append(0.0, np.cumsum(weight.values * np.diff(edges)))
        return np.asarray(watts * (np.interp(end, edges, area) - np.interp(start, edges, area)) / scale)


def as_steps(signal: Signal, started: float, ended: float) -> Steps:
    """Return a signal as steps between two instants (s), which it has to cover."""
    signal.integrals([started, ended])  # raises an error if it does not
    times, values = np.array(signal.times), np.array(signal.values)
    first, last = np.searchsorted(times, [started, ended], side="right").tolist()
    first = max(first - 1, 0)
    kept = slice(first, max(last, first + 1))
    return Steps(np.maximum(times[kept], started), values[kept], ended)


def sums(key: NDArray[np.int64], values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the sum of the values of each key, rounded as seldom as numpy sums: of millions the last digits count.

    >>> sums(np.array([2, 0, 2]), np.array([1.0, 2.0, 4.0]), 3)
    array([2., 0., 5.])
    """
    order = np.argsort(key, kind="stable")
    edges = np.searchsorted(key[order], np.arange(count + 1)).tolist()
    return np.array([values[order[low:high]].sum() for low, high in pairwise(edges)], dtype=np.float64)


def draws_of(
    result: JobRecord | TaskRecord,
    *,
    model: Model | None = None,
    idle_power: float | None = None,
    load_power: float | None = None,
    supply: PowerSupply | None = None,
) -> Draws:
    """Return all that draws power in a run; parameters as of :func:`simmodel.metrics.power`."""
    supply = supply_of(result, supply)
    if isinstance(result, TaskRecord):
        return _drawn([_of_tasks(result)], result, result.tasks, result.processors["processor"].tolist(), supply)
    result = result.in_seconds
    measured = _measured(result)
    parts: list[Spans] = []
    for number, row in enumerate(result.places.rows()):
        name, count = row["place"], int(row["nodes"])
        held = _held(result, name, measured)
        if count and (not len(held) or any(nodes is not None for nodes in held["nodes"].tolist())):
            nodes = _nodes(result, row, model, idle_power, load_power)
            found = _on_nodes(result, name, nodes, held)
            for conversion in () if supply is None else supply.conversions:
                found = _through(conversion, found)
        else:
            if supply is not None and supply.conversions:
                raise InputError(f"must be none: the nodes of {name} are not identified", place="supply.conversions")
            found = _counted(result, row, held, idle_power, load_power)
        parts.append({**found, "place": np.full(len(found["watts"]), number)})
    return _drawn(parts, result, result.jobs, result.places["place"].tolist(), supply)


def _drawn(
    parts: list[Spans], result: JobRecord | TaskRecord, work: Table, places: list[str], supply: PowerSupply | None
) -> Draws:
    """Return all spans together, with what is always drawn besides and the PUE."""
    started, ended = result.started, max(result.ended, result.started)
    if supply is not None and supply.fixed:
        always: Any = (NOBODY, NOBODY, started, ended, supply.fixed, NOBODY, OTHER)
        parts.append({name: np.array([value]) for name, value in zip(_COLUMNS, always, strict=True)})
    spans = Table({name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS})
    spans = spans.where((spans["watts"] != 0) & (spans["end"] > spans["start"]))
    drawn = Draws(spans, started, ended, work, tuple(places))
    return drawn if supply is None else attrs.evolve(drawn, factor=_pue(supply, drawn))


def supply_of(result: JobRecord | TaskRecord, given: PowerSupply | None) -> PowerSupply | None:
    """Return how power reaches the nodes: as given, else as the cluster of the run has it; ``None``: nothing is lost.

    Raises
    ------
    InputError
        the clusters of a broker have supplies
    """
    from simmodel.platform.supply import PowerSupply
    from simmodel.platform.toml import from_dict

    platform = result.scenario.get("platform") or {}
    if given is not None:
        return None if given == PowerSupply() else given
    if any("supply" in each for each in platform.get("places", {}).values()):
        message = "must be given: each of the clusters has its own, and the figures take one"
        raise InputError(message, place="supply")
    return from_dict(platform).supply if "supply" in platform else None


def _pue(supply: PowerSupply, drawn: Draws) -> Steps | None:
    """Return the PUE over time."""
    pue: Any = supply.pue
    if not callable(pue):
        return None if pue == 1 else Steps([drawn.started], [pue], drawn.ended)
    load = drawn.power()
    if supply.temperature is None:
        found = Steps(load.times, np.broadcast_to(pue(load.values), load.values.shape), load.end)
    else:
        outdoors = as_steps(supply.temperature, drawn.started, drawn.ended)
        found = load.combine(outdoors, lambda watts, degrees: np.broadcast_to(pue(watts, degrees), watts.shape))
    if not (found.values >= 1).all():
        raise InputError(f"must return numbers >= 1, got {found.values.min():g}", place="pue")
    return found


# ---------------------------------------------------------------------- who holds what


def _measured(result: JobRecord) -> dict[int, Measured]:
    """Return the measured power of jobs, by their row."""
    if "power" not in result.jobs:
        return {}
    cells = enumerate(result.jobs["power"].tolist())
    return {row: Measured.of(cell) for row, cell in cells if cell not in ("", None, -1) and cell == cell}


def _held(result: JobRecord, place: str, measured: Mapping[int, Measured]) -> Table:
    """Return what was held at a place, with the ``row`` of the job; a row for each step of its measured power.

    ``watts`` of a node, ``cpu`` and ``gpu``: the shares that are busy; nan: not measured.
    """
    held = result.held(place)
    ran = int((result.executions()["place"] == place).sum())  # the claims follow
    row = np.full(len(held), CLAIMS)
    row[:ran] = rows_of(result.jobs["job"], held["holder"][:ran])
    began = held["start"]
    start = np.clip(began, result.started, result.ended)
    end = np.clip(np.where(np.isnan(held["end"]), result.ended, held["end"]), start, result.ended)
    held = held.with_columns(row=row, start=start, end=end)
    nothing = np.full(len(held), np.nan)
    if not measured:
        return held.with_columns(watts=nothing, cpu=nothing, gpu=nothing)
    attempts = result.runs["attempt"][result.runs["place"] == place].tolist()
    done: dict[tuple[int, int], float] = {}  # seconds of the attempt so far
    index, begins, ends, cells = [], [], [], []
    for at, (job, low, high) in enumerate(zip(row.tolist(), start.tolist(), end.tolist(), strict=True)):
        each = measured.get(job)
        steps: tuple[float, ...] = (0.0,)
        if each is not None:
            before = done.get((job, attempts[at]), low - float(began[at]))  # it may have run before the record
            done[job, attempts[at]] = before + high - low
            steps = tuple(step for step in each.instants if before < step < before + high - low)
            steps = (before, *steps)
        edges = [*(low + step - steps[0] for step in steps), high]
        index += [at] * len(steps)
        begins += edges[:-1]
        ends += edges[1:]
        cells += [_at(each, step) for step in steps]
    watts, cpu, gpu = np.array(cells, dtype=np.float64).reshape(-1, 3).T
    held = held.where(np.array(index, dtype=np.int64))
    return held.with_columns(start=np.array(begins), end=np.array(ends), watts=watts, cpu=cpu, gpu=gpu)


def _at(measured: Measured | None, second: float) -> tuple[float, float, float]:
    """Return watts, and the busy shares of cores and GPUs, at a second of a run; nan: not known."""
    if measured is None:
        return np.nan, np.nan, np.nan
    parts = measured.watts, measured.cpu, measured.gpu
    watts, cpu, gpu = ([value for at, value in part if at <= second][-1:] or [np.nan] for part in parts)
    return watts[0], cpu[0], gpu[0]


# ---------------------------------------------------------------------- identified nodes


@attrs.frozen
class _Nodes:
    """The nodes of a place, in order: cores, W idle and of all cores, W of devices, whether load is by node.

    ``asleep``: by state of nodes, the W of each node.
    """

    cores: NDArray[np.float64]
    idle: NDArray[np.float64]
    load: NDArray[np.float64]
    gpus: list[tuple[tuple[float, float, int], ...]]
    by_node: NDArray[np.bool_]
    levels: Sequence[Mapping[float, float]]
    asleep: Mapping[int, NDArray[np.float64]]

    def loads(self, node: NDArray[np.int64], level: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the W of nodes with all cores busy at a level each; nan: the first."""
        found = self.load[node]
        for at in np.flatnonzero(~np.isnan(level)).tolist():
            found[at] = self.levels[node[at]].get(float(level[at]), found[at])
        return found


def model_by_node(nodes: Table, model: Model | None) -> NDArray[np.bool_]:
    """Return of which nodes the load is switched with the node, instead of linear in the cores in use.

    Raises
    ------
    InputError
        an unknown model

    >>> model_by_node(Table({"node": [0, 1], "model": ["linear", "node"]}), None)
    array([False,  True])
    """
    if model not in (None, "node", "linear"):
        raise InputError(f"must be 'node' or 'linear', got {model!r}", place="model")
    if model is None and "model" in nodes:
        return np.asarray(nodes["model"] == "node", dtype=bool)
    return np.full(len(nodes), model == "node")


def _nodes(result: JobRecord, row: Row, model: Model | None, idle: float | None, load: float | None) -> _Nodes:
    here = None if result.nodes is None else result.nodes.where(result.nodes["place"] == row["place"])
    if here is None or not len(here):
        count = int(row["nodes"])
        columns = {name: [float(row[name])] * count for name in ("idle_power", "load_power")}
        here = Table({"node": np.arange(count), "processors": [row["processors"] / count] * count, **columns})
    here = here.where(np.argsort(here["node"], kind="stable"))
    cores, own_idle, own_load = (here[name].astype(np.float64) for name in ("processors", "idle_power", "load_power"))
    gpus: list[Any] = [each or () for each in here["devices"].tolist()] if "devices" in here else [()] * len(here)
    own_idle = own_idle if idle is None else np.full(len(here), idle)
    own_load = own_load if load is None else np.full(len(here), load)
    levels = [dict(each or ()) for each in here["levels"].tolist()] if "levels" in here else [{}] * len(here)
    known = {STATES.index(name): f"{name}_power" for name in ("boot", "stop", "off")}
    asleep = {state: here[name].astype(np.float64) for state, name in known.items() if name in here}
    return _Nodes(cores, own_idle, own_load, gpus, model_by_node(here, model), levels, asleep)


def _asleep(result: JobRecord, place: str) -> Spans:
    """Return the spans in which nodes of a place stop, are off, or boot: ``node, start, end, state, holder``."""
    rows: list[tuple[int, float, float, int, int]] = []
    off, boot, stop = (STATES.index(name) for name in ("off", "boot", "stop"))
    changes = result.changes
    if changes is not None and "until" in changes:
        here = changes.where((changes["place"] == place) & (changes["nodes"] != None))  # noqa: E711 (by element)
        ids = {str(job): row for row, job in enumerate(result.jobs["job"].tolist())}
        since: dict[int, tuple[float, float]] = {}  # when nodes that sleep began to stop, and when they are off
        columns = (here[name].tolist() for name in ("time", "cause", "nodes", "until", "job"))
        for time, cause, nodes, until, job in zip(*columns, strict=True):
            for node, at in zip(nodes, until, strict=True):
                if cause == "sleep":
                    since[node] = time, at
                    continue
                begun, down = since.pop(node, (time, time))
                rows += [(node, begun, min(down, time if cause != "wake" else down), stop, NOBODY)]
                rows += [(node, down, time, off, NOBODY)] if down < time else []
                if cause == "wake":
                    rows.append((node, max(time, down), at, boot, ids.get(job, NOBODY)))
        for node, (begun, down) in since.items():
            rows += [(node, begun, down, stop, NOBODY), (node, down, result.ended, off, NOBODY)]
    clipped = [(node, max(low, result.started), min(high, result.ended), *more) for node, low, high, *more in rows]
    kept = np.array([row for row in clipped if row[1] < row[2]], dtype=np.float64).reshape(-1, 5).T
    names = ("node", "start", "end", "state", "holder")
    return {
        name: column if name in ("start", "end") else column.astype(np.int64)
        for name, column in zip(names, kept, strict=True)
    }


def _pieces(low: NDArray[np.intp], high: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return for ranges of numbers the range and the number of each of them."""
    length = high - low
    which = np.repeat(np.arange(len(length)), length)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length) + np.repeat(low, length)


class Segments:
    """Spans of several units cut at each other's ends: segments in which nothing changes.

    ``unit, start, end`` of each; those that are not ``real`` lie between two units. Instants count by rank, so that
    spans that meet do so exactly.
    """

    def __init__(self, *spans: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]) -> None:
        self._times = np.unique(np.concatenate([times for _, start, end in spans for times in (start, end)]))
        ends = [self._key(unit, at) for unit, start, end in spans for at in (start, end)]
        self._keys = np.unique(np.concatenate(ends))
        unit, rank = np.divmod(self._keys, max(len(self._times), 1))
        self.unit = unit[:-1]
        self.start, self.end = self._times[rank[:-1]], self._times[rank[1:]]
        self.real = unit[:-1] == unit[1:]

    def _key(self, unit: NDArray[np.int64], times: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(unit.astype(np.int64) * len(self._times) + np.searchsorted(self._times, times))

    def pieces(
        self, unit: NDArray[np.int64], start: NDArray[np.float64], end: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the pieces of spans: the row of the span and the segment of each."""
        return _pieces(*(np.searchsorted(self._keys, self._key(unit, at)) for at in (start, end)))


def _on_nodes(result: JobRecord, place: str, nodes: _Nodes, held: Table) -> Spans:
    """Return the spans of the nodes of a place: of what stands idle, of cores and of GPUs."""
    count = len(nodes.cores)
    spans = held_spans(held, result.started, result.ended)
    row = spans["row"]
    away = result.down_by_node(place)
    every = np.arange(count), np.full(count, result.started), np.full(count, result.ended)
    asleep = _asleep(result, place)
    mine, gone, away_too = ((each["node"], each["start"], each["end"]) for each in (spans, away, asleep))
    cut = Segments(every, mine, gone, away_too)
    which, segment = cut.pieces(*mine)
    total = len(cut.real)
    down = np.zeros(total, dtype=bool)
    down[cut.pieces(*gone)[1]] = True
    # What each piece has of its node: cores, its GPUs, and of the rest a share by the cores held.
    cores, node = spans["processors"][which], spans["node"][which]
    of = row[which]
    held_cores = np.bincount(segment, cores, total)
    holders = np.bincount(segment, minlength=total)
    alike = 1 / np.maximum(holders[segment], 1)
    share = np.divide(cores, held_cores[segment], out=alike, where=held_cores[segment] > 0)
    gpu_idle, gpu_load = _gpu_watts(held, nodes, row, spans["node"])
    gpu_idle, gpu_load = gpu_idle[which], gpu_load[which] - gpu_idle[which]
    standing = nodes.idle + np.array([sum(idle for idle, *_ in each) for each in nodes.gpus])
    rest = standing[cut.unit] - np.bincount(segment, gpu_idle, total)
    idle = rest[segment] * share + gpu_idle
    part = np.where(nodes.by_node[node], share, cores / nodes.cores[node])
    busy = np.nan_to_num(held["cpu"][of], nan=1.0)
    level = held["level"].astype(np.float64) if "level" in held else np.full(len(held), np.nan)
    load = (nodes.loads(node, level[of]) - nodes.idle[node]) * part * busy
    gpus = gpu_load * np.nan_to_num(held["gpu"][of], nan=1.0)
    watts = held["watts"][of]
    told = ~np.isnan(watts)
    idle[told] = np.minimum(idle, watts)[told]
    load[told], gpus[told] = (watts - idle)[told], 0.0
    up = cut.real & (holders == 0) & ~down
    number, where = cut.pieces(*away_too)
    number, where = number[up[where]], where[up[where]]
    up[where] = False
    state = asleep["state"][number]
    watts_of = np.zeros(len(where))
    for each, known_watts in nodes.asleep.items():
        watts_of[state == each] = known_watts[cut.unit[where[state == each]]]
    free = np.flatnonzero(up)
    holder = held["row"][of]
    return _stacked(
        (cut.unit[free], cut.start[free], cut.end[free], standing[cut.unit[free]], np.full(len(free), NOBODY), IDLE),
        (cut.unit[where], cut.start[where], cut.end[where], watts_of, asleep["holder"][number], state),
        *(
            (node, cut.start[segment], cut.end[segment], *each)
            for each in ((idle, holder, IDLE), (load, holder, LOAD), (gpus, holder, GPUS))
        ),
    )


def _stacked(*parts: tuple[Any, ...]) -> Spans:
    """Return columns of spans from parts ``(node, start, end, watts, holder, state)``; the state may be one number."""
    columns = [[*each[:-1], np.broadcast_to(each[-1], len(each[0]))] for each in parts]
    found = (np.concatenate(each) for each in zip(*columns, strict=True))
    return dict(zip(_COLUMNS[1:], found, strict=True))


def _gpu_watts(
    held: Table, nodes: _Nodes, row: NDArray[np.intp], node: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the idle and the load watts of the GPUs held, by row of what is held and node."""
    idle, load = np.zeros(len(row)), np.zeros(len(row))
    if "gpus" not in held or not any(nodes.gpus):
        return idle, load
    position = np.arange(len(row)) - np.searchsorted(row, row)  # among the nodes of its row
    devices = held["devices"].tolist() if "devices" in held else [None] * len(held)
    amounts = held["gpus"].tolist()
    for each, (of, at, where) in enumerate(zip(row.tolist(), position.tolist(), node.tolist(), strict=True)):
        watts = nodes.gpus[where]
        if not watts or amounts[of] is None:
            continue
        if devices[of] is not None:
            parts = [(number, thousandths / watts[number][2]) for number, thousandths in devices[of][at]]
        else:
            parts = [(number, amounts[of][at] / len(watts)) for number in range(len(watts))]
        idle[each] = sum(watts[number][0] * part for number, part in parts)
        load[each] = sum(watts[number][1] * part for number, part in parts)
    return idle, load


def _through(conversion: Conversion, spans: Spans) -> Spans:
    """Return what a conversion takes to give spans of watts, which share its losses in proportion."""
    unit, start, end = spans["node"] // conversion.nodes, spans["start"], spans["end"]
    cut = Segments((unit, start, end))
    which, segment = cut.pieces(unit, start, end)
    watts = spans["watts"][which]
    given = np.bincount(segment, watts, len(cut.real))
    factor = np.divide(conversion.taken(given), given, out=np.zeros(len(given)), where=given > 0)
    found = {name: column[which] for name, column in spans.items()}
    return {**found, "start": cut.start[segment], "end": cut.end[segment], "watts": watts * factor[segment]}


# ---------------------------------------------------------------------- counted processors


def _counted(result: JobRecord, row: Row, held: Table, idle_power: float | None, load_power: float | None) -> Spans:
    """Return the spans of a place whose nodes are not identified: all are alike, and watts follow the processors."""
    place, size = row["place"], row["processors"] / row["nodes"] if row["nodes"] else 1.0
    here = None if result.nodes is None else result.nodes.where(result.nodes["place"] == place)
    idle, load = (
        (float(here[name].mean()) if here is not None and len(here) else row[name]) if given is None else given
        for name, given in (("idle_power", idle_power), ("load_power", load_power))
    )
    free = result.capacity(place).combine(result.busy(place), np.subtract)
    edges = np.append(free.times, free.end)
    amount = held["processors"] / size
    stand = amount * idle
    work = amount * (load - idle) * np.nan_to_num(held["cpu"], nan=1.0)
    told = ~np.isnan(held["watts"])
    stand[told] = np.minimum(stand, amount * held["watts"])[told]
    work[told] = (amount * held["watts"] - stand)[told]
    nowhere = np.full(len(held), -1)
    alone = np.full(len(free.times), NOBODY)
    return _stacked(
        (alone, edges[:-1], edges[1:], free.values / size * idle, alone, IDLE),
        (nowhere, held["start"], held["end"], stand, held["row"], IDLE),
        (nowhere, held["start"], held["end"], work, held["row"], LOAD),
    )


# ---------------------------------------------------------------------- processors of a machine


def _of_tasks(result: TaskRecord) -> Spans:
    """Return the spans of the processors of a machine: of what stands idle, and of each phase of tasks.

    A core that works for others draws its load power, whatever its own task does; those that it serves share it.
    """
    table, specs = result.processors, [spec for _, spec in result.spec.each_processor()]
    idle, load = (table[name].astype(np.float64) for name in ("idle_power", "load_power"))
    ends = np.where(np.isnan(result.cpu_phases["end"]), result.ended, result.cpu_phases["end"])
    row_of = {task: row for row, task in reversed([*enumerate(map(str, result.tasks["task"].tolist()))])}
    served, halted_of = (
        np.array([row_of.get(str(task), NOBODY) for task in each["task"].tolist()], dtype=np.int64)
        for each in (result.cpu_phases, result.stopped)
    )
    cores = positions(result.cpu_phases["core"], table["processor"].tolist())
    rows = [(cores, result.cpu_phases["start"], ends, served, np.full(len(cores), LOAD), np.ones(len(cores)))]
    stopped = result.stopped
    halted = positions(stopped["processor"], table["processor"].tolist())
    watts = np.tile(load, (len(STATES), 1))
    for name in WORKING:
        at, number = PHASES.index(name), LOAD if name == WORKING[-1] else STATES.index(name)
        own = [getattr(spec, f"{name}_power", None) for spec in specs]
        watts[number] = [full if each is None else each for each, full in zip(own, load.tolist(), strict=True)]
        spans = result.spans[0][at], result.spans[1][at]
        part = result.tasks["cores"] / table["cores"][result.placed]
        rows.append((result.placed, *spans, np.arange(len(part)), np.full(len(part), number), part))
        part = stopped["cores"] / table["cores"][halted]
        spans = stopped[MOMENTS[at]], stopped[MOMENTS[at + 1]]
        rows.append((halted, *spans, halted_of, np.full(len(part), number), part))
    unit, start, end, holder, state, part = (np.concatenate(each) for each in zip(*rows, strict=True))
    known = (unit >= 0) & (end > start)  # nan: not reached
    serves = (np.arange(len(unit)) < len(cores))[known]
    unit, start, end, holder, state, part = (each[known] for each in (unit, start, end, holder, state, part))
    low, high = result.started, max(result.ended, result.started)
    every = np.arange(len(idle)), np.full(len(idle), low), np.full(len(idle), high)
    cut = Segments(every, (unit, start, end))
    which, segment = cut.pieces(unit, start, end)
    others = np.bincount(segment, serves[which], len(cut.real))[segment]
    part = np.where(serves[which], 1 / np.maximum(others, 1), np.where(others > 0, 0.0, part[which]))
    free = np.where(cut.real, 1 - np.bincount(segment, part, len(cut.real)), 0.0) * idle[cut.unit]
    nobody, where, holder, state = np.full(len(free), NOBODY), cut.unit[segment], holder[which], state[which]
    spans = cut.start[segment], cut.end[segment]
    found = _stacked(
        (cut.unit, cut.start, cut.end, free, nobody, IDLE),
        (where, *spans, part * idle[where], holder, IDLE),
        (where, *spans, part * (watts[state, where] - idle[where]), holder, state),
    )
    return {**found, "place": found["node"], "node": np.full(len(found["node"]), NOBODY)}
