"""Claims that are preempted or lost: who is told, also if the process that made them has ended."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy

from simmodel import Cluster, Environment
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec

Steps = Generator[Any, Any, None]
ONE_NODE = PartitionSpec(nodes=[NodeSpec(count=1, cores=1)])
LOST = ClusterSpec(partitions=[ONE_NODE], outages=[OutageSpec(at=3, until=4, nodes=[0], kind="failure")])
PREEMPTED = ClusterSpec(partitions=[ONE_NODE])


class Ends:
    """Hears of the ends of claims."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, str]] = []

    def claim_ended(self, claim: Any, status: str) -> None:
        self.heard.append((claim.pool.env.now, status))


def a_run(spec: ClusterSpec, maker: str) -> tuple[list[Any], list[tuple[float, str]], int]:
    """Return what a worker and an urgent claim saw, the ends of claims, and what is free in the end."""
    env = Environment()
    pool = Cluster(env, spec).places[0]
    seen: list[Any] = []
    ends = Ends()
    env.observe(ends)

    def worker() -> Steps:
        try:
            yield env.timeout(10)
            seen.append(("worked", env.now))
        except simpy.Interrupt as interrupt:
            seen.append((type(interrupt.cause).__name__, env.now))

    def make() -> Steps:
        claim = pool.claim(1)
        yield claim
        process = env.process(worker())
        if maker == "hands over":
            claim.process = process

    def urgent() -> Steps:
        yield env.timeout(3)
        with pool.claim(1, priority=1, preempt=True) as claim:
            yield claim
            seen.append(("urgent", env.now))
            yield env.timeout(2)

    if maker == "none":
        pool.claim(1)
    else:
        env.process(make())
    if spec is PREEMPTED:
        env.process(urgent())
    env.run(until=20)
    return seen, ends.heard, pool.free


@pytest.mark.parametrize(("spec", "word"), [(PREEMPTED, "preempted"), (LOST, "lost")])
@pytest.mark.parametrize(
    ("maker", "who"), [("ends", "its process make has ended"), ("none", "made outside any process")]
)
def test_a_claim_whose_process_is_over_is_released_and_says_so(
    spec: ClusterSpec, word: str, maker: str, who: str
) -> None:
    says = rf"claim 1 of batch was {word} at 3 s and released, but no process was .*{who}; .* set claim\.process"
    with pytest.warns(RuntimeWarning, match=says):
        seen, ended, free = a_run(spec, maker)
    assert ended[0] == (3, word)
    assert free == 1
    assert ("urgent", 3) in seen or spec is LOST


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("spec", "cause"), [(PREEMPTED, "Preempted"), (LOST, "Lost")])
def test_the_process_that_works_with_the_grant_can_be_named(spec: ClusterSpec, cause: str) -> None:
    seen, _, free = a_run(spec, "hands over")
    assert seen[0] == (cause, 3)
    assert free == 1


@pytest.mark.filterwarnings("error")
def test_a_process_that_shrinks_for_a_preemption_and_ends_at_once_needs_no_word() -> None:
    env = Environment()
    pool = Cluster(env, 2).places[0]

    def both() -> Steps:
        low = pool.claim(2)
        yield low
        yield env.timeout(1)
        pool.claim(1, priority=1, preempt=True)

    env.process(both())
    env.run()
    assert pool.free == 1
