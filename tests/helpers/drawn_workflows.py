"""Drawn workflows, from Python and as documents of DAX and WfFormat, and small grids that run them."""

import io
import json

import numpy as np
import pytest

from simmodel import Task, Workflow, simulate, start
from simmodel.formats.dax import read_dax
from simmodel.formats.wfformat import read_wfformat
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, SiteSpec, StorageSpec
from simmodel.policies.planners.planner import HEFT, Planner
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.scheduling.problem import Plan
from simmodel.work import File
from tests.oracles.grid_events import Rows

FORMS = ("python", "dax", "wfformat")
TOLD = ("files", "pairs", "both")
BROKERS = ("data-locality", "earliest-finish", "round-robin", "least-loaded", "panda", "sgs-t")


def in_turn(problem):
    """Plan each task on the next processor that can run it, one after another."""
    order, place, ends, busy = [], [], [], [0.0] * len(problem.places)
    for i, runs in enumerate(problem.run):
        able = [p for p, seconds in enumerate(runs) if seconds < np.inf]
        place.append(able[i % len(able)])
        order.append(i)
        ends.append(busy[place[-1]] + runs[place[-1]])
        busy[place[-1]] = ends[-1]
    starts = [end - problem.run[i][place[i]] for i, end in enumerate(ends)]
    return Plan(place, starts, ends, order, starts)


def planners():
    return ("heft", "cpop", "peft", "lookahead", HEFT(insertion=False), Planner(in_turn, "in-turn"))


class Drawn:
    """A drawn workflow: its tasks with their files, each written by one task, and the order that must hold.

    Attributes
    ----------
    runs, reads, writes
        seconds of each task; the files that it reads; those that it writes
    sizes
        bytes of each file
    pairs
        the pairs that are listed
    order
        all pairs that must hold: those listed, and each reader after its writer
    """

    def __init__(self, seed, told):
        rng = np.random.default_rng([seed, 45])
        n = int(rng.integers(1, 13))
        self.names = [f"t{i}" for i in range(n)]
        self.runs = [float(rng.choice([0, 1, 5, 12.5, 30])) for _ in range(n)]
        self.cores = [int(rng.choice([1, 1, 2])) for _ in range(n)]
        self.sizes, self.reads, self.writes, writer = {}, {}, {}, {}
        for i, name in enumerate(self.names):
            known = list(writer)
            shared = (
                rng.choice(known, min(len(known), int(rng.integers(0, 4))), replace=False).tolist() if known else []
            )
            first = [f"g{rng.integers(3)}"] if rng.random() < 0.4 else []
            self.reads[name] = [] if told == "pairs" else [*shared, *first]
            self.writes[name] = [] if told == "pairs" else [f"f{i}.{k}" for k in range(rng.integers(0, 3))]
            writer |= dict.fromkeys(self.writes[name], name)
        for file in dict.fromkeys(
            [file for each in (self.reads, self.writes) for files in each.values() for file in files]
        ):
            self.sizes[file] = float(rng.choice([0, 1, 40, 7.5, 300]))
        follows = {(writer[file], name) for name, files in self.reads.items() for file in files if file in writer}
        forward = [(a, b) for i, a in enumerate(self.names) for b in self.names[i + 1 :] if rng.random() < 0.15]
        self.pairs = {"files": [], "pairs": forward, "both": [*dict.fromkeys([*sorted(follows), *forward])]}[told]
        self.bytes = {pair: float(rng.choice([0, 20, 100])) for pair in forward} if told == "pairs" else {}
        self.order = sorted(follows | set(self.pairs))
        if rng.random() < 0.5:  # in no order
            self.names = [self.names[i] for i in rng.permutation(n)]

    def flow(self, form):
        return getattr(self, form)()

    def python(self):
        tasks = [
            Task(id=name, run=run, cores=cores, inputs=self.reads[name], outputs=self.writes[name])
            for name, run, cores in zip(self.names, self.runs, self.cores, strict=True)
        ]
        edges = [(*pair, size) if (size := self.bytes.get(pair)) else pair for pair in self.pairs]
        return Workflow(tasks, edges or None, [File(*each) for each in self.sizes.items()])

    def dax(self):
        """Return the workflow of a DAX, which leaves out each second pair that follows from a file."""
        lines = []
        for name, run, cores in zip(self.names, self.runs, self.cores, strict=True):
            uses = [(file, "input") for file in self.reads[name]] + [(file, "output") for file in self.writes[name]]
            files = "".join(f'<uses file="{file}" link="{link}" size="{self.sizes[file]}"/>' for file, link in uses)
            lines.append(f'<job id="{name}" runtime="{run}" cores="{cores}">{files}</job>')
        listed = [pair for i, pair in enumerate(self.pairs) if i % 2 or not self._by_file(pair)]
        lines += [f'<child ref="{child}"><parent ref="{parent}"/></child>' for parent, child in listed]
        return read_dax(io.StringIO(f"<adag>{''.join(lines)}</adag>"))

    def _by_file(self, pair):
        return not set(self.writes[pair[0]]).isdisjoint(self.reads[pair[1]])

    def wfformat(self):
        tasks = [
            {
                "id": name,
                "name": name,
                "parents": [parent for parent, child in self.pairs if child == name],
                "children": [child for parent, child in self.pairs if parent == name],
                "inputFiles": self.reads[name],
                "outputFiles": self.writes[name],
            }
            for name in self.names
        ]
        files = [{"id": name, "sizeInBytes": size} for name, size in self.sizes.items()]
        ran = [
            {"id": name, "runtimeInSeconds": run, "coreCount": cores}
            for name, run, cores in zip(self.names, self.runs, self.cores, strict=True)
        ]
        flow = {"specification": {"tasks": tasks, "files": files}, "execution": {"tasks": ran}}
        return read_wfformat(io.StringIO(json.dumps({"name": "w", "schemaVersion": "1.5", "workflow": flow})))


