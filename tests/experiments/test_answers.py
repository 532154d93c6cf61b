"""Which is better, by how much, how sure: cases, samples, differences and verdicts of comparisons."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Job, Start, View, Workload, compare, explore, load_workload, replicate, simulate
from simmodel.experiments import compare_brokers, compare_portfolio
from simmodel.generators import lublin
from simmodel.metrics.comparison import weekly_sums
from simmodel.metrics.differences import Source, compared
from simmodel.metrics.statistics import mean_interval, share_interval, t_quantile
from tests.helpers.examples import up_to

JOBS = [Job(processors=3, run=10), Job(processors=4, run=100), Job(processors=1, run=10)]
WEEK = 604_800
draw = partial(lublin, 60, 32)


def users_log(weeks: int = 10, seed: int = 3, users: int = 8) -> Workload:
    """Return a log of users, each with a few jobs at the same hours of every week."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        for week in range(weeks):
            begin = week * WEEK + user * 7200.0 + 86_400 * (user % 5)
            jobs = range(int(rng.integers(2, 9)))
            rows += [(begin + float(rng.integers(0, 3600)), int(rng.integers(600, 20_000)), user) for _ in jobs]
    rows.sort()
    submit, run, who = (np.array(each) for each in zip(*rows, strict=True))
    columns = {"submit": submit, "run": run, "requested": run * 2, "processors": 1 + who % 8, "user": who}
    return Workload(columns, name="weekly", processors=users)


def rows(found: Any, **wanted: str) -> list[dict[str, Any]]:
    return [row for row in found.differences.rows() if all(row[name] == value for name, value in wanted.items())]


def told(found: Any) -> list[list[Any]]:
    return [
        np.nan_to_num(found.samples[name]).tolist()
        if found.samples[name].dtype.kind == "f"
        else found.samples[name].tolist()
        for name in found.samples.names
        if not name.startswith("decision_")
    ]


def test_a_difference_of_one_run_has_both_values_its_percentage_and_no_interval() -> None:
    found = compare(4, JOBS, ["fcfs", "easy"])
    (row,) = rows(found, metric="makespan")
    assert (row["policy"], row["baseline"]) == ("easy", "fcfs")
    assert (row["before"], row["value"], row["difference"]) == (120, 110, -10)
    assert row["percent"] == pytest.approx(-100 / 12)
    assert row["verdict"] == "-8.3 % (no interval: one run)"
    assert found.difference("easy", "fcfs", metric="makespan").why == "one run"
    assert "-8.3 % (no interval)" in "\n".join(found.answer("makespan"))
    (wait,) = rows(found, metric="wait_mean")
    assert wait["difference"] == pytest.approx(10 / 3 - 40)


@pytest.mark.parametrize(
    ("case", "base", "metric", "verdict"),
    [
        ([8, 9, 10], [10, 10, 12], "wait_mean", "better by 15.6 % (2.2 to 29.1)"),
        ([12, 11, 14], [10, 10, 12], "wait_mean", "worse by 15.6 % (2.2 to 29.1)"),
        ([12, 11, 14], [10, 10, 12], "utilisation", "better by 15.6 % (2.2 to 29.1)"),
        ([9, 11, 12], [10, 10, 12], "wait_mean", "not decided (-23.3 to +23.3 %)"),
        ([5, 6, 7], [5, 6, 7], "wait_mean", "the same"),
        ([5, 6, 7], [6, 7, 8], "wait_mean", "-14.3 % (no interval: the runs are all equal)"),
        ([1, 2, 3], [0, 0, 0], "wait_mean", "not decided"),
        ([3.0, 3.1, 3.2], [0, 0, 0], "wait_mean", "worse by 3.1 (2.85 to 3.35)"),
        ([5], [6], "wait_mean", "-16.7 % (no interval: one run)"),
        ([np.nan, np.nan], [6, 7], "wait_mean", "not measured"),
    ],
)
def test_verdicts(case: list[float], base: list[float], metric: str, verdict: str) -> None:
    assert compared(("", "", "b", metric, "a"), case, base, Source("seeds", 3), 0.95).verdict == verdict


