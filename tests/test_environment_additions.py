"""The additions of simmodel's environment: ends of instants, random streams, observers, reports of stalled waiters."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simpy.events import Process

from simmodel import environment
from simmodel.environment import END, SUBMIT, WAKE_UP, Environment, Occurrence, quiet_garbage_collector
from simmodel.foundation.errors import Stalled
from tests.helpers.examples import up_to
from tests.helpers.new_process import printed
from tests.helpers.paths import PACKAGE

Body = Generator[Any, Any, Any]


@pytest.fixture
def env() -> Environment:
    return Environment()


@pytest.fixture
def log() -> list[Any]:
    return []


# ---------------------------------------------------------------------- the end of an instant


def test_the_end_of_an_instant_comes_after_all_its_events(env: Environment, log: list[Any]) -> None:
    decide = env.at_instant_end(lambda: log.append(("decided", env.now)))

    def work() -> Body:
        yield env.timeout(1)
        decide()
        for step in range(3):
            yield env.timeout(0)
            log.append(step)
            decide()

    env.process(work())
    env.schedule(_Call(lambda: log.append("submit")), SUBMIT, 1)
    env.schedule(_Call(lambda: log.append("end")), END, 1)
    env.run()
    assert log == [0, 1, 2, "end", "submit", ("decided", 1)]


def test_a_decision_that_brings_events_of_the_instant_brings_another(env: Environment, log: list[Any]) -> None:
    def decided() -> None:
        log.append(env.now)
        if len(log) < 3:
            env.timeout(0).callbacks.append(lambda _: decide())

    decide = env.at_instant_end(decided)
    env.timeout(2).callbacks.append(lambda _: decide())
    env.timeout(5).callbacks.append(lambda _: decide())
    env.run()
    assert log == [2, 2, 2, 5]


def test_those_who_share_an_instant_go_by_rank_then_as_they_asked(env: Environment, log: list[Any]) -> None:
    calls = [
        env.at_instant_end(lambda name=name: log.append(name), rank)
        for name, rank in zip("abcd", (2, 0, 1, 0), strict=True)
    ]
    for call in calls:
        call()
    calls[3]()
    env.run()
    assert log == ["b", "d", "c", "a"]


def test_a_broker_that_feeds_a_cluster_in_its_turn_precedes_it(env: Environment, log: list[Any]) -> None:
    cluster = env.at_instant_end(lambda: log.append("cluster"), rank=1)

    def broker_decides() -> None:
        log.append("broker")
        cluster()

    broker = env.at_instant_end(broker_decides, rank=0)
    cluster()
    broker()
    env.run()
    assert log == ["broker", "cluster"]


def test_an_error_at_the_end_of_an_instant_leaves_it_usable(env: Environment, log: list[Any]) -> None:
    def decided() -> None:
        log.append(env.now)
        if env.now == 1:
            raise ValueError("once")

    decide = env.at_instant_end(decided)
    for delay in (1, 2):
        env.timeout(delay).callbacks.append(lambda _: decide())
    with pytest.raises(ValueError, match="once"):
        env.run()
    env.run()
    assert log == [1, 2]


# ---------------------------------------------------------------------- occurrences


class _Call(Occurrence):
    __slots__ = ("_call",)

    def __init__(self, call: Any) -> None:
        self._call = call
        self.callbacks = (self._fire,)

    def _fire(self, _: object) -> None:
        self._call()


@settings(max_examples=up_to(50), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=400), st.integers(0, 20))
def test_what_is_withdrawn_neither_fires_nor_moves_the_clock(entries: list[tuple[int, bool]], at: int) -> None:
    env, fired = Environment(), []
    occurrences = []
    for number, (delay, _) in enumerate(entries):
        occurrence = _Call(lambda number=number: fired.append((env.now, number)))
        env.schedule(occurrence, END, delay)
        occurrences.append(occurrence)

    def withdraw(_: object = None) -> None:
        for occurrence, (delay, withdrawn) in zip(occurrences, entries, strict=True):
            if withdrawn and delay > at:
                env.withdraw(occurrence)

    env.timeout(at).callbacks.append(withdraw)
    env.run()
    kept = [(delay, number) for number, (delay, withdrawn) in enumerate(entries) if not (withdrawn and delay > at)]
    assert fired == sorted(kept)
    assert env.now == max([at, *(delay for delay, _ in kept)])
    assert env.peek() == float("inf")


def test_peek_and_step_pass_over_what_was_withdrawn(env: Environment, log: list[Any]) -> None:
    gone, kept = _Call(lambda: log.append("gone")), _Call(lambda: log.append("kept"))
    env.schedule(gone, END, 1)
    env.schedule(kept, END, 2)
    env.withdraw(gone)
    assert env.peek() == 2
    env.step()
    assert (log, env.now) == (["kept"], 2)


# ---------------------------------------------------------------------- random streams


def test_streams_do_not_depend_on_order_or_on_each_other() -> None:
    one, two = Environment(seed=3), Environment(seed=3)
    first = one.rng("arrivals").random(5)
    two.rng("something else").random(100)
    interleaved = []
    for _ in range(5):
        interleaved.append(two.rng("arrivals").random())
        two.rng("more").random(3)
    assert first.tolist() == interleaved
    assert one.rng("arrivals") is one.rng("arrivals")


def test_streams_differ_by_name_and_by_seed_and_zero_is_a_seed() -> None:
    draws = {
        (seed, name): tuple(Environment(seed=seed).rng(name).integers(2**62, size=3))
        for seed in (0, 1, 2**63)
        for name in ("", "a", "b", "ä" * 100)
    }
    assert len(set(draws.values())) == len(draws)
    assert Environment(seed=0).seed == Environment().seed == 0
    drawn = Environment(seed=None)
    assert drawn.seed != Environment(seed=None).seed
    assert Environment(seed=drawn.seed).rng("a").random() == drawn.rng("a").random()


def test_streams_look_independent() -> None:
    env = Environment(seed=0)
    draws = np.array([env.rng(f"stream {n}").normal(size=2000) for n in range(20)])
    between = np.corrcoef(draws) - np.eye(20)
    assert np.abs(between).max() < 0.1
    assert abs(draws.mean()) < 0.02


@pytest.mark.long  # smaller: the other tests of the file
def test_streams_are_the_same_in_every_process() -> None:
    program = "from simmodel.environment import Environment; print(Environment(seed=7).rng('runs').integers(2**62))"
    answers = {printed(program, seed).strip() for seed in ("0", "1", "random")}
    assert answers == {str(Environment(seed=7).rng("runs").integers(2**62))} == {"2953606044344408144"}


# ---------------------------------------------------------------------- observers


class Watch:
    """Implements one hook."""

    def __init__(self, log: list[Any], name: str) -> None:
        self.log, self.name = log, name

    def light_on(self, room: str) -> None:
        self.log.append((self.name, room))


def test_hooks_are_what_observers_implement_in_order_of_arrival(env: Environment, log: list[Any]) -> None:
    assert env.hooks("light_on") == ()
    first, second = Watch(log, "first"), Watch(log, "second")
    env.observe(first)
    env.observe(second)
    env.observe(object())
    assert env.hooks("light_off") == ()
    assert env.hooks("light_on") is env.hooks("light_on")
    for call in env.hooks("light_on"):
        call("kitchen")
    env.unobserve(first)
    for call in env.hooks("light_on"):
        call("hall")
    assert log == [("first", "kitchen"), ("second", "kitchen"), ("second", "hall")]
    with pytest.raises(ValueError, match="not in list"):
        env.unobserve(first)


def test_systems_hear_when_hooks_change(env: Environment, log: list[Any]) -> None:
    env.on_hooks_changed(lambda: log.append(len(env.hooks("light_on"))))
    watch = Watch(log, "only")
    env.observe(watch)
    env.unobserve(watch)
    assert log == [0, 1, 0]


# ---------------------------------------------------------------------- stalled waiters


class Door:
    """A resource that reports its waiters."""

    def __init__(self, waiting: list[str]) -> None:
        self.waiting = waiting

    def waiting_report(self) -> Iterator[str]:
        for name in self.waiting:
            yield f"{name} waits for the door since 0, held by no one"


def test_a_run_that_dries_up_names_those_who_wait(env: Environment) -> None:
    door = Door(["job 3", "job 4"])
    env.register_waits(door)
    env.timeout(2)
    with pytest.raises(Stalled, match="no events left at 2, 2 still wait") as stalled:
        env.run()
    assert stalled.value.waiters == tuple(door.waiting_report())
    assert "job 4 waits for the door" in str(stalled.value)
    door.waiting.clear()
    env.run()


def test_a_run_whose_end_never_comes_names_its_processes_too(env: Environment) -> None:
    env.register_waits(Door(["job 3"]))
    bell = env.event()

    def listener() -> Body:
        yield env.timeout(1)
        yield bell

    def finished() -> Body:
        yield env.timeout(1)

    env.process(listener())
    env.process(finished())
    elsewhere = Environment()
    elsewhere.process(listener())
    half_made = Process.__new__(Process)  # as an error in the constructor of a subclass leaves one behind
    with pytest.raises(RuntimeError, match=r'No scheduled events left but "until" event was not triggered') as stalled:
        env.run(until=env.event())
    assert isinstance(stalled.value, Stalled)
    waiters = stalled.value.waiters
    assert waiters[0].startswith("job 3 waits for the door")
    assert [line for line in waiters if line.startswith("process")] == ["process listener waits for Event()"]
    assert not hasattr(half_made, "env")


def test_plain_processes_that_wait_for_ever_are_no_error_without_an_end(env: Environment) -> None:
    def server() -> Body:
        yield env.event()

    process = env.process(server())
    assert env.run() is None
    assert process.is_alive


def test_a_long_report_is_cut_in_print_and_whole_in_the_error(env: Environment) -> None:
    env.register_waits(Door([f"job {n}" for n in range(50)]))
    with pytest.raises(Stalled) as stalled:
        env.run()
    assert len(stalled.value.waiters) == 50
    assert str(stalled.value).endswith("... and 30 more")


# ---------------------------------------------------------------------- the garbage collector


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, collector: None) -> Iterator[None]:
    """No other test's unfinished simulation keeps the collector quiet meanwhile."""
    before = gc.get_threshold()
    monkeypatch.setattr(environment, "_quiet", environment._Quiet())
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("alone")
def test_the_collector_is_as_it_was_also_after_an_error() -> None:
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    with quiet_garbage_collector():
        assert gc.get_threshold() != thresholds
        assert gc.get_freeze_count() > 0
        assert gc.isenabled()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, frozen)

    def fails() -> None:
        with quiet_garbage_collector():
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, frozen)


