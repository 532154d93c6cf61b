"""``python -m tests.helpers.both_forms CASES``: what the compiled modules answer in random cases, for comparison.

The numbers given are ints, floats, numpy's scalars and bools; all answers are printed with their types.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import numpy as np

from simmodel import Job, simulate
from simmodel.resources.network.bundle import Bundle, Channel, Group, set_speeds
from simmodel.resources.network.sharing import Sharing
from simmodel.resources.pools.profile import CountProfile

KINDS = (int, float, np.int64, np.float64, np.float32)
STARTS = (0, 0.0, 1e9 + 0.1, 2**53 + 1)
"""Instants at which a case begins."""


def number(rng: random.Random, least: int, most: int) -> Any:
    """Return a number of any kind."""
    found = rng.randint(least, most)
    if found in (0, 1) and rng.random() < 0.3:
        return rng.choice((bool, np.bool_))(found)
    return rng.choice(KINDS)(found)


def typed(value: Any) -> str:
    """Return a value with all types."""
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(typed, value))})"
    return f"{type(value).__name__} {value!r}"


def said(call: Callable[..., Any], *arguments: Any) -> str:
    """Return what a call answers, or the error that it raises."""
    try:
        return typed(call(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def of_a_profile(rng: random.Random) -> Iterator[str]:
    """Yield the answers of a profile to random questions and changes."""
    base, fraction = rng.choice(STARTS), rng.choice((1, 1, 2.5))
    ends = [(base + k, number(rng, 1, 4)) for k in sorted(rng.randint(0, 40) for _ in range(rng.randint(0, 90)))]
    profile = CountProfile(base, number(rng, 0, 6) * fraction, ends, [(base, base + 5, 1)])
    for _ in range(rng.randint(1, 25)):
        need, duration = number(rng, 1, 9), rng.choice((inf, *(number(rng, 0, 40) for _ in range(9))))
        later = base + int(number(rng, 0, 60))
        at = profile.earliest(need, duration)
        yield typed(at)
        yield said(profile.earliest, need, duration, later)
        yield said(profile.earliest, need, duration, -inf, later)
        yield said(profile.opens, need, duration, later)
        yield said(profile.fits, need, duration)
        yield said(profile.free_until, need)
        yield said(profile.room, need, max(later, profile.steps()[0][0]), duration, 3)
        yield said(profile.instant, at)
        if at < inf and rng.random() < 0.6:
            yield said(profile.take, need, at, duration)
        elif at < later:
            yield said(profile.move, need, later, at, duration)
        if rng.random() < 0.3:
            profile = profile.copy()
        if rng.random() < 0.3:
            yield said(profile.advance, profile.steps()[0][0] + int(number(rng, 0, 3)))
        yield typed((profile.free, profile.next_step, profile.exact, profile.steps()))


def of_a_network(rng: random.Random) -> Iterator[str]:
    """Yield levels, loads and ends as bundles come and go."""
    now = rng.choice(STARTS)
    channels = [Channel(f"c{k}", number(rng, 1, 99) * rng.choice((1, 1, 1e7))) for k in range(rng.randint(1, 9))]
    sharing = Sharing(*rng.choice(((), (500, 3, 2))))
    joined: list[Bundle] = []
    for k in range(rng.randint(1, 30)):
        action = rng.random()
        if action < 0.6 or not joined:
            used = [(each, number(rng, 1, 2)) for each in rng.sample(channels, rng.randint(1, min(3, len(channels))))]
            cap = rng.choice((inf, number(rng, 1, 50)))
            bundle = Bundle(used, cap=cap, scale=number(rng, 1, 3), number=k)
            bundle.since, bundle.count = now, 1
            bundle.weigh(number(rng, 1, 4))
            flow = type("Of", (), {})()
            flow.entry = (*bundle.mark(number(rng, 1, 1000)), 1, flow)
            bundle.heap.append(flow.entry)
            joined.append(bundle)
            if not sharing.join_alone(bundle):
                sharing.join(bundle)
        elif action < 0.8:
            bundle = joined.pop(rng.randrange(len(joined)))
            if not sharing.leave_alone(bundle):
                sharing.leave(bundle)
        elif action < 0.9:
            channel = rng.choice(channels)
            channel.capacity = number(rng, 0, 99)
            sharing.refit(channel)
        else:
            bundle = rng.choice(joined)
            bundle.weigh(number(rng, 1, 3))
            sharing.grow(bundle)
        groups, _ = sharing.solve()
        yield typed(sorted(each.number for each in groups))  # type: ignore[attr-defined]
        calendar: list[Any] = []
        set_speeds(joined, 1.0, now, calendar)
        yield typed([(due, k) for due, k, _ in calendar])
        now = now + rng.randint(0, 2)
        for bundle in joined:
            bundle.advance(now)
            yield typed((bundle.level, bundle.demand, bundle.ceiling, bundle.high, bundle.low, bundle.due))
        yield typed([(each.name, each.bound, each.load, each.saturated, each.full_at) for each in channels])
    yield typed([repr(each) for each in channels])
    yield said(Group, ((channels[0], 1.0),), number(rng, 1, 4)).partition(" object")[0]


def of_a_cluster(rng: random.Random) -> Iterator[str]:
    """Yield the starts of jobs whose numbers are of any kind, and what a policy is told at each decision."""
    base, told = rng.choice(STARTS), []
    jobs: list[Job] = []
    for k in range(rng.randint(1, 14)):
        given = {"submit": base + number(rng, 0, 9), "run": number(rng, 0, 20), "processors": number(rng, 1, 5)}
        if rng.random() < 0.8:
            given["requested"] = given["run"] * rng.choice((1, 1, 2, 0.5)) + number(rng, 1, 3)
        try:
            jobs.append(Job(id=k, **given))
        except Exception as error:
            yield f"{type(error).__name__}: {error}"
        else:
            yield typed([getattr(jobs[-1], name) for name in ("submit", "run", "requested", "processors")])
    need, duration = number(rng, 1, 4), number(rng, 0, 9)

    def asked(view: Any) -> None:
        place = view.places[0]
        profile = place.profile()
        told.append(said(place.counts().fits, need, duration))
        told.append(typed((view.now, place.free, *(profile.earliest(job, duration) for job in view.waiting))))

    size = rng.choice((int, np.int64))(rng.randint(4, 6))
    for policy in ("conservative", "conservative-keep", "sjf+conservative", "easy", asked):
        try:
            table = simulate(size, jobs, policy).jobs
        except Exception as error:
            yield f"{type(error).__name__}: {error}"
        else:
            yield typed([table[name].tolist() for name in ("start", "end", "processors")])
    yield from told


def main(cases: int) -> None:
    for seed in range(cases):
        for case in (of_a_profile, of_a_network, of_a_cluster):
            print(f"case {seed}", case.__name__)
            for line in case(random.Random(seed)):
                print(line)


if __name__ == "__main__":
    main(int(sys.argv[1]))
