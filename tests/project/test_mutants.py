"""The benchmark of mutants: which tests concern a line, and that a mutant replaces the functions that it changes."""

from __future__ import annotations

import importlib.util
from types import FunctionType, ModuleType

import pytest

from tests.helpers.paths import ROOT

SOURCE = """LIMIT = 3

class Queue:
    most = 2

    def fits(self, waiting, *, than=1):
        if (waiting
                < self.most):
            return tuple(each for each in range(waiting) if each > than)
        def later():
            return waiting - 1
        return later

def steps(a):
    for each in range(a):
        yield each + 1
"""
MAP = {
    "tests": ["1::a", "2::b", "3::c", "4::d", "4::e"],
    "seconds": [0.3, 0.1, 0.2, 0.1, 0.1],
    "lines": {"queue.py": {"7": [0, 1], "8": [2], "9": [3, 1, 0], "16": [2]}},
}


@pytest.fixture(scope="module")
def plugin() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tests_of_lines", ROOT / "benchmarks/tests_of_lines.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("line", "tests"),
    [(7, ["2::b", "1::a"]), (9, ["2::b", "4::d", "1::a", "4::e"]), (8, ["3::c"]), (14, []), (16, ["3::c"]), (1, [])],
)
def test_a_line_has_the_tests_that_run_it_fastest_first_and_then_those_beside_them(
    plugin: ModuleType, line: int, tests: list[str]
) -> None:
    assert plugin.tests_of(MAP, "queue.py", SOURCE.encode(), line) == tests


def test_a_line_of_a_statement_has_the_tests_of_its_other_lines(plugin: ModuleType) -> None:
    known = {**MAP, "lines": {"queue.py": {"7": [0, 1], "9": [3]}}}
    assert plugin.tests_of(known, "queue.py", SOURCE.encode(), 8) == ["2::b", "1::a"]
    assert plugin.tests_of_file(known, "queue.py") == ["2::b", "4::d", "1::a"]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("LIMIT = 3", "LIMIT = 4", None),
        ("most = 2", "most = 3", None),
        ("than=1", "than=2", None),
        ("SAME", "SAME", []),
        ("< self.most", "<= self.most", ["Queue.fits"]),
        ("each > than", "each >= than", ["Queue.fits", "Queue.fits.<locals>.<genexpr>"]),
        ("waiting - 1", "waiting + 1", ["Queue.fits", "Queue.fits.<locals>.later"]),
        ("each + 1", "each - 1", ["steps"]),
    ],
)
def test_what_a_mutant_changes_is_a_function_or_runs_while_its_module_loads(
    plugin: ModuleType, old: str, new: str, names: list[str] | None
) -> None:
    codes = [compile(text, "queue.py", "exec") for text in (SOURCE, SOURCE.replace(old, new))]
    pairs = plugin.changed(*codes)
    assert (pairs if pairs is None else [after.co_qualname for _, after in pairs]) == names


def test_a_live_function_runs_the_code_of_the_mutant(plugin: ModuleType) -> None:
    space: dict[str, type] = {}
    old = compile(SOURCE, "queue.py", "exec")
    exec(old, space)
    queue = space["Queue"]()
    assert queue.fits(2)() == 1
    known = dict(plugin.changed(old, compile(SOURCE.replace("waiting - 1", "waiting + 1"), "queue.py", "exec")))
    function = space["Queue"].fits
    assert isinstance(function, FunctionType)
    function.__code__ = known[function.__code__]
    assert queue.fits(2)() == 3