def test_the_interval_of_resamples_is_their_spread_and_does_not_shrink() -> None:
    values = np.random.default_rng(1).normal(10, 1, 20_000)
    few = np.mean([Source("users", 20).interval(each, 0.95).half_width for each in values.reshape(1000, 20)])
    many = np.mean([Source("users", 200).interval(each, 0.95).half_width for each in values.reshape(100, 200)])
    assert few / many == pytest.approx(t_quantile(0.975, 19) / t_quantile(0.975, 199), rel=0.03)
    assert Source("seeds", 200).interval(values, 0.95).half_width == mean_interval(values, 0.95).half_width
    assert Source("users", 4).interval(values[:4], 0.95).why == "4 runs, 5 needed for their spread"


@pytest.mark.parametrize("how", [pytest.param("users", marks=pytest.mark.exhaustive), "shaken"])
def test_twenty_and_two_hundred_resamples_have_intervals_of_one_width(how: str) -> None:
    log = users_log(users=24)
    few, many = (compare(None, log, ["fcfs", "sjf"], resample=how, runs=runs, seed=1) for runs in (20, 200))
    whole = many.difference("sjf", "fcfs").half_width
    waits = [many[name].samples["wait_mean"] for name in ("fcfs", "sjf")]
    parts = [
        many.source.interval(sjf - fcfs, 0.95).half_width
        for fcfs, sjf in zip(*np.reshape(waits, (2, 10, 20)), strict=True)
    ]
    assert few.difference("sjf", "fcfs").half_width == parts[0]  # the same seeds
    assert 0.8 < np.median(parts) / whole < 1.2
    assert many.interval("wait_mean", "fcfs").half_width > 0.5 * few.interval("wait_mean", "fcfs").half_width
    assert few.source.kind == how
    assert len(few.samples) == 2 * 20
    alone = compare(None, log, ["fcfs", "sjf"])
    (row,) = rows(few, metric="wait_mean")
    (own,) = rows(alone, metric="wait_mean")
    assert row["percent"] == pytest.approx(own["percent"])  # that of the log itself
    assert row["difference_high"] - row["difference"] == pytest.approx(few.difference("sjf", "fcfs").half_width)
    text = "\n".join(few.answer())
    assert f"{row['resampled']:+.1f} % over all samples, lower in" in text
    assert ("not confidence" in text) == (how == "shaken")


def test_resamples_of_a_log_that_cannot_tell_are_an_indication() -> None:
    short = compare(None, users_log(weeks=3), ["fcfs", "easy"], resample="users", runs=6)
    assert short.source.doubts
    assert all(row["verdict"].startswith("indication only: ") or "(" not in row["verdict"] or row["runs"] < 2 or
               "no interval" in row["verdict"] for row in short.differences.rows())  # fmt: skip
    assert any(line.startswith("only an indication: ") for line in short.answer())


def test_a_study_keeps_the_runs_of_resamples(tmp_path: Path) -> None:
    log, study = users_log(), tmp_path / "runs.sqlite"
    first, again = (compare(None, log, ["fcfs", "sjf"], resample="shaken", runs=5, study=study) for _ in range(2))
    assert told(again) == told(first)
    assert again.differences["percent"].tolist() == pytest.approx(first.differences["percent"].tolist(), nan_ok=True)


def test_weeks_of_one_run_are_its_sample() -> None:
    found = compare(None, users_log(), ["fcfs", "easy"], resample="weeks")
    first, second = (weekly_sums(found[name])["weeks"] for name in ("fcfs", "easy"))
    assert len(first) == 10
    by_hand = share_interval(second["wait_mean"] - first["wait_mean"], first["jobs"])
    assert found.difference("easy", "fcfs") == by_hand
    assert by_hand.mean == pytest.approx(found["easy"].metrics()["wait_mean"] - found["fcfs"].metrics()["wait_mean"])
    assert found.difference("easy", "fcfs", metric="utilisation").why == "one run"
    short = compare(None, users_log(weeks=4), ["fcfs", "easy"], resample="weeks")
    assert short.difference("easy", "fcfs").why == "4 weeks, 10 needed"


def test_weeks_that_depend_on_each_other_have_no_interval() -> None:
    drifting = share_interval(np.cumsum(np.random.default_rng(2).normal(size=40)), np.ones(40))
    assert drifting.why.startswith("successive weeks depend on each other (correlation 0.")
    independent = [share_interval(np.random.default_rng(i).normal(size=40), np.ones(40)) for i in range(100)]
    held = [each for each in independent if not each.why]
    assert len(held) >= 88  # 95 expected
    assert sum(0 in each for each in held) / len(held) >= 0.88


