"""Jobs that may run in any of several partitions, in order of preference."""

from __future__ import annotations

import io
import random
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Start, simulate
from simmodel.formats import read_columns, read_sacct
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.cluster import OutageSpec, QueueSpec, ReservationSpec
from simmodel.policies import Easy, ordering
from simmodel.policies.ordering import settled
from simmodel.resources.pools.counts import CountPool
from simmodel.scheduling.registry import policy_names
from simmodel.snapshots.codec import read_state, write_fields
from simmodel.systems.cluster.from_data import snapshot_of
from simmodel.systems.cluster.queueing import bind
from simmodel.work.job import Dependency
from simmodel.work.transformations import merge
from simmodel.work.workload import Workload
from tests.helpers.examples import up_to
from tests.helpers.snapshot_cuts import check_cut, log_of
from tests.oracles.partitions import Asked, schedule


def spec(*sizes: int, **options: Any) -> ClusterSpec:
    """Return a cluster with partitions a, b, ... of these sizes."""
    return ClusterSpec(
        partitions=[PartitionSpec(name=name, processors=n) for name, n in zip("abc", sizes, strict=False)], **options
    )


def ran(platform: ClusterSpec, jobs: list[Job], policy: Any = "fcfs", **options: Any) -> list[tuple[float, str]]:
    """Return the start and the partition of each job."""
    result = simulate(platform, jobs, policy, **options)
    where = dict(zip(result.runs["job"].tolist(), result.runs["place"].tolist(), strict=True))
    starts = zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True)
    return [(start, where[job]) for job, start in starts]


def test_a_job_has_the_priority_of_the_partition_that_it_is_bound_for() -> None:
    parts = [PartitionSpec(name=name, processors=4, priority=of) for name, of in (("a", 10), ("b", 3))]
    cluster = Cluster(Environment(), ClusterSpec(partitions=parts))
    job, _ = cluster.live(Job(run=1, priority=7, partitions=["a", "b"]))
    assert (job.place.name, job.priority) == ("a", 17)
    bind(job, cluster.places[1])
    assert (job.place.name, job.priority) == ("b", 10)


def test_a_job_of_several_partitions_has_the_priority_of_each_in_its_queue() -> None:
    """In b, the second job has 8 + 3, and the first one 7 + 3: it goes first, although the first has 17 in a."""
    parts = [PartitionSpec(name=name, processors=4, priority=of) for name, of in (("a", 10), ("b", 3))]
    jobs = [
        *busy(100, 10),
        Job(submit=1, processors=4, run=5, priority=7, partitions=["a", "b"]),
        Job(submit=1, processors=4, run=5, priority=8, partition="b"),
    ]
    assert ran(ClusterSpec(partitions=parts), jobs)[2:] == [(15, "b"), (10, "b")]


def busy(a: float, b: float, processors: int = 4) -> list[Job]:
    """Return two jobs that fill partitions a and b for so many seconds."""
    return [Job(processors=processors, run=run, partition=name) for name, run in (("a", a), ("b", b))]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep", "best-fit", "window"])
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_a_job_starts_in_its_first_choice_if_both_are_free(policy, order):
    assert ran(spec(4, 4), [Job(processors=2, run=10, partitions=order)], policy) == [(0, order[0])]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep", "best-fit", "window"])
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
@pytest.mark.parametrize(("a", "b", "found"), [(100, 50, (50, "b")), (50, 100, (50, "a"))])
def test_a_job_starts_where_there_is_room_first(policy, order, a, b, found):
    assert ran(spec(4, 4), [*busy(a, b), Job(processors=4, run=10, partitions=order)], policy)[2] == found


def test_two_jobs_with_opposite_preferences_both_get_their_first_choice():
    jobs = [Job(processors=4, run=10, partitions=order) for order in (["b", "a"], ["a", "b"])]
    assert ran(spec(4, 4), jobs) == [(0, "b"), (0, "a")]


