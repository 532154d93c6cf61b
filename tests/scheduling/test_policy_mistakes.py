"""Policies that change what they see, or return other things than decisions: a PolicyError before anything happens."""

import math

import pytest

from simmodel import (
    Cluster,
    Environment,
    InputError,
    Job,
    PolicyError,
    Preempt,
    Reserve,
    Start,
    Task,
    WakeAt,
    Workflow,
    load_platform,
    simulate,
)

TWO = [Job(processors=8, run=10), Job(processors=8, run=10)]


def message(policy, jobs=TWO, platform=8):
    with pytest.raises(PolicyError) as error:
        simulate(platform, jobs, policy)
    return str(error.value)


def starts_after(change):
    def greedy(view):
        for job in list(view.waiting):
            change(view, job)
            if view.places[0].fits(job):
                yield Start(job, view.places[0])

    return greedy


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda view, job: setattr(job, "processors", 0), "cannot change processors from 8 to 0: jobs are read-only"),
        (lambda view, job: setattr(job, "requested", 1), "cannot change requested from 10 to 1 s: jobs are read-only"),
        (
            lambda view, job: setattr(view.places[0], "free", 10**6),
            "cannot change free from 8 to 1000000: places are read-only",
        ),
    ],
)
@pytest.mark.parametrize("nodes", [False, True])
def test_changes_are_refused_before_they_have_an_effect(change, text, nodes):
    platform = 8
    if nodes:
        from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec

        platform = ClusterSpec(partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(count=2, cores=4)])])
    assert message(starts_after(change), platform=platform) == f"policy greedy at 0.0, job 1 on batch: {text}"


def test_the_state_is_unchanged_after_a_refused_start():
    env = Environment()
    cluster = Cluster(env, 8, starts_after(lambda view, job: setattr(job, "processors", 0)))
    job = cluster.submit(Job(processors=8, run=10))
    with pytest.raises(PolicyError):
        env.run()
    assert (job.state, len(cluster.view.waiting), cluster.places[0].free) == ("waiting", 1, 8)


def test_the_capacity_of_a_pool_cannot_be_assigned():
    with pytest.raises(InputError, match="batch: cannot change capacity from 8 to 1000000: places are read-only"):
        simulate(8, TWO, starts_after(lambda view, job: setattr(view.places[0], "capacity", 10**6)))


def test_a_running_job_changed_by_a_policy_is_noticed_when_it_ends():
    def shrinks(view):
        for run in view.running:
            run.work.processors = 0
        return [Start(job, view.places[0]) for job in view.waiting if view.places[0].fits(job)]

    with pytest.raises(PolicyError, match="cannot change processors from 8 to 0"):
        simulate(8, [Job(processors=8, run=10), Job(submit=5, processors=8, run=10)], shrinks)


def test_the_job_of_a_broker_cannot_be_changed():
    def shrinks(view):
        for job in list(view.waiting):
            job.processors = 1
            yield Start(job, view.places[0])

    assert message(shrinks, platform={"a": 8, "b": 8}).endswith(
        "on a: cannot change processors from 8 to 1: jobs are read-only"
    )


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda view: 5, "must return or yield decisions (Start, Reserve, WakeAt, Preempt), got 5"),
        (lambda view: "easy", "must return or yield decisions (Start, Reserve, WakeAt, Preempt), got 'easy'"),
        (
            lambda view: Start(view.waiting.head(), view.places[0]),
            "must return or yield decisions, got one alone: return [Start(...)]",
        ),
        (lambda view: [Start("job", view.places[0])], "must name a job or task of the view, got 'job'"),
        (lambda view: [Start(view.waiting.head(), "b")], "must name a place of this scheduler (batch), got 'b'"),
        (lambda view: [Start(view.waiting.head(), view.places[0], None, 5)], "allocation: must be a free allocation"),
        (lambda view: [Reserve("job", view.places[0], 5)], "must name a job or task of the view, got 'job'"),
        (lambda view: [Reserve(view.waiting.head(), "b", 5)], "must name a place of this scheduler (batch), got 'b'"),
        (lambda view: [Preempt(5)], "cannot preempt 5: it is not running"),
    ],
)
def test_answers_of_the_wrong_type(answer, text):
    assert text in message(answer)


@pytest.mark.parametrize("at", [math.nan, -1, "x", None, True])
def test_instants_that_are_none(at):
    text = f"must name an instant >= 0 s, got {at!r}"
    assert text in message(lambda view: [WakeAt(at)])
    assert text in message(lambda view: [Reserve(view.waiting.head(), view.places[0], at)])


def test_a_type_error_inside_a_policy_stays_what_it_is():
    def breaks(view):
        yield Start(view.waiting.head(), view.places[0])
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        simulate(8, TWO, breaks)


def test_decisions_about_the_jobs_of_another_cluster():
    env = Environment()
    other = Cluster(env, 8)
    running = other.submit(Job(run=100))
    env.run(until=1)
    waiting = Cluster(Environment(), 8).submit(Job(run=5))
    assert "must name work that waits for this scheduler, got <job 1: 1 processors, 5 s requested, waiting>" in message(
        lambda view: [Start(waiting, view.places[0])]
    )
    assert "it is running on another system" in message(lambda view: [Preempt(running)])
    assert "must name work that waits for this scheduler" in message(
        lambda view: [Start(waiting, view.places[0])], platform=[8, 8]
    )


def test_a_task_is_not_called_a_job_and_few_places_are_listed():
    machine = load_platform("hetsim-slow")
    text = message(lambda view: [Start(task, None) for task in view.waiting], Workflow([Task(id="t", run=1)]), machine)
    assert "task t: must name a place of this scheduler (" in text
    assert text.count(", ") < 8
    assert " more)" in text
