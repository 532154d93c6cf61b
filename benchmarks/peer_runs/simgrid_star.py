"""Transfers over a star of links with SimGrid's Python: ``python simgrid_star.py PLAN LINKS MODEL ENDS``.

The plan has a line ``transfer,start,one,other,size`` for each transfer; the model is ``simgrid``: SimGrid's defaults.
One actor starts all transfers, the cheapest form: each actor of the Python bindings is a thread.
"""

import csv
import sys

from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, this_actor


def main(plan, links, model, ends):
    if model != "simgrid":
        raise SystemExit(f"unknown model {model!r}; the only one is simgrid")
    with open(plan) as file:
        rows = [
            (row["transfer"], float(row["start"]), int(row["one"]), int(row["other"]), int(row["size"]))
            for row in csv.DictReader(file)
        ]
    engine = Engine(["star"])
    zone = NetZone.create_full_zone("star")
    count = int(links)
    hosts = [zone.create_host(f"host{i}", 1e9) for i in range(count)]
    spokes = [zone.create_link(f"link{i}", 1.25e9) for i in range(count)]
    for spoke in spokes:
        spoke.set_latency(1e-3)
    for i in range(count):
        for j in range(i):
            route = [LinkInRoute(spokes[i]), LinkInRoute(spokes[j])]
            zone.add_route(hosts[i].netpoint, hosts[j].netpoint, None, None, route, True)
    zone.seal()
    transfers = []

    def source():
        for _, start, one, other, size in rows:
            this_actor.sleep_until(start)
            transfers.append(Comm.sendto_async(hosts[one], hosts[other], size))
        Comm.wait_all(transfers)

    Actor.create("source", hosts[0], source)
    engine.run()
    with open(ends, "w") as file:
        file.write("transfer,end\n")
        file.writelines(f"{row[0]},{each.finish_time!r}\n" for row, each in zip(rows, transfers))  # noqa: B905


if __name__ == "__main__":
    main(*sys.argv[1:])
