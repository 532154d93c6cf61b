"""Works drawn from one log keep its users, its cycles and its load."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import InputError, Job, Workload, load_workload, simulate
from simmodel.formats.swf import read_swf
from simmodel.work import offered_load, resampling_doubts, week_of
from simmodel.work.resampling import Resampling, differences
from tests.helpers.data_files import data_file

WEEK = 604_800.0


def weekly(runs, user, at=0.0, **columns):
    """Return the columns of a user with two jobs in each week, the second one near its end."""
    submit = np.concatenate([WEEK * week + np.array([at, 600_000.0 + at]) for week in range(len(runs))])
    twice = {name: np.repeat(column, 2) for name, column in {"run": runs, **columns}.items()}
    return {"submit": submit, "user": [user] * len(submit), "processors": [1] * len(submit), **twice}


def log_of(*users, **options):
    """Return the log of these users, whose machine has one processor."""
    columns = {name: np.concatenate([user[name] for user in users]) for name in users[0]}
    order = np.argsort(columns["submit"], kind="stable")
    return Workload({name: column[order] for name, column in columns.items()}, processors=1, **options)


def rows_of_users(log):
    """Return the column ``row`` of each user's jobs, in the order of submission."""
    return [log["row"][log["user"] == user].tolist() for user in dict.fromkeys(log["user"].tolist())]


def rotated(rows, by):
    return [*rows[by:], *rows[:by]]


# ---------------------------------------------------------------------- by hand


def test_a_long_term_user_begins_at_a_week_of_their_own_and_goes_round():
    runs = [100.0, 200.0, 300.0, 400.0, 500.0]
    log = log_of(weekly(runs, 7, at=3600.0))
    seen = set()
    for seed in range(20):
        found = log.resampled(seed=seed)
        assert found["submit"].tolist() == log["submit"].tolist()  # at the same hours of each week
        seen.add(tuple(found["run"][::2].tolist()))
    assert seen == {tuple(rotated(runs, by)) for by in range(5)}


def test_a_user_of_a_longer_log_goes_round_again():
    found = log_of(weekly([1.0, 2.0, 3.0, 4.0], 7)).resampled(weeks=10, seed=1)
    assert set(found["user"].tolist()) == {7}
    assert len(found) == 20
    assert found["run"].tolist()[:12] == found["run"].tolist()[8:]


def test_a_temporary_user_keeps_the_gaps_of_a_session():
    staying = weekly([50.0] * 30, 1)
    session = {"submit": WEEK * 4 + np.array([10.0, 40.0, 45.0]), "run": [5.0, 6.0, 7.0]}
    log = log_of(staying, weekly([51.0] * 30, 5, at=60.0), {**session, "user": [2] * 3, "processors": [1] * 3})
    met = 0
    for seed in range(10):
        found = log.resampled(seed=seed)
        for user in dict.fromkeys(found["user"].tolist()):
            mine = found["user"] == user
            if 5.0 in found["run"][mine]:
                met += 1
                assert found["run"][mine].tolist() == [5.0, 6.0, 7.0]
                assert np.diff(found["submit"][mine]).tolist() == [30.0, 5.0]
                assert (found["submit"][mine] % WEEK).tolist() == [10.0, 40.0, 45.0]
    assert met


def test_two_copies_of_a_user_are_two_users_and_their_jobs_follow_their_own():
    columns = {"preceding": [-1, 11], "think_time": [-1.0, 60.0], "job": [11, 12]}
    pair = {"submit": np.array([0.0, 100.0]), "run": [9.0, 8.0], "user": [3, 3], "processors": [1, 1], **columns}
    alone = weekly([1.0] * 4, 4, at=7200.0, preceding=[-1] * 4, think_time=[-1.0] * 4, job=[1, 2, 3, 4])
    log = log_of(pair, alone)
    copies = 0
    for seed in range(20):
        found = log.resampled(weeks=8, seed=seed)
        assert found["job"].tolist() == list(range(1, len(found) + 1))
        second = np.flatnonzero(found["run"] == 8.0)
        before = found["preceding"][second] - 1
        assert (found["run"][before] == 9.0).all()
        assert found["user"][before].tolist() == found["user"][second].tolist()
        assert len(set(found["user"][second].tolist())) == len(second)
        copies = max(copies, len(second))
    assert copies > 1


