"""Claims and bodies of jobs grow and shrink, in order, and hold no more and no less than their grants say."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
import simpy
from hypothesis import given, settings, strategies as st
from simpy.events import Event

from simmodel import Cluster, Elastic, Environment, Job, simulate
from simmodel.foundation.errors import ImpossibleWork, InputError, SnapshotError, Stalled
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.resources import CountPool, Grant, Lost, Preempted
from simmodel.work import LiveJob
from tests.helpers.event_integral import EventIntegral
from tests.helpers.examples import up_to
from tests.oracles.growing import Script, Step, grants

Steps = Generator[Event, Any, None]


def nodes(count: int, cores: int, **options: Any) -> ClusterSpec:
    kind = NodeSpec(count=count, cores=cores, switch="leaf", nodes_per_switch=2)
    return ClusterSpec(partitions=[PartitionSpec(nodes=[kind], **options)])


def holds(env: Environment, pool: Any, processors: int, until: float, **options: Any) -> Steps:
    """A process that claims processors until an instant."""
    with pool.claim(processors, **options) as claim, suppress(simpy.Interrupt):
        yield claim
        yield env.timeout(until - env.now)


# ---------------------------------------------------------------------- by hand


def test_a_claim_on_nodes_keeps_those_it_has_and_gives_back_those_of_the_highest_numbers():
    env = Environment()
    cluster = Cluster(env, nodes(4, 4))
    pool = cluster.places[0]
    seen = []

    def user():
        with pool.claim(3) as claim:
            grant = yield claim
            for step in (lambda: claim.grow(4), lambda: grant.grow(6)):
                yield step()
                seen.append((env.now, grant.processors, grant.nodes, pool.free))
                yield env.timeout(10)
            grant.shrink(8)
            seen.append((env.now, grant.processors, grant.nodes, pool.free))
            yield env.timeout(10)

    env.process(user())
    env.process(holds(env, pool, 6, 15))
    env.run()
    assert seen == [(0, 7, (0, 2, 3), 3), (15, 13, (0, 1, 2, 3), 3), (25, 5, (0, 1), 11)]
    rows = [tuple(row[name] for name in ("start", "end", "processors", "status", "cores")) for row in rows_of(cluster)]
    assert rows == [
        (0, 15, 7, "resized", (3, 3, 1)),
        (15, 25, 13, "resized", (4, 4, 4, 1)),
        (25, 35, 5, "released", (4, 1)),
    ]


def rows_of(cluster: Cluster) -> list[dict[str, Any]]:
    claims = cluster.result().claims
    assert claims is not None
    return [row for row in claims.rows() if row["claim"] == "claim 1"]


def test_a_body_grows_when_processors_come_free_and_its_job_keeps_the_number_it_requested():
    env = Environment()
    cluster = Cluster(env, 8, "fcfs")

    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        assert repr(grant) == "<grant of job a: 2 processors>"
        yield env.timeout(5)
        yield grant.grow(4)
        yield env.timeout(10)
        grant.shrink(1)
        assert (job.processors, job.preferred, grant.processors, grant.nodes) == (5, 2, 5, None)
        yield env.timeout(1)

    cluster.submit(Job(id="a", processors=2, requested=60, body=body))
    cluster.submit(Job(id="b", processors=6, run=20))
    cluster.submit(Job(id="c", processors=3, run=4))
    env.run()
    result = cluster.result()
    runs = [tuple(row[name] for name in ("job", "start", "end", "processors", "status")) for row in result.runs.rows()]
    assert runs == [
        ("a", 0, 20, 2, "resized"),
        ("b", 0, 20, 6, "completed"),
        ("a", 20, 30, 6, "resized"),
        ("a", 30, 31, 5, "completed"),
        ("c", 30, 34, 3, "completed"),
    ]
    assert result.jobs["processors"].tolist() == [2, 6, 3]
    assert result.jobs["run"].tolist() == [31, 20, 4]
    assert cluster.places[0].free == 8


def test_growth_waits_by_the_priority_of_its_claim_and_then_in_order():
    env = Environment()
    pool = CountPool(env, "pool", 8)
    order = []

    def user(name: str, priority: float) -> Steps:
        with pool.claim(1, priority=priority) as claim:
            grant = yield claim
            yield env.timeout(1)
            yield grant.grow(2)
            order.append((env.now, name))
            yield env.timeout(10)

    def late() -> Steps:
        yield env.timeout(2)
        yield from holds(env, pool, 2, 40)
        order.append((env.now, "late"))

    for name, priority in (("a", 0), ("b", 1), ("c", 0)):
        env.process(user(name, priority))
    env.process(holds(env, pool, 5, 20))
    env.process(late())
    env.run()
    assert order == [(20, "b"), (20, "a"), (30, "c"), (40, "late")]


@pytest.mark.parametrize("way", ["interrupt", "patience", "withdraw", "release", "kill"])
def test_growth_that_nobody_waits_for_is_withdrawn_and_holds_up_nobody(way: str):
    env = Environment()
    pool = CountPool(env, "pool", 4)
    ends = []

    def user() -> Steps:
        with pool.claim(2) as claim:
            grant = yield claim
            growth = grant.grow(2)
            try:
                if way == "patience":
                    found = yield growth | env.timeout(5)
                    assert growth not in found
                elif way == "interrupt":
                    yield growth
                else:
                    yield env.timeout(5)
                    if way == "withdraw":
                        growth.withdraw()
                    else:
                        return
            except simpy.Interrupt:
                pass
            assert grant.processors == 2
            yield env.timeout(15)
            growth.withdraw()  # no effect
            assert not growth.triggered

    def behind() -> Steps:
        yield env.timeout(1)
        yield from holds(env, pool, 1, 11)
        ends.append(env.now)

    process = env.process(user())
    env.process(holds(env, pool, 1, 30))
    env.process(behind())
    env.run(until=5)
    assert len(pool.claims.waiting) == 2
    if way == "interrupt":
        process.interrupt()
    elif way == "kill":
        from simmodel.resources.processors.processor import kill

        kill(process)
    env.run()
    assert ends == [11]
    assert (pool.free, pool.claims.waiting, len(pool.running)) == (4, [], 0)


def test_growth_may_preempt_as_its_claim_does():
    env = Environment()
    pool = CountPool(env, "pool", 4)
    seen = []

    def low() -> Steps:
        with pool.claim(2) as claim:
            grant = yield claim
            try:
                yield grant.grow(2)
            except simpy.Interrupt as interrupt:
                cause = interrupt.cause
                seen.append((env.now, isinstance(cause, Preempted) and cause.by is urgent, pool.claims.waiting))

    urgent: Any = None

    def high() -> Steps:
        nonlocal urgent
        urgent = pool.claim(1, priority=1, preempt=True)
        with urgent:
            grant = yield urgent
            yield env.timeout(3)
            yield grant.grow(3)
            seen.append((env.now, grant.processors))

    env.process(low())
    env.process(high())
    env.run()
    assert seen == [(3, 4), (3, True, [])] or seen == [(3, True, []), (3, 4)]
    assert pool.free == 4


def test_a_process_that_lets_another_preempt_it_is_interrupted_at_its_next_yield():
    env = Environment()
    pool = CountPool(env, "pool", 4)
    seen = []

    def two() -> Steps:
        with pool.claim(2) as low, pool.claim(2, priority=2) as safe:
            yield low & safe
            yield env.timeout(5)
            safe.shrink(1)
            seen.append(("goes on", pool.free))
            try:
                yield env.timeout(10)
            except simpy.Interrupt as interrupt:
                seen.append((env.now, type(interrupt.cause)))
            yield env.timeout(1)
            assert (low.holds, safe.processors) == (False, 1)

    def urgent() -> Steps:
        yield env.timeout(1)
        with pool.claim(3, priority=1, preempt=True) as claim:
            yield claim
            seen.append(env.now)
            yield env.timeout(3)

    env.process(two())
    env.process(urgent())
    env.run()
    assert seen == [("goes on", 0), (5, Preempted), 5]
    assert pool.free == 4


def test_what_a_failure_takes_is_all_that_a_claim_has_grown_to():
    env = Environment()
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4)])],
        outages=[OutageSpec(at=10, until=20, nodes=[1], kind="failure")],
    )
    cluster = Cluster(env, spec)
    pool = cluster.places[0]
    lost = []

    def user() -> Steps:
        with pool.claim(4) as claim:
            grant = yield claim
            yield grant.grow(2)
            try:
                yield grant.grow(2) & env.timeout(100)
            except simpy.Interrupt as interrupt:
                lost.append((env.now, type(interrupt.cause), pool.free))
            with pytest.raises(InputError, match="claim 1 of batch cannot grow: it holds nothing now"):
                grant.grow(1)

    env.process(user())
    env.process(holds(env, pool, 1, 30))
    env.run()
    assert lost[0][:2] == (10, Lost)
    assert [(row["processors"], row["status"]) for row in rows_of(cluster)] == [(6, "lost")]
    assert pool.free == 8


@pytest.mark.parametrize("on_failure", ["resubmit", "lose"])
def test_a_job_that_is_requeued_starts_at_the_size_that_it_requested(on_failure: Any):
    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        assert grant.processors == 2
        yield grant.grow(6)
        yield env.timeout(20)

    outage = OutageSpec(at=10, until=12, processors=8, kind="failure")
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], outages=[outage], on_failure=on_failure)
    result = simulate(spec, [Job(processors=2, requested=60, body=body)], "fcfs")
    rows = [(row["start"], row["end"], row["processors"], row["status"]) for row in result.runs.rows()]
    again = [(12, 32, 8, "completed")]
    assert rows == [(0, 10, 8, "requeued" if on_failure == "resubmit" else "lost")] + again * (on_failure == "resubmit")
    assert result.jobs["processors"].tolist() == [2]
    assert result.jobs["run"].tolist() == [20 if on_failure == "resubmit" else 10]


def test_plans_use_the_present_size():
    """The head needs what the first job has grown to: what runs longer than that job may start only beside the head."""
    starts = {}
    for grown in (True, False):

        def body(env: Environment, job: LiveJob, grant: Grant, grown: bool = grown) -> Steps:
            yield env.timeout(10)
            if grown:
                yield grant.grow(4)
            else:
                grant.shrink(4)
            yield env.timeout(90)

        first = Job(id="first", processors=2 if grown else 6, requested=100, body=body)
        other = [] if grown else [Job(id="other", submit=11, processors=4, run=200)]
        head = Job(id="head", submit=20, processors=4, run=50)
        small = Job(id="small", submit=21, processors=2, run=200)
        result = simulate(8, [first, *other, head, small], "easy")
        starts[grown] = dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))
    assert (starts[True]["head"], starts[True]["small"]) == (100, 21)
    assert (starts[False]["other"], starts[False]["head"], starts[False]["small"]) == (11, 100, 150)


def test_growth_does_not_run_into_an_announced_absence():
    env = Environment()
    pool = CountPool(env, "pool", 4)
    pool.announce(10, 20, 2)
    grown = []

    def user(duration: float) -> Steps:
        with pool.claim(1, duration=duration) as claim:
            grant = yield claim
            yield grant.grow(2)
            grown.append((env.now, duration))
            yield env.timeout(duration)

    env.process(user(15))
    env.run(until=9)
    assert grown == []
    env.run()
    assert grown == [(20, 15)]


def test_usage_of_users_and_above_follow_the_size():
    env = Environment()
    cluster = Cluster(env, 8, "multifactor")

    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        yield env.timeout(10)
        yield grant.grow(6)
        yield env.timeout(10)

    heard = []
    cluster.submit(Job(processors=2, requested=60, body=body, user="ann"))
    cluster.changed.append(lambda: heard.append(env.now))
    env.run()
    assert 10 in heard
    [usage] = cluster.core.usages
    used = dict(usage.by_user)["ann"]
    assert used[1] == 0  # nothing runs any more


def test_elastic_jobs_take_what_claims_and_bodies_give_back_although_nothing_waits():
    env = Environment()
    cluster = Cluster(env, 8, "keep-preferred")

    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        yield env.timeout(10)
        grant.shrink(2)
        yield env.timeout(40)

    cluster.submit(Job(id="e", run=100, elastic=Elastic(1, 2, 8)))  # 200 processor seconds
    cluster.submit(Job(id="b", processors=3, requested=60, body=body))
    env.process(holds(env, cluster.places[0], 3, 20))
    env.run()
    runs = [row for row in cluster.result().runs.rows() if row["job"] == "e"]
    sizes = [(row["start"], row["end"], row["processors"]) for row in runs]
    assert sizes == [(0, 10, 2), (10, 20, 4), (20, 40, 7)]


# ---------------------------------------------------------------------- refusals


def body_of(call: Callable[[Grant], object]) -> Callable[..., Steps]:
    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        yield env.timeout(1)
        call(grant)

    return body


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda grant: grant.shrink(4), InputError, "job a must keep a processor: it can give back 3, got 4"),
        (lambda grant: grant.shrink(0), InputError, "processors: must be a whole number >= 1, got 0"),
        (lambda grant: grant.grow(1.5), InputError, "processors: must be a whole number >= 1, got 1.5"),
        (lambda grant: grant.grow(True), InputError, "processors: must be a whole number >= 1, got True"),
        (lambda grant: grant.grow(7), ImpossibleWork, "job a: 11 processors requested, batch has 8"),
        (lambda grant: (grant.grow(4), grant.grow(1)), ImpossibleWork, "job a: 9 processors requested, batch has 8"),
    ],
)
def test_impossible_changes_are_refused(call: Any, kind: Any, said: str):
    with pytest.raises(kind) as error:
        simulate(8, [Job(id="a", processors=4, requested=9, body=body_of(call))], "fcfs")
    assert str(error.value) == said


def test_limits_of_the_partition_hold_for_bodies():
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8, max_processors=5)])
    job = Job(id="a", processors=4, requested=9, body=body_of(lambda grant: grant.grow(2)))
    with pytest.raises(ImpossibleWork, match="job a: 6 processors requested, batch allows 5"):
        simulate(spec, [job], "fcfs")


@pytest.mark.parametrize(
    ("options", "request_", "said"),
    [
        ({"one_host": True}, {"processors": 2}, "each job of batch runs on one host"),
        ({"placement": "contiguous"}, {"processors": 2}, "the placement of batch is 'contiguous'"),
        ({"placement": "exclusive-by-switch"}, {"processors": 2}, "the placement of batch is 'exclusive-by-switch'"),
        ({}, {"nodes": 1, "cores_per_node": 2}, "it requested 1 node with 2 cores"),
    ],
)
def test_places_and_requests_that_keep_their_size(options: Any, request_: Any, said: str):
    env = Environment()
    pool = Cluster(env, nodes(4, 4, **options)).places[0]
    claim = pool.claim(**request_)
    env.run()
    for change, name in ((claim.grow, "grow"), (claim.shrink, "shrink")):
        with pytest.raises(InputError) as error:
            change(1)
        assert str(error.value) == f"claim 1 of batch cannot {name}: {said}"


def test_a_claim_that_waits_or_has_ended_cannot_grow():
    env = Environment()
    pool = CountPool(env, "pool", 4)
    first, second = pool.claim(3), pool.claim(2)
    for change in (second.grow, second.shrink):
        with pytest.raises(InputError, match=r"claim 2 of pool cannot \w+: it holds nothing now"):
            change(1)
    first.release()
    with pytest.raises(InputError, match="claim 1 of pool cannot grow: it holds nothing now"):
        first.grow(1)
    with pytest.raises(InputError, match="only the grants of claims and of the bodies of jobs grow"):
        Grant(4).grow(1)


def test_the_report_of_a_stalled_run_names_growth_that_waits():
    env = Environment()
    cluster = Cluster(env, 4)

    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        yield env.timeout(3)
        yield grant.grow(2)

    for _ in range(2):
        cluster.submit(Job(processors=2, body=body))
    with pytest.raises(Stalled, match=r"body waits for a request for 2 more processors of batch since 3; 0 are free"):
        env.run()


def test_scripts_are_not_copied_but_what_policies_see_is():
    env = Environment()
    cluster = Cluster(env, 8, "easy")

    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        yield grant.grow(3)
        yield env.timeout(90)

    cluster.submit(Job(processors=2, requested=100, body=body))
    cluster.submit(Job(processors=4, run=10))
    env.run(until=15)
    with pytest.raises(SnapshotError, match="cannot be copied"):
        cluster.snapshot()
    seen = cluster.snapshot(actual=False)
    later = Environment(15)
    after = Cluster.from_snapshot(later, seen, "easy")
    assert [run.job.processors for run in after.view.running] == [5]
    assert after.result().jobs["processors"].tolist() == [5]  # it is one of fixed size there
    waits = after.submit(Job(processors=4, run=10))
    later.run()
    assert waits.started == 100


# ---------------------------------------------------------------------- at random


@st.composite
def scripts(draw: st.DrawFn) -> list[Script]:
    drawn = Random(draw(st.integers(0, 10**6)))
    found = []
    for _ in range(drawn.randint(2, 6)):
        steps = [
            Step(drawn.random() * 9, drawn.choice(["grow", "grow", "shrink"]), drawn.randint(1, 4), drawn.random() * 20)
            for _ in range(drawn.randint(0, 5))
        ]
        found.append(Script(drawn.random() * 30, drawn.randint(1, 4), drawn.randint(0, 2), steps, drawn.random() * 9))
    return found


def follow(
    env: Environment,
    pool: Any,
    number: int,
    script: Script,
    note: Callable[[int, int], object],
    preempt: bool = False,
) -> Steps:
    """The process of a script."""
    yield env.timeout(script.at)
    with pool.claim(script.processors, priority=script.priority, preempt=preempt) as claim:
        grant = yield claim
        note(number, grant.processors)
        for after, what, processors, patience in script.steps:
            yield env.timeout(after)
            if what == "grow" and grant.processors + processors <= pool.capacity:
                growth = grant.grow(processors)
                if growth in (yield growth | env.timeout(patience)):
                    note(number, grant.processors)
            elif what == "shrink" and processors < grant.processors:
                grant.shrink(processors)
                note(number, grant.processors)
        yield env.timeout(script.release_after)
    note(number, 0)


@settings(max_examples=up_to(40), deadline=None)
@given(scripts())
def test_claims_are_served_as_step_by_step(found: list[Script]):
    env = Environment()
    pool = CountPool(env, "pool", 6)
    changes: list[tuple[float, int, int]] = []
    for number, script in enumerate(found):
        env.process(follow(env, pool, number, script, lambda who, held: changes.append((env.now, who, held))))
    env.run()
    assert sorted(changes) == sorted(grants(found, 6))
    assert pool.free == 6


PARTITIONS: dict[str, Any] = {
    "counted": {"processors": 12},
    "shared nodes": {"nodes": [NodeSpec(count=4, cores=3)]},
    "exclusive nodes": {"nodes": [NodeSpec(count=4, cores=3)], "exclusive": True},
    "different nodes": {"nodes": [NodeSpec(count=2, cores=4), NodeSpec(name="b", count=4, cores=1)]},
}


def drawn_platform(name: str, drawn: Random) -> ClusterSpec:
    """Return a platform, in half of the cases with a failure and a drain."""
    outages = []
    for kind in ("failure", "drain") if drawn.random() < 0.5 else ():
        at = drawn.randint(1, 40)
        part: dict[str, Any] = {"processors": 3} if name == "counted" else {"nodes": [drawn.randint(0, 3)]}
        outages.append(OutageSpec(at=at, until=at + drawn.randint(1, 20), kind=kind, **part))
    return ClusterSpec(partitions=[PartitionSpec(**PARTITIONS[name])], outages=outages)


def drawn_body(seed: int) -> Callable[..., Steps]:
    def body(env: Environment, job: LiveJob, grant: Grant) -> Steps:
        drawn = Random(seed)
        for _ in range(drawn.randint(1, 4)):
            yield env.timeout(drawn.randint(0, 6))
            if drawn.random() < 0.6:
                more = drawn.randint(1, 4)
                if job.processors + more <= 12:
                    yield grant.grow(more) | env.timeout(drawn.randint(1, 9))
            elif job.processors > 1:
                grant.shrink(drawn.randint(1, job.processors - 1))

    return body


def drawn_job(drawn: Random) -> Job:
    kind = drawn.choice(["rigid", "body", "elastic"])
    if kind == "body":
        return Job(processors=drawn.randint(1, 6), body=drawn_body(drawn.randint(0, 999)), requested=60)
    if kind == "elastic":
        return Job(run=drawn.randint(0, 20), elastic=Elastic(1, drawn.randint(1, 4), 6))
    return Job(processors=drawn.randint(1, 6), run=drawn.randint(0, 20))


def check_conserved(name: str, policy: str, found: list[Script], seed: int) -> None:
    env, drawn = Environment(), Random(seed)
    cluster = Cluster(env, drawn_platform(name, drawn), policy)
    pool = cluster.places[0]
    integral = EventIntegral(cluster)
    env.observe(integral)
    for number, script in enumerate(found):
        env.process(until_interrupted(follow(env, pool, number, script, lambda *_: None, drawn.random() < 0.3)))
    for _ in range(8):
        env.process(submitted(env, cluster, drawn.randint(0, 30), drawn_job(drawn)))
    env.run()
    result = cluster.result()
    assert set(result.jobs["status"].tolist()) <= {"completed", "timeout"}
    assert (pool.free, len(pool.running), pool.claims.waiting, pool.claims.held) == (12, 0, [], [])
    integral.check()
    rows = [*result.runs.rows(), *(() if result.claims is None else result.claims.rows())]
    held = sum((row["end"] - row["start"]) * row["processors"] for row in rows)
    assert result.busy().integral() == pytest.approx(held)
    assert integral.integral(None, "busy", result.started, result.ended) == pytest.approx(held)
    allocated = integral.integral(None, "allocated", result.started, result.ended)
    assert result.allocated().integral() == pytest.approx(allocated)


POLICIES = ("easy", "shrink-to-start", "conservative")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PARTITIONS)
@settings(max_examples=4, deadline=None)
@given(found=scripts(), seed=st.integers(0, 10**6))
def test_processors_are_conserved(name: str, policy: str, found: list[Script], seed: int):
    check_conserved(name, policy, found, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PARTITIONS)
@settings(max_examples=up_to(150), deadline=None)
@given(found=scripts(), seed=st.integers(0, 10**6))
def test_processors_are_conserved_in_many_runs(name: str, policy: str, found: list[Script], seed: int):
    check_conserved(name, policy, found, seed)


def until_interrupted(steps: Steps) -> Steps:
    """A process that ends when a failure, or a claim of higher priority, takes what it holds."""
    with suppress(simpy.Interrupt):
        yield from steps


def submitted(env: Environment, cluster: Cluster, at: float, job: Job) -> Steps:
    yield env.timeout(at)
    cluster.submit(job)
