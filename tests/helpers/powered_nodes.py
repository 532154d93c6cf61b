"""Results on nodes of known watts."""

import numpy as np

from simmodel.results import Result
from simmodel.work.table import Table


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def on_nodes(rows, nodes=4, cores=2, changes=None, kinds=None, ended=20.0):
    """A result of rows (start, end, processors, nodes) on nodes of 100 W idle and 300 W under load."""
    start, end, size, held = zip(*rows, strict=True)
    jobs = {"submit": start, "start": start, "end": end, "processors": size}
    runs = {"job": np.arange(1, len(rows) + 1), "attempt": [1] * len(rows), "start": start, "end": end}
    runs |= {"place": ["rack"] * len(rows), "processors": size, "status": ["completed"] * len(rows)}
    runs["start"], runs["end"] = (np.array(runs[key], dtype=float) for key in ("start", "end"))
    places = {"place": ["rack"], "processors": [nodes * cores], "nodes": [nodes], "idle_power": [100.0]}
    return Result(
        jobs=jobs,
        processors=nodes * cores,
        runs=Table({**runs, "nodes": objects(list(held))}),
        places=Table({**places, "load_power": [300.0]}),
        changes=changes,
        nodes=kinds,
        started=0.0,
        ended=ended,
    )
