"""Specs of clusters refuse what they cannot mean, in one sentence that names the field."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, QueueSpec, ReservationSpec

WHOLE: list[tuple[Any, str, int]] = [
    (NodeSpec, "count", 1),
    (NodeSpec, "cores", 1),
    (NodeSpec, "gpus", 0),
    (PartitionSpec, "processors", 1),
    (partial(PartitionSpec, processors=4), "max_processors", 1),
    (partial(QueueSpec, name="q"), "max_processors", 1),
    (partial(QueueSpec, name="q"), "max_running", 1),
    (partial(QueueSpec, name="q"), "max_running_per_user", 1),
    (partial(QueueSpec, name="q"), "max_waiting_per_user", 1),
    (partial(OutageSpec, at=0), "processors", 1),
    (partial(ReservationSpec, name="r", start=0, end=1), "processors", 1),
]


@pytest.mark.parametrize(("spec", "field", "least"), WHOLE)
@pytest.mark.parametrize("wrong", [1.5, 2.0, True, "2", float("nan"), -1])
def test_counts_are_whole_numbers(spec: Any, field: str, least: int, wrong: Any) -> None:
    with pytest.raises(InputError) as caught:
        spec(**{field: wrong})
    assert str(caught.value) == f"{field}: must be a whole number >= {least}, got {wrong!r}"


@pytest.mark.parametrize(("spec", "field", "least"), WHOLE)
def test_the_least_count_and_those_of_numpy_are_taken(spec: Any, field: str, least: int) -> None:
    for right in (least, np.int64(3)):
        assert getattr(spec(**{field: right}), field) == right


def test_nodes_of_counts_of_numpy_run_jobs() -> None:
    nodes = NodeSpec(count=np.int64(2), cores=np.int64(4), gpus=np.int64(1))
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[nodes])])
    result = simulate(spec, [Job(nodes=2, cores_per_node=4, gpus_per_node=1, run=5.0)], "fcfs")
    assert result.metrics()["makespan"] == 5.0


@pytest.mark.parametrize(
    ("spec", "options", "place", "kind"),
    [
        (PartitionSpec, {"nodes": [NodeSpec(), {"cores": 8}]}, "nodes[1]", "a NodeSpec"),
        (ClusterSpec, {"partitions": [{"processors": 8}]}, "partitions[0]", "a PartitionSpec"),
    ],
)
def test_parts_of_a_spec_are_specs(spec: Any, options: Any, place: str, kind: str) -> None:
    with pytest.raises(InputError, match=f"must be {kind}, got {{'") as caught:
        spec(**options)
    assert caught.value.place == place
