"""The environment: time, events, processes and conditions behave as in SimPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
import simpy
from simpy.core import EmptySchedule, StopSimulation

from simmodel.environment import END, SUBMIT, Environment, RealtimeEnvironment
from simmodel.foundation.errors import PolicyError, SimmodelError, Stalled

Body = Generator[Any, Any, Any]


@pytest.fixture
def env() -> Environment:
    return Environment()


@pytest.fixture
def log() -> list[Any]:
    return []


# ---------------------------------------------------------------------- run, step, peek


def test_run_without_end_returns_when_no_events_are_left(env: Environment, log: list[Any]) -> None:
    def clock() -> Body:
        for _ in range(3):
            yield env.timeout(2)
            log.append(env.now)

    env.process(clock())
    assert env.run() is None
    assert log == [2, 4, 6]


def test_run_until_a_time_stops_before_the_events_of_that_time(env: Environment, log: list[Any]) -> None:
    def clock() -> Body:
        while True:
            yield env.timeout(1)
            log.append(env.now)

    env.process(clock())
    env.run(until=3)
    assert (env.now, log) == (3, [1, 2])
    env.run(until=4.5)
    assert (env.now, log) == (4.5, [1, 2, 3, 4])


def test_run_until_meets_the_instant_exactly() -> None:
    """A delay added to the present instant is rounded: 60.00000000000001 s would be 60 s, its events left behind."""
    env, after = Environment(), 60.00000000000001
    env.run(until=20.000000000000004)
    called: list[float] = []
    env.call_at(60.0, lambda: called.append(env.now))
    env.run(until=after)
    assert (env.now, called) == (after, [60.0])


@pytest.mark.parametrize("until", [-1, 0, 7, 7.0])
def test_run_until_the_past_is_refused(until: float) -> None:
    with pytest.raises(ValueError, match="must be greater than the current simulation time"):
        Environment(initial_time=7).run(until)


def test_run_until_an_event_returns_its_value(env: Environment) -> None:
    def answer() -> Body:
        yield env.timeout(1)
        return 42

    process = env.process(answer())
    env.timeout(10)
    assert env.run(process) == 42
    assert env.now == 1
    assert env.run(process) == 42  # already done: returns at once
    env.run()
    assert env.now == 10


def test_run_until_a_condition_or_a_failing_event(env: Environment) -> None:
    first = env.timeout(1, value="a")
    assert list(env.run(first | env.timeout(2)).values()) == ["a"]

    def fails() -> Body:
        yield env.timeout(1)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        env.run(env.process(fails()))


def test_what_an_event_still_had_to_call_is_called_in_the_next_run(env: Environment, log: list[Any]) -> None:
    event = env.timeout(1)
    event.callbacks.append(lambda _: log.append("before"))
    event.callbacks.append(StopSimulation.callback)
    event.callbacks.append(lambda _: log.append("after"))
    env.timeout(1).callbacks.append(lambda _: log.append("next"))
    env.run()
    assert log == ["before"]
    env.run()
    assert log == ["before", "after", "next"]
    assert env.now == 1


def test_a_run_can_be_stopped_at_each_of_its_events(log: list[Any]) -> None:
    def model(env: Environment) -> list[simpy.Event]:
        events = [env.timeout(delay) for delay in (3, 1, 1, 2)]
        for name, event in enumerate(events):
            event.callbacks.append(lambda _, name=name: log.append((env.now, name)))
        return events

    whole = Environment()
    model(whole)
    whole.run()
    expected, log[:] = list(log), []
    env = Environment()
    for event in sorted(model(env), key=lambda event: event._delay):  # type: ignore[attr-defined]
        env.run(event)
    assert log == expected


def test_step_and_peek(env: Environment) -> None:
    assert env.peek() == float("inf")
    with pytest.raises(EmptySchedule):
        env.step()
    env.timeout(3)
    env.timeout(1)
    assert env.peek() == 1
    env.step()
    assert (env.now, env.peek()) == (1, 3)


def test_initial_time_and_negative_delay() -> None:
    env = Environment(initial_time=10)
    env.run(env.timeout(5))
    assert env.now == 15
    with pytest.raises(ValueError, match="Negative delay"):
        env.timeout(-1)


def test_events_of_an_instant_go_by_priority_and_then_in_order(env: Environment, log: list[Any]) -> None:
    for name, priority in (("submit", SUBMIT), ("end", END), ("normal", 1), ("urgent", 0), ("second", 1)):
        event = env.event()
        event._ok, event._value = True, None
        event.callbacks.append(lambda _, name=name: log.append(name))
        env.schedule(event, priority, 5)  # type: ignore[arg-type]
    env.run()
    assert log == ["urgent", "normal", "second", "end", "submit"]


def test_a_step_of_ones_own_is_taken(log: list[Any]) -> None:
    """SimPy's guide traces events by replacing ``env.step``; a subclass may override it too."""

    def trace(env: Environment) -> None:
        plain = env.step

        def step() -> None:
            log.append(env.peek())
            plain()

        env.step = step  # type: ignore[method-assign]

    class Traced(Environment):
        def step(self) -> None:
            log.append(self.peek())
            super().step()

    replaced = Environment()
    trace(replaced)
    for env in (replaced, Traced()):
        env.timeout(1)
        env.timeout(2)
        env.run(until=5)
    assert log == [1, 2, 5] * 2