def test_the_second_choice_is_taken_if_the_first_starts_other_jobs():
    """The job of a and b is behind a job in its first choice, which takes all of it."""
    jobs = [Job(processors=4, run=10, partition="b"), Job(processors=4, run=10, partitions=["b", "a"])]
    assert ran(spec(4, 4), jobs) == [(0, "b"), (0, "a")]


def test_a_blocked_job_blocks_all_its_partitions_without_backfilling():
    jobs = [
        *(Job(processors=1, run=100, partition=name) for name in "ab"),
        Job(processors=4, run=10, partitions=["a", "b"]),
        *(Job(processors=1, run=10, partition=name) for name in "ab"),
    ]
    assert ran(spec(4, 4), jobs)[2:] == [(100, "a"), (110, "a"), (100, "b")]


def test_easy_holds_only_the_partition_with_the_earliest_start():
    """Partition b is free at 50, so the job of both is promised b: in a, a long job passes it; in b, it may not."""
    jobs = [
        Job(processors=3, run=100, partition="a"),
        Job(processors=3, run=50, partition="b"),
        Job(id="both", processors=4, run=10, partitions=["a", "b"]),
        Job(processors=1, run=500, partition="a"),
        Job(processors=1, run=500, partition="b"),
    ]
    result = simulate(spec(4, 4), jobs, "easy")
    assert ran(spec(4, 4), jobs, "easy") == [(0, "a"), (0, "b"), (50, "b"), (0, "a"), (60, "b")]
    assert result.jobs["partition"].tolist() == ["a", "b", "a,b", "a", "b"]


def test_of_equally_early_partitions_easy_holds_the_preferred_one():
    jobs = [
        *(Job(processors=3, run=50, partition=name) for name in "ab"),
        Job(processors=4, run=10, partitions=["b", "a"]),
        *(Job(processors=1, run=500, partition=name) for name in "ab"),
    ]
    assert ran(spec(4, 4), jobs, "easy")[2:] == [(50, "b"), (0, "a"), (60, "b")]


def test_the_promise_of_easy_is_recorded_once_for_the_job():
    env = Environment()
    log = log_of(env)
    cluster = Cluster(env, spec(4, 4), Easy(promises=True))
    for job in [*busy(100, 50), Job(id="both", processors=4, run=10, partitions=["a", "b"])]:
        cluster.submit(job)
    env.run()
    assert [row for row in log.rows if row[1] == "promised"] == [(0, "promised", "both", "b", 50)]


def test_while_two_jobs_wait_for_both_the_first_chooses_first():
    """Both are at the head of a queue: b (at 50) is held for the first, a (at 100) for the second."""
    jobs = [
        *busy(100, 50, processors=3),
        *(Job(id=name, processors=4, run=200, partitions=["a", "b"]) for name in ("first", "second")),
        Job(processors=1, run=60, partition="a"),  # ends before the promise of the second
        Job(processors=1, run=60, partition="b"),  # would not end before that of the first
    ]
    assert ran(spec(4, 4), jobs, "easy")[2:] == [(50, "b"), (100, "a"), (0, "a"), (250, "b")]


def counted(monkeypatch, owner: Any, name: str) -> list[Any]:
    """Return a list that grows with each call of a function of a class or module from now on."""
    function, calls = getattr(owner, name), []
    monkeypatch.setattr(owner, name, lambda *given, **named: (calls.append(given), function(*given, **named))[1])
    return calls


def test_the_earliest_starts_of_waiting_jobs_are_searched_anew_only_where_jobs_have_come_or_gone(monkeypatch):
    """Some for each start and end at a place, for the jobs of different widths that are first in the queues."""
    rng = random.Random(1)
    jobs = [
        Job(submit=i, processors=rng.randint(1, 8), run=run, requested=2 * run, partitions="any")
        for i, run in enumerate(rng.randint(1, 80) for _ in range(500))
    ]
    platform = ClusterSpec(partitions=[PartitionSpec(name=name, processors=8) for name in "abcdefgh"])
    searched, settled = counted(monkeypatch, CountPool, "earliest"), counted(monkeypatch, ordering, "settled")
    asked = counted(monkeypatch, CountPool, "why_not")  # whether a partition can run a job: once for each and one more
    simulate(platform, jobs, "easy")
    assert len(asked) < 10 * len(jobs)
    assert len(searched) < 10 * len(jobs)
    assert len(settled) < 3.5 * len(jobs)


