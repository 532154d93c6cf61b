"""Power and energy of nodes, integrated exactly at events.

A processor (of a place that only counts) or a node (where nodes are identified) that is up draws its idle power, and
its load power while it is busy; one that is down or off draws nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs
import numpy as np

from simmodel.records.steps import Steps
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.result import Result

__all__ = ["Energy", "energy", "node_energy", "power"]

Model = Literal["node", "linear"]


@attrs.frozen
class Energy:
    """The energy of a run in joules: what stands idle would have drawn, and what load added.

    >>> Energy(idle=100.0, load=50.0).total
    150.0
    """

    idle: float
    load: float

    @property
    def total(self) -> float:
        """All of it, J."""
        return self.idle + self.load

    def __add__(self, other: Energy) -> Energy:
        return Energy(self.idle + other.idle, self.load + other.load)


@attrs.frozen
class _Place:
    name: str
    processors: int
    nodes: int
    idle: float  # W a unit
    load: float

    @property
    def size(self) -> float:
        """Processors a unit: of a node where they are identified, else 1."""
        return self.processors / self.nodes if self.nodes else 1.0


def _places(result: Result, idle_power: float | None, load_power: float | None) -> list[_Place]:
    names = ("place", "processors", "nodes", "idle_power", "load_power")
    places = [_Place(*(row[name] for name in names)) for row in result.places.rows()]
    if idle_power is not None:
        places = [attrs.evolve(place, idle=idle_power) for place in places]
    if load_power is not None:
        places = [attrs.evolve(place, load=load_power) for place in places]
    return places


def _up(result: Result, place: _Place) -> Steps:
    """Units that are up over time."""
    if place.nodes and result.changes is not None and any(down for down in result.changes["down"].tolist()):
        here = result.changes.where(result.changes["place"] == place.name)
        up = [place.nodes - len(down or ()) for down in here["down"].tolist()]
        times = np.append(result.started, here["time"])
        return Steps.from_changes(times, np.diff(np.append([0.0, place.nodes], up)), result.started, result.ended)
    return result.capacity(place.name).scaled(1 / place.size)


def _node_runs(result: Result, place: _Place) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """One row a node of an execution: node, start, end."""
    runs = result.runs
    known = np.array([nodes is not None for nodes in runs["nodes"].tolist()], dtype=bool)
    runs = runs.where(known & (runs["place"] == place.name))
    nodes = [tuple(nodes) for nodes in runs["nodes"].tolist()]
    each = [len(held) for held in nodes]
    end = np.where(np.isnan(runs["end"]), result.ended, runs["end"])
    flat = np.array([node for held in nodes for node in held], dtype=np.int64)
    return flat, np.repeat(runs["start"], each), np.repeat(end, each)


def _busy_spans(result: Result, place: _Place) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Spans in which nodes are busy, without overlaps: node, start, end; an execution after the other is joined."""
    node, start, end = _node_runs(result, place)
    order = np.lexsort((start, node))
    node, start, end = node[order], start[order], end[order]
    if not len(node):
        return node, start, end
    # The running maximum of the ends, anew for each node: shift each node's times far beyond those of the one before.
    shift = (node - node.min()) * (end.max() - start.min() + 1.0)
    reach = np.maximum.accumulate(end + shift)
    first = np.append(True, start[1:] + shift[1:] > reach[:-1])
    begins = np.flatnonzero(first)
    last = np.append(begins[1:] - 1, len(node) - 1)
    return node[begins], start[begins], reach[last] - shift[last]


def _busy(result: Result, place: _Place, model: Model) -> Steps:
    """Units that are busy over time: shares of them in the linear model."""
    if place.nodes and model == "node":
        node, start, end = _busy_spans(result, place)
        if len(node):
            ones = np.ones(len(node))
            times, changes = np.append(start, end), np.append(ones, -ones)
            return Steps.from_changes(times, changes, result.started, result.ended)
    return result.busy(place.name).scaled(1 / place.size)


def _check(model: str) -> None:
    if model not in ("node", "linear"):
        raise ValueError(f'model "node" or "linear" expected, found {model!r}')


def power(
    result: Result, *, model: Model = "node", idle_power: float | None = None, load_power: float | None = None
) -> Steps:
    """Return the power of all places over time, in watts.

    Parameters
    ----------
    model
        of identified nodes: ``"node"``, a node draws its load power while anything runs on it; ``"linear"``, in
        proportion to its busy processors [X. Fan, W.-D. Weber and L. A. Barroso, "Power provisioning for a
        warehouse-sized computer", ISCA 2007]
    idle_power, load_power
        watts a processor, or a node where nodes are identified, instead of those of the places

    >>> from simmodel.records.result import Result
    >>> result = Result(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}, processors=4)
    >>> power(result, idle_power=50, load_power=150).values
    array([600., 400.])
    """
    _check(model)
    total = Steps([result.started], [0.0], result.ended)
    for place in _places(result, idle_power, load_power):
        total += _up(result, place).scaled(place.idle)
        total += _busy(result, place, model).scaled(place.load - place.idle)
    return total


def energy(
    result: Result, *, model: Model = "node", idle_power: float | None = None, load_power: float | None = None
) -> Energy:
    """Return the energy of all places over the run, in joules; parameters as of :func:`power`.

    >>> from simmodel.records.result import Result
    >>> result = Result(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}, processors=4)
    >>> energy(result, idle_power=50, load_power=150)
    Energy(idle=6000.0, load=8000.0)
    """
    _check(model)
    total = Energy(0.0, 0.0)
    for place in _places(result, idle_power, load_power):
        busy = _busy(result, place, model).integral()
        total += Energy(place.idle * _up(result, place).integral(), (place.load - place.idle) * busy)
    return total


def node_energy(result: Result, place: str | None = None) -> Table:
    """Return what each identified node of a place did: ``node, busy, down`` (s) and ``energy`` (J), in order of nodes.

    Parameters
    ----------
    place
        its name; default: the first

    Raises
    ------
    ValueError
        where the nodes of the place are not identified
    """
    places = _places(result, None, None)
    found = [each for each in places if place in (None, each.name)]
    if not found or not found[0].nodes:
        raise ValueError(f"a place with identified nodes expected, found {place or [each.name for each in places]}")
    which = found[0]
    node, start, end = _busy_spans(result, which)
    busy = np.bincount(node, weights=end - start, minlength=which.nodes)
    down = np.zeros(which.nodes)
    if result.changes is not None:
        here = result.changes.where(result.changes["place"] == which.name)
        until = np.append(here["time"][1:], result.ended)
        for nodes, begin, stop in zip(here["down"].tolist(), here["time"].tolist(), until.tolist(), strict=True):
            down[list(nodes or ())] += stop - begin
    span = result.ended - result.started
    joules = which.idle * (span - down) + (which.load - which.idle) * busy
    return Table({"node": np.arange(which.nodes), "busy": busy, "down": down, "energy": joules})