# ---------------------------------------------------------------------- events and processes


def test_values_and_exceptions_reach_who_waits(env: Environment, log: list[Any]) -> None:
    def child(fails: bool) -> Body:
        value = yield env.timeout(1, value="ding")
        if fails:
            raise ValueError(value)
        return value

    def parent() -> Body:
        log.append((yield env.process(child(False))))
        try:
            yield env.process(child(True))
        except ValueError as error:
            log.append(error.args)

    env.process(parent())
    env.run()
    assert log == ["ding", ("ding",)]


def test_an_event_is_triggered_once_and_only_by_what_it_can_hold(env: Environment) -> None:
    event = env.event()
    with pytest.raises(AttributeError):
        _ = event.value
    with pytest.raises((TypeError, ValueError), match="is not an exception"):  # as the version of SimPy says it
        event.fail("no exception")  # type: ignore[arg-type]
    assert event.succeed("value").triggered
    assert not event.processed
    with pytest.raises(RuntimeError, match="already been triggered"):
        event.succeed()
    env.run()
    assert event.processed
    assert event.value == "value"


def test_a_failure_that_nobody_handles_ends_the_run_with_its_cause(env: Environment) -> None:
    failure = ValueError("spill")
    env.event().fail(failure)
    with pytest.raises(ValueError, match="spill") as caught:
        env.run()
    assert caught.value is not failure
    assert caught.value.__cause__ is failure

    handled = env.event().fail(ValueError("mopped up"))
    handled.defused = True
    env.run()


def test_errors_of_simmodel_survive_being_raised_anew(env: Environment) -> None:
    def fails() -> Body:
        yield env.timeout(1)
        raise PolicyError("more than is free", policy="mine", work="job 3", place="cluster", instant=1.0)

    env.process(fails())
    with pytest.raises(PolicyError, match=r"policy mine at 1.0, job 3 on cluster: more than is free"):
        env.run()
    assert issubclass(Stalled, RuntimeError)
    assert issubclass(Stalled, SimmodelError)


def test_yielding_what_is_no_event_is_refused(env: Environment) -> None:
    def wrong() -> Body:
        yield 5

    env.process(wrong())
    with pytest.raises(RuntimeError, match="Invalid yield value"):
        env.run()


def test_waiting_for_what_is_over_goes_on_at_once(env: Environment, log: list[Any]) -> None:
    over = env.timeout(1, value="old")

    def late() -> Body:
        yield env.timeout(5)
        log.append(((yield over), env.now))

    env.process(late())
    env.run()
    assert log == [("old", 5)]


def test_a_process_knows_its_target_and_whether_it_lives(env: Environment) -> None:
    def sleeper() -> Body:
        assert env.active_process is process
        yield pause

    pause = env.timeout(3)
    process = env.process(sleeper())
    env.run(until=1)
    assert process.is_alive
    assert process.target is pause
    assert env.active_process is None
    env.run()
    assert not process.is_alive


# ---------------------------------------------------------------------- interrupts


def test_an_interrupt_carries_its_cause_and_leaves_the_target(env: Environment, log: list[Any]) -> None:
    def sleeper() -> Body:
        pause = env.timeout(10)
        try:
            yield pause
        except simpy.Interrupt as interrupt:
            log.append((env.now, interrupt.cause))
            yield pause  # the rest of it
        log.append(env.now)

    process = env.process(sleeper())

    def waker() -> Body:
        yield env.timeout(3)
        process.interrupt("early")

    env.process(waker())
    env.run()
    assert log == [(3, "early"), 10]


def test_an_interrupt_comes_before_other_events_of_the_instant(env: Environment, log: list[Any]) -> None:
    def sleeper() -> Body:
        try:
            yield env.timeout(5)
            log.append("woke")
        except simpy.Interrupt:
            log.append("interrupted")
        yield env.timeout(1)
        log.append(env.now)

    def waker() -> Body:
        yield env.timeout(5)
        process.interrupt()

    env.process(waker())
    process = env.process(sleeper())
    env.run()
    assert log == ["interrupted", 6]


def test_several_interrupts_of_one_instant_all_come(env: Environment, log: list[Any]) -> None:
    def sleeper() -> Body:
        while len(log) < 3:
            try:
                yield env.timeout(100)
                return
            except simpy.Interrupt as interrupt:
                log.append(interrupt.cause)

    process = env.process(sleeper())

    def waker() -> Body:
        yield env.timeout(1)
        for cause in range(3):
            process.interrupt(cause)

    env.process(waker())
    env.run(process)
    assert (env.now, log) == (1, [0, 1, 2])


