"""Transfers of which always so many are under way, with SimGrid: ``simgrid_crowd.py PLATFORM PLAN AT_ONCE ENDS``.

The platform is an XML file; the plan has a line ``one,other,size`` for each transfer, in the order of their beginnings.
The model is CM02 without TCP windows, solved in full. Prints the CPU seconds of the run.
"""

import csv
import sys
import time

from simgrid import Actor, Comm, Engine, Host

SETTINGS = ("model:CM02", "crosstraffic:no", "optim:Full", "TCP-gamma:1e20")


def main(platform, plan, at_once, ends):
    with open(plan) as file:
        rows = [(int(row["one"]), int(row["other"]), int(row["size"])) for row in csv.DictReader(file)]
    engine = Engine(["crowd", "--log=root.thres:error", *(f"--cfg=network/{each}" for each in SETTINGS)])
    engine.load_platform(platform)
    found = [float("nan")] * len(rows)

    def source():
        under_way = []
        numbers = []
        left = iter(enumerate(rows))

        def begin():
            for number, (one, other, size) in left:
                hosts = Host.by_name(f"n{one}"), Host.by_name(f"n{other}")
                under_way.append(Comm.sendto_async(*hosts, size))
                numbers.append(number)
                return

        for _ in range(int(at_once)):
            begin()
        while under_way:
            ended = Comm.wait_any(under_way)
            found[numbers.pop(ended)] = Engine.clock
            del under_way[ended]
            begin()

    Actor.create("source", Host.by_name("n0"), source)
    spent = time.process_time()
    engine.run()
    print(time.process_time() - spent)
    with open(ends, "w") as file:
        file.writelines(f"{each!r}\n" for each in found)


if __name__ == "__main__":
    main(*sys.argv[1:])
