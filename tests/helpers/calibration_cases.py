"""Grids with hidden speeds and overheads, and the record that they leave: cases whose answer is known."""

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from simmodel import Job, Scenario, Workload
from simmodel.platform import GridSpec, NodeSpec, SiteSpec
from simmodel.work.table import Table


@attrs.frozen
class HiddenGrid:
    """A model, the record of the same grid with hidden values, and these values."""

    model: Scenario
    record: Table
    hidden: Mapping[str, float]
    parameters: Mapping[str, Any]


def hidden_grid(sites: int, jobs: int, *, cores: tuple[int, int] = (100, 2000), seed: int = 0) -> HiddenGrid:
    """Return a grid whose sites have speeds of 0.5 to 2 and overheads of 60 to 1,800 s that the model does not know.

    The recorded walltimes and queue times have a log-normal noise of 10 %.
    """
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(*np.log(cores), sites)).astype(int).tolist()
    names = [f"S{i:02}" for i in range(sites)]
    given = [
        SiteSpec(name=name, hosts=[NodeSpec(count=1, cores=size)], overhead=1800)
        for name, size in zip(names, sizes, strict=True)
    ]
    hidden: dict[str, float] = {}
    for name in names:
        hidden[f"sites.{name}.speed"] = float(np.exp(rng.uniform(np.log(0.5), np.log(2))))
        hidden[f"sites.{name}.overhead.mean"] = float(np.exp(rng.uniform(np.log(60), np.log(1800))))
    submit = np.sort(rng.uniform(0, 86400, sites * jobs)).tolist()
    where = rng.permutation(np.repeat(names, jobs)).tolist()
    wide, run = rng.choice([1, 1, 1, 8], sites * jobs).tolist(), rng.lognormal(7.5, 0.8, sites * jobs).tolist()
    work = [Job(id=i + 1, submit=submit[i], processors=wide[i], run=run[i], site=where[i]) for i in range(sites * jobs)]
    model = Scenario(platform=GridSpec(sites=given), workload=Workload.from_jobs(work), policy="recorded")
    found = model.evolve(hidden).run().jobs
    noise = np.exp(rng.normal(-0.005, 0.1, (2, len(found))))
    queue = (found["start"] - found["submit"]) * noise[0]
    start = found["submit"] + queue
    record = Table(
        {
            "job": found["job"],
            "site": found["site"],
            "processors": found["processors"],
            "submit": found["submit"],
            "start": start,
            "end": start + (found["end"] - found["start"]) * noise[1],
        }
    )
    ranges = {"sites.*.speed": (0.25, 4, "log", "each"), "sites.*.overhead.mean": (30, 3600, "log", "each")}
    return HiddenGrid(model, record, hidden, ranges)
