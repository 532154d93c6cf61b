"""The life of jobs in a cluster: dependencies, cancellation, limits and errors."""

from __future__ import annotations

import re

import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError, PolicyError, Stalled
from simmodel.platform.cluster import ClusterSpec, ConsumableSpec, PartitionSpec, QueueSpec
from simmodel.runs.scenario import simulate
from simmodel.scheduling.protocol import Preempt, Reserve, Start, WakeAt
from simmodel.scheduling.registry import policy_names
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Dependency, Job
from simmodel.work.workload import Workload


def starts(platform, jobs, policy="fcfs", **options):
    """Return the start of each job, in the order of the list."""
    return simulate(platform, jobs, policy, **options).jobs["start"].tolist()


# ---------------------------------------------------------------------- dependencies


def test_dependencies_after_end_start_and_success():
    jobs = [
        Job(id="slow", processors=1, run=50),
        Job(id="cut", processors=1, run=50, requested=20),
        Job(id="end", run=1, dependencies=["slow", "cut"]),
        Job(id="start", run=1, dependencies=[Dependency("slow", "start", 7)]),
        Job(id="success", run=1, dependencies=[Dependency("slow", "success", 5)]),
        Job(id="never", run=1, dependencies=[Dependency("cut", "success")]),
        Job(id="chain", run=1, dependencies=[Dependency("never", "end")]),
        Job(id="late", submit=70, run=1, dependencies=["slow"]),
    ]
    result = simulate(8, jobs, "fcfs")
    assert result.jobs["start"][[0, 1, 2, 3, 4, 7]].tolist() == [0, 0, 50, 7, 55, 70]
    assert result.jobs["status"].tolist() == [
        "completed",
        "timeout",
        "completed",
        "completed",
        "completed",
        "cancelled",
        "completed",
        "completed",
    ]
    assert result.jobs["start"][6] == 20
    assert result.jobs["wait"][2] == 0  # counted from when it was eligible


def test_a_dependency_may_be_submitted_later_and_one_that_never_comes_is_named():
    jobs = [Job(id="b", run=1, dependencies=["a"]), Job(id="a", submit=10, run=5)]
    assert starts(4, jobs) == [15, 10]
    with pytest.raises(Stalled, match="job b has waited since 0 s for the end of job x, which was never submitted"):
        simulate(4, [Job(id="b", run=1, dependencies=["x"])], "fcfs")


def test_dependencies_on_jobs_that_are_rejected():
    jobs = [
        Job(id="large", processors=9, run=1),
        Job(id="after", run=1, dependencies=["large"]),
        Job(id="hopes", run=1, dependencies=[Dependency("large", "success")]),
    ]
    result = simulate(8, jobs, "fcfs")
    assert result.jobs["status"].tolist() == ["rejected", "completed", "cancelled"]
    assert result.report.rejected["larger than the machine"] == 1


# ---------------------------------------------------------------------- cancellation


def test_cancelled_while_waiting_blocked_or_running():
    jobs = [
        Job(processors=4, run=100, cancel=60),
        Job(processors=4, run=10, cancel=30),
        Job(processors=4, run=10),
        Job(id="blocked", run=1, dependencies=[3], cancel=5),
    ]
    result = simulate(4, jobs, "fcfs")
    assert result.jobs["status"].tolist() == ["cancelled", "cancelled", "completed", "cancelled"]
    assert result.jobs["end"].tolist() == [60, 30, 70, 5]
    assert result.jobs["start"][2] == 60


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "conservative", "conservative-keep"])
@pytest.mark.parametrize("parts", [("batch",), ("batch", "other")])
def test_a_job_may_be_cancelled_at_the_instant_of_its_submission(policy, parts):
    spec = ClusterSpec(partitions=[PartitionSpec(name=name, processors=4) for name in parts])
    cluster = Cluster(Environment(), spec, policy)
    for processors, run in ((3, 100), (4, 100), (1, 500)):
        cluster.submit(Job(processors=processors, run=run, requested=run, partition="batch"))
    cluster.env.run(until=10)
    job = cluster.submit(Job(run=10, requested=10, partitions=list(parts)))
    cluster.cancel(job)
    cluster.env.run(until=11)
    assert job.state == "cancelled"
    assert not cluster.view.waiting.new