def test_several_logs_are_paired_by_log() -> None:
    logs = {f"log {seed}": lublin(120, 16, seed=seed) for seed in (0, 1, 3, 4)}
    found = compare(16, logs, ["fcfs", "easy"])
    for name, log in logs.items():
        (row,) = rows(found, workload=name, metric="wait_mean")
        a, b = (simulate(16, log, policy).metrics()["wait_mean"] for policy in ("fcfs", "easy"))
        assert row["percent"] == pytest.approx(100 * (b - a) / a if a else np.nan, nan_ok=True)
    (over,) = rows(found, workload="", metric="wait_mean")
    percents = [row["percent"] for row in rows(found, metric="wait_mean") if row["workload"]]
    assert np.isfinite(percents).all()
    by_hand = mean_interval(percents, 0.95)
    assert (over["percent"], over["percent_low"]) == pytest.approx((by_hand.mean, by_hand.low))
    assert over["runs"] == 4
    assert found["log 3", "easy"].name == "log 3, easy"
    assert "all 4 logs" in "\n".join(found.answer())


def test_machines_are_cases_as_policies_are() -> None:
    found = compare({"today": 32, "more": 40}, draw, "easy", seeds=6)
    (row,) = rows(found, metric="wait_mean")
    assert (row["platform"], row["baseline"]) == ("more", "today")
    assert row["difference"] <= 0
    crossed = compare({"today": 32, "more": 40}, draw, ["fcfs", "easy"], seeds=3)
    assert {(row["platform"], row["policy"], row["baseline"]) for row in crossed.differences.rows()} == {
        ("today", "easy", "today, fcfs"),
        ("more", "easy", "more, fcfs"),
    }
    one = compare({"today": 32, "more": 40}, draw, ["fcfs", "easy"], seeds=3, baseline=("today", "easy"))
    assert {row["baseline"] for row in one.differences.rows()} == {"today, easy"}
    assert len(rows(one, metric="wait_mean")) == 3
    other = compare(32, draw, ["fcfs", "easy"], seeds=3, baseline="easy")
    assert {row["policy"] for row in other.differences.rows()} == {"fcfs"}


def test_clusters_by_name_are_one_system_under_brokers() -> None:
    homes = {"a": [Job(processors=4, run=10) for _ in range(3)]}
    found = compare({"a": 4, "b": 4}, homes, ["siloed", "sgs-t"])
    assert found["sgs-t"].jobs["start"].tolist() == [0, 0, 10]
    assert found.difference("sgs-t", "siloed", metric="wait_mean").mean == pytest.approx(10 / 3 - 10)


def test_what_moves_nothing_is_refused() -> None:
    log = lublin(60, 32, seed=1)
    with pytest.raises(InputError, match=r"does not depend on the seed.*resample= make a sample of a log"):
        compare(32, log, ["fcfs", "easy"], seeds=3)
    with pytest.raises(InputError, match="stop: must be left out with resample: resamples have the log's own length"):
        compare(32, log, ["fcfs", "easy"], resample="users", stop="wait_mean decided")
    with pytest.raises(InputError, match="runs: is the number of resamples"):
        compare(32, log, ["fcfs", "easy"], runs=3)
    with pytest.raises(InputError, match="resample: must be users, shaken, weeks or None, got 'user'"):
        compare(32, log, ["fcfs", "easy"], resample="user")
    with pytest.raises(InputError, match="baseline: unknown case 'esay'; did you mean 'easy'"):
        compare(32, log, ["fcfs", "easy"], baseline="esay")


def test_a_sequence_stops_when_it_is_decided() -> None:
    found = compare(32, draw, ["fcfs", "easy"], stop="wait_mean decided", budget=up_to(200, 60))
    assert found.stop is not None
    assert found.source.count == found.stop.count >= 30
    assert found.decisions[0]["lower"].tolist() in (["easy"], [""])


