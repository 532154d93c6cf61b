"""Tables of the observed places: capacities, nodes, and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place

__all__ = ["Change", "change_table", "node_table", "place_table"]

Change = tuple[float, str, str, float, tuple[int, ...]]
"""Instant (s), place, cause, processors from then on, nodes that are down."""


def place_table(places: Sequence[Place], sizes: Sequence[int] | None = None) -> Table:
    """Return one row per place: ``place, processors, nodes, idle_power, load_power`` (W per processor or node).

    ``sizes``: the processors of each place; default: the present ones.

    >>> from types import SimpleNamespace as Some
    >>> place_table([Some(name="pool", capacity=4)])["processors"]
    array([4])
    """
    nodes = node_table(places)
    rows = []
    for i, place in enumerate(places):
        size = int(place.capacity) if sizes is None else sizes[i]
        spec = getattr(place, "spec", None)
        count, idle, load = 0, getattr(spec, "idle_power", 0.0), getattr(spec, "load_power", 0.0)
        if nodes is not None and (here := nodes["place"] == place.name).any():
            count, idle, load = int(here.sum()), nodes["idle_power"][here].mean(), nodes["load_power"][here].mean()
        rows.append((place.name, size, count, float(idle), float(load)))
    names = ("place", "processors", "nodes", "idle_power", "load_power")
    return Table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def node_table(places: Sequence[Place]) -> Table | None:
    """Return one row per identified node, numbered as in ``grant.nodes``; ``None`` if no place has identified nodes.

    >>> from types import SimpleNamespace as Some
    >>> node_table([Some(name="pool", capacity=4)]) is None
    True
    """
    rows = []
    for place in places:
        kinds = getattr(getattr(place, "spec", None), "nodes", ())
        each = [kind for kind in kinds for _ in range(kind.count)]
        rows += [(place.name, i, kind.cores, kind.idle_power, kind.load_power) for i, kind in enumerate(each)]
    names = ("place", "node", "processors", "idle_power", "load_power")
    return Table(dict(zip(names, zip(*rows, strict=True), strict=True))) if rows else None


def change_table(changes: Sequence[Change]) -> Table | None:
    """Return the changes of places: ``time, place, cause, processors, down`` (nodes); ``None`` if there are none.

    >>> change_table([(5.0, "pool", "failure", 3, (1,))])["down"]
    array([(1,)], dtype=object)
    """
    if not changes:
        return None
    time, place, cause, up, nodes = zip(*changes, strict=True)
    down = np.full(len(time), None, dtype=object)
    down[:] = nodes
    return Table(
        {"time": np.array(time, dtype=np.float64), "place": place, "cause": cause, "processors": up, "down": down}
    )