def test_cancelling_what_is_over_changes_nothing():
    env = Environment()
    cluster = Cluster(env, 1)
    job = cluster.submit(Job(run=5, cancel=50))
    env.run()
    assert (job.state, env.now) == ("completed", 5)


# ---------------------------------------------------------------------- queues and limits


LIMITED = ClusterSpec(
    partitions=[PartitionSpec(processors=10)],
    queues=[
        QueueSpec(name="short", priority=10, max_requested=100, max_running_per_user=1),
        QueueSpec(name="long", max_running=2, max_waiting_per_user=3),
    ],
)


def test_limits_of_a_queue_hold_its_own_jobs_and_nobody_else():
    jobs = [
        Job(run=10, queue="short", user="ada"),
        Job(run=10, queue="short", user="ada"),
        Job(run=10, queue="short", user="bob"),
        Job(run=30, queue="long", user="ada"),
        Job(run=30, queue="long", user="bob"),
        Job(run=30, queue="long", user="eve"),
    ]
    for policy in ("fcfs", "easy", "conservative", "best-fit"):
        assert starts(LIMITED, jobs, policy) == [0, 10, 0, 0, 0, 30]


def test_what_a_queue_does_not_take():
    jobs = [Job(run=10, requested=200, queue="short")] + [
        Job(processors=10, run=10, queue="long", user="ada") for _ in range(6)
    ]
    result = simulate(LIMITED, jobs, "fcfs")
    assert result.jobs["status"].tolist() == ["rejected"] + ["completed"] * 3 + ["rejected"] * 3
    assert "queue short allows 100" in result.jobs["reason"][0]
    assert "queue long allows 3" in result.jobs["reason"][4]
    assert sum(result.report.rejected.values()) == 4


def test_queue_priority_comes_before_arrival():
    jobs = [
        Job(processors=10, run=10, queue="long"),
        Job(processors=10, run=10, queue="long"),
        Job(submit=5, processors=10, run=10, queue="short"),
    ]
    for policy in ("fcfs", "easy", "sjf", "wfp", "conservative", "best-fit"):
        assert starts(LIMITED, jobs, policy) == [0, 20, 10]


def test_partitions_are_places_of_one_scheduler():
    spec = ClusterSpec(
        partitions=[
            PartitionSpec(name="big", processors=8),
            PartitionSpec(name="small", processors=2, max_requested=50),
        ],
        queues=[QueueSpec(name="debug", partition="small"), QueueSpec(name="normal")],
    )
    jobs = [
        Job(processors=8, run=100, partition="big"),
        Job(processors=8, run=100, partition="big"),
        Job(processors=2, run=10, queue="debug"),
        Job(processors=2, run=10, partition="small"),
        Job(processors=1, run=20, queue="normal"),
        Job(processors=2, run=60, partition="small"),
    ]
    for policy in ("fcfs", "easy", "conservative", "best-fit", "conservative-keep"):
        result = simulate(spec, jobs, policy)
        assert result.jobs["start"][:4].tolist() == [0, 100, 0, 10]
        assert result.jobs["status"][5] == "rejected"
        assert result.jobs["start"][4] == 200  # in the first partition that can ever run it, behind the jobs there


def test_limits_of_a_partition_hold_for_logs():
    log = Workload({"submit": [0, 0, 0], "run": [5, 5, 50], "requested": [5, 5, 50], "processors": [2, 6, 2]})
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8, max_processors=4, max_requested=20)])
    assert simulate(spec, log, "easy").jobs["status"].tolist() == ["completed", "rejected", "rejected"]


def test_unknown_queues_and_partitions():
    env = Environment()
    cluster = Cluster(env, LIMITED)
    with pytest.raises(InputError, match="job 1: unknown queue 'shrot'; did you mean 'short'"):
        cluster.submit(Job(run=1, queue="shrot"))
    spec = ClusterSpec(partitions=[PartitionSpec(name="a", processors=1), PartitionSpec(name="b", processors=1)])
    with pytest.raises(InputError, match="job 1: unknown partition 'c'; known partitions: a, b"):
        Cluster(env, spec).submit(Job(run=1, partition="c"))


