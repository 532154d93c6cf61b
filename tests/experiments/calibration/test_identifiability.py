"""What a record fixes of parameters, in twenty kinds of models: each alone, only together, not at all, up to a sign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from simmodel.experiments import Calibration, calibrate

COUNT = 150
Columns = Any


@attrs.frozen
class Kind:
    """A kind of model: its walltimes from CPU times, cores and parameters, with how each parameter is known.

    ``known`` has a letter per parameter: i(dentified), r(idged), f(lat), s(everal). ``least`` and ``most`` bound each
    hidden value; ranges are multiples of it, and of both signs where ``signed`` says so.
    """

    walltime: Callable[..., Columns]
    bounds: dict[str, tuple[float, float]]
    known: str
    together: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    scale: str = "linear"


S, LONG = (0.5, 2.0), (20.0, 80.0)
KINDS = {
    "speed and setup": Kind(lambda t, c, v, s: t / v + s, {"v": S, "s": LONG}, "ii"),
    "sum": Kind(lambda t, c, v, p, s: t / v + p + s, {"v": S, "p": LONG, "s": LONG}, "irr", ("p + s",)),
    "weighted sum": Kind(lambda t, c, v, p, s: t / v + 2 * p + s, {"v": S, "p": LONG, "s": LONG}, "irr", ("2 p + s",)),
    "sum of three": Kind(
        lambda t, c, v, p, q, s: t / v + p + q + s, {"v": S, "p": LONG, "q": LONG, "s": LONG}, "irrr", ("p + q + s",)
    ),
    "difference": Kind(lambda t, c, v, p, s: t / v + 100 + p - s, {"v": S, "p": LONG, "s": LONG}, "irr", ("p - s",)),
    "product": Kind(lambda t, c, a, b, s: t / (a * b) + s, {"a": S, "b": S, "s": LONG}, "rri", ("a * b",)),
    "product of three": Kind(lambda t, c, a, b, d: t / (a * b * d), {"a": S, "b": S, "d": S}, "rrr", ("a * b * d",)),
    "quotient": Kind(lambda t, c, a, b: t * a / b, {"a": S, "b": S}, "rr", ("a / b",)),
    "power": Kind(lambda t, c, a, b: t * a**2 / b, {"a": S, "b": S}, "rr", ("a^2 / b",)),
    "sum as a factor": Kind(lambda t, c, a, b: t * (a + b), {"a": S, "b": S}, "rr", ("a + b",)),
    "two pairs": Kind(
        lambda t, c, a, b, p, s: t * a * b + p + s,
        {"a": S, "b": S, "p": LONG, "s": LONG},
        "rrrr",
        ("a * b", "p + s"),
    ),
    "square": Kind(lambda t, c, k: t * (1.5 + k * k), {"k": (0.6, 1.5)}, "s", signed=("k",)),
    "square beside a speed": Kind(
        lambda t, c, v, k: t / v + 30 * k * k, {"v": S, "k": (1.0, 2.0)}, "is", signed=("k",)
    ),
    "square on one side": Kind(lambda t, c, k: t * (1.5 + k * k), {"k": (0.8, 1.5)}, "i"),
    "unused": Kind(lambda t, c, v, u: t / v, {"v": S, "u": LONG}, "if"),
    "plateau": Kind(lambda t, c, v, s: t / min(v, 0.4) + s, {"v": S, "s": LONG}, "fi"),
    "below the plateau": Kind(lambda t, c, v, s: t / min(v, 4.0) + s, {"v": S, "s": LONG}, "ii"),
    "serial share": Kind(lambda t, c, v, f: t / v * (f + (1 - f) / c), {"v": S, "f": (0.1, 0.4)}, "ii", scale="log"),
    "cost per core": Kind(
        lambda t, c, v, p, s: t / v + p * c + s, {"v": S, "p": (10.0, 40.0), "s": (60.0, 120.0)}, "iii"
    ),
    "logarithmic": Kind(
        lambda t, c, v, e, s: t / v / e + s, {"v": S, "e": S, "s": LONG}, "rri", ("v * e",), scale="log"
    ),
}
LETTERS = {"identified": "i", "ridged": "r", "flat": "f", "several": "s", "no interval": "n"}


def drawn(kind: Kind, seed: int, method: str | None = None) -> tuple[Calibration, dict[str, float]]:
    """Return the calibration of a drawn model of a kind, and the hidden values."""
    rng = np.random.default_rng(seed)
    seconds, cores = rng.lognormal(5, 1, COUNT), rng.choice([1, 2, 4, 8], COUNT)
    hidden = {name: float(rng.uniform(*bounds)) for name, bounds in kind.bounds.items()}
    factor = (10, 1000)[seed % 2]
    ranges: dict[str, Any] = {}
    for name, value in hidden.items():
        width = value * factor
        low = -width if name in kind.signed else value / factor if kind.scale == "log" else 0
        ranges[name] = (low, 1 if name == "f" else width, kind.scale)

    def model(**values: float) -> dict[str, Columns]:
        with np.errstate(divide="ignore"):  # a speed of 0
            return {"walltime": np.maximum(kind.walltime(seconds, cores, **values), 1e-3)}

    named = f"lambda {', '.join(hidden)}: model({', '.join(f'{name}={name}' for name in hidden)})"
    function = eval(named, {"model": model})
    record = {"walltime": model(**hidden)["walltime"] * rng.lognormal(0, 0.1, COUNT)}
    return calibrate(function, record, ranges, method=method), hidden


def verdicts(found: Calibration) -> str:
    """Return the verdicts by their letters."""
    return "".join(LETTERS[each.verdict] for each in found.identified)


@pytest.mark.parametrize(
    "draws", [1, pytest.param(4, marks=pytest.mark.long), pytest.param(50, marks=pytest.mark.exhaustive)]
)
def test_twenty_kinds_of_models_get_the_right_verdicts(draws: int) -> None:
    wrong, alarms, named, all_named = Counter[str](), 0, 0, 0
    for name, kind in KINDS.items():
        for seed in range(draws):
            found, _ = drawn(kind, seed)
            got = verdicts(found)
            wrong[name] += got != kind.known
            alarms += any(is_ != "i" for is_, should in zip(got, kind.known, strict=True) if should == "i")
            texts = {each.together.partition(" = ")[0] for each in found.identified if each.together}
            named += texts == set(kind.together) if kind.together else 0
            all_named += bool(kind.together)
    total = draws * len(KINDS)
    print(
        f"\n{total - wrong.total()} of {total} right, {alarms} false alarms, {named} of {all_named} combinations named"
    )
    print({name: count for name, count in wrong.items() if count})
    assert wrong.total() <= 0.05 * total
    assert alarms <= 0.01 * total
    assert named >= 0.95 * all_named
