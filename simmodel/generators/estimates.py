"""Requested times as users estimate them: few round values, far above the run times, the maximum most popular.

Source: Tsafrir, Etsion, Feitelson, "Modeling user runtime estimates", JSSPP 2005: the number of distinct estimates, the
number of jobs that share each, and their values. The order of the 20 most popular values differs from log to log; the
order here (:data:`POPULAR`) is a choice of this package.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.generators.distributions import stream, whole_counts
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["POPULAR", "distinct_estimates", "estimate_times", "popularity", "user_estimates", "with_estimates"]

_MINUTE, _HOUR = 60.0, 3600.0
_HEAD = 20
_HEAD_SHARE = 0.89

POPULAR: tuple[float, ...] = (
    *(_HOUR, 2 * _HOUR, 30 * _MINUTE, 12 * _HOUR, 15 * _MINUTE, 10 * _MINUTE, 4 * _HOUR, 5 * _MINUTE),
    *(3 * _HOUR, 6 * _HOUR, 20 * _MINUTE, 18 * _HOUR, 8 * _HOUR, 5 * _HOUR, 10 * _HOUR),
)
"""Popular estimates in s, most popular first; the maximum is more popular than any of them."""

_ROUND = tuple(_HOUR * n for n in (200, 100, 50, 10, 5, 2, 1)) + tuple(_MINUTE * n for n in (20, 10, 5))


_LONGEST = 1e12  # s; whole minutes stay exact far beyond


def distinct_estimates(jobs: int) -> int:
    """Return the number of distinct estimates among a number of jobs.

    >>> distinct_estimates(200), distinct_estimates(10_000), distinct_estimates(1_000_000) > 565
    (20, 90, True)
    """
    at, count = (0, 20, 200, 1000, 10_000, 70_000, 250_000), (0, 10, 20, 35, 90, 340, 565)
    if jobs > at[-1]:
        return round(count[-1] * math.pow(jobs / at[-1], 0.547761))
    return max(1, round(float(np.interp(jobs, at, count))))


def popularity(distinct: int) -> NDArray[np.float64]:
    """Return the shares of jobs by popularity rank of their estimate; they add up to 1.

    The 20 most popular hold 89 % of the jobs.

    >>> popularity(100)[:3].round(3)
    array([0.217, 0.103, 0.087])
    >>> round(float(popularity(100)[:20].sum()), 6)
    0.89
    """
    rank = np.arange(1, distinct + 1)
    shares = (14.0491 * np.exp(-0.177531 * rank) + 0.462513) / 100
    if distinct <= _HEAD:
        shares[0] = max(shares[0], _HEAD_SHARE - shares[1:].sum())
    else:
        shares[0] = _HEAD_SHARE - shares[1:_HEAD].sum()
        tail = rank[_HEAD:] ** -2.267
        shares[_HEAD:] = tail / tail.sum() * (1 - _HEAD_SHARE)
    result: NDArray[np.float64] = shares / shares.sum()
    return result


def estimate_times(distinct: int, maximum: float, popular: Sequence[float] = POPULAR) -> NDArray[np.float64]:
    """Return the distinct estimates in s, most popular first; at most one per whole minute.

    Parameters
    ----------
    distinct
        number of estimates
    maximum
        the largest estimate, s
    popular
        the most popular estimates after the maximum, s; those above the maximum are ignored

    >>> (estimate_times(8, 36 * 3600) / 60).tolist()
    [2160.0, 60.0, 120.0, 30.0, 720.0, 15.0, 10.0, 240.0]
    """
    distinct = max(1, min(distinct, int(maximum // _MINUTE)))
    head = dict.fromkeys([maximum, *(time for time in popular if time < maximum)])
    for unit in _ROUND:
        for multiple in range(math.ceil(maximum / unit) - 1, 0, -1):
            if len(head) >= _HEAD:
                break
            head.setdefault(multiple * unit)
    chosen = list(head)[: min(_HEAD, distinct)]
    return np.array([*chosen, *_tail(distinct, maximum, chosen)])


def _tail(distinct: int, maximum: float, head: Sequence[float]) -> list[float]:
    """Return the other estimates, in whole minutes; popular ones are spread over all lengths."""
    count = distinct - len(head)
    if count <= 0:
        return []
    a = 1 + 12.1039 * distinct**-0.6026
    rank = np.arange(1, distinct + 1) / distinct
    minutes = np.round((a - 1) * rank / (a - rank) * maximum / _MINUTE).astype(int).tolist()
    for time in head:  # each replaces the nearest one
        del minutes[min(range(len(minutes)), key=lambda i: (abs(minutes[i] * _MINUTE - time), i))]
    taken = {round(time / _MINUTE) for time in head}
    tail = []
    for minute in minutes:
        free = max(1, minute)
        while free in taken or free * _MINUTE > maximum:
            free = free + 1 if free * _MINUTE <= maximum else 1
        taken.add(free)
        tail.append(free * _MINUTE)
    stride = next(step for step in range(round(count * 0.618) or 1, count + 2) if math.gcd(step, count) == 1)
    return [tail[(place * stride) % count] for place in range(count)]


def user_estimates(
    runs: ArrayLike,
    maximum: float | None = None,
    rng: np.random.Generator | None = None,
    *,
    seed: int | None = None,
    distinct: int | None = None,
    popular: Sequence[float] = POPULAR,
) -> NDArray[np.float64]:
    """Draw a requested time for each run time, as users would estimate it; none is below its run time.

    The model determines the number of jobs with each estimate. Estimates are dealt at random, to the longest job first,
    among those that are long enough. If none is left, the longest remaining one is raised to the next value of the
    model.

    Parameters
    ----------
    runs
        run times in s, one-dimensional; nan accepts any estimate
    maximum
        the largest estimate in s; default: the longest run, rounded up to a whole hour
    rng, seed
        the random stream, or its seed; default: seed 0
    distinct
        number of distinct estimates; default: :func:`distinct_estimates`
    popular
        the most popular estimates after the maximum, s

    Raises
    ------
    InputError
        the maximum is below the longest run

    >>> estimates = user_estimates([10.0, 4000.0, 100.0, 90000.0], seed=1)
    >>> bool((estimates >= [10.0, 4000.0, 100.0, 90000.0]).all()), float(estimates.max()) / 3600
    (True, 25.0)
    """
    times = np.nan_to_num(np.asarray(runs, dtype=np.float64), nan=0.0)
    if not len(times):
        return np.empty(0)
    longest = float(times.max())
    if maximum is None:
        maximum = max(1.0, math.ceil(longest / _HOUR)) * _HOUR
    if maximum < longest or maximum <= 0:
        raise InputError(f"maximum: must be at least the longest run ({longest:g} s), got {maximum:g}")
    if not maximum <= _LONGEST:
        raise InputError(f"maximum: must be at most {_LONGEST:g} s, got {maximum:g}")
    values = estimate_times(distinct or distinct_estimates(len(times)), maximum, popular)
    counts = whole_counts(popularity(len(values)), len(times))
    return _deal(times, values, counts, stream(rng, seed))


def _deal(
    runs: NDArray[np.float64], values: NDArray[np.float64], counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    largest_first = np.argsort(-values, kind="stable")
    hand = np.repeat(values[largest_first], counts[largest_first]).tolist()
    ladder = np.sort(values)
    order = np.argsort(-runs, kind="stable")
    picks = rng.random(len(runs)).tolist()
    dealt = []
    pool: list[float] = []
    at = 0
    for run, pick in zip(runs[order].tolist(), picks, strict=True):
        while at < len(hand) and hand[at] >= run:
            pool.append(hand[at])
            at += 1
        if pool:
            place = int(pick * len(pool))
            dealt.append(pool[place])
            pool[place] = pool[-1]
            pool.pop()
        else:
            dealt.append(float(ladder[np.searchsorted(ladder, run)]))
            at += 1  # the longest remaining one, raised
    estimates = np.empty(len(runs))
    estimates[order] = dealt
    return estimates


def with_estimates(
    workload: Workload,
    maximum: float | None = None,
    rng: np.random.Generator | None = None,
    *,
    seed: int | None = None,
    distinct: int | None = None,
    popular: Sequence[float] = POPULAR,
) -> Workload:
    """Return the workload with requested times drawn by :func:`user_estimates`; its parameters apply.

    >>> from simmodel.generators import lublin
    >>> log = with_estimates(lublin(500, 128, seed=1), seed=1)
    >>> bool((log["requested"] >= log["run"]).all())
    True
    """
    requested = user_estimates(workload["run"], maximum, rng, seed=seed, distinct=distinct, popular=popular)
    return workload.replace(requested=requested)