def test_a_job_waits_once_although_it_is_in_several_queues():
    env = Environment()
    cluster = Cluster(env, spec(4, 4))
    for job in busy(100, 50):
        cluster.submit(job)
    both = cluster.submit(Job(processors=4, run=10, partitions=["b", "a"]))
    env.run(until=1)
    view, (a, b) = cluster.view, cluster.places
    assert list(view.waiting) == [both]
    assert len(view.waiting) == 1
    assert both.place is b
    assert [job.id for place in (a, b) for job in view.waiting.at(place)] == [both.id, both.id]
    assert [entry.place for entry in view.choices[both]] == [b, a]
    assert (cluster.load.queued, cluster.load.queued_work) == (1, 4 * 10 * 2**20)
    env.run()
    assert (both.started, both.place, both.state) == (50, b, "completed")
    assert not view.choices
    assert not any(view.waiting.at(place) for place in (a, b))
    assert cluster.load.queued_work == 0


def test_a_policy_may_start_the_job_at_any_of_its_places():
    def last_choice(view):
        for job in view.waiting:
            entries = view.choices.get(job, (job,))
            yield Start(job, entries[-1].place)

    jobs = [Job(processors=2, run=10, partitions=["a", "b"]), Job(processors=2, run=10, partitions=["c", "a", "b"])]
    assert ran(spec(4, 4, 4), jobs, last_choice) == [(0, "b"), (0, "b")]


def test_a_start_at_a_place_that_the_job_does_not_name_is_refused():
    def elsewhere(view):
        yield Start(next(iter(view.waiting)), view.places[2])

    with pytest.raises(Exception, match="the job waits for a and b"):
        ran(spec(4, 4, 4), [Job(processors=2, run=10, partitions=["a", "b"])], elsewhere)


def test_any_stands_for_all_partitions_but_reservations():
    reserved = ReservationSpec(name="r", partition="a", start=0, end=1000, processors=4)
    jobs = [Job(processors=3, run=10, partitions="any") for _ in range(3)]
    assert ran(spec(8, 4, reservations=[reserved]), jobs) == [(0, "a"), (0, "b"), (10, "a")]


def test_partitions_that_can_never_run_the_job_are_left_out():
    platform = ClusterSpec(
        partitions=[
            PartitionSpec(name="a", processors=2),
            PartitionSpec(name="b", processors=8, max_requested=60),
            PartitionSpec(name="c", processors=8),
        ]
    )
    jobs = [Job(processors=4, run=100, partitions="a,b,c"), Job(processors=8, run=10, partitions=["a", "b"])]
    assert ran(platform, jobs) == [(0, "c"), (0, "b")]
    cluster = Cluster(Environment(), platform)
    with pytest.raises(ImpossibleWork) as found:
        cluster.submit(Job(id=7, processors=4, run=100, partitions=["a", "b"]))
    assert str(found.value) == "cluster: job 7: 4 processors requested, a has 2; 100 s requested, b allows 60"
    result = simulate(platform, [Job(id=7, processors=4, run=100, partitions=["a", "b"])], "fcfs")
    assert result.jobs["status"].tolist() == ["rejected"]
    assert result.report.rejected == {"wider than a, which has 2; b allows 60": 1}


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        (["a", "x"], "job 7: unknown partition 'x'; known partitions: a, b, r"),
        (["a", "r"], "job 7: partitions: must name reservation r alone, got a,r"),
    ],
)
def test_unknown_names_and_reservations_in_a_list_are_errors(partitions, message):
    reserved = ReservationSpec(name="r", partition="a", start=0, end=1000, processors=4)
    platform = spec(8, 4, reservations=[reserved])
    with pytest.raises(InputError) as found:
        simulate(platform, [Job(id=7, run=1, partitions=partitions)], "fcfs")
    assert str(found.value) == message


