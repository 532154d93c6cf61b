"""The Lublin-Feitelson model: sizes, run times and arrivals of rigid jobs on parallel machines.

Source: Lublin, Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
Journal of Parallel and Distributed Computing 63(11), 2003. The model has no requested times: see
:mod:`simmodel.generators.estimates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.generators.distributions import stream
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BATCH", "INTERACTIVE", "TYPELESS", "LublinClass", "bucket_weights", "lublin"]

_BUCKETS = 48
_BUCKET = 1800.0
_DAY = _BUCKETS * _BUCKET
_FIRST = 11  # the bucket at which the cyclic day of the gamma distribution starts


def _share(_instance: LublinClass, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{attribute.name}: must be a share from 0 to 1, got {value!r}")


def _above_zero(_instance: LublinClass, attribute: attrs.Attribute[float], value: float) -> None:
    if not value > 0:
        raise InputError(f"{attribute.name}: must be > 0, got {value!r}")


@attrs.frozen(kw_only=True, repr=False)
class LublinClass(Fields):
    """The parameters of one class of jobs, for a machine of 128 processors.

    Parameters
    ----------
    name
        name of the class
    queue
        the queue of its jobs (the model's authors number interactive 0 and batch 1)
    serial
        share of the jobs with one processor
    power_of_two
        share of all jobs with a power of two of processors, the serial ones not counted
    u_low, u_med, u_high, u_prob
        two-stage uniform distribution of log2 of a parallel job's size: from ``u_low`` to ``u_med`` with probability
        ``u_prob``, else from ``u_med`` to ``u_high``
    a1, b1, a2, b2
        shapes and scales of two gamma distributions of the natural logarithm of the run time in seconds
    pa, pb
        the first of these is used with probability ``pa * processors + pb``, clipped to 0 ... 1
    a_arrival, b_arrival
        shape and scale of the gamma distribution of the natural logarithm of the seconds between arrivals in rush hours
    rush_to_day
        factor on ``a_arrival`` from the rush hours' distribution to that of the whole day
    a_number, b_number
        shape and scale of the gamma distribution of arrivals over the half-hours of the daily cycle
    max_log_run, max_log_arrival
        upper limits of the logarithms of run times and gaps in seconds; larger values are drawn again

    >>> attrs.evolve(TYPELESS, serial=0.5).serial
    0.5
    """

    name: str
    queue: int = -1
    serial: float = attrs.field(validator=_share)
    power_of_two: float = attrs.field(validator=_share)
    u_low: float
    u_med: float
    u_high: float
    u_prob: float = attrs.field(validator=_share)
    a1: float = attrs.field(validator=_above_zero)
    b1: float = attrs.field(validator=_above_zero)
    a2: float = attrs.field(validator=_above_zero)
    b2: float = attrs.field(validator=_above_zero)
    pa: float
    pb: float
    a_arrival: float = attrs.field(validator=_above_zero)
    b_arrival: float = attrs.field(validator=_above_zero)
    rush_to_day: float = attrs.field(validator=_above_zero)
    a_number: float = attrs.field(validator=_above_zero)
    b_number: float = attrs.field(validator=_above_zero)
    max_log_run: float = attrs.field(default=12.0, validator=_above_zero)
    max_log_arrival: float = attrs.field(default=13.0, validator=_above_zero)

    def for_machine(self, processors: int) -> LublinClass:
        """Return the class for a machine of another size: ``u_med`` and ``u_high`` shift with log2 of the size.

        >>> BATCH.for_machine(256).u_high, BATCH.for_machine(256).u_med
        (8.0, 6.0)
        """
        shift = math.log2(processors / 128)
        u_high = self.u_high + shift
        u_med = min(max(self.u_med + shift, self.u_low), max(u_high, self.u_low))
        return attrs.evolve(self, u_med=u_med, u_high=max(u_high, u_med))


BATCH = LublinClass(
    name="batch",
    queue=1,
    serial=0.2927,
    power_of_two=0.6686,
    u_low=1.2,
    u_med=5.0,
    u_high=7.0,
    u_prob=0.875,
    a1=6.57,
    b1=0.823,
    a2=639.1,
    b2=0.0156,
    pa=-0.003,
    pb=0.6986,
    a_arrival=6.0415,
    b_arrival=0.8531,
    rush_to_day=1.0519,
    a_number=6.1271,
    b_number=5.2740,
)
"""Batch jobs."""

INTERACTIVE = LublinClass(
    name="interactive",
    queue=0,
    serial=0.1541,
    power_of_two=0.625,
    u_low=1.0,
    u_med=3.0,
    u_high=5.5,
    u_prob=0.705,
    a1=3.8351,
    b1=0.6605,
    a2=7.073,
    b2=0.6856,
    pa=-0.0118,
    pb=0.9156,
    a_arrival=6.5510,
    b_arrival=0.6621,
    rush_to_day=0.9797,
    a_number=8.9186,
    b_number=3.6680,
)
"""Interactive jobs."""

TYPELESS = LublinClass(
    name="typeless",
    serial=0.244,
    power_of_two=0.576,
    u_low=0.8,
    u_med=4.5,
    u_high=7.0,
    u_prob=0.86,
    a1=4.2,
    b1=0.94,
    a2=312.0,
    b2=0.03,
    pa=-0.0054,
    pb=0.78,
    a_arrival=10.2303,
    b_arrival=0.4871,
    rush_to_day=1.0225,
    a_number=8.1737,
    b_number=3.9631,
)
"""All jobs as one class."""


def lublin(
    jobs: int,
    processors: int = 128,
    classes: Sequence[LublinClass] = (BATCH, INTERACTIVE),
    *,
    rng: np.random.Generator | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Workload:
    """Generate a workload with the Lublin-Feitelson model.

    It starts at midnight. The clock is exact; submit times are rounded down to whole seconds only at the end (the
    authors' program rounds at each arrival and so loses its daily cycle after some ten thousand jobs).

    Parameters
    ----------
    jobs
        number of jobs
    processors
        the size of the machine, to which the classes are scaled (:meth:`LublinClass.for_machine`)
    classes
        classes of jobs with independent arrivals: ``(BATCH, INTERACTIVE)``, ``(TYPELESS,)`` or custom ones
    rng, seed
        the random stream, or its seed; default: seed 0
    name
        the workload's name; default: ``lublin-`` and the machine's size

    Raises
    ------
    InputError
        ``jobs`` or ``processors`` is below 1, or there is no class

    >>> log = lublin(1000, 128, seed=1)
    >>> log
    <Workload lublin-128: 1000 jobs, 128 processors>
    >>> bool((log["processors"] <= 128).all())
    True
    """
    for what, count in (("jobs", jobs), ("processors", processors), ("classes", len(classes))):
        if count < 1:
            raise InputError(f"{what}: must be >= 1, got {count}")
    streams = stream(rng, seed).spawn(3)
    submit, kind = _arrivals(jobs, classes, streams[0])
    size = np.empty(jobs, np.int64)
    run = np.empty(jobs)
    for number, each in enumerate(classes):
        chosen = np.flatnonzero(kind == number)
        size[chosen] = _sizes(len(chosen), each.for_machine(processors), processors, streams[1])
        run[chosen] = _runs(size[chosen], each, streams[2])
    queues = np.array([each.queue for each in classes], np.int64)[kind]
    return Workload(
        {
            "submit": np.floor(submit),
            "run": run,
            "processors": size,
            "requested_processors": size,
            "status": np.ones(jobs, np.int64),
            **({"queue": queues} if (queues >= 0).any() else {}),
        },
        name=name or f"lublin-{processors}",
        processors=processors,
        header={
            "Note": f"generated by the Lublin-Feitelson model, classes {', '.join(each.name for each in classes)}",
            "MaxProcs": str(processors),
        },
    )


def _draw_below(
    limit: float, count: int, draw: Callable[[NDArray[np.intp]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Draw ``count`` values; draw those above the limit again until none is left."""
    rows = np.arange(count)
    values = np.empty(count)
    while len(rows):
        values[rows] = draw(rows)
        rows = rows[values[rows] > limit]
    return values


def _sizes(count: int, each: LublinClass, processors: int, rng: np.random.Generator) -> NDArray[np.int64]:
    lot = rng.random(count)
    stage, place = rng.random(count), rng.random(count)
    low = np.where(stage <= each.u_prob, each.u_low, each.u_med)
    high = np.where(stage <= each.u_prob, each.u_med, each.u_high)
    exponent = low + (high - low) * place
    exponent = np.where(lot <= each.serial + each.power_of_two, np.floor(exponent + 0.5), exponent)
    size = np.floor(2.0**exponent + 0.5).astype(np.int64)
    size[lot <= each.serial] = 1
    return np.minimum(size, processors)  # a rounded exponent can exceed a machine whose size is no power of two


def _runs(size: NDArray[np.int64], each: LublinClass, rng: np.random.Generator) -> NDArray[np.float64]:
    share = np.clip(each.pa * size + each.pb, 0.0, 1.0)

    def draw(rows: NDArray[np.intp]) -> NDArray[np.float64]:
        first = rng.random(len(rows)) < share[rows]
        return rng.gamma(np.where(first, each.a1, each.a2), np.where(first, each.b1, each.b2))

    run: NDArray[np.float64] = np.floor(np.exp(_draw_below(each.max_log_run, len(size), draw)))
    return run


def _arrivals(
    jobs: int, classes: Sequence[LublinClass], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the first ``jobs`` arrivals of all classes, in order, and the class of each."""
    streams = rng.spawn(len(classes))
    points = [np.empty(0) for _ in classes]  # cumulative
    wanted = max(64, jobs // len(classes) // 2)
    while True:
        for number, each in enumerate(classes):
            draw = _log_arrivals(each, streams[number])
            logs = _draw_below(each.max_log_arrival, wanted, draw)
            last = points[number][-1] if len(points[number]) else 0.0
            points[number] = np.concatenate([points[number], last + np.cumsum(np.exp(logs) / _BUCKET)])
        times = [_clock(each, found) for each, found in zip(classes, points, strict=True)]
        known_until = min(found[-1] for found in times)  # later arrivals of some class may not be drawn yet
        if sum(int(np.searchsorted(found, known_until, side="right")) for found in times) >= jobs:
            break
    merged = np.concatenate(times)
    kind = np.repeat(np.arange(len(classes)), [len(found) for found in times])
    order = np.lexsort((kind, merged))[:jobs]
    return merged[order], kind[order]


def _log_arrivals(each: LublinClass, rng: np.random.Generator) -> Callable[[NDArray[np.intp]], NDArray[np.float64]]:
    return lambda rows: rng.gamma(each.a_arrival * each.rush_to_day, each.b_arrival, len(rows))


def _clock(each: LublinClass, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the times at which points are collected: each half-hour contributes its weight."""
    collected = np.concatenate([[0.0], np.cumsum(bucket_weights(each.a_number, each.b_number))])
    days = np.floor(points / collected[-1])
    of_day = np.interp(points - days * collected[-1], collected, np.arange(_BUCKETS + 1) * _BUCKET)
    times: NDArray[np.float64] = days * _DAY + of_day
    return times


def bucket_weights(a: float, b: float) -> NDArray[np.float64]:
    """Return the relative arrival rate of each half-hour of the day from midnight; the mean is 1.

    Parameters
    ----------
    a, b
        shape and scale of the gamma distribution of the daily cycle, in half-hours

    >>> bucket_weights(BATCH.a_number, BATCH.b_number)[[0, 26, 47]].round(4)
    array([0.5462, 1.6659, 0.5939])
    """
    places = np.arange(_FIRST, _FIRST + _BUCKETS)
    raw = np.array([_gamma_cdf(a, (i + 0.5) / b) - _gamma_cdf(a, (i - 0.5) / b) for i in places.tolist()])
    weights = np.empty(_BUCKETS)
    weights[(places - 1) % _BUCKETS] = raw
    weights /= weights.mean()
    return weights


@lru_cache(maxsize=1024)
def _gamma_cdf(a: float, x: float) -> float:
    """Return the regularised lower incomplete gamma function, by its series (enough for the few values needed)."""
    term = total = 1.0 / a
    n = 0
    while term > total * 1e-17:
        n += 1
        term *= x / (a + n)
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))