def test_a_partition_that_is_a_queue_here_is_that_queue():
    """As on the platform of a Slurm whose partitions share nodes: its own log runs there."""
    queues = [QueueSpec(name=name, partition="batch", max_running=1) for name in ("batch", "high")]
    spec = ClusterSpec(partitions=[PartitionSpec(name="batch", processors=9)], queues=queues)
    starts = [0.0, 5.0, 10.0]
    jobs = [Job(run=5, partition="high") for _ in range(3)]
    assert simulate(spec, jobs, "fcfs").jobs["start"].tolist() == starts
    assert simulate(spec, [Job(run=5, queue="high") for _ in range(3)], "fcfs").jobs["start"].tolist() == starts
    log = Workload({"submit": [0.0] * 3, "run": [5.0] * 3, "processors": [1] * 3, "partition": ["high"] * 3})
    found = simulate(spec, log, "fcfs")
    assert found.jobs["start"].tolist() == starts
    assert not found.report.repaired


def test_queues_and_partitions_of_another_machine_are_left_out_of_a_log_and_counted():
    columns = {
        "submit": [0, 0, 0],
        "run": [9, 9, 9],
        "processors": [1, 1, 1],
        "queue": [7, 1, -1],
        "partition": [3, -1, 3],
    }
    parts = [PartitionSpec(name="a", processors=1), PartitionSpec(name="b", processors=4)]
    spec = ClusterSpec(partitions=parts, queues=[QueueSpec(name="1")])
    result = simulate(spec, Workload(columns), "easy")
    assert result.jobs["status"].tolist() == ["completed"] * 3
    assert result.report.repaired["queue not on the platform: ignored"] == 1
    assert result.report.repaired["partition not on the platform: ignored"] == 2


def test_consumables_are_shared_and_planned():
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=10)], consumables=[ConsumableSpec(name="licence", amount=3)]
    )
    jobs = [
        Job(processors=1, run=10, consumables={"licence": 2}),
        Job(processors=1, run=10, consumables={"licence": 2}),
        Job(processors=9, run=30),
        Job(processors=1, run=10, consumables={"licence": 1}),
        Job(processors=1, run=10, consumables={"licence": 4}),
        Job(processors=1, run=10, consumables={"beer": 1}),
    ]
    assert starts(spec, jobs[:4], "fcfs") == [0, 10, 10, 20]
    # The second waits for a licence until 10; the third ends later but leaves a processor free, so it may start.
    assert starts(spec, jobs[:4], "easy") == [0, 10, 0, 20]
    result = simulate(spec, jobs, "conservative")
    assert result.jobs["status"][4:].tolist() == ["rejected", "rejected"]
    assert "4 of licence requested, there are 3" in result.jobs["reason"][4]
    assert "consumable 'beer' requested" in result.jobs["reason"][5]


# ---------------------------------------------------------------------- errors


def wrong(policy, jobs=None):
    jobs = jobs or [Job(processors=3, run=10), Job(processors=3, run=10)]
    with pytest.raises(PolicyError) as error:
        simulate(4, jobs, policy)
    return str(error.value)


def test_decisions_that_cannot_be():
    def too_much(view):
        for job in view.waiting:
            yield Start(job, view.places[0])

    def twice(view):
        job = next(iter(view.waiting))
        return [Start(job, view.places[0]), Start(job, view.places[0])]

    def elsewhere(view):
        return [Start(next(iter(view.waiting)), "the moon")]

    def nonsense(view):
        return ["start something"]

    def not_running(view):
        return [Preempt(next(iter(view.waiting)))]

    def past(view):
        return [Reserve(next(iter(view.waiting)), view.places[0], view.now - 1)]

    message = "policy too_much at 0.0, job 2 on batch: does not fit: 3 processors and 10 s requested, 1 of 4 are free"
    assert wrong(too_much) == message
    assert "job 1 on batch: cannot start <job 1: 3 processors, no time requested, running>: it is not waiting" in wrong(
        twice
    )
    assert "must name a place of this scheduler (batch), got 'the moon'" in wrong(elsewhere)
    assert re.search(r"decisions must be Start, .*, got 'start something'", wrong(nonsense))
    assert "it is not running" in wrong(not_running)
    assert "must name an instant >= 0 s, got -1" in wrong(past)


def test_decisions_before_an_error_stay_applied_and_the_policy_is_closed():
    closed = []

    def policy(view):
        try:
            for job in view.waiting:
                yield Start(job, view.places[0])
        finally:
            closed.append(view.now)

    env = Environment()
    cluster = Cluster(env, 4, policy)
    first, second = cluster.submit(Job(processors=3, run=10)), cluster.submit(Job(processors=3, run=10))
    with pytest.raises(PolicyError):
        env.run()
    assert closed == [0]
    assert (first.state, second.state) == ("running", "waiting")


