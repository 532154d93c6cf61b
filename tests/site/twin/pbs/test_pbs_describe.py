"""Clusters of PBS as platforms: what comes out equal, and what is listed as not expressed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simmodel import InputError
from simmodel.platform import ConsumableSpec, NodeSpec, PartitionSpec, QueueSpec, read_toml
from simmodel_site.twin import Mirror, describe_pbs
from simmodel_site.twin.pbs.describe import TIER, described
from simmodel_site.twin.pbs.source import PbsSource
from tests.site.helpers.pbs_stub import PbsStub


def node(cores: int = 8, **values: Any) -> dict[str, Any]:
    return {"state": "free", "resources_available": {"ncpus": str(cores), "mem": "4gb"}, **values}


def test_the_platform_of_a_server_takes_its_jobs(tmp_path: Path) -> None:
    pbs = PbsStub(tmp_path / "pbs", {"n1": 4, "n2": 4, "big": 16})
    found = describe_pbs(commands=pbs.commands())
    assert found.spec.partitions == (
        PartitionSpec(
            name="batch",
            nodes=[
                NodeSpec(names="n[1-2]", cores=4, memory=16 * 2.0**30),
                NodeSpec(names="big", cores=16, memory=16 * 2.0**30),
            ],
        ),
    )
    assert found.spec.queues == (
        QueueSpec(name="workq", partition="batch", max_requested=86400.0),
        QueueSpec(name="express", partition="batch", max_requested=3600.0, max_processors=4, priority=100 * TIER),
    )
    assert found.spec.consumables == (ConsumableSpec(name="matlab", amount=10.0),)
    assert found.policy == "easy"
    (tmp_path / "machine.toml").write_text(found.toml())
    assert read_toml(tmp_path / "machine.toml") == found.spec
    for _ in range(3):
        pbs.submit(4, 100.0)
    pbs.advance()
    mirror = Mirror(found.spec, "pbs")
    report = PbsSource("pbs", commands=pbs.commands(), clock=lambda: pbs.now).report()
    assert report is not None
    mirror.apply(report)
    assert (len(mirror.snapshot().running), mirror.refused.total()) == (3, 0)


def test_nodes_of_a_queue_are_a_partition_of_their_own() -> None:
    queues = {name: {"queue_type": "Execution"} for name in ("workq", "gpu")} | {"in": {"queue_type": "Route"}}
    server = {"pbs": {"default_queue": "workq"}}
    nodes = {"n1": node(), "g1": node(32, queue="gpu"), "n2": node()}
    found = described({"Server": server, "Queue": queues, "nodes": nodes})
    assert [(part.name, part.node_names) for part in found.spec.partitions] == [
        ("batch", ("n1", "n2")),
        ("gpu", ("g1",)),
    ]
    assert [(queue.name, queue.partition) for queue in found.spec.queues] == [("workq", "batch"), ("gpu", "gpu")]
    assert found.spec.default_partition == "batch"
    assert "queue in: queue_type=Route (left out: jobs have the queue to which they are routed)" in map(
        str, found.unsupported
    )


def test_what_a_platform_does_not_express_is_listed() -> None:
    queue = {
        "started": "False",
        "max_run": "[o:PBS_ALL=9],[u:PBS_GENERIC=2],[u:ada=3]",
        "acl_users": "ada",
        "resources_max": {"mem": "1gb"},
    }
    nodes = {"n1": node(state="offline", comment="fan"), "n2": node(sharing="default_excl"), "n3[0]": node(4)}
    nodes["n2"]["resources_available"]["site"] = "north"
    server = {"pbs": {"job_sort_formula": "ncpus", "backfill_depth": "5"}}
    found = described({"Server": server, "Queue": {"workq": queue}, "nodes": nodes})
    assert {f"{each.where}: {each.what}" for each in found.unsupported} == {
        "nodes n1: state=offline fan",
        "nodes n2: site=north",
        "nodes n2: sharing: exclusive",
        "nodes n3[0]: names with brackets",
        "server: job_sort_formula=ncpus",
        "queue workq: started=False",
        "queue workq: max_run=[o:PBS_ALL=9],[u:PBS_GENERIC=2],[u:ada=3]",
        "queue workq: acl_users=ada",
        "queue workq: resources_max.mem=1gb",
        "scheduler: sched_config is not told",
        "scheduler: backfill_depth=5",
    }
    assert (found.spec.queues[0].max_running, found.spec.queues[0].max_running_per_user) == (9, 2)
    assert (found.policy, found.draining) == ("conservative", ("n1",))
    assert described({"Server": {"pbs": {"backfill_depth": "0"}}, "nodes": nodes}).policy == "fcfs"


def test_files_tell_the_same_and_those_of_others_are_refused(tmp_path: Path) -> None:
    for name, kind in (("a.json", "nodes"), ("b.json", "Queue")):
        (tmp_path / name).write_text(json.dumps({kind: {"n1": node()}}))
    assert [part.node_names for part in describe_pbs([tmp_path]).spec.partitions] == [("n1",)]
    with pytest.raises(InputError, match="nodes is told twice"):
        describe_pbs([tmp_path, tmp_path / "a.json"])
    (tmp_path / "c.json").write_text("{}")
    with pytest.raises(InputError, match="must be an answer of qstat or pbsnodes in JSON"):
        describe_pbs([tmp_path])
    with pytest.raises(InputError, match="no nodes: give the answer of pbsnodes"):
        describe_pbs([tmp_path / "b.json"])
