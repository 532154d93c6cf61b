"""Clusters of Slurm as platforms: what comes out equal, and what is listed as not expressed."""

import gzip
import json
import re
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

from simmodel import InputError, Job, simulate
from simmodel.platform import ClusterSpec, read_toml
from simmodel.platform.node_lists import node_list
from simmodel.scheduling.registry import policy
from simmodel_site.twin import Demand
from simmodel_site.twin.described import Described, Notes
from simmodel_site.twin.mirror.places import Places
from simmodel_site.twin.slurm.describe import described, site_of
from simmodel_site.twin.slurm.jobs import jobs_in, reports_of
from simmodel_site.twin.slurm.policies import policy_of
from simmodel_site.twin.slurm.records import (
    LicenceRecord,
    NodeRecord,
    PartitionRecord,
    QosRecord,
    ReservationRecord,
    Site,
)
from simmodel_site.twin.slurm.scontrol import read_scontrol
from simmodel_site.twin.slurm.values import Gres
from tests.helpers.data_files import data_file
from tests.helpers.examples import up_to
from tests.site.helpers.slurm_texts import TEXTS

RECORDED = ("24.05_0.0.41", "24.11_0.0.42", "25.05_0.0.43", "25.11_0.0.44")


def recorded(release: str, *kinds: str) -> list[Path]:
    return [data_file(f"slurm/slurmrestd_{release}_{kind}.json.gz") for kind in kinds]