def test_old_orders_and_old_rules_work_with_a_warning() -> None:
    found = compare(16, draw, ["fcfs", "easy"], seeds=6)
    with pytest.warns(FutureWarning, match="takes the metric by its name"):
        old = found.difference("makespan", "fcfs", "easy")
    assert old == found.difference("fcfs", "easy", metric="makespan")
    with pytest.warns(FutureWarning, match="until= is a time; the rule of stopping is stop='value ± 50 %'"):
        assert replicate(lambda seed: float(seed % 7), until="value ± 50 %").stop is not None
    with pytest.warns(FutureWarning, match="no policy given: a cluster runs under 'fcfs'"):
        unnamed = simulate(4, JOBS)
    assert unnamed.jobs["start"].tolist() == simulate(4, JOBS, "fcfs").jobs["start"].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate("hetsim-slow", "random:tasks=5")  # no cluster


@pytest.mark.parametrize("seed", range(10))
def test_old_forms_and_comparisons_have_equal_numbers(seed: int) -> None:
    policies = ["fcfs", "easy", "sjf+easy"]
    work = partial(lublin, 20 + seed, 16)
    new = compare(16, work, policies, seeds=3)
    assert told(explore(16, work, policies, seeds=3)) == told(new)
    for name in policies:
        old = replicate(simulate, 3, platform=16, workload=work, policy=name)
        assert str(old["wait_mean"]) == str(new[name]["wait_mean"])
    log = work(seed=seed)
    alone = compare(16, log, policies)
    folio = compare_portfolio(16, log, "portfolio(fcfs, easy, backfill=none)")
    assert str(folio.difference("fcfs", "easy")) == str(alone.difference("fcfs", "easy"))
    clusters, homes = {"a": 8, "b": 16}, {"b": log}
    brokers = compare_brokers(clusters, homes, ["siloed", "sgs-t"])
    both = compare(clusters, homes, ["siloed", "sgs-t"])
    assert str(brokers.difference("sgs-t", "siloed")) == str(both.difference("sgs-t", "siloed"))
    assert brokers.differences.names == alone.differences.names


def test_an_answer_is_written_as_json_csv_and_a_picture(tmp_path: Path) -> None:
    found = compare(32, draw, ["fcfs", "easy"], seeds=4)
    told = json.loads(found.to_json(tmp_path / "a b.json"))
    assert told == json.loads((tmp_path / "a b.json").read_text())
    assert told["sample"]["count"] == 4
    assert {row["metric"] for row in told["differences"]} == set(found.measures)
    found.to_csv(tmp_path / "differences.csv")
    assert len((tmp_path / "differences.csv").read_text().splitlines()) == len(found.differences) + 1
    found.plot("wait_mean", save=tmp_path / "answer.pdf")
    assert (tmp_path / "answer.pdf").read_bytes().startswith(b"%PDF")


# ---------------------------------------------------------------------- four people's questions


def test_a_doctoral_student_asks_for_two_policies_on_three_logs(tmp_path: Path) -> None:
    logs = [tmp_path / f"{name}.csv" for name in ("kth", "sp2", "blue")]
    for seed, path in enumerate(logs):
        lublin(60, 32, seed=seed).table.to_csv(path)

    answer = compare(32, logs, ["easy", "easy-sjbf"], baseline="easy")
    print(answer.summary(), *answer.answer(), sep="\n")
    answer.plot("wait_mean", save=tmp_path / "figure.pdf")

    assert len(rows(answer, metric="wait_mean")) == 4
    assert (tmp_path / "figure.pdf").exists()


def test_a_researcher_asks_for_a_broker_of_her_own_on_drawn_weeks() -> None:
    def shortest(view: View) -> Iterator[Start]:
        for job in view.waiting:
            able = [place for place in view.places if place.can_run(job)]
            yield Start(job, max(able, key=lambda place: place.free))

    brokers = {"turns": "round-robin", "mine": shortest}
    answer = compare({"a": 8, "b": 8}, users_log(), brokers, resample="users", runs=6)
    print(*answer.answer(), sep="\n")

    assert {row["policy"] for row in answer.differences.rows()} == {"mine"}
    assert answer.source.kind == "users"


def test_a_bundled_log_is_enough() -> None:
    found = compare(None, "lublin-128-week", ["easy", "easy-sjbf"], resample="shaken", runs=6)
    assert found.samples["wait_mean"].shape == (12,)
    assert load_workload("lublin-128-week").name
