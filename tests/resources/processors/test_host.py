"""CPU sharing on a host: SimGrid's cases, cases worked by hand, and processor sharing against its closed form."""

import numpy as np
import pytest
import simpy

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.metrics.statistics import replications
from simmodel.resources.processors.host import Executed, Host
from tests.helpers.reference_cases import sharing_cases


def run(hosts, tasks):
    """Start each task (id, host, start, flop, priority) at its time; return the ends by id."""
    env = next(iter(hosts.values())).env
    ends = {}

    def go(task):
        yield env.timeout(task["start"])
        done = yield hosts[task["host"]].execute(task["flops"], priority=task.get("priority", 1))
        ends[task["id"]] = done.end

    for task in tasks:
        env.process(go(task))
    env.run()
    return ends


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("case", sharing_cases("cpu"))
def test_agrees_with_simgrid(case, order):
    env = Environment()
    hosts = {host["name"]: Host(env, host["speed"], host["cores"], host["name"]) for host in case["hosts"]}
    assert run(hosts, case["tasks"][::order]) == pytest.approx(case["expected"], rel=1e-12)


def task(name, flops, start=0, **options):
    return {"id": name, "host": "h", "start": start, "flops": flops, **options}


HAND = {
    # Cores of 100 flop/s, tasks, ends.
    "one core, one task": (1, [task("x", 1000)], {"x": 10}),
    "one task has one core only": (4, [task("x", 1000)], {"x": 10}),
    "as many as cores": (2, [task("x", 1000), task("y", 500)], {"x": 10, "y": 5}),
    # 200/3 each until 15, when y and z have had 1000; then x has 1000 left on its own core.
    "one too many": (2, [task("x", 2000), task("y", 1000), task("z", 1000)], {"x": 25, "y": 15, "z": 15}),
    "one comes later": (1, [task("x", 1000), task("y", 200, 5)], {"x": 12, "y": 9}),
    # Two cores, priorities 8, 1, 1: a whole core, and half a core each.
    "a high priority has one core at most": (
        2,
        [task("x", 1000, priority=8), task("y", 500), task("z", 500)],
        {"x": 10, "y": 10, "z": 10},
    ),
    "priorities": (1, [task("x", 1000), task("y", 750, priority=3)], {"x": 17.5, "y": 10}),
    "nothing to do": (1, [task("x", 0, 3), task("y", 500)], {"x": 3, "y": 5}),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("case", HAND)
def test_ends_of_tasks_on_a_host_are_as_by_hand(case, order):
    cores, tasks, ends = HAND[case]
    hosts = {"h": Host(Environment(), 100, cores, "h")}
    assert run(hosts, tasks[::order]) == pytest.approx(ends, rel=1e-12)


def test_speed_changes_interrupts_and_units():
    env = Environment()
    host = Host(env, "100f", cores=2)
    seen = []

    def work(env):
        execution = host.execute("2kf")
        try:
            yield execution
        except simpy.Interrupt:
            seen.append((execution.pause(), execution.flop_done))
        yield env.timeout(5)
        execution.resume()
        seen.append((yield execution))

    process = env.process(work(env))
    other = host.execute(1e4)
    env.run(until=4)
    host.set_speed(200)
    assert (host.channel.capacity, other.rate) == (400, 200)
    env.run(until=6)
    process.interrupt()
    env.run()
    assert seen == [(800, 800), Executed(0, 17, 2000)]
    assert other.end == 4 + (1e4 - 400) / 200


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"speed": 0}, "host h, speed: must be > 0, got 0"),
        ({"speed": "fast"}, "host h, speed: must be a quantity in flop/s such as '1Gf', got 'fast'"),
        ({"cores": 0}, "host h, cores: must be a whole number >= 1, got 0"),
        ({"cores": 1.5}, "host h, cores: must be a whole number >= 1, got 1.5"),
    ],
)
def test_wrong_hosts_are_refused(wrong, sentence):
    with pytest.raises(InputError) as caught:
        Host(Environment(), **{"speed": 1, "name": "h", **wrong})
    assert str(caught.value) == sentence


def test_wrong_executions():
    host = Host(Environment(), 1)
    for flop, priority in [(-1, 1), (float("nan"), 1), ("much", 1), (1, 0), (1, float("nan"))]:
        with pytest.raises(InputError, match=r"must be .*, got"):
            host.execute(flop, priority=priority)


# ---------------------------------------------------------------------- M/G/1 processor sharing

CLASSES = {1.0: 0.5, 4.0: 0.3, 10.0: 0.2}  # size (flop): part of the arrivals
MEAN = sum(size * part for size, part in CLASSES.items())


def sojourns(seed, load, arrivals=4000, warm_up=400):
    """Simulate Poisson arrivals of three classes on one core of 1 flop/s; return the mean sojourn of each class."""
    env = Environment(seed=seed)
    host = Host(env, 1.0)
    gaps = env.rng("gaps").exponential(MEAN / load, arrivals)
    sizes = env.rng("sizes").choice(list(CLASSES), size=arrivals, p=list(CLASSES.values()))
    executions = []

    def source(env):
        for gap, size in zip(gaps.tolist(), sizes.tolist(), strict=True):
            yield env.timeout(gap)
            executions.append(host.execute(size))

    env.process(source(env))
    env.run()
    kept = executions[warm_up:]
    return {size: np.mean([each.end - each.start for each in kept if each.size == size]) for size in CLASSES}


@pytest.mark.few(1)
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_mean_sojourn_of_processor_sharing_in_several_classes(load):
    """E[T | size] = size / (1 - load), whatever the distribution of sizes [Kleinrock, Queueing Systems II, 4.4]."""
    runs = {}

    def mean(seed, size):
        if seed not in runs:
            runs[seed] = sojourns(seed, load)
        return runs[seed][size]

    for size in CLASSES:
        interval = replications(lambda seed, size=size: mean(seed, size), 12, seed=5)
        assert size / (1 - load) in interval
        assert interval.half_width < 0.2 * size / (1 - load)
