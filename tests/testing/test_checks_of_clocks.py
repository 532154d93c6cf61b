"""Storages whose bandwidth follows the clock: the check says what they lack."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from simmodel import Environment
from simmodel.platform import StorageSpec
from simmodel.resources import Alarm, Storage, make_storage
from simmodel.testing import check_resource


class Nightly(Storage):
    """Half as fast in the second half of each day, of which nobody is told."""

    def read_bandwidth(self, readers: int) -> float:
        return self.spec.read_bandwidth / (1 + self.env.now // 43200 % 2)


class Alarmed(Nightly):
    """The same with an alarm at each change while it is read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.alarm = Alarm(self.env, self.ask)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        return (self.alarm,)

    def turns(self, channel: Any, busy: bool) -> None:
        if channel is self.reading:
            self.alarm.set((self.env.now // 43200 + 1) * 43200 if busy else inf)

    def ask(self) -> None:
        self.reading.ask_again()
        self.alarm.set((self.env.now // 43200 + 1) * 43200)

    def own_state(self) -> Any:
        return self.alarm.at

    def restore_own(self, values: Any) -> None:
        self.alarm.set(values)


def test_a_storage_that_reads_the_clock_lacks_an_alarm() -> None:
    says = (
        r"Nightly: at \d+(\.\d+)? s read_bandwidth is 10 bytes/s, but accesses have 20: .* sets an Alarm for the next"
    )
    with pytest.raises(AssertionError, match=says):
        check_resource(Nightly)


def test_a_storage_with_an_alarm_passes() -> None:
    check_resource(Alarmed)
    env = Environment()
    storage = make_storage(env, StorageSpec(read_bandwidth=100.0, model=Alarmed))
    read = storage.read(100.0 * 43200 + 50.0 * 43200 + 100)
    env.run()
    assert read.end == 86401


def test_the_ready_storages_pass() -> None:
    check_resource("burst-buffer", buffer=100, bandwidth=50)
    check_resource("tape-library", drives=2, mount=6, tape=500)
