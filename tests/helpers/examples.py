"""How many examples Hypothesis draws: few for whoever runs the tests, a quarter with ``--hypothesis-profile=thorough``.

All of them with ``--hypothesis-profile=all``, which takes hours.
"""

from typing import Any

import pytest
from hypothesis import settings

FEW, QUARTER, ALL = 10, 25, 100


def up_to(number: int, few: int = FEW) -> int:
    """Return the number of examples of a test: by default at most ``few``, as each takes long, else by the profile."""
    drawn = settings.default.max_examples
    share = {FEW: 0, QUARTER: number // 4}.get(drawn, number)
    return max(share, min(number, few))


def seeds(usual: int, number: int) -> list[Any]:
    """Return the seeds of a test: the first ones, and as exhaustive cases all others."""
    return [*range(usual), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(usual, number))]
