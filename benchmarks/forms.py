"""What both forms of simmodel cost on the work that its inner loops are compiled for, beside SimGrid.

    python benchmarks/forms.py [ROW ...] [--python PYTHON] [--simgrid PYTHON] [--runs 3] [--limit 600] [--out FILE]

``--python`` is the Python of an environment that holds the compiled form (docs/how_to/compiled.md): its rows are run
interpreted and compiled, in turn; without it, this Python. ``--simgrid`` is one that finds SimGrid's Python. Each run
is a process of its own, and measures the yardstick y, ``sum(i * i for i in range(10**7))``, before and after. The table
has the least of the runs, and whether both forms found the same. A run of more CPU seconds than the limit is stopped.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from peer_runs.running import LONG_RUN, machine, yardstick

from simmodel import Job, Workload, simulate, start
from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.form import FORM
from simmodel.formats.swf import read_swf
from simmodel.platform.network import NetworkSpec
from simmodel.resources.network.network import Network
from simmodel.studies.metascheduling import fitting

HERE = Path(__file__).parent
DATA = Path(os.environ.get("SIMMODEL_DATA", HERE.parents[1] / "shared/data"))
PLAIN = DATA.parent / "tools/plain_easy.py"
FORMS = {"interpreted": {"SIMMODEL_INTERPRET": "1"}, "compiled": {}}

Run = Callable[[], Any]
"""Does the work and returns what it found, as numbers or bytes."""


@dataclass(frozen=True)
class Row:
    """A row of the table: its work, the unit of its figure, and the most that each form may take.

    ``make`` prepares the work; ``per`` is what a figure is divided by; ``over`` names the peer whose CPU seconds the
    figure is in, ``crowd`` how its work is described to it.
    """

    work: str
    unit: str
    most: tuple[float, float]
    make: Callable[[], Run]
    per: float = 1.0
    over: str = ""
    crowd: tuple[str, int, int] | None = None


# ---------------------------------------------------------------------- transfers


def plan(hosts: int, count: int) -> list[tuple[int, int, int]]:
    """Return transfers as (one host, another, bytes)."""
    rng = np.random.default_rng(1)
    one = rng.integers(hosts, size=count)
    other = (one + rng.integers(1, hosts, size=count)) % hosts
    size = rng.exponential(1e9, count).astype(int) + 1
    return list(zip(one.tolist(), other.tolist(), size.tolist(), strict=True))


STAR, TREE = "star:256 bandwidth=1GBps latency=1us", "fat-tree:2;16,16;1,16;1,1 bandwidth=1GBps latency=1us"
PLATFORM = (
    "<platform version='4.1'><cluster id='all' prefix='n' suffix='' radical='0-255' speed='1Gf' bw='1GBps' lat='1us' "
    "sharing_policy='SPLITDUPLEX'{}/></platform>"
)
HEAD = "<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'>"
XML = {STAR: "", TREE: " topology='FAT_TREE' topo_parameters='2;16,16;1,16;1,1'"}


def crowd(topology: str, count: int, at_once: int) -> Run:
    """Return the run of transfers of which always so many are under way."""
    env = Environment()
    network = Network(env, NetworkSpec(topology=topology, model="cm02"))
    left = iter(plan(256, count))
    made = []

    def again(_: Any) -> None:
        for one, other, size in left:
            made.append(network.transfer(size, source=f"n{one}", destination=f"n{other}"))
            made[-1].callbacks.append(again)
            return

    def run() -> Any:
        for _ in range(at_once):
            again(None)
        env.run()
        return [each.end for each in made]

    return run


def star(count: int) -> Run:
    """Return the run of transfers over a loaded star of 50 links, as benchmarks/peers.py has it."""
    from peer_runs import simmodel_star

    folder = tempfile.mkdtemp()
    files = Path(folder, "plan"), Path(folder, "ends")
    write_star(files[0], count)
    return lambda: (simmodel_star.main(str(files[0]), "50", "simgrid", str(files[1])), files[1].read_bytes())[1]


def write_star(path: Path, count: int) -> None:
    rng = np.random.default_rng(1)
    one = rng.integers(50, size=count)
    other = (one + rng.integers(1, 50, size=count)) % 50
    begin, size = rng.exponential(0.02, count).cumsum(), rng.exponential(0.5e9, count).astype(int) + 1
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("transfer", "start", "one", "other", "size"))
        table.writerows(zip(range(count), *(each.tolist() for each in (begin, one, other, size)), strict=True))


def simgrid(python: str, row: Row, folder: Path) -> list[str]:
    """Return the command of SimGrid's Python for the work of a row; it prints the CPU seconds of the run."""
    ends = str(folder / "simgrid-ends")
    if row.crowd is None:
        write_star(folder / "plan", int(row.per))
        time = (
            "import sys, time; sys.path.insert(0, sys.argv[1]); import simgrid_star; begin = time.process_time(); "
            "simgrid_star.main(*sys.argv[2:]); print(time.process_time() - begin)"
        )
        return [python, "-c", time, str(HERE / "peer_runs"), str(folder / "plan"), "50", "simgrid", ends]
    topology, count, at_once = row.crowd
    (folder / "platform.xml").write_text(HEAD + PLATFORM.format(XML[topology]), "utf-8")
    with open(folder / "plan", "w", newline="") as file:
        csv.writer(file).writerows([("one", "other", "size"), *plan(256, count)])
    runner = str(HERE / "peer_runs/simgrid_crowd.py")
    return [python, runner, str(folder / "platform.xml"), str(folder / "plan"), str(at_once), ends]


