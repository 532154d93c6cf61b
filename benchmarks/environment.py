"""SimPy's own kind of models in SimPy's environment and in simmodel's: CPU seconds of both, and their ratio.

``python benchmarks/environment.py [--rounds 7] [--scale 1]``. The two take turns, in one process; each figure is the
best of the rounds. A ratio below 1 means that simmodel's environment is the faster one.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Generator
from random import Random
from time import process_time
from typing import Any

import simpy

from simmodel.environment import Environment

Body = Generator[Any, Any, Any]


def machine_shop(env: simpy.Environment, scale: float) -> None:
    """Machines that break, and one repairman who has other work: preemption, interrupts, timeouts."""
    rng = Random(42)
    repairman = simpy.PreemptiveResource(env, capacity=1)
    broken = [False] * 10

    def machine(number: int) -> Body:
        while True:
            left = rng.normalvariate(10, 2)
            while left > 0:
                began = env.now
                try:
                    yield env.timeout(left)
                    left = 0
                except simpy.Interrupt:
                    broken[number] = True
                    left -= env.now - began
                    with repairman.request(priority=1) as request:
                        yield request
                        yield env.timeout(30)
                    broken[number] = False

    def breaks(number: int, process: simpy.Process) -> Body:
        while True:
            yield env.timeout(rng.expovariate(1 / 300))
            if not broken[number]:
                process.interrupt()

    def other_jobs() -> Body:
        while True:
            left = 30.0
            while left > 0:
                with repairman.request(priority=2) as request:
                    yield request
                    began = env.now
                    try:
                        yield env.timeout(left)
                        left = 0
                    except simpy.Interrupt:
                        left -= env.now - began

    for number in range(10):
        env.process(breaks(number, env.process(machine(number))))
    env.process(other_jobs())
    env.run(until=100_000 * scale)


def bank(env: simpy.Environment, scale: float) -> None:
    """Customers that queue for a counter or lose patience: a process each, requests, conditions."""
    rng = Random(42)
    counter = simpy.Resource(env, capacity=1)

    def customer() -> Body:
        with counter.request() as request:
            result = yield request | env.timeout(rng.uniform(5, 20))
            if request in result:
                yield env.timeout(rng.expovariate(1 / 8))

    def source() -> Body:
        for _ in range(int(15_000 * scale)):
            env.process(customer())
            yield env.timeout(rng.expovariate(1 / 10))

    env.process(source())
    env.run()


def clocks(env: simpy.Environment, scale: float) -> None:
    """A thousand clocks that tick: the heap and the run loop alone."""

    def clock(period: float) -> Body:
        while True:
            yield env.timeout(period)

    for number in range(1000):
        env.process(clock(1 + number / 1000))
    env.run(until=200 * scale)


def pipe(env: simpy.Environment, scale: float) -> None:
    """A sender and a receiver with a store between them."""
    store = simpy.Store(env, capacity=100)

    def sender() -> Body:
        for number in range(int(40_000 * scale)):
            yield store.put(number)
            yield env.timeout(1)

    def receiver() -> Body:
        while True:
            yield store.get()

    env.process(sender())
    env.process(receiver())
    env.run()


MODELS: tuple[Callable[[simpy.Environment, float], None], ...] = (machine_shop, bank, clocks, pipe)


def seconds(make: Callable[[], simpy.Environment], model: Callable[..., None], scale: float) -> float:
    """Return the CPU seconds of one run."""
    gc.collect()
    began = process_time()
    model(make(), scale)
    return process_time() - began


def yardstick() -> float:
    """Return the CPU seconds of a fixed piece of plain Python."""
    began = process_time()
    sum(i * i for i in range(10_000_000))
    return process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="runs of each model in each environment")
    parser.add_argument("--scale", type=float, default=1.0, help="length of the models")
    given = parser.parse_args()
    print(f"yardstick sum(i*i for i in range(10_000_000)): {min(yardstick() for _ in range(3)):.3f} s")
    print(f"{'model':14} {'simpy':>8} {'simmodel':>8} {'ratio':>6}")
    for model in MODELS:
        plain: list[float] = []
        ours: list[float] = []
        for turn in range(given.rounds):
            both: list[tuple[list[float], Callable[[], simpy.Environment]]] = [
                (plain, simpy.Environment),
                (ours, Environment),
            ]
            for times, make in both if turn % 2 else reversed(both):
                times.append(seconds(make, model, given.scale))
        ratio = min(ours) / min(plain)
        print(f"{model.__name__:14} {min(plain):8.3f} {min(ours):8.3f} {ratio:6.3f}")


if __name__ == "__main__":
    main()
