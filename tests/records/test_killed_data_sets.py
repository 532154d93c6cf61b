"""What a process leaves that is killed at 50 instants of a data set: between rows, and inside statements."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from tests.helpers.paths import ROOT

DRIVER = """
import json, os, signal, sqlite3, sys
from simmodel import Environment, Job
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.results.streams import DataSet
from simmodel.systems import Grid
from simmodel.work import File

counts = {"row": 0, "step": 0}
limits = {}

def count(what):
    counts[what] += 1
    if counts[what] == limits.get(what):
        os.kill(os.getpid(), signal.SIGKILL)

connect = sqlite3.connect

def counting(*values, **options):
    connection = connect(*values, **options)
    connection.set_progress_handler(lambda: count("step"), 20)
    return connection

sqlite3.connect = counting

class Counting(DataSet):
    def add(self, table, row):
        count("row")
        super().add(table, row)

    def flush(self):
        super().flush()
        states.append([self.written["events"], self.written["jobs"]])

def run(path):
    env = Environment()
    sites = [SiteSpec(name=name, cores=4) for name in "ab"]
    network = NetworkSpec(links=[LinkSpec(name="w", bandwidth=2, latency=1, between=("a", "b"))])
    files = [FileSpec(name="f", size=20, sites=["a"]), FileSpec(name="g", size=30, sites=["b"])]
    outages = [SiteOutageSpec(site="b", at=60, until=70)]
    grid = Grid(env, GridSpec(sites=sites, network=network, files=files, outages=outages, retries=1), "round-robin")
    with Counting(path, {"events": list(GRID_EVENTS), "jobs": list(GRID_JOBS)}, batch=7) as data:
        env.observe(GridEvents(grid, data))
        for number in range(15):
            files = {"inputs": ["f", "g"], "outputs": [File(f"o{number}", 5)]} if number % 2 else {}
            grid.submit(Job(id=number, processors=3, run=10, **files), at=number * 5.0)
        env.run()

states = [[0, 0]]
folder = sys.argv[1]
for line in sys.stdin:  # the path of a data set, and the row or the step at which its process is killed
    name, what, limit = line.split()
    child = os.fork()
    if not child:
        limits[what] = int(limit)
        run(f"{folder}/{name}.sqlite")
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump({**counts, "states": states}, file)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, flush=True)
"""


def table(path, name):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()


@pytest.fixture
def driver(tmp_path):
    """Return a function that runs a data set in a process of its own; it returns the signal that ended it."""
    command = [sys.executable, "-c", DRIVER, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(name, what, limit):
        process.stdin.write(f"{name} {what} {limit}\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield run
    process.communicate()


@pytest.mark.long
def test_what_is_left_of_a_data_set_whose_process_is_killed_is_readable_to_the_last_batch(driver, tmp_path):
    assert driver("whole", "row", -1) == 0
    found = json.loads((tmp_path / "whole.json").read_text(encoding="utf-8"))
    events, jobs = (table(tmp_path / "whole.sqlite", name) for name in ("events", "jobs"))
    assert found["states"][-1] == [len(events), len(jobs)]
    assert "unfinished" not in dict(table(tmp_path / "whole.sqlite", "meta"))
    rng = np.random.default_rng(9)
    rows = rng.choice(np.arange(1, found["row"] + 1), 25, replace=False).tolist()
    # before the first twentieth of the steps there may be no tables yet
    steps = rng.choice(np.arange(found["step"] // 20, found["step"] + 1), 25, replace=False).tolist()
    left = set()
    for number, (what, limit) in enumerate([("row", row) for row in rows] + [("step", step) for step in steps]):
        assert driver(number, what, limit) == 9
        path = tmp_path / f"{number}.sqlite.unfinished"
        assert not (tmp_path / f"{number}.sqlite").exists()
        assert table(path, "pragma_integrity_check") == [("ok",)]
        there = [table(path, name) for name in ("events", "jobs")]
        assert there == [events[: len(there[0])], jobs[: len(there[1])]]
        assert [*map(len, there)] in found["states"]
        assert json.loads(dict(table(path, "meta"))["unfinished"]) is True
        if what == "row":  # all batches that were complete before this row
            assert sum(map(len, there)) == max(sum(state) for state in found["states"] if sum(state) < limit)
        left.add(len(there[0]))
    assert len(left) > 15
