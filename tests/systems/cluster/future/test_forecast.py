"""Forecasts of clusters: projections equal fresh simulations, and both equal plain replays."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform.cluster import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, QueueSpec
from simmodel.policies.mapping import MappingPolicy
from simmodel.scheduling.protocol import Start
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.future.guest import Forecast
from simmodel.systems.cluster.future.plan import ProjectedEasy, ProjectedJob, ProjectedPlan, Projection
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from tests.helpers.broker_cases import MODES, Case, alone, cases
from tests.helpers.examples import up_to

CORES = (0, 1, 3)  # counted processors, and exclusive nodes
PATIENT = settings(max_examples=up_to(120), deadline=None, suppress_health_check=list(HealthCheck))


class Asking(MappingPolicy):
    """Estimates on some places by projection and by simulation, and sends each job to the place in a list."""

    def __init__(self, asked, sent):
        self.asked, self.sent = asked, sent
        self.forecasts = {}
        self.told = []
        self.count = 0

    def decide(self, view):
        for job in view.waiting:
            i = self.count = self.count + 1
            able = [place for place in view.places if place.can_run(job)]
            for place in able:
                if self.asked[i % len(self.asked)]:
                    fresh = self.forecasts.setdefault(place.name, Forecast(place.system, place.forecast.by, kept=False))
                    kept = view.estimate(job, place)
                    place.forecast, usual = fresh, place.forecast
                    anew = view.estimate(job, place)
                    place.forecast = usual
                    self.told.append((job, place.name, kept, anew))
            yield Start(job, able[self.sent[i % len(self.sent)] % len(able)])


@PATIENT
@given(
    case=cases(cores=CORES),
    asked=st.lists(st.booleans(), min_size=1, max_size=5),
    sent=st.lists(st.integers(0, 1), min_size=1, max_size=5),
)
def test_the_future_that_is_kept_is_the_one_simulated_anew(case: Case, asked: list[bool], sent: list[int]) -> None:
    policy = Asking(asked, sent)
    env, _ = case.broker(policy)
    env.run()
    for job, place, kept, anew in policy.told:
        assert kept == anew, (job, place)


@PATIENT
@given(
    case=cases(policies=("easy", "conservative"), modes=MODES[:2], shortest=1, cores=CORES),
    sent=st.lists(st.integers(0, 1), min_size=1, max_size=5),
)
def test_the_fast_paths_do_the_same(case: Case, sent: list[int]) -> None:
    """As above, for clusters whose projection is always kept."""
    policy = Asking([True], sent)
    env, broker = case.broker(policy)
    env.run()
    for _, _, kept, anew in policy.told:
        assert kept == anew
    assert all(member.forecast._kind is not None for member in broker.places)


@PATIENT
@given(case=cases(shortest=1, cores=CORES), sent=st.lists(st.integers(0, 1), min_size=1, max_size=5))
def test_a_forecast_by_actual_times_is_a_replay_of_what_came_so_far(case: Case, sent: list[int]) -> None:
    case = case._replace(by="actual")
    policy = Asking([True], sent)
    env, broker = case.broker(policy)
    env.run()
    result = broker.result()
    row_of = {name: row for row, name in enumerate(result.jobs["job"].tolist())}
    went = {name: [] for name in "ab"}
    for job in dict.fromkeys(each[0] for each in policy.told):
        for other, place, kept, _ in policy.told:
            if other is not job:
                continue
            which = "ab".index(place)
            factor = broker.named[place].factor(job.home.name)
            here = (job.came, job._length * factor, job.limit * factor, job.processors)
            assert kept.start == alone(case, which, [*went[place], here])[-1]
            assert kept.run == min(here[1], here[2])
        destination = str(result.jobs["destination"][row_of[job.id]])
        factor = broker.named[destination].factor(job.home.name)
        went[destination].append((job.came, job._length * factor, job.limit * factor, job.processors))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.few(6)
def test_overloaded_clusters_answer_as_if_simulated_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues grow on three clusters under EASY; jobs end before their request, are cancelled or fit one cluster only.

    Mostly the queues are projected again as they are known, and not read anew.
    """
    known: list[bool] = []
    read: list[float] = []
    again, restart = ProjectedEasy.again, ProjectedEasy.restart

    def counted(self: ProjectedEasy, *given: Any) -> bool:
        known.append(again(self, *given))
        return known[-1]

    def noted(self: ProjectedEasy, now: float, *given: Any) -> None:
        read.append(now)
        restart(self, now, *given)

    monkeypatch.setattr(ProjectedEasy, "again", counted)
    monkeypatch.setattr(ProjectedEasy, "restart", noted)
    rng = np.random.default_rng(seed)
    env = Environment()
    each = {} if seed % 2 else MODES[1]
    clusters = [Cluster(env, size, "easy", name=name, **each) for name, size in (("a", 4), ("b", 7), ("c", 12))]
    policy = Asking([True, True, False], rng.integers(0, 3, 5).tolist())
    broker = Broker(env, clusters, policy, slowdowns=[1, 1.5, 3])
    submit = np.sort(rng.integers(0, 150, 90))
    for i, at in enumerate(submit.tolist()):
        run = int(rng.integers(1, 20))
        broker.submit(
            Job(
                id=i,
                submit=at,
                processors=int(rng.choice([1, 2, 3, 4, 6, 10], p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])),
                run=run,
                requested=run * int(rng.choice([1, 2, 4])),
                cancel=at + 40 if rng.random() < 0.03 else None,
            ),
            at=at,
        )
    env.run()
    assert len(policy.told) > 80
    for job, place, kept, anew in policy.told:
        assert kept == anew, (job, place)
    assert sum(known) > max(20, 2 * len(read))