def test_copies_of_users_with_names_get_names():
    log = log_of(weekly([1.0] * 4, "ann"), weekly([1.0] * 4, "bob", at=60.0))
    found = [set(log.resampled(weeks=4, seed=seed)["user"].tolist()) for seed in range(10)]
    assert {"ann", "bob"} in found
    assert {"bob", "bob#2"} in found


def test_jobs_of_jobs_keep_what_columns_do_not_have():
    jobs = [
        Job(
            id=f"{user}{week}{day}{step}",
            submit=week * WEEK + day * 86_400.0 + step * 60 + user,
            run=50,
            user=f"u{user}",
            memory_per_node=2**30,
            nodes=1,
            dependencies=[f"{user}{week}{day}0"] if step else [],
        )
        for user in range(3)
        for week in range(5)
        for day in (0, 6)
        for step in range(2)
    ]
    found = Workload.from_jobs(jobs, processors=1).resampled(seed=2)
    specs = found.jobs()
    assert {job.memory_per_node for job in specs} == {2**30}
    assert [job.submit for job in specs] == found["submit"].tolist()
    assert [job.user for job in specs] == found["user"].tolist()
    of = {job.id: job for job in specs}
    linked = [(job, of[each.job]) for job in specs for each in job.dependencies]
    assert len(linked) == len(specs) // 2
    assert all(job.submit - first.submit == 60 and job.user == first.user for job, first in linked)


def test_jobs_without_a_user_stay_with_those_of_their_week():
    submit = np.concatenate([WEEK * week + np.linspace(0, 604_000, 10 + week % 2) for week in range(8)])
    log = Workload({"submit": submit, "run": week_of(submit) + 1.0, "processors": np.ones(84, dtype=int)}, processors=1)
    found = log.resampled(seed=4)
    week = week_of(found["submit"])
    for each in range(8):
        of_week = found["run"][week == each]
        assert len(set(of_week.tolist())) == 1  # all from one week of the log, all of it
        assert len(of_week) == (log["run"] == of_week[0]).sum()
    assert "84 jobs without a user" in str(found.report)
    assert resampling_doubts(log) == ["it has no users: the jobs of a week stay together"]


def test_instants_of_a_job_move_with_it():
    log = log_of(weekly([1.0, 2.0, 3.0, 4.0], 7))
    log = log.replace(cancel=log["submit"] + 50, recorded_start=log["submit"] + 9)
    found = log.resampled(seed=3)
    assert (found["cancel"] - found["submit"]).tolist() == [50.0] * 8
    assert (found["recorded_start"] - found["submit"]).tolist() == [9.0] * 8


