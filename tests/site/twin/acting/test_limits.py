"""The limits hold for every sequence of events and decisions."""

from __future__ import annotations

from hypothesis import given, strategies as st

from simmodel_site.twin.acting.acting import Budget, wanted
from simmodel_site.twin.acting.actions import HOUR
from simmodel_site.twin.advisor import AdvisedStart

instants = st.integers(0, 14_400).map(float)


@given(st.integers(0, 6), st.lists(st.integers(-3600, 3600), max_size=60))
def test_no_hour_has_more_actions_than_the_budget_whatever_the_clock_does(actions: int, steps: list[int]) -> None:
    budget, now, latest, taken = Budget(actions), 0, -1e9, []
    for step in steps:
        now += step
        latest = max(latest, float(now))
        if budget.take(now):
            taken.append(latest)
    for at in taken:
        assert sum(at <= other < at + HOUR for other in taken) <= actions


@given(st.integers(1, 6), st.lists(instants, max_size=20), st.lists(instants, max_size=20))
def test_a_twin_that_continues_has_what_is_left(actions: int, before: list[float], after: list[float]) -> None:
    whole = Budget(actions)
    first = [at for at in sorted(before) if whole.take(at)]
    again = Budget(actions, first)
    later = sorted(each + max(before, default=0.0) for each in after)
    assert [again.take(at) for at in later] == [whole.take(at) for at in later]


jobs = st.lists(st.tuples(st.integers(1, 12), st.floats(0, 100)), unique_by=lambda job: job[0], max_size=12)


@given(jobs, st.data(), st.floats(0, 300), st.floats(1, 200))
def test_no_job_is_passed_for_the_twins_sake_after_the_longest_delay(
    waiting: list[tuple[int, float]], data: st.DataObject, now: float, longest: float
) -> None:
    now += max((submit for _, submit in waiting), default=0.0)
    picked = data.draw(st.lists(st.sampled_from(waiting), unique=True)) if waiting else []
    before = data.draw(st.lists(st.sampled_from(waiting), unique=True)) if waiting else []
    preferred = dict.fromkeys(before, 7)
    for each in wanted(
        "priority",
        [AdvisedStart(job, submit, "batch") for job, submit in picked],
        waiting=waiting,
        preferred=preferred,
        now=now,
        maximum_delay=longest,
        preference=7,
    ):
        if each.command == "prefer":
            preferred[each.job, each.submit] = each.value
        else:
            del preferred[each.job, each.submit]
    for _, submit in waiting:
        if now - submit > longest:
            assert not any(other > submit for _, other in preferred)
    assert preferred.keys() <= set(picked)
