"""Channels that are shared equally: closed forms, hand cases, an event-by-event recomputation, and snapshots."""

from __future__ import annotations

import json
from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, Stalled
from simmodel.platform.network import LinkSpec
from simmodel.resources.network.flow import Cancelled
from simmodel.resources.network.network import Network
from simmodel.resources.network.shared_channel import AccessState, ChannelState, SharedChannel
from simmodel.resources.network.transfer import Delivery

SIZES = st.floats(1e-3, 1e12)


@given(begin=st.floats(0, 1e6), size=SIZES, bandwidth=st.floats(1e-3, 1e12))
def test_alone_it_takes_size_over_bandwidth_to_the_last_bit(begin: float, size: float, bandwidth: float) -> None:
    env = Environment(begin)
    access = SharedChannel(env, bandwidth).start(size)
    env.run()
    assert access.end == begin + size / bandwidth
    assert access.value == Delivery(begin, access.end, size)


def test_ends_of_accesses_are_as_by_hand() -> None:
    env = Environment()
    disk = SharedChannel(env, 10.0)
    ends: list[tuple[str, float]] = []

    def begin(name: str, size: float) -> None:
        accesses.append(disk.start(size, lambda access: ends.append((name, env.now))))

    accesses: list[Any] = []
    begin("a", 100.0)
    env.call_at(4, lambda: begin("b", 30.0))  # a has 60 left; both at 5/s until b ends at 10
    env.call_at(6, lambda: begin("c", 0.0))
    env.run()
    assert ends == [("c", 6), ("b", 10.0), ("a", 13.0)]
    begin("d", 20.0), begin("e", 20.0), begin("f", 40.0)
    env.run()
    assert ends[3:] == [("d", 19.0), ("e", 19.0), ("f", 21.0)]
    assert [each.status for each in accesses] == ["done"] * 6


def ends_by_events(accesses: list[tuple[Fraction, Fraction]], bandwidth: Fraction) -> list[Fraction]:
    """Return the ends of accesses, given as starts and sizes, from one event to the next in exact arithmetic."""
    left = {i: size for i, (_, size) in enumerate(accesses)}
    ends = [Fraction(0)] * len(accesses)
    now = Fraction(0)
    while left:
        inside = [i for i in left if accesses[i][0] <= now]
        begins = [accesses[i][0] for i in left if accesses[i][0] > now]
        if not inside:
            now = min(begins)
            continue
        rate = bandwidth / len(inside)
        until = min([now + min(left[i] for i in inside) / rate, *begins])
        for i in inside:
            left[i] -= rate * (until - now)
            if not left[i]:
                ends[i] = until
                del left[i]
        now = until
    return ends


@given(
    accesses=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 5000)), min_size=1, max_size=25),
    bandwidth=st.integers(1, 50),
)
def test_ends_are_those_of_exact_arithmetic(accesses: list[tuple[int, int]], bandwidth: int) -> None:
    env = Environment()
    disk = SharedChannel(env, float(bandwidth))
    ends: dict[int, float] = {}
    for i, (at, size) in enumerate(accesses):
        env.call_at(at, lambda i=i, size=size: disk.start(size, lambda _: ends.update({i: env.now})))  # type: ignore[misc]
    env.run()
    exact = ends_by_events([(Fraction(at), Fraction(size)) for at, size in accesses], Fraction(bandwidth))
    for i, end in enumerate(exact):
        assert ends[i] == pytest.approx(float(end), rel=1e-12)


def test_long_runs_do_not_drift() -> None:
    """A large access keeps the channel busy for 10^9 s, while 20,000 small ones come and go; all bytes are moved."""
    env = Environment()
    disk = SharedChannel(env, 8.0)
    rng = Random(1)
    small = [(rng.randrange(10**9), rng.randint(1, 1000)) for _ in range(20_000)]
    large = disk.start(6e9)
    for at, size in small:
        env.call_at(at, lambda size=size: disk.start(size))  # type: ignore[misc]
    env.run(large)
    moved = 6 * 10**9 + sum(size for at, size in small if at < env.now)
    moved -= sum(access.left for access in disk.under_way())
    assert env.now == pytest.approx(moved / 8, rel=1e-14)


@given(data=st.data())
def test_a_channel_is_a_network_of_one_link(data: st.DataObject) -> None:
    """Starts, pauses, cancellations and changes of the bandwidth at drawn instants."""
    steps = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(["start", "start", "pause", "resume", "cancel", "bandwidth"]),
                st.integers(0, 8),
                st.integers(1, 400),
                st.integers(0, 9),
            ),
            max_size=40,
        )
    )
    results = []
    for shared in (True, False):
        env = Environment()
        disk = SharedChannel(env, 10.0)
        network = Network(env, [LinkSpec(name="disk", bandwidth=10.0)])
        found: list[Any] = []
        for what, passed, size, which in steps:
            if passed:
                env.run(until=env.now + passed)
            chosen = found[which % len(found)] if found else None
            if what == "start":
                found.append(disk.start(size) if shared else network.transfer(size, route=["disk"]))
            elif what == "bandwidth" and shared:
                disk.set_bandwidth(float(1 + which))
            elif what == "bandwidth":
                network.set_bandwidth("disk", float(1 + which))
            elif chosen is not None:
                getattr(chosen, what)()
        for each in found:
            each.resume()
        env.run()
        results.append([(each.status, each.end, each.done) for each in found])
        assert not list(disk.under_way())
    for one, other in zip(*results, strict=True):
        assert one[0] == other[0]
        assert one[1:] == pytest.approx(other[1:], rel=1e-12, abs=1e-9)


