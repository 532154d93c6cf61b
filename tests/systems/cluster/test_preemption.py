"""Preemption of jobs by requeueing and by suspension."""

from __future__ import annotations

import attrs
import pytest
import simpy

from simmodel import Cluster, Environment
from simmodel.platform.cluster import ClusterSpec, OutageSpec, PartitionSpec, QueueSpec
from simmodel.policies import Easy
from simmodel.policies.preemption import Preemptive
from simmodel.runs.scenario import simulate
from simmodel.scheduling.protocol import Preempt, Start, WakeAt
from simmodel.work.job import Job


def starts(platform, jobs, policy="fcfs", **options):
    """Return the start of each job, in the order of the list."""
    return simulate(platform, jobs, policy, **options).jobs["start"].tolist()


def preemptive_spec(mode):
    return ClusterSpec(
        partitions=[PartitionSpec(processors=4)],
        queues=[
            QueueSpec(name="normal", priority=1, preempts=["besteffort"]),
            QueueSpec(name="besteffort", preemptible=mode),
        ],
    )


@pytest.mark.parametrize(
    ("mode", "keeps_work", "end"),
    [("requeue", False, 10 + 5 + 20), ("requeue", True, 25), ("suspend", False, 25)],
)
def test_preempted_jobs_start_again_or_go_on(mode, keeps_work, end):
    """A best-effort job of 20 s is preempted at 10 for 5 s: it restarts, or has 10 s left."""
    jobs = [
        Job(processors=4, run=20, queue="besteffort", keeps_work=keeps_work),
        Job(submit=10, processors=2, run=5, queue="normal"),
    ]
    result = simulate(preemptive_spec(mode), jobs, "preemptive")
    assert result.jobs["start"][1] == 10
    assert result.jobs["end"].tolist() == [end, 15]
    assert result.jobs["status"].tolist() == ["completed", "completed"]
    assert result.jobs["attempts"].tolist() == [1 if mode == "suspend" else 2, 1]
    assert result.jobs["run"][0] == 20  # discarded work does not count


def test_the_latest_started_gives_way_and_no_more_than_needed():
    jobs = [Job(submit=i, processors=1, run=100, queue="besteffort") for i in range(4)]
    jobs.append(Job(submit=10, processors=2, run=5, queue="normal"))
    result = simulate(preemptive_spec("suspend"), jobs, Preemptive(Easy()))
    assert result.jobs["end"].tolist() == [100, 101, 107, 108, 15]


class CountsStops(Preemptive):
    """Fails at the twentieth preemption: an endless exchange at one instant would never return."""

    stops = 0

    def decide(self, view):
        for decision in super().decide(view):
            self.stops += isinstance(decision, Preempt)
            assert self.stops < 20
            yield decision


@pytest.mark.parametrize(("mode", "ends"), [("requeue", [30, 30, 50]), ("suspend", [20, 25, 40])])
def test_queues_that_preempt_in_a_circle_stop_each_job_once(mode, ends):
    """Two of three jobs fit: blue (3) stops green (2), which stops red (1), which stops blue; then it is over."""
    circle = {"red": "blue", "blue": "green", "green": "red"}
    queues = [QueueSpec(name=name, preempts=[other], preemptible=mode) for name, other in circle.items()]
    jobs = [Job(submit=5 * i, run=20, queue=name) for i, name in enumerate(["red", "green", "blue"])]
    spec = ClusterSpec(partitions=[PartitionSpec(processors=2)], queues=queues)
    result = simulate(spec, jobs, CountsStops())
    assert result.jobs["end"].tolist() == ends
    stopped = [(run["job"], run["end"]) for run in result.runs.rows() if run["status"] != "completed"]
    assert stopped == [(1, 10), (2, 10), (3, 10)]


def test_a_job_may_forbid_preempting_it():
    jobs = [
        Job(processors=4, run=20, queue="besteffort", on_preempt="no"),
        Job(submit=10, processors=2, run=5, queue="normal"),
    ]
    assert starts(preemptive_spec("requeue"), jobs, "preemptive") == [0, 20]


