"""Closed forms of queues: mean waits and responses in the unit of time of the rates.

Sources: Kleinrock, Queueing Systems I and II (1975, 1976); Conway, Maxwell, Miller, Theory of Scheduling (1967);
Cobham, Operations Research 2(1), 1954. Classes are given from the most to the least urgent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def _stable(load: float) -> None:
    if not 0 <= load < 1:
        raise ValueError(f"load: must be from 0 to below 1, got {load!r}")


def erlang_c(arrival: float, service: float, servers: int) -> float:
    """Return the probability that an arrival waits in M/M/c.

    >>> round(erlang_c(1, 1, 2), 6)
    0.333333
    """
    offered = arrival / service
    _stable(offered / servers)
    blocked = 1.0  # Erlang B, by its recursion over the number of servers
    for n in range(1, servers + 1):
        blocked = offered * blocked / (n + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


def mmc_wait(arrival: float, service: float, servers: int = 1) -> float:
    """Return the mean wait before service in M/M/c.

    >>> mmc_wait(0.5, 1)
    1.0
    """
    return erlang_c(arrival, service, servers) / (servers * service - arrival)


def mg1_wait(arrival: float, mean: float, second_moment: float) -> float:
    """Return the mean wait before service in M/G/1 (Pollaczek-Khinchine).

    >>> mg1_wait(0.5, 1, 1)  # M/D/1
    0.5
    """
    _stable(arrival * mean)
    return arrival * second_moment / (2 * (1 - arrival * mean))


def priority_waits(arrivals: Sequence[float], means: Sequence[float], second_moments: Sequence[float]) -> list[float]:
    """Return the mean wait of each class in M/G/1 with non-preemptive priorities (Cobham).

    >>> [round(wait, 6) for wait in priority_waits([0.25, 0.25], [1, 1], [2, 2])]
    [0.666667, 1.333333]
    """
    _stable(sum(rate * mean for rate, mean in zip(arrivals, means, strict=True)))
    residual = sum(rate * second for rate, second in zip(arrivals, second_moments, strict=True)) / 2
    waits, above = [], 0.0
    for rate, mean in zip(arrivals, means, strict=True):
        upto = above + rate * mean
        waits.append(residual / ((1 - above) * (1 - upto)))
        above = upto
    return waits


def sjf_wait(arrival: float, density: Callable[[float], float], mean: float, second_moment: float) -> float:
    """Return the mean wait in M/G/1 with the shortest waiting job first, for a density of service times.

    >>> from math import exp
    >>> round(sjf_wait(0.5, lambda x: exp(-x), 1, 2), 4)  # below the 1 of first come, first served
    0.7127
    """
    from scipy.integrate import quad

    _stable(arrival * mean)

    def wait_of(size: float) -> float:
        load = arrival * quad(lambda x: x * density(x), 0, size)[0]
        return arrival * second_moment / 2 / (1 - load) ** 2

    return float(quad(lambda size: wait_of(size) * density(size), 0, 60 * mean, limit=200)[0])


def preemptive_responses(
    arrivals: Sequence[float], means: Sequence[float], second_moments: Sequence[float]
) -> list[float]:
    """Return the mean time in the system of each class in M/G/1 with preemptive-resume priorities.

    >>> preemptive_responses([0.25, 0.25], [1, 1], [2, 2])[0] == 1 / (1 - 0.25)  # sees only itself
    True
    """
    _stable(sum(rate * mean for rate, mean in zip(arrivals, means, strict=True)))
    responses, above, residual = [], 0.0, 0.0
    for rate, mean, second in zip(arrivals, means, second_moments, strict=True):
        upto = above + rate * mean
        residual += rate * second / 2
        responses.append(mean / (1 - above) + residual / ((1 - above) * (1 - upto)))
        above = upto
    return responses


def processor_sharing_response(arrival: float, mean: float, size: float | None = None) -> float:
    """Return the mean time in the system in M/G/1 with processor sharing, of all jobs or of jobs of one size.

    >>> processor_sharing_response(0.5, 1), processor_sharing_response(0.5, 1, size=3)
    (2.0, 6.0)
    """
    _stable(arrival * mean)
    return (mean if size is None else size) / (1 - arrival * mean)