@given(
    accesses=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 300)), min_size=1, max_size=15),
    cut=st.floats(0, 150),
    paused=st.integers(0, 20),
)
def test_a_snapshot_continues_to_the_last_bit(accesses: list[tuple[int, int]], cut: float, paused: int) -> None:
    env = Environment()
    disk = SharedChannel(env, 7.0)
    flows: list[Any] = []
    for at, size in accesses:
        env.call_at(at, lambda size=size: flows.append(disk.start(size)))  # type: ignore[misc]
    env.run(until=61)
    if paused < len(flows):
        flows[paused].pause()
    if cut > 61:
        env.run(until=cut)
    state = disk.state()
    assert state == disk.state(), "a question changes nothing"
    left = list(disk.under_way())
    later = Environment(env.now)
    copy = SharedChannel(later, 7.0)
    plain = json.loads(json.dumps(state))
    found = copy.restore(
        ChannelState(
            tuple(AccessState(*each[:4], mark=None if each[4] is None else tuple(each[4])) for each in plain[0]),
            tuple(plain[1]),
            plain[2],
        )
    )
    assert copy.state() == state
    assert (disk.to_come() or [None])[0] == (copy.to_come() or [None])[0]
    for each in (*left, *found):
        each.resume()
    env.run()
    later.run()
    assert [(each.start, each.end, each.size) for each in found] == [(each.start, each.end, each.size) for each in left]


def test_a_state_without_virtual_time_has_the_bytes_left() -> None:
    env = Environment(5)
    told: list[float] = []
    disk = SharedChannel(env, 10.0)
    state = ChannelState((AccessState(100.0, 40.0, 1.0), AccessState(20.0, 20.0, 2.0)))
    disk.restore(state, [lambda access: told.append(env.now), None])
    env.run()
    assert told == [5 + 6]


def test_processes_wait_for_accesses_and_cancel_them() -> None:
    env = Environment()
    disk = SharedChannel(env, 10.0)

    def leaves(env: Any) -> Any:
        with disk.start(1000) as access:
            yield access | env.timeout(4)
        return access.status, access.done

    def is_told(env: Any, access: Any) -> Any:
        try:
            yield access
        except Cancelled as error:
            return error.done, error.size
        return None

    def cancels(env: Any, access: Any) -> Any:
        yield env.timeout(6)
        access.cancel()

    calls: list[Any] = []
    other = disk.start(500, calls.append)
    first, second = env.process(leaves(env)), env.process(is_told(env, other))
    env.process(cancels(env, other))
    env.run()
    assert first.value == ("cancelled", 20.0)
    assert second.value == (20.0 + 20.0, 500)
    assert calls == [], "the end of a cancelled access is not called"
    assert env.now == 6


def test_bandwidth_by_the_number_of_accesses() -> None:
    env = Environment()
    disk = SharedChannel(env, lambda count: 12.0 / (1 + count))  # two are slower together than one after the other
    one, two = disk.start(12.0), disk.start(24.0)
    env.run()
    assert (one.end, two.end) == (6.0, 6.0 + 2.0)


def test_infinite_bandwidth_takes_no_time_and_none_stands_still() -> None:
    env = Environment()
    disk = SharedChannel(env, inf)
    told: list[float] = []
    disk.start(1e15, lambda access: told.append(access.end))
    assert told == [], "not before the caller has gone on"
    env.run()
    assert told == [0]
    disk.set_bandwidth(0.0)
    disk.start(5.0)
    with pytest.raises(Stalled, match=r"disk: flow 2, 0 of 5 B done, moving since 0; the bandwidth is 0"):
        env.run()
    disk.set_bandwidth(inf)
    env.run()
    assert len(disk) == 0


def test_hooks_are_told_of_starts_and_ends() -> None:
    class Watch:
        def __init__(self) -> None:
            self.told: list[Any] = []

        def read_started(self, access: Any) -> None:
            self.told.append(("started", access.channel.name, access.size, access.about))

        def read_ended(self, access: Any) -> None:
            self.told.append((access.status, access.about, access.end))

    env = Environment()
    watch = Watch()
    env.observe(watch)
    disk = SharedChannel(env, 10.0, "BNL", kind="read")
    disk.start(10.0, about=7)
    disk.start(30.0, about=8).cancel()
    env.run()
    assert watch.told == [
        ("started", "BNL", 10.0, 7),
        ("started", "BNL", 30.0, 8),
        ("cancelled", 8, 0),
        ("done", 7, 1.0),
    ]


@pytest.mark.parametrize("size", [-1.0, inf, float("nan")])
def test_wrong_sizes(size: float) -> None:
    with pytest.raises(InputError, match=f"disk, size of an access: must be finite and >= 0, got {size}"):
        SharedChannel(Environment(), 1.0).start(size)


def test_wrong_bandwidths() -> None:
    for bandwidth in (-1.0, "1s", float("nan")):
        with pytest.raises(InputError, match="disk, bandwidth: "):
            SharedChannel(Environment(), bandwidth)
    assert repr(SharedChannel(Environment(), "2kBps")) == "<SharedChannel disk: 2000 bytes/s, 0 in it>"
