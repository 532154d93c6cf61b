"""A real Slurm, described: what comes out is what its other commands say."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from simmodel import Job, simulate
from simmodel.cli import main
from simmodel.platform.node_lists import node_names
from simmodel_site.twin.mirror.places import Places
from simmodel_site.twin.slurm.describe import describe_slurm
from tests.site.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require, wait_until

pytestmark = pytest.mark.live

SHARED = """\
PartitionName=debug Nodes=n[1-2] MaxTime=30 PriorityTier=3
PartitionName=batch Nodes=n[1-8] Default=YES MaxTime=1-0 MaxNodes=4 DefaultTime=60
PartitionName=gpu Nodes=g[1-2] MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE"""
GPUS = """\
GresTypes=gpu
Licenses=matlab:3
NodeName=g[1-2] NodeAddr=127.0.0.1 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=64000 Gres=gpu:a100:4"""
FILES = {
    "gres.conf": "NodeName=g[1-2] Name=gpu Type=a100 Count=4\n",
    "topology.conf": "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8],g[1-2]\nSwitchName=top Switches=s[1-2]\n",
}
SETTINGS = {
    "SchedulerType": "sched/backfill",
    "PriorityType": "priority/multifactor",
    "PriorityWeightJobSize": "700",
    "SelectTypeParameters": "CR_Core_Memory",
    "TopologyPlugin": "topology/tree",
}


@pytest.fixture
def reserved(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """The shared cluster with a reservation and a drained node."""
    user = slurm.user.pw_name
    times = ("StartTime=2100-01-01T00:00:00", "Duration=02:00:00")
    slurm.run("scontrol", "create", "reservation", "ReservationName=course", *times, "Nodes=n[3-4]", f"Users={user}")
    slurm.run("scontrol", "update", "NodeName=n9", "State=DRAIN", "Reason=a fan; State=IDLE")
    yield slurm
    slurm.run("scontrol", "update", "NodeName=n9", "State=RESUME")
    slurm.run("scontrol", "delete", "ReservationName=course")


def test_the_cluster_of_32_nodes_comes_out_equal(reserved: SlurmCluster) -> None:
    found = describe_slurm()
    (part,) = found.spec.partitions
    told = [line.split() for line in reserved.run("sinfo", "-h", "-N", "-o", "%N %c %m %G").splitlines()]
    kinds = [kind for kind in part.nodes for _ in range(kind.count)]
    here = {name: (kind.cores, kind.memory, kind.gpus) for name, kind in zip(part.node_names, kinds, strict=True)}
    assert here == {name: (int(cpus), int(size) * 2**20, 0) for name, cpus, size, _ in told}
    assert len(here) == 32
    assert [kind.names for kind in part.nodes] == ["n[1-32]"]
    assert (part.name, part.max_requested, part.max_processors, part.exclusive) == ("batch", None, None, False)
    assert [(each.name, each.amount) for each in found.spec.consumables] == [("fluent", 4), ("matlab", 10)]
    (reservation,) = found.spec.reservations
    assert (reservation.name, reservation.nodes, reservation.users) == (
        "course",
        ("n3", "n4"),
        (reserved.user.pw_name,),
    )
    assert (reservation.start, reservation.end) == (4102444800, 4102452000)
    assert (found.down, found.draining) == ((), ("n9",))
    assert found.nearest == "fcfs"
    assert "backfill=false" in found.policy
    assert found.spec.name == "virtual"
    assert any(str(each).startswith("nodes n9: State=DRAIN+IDLE: a fan; State=IDLE") for each in found.unsupported)
    drawn = Random(3)
    jobs = [Job(id=i, submit=i, nodes=drawn.randint(1, 16), cores_per_node=4, run=50, requested=60) for i in range(100)]
    assert set(simulate(found.spec, jobs, found.policy).jobs["status"].tolist()) == {"completed"}


def test_why_jobs_wait_is_what_slurm_says(
    slurm: SlurmCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "machine.toml").write_text(describe_slurm().toml())
    config = tmp_path / "twin.toml"
    config.write_text('cluster = "virtual"\nplatform = "machine.toml"\npolicy = "fcfs"\n[source]\nkind = "slurm"\n')
    first = slurm.submit("-N32", "--exclusive", seconds=60)
    wait_until(lambda: slurm.states() == {"alloc": slurm.nodes})
    second, held = slurm.submit("-N2", "--exclusive"), slurm.submit("-N1", "--hold")
    said = []
    for job in (second, held):
        assert main(["twin", "explain", str(config), str(job)]) == 0
        said.append(capsys.readouterr().out)
    assert f"job {second} at 20" in said[0]
    assert "8 processors of batch, 0 are free" in said[0]
    assert f"held by: job {first} (128 until 20" in said[0]
    assert "the scheduler says: Resources" in said[0] or "the scheduler says: Priority" in said[0]
    assert "is held by the scheduler; once released, it needs" in said[1]
    assert "the scheduler says: JobHeldUser" in said[1]


def test_partitions_that_share_nodes_gpus_and_switches_come_out_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    require(*PROGRAMS)
    cluster = SlurmCluster(nodes=8, settings=SETTINGS, partitions=SHARED, extra=GPUS, files=FILES)
    try:
        cluster.start_alone()
        monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
        found = describe_slurm()
        rows = [line.split("|") for line in cluster.run("sinfo", "-h", "-o", "%R|%l|%s|%D|%N").splitlines()]
    finally:
        cluster.stop()
    spec, places = found.spec, Places(found.spec)
    for name, _, _, count, nodes in rows:
        partition = spec.partition(places.partition(name))
        assert len(node_names(nodes)) == int(count)
        assert set(node_names(nodes)) <= set(partition.node_names)
    limits = {name: limit for name, limit, *_ in rows}
    assert limits == {"debug": "30:00", "batch": "1-00:00:00", "gpu": "infinite"}
    assert {queue.name: queue.max_requested for queue in spec.queues} == {"debug": 1800, "batch": 86400}
    assert {queue.name: queue.max_processors for queue in spec.queues} == {"debug": None, "batch": 16}
    batch, gpu = spec.partition("batch"), spec.partition("gpu")
    assert batch.node_names == tuple(f"n{i}" for i in range(1, 9))
    assert batch.node_switches == ("s1",) * 4 + ("s2",) * 4
    assert [(kind.names, kind.cores, kind.gpus, kind.memory) for kind in gpu.nodes] == [
        ("g[1-2]", 32, 4, 64000 * 2**20)
    ]
    assert (gpu.max_requested, gpu.exclusive, batch.exclusive) == (None, True, False)
    assert found.nearest == "multifactor(age=0, size=700, fair_share=0)+conservative"
    assert found.policy.startswith("slurm(")
    assert "multifactor=true, weight_size=700" in found.policy
    assert "switches=(" in found.policy
    assert [(each.name, each.amount) for each in spec.consumables] == [("matlab", 3)]