def test_a_policy_of_ones_own_may_preempt_and_resume():
    """A policy in one function: round robin of two jobs on one processor by suspension, 10 s each."""

    def round_robin(view):
        running = view.running
        if running and view.waiting and view.now - running[0].started >= 10:
            yield Preempt(running[0].work, "suspend", "its turn is over")
            waiting = [job for job in view.waiting if job is not running[0].work]
            yield Start(waiting[0], view.places[0])
        for job in view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])
        yield WakeAt(view.now + 10)

    result = simulate(1, [Job(run=25), Job(run=25)], round_robin, until=1000)
    assert result.jobs["end"].tolist() == [45, 50]
    runs = result.runs
    assert runs["start"].tolist() == [0, 10, 20, 30, 40, 45]
    assert runs["job"].tolist() == [1, 2, 1, 2, 1, 2]


def cleans_up(seconds):
    """Return a body that runs for 100 s and, when interrupted, for a number of seconds more."""

    def body(env, job, grant):
        try:
            yield env.timeout(100)
        except simpy.Interrupt:
            yield env.timeout(seconds)

    return body


def test_a_body_that_is_cancelled_while_it_gives_way_does_not_start_again():
    jobs = [
        Job(processors=4, body=cleans_up(5), queue="besteffort", cancel=12),
        Job(submit=10, processors=4, run=5, queue="normal"),
    ]
    result = simulate(preemptive_spec("requeue"), jobs, "preemptive")
    assert result.jobs["status"].tolist() == ["cancelled", "completed"]
    assert result.jobs["end"].tolist() == [15, 20]


def test_a_body_is_not_suspended():
    jobs = [
        Job(processors=4, body=cleans_up(5), queue="besteffort"),
        Job(submit=10, processors=4, run=5, queue="normal"),
    ]
    assert starts(preemptive_spec("suspend"), jobs, "preemptive") == [0, 100]


def test_nobody_else_gives_way_while_a_body_makes_enough_room():
    jobs = [
        Job(processors=2, run=50, queue="besteffort"),
        Job(processors=2, body=cleans_up(5), queue="besteffort"),
        Job(submit=10, processors=2, run=5, queue="normal"),
        Job(submit=12, processors=4, run=1, queue="besteffort"),  # a submission brings a decision
    ]
    result = simulate(preemptive_spec("requeue"), jobs, "preemptive")
    assert result.jobs["start"][[0, 2]].tolist() == [0, 15]
    assert result.jobs["attempts"].tolist() == [1, 2, 1, 1]


def test_a_job_that_was_suspended_starts_from_the_beginning_after_a_failure():
    """10 of 30 s before suspension, 10 s more until its processors fail: it restarts with 30 s or keeps 20 s."""
    spec = attrs.evolve(preemptive_spec("suspend"), outages=[OutageSpec(at=25, until=26, processors=4)])
    for keeps_work, end in ((False, 56), (True, 36)):
        jobs = [
            Job(processors=4, run=30, requested=40, queue="besteffort", keeps_work=keeps_work),
            Job(submit=10, processors=4, run=5, queue="normal"),
        ]
        result = simulate(spec, jobs, "preemptive")
        assert result.jobs["end"].tolist() == [end, 15]
        assert result.jobs["run"].tolist() == [30, 5]  # the seconds that counted
        assert result.jobs["status"].tolist() == ["completed", "completed"]


def test_a_job_that_is_cancelled_while_it_is_suspended_is_recorded_so():
    jobs = [
        Job(processors=4, run=20, queue="besteffort", cancel=12),
        Job(submit=10, processors=4, run=5, queue="normal"),
    ]
    result = simulate(preemptive_spec("suspend"), jobs, "preemptive")
    assert result.jobs["status"].tolist() == ["cancelled", "completed"]
    assert result.jobs["end"].tolist() == [12, 15]
    assert result.jobs["run"].tolist() == [10, 5]


def test_waiting_jobs_and_claims_cannot_be_preempted():
    env = Environment()
    cluster = Cluster(env, 4)
    claim = cluster.places[0].claim(3)
    waiting = cluster.submit(Job(processors=2, run=10))
    env.run(until=1)
    assert [run.job for run in cluster.view.running] == [claim.job]
    for job in (claim.job, waiting):
        assert cluster.why_not_preempt(job, "requeue") == cluster.why_not_preempt(job, "suspend") == "it is not running"
    claim.release()
    env.run(until=2)
    assert cluster.why_not_preempt(waiting, "requeue") is None