# ---------------------------------------------------------------------- jobs


def varied(count: int) -> list[Job]:
    """Return jobs whose run times vary much, at load 1.3 of 128 processors; widths 1 to 15."""
    rng = np.random.default_rng(1)
    run, wide, factor = rng.lognormal(6, 1.2, count), rng.integers(1, 16, count), rng.choice([1, 2, 5], count)
    submit = np.cumsum(rng.exponential((run * wide).mean() / 128 / 1.3, count))
    columns = zip(*(each.tolist() for each in (submit, run, run * factor, wide)), strict=True)
    return [
        Job(id=i, submit=at, run=run, requested=asked, processors=wide)
        for i, (at, run, asked, wide) in enumerate(columns)
    ]


def classes(count: int) -> Workload:
    """Return jobs of powers of two that request one of four times and come in bursts, at load 1.3 of 128 processors."""
    rng = np.random.default_rng(2)
    requested = np.array([600.0, 3600.0, 14400.0, 86400.0])[rng.choice(4, count, p=[0.4, 0.3, 0.2, 0.1])]
    run = np.minimum(np.floor(requested * rng.beta(0.6, 1.4, count)) + 1, requested)
    wide = 2 ** rng.choice(7, count, p=[0.3, 0.15, 0.15, 0.15, 0.15, 0.07, 0.03])
    gap = (run * wide).mean() / (128 * 1.3)
    submit = np.floor(np.cumsum(np.where(rng.random(count) < 0.7, 0, rng.exponential(gap / 0.3, count))))
    return Workload({"submit": submit, "run": run, "requested": requested, "processors": wide})


def grown(count: int) -> Workload:
    """Return the jobs of benchmarks/growth.py, at load 1.3 of 256 processors."""
    import growth

    return growth.log(count, 1.3)


def batch(jobs: Callable[[int], Any], count: int, policy: str, processors: int = 128) -> Run:
    work = jobs(count)
    return lambda: simulate(processors, work, policy).jobs["start"]


def swf(name: str, count: int | None = None) -> Workload:
    work = fitting(read_swf(DATA / "swf" / f"{name}.swf.gz"))
    return work if count is None else work.where(np.arange(count))


