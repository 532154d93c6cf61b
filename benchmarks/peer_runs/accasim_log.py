"""Replay a log with AccaSim: ``python accasim_log.py LOG PROCESSORS POLICY SCHEDULE``, in a Python that has AccaSim.

AccaSim 1.1.3 imports ``Mapping`` from ``collections``, where Python 3.10 and later no longer have it: the name is put
there before the import. Nothing else of AccaSim is changed. The processors are the cores of one node, which is faster
than one node per processor and gives the same schedule.
"""

import collections
import collections.abc
import json
import os
import sys
import time
from pathlib import Path

if not hasattr(collections, "Mapping"):
    collections.Mapping = collections.abc.Mapping

from accasim.base import allocator_class, scheduler_class
from accasim.base.simulator_class import Simulator

POLICIES = {
    "fcfs": scheduler_class.FirstInFirstOut,
    "sjf": scheduler_class.ShortestJobFirst,
    "easy": scheduler_class.EASYBackfilling,
}


def main(log, processors, policy, schedule):
    os.environ["TZ"] = "UTC"  # its schedules have dates in local time
    time.tzset()
    folder = Path(schedule).with_suffix(".accasim")
    folder.mkdir(exist_ok=True)
    system = {
        "groups": {"node": {"core": int(processors)}},
        "resources": {"node": 1},
        "equivalence": {"processor": {"core": 1}},
        "start_time": 0,
    }
    config = folder / "system.json"
    config.write_text(json.dumps(system))
    simulator = Simulator(
        log,
        str(config),
        POLICIES[policy](allocator_class.FirstFit()),
        statistics_output=False,
        show_statistics=False,
        RESULTS_FOLDER_PATH=str(folder),
    )
    written = simulator.start_simulation()
    os.replace(written["sched-"], schedule)


if __name__ == "__main__":
    main(*sys.argv[1:])
