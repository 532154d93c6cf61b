"""Snapshots as JSON: exact, the same in every process, and with clear errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simmodel.foundation.errors import InputError
from simmodel.platform.cluster import (
    ClusterSpec,
    ConsumableSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.runs.scenario import simulate
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.work.job import Dependency, Job
from tests.helpers.new_process import printed
from tests.helpers.small_snapshots import at


def rich() -> ClusterSnapshot:
    """Return a snapshot with all kinds of contents."""
    spec = ClusterSpec(
        name="rich",
        partitions=[
            PartitionSpec(name="gpu", nodes=[NodeSpec(count=3, cores=4, gpus=1, memory=8e9)]),
            PartitionSpec(name="cpu", processors=6),
        ],
        queues=[QueueSpec(name="q", max_running=2), QueueSpec(name="w", priority=2)],
        consumables=[ConsumableSpec(name="licence", amount=1.0)],
        outages=[OutageSpec(partition="gpu", nodes=["node2"], at=2, until=90)],
        failures=[FailureModel(partition="cpu", mean_time_between_failures=500)],
        reservations=[ReservationSpec(name="r", partition="cpu", processors=2, start=30, end=60)],
    )
    jobs = [
        Job(id="a", nodes=2, cores_per_node=2, gpus_per_node=1, run=20.1, requested=30, queue="q", user="ada"),
        Job(id="b", processors=4, run=40, queue="q", user="bob", partition="cpu", consumables={"licence": 0.3}),
        Job(id="c", processors=2, run=5, queue="q", user="bob", partition="cpu"),
        Job(id="d", processors=6, run=5, queue="w", partition="cpu", priority=-5, cancel=80.5),
        Job(id="e", processors=1, run=5, queue="w", partition="cpu", dependencies=[Dependency("b", "start", 30)]),
        Job(id="f", processors=1, run=5, queue="w", partition="cpu", dependencies=["d"], submit=3),
        Job(id="g", processors=1, run=5, queue="w", partition="r", submit=70),
    ]
    return at(10.25, jobs, spec, "multifactor+easy", name="rich").snapshot()


def test_the_json_of_a_snapshot_is_exact():
    snapshot = rich()
    text = snapshot.to_json()
    assert all(
        getattr(snapshot, name) for name in ("running", "waiting", "held", "blocked", "arrivals", "waits", "usage")
    )
    read = ClusterSnapshot.from_json(text)
    assert read == snapshot
    assert read.to_json() == text
    assert len({snapshot, read, snapshot.expected()}) == 2
    assert read.running[0].held == snapshot.running[0].held
    assert read.running[0].nodes == (0, 1)
    assert json.loads(text, parse_constant=pytest.fail)["now"] == 10.25


def test_numbers_of_numpy_are_numbers():
    job = Job(id=np.int64(7), processors=int(np.int64(2)), run=np.float64(5.5), user=np.int64(3))
    snapshot = at(2, [job]).snapshot()
    assert ClusterSnapshot.from_json(snapshot.to_json()) == snapshot
    assert simulate(snapshot).jobs["end"].tolist() == [5.5]


def test_a_snapshot_is_written_to_a_file_and_read_back(tmp_path):
    snapshot = rich()
    for name in ("s.json", "s.json.gz"):
        snapshot.to_json(tmp_path / name)
        assert ClusterSnapshot.from_json(tmp_path / name) == snapshot
        assert ClusterSnapshot.from_json(str(tmp_path / name)) == snapshot


CODE = f"from {__name__} import rich; print(rich().digest, rich().expected().digest)"


def test_the_digest_is_the_same_in_every_process():
    found = {printed(CODE, seed) for seed in ("1", "77")}
    assert found == {f"{rich().digest} {rich().expected().digest}\n"}


WRONG = {
    "schema": (2, "schema: must be 1, got 2"),
    "format": ("my snapshot", "format: must be 'simmodel snapshot', got 'my snapshot'"),
    "system": ("planet", "system: unknown system 'planet'; known systems: cluster, "),
    "now": ("noon", r"now: must be an instant \(s\), got 'noon'"),
    "seed": (-1, "seed: must be a whole number >= 0, got -1"),
    "colour": ("red", "colour: unknown key 'colour'"),
    "platform": ({"kind": "cluster", "partitions": [{"processors": 0}]}, r"platform.partitions\[0\].processors: "),
    "options.estimates": ("guess", "options.estimates: unknown estimate 'guess'; known estimates: requested, "),
    "policy.due": ("yes", "policy.due: must be true or false, got 'yes'"),
    "running.started": ([1.0], "running.started: must have 2 values, got 1"),
    "running.started.0": (11.0, r"running.started\[0\]: must be an instant <= 10.25 s, got 11"),
    "running.submit.0": (0.5, r"running.started\[0\]: must be an instant >= 0.5 s \(the submission\), got 0"),
    "running.end.0": (3.0, r"running.end\[0\]: must be an instant >= 10.25 s, got 3"),
    "running.processors.1": (8, r"running.processors\[1\]: must be at most 6 in total on cpu, got 8"),
    "running.held.0": (None, r"running.held\[0\]: must be nodes of gpu, got None"),
    "waiting.submit.0": (12.0, r"waiting.submit\[0\]: must be an instant <= 10.25 s, got 12"),
    "waiting.requested.0": ("long", r"waiting.requested\[0\]: must be a number >= 0 \(s\), got 'long'"),
    "waiting.number.0": (0, r"waiting.number\[0\]: duplicate number 0"),
    "waiting.spec.0": ({"colour": 1}, r"waiting.spec\[0\].colour: unknown key 'colour'"),
    "arrivals.submit.0": (1.0, r"arrivals.submit\[0\]: must be an instant >= 10.25 s, got 1"),
    "places.0.name": ("moon", r"places\[0\].name: unknown place 'moon'"),
    "places.0.down": (3, r"places\[0\].down: must be nodes, got 3"),
    "consumables.0": (["beer", 1.0], r"consumables\[0\]: unknown consumable 'beer'"),
    "waits.0": (["b", "end", 99, 0], r"waits\[0\]: must be the number of a blocked job, got 99"),
    "planned.0": ([11.0, 2.0, "party"], r"planned\[0\]: unknown planned event 'party'"),
    "planned.1": ([11.0, 2.0, "cancel", 99], r"planned\[1\]: must be valid arguments of 'cancel', got \[99\]"),
    "usage.0": ([5.0], r"usage\[0\]: must have 2 values, got 1"),
    "streams.rich.failures\\.0": ({}, "streams.rich.failures.0: must be the state of a PCG64 generator, got {}"),
    "new": ([99], r"new\[0\]: must be the number of a waiting job, got 99"),
}


@pytest.mark.few(11)
@pytest.mark.parametrize("where", WRONG)
def test_a_wrong_value_in_the_json_gets_one_sentence(where, tmp_path):
    value, sentence = WRONG[where]
    document = rich().document()
    document = json.loads(json.dumps(document))
    *path, last = ["streams", "rich.failures.0"] if where.startswith("streams") else where.split(".")
    inside = document
    for name in path:
        inside = inside[int(name)] if isinstance(inside, list) else inside.setdefault(name, {})
    inside[int(last) if isinstance(inside, list) else last] = value
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match=f"wrong.json, {sentence}"):
        ClusterSnapshot.from_json(file)


def test_what_is_no_snapshot_is_refused(tmp_path):
    for text, sentence in (("{", "invalid JSON: "), ('{"format": 1}', "format: must be 'simmodel snapshot', got 1")):
        with pytest.raises(InputError, match=sentence):
            ClusterSnapshot.from_json(text)
    with pytest.raises(InputError, match=r"nowhere.json: no such file"):
        ClusterSnapshot.from_json(tmp_path / "nowhere.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(InputError, match="must be a JSON object, got list"):
        ClusterSnapshot.from_json(tmp_path / "list.json")
