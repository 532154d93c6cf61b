"""Schedules with one thing wrong: it is found, and the first departure is named; so are the mistakes of simulators."""

from collections import Counter

import pytest

from simmodel.referee import verify
from tests.helpers.drawn_schedules import drawn_log, schedule_by
from tests.helpers.wrong_schedules import CHANGES, EASY, Wrong, mistaken_easy, wrong_schedule

MISTAKES = {"none": "no reservation for the head", "limits": "shadow time from limits instead of ends"}


def first_is_named(wrong: Wrong) -> None:
    """Check that a schedule is told to be wrong, and what the referee says first of it."""
    verdict = verify(wrong.log, wrong.jobs, 8, wrong.policy, mistakes=False, **wrong.mode)
    assert not verdict.right
    first = verdict.table.where([0])
    assert first["at"][0] == wrong.at, (wrong, verdict.report())
    if wrong.missed:
        departure = verdict.departures[0]
        assert (departure.at, departure.kind) == (wrong.at, "late")
        assert departure.job in wrong.missed
    elif first["kind"][0] == "start before submission":
        assert first["job"][0] in wrong.added
    else:
        departure = verdict.departures[0]
        assert departure.at == wrong.at
        assert departure.kind in ("early", "impossible")
        assert departure.job in wrong.added


@pytest.mark.parametrize("change", CHANGES)
def test_the_first_departure_of_a_wrong_schedule_is_named(change: str) -> None:
    for seed in range(8):
        first_is_named(wrong_schedule(change, seed))


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", CHANGES)
def test_the_first_departure_is_named_in_200_of_200(change: str) -> None:
    policies: Counter[str] = Counter()
    for seed in range(1000, 1200):
        wrong = wrong_schedule(change, seed)
        first_is_named(wrong)
        policies[wrong.policy] += 1
    print(f"{change}: first departure named in {policies.total()} of 200, policies: {dict(policies)}")
    assert policies.total() == 200


def mistakes_named(policy: str, mistake: str, seeds: range) -> tuple[int, int]:
    """Return how many schedules with a mistake differ from those of the policy, and in how many it is named."""
    different = named = 0
    for seed in seeds:
        log = drawn_log(seed, 200)
        verdict = verify(log, schedule_by(log, mistaken_easy(*EASY[policy], mistake)), 8, policy)
        if not verdict.right:
            different += 1
            assert verdict.mistakes[MISTAKES[mistake]] == 1.0
            named += verdict.mistake == MISTAKES[mistake]
    return different, named


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_classic_mistakes_are_told_by_name(mistake: str) -> None:
    assert mistakes_named("easy", mistake, range(4)) == (4, 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("policy", ["easy", "sjf+easy"])
def test_the_classic_mistakes_are_told_by_name_many_times(policy: str, mistake: str) -> None:
    different, named = mistakes_named(policy, mistake, range(50))
    print(f"{policy}, {MISTAKES[mistake]}: named in {named} of {different}")
    assert different == named >= 45
