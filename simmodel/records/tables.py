"""Tables of the record beside that of jobs: places, nodes and changes, executions and claims, reasons of policies."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import simpy

from simmodel import __version__
from simmodel.form import FORM
from simmodel.platform.power import NodePower
from simmodel.work.table import Table, Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import NodeSpec
    from simmodel.platform.devices import DeviceSpec
    from simmodel.platform.power import NodePower
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.resources.pools.claims import Claim, Grant
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.resources.pools.sleeping import NodeChange
    from simmodel.scheduling.protocol import Place
    from simmodel.scheduling.scheduler import GivenReason
    from simmodel.work.traffic import Slowed

__all__ = [
    "REASONS",
    "Change",
    "ClaimStretch",
    "Stretch",
    "allocation_columns",
    "change_table",
    "claim_table",
    "held_by",
    "joined_nodes",
    "links_of",
    "network_columns",
    "node_table",
    "place_table",
    "reason_table",
    "run_table",
    "sharers",
    "versions",
    "with_slowed",
]

_NO_POWER = NodePower()
Change = tuple[float, str, str, float, tuple[int, ...]]
"""Instant (s), place, cause, processors from then on, nodes that are down."""


def place_table(places: Sequence[Place], sizes: Sequence[int] | None = None, nodes: Table | None = None) -> Table:
    """Return one row per place: ``place, processors, nodes, idle_power, load_power`` (W per processor or node).

    ``sizes``: the processors of each place; default: the present ones. ``nodes``: their :func:`node_table`, if known.

    >>> from types import SimpleNamespace as Some
    >>> place_table([Some(name="pool", capacity=4)])["processors"]
    array([4])
    """
    nodes = node_table(places) if nodes is None else nodes
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

    If the power of some is switched with the node, ``model`` says of which.
    If some can sleep, ``off_power``, ``boot_power`` and ``stop_power`` are their W then.
    If the types of GPUs of some have watts, ``devices`` has for each device of a node its W idle and under load, and
    the thousandths of a GPU that it is. If some run at several levels, ``levels`` has for each node the relative
    frequencies and the W under load.

    >>> from types import SimpleNamespace as Some
    >>> node_table([Some(name="pool", capacity=4)]) is None
    True
    """
    rows, devices = [], []
    powers: list[NodePower] = []
    for place in places:
        spec = getattr(place, "spec", None)
        kinds = getattr(spec, "nodes", ())
        each = [kind for kind in kinds for _ in range(kind.count)]
        rows += [(place.name, i, kind.cores, kind.idle_power, kind.load_power) for i, kind in enumerate(each)]
        powers += [getattr(kind, "power", None) or _NO_POWER for kind in each]
        known = {device.name: device for device in getattr(spec, "devices", ())}
        devices += [watts for kind in kinds for watts in [_watts_of_devices(kind, known)] for _ in range(kind.count)]
    if not rows:
        return None
    names = ("place", "node", "processors", "idle_power", "load_power")
    table = Table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    models = [power.model for power in powers]
    if "node" in models:
        table = table.with_columns(model=np.array(models))
    if any(power.can_sleep for power in powers):
        watts = {"off": [power.off for power in powers]}
        for state in ("boot", "stop"):
            phases = [getattr(power, state) for power in powers]
            watts[state] = [0.0 if phase is None else phase[1] for phase in phases]
        table = table.with_columns(**{f"{state}_power": np.array(each) for state, each in watts.items()})
    levels: list[Any] = [power.levels for power in powers]
    parts: dict[str, tuple[list[Any], bool]] = {"levels": (levels, any(levels))}
    parts["devices"] = devices, any(watts for node in devices for *watts, _ in node if any(watts))
    for name, (values, told) in parts.items():
        if told:
            column = np.empty(len(values), dtype=object)
            column[:] = values
            table = table.with_columns(**{name: column})
    return table


