"""How the cost of each main job of the package grows: its work is doubled, and the slope of the CPU time is printed.

Run ``python benchmarks/growth.py`` for all cases (at most ten minutes), or name some of them, or some lines of them:
``batch``, ``policies/easy``, ``policies/window/1.3``. ``--doublings`` says how often the work is doubled (default: 4),
``--quick`` starts with less work and doubles it twice (about a minute). A line that would take longer than its share
of the time ends before its last size, and says so.

Columns: the size; its CPU time s/y, the least of up to three runs, by the yardstick y that is measured
beside it (CPU seconds of ``sum(i * i for i in range(10**7))``); microseconds/y per unit; how many jobs wait in the mean
while jobs arrive. The exponent is the slope of log(s/y) over log(size) over the last two doublings: 1 is linear. A
queue grows where that of the mean number of waiting jobs is above a half: jobs come faster than they end, and an
exponent up to 2 is then that of a policy that looks at all who wait. The last table is that
of ``benchmarks/growth.txt``.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import grid
import network
import nodes
import numpy as np
import whatif
from machine import many_processors

from simmodel import Environment, Network, TaskSet, Workload, simulate, start, what_if
from simmodel.environment import quiet_garbage_collector
from simmodel.futures.start_times import predict
from simmodel.generators import grid_jobs, layered_with_costs, tiered_grid
from simmodel.platform import BrokerSpec, ClusterSpec, LinkSpec, PartitionSpec
from simmodel.scheduling.registry import policy_names
from simmodel.snapshots import Snapshot
from simmodel.work import make_malleable

PROCESSORS = 256
LOADS = (0.8, 1.3)
SHARE = 5.5
"""CPU seconds of all runs of a line; a twelfth of it with ``--quick``."""

Run = Callable[[], Any]


class Line(NamedTuple):
    """One job of the package: ``make(size)`` returns what is timed; ``waiting(what it returned)`` is the mean queue."""

    name: str
    unit: str
    base: int
    make: Callable[[int], Run]
    waiting: Callable[[Any], float] | None = None


class Point(NamedTuple):
    size: int
    cost: float  # s/y
    waiting: float  # jobs in the mean; nan: not asked

    @property
    def each(self) -> float:
        """Microseconds/y per unit."""
        return self.cost / self.size * 1e6


# ---------------------------------------------------------------------- measuring


def yardstick() -> float:
    """CPU seconds of the yardstick, from a fiftieth of it."""
    begin = time.process_time()
    sum(i * i for i in range(200_000))
    return 50 * (time.process_time() - begin)


def slope(points: list[Point], what: Callable[[Point], float]) -> float:
    """Return the slope of log(what) over log(size) over the last two doublings; nan: there are none, or zeros."""
    last = points[-3:]
    values = [what(point) for point in last]
    if len(last) < 2 or min(values) <= 0:
        return float("nan")
    return float(np.polyfit(np.log([point.size for point in last]), np.log(values), 1)[0])


def cost_of(point: Point) -> float:
    return point.cost


def waiting_of(point: Point) -> float:
    return point.waiting


def grows(points: list[Point]) -> str:
    """Return whether the queue grows, and to how many; ``-``: nothing waits in this line."""
    last = points[-1].waiting
    if np.isnan(last):
        return "-"
    return f"yes, to {last:,.0f}" if last >= 2 and slope(points, waiting_of) > 0.5 else "no"


def doubled(line: Line, base: int, doublings: int, share: float) -> list[Point]:
    """Measure and print the sizes of a line: all in turn, up to three times, within its share of the time."""
    begun = time.process_time()
    runs: list[Run] = []
    spent: list[float] = []
    waiting: list[float] = []
    units = [yardstick()]
    stopped = ""
    for double in range(doublings + 1):
        before = time.process_time()
        runs.append(line.make(base << double))
        found, seconds = timed(runs[-1])
        spent.append(seconds)
        waiting.append(line.waiting(found) if line.waiting else float("nan"))
        units.append(yardstick())
        steepness = max(2.0, seconds / spent[-2] if double else 2.0)
        coming, left = (time.process_time() - before) * steepness, share - (time.process_time() - begun)
        if double < doublings and coming > left:
            stopped = f"stopped: {coming:.1f} s more for the next size, {left:.1f} s are left"
            break
    for _ in range(2):
        if time.process_time() - begun + sum(spent) > share:
            break
        spent = [min(before, timed(run)[1]) for before, run in zip(spent, runs, strict=True)]
        units.append(yardstick())
    points = [Point(base << i, each / min(units), waiting[i]) for i, each in enumerate(spent)]
    for point in points:
        queue = "" if np.isnan(point.waiting) else f" {point.waiting:10,.1f}"
        print(f"{line.name:36} {point.size:9,} {line.unit:11} {point.cost:9.4f} {point.each:9.1f}{queue}")
    if stopped:
        print(f"{line.name:36} {stopped}")
    print(f"{line.name:36} exponent {slope(points, cost_of):.2f}   queue grows: {grows(points)}", flush=True)
    return points


def timed(run: Run) -> tuple[Any, float]:
    """Return what a run returned, and its CPU seconds."""
    gc.collect()
    begin = time.process_time()
    found = run()
    return found, time.process_time() - begin


def row(line: Line, points: list[Point]) -> str:
    """Return the row of a line in a Markdown table."""
    sizes = f"{points[0].size:,} to {points[-1].size:,} {line.unit}"
    costs = f"{points[0].each:.1f} | {points[-1].each:.1f} | {slope(points, cost_of):.2f}"
    return f"| {line.name} | {sizes} | {points[-1].cost:.2g} | {costs} | {grows(points)} |"


# ---------------------------------------------------------------------- work


def log(count: int, load: float, *, widest: int = 6) -> Workload:
    """Return jobs of up to ``2 ** widest`` processors that load 256 so much; each log begins as a shorter one does."""
    gaps, wide, run, factor, user = (np.random.default_rng([1, stream]) for stream in range(5))
    widths = 2 ** wide.integers(0, widest + 1, count)
    runs = np.minimum(np.exp(run.normal(7.0, 1.2, count)), 86_400.0)
    arrivals = np.cumsum(gaps.exponential(1.0, count))
    work = float(widths @ runs)
    return Workload(
        {
            "submit": arrivals * (work / PROCESSORS / load / arrivals[-1]),
            "run": runs,
            "requested": np.ceil(runs * factor.uniform(1, 4, count) / 60) * 60,
            "processors": widths,
            "user": user.integers(1, 41, count),
        }
    )


def queue(result: Any) -> float:
    """Return the mean number of waiting jobs while jobs arrive."""
    jobs = result.jobs
    last = jobs["submit"].max()
    return float(np.nansum(np.minimum(jobs["start"], last) - jobs["submit"]) / last)


def simulated(given: Any, work: Any, policy: str, **options: Any) -> Run:
    return lambda: simulate(given, work, policy, **options)


def under(policy: str, load: float) -> Callable[[int], Run]:
    return lambda count: simulated(PROCESSORS, log(count, load), policy)


# ---------------------------------------------------------------------- cases


def batch() -> Iterator[Line]:
    """EASY on counted processors, and the jobs from a chunked log with the record streamed to disk."""
    for load in LOADS:
        yield Line(f"batch/easy/{load}", "jobs", 8_000, under("easy", load), queue)
    yield Line("batch/streamed/0.8", "jobs", 4_000, streamed)


def streamed(count: int) -> Run:
    spec = grid.grid(1, cores=256)
    jobs = grid.in_chunks(count, spec, load=0.8, data=False)

    def run() -> None:
        with TemporaryDirectory() as folder:
            simulate(256, jobs, "easy", stream=Path(folder, "jobs.db"))

    return run


SLOW = {"conservative-keep": 250, "conservative": 250, "window": 250, "portfolio": 50, "multifactor": 500, "slurm": 125}
"""Jobs of the smallest log, where they are fewer than 1,000."""


def policies() -> Iterator[Line]:
    """Every registered batch policy, without parameters."""
    for name in (*policy_names("jobs"), "wfp+easy", "sjf+conservative"):
        base = SLOW.get(name.rpartition("+")[2], 1_000)
        for load in LOADS:
            yield Line(f"policies/{name}/{load}", "jobs", base, under(name, load), queue)


def on_nodes() -> Iterator[Line]:
    """Identified nodes with cores, memory and GPUs: jobs doubled; nodes and jobs doubled."""

    def jobs(policy: str, load: float) -> Callable[[int], Run]:
        return lambda count: simulated(
            nodes.machine(100), nodes.mixed_jobs(count, 100, load, random_memory=False), policy
        )

    for policy, base in (("easy", 500), ("conservative", 125)):
        for load in LOADS:
            yield Line(f"nodes/{policy}/{load}", "jobs", base, jobs(policy, load), queue)
    yield Line("nodes/easy/nodes-doubled", "nodes", 100, larger, queue)


def larger(count: int) -> Run:
    """Return the run of five jobs for each node."""
    return simulated(nodes.machine(count), nodes.mixed_jobs(5 * count, count, 0.8, random_memory=False), "easy")


def partitions() -> Iterator[Line]:
    """Four partitions; each job names one, two or all of them."""

    def jobs(load: float) -> Callable[[int], Run]:
        def make(count: int) -> Run:
            spec = ClusterSpec(partitions=[PartitionSpec(name=name, processors=64) for name in "abcd"])
            names = np.random.default_rng(2).choice(["a", "b", "c", "d", "a,b", "c,d", "any"], count)
            return simulated(spec, log(count, load, widest=4).replace(partition=names), "easy")

        return make

    for load in LOADS:
        yield Line(f"partitions/easy/{load}", "jobs", 1_000, jobs(load), queue)


def brokers() -> Iterator[Line]:
    """Four clusters below a broker: jobs doubled."""
    spec = BrokerSpec(places={f"c{i}": ClusterSpec.simple(64) for i in range(4)})

    def jobs(broker: str, load: float) -> Callable[[int], Run]:
        return lambda count: simulated(spec, log(count, load, widest=4), broker, policies="easy")

    for broker, base in (("least-loaded", 2_000), ("earliest-finish", 1_000), ("sgs-t", 500)):
        for load in LOADS:
            yield Line(f"brokers/{broker}/{load}", "jobs", base, jobs(broker, load), queue)


def grids() -> Iterator[Line]:
    """Sites and their jobs doubled; jobs doubled on 50 sites; jobs with files over the links of a grid in tiers."""

    def sites(broker: str) -> Callable[[int], Run]:
        def make(count: int) -> Run:
            spec = grid.grid(count, cores=64)
            return simulated(spec, grid.workload(40 * count, spec, load=0.8), broker)

        return make

    def jobs(broker: str, load: float) -> Callable[[int], Run]:
        spec = grid.grid(50, cores=64)
        return lambda count: simulated(spec, grid.workload(count, spec, load=load), broker)

    for broker in ("least-loaded", "least-loaded(jobs)", "random", "shares", "earliest-finish", "panda"):
        yield Line(f"grids/sites-doubled/{broker}", "sites", 12, sites(broker), queue)
    for broker in ("round-robin", "least-loaded", "earliest-finish", "panda"):
        yield Line(f"grids/jobs-doubled/{broker}", "jobs", 1_000, jobs(broker, 0.8), queue)
    yield Line("grids/files/jobs-doubled", "jobs", 500, lambda count: with_files(30, count))
    yield Line("grids/files/sites-doubled", "sites", 15, lambda count: with_files(count, 40 * count))


def with_files(sites: int, jobs: int) -> Run:
    """Return the run of jobs with files; the load of the grid is the same for all sizes."""
    spec = tiered_grid(sites, files=1000, seed=1)
    work = grid_jobs(spec, jobs, span=1.2e4 * jobs / sum(site.capacity for site in spec.sites), seed=2)
    return simulated(spec, work, "data-locality")


def links() -> Iterator[Line]:
    """Transfers one after the other over a star of 50 links; transfers that all start at once."""
    yield Line("links/star/0.5", "transfers", 2_000, star)
    yield Line("links/one-link-at-once", "transfers", 2_000, shared)
    yield Line("links/crossing-at-once", "transfers", 250, crossing)


def star(count: int) -> Run:
    specs = [LinkSpec(name=f"link{i}", bandwidth=1.25e9, latency=1e-3) for i in range(50)]
    rng = np.random.default_rng(1)
    one = rng.integers(50, size=count)
    other = (one + rng.integers(1, 50, size=count)) % 50
    routes = [(f"link{a}", f"link{b}") for a, b in zip(one, other, strict=True)]
    gaps, sizes = rng.exponential(0.032, count).tolist(), rng.exponential(0.5e9, count).tolist()
    plan = list(zip(gaps, sizes, routes, strict=True))
    return lambda: network.drive(Network(Environment(), specs), plan)


def shared(count: int) -> Run:
    return lambda: network.at_once(count)


def crossing(count: int) -> Run:
    """Return the run of transfers between random pairs of 20 links that all start at once."""
    specs = [LinkSpec(name=f"link{i}", bandwidth=1.25e9) for i in range(20)]
    rng = np.random.default_rng(4)
    pairs = [tuple(f"link{k}" for k in rng.choice(20, 2, replace=False)) for _ in range(count)]
    plan = [(0.0, size, route) for size, route in zip(rng.exponential(1e8, count).tolist(), pairs, strict=True)]
    return lambda: network.drive(Network(Environment(), specs), plan)


def machines() -> Iterator[Line]:
    """A workflow in layers of 32 tasks with up to four parents each, planned and online; queries without order."""

    def flow(policy: str) -> Callable[[int], Run]:
        def make(count: int) -> Run:
            fat = float(np.log(32) / np.log(count))
            work = layered_with_costs(count, fat=fat, density=0.1, objects=1, rng=np.random.default_rng(1))
            return simulated(many_processors(), work, policy)

        return make

    def queries(policy: str) -> Callable[[int], Run]:
        def make(count: int) -> Run:
            run = np.random.default_rng(1).uniform(10, 500, count).tolist()
            return simulated(many_processors(), TaskSet(run, name="queries"), policy)

        return make

    for policy in ("heft", "cpop", "peft", "heft-setup", "hrr", "earliest-finish", "min-min"):
        yield Line(f"machines/workflow/{policy}", "tasks", 500, flow(policy))
    for policy in ("hrr", "earliest-finish"):
        yield Line(f"machines/independent/{policy}", "tasks", 1_000, queries(policy))


def malleable() -> Iterator[Line]:
    """Half of the jobs malleable, under each policy that resizes them."""

    def jobs(policy: str, load: float) -> Callable[[int], Run]:
        def make(count: int) -> Run:
            return simulated(PROCESSORS, make_malleable(log(count, load), 0.5, processors=PROCESSORS), policy)

        return make

    for policy in ("keep-preferred", "shrink-to-start", "equal-shares"):
        for load in LOADS:
            yield Line(f"malleable/{policy}/{load}", "jobs", 500, jobs(policy, load), queue)


def whatifs() -> Iterator[Line]:
    """Questions about one snapshot; the future of a longer and longer queue."""
    snapshot = whatif.busy_cluster(50, 100)

    def questions(count: int) -> Run:
        return lambda: what_if(snapshot, {str(number): "easy" for number in range(count)})

    def arriving(_rng: np.random.Generator) -> Workload:
        return log(50, 0.8).replace(job=np.arange(1_000, 1_050))

    def samples(count: int) -> Run:
        return lambda: what_if(snapshot, ["easy"], samples=count, arrivals=arriving)

    def future(policy: str) -> Callable[[int], Run]:
        def make(count: int) -> Run:
            seen = whatif.busy_cluster(100, count).expected()

            def run() -> int:
                with quiet_garbage_collector():
                    predict(seen, policy)
                return count

            return run

        return make

    yield Line("whatif/questions", "questions", 10, questions)
    yield Line("whatif/samples", "samples", 10, samples)
    for policy, base in (("easy", 500), ("wfp+easy", 500), ("conservative", 125)):
        yield Line(f"whatif/queue-doubled/{policy}", "waiting", base, future(policy), float)


def snapshots() -> Iterator[Line]:
    """Capture, JSON and continuation of a longer and longer queue; a log that is cut ten times."""

    def held(count: int) -> Any:
        simulation = start(PROCESSORS, log(count, 0.8).replace(submit=np.zeros(count)), "easy")
        simulation.run(until=1)
        return simulation

    def capture(count: int) -> Run:
        return held(count).snapshot

    def text(count: int) -> Run:
        snapshot = held(count).snapshot()
        return lambda: Snapshot.from_json(snapshot.to_json())

    def restored(count: int) -> Run:
        snapshot = held(count).snapshot()
        return lambda: start(snapshot).run(until=2)

    def cut(count: int) -> Run:
        jobs = log(count, 0.8)
        instants = np.linspace(0, jobs["submit"][-1], 12)[1:-1].tolist()

        def run() -> Any:
            simulation = start(PROCESSORS, jobs, "easy")
            for instant in instants:
                simulation = start(simulation.run(until=instant).snapshot())
            return simulation.run().result()

        return run

    yield Line("snapshots/capture", "jobs held", 2_000, capture)
    yield Line("snapshots/json", "jobs held", 500, text)
    yield Line("snapshots/continue", "jobs held", 2_000, restored)
    yield Line("snapshots/log-cut-ten-times", "jobs", 500, cut)


def twins() -> Iterator[Line]:
    """Events of a mirror of 1,500 jobs, with a snapshot after each hundred; a log that a twin advises."""
    import twin_mirror

    from simmodel_site.twin import replay_log

    def mirrored(count: int) -> Run:
        plant = twin_mirror.Plant(1_500, nodes=False)

        def run() -> float:
            for number, event in enumerate(plant.events(count)):
                plant.mirror.apply(event)
                if number % 100 == 0:
                    plant.mirror.snapshot()
            return plant.mirror.now

        return run

    def advised(count: int) -> Run:
        return lambda: replay_log(PROCESSORS, log(count, 0.8), "easy", scheduler="easy")

    yield Line("twin/mirror", "events", 6_000, mirrored)
    yield Line("twin/replay", "jobs", 125, advised)


CASES: dict[str, Callable[[], Iterator[Line]]] = {
    "batch": batch,
    "policies": policies,
    "nodes": on_nodes,
    "partitions": partitions,
    "brokers": brokers,
    "grids": grids,
    "links": links,
    "machines": machines,
    "malleable": malleable,
    "whatif": whatifs,
    "snapshots": snapshots,
    "twin": twins,
}


def chosen(wanted: list[str]) -> Iterator[Line]:
    """Yield the lines of the cases, or those whose names begin with what is wanted."""
    for each in wanted or CASES:
        if each.partition("/")[0] not in CASES:
            sys.exit(f"unknown case {each!r}; known cases: {', '.join(CASES)}")
        found = [line for line in CASES[each.partition("/")[0]]() if f"{line.name}/".startswith(f"{each}/")]
        if not found:
            sys.exit(f"no line of {each.partition('/')[0]} begins with {each!r}")
        yield from found


def main(arguments: list[str]) -> None:
    """Measure the lines, and print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--doublings", type=int, help="how often the work is doubled (default: 4; quick: 2)")
    parser.add_argument("--quick", action="store_true", help="a quarter of the work, doubled twice")
    given = parser.parse_args(arguments)
    doublings = given.doublings if given.doublings is not None else (2 if given.quick else 4)
    share, part = (SHARE / 12, 4) if given.quick else (SHARE, 1)
    begin = time.process_time()
    lines = list(chosen(given.cases))
    grid.warm_up()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, y = {min(yardstick() for _ in range(5)):.2f} s")
    print(f"{'line':36} {'size':>9} {'unit':11} {'s/y':>9} {'us/y each':>9} {'waiting':>10}")
    rows = [row(line, doubled(line, max(2, line.base // part), doublings, share)) for line in lines]
    print("\n| line | size | s/y | us/y per unit, first | last | exponent | queue grows |\n" + "|---" * 7 + "|")
    print("\n".join(rows))
    print(f"\n{time.process_time() - begin:.0f} s of CPU time")


if __name__ == "__main__":
    main(sys.argv[1:])
