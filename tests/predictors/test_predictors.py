"""Predictors on their own: what they predict and remember, and how bounds and draws behave."""

import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Job
from simmodel.predictors import SimilarJobs
from simmodel.predictors.similar import LEVELS, OwnPast, RecentTwo, Request
from simmodel.scheduling import Predictor, predictor, register_predictor
from simmodel.scheduling.prediction import INCREMENTS

USERS = ["ann", "bob", 7, None]


@st.composite
def asking(draw: st.DrawFn) -> Job:
    asked = draw(st.sampled_from([60, 600.0, 3600]))
    return Job(
        run=draw(st.floats(0, asked)),
        requested=asked,
        processors=draw(st.integers(1, 3)),
        user=draw(st.sampled_from(USERS)),
        group=draw(st.sampled_from(["a", "b"])),
    )


def taught(kind: Predictor, jobs: list[Job]) -> Predictor:
    for job in jobs:
        assert job.run is not None
        kind.learn(job, job.run)
    return kind


@given(st.lists(asking(), max_size=30), asking())
def test_recent_two_is_the_mean_of_the_last_two_of_the_user(past: list[Job], job: Job) -> None:
    runs = defaultdict(list)
    for each in past:
        runs[each.user].append(each.run)
    last = runs[job.user][-2:]
    expected = min(job.asked, sum(last) / 2) if len(last) == 2 else job.asked
    assert taught(RecentTwo(), past).predict(job) == expected


@given(st.lists(asking(), max_size=60), asking(), st.integers(1, 5), st.integers(1, 4))
def test_similar_jobs_are_those_of_the_first_class_with_enough(
    past: list[Job], job: Job, memory: int, enough: int
) -> None:
    classes = (("user", "group", "processors"), ("user",), ("asked",))
    expected = job.asked
    for names in classes:
        same = [each.run for each in past if all(getattr(each, name) == getattr(job, name) for name in names)]
        if len(same[-memory:]) >= enough:
            expected = min(job.asked, float(np.median(same[-memory:])))
            break
    assert taught(SimilarJobs(memory, enough, classes), past).predict(job) == pytest.approx(expected)


@given(
    st.sampled_from([RecentTwo(), SimilarJobs(), SimilarJobs(3, 1), OwnPast(0.3), Request()]),
    st.lists(asking(), max_size=40),
    st.lists(asking(), min_size=1, max_size=5),
)
def test_questions_change_nothing_and_memories_survive_json(kind: Predictor, past: list[Job], asked: list[Job]) -> None:
    one = taught(kind.fresh(), past)
    before = json.dumps(one.state())
    answers = [(one.predict(job), [one.quantile(job, q / 7) for q in range(8)]) for job in asked]
    for job in asked:
        one.draw(job, 0.3, 3.0)
    assert json.dumps(one.state()) == before
    again = kind.fresh()
    again.restore(json.loads(before))
    assert [(again.predict(job), [again.quantile(job, q / 7) for q in range(8)]) for job in asked] == answers
    for job, (predicted, quantiles) in zip(asked, answers, strict=True):
        assert 0 <= predicted <= job.asked
        assert quantiles == sorted(quantiles)
        assert quantiles[-1] <= job.asked
        assert taught(again, past).fresh().predict(job) == job.asked


@given(st.lists(asking(), max_size=40), asking(), st.floats(0, 3600), st.floats(0, 1))
def test_draws_go_on_beyond_what_has_elapsed(past: list[Job], job: Job, elapsed: float, share: float) -> None:
    drawn = taught(SimilarJobs(), past).draw(job, share, elapsed)
    assert drawn <= job.asked
    assert drawn > elapsed or elapsed == 0 or elapsed >= job.asked


def test_draws_have_the_distribution_of_the_past() -> None:
    past = taught(OwnPast(memory=99), [Job(run=i, requested=1000, user="ann") for i in range(1, 100)])
    past._levels = list(LEVELS)
    job, rng = Job(run=1, requested=1000, user="ann"), np.random.default_rng(0)
    drawn = np.array([past.draw(job, rng.random()) for _ in range(4000)])
    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx([25, 50, 75], abs=3)
    late = np.array([past.draw(job, rng.random(), 60.0) for _ in range(2000)])
    assert late.min() > 60
    assert np.median(late) == pytest.approx(80, abs=3)


def test_bounds_that_are_exceeded_too_often_are_raised_until_they_hold() -> None:
    rng, past, held = np.random.default_rng(2), SimilarJobs(), {0.8: 0, 0.95: 0}
    for i in range(6000):  # run times grow, so that the past alone is always too low
        job = Job(run=float((1 + i / 100) * rng.exponential(10)), requested=10_000, user="ann")
        for q in held:
            held[q] += i >= 1000 and job.run <= past.quantile(job, q)
        past.learn(job, job.run)
    assert held[0.8] / 5000 == pytest.approx(0.8, abs=0.02)
    assert held[0.95] / 5000 == pytest.approx(0.95, abs=0.02)


def test_corrections_are_the_predefined_increments() -> None:
    job, found, elapsed = Job(run=1, requested=1e9), [], 100.0
    while len(found) < len(INCREMENTS):
        elapsed = Request().correct(job, 100.0, elapsed)
        found.append(elapsed)
    assert np.diff([100.0, *found]).tolist() == list(INCREMENTS)
    assert Request().correct(job, 100.0, elapsed) == elapsed + INCREMENTS[-1]


def test_predictors_by_name_take_parameters_and_refuse_wrong_ones() -> None:
    assert predictor("own-past(0.8, memory=5)").known_as == "own-past(q=0.8, memory=5)"
    assert predictor("predicted").known_as == "predicted"
    assert SimilarJobs(classes=[("user",)]).known_as is None
    given = SimilarJobs(7)
    assert predictor(given) is not given
    assert predictor(given).memory == 7
    for wrong, message in (
        ("predcted", "unknown predictor 'predcted'; did you mean 'predicted'"),
        ("own-past(2)", "q: must be a number from 0 to 1, got 2"),
        ("predicted(0)", "memory: must be a whole number >= 1, got 0"),
        ("recent-two(3)", "predictor 'recent-two\\(3\\)': too many positional arguments"),
    ):
        with pytest.raises(InputError, match=message):
            predictor(wrong)
    with pytest.raises(InputError, match=r"classes: must be of user, group, processors, asked, got \('run',\)"):
        SimilarJobs(classes=[("run",)])
    with pytest.raises(InputError, match=r"q: must be a number from 0 to 1, got 1\.5"):
        SimilarJobs().quantile(Job(run=1), 1.5)


def test_a_registered_predictor_works_by_name() -> None:
    class Tenth(Predictor):
        def __init__(self, part: int = 10) -> None:
            self.part = part

        def predict(self, job: Job) -> float:  # type: ignore[override]
            return job.asked / self.part

    from simmodel.platform.models import PREDICTORS

    register_predictor("tenth", Tenth)
    try:
        assert predictor("tenth(4)").predict(Job(run=1, requested=40)) == 10
        assert Tenth(4).known_as == "tenth(part=4)"
    finally:
        del PREDICTORS["tenth"]
    with pytest.raises(InputError, match="name: must consist of letters"):
        register_predictor("my tenth", Tenth)
