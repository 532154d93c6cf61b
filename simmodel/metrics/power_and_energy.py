"""Power and energy of nodes, integrated exactly at events.

A node (if nodes are identified, else a processor) that is up draws its idle power, and its load power while it is
busy; one that is down or off draws nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.records.steps import Steps
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.signals import Signal
    from simmodel.records.job_record import JobRecord

__all__ = ["Energy", "energy", "footprint", "node_energy", "power"]

Model = Literal["node", "linear"]
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
        ones = np.ones(len(held))
        return steps + Steps.from_changes(
            np.append(held["start"], held["end"]), np.append(ones, -ones), result.started, result.ended
        )
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
            times, changes = np.append(spans["start"], spans["end"]), np.append(weight, -weight)
            return Steps.from_changes(times, changes, result.started, result.ended)
    return result.busy(group.place).scaled(group.share / group.size)


def _seconds(spans: Table, count: int) -> NDArray[np.float64]:
    """Return the sum of the spans of each node (s)."""
    seconds = np.bincount(spans["node"], weights=spans["end"] - spans["start"], minlength=count)
    return seconds.astype(np.float64, copy=False)


def _check(model: str) -> None:
    if model not in ("node", "linear"):
        raise InputError(f"must be 'node' or 'linear', got {model!r}", place="model")


def power(
    result: JobRecord, *, model: Model = "linear", idle_power: float | None = None, load_power: float | None = None
) -> Steps:
    """Return the power of all places over time, in watts.

    Parameters
    ----------
    model
        of identified nodes: ``"linear"``: between idle and load power in proportion to the busy processors [X. Fan,
        W.-D. Weber and L. A. Barroso, "Power provisioning for a warehouse-sized computer", ISCA 2007]; ``"node"``: load
        power while any job runs there
    idle_power, load_power
        watts per node (if nodes are identified, else per processor), instead of those of the places

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> power(result, idle_power=50, load_power=150).values
    array([600., 400.])
    """
    _check(model)
    total = Steps([result.started], [0.0], result.ended)
    for group in _groups(result, idle_power, load_power):
        total += _up(result, group).scaled(group.idle)
        total += _busy(result, group, model).scaled(group.load - group.idle)
    return total


def energy(
    result: JobRecord, *, model: Model = "linear", idle_power: float | None = None, load_power: float | None = None
) -> Energy:
    """Return the energy of all places over the run, in joules; parameters as of :func:`power`.

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> energy(result, idle_power=50, load_power=150)
    Energy(idle=6000.0, load=8000.0)
    """
    _check(model)
    total = Energy(0.0, 0.0)
    for group in _groups(result, idle_power, load_power):
        busy = _busy(result, group, model).integral()
        total += Energy(group.idle * _up(result, group).integral(), (group.load - group.idle) * busy)
    return total


def footprint(
    result: JobRecord,
    signal: Signal,
    *,
    model: Model = "linear",
    idle_power: float | None = None,
    load_power: float | None = None,
) -> float:
    """Return what the energy of all places costs by a signal: its value per kWh times the kWh drawn, exactly.

    Parameters
    ----------
    signal
        carbon or money per kWh over time, which lasts as long as the run
    model, idle_power, load_power
        as of :func:`power`

    >>> from simmodel.platform import Signal
    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [0, 3600], "end": [3600, 7200], "processors": [4, 2]}
    >>> result = JobRecord(jobs=jobs, processors=4)
    >>> footprint(result, Signal([0, 3600], [300, 100]), load_power=250)
    350.0
    """
    drawn = power(result, model=model, idle_power=idle_power, load_power=load_power)
    per_step = np.diff(signal.integrals(np.append(drawn.times, drawn.end)))
    return float(np.dot(drawn.values, per_step) / _JOULES)


def node_energy(result: JobRecord, place: str | None = None, *, model: Model = "linear") -> Table:
    """Return for each identified node of a place: ``node, busy, down`` (s) and ``energy`` (J), in order of nodes.

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
    _check(model)
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
        loaded = busy[nodes] if model == "node" else work[nodes] / group.size
        joules[nodes] = group.idle * (result.ended - result.started - away[nodes]) + (group.load - group.idle) * loaded
    return Table({"node": np.arange(count), "busy": busy, "down": away, "energy": joules})
