"""Queues with closed-form waits, as plain SimPy scenarios on the package's resources."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from simmodel.environment import Environment
from simmodel.metrics.statistics import replications
from simmodel.policies import Backfill
from simmodel.resources.pools.claims import Preempted
from simmodel.resources.pools.counts import CountPool
from simmodel.runs.scenario import simulate
from simmodel.work.job import Job
from simmodel.work.workload import Workload
from tests.helpers.examples import up_to
from tests.oracles import queues

CUSTOMERS = 4000
WARMUP = 500


def mean_waits(seed, servers, classes, *, preempt=False):
    """Return the mean wait of each class (with preemption, the time in the system) in one replication in plain SimPy.

    ``classes``: (arrivals a second, priority, draw(rng) -> service seconds) each.
    """
    env = Environment(seed=seed)
    pool = CountPool(env, "servers", servers)
    seen = [[] for _ in classes]
    causes = set()

    def customer(number, arrived, service, priority):
        left = service
        while left > 0:
            with pool.claim(1, priority=priority, preempt=preempt) as grant:
                yield grant
                began = env.now
                try:
                    yield env.timeout(left)
                    left = 0
                except simpy.Interrupt as interrupt:
                    causes.add(type(interrupt.cause))
                    left -= env.now - began
        seen[number].append(env.now - arrived - (0 if preempt else service))

    def source(number, rate, priority, draw):
        rng = env.rng(f"class {number}")
        while True:
            yield env.timeout(rng.exponential(1 / rate))
            env.process(customer(number, env.now, draw(rng), priority))

    for number, (rate, priority, draw) in enumerate(classes):
        env.process(source(number, rate, priority, draw))
    total = sum(rate for rate, _, _ in classes)
    env.run(until=CUSTOMERS / total)
    assert causes == ({Preempted} if preempt else set())
    return [
        float(np.mean(waits[int(WARMUP * rate / total) :])) for waits, (rate, _, _) in zip(seen, classes, strict=True)
    ]


@pytest.mark.parametrize(("runs", "half_width"), [(6, 1.5), pytest.param(12, 0.5, marks=pytest.mark.long)])
def test_waits_of_mmc_cover_erlangs_formula(runs, half_width):
    interval = replications(lambda seed: mean_waits(seed, 3, [(2.4, 0, lambda rng: rng.exponential(1.0))])[0], runs)
    assert queues.mmc_wait(2.4, 1.0, 3) in interval
    assert interval.half_width < half_width


@pytest.mark.long
def test_mg1_with_priorities():
    """Two priority classes with uniform and exponential service (Cobham)."""
    classes = [(0.3, 1, lambda rng: rng.uniform(0.5, 1.5)), (0.4, 0, lambda rng: rng.exponential(1.0))]
    moments = [1.0 + 1 / 12, 2.0]
    expected = queues.priority_waits([0.3, 0.4], [1.0, 1.0], moments)
    for number, wait in enumerate(expected):
        assert wait in replications(lambda seed, number=number: mean_waits(seed, 1, classes)[number], 12, seed=number)


@pytest.mark.long
def test_mm1_preemptive():
    """The higher class sees its own M/M/1; the lower one resumes after an interrupt."""
    classes = [(0.3, 1, lambda rng: rng.exponential(1.0)), (0.4, 0, lambda rng: rng.exponential(1.0))]
    expected = queues.preemptive_responses([0.3, 0.4], [1.0, 1.0], [2.0, 2.0])
    assert expected[0] == pytest.approx(1 / (1 - 0.3))
    for number, response in enumerate(expected):
        interval = replications(
            lambda seed, number=number: mean_waits(seed, 1, classes, preempt=True)[number], 12, seed=number
        )
        assert response in interval


def batch_wait(seed, policy, processors, rate, draw):
    """Return the mean wait of serial jobs in a batch cluster after the warm-up, in one replication."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(1 / rate, 12_000))
    run = draw(rng, len(submit))
    workload = Workload({"submit": submit, "run": run, "requested": run, "processors": np.ones(len(run), int)})
    return float(simulate(processors, workload, policy).jobs["wait"][1000:].mean())