@pytest.mark.few(3)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep", "preemptive", "portfolio"])
def test_snapshots_keep_the_queues_of_a_waiting_job(policy):
    jobs = [
        *busy(100, 50),
        Job(processors=4, run=10, partitions=["a", "b"]),
        Job(submit=30, processors=2, run=10, partitions=["b", "a"]),
        Job(processors=2, run=40, partition="b"),
    ]

    def make(policy: Any) -> tuple[Environment, Cluster]:
        env = Environment()
        cluster = Cluster(env, spec(4, 4), policy)
        cluster.replay(Workload.from_jobs(jobs))
        return env, cluster

    rows = check_cut(make, policy, (0.5, 20, 30.5, 50, 55))
    assert {row[2] for row in rows if row[1] == "completed"} == {1, 2, 3, 4, 5}


def test_a_cancelled_job_leaves_all_queues():
    env = Environment()
    cluster = Cluster(env, spec(4, 4), "easy")
    for job in busy(100, 50):
        cluster.submit(job)
    both = cluster.submit(Job(processors=4, run=10, partitions=["a", "b"], cancel=20))
    behind = [cluster.submit(Job(processors=4, run=10, partition=name)) for name in "ab"]
    env.run()
    assert (both.state, both.started) == ("cancelled", None)
    assert [job.started for job in behind] == [100, 50]
    assert not cluster.view.choices


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[int], list[Asked]]:
    """Draw the sizes of two or three partitions, and jobs that fit into each of theirs."""
    sizes = draw(st.lists(st.integers(2, 5), min_size=2, max_size=3))
    drawn = []
    for _ in range(draw(st.integers(1, 10))):
        names = draw(st.permutations(range(len(sizes))))[: draw(st.integers(1, len(sizes)))]
        most = min(sizes[name] for name in names)
        times = draw(st.integers(0, 8)), draw(st.integers(1, most)), draw(st.integers(1, 9))
        drawn.append(Asked(*times, tuple(names)))
    return sizes, drawn


def jobs_of(drawn: list[Asked]) -> list[Job]:
    return [
        Job(submit=at, processors=n, run=run, partitions=["abc"[name] for name in names]) for at, n, run, names in drawn
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("policy", "key", "easy"),
    [
        ("fcfs", lambda job: 0, False),
        ("sjf", lambda job: job.run, False),
        ("largest", lambda job: -job.processors, False),
        ("easy", lambda job: 0, True),
        ("sjf+easy", lambda job: job.run, True),
    ],
    ids=["fcfs", "sjf", "largest", "easy", "sjf+easy"],
)
@settings(max_examples=up_to(200))
@given(case=asked())
def test_schedules_are_those_of_one_queue_that_is_rescanned(policy, key, easy, case):
    sizes, drawn = case
    expected = [(at, "abc"[where]) for at, where in schedule(sizes, drawn, key, easy=easy)]
    assert ran(spec(*sizes), jobs_of(drawn), policy) == expected


@settings(max_examples=up_to(100))
@given(case=asked(), policy=st.sampled_from(["easy", "conservative", "conservative-keep", "window", "best-fit"]))
def test_a_list_of_one_partition_is_that_partition(case, policy):
    sizes, drawn = case
    alone = [attrs.evolve(job, partitions=job.partitions[:1]) for job in jobs_of(drawn)]
    plain = [attrs.evolve(job, partition=job.partitions[0], partitions=()) for job in alone]
    for options in ({}, {"decide_on": "event"}):
        assert ran(spec(*sizes), alone, policy, **options) == ran(spec(*sizes), plain, policy, **options)