def document(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def nodes_of(spec: ClusterSpec, partition: str) -> dict[str, tuple[int, int, float]]:
    """Cores, GPUs and memory of each node of a partition."""
    part = spec.partition(partition)
    each = [(kind.cores, kind.gpus, kind.memory) for kind in part.nodes for _ in range(kind.count)]
    return dict(zip(part.node_names, each, strict=True))


def read_back(found: Described, folder: Path) -> ClusterSpec:
    file = folder / "machine.toml"
    file.write_text(found.toml())
    return read_toml(file)


def small() -> Site:
    site = Site()
    for what, text in TEXTS.items():
        site = site.with_(read_scontrol(text, what, UTC))
    return site


def listed(found: Described) -> list[str]:
    return [str(each) for each in found.unsupported]


# ---------------------------------------------------------------------- recorded answers


@pytest.mark.parametrize("release", RECORDED)
def test_recorded_clusters_come_out_equal(release: str, tmp_path: Path) -> None:
    nodes, partitions = recorded(release, "nodes", "partitions")
    found = described(site_of([nodes, partitions]))
    assert read_back(found, tmp_path) == found.spec
    told = document(nodes)["nodes"]
    for part in document(partitions)["partitions"]:
        name, minutes = part["name"], part["maximums"]["time"]
        spec = found.spec.partition(name)
        here = nodes_of(found.spec, name)
        for node in told:
            if name in node["partitions"]:
                gpus = sum(int(count) for count in re.findall(r"gpu:(?:\w+:)?(\d+)", node["gres"]))
                assert here.pop(node["name"]) == (node["cpus"], gpus, node["real_memory"] * 2**20)
        assert spec.max_requested == (minutes["number"] * 60 if minutes["set"] else None)
        assert spec.max_processors is None
        total = part["nodes"]["total"] + (2 if release == "25.11_0.0.44" and name == "gpu" else 0)
        assert len(spec.node_names) == total
        cpus = dict(item.split("=") for item in part["tres"]["configured"].split(","))["cpu"]
        assert spec.capacity == int(cpus) + (total - part["nodes"]["total"]) * 32
        assert node_list(here) in {"", "cn[101-532]", "gn[01-40]"}  # of pages of the answer that were not recorded
        if here:
            assert any(f"nodes {node_list(here)}: not told" in text for text in listed(found))
    assert set(found.down) == {node["name"] for node in told if "DOWN" in node["state"]}
    assert set(found.draining) == {node["name"] for node in told if "DRAIN" in node["state"]}


def test_the_recorded_reservation_comes_out_equal() -> None:
    nodes, partitions, reservations = recorded("24.05_0.0.41", "nodes", "partitions", "reservations")
    (given,) = document(reservations)["reservations"]
    (found,) = described(site_of([nodes, partitions, reservations])).spec.reservations
    assert (found.name, found.start, found.end) == ("training", 1748250553, 1748336953)
    assert node_list(map(str, found.nodes)) == given["node_list"] == "cn[001-080,101-532]"
    assert len(found.nodes) == given["node_count"]
    assert (found.users, found.partition) == (("bparks",), "batch")
    early = described(site_of([nodes, partitions, reservations]), origin=1748250000.0).spec.reservations
    assert (early[0].start, early[0].end) == (553, 86953)
    late = described(site_of([nodes, partitions, reservations]), origin=1748336953.0)
    assert not late.spec.reservations
    assert any("it is over" in text for text in listed(late))


def test_types_of_gpus_qos_limits_and_states_are_listed() -> None:
    found = described(site_of(recorded("25.11_0.0.44", "nodes", "partitions", "qos")))
    texts = "\n".join(listed(found))
    assert "nodes gpu[1-2]: Gres=gpu:h100:4" in texts
    assert "partition gpu: nodes gpu[3-4] (not in its list, gpu[1-2], but say that they are in it: taken)" in texts
    assert "nodes cn1: State=DRAIN+IDLE: ECC memory error" in texts
    assert "QOS study: MaxTRESPerUser=cpu=128,mem=65536" in texts
    normal, study = found.spec.queues
    assert (normal.name, study.name, study.max_requested, study.max_processors) == ("normal", "study", 28800, 128)
    assert (study.max_running, study.max_running_per_user) == (60, 10)


@pytest.mark.parametrize("release", RECORDED)
def test_recorded_jobs_run_on_the_described_machine(release: str) -> None:
    found = described(site_of(recorded(release, "nodes", "partitions", "qos")))
    (path,) = recorded(release, "jobs")
    reports = [report for job in jobs_in(document(path)) for report in reports_of(job)]
    start = min(report.submit for report in reports)
    jobs = [report.request.job(report.job, report.submit - start) for report in reports]
    fitting = [job for job in jobs if job.processors <= 128]
    result = simulate(found.spec, fitting, found.policy)
    assert result.jobs["status"].tolist() == ["completed"] * len(fitting)


# ---------------------------------------------------------------------- a small cluster, from texts


def test_a_cluster_from_texts() -> None:
    found = described(small(), own_loops=False)
    spec = found.spec
    assert (spec.name, spec.default_partition, spec.source) == ("alps", "batch", "Slurm 22.05.8")
    thin, gpu = 64000 * 2**20, 256000 * 2**20
    assert nodes_of(spec, "batch") == {
        "cn01": (32, 0, thin),
        "cn02": (32, 0, thin),
        "cn03": (32, 0, thin),
        "cn04": (32, 0, thin),
        "cn09": (28, 0, thin - 1000 * 2**20),
    }
    assert nodes_of(spec, "gpu") == {"gpu1": (32, 4, gpu), "gpu2": (32, 4, gpu)}
    assert nodes_of(spec, "viz") == {"viz": (4, 2, 16000 * 2**20)}
    assert [kind.names for kind in spec.partition("batch").nodes] == ["cn[01-03]", "cn04", "cn09"]
    assert spec.partition("batch").node_switches == ("leaf0", "leaf0", "leaf0", "leaf1", "leaf1")
    assert [(part.placement, part.exclusive) for part in spec.partitions] == [
        ("packed", False),
        (None, True),
        ("spread", False),
    ]
    assert [(part.max_requested, part.max_processors) for part in spec.partitions] == [
        (None, None),
        (None, 32),
        (14400, None),
    ]
    batch, debug = spec.queues
    assert (batch.name, batch.partition, batch.max_requested, batch.max_processors) == ("batch", "batch", 86400, 128)
    assert (debug.name, debug.partition, debug.max_requested, debug.priority) == ("debug", "batch", 1800, 2 * 2.0**32)
    assert [(each.name, each.amount) for each in spec.consumables] == [("fluent@server", 4), ("matlab", 10)]
    assert [(each.name, each.partition, each.nodes, each.users) for each in spec.reservations] == [
        ("course", "batch", ("cn03", "cn04"), ("ada", "bob")),
        ("service", "gpu", ("gpu1", "gpu2"), ("root",)),
        ("service@viz", "viz", ("viz",), ("root",)),
    ]
    assert (found.down, found.draining) == (("cn04",), ("cn03",))
    weights = "age=1000, size=500, fair_share=0, max_age=259200, half_life=1209600, small_first=true"
    assert found.policy == f"multifactor({weights})+conservative"
    rule = policy(found.policy)
    assert (rule.name, rule.order.size, rule.order.small_first) == ("multifactor+conservative", 500, True)


@pytest.mark.parametrize(
    "sentence",
    [
        "partition debug: Nodes=cn[01-02] (shares nodes",
        "partition debug: AllowAccounts=staff,ops",
        "partition batch: DefaultTime=01:00:00",
        "partition batch: MaxNodes=4 (as at most 128 processors)",
        "partition gpu: DenyQos=low",
        "partition viz: State=DOWN",
        "partition viz: MaxMemPerCPU=4000",
        "nodes cn[01-04,09]: ThreadsPerCore=2",
        "nodes cn03: State=DRAIN+IDLE: a fan [x] State=IDLE",
        "nodes gpu[1-2]: Gres=shard:16",
        "nodes viz: Gres=gpu:k80:1,gpu:a100:1",
        "nodes cn09: Features=big",
        "reservation lic: Licenses=matlab:5",
        "reservation service: Flags=MAINT",
        "reservation partly: on gpu1 (left out: must be nodes that no other reservation holds",
        "reservation partly: TRES=cpu=4 (it has its nodes whole here, 32 CPUs)",
        "reservation partly: Accounts=-staff",
        "licence matlab: Reserved=5",
        "topology: switches top",
        "jobs: OverTimeLimit=2 min",
        "jobs: EnforcePartLimits=NO",
        "scheduler: PriorityWeightPartition=2000",
        "scheduler: SchedulerParameters bf_interval=20",
    ],
)
def test_what_a_platform_cannot_express_is_listed(sentence: str) -> None:
    assert any(text.startswith(sentence) for text in listed(described(small(), own_loops=False)))


def test_the_platform_is_written_as_toml_with_the_list_as_comments(tmp_path: Path) -> None:
    found = described(small(), own_loops=False)
    assert read_back(found, tmp_path) == found.spec
    comments = [line for line in found.toml().splitlines() if line.startswith("#")]
    assert comments[:2] == [f"# policy: {found.policy}", "# not expressed:"]
    assert comments[2:] == [f"#   {text}" for text in listed(found)]


def test_hostile_texts_stay_inside_their_comments(tmp_path: Path) -> None:
    reason = 'x\n[[partitions]]\rname = "evil"\x1b[2J\u2028"""'
    node = NodeRecord(name="n1", cpus=2, states=frozenset({"DOWN"}), reason=reason)
    found = described(Site(nodes=(node,), partitions=(PartitionRecord(name='b"]\n', nodes="n1"),)))
    assert read_back(found, tmp_path) == found.spec
    assert [part.name for part in found.spec.partitions] == ['b"]\n']
    assert found.toml().isascii() or "\u2028" not in found.toml()
    assert "\x1b" not in found.toml()


def test_generated_jobs_run_on_the_described_cluster() -> None:
    spec = attrs.evolve(described(small(), own_loops=False).spec, reservations=())
    places, drawn = Places(spec), Random(1)
    jobs = []
    for number in range(up_to(300, 60)):
        name = drawn.choice(["batch", "batch", "debug", "gpu", "viz"])
        width = drawn.randint(1, 4 if name == "viz" else 32)
        jobs.append(_job(places, number, name, width, drawn.randint(60, 1700)))
    for rule in ("fcfs", "easy", described(small(), own_loops=False).policy):
        result = simulate(spec, jobs, rule)
        assert result.jobs["status"].tolist() == ["completed"] * len(jobs)


def test_limits_of_partitions_that_share_nodes_hold() -> None:
    spec = described(small(), own_loops=False).spec
    jobs = [_job(Places(spec), number, "debug", 4, seconds) for number, seconds in enumerate((1800, 1801))]
    result = simulate(spec, jobs, "fcfs")
    assert result.jobs["status"].tolist() == ["completed", "rejected"]


def _job(places: Places, number: int, partition: str, width: int, seconds: float) -> Job:
    request = places.request(Demand(processors=width, partition=partition, requested=seconds, queue="normal"))
    if request.queue == "normal":
        request = attrs.evolve(request, queue=None)
    return request.job(number, float(number * 20))


def test_jobs_of_a_higher_tier_go_first_on_shared_nodes() -> None:
    site = Site(
        nodes=(NodeRecord(name="n1", cpus=4),),
        partitions=(
            PartitionRecord(name="batch", nodes="n1", default=True),
            PartitionRecord(name="urgent", nodes="n1", tier=7, max_time=600.0),
        ),
    )
    spec = described(site).spec
    places = Places(spec)
    jobs = [_job(places, 0, "batch", 4, 100), _job(places, 1, "batch", 4, 100), _job(places, 2, "urgent", 4, 100)]
    assert simulate(spec, jobs, "fcfs").jobs["start"].tolist() == [0, 200, 100]


# ---------------------------------------------------------------------- by hand


def hand(*nodes: NodeRecord, **more: Any) -> Site:
    given = nodes or (NodeRecord(name="n1", cpus=4), NodeRecord(name="n2", cpus=4))
    names = node_list(node.name for node in given)
    return Site(nodes=given, **{"partitions": (PartitionRecord(name="batch", nodes=names),), **more})


def test_partitions_with_the_same_nodes_are_queues_and_nothing_is_lost() -> None:
    parts = tuple(PartitionRecord(name=name, nodes="n[1-2]") for name in ("short", "long"))
    found = described(hand(partitions=parts))
    assert [part.name for part in found.spec.partitions] == ["short"]
    assert [(queue.name, queue.partition) for queue in found.spec.queues] == [("short", "short"), ("long", "short")]
    assert not any("shares nodes" in text for text in listed(found))


def test_partitions_that_share_nodes_through_a_third_are_one() -> None:
    nodes = tuple(NodeRecord(name=f"n{i}", cpus=1) for i in range(1, 6))
    lists = {"a": "n[1-2]", "b": "n[4-5]", "c": "n[2-4]"}
    found = described(hand(*nodes, partitions=tuple(PartitionRecord(name=n, nodes=t) for n, t in lists.items())))
    assert [(part.name, part.capacity) for part in found.spec.partitions] == [("c", 5)]
    assert {queue.name for queue in found.spec.queues} == {"a", "b", "c"}


def test_nodes_of_lower_weight_are_first() -> None:
    nodes = (NodeRecord(name="n1", cpus=1, weight=9), NodeRecord(name="n2", cpus=1), NodeRecord(name="n3", cpus=1))
    assert described(hand(*nodes)).spec.partitions[0].node_names == ("n2", "n3", "n1")


def test_nodes_that_are_not_told_are_inferred_or_left_out() -> None:
    node = NodeRecord(name="n1", cpus=4, memory=8.0)
    even = PartitionRecord(name="b", nodes="n[1-3]", resources={"cpu": 20, "mem": 40.0, "node": 3})
    assert nodes_of(described(hand(node, partitions=(even,))).spec, "b") == {
        "n1": (4, 0, 8),
        "n2": (8, 0, 16),
        "n3": (8, 0, 16),
    }
    odd = attrs.evolve(even, resources={"cpu": 21, "mem": 40.0, "node": 3})
    found = described(hand(node, partitions=(odd,)))
    assert list(nodes_of(found.spec, "b")) == ["n1"]
    assert any(text.startswith("nodes n[2-3]: not told (left out") for text in listed(found))
    empty = PartitionRecord(name="c", nodes="(null)")
    found = described(hand(node, NodeRecord(name="spare", cpus=1), partitions=(odd, empty)))
    assert [part.name for part in found.spec.partitions] == ["b"]
    assert any(text.startswith("partition c: Nodes=(null) (left out") for text in listed(found))
    assert any(text.startswith("nodes spare: in no partition") for text in listed(found))


def test_reservations_of_unknown_nodes_and_names_of_partitions() -> None:
    given = (
        ReservationRecord(name="batch", start=10.0, end=20.0, nodes="n1", users=("-eve",)),
        ReservationRecord(name="x", start=10.0, end=20.0, nodes="n[2-3]"),
        ReservationRecord(name="y", start=10.0, end=20.0, nodes="z1"),
    )
    found = described(hand(reservations=given))
    assert [(each.name, each.nodes, each.users) for each in found.spec.reservations] == [
        ("batch@batch", ("n1",), ()),
        ("x", ("n2",), ()),
    ]
    texts = listed(found)
    assert any(text.startswith("reservation batch: Users=-eve") for text in texts)
    assert any(text.startswith("reservation x: nodes n3 (left out") for text in texts)
    assert any(text.startswith("reservation y: Nodes=z1 (left out") for text in texts)


def test_preemption_between_qos() -> None:
    qos = (
        QosRecord(name="high", preempts=("low", "firm")),
        QosRecord(name="low", preempt_mode="REQUEUE"),
        QosRecord(name="firm", preempt_mode="CANCEL", max_running=0),
    )
    found = described(hand(qos=qos))
    high, low, firm = found.spec.queues
    assert (high.preempts, low.preemptible, firm.preemptible) == (("low",), "requeue", None)
    assert any(text.startswith("QOS firm: PreemptMode=CANCEL (its jobs are not preempted)") for text in listed(found))
    assert any(text.startswith("QOS firm: max_running=0") for text in listed(found))
    usual = described(hand(qos=qos, settings={"PreemptMode": "SUSPEND,GANG"})).spec.queues[1]
    assert usual.preemptible == "requeue"


def test_qos_give_no_queues_where_partitions_do() -> None:
    parts = tuple(PartitionRecord(name=name, nodes="n[1-2]") for name in ("short", "long"))
    found = described(hand(partitions=parts, qos=(QosRecord(name="q", max_running=3),)))
    assert [queue.name for queue in found.spec.queues] == ["short", "long"]
    assert any(text.startswith("QOS q: max_running=3") for text in listed(found))


@pytest.mark.parametrize(
    ("settings", "name", "notes"),
    [
        (None, "conservative", 1),
        ({"SchedulerType": "sched/builtin", "PriorityType": "priority/basic"}, "fcfs", 0),
        ({"SchedulerType": "sched/backfill", "PriorityType": "priority/basic"}, "conservative", 1),
        (
            {"SchedulerType": "sched/builtin", "PriorityType": "priority/multifactor", "PriorityWeightAge": "0"},
            "fcfs",
            0,
        ),
        (
            {
                "SchedulerType": "sched/builtin",
                "PriorityType": "priority/multifactor",
                "PriorityWeightFairShare": "100000",
                "PriorityDecayHalfLife": "1-00:00:00",
                "PriorityFlags": "NO_FAIR_TREE",
            },
            "multifactor(age=0, size=0, fair_share=100000, half_life=86400)",
            1,
        ),
        ({"SchedulerType": "sched/mine", "PriorityType": "priority/mine"}, "conservative", 3),
    ],
)
def test_policies(settings: dict[str, str] | None, name: str, notes: int) -> None:
    found = Notes()
    assert policy_of(settings, found) == name
    assert len(list(found)) == notes
    policy(name)


def test_whole_nodes_and_endless_limits() -> None:
    found = described(hand(settings={"SelectType": "select/linear", "OverTimeLimit": "UNLIMITED"}))
    assert found.spec.partitions[0].exclusive
    assert found.options.overrun == "continue"
    assert "# option: overrun = continue" in found.toml()


def test_licences_of_none_are_listed() -> None:
    found = described(hand(licences=(LicenceRecord(name="a", total=0), LicenceRecord(name="b", total=2))))
    assert [each.name for each in found.spec.consumables] == ["b"]
    assert any(text.startswith("licence a: Total=0") for text in listed(found))


def test_gpus_and_other_resources_of_nodes() -> None:
    node = NodeRecord(name="n1", cpus=4, gres=(Gres("gpu", 2), Gres("gpu", 1, "a"), Gres("mps", 100)))
    assert described(hand(node)).spec.partitions[0].nodes[0].gpus == 3


@pytest.mark.parametrize(
    ("site", "sentence"),
    [
        (Site(), "no nodes: give 'scontrol show node'"),
        (Site(nodes=(NodeRecord(name="n", cpus=1),)), "no partitions: give 'scontrol show partition'"),
        (hand(partitions=(PartitionRecord(name="b"),)), "no partition has known nodes"),
    ],
)
def test_too_little_is_refused(site: Site, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        described(site)


def test_texts_and_answers_of_a_folder(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    assert described(site_of([tmp_path], local=UTC)).spec == described(small(), own_loops=False).spec
    (tmp_path / "again.txt").write_text(TEXTS["node"])
    with pytest.raises(InputError, match=r"nodes are told twice: by .*again.txt, .* and by .*node.txt"):
        site_of([tmp_path], local=UTC)


def test_parts_of_two_clusters_are_refused(tmp_path: Path) -> None:
    for name in ("alps", "andes"):
        document = {"meta": {"plugin": {"data_parser": "v0.0.44"}, "slurm": {"cluster": name}}}
        (tmp_path / f"{name}.json").write_text(json.dumps(document | ({"nodes": []} if name == "alps" else {})))
    with pytest.raises(InputError, match="must tell of the cluster 'alps', got 'andes'"):
        site_of([tmp_path])
