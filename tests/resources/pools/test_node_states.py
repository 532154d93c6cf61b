"""The counts of nodes that waiting jobs could have, after any changes of the nodes, against the table of the nodes."""

import sys
from random import Random

import numpy as np
import pytest

from simmodel.environment import Environment
from simmodel.platform.cluster import NodeSpec, PartitionSpec
from simmodel.resources.pools.nodes import NodePool
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.work.job import Job, LiveJob


def pool_and_queue(env, exclusive):
    """Return a pool of nodes of three kinds, one of them in two places, and the queue of its waiting jobs."""
    shapes = [(4, 0, 16), (8, 2, 24), (4, 0, 16), (2, 1, 0)]
    kinds = [NodeSpec(name=f"k{i}-", count=3, cores=c, gpus=g, memory=m) for i, (c, g, m) in enumerate(shapes)]
    return NodePool(env, "batch", PartitionSpec(nodes=kinds, exclusive=exclusive)), WaitingQueue(env)


def drawn_job(rng, pool, number):
    """Return a live job for one to five nodes with a random part of a random kind."""
    cores, gpus, memory = pool.table.capacity[:, rng.randrange(len(pool.nodes))].astype(int).tolist()
    job = Job(
        run=1,
        nodes=rng.randint(1, 5),
        cores_per_node=rng.choice([cores, rng.randint(1, cores)]),
        gpus_per_node=rng.randint(0, gpus),
        memory_per_node=rng.choice([0, rng.randint(0, min(memory, 40))]),
    )
    seconds = float(rng.randint(1, 50))
    live = LiveJob(number, number, 0.0, job.processors, seconds, seconds, seconds)
    live.request = pool.request_of(job)
    return live


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(40))
def test_what_fits_is_known_after_any_changes(seed):
    rng = Random(seed)
    env = Environment()
    pool, queue = pool_and_queue(env, exclusive=seed % 4 == 0)
    running, down = [], []
    for number in range(120):
        if rng.random() < 0.6:
            queue.add(drawn_job(rng, pool, number))
        states = pool.states(queue)
        action = rng.random()
        fitting = [job for job in queue if pool.table.fits(job.request)]
        if action < 0.4 and fitting:
            job = rng.choice(fitting)
            running.append((job, pool.take(job)))
            queue.remove(job)
            job.state = "running"
        elif action < 0.7 and running:
            pool.give_back(*running.pop(rng.randrange(len(running))))
        elif action < 0.8:
            down.append(rng.sample(range(len(pool.nodes)), 2))
            pool.take_down(down[-1])
        elif down:
            pool.bring_up(down.pop())
        for job in queue:
            fits, found = pool.table.fits(job.request), states.fits(job)
            assert pool.fits(job) == fits
            assert found is None or found == fits
        ends = states.ends
        idle = [node for node in range(len(pool.nodes)) if not any(node in grant.nodes for _, grant in running)]
        assert (ends.last == 0).nonzero()[0].tolist() == idle
        assert np.isinf(ends.first).nonzero()[0].tolist() == idle


def calls_of_a_failure(classes):
    """Return how many functions of Python a node that fails, and is repaired, calls while jobs of many classes wait."""
    env = Environment()
    pool = NodePool(env, "batch", PartitionSpec(nodes=[NodeSpec(count=50, cores=64)]))
    queue = WaitingQueue(env)
    for number in range(classes):
        live = LiveJob(number, number, 0.0, 1 + number, 9.0, 9.0, 9.0)
        live.request = pool.request_of(Job(run=1, nodes=1, cores_per_node=1 + number))
        queue.add(live)
    pool.states(queue)
    pool.take_down([0])
    pool.bring_up([0])
    found = 0

    def count(_frame, event, _):
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    pool.take_down([7])
    pool.bring_up([7])
    sys.setprofile(None)
    return found


def test_a_node_that_fails_costs_the_same_whatever_waits():
    assert calls_of_a_failure(60) == calls_of_a_failure(1) > 0
