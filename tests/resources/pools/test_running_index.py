"""The index of running jobs, at sizes at which its blocks split, and the profile of a pool, against plain lists."""

from bisect import insort
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.resources.pools.profile import CountProfile
from simmodel.resources.pools.running import UNIT, RunningIndex
from tests.helpers.examples import up_to


@pytest.mark.few(14)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("filled", [0, 1, 72, 1000])
def test_running_index_against_a_list(seed, filled):
    """Some executions are there from the beginning."""
    rng = np.random.default_rng(seed)
    index = RunningIndex()

    class Execution:
        def __init__(self, end):
            self.expected_end = end

    there = [(Execution(float(rng.integers(0, 300))), int(rng.integers(1, 20))) for _ in range(filled)]
    index.fill(there)
    entries = sorted((run.expected_end, i, processors) for i, (run, processors) in enumerate(there, 1))
    runs = {i: run for i, (run, _) in enumerate(there, 1)}
    number = filled
    for step in range(2500):
        if rng.random() < (0.6 if step < 1200 else 0.25) or not entries:
            number += 1
            run = Execution(float(rng.integers(0, 300)))
            processors = int(rng.integers(1, 20))
            index.add(run, processors)
            insort(entries, (run.expected_end, number, processors))
            runs[number] = run
        else:
            entry = entries.pop(int(rng.integers(len(entries))))
            former = runs.pop(entry[1])
            if rng.random() < 0.5:
                index.remove(former)
            else:
                number += 1
                run = runs[number] = Execution(float(rng.integers(0, 300)))
                processors = int(rng.integers(1, 20))
                index.replace(former, run, processors, processors - entry[2])
                assert former.entry is None
                insort(entries, (run.expected_end, number, processors))
        assert len(index) == len(entries)
        if step % 5 == 0:
            missing, now = int(rng.integers(1, 3000)), float(rng.integers(0, 300))
            gathered, expected = 0, (float("inf"), 0)
            for end, _, processors in entries:
                gathered += processors
                if gathered >= missing:
                    at = max(end, now)
                    expected = (at, sum(p for e, _, p in entries if e <= at) - missing)
                    break
            assert index.when_free(missing, now) == expected
        if step % 50 == 0:
            assert [entry[:3] for entry in index.entries()] == entries


@pytest.mark.parametrize("step", [1, -1])
def test_blocks_of_the_running_index_go_with_their_last_execution(step):
    """Executions of 1 processor end at 0, 1, ... 999 and leave in that order or the reverse."""
    index = RunningIndex()
    runs = [SimpleNamespace(expected_end=float(end), entry=None) for end in range(1000)]
    for run in runs:
        index.add(run, 1)
    left = list(runs)
    for run in runs[::step]:
        index.remove(run)
        left.remove(run)
        assert list(index)[:3] == left[:3]
        assert len(index) == len(left)
        if left:
            assert index.when_free(len(left), 0.0) == (left[-1].expected_end, 0)
    assert index.when_free(1, 0.0) == (float("inf"), 0)


def test_endless_executions_are_counted_apart_from_the_work_that_is_left():
    """At 4, 2 processors until 10 have 12 processor seconds left."""
    index = RunningIndex()
    runs = [SimpleNamespace(expected_end=end, entry=None) for end in (float("inf"), 10.0, float("inf"))]
    index.add(runs[0], 1)
    assert index.left.endless == 1  # from here on it is maintained
    index.add(runs[1], 2)
    index.add(runs[2], 3)
    assert (index.left.endless, index.left.at(4.0) / UNIT) == (2, 12)
    index.remove(runs[0])
    index.remove(runs[2])
    assert (index.left.endless, index.left.at(5.0) / UNIT) == (0, 10)


@settings(max_examples=up_to(200), deadline=None)
@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), max_size=6),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 12)), max_size=8),
)
def test_a_profile_is_what_is_left_at_each_instant(free, ends, plans):
    """Planned jobs take their processors for exactly their durations, each at the earliest instant at which it fits."""
    profile = CountProfile(0, free, sorted(ends))
    released = [(end, processors) for end, processors in ends]
    taken = []

    def left(at):
        back = sum(processors for end, processors in released if (end <= at and at > 0))
        return free + back - sum(need for need, start, length in taken if start <= at < start + length)

    for need, length in plans:
        at = profile.earliest(need, length)
        instants = [t / 2 for t in range(400)]
        fits = [t for t in instants if all(left(u) >= need for u in instants if t <= u < t + length)]
        possible = [t for t in fits if t < 150]
        if at == float("inf"):
            assert not possible
            continue
        if any(end == 0 for end, _ in released) and profile.instant(at) != at:
            return  # just after now: finer than the instants that are checked
        assert at == possible[0]
        profile.take(need, at, length)
        taken.append((need, at, length))
        for t in instants[:100]:
            if t > 0 or not any(end == 0 for end, _ in released):
                assert max(step for step in profile.steps() if step[0] <= t)[1] == left(t)
