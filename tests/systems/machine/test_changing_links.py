"""Links that change under a machine: estimates follow them, and transfers that fail with a link are sent again."""

from __future__ import annotations

from math import inf
from typing import Any, ClassVar

import pytest

from simmodel import Environment, Machine, TaskSet
from simmodel.foundation.errors import Stalled
from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.resources import Link

DATA = TaskSet([5.0], inputs=[(0,)], sizes=[1000.0])


def machine(link: dict[str, Any] | None = None, **options: Any) -> Machine:
    """Return a machine with one processor, whose pool is behind a bus of 100 bytes/s and 1 s."""
    given = {"name": "bus", "bandwidth": 100.0, "latency": 1.0, "between": ("ram", "hbm"), **(link or {})}
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="hbm", size=1e9)],
        architectures=[ArchitectureSpec(name="x")],
        processors=[ProcessorSpec(name="gpu", type="GPU", architecture="x", pool="hbm")],
        links=[LinkSpec(**given)],
    )
    return Machine(Environment(), spec, **options)


def sent(on: Machine) -> list[tuple[Any, ...]]:
    rows = on.result().transfers.rows()
    return [(row["start"], row["end"], row["bytes"], row["cause"]) for row in rows]


@pytest.mark.parametrize("transfers", ["sequential", "parallel"])
def test_data_of_a_transfer_that_failed_are_sent_again_once_the_link_is_up(transfers: str) -> None:
    on = machine({"when_down": "fail"}, transfers=transfers)
    on.submit(DATA)
    on.env.call_at(5.0, lambda: on.network.fail("bus"))
    on.env.call_at(10.0, lambda: on.network.restore("bus"))
    on.env.run()
    # 4 of 10 s at 100 bytes/s; then the latency and all bytes again.
    assert sent(on) == [(0.0, 5.0, 400.0, "failed"), (10.0, 21.0, 1000.0, "input")]
    assert on.result().tasks["end"].tolist() == [26.0]
    assert on.mover.failures == 1
    assert "1 transfer failed with a link; the data were sent again" in str(on.result().report)


def test_a_transfer_that_begins_on_a_link_that_is_down_waits_for_it() -> None:
    on = machine({"when_down": "fail"})
    on.network.fail("bus")
    on.submit(DATA)
    on.env.call_at(3.0, lambda: on.network.restore("bus"))
    on.env.run()
    assert sent(on) == [(0.0, 0.0, 0.0, "failed"), (3.0, 14.0, 1000.0, "input")]
    assert on.result().tasks["end"].tolist() == [19.0]


def test_a_link_that_its_profile_takes_down_is_followed_until_it_is_up() -> None:
    on = machine({"when_down": "fail", "latency": 0.0, "profile": [(4.0, 0.0), (10.0, 200.0)]})
    on.submit(DATA)
    on.env.run()
    assert sent(on) == [(0.0, 4.0, 400.0, "failed"), (10.0, 15.0, 1000.0, "input")]
    assert on.env.now == 20.0


def test_a_transfer_that_waits_with_its_link_is_not_sent_again() -> None:
    on = machine({"when_down": "wait"})
    on.submit(DATA)
    on.env.call_at(5.0, lambda: on.network.fail("bus"))
    on.env.call_at(10.0, lambda: on.network.restore("bus"))
    on.env.run()
    assert sent(on) == [(0.0, 16.0, 1000.0, "input")]
    assert on.mover.failures == 0


def test_a_run_whose_link_stays_down_names_the_data_and_the_link() -> None:
    on = machine({"when_down": "fail"})
    work = on.submit(DATA)
    on.env.call_at(5.0, lambda: on.network.fail("bus"))
    with pytest.raises(
        Stalled, match="data d0 from ram to hbm, whose transfer failed, wait to be sent again; down: bus"
    ):
        on.env.run(work)


def test_a_copy_of_a_machine_sends_data_again_that_waited_for_a_link() -> None:
    on = machine({"when_down": "fail"})
    on.submit(DATA)
    on.env.call_at(5.0, lambda: on.network.fail("bus"))
    on.env.run(until=7)
    copy = Machine.from_snapshot(Environment(7), on.snapshot())  # its links are up: they are not part of a snapshot
    copy.env.run()
    assert copy.env.now == 7 + 1 + 10 + 5


class Tiring(Link):
    """A link that carries half as much once it has been busy for 4 s."""

    takes: ClassVar[Any] = {}
    busy, since, load_since = 0.0, 0.0, 0.0

    def carries(self, transfers: int) -> float:
        return self.bandwidth / (1 if self.busy < 4 else 2)

    def turns(self, now: float, load: float) -> float:
        self.busy += now - self.since if self.load_since else 0.0
        self.since, self.load_since = now, load
        return now + 4 - self.busy if load and self.busy < 4 else inf

    def own_state(self) -> list[float]:
        return [self.busy, self.since, self.load_since]

    def restore_own(self, values: list[float]) -> None:
        self.busy, self.since, self.load_since = values


def test_a_copy_of_a_machine_has_the_memory_of_its_links() -> None:
    on = machine({"model": Tiring})
    on.submit(DATA)
    on.env.run(until=3)
    copy = Machine.from_snapshot(Environment(3), on.snapshot())
    for each in (on, copy):  # after the latency 4 s at 100 bytes/s, then 600 bytes at 50
        each.env.run()
        assert each.env.now == 1 + 4 + 12 + 5


def test_estimates_follow_bandwidth_and_latency() -> None:
    on = machine()
    work = on.submit(DATA, at=1e6).tasks[0]
    (data,), (place,) = work.inputs, on.places
    on.pools["ram"].put(data)
    assert place.expected_transfer(work) == 11.0
    on.network.set_bandwidth("bus", 50.0)
    on.network.set_latency("bus", 3.0)
    assert place.expected_transfer(work) == 23.0
    assert on.view.estimate(work, place).transfer == 23.0


def test_estimates_follow_a_profile_that_no_transfer_uses() -> None:
    on = machine({"profile": [(4.0, 50.0), (10.0, 0.0)]})
    work = on.submit(DATA, at=1e6).tasks[0]
    on.pools["ram"].put(work.inputs[0])
    found = []
    for at in (0.0, 4.0, 10.0):
        if at:
            on.env.run(until=at + 1)
        found.append(on.places[0].expected_transfer(work))
    assert found == [11.0, 21.0, 11.0]  # while it is down, as if it were up
    assert (on.network.links["bus"].bandwidth, on.network.links["bus"].up) == (0.0, False)


def test_transfers_without_contention_follow_the_bandwidth_at_their_start() -> None:
    on = machine(contention=False)
    on.network.set_bandwidth("bus", 50.0)
    on.submit(DATA)
    on.env.run()
    assert sent(on) == [(0.0, 21.0, 1000.0, "input")]