def test_the_log_is_left_as_it_is():
    log = log_of(weekly([1.0, 2.0, 3.0, 4.0], 7))
    log.report.repaired["something"] += 1
    found = log.resampled(seed=3)
    assert log["run"].tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]
    assert log.report.notes == ()
    assert found.report.repaired["something"] == 1
    assert len(found.report.notes) >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weeks": 0}, "weeks: must be a whole number >= 1, got 0"),
        ({"weeks": 2.5}, "weeks: must be a whole number >= 1, got 2.5"),
        ({"users": -1}, "users: must be true, false or a number of weeks, got -1"),
        ({"load": 0}, "load: must be a finite number > 0"),
        ({"load": "high"}, "load: must be a finite number > 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        log_of(weekly([1.0, 2.0, 3.0], 7)).resampled(**options)


def test_a_log_of_some_days_is_refused():
    with pytest.raises(InputError, match=r"must span a week or more, since users move by whole weeks, got 0\.5 days"):
        Workload({"submit": [0, 43_200], "run": [1, 1], "processors": [1, 1]}, name="short").resampled()


def test_doubts_name_what_makes_resamples_an_indication():
    many = log_of(*(weekly([10.0] * 10, user, at=60.0 * user) for user in range(30)))
    assert resampling_doubts(many) == []
    heavy = log_of(*(weekly([10.0 if user else 300.0] * 10, user, at=60.0 * user) for user in range(30)))
    assert resampling_doubts(heavy) == ["user 0 has 51 % of the load"]
    few = log_of(*(weekly([10.0] * 4, user, at=60.0 * user) for user in range(8)))
    assert resampling_doubts(few) == ["it spans 4.0 weeks, fewer than 8", "it has 8 users, fewer than 20"]
    none = many.replace(user=np.where(many["user"] < 15, -1, many["user"]))
    assert resampling_doubts(none) == ["it has 15 users, fewer than 20", "jobs without a user have 50 % of the load"]


# ---------------------------------------------------------------------- drawn logs


@st.composite
def logs(draw):
    """Return a log of some users over some weeks, with the row of each job as a column."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weeks, users = draw(st.integers(2, 15)), draw(st.integers(5, 30))
    jobs = draw(st.integers(100, 400))
    known = draw(st.sampled_from([0.0, 0.1, 1.0]))
    user = rng.integers(users, size=jobs)
    stay = np.where(np.arange(users) % 2, 0.2, 1.0)[user]
    submit = np.sort(np.floor((rng.random(users)[user] * (1 - stay) + rng.random(jobs) * stay) * weeks * WEEK))
    submit[[0, -1]] = 0, weeks * WEEK - 1
    return Workload(
        {
            "submit": submit,
            "run": rng.integers(1, 5000, jobs),
            "processors": rng.integers(1, 9, jobs),
            "user": np.where(rng.random(jobs) < known, -1, user),
            "row": np.arange(jobs),
        },
        processors=16,
    )


@given(logs(), st.integers(1, 30), st.booleans(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_a_resample_keeps_columns_cycles_and_the_order_of_users(log, weeks, own_length, seed):
    found = log.resampled(weeks=None if own_length else weeks, seed=seed)
    rows = found["row"]
    assert found["run"].tolist() == log["run"][rows].tolist()
    assert found["processors"].tolist() == log["processors"][rows].tolist()
    assert (np.diff(found["submit"]) >= 0).all()
    if any("multiplied" in note for note in found.report.notes):
        return
    assert ((found["submit"] - log["submit"][rows]) % WEEK == 0).all()
    assert week_of(found["submit"], 0.0).max() < (week_of(log["submit"]).max() + 1 if own_length else weeks)
    if own_length:
        for mine in rows_of_users(found.where(found["user"] >= 0)):  # rotated: at most one step back in the log's order
            assert sum(after < before for before, after in pairwise(mine)) <= 1
            assert len(set(mine)) == len(mine)


@given(logs(), st.sampled_from([None, 0.05, 0.4]), st.sampled_from([None, 3, 20]), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_the_load_is_kept_or_reached(log, load, weeks, seed):
    found = log.resampled(load=load, weeks=weeks, seed=seed)
    assert offered_load(found) == pytest.approx(load or offered_load(log), rel=0.0201)


@given(logs(), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_seed_says_all(log, seed):
    first, again, other = (log.resampled(seed=each) for each in (seed, seed, seed + 1))
    assert {name: column.tolist() for name, column in first.table.items()} == {
        name: column.tolist() for name, column in again.table.items()
    }
    assert first["row"].tolist() != other["row"].tolist()


# ---------------------------------------------------------------------- real logs


@pytest.mark.parametrize(
    "name", ["KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4-filtered", "SDSC-BLUE-2000-4-filtered", "theta_2022"]
)
def test_resamples_of_real_logs_are_like_them(name):
    log = read_swf(data_file(f"swf/{name}.swf.gz"))
    parts = Resampling(log)
    for seed in range(3):
        found = parts.draw(seed=seed)
        assert offered_load(found) == pytest.approx(offered_load(log), rel=0.02)
        figures = Resampling(found).figures
        _, run, hours, days = differences(figures, parts.figures * (parts.weeks / parts.span))
        assert max(run, hours, days) <= 0.05
        assert not any("multiplied" in note for note in found.report.notes)


def test_resamples_of_a_part_of_a_real_log_have_the_load_that_is_asked_for():
    log = read_swf(data_file("swf/SDSC-SP2-1998-4-filtered.swf.gz"))
    found = log.resampled(weeks=26, load=0.9, seed=1)
    assert week_of(found["submit"]).max() == 25
    assert offered_load(found) == pytest.approx(0.9, rel=0.02)


# ---------------------------------------------------------------------- shaken


@given(logs(), st.sampled_from([1.0, 60.0, "1h"]), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_shaking_keeps_the_order_of_users_and_moves_little(log, noise, seed):
    found = log.shaken(noise=noise, seed=seed)
    most = 3600.0 if noise == "1h" else noise
    assert found["row"].tolist() == log["row"].tolist()
    assert found["submit"].min() >= 0
    for user in set(log["user"].tolist()) - {-1}:
        mine = log["user"] == user
        assert (np.diff(found["submit"][mine]) >= 0).all()
    assert (np.abs(found["submit"] - log["submit"]) <= most).all()
    assert found["submit"].tolist() == log.shaken(noise=noise, seed=seed)["submit"].tolist()
    assert found["submit"].tolist() != log.shaken(noise=noise, seed=seed + 1)["submit"].tolist()


def test_jobs_submitted_at_one_instant_shift_together():
    log = Workload({"submit": [100, 100, 100, 100], "run": [1] * 4, "processors": [1] * 4, "user": [1, 2, 1, -1]})
    found = log.shaken(noise=30, seed=5)["submit"].tolist()
    assert found[0] == found[2]
    assert len(set(found)) == 3


def test_a_shift_is_a_time_above_zero():
    log = Workload({"submit": [1], "run": [1], "processors": [1]})
    for noise in (0, -1, float("inf")):
        with pytest.raises(InputError, match="noise: must be"):
            log.shaken(noise=noise)


# ---------------------------------------------------------------------- as texts


@pytest.fixture
def file(tmp_path):
    log = log_of(*(weekly([10.0 * (user + 1)] * 6, user, at=600.0 * user) for user in range(9)))
    path = tmp_path / "a log, of mine.csv"
    log.table.to_csv(path)
    return path


def test_a_text_names_a_resample_and_its_seed(file):
    found = load_workload(f"resample:{file},weeks=8,seed=3")
    assert week_of(found["submit"]).max() == 7
    assert found["submit"].tolist() == load_workload(f"resample:{file},weeks=8", seed=3)["submit"].tolist()
    assert found["submit"].tolist() == load_workload(f"resample:{file},weeks=8,seed=3", seed=9)["submit"].tolist()
    shaken = load_workload(f"shaken:{file},noise=30s", seed=2)
    assert shaken["submit"].tolist() == load_workload(file).shaken(noise=30, seed=2)["submit"].tolist()
    assert len(simulate(4, f"resample:{file}", "easy", seed=1).jobs) == len(load_workload(f"resample:{file}", seed=1))


def test_a_resample_of_drawn_work_takes_the_settings_at_the_end():
    found = load_workload("resample:lublin:jobs=5000,processors=64,weeks=3,seed=2")
    assert week_of(found["submit"]).max() == 2


def test_a_path_with_commas_is_not_misread(file):
    with pytest.raises(InputError, match="unknown setting 'week'; did you mean 'weeks'"):
        load_workload(f"resample:{file},week=8")
    with pytest.raises(InputError, match=r"must be key=value, got 'weeks'"):
        load_workload(f"resample:{file},weeks")
    file.rename(file.with_name("x.csv"))
    file.with_name("x.csv,weeks=8").write_text("")
    with pytest.raises(InputError, match=r"may mean '.*x\.csv,weeks=8' or '.*x\.csv': rename one of them"):
        load_workload(f"resample:{file.with_name('x.csv')},weeks=8")


@pytest.mark.parametrize("text", ["resample:no such.swf,weeks=3", "shaken:no such.swf"])
def test_a_missing_log_is_named(text):
    with pytest.raises(InputError, match=r"no such\.swf"):
        load_workload(text)


def test_resamples_are_no_more_uneven_than_the_log_from_week_to_week() -> None:
    """Users who make room for each other: each works for ten weeks, and one comes when another has gone."""
    weeks = [(2 * user + week) % 40 for user in range(20) for week in range(10)]
    submit = 604_800.0 * np.array(weeks) + 3600.0 * np.repeat(np.arange(20), 10)
    order = np.argsort(submit)
    columns = {"submit": submit[order], "user": np.repeat(np.arange(20), 10)[order]}
    columns |= {"run": np.full(200, 36_000), "processors": np.ones(200, dtype=int)}
    log = Workload(columns, processors=2)
    for seed in range(5):
        work = np.bincount(week_of(log.resampled(seed=seed)["submit"]))[:39]
        assert work.std() / work.mean() < 0.25  # 0.4 where each begins at any week


def variation(log):
    """Return how much the work of a week varies, as a share of its mean."""
    work = np.bincount(week_of(log["submit"]), log["run"].clip(0) * log["processors"])[:-1]
    return work.std() / work.mean()


def test_the_work_of_weeks_varies_as_in_a_real_log():
    log = read_swf(data_file("swf/SDSC-SP2-1998-4-filtered.swf.gz"))
    ratios = [variation(log.resampled(seed=seed)) / variation(log) for seed in range(6)]
    assert min(ratios) > 0.7
    assert max(ratios) < 1.4  # 2 and more where users begin at any week
    assert len({round(ratio, 2) for ratio in ratios}) > 3  # but for chance
