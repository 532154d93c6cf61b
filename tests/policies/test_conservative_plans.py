"""Conservative backfilling with a plan that is kept starts the same jobs as with a new plan at each decision."""

import itertools
import random
from functools import partial

import pytest

from simmodel import Environment, Job, simulate
from simmodel.environment import quiet_garbage_collector
from simmodel.futures.start_times import predict
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.policies import Conservative
from simmodel.policies.fast import count_plan
from simmodel.policies.fast.count_plan import Bounds, CountPlan
from simmodel.policies.fast.keep import KeptProfile
from simmodel.policies.planning import ConservativeKeep
from simmodel.policies.preemption import Preemptive
from simmodel.resources.pools import profile
from simmodel.resources.pools.counts import CountPool
from simmodel.systems import Cluster
from simmodel.work import Workload
from tests.helpers.drawn_queues import drawn_queues

INFINITY = float("inf")


def drawn(seed):
    """A small cluster and its jobs: some end early, run on, are cancelled, preempted, held by limits or depend."""
    rng = random.Random(seed)
    processors = rng.choice([1, 2, 4, 8, 16, 50])
    unit, gaps = rng.choice([1, 1, 0.1, 7.3]), rng.choice([[0], [0, 0, 1], [0, 1, 2, 5], [0, 3, 10, 30]])
    exact, over = rng.choice([0, 0.5, 0.9, 1, 1]), rng.choice([0, 0, 0.1])
    priorities, cancelled = rng.choice([[0], [0], [0, 0, 1, 2]]), rng.choice([0, 0, 0.2])
    preempts, limits = rng.random() < 0.2, rng.random() < 0.3
    jobs, submit = [], 0
    for number in range(1, rng.randint(3, 60)):
        submit += rng.choice(gaps)
        run = rng.choice([0] * (rng.random() < 0.1) + [1, 2, 3, 5, 8, 10, 20, rng.randint(1, 40)])
        kind = rng.random()
        requested = run + rng.choice([1, 5, 10, 30])
        if kind < exact + over:
            requested = run if kind < exact else max(1, run // 2)
        asked = {"queue": rng.choice("ab")} if preempts or limits else {}
        if rng.random() < cancelled:
            asked["cancel"] = (submit + rng.choice([0, 1, 5, 20])) * unit
        if rng.random() < 0.05 and number > 1:
            asked["dependencies"] = [rng.randint(1, number - 1)]
        size = min(processors, rng.choice([1, 1, 2, 3, rng.randint(1, processors), processors // 2 or 1, processors]))
        times = {"submit": submit * unit, "run": run * unit, "requested": requested * unit or None}
        priority = rng.choice(priorities)
        jobs.append(Job(id=number, processors=size, user=rng.choice("xyz"), priority=priority, **times, **asked))
    queues = drawn_queues(rng, preempts=preempts, limits=limits)
    outages = [
        OutageSpec(
            at=rng.randint(1, 60) * unit,
            until=rng.randint(61, 120) * unit,
            processors=rng.randint(1, processors),
            kind=rng.choice(["failure", "maintenance", "drain"]),
        )
        for _ in range(rng.choice([0, 0, 0, 1, 2]))
    ]
    options = {
        "overrun": rng.choice(["stop", "continue"]),
        "decide_on": rng.choice(["instant", "instant", "event"]),
        "event_order": rng.choice(["submits-first", "ends-first"]),
        "estimates": rng.choice(["requested", "requested", "exact", "cqsim"]),
    }
    spec = ClusterSpec(partitions=[PartitionSpec(name="p", processors=processors)], queues=queues, outages=outages)
    return spec, jobs, options, rng.choice(["fcfs", "fcfs", "sjf", "largest", "wfp"]), preempts, rng.random() < 0.1


def heard(spec, jobs, options, policy):
    events = []

    class Watch:
        def job_started(self, run):
            events.append(("starts", run.started, run.job.id))

        def job_resumed(self, run):
            events.append(("resumes", run.started, run.job.id))

        def job_promised(self, job, _place, at):
            events.append(("is promised", at, job.id))

    simulate(spec, jobs, policy, observers=[Watch()], **options)
    return events


@pytest.mark.parametrize(
    "seeds",
    [
        range(20),
        pytest.param(range(100), marks=pytest.mark.long),
        pytest.param(range(4000), marks=pytest.mark.exhaustive),
    ],
)
def test_a_kept_plan_starts_what_a_new_plan_starts(seeds, monkeypatch):
    kept = []
    follow = CountPlan._follow
    monkeypatch.setattr(CountPlan, "_follow", lambda plan, now: (kept.append(now), follow(plan, now)))
    for seed in seeds:
        monkeypatch.setattr(profile, "_MOST", 4 if seed % 2 else 256)  # so that profiles have several blocks
        for name, value in (("_APART", 1 + seed % 5), ("_CHANGES", 4), ("_FEW", 3 * (seed % 4))):
            monkeypatch.setattr(count_plan, name, value)
        spec, jobs, options, order, preempts, promises = drawn(seed)
        policies = [Conservative(order, promises=promises, fast=fast) for fast in (True, False)]
        plans = [heard(spec, jobs, options, Preemptive(each) if preempts else each) for each in policies]
        assert plans[0] == plans[1], seed
    assert len(kept) > len(seeds)


@pytest.mark.parametrize(
    "seeds",
    [
        range(20),
        pytest.param(range(100), marks=pytest.mark.long),
        pytest.param(range(4000), marks=pytest.mark.exhaustive),
    ],
)
def test_a_profile_that_is_kept_leads_to_the_same_promises_and_starts(seeds, monkeypatch):
    followed = []
    follow = KeptProfile.follow
    monkeypatch.setattr(
        KeptProfile, "follow", lambda kept, now: [found := follow(kept, now), followed.append(found is not None)][0]
    )
    for seed in seeds:
        monkeypatch.setattr(profile, "_MOST", 4 if seed % 2 else 256)
        spec, jobs, options, order, preempts, _ = drawn(seed)
        if (
            options["estimates"] == "cqsim"
        ):  # a promise that cannot be kept moves at the next end, or by the rule at once
            continue
        policies = [ConservativeKeep(order, fast=fast) for fast in (True, False)]
        found = [heard(spec, jobs, options, Preemptive(each) if preempts else each) for each in policies]
        assert found[0] == found[1], seed
    assert sum(followed) > 2 * len(seeds)


@pytest.mark.parametrize("seed", [1744, 2605, 2628, 2803, 2970])
def test_what_is_not_planned_starts_as_by_a_new_plan_despite_rounding_and_limits(seed):
    """The ends of jobs differ by rounding; a job that starts has others held that stand before it, without a plan."""
    spec, jobs, options, order, _, promises = drawn(seed)
    found = [heard(spec, jobs, options, Conservative(order, promises=promises, fast=fast)) for fast in (True, False)]
    assert found[0] == found[1]


@pytest.mark.few(4)
@pytest.mark.parametrize("policy", [Conservative, ConservativeKeep, partial(ConservativeKeep, fast=False)])
@pytest.mark.parametrize("seed", [573, 1715, 2061])
def test_a_job_that_is_expected_to_run_longer_than_planned_does_not_start_into_a_window(seed, policy):
    """With the estimates of CQSim, a started job is expected to run for its requested time, which no plan foresaw."""
    spec, jobs, options, order, _, _ = drawn(seed)
    started = {job for what, _, job in heard(spec, jobs, options, policy(order)) if what == "starts"}
    assert started >= {job.id for job in jobs if job.cancel is None}


def test_a_future_that_goes_as_planned_is_planned_once(monkeypatch):
    """What-ifs of deep queues: each of the jobs is planned once, however many decisions follow."""
    rng = random.Random(1)
    jobs = 400
    columns = {
        "submit": [0] * jobs,
        "run": [rng.randint(1, 1000) for _ in range(jobs)],
        "processors": [rng.choice([1, 2, 4, 8, 32]) for _ in range(jobs)],
    }
    env = Environment()
    cluster = Cluster(env, 64, "fcfs")
    cluster.replay(Workload(columns))
    env.run(until=1)
    planned = []
    earliest = profile.CountProfile.earliest
    monkeypatch.setattr(
        profile.CountProfile, "earliest", lambda self, *asked: (planned.append(asked), earliest(self, *asked))[1]
    )
    waiting = len(cluster.snapshot().waiting)
    with quiet_garbage_collector():
        predict(cluster.snapshot().expected(), "conservative")
    assert waiting > 300
    assert len(planned) <= waiting


@pytest.fixture
def planned(monkeypatch):
    """The ids of the jobs that are planned, in order."""
    found, plan = [], CountPlan._plan
    monkeypatch.setattr(CountPlan, "_plan", lambda self, job: (found.append(job.id), plan(self, job))[1])
    return found


def test_an_early_end_plans_anew_only_from_the_first_job_on_that_can_start_earlier(planned):
    """Jobs of 1 processor end 10 s apart, 60 to 90 s early; each wakes a plan of 200 jobs of 7, of which none can move.

    The last job could start now if no job of all 8 stood before it.
    """
    short = [Job(id=i, submit=0, run=10 * (i + 1), requested=100, processors=1) for i in range(4)]
    long = [Job(id=4, submit=0, run=100, processors=4)]
    seven = [Job(id=5 + i, submit=1, run=100, processors=7) for i in range(200)]
    last = [Job(id=205, submit=2, run=100, processors=8), Job(id=206, submit=3, run=30_000, processors=1)]
    result = simulate(8, [*short, *long, *seven, *last], Conservative())
    assert result.jobs["start"].tolist() == [0.0] * 5 + [100.0 * (i + 1) for i in range(202)]
    assert len(planned) <= 205


def test_like_jobs_that_fit_at_one_instant_are_planned_with_one_search(planned):
    """320 jobs of 2 processors run 32 at a time; the last job, which can start beside them, has them planned."""
    first = Job(id=0, submit=0, run=100, processors=64)
    like = [Job(id=1 + i, submit=0, run=10, processors=2) for i in range(320)]
    last = Job(id=321, submit=0, run=500, processors=1)
    result = simulate(65, [first, *like, last], Conservative())
    assert result.jobs["start"].tolist() == [0.0] + [100.0 + 10 * (i // 32) for i in range(320)] + [0.0]
    assert planned == [1 + 32 * i for i in range(10)] + [321]


def test_a_job_that_ends_before_those_before_it_could_start_has_none_of_them_planned(planned):
    """200 jobs of all processors wait for a long one; the job behind them starts, and later the first of them alone."""
    long = Job(id=0, submit=0, run=100, processors=7)
    wide = [Job(id=1 + i, submit=1, run=10, processors=8) for i in range(200)]
    short = Job(id=201, submit=2, run=98, processors=1)
    other = Job(id=202, submit=3, run=97, processors=1)  # would end in time, but nothing is free
    result = simulate(8, [long, *wide, short, other], Conservative(), until=150)
    assert result.jobs["start"].tolist()[:2] == [0.0, 100.0]
    assert result.jobs["start"].tolist()[201] == 2.0
    assert planned == [201]


def test_a_deep_queue_that_has_been_planned_is_not_gone_through_at_each_end(monkeypatch):
    """Jobs of 1 processor end as expected, one by one; 250 jobs of all 8 wait, and 250 of 1 that request too long."""
    looked = []
    first_fitting = CountPlan._first_fitting
    monkeypatch.setattr(
        CountPlan,
        "_first_fitting",
        lambda self, first, *rest: (looked.append(len(self._line) - first), first_fitting(self, first, *rest))[1],
    )
    short = [Job(id=i, submit=0, run=10 * (i + 1), processors=1) for i in range(8)]
    wide = [Job(id=8 + i, submit=1, run=100, processors=8) for i in range(250)]
    long = [Job(id=258 + i, submit=1, run=1000, processors=1) for i in range(250)]
    simulate(8, [*short, *wide, *long], Conservative(), until=75)
    assert looked == [500, 250, 0, 0, 0, 0, 0, 0]


def test_a_search_begins_where_a_job_as_large_and_as_long_is_planned(monkeypatch):
    """One job per 10 s runs on all processors: once 100 are planned, a search begins at the last planned start."""
    begun = []
    earliest = profile.CountProfile.earliest

    def noted(self, need, duration, not_before=-INFINITY):
        begun.append(not_before)
        return earliest(self, need, duration, not_before)

    monkeypatch.setattr(profile.CountProfile, "earliest", noted)
    first = [Job(id=0, submit=0, run=10, processors=4)]
    jobs = [Job(id=1 + i, submit=0, run=10, processors=4) for i in range(300)]
    last = [Job(id=301, submit=0, run=5000, processors=1)]  # could start now, beside all others: these are planned
    simulate(5, [*first, *jobs, *last], Conservative(), until=5)
    assert [at for at in begun if at > -INFINITY] == [10.0 * i for i in range(101, 300)]


def test_a_bound_is_the_latest_start_of_planned_jobs_that_are_no_wider_and_no_longer():
    """By powers of two: a planned job counts as wide as the next one, a job that asks as wide as the last one."""
    rng = random.Random(5)
    for _ in range(30):
        bounds, planned = Bounds(), []
        for _ in range(10):
            planned.append((rng.choice([1, 2, 3, 5, 8, 13]), rng.randint(1, 6), rng.randint(0, 9)))
            bounds.add(*planned[-1])
            for width, requested in itertools.product([1, 2, 3, 4, 8, 31], range(8)):
                most = max(power for power in (1, 2, 4, 8, 16) if power <= width)
                starts = [at for wide, long, at in planned if wide <= most and long <= requested]
                assert bounds.of(width, requested) == max(starts, default=-INFINITY)


def test_promises_that_stay_are_neither_planned_nor_put_into_a_profile_again(monkeypatch):
    """20 jobs end early, each for 40 promises: the profile is made once, and each promise is taken once or moves."""
    counts = {"made": 0, "changed": 0, "moved": 0}

    def counted(owner, name, what):
        method = getattr(owner, name)

        def call(*args, **options):
            counts[what] += 1
            return method(*args, **options)

        monkeypatch.setattr(owner, name, call)

    counted(CountPool, "counts", "made")
    counted(profile.CountProfile, "take", "changed")
    counted(profile.CountProfile, "move", "moved")
    short = [Job(id=i, submit=0, run=1 + i, requested=50, processors=1) for i in range(20)]
    long = [Job(id=20, submit=0, run=100, processors=20)]
    wide = [Job(id=21 + i, submit=0, run=100, processors=40) for i in range(40)]
    simulate(40, [*short, *long, *wide], ConservativeKeep(), until=30)
    assert counts == {"made": 1, "changed": 61, "moved": 0}


@pytest.mark.parametrize(
    "seeds",
    [
        range(15),
        pytest.param(range(60), marks=pytest.mark.long),
        pytest.param(range(2000), marks=pytest.mark.exhaustive),
    ],
)
def test_a_kept_plan_starts_what_a_new_plan_starts_where_jobs_wait_for_several_partitions(seeds):
    """A start may be put aside until the partitions that the job prefers have decided."""
    for seed in seeds:
        rng = random.Random(seed)
        parts = [
            PartitionSpec(name="p", processors=rng.randint(2, 6)),
            PartitionSpec(name="q", processors=rng.randint(2, 6)),
            PartitionSpec(name="r", nodes=[NodeSpec(count=2, cores=2), NodeSpec(name="large", count=2, cores=4)]),
        ]
        jobs = []
        for number in range(rng.randint(5, 40)):
            run = rng.randint(1, 10)
            names = rng.choice(["any", ["q", "p"], ["r", "p"], ["p"], ["r"], rng.sample("pqr", 3)])
            requested = run + rng.choice([0, 0, 0, 4])
            asked = {"nodes": rng.randint(1, 2), "cores_per_node": 1} if names == ["r"] else {}
            size = {} if asked else {"processors": rng.randint(1, 2)}
            jobs.append(
                Job(id=number, submit=number // 3, run=run, requested=requested, partitions=names, **asked, **size)
            )
        spec = ClusterSpec(partitions=parts)
        assert heard(spec, jobs, {}, Conservative()) == heard(spec, jobs, {}, Conservative(fast=False)), seed
