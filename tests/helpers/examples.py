"""How many examples Hypothesis draws: few for whoever runs the tests, all with ``--hypothesis-profile=thorough``."""

from typing import Any

import pytest
from hypothesis import settings

FEW = 10


def up_to(number: int, few: int = FEW) -> int:
    """Return the number of examples of a test: at most ``few``, where each takes long, unless the profile draws all."""
    return number if settings.default.max_examples > FEW else min(number, few)


def seeds(usual: int, number: int) -> list[Any]:
    """Return the seeds of a test: the first ones, and as exhaustive cases all others."""
    return [*range(usual), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(usual, number))]