def logged(name: str, policy: str, processors: int, count: int | None = None) -> Run:
    return batch(lambda _: swf(name, count), 0, policy, processors)


def brokered(first: int, count: int | None) -> Run:
    """Return the run of Theta's log under SGS-T on two clusters that it overloads; its first jobs are not counted."""
    log = swf("theta_2022", count)

    def run() -> Any:
        marks = [process_time()]

        class Handed:
            count = 0

            def job_handed(self, _job: Any, _place: Any) -> None:
                self.count += 1
                if self.count == first:
                    marks[0] = process_time()

        slow = [("c1", 4.0), ("c2", 1.0)]
        simulation = start([4360, 552], log, "sgs-t", policies="easy", slowdowns=dict(slow), observers=[Handed()])
        simulation.run()
        run.spent = process_time() - marks[0]  # type: ignore[attr-defined]
        return simulation.result().jobs["start"]

    return run


def mixed(random_memory: bool) -> Run:
    import nodes

    log = nodes.mixed_jobs(10_000, 1000, 1.1, random_memory=random_memory)
    return lambda: simulate(nodes.machine(1000), log, "easy").jobs["start"]


def slurm_cycle() -> Run:
    import slurm_cycle as cycles

    def run() -> Any:
        run.spent, *found = min(cycles.cycle(1000, 1000, 1) for _ in range(3))  # type: ignore[attr-defined]
        return found

    return run


def sites() -> Run:
    import grid

    spec = grid.grid(300, data=True)
    work = grid.workload(3000, spec, data=True)
    return lambda: simulate(spec, work, "least-loaded").jobs["start"]


def gathered() -> Run:
    import machine as machines

    from simmodel.catalogue import load_platform
    from simmodel.generators.tasksets import database

    spec, work = load_platform("hetsim-fast-setup"), database(500_000, rng=np.random.default_rng(machines.SEED))

    def run() -> Any:
        run.spent, _, found = machines.drive(spec, work, "hrr")  # type: ignore[attr-defined]
        return found.env.now

    return run


def command(log: str, *policy: str) -> Run:
    """Return the run of the command ``simmodel batch``, in a process of its own."""
    words = (sys.executable, "-m", "simmodel", "batch", log, *policy, "-q")
    return lambda: subprocess.run(words, check=True, capture_output=True).stdout


def one_job() -> Run:
    program = "from simmodel import Job, simulate; print(simulate(4, [Job(processors=4, run=10)]).jobs['start'])"
    return lambda: subprocess.run((sys.executable, "-c", program), check=True, capture_output=True).stdout


RICC = "RICC-2010-2"
BLUE = str(DATA / "swf/SDSC-BLUE-2000-4-filtered.swf.gz")
LAWS: dict[str, tuple[Callable[[int], Any], int]] = {"varied": (varied, 128), "classes": (classes, 128)}
LAWS["grown"] = grown, 256
ROWS = {
    f"star-{count}": Row(
        f"{count:,} transfers, loaded star of 50 links", "SimGrid's Python", (2.4, 1.3), partial(star, count), count,
        "simgrid",
    )
    for count in (5_000, 100_000)
}  # fmt: skip
for name, topology, count, at_once, most, over in (
    ("crowd-1000", STAR, 10_000, 1_000, (1.2, 0.7), "simgrid"),
    ("crowd-10000", STAR, 10_000, 10_000, (20, 10), ""),
    ("tree-1000", TREE, 2_000, 1_000, (1.0, 0.7), "simgrid"),
):
    made = topology, count, at_once
    title = f"{count:,} transfers, {topology.split()[0]}, {at_once:,} at once"
    ROWS[name] = Row(title, "SimGrid's Python" if over else "y", most, partial(crowd, *made), 1.0, over, made)
