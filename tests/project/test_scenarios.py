"""Scenarios on how-to pages: short, typed, without private names, right by formulas. Another test runs them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from math import exp, factorial, isclose, sqrt
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.doc_pages import PAGES
from tests.helpers.paths import ROOT


class Scenario(NamedTuple):
    """The code of a scenario and what it prints."""

    code: str
    printed: str

    @property
    def numbers(self) -> list[float]:
        """The numbers that it prints."""
        return [float(each) for each in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?", self.printed)]


PLACES = {
    "A queue with few places": ("few_places", 0),
    "Customers who lose patience": ("impatience", 0),
    "What arrivals see": ("measure_a_queue", 0),
    "Cloud bursting": ("bursting", 0),
    "A power cap by day": ("power_cap", 1),
    "Fair share": ("fairness", 1),
    "Spot instances": ("interrupt", 0),
    "Checkpoints under failures": ("checkpoints", 2),
    "A burst buffer": ("jobs_with_io", 0),
    "A log with I/O": ("jobs_with_io", 1),
    "A workflow manager": ("campaign", 0),
    "A workflow as batch jobs": ("workflow", 0),
    "A workflow in one job": ("workflow", 1),
    "A malleable job": ("grow_and_shrink", 1),
    "A pilot job": ("pilots", 0),
    "Two clusters and their data": ("second_cluster", 1),
    "Caches": ("caches", 0),
    "A language model as a processor": ("language_model", 1),
    "A link in turns, and a link with loss": ("timed_links", 1),
    "A mapping policy": ("mapping_policy", 0),
    "A paired comparison": ("explore", 3),
}
"""The page in docs/how_to of each scenario, and which of its examples it is."""


def scenario(page: str, number: int) -> Scenario:
    """Return an example of a how-to page, which prints something."""
    _, code, printed = PAGES[f"docs/how_to/{page}.md"].examples[number]
    assert printed is not None
    return Scenario(code, printed)


FOUND = {title: scenario(*place) for title, place in PLACES.items()}
LINES = {
    "A queue with few places": 23,
    "Customers who lose patience": 14,
    "What arrivals see": 24,
    "Cloud bursting": 24,
    "A power cap by day": 22,
    "Fair share": 19,
    "Spot instances": 24,
    "Checkpoints under failures": 20,
    "A burst buffer": 33,
    "A log with I/O": 24,
    "A workflow manager": 23,
    "A workflow as batch jobs": 11,
    "A workflow in one job": 11,
    "A malleable job": 31,
    "A pilot job": 20,
    "Two clusters and their data": 35,
    "Caches": 34,
    "A language model as a processor": 41,
    "A link in turns, and a link with loss": 26,
    "A mapping policy": 24,
    "A paired comparison": 12,
}
"""The most lines that are not blank, by scenario: as many as a new user once needed, if it was possible at all."""


def test_every_scenario_is_held() -> None:
    assert FOUND.keys() == LINES.keys()


@pytest.mark.parametrize("title", LINES)
def test_a_scenario_is_short(title: str) -> None:
    assert sum(1 for line in FOUND[title].code.splitlines() if line.strip()) <= LINES[title]


@pytest.mark.parametrize("title", FOUND)
def test_a_scenario_uses_no_private_name(title: str) -> None:
    names = {node.attr for node in ast.walk(ast.parse(FOUND[title].code)) if isinstance(node, ast.Attribute)}
    imported = [
        part
        for node in ast.walk(ast.parse(FOUND[title].code))
        if isinstance(node, ast.ImportFrom)
        for part in (node.module or "").split(".") + [alias.name for alias in node.names]
    ]
    assert [name for name in (*names, *imported) if name.startswith("_")] == []


@pytest.mark.exhaustive  # .ci/run runs it once mypy has checked the package, whose types are then at hand
def test_mypy_finds_no_error_in_any_scenario(tmp_path: Path) -> None:
    files = []
    for number, scenario in enumerate(FOUND.values()):
        files.append(tmp_path / f"scenario_{number}.py")
        files[-1].write_text(scenario.code, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, env={"MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------------- formulas


def erlang(load: float, servers: int, places: int) -> float:
    """Return the share of customers that find an M/M/c/K queue full."""
    weights = [load**n / (factorial(min(n, servers)) * servers ** max(n - servers, 0)) for n in range(places + 1)]
    return weights[places] / sum(weights)


def restarts(work: float, interval: float, cost: float, mean: float) -> float:
    """Return the expected seconds of work in intervals, each repeated until no failure interrupts it."""
    return work / interval * mean * (exp((interval + cost) / mean) - 1)


def lost(numbers: list[float]) -> bool:
    return isclose(numbers[0], erlang(5, 3, 6), abs_tol=0.01) and numbers[1] == round(erlang(5, 3, 6), 3) == 0.422


def queue(numbers: list[float]) -> bool:
    expected = 0.8**2 / (1 - 0.8)
    return all(isclose(number, expected, rel_tol=0.05) for number in numbers)


def bursting(numbers: list[float]) -> bool:
    # one node more after each 120 s; the capacity in nodes until the end at 2400 s
    starts = [0] * 4 + [120, 240, 360, 480] + [1200] * 4
    nodes = 120 * (4 + 5 + 6 + 7) + (2400 - 480) * 8
    return numbers[:13] == [*starts, 12 * 1200 / nodes]


def checkpoints(numbers: list[float]) -> bool:
    found = [numbers[i : i + 3] for i in range(0, len(numbers), 3)]
    ends = [end for _, end, _ in found]
    near = all(
        round(restarts(400_000, interval, 10, 1000)) == told and isclose(end, told, rel_tol=0.02)
        for interval, end, told in found
    )
    return near and ends[0] > ends[1] and ends[-1] > ends[-2]


def buffer(numbers: list[float]) -> bool:
    # writing 60 GB takes 3 s, draining them 60 s: the second job has room from 163 s on, and so on
    return numbers == [0, 0, 229, 292, 163, 226, 289, 352]


def manager(numbers: list[float]) -> bool:
    # the first two prepare for 300 s and move 40 GB each over 1 GB/s; four of all parts run at a time, for 900 s; then
    # 5 GB come back, and the check takes 120 s; a transfer begins after 0.05 s
    begin, after = 300 + 0.05 + 80, 0.05 + 5 + 120
    return [round(begin + 900 * turns + after, 2) for turns in (1, 2, 3)] == numbers[1::2]


def tokens(numbers: list[float]) -> bool:
    ends = [64 * 200 * 0.021, 8 * 200 * 0.028, 200 * 0.084]
    return [round(end, 1) for end in ends] == numbers[2::3]


def longest_first(numbers: list[float]) -> bool:
    cores = [0.0] * 4
    for run in sorted((10 + 7 * i % 23 for i in range(30)), reverse=True):
        cores[cores.index(min(cores))] += run
    return numbers[0] == max(cores) < numbers[1]


CHECKS: dict[str, Callable[[list[float]], bool]] = {
    "A queue with few places": lost,
    "What arrivals see": queue,
    "Cloud bursting": bursting,
    "A power cap by day": lambda numbers: numbers[0] <= 64 < numbers[1] <= 128,
    "Fair share": lambda numbers: sorted(numbers) == [0, 100, 200, 300, 400, 500] and numbers[3:] == [100, 400, 200],
    "Spot instances": lambda numbers: numbers == [30, 30, 150, 150],
    "Checkpoints under failures": checkpoints,
    "A burst buffer": buffer,
    "A workflow manager": manager,
    "A workflow as batch jobs": lambda numbers: numbers == [0, *[10] * 5, *[70] * 3, 130],
    "A workflow in one job": lambda numbers: numbers == [360, 360, 720, 360, 420],
    "A malleable job": lambda numbers: (
        # Busy from 0, 20, 30, 50 and 60 to 80 s; the rigid job waits for the end of the slot in which it came.
        numbers[:-1] == [0, 5, 16, 12, 16, 8, 16]
        and isclose(numbers[-1], 100 * (16 * 20 + 12 * 10 + 16 * 20 + 8 * 10 + 16 * 20) / (16 * 80), abs_tol=0.05)
    ),
    "Caches": lambda numbers: numbers == [3, 6, 6, 6],
    "A language model as a processor": tokens,
    "A link in turns, and a link with loss": lambda numbers: (
        numbers[0] == 6.1
        and numbers[1:] == [round(1e8 / (1460 / 0.1 * sqrt(1.5 / loss)) + 0.05, 1) for loss in (1e-6, 1e-4, 1e-2)]
    ),
    "A mapping policy": longest_first,
}


@pytest.mark.parametrize("title", CHECKS)
def test_the_figures_agree_with_formulas_and_hand_cases(title: str) -> None:
    assert CHECKS[title](FOUND[title].numbers), FOUND[title].printed
