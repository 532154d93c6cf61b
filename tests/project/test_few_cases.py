"""The cases that stay when a test runs with few of them."""

import gc
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from tests.helpers import examples
from tests.helpers.examples import FEW, up_to
from tests.helpers.few_cases import chosen, mark, spread

CASES = [{"seed": seed, "ties": ties, "load": load} for seed, ties, load in product(range(6), range(4), range(3))]


def test_as_many_cases_as_values_of_each_parameter_have_all_of_them() -> None:
    stay = [CASES[at] for at in chosen(CASES, 6)]
    assert {name: {case[name] for case in stay} for name in CASES[0]} == {
        "seed": set(range(6)),
        "ties": set(range(4)),
        "load": set(range(3)),
    }


@pytest.mark.parametrize("most", [1, 2, 10, 71, 72, 100])
def test_as_many_stay_as_are_asked_for_and_the_first_is_one(most: int) -> None:
    stay = chosen(CASES, most)
    assert len(stay) == min(most, 72)
    assert 0 in stay
    assert stay <= set(range(72))


def test_beginnings_are_spread() -> None:
    assert sorted(spread(100)) == list(range(100))
    first = sorted(spread(100)[:10])
    assert all(1 <= later - earlier <= 30 for earlier, later in pairwise(first))


class Item(SimpleNamespace):
    """What is asked of a collected test."""

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)

    def add_marker(self, found: pytest.MarkDecorator) -> None:
        self.marks[found.name] = found.mark


def collected(function: object, count: int, **marks: pytest.Mark) -> list[Item]:
    parent = SimpleNamespace(nodeid="test_it.py")
    return [
        Item(
            parent=parent,
            originalname="test",
            function=function,
            callspec=SimpleNamespace(indices={"case": at}),
            marks=dict(marks),
        )
        for at in range(count)
    ]


def test_the_others_are_long_and_those_that_are_long_already_do_not_count() -> None:
    few = pytest.mark.few(2).mark
    items = collected(len, 5, few=few)
    items[0].add_marker(pytest.mark.exhaustive)
    mark(items)
    assert sum("long" in item.marks for item in items) == 2
    assert "long" not in items[0].marks
    plain = collected(len, 5)
    mark(plain)
    assert all(item.marks == {} for item in plain)


def test_of_many_two_of_five_run_in_ci_and_the_rest_by_hand() -> None:
    items = collected(len, 100, few=pytest.mark.few(2).mark)
    mark(items)
    assert sum("long" in item.marks for item in items) == 38
    assert sum("exhaustive" in item.marks for item in items) == 60


def test_a_quarter_of_the_examples_is_drawn_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {}
    for profile in ("patient", "thorough", "all"):
        monkeypatch.setattr(examples, "settings", SimpleNamespace(default=settings.get_profile(profile)))
        drawn[profile] = up_to(90, 6), up_to(12, 6), up_to(2, 6)
    assert drawn == {"patient": (6, 6, 2), "thorough": (22, 6, 2), "all": (90, 12, 2)}


def test_tests_that_draw_more_in_the_thorough_profile_are_marked() -> None:
    def sized() -> list[int]:
        return [number for _ in range(2) for number in range(up_to(100))]

    @given(st.none())
    def drawn(_: None) -> None: ...

    items = [*collected(sized, 1), *collected(drawn, 1), *collected(len, 1)]
    mark(items)
    assert ["thorough" in item.marks for item in items] == [True, True, False]


def test_the_collector_of_garbage_rests_unless_all_examples_run() -> None:
    assert gc.isenabled() == (settings.default.max_examples > FEW)
