"""Cases by area: each a name and a function without parameters that returns its figure, or its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = Callable[[], Any]
AREAS: dict[str, dict[str, Case]] = {}
TEXTS: dict[str, dict[str, Case]] = {}


def case(area: str, name: str, make: Case) -> None:
    """Add a case of figures."""
    cases = AREAS.setdefault(area, {})
    if name in cases:
        raise ValueError(f"two cases of {area} are called {name}")
    cases[name] = make


def text(area: str, name: str, make: Case) -> None:
    """Add a case of text."""
    cases = TEXTS.setdefault(area, {})
    if name in cases:
        raise ValueError(f"two texts of {area} are called {name}")
    cases[name] = make


def load() -> None:
    """Fill the areas."""
    from tests.lock.areas import load_all

    if not AREAS:
        load_all()
