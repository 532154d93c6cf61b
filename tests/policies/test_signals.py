"""Signals over time, what is expected of them, and the jobs that wait for them."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Snapshot, Workload, simulate, start
from simmodel.cli import main
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.platform import ClusterSpec, PartitionSpec, Signal
from simmodel.scheduling import Hold, Start
from simmodel.studies import lets_wait
from tests.helpers.data_files import data_file

STEP = 10.0


def signals(least: int = 1, most: int = 12) -> st.SearchStrategy[Signal]:
    return st.lists(st.integers(0, 5), min_size=least, max_size=most).map(
        lambda values: Signal(STEP * np.arange(len(values)), values, end=STEP * len(values))
    )


@settings(max_examples=200, deadline=None)
@given(signals(6), st.integers(0, 30), st.integers(0, 20), st.integers(1, 10))
def test_the_lowest_span_is_that_of_a_search_of_every_start(signal, earliest, window, length):
    found = signal.lowest(earliest, earliest + window, length)
    means = {start: signal.mean(start, start + length) for start in np.arange(earliest, earliest + window + 0.5, 0.5)}
    assert signal.mean(found, found + length) == pytest.approx(min(means.values()), abs=1e-9)
    assert found == min(start for start, mean in means.items() if mean <= min(means.values()) + 1e-9)


@settings(max_examples=200, deadline=None)
@given(signals(6), st.integers(0, 3), st.integers(1, 3), st.integers(1, 30))
def test_the_lowest_spans_are_the_steps_of_the_lowest_values_that_last_long_enough(signal, first, more, length):
    steps = list(range(first, first + more))
    spans = signal.lowest_spans(STEP * first, STEP * (first + more), length)
    inside = {step for step in steps for low, high in spans if low <= STEP * step < high}
    assert sum(high - low for low, high in spans) == STEP * len(inside)
    worst = max(signal.values[step] for step in inside)
    assert inside == {step for step in steps if signal.values[step] <= worst}
    below = [step for step in steps if signal.values[step] < worst]
    assert STEP * len(inside) >= min(length, STEP * more)
    assert STEP * len(below) < length


def test_times_of_files_are_seconds_or_dates():
    seconds = Signal.from_csv(io.StringIO("s,price\n5,1\n15,2\n"))
    assert (seconds.times, seconds.values, seconds.end, seconds.unit) == ((5.0, 15.0), (1.0, 2.0), 25.0, "price")
    text = "value,when\n7,2020-01-01T01:00+01:00\n8,2020-01-01 00:30\n"
    dated = Signal.from_csv(io.StringIO(text), time="when", value="value", start="2019-12-31", unit="EUR")
    assert (dated.times, dated.values, dated.unit) == ((86400.0, 88200.0), (7.0, 8.0), "EUR")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a first line with the names of two columns"),
        ("time\n", "must have a first line with the names of two columns"),
        ("time,value\n", "times: must be instants in s, one or more, got 0 values"),
        ("time,value\n0,1\nsoon,2\n", r"line 3: must have a time .*, got 'soon,2'"),
        ("time,value\n0,1\n10\n", r"line 3: must have a time .*, got '10'"),
        ("time,value\n0,1\n10,2\n10,3\n", r"times\[2\]: must increase, got 10 after 10"),
        ("time,value\n0,1\n10,inf\n", "values: must be numbers, one for each of 2 instants"),
    ],
)
def test_files_that_are_wrong_are_refused_in_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        Signal.from_csv(io.StringIO(text))


def test_wrong_signals_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"end: must be after the last of the times, 10 s, got 10"):
        Signal([0, 10], [1, 2], end=10)
    with pytest.raises(InputError, match="the signal lasts from 0 to 20 s, and is asked for at 30 s"):
        Signal([0, 10], [1, 2]).mean(0, 30)
    with pytest.raises(InputError, match=r"unknown signal 'price'.*carbon"):
        simulate(4, [Job(run=1, slack=5)], "wait-for(price)", signals={"carbon": Signal([0, 10], [1, 2])})
    with pytest.raises(InputError, match="the signal lasts from 0 to 20 s"):
        simulate(4, [Job(run=1, slack=50)], "wait-for(carbon)", signals={"carbon": Signal([0, 10], [1, 2])})
    with pytest.raises(InputError, match=r"unknown column 'watts'; known columns: time, value"):
        Signal.from_csv(io.StringIO("time,value\n0,1\n"), value="watts")
    with pytest.raises(InputError, match="slack: must be >= 0"):
        Job(run=1, slack=-1)


# ---------------------------------------------------------------------- holds


def test_held_jobs_are_not_seen_and_keep_their_place():
    seen = []

    def late(view):
        seen.append((view.now, [job.id for job in view.waiting]))
        if view.now == 0:
            yield Hold(next(iter(view.waiting)), 50.0)
        for job in view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])

    jobs = [Job(id=number, processors=4, run=100) for number in (1, 2, 3)]
    assert simulate(4, jobs, late).jobs["start"].tolist() == [100, 0, 200]
    assert seen == [(0, [1, 2, 3]), (50, [1, 3]), (100, [1, 3]), (200, [3])]


@pytest.mark.parametrize("until", [0.0, -1.0, float("nan")])
def test_a_job_is_held_until_a_later_instant(until):
    with pytest.raises(PolicyError, match="until: must be an instant after 0 s"):
        simulate(4, [Job(run=1)], lambda view: [Hold(job, until) for job in view.waiting])


def test_running_work_cannot_be_held():
    def wrong(view):
        job = next(iter(view.waiting))
        yield Start(job, view.places[0])
        yield Hold(job, 50.0)

    with pytest.raises(PolicyError, match="only work that waits here can be held"):
        simulate(4, [Job(run=1)], wrong)


def test_a_held_job_can_be_cancelled():
    env = Environment()
    cluster = Cluster(env, 4, "wait-for(carbon)", signals={"carbon": Signal([0, 100, 200], [2, 1, 3])})
    job = cluster.submit(Job(run=10, slack=150))
    env.run(until=50)
    assert job.state == "blocked"
    cluster.cancel(job)
    env.run()
    assert (job.state, job.started) == ("cancelled", None)


# ---------------------------------------------------------------------- jobs that wait for a signal


CARBON = Signal(STEP * np.arange(12), [5, 3, 1, 4, 2, 2, 0, 6, 1, 3, 5, 5])


def ends_of(result):
    return dict(zip(result.jobs["job"].tolist(), result.jobs["end"].tolist(), strict=True))


@pytest.mark.parametrize("pieces", ["false", "true"])
def test_a_run_that_is_cut_anywhere_and_continued_is_the_same(pieces):
    rng = np.random.default_rng(3)
    jobs = [
        Job(id=i + 1, submit=float(rng.integers(0, 30)), processors=int(rng.integers(1, 4)), run=run, slack=slack)
        for i, (run, slack) in enumerate(zip(rng.integers(5, 25, 12).tolist(), rng.integers(0, 45, 12), strict=True))
    ]
    policy, options = f"wait-for(carbon, pieces={pieces})", {"signals": {"carbon": CARBON}}
    whole = simulate(6, jobs, policy, **options)
    for at in range(2, 90, 7):
        text = start(6, jobs, policy, **options).run(until=at).snapshot().to_json()
        rest = simulate(Snapshot.from_json(text))
        then = {job: end for job, end in ends_of(whole).items() if end >= at}
        assert ends_of(rest) == then


def test_a_job_for_several_partitions_is_held_once():
    spec = ClusterSpec(partitions=[PartitionSpec(name="a", processors=4), PartitionSpec(name="b", processors=4)])
    rising = Signal([0, 50, 100, 110, 200], [3, 2, 1, 9, 0], end=400)
    job = Job(run=10, slack=120, partitions=["a", "b"])
    simulation = start(spec, [job], "wait-for(carbon)", signals={"carbon": rising})
    assert simulation.run().result().jobs["start"].tolist() == [100]
    assert simulation.system.scheduler.policy.state()["plans"] == []


def test_in_pieces_a_job_runs_where_the_signal_is_lowest():
    result = simulate(4, [Job(run=25, slack=80)], "wait-for(carbon, pieces=true)", signals={"carbon": CARBON})
    assert result.runs["start"].tolist() == [20, 60, 80]  # values 1, 0 and 1: 30 s, of which 25 are needed
    assert result.runs["end"].tolist() == [30, 70, 85]


def test_an_error_of_the_forecast_is_repeatable_and_of_the_stated_size():
    signal = Signal(STEP * np.arange(4000), np.full(4000, 200.0))
    expected = np.asarray(signal.with_error(0.05, seed=1).predicted)
    assert (expected == signal.with_error(0.05, seed=1).predicted).all()
    assert expected.std() == pytest.approx(10.0, rel=0.05)
    assert signal.with_error(0.05).at(5) == 200.0, "what is known now has no error"


def test_slack_and_signals_come_from_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("submit,run,processors,slack\n0,10,1,100\n0,10,1,\n")
    (tmp_path / "grid.csv").write_text("s,gCO2/kWh\n" + "".join(f"{each * 10},{9 - each}\n" for each in range(9)))
    command = "batch jobs.csv --processors 4 --policy wait-for(carbon) --signal carbon=grid.csv --schedule -"
    assert main(["batch", *command.split()[1:]]) == 2
    assert "the signal lasts from 0 to 90 s" in capsys.readouterr().err
    (tmp_path / "jobs.csv").write_text("submit,run,processors,slack\n0,10,1,0:01:00\n0,10,1,\n")
    assert main(["batch", *command.split()[1:]]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [float(row["start"]) for row in rows] == [60, 0]
    assert main(["batch", *command.replace("carbon=grid.csv", "carbon").split()[1:]]) == 2
    assert "must be NAME=FILE, such as carbon=grid.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("country", "whole", "pieces"), [("ger", 6.059, 8.285), ("fr", 4.933, 6.361)], ids=["Germany", "France"]
)
def test_the_savings_of_the_paper(country, whole, pieces):
    with gzip.open(data_file("carbon/ml_jobs.csv.gz"), "rt") as file:
        rows = list(csv.DictReader(file))
    jobs = Workload.from_jobs(
        [Job(submit=60.0 * int(row["arrival_min"]), run=60.0 * int(row["duration_min"])) for row in rows]
    )
    carbon = Signal.from_csv(data_file(f"carbon/{country}_30min.csv.gz"), start="2020-01-01")
    found = lets_wait(jobs, carbon, datetime(2020, 1, 1))
    assert (100 * found["saved"]).round(3).tolist() == [0.0, whole, pieces]
