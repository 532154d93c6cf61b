"""What jobs get more than they ask for: cores, sockets and nodes as a whole, by slurm.conf and its partitions.

The placements are those of slurmctld 22.05.8; the live test has it make them again.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.node_lists import node_list
from simmodel.resources.pools.allocation import Allocation, Request
from simmodel.scheduling.registry import policy
from simmodel_site.policy.layout import nodes_of
from simmodel_site.policy.policy import Slurm
from simmodel_site.policy.selection import Roomy, Shape, choose
from simmodel_site.policy.settings import SlurmConf, SlurmPartition, partitions_of
from simmodel_site.twin.slurm.conf import read_conf
from simmodel_site.twin.slurm.describe import described
from tests.site.helpers.slurm_cluster import SlurmCluster, require, running, wait_until

ALL = "PartitionName=batch Nodes=ALL Default=YES"
SHARED = f"""{ALL}
PartitionName=excl Nodes=n[1-4] OverSubscribe=EXCLUSIVE
PartitionName=max2 Nodes=ALL MaxNodes=2
PartitionName=min2 Nodes=ALL MinNodes=2
PartitionName=lln Nodes=ALL LLN=YES
"""
THREADS = "8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2"
SOCKETS = "8 Sockets=2 CoresPerSocket=4"
MB = 2**20

CASES = {
    "whole nodes of a partition that shares them": (
        ("CR_Core_Memory", "DefMemPerCPU=50", "4", SHARED, 6),
        "-n1 -> n1; -p excl -n1 -> n2; -p excl -n2 --mem-per-cpu=60 -> n3; -p excl -N1 -n1 -> n4; -n1 -> n1",
    ),
    "as many whole nodes as the CPUs need": (
        ("CR_Core", "", "4", SHARED, 6),
        "-p excl -n5 -> n[1-2]; -p excl -n4 -> n3",
    ),
    "few nodes": (
        ("CR_Core", "", "4", SHARED, 6),
        "-n3 -> n1; -n3 -> n2; -n1 -w n3 -> n3; -p max2 -n8 -> n[4-5]",
    ),
    "few nodes among partly used ones": (
        ("CR_Core", "", "4", SHARED, 6),
        "-n3 -w n1 -> n1; -n3 -w n3 -> n3; -n3 -w n5 -> n5; -p max2 -n5 -> n[1-2]; -p max2 -n8 -> n[4,6]",
    ),
    "more nodes than are asked for": (
        ("CR_Core", "", "4", SHARED, 6),
        "-p min2 -n1 -> n[1-2]; -p min2 -n3 -> n[1-2]; -p min2 -N3 -n3 -> n[1-3]",
    ),
    "the least loaded nodes for one partition": (
        ("CR_Core", "", "4", SHARED, 4),
        "-n1 -w n1 -> n1; -p lln -n1 -> n2; -n1 -> n1; -p lln -n2 -> n3; -p lln -n1 -> n4; -p lln -n6 -> n[2,4]",
    ),
    "whole cores": (
        ("CR_Core_Memory", "DefMemPerCPU=50", THREADS, ALL, 4),
        "-n1 -> n1; -n1 -> n1; -n3 -> n1; -n5 -> n2; -N2 -n4 -> n[2-3]; -N1 -n3 -> n3",
    ),
    "memory of whole cores": (
        ("CR_Core_Memory", "", THREADS, ALL, 4),
        "-n3 --mem-per-cpu=600 -> n[1-2]; -n2 --mem-per-cpu=900 -> n3; -n1 --mem-per-cpu=600 -> n4",
    ),
    "whole cores of tasks": (
        ("CR_Core", "", THREADS, ALL, 4),
        "-n3 -c3 -> n[1-2]; -n2 -c3 -> n3; -n1 -c3 -> n2; -n1 -c5 -> n4",
    ),
    "one CPU of a whole core": (
        ("CR_CPU", "", THREADS, ALL, 2),
        "-n1 -> n1; -n1 -> n1; -n1 -> n1; -n1 -> n1; -n1 -> n2",
    ),
    "whole sockets": (
        ("CR_Socket", "", SOCKETS, ALL, 6),
        "-n1 -> n1; -n1 -> n1; -n5 -> n2; -N1 -n3 -> n3; -n9 -> n[4-5]; -n2 -> n5; -n1 -> n6",
    ),
    "whole sockets of tasks": (
        ("CR_Socket", "", SOCKETS, ALL, 4),
        "-n2 -c2 -> n1; -n1 -c3 -> n1; -n2 -c3 -> n2; -n3 -c2 -> n3; -n1 -c5 -> n4",
    ),
    "whole sockets, one after another": (
        ("CR_Socket,CR_CORE_DEFAULT_DIST_BLOCK", "", SOCKETS, ALL, 4),
        "-n3 -> n1; -n4 -> n1; -n6 -> n2; -n1 -> n3",
    ),
    "more CPUs for more memory": (
        ("CR_Core_Memory", "DefMemPerCPU=50\nMaxMemPerCPU=100", "8", ALL, 4),
        "-n1 --mem-per-cpu=150 -> n1; -N1 -n1 --mem=250 -> n1; -N1 -n2 --mem=350 -> n2; -N2 -n2 --mem=250 -> n[1-2]; "
        "-n6 -> n3",
    ),
    "memory of a partition": (
        (
            "CR_Core_Memory",
            "DefMemPerCPU=50",
            "8",
            f"{ALL} DefMemPerCPU=900\nPartitionName=b Nodes=ALL DefMemPerNode=300",
            3,
        ),
        "-n2 -> n1; -p b -n1 -> n2; -n1 -> n2; -p b -n1 -> n2",
    ),
}


def conf_of(case: str) -> str:
    (parameters, more, cpus, partitions, count), _ = CASES[case]
    lines = ["ClusterName=c", "SelectType=select/cons_tres", f"SelectTypeParameters={parameters}", more]
    lines += ["SchedulerParameters=batch_sched_delay=0", f"NodeName=n[1-{count}] CPUs={cpus} RealMemory=2000"]
    return "\n".join([*lines, partitions])


def steps_of(case: str) -> list[tuple[str, str]]:
    """Return the options of sbatch of each job, and its nodes."""
    pairs = [step.split(" -> ") for step in CASES[case][1].split(";")]
    return [(options.strip(), nodes.strip()) for options, nodes in pairs]


def job_of(number: int, options: str) -> Job:
    """Return a job with options of sbatch as the accounting has it."""
    told = dict(re.findall(r"(-\w|--[\w-]+)[ =]?(\S+)", options))
    nodes, cpus = int(told.get("-N", 0)), int(told.get("-n", 1)) * int(told.get("-c", 1))
    shape: dict[str, Any] = {"nodes": nodes, "cores_per_node": -(-cpus // nodes)} if nodes else {"processors": cpus}
    words = [f"{name} {told[name]}" for name in ("-c", "-w", "--mem-per-cpu") if name in told]
    return Job(
        id=number,
        submit=0.001 * number,
        run=500,
        requested="10min",
        queue=told.get("-p"),
        memory_per_node=float(told.get("--mem", 0)) * MB,
        options=" ".join(words),
        **shape,
    )


@pytest.mark.parametrize("case", CASES)
def test_jobs_get_the_nodes_that_slurmctld_gave_them(case: str) -> None:
    found = described(read_conf(conf_of(case)), own_loops=True)
    steps = steps_of(case)
    result = simulate(found.spec, [job_of(i, options) for i, (options, _) in enumerate(steps, 1)], found.policy)
    placed = zip(result.runs["job"], result.runs["nodes"], strict=True)
    names = {job: node_list(f"n{node + 1}" for node in nodes) for job, nodes in placed}
    assert names == {i: nodes for i, (_, nodes) in enumerate(steps, 1)}
    assert {*result.runs["start"].round().tolist()} == {2.0}  # all start in the first run of the main loop


@pytest.mark.live
@pytest.mark.parametrize("case", CASES)
def test_slurmctld_gives_them_these_nodes(case: str) -> None:
    require("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "setpriv")
    (parameters, more, cpus, partitions, count), _ = CASES[case]
    settings = {"SelectTypeParameters": parameters}
    cluster = SlurmCluster(nodes=count, cpus=cpus, settings=settings, partitions=partitions, extra=more)
    steps = steps_of(case)
    with running(cluster):
        jobs = [cluster.submit(*options.split(), seconds=60) for options, _ in steps]

        def placed() -> list[str]:
            lines = cluster.run("squeue", "-h", "-a", "-t", "R", "--sort=i", "-o", "%i %N").splitlines()
            return [line.split()[1] for line in lines]

        wait_until(lambda: len(placed()) == len(jobs), 60, lambda: f"all running: {placed()}")
        assert placed() == [nodes for _, nodes in steps]


def of_partition(partition: str, settings: SlurmConf | None = None) -> Slurm:
    return Slurm(settings, partitions_of(partition))


def spec_of(count: int = 4, cores: int = 4, memory: float = 0.0) -> ClusterSpec:
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names=f"n[1-{count}]", cores=cores, memory=memory)])])


@pytest.mark.parametrize(
    ("partition", "job", "reason"),
    [
        ("a:max_nodes=2", {"nodes": 3}, "PartitionNodeLimit"),
        ("a:max_nodes=2", {"processors": 9}, "PartitionNodeLimit"),
        ("a:min_nodes=2", {"nodes": 1}, "PartitionNodeLimit"),
        ("a:max_mem_per_node=2000", {"nodes": 1, "memory_per_node": 2001}, "MaxMemPerLimit"),
        ("a:max_mem_per_node=2000", {"nodes": 1, "cores_per_node": 3, "options": "--mem-per-cpu=1K"}, "MaxMemPerLimit"),
        ("a:max_mem_per_node=2000", {"nodes": 1, "options": "--mem=0"}, "MaxMemPerLimit"),
    ],
)
def test_jobs_beyond_the_limits_of_their_partition_never_start(
    partition: str, job: dict[str, Any], reason: str
) -> None:
    """In Slurm they wait for good; here they are refused at once, and counted."""
    jobs = [Job(id=1, submit=0, run=5, **job), Job(id=2, submit=1, run=5, nodes=2, options="--mem-per-cpu=1K")]
    result = simulate(spec_of(memory=4000), jobs, of_partition(partition, SlurmConf(memory=True)))
    assert result.jobs["status"].tolist() == ["cancelled", "completed"]
    assert f"policy slurm refused 1 job at submission: {reason}" in result.report.notes


def test_a_job_beyond_a_limit_of_one_partition_starts_in_another() -> None:
    jobs = [Job(id=1, submit=0, run=5, nodes=3, options="-p few,any")]
    result = simulate(spec_of(), jobs, of_partition("few:max_nodes=2;any"))
    assert result.jobs["status"].tolist() == ["completed"]


def test_preempted_jobs_that_cannot_be_requeued_are_cancelled() -> None:
    partitions = partitions_of("low:default;high:tier=5")
    jobs = [
        Job(id=1, submit=0, run=500, requested="10min", nodes=4, options="-p low"),
        Job(id=2, submit=20, run=50, requested="10min", nodes=4, options="-p high"),
    ]
    ends = {}
    for text in ("1", "0"):
        settings = SlurmConf.of({"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE", "JobRequeue": text})
        ends[text] = simulate(spec_of(cores=1), jobs, Slurm(settings, partitions)).jobs["status"].tolist()
    assert ends == {"1": ["completed", "completed"], "0": ["cancelled", "completed"]}


def test_what_jobs_hold_beyond_their_requests_is_kept_in_snapshots() -> None:
    found = described(read_conf(conf_of("whole cores").replace(ALL, SHARED)), own_loops=True)
    queues = ("batch", "excl", "min2")
    jobs = [
        Job(id=i, submit=10 * i, run=100 + 7 * i, requested="5min", processors=1 + i % 3, queue=queues[i % 3])
        for i in range(1, 25)
    ]
    whole = simulate(found.spec, jobs, found.policy).runs
    cut = start(found.spec, jobs, found.policy)
    cut.run(until=250)
    rest = start(cut.snapshot())
    rest.run()
    runs = rest.result().runs
    starts = {job: (at, nodes) for job, at, nodes in zip(whole["job"], whole["start"], whole["nodes"], strict=True)}
    assert len(runs) > 10
    for job, at, nodes in zip(runs["job"], runs["start"], runs["nodes"], strict=True):
        assert (at, nodes) == starts[job]


def test_an_allocation_may_have_more_than_a_job_asks_for_but_not_less() -> None:
    rows = [(0, 4, 1, 100), (1, 2, 1, 100)]
    roomy, exact = Roomy.of(rows), Allocation.of(rows)
    for less in (Request(3, nodes=2, cores_per_node=1), Request(5)):
        assert roomy.meets(less)
        assert not exact.meets(less)
    assert not roomy.meets(Request(7))
    assert not roomy.meets(Request(3, nodes=3))
    assert not roomy.meets(Request(2, nodes=2, gpus_per_node=2))
    assert not roomy.meets(Request(6, nodes=2, cores_per_node=3))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(1, 12), st.integers(1, 4))
def test_few_nodes_are_enough_or_none_are_found(free: list[int], wanted: int, most: int) -> None:
    """It never takes more nodes than it may, and finds some if the nodes with most free cores alone are enough."""
    table = np.array([free, [0] * len(free), [0] * len(free)], dtype=float)
    usable = sum(1 << i for i, cores in enumerate(free) if cores)
    if not usable:
        return
    found = choose(table, Shape(Request(wanted), bounds=(1, most)), usable)
    if found is not None:
        assert len(found) <= most
        assert sum(count for _, count in found) == wanted
        assert all(count <= free[node] for node, count in found)
    top = max(free)
    if free.count(top) * top >= wanted and -(-wanted // top) <= most:
        assert found is not None


def test_texts_of_policies_keep_every_byte() -> None:
    """Memory of 3000 MB a CPU, four of which are a node's 12000 MB, was rounded up in the text of the policy."""
    conf = "ClusterName=c\nSelectTypeParameters=CR_Core_Memory\nDefMemPerCPU=3000\nNodeName=n1 CPUs=4 RealMemory=12000"
    found = described(read_conf(f"{conf}\n{ALL} MaxMemPerNode=12001"), own_loops=True)
    assert "def_mem_per_cpu=3145728000," in found.policy
    jobs = [Job(id=i, submit=0, run=60, requested="5min", processors=1) for i in range(4)]
    assert {*simulate(found.spec, jobs, found.policy).runs["start"].round().tolist()} == {4.0}
    own = policy(found.policy)
    assert isinstance(own, Slurm)
    assert own.text == found.policy
    assert own.partitions[0].max_mem_per_node == 12001 * MB


def test_partitions_and_nodes_are_read_from_their_texts() -> None:
    part = SlurmPartition(name="a", exclusive=True, least_loaded=True, min_nodes=2, max_nodes=4, def_mem_per_cpu=5.5)
    assert part.text == "a:exclusive:least_loaded:min_nodes=2:max_nodes=4:def_mem_per_cpu=5.5"
    assert partitions_of(part.text) == (part,)
    text = "n[1-2]:weight=0:threads=2:socket=8:features=big"
    assert [(each.weight, each.threads, each.socket, each.text) for each in nodes_of(text)] == [(0, 2, 8, text)]
    with pytest.raises(InputError, match="threads: must be a whole number >= 0, got 'x'"):
        nodes_of("n1:threads=x")
