"""Objectives: what a set of futures is compared by, as a weighted sum of measures of jobs; lower is better.

Source of the measures and weights: Zhang, Kurkure, Tao, Papka, Lan, "A real-time digital twin for adaptive scheduling",
arXiv 2512.18894, 2025 (SchedTwin): a quarter each of the longest wait, the greatest slowdown and the means of both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import attrs
import numpy as np

from simmodel.errors import InputError, unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["MEASURES", "OBJECTIVES", "Objective", "Scale", "comparable", "measure", "objective"]

Scale = Literal["min-max", "mean", "raw"]
TAU = 10.0  # s
_SAME = 1e-9  # what differs by less than this share of it differs by rounding

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
"""The unit of each measure and what it is."""


def measure(
    submit: ArrayLike,
    start: ArrayLike,
    run: ArrayLike,
    *,
    names: Iterable[str] = tuple(MEASURES),
    until: float | None = None,
    busy: float = math.nan,
    tau: float = TAU,
) -> dict[str, float]:
    """Return measures of a set of jobs; nan where there are none.

    The slowdown is ``(wait + run) / run`` (jobs that run for no time are left out), the bounded one ``max(1, (wait +
    run) / max(run, tau))``.

    Parameters
    ----------
    submit, start, run
        of each job, arrays of one length, in s; a start that is nan has not come
    names
        which of :data:`MEASURES`
    until
        what a job that has not started has waited to, s; default: the last start
    busy
        the utilisation, which is not that of these jobs alone
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
            values = waits + ran
        else:
            if what not in slow:
                slow[what] = _slowdowns(what, waits, ran, tau)
            values = slow[what]
        if not len(values):
            found[name] = math.nan
        else:
            found[name] = float(values.max() if statistic == "max" else values.mean())
    return found


def _slowdowns(kind: str, waits: NDArray[np.float64], ran: NDArray[np.float64], tau: float) -> NDArray[np.float64]:
    endless = np.isinf(ran)
    if endless.any():  # beside a run without an end no wait counts
        return np.append(_slowdowns(kind, waits[~endless], ran[~endless], tau), np.ones(np.count_nonzero(endless)))
    if kind == "bounded_slowdown":
        return np.maximum(1.0, (waits + ran) / np.maximum(ran, tau))
    if len(ran) and ran.min() > 0:
        return (waits + ran) / ran
    positive = ran > 0
    return (waits[positive] + ran[positive]) / ran[positive]


def comparable(values: ArrayLike, scale: Scale = "min-max") -> NDArray[np.float64]:
    """Return measures of several futures on one scale, whatever their units.

    Parameters
    ----------
    values
        of shape (futures, measures), less is better
    scale
        ``"min-max"``: of each measure the best future has 0 and the worst 1, and all 0 where they are alike; only the
        futures compared count, and small differences weigh as much as large ones. ``"mean"``: shares of the mean of
        the futures, so that a measure that hardly differs hardly counts. ``"raw"``: as they are. What cannot be told
        of some future counts for none, but on the raw scale

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
            raise InputError(f"a weight > 0 of {name} expected, found {weight!r}")
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"each measure once expected, found {name} {names.count(name)} times")
    return tuple((name, float(weight)) for name, weight in pairs)


@attrs.frozen
class Objective:
    """A weighted sum of measures, or a function, by which futures are compared; lower is better.

    ``utilisation`` counts as the share that is not used, so that here too less is better.

    Parameters
    ----------
    weights
        pairs of a measure of :data:`MEASURES` and its weight, > 0
    scale
        how measures of different units are made comparable: see :func:`comparable`
    tau
        the bound of the bounded slowdowns, s
    function
        instead of weights: ``function(future)`` returns a number

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
            raise InputError(f"scale {', '.join(get_args(Scale))} expected, found {self.scale!r}")
        if bool(self.weights) == (self.function is not None):
            raise InputError("an objective of weights or of a function expected, found " + str(self.weights or "none"))

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures it needs; of a function: none."""
        return tuple(name for name, _ in self.weights)

    @property
    def whole(self) -> float:
        """The sum of the weights: on the min-max scale the worst score there can be."""
        return sum(weight for _, weight in self.weights)

    def values(self, measured: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
        """Return what is weighed, of shape (futures, measures), in the measures' units, less being better."""
        table = np.array([[each[name] for name in self.measures] for each in measured], dtype=np.float64)
        if "utilisation" in self.measures and len(table):
            column = self.measures.index("utilisation")
            table[:, column] = 1.0 - table[:, column]
        return table

    def scores(self, measured: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
        """Return one score a future, from its measures; they mean something only beside each other.

        Parameters
        ----------
        measured
            of each future, measures as :func:`measure` returns them
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
"""What an objective may be given as: a name or terms, itself, weights by measure, or a function."""


def objective(given: ObjectiveLike) -> Objective:
    """Return an objective of a name, a text, a mapping or a function; an objective comes back as it is.

    Parameters
    ----------
    given
        a name of :data:`OBJECTIVES`; a text such as ``"0.25*wait_max+0.75*wait_mean"`` or ``"wait_max=0.25,
        wait_mean=0.75"`` (no weight: 1), with ``raw:``, ``mean:`` or ``min-max:`` before it for another scale;
        ``"module:name"`` of a function; measures and their weights; or a function of a future that returns a number,
        less being better

    Raises
    ------
    InputError
        where it is none of these

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
        raise InputError(f"an objective (a name, terms, weights or a function) expected, found {given!r}")
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
        raise InputError(f"WEIGHT*MEASURE or MEASURE=WEIGHT expected, found {text.strip()!r}")
    if len(parts) == 1:
        return parts[0], 1.0
    name, weight = parts if parts[0] in MEASURES else parts[::-1]
    try:
        return name, float(weight)
    except ValueError:
        raise InputError(f"a weight > 0 of {name} expected, found {weight!r}") from None


def _load(module: str, name: str) -> Callable[[Any], float]:
    """Return a function of one's own, given as ``module:name``."""
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        scales = ", ".join(get_args(Scale))
        raise InputError(
            f"objective '{module}:{name}': {scales} or a module before the colon expected: {error}"
        ) from None
    if not callable(found):
        raise InputError(f"objective '{module}:{name}': a function expected, found {found!r}")
    return found  # type: ignore[no-any-return]