def joined_nodes(tables: Sequence[Table]) -> Table | None:
    """Return the nodes of several systems together, as :func:`node_table` has those of one; ``None``: there are none.

    >>> nodes = Table({"place": ["a"], "node": [0]})
    >>> joined_nodes([nodes, nodes.with_columns(place=["b"], off_power=[9.0])])["off_power"]
    array([0., 9.])
    """
    if not tables:
        return None
    columns = {}
    for name in dict.fromkeys(name for table in tables for name in table.names):
        without: Any = {"model": "linear", "devices": (), "levels": ()}.get(name, 0.0)
        values = [
            value for each in tables for value in (each[name].tolist() if name in each else [without] * len(each))
        ]
        columns[name] = np.empty(len(values), dtype=object)
        columns[name][:] = values
        if name not in ("devices", "levels"):
            columns[name] = np.array(values)
    return Table(columns)


def _watts_of_devices(kind: NodeSpec, known: Mapping[str, DeviceSpec]) -> tuple[tuple[float, float, int], ...]:
    """Return W idle and under load of each device of a node, by number, and the thousandths of a GPU that it is."""
    found: list[tuple[float, float, int]] = []
    for name, count in kind.gpu_types.items():
        spec = known.get(name)
        places, watts = (1, (0.0, 0.0)) if spec is None else (spec.places, (spec.idle_power, spec.load_power))
        found += [(watts[0] / places, watts[1] / places, 1000 // places)] * (count * places)
    return tuple(found)


def change_table(changes: Sequence[Change], states: Mapping[int, NodeChange] | None = None) -> Table | None:
    """Return the changes of places: ``time, place, cause, processors, down`` (nodes); ``None`` if there are none.

    ``states``: the changes of the states of nodes among them, by number; then it has ``nodes``, ``until`` and ``job``.

    >>> change_table([(5.0, "pool", "failure", 3, (1,))])["down"]
    array([(1,)], dtype=object)
    """
    if not changes:
        return None
    time, place, cause, up, nodes = zip(*changes, strict=True)
    down = np.full(len(time), None, dtype=object)
    down[:] = nodes
    table = Table(
        {"time": np.array(time, dtype=np.float64), "place": place, "cause": cause, "processors": up, "down": down}
    )
    if not states:
        return table
    each = [states.get(row) for row in range(len(time))]
    columns = {name: np.full(len(time), None, dtype=object) for name in ("nodes", "until")}
    for name, column in columns.items():
        column[:] = [None if state is None else getattr(state, name) for state in each]
    jobs = ["" if state is None or state.job is None else str(state.job) for state in each]
    return table.with_columns(**columns, job=np.array(jobs))


REASONS: tuple[str, ...] = ("time", "decision", "work", "place", "at", "reason")
"""The columns of the table: see :class:`~simmodel.scheduling.scheduler.GivenReason`."""


def reason_table(given: Sequence[GivenReason], names: Collection[str] | None = None) -> Table | None:
    """Return one row per reason, or ``None`` if there is none.

    Parameters
    ----------
    given
        the reasons, in order
    names
        those of the jobs of a broker, whose ids may repeat: an id that is none of them is that of a job of its home

    >>> from simmodel.scheduling.scheduler import GivenReason
    >>> reason_table([GivenReason(0.0, "Start", 7, "batch", float("nan"), "the narrowest")])["work"].tolist()
    ['7']
    """
    if not given:
        return None
    time, decision, work, place, at, reason, home = zip(*given, strict=True)
    ids = ["" if each is None else str(each) for each in work]
    if names is not None:
        pairs = zip(ids, home, strict=True)
        ids = [each if each in names or not each else f"{origin}:{each}" for each, origin in pairs]
    return Table(
        {
            "time": np.array(time, dtype=np.float64),
            "decision": np.array(decision, dtype=str),
            "work": np.array(ids, dtype=str),
            "place": np.array(place, dtype=str),
            "at": np.array(at, dtype=np.float64),
            "reason": np.array(reason, dtype=object),
        }
    )


class Stretch(NamedTuple):
    """One execution, or the part of it before or after a suspension, of the job in this row."""

    row: int
    attempt: int
    start: float
    end: float
    place: str
    processors: int
    status: str
    nodes: tuple[int, ...] | None
    counts: bool  # whether its work was kept
    allocation: Allocation | None = None  # of identified nodes

    @classmethod
    def columns(cls, flat: list[Any]) -> Stretches:
        """Return the fields of stretches that stand one after another in a list, each as a column.

        >>> Stretch.columns([*Stretch(0, 1, 2.0, 3.0, "a", 4, "resized", None, True), *range(10)])[:3]
        [[0, 0], [1, 1], [2.0, 2]]
        """
        return [flat[i :: len(cls._fields)] for i in range(len(cls._fields))]


Stretches: TypeAlias = "list[list[Any]]"
"""Stretches as columns, in the order of the fields of :class:`Stretch`."""


class ClaimStretch(NamedTuple):
    """A claim, or the part of it between two changes of its size."""

    claim: str
    start: float
    end: float
    place: str
    processors: int
    status: str
    grant: Grant | None

    @classmethod
    def of(
        cls,
        claim: Claim,
        start: float,
        end: float,
        status: str,
        processors: int | None = None,
        grant: Grant | None = None,
    ) -> ClaimStretch:
        """Return a stretch of a claim, by default at its present size."""
        if processors is None:
            processors, grant = claim.job.processors, claim.grant
        return cls(str(claim.job.id), start, end, claim.pool.name, processors, status, grant)


def claim_table(stretches: Sequence[ClaimStretch]) -> Table | None:
    """Return one row per stretch, by start; ``None`` if there are none."""
    if not stretches:
        return None
    rows = sorted(stretches, key=lambda each: (each.start, each.claim))
    nodes, allocations = zip(*[held_by(each.grant) for each in rows], strict=True)
    processors = np.array([each.processors for each in rows], dtype=np.int64)
    return Table(
        {
            "claim": [each.claim for each in rows],
            "start": np.array([each.start for each in rows], dtype=np.float64),
            "end": np.array([each.end for each in rows], dtype=np.float64),
            "place": [each.place for each in rows],
            "processors": processors,
            "status": [each.status for each in rows],
            **allocation_columns(nodes, allocations, processors),
        }
    )


def held_by(grant: Grant | None) -> tuple[tuple[int, ...] | None, Allocation | None]:
    """Return the nodes and the allocation of a grant; ``None`` each if nodes are not identified."""
    return (None, None) if grant is None or grant.nodes is None else (grant.nodes, grant.allocation)


def run_table(
    jobs: Table, stretches: Stretches, place: NDArray[np.generic], grants: Mapping[int, Grant] | None = None
) -> Table:
    """Return one row per execution, by start: the stretches, and the jobs without stretches.

    Parameters
    ----------
    jobs
        the table of jobs
    stretches
        the stretches of some of these jobs, as columns: see :class:`Stretch`
    place
        the name of the place of each job
    grants
        the resources held by jobs without stretches, by row, if nodes are identified

    >>> jobs = Table({"job": [7, 8], "start": [0.0, 5.0], "end": [4.0, 9.0], "processors": [1, 2],
    ...               "status": ["completed", "completed"]})
    >>> first = Stretch(1, 1, 1.0, 3.0, "pool", 2, "preempted", None, False)
    >>> second = Stretch(1, 2, 5.0, 9.0, "pool", 2, "completed", None, True)
    >>> stretches = Stretch.columns([*first, *second])
    >>> table = run_table(jobs, stretches, np.array(["pool", "pool"], dtype=object))
    >>> table["job"], table["start"]
    (array([7, 8, 8]), array([0., 1., 5.]))
    """
    number, attempt, start, end, where, processors, status, nodes, _, allocations = stretches
    first = np.array(number, dtype=np.int64)
    rest = np.isfinite(jobs["start"])
    rest[first] = False
    rows = np.flatnonzero(rest)
    which = np.append(first, rows)
    held = [held_by(grants.get(row)) for row in rows.tolist()] if grants else [(None, None)] * len(rows)
    nodes, allocations = [*nodes, *(some for some, _ in held)], [*allocations, *(each for _, each in held)]
    columns = {
        "job": jobs["job"][which],
        "attempt": np.append(np.array(attempt, dtype=np.int32), np.ones(len(rows), dtype=np.int32)),
        "start": np.append(start, jobs["start"][rows]),
        "end": np.append(end, jobs["end"][rows]),
        "place": np.asarray(Words.of([*where, *place[rows].tolist()])),
        "processors": np.append(processors, jobs["processors"][rows]).astype(np.int64),
        "status": np.asarray(Words.of([*status, *np.asarray(jobs["status"])[rows].tolist()])),
    }
    table = Table({**columns, **allocation_columns(nodes, allocations, columns["processors"])})
    return table.where(np.lexsort((which, columns["start"])))


def with_slowed(runs: Table, slowed: Mapping[tuple[int | str, float], Slowed]) -> Table:
    """Return the table of executions with columns about those with traffic, given by job and end (s).

    ``alone``: the seconds that the execution would have taken alone; ``stretch``: its run time as a multiple of these,
    nan if unknown; ``slowed_by`` and ``slowed_on``: the job that slowed it most, and where.
    """
    rows = zip(runs["job"].tolist(), runs["start"].tolist(), runs["end"].tolist(), strict=True)
    found = [slowed.get((job, end)) if start < end else None for job, start, end in rows]
    alone = np.array([np.nan if each is None or not each.alone else each.alone for each in found])
    most = [("", "") if each is None or not each.by else each.by[0] for each in found]
    return runs.with_columns(
        alone=alone,
        stretch=(runs["end"] - runs["start"]) / alone,
        slowed_by=np.array([str(each[0]) for each in most]),
        slowed_on=np.array([each[1] for each in most]),
    )


def allocation_columns(
    nodes: Sequence[tuple[int, ...] | None], allocations: Sequence[Allocation | None], processors: NDArray[np.int64]
) -> dict[str, NDArray[np.generic]]:
    """Return the columns of resources held by executions: ``nodes`` and, if nodes are identified, the amounts on each.

    ``cores``, ``gpus`` and ``memory`` (bytes) are tuples with one number per node; ``allocated`` are the cores in all,
    more than ``processors`` if whole nodes were allocated. ``devices``, if these are told apart: one tuple per node of
    (number, thousandths) of each.
    """
    held = np.full(len(nodes), None, dtype=object)
    held[:] = nodes
    columns: dict[str, NDArray[np.generic]] = {"nodes": held}
    rows = [row for row, allocation in enumerate(allocations) if allocation is not None]
    if not rows:
        return columns
    columns["allocated"] = processors.copy()
    columns["allocated"][rows] = [allocation.processors for allocation in allocations if allocation is not None]
    told = any(allocation is not None and allocation.devices is not None for allocation in allocations)
    names = ("cores", "gpus", "memory", *(("devices",) if told else ()))
    held_of = [() if allocation is None else allocation.columns for allocation in allocations]
    amounts = zip(*[(*each, *(None,) * (len(names) - len(each))) for each in held_of], strict=True)
    for name, values in zip(names, amounts, strict=True):
        columns[name] = np.full(len(nodes), None, dtype=object)
        columns[name][:] = values
    return columns


def network_columns(runs: Table, networks: Mapping[str, NodeNetwork]) -> dict[str, NDArray[np.float64]]:
    """Return the columns ``hops`` and ``shared_links`` of executions; nan where nodes have no places.

    ``hops``: the mean number of links between two of its nodes, 0 on a single one; ``shared_links``: how many of the
    links between its nodes are also between those of another execution, while both run.

    >>> from simmodel.platform import Torus
    >>> from simmodel.resources.pools.node_network import NodeNetwork
    >>> runs = Table({"place": ["a"] * 3, "start": [0.0, 5.0, 9.0], "end": [9.0, 9.0, 12.0],
    ...               "nodes": np.array([(0, 1, 2), (1, 2, 3), (2, 3)], dtype=object)})
    >>> columns = network_columns(runs, {"a": NodeNetwork(Torus(dimensions=(8,), bandwidth=1))})
    >>> columns["hops"].round(2).tolist(), columns["shared_links"].tolist()
    ([1.33, 1.33, 1.0], [2.0, 2.0, 0.0])
    """
    hops, found = links_of(runs, networks)
    shared = np.full(len(runs), np.nan)
    shared[list(found)] = [both.sum() for _, both in found.values()]
    return {"hops": hops, "shared_links": shared}


def links_of(
    runs: Table, networks: Mapping[str, NodeNetwork]
) -> tuple[NDArray[np.float64], dict[int, tuple[NDArray[np.intp], NDArray[np.bool_]]]]:
    """Return the mean hops of executions, and by row the links between its nodes and which of these are shared.

    The columns ``place, start, end, nodes`` of the executions count.
    """
    hops = np.full(len(runs), np.nan)
    kept: dict[tuple[str, tuple[int, ...]], tuple[float, NDArray[np.intp]]] = {}
    by_measure: dict[int, list[tuple[int, NDArray[np.intp]]]] = {}  # rows with their links
    for row, (place, nodes) in enumerate(zip(runs["place"].tolist(), runs["nodes"], strict=True)):
        network = networks.get(place)
        if network is None or nodes is None:
            continue
        if (place, nodes) not in kept:
            kept[place, nodes] = network.mean_hops(nodes), network.links(nodes)
        hops[row], links = kept[place, nodes]
        by_measure.setdefault(id(network.measure), []).append((row, links))
    start, end = runs["start"], np.where(np.isnan(runs["end"]), np.inf, runs["end"])
    found: dict[int, tuple[NDArray[np.intp], NDArray[np.bool_]]] = {}
    for given in by_measure.values():
        lengths = [len(links) for _, links in given]
        rows = np.repeat([row for row, _ in given], lengths)
        both = _overlaps(np.concatenate([links for _, links in given]), start[rows], end[rows])
        parts = np.split(both, np.cumsum(lengths)[:-1])
        found |= {row: (links, part) for (row, links), part in zip(given, parts, strict=True)}
    return hops, found


def _overlaps(links: NDArray[np.intp], start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return of which spans another one of the same link overlaps; those without length overlap none."""
    long = np.flatnonzero(start < end)
    order = long[np.lexsort((end[long], start[long], links[long]))]
    link = np.unique(links[order], return_inverse=True)[1]
    instants = np.unique(np.concatenate([start[order], end[order]]), return_inverse=True)[1].reshape(2, -1)
    first, last = instants + link * (2 * len(order) + 1)  # those of one link are all before those of the next
    found = np.zeros(len(links), dtype=bool)
    found[order[1:]] = np.maximum.accumulate(last)[:-1] > first[1:]
    found[order[:-1]] |= first[1:] < last[:-1]
    return found


def sharers(runs: Table, job: int | str, networks: Mapping[str, NodeNetwork]) -> Table:
    """Return one row per execution that shares links with one of a job while both run: ``job, start, end, links``.

    ``start`` and ``end`` (s) are those of the time that they share, ``links`` the names of the links, in order.
    """
    end = np.where(np.isnan(runs["end"]), np.inf, runs["end"])
    rows: list[tuple[object, float, float, tuple[str, ...]]] = []
    for row in np.flatnonzero(runs["job"] == job).tolist():
        here = networks.get(str(runs["place"][row]))
        since, until = np.maximum(runs["start"], runs["start"][row]), np.minimum(end, end[row])
        for other in np.flatnonzero((since < until) & (runs["job"] != job)).tolist():
            network, nodes = networks.get(str(runs["place"][other])), runs["nodes"][other]
            if here is None or network is None or network.measure is not here.measure or nodes is None:
                continue
            both = np.intersect1d(here.links(runs["nodes"][row]), network.links(nodes)).tolist()
            if both:
                names = tuple(sorted(map(here.link_name, both)))
                rows.append((runs["job"][other], float(since[other]), float(until[other]), names))
    links = np.full(len(rows), None, dtype=object)
    links[:] = [names for *_, names in rows]
    first = zip(*[row[:3] for row in rows], strict=True) if rows else ([], [], [])
    columns = dict(zip(("job", "start", "end"), map(np.array, first), strict=True))
    return Table({**columns, "links": links})


def versions() -> dict[str, str]:
    """Return the versions of simmodel, SimPy, numpy and Python, and simmodel's form, for storage with a result.

    >>> list(versions())
    ['simmodel', 'form', 'simpy', 'numpy', 'python']
    """
    return {
        "simmodel": __version__,
        "form": FORM,
        "simpy": simpy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
