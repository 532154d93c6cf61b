"""How the errors of cells become one number: a geometric mean with the noise added."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.experiments.calibration.losses import Criterion

ERRORS = st.lists(st.floats(0, 10), min_size=1, max_size=12)


def total(errors: list[float], loss: str = "walltime") -> float:
    """Return the loss of cells with these errors."""
    return Criterion.of(loss).total({loss: errors}, {loss: [True] * len(errors)})


@given(ERRORS, st.integers(0, 11), st.floats(0.001, 1))
def test_the_loss_is_between_the_errors_and_grows_with_each(errors: list[float], at: int, more: float) -> None:
    found = total(errors)
    assert min(errors) * (1 - 1e-9) <= found <= max(errors) * (1 + 1e-9)
    assert total([errors[0]] * 3) == pytest.approx(errors[0], rel=1e-9, abs=1e-15)
    worse = errors.copy()
    worse[at % len(errors)] += more
    assert total(worse) > found


def test_a_cell_that_is_met_exactly_does_not_outvote_the_others() -> None:
    assert total([0.0, 0.0]) == 0.0
    assert total([0.0, 0.03]) == pytest.approx(0.02 - 0.01)  # sqrt(0.01 * 0.04) - 0.01
    exact, right = [0.104, 0.125, 1.2e-11], [0.069, 0.084, 5e-4]  # two walltimes and a queue time
    assert total(right) < total(exact)
    assert total([0.0, 3.0], "start") == pytest.approx(1.0)  # seconds, of which 1 is noise
    weighted = Criterion.of({"walltime": 3, "start": 1})
    cells = {"walltime": [0.15], "start": [15.0]}
    noise = 0.01**0.75
    found = weighted.total(cells, {"walltime": [True], "start": [True]})
    assert found == pytest.approx((0.16**0.75 * 16**0.25) - noise)
    assert np.isnan(weighted.total(cells, {"walltime": [False], "start": [False]}))
