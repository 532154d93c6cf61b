"""What batch simulation costs: CPU microseconds a job on real and generated logs, with a yardstick beside them.

Run ``python benchmarks/batch.py`` for all cases, or name some of them. Real logs are looked for in ``SIMMODEL_DATA`` or
``../shared/data``; a case whose log is not there is left out, and says so. Machines are noisy: compare figures of one
run, against the yardstick.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from simmodel.environment import Environment
from simmodel.formats.swf import read_swf
from simmodel.generators.lublin_feitelson import lublin
from simmodel.platform import BrokerSpec, ClusterSpec
from simmodel.runs.scenario import simulate
from simmodel.systems.cluster.system import Cluster
from simmodel.work.workload import Workload

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def show(name: str, figure: float, unit: str, target: str = "") -> None:
    print(f"{name:62} {figure:9.2f} {unit:14} {target}", flush=True)


def log(name: str) -> Workload | None:
    path = DATA / "swf" / f"{name}.swf.gz"
    if not path.exists():
        print(f"{name}: not in {DATA}, left out")
        return None
    return read_swf(path)


def cpu(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def replay(name: str, target: str, policy: str = "easy") -> None:
    workload = log(name)
    if workload is None:
        return
    best = min(cpu(lambda: simulate(None, workload, policy)) for _ in range(3))
    show(f"{policy}, {name}: run and kept table", best / len(workload) * 1e6, "us CPU a job", target)
    if policy == "easy" and "BLUE" in name:
        path = DATA / "swf" / f"{name}.swf.gz"
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "simmodel", "batch", str(path)], check=True, capture_output=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
        show(f"{policy}, {name}: command, with start-up and metrics", spent / len(workload) * 1e6, "us CPU a job")
        program = (
            "from simmodel.formats.swf import read_swf; from simmodel.runs.scenario import simulate\n"
            f"simulate(None, read_swf({str(path)!r}), 'easy')"
        )
        begin = end
        subprocess.run([sys.executable, "-c", program], check=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
        show(f"{policy}, {name}: with reading the file and start-up", spent / len(workload) * 1e6, "us CPU a job", "15")


def blue() -> None:
    replay("SDSC-BLUE-2000-4-filtered", "at most 12")


def ricc() -> None:
    replay("RICC-2010-2", "at most 18")


def conservative() -> None:
    for policy in ("conservative", "conservative-keep"):
        workload = log("SDSC-SP2-1998-4-filtered")
        if workload is not None:
            show(f"{policy}, SDSC-SP2", cpu(partial(simulate, None, workload, policy)), "s CPU", "under 20")


def million() -> None:
    """Run in a process of its own: its peak memory is what is asked for."""
    program = (
        "import resource, time\n"
        "from simmodel.generators.lublin_feitelson import lublin\n"
        "from simmodel.generators.estimates import with_estimates\n"
        "from simmodel.work.transformations import scale_load\n"
        "from simmodel.runs.scenario import simulate\n"
        "begin = time.process_time()\n"
        "w = scale_load(with_estimates(lublin(1_100_000, processors=1024, seed=1), seed=1), to=0.8, processors=1024)\n"
        "made = time.process_time()\n"
        "r = simulate(1024, w, 'easy')\n"
        "print(made - begin, time.process_time() - made, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    made, ran, memory = map(float, done.stdout.split())
    show("1.1 million generated jobs, easy: making them", made, "s CPU")
    show("1.1 million generated jobs, easy: run and kept table", ran, "s CPU", "under 30")
    show("1.1 million generated jobs, easy: peak memory of all", memory, "MiB", "under 1000")


class Deepest:
    """How many waited at most."""

    def __init__(self) -> None:
        self.waiting = self.most = 0

    def job_submitted(self, _job: object) -> None:
        self.waiting += 1
        self.most = max(self.most, self.waiting)

    def job_started(self, _run: object) -> None:
        self.waiting -= 1


def deep_queue(waiting: int, policy: str) -> float:
    """CPU microseconds a job of a Lublin log whose arrivals are squeezed until so many wait, all requests different."""
    processors = 256
    rng = np.random.default_rng(5)
    workload = lublin(waiting * 11 // 10, processors=processors, seed=5)
    run = workload["run"]
    workload = workload.replace(requested=run * rng.uniform(1, 10, len(run)) + rng.uniform(0, 1, len(run)))
    submit = workload["submit"] - workload["submit"][0]
    workload = workload.replace(submit=submit / submit[-1])
    deepest = Deepest()
    simulate(processors, workload, policy, observers=[deepest])
    assert deepest.most >= 0.98 * waiting, deepest.most
    return cpu(lambda: simulate(processors, workload, policy)) / len(workload) * 1e6


def deep() -> None:
    for policy, target in (
        ("fcfs", "2"),
        ("sjf", "2"),
        ("easy", "2"),
        ("sjf+easy", ""),
        ("wfp", "10"),
        ("wfp+easy", ""),
    ):
        few, many = deep_queue(1_000, policy), deep_queue(100_000, policy)
        show(f"{policy}: 1,000 waiting, all requests differ", few, "us CPU a job")
        show(f"{policy}: 100,000 waiting", many, "us CPU a job")
        show(f"{policy}: ratio", many / few, "times", target and f"at most {target}")


def arrivals() -> None:
    """What an arrival costs that starts at once in front of a long queue, in orders that change with time."""
    for policy in ("wfp+easy", "multifactor+easy"):
        for waiting in (1_000, 4_000, 16_000):
            came = 2_000
            wide = {
                "submit": np.linspace(0, 1, waiting),
                "run": np.full(waiting, 1e6),
                "processors": np.full(waiting, 64),
            }
            small = {"submit": np.linspace(10, 2_010, came), "run": np.full(came, 0.5), "processors": np.ones(came)}
            before = Workload({name: np.append(wide[name], small[name][:1]) for name in wide})
            after = Workload({name: np.append(wide[name], small[name]) for name in wide})
            spent = [min(cpu(partial(_begin, jobs, policy)) for _ in range(2)) for jobs in (before, after)]
            cost = (spent[1] - spent[0]) / came * 1e3
            show(f"{policy}: an arrival with {waiting:,} waiting", cost, "ms CPU", "at most 0.2 /y with 16,000")


def _begin(workload: Workload, policy: str) -> None:
    cluster = Cluster(Environment(), 65, policy)
    cluster.replay(workload)
    cluster.env.run(until=5_000)


def brokers() -> None:
    """What the choice among 200 sites costs, by expected work against in turn."""
    sites, processors = 200, 64
    rng = np.random.default_rng(1)
    spec = BrokerSpec(places={f"site{i}": ClusterSpec.simple(processors) for i in range(sites)})
    for count in (1_000, 20_000):
        run, width = rng.exponential(1000, count) + 1, rng.integers(1, 17, count)
        last = (run * width).sum() / (sites * processors * 1.05)
        submit = np.sort(rng.uniform(0, last, count))
        jobs = Workload({"submit": submit, "run": run, "requested": run * 2, "processors": width})
        spent = {
            policy: min(cpu(partial(simulate, spec, jobs, policy)) for _ in range(3))
            for policy in ("round-robin", "least-loaded")
        }
        show(f"least-loaded, {count:,} jobs over {sites} sites", spent["least-loaded"] / count * 1e6, "us CPU a job")
        show("... against round-robin", spent["least-loaded"] / spent["round-robin"], "times", "at most 2")


CASES = {
    "brokers": brokers,
    "arrivals": arrivals,
    "blue": blue,
    "ricc": ricc,
    "conservative": conservative,
    "million": million,
    "deep": deep,
}

if __name__ == "__main__":
    show("yardstick: sum(i*i for i in range(10_000_000))", yardstick(), "s CPU", "0.5 where the targets were set")
    for name in sys.argv[1:] or CASES:
        CASES[name]()
    show("yardstick again", yardstick(), "s CPU")