def test_neither_oneself_nor_the_dead_can_be_interrupted(env: Environment) -> None:
    def suicidal() -> Body:
        yield env.timeout(1)
        with pytest.raises(RuntimeError, match="not allowed to interrupt itself"):
            process.interrupt()

    process = env.process(suicidal())
    env.run()
    with pytest.raises(RuntimeError, match="has terminated"):
        process.interrupt()


def test_an_interrupt_that_comes_too_late_in_the_instant_is_dropped(env: Environment) -> None:
    def short() -> Body:
        yield env.timeout(1)

    process = env.process(short())

    def waker() -> Body:
        yield env.timeout(1)
        if process.is_alive:
            process.interrupt()

    env.process(waker())
    env.run()


# ---------------------------------------------------------------------- conditions


def test_all_of_and_any_of(env: Environment, log: list[Any]) -> None:
    def waits() -> Body:
        a, b, c = (env.timeout(delay, value=delay) for delay in (1, 2, 3))
        log.append(list((yield (a & b) | c).values()))
        log.append(env.now)
        log.append((yield env.all_of([a, b, c])).todict() == {a: 1, b: 2, c: 3})
        log.append(list((yield env.any_of([])).values()))
        log.append(list((yield env.all_of([])).values()))

    env.process(waits())
    env.run()
    assert log == [[1, 2], 2, True, [], []]
    assert env.now == 3


def test_a_condition_fails_with_the_first_that_fails(env: Environment, log: list[Any]) -> None:
    def fails(after: float) -> Body:
        yield env.timeout(after)
        raise ValueError(after)

    def waits() -> Body:
        try:
            yield env.all_of([env.process(fails(2)), env.timeout(1), env.timeout(9)])
        except ValueError as error:
            log.append((env.now, error.args))

    env.process(waits())
    env.run(until=2.5)
    assert log == [(2, (2,))]


def test_events_of_two_environments_do_not_mix(env: Environment) -> None:
    with pytest.raises(ValueError, match="from different environments"):
        env.all_of([env.timeout(1), Environment().timeout(1)])


# ---------------------------------------------------------------------- SimPy's resources


@pytest.mark.parametrize("make", [simpy.Environment, Environment])
def test_resources_stores_and_containers_run_unchanged(make: Callable[[], simpy.Environment], log: list[Any]) -> None:
    env = make()
    desk = simpy.PreemptiveResource(env, capacity=1)
    tank = simpy.Container(env, capacity=10, init=1)
    shelf = simpy.FilterStore(env, capacity=3)

    def user(name: str, after: float, priority: int, hold: float) -> Body:
        yield env.timeout(after)
        with desk.request(priority=priority) as request:
            got = yield request | env.timeout(6)
            if request not in got:
                log.append((env.now, name, "gave up"))
                return
            try:
                yield env.timeout(hold)
                log.append((env.now, name, "done"))
            except simpy.Interrupt as interrupt:
                log.append((env.now, name, "preempted after", env.now - interrupt.cause.usage_since))
        yield tank.put(4)
        yield shelf.put(name)

    def taker() -> Body:
        yield tank.get(8)
        item = yield shelf.get(lambda name: name == "c")
        log.append((env.now, "took", item, tank.level))

    for person in (("a", 0, 2, 5), ("b", 1, 1, 3), ("c", 2, 1, 9), ("d", 3, 3, 1)):
        env.process(user(*person))
    env.process(taker())
    env.run()
    assert log == [
        (1, "a", "preempted after", 1),
        (4, "b", "done"),
        (9, "d", "gave up"),
        (13, "c", "done"),
        (13, "took", "c", 5),
    ]


# ---------------------------------------------------------------------- real time


def test_real_time_keeps_pace() -> None:
    env = RealtimeEnvironment(initial_time=100, factor=0.01, strict=False)
    assert (env.factor, env.strict) == (0.01, False)
    env.sync()
    began = time.monotonic()
    env.run(env.timeout(5))
    assert time.monotonic() - began >= 0.05 - 0.001
    assert env.now == 105


def test_real_time_is_strict_unless_told_otherwise() -> None:
    def slow(env: RealtimeEnvironment) -> Body:
        time.sleep(0.05)
        yield env.timeout(1)

    strict = RealtimeEnvironment(factor=0.01)
    strict.process(slow(strict))
    with pytest.raises(RuntimeError, match=r"Simulation too slow for real time \(\d+\.\d{3}s\)\.$") as late:
        strict.run()
    assert float(str(late.value).split("(")[1].split("s")[0]) >= 0.04 - 0.001
    lax = RealtimeEnvironment(factor=0.01, strict=False)
    lax.process(slow(lax))
    lax.run()
    assert lax.now == 1


def test_real_time_runs_the_same_model_and_ends(log: list[Any]) -> None:
    env = RealtimeEnvironment(factor=0.0001, strict=False)
    decide = env.at_instant_end(lambda: log.append(env.now))
    env.timeout(3).callbacks.append(lambda _: decide())
    env.run(until=10)
    assert (log, env.now) == ([3], 10)
    env.run()
    with pytest.raises(EmptySchedule):
        env.step()