def test_starts_of_a_projected_plan_are_as_by_hand() -> None:
    """Of 4 processors 3 are busy until 10; a job of 4 runs from 10 to 15, and a job of 1 fits until 10."""
    plan = ProjectedPlan(backfill=True)
    plan.restart(0.0, 1, [(10.0, 1, 3, 10.0)], [ProjectedJob("wide", 4, 5, 5, 5)])
    assert [plan.start(0.0, ProjectedJob(n, 1, n, n, n)) for n in (10, 11)] == [0, 15]
    plan.add(0.0, ProjectedJob("small", 1, 10, 10, 10))
    assert plan.start(2.0, ProjectedJob("next", 1, 1, 1, 1)) == 15
    assert plan.advance(2.0, [("small", 0.0)])
    assert not plan.advance(11.0, [])  # the wide one should have started


def test_starts_of_a_conservative_projection_are_as_by_hand() -> None:
    """3 of 4 processors are expected busy until 10 but free at 6: the wide job starts then, the next one after it."""
    unfolding = Projection("conservative", each=False)
    unfolding.restart(0.0, 1, [(6.0, 1, 3, 10.0)], [ProjectedJob("wide", 4, 5, 5, 5)])
    long, short = ProjectedJob("long", 1, 11, 11, 11), ProjectedJob("short", 1, 10, 10, 7)
    assert unfolding.start(0.0, long) == 11
    assert unfolding.start(0.0, short) == 0
    unfolding.add(0.0, short)  # it runs until 7: the wide one waits for it
    assert unfolding.start(0.0, long) == 12
    assert unfolding.advance(7.0, [("short", 0.0)])
    assert not unfolding.advance(8.0, [])


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_nodes_that_are_taken_whole_are_projected_as_counted_processors(policy: str, monkeypatch) -> None:
    """Jobs of 1 to 9 cores on 4 nodes of 3 cores take the processors of 1 to 3 nodes; nothing is simulated."""
    monkeypatch.setattr(Forecast, "_simulated", None)
    nodes = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=3)], exclusive=True)])
    rng = np.random.default_rng(1)
    jobs = [(int(rng.integers(1, 10)), int(rng.integers(1, 9)), int(rng.integers(9, 20))) for _ in range(12)]
    found = []
    for platform in (nodes, 12):
        env = Environment()
        cluster = Cluster(env, platform, policy)
        forecast = Forecast(cluster)
        for at, (cores, run, requested) in enumerate(jobs, 1):
            whole = cores if platform is nodes else 3 * -(-cores // 3)
            asked = Job(processors=whole, run=run, requested=requested)
            found.append(forecast.of(asked).start)
            cluster.submit(asked)
            env.run(until=at)
        if platform is nodes:
            assert forecast.of(Job(nodes=3, cores_per_node=2, run=5)).start < np.inf
    assert found[:12] == found[12:]


def test_estimates_by_hand_of_what_asks_for_more() -> None:
    env = Environment()
    gpus = NodeSpec(count=2, cores=4, gpus=1)
    spec = ClusterSpec(partitions=[PartitionSpec(name="gpu", nodes=[gpus]), PartitionSpec(name="cpu", processors=8)])
    cluster = Cluster(env, spec, "easy")
    cluster.submit(Job(nodes=2, cores_per_node=1, gpus_per_node=1, run=30, requested=100, partition="gpu"))
    env.run(until=10)
    one = Job(nodes=1, cores_per_node=1, gpus_per_node=1, run=5, requested=20, partition="gpu")
    assert Forecast(cluster).of(one).start == 100
    assert Forecast(cluster, by="actual").of(one).start == 30
    assert Forecast(cluster).of(Job(processors=8, run=5, partition="cpu")).start == 10
    with pytest.raises(ImpossibleWork, match="cpu"):
        Forecast(cluster).of(Job(processors=9, run=5, partition="cpu"))


def test_limits_outages_and_cancellations_count() -> None:
    env = Environment()
    queues = [QueueSpec(name="one", max_running_per_user=1), QueueSpec(name="free")]
    outage = OutageSpec(at=50, until=80, processors=4, kind="maintenance")
    cluster = Cluster(
        env, ClusterSpec(partitions=[PartitionSpec(processors=4)], queues=queues, outages=[outage]), "easy"
    )
    cluster.submit(Job(processors=1, run=30, user="ann", queue="one"))
    env.run(until=5)
    forecast = Forecast(cluster)
    assert forecast.of(Job(processors=1, run=10, user="ann", queue="one")).start == 30
    assert forecast.of(Job(processors=1, run=10, user="bob", queue="one")).start == 5
    assert forecast.of(Job(processors=1, run=46, user="bob", queue="free")).start == 80
    env = Environment()
    cluster = Cluster(env, 4, "easy")
    cluster.submit(Job(processors=4, run=100))
    waiting = cluster.submit(Job(processors=4, run=100, cancel=60))
    env.run(until=10)
    forecast = Forecast(cluster)
    assert forecast.of(Job(processors=4, run=5)).start == 200  # the cancellation of the waiting job is unknown
    env.run(until=70)
    assert waiting.state == "cancelled"
    assert forecast.of(Job(processors=4, run=5)).start == 100


def test_a_claim_that_somebody_holds_is_simulated() -> None:
    env = Environment()
    cluster = Cluster(env, 4, "easy")
    pool = cluster.places[0]

    def holder(env):
        with pool.claim(processors=3) as grant:
            yield grant
            yield env.timeout(100)

    env.process(holder(env))
    env.run(until=5)
    assert Forecast(cluster).of(Job(processors=1, run=5)).start == 5


def test_what_is_asked_twice_is_simulated_once(monkeypatch) -> None:
    env = Environment()
    cluster = Cluster(env, 4, "sjf+easy")
    for size in (3, 4):
        cluster.submit(Job(processors=size, run=50))
    env.run(until=5)
    forecast, calls = Forecast(cluster), []
    simulated = forecast._simulated
    monkeypatch.setattr(forecast, "_simulated", lambda *work: calls.append(work) or simulated(*work))
    job, _ = cluster.live(Job(processors=2, run=10))
    assert [forecast.estimate(job).start for _ in range(3)] == [50, 50, 50]
    assert len(calls) == 1
    cluster.submit(Job(processors=2, run=5))
    forecast.estimate(job)
    assert len(calls) == 2


def test_a_future_is_kept_again_once_it_can_be() -> None:
    """While a job of zero length waits, the forecast simulates; afterwards a plan suffices (exact, conservative)."""
    env = Environment()
    cluster = Cluster(env, 4, "conservative", estimates="exact")
    forecast = Forecast(cluster)
    cluster.submit(Job(processors=4, run=10))
    cluster.submit(Job(processors=4, run=0))
    assert forecast.of(Job(processors=1, run=5)).start == 10
    assert forecast._stale
    env.run(until=11)
    cluster.submit(Job(processors=3, run=10))
    cluster.submit(Job(processors=4, run=10))
    env.run(until=12)
    assert forecast.of(Job(processors=1, run=9)).start == 12
    assert forecast.of(Job(processors=1, run=10)).start == 31
    assert not forecast._stale


def test_wrong_words_are_refused() -> None:
    with pytest.raises(InputError, match="by: must be 'requested' or 'actual', got 'guess'"):
        Forecast(Cluster(Environment(), 4), by="guess")


def test_the_cost_does_not_grow_with_what_happened_before() -> None:
    """Projections drop the past: they keep as much after 2,000 jobs as after 200."""
    rng = np.random.default_rng(1)
    kept = []
    for count in (200, 2000):
        env = Environment()
        cluster = Cluster(env, 32, "easy", name="a", estimates="cqsim")
        forecast = Forecast(cluster, by="actual")
        sizes, runs = rng.integers(1, 17, count), rng.integers(1, 20, count)

        def source(env, cluster=cluster, forecast=forecast, sizes=sizes, runs=runs):
            for size, run in zip(sizes.tolist(), runs.tolist(), strict=True):
                yield env.timeout(5)
                spec = Job(processors=size, run=run, requested=3 * run)
                forecast.of(spec)
                cluster.submit(spec)

        env.process(source(env))
        env.run()
        kept.append((len(forecast._future._points), len(forecast._future._starts), len(forecast._started)))
    assert kept[1][0] <= kept[0][0] + 40
    assert kept[1][1] <= kept[0][1] + 40


def test_a_queue_that_nobody_asks_for_is_not_followed_for_long() -> None:
    env = Environment()
    cluster = Cluster(env, 4, "easy", name="a")
    broker = Broker(env, [cluster], "sgs-t")
    forecast = cluster.forecast()
    for i in range(1500):
        broker.submit(Job(id=i, processors=4, run=1, requested=2), at=i)
    env.run(until=2)
    assert forecast.of(Job(processors=1, run=1)).start == 3
    env.run()
    assert len(forecast._started) <= 501
    assert not forecast._queue_known
    assert forecast.of(Job(processors=4, run=1)).start == env.now


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_runs_past_their_expected_end_are_seen_by_kept_futures_too(policy: str) -> None:
    env = Environment()
    cluster = Cluster(env, 4, policy, overrun="continue")
    cluster.submit(Job(processors=3, run=40, requested=10))
    kept, fresh = Forecast(cluster), Forecast(cluster, kept=False)
    wide = Job(processors=4, run=5, requested=5)
    for now, start in ((1, 10), (12, 12), (25, 25), (41, 41)):
        env.run(until=now)
        assert kept.of(wide).start == fresh.of(wide).start
        assert kept.of(wide).start >= start
