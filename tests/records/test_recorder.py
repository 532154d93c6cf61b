"""The recorder in isolation: each hook is called as a cluster would call it."""

from pathlib import Path
from types import SimpleNamespace as Some

import numpy as np
import pytest
import simpy

from simmodel import Workload, load_result, simulate
from simmodel.environment import heard
from simmodel.records import JobRecorder
from simmodel.records.observers import EventRecorder, Progress, UsageMeter
from simmodel.results import Result

NAN = float("nan")


def job(index, processors=1, submit=0.0, spec=None, **more):
    return Some(
        index=index,
        id=index + 1,
        submit=submit,
        processors=processors,
        preferred=processors,
        asked=50.0,
        spec=spec,
        _job=None,
        history=None,
        **more,
    )


class Stage:
    """An environment with a clock set by the test, a place, and one method per hook."""

    def __init__(self, expected=0, **options):
        self.env = simpy.Environment()
        self.pool = Some(name="pool", capacity=8, free=8)
        self.recorder = JobRecorder(self.env, expected, places=[self.pool], **options)

    def at(self, now):
        if now > self.env.now:
            self.env.run(until=now)
        return self

    def start(self, work, nodes=None, place=None):
        run = Some(job=work, place=place or self.pool, started=self.env.now, grant=Some(nodes=nodes, allocation=None))
        self.recorder.job_started(run)
        return run

    def end(self, run, status="completed"):
        self.recorder.job_ended(run, status)


def columns(count, **more):
    base = {"job": np.arange(1, count + 1), "submit": np.zeros(count), "processors": np.ones(count, dtype=int)}
    return {**base, "requested": np.full(count, 50.0), **more}


def test_plain_jobs_need_nothing_but_the_table_of_jobs():
    stage = Stage(expected=3)
    first = stage.at(2).start(job(0))
    second = stage.at(3).start(job(1))
    stage.at(7).end(first)
    stage.at(9).end(second, "timeout")
    result = stage.recorder.record(Result, columns(3, user=["a", "b", "c"]), name="plain")
    assert stage.recorder.runs(result.jobs) is None
    assert result.jobs["start"].tolist()[:2] == [2, 3]
    assert result.jobs["run"].tolist()[:2] == [5, 6]
    assert result.jobs["status"].tolist() == ["completed", "timeout", "waiting"]
    assert result.jobs["attempts"].tolist() == [1, 1, 0]
    assert result.jobs["user"].tolist() == ["a", "b", "c"]
    assert result.ended == 9
    assert result.processors == 8
    assert result.runs["place"].tolist() == ["pool", "pool"]


def test_a_running_job_and_one_not_yet_submitted():
    stage = Stage(expected=2)
    stage.at(1).start(job(0))
    stage.at(5)
    result = stage.recorder.record(Result, columns(2, submit=np.array([0.0, 99.0])))
    assert result.jobs["status"].tolist() == ["running", "unsubmitted"]
    assert np.isnan(result.jobs["run"]).all()
    assert result.ended == 5
    assert result.busy().integral() == 4


def test_jobs_that_nobody_expected_grow_the_columns():
    stage = Stage()
    late = [job(0, user="ann", group=None, queue="short"), job(1, 4, submit=3.0, user=None, group=None, queue="long")]
    for each in late:
        stage.recorder.job_submitted(each)
    stage.end(stage.at(4).start(late[1]))
    jobs = stage.recorder.jobs()
    assert jobs["job"].tolist() == [1, 2]
    assert jobs["user"].tolist() == ["ann", ""]
    assert jobs["queue"].tolist() == ["short", "long"]
    assert "group" not in jobs
    assert jobs["wait"].tolist()[1] == 1
    assert jobs["status"].tolist() == ["waiting", "completed"]


def test_expected_and_unexpected_jobs_share_a_table():
    stage = Stage(expected=1)
    assert heard(stage.recorder, "job_submitted") is None
    stage.end(stage.at(1).start(job(0)))
    run = stage.start(job(2, 2, user="eve", group=None))
    stage.recorder.job_rejected(job(1, 99), "too large")
    stage.at(6).end(run)
    jobs = stage.recorder.jobs(columns(1, user=[7], memory=[1.5]))
    assert jobs["job"].tolist() == [1, 2, 3]
    assert jobs["user"].tolist() == ["7", "", "eve"]
    assert jobs["status"].tolist() == ["completed", "rejected", "completed"]
    assert jobs["reason"].tolist() == ["", "too large", ""]
    assert jobs["memory"][0] == 1.5
    assert np.isnan(jobs["memory"][1:]).all()


