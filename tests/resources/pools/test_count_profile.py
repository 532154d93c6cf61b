"""The profile of a free amount, in blocks, against sums over everything that is taken."""

import random
from math import inf

import pytest

from simmodel.resources.pools import profile as profiles
from simmodel.resources.pools.profile import CountProfile


class Plain:
    """A free amount and what is taken of it, as a list of (start, end, amount)."""

    def __init__(self, now, free, ends):
        self.now = now
        self.taken = [(-inf, end, amount) for end, amount in ends]
        self.total = free + sum(amount for _, amount in ends)

    def free(self, at):
        return self.total - sum(amount for start, end, amount in self.taken if start <= at < end)

    def fits(self, need, at, duration):
        instants = [at, *(t for start, end, _ in self.taken for t in (start, end) if at < t < at + duration)]
        return all(self.free(t) >= need for t in instants)

    def earliest(self, need, duration, not_before=0):
        instants = {self.now, not_before, *(end for _, end, _ in self.taken if end < inf)}
        found = [t for t in instants if t >= max(self.now, not_before) and self.fits(need, t, duration)]
        return min(found, default=inf)


@pytest.mark.few(11)
@pytest.mark.parametrize("most", [4, 6, 9, 256])
@pytest.mark.parametrize("seed", range(15))
def test_a_profile_in_blocks_answers_as_a_list(seed, most, monkeypatch):
    monkeypatch.setattr(profiles, "_MOST", most)
    rng = random.Random(seed)
    ends = sorted(
        (rng.choice([rng.randint(1, 60), inf if rng.random() < 0.1 else 3]), rng.randint(1, 4)) for _ in "a" * 30
    )
    free = rng.randint(0, 6)
    profile, plain = CountProfile(0, free, ends), Plain(0, free, ends)
    for _ in range(60):
        need, duration = rng.randint(1, 9), rng.choice([1, 2, 5, 5, 10, 30, inf if rng.random() < 0.1 else 4])
        at = profile.earliest(need, duration)
        assert at == plain.earliest(need, duration)
        assert profile.fits(need, duration) == plain.fits(need, plain.now, duration)
        before = plain.now + rng.choice([0, 1, 3, 7.5, 20, 100, inf])
        opens = plain.earliest(need, duration) < before
        assert profile.copy().opens(need, duration, before) == opens == (duration <= profile.longest(need, before))
        assert profile.free_until(need) == next((at for at, free in profile.steps() if free < need), inf)
        if at < inf:
            most, fits = rng.randint(1, 4), profile.copy()
            room = fits.room(need, at, duration, most)
            fits.take(need * room, at, duration)
            assert room == most or fits.earliest(need, duration, at) > at
            assert min(free for _, free in fits.steps()) >= 0
        later = plain.now + rng.choice([0, 1, 3, 7.5, 20, 100])
        assert profile.earliest(need, duration, later) == plain.earliest(need, duration, later)
        action = rng.random()
        planned = [part for part in plain.taken if part[0] >= plain.now]
        if action < 0.6 and at < inf:
            profile.take(need, at, duration)
            plain.taken.append((at, at + duration, need))
        elif action < 0.75 and planned:
            start, end, amount = rng.choice(planned)
            profile.give_back(amount, start, end - start)
            plain.taken.remove((start, end, amount))
        elif action < 0.8 and planned:
            start, end, amount = rng.choice(planned)
            plain.taken.remove((start, end, amount))
            duration = end - start
            to = plain.earliest(amount, duration)
            assert profile.earliest(amount, duration, granted=start) == to <= start
            profile.move(amount, start, to, duration)
            plain.taken.append((to, to + duration, amount))
        elif action < 0.85:
            plain.now += rng.choice([0, 1, 2.5, 7])
            profile.advance(plain.now)
        steps = profile.steps()
        assert [amount for _, amount in steps] == [plain.free(t) for t, _ in steps]
        assert (profile.free, profile.next_step) == (steps[0][1], steps[1][0] if len(steps) > 1 else inf)


@pytest.mark.parametrize("seconds", [0, 5e-324, 1e-20, 1e-17])
def test_a_duration_that_does_not_move_the_clock_is_taken_for_its_instant(seconds):
    profile = CountProfile(0, 0, [(1.0, 8)])
    for number in range(3):
        at = profile.earliest(8, seconds)
        assert at == 1 + number * 2**-52
        assert profile.instant(at) == 1
        profile.take(8, at, seconds)
    profile.give_back(8, 1 + 2**-52, seconds)
    assert profile.earliest(8, seconds) == 1 + 2**-52
    assert [free for _, free in profile.steps()] == [0, 8, 0, 8]


def test_the_longest_hole_is_not_shorter_than_a_job_that_fits_by_rounding():
    """15 * 7.3 + 2 * 7.3 is 124.1 s, and 124.1 - 15 * 7.3 less than 2 * 7.3."""
    start, end = 15 * 7.3, 15 * 7.3 + 2 * 7.3
    profile = CountProfile(0, 0, [(start, 1)])
    profile.take(1, end, 50.0)
    assert end - start < 2 * 7.3
    assert profile.earliest(1, 2 * 7.3) == start
    assert profile.longest(1, end) >= 2 * 7.3
