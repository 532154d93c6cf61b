"""Drawn platforms and work for SimGrid and for us, and the ends that each finds.

SimGrid is that of the system's Python (Debian: python3-simgrid, 3.32). ``python -m tests.helpers.simgrid_referee``
records the cases that the tests repeat.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import numpy as np

from simmodel import Environment, Job, Network, simulate
from simmodel.formats import read_simgrid
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.network import MODELS
from simmodel.resources.network.transfer import LinkFailed
from simmodel.resources.pools.allocation import Allocation
from simmodel.scheduling.protocol import Start
from simmodel.work.traffic import Traffic
from tests.helpers.paths import TESTS

PYTHON = "/usr/bin/python3"
FLOWS = """
import json, sys
import simgrid
from simgrid import Actor, Comm, Engine, Host, NetworkFailureException, this_actor
flows, ends = json.loads(sys.argv[2]), {}
engine = Engine(["-", "--log=root.thresh:critical", "--cfg=network/optim:Full", *sys.argv[4:]])
engine.load_platform(sys.argv[1])
def send(number, source, destination, size, start):
    this_actor.sleep_until(start)
    transfer = Comm.sendto_init(Host.by_name(source), Host.by_name(destination))
    transfer.set_payload_size(size)
    try:
        transfer.start()
        transfer.wait()
        ends[number] = engine.clock, True
    except NetworkFailureException:
        ends[number] = engine.clock, False
for number, flow in enumerate(flows):
    Actor.create("-", Host.by_name(flow[0]), send, number, *flow)
engine.run()
json.dump([ends.get(number) for number in range(len(flows))], open(sys.argv[3], "w"))
"""
JOBS = """
import json, sys
from simgrid import Actor, Engine, Host, this_actor
jobs, ends = json.loads(sys.argv[2]), {}
engine = Engine(["-", "--log=root.thresh:critical", "--cfg=host/model:ptask_L07", "--cfg=network/TCP-gamma:1e30"])
engine.load_platform(sys.argv[1])
def run(number, hosts, start, flops, amounts):
    this_actor.sleep_until(start)
    this_actor.parallel_execute([Host.by_name(name) for name in hosts], [flops] * len(hosts), sum(amounts, []))
    ends[number] = engine.clock
for number, job in enumerate(jobs):
    Actor.create("-", Host.by_name(job[0][0]), run, number, *job)
