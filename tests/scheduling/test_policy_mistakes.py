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
    Workload,
    load_platform,
    simulate,
)
from simmodel.work import DataObject

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
        (lambda view, job: setattr(job, "expected", 1), "cannot change expected from 10 to 1 s: jobs are read-only"),
        (lambda view, job: setattr(job, "submit", -5), "cannot change submit from 0 to -5 s: jobs are read-only"),
        (lambda view, job: setattr(job, "priority", 7), "cannot change priority from 0 to 7: jobs are read-only"),
        (lambda view, job: setattr(job, "user", "ann"), "cannot change user from None to 'ann': jobs are read-only"),
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


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("processors", 1, "processors from 8 to 1"),
        ("requested", 1, "requested from 10 to 1 s"),
        ("submit", -1, "submit from 0 to -1 s"),
        ("priority", 9, "priority from 0 to 9"),
        ("limit", 1, "limit from 10 to 1 s"),
        ("home", "b", "home from None to 'b'"),
    ],
)
def test_the_job_of_a_broker_cannot_be_changed(field, value, text):
    def changes(view):
        for job in list(view.waiting):
            setattr(job, field, value)
            yield Start(job, view.places[0])

    assert message(changes, platform={"a": 8, "b": 8}).endswith(f"on a: cannot change {text}: jobs are read-only")


def test_the_priority_of_a_job_of_a_log_cannot_be_changed():
    log = Workload({"submit": [0, 0], "run": [10, 10], "processors": [8, 8]})
    assert message(starts_after(lambda view, job: setattr(job, "priority", 7)), log).endswith(
        "cannot change priority from 0 to 7: jobs are read-only"
    )


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("speeds", (0.0,) * 3, "speeds from "),
        ("cores", 0.5, "cores from 1 to 0.5"),
        ("memory", -1.0, "memory from 0.0 to -1.0"),
        ("priority", 3, "priority from 0.0 to 3"),
        ("inputs", (), "inputs from (<LiveData "),
        ("family", "other", "family from "),
    ],
)
def test_the_task_of_a_machine_cannot_be_changed(field, value, text):
    def changes(view):
        for task in view.waiting:
            setattr(task, field, value)
            yield Start(task, view.places[0])

    tasks = Workflow([Task(id="t", run=1, inputs=["table"])], files=[DataObject("table", 8)])
    found = message(changes, tasks, load_platform("hetsim-slow"))
    assert f"task t on {load_platform('hetsim-slow').processors[0].name}" in found
    assert f"cannot change {text}" in found
    assert found.endswith(": tasks are read-only")


def test_the_speeds_of_a_task_cannot_be_changed_in_place():
    def changes(view):
        for task in view.waiting:
            task.speeds[0] = 0.0

    with pytest.raises(TypeError, match="does not support item assignment"):
        simulate(load_platform("hetsim-slow"), Workflow([Task(id="t", run=1)]), changes)


DECISIONS = ", ".join(each.__name__ for each in Cluster(Environment(), 4).scheduler.handlers)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda view: 5, f"must return or yield decisions ({DECISIONS}), got 5"),
        (lambda view: "easy", f"must return or yield decisions ({DECISIONS}), got 'easy'"),
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

    def breaks_at_once(view):
        raise TypeError("mine")

    for policy in (breaks, breaks_at_once):
        with pytest.raises(TypeError, match="mine"):
            simulate(8, TWO, policy)


def test_decisions_about_the_jobs_of_another_cluster():
    env = Environment()
    other = Cluster(env, 8)
    running = other.submit(Job(run=100))
    env.run(until=1)
    waiting = Cluster(Environment(), 8).submit(Job(run=5, requested=5))
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


def test_the_name_of_an_order_is_answered_with_the_way_to_the_order():
    with pytest.raises(
        InputError, match=r"must be an Order, which simmodel\.policies\.order\('fcfs'\) returns, got 'fcfs'"
    ):
        simulate(8, TWO, lambda view: [Start(view.waiting.by("fcfs").head(), view.places[0])])
