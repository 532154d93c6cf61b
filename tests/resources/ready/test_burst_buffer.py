"""The state of a burst buffer in snapshots; how it fills: ``tests/resources/data/test_storage_models.py``."""

from __future__ import annotations

import json

from simmodel.environment import Environment
from simmodel.platform import StorageSpec
from simmodel.resources import Storage, make_storage


def buffer(env: Environment) -> Storage:
    options = {"buffer": 90, "bandwidth": 100}
    return make_storage(env, StorageSpec(capacity=1e6, write_bandwidth=10, model="burst-buffer", options=options))


def test_it_is_as_full_after_a_snapshot() -> None:
    """It gains 90 B/s, and is full after a second."""
    env = Environment()
    whole = buffer(env)
    whole.write(150)
    env.run(until=0.5)
    rest = buffer(env)
    rest.restore_own(json.loads(json.dumps(whole.own_state())))
    assert rest.own_state() == whole.own_state() == [0.0, 0.0, True]
    assert [alarm.at for alarm in rest.alarms] == [alarm.at for alarm in whole.alarms] == [1.0]
