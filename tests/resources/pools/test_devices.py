"""Devices: shares, types and slices of GPUs, against a brute force over devices and cases worked by hand."""

from collections import Counter
from random import Random

import pytest

from simmodel import Job, simulate, start
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.devices import DeviceSpec
from tests.oracles.devices import DeviceJob, Node, starts_of

POLICIES = ("fcfs", "easy", "conservative", "conservative-keep")


def cluster(*nodes, **options):
    return ClusterSpec(partitions=[PartitionSpec(nodes=nodes, **options)])


def drawn(seed):
    """Draw one to three kinds of nodes with devices of up to two types, and jobs that each could run."""
    rng = Random(seed)
    kinds = []
    for _ in range(rng.randint(1, 3)):
        types = {kind: rng.randint(1, 2) for kind in rng.sample(["A100", "T4"], rng.randint(1, 2))}
        kinds.append((rng.randint(1, 2), rng.randint(2, 6), types if rng.random() < 0.85 else {}))
    nodes = [
        Node(cores, tuple(kind for kind, n in types.items() for _ in range(n)))
        for count, cores, types in kinds
        for _ in range(count)
    ]
    jobs, submit = [], 0
    while len(jobs) < rng.randint(4, 12):
        submit += rng.choice([0, 0, 1, 3])
        run = rng.randint(1, 12)
        share = rng.random() < 0.6
        types = rng.choice([("A100",), ("T4",), ("A100", "T4"), ("A100", "T4")])
        count = 1 if share else rng.choice([0, 1, 1, 2, 3])
        each = rng.choice([100, 250, 333, 400, 500, 600, 750]) if share else 1000
        job = DeviceJob(
            submit, run, run + rng.choice([0, 0, 1, 5]), rng.choice([1, 1, 1, 2]), rng.randint(1, 3), count, each, types
        )
        there = sum(
            node.cores >= job.cores and sum(kind in types for kind in node.devices) >= count for node in nodes
        )
        if there >= job.nodes:
            jobs.append(job)
    return kinds, nodes, jobs


def asked(row, job):
    gpus = job.each / 1000 if job.each < 1000 else job.count
    types = "|".join(job.types) if job.count and len(job.types) == 1 else ""
    return Job(
        id=row,
        submit=job.submit,
        run=job.run,
        requested=job.requested,
        nodes=job.nodes,
        cores_per_node=job.cores,
        gpus_per_node=gpus,
        gpu=types,
    )


def spec_of(kinds):
    return cluster(*(NodeSpec(name=f"k{i}-", count=n, cores=c, gpus=t) for i, (n, c, t) in enumerate(kinds)))


def check_devices(result, nodes):
    """No device is ever held beyond its whole, by a sum of its own."""
    changes = []
    runs = result.runs
    for i in range(len(runs)):
        devices = runs["devices"][i] if "devices" in runs else None
        for node, held in zip(runs["nodes"][i], devices or (), strict=devices is not None):
            for device, thousandths in held:
                changes += [(runs["end"][i], 0, node, device, -thousandths)]
                changes += [(runs["start"][i], 1, node, device, thousandths)]
    used = Counter()
    for _, _, node, device, thousandths in sorted(changes):
        used[node, device] += thousandths
        assert 0 <= used[node, device] <= 1000, (node, device)
        assert device < len(nodes[node].devices)


def compare(seeds):
    for seed in seeds:
        kinds, nodes, jobs = drawn(seed)
        for policy in POLICIES:
            result = simulate(spec_of(kinds), [asked(row, job) for row, job in enumerate(jobs)], policy)
            assert result.jobs["start"].tolist() == starts_of(jobs, nodes, policy), (seed, policy)
            check_devices(result, nodes)


def test_starts_equal_a_brute_force_over_devices():
    compare(range(60))


@pytest.mark.long
def test_starts_equal_a_brute_force_over_devices_on_two_thousand_clusters():
    compare(range(2000))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("nodes", [None, 1])
def test_shares_of_one_device_do_not_start_on_two(policy, nodes):
    jobs = [Job(nodes=nodes, gpus_per_node=0.6, run=100) for _ in range(3)]
    assert simulate(cluster(NodeSpec(cores=8, gpus=2)), jobs, policy).jobs["start"].tolist() == [0, 0, 100]