for law, (jobs, processors) in LAWS.items():
    for count, most in ((4_000, (3.0, 1.5)), (8_000, (8.0, 4.0))):
        title = f"conservative, load 1.3, {law}, {count:,} jobs"
        ROWS[f"conservative-{law}-{count}"] = Row(
            title, "y", most, partial(batch, jobs, count, "conservative", processors)
        )
for count, most in ((1_000, (0.9, 0.5)), (4_000, (10.0, 5.0))):
    title = f"conservative-keep, load 1.3, varied, {count:,} jobs"
    ROWS[f"keep-{count}"] = Row(title, "y", most, partial(batch, varied, count, "conservative-keep"))
ROWS |= {
    "ricc": Row("RICC whole, conservative", "y", (600, 250), partial(logged, RICC, "conservative", 8192)),
    "sgs-t": Row(
        "SGS-T on overloaded Theta, jobs 2,000 to 8,000", "ms/y a job", (0.6, 0.4), partial(brokered, 2_000, 8_000), 6.0
    ),
    "sgs-t-whole": Row("SGS-T on overloaded Theta, whole log", "y", (40, 20), partial(brokered, 0, None)),
    "nodes": Row("EASY on 1,000 mixed nodes, few shapes", "ms/y a job", (0.24, 0.18), partial(mixed, False), 10.0),
    "nodes-random": Row("the same, random memory", "ms/y a job", (0.24, 0.18), partial(mixed, True), 10.0),
    "blue": Row(
        "EASY on SDSC-BLUE, the command", "a plain loop", (2.3, 2.1), partial(command, BLUE, "--policy", "easy"), 1.0,
        "plain",
    ),
    "slurm-cycle": Row("one cycle of Slurm's backfill loop with 400 plans", "y", (0.07, 0.04), slurm_cycle),
    "slurm-ricc": Row("Slurm, 10,000 jobs of RICC", "y", (18, 10), partial(logged, RICC, "slurm", 8192, 10_000)),
    "sites": Row("300 sites, 3,000 jobs with files", "y", (2.4, 2.2), sites),
    "gathered": Row("500,000 gathered tasks", "y", (14, 12), gathered),
    "one-job": Row("one job, from a fresh process", "numpy + simpy + attrs", (1.5, 1.5), one_job, 1.0, "imports"),
}  # fmt: skip

BEFORE = {
    "star-5000": "3.2",
    "star-100000": "3.0",
    "crowd-1000": "2.3",
    "crowd-10000": "55.7",
    "tree-1000": "1.4",
    "conservative-varied-4000": "5.5",
    "conservative-varied-8000": "28",
    "keep-1000": "1.25",
    "keep-4000": "20",
    "ricc": "943",
    "sgs-t": "1.3",
    "sgs-t-whole": "75 to 128",
    "nodes": "0.31 to 0.35",
    "blue": "2.3 to 2.85",
    "slurm-cycle": "0.10",
    "slurm-ricc": "27.7",
    "sites": "2.9",
    "gathered": "16",
    "one-job": "1.6",
}
"""What the rows cost on 2026-11-27, before anything was compiled, where it was measured."""


# ---------------------------------------------------------------------- runs


def digest(found: Any) -> str:
    data = found if isinstance(found, bytes) else np.asarray(found, dtype=np.float64).tobytes()
    return hashlib.sha256(data).hexdigest()[:12]


def one(name: str) -> None:
    """Do the work of a row; print its CPU seconds, with those of its processes, the yardstick, and a digest."""
    run = ROWS[name].make()
    before = yardstick()
    with quiet_garbage_collector():
        begin = process_time()
        found = run()
        spent = getattr(run, "spent", process_time() - begin + sum(os.times()[2:4]))
    print(FORM, spent, min(before, yardstick()), digest(found))


def output(words: list[str], limit: float, **more: str) -> str:
    """Return the last line that a command prints, or raise the reason why there is none."""
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **more}, timeout=limit, cwd="/")
    if done.returncode:
        raise OSError((done.stderr.strip().splitlines() or ["failed"])[-1])
    return done.stdout.strip().splitlines()[-1]