@pytest.mark.parametrize(("keeps", "run"), [(False, 8.0), (True, 12.0)])
def test_a_preempted_job_has_two_executions(keeps, run):
    stage = Stage(expected=1)
    work = job(0, 2, spec=Some(keeps_work=keeps, checkpoint=None))
    first = stage.at(1).start(work)
    stage.at(5).end(first, "preempted")
    assert stage.recorder.jobs(columns(1))["status"].tolist() == ["waiting"]
    second = stage.at(10).start(work)
    stage.at(18).end(second)
    result = stage.recorder.record(Result, columns(1, processors=np.array([2])))
    assert result.jobs["start"].tolist() == [1]
    assert result.jobs["end"].tolist() == [18]
    assert result.jobs["run"].tolist() == [run]
    assert result.jobs["attempts"].tolist() == [2]
    assert result.runs["attempt"].tolist() == [1, 2]
    assert result.runs["status"].tolist() == ["preempted", "completed"]
    assert result.busy().integral() == 2 * (4 + 8)
    assert result.queue_length().integral() == 1 + 5


def test_a_requeued_job_that_is_withdrawn_leaves_the_queue():
    stage = Stage(expected=1)
    work = job(0)
    run = stage.start(work)
    stage.at(2).end(run, "requeued")
    work.state = "cancelled"
    stage.at(6).recorder.job_cancelled(work)
    stage.at(20)
    result = stage.recorder.record(Result, columns(1), ended=20.0)
    assert result.jobs["status"].tolist() == ["cancelled"]
    assert result.jobs["attempts"].tolist() == [1]
    assert result.queue_length().integral() == 4


def test_suspension_splits_an_execution():
    stage = Stage(expected=2)
    run = stage.at(0).start(job(0, 3))
    stage.at(4).recorder.job_suspended(run)
    assert stage.recorder.jobs(columns(2))["status"].tolist()[0] == "suspended"
    stage.at(10).recorder.job_resumed(run)
    stage.at(13).end(run)
    result = stage.recorder.record(Result, columns(2, processors=np.array([3, 1])))
    assert result.jobs["run"].tolist()[0] == 7
    assert result.jobs["attempts"].tolist()[0] == 1
    assert result.runs["status"].tolist() == ["suspended", "completed"]
    assert result.runs["start"].tolist() == [0, 10]
    assert result.busy().integral() == 3 * 7


def test_a_job_cancelled_while_suspended_has_one_stretch():
    stage = Stage(expected=1)
    run = stage.start(job(0))
    stage.at(4).recorder.job_suspended(run)
    stage.at(9).end(run, "cancelled")
    result = stage.recorder.record(Result, columns(1))
    assert result.jobs["status"].tolist() == ["cancelled"]
    assert result.jobs["run"].tolist() == [4]
    assert len(result.runs) == 1
    assert result.busy().integral() == 4


def test_identified_nodes_are_kept_with_each_execution():
    stage = Stage(expected=2)
    first = stage.start(job(0, 4), nodes=(0, 1))
    stage.at(3).start(job(1, 2), nodes=(3,))
    stage.at(5).end(first)
    stage.at(6)
    result = stage.recorder.record(Result, columns(2, processors=np.array([4, 2])))
    assert result.runs["nodes"].tolist() == [(0, 1), (3,)]
    assert result.runs["status"].tolist() == ["completed", "running"]
    assert np.isnan(result.runs["end"][1])


def test_jobs_of_several_places_say_where_they_ran():
    stage = Stage(expected=3)
    other = Some(name="gpu", capacity=4)
    runs = [stage.start(job(0)), stage.start(job(1), place=other), stage.start(job(2))]
    stage.at(5)
    for run in runs:
        stage.end(run)
    result = stage.recorder.record(Result, columns(3))
    assert result.runs["place"].tolist() == ["pool", "gpu", "pool"]
    assert result.busy("gpu").integral() == 5
    assert result.busy().integral() == 15


