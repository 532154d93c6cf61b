"""Pareto fronts and hypervolumes against counting, point by point and cell by cell."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import InputError
from simmodel.metrics import hypervolume, pareto_front
from tests.helpers.examples import up_to

POINTS = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, 4), min_size=size, max_size=size), min_size=1, max_size=8)
)


@given(POINTS)
@settings(max_examples=up_to(60))
def test_a_point_is_on_the_front_unless_another_dominates_it(points: list[list[int]]) -> None:
    def dominates(one: list[int], other: list[int]) -> bool:
        return all(a <= b for a, b in zip(one, other, strict=True)) and one != other

    expected = [not any(dominates(other, point) for other in points) for point in points]
    assert pareto_front(points).tolist() == expected


@given(POINTS)
@settings(max_examples=up_to(60))
def test_the_hypervolume_is_the_number_of_dominated_cells(points: list[list[int]]) -> None:
    corner = [4] * len(points[0])
    cells = np.stack(np.meshgrid(*[np.arange(4)] * len(corner), indexing="ij"), axis=-1).reshape(-1, len(corner))
    covered = sum(any(np.all(np.array(point) <= cell) for point in points) for cell in cells)
    assert hypervolume(points, corner) == covered


def test_undefined_points_are_not_on_the_front() -> None:
    assert pareto_front([[np.nan, 0], [1, 1], [np.inf, 0]]).tolist() == [False, True, False]
    assert hypervolume([[5.0, 5.0]], [5, 5]) == 0
    with pytest.raises(InputError, match="reference: must have 2 values"):
        hypervolume([[1, 2]], [1])
    with pytest.raises(InputError, match="points: must have a row per point"):
        pareto_front([1, 2])
