"""Jobs that send over fatpipes: the largest message counts; they end as in SimGrid 3.32, but for what is documented."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.formats.batsim import read_batsim_run
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.topology import read_topology
from simmodel.resources.network.progress import LinkUsage
from simmodel.work.traffic import Traffic
from tests.helpers import simgrid_referee as referee
from tests.oracles.talking_jobs import Talker, fair_bottleneck, play

RECORDED = json.loads((Path(__file__).parent / "simgrid-fatpipes.json").read_text("utf-8"))
"""Drawn platforms and jobs, and their ends (s) in SimGrid (ptask_L07, no window)."""


def uses_of(case: dict[str, Any], folder: Path) -> tuple[dict[str, float], set[str], list[Talker]]:
    """Return the capacities of links and hosts, the fatpipes, and what each job does over all of them."""
    capacities, pipes, talkers = {}, set(), []
    for (hosts, start, flops, _), messages in zip(case["jobs"], referee.routes(case, folder), strict=True):
        uses = dict.fromkeys(hosts, flops) if flops else {}
        capacities |= dict.fromkeys(hosts, 1e9)
        for size, links in messages:
            for link in links:
                capacities[link.name] = link.bandwidth
                if link.sharing == "fatpipe":
                    pipes.add(link.name)
                    uses[link.name] = max(uses.get(link.name, 0.0), size)
                else:
                    uses[link.name] = uses.get(link.name, 0.0) + size
        lag = max((sum(link.latency for link in links) for _, links in messages), default=0.0)
        talkers.append(Talker(start + lag, uses))
    return capacities, pipes, talkers


def _rates(capacities: Any, talkers: list[Talker], pipes: set[str], which: list[int]) -> list[float]:
    return fair_bottleneck(capacities, [talkers[i].uses for i in which], pipes)


def check(cases: list[dict[str, Any]], folder: Path) -> Counter[str]:
    """Hold the ends of jobs against SimGrid's, which a rule explains where jobs share a fatpipe; count the jobs."""
    found: Counter[str] = Counter()
    for case in cases:
        capacities, pipes, talkers = uses_of(case, folder)
        several = {pipe for pipe in pipes if sum(pipe in each.uses for each in talkers) > 1}
        ours, theirs = referee.jobs_here(case, folder), pytest.approx(case["ends"], rel=1e-6)
        if not several:
            assert ours == theirs, case["xml"]
        odd = play(capacities, talkers, partial(_rates, capacities, talkers, several))
        assert odd == theirs, case["xml"]
        found["with a fatpipe" if pipes else "without"] += len(ours)
        found["that share a fatpipe"] += len(ours) * bool(several)
    return found


def test_jobs_over_fatpipes_end_as_in_simgrid(tmp_path: Path) -> None:
    found = check(RECORDED, tmp_path)
    assert found["with a fatpipe"] + found["without"] == 201
    assert found["with a fatpipe"] > 150
    assert 50 < found["that share a fatpipe"] < 150


@pytest.mark.live
@pytest.mark.skipif(not referee.present(), reason="no python3-simgrid")
def test_fresh_jobs_end_as_in_simgrid(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = []
    seed = 10_000
    while sum(len(case["jobs"]) for case in cases) < 200:
        case = referee.jobs(seed)
        seed += 1
        case["ends"] = referee.by_simgrid(case)
        if case["ends"] is not None:
            cases.append(case)
    check(cases, tmp_path)


BATSIM = {
    "nb_res": 4,
    "jobs": [{"id": "a", "subtime": 0, "walltime": -1, "res": 4, "profile": "all"}],
    "profiles": {"all": {"type": "parallel_homogeneous", "cpu": 0, "com": 1e7}},
}


def test_the_largest_message_over_a_fatpipe_counts(tmp_path: Path) -> None:
    """12 messages of 10 MB over a backbone of 10 MB/s: 1 s each, 12 s where they share it. SimGrid: 1.0 s."""
    work = tmp_path / "work.json"
    work.write_text(json.dumps(BATSIM))
    for sharing, end in (("FATPIPE", 1.0), ("SHARED", 12.0)):
        path = tmp_path / f"{sharing}.xml"
        path.write_text(
            '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="0" '
            f'bb_bw="10MBps" bb_lat="0" bb_sharing_policy="{sharing}"/></platform>'
        )
        run = read_batsim_run(work, path)
        assert simulate(run.cluster, run.workload, "fcfs").jobs["end"].tolist() == [end]
        spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n[0-3]")], network=str(path))])
        job = Job(nodes=4, traffic=Traffic("all-to-all", bytes="10MB"))
        assert simulate(spec, [job], "fcfs").jobs["end"].tolist() == [end]
    star = "star:4 bandwidth=10MBps sharing=fatpipe"
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4)], network=star)])
    assert simulate(spec, [Job(nodes=4, traffic=Traffic("all-to-all", bytes="10MB"))], "fcfs").jobs["end"].tolist() == [
        1.0
    ]


@pytest.mark.parametrize(
    "text", ["torus:3,2", "fat-tree:2;2,3;1,2;1,1", "dragonfly:2,1;2,1;2,1;1", "tree:2,3", "star:6"]
)
@pytest.mark.parametrize("sharing", ["shared", "fatpipe", "splitduplex"])
def test_bytes_over_links_are_sums_and_over_fatpipes_the_largest(text: str, sharing: str) -> None:
    """Also where some links are fatpipes and some are not, as loopbacks are."""
    rng = np.random.default_rng(1)
    for more in ("", " loopback=1GBps"):
        usage = LinkUsage(read_topology(f"{text} bandwidth=1GBps sharing={sharing}{more}"))
        hosts = len(usage.topology.hosts)
        for _ in range(10):
            count = int(rng.integers(1, 30))
            pairs = rng.integers(0, hosts, (2, count))
            if not more:
                pairs = pairs[:, pairs[0] != pairs[1]]
            sizes = rng.integers(1, 100, pairs.shape[1]).astype(float)
            expected: dict[str, list[float]] = {}
            for a, b, size in zip(*pairs.tolist(), sizes.tolist(), strict=True):
                for name in usage.topology.route(a, b):
                    expected.setdefault(name, []).append(size)
            links, amounts = usage.of(pairs[0], pairs[1], sizes)
            found = {usage.name(link): amount for link, amount in zip(links.tolist(), amounts.tolist(), strict=True)}
            assert found == {
                name: max(each) if usage.topology.link(name).sharing == "fatpipe" else sum(each)
                for name, each in expected.items()
            }