@pytest.mark.few(8)
@pytest.mark.parametrize("policy", [*policy_names("jobs"), "sjf+conservative", "wfp+easy"])
@settings(max_examples=10)
@given(case=asked())
def test_every_policy_runs_each_job_once_in_one_of_its_partitions(policy, case):
    sizes, drawn = case
    found = ran(spec(*sizes), jobs_of(drawn), policy)
    for (start, where), job in zip(found, jobs_of(drawn), strict=True):
        assert start >= job.submit
        assert where in job.partitions
    for at, place in found:
        here = [job for (start, where), job in zip(found, jobs_of(drawn), strict=True) if where == place]
        starts = [start for start, where in found if where == place]
        used = sum(job.processors for start, job in zip(starts, here, strict=True) if start <= at < start + job.run)
        assert used <= sizes["abc".index(place)]


@settings(max_examples=up_to(100))
@given(case=asked())
def test_promises_of_easy_are_kept(case):
    """All jobs end as expected, so nobody starts later than it was ever promised."""
    sizes, drawn = case
    env = Environment()
    log = log_of(env)
    cluster = Cluster(env, spec(*sizes), Easy(promises=True))
    cluster.replay(Workload.from_jobs(jobs_of(drawn)))
    env.run()
    starts = {row[2]: row[0] for row in log.rows if row[1] == "started"}
    for row in log.rows:
        assert row[1] != "promised" or starts[row[2]] <= row[4]


def test_logs_name_several_partitions_in_one_cell():
    slurm = io.StringIO(
        "JobID|Submit|Start|End|Elapsed|AllocCPUS|State|Partition\n"
        "1|0|0|100|100|4|COMPLETED|a\n"
        "2|0|0|10|10|4|COMPLETED|a,b\n"
        "3|0|0|10|10|4|COMPLETED|any\n"
        "4|0|0|10|10|4|COMPLETED|b,elsewhere\n"
    )
    table = io.StringIO('submit,run,processors,partition\n0,100,4,a\n0,10,4,"a,b"\n0,10,4,any\n0,10,4,"b,elsewhere"\n')
    for log in (read_sacct(slurm), read_columns(table)):
        assert log["partition"].tolist() == ["a", "a,b", "any", "b,elsewhere"]
        result = simulate(spec(4, 4), log, "fcfs")
        assert result.jobs["start"].tolist() == [0, 0, 10, 20]
        assert result.runs["place"].tolist() == ["a", "b", "b", "b"]
        assert result.report.repaired["partition not on the platform: ignored"] == 1
        text = log.replace(partition=["a", "b,a", "b", "b"])
        assert simulate(spec(4, 4), text, "fcfs").jobs["partition"].tolist() == ["a", "b,a", "b", "b"]


def test_jobs_and_their_columns_agree():
    log = Workload.from_jobs([Job(run=1, partitions=["b", "a"]), Job(run=1, partition="a"), Job(run=1)])
    assert log["partition"].tolist() == ["b,a", "a", None]
    assert [job.partitions for job in log.replace(partition=["a", "a,b", "any"]).specs] == [(), ("a", "b"), ("any",)]
    job = Job(run=1, processors=1, partitions=["b", 7])
    assert read_state(write_fields(job), Job) == job
    with pytest.raises(ValueError, match="partitions: must be left out beside partition='a'"):
        Job(run=1, partition="a", partitions=["b"])
    with pytest.raises(ValueError, match="partitions: must be names of partitions or 'any', got"):
        Job(run=1, partitions=["a", ""])


