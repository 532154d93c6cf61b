"""Transfers over a star of links with simmodel, as in simgrid_star.py: ``simmodel_star.py PLAN LINKS MODEL ENDS``."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator

from simpy.events import Event

from simmodel.environment import Environment
from simmodel.platform.network import LinkSpec
from simmodel.resources.network.network import Network


def main(plan: str, links: str, model: str, ends: str) -> None:
    with open(plan) as file:
        rows = [
            (row["transfer"], float(row["start"]), int(row["one"]), int(row["other"]), int(row["size"]))
            for row in csv.DictReader(file)
        ]
    env = Environment()
    spokes = [LinkSpec(name=f"link{i}", bandwidth=1.25e9, latency=1e-3) for i in range(int(links))]
    network = Network(env, spokes, model=model)
    transfers = []

    def source() -> Iterator[Event]:
        for _, start, one, other, size in rows:
            yield env.timeout(start - env.now)
            transfers.append(network.transfer(size, route=(f"link{one}", f"link{other}")))

    env.process(source())
    env.run()
    with open(ends, "w") as file:
        file.write("transfer,end\n")
        file.writelines(f"{row[0]},{each.end!r}\n" for row, each in zip(rows, transfers, strict=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
