"""The reading of requests, checked against the record: what each job got, and where, beside what it would get here.

Source: select/cons_tres of Slurm 22.05, by its behaviour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import attrs

from simmodel.extending import Allocation, NodeTable, Request, node_list
from simmodel.platform import ClusterSpec
from simmodel_site.policy.board import Board
from simmodel_site.policy.layout import Layout
from simmodel_site.policy.policy import Slurm
from simmodel_site.policy.selection import able, allocation_of, choose, nodes_in, usable_cores
from simmodel_site.policy.settings import SlurmConf, SlurmPartition
from simmodel_site.policy.wishes import MIB, Wishes
from simmodel_site.twin.slurm.site.recorded import RecordedJob
from simmodel_site.twin.slurm.site.requests import gpus_in
from simmodel_site.twin.slurm.values import nodes_of

__all__ = ["misplaced"]

_USUAL = SlurmPartition(name="batch")
_TOO_LITTLE = "recorded where too little is free here"


def misplaced(
    runs: Iterable[RecordedJob], spec: ClusterSpec, policy: Slurm
) -> tuple[int, dict[str, dict[int | str, str]]]:
    """Return how many runs have recorded nodes, and which of them do not get here what they got: by what, and why.

    Each gets its recorded nodes, in the order of the record, beside those that ran there then: it must fit, use all of
    them, and get the CPUs, memory and GPUs that AllocTRES tells. Within a second, ends come first.

    >>> from simmodel.platform import NodeSpec, PartitionSpec
    >>> from simmodel.work.job import Job
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n[1-2]", cores=4)])])
    >>> runs = [RecordedJob(job=Job(id=i, run=60, processors=3), start=5.0, nodes="n1") for i in (1, 2)]
    >>> misplaced(runs, spec, Slurm())
    (2, {'recorded where too little is free here': {2: 'on n1'}})
    """
    names = [name for part in spec.partitions for name in part.node_names]
    whole = {name for part in spec.partitions if part.exclusive for name in part.node_names}
    table = NodeTable.of([kind for part in spec.partitions for kind in part.nodes])
    board = Board(table, policy.settings, Layout(names, len(names), policy.nodes))
    partitions = {each.name: each for each in policy.partitions}
    placed = [run for run in runs if run.start < inf and nodes_of(run.nodes)]
    turns = [(run.start, 1, i) for i, run in enumerate(placed)]
    turns += [(run.start + run.job.run, 0, i) for i, run in enumerate(placed) if run.job.run]
    held: dict[int, Allocation] = {}
    found: dict[str, dict[int | str, str]] = {}
    for _, starts, i in sorted(turns):
        if not starts:
            if i in held:
                table.release(held.pop(i))
            continue
        run = placed[i]
        nodes = board.layout.mask(run.nodes)
        request = Request.of(run.job, exclusive=bool(whole.intersection(nodes_of(run.nodes))))
        wishes = Wishes.of(run.job.options)
        if request.nodes is None and wishes.nodes is None:  # on as many as it got
            wishes = attrs.evolve(wishes, nodes=(nodes.bit_count(), nodes.bit_count()))
        shape = board.shape_of(request, wishes, partitions.get(str(run.job.queue), _USUAL))
        there = able(table.free, table.capacity, shape) & nodes
        known = nodes.bit_count() == len(nodes_of(run.nodes))
        chosen = choose(table.free, shape, nodes, must=nodes) if known and there == nodes else None
        if chosen is None:
            lacking = [names[node] for node in nodes_in(nodes & ~there or nodes)]
            what, why = _TOO_LITTLE, f"on {node_list(lacking) or run.nodes}"
        else:
            allocation = allocation_of(table, shape, chosen, policy.settings, board.layout.pieces)
            if run.job.run:
                if not shape.even:  # of the cores of each node, what it must have in any case
                    room = usable_cores(table.free, shape)
                    spare = sum([float(room[node]) for node, _ in chosen]) - sum([cores for _, cores in chosen])
                    chosen = [(node, max(int(room[node] - spare), shape.least)) for node, _ in chosen]
                held[i] = allocation_of(table, shape, chosen, policy.settings, board.layout.pieces)
                table.take(held[i])
            what, why = _difference(run, allocation, nodes.bit_count(), policy.settings)
        if what:
            found.setdefault(what, {})[run.job.id or i] = why
    return len(placed), found


def _difference(run: RecordedJob, allocation: Allocation, nodes: int, settings: SlurmConf) -> tuple[str, str]:
    """Return in what an allocation differs from what a job got, and how; nothing: in nothing."""
    cores, gpus, memory = allocation.amounts.sum(axis=1).tolist()
    told: Sequence[tuple[str, float, float, float]] = (
        ("nodes", len(allocation.numbers), nodes, 0.0),
        ("CPUs", cores, run.got.get("cpu", cores), 0.0),
        ("GPUs", gpus, gpus_in(run.got) or gpus, 0.0),
        ("MiB", memory / MIB, run.got.get("mem", memory) / MIB if settings.memory else memory / MIB, nodes),
    )
    for name, here, got, most in told:
        if abs(here - got) > most:
            return f"recorded with other {name} than here", f"{got:.0f}, {here:.0f} here"
    return "", ""