@pytest.mark.long  # smaller: the other tests of the file
def test_mmc_as_a_batch_cluster():
    interval = replications(
        lambda seed: batch_wait(seed, "fcfs", 4, 3.2, lambda rng, n: rng.exponential(1, n)), up_to(10, 5)
    )
    assert queues.mmc_wait(3.2, 1.0, 4) in interval


def test_mg1_as_a_batch_cluster():
    """Deterministic service: Pollaczek-Khinchine, half the wait of M/M/1."""
    interval = replications(lambda seed: batch_wait(seed, "fcfs", 1, 0.7, lambda rng, n: np.ones(n)), up_to(10, 5))
    assert queues.mg1_wait(0.7, 1.0, 1.0) in interval


def test_shortest_job_first_as_a_batch_cluster():
    """M/M/1 with shortest job first."""
    expected = queues.sjf_wait(0.7, lambda x: float(np.exp(-x)), 1.0, 2.0)
    interval = replications(
        lambda seed: batch_wait(seed, "sjf", 1, 0.7, lambda rng, n: rng.exponential(1, n)), up_to(12, 5)
    )
    assert expected in interval
    assert expected < queues.mg1_wait(0.7, 1.0, 2.0)


@pytest.mark.long
def test_a_key_function_gives_priorities_to_classes():
    """The waits of Cobham from a batch cluster ordered by a key function."""
    expected = queues.priority_waits([0.35, 0.35], [1.0, 1.0], [2.0, 2.0])

    def waits(seed):
        rng = np.random.default_rng(seed)
        submit = np.cumsum(rng.exponential(1 / 0.7, 12_000))
        run = rng.exponential(1, len(submit))
        user = rng.integers(0, 2, len(submit))
        columns = {"submit": submit, "run": run, "requested": run, "processors": np.ones(len(run), int), "user": user}
        result = simulate(1, Workload(columns), Backfill(lambda job: job.user, "none"))
        return [float(result.jobs["wait"][1000:][user[1000:] == number].mean()) for number in (0, 1)]

    for number in (0, 1):
        assert expected[number] in replications(lambda seed, number=number: waits(seed)[number], 8, seed=number)


def test_claims_of_everything_or_nothing_do_not_deadlock():
    """Two processes that both need the whole pool run one after the other; neither ever holds half."""
    env = Environment()
    pool = CountPool(env, "pool", 2)
    order = []

    def user(name):
        with pool.claim(2) as grant:
            yield grant
            order.append((env.now, name))
            yield env.timeout(1)

    for name in "abc":
        env.process(user(name))
    env.run()
    assert order == [(0, "a"), (1, "b"), (2, "c")]
    assert pool.free == 2


def test_a_claim_is_given_back_on_an_interrupt_and_withdrawn_while_it_waits():
    env = Environment()
    pool = CountPool(env, "pool", 1)
    log = []

    def holder():
        try:
            with pool.claim(1) as grant:
                yield grant
                yield env.timeout(100)
        except simpy.Interrupt:
            log.append(("stopped", env.now))

    def waiter(patience):
        with pool.claim(1) as grant:
            got = yield grant | env.timeout(patience)
            log.append((patience, grant in got, env.now))

    first = env.process(holder())
    env.process(waiter(2))
    env.process(waiter(50))

    def stop():
        yield env.timeout(10)
        first.interrupt()

    env.process(stop())
    env.run()
    assert log == [(2, False, 2), ("stopped", 10), (50, True, 10)]
    assert pool.free == 1


def test_jobs_and_claims_share_a_pool():
    from simmodel.systems.cluster.system import Cluster

    env = Environment()
    cluster = Cluster(env, 4)
    pool = cluster.places[0]

    def interactive():
        with pool.claim(3) as grant:
            yield grant
            yield env.timeout(10)

    env.process(interactive())

    def submit():
        yield env.timeout(1)
        job = cluster.submit(Job(processors=2, run=5))
        yield job
        assert (job.started, env.now) == (10, 15)

    env.run(env.process(submit()))
