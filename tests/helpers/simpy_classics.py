"""SimPy's classic examples, each a function of (environment, random numbers, log) that only uses SimPy."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any

import simpy

Body = Generator[Any, Any, Any]
Log = list[Any]


def machine_shop(env: simpy.Environment, rng: Random, log: Log) -> None:
    """Ten machines make parts and break; one repairman leaves other work for them."""
    repairman = simpy.PreemptiveResource(env, capacity=1)
    made = [0] * 10
    broken = [False] * 10

    def machine(number: int) -> Body:
        while True:
            left = rng.normalvariate(10, 2)
            while left > 0:
                began = env.now
                try:
                    yield env.timeout(max(left, 0))
                    left = 0
                except simpy.Interrupt:
                    left -= env.now - began
                    broken[number] = True
                    with repairman.request(priority=1) as request:
                        yield request
                        yield env.timeout(30)
                    broken[number] = False
                    log.append((env.now, "repaired", number))
            made[number] += 1

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
            log.append((env.now, "other job done"))

    for number in range(10):
        env.process(breaks(number, env.process(machine(number))))
    env.process(other_jobs())
    env.run(until=5000)
    log.append(made)


def bank_renege(env: simpy.Environment, rng: Random, log: Log) -> None:
    """Customers come, wait for the counter as long as their patience lasts, and leave."""
    counter = simpy.Resource(env, capacity=1)

    def customer(name: int) -> Body:
        arrived = env.now
        with counter.request() as request:
            result = yield request | env.timeout(rng.uniform(1, 3))
            log.append((env.now, name, "served" if request in result else "reneged", env.now - arrived))
            if request in result:
                yield env.timeout(rng.expovariate(1 / 12))
                log.append((env.now, name, "finished"))

    def source() -> Body:
        for name in range(60):
            env.process(customer(name))
            yield env.timeout(rng.expovariate(1 / 10))

    env.process(source())
    env.run()


def carwash(env: simpy.Environment, rng: Random, log: Log) -> None:
    """Cars share two washing machines."""
    machines = simpy.Resource(env, 2)

    def wash(car: str) -> Body:
        yield env.timeout(5)
        log.append((env.now, car, rng.randint(50, 99)))

    def drive(car: str) -> Body:
        log.append((env.now, car, "arrives"))
        with machines.request() as request:
            yield request
            log.append((env.now, car, "enters"))
            yield env.process(wash(car))
            log.append((env.now, car, "leaves"))

    def source() -> Body:
        for number in range(4):
            env.process(drive(f"car {number}"))
        for number in range(4, 30):
            yield env.timeout(rng.randint(5, 9))
            env.process(drive(f"car {number}"))

    env.process(source())
    env.run(until=120)


def gas_station(env: simpy.Environment, rng: Random, log: Log) -> None:
    """Cars drain a station's tank, and a truck fills it when it is low."""
    pumps = simpy.Resource(env, 2)
    tank = simpy.Container(env, 200, init=200)

    def car(number: int) -> Body:
        with pumps.request() as request:
            arrived = env.now
            yield request
            needed = 50 - rng.randint(5, 25)
            yield tank.get(needed)
            yield env.timeout(needed / 2)
            log.append((env.now, number, needed, env.now - arrived, tank.level))

    def truck() -> Body:
        yield env.timeout(300)
        amount = tank.capacity - tank.level
        yield tank.put(amount)
        log.append((env.now, "truck", amount))

    def control() -> Body:
        while True:
            if tank.level / tank.capacity < 0.25:
                yield env.process(truck())
            yield env.timeout(10)

    def source() -> Body:
        number = 0
        while True:
            yield env.timeout(rng.randint(30, 300))
            env.process(car(number))
            number += 1

    env.process(control())
    env.process(source())
    env.run(until=10_000)


def event_latency(env: simpy.Environment, rng: Random, log: Log) -> None:
    """A cable delivers messages late."""
    cable = simpy.Store(env)

    def late(message: str) -> Body:
        yield env.timeout(10)
        yield cable.put(message)

    def sender() -> Body:
        while True:
            yield env.timeout(5)
            env.process(late(f"sent at {env.now}"))

    def receiver() -> Body:
        while True:
            log.append((env.now, (yield cable.get())))

    env.process(sender())
    env.process(receiver())
    env.run(until=100)


def process_communication(env: simpy.Environment, rng: Random, log: Log) -> None:
    """One generator talks to two consumers through a pipe of stores."""
    pipes = [simpy.Store(env), simpy.Store(env)]

    def generator() -> Body:
        while True:
            yield env.timeout(rng.randint(6, 10))
            yield env.all_of([pipe.put((env.now, "news")) for pipe in pipes])

    def consumer(name: str, pipe: simpy.Store) -> Body:
        while True:
            sent, text = yield pipe.get()
            log.append((env.now, name, "late" if sent < env.now else "on time", text))
            yield env.timeout(rng.randint(4, 8))

    env.process(generator())
    for name, pipe in zip("AB", pipes, strict=True):
        env.process(consumer(name, pipe))
    env.run(until=200)


def movie(env: simpy.Environment, rng: Random, log: Log) -> None:
    """Moviegoers queue for tickets until a film is sold out."""
    counter = simpy.Resource(env, capacity=1)
    available = {"life": 50, "meaning": 50}
    sold_out = {film: env.event() for film in available}

    def moviegoer(film: str, tickets: int) -> Body:
        with counter.request() as turn:
            result = yield turn | sold_out[film]
            if turn not in result:
                log.append((env.now, film, "reneged"))
                return
            if available[film] < tickets:
                yield env.timeout(0.5)
                return
            available[film] -= tickets
            if available[film] < 2:
                sold_out[film].succeed()
                log.append((env.now, film, "sold out"))
                available[film] = 0
            yield env.timeout(1)

    def source() -> Body:
        while True:
            yield env.timeout(rng.expovariate(1 / 0.5))
            film = rng.choice(sorted(available))
            if available[film]:
                env.process(moviegoer(film, rng.randint(1, 6)))

    env.process(source())
    env.run(until=120)


CLASSICS = (machine_shop, bank_renege, carwash, gas_station, event_latency, process_communication, movie)