def peer(row: Row, args: argparse.Namespace, folder: Path) -> list[str] | None:
    """Return the command that prints the CPU seconds of the peer of a row; ``None`` if it is not here."""
    if row.over == "simgrid":
        return simgrid(args.simgrid, row, folder) if args.simgrid else None
    if row.over == "plain":
        return [args.python, str(PLAIN), BLUE, "1152"] if PLAIN.exists() else None
    if row.over == "imports":
        words = "[sys.executable, '-c', 'import numpy, simpy, attrs']"
        timed = f"import os, subprocess, sys; subprocess.run({words}, check=True); print(sum(os.times()[2:4]))"
        return [args.python, "-c", timed]
    return None


def measured(name: str, args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Yield the cells of a row: its figure in each form, and whether both found the same."""
    row = ROWS[name]
    forms = [FORM] if args.python == sys.executable and FORM == "interpreted" else list(FORMS)
    least: dict[str, tuple[float, float]] = {}  # CPU seconds in y and in s
    found: set[str] = set()
    beside = peer(row, args, folder)
    theirs, failed = float("inf"), ""
    for turn in range(args.runs):
        for form in forms:
            if turn and least[form][1] > 2 * LONG_RUN:
                continue
            try:
                line = output([args.python, str(HERE / "forms.py"), "--one", name], args.limit, **FORMS[form])
            except (subprocess.TimeoutExpired, OSError) as error:
                failed = "over the limit" if isinstance(error, subprocess.TimeoutExpired) else str(error)
                break
            ran, spent, y, digested = line.split()
            assert ran == form, f"{form} was asked for, {ran} ran"
            found.add(digested)
            least[form] = min(least.get(form, (float("inf"),) * 2), (float(spent) / float(y), float(spent)))
            print(f"  {name} {form}: {float(spent):.2f} s, y {float(y):.2f} s", file=sys.stderr, flush=True)
        if failed:
            break
        if beside is not None and (theirs > 2 * LONG_RUN or not turn or theirs < LONG_RUN):
            theirs = min(theirs, float(output(beside, args.limit)))
    for form, most in zip(FORMS, row.most, strict=True):
        if form not in least or (row.over and theirs == float("inf")):
            yield failed or "-"
        else:
            times, spent = least[form]
            figure = spent / theirs if row.over else times / row.per
            yield f"{figure:.3g} (at most {most:g}){f', {times:.3g} y' if row.over else ''}"
    yield "-" if len(forms) < 2 or failed else "yes" if len(found) == 1 else "no"


def table(rows: Iterable[tuple[str, ...]]) -> str:
    head = ("work", "unit", "before", *FORMS, "same")
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("rows", nargs="*", metavar="ROW", help=f"from {', '.join(ROWS)} (default: all but ricc)")
    add("--python", default=sys.executable, help="the Python of the compiled form (default: this one)")
    add("--simgrid", help="a Python that finds SimGrid's")
    add("--runs", type=int, default=3, help="runs of which the least is taken; one if it takes long (default: 3)")
    add("--limit", type=float, default=600, metavar="SECONDS", help="of a run at most (default: 600)")
    add("--out", type=Path, help="the file for the table (default: print it)")
    add("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(args.one)
        return
    for name in args.rows:
        if name not in ROWS:
            parser.error(f"no such row: {name}")
    said = f"{machine()}, Python {sys.version.split()[0]}, {sys.version.partition('[')[2].rstrip(']')}\n\n"
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.rows or [each for each in ROWS if each != "ricc"]:
            lines.append((ROWS[name].work, ROWS[name].unit, BEFORE.get(name, "-"), *measured(name, args, Path(folder))))
            print(" | ".join(lines[-1]), flush=True)
            if args.out:
                args.out.write_text(said + table(lines), "utf-8")
    if not args.out:
        print(said + table(lines))


if __name__ == "__main__":
    main()
