"""Power and energy of nodes, integrated exactly at events.

A node (if nodes are identified, else a processor) that is up draws its idle power, and its load power while it is
busy; one that is down or off draws nothing. Its GPUs draw the watts of their :class:`~simmodel.platform.DeviceSpec`
besides, and jobs with a measured power draw that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.units import seconds_in
from simmodel.metrics.draws import NOBODY, STATES, Model, draws_of, model_by_node, sums, supply_of
from simmodel.platform.signals import NO_SIGNALS, GivenSignals, signals_of
from simmodel.platform.supply import PowerSupply
from simmodel.records.steps import Steps
from simmodel.records.task_record import WORKING, TaskRecord
from simmodel.work.table import Table, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.signals import Signal
    from simmodel.records.job_record import JobRecord

__all__ = [
    "Energy",
    "energy",
    "energy_by",
    "energy_metrics",
    "footprint",
    "node_energy",
    "power",
    "power_by_state",
]

_JOULES = 3.6e6  # of a kWh


@attrs.frozen(repr=False)
class Energy(Fields):
    """The energy of a run in joules: the part drawn at idle power, and the part added by load.

    >>> Energy(idle=100.0, load=50.0).total
    150.0
    """

    idle: float
    load: float

    @property
    def total(self) -> float:
        """The sum of both, J."""
        return self.idle + self.load

    def __add__(self, other: Energy) -> Energy:
        return Energy(self.idle + other.idle, self.load + other.load)


@attrs.frozen(eq=False)
class _Group:
    """Units of one kind: the processors of a place, or its nodes of equal size and power."""

    place: str
    nodes: NDArray[np.int64] | None
    count: int
    size: float  # processors of each
    idle: float  # W
    load: float
    share: float  # of the place's processors


def _groups(result: JobRecord, idle_power: float | None, load_power: float | None) -> list[_Group]:
    groups = []
    for row in result.places.rows():
        name, processors, count = row["place"], row["processors"], int(row["nodes"])
        powers = (row["idle_power"], row["load_power"])
        if not count:
            groups.append(_Group(name, None, processors, 1.0, *powers, 1.0))
            continue
        here = None if result.nodes is None else result.nodes.where(result.nodes["place"] == name)
        if here is None or not len(here):
            groups.append(_Group(name, np.arange(count), count, processors / count, *powers, 1.0))
            continue
        kinds = np.column_stack([here[key] for key in ("processors", "idle_power", "load_power")])
        for kind, (size, idle, load) in enumerate(np.unique(kinds, axis=0).tolist()):
            nodes = here["node"][np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1) == kind]
            groups.append(_Group(name, nodes, len(nodes), size, idle, load, size * len(nodes) / processors))
    if idle_power is not None:
        groups = [attrs.evolve(group, idle=idle_power) for group in groups]
    if load_power is not None:
        groups = [attrs.evolve(group, load=load_power) for group in groups]
    return groups


def _up(result: JobRecord, group: _Group) -> Steps:
    """Return the number of units that are up over time."""
    changes = result.changes
    if group.nodes is not None and changes is not None and any(changes["down"].tolist()):
        here = changes.where(changes["place"] == group.place)
        up = [group.count - len(np.intersect1d(down or (), group.nodes)) for down in here["down"].tolist()]
        times = np.append(result.started, here["time"])
        steps = Steps.from_changes(times, np.diff(np.append([0.0, group.count], up)), result.started, result.ended)
        held = _busy_spans(result.held_while_down(group.place))
        held = held.where(np.isin(held["node"], group.nodes))
        return steps + Steps.from_spans(held, np.ones(len(held)), result.started, result.ended)
    return result.capacity(group.place).scaled(group.share / group.size)


def _busy_spans(runs: Table) -> Table:
    """Return the spans in which nodes are busy, without overlaps: ``node, start, end``; adjoining spans are joined."""
    order = np.lexsort((runs["start"], runs["node"]))
    node, start, end = (runs[name][order] for name in ("node", "start", "end"))
    if not len(node):
        return Table({"node": node, "start": start, "end": end})
    parts = np.split(np.arange(len(node)), np.flatnonzero(np.diff(node)) + 1)
    reach = np.concatenate([np.maximum.accumulate(end[part]) for part in parts])
    begins = np.flatnonzero(np.append(True, (node[1:] != node[:-1]) | (start[1:] > reach[:-1])))
    last = np.append(begins[1:] - 1, len(node) - 1)
    return Table({"node": node[begins], "start": start[begins], "end": reach[last]})


def _busy(result: JobRecord, group: _Group, model: Model) -> Steps:
    """Return the number of busy units over time; fractional in the linear model."""
    if group.nodes is not None:
        runs = result.held_by_node(group.place)
        if len(runs):
            runs = runs.where(np.isin(runs["node"], group.nodes))
            spans = _busy_spans(runs) if model == "node" else runs
            weight = np.ones(len(spans)) if model == "node" else runs["processors"] / group.size
            return Steps.from_spans(spans, weight, result.started, result.ended)
    return result.busy(group.place).scaled(group.share / group.size)


def _seconds(spans: Table, count: int) -> NDArray[np.float64]:
    """Return the sum of the spans of each node (s)."""
    seconds = np.bincount(spans["node"], weights=spans["end"] - spans["start"], minlength=count)
    return seconds.astype(np.float64, copy=False)


def _plain(result: JobRecord | TaskRecord, model: Model | None, supply: PowerSupply | None) -> Model | None:
    """Return the model of jobs whose watts follow from places, nodes and cores alone; ``None``: it is no such run.

    Raises
    ------
    InputError
        an unknown model
    """
    if isinstance(result, TaskRecord):
        return None
    nodes = Table({"node": []}) if result.nodes is None else result.nodes
    alike = {*model_by_node(nodes, model).tolist()} or {model == "node"}
    levelled = not result.one_run_each and "level" in result.runs
    slept = result.changes is not None and "until" in result.changes
    several = supply_of(result, supply) is not None or "devices" in nodes or levelled or slept
    if several or "power" in result.jobs or len(alike) > 1:
        return None
    return "node" if alike == {True} else "linear"


def power(
    result: JobRecord | TaskRecord,
    *,
    model: Model | None = None,
    idle_power: float | None = None,
    load_power: float | None = None,
    supply: PowerSupply | None = None,
) -> Steps:
    """Return the power of all places over time, in watts.

    Parameters
    ----------
    model
        of identified nodes: ``"linear"``: between idle and load power in proportion to the busy processors [X. Fan,
        W.-D. Weber and L. A. Barroso, "Power provisioning for a warehouse-sized computer", ISCA 2007]; ``"node"``: load
        power while any job runs there; default: that of the nodes, else linear
    idle_power, load_power
        watts per node (if nodes are identified, else per processor), instead of those of the places
    supply
        how power reaches the nodes: its losses, what is always drawn besides, and its PUE; default: that of the
        cluster. ``PowerSupply()``: nothing is lost

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> power(result, idle_power=50, load_power=150).values
    array([600., 400.])
    """
    plain = _plain(result, model, supply)
    if plain is None or isinstance(result, TaskRecord):
        return draws_of(result, model=model, idle_power=idle_power, load_power=load_power, supply=supply).power()
    result = result.in_seconds
    total = Steps([result.started], [0.0], result.ended)
    for group in _groups(result, idle_power, load_power):
        total += _up(result, group).scaled(group.idle)
        total += _busy(result, group, plain).scaled(group.load - group.idle)
    return total


def power_by_state(
    result: JobRecord | TaskRecord,
    *,
    model: Model | None = None,
    idle_power: float | None = None,
    load_power: float | None = None,
    supply: PowerSupply | None = None,
) -> dict[str, Steps]:
    """Return the power of all places over time (W) by what draws it, in parts whose sum is :func:`power`.

    ``idle``: nodes and GPUs that stand by, also below a job; ``load`` and ``gpus``: what the cores and the GPUs of jobs
    draw on top; then the states of nodes, and ``other``: what is no node. Parts that draw nothing are left out.
    Parameters as of :func:`power`.

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> {name: steps.values.tolist() for name, steps in power_by_state(result, idle_power=50, load_power=150).items()}
    {'idle': [200.0], 'load': [400.0, 200.0]}
    """
    drawn = draws_of(result, model=model, idle_power=idle_power, load_power=load_power, supply=supply)
    state = drawn.spans["state"]
    return {name: drawn.power(state == number) for number, name in enumerate(STATES) if (state == number).any()}


def energy(
    result: JobRecord | TaskRecord,
    *,
    model: Model | None = None,
    idle_power: float | None = None,
    load_power: float | None = None,
    supply: PowerSupply | None = None,
) -> Energy:
    """Return the energy of all places over the run, in joules; parameters as of :func:`power`.

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> energy(result, idle_power=50, load_power=150)
    Energy(idle=6000.0, load=8000.0)
    """
    plain = _plain(result, model, supply)
    if plain is None or isinstance(result, TaskRecord):
        drawn = draws_of(result, model=model, idle_power=idle_power, load_power=load_power, supply=supply)
        joules = sums(drawn.spans["state"], drawn.amounts(), len(STATES))
        load = sum(joules[STATES.index(name)] for name in ("load", "gpus", *WORKING[:-1]))
        return Energy(float(joules.sum() - load), float(load))
    result = result.in_seconds
    total = Energy(0.0, 0.0)
    for group in _groups(result, idle_power, load_power):
        busy = _busy(result, group, plain).integral()
        total += Energy(group.idle * _up(result, group).integral(), (group.load - group.idle) * busy)
    return total


def _signals(result: JobRecord | TaskRecord, given: GivenSignals) -> dict[str, Signal]:
    """Return signals by name, unless the time of a machine is not that of signals."""
    if given and isinstance(result, TaskRecord) and result.time_unit != "s":
        raise InputError(f"must be none: the time of the machine is in {result.time_unit}, not in s", place="signals")
    return signals_of(given)


def footprint(
    result: JobRecord | TaskRecord,
    signal: Signal,
    *,
    model: Model | None = None,
    idle_power: float | None = None,
    load_power: float | None = None,
    supply: PowerSupply | None = None,
) -> float:
    """Return what the energy of all places costs by a signal: its value per kWh times the kWh drawn, exactly.

    Parameters
    ----------
    signal
        carbon or money per kWh over time, which lasts as long as the run
    model, idle_power, load_power, supply
        as of :func:`power`

    >>> from simmodel.platform import Signal
    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 3600], "end": [3600, 7200], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> footprint(result, Signal([0, 3600], [300, 100]), load_power=250)
    350.0
    """
    signal = _signals(result, {"": signal})[""]
    drawn = power(result, model=model, idle_power=idle_power, load_power=load_power, supply=supply)
    per_step = np.diff(signal.integrals(np.append(drawn.times, drawn.end)))
    return float(np.dot(drawn.values, per_step) / _JOULES)


def energy_by(
    result: JobRecord | TaskRecord,
    by: str | None = None,
    signals: GivenSignals = NO_SIGNALS,
    *,
    model: Model | None = None,
    idle_power: float | None = None,
    load_power: float | None = None,
    supply: PowerSupply | None = None,
) -> Table:
    """Return whose the energy of a run is: one row each with its ``energy`` (J), and its cost by each signal.

    Jobs have what their cores and GPUs draw. The rest of a node is shared by the jobs that hold it, in proportion to
    their cores there, at every instant; losses and the PUE of a supply are shared in proportion to the watts. What
    nobody holds is ``idle``, in the last row; if processes hold some by claims, ``claims`` is the one before. The sum
    of the rows is the energy of the run.

    Parameters
    ----------
    by
        ``"job"`` (of a machine ``"task"``; the default), or another column of the jobs or tasks such as ``"user"`` or
        ``"partition"``; ``"place"``, or ``"state"`` (see :func:`power_by_state`)
    signals
        by name: carbon or money per kWh over time, or its CSV file
    model, idle_power, load_power, supply
        as of :func:`power`

    Raises
    ------
    InputError
        the jobs have no such column, or a signal ends before the run

    >>> from simmodel.platform import Signal
    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 3600], "end": [3600, 7200], "processors": [4, 2], "user": ["eve", "bob"]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> carbon = {"carbon": Signal([0, 3600], [300, 100])}
    >>> print(energy_by(result, "user", carbon, idle_power=100, load_power=250))
    user  energy   carbon
    bob   1800000  50
    eve   3600000  300
    idle  720000   20
    """
    drawn = draws_of(result, model=model, idle_power=idle_power, load_power=load_power, supply=supply)
    work, holder = drawn.work, drawn.spans["holder"]
    first_column = work.names[0]
    by = first_column if by is None else by
    names: list[Any]
    if by == "state":
        names, key, first = [*STATES], drawn.spans["state"], 0
    elif by == "place":
        names, first = [*drawn.places, "other"], -1
        key = np.where(drawn.spans["place"] < 0, len(names) - 1, drawn.spans["place"])
    elif by not in work:
        raise unknown(f"column of {first_column}s", by, dict.fromkeys(["state", "place", *work.names]))
    else:
        known, which = distinct(work[by])
        if by == first_column:
            known, which = work[by], np.arange(len(work))
        names, first = [*known.tolist(), "claims", "idle"], -2
        key = np.append(which, [len(known), len(known) + 1])[holder]
    shown = np.isin(np.arange(len(names)), [*key, len(names) - 1] if first == -2 else key)
    shown[:first] = True
    column = np.empty(len(names), dtype=object)
    column[:] = names
    columns = {by: column, "energy": sums(key, drawn.amounts(), len(names))}
    for name, signal in _signals(result, signals).items():
        columns[name] = sums(key, drawn.amounts(signal), len(names))
    return Table(columns).where(shown)


def energy_metrics(result: JobRecord, signals: GivenSignals, start: float, end: float) -> dict[str, Any]:
    """Return ``energy`` and of it ``energy_idle`` (kWh) between two instants (s), and the ``costs`` by each signal.

    >>> from simmodel.platform import Signal
    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0], "start": [0], "end": [3600], "processors": [4]}
    >>> places = {"place": ["all"], "processors": [8], "nodes": [0], "idle_power": [100.0], "load_power": [250.0]}
    >>> energy_metrics(JobRecord(jobs=jobs, places=Table(places)), {"carbon": Signal([0], [300])}, 0, 3600)
    {'energy': 1.4, 'energy_idle': 0.4, 'costs': {'carbon': 420.0}}
    """
    scale = seconds_in(result.time_unit)
    start, end, drawn = scale * start, scale * end, draws_of(result)
    total, idle = drawn.power(), drawn.power(drawn.spans["holder"] == NOBODY)
    found: dict[str, Any] = {"energy": total.integral(start, end), "energy_idle": idle.integral(start, end)}
    found = {name: joules / _JOULES for name, joules in found.items()}
    given = signals_of(signals)
    per_step = np.append(total.times[total.times <= end], end).clip(start)
    watts = total.at(per_step[:-1])
    costs = {name: float(np.dot(watts, np.diff(each.integrals(per_step))) / _JOULES) for name, each in given.items()}
    return {**found, "costs": costs}


def node_energy(result: JobRecord, place: str | None = None, *, model: Model | None = None) -> Table:
    """Return for each identified node of a place: ``node, busy, down`` (s) and ``energy`` (J), in order of nodes.

    Without what is lost on the way to the nodes.

    Parameters
    ----------
    place
        its name; default: the first
    model
        as of :func:`power`

    Raises
    ------
    InputError
        if the nodes of the place are not identified

    >>> import numpy as np
    >>> from simmodel.records import JobRecord
    >>> nodes = np.empty(1, dtype=object); nodes[0] = (1,)
    >>> run = {"job": [1], "attempt": [1], "start": [0.0], "end": [10.0], "place": ["rack"], "processors": [8],
    ...        "status": ["completed"], "nodes": nodes}
    >>> rack = {"place": ["rack"], "processors": [16], "nodes": [2], "idle_power": [100.0], "load_power": [300.0]}
    >>> from simmodel.work import Table
    >>> result = JobRecord(jobs={"submit": [0], "start": [0], "end": [10], "processors": [8]}, processors=16,
    ...                 runs=Table(run), places=Table(rack))
    >>> node_energy(result)["energy"]
    array([1000., 3000.])
    """
    lossless = PowerSupply()
    plain = _plain(result, model, lossless)
    result = result.in_seconds
    name = str(result.places["place"][0]) if place is None else place
    groups = [group for group in _groups(result, None, None) if group.place == name and group.nodes is not None]
    if not groups:
        raise InputError(f"must be a place with identified nodes, got {name!r}", place="place")
    count = sum(group.count for group in groups)
    runs = result.held_by_node(name)
    spans = _busy_spans(runs)
    busy = _seconds(spans, count)
    work = np.bincount(runs["node"], weights=(runs["end"] - runs["start"]) * runs["processors"], minlength=count)
    down, held = result.down_by_node(name), _busy_spans(result.held_while_down(name))
    away = _seconds(down, count) - _seconds(held, count)
    joules = np.zeros(count)
    for group in groups:
        nodes = group.nodes
        loaded = busy[nodes] if plain == "node" else work[nodes] / group.size
        joules[nodes] = group.idle * (result.ended - result.started - away[nodes]) + (group.load - group.idle) * loaded
    if plain is None:
        drawn = draws_of(result, model=model, supply=lossless)
        here = drawn.spans["place"] == result.places["place"].tolist().index(name)
        joules = sums(drawn.spans["node"][here], drawn.amounts()[here], count)
    return Table({"node": np.arange(count), "busy": busy, "down": away, "energy": joules})
