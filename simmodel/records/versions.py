"""The versions of the software on which a result depends."""

from __future__ import annotations

import platform

import numpy as np
import simpy

from simmodel import __version__

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Return the versions of simmodel, SimPy, numpy and Python, for storage with a result.

    >>> list(versions())
    ['simmodel', 'simpy', 'numpy', 'python']
    """
    return {
        "simmodel": __version__,
        "simpy": simpy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