def test_waits_count_from_the_moment_dependencies_let_go():
    stage = Stage(expected=2)
    work = job(1)
    stage.at(7).recorder.job_eligible(work)
    stage.end(stage.at(9).start(work))
    jobs = stage.recorder.jobs(columns(2))
    assert jobs["wait"].tolist()[1] == 2
    assert jobs["eligible"].tolist() == [0, 7]


def test_places_that_change_are_kept():
    stage = Stage(expected=0)
    stage.pool.up, stage.pool.down_nodes = 6, {3}
    stage.at(5).recorder.place_changed(stage.pool, "failure")
    stage.pool.up, stage.pool.down_nodes = 8, set()
    stage.at(7).recorder.place_changed(stage.pool, "repair")
    changes = stage.recorder.changes()
    assert changes["processors"].tolist() == [6, 8]
    assert changes["down"].tolist() == [(3,), ()]
    result = stage.recorder.record(Result, ended=10.0)
    assert result.capacity().integral() == 8 * 10 - 2 * 2


def test_nodes_and_powers_come_from_the_description_of_the_place():
    kind = Some(count=2, cores=4, idle_power=100.0, load_power=200.0, gpu_types={}, watts=Some(levels=()))
    rack = Some(name="rack", capacity=8, spec=Some(nodes=(kind,), idle_power=0.0, load_power=0.0))
    result = JobRecorder(simpy.Environment(), places=[rack]).record(Result)
    assert list(result.places.rows()) == [
        {"place": "rack", "processors": 8, "nodes": 2, "idle_power": 100.0, "load_power": 200.0}
    ]
    assert result.nodes["node"].tolist() == [0, 1]


# ---------------------------------------------------------------------- other observers


def test_event_table_keeps_counts_and_free_processors():
    env = simpy.Environment()
    pool = Some(name="pool", free=4)
    events = EventRecorder(env, [pool])
    work, wrong = job(0, 3), job(1, 9)
    run = Some(job=work, place=pool)
    events.job_submitted(work)
    events.job_rejected(wrong, "9 processors requested, 4 there")
    events.job_promised(work, pool, 5.0)
    pool.free = 1
    events.job_started(run)
    pool.free = 4
    events.job_ended(run, "preempted")
    events.place_changed(pool, "failure")
    events.job_cancelled(work)
    table = events.table()
    assert table["event"].tolist() == [
        "submitted",
        "rejected",
        "promised",
        "started",
        "preempted",
        "changed",
        "withdrawn",
    ]
    assert table["waiting"].tolist() == [1, 1, 1, 0, 1, 1, 0]
    assert table["running"].tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert table["free"].tolist() == [4, 4, 4, 1, 4, 4, 4]
    assert table["job"].tolist() == [1, 2, 1, 1, 1, -1, 1]
    assert table["detail"].tolist()[2] == "5"
    assert len(EventRecorder(env).table()) == 0


def test_usage_meter_after_a_warm_up():
    env = simpy.Environment()
    meter = UsageMeter(env)
    meter.job_submitted(job(0, 3))
    env.run(until=5)
    meter.job_started(Some(job=job(0, 3)))
    env.run(until=6)
    meter.reset()
    env.run(until=8)
    meter.job_ended(Some(job=job(0, 3)), "requeued")
    env.run(until=10)
    assert meter.mean_busy() == 1.5
    assert meter.mean_running() == 0.5
    assert meter.mean_waiting() == 0.5


def test_progress_draws_with_tqdm(capsys):
    progress = Progress(2)
    progress.job_ended(None, "completed")
    progress.job_rejected(None, "")
    progress.close()
    assert "2/2" in capsys.readouterr().err


def test_a_run_that_is_stopped_before_its_first_job_begins_and_ends_then(tmp_path: Path) -> None:
    result = simulate(4, Workload({"submit": [2], "run": [5], "processors": [1]}), "fcfs", until=1)
    assert (result.started, result.ended) == (1.0, 1.0)
    result.to_sqlite(tmp_path / "a.db")
    assert load_result(tmp_path / "a.db").jobs["status"].tolist() == ["unsubmitted"]
