"""The clock and the weight of a bundle of flows: sums of floats that are exact to twice the precision of a float."""

from __future__ import annotations

from fractions import Fraction
from math import ulp

import pytest
from hypothesis import given, strategies as st

from simmodel.resources.network.flow import Bundle

# The error of a compensated sum of some twenty terms, relative to the largest sum on the way.
ERROR = Fraction(1, 2**98)
STEPS = st.tuples(st.integers(1, 2**20), st.integers(-40, 40))


def exact(pair: tuple[float, float]) -> Fraction:
    return Fraction(pair[0]) + Fraction(pair[1])


@given(steps=st.lists(STEPS, min_size=1, max_size=20), ahead=STEPS)
def test_the_clock_is_the_sum_of_speed_times_time(steps: list[tuple[int, int]], ahead: tuple[int, int]) -> None:
    """Speeds are powers of two and times whole numbers, so that each product is exact."""
    bundle = Bundle([])
    now, clock = 0, Fraction(0)
    for seconds, power in steps:
        bundle.speed = 2.0**power
        now += seconds
        bundle.advance(now)
        clock += seconds * Fraction(2) ** power
        assert abs(exact((bundle.high, bundle.low)) - clock) <= ERROR * clock
    step = ahead[0] * 2.0 ** ahead[1]
    clock += Fraction(step)
    mark = bundle.mark(step)
    assert abs(exact(mark) - clock) <= ERROR * clock
    # Marks are compared as pairs: their first part is the nearest float.
    assert abs(Fraction(mark[0]) - clock) <= Fraction(ulp(mark[0])) * (Fraction(1, 2) + ERROR * 2**60)


@pytest.mark.parametrize("weights", [[1e16, 1.0], [1.0, 1e16], [1.0, 1e16, 2.0**-20, 3.0]])
def test_the_weight_of_small_flows_outlives_large_ones(weights: list[float]) -> None:
    bundle = Bundle([], scale=2.0)
    for weight in weights:
        bundle.weigh(weight)
    bundle.weigh(-1e16)
    assert bundle.demand == 2.0 * sum(weight for weight in weights if weight != 1e16)
