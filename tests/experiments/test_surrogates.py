"""Surrogates: gradient boosting beside rules and a simulation, judged by what came later."""

from __future__ import annotations

import numpy as np
import pytest

from simmodel import Job, Workload, load_workload, simulate
from simmodel.experiments.surrogates import Surrogate, judge_surrogates
from simmodel.foundation.errors import InputError
from simmodel.metrics.features import JOB_FEATURES, job_features
from simmodel.predictors.boosted import Boosted
from simmodel.records import JobRecord
from simmodel.results.result import recorded_result
from tests.helpers.data_files import data_file


def habits(count: int = 1500) -> Workload:
    """Return jobs of users who each run for their own time, and request ten times as much or an hour."""
    rng = np.random.default_rng(1)
    user = rng.integers(0, 5, count)
    run = np.array([20.0, 60.0, 200.0, 600.0, 2000.0])[user] * rng.uniform(0.9, 1.1, count)
    requested = np.where(rng.random(count) < 0.5, 10 * run, 20_000.0)
    submit = np.cumsum(rng.exponential(300.0, count))
    return Workload(
        {"submit": submit, "run": run, "processors": rng.integers(1, 8, count), "requested": requested, "user": user},
        processors=16,
    )


@pytest.mark.long  # smaller: the other tests of the file
def test_boosting_learns_habits_that_rules_miss() -> None:
    log = habits()
    report = judge_surrogates(simulate(16, log, "easy"), simulation=simulate(16, log, "easy"))
    errors = {(row["target"], row["method"]): row["error"] for row in report.table.rows()}
    assert errors["run", "gradient boosting"] < 0.5 * errors["run", "request"]
    assert errors["run", "gradient boosting"] < errors["run", "user's last two"] * 1.5
    assert errors["wait", "simulation"] == 0.0
    assert set(report.table["jobs"].tolist()) == {450}
    assert len(report.plot().axes) == 2
    assert str(report).startswith("fitted to the first 1,050 of 1,500 jobs, judged by the others\ntarget")
    starts = report.models["wait"].starts(report.features)
    assert (starts >= report.features["submit"]).all()


def test_models_do_not_see_what_came_later() -> None:
    """Outcomes after the first judged submission may be anything: predictions stay the same."""
    result = simulate(16, habits(400), "easy")
    jobs = dict(result.jobs.items())
    first = 280
    now = jobs["submit"][first]
    later = {**jobs}
    later["end"] = np.where(jobs["end"] >= now, jobs["end"] + 1e6, jobs["end"])
    later.pop("run")
    predictions = []
    for columns in (jobs, later):
        report = judge_surrogates(JobRecord(jobs=columns, processors=16))
        one = report.features.where(slice(first, first + 1))
        predictions.append([float(model.predict(one)[0]) for model in report.models.values()])
    assert predictions[0] == predictions[1]


def test_a_feature_that_is_known_only_later_is_not_used() -> None:
    table = job_features(simulate(16, habits(300), "easy"))
    model = Surrogate("wait", table)
    changed = table.with_columns(**{name: np.full(len(table), 1e9) for name in ("wait", "run", "start", "turnaround")})
    assert model.predict(changed).tolist() == model.predict(table).tolist()
    assert set(model.columns) < set(JOB_FEATURES)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"split": 1.0}, "split: must be a number between 0 and 1, got 1.0"),
        ({"split": 0.01}, "split: must leave jobs to learn from and to judge, got 0.01 of 20"),
        ({"simulation": JobRecord(jobs={"submit": [], "start": [], "end": [], "processors": []})}, "lacks 15"),
    ],
)
def test_wrong_arguments_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        judge_surrogates(simulate(16, habits(20), "easy"), **options)


@pytest.mark.long  # smaller: the other tests of the file
def test_boosted_run_times_plan_a_cluster_and_continue_from_snapshots() -> None:
    log = habits(300)
    asked = "boosted(every=140, memory=400)"
    whole = simulate(16, log, "easy", estimates=asked)
    assert whole.jobs["start"].tolist() != simulate(16, log, "easy").jobs["start"].tolist()
    predictor = Boosted(every=50)
    for i in range(120):
        predictor.learn(Job(run=1, requested=1000, user=i % 2), 10.0 if i % 2 else 500.0)
    copy = Boosted(every=50)
    copy.restore(predictor.state())
    for user, expected in ((1, 10.0), (0, 500.0)):
        found = predictor.predict(Job(run=1, requested=1000, user=user))
        assert found == pytest.approx(expected, rel=0.05)
        assert found == copy.predict(Job(run=1, requested=1000, user=user))


@pytest.mark.exhaustive
def test_the_errors_on_a_real_log() -> None:
    log = load_workload(data_file("swf/KTH-SP2-1996-2.1-cln.swf.gz"))
    report = judge_surrogates(recorded_result(log), simulation=simulate(100, log, "easy"))
    errors = {(row["target"], row["method"]): row["relative"] for row in report.table.rows()}
    assert errors["run", "gradient boosting"] < errors["run", "request"] < errors["run", "user's last two"]
    assert errors["wait", "gradient boosting"] < errors["wait", "simulation"] < errors["wait", "recent waits"]