def drawn_grid(seed, sizes):
    """Return a grid of two to four sites with hosts of several speeds; some first files are at some sites."""
    rng = np.random.default_rng([seed, 54])
    names = [f"s{i}" for i in range(rng.integers(2, 5))]
    sites = []
    for name in names:
        speeds = [float(rng.choice([0.5, 1, 1.25, 2])) for _ in range(rng.integers(1, 3))]
        hosts = [NodeSpec(cores=int(rng.integers(2, 5)), speed=speed) for speed in speeds]
        storage = StorageSpec(capacity=1e6, read_bandwidth=float(rng.choice([50, np.inf])))
        kind = {"hosts": hosts} if rng.random() < 0.7 else {"cores": int(rng.integers(2, 6))}
        staging, overhead = str(rng.choice(["before", "inside"])), None if rng.random() < 0.7 else 2
        sites.append(SiteSpec(name=name, storage=storage, staging=staging, overhead=overhead, **kind))
    links = [
        LinkSpec(name=a + b, bandwidth=float(rng.choice([2, 10, 1e3])), latency=0.1, between=(a, b))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]
    given = [name for name in sizes if name.startswith("g") and rng.random() < 0.5]
    files = [FileSpec(name=name, size=sizes[name], sites=[str(rng.choice(names))]) for name in given]
    return GridSpec(sites=sites, network=NetworkSpec(links=links), files=files)


def check_bytes_order_and_slr(seed):
    """Run a drawn workflow under all brokers and planners, and check its bytes, its order and its SLR."""
    form, told = FORMS[seed % 3], TOLD[seed // 3 % 3]
    drawn = Drawn(seed, told)
    flow = drawn.flow(form)
    spec = drawn_grid(seed, drawn.sizes)
    for policy in (*BROKERS, *planners()):
        where = (seed, form, told, policy)
        sim, rows = start(spec, flow, policy), Rows({"events": GRID_EVENTS, "jobs": GRID_JOBS})
        sim.env.observe(GridEvents(sim.system, rows))
        result = sim.run().result()
        jobs = {row["job"]: row for row in result.jobs.rows()}
        assert {row["state"] for row in jobs.values()} == {"finished"}, where
        moved = result.flows["bytes"].sum()
        [whole] = result.by_workflow([flow]).rows()
        found = {
            "jobs": result.jobs["bytes_in"].sum(),
            "sites": result.sites["bytes_in"][:-1].sum(),
            "all sites": result.sites["bytes_in"][-1],
            "workflow": whole["bytes"],
            "data set, jobs": sum(row["bytes_in"] for row in rows.tables["jobs"]),
            "data set, events": sum(row["bytes"] for row in rows.tables["events"] if row["event"] == "transfer ended"),
        }
        assert found == pytest.approx(dict.fromkeys(found, moved)), where
        for before, after in drawn.order:
            assert jobs[after]["start"] >= jobs[before]["finished"], (*where, before, after)
        assert whole["slr"] >= 1 or np.isnan(whole["slr"]), where
    for result, table in ((simulate(4, flow, "fcfs"), "jobs"), (simulate("multicore-2x10", flow), "tasks")):
        columns = getattr(result, table)
        ids = columns[table[:-1]].tolist()
        at = {name: dict(zip(ids, columns[name].tolist(), strict=True)) for name in ("start", "end")}
        for before, after in drawn.order:
            assert at["start"][after] >= at["end"][before], (seed, form, told, table, before, after)