def test_a_policy_that_starts_nothing_is_reported():
    with pytest.raises(Stalled, match="job 1 has waited for 1 processors of batch since 0 s; 4 of 4 are free"):
        simulate(4, [Job(run=1)], lambda view: ())


def test_impossible_work_is_refused_when_it_is_submitted():
    cluster = Cluster(Environment(), 4)
    with pytest.raises(ImpossibleWork, match="5 processors requested, batch has 4"):
        cluster.submit(Job(processors=5, run=1))
    with pytest.raises(ImpossibleWork, match="GPUs or memory of nodes requested"):
        cluster.submit(Job(nodes=1, gpus_per_node=1, run=1))


def test_wrong_fields_of_jobs_are_refused():
    for options, sentence in (
        ({"processors": 0, "run": 1}, "processors: must be a whole number >= 1, got 0"),
        ({"run": -1}, "run: must be >= 0, got -1"),
        ({"processors": 1}, "must have a run time, a body, a workflow or traffic"),
        ({"run": 1, "dependencies": [Dependency(1, think_time=0)], "requested": 0}, "requested: must be > 0, got 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Job(**options)


# ---------------------------------------------------------------------- views and decisions


def test_first_come_first_served_in_four_lines():
    def fcfs(view):
        for job in view.waiting:
            if not view.places[0].fits(job):
                break
            yield Start(job, view.places[0])

    jobs = [Job(submit=i, processors=1 + i % 3, run=5 + i) for i in range(40)]
    assert starts(4, jobs, fcfs) == starts(4, jobs, "fcfs")


def test_the_view_shows_what_was_decided():
    """Within one decision ``waiting``, ``free``, ``running``, ``fits`` and estimates reflect each start."""
    seen = []

    def policy(view):
        place = view.places[0]
        for job in view.waiting:
            if place.fits(job):
                yield Start(job, place)
                seen.append((view.now, job.id, place.free, len(view.waiting), [run.work.id for run in view.running]))
            else:
                estimate = view.estimate(job, place)
                seen.append((view.now, job.id, estimate.start, estimate.finish))

    jobs = [Job(processors=2, run=30), Job(processors=1, run=10), Job(processors=2, run=5)]
    simulate(4, jobs, policy)
    assert seen == [(0, 1, 2, 2, [1]), (0, 2, 1, 1, [2, 1]), (0, 3, 10, 15), (10, 3, 0, 0, [3, 1])]


def test_the_scheduler_does_not_wake_for_nothing_unless_asked():
    asked = []

    def policy(view):
        asked.append(view.now)
        yield from (Start(job, view.places[0]) for job in list(view.waiting))
        if view.now < 5:
            yield WakeAt(7.0)

    env = Environment()
    Cluster(env, 1, policy).submit(Job(run=3))
    env.run()
    assert asked == [0, 7]


def test_decisions_and_their_times_are_counted():
    class Watch:
        def __init__(self, env):
            self.env, self.decisions = env, []

        def decided(self, scheduler, seconds, count):
            self.decisions.append((self.env.now, count, seconds >= 0))

    watched = []

    class Kept(Watch):
        def __init__(self, env):
            super().__init__(env)
            watched.append(self)

    result = simulate(2, [Job(run=5), Job(submit=1, processors=2, run=5)], "fcfs", observers=[Kept])
    assert watched[0].decisions == [(0, 1, True), (1, 0, True), (5, 1, True)]
    assert result.decisions["count"] == 3


def test_jobs_of_zero_length_end_in_the_same_instant():
    assert starts(1, [Job(run=0, requested=10), Job(run=0, requested=10), Job(run=1)]) == [0, 0, 0]


def test_a_job_without_an_id_gets_the_first_number_that_is_free() -> None:
    cluster = Cluster(Environment(), 4)
    assert [cluster.submit(Job(id=number, run=1)).id for number in (3, 5, None, None, None)] == [3, 5, 4, 6, 7]


def test_a_run_may_stop_in_the_middle():
    result = simulate(1, [Job(run=10), Job(run=10), Job(submit=50, run=1)], "fcfs", until=15)
    assert result.jobs["status"].tolist() == ["completed", "running", "unsubmitted"]


def test_a_scenario_repeats_the_run(tmp_path):
    from simmodel.runs.scenario import load_scenario

    result = simulate("small", "lublin-128-week", "sjf+easy", processors=128, estimates="exact")
    result.to_sqlite(tmp_path / "run.sqlite")
    again = load_scenario(tmp_path / "run.sqlite").run()
    assert again.jobs["start"].tolist() == result.jobs["start"].tolist()
    assert again.scenario == result.scenario


def test_a_job_that_a_limit_held_starts_once_the_end_before_it_is_told():
    """With one decision per event, the end that makes room under a limit is told before the start that it allows."""
    spec = ClusterSpec(partitions=[PartitionSpec(processors=1)], queues=[QueueSpec(name="one", max_running=1)])
    told = []

    class Watch:
        def job_started(self, run):
            told.append(("started", run.job.id))

        def job_ended(self, run, status):
            told.append((status, run.job.id))

    simulate(spec, [Job(run=5, queue="one"), Job(run=5, queue="one")], "fcfs", decide_on="event", observers=[Watch()])
    assert told == [("started", 1), ("completed", 1), ("started", 2), ("completed", 2)]


def test_amounts_of_consumables_that_are_not_whole_come_back_whole():
    """Releasing 0.1 and 0.2 of a licence restores exactly 1; ten tenths fit."""
    spec = ClusterSpec(partitions=[PartitionSpec(processors=20)], consumables=[ConsumableSpec(name="io", amount=1)])
    parts = [Job(run=5, consumables={"io": 0.2}), Job(run=6, consumables={"io": 0.1})]
    tenths = [Job(submit=20, run=5, consumables={"io": 0.1}) for _ in range(10)]
    for policy in ("fcfs", "easy", "conservative"):
        result = starts(spec, [*parts, Job(run=5, consumables={"io": 1}), *tenths], policy)
        assert result == [0, 0, 6, *[20] * 10]


@pytest.mark.parametrize("policy", [name for name in policy_names("jobs") if name != "slurm"])  # at its instants
def test_a_consumable_that_another_partition_gives_back_is_seen_everywhere(policy):
    parts = [PartitionSpec(name="a", processors=4), PartitionSpec(name="b", processors=4)]
    spec = ClusterSpec(partitions=parts, consumables=[ConsumableSpec(name="licence", amount=1)])
    jobs = [Job(run=5, partition=name, consumables={"licence": 1}) for name in ("a", "b")]
    assert starts(spec, jobs, policy) == [0, 5]


@pytest.mark.few(17)
@pytest.mark.parametrize("policy", list(policy_names("jobs")))
@pytest.mark.parametrize("late", [0, 1])
def test_a_start_may_have_a_limit_hold_the_jobs_that_come_next(policy, late):
    """Of jobs submitted together, the start of the first makes the others held before the policy reaches them."""
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=8)],
        queues=[QueueSpec(name="free"), QueueSpec(name="one", max_running_per_user=1)],
    )
    jobs = [
        Job(processors=2, run=20, queue="free"),
        Job(processors=7, run=5, queue="free"),  # waits with a planned start
        *(Job(submit=late, run=2 + i, queue="one") for i in range(3)),
    ]
    result = simulate(spec, jobs, policy)
    assert result.jobs["status"].tolist() == ["completed"] * 5


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep", "window", "best-fit"])
def test_jobs_whose_end_nobody_knows_run_one_after_the_other(policy):
    """With bodies without requested times, the second job is planned at infinity and the first starts nevertheless."""
    env = Environment()
    cluster = Cluster(env, 1, policy)

    def body(env, job, grant):
        yield env.timeout(5)

    jobs = [cluster.submit(Job(body=body)) for _ in range(3)]
    env.run()
    assert [job.started for job in jobs] == [0, 5, 10]


# ---------------------------------------------------------------------- memory


def test_a_long_job_keeps_none_that_were_in_the_queue_after_it():
    env = Environment()
    cluster = Cluster(env, 2)
    first = cluster.submit(Job(run=1000))
    for _ in range(20):
        cluster.submit(Job(run=5))
    env.run(until=500)
    kept, job = [], first
    while job is not None:
        kept.append(job)
        job = job.later
    assert first.state == "running"
    assert len(kept) <= 2
