"""Problems for list schedulers: the worked examples of two papers, and random problems."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest
from hypothesis import strategies as st

from simmodel.scheduling.problem import Problem
from tests.helpers.paths import REFERENCE
from tests.oracles.list_scheduling import Case

# Topcuoglu, Hariri, Wu 2002: run times, edges, published makespans and schedules; as (task, start, end) by processor.
TOPCUOGLU: dict[str, Any] = {
    "run": "14 16 9, 13 19 18, 11 13 19, 13 8 17, 12 13 10, 13 16 9, 7 15 11, 5 11 14, 18 12 20, 21 7 16",
    "edges": "1 2 18, 1 3 12, 1 4 9, 1 5 11, 1 6 14, 2 8 19, 2 9 16, 3 7 23, 4 8 27, 4 9 23, 5 9 13, 6 8 15, "
    "7 10 17, 8 10 11, 9 10 13",
    "rank_u": [108.0, 77.0, 80.0, 80.0, 69.0, 63.3333, 42.6667, 35.6667, 44.3333, 14.6667],
    "heft": [
        [(2, 27, 40), (8, 57, 62)],
        [(4, 18, 26), (6, 26, 42), (9, 56, 68), (10, 73, 80)],
        [(1, 0, 9), (3, 9, 28), (5, 28, 38), (7, 38, 49)],
    ],
    "cpop": [
        [(3, 28, 39), (7, 39, 46)],
        [(1, 0, 16), (2, 16, 35), (5, 35, 48), (9, 65, 77), (10, 79, 86)],
        [(4, 25, 42), (6, 42, 51), (8, 54, 68)],
    ],
    "lookahead": 76,
    "peft": 85,
}
# Arabnejad, Barbosa 2014.
ARABNEJAD: dict[str, Any] = {
    "run": "22 21 36, 22 18 18, 32 27 43, 7 10 4, 29 27 35, 26 17 24, 14 25 30, 29 23 36, 15 21 8, 13 16 33",
    "edges": "1 2 17, 1 3 31, 1 4 29, 1 5 13, 1 6 7, 2 8 3, 2 9 30, 3 7 16, 4 8 11, 4 9 7, 5 9 57, 6 8 5, 7 10 9, "
    "8 10 42, 9 10 7",
    "oct": "64 68 86, 42 39 42, 27 41 43, 42 39 50, 28 37 28, 42 39 44, 13 16 22, 13 16 33, 13 16 20, 0 0 0",
    "rank_oct": [72.6667, 41.0, 37.0, 43.6667, 31.0, 41.6667, 17.0, 20.6667, 16.3333, 0.0],
    "peft": [
        [(1, 0, 22), (4, 22, 29), (2, 29, 51), (3, 51, 83), (7, 83, 97)],
        [(6, 29, 46), (8, 54, 77), (10, 106, 122)],
        [(5, 35, 70), (9, 81, 89)],
    ],
    "heft": 133,
    "cpop": 167,
    "lookahead": 127,
}


def table(text: str) -> list[list[float]]:
    """Return the rows of numbers of a text."""
    return [[float(number) for number in row.split()] for row in text.split(",")]


def apart(run: list[list[float]], edges: list[Any]) -> Problem:
    """Return a problem in which every processor has its own pool, and one byte takes one second between any two."""
    p = len(run[0])
    parents: list[list[tuple[int, float]]] = [[] for _ in run]
    for parent, child, seconds in edges:
        parents[int(child)].append((int(parent), float(seconds)))
    return Problem(run, parents, [[0.0] * p] * p, [[float(i != j) for j in range(p)] for i in range(p)])


def published(example: dict[str, Any]) -> Problem:
    """Return the problem of one of the two examples above."""
    return apart(table(example["run"]), [(a - 1, b - 1, c) for a, b, c in table(example["edges"])])


def reference_examples() -> list[Any]:
    """Return the complete examples of the reference folder as test parameters."""
    paths = sorted((REFERENCE / "dag").glob("*.json"))
    cases = [pytest.param(json.loads(path.read_text()), id=path.stem) for path in paths]
    absent = pytest.mark.skip(reason=f"no examples in {REFERENCE / 'dag'}; set SIMMODEL_REFERENCE to their folder")
    return cases or [pytest.param(None, id="absent", marks=absent)]


def of_reference(example: dict[str, Any]) -> Problem:
    """Return the problem of an example of that folder."""
    row = {task: i for i, task in enumerate(example["tasks"])}
    edges = [(row[edge["src"]], row[edge["dst"]], edge["comm"]) for edge in example["edges"]]
    return apart([[float(seconds) for seconds in each] for each in example["comp"]], edges)


@st.composite
def problems(
    draw: st.DrawFn, max_tasks: int = 9, max_processors: int = 4, *, extras: bool = True
) -> tuple[Problem, Case]:
    """Draw a problem, and the same case for the oracle.

    All numbers are multiples of 120, so that means over up to 4 processors are exact in any order of summation.
    ``extras``: some processors are still busy, and some data arrive late.
    """
    n = draw(st.integers(1, max_tasks))
    p = draw(st.integers(1, max_processors))
    number = st.integers(0, 6).map(lambda k: 120.0 * k)
    pool = draw(st.lists(st.integers(0, p - 1), min_size=p, max_size=p))
    same = draw(st.none() | number)

    def matrix() -> list[list[float]]:
        between = [[draw(number) if same is None else same for _ in range(p)] for _ in range(p)]
        return [[0.0 if a == b else between[a][b] for b in range(p)] for a in range(p)]

    latency, per_byte = matrix(), matrix()
    run = []
    for _ in range(n):
        row = draw(st.lists(st.one_of(number, number, number, st.just(inf)), min_size=p, max_size=p))
        if min(row) == inf:
            row[draw(st.integers(0, p - 1))] = draw(number)
        run.append(row)
    name = draw(st.permutations(range(n)))  # parents may have higher numbers
    edges = {}
    for b in range(1, n):
        for a in draw(st.sets(st.integers(0, b - 1), max_size=3)):
            edges[name[a], name[b]] = float(draw(st.integers(0, 4)))
    edges = {pair: edges[pair] for pair in sorted(edges)}
    now = available = arrival = None
    if extras and draw(st.booleans()):
        now = draw(number)
        available = [now + draw(number) for _ in range(p)]
        by_pool = [[now + draw(number) for _ in range(p)] for _ in range(n)]
        arrival = [[row[q] for q in pool] for row in by_pool]
    parents = [[(a, edges[a, b]) for a, b in edges if b == task] for task in range(n)]
    given: dict[str, Any] = {"now": now or 0.0, "available": available, "arrival": arrival}
    if arrival is not None or draw(st.booleans()):
        problem = Problem(run, parents, latency, per_byte, pools=pool, **given)
    else:
        by_processor = [[[each[a][b] for b in pool] for a in pool] for each in (latency, per_byte)]
        problem = Problem(run, parents, by_processor[0], by_processor[1], **given)
        pool = problem.pools  # pools at distance zero are merged
        latency, per_byte = ([[link[i] for link in row] for row in problem.links] for i in range(2))
    return problem, Case(run, edges, pool, latency, per_byte, **given)