def test_a_preempted_job_may_start_again_in_another_partition():
    """The urgent job stops it in a; b is free by then."""
    platform = spec(
        4, 4, queues=[QueueSpec(name="urgent", preempts=["rest"]), QueueSpec(name="rest", preemptible="requeue")]
    )
    jobs = [
        Job(processors=4, run=5, partition="b", queue="rest"),
        Job(processors=4, run=100, partitions=["a", "b"], queue="rest"),
        Job(submit=10, processors=4, run=10, partition="a", queue="urgent"),
        Job(submit=10, processors=4, run=10, partitions=["a", "b"], queue="urgent"),
    ]
    result = simulate(platform, jobs[:3], "preemptive")
    assert result.jobs["end"].tolist() == [5, 110, 20]
    assert result.runs["place"].tolist()[-1] == "b" or "b" in result.runs["place"].tolist()
    other = simulate(platform, [*jobs[:2], jobs[3]], "preemptive")  # it fits in b: nobody is stopped
    assert other.jobs["start"].tolist() == [0, 0, 10]
    assert other.jobs["attempts"].tolist() == [1, 1, 1]


def test_capacity_that_changes_while_a_job_waits():
    env = Environment()
    cluster = Cluster(env, spec(4, 4), "easy")
    for job in busy(100, 50):
        cluster.submit(job)
    both = cluster.submit(Job(processors=4, run=10, partitions=["a", "b"]))
    env.run(until=10)
    cluster.places[1].take_down(2)
    env.run(until=60)
    assert both.state == "waiting"
    cluster.places[1].bring_up(2)
    env.run()
    assert (both.started, both.place.name) == (60, "b")


def test_a_dependent_job_joins_all_its_queues_when_it_is_released():
    jobs = [
        *busy(100, 50),
        Job(id=3, processors=4, run=10, partitions=["a", "b"], dependencies=[Dependency(2, think_time=5)]),
    ]
    assert ran(spec(4, 4), jobs)[2] == (55, "b")


def test_a_broker_hands_such_jobs_to_clusters_that_know_the_names():
    jobs = [*busy(100, 50)[::-1], Job(processors=4, run=10, partitions=["b", "a"])]
    other = ClusterSpec(partitions=[PartitionSpec(name=name, processors=8) for name in "ax"])
    platform = {"one": spec(4, 4), "two": other}
    result = simulate(platform, jobs, "earliest-start")
    assert result.jobs["destination"].tolist() == ["one"] * 3
    assert result.jobs["start"].tolist() == [0, 0, 50]
    assert result.jobs["partition"].tolist() == ["b", "a", "b,a"]


def test_merged_logs_keep_the_partitions_of_each_apart():
    parts = [
        Workload({"submit": [0], "run": [1], "processors": [1], "partition": ["a,b"]}, name=name) for name in ("x", "y")
    ]
    assert merge(*parts, own_users=True)["partition"].tolist() == ["x:a,x:b", "y:a,y:b"]


def test_data_of_a_real_scheduler_may_have_such_jobs():
    running = [
        {"processors": 4, "requested": end, "started": 0, "partition": name} for name, end in (("a", 9), ("b", 5))
    ]
    waiting = [{"id": 7, "submit": 0, "processors": 4, "requested": 3, "partitions": ["a", "b"]}]
    found = snapshot_of(spec(4, 4), now=1, running=running, waiting=waiting, policy="easy")
    assert found.choices == ((2, ("a", "b")),)
    env = Environment(1)
    cluster = Cluster.from_snapshot(env, found)
    env.run()
    assert cluster.result().jobs["start"].tolist()[-1] == 5


def test_a_job_held_by_a_limit_comes_back_behind_its_former_entry_in_a_conservative_plan():
    queues = [QueueSpec(name="u", priority=5, max_running_per_user=2), QueueSpec(name="v")]
    columns = [
        (4, 21, "z", "u", ["b"]),
        (2, 27, "y", "u", ["a", "b"]),
        (2, 12, "z", "u", ["b"]),
        (1, 6, "y", "u", ["b", "a"]),
        (1, 21, "y", "u", ["a", "b"]),
        (1, 21, "z", "v", ["a"]),
        (1, 12, "x", "v", ["a"]),
    ]
    jobs = [
        Job(processors=size, run=run, requested=run, user=user, queue=queue, partitions=where)
        for size, run, user, queue, where in columns
    ]
    found = ran(spec(4, 5, queues=queues), jobs, "conservative")
    assert [start for start, _ in found] == [0, 0, 21, 0, 6, 0, 0]