@pytest.mark.long
@pytest.mark.usefixtures("alone")
def test_what_many_short_blocks_leave_is_collected() -> None:
    class Node:
        def __init__(self) -> None:
            self.itself = self

    left: weakref.WeakSet[Node] = weakref.WeakSet()
    most = 0
    for _ in range(3000):
        with quiet_garbage_collector():
            for _ in range(100):
                left.add(Node())
        most = max(most, len(left))
    assert most < 250_000  # of 300,000: how soon depends on what else lives in the process


def test_a_run_of_the_users_own_collects_as_rarely_as_simulate(env: Environment) -> None:
    before = gc.get_threshold()
    during: list[tuple[int, int, int]] = []

    def process() -> Iterator[Any]:
        yield env.timeout(1)
        during.append(gc.get_threshold())

    env.process(process())
    env.run()
    assert during == [(200_000, 50, 100)]
    assert gc.get_threshold() == before


# ---------------------------------------------------------------------- invalid instants


@pytest.mark.parametrize("delay", [float("nan"), -1.0])
def test_nothing_is_scheduled_before_now(env: Environment, delay: float) -> None:
    env.run(until=5)
    before = list(env._queue)
    for schedule in (
        lambda: env.timeout(delay),
        lambda: env.schedule(env.event(), delay=delay),
        lambda: env.event_at(5 + delay),
        lambda: env.plan(_Call(lambda: None), 5 + delay, END),
        lambda: env.call_at(float("nan"), lambda: None),
    ):
        with pytest.raises(ValueError, match=r"now|Negative delay"):
            schedule()
    assert env._queue == before


