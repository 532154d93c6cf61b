"""Jobs with traffic in plain Python: the rule of rates in rounds, and a run from start to start and end to end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import fsum, inf
from typing import NamedTuple

Uses = Mapping[str, float]


class Talker(NamedTuple):
    """A job: its start (s), what it moves over each link or does on each processor in all."""

    start: float
    uses: Uses


def fair_bottleneck(capacities: Mapping[str, float], jobs: Sequence[Uses], pipes: Collection[str] = ()) -> list[float]:
    """Return the progress per second of jobs by the rule of SimGrid's parallel tasks, link by link and job by job.

    Of the jobs over one of the ``pipes``, SimGrid's fatpipes, only the smallest step is counted in a round.
    """
    rates, steps = [0.0] * len(jobs), [0.0] * len(jobs)
    users = {name: [i for i, uses in enumerate(jobs) if uses.get(name)] for name in capacities}
    room = {name: capacities[name] for name in capacities if users[name]}
    rising = {i for i, uses in enumerate(jobs) if any(uses.values())}
    rates = [0.0 if i in rising else inf for i in range(len(jobs))]
    while rising:
        share = {}
        for name in room:
            count = len(rising.intersection(users[name]))
            share[name] = room[name] / (1 if name in pipes else count) if count else inf
        for i in rising:
            steps[i] = min(share[name] / amount for name, amount in jobs[i].items() if amount)
            rates[i] += steps[i]
        for name in room:
            taken = [jobs[i][name] * steps[i] for i in users[name]]  # also of those that are done
            room[name] -= min(taken) if name in pipes else fsum(taken)
        spent = [name for name in room if room[name] <= 1e-12 * capacities[name]]
        rising -= {i for name in spent for i in users[name]}
    return rates


def play(
    capacities: Mapping[str, float],
    jobs: Sequence[Talker],
    rates_of: Callable[[list[int]], list[float]],
    look: Callable[[float, dict[int, float]], object] = lambda _now, _rates: None,
) -> list[float]:
    """Return the ends (s) of jobs whose rates are asked for whenever one starts or ends; ``look`` is told of these."""
    left, ends, now = {}, [inf] * len(jobs), 0.0
    coming = sorted(range(len(jobs)), key=lambda i: jobs[i].start)
    while coming or left:
        order = sorted(left)
        rates = dict(zip(order, rates_of(order), strict=True))
        look(now, rates)
        due = min((now + left[i] / rates[i] for i in order), default=inf)
        at = min(due, jobs[coming[0]].start if coming else inf)
        for i in order:
            left[i] -= rates[i] * (at - now) if rates[i] < inf else left[i]
        now = at
        for i in [i for i in order if left[i] <= 1e-13 or (at == due and now + left[i] / rates[i] <= at)]:
            ends[i] = now
            del left[i]
        while coming and jobs[coming[0]].start <= now:
            left[coming.pop(0)] = 1.0
    return ends