def test_a_promise_ends_when_its_job_has_started_elsewhere_also_if_it_comes_back():
    outages = [
        OutageSpec(at=1, until=2, partition="a", processors=1, kind="maintenance"),
        OutageSpec(at=3, until=4, partition="a", processors=1, kind="maintenance"),
        OutageSpec(at=1, until=3, partition="b", processors=1, kind="failure"),
    ]

    def make(policy: Any) -> tuple[Environment, Cluster]:
        env = Environment(seed=0)
        cluster = Cluster(env, spec(1, 1, outages=outages), policy)
        cluster.replay(Workload.from_jobs([Job(id=1, processors=1, run=2, partitions=["any"])]))
        return env, cluster

    check_cut(make, "conservative-keep", [1.0], until=None, given=False)


def test_a_snapshot_names_the_jobs_of_several_queues_in_the_order_of_their_submission():
    outages = [
        OutageSpec(at=1, until=5, partition="a", processors=1, kind="maintenance"),
        OutageSpec(at=1, until=2, partition="b", processors=1, kind="failure"),
    ]
    env = Environment(seed=0)
    cluster = Cluster(env, spec(1, 1, outages=outages), "fcfs")
    cluster.replay(Workload.from_jobs([Job(id=i, processors=1, run=9, partitions=["any"]) for i in range(4)]))
    env.run(until=1.5)
    assert [choice.number for choice in cluster.snapshot().choices] == [0, 1, 2, 3][-len(cluster.snapshot().choices) :]


def test_easy_on_nodes_forgets_new_jobs_that_have_started_in_another_partition() -> None:
    kinds = [NodeSpec(count=2, cores=4), NodeSpec(name="gpu", cores=4, gpus=1)]
    parts = [PartitionSpec(name=name, nodes=kinds) for name in "ab"]
    jobs = [
        Job(submit=2, run=3, nodes=2, cores_per_node=2, partitions="a,b"),
        Job(submit=2, run=1, nodes=1, cores_per_node=3, partitions="a"),
        Job(submit=3, run=3, nodes=1, cores_per_node=1, partitions="a,b"),
        Job(submit=0, run=4, nodes=3, cores_per_node=2, partitions="a"),
    ]
    assert simulate(ClusterSpec(partitions=parts), jobs, "easy").jobs["start"].tolist() == [2, 4, 3, 0]


def test_easy_does_not_look_for_places_to_hold_while_no_partition_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def counted(*given: Any) -> Any:
        looked.append(1)
        return settled(*given)

    monkeypatch.setattr(ordering, "settled", counted)
    jobs = [Job(submit=n, run=1000, processors=2, partitions="any") for n in range(60)]
    starts = [start for start, _ in ran(spec(2, 2, 2), jobs, "easy")]
    assert starts == [n % 3 + 1000 * (n // 3) for n in range(60)]
    assert len(looked) <= 2 * len(jobs)  # not for each submission, start and end


def test_easy_looks_at_the_places_of_a_job_that_waits_alone_until_one_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two waves of three jobs, each submitted at an instant of its own: they start in b, in a, and once b is free."""
    settled_for, fitted = counted(monkeypatch, ordering, "settled"), counted(monkeypatch, CountPool, "fits")
    jobs = [Job(submit=40 * (n // 3) + n % 3, run=10, processors=2, partitions=["b", "a"]) for n in range(6)]
    found = ran(spec(2, 2, 2), jobs, "easy")
    assert found == [(at + n, where) for at in (0, 40) for n, where in ((0, "b"), (1, "a"), (10, "b"))]
    assert not settled_for
    assert len(fitted) <= 4 * len(jobs)