def test_the_queue_is_written_to_at_the_checked_entries_alone() -> None:
    pushes = {
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if "heappush(env._queue" in line or "heappush(self._queue" in line or "heappush(self.env._queue" in line
    }
    assert {push.partition(":")[0] for push in pushes} == {"environment.py"}
    assert len(pushes) == 2


@pytest.mark.parametrize("first", [False, True])
def test_an_event_that_happens_keeps_the_order_of_one_that_succeeds(first: bool) -> None:
    def order(trigger: str) -> list[str]:
        env = Environment()
        seen: list[str] = []
        event = env.event()
        event.callbacks.append(lambda event: seen.append(f"happened: {event.value}"))

        def last_act() -> None:
            if first:
                env.timeout(0).callbacks.append(lambda _: seen.append("timeout"))
            seen.append("call")
            env.happen(event, 3) if trigger == "happen" else event.succeed(3)

        env.call_at(5, last_act)
        env.call_at(5, lambda: seen.append("next call"))
        env.run()
        return seen

    assert order("happen") == order("succeed")
    assert order("happen")[-2:] == ["happened: 3", "next call"]


class _Read(list[Any]):
    """A queue that counts how many of its entries are looked at."""

    read = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            self.read += 1
            yield each


def test_a_known_event_spares_the_look_at_all_wake_ups() -> None:
    env = Environment()
    for at in range(1, 1_001):
        env.call_at(at, lambda: answers.append(env.only_wake_ups), what=WAKE_UP)
    answers: list[bool] = []
    env.call_at(900.5, lambda: None)
    queue = _Read(env._queue)
    env._queue = queue
    env.run()
    assert answers == [False] * 900 + [True] * 100
    assert queue.read <= 1_000 + 100 * 101 / 2  # half a million where each looks at all


def test_advance_goes_on_to_an_instant_and_past_all_events_up_to_it() -> None:
    env = Environment()
    happened: list[float] = []
    for at in (3.0, 1.0, 5.0):
        env.call_at(at, lambda: happened.append(env.now))
    env.call_at(3.0, lambda: env.call_at(3.0, lambda: happened.append(-env.now)))
    env.advance(3.0)
    assert (happened, env.now) == ([1.0, 3.0, -3.0], 3.0)
    env.advance(2.0)
    env.advance(4.5)
    assert (happened, env.now, env.peek()) == ([1.0, 3.0, -3.0], 4.5, 5.0)
