"""Snapshots from the data of a real scheduler."""

from __future__ import annotations

import pytest

from simmodel.foundation.errors import InputError
from simmodel.futures.start_times import predict
from simmodel.platform.cluster import (
    ClusterSpec,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems.cluster.from_data import snapshot_of
from simmodel.work.job import Dependency

NODES = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4, gpus=1)])])


def test_a_snapshot_of_data_has_nodes_limits_and_dependencies():
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=3, cores=4, gpus=1)])],
        queues=[QueueSpec(name="q", max_running=1), QueueSpec(name="w", priority=5)],
    )
    snapshot = snapshot_of(
        spec,
        now=1000,
        running=[
            {"id": 1, "nodes": 1, "cores_per_node": 2, "gpus_per_node": 1, "requested": 60, "queue": "q"}
            | {"started": 990, "on": ["node1"]}
        ],
        waiting=[
            {"id": 2, "processors": 4, "requested": 50, "queue": "q", "submit": 900},
            {"id": 3, "nodes": 2, "cores_per_node": 4, "requested": 50, "queue": "w", "submit": 950},
            {"id": 4, "processors": 1, "requested": 5, "queue": "w", "dependencies": [Dependency(3)], "submit": 960},
        ],
        down={"batch": ["node0"]},
        usage={"ada": 3600.0},
        policy="easy",
    )
    assert [work.id for work in snapshot.held] == [2]
    assert [work.id for work in snapshot.blocked] == [4]
    assert snapshot.places[0].down == ((0, 1),)
    assert ClusterSnapshot.from_json(snapshot.to_json()) == snapshot
    assert snapshot == snapshot.expected()
    # The return of node 0 is unknown; job 3 has the higher priority.
    assert sorted(predict(snapshot).starts) == [(2, "batch", 1100.0), (3, "batch", 1050.0), (4, "batch", 1100.0)]


OF = {"id": 1, "processors": 2, "requested": 60, "started": 90}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"now": "noon"}, r"now: must be an instant \(s\), got 'noon'"),
        ({"platform": "big"}, "platform: must be a ClusterSpec or a number of processors, got 'big'"),
        ({"running": [{**OF, "procs": 3}]}, r"running\[0\].procs: unknown key 'procs'"),
        ({"running": [{"id": 1, "processors": 2, "requested": 60}]}, r"running\[0\].started: missing instant"),
        (
            {"running": [{**OF, "started": 190}]},
            r"running\[0\].started: must be an instant from its submission \(100 s\) to now",
        ),
        (
            {"running": [{**OF, "submit": 95}]},
            r"running\[0\].started: must be an instant from its submission \(95 s\) to now",
        ),
        ({"running": [{**OF, "processors": 2.5}]}, r"running\[0\].processors: must be a whole number, got 2.5"),
        ({"running": [{**OF, "processors": 9}]}, r"running\[0\]: job 1 can never run: 9 processors"),
        ({"running": [{**OF, "processors": 3}, {**OF, "id": 2}]}, r"running\[1\]: <job 2.* does not fit beside"),
        ({"running": [OF, OF]}, r"running\[1\].id: duplicate job 1"),
        ({"running": [{**OF, "requested": None}]}, r"running\[0\].requested: missing requested time"),
        ({"running": [{**OF, "requested": -5}]}, r"running\[0\].requested: must be seconds > 0, got -5"),
        ({"running": [{**OF, "expected_end": 80}]}, r"running\[0\].expected_end: must be an instant >= its start"),
        ({"running": [{**OF, "on": [0]}]}, r"running\[0\].on: must be left out: batch has no identified nodes"),
        ({"running": [7]}, r"running\[0\]: must be a mapping .* got 7"),
        (
            {"running": [OF], "platform": NODES},
            r"running\[0\].on: missing nodes of batch that the job runs on",
        ),
        ({"running": [{**OF, "on": ["node7"]}], "platform": NODES}, r"running\[0\].on: unknown node 'node7' of batch"),
        (
            {"running": [{**OF, "on": [[0, 1]]}], "platform": NODES},
            r"running\[0\].on: must match the request \(2 processors\)",
        ),
        ({"waiting": [7]}, r"waiting\[0\]: must be a Job or a mapping of its fields, got 7"),
        (
            {"waiting": [{"processors": 1, "requested": 5, "submit": 200}]},
            r"waiting\[0\].submit: must be an instant <= now",
        ),
        ({"waiting": [{"processors": 1, "requested": "5"}]}, r"waiting\[0\].requested: must be a number, got '5'"),
        ({"waiting": [{"run": 1, "dependencies": [77]}]}, r"waiting\[0\].dependencies\[0\]: must be another"),
        ({"waiting": [{"run": 1, "user": 1.5}]}, r"waiting\[0\].user: must be a whole number or a name, got 1.5"),
        ({"down": {"moon": 1}}, "down.moon: unknown place 'moon'"),
        ({"down": {"batch": 9}}, "down.batch: must be a number of processors from 0 to 4, got 9"),
        ({"down": {"batch": ["node9"]}, "platform": NODES}, "down.batch: unknown node 'node9' of batch"),
        ({"usage": {"ada": -1}}, "usage.ada: must be processor seconds >= 0, got -1"),
        ({"usage": {"ada": 1}, "half_life": 0}, "half_life: must be seconds > 0, got 0"),
        ({"policy": "esay"}, "unknown policy 'esay'"),
        ({"decide_on": "whim"}, "decide_on: must be 'instant' or 'event', got 'whim'"),
    ],
)
def test_wrong_data_gets_one_sentence(given, sentence):
    given = {"platform": 4, "now": 100, **given}
    with pytest.raises(InputError, match=sentence):
        snapshot_of(given.pop("platform"), **given)


def test_a_snapshot_of_data_has_what_the_description_says_is_away():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        outages=[
            OutageSpec(at=20, until=120, processors=1, kind="drain"),
            OutageSpec(at=130, until=150, processors=4, kind="maintenance"),
        ],
        reservations=[ReservationSpec(name="r", start=50, end=300, processors=1)],
    )
    waiting = [
        {"id": 2, "processors": 3, "requested": 10, "submit": 90},
        {"id": 3, "processors": 1, "requested": 40, "submit": 91, "partition": "r"},
        {"id": 4, "processors": 2, "requested": 25, "submit": 92},
    ]
    running = [{"id": 1, "processors": 1, "requested": 60, "started": 95}]
    snapshot = snapshot_of(spec, now=100, running=running, waiting=waiting, policy="easy")
    assert ClusterSnapshot.from_json(snapshot.to_json()) == snapshot
    # One processor is reserved, one drained until 120, one busy until 155; nothing may run into the maintenance.
    assert predict(snapshot).starts == [(3, "r", 100.0), (2, "batch", 155.0), (4, "batch", 165.0)]