engine.run()
json.dump([ends.get(number) for number in range(len(jobs))], open(sys.argv[3], "w"))
"""
CM02 = ("--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:1e30")
MODEL = attrs.evolve(MODELS["simgrid-cm02"], name="cm02 without window", crosstraffic=False, tcp_gamma=float("inf"))
DOCTYPE = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'


@cache
def present() -> bool:
    """Whether SimGrid is there."""
    asked = [PYTHON, "-c", "import simgrid"]
    return Path(PYTHON).exists() and subprocess.run(asked, capture_output=True, check=False).returncode == 0


def written(case: dict[str, Any], folder: Path) -> str:
    """Write the platform of a case and its profiles; return the path."""
    for name, text in case["files"].items():
        (folder / name).write_text(text)
    (folder / "p.xml").write_text(DOCTYPE + case["xml"])
    return str(folder / "p.xml")


def by_simgrid(case: dict[str, Any], options: tuple[str, ...] = CM02) -> list[Any] | None:
    """Return the ends of flows (s, and whether it arrived) or of jobs (s) in SimGrid; ``None``: it crashes."""
    program, work = (FLOWS, case["flows"]) if "flows" in case else (JOBS, case["jobs"])
    with TemporaryDirectory() as folder:
        path, found = written(case, Path(folder)), Path(folder, "ends")
        command = [PYTHON, "-c", program, path, json.dumps(work), str(found), *options]
        subprocess.run(command, capture_output=True, check=False, timeout=60)
        return json.loads(found.read_text()) if found.exists() else None


# ---------------------------------------------------------------------- drawn work


def profile(rng: np.random.Generator, bandwidth: float, state: bool) -> str:
    """Draw a profile of a bandwidth or of a state, which ends up and perhaps repeats."""
    times = np.unique(np.cumsum(rng.uniform(0.2, 4, int(rng.integers(1, 5)))).round(int(rng.integers(1, 4)))).tolist()
    if rng.random() < 0.3:
        times[0] = 0.0
    values = [float(number % 2) for number in range(len(times))]
    if not state:
        values = [bandwidth * float(rng.choice([0.25, 0.5, 1, 2, 4])) for _ in times]
    lines = [f"{at} {value}" for at, value in zip(times, values, strict=True)]
    if rng.random() < 0.5:
        lines.append(f"LOOPAFTER {rng.uniform(0.5, 3):.2f}")
    elif state:
        lines.append(f"{times[-1] + 2:.3f} 1")
    return "\n".join(lines) + "\n"


def flows(seed: int, profiles: bool, pipes: float) -> dict[str, Any]:
    """Draw a platform, with profiles of links or with fatpipes (a share of its links), and flows over it."""
    rng = np.random.default_rng(seed)
    hosts, count = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    latencies = [0, 0, 0.001, 0.05, 0.3]
    common = float(rng.choice(latencies)) if rng.random() < 0.7 else None
    files: dict[str, str] = {}
    lines = [f'<host id="n{i}" speed="1Gf"/>' for i in range(hosts)]
    for number in range(count):
        bandwidth = float(rng.choice([1e6, 2e6, 3.3e6, 5e6, 1e7]))
        kind = str(rng.choice(["", "bandwidth", "state"])) if profiles else ""
        follows = ""
        if kind:
            files[f"l{number}"] = profile(rng, bandwidth, kind == "state")
            follows = f' {kind}_file="l{number}"'
        latency = float(rng.choice(latencies)) if common is None else common
        sharing = "FATPIPE" if rng.random() < pipes else "SHARED"
        values = f'bandwidth="{bandwidth:.0f}Bps" latency="{latency}s" sharing_policy="{sharing}"'
        lines.append(f'<link id="l{number}" {values}{follows}/>')
    for i, j in combinations(range(hosts), 2):
        way = rng.permutation(count)[: rng.integers(1, min(count, 3) + 1)].tolist()
        links = "".join(f'<link_ctn id="l{each}"/>' for each in way)
        lines.append(f'<route src="n{i}" dst="n{j}">{links}</route>')
    sent = []
    for _ in range(int(rng.integers(1, 14))):
        source, destination = rng.permutation(hosts)[:2].tolist()
        size = int(10 ** rng.uniform(4, 8)) if rng.random() > 0.03 else 0
        start = round(float(rng.choice([0, 0, rng.uniform(0, 10), rng.uniform(0, 3)])), 6)
        sent.append([f"n{source}", f"n{destination}", size, start])
    xml = f'<platform version="4.1"><zone id="z" routing="Full">\n{chr(10).join(lines)}\n</zone></platform>'
    return {"xml": xml, "files": files, "flows": sent}


def jobs(seed: int) -> dict[str, Any]:
    """Draw a platform with fatpipes, and jobs that send over it, on disjoint hosts if they compute."""
    rng = np.random.default_rng(seed)
    hosts = int(rng.integers(3, 8))
    loops = bool(rng.integers(2))

    def bandwidth() -> str:
        return f"{rng.choice([10, 50, 100, 125, 333.3])}MBps"

    latency = float(rng.choice([0, 50e-6, 1e-3]))
    if rng.integers(3):
        sharing = rng.choice(["SHARED", "SPLITDUPLEX"])
        backbone = rng.choice(["FATPIPE", "FATPIPE", "SHARED"])
        more = f'bb_bw="{bandwidth()}" bb_lat="{latency}" bb_sharing_policy="{backbone}"'
        more += f' limiter_link="{bandwidth()}"' if rng.random() < 0.3 else ""
        more += f' loopback_bw="{bandwidth()}" loopback_lat="0"' if loops else ""
        inner = (
            f'<cluster id="c" prefix="n" suffix="" radical="0-{hosts - 1}" speed="1Gf" bw="{bandwidth()}" '
            f'lat="{latency}" sharing_policy="{sharing}" {more}/>'
        )
    else:
        loops = False
        count = int(rng.integers(2, 8))
        lines = [f'<host id="n{i}" speed="1Gf"/>' for i in range(hosts)]
        for number in range(count):
            sharing = rng.choice(["FATPIPE", "SHARED"])
            values = f'bandwidth="{bandwidth()}" latency="{latency}" sharing_policy="{sharing}"'
            lines.append(f'<link id="l{number}" {values}/>')
        for i, j in combinations(range(hosts), 2):
            way = rng.permutation(count)[: rng.integers(1, min(count, 4) + 1)].tolist()
            links = "".join(f'<link_ctn id="l{each}"/>' for each in way)
            lines.append(f'<route src="n{i}" dst="n{j}">{links}</route>')
        inner = f'<zone id="z" routing="Full">\n{chr(10).join(lines)}\n</zone>'
    made: list[Any] = []
    apart = bool(rng.integers(2))
    left = rng.permutation(hosts).tolist()
    for _ in range(int(rng.choice([1, 1, 2, 3, 5]))):
        if apart and len(left) < 2:
            break
        width = int(rng.integers(2, (len(left) if apart else hosts) + 1))
        nodes = sorted(left[:width] if apart else rng.permutation(hosts)[:width].tolist())
        left = left[width:]
        amounts = _matrix(rng, width, loops)
        flops = float(rng.integers(1e8, 3e9)) if apart and rng.integers(2) else 0.0
        start = round(float(rng.choice([0, 0, rng.uniform(0, 3)])), 6)
        made.append([[f"n{node}" for node in nodes], start, flops, amounts])
    return {"xml": f'<platform version="4.1">{inner}</platform>', "files": {}, "jobs": made}


def _matrix(rng: np.random.Generator, nodes: int, loops: bool) -> list[list[float]]:
    """Draw the bytes between nodes: of all to all, of a ring or of any; with some to themselves."""
    kind = rng.integers(3)
    even, ring = np.full((nodes, nodes), 1e7), 1e7 * np.roll(np.eye(nodes), 1, axis=1)
    odd = rng.uniform(1e5, 1e8, (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.5)
    found = np.rint([even, ring, odd][kind])
    np.fill_diagonal(found, 0.0)
    if not found.any():
        found[0, 1] = 1e7
    if loops:
        np.fill_diagonal(found, np.rint(rng.uniform(1e6, 1e8, nodes)) * (rng.random(nodes) < 0.3))
    return found.tolist()


# ---------------------------------------------------------------------- here


def flows_here(case: dict[str, Any], folder: Path, bound: bool = True) -> list[tuple[float, bool]]:
    """Return the ends of flows, and whether they arrived; ``bound``: none exceeds the bandwidth of its start."""
    env = Environment()
    network = Network(env, topology=read_simgrid(written(case, folder)).topology, model=MODEL)
    ends: dict[int, tuple[float, bool]] = {}

    def send(number: int, source: str, destination: str, size: int, start: float) -> Any:
        yield env.timeout(start)
        cap = network.way(source, destination).bandwidth if bound else None
        transfer = network.transfer(size, source=source, destination=destination, when_down="fail", rate_cap=cap)
        try:
            yield transfer
            ends[number] = env.now, True
        except LinkFailed:
            ends[number] = env.now, False

    for number, flow in enumerate(case["flows"]):
        env.process(send(number, *flow))
    env.run(until=1e6)
    return [ends[number] for number in range(len(case["flows"]))]


def jobs_here(case: dict[str, Any], folder: Path) -> list[float]:
    """Return the ends of jobs on the hosts of a case."""
    path = written(case, folder)
    names = [host.name for host in read_simgrid(path).hosts]
    place = {name: node for node, name in enumerate(names)}
    where = {number: sorted(place[name] for name in job[0]) for number, job in enumerate(case["jobs"])}
    made = [
        Job(id=number, submit=start, nodes=len(nodes), compute=flops / 1e9, traffic=Traffic(amounts))
        for number, (nodes, start, flops, amounts) in enumerate(case["jobs"])
    ]

    def policy(view: Any) -> Any:
        for job in [job for job in view.waiting if not job.attempts]:
            allocation = Allocation.of([(node, 1, 0, 0) for node in where[job.id]])
            yield Start(job, view.places[0], allocation=allocation)

    nodes = NodeSpec(names=",".join(names), cores=len(made))
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[nodes], network=path)])
    return simulate(spec, made, policy).jobs["end"].tolist()


def routes(case: dict[str, Any], folder: Path) -> list[list[tuple[float, list[Any]]]]:
    """Return the bytes and the specs of the links of each message of each job, or of each flow as one message."""
    topology = read_simgrid(written(case, folder)).topology
    number = {name: i for i, name in enumerate(topology.hosts)}

    def way(source: str, destination: str) -> list[Any]:
        return [topology.link(link) for link in topology.route(number[source], number[destination])]

    if "flows" in case:
        return [[(size, way(source, destination))] for source, destination, size, _ in case["flows"]]
    return [
        [(amounts[i][j], way(a, b)) for i, a in enumerate(names) for j, b in enumerate(names) if amounts[i][j]]
        for names, _, _, amounts in case["jobs"]
    ]


def main() -> None:
    """Record the ends of drawn cases, one JSON file for flows and one for jobs."""
    for path, drawn, least in (
        ("resources/network/simgrid-profiles.json", lambda seed: flows(seed, True, 0.0), 500),
        ("resources/network/simgrid-fatpipes.json", lambda seed: flows(seed, False, 0.5), 800),
        ("systems/cluster/simgrid-fatpipes.json", jobs, 200),
    ):
        cases: list[dict[str, Any]] = []
        seed = count = 0
        while count < least:
            case = drawn(seed)
            seed += 1
            ends = by_simgrid(case)
            if ends is not None and None not in ends:
                cases.append(case | {"ends": ends})
                count += len(ends)
        text = "[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n"
        (TESTS / path).write_text(text)
        print(path, len(cases), "cases,", count, "ends")


if __name__ == "__main__":
    sys.exit(main())
