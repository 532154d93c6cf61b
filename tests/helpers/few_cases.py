"""Leaves most cases of a costly test to CI: ``@pytest.mark.few(4)`` runs four of its cases by default.

Of the others three times as many, and at least two of five of all, get the marker ``long`` and run in CI; the rest is
``exhaustive``. The cases that stay cover as many values of each parameter as possible and are
spread over all cases; they are the same at each run and in each process. A helper of conftest.py.

Tests that draw more with ``--hypothesis-profile=thorough`` (those of Hypothesis, and those that call ``up_to``) get the
marker ``thorough``, so that CI can run them a second time without all the others.
"""

from collections import defaultdict
from types import CodeType
from typing import Any

import pytest

GOLDEN = (5**0.5 - 1) / 2
ELSEWHERE = ("long", "notebooks", "exhaustive", "live")


def spread(number: int) -> list[int]:
    """Return 0 to number - 1 in an order whose beginnings are spread evenly, without a common step."""
    return sorted(range(number), key=lambda at: at * GOLDEN % 1.0)


def chosen(cases: list[dict[str, int]], most: int) -> set[int]:
    """Choose at most that many cases (parameter: index of its value), each with the most values not yet covered."""
    left, seen, found = spread(len(cases)), set[tuple[str, int]](), set[int]()
    while left and len(found) < most:
        best = max(left, key=lambda at: len(set(cases[at].items()) - seen))
        left.remove(best)
        seen |= set(cases[best].items())
        found.add(best)
    return found


def draws_more(item: Any) -> bool:
    """Whether a test has more examples in the thorough profile."""
    function = getattr(item, "function", None)
    code = getattr(function, "__code__", None)
    return getattr(function, "is_hypothesis_test", False) or (code is not None and asks_up_to(code))


def asks_up_to(code: CodeType) -> bool:
    """Whether a function, or one in it, asks for a number of examples."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return "up_to" in code.co_names or any(map(asks_up_to, inner))


def mark(items: list[Any]) -> None:
    """Give the cases that few leaves out the marker long or exhaustive, and tests that draw more thorough."""
    functions: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for item in items:
        if draws_more(item):
            item.add_marker(pytest.mark.thorough)
        if item.get_closest_marker("few") and not any(item.get_closest_marker(name) for name in ELSEWHERE):
            functions[item.parent.nodeid, item.originalname].append(item)
    for cases in functions.values():
        most = cases[0].get_closest_marker("few").args[0]
        indices = [case.callspec.indices for case in cases]
        stay, in_ci = chosen(indices, most), chosen(indices, max(4 * most, 2 * len(cases) // 5))
        for at, case in enumerate(cases):
            if at not in stay:
                case.add_marker(pytest.mark.long if at in in_ci else pytest.mark.exhaustive)
