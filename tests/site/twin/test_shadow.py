"""A shadow tells which policy a scheduler has, when it has ceased to have it, and how well starts are foretold."""

from typing import Any

import numpy as np
import pytest

from simmodel import simulate, start
from simmodel.foundation.errors import InputError
from simmodel.generators import lublin
from simmodel.metrics.statistics import batch_means
from simmodel.work.workload import Workload
from simmodel_site.twin.events import Demand, Ended, Event, JobReport, Passed, Requeued, Started, StateReport, Submitted
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.shadow import Shadow, shadow_of
from simmodel_site.twin.sources.log import EventsOf, RecordedLog

LOG = lublin(400, 64, seed=5)


def events_of(policy: str, log: Workload = LOG) -> list[Event]:
    """Return what a simulated scheduler with a policy tells."""
    told: list[Event] = []
    simulation = start(64, log, policy)
    simulation.env.observe(EventsOf(simulation.system, told.append, "alps"))
    simulation.run()
    return told


def shadowed(events: list[Event], policy: str, **options: Any) -> Shadow:
    shadow = Shadow(Mirror(64, "alps", policy), **options)
    for event in events:
        shadow.take(event)
    return shadow


@pytest.mark.few(2)
@pytest.mark.parametrize("jobs", [120, pytest.param(400, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("policy", ["sjf", "fcfs", "easy", "conservative"])
def test_a_scheduler_with_the_mirrored_policy_is_explained(policy: str, jobs: int) -> None:
    shadow = shadowed(events_of(policy, LOG.where(slice(0, jobs))), policy)
    report = shadow.report()
    assert len(report.jobs) == jobs
    assert report.explained == 1.0
    assert report.alarms == ()


@pytest.mark.long  # smaller: the other tests of the file
def test_another_policy_brings_an_alarm_soon() -> None:
    shadow = shadowed(events_of("sjf"), "fcfs")
    assert shadow.alarms
    assert shadow.alarms[0].decision <= 200
    report = shadow.report()
    assert report.explained < 0.8
    assert set(report.jobs["kind"].tolist()) == {"same", "early", "late"}
    assert "alarm at" in report.summary()
    assert report.plot(title="") is not None


@pytest.mark.long  # another policy: the tests before
def test_a_policy_that_changes_is_noticed_after_the_change() -> None:
    half = len(LOG) // 2
    events = events_of("sjf")
    changed = float(np.sort(LOG["submit"])[half])
    as_sjf = [event for event in events if event.time < changed]
    shadow = shadowed(as_sjf, "sjf")
    assert not shadow.alarms


def test_foretold_starts_are_right_where_run_times_are_the_limits_and_nothing_comes() -> None:
    rng = np.random.default_rng(1)
    run = rng.integers(1, 50, 60).astype(float)
    log = Workload({"submit": np.zeros(60), "run": run, "requested": run, "processors": rng.integers(1, 64, 60)})
    events = [*events_of("easy", log)]
    cut = next(i for i, event in enumerate(events) if event.time > 0 or event.kind == "started")
    events.insert(cut, Passed(cluster="alps", time=0.0))
    report = shadowed(events, "easy").report()
    assert report.foretold(1e-6) == 1.0
    assert report.explained == 1.0


def test_what_the_scheduler_foretells_is_compared_too() -> None:
    shadow = Shadow(Mirror(4, "alps"))
    request = Demand(processors=4, requested=10.0)
    about: dict[str, Any] = {"job": 1, "submit": 0.0, "request": request}
    waiting = JobReport(**about, state="waiting", foretold=100.0)
    running = JobReport(**about, state="running", started=130.0)
    shadow.take(StateReport(cluster="alps", time=0.0, jobs=(waiting,)))
    shadow.take(StateReport(cluster="alps", time=140.0, jobs=(running,)))
    report = shadow.report()
    assert (report.foretold(60.0, there=True), report.foretold(10.0, there=True)) == (1.0, 0.0)
    assert "foretold by the scheduler within 1 min" in report.summary()


@pytest.mark.parametrize("jobs", [120, pytest.param(400, marks=pytest.mark.exhaustive)])
def test_the_gain_of_an_advised_policy_is_that_of_its_simulation(jobs: int) -> None:
    log = LOG.where(slice(0, jobs))
    fcfs = simulate(64, log, "fcfs")
    recorded = log.replace(wait=fcfs.jobs["wait"], run=fcfs.jobs["run"])
    shadow = Shadow(Mirror(64, "alps", "fcfs"), advised="easy")
    report = shadow_of(RecordedLog(recorded, "alps"), shadow)
    easy = simulate(64, recorded, "easy")
    assert report.shorter == pytest.approx(float(fcfs.jobs["wait"].mean() - easy.jobs["wait"].mean()), rel=1e-6)
    assert report.gain is None  # jobs that wait for each other tell too little
    assert " shorter (no interval: worth " in report.summary()


@pytest.mark.long  # without an interval: the test before
def test_the_interval_of_a_gain_is_that_of_batch_means() -> None:
    shadow = Shadow(Mirror(4, "alps"), "fcfs", "fcfs")
    request = Demand(processors=4, requested=9.0)
    waits = np.random.default_rng(1).uniform(0, 50, 600)  # for nothing: each job is alone
    for job, wait in enumerate(waits.tolist()):
        about: dict[str, Any] = {"cluster": "alps", "job": job, "submit": 100.0 * job}
        shadow.take(Submitted(**about, time=100.0 * job, request=request))
        shadow.take(Started(**about, time=100.0 * job + wait))
        shadow.take(Ended(**about, time=100.0 * job + wait + 9))
    report = shadow.report()
    assert report.shorter == pytest.approx(waits.mean())
    assert report.gain is not None
    expected = batch_means(waits)
    assert expected is not None
    assert report.gain.half_width == pytest.approx(expected.half_width)
    assert " ± " in report.summary()


def test_a_start_that_was_told_with_its_submission_is_not_foretold() -> None:
    shadow = Shadow(Mirror(4, "alps"), "fcfs")
    request = Demand(processors=4, requested=100.0)
    running = JobReport(job=1, submit=0.0, request=request, state="running", started=0.0)
    waiting = JobReport(job=2, submit=5.0, request=request, state="waiting", foretold=110.0)
    late = JobReport(job=3, submit=20.0, request=request, state="running", started=100.0)
    shadow.take(StateReport(cluster="alps", time=10.0, jobs=(running, waiting)))
    began = JobReport(job=2, submit=5.0, request=request, state="running", started=30.0)
    shadow.take(StateReport(cluster="alps", time=40.0, jobs=(began,)))
    shadow.take(StateReport(cluster="alps", time=120.0, jobs=(late,)))
    report = shadow.report()
    foretold = dict(zip(report.jobs["job"].tolist(), report.jobs["foretold"].tolist(), strict=True))
    assert foretold[2] == 100.0  # when the running one has reached its limit
    assert np.isnan(foretold[1])
    assert np.isnan(foretold[3])  # it waited 80 s, but had started when it was told of
    assert report.foretold(60.0) == 0.0
    assert report.foretold(70.0) == 1.0
    assert ["foretold", "starts", "1", "of", "3"] in [line.split() for line in report.summary().splitlines()]
    assert "foretold by the scheduler too" in report.summary()


def test_what_is_told_one_by_one_is_foretold_when_its_instant_is_over() -> None:
    shadow = Shadow(Mirror(4, "alps"), "fcfs")
    request = Demand(processors=4, requested=100.0)
    for job, submit in ((1, 0.0), (2, 0.0), (3, 10.0)):
        shadow.take(Submitted(cluster="alps", job=job, submit=submit, time=submit, request=request))
        if job == 1:
            shadow.take(Started(cluster="alps", job=1, submit=0.0, time=0.0))
    shadow.take(Ended(cluster="alps", job=1, submit=0.0, time=50.0))
    shadow.take(Started(cluster="alps", job=2, submit=0.0, time=50.0))
    shadow.take(Started(cluster="alps", job=3, submit=10.0, time=150.0))
    jobs = shadow.report().jobs
    assert jobs["foretold"][1:].tolist() == [100.0, 200.0]
    assert np.isnan(jobs["foretold"][0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tolerance": -1.0}, "tolerance: must be a number from 0"),
        ({"alarm": 2.0}, "alarm: must be a number from 0 to 1, got 2.0"),
        ({"window": 3}, "window: must be at least 20 starts, got 3"),
        ({"policy": "preemptive"}, "policy: must not preempt jobs"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Shadow(Mirror(4, "alps"), **options)
    assert str(caught.value).startswith(sentence)


def test_a_job_that_is_requeued_before_anything_is_foretold_does_not_stop_the_shadow() -> None:
    shadow = Shadow(Mirror(4, "alps"), "fcfs")
    about: dict[str, Any] = {"cluster": "alps", "submit": 0.0}
    shadow.take(Submitted(**about, job=1, time=0.0, request=Demand(processors=4, requested=9.0)))
    shadow.take(Started(**about, job=1, time=0.0))
    shadow.take(Requeued(**about, job=1, time=1.0))
    shadow.take(Passed(cluster="alps", time=1.0))
    assert len(shadow.report().jobs) == 0
    assert shadow.mirror.jobs["waiting"] == 1


def test_a_report_older_than_the_last_one_is_refused_as_by_a_mirror() -> None:
    shadow, mirror = Shadow(Mirror(4, "alps"), "fcfs"), Mirror(4, "alps")
    job = JobReport(job=1, submit=0.0, state="waiting", request=Demand(processors=4, requested=9.0))
    for report in (StateReport(cluster="alps", time=10.0, jobs=(job,)), StateReport(cluster="alps", time=5.0)):
        shadow.take(report)
        mirror.apply(report)
    assert shadow.mirror.jobs == mirror.jobs
    assert mirror.jobs["waiting"] == 1
    assert shadow.mirror.refused == mirror.refused


def test_the_gain_is_that_of_each_job_although_ids_are_used_again() -> None:
    shadow = Shadow(Mirror(4, "alps"), "fcfs", "fcfs")
    request = Demand(processors=4, requested=9.0)
    for turn in range(40):
        first, second = (turn, 100 + turn) if turn < 20 else (200 + turn, turn - 20)
        for job, submit, begin in ((first, 100.0 * turn, 50.0), (second, 100.0 * turn + 1, 61.0)):
            shadow.take(Submitted(cluster="alps", job=job, submit=submit, time=submit, request=request))
            shadow.take(Started(cluster="alps", job=job, submit=submit, time=100.0 * turn + begin))
            shadow.take(Ended(cluster="alps", job=job, submit=submit, time=100.0 * turn + begin + 9))
    assert shadow.report().shorter == pytest.approx(((50 - 0) + (60 - 8)) / 2)


def test_the_starts_of_an_agent_are_explained() -> None:
    pytest.importorskip("gymnasium")
    from simmodel.learn import agent_policy, batch_env

    agent = agent_policy(lambda _, mask: int(mask.argmax()), batch_env(64, LOG, window=16), "oldest")
    told: list[Event] = []
    simulation = start(64, LOG, agent)
    simulation.env.observe(EventsOf(simulation.system, told.append, "alps"))
    simulation.run()
    shadow = Shadow(Mirror(64, "alps"), agent)
    for event in told:
        shadow.take(event)
    assert shadow.report().explained == 1.0
