"""The random stream of a generator: passed in, or made from a seed."""

from __future__ import annotations

import numpy as np

__all__ = ["stream"]


def stream(rng: np.random.Generator | None, seed: int | None) -> np.random.Generator:
    """Return ``rng``, or a stream with this seed, or by default the stream with seed 0.

    Raises
    ------
    ValueError
        both are passed

    >>> stream(None, 0).random() == stream(None, None).random()
    True
    """
    if rng is None:
        return np.random.default_rng(seed if seed is not None else 0)
    if seed is not None:
        raise ValueError("rng and seed exclude each other")
    return rng
