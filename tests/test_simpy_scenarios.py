"""SimPy scenarios, classic and drawn, have the same events in simmodel's environment as in SimPy's."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any

import pytest
import simpy
from hypothesis import given, settings, strategies as st

from simmodel.environment import Environment, RealtimeEnvironment
from tests.helpers.examples import up_to
from tests.helpers.simpy_classics import CLASSICS

Body = Generator[Any, Any, Any]
Log = list[Any]


@pytest.mark.parametrize("scenario", CLASSICS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("seed", [0, 42])
def test_classic_examples_give_the_same(scenario: Callable[..., None], seed: int) -> None:
    logs: list[Log] = [[], []]
    ends = []
    for make, log in zip((simpy.Environment, Environment), logs, strict=True):
        env = make()
        scenario(env, Random(seed), log)
        ends.append((env.now, next(env._eid)))
    assert logs[0] == logs[1]
    assert ends[0] == ends[1]
    assert len(logs[0]) > 15


def test_a_classic_example_in_real_time_gives_the_same() -> None:
    logs: list[Log] = [[], []]
    CLASSICS[2](simpy.Environment(), Random(1), logs[0])
    CLASSICS[2](RealtimeEnvironment(factor=1e-5, strict=False), Random(1), logs[1])
    assert logs[0] == logs[1]


# ---------------------------------------------------------------------- drawn scenarios

# A program is a list of scripts, one per process; a step is (word, number, number).
WORDS = (
    "sleep",
    "interrupt",
    "all",
    "any",
    "nested",
    "use",
    "urgent",
    "preempt",
    "put",
    "get",
    "store",
    "take",
    "find",
    "ring",
    "break",
    "listen",
    "spawn",
    "join",
    "raise",
)
PROGRAMS = st.lists(
    st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8),
    min_size=1,
    max_size=6,
)


class World:
    """The shared state of the processes of a drawn scenario."""

    def __init__(self, env: simpy.Environment, program: list[list[tuple[str, int, int]]]) -> None:
        self.env = env
        self.program = program
        self.log: Log = []
        self.resource = simpy.Resource(env, 2)
        self.priority = simpy.PriorityResource(env, 1)
        self.preemptive = simpy.PreemptiveResource(env, 1)
        self.container = simpy.Container(env, 10, init=3)
        self.store = simpy.Store(env, 2)
        self.filter = simpy.FilterStore(env, 3)
        self.bells = [env.event() for _ in range(5)]
        self.processes = [env.process(self.play(number, script)) for number, script in enumerate(program)]

    def note(self, who: int, *what: Any) -> None:
        self.log.append((self.env.now, who, *what))

    def play(self, who: int, script: list[tuple[str, int, int]], depth: int = 0) -> Body:
        for place, (word, a, b) in enumerate(script):
            try:
                value = yield from self.step(who, word, a, b, depth)
                self.note(who, place, word, repr(value))  # exceptions with the same text are not equal
            except simpy.Interrupt as interrupt:
                cause = interrupt.cause
                self.note(who, place, word, getattr(cause, "usage_since", cause))
            except ValueError as error:
                self.note(who, place, word, error.args)
        return who

    def step(self, who: int, word: str, a: int, b: int, depth: int) -> Body:
        env = self.env
        if word == "sleep":
            return (yield env.timeout(a, value=b))
        if word in ("all", "any"):
            condition = env.all_of if word == "all" else env.any_of
            result = yield condition([env.timeout(a, 1), env.timeout(b, 2), self.bells[a], env.timeout(3, 3)][: b + 1])
            return list(result.values())
        if word == "nested":
            left = env.timeout(a, "a") & env.timeout(b, "b")
            return list((yield left | (env.timeout(2, "c") & self.bells[b])).values())
        if word in ("use", "urgent", "preempt"):
            requests: dict[str, Callable[[], Any]] = {
                "use": self.resource.request,
                "urgent": lambda: self.priority.request(priority=a),
                "preempt": lambda: self.preemptive.request(priority=a, preempt=b != 2),
            }
            with requests[word]() as request:
                result = yield request | env.timeout(4)
                if request in result:
                    yield env.timeout(b)
                return request in result
        if word in ("put", "get"):
            return (yield (self.container.put if word == "put" else self.container.get)(a + 1))
        if word == "store":
            yield self.store.put((who, a)) & self.filter.put(b)
            return None
        if word == "take":
            request = self.store.get()
            result = yield request | env.timeout(a)
            if request not in result:
                request.cancel()
            return list(result.values())
        if word == "find":
            request = self.filter.get(lambda item: item == a)
            result = yield request | env.timeout(b)
            if request not in result:
                request.cancel()
            return list(result.values())
        if word == "listen":
            return (yield self.bells[a])
        if word == "join":
            return (yield self.processes[a % len(self.processes)])
        return self.act(who, word, a, b, depth)

    def act(self, who: int, word: str, a: int, b: int, depth: int) -> Any:
        """Perform a step that takes no time."""
        env = self.env
        if word == "interrupt":
            target = self.processes[a % len(self.processes)]
            try:
                target.interrupt(b)
            except RuntimeError as error:
                return str(error).split(" ")[-1]
        elif word in ("ring", "break") and not self.bells[a].triggered:
            if word == "ring":
                self.bells[a].succeed(b)
            else:
                self.bells[a].fail(ValueError("broken", b))
                self.bells[a].defused = b > 0
        elif word == "spawn" and depth < 2:
            self.processes.append(
                env.process(self.play(10 * who + a + 10, self.program[who % 5 % len(self.program)], depth + 1))
            )
        elif word == "raise" and b == 4:
            raise KeyError(a)
        return None


def outcome(run: Callable[[], Any]) -> str | tuple[str, str]:
    """Return the value of a run, or its exception."""
    try:
        return repr(run())
    except Exception as error:
        kind = RuntimeError if isinstance(error, RuntimeError) else type(error)
        return kind.__name__, str(error)[:40]  # the rest may contain an address


@settings(max_examples=up_to(300), deadline=None)
@given(PROGRAMS)
def test_drawn_scenarios_give_the_same_in_one_run(program: list[list[tuple[str, int, int]]]) -> None:
    worlds = [World(make(), program) for make in (simpy.Environment, Environment)]
    outcomes = [outcome(world.env.run) for world in worlds]
    assert worlds[0].log == worlds[1].log
    assert outcomes[0] == outcomes[1]
    assert worlds[0].env.now == worlds[1].env.now


@settings(max_examples=up_to(150), deadline=None)
@given(PROGRAMS, st.lists(st.integers(1, 6), max_size=4), st.integers(0, 5))
def test_drawn_scenarios_give_the_same_in_pieces(
    program: list[list[tuple[str, int, int]]], spans: list[int], last: int
) -> None:
    worlds = [World(make(), program) for make in (simpy.Environment, Environment)]
    for world in worlds:
        for span in spans:
            world.log.append(outcome(lambda world=world, span=span: world.env.run(until=world.env.now + span)))
        goal = world.processes[last % len(program)]
        world.log.append(outcome(lambda world=world, goal=goal: world.env.run(until=goal)))
    assert worlds[0].log == worlds[1].log


@settings(max_examples=up_to(150), deadline=None)
@given(PROGRAMS)
def test_drawn_scenarios_have_the_same_events(program: list[list[tuple[str, int, int]]]) -> None:
    plain, ours = (World(make(), program) for make in (simpy.Environment, Environment))
    while plain.env._queue:
        heads = [
            (at, priority, number, type(event))
            for at, priority, number, event in (plain.env._queue[0], ours.env._queue[0])
        ]
        assert heads[0] == heads[1]
        ends = [outcome(plain.env.step), outcome(ours.env.step)]
        assert ends[0] == ends[1]
        assert plain.env.peek() == ours.env.peek()
    assert not ours.env._queue
    assert plain.log == ours.log
