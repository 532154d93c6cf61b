"""Objectives for comparing futures: weighted sums of measures of jobs; lower is better.

Source of the measures and weights: Zhang, Kurkure, Tao, Papka, Lan, "A real-time digital twin for adaptive scheduling",
arXiv 2512.18894, 2025 (SchedTwin): a quarter each of the longest wait, the greatest slowdown and the means of both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.entries import load
from simmodel.foundation.errors import InputError, unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["MEASURES", "OBJECTIVES", "Objective", "Scale", "comparable", "measure", "objective"]

Scale = Literal["min-max", "mean", "raw"]
TAU = 10.0  # s
_SAME = 1e-9  # smaller relative differences are rounding errors

MEASURES: dict[str, tuple[str, str]] = {
    "wait_max": ("s", "longest wait"),
    "wait_mean": ("s", "mean wait"),
    "slowdown_max": ("", "greatest slowdown"),
    "slowdown_mean": ("", "mean slowdown"),
    "bounded_slowdown_max": ("", "greatest bounded slowdown"),
    "bounded_slowdown_mean": ("", "mean bounded slowdown"),
    "turnaround_mean": ("s", "mean turnaround"),
    "utilisation": ("", "utilisation (more is better)"),
}
"""The unit and the description of each measure."""


def measure(
    submit: ArrayLike,
    start: ArrayLike,
    run: ArrayLike,
    *,
    stopped: ArrayLike = 0.0,
    names: Iterable[str] = tuple(MEASURES),
    until: float | None = None,
    busy: float = math.nan,
    tau: float = TAU,
) -> dict[str, float]:
    """Return measures of a set of jobs; nan without jobs.

    The turnaround is ``wait + stopped + run``, the slowdown is that over ``run`` (without jobs of zero run time), and
    the bounded slowdown ``max(1, turnaround / max(run, tau))``.

    Parameters
    ----------
    submit, start, run
        arrays of equal length, one value per job, in s; a start of nan: not started; ``run``: without interruptions
    stopped
        the seconds between start and end that interrupted jobs did not need: of suspensions and work done in vain
    names
        names of :data:`MEASURES`
    until
        the end of the waits of jobs that have not started, s; default: the last start
    busy
        the utilisation, which includes other jobs
    tau
        the bound of the bounded slowdown, s

    >>> found = measure([0, 0], [10, 30], [10, 5], names=("wait_max", "wait_mean", "slowdown_max", "slowdown_mean"))
    >>> list(found.values())
    [30.0, 20.0, 7.0, 4.5]
    """
    begun = np.asarray(start, dtype=np.float64)
    if not len(begun):
        return dict.fromkeys(names, math.nan)
    ran = np.asarray(run, dtype=np.float64)
    if np.isnan(begun).any():
        begun = np.where(np.isnan(begun), np.nanmax(np.append(begun, submit)) if until is None else until, begun)
    waits = begun - np.asarray(submit, dtype=np.float64)
    late = waits + np.asarray(stopped, dtype=np.float64)
    found: dict[str, float] = {}
    slow: dict[str, NDArray[np.float64]] = {}
    for name in names:
        if name == "utilisation":
            found[name] = busy
            continue
        what, _, statistic = name.rpartition("_")
        if what == "wait":
            values = waits
        elif what == "turnaround":
            values = late + ran
        else:
            if what not in slow:
                slow[what] = _slowdowns(what, late, ran, tau)
            values = slow[what]
        if not len(values):
            found[name] = math.nan
        else:
            found[name] = float(values.max() if statistic == "max" else values.mean())
    return found


def _slowdowns(kind: str, waits: NDArray[np.float64], ran: NDArray[np.float64], tau: float) -> NDArray[np.float64]:
    endless = np.isinf(ran)
    if endless.any():  # the slowdown of an endless run is 1
        return np.append(_slowdowns(kind, waits[~endless], ran[~endless], tau), np.ones(np.count_nonzero(endless)))
    if kind == "bounded_slowdown":
        return np.maximum(1.0, (waits + ran) / np.maximum(ran, tau))
    if len(ran) and ran.min() > 0:
        return (waits + ran) / ran
    positive = ran > 0
    return (waits[positive] + ran[positive]) / ran[positive]


def comparable(values: ArrayLike, scale: Scale = "min-max") -> NDArray[np.float64]:
    """Return measures of several futures on a common scale, independent of their units.

    Parameters
    ----------
    values
        of shape (futures, measures), lower is better
    scale
        ``"min-max"``: each measure is 0 for the best future and 1 for the worst, 0 for all if they are equal; small
        differences weigh as much as large ones. ``"mean"``: relative to the mean of the futures, so that a measure
        that hardly differs hardly counts. ``"raw"``: unchanged. Except on the raw scale, a measure that is nan or
        infinite for any future counts for none

    >>> comparable([[100.0, 3.0], [300.0, 2.0], [200.0, 2.0]]).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.5, 0.0]]
    >>> comparable([[100.0, 3.0], [300.0, 1.0]], "mean").tolist()
    [[0.5, 1.5], [1.5, 0.5]]
    """
    table = np.array(values, dtype=np.float64)
    if scale == "raw" or not len(table):
        return table
    if scale == "mean":
        shift, unit = np.zeros(table.shape[1]), table.mean(axis=0)
        real = np.isfinite(unit) & (unit != 0)
    else:
        shift = table.min(axis=0)
        unit = table.max(axis=0) - shift
        real = unit > _SAME * np.abs(table).max(axis=0)
    scaled: NDArray[np.float64] = np.divide(table - shift, unit, out=np.zeros_like(table), where=real)
    return scaled


def _pairs(given: Any) -> tuple[tuple[str, float], ...]:
    pairs = tuple((str(name), weight) for name, weight in (given.items() if isinstance(given, Mapping) else given))
    for name, weight in pairs:
        if name not in MEASURES:
            raise unknown("measure", name, MEASURES)
        if not isinstance(weight, Real) or not 0 < float(weight) < math.inf:
            raise InputError(f"weight of {name} must be finite and > 0, got {weight!r}")
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"duplicate measure {name!r}")
    return tuple((name, float(weight)) for name, weight in pairs)


@attrs.frozen(repr=False)
class Objective(Fields):
    """A weighted sum of measures, or a function, for comparing futures; lower is better.

    ``utilisation`` enters as the unused share, so that lower is better for it too.

    Parameters
    ----------
    weights
        pairs of a measure of :data:`MEASURES` and its weight, > 0; or a mapping
    scale
        the scale on which measures are summed: see :func:`comparable`
    tau
        the bound of the bounded slowdowns, s
    function
        alternative to weights: ``function(future)`` returns a number

    >>> waits = Objective({"wait_max": 1, "wait_mean": 1})
    >>> waits.scores([{"wait_max": 10.0, "wait_mean": 5.0}, {"wait_max": 9.0, "wait_mean": 6.0}]).tolist()
    [1.0, 1.0]
    >>> print(waits)
    1*wait_max+1*wait_mean
    """

    weights: tuple[tuple[str, float], ...] = attrs.field(default=(), converter=_pairs)
    scale: Scale = attrs.field(default="min-max", kw_only=True)
    tau: float = attrs.field(default=TAU, kw_only=True)
    function: Callable[[Any], float] | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise unknown("scale", str(self.scale), get_args(Scale))
        if self.weights and self.function is not None:
            raise InputError("weights and function exclude each other", place="objective")
        if not self.weights and self.function is None:
            raise InputError("missing weights or function", place="objective")

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures it needs; none for a function."""
        return tuple(name for name, _ in self.weights)

    @property
    def whole(self) -> float:
        """The sum of the weights: the worst possible score on the min-max scale."""
        return sum(weight for _, weight in self.weights)

    def values(self, measured: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
        """Return the terms before scaling and weighting, of shape (futures, measures); lower is better."""
        table = np.array([[each[name] for name in self.measures] for each in measured], dtype=np.float64)
        if "utilisation" in self.measures and len(table):
            column = self.measures.index("utilisation")
            table[:, column] = 1.0 - table[:, column]
        return table

    def scores(self, measured: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
        """Return one score per future; scores are comparable only within one call.

        Parameters
        ----------
        measured
            the measures of each future, from :func:`measure`
        """
        scores: NDArray[np.float64] = comparable(self.values(measured), self.scale) @ self._vector
        return scores

    @property
    def _vector(self) -> NDArray[np.float64]:
        return np.array([weight for _, weight in self.weights])

    def __str__(self) -> str:
        if self.function is not None:
            return getattr(self.function, "__name__", "function")
        terms = "+".join(f"{weight:g}*{name}" for name, weight in self.weights)
        return terms if self.scale == "min-max" else f"{self.scale}:{terms}"


_QUARTERS = ("wait_max", "slowdown_max", "wait_mean", "slowdown_mean")
OBJECTIVES: dict[str, Objective] = {"schedtwin": Objective(dict.fromkeys(_QUARTERS, 0.25))}
"""Objectives by name."""


ObjectiveLike: TypeAlias = str | Objective | Mapping[str, float] | Callable[[Any], float]
"""An objective as users pass it: a name, terms, an :class:`Objective`, weights by measure, or a function."""


def objective(given: ObjectiveLike) -> Objective:
    """Return the objective of a name, a text, a mapping or a function; an objective is returned unchanged.

    Parameters
    ----------
    given
        a name of :data:`OBJECTIVES`; a text such as ``"0.25*wait_max+0.75*wait_mean"`` or ``"wait_max=0.25,
        wait_mean=0.75"`` (default weight: 1), optionally after a scale (``raw:``, ``mean:`` or ``min-max:``);
        ``"module:name"`` of a function; a mapping of measures to weights; or a function of a future that returns a
        number, lower is better

    Raises
    ------
    InputError
        none of these, or an invalid term

    >>> print(objective("wait_mean"), objective("raw: wait_max=0.5, slowdown_max=2"), objective("schedtwin").scale)
    1*wait_mean raw:0.5*wait_max+2*slowdown_max min-max
    """
    if isinstance(given, Objective):
        return given
    if isinstance(given, Mapping):
        return Objective(given)
    if callable(given):
        return Objective(function=given)
    if not isinstance(given, str):
        raise InputError(f"must be a name, terms, weights or a function, got {given!r}", place="objective")
    text = given.strip()
    if text in OBJECTIVES:
        return OBJECTIVES[text]
    scale, colon, terms = text.partition(":")
    if colon and scale.strip() not in get_args(Scale):
        return Objective(function=_load(scale.strip(), terms.strip()))
    options: Any = {"scale": scale.strip()} if colon else {}
    try:
        return Objective([_term(each) for each in _BETWEEN.split(terms if colon else text)], **options)
    except InputError as error:
        raise InputError(f"objective {given!r}: {error.message}") from None


_BETWEEN = re.compile(r"(?<!\d[eE])\+|,")  # 1e+3 is one number


def _term(text: str) -> tuple[str, float]:
    """Return the measure and the weight of a term such as ``0.25*wait_max``, ``wait_max=0.25`` or ``wait_max``."""
    parts = [part.strip() for part in re.split("[*=]", text)]
    if len(parts) > 2 or not all(parts):
        raise InputError(f"must be WEIGHT*MEASURE or MEASURE=WEIGHT, got {text.strip()!r}")
    if len(parts) == 1:
        return parts[0], 1.0
    name, weight = parts if parts[0] in MEASURES else parts[::-1]
    try:
        return name, float(weight)
    except ValueError:
        raise InputError(f"weight of {name} must be finite and > 0, got {weight!r}") from None


def _load(module: str, name: str) -> Callable[[Any], float]:
    """Return the custom function ``module:name``."""
    try:
        found: object = load(f"{module}:{name}")
    except (ImportError, AttributeError, ValueError) as error:
        scales = ", ".join(get_args(Scale))
        raise InputError(
            f"neither scale ({scales}) nor module:function: {error}",
            place=f"objective '{module}:{name}'",
        ) from None
    if not callable(found):
        raise InputError(f"must be a function, got {found!r}", place=f"objective '{module}:{name}'")
    return found
