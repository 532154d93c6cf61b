"""The policy that made a schedule is found among candidates."""

import numpy as np
import pytest

from simmodel.foundation.errors import InputError
from simmodel.referee import identify
from simmodel.referee.identification import CANDIDATES
from simmodel.referee.verification import stretches_of
from tests.helpers.drawn_schedules import MODES, drawn_log, schedule_by

MADE_BY = ("fcfs", "sjf", "easy", "sjf+easy", "conservative", "best-fit")


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", MADE_BY)
def test_the_policy_of_a_schedule_is_found(policy: str) -> None:
    for seed, mode in enumerate(MODES):
        log = drawn_log(seed, 100)
        found = identify(log, schedule_by(log, policy, **mode), candidates=CANDIDATES, **mode)
        assert found.best == policy
        assert found.shares[policy] == 1.0
        assert found.unexplained == 0.0


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", MADE_BY)
def test_it_is_found_when_some_starts_have_moved(policy: str) -> None:
    log = drawn_log(7, 200)
    jobs = schedule_by(log, policy)
    starts = jobs["start"].copy()
    rows = np.random.default_rng(1).choice(len(starts), len(starts) // 20, replace=False)
    starts[rows] += np.random.default_rng(2).integers(1, 60, len(rows))
    found = identify(log, {"job": jobs["job"], "start": starts, "end": starts + jobs["end"] - jobs["start"]})
    assert found.best == policy
    assert 0.6 < found.shares[policy] < 1.0


def test_candidates_are_compared_as_a_table_and_over_time() -> None:
    log = drawn_log(0)
    found = identify(log, schedule_by(log, "easy"), candidates={"mine": "easy", "other": "fcfs"})
    assert found.table["policy"].tolist() == ["mine", "other"]
    rows = [[row[name] for name in ("explained", "late", "early", "impossible")] for row in found.table.rows()]
    assert [sum(row) for row in rows] == pytest.approx([1.0, 1.0])
    assert found.report().splitlines()[0] == "drawn 0: 80 starts"
    (axes,) = found.plot().axes
    assert [text.get_text().split(",")[0] for text in axes.get_legend().get_texts()] == ["mine", "other"]


def test_wrong_candidates_and_tolerances_are_refused() -> None:
    log = drawn_log(0)
    with pytest.raises(InputError, match="tolerance: must be a number >= 0"):
        identify(log, {1: 0.0}, tolerance=-1)
    with pytest.raises(InputError, match="unknown policy 'esy'"):
        identify(log, {1: 0.0}, candidates=["esy"])


@pytest.mark.parametrize("judged", ["fcfs", "easy", "conservative", "sjf+easy"])
def test_a_sample_is_judged_as_it_is_in_the_whole(judged: str) -> None:
    """Also jobs that wait as a stretch begins, unless the policy wanted them only before it."""
    compared = 0
    for seed in range(3):
        log = drawn_log(seed, 200)
        schedule = schedule_by(log, "smallest")
        whole = identify(log, schedule, candidates=[judged]).judgements[judged].jobs
        found = identify(log, schedule, candidates=[judged], sample=100)
        table = found.judgements[judged].jobs
        rows = {row["job"]: row for row in whole.rows()}
        stretches = stretches_of(found.schedule.start, 100)
        assert sum(len(each.rows) for each in stretches) == 100
        since = np.repeat([each.since for each in stretches], [len(each.rows) for each in stretches])
        submits = dict(zip(log["job"].tolist(), log["submit"].tolist(), strict=True))
        for row, begin in zip(table.rows(), since.tolist(), strict=True):
            of_whole = rows[row["job"]]
            if submits[row["job"]] >= begin or not of_whole["wanted"] <= begin:
                compared += 1
                assert str(row) == str(of_whole)
            elif row["wanted"] == submits[row["job"]]:
                assert row["kind"] == of_whole["kind"] == "late"
    assert compared > 200


def test_a_sample_of_a_policys_own_schedule_is_its_own() -> None:
    log = drawn_log(1, 200)
    found = identify(log, schedule_by(log, "easy"), candidates=["easy", "fcfs"], sample=60)
    assert (found.judged, found.shares["easy"], found.unexplained) == (60, 1.0, 0.0)
    assert found.shares["fcfs"] < 1.0
    assert found.report().splitlines()[0] == "drawn 1: 60 of 200 starts"
    assert identify(log, schedule_by(log, "easy"), candidates=["easy"], sample=500).judged == 200
    with pytest.raises(InputError, match="sample: must be a whole number from 1 on, got 0"):
        identify(log, {1: 0.0}, sample=0)
