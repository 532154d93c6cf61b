"""The future under EASY of jobs that run as long as planned, beside the one that is simulated decision by decision."""

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from simmodel.systems.cluster.future import plan as projections
from simmodel.systems.cluster.future.plan import ProjectedEasy, ProjectedJob, Projection

SECONDS = st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0, 0.1, 0.3, 1 / 3, 21.7])
WORKS = st.tuples(st.integers(1, 8), SECONDS)


def job(name: object, processors: int, seconds: float) -> ProjectedJob:
    return ProjectedJob(name, processors, seconds, seconds, seconds)


def test_starts_of_a_projected_easy_are_as_by_hand() -> None:
    """Of 4 processors 3 are busy until 10: the wide job starts then, and one beside it ends by then or uses none."""
    plan = ProjectedEasy(each=False)
    plan.restart(0.0, 1, [(10.0, 1, 3, 10.0)], [job("wide", 3, 5)])
    assert [plan.start(0.0, job(n, 1, n)) for n in (10, 11)] == [0, 0]
    plan.add(0.0, job("long", 1, 11))  # uses up what the wide one leaves over
    assert plan.start(0.0, job("next", 1, 1)) == 11
    plan.add(0.0, job("next", 1, 1))
    assert plan.start(2.0, job("all", 4, 1)) == 15
    assert plan.advance(3.0, [("long", 0.0)])
    assert plan.start(3.0, job("all", 4, 1)) == 15
    assert not plan.advance(11.0, [])  # the wide one should have started


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projections, "_BLOCK", 2)
        yield


@pytest.mark.parametrize("each", [False, True])
@given(
    st.lists(WORKS, max_size=5),
    st.lists(WORKS, max_size=8),
    st.lists(st.tuples(WORKS, st.booleans(), st.sampled_from([0.0, 0.0, 0.1, 1.0, 2.0, 3.0, 7.5])), max_size=30),
)
def test_it_is_that_of_the_projection_of_single_decisions(
    each: bool,
    running: list[tuple[int, float]],
    waiting: list[tuple[int, float]],
    arrivals: list[tuple[tuple[int, float], bool, float]],
) -> None:
    """Work is asked for and added as time goes on, and the foreseen starts come true."""
    free, ends = 8, []
    for number, (processors, end) in enumerate(running):
        if processors <= free:
            free -= processors
            ends.append((end, number, processors, end))
    works = [job(number, *work) for number, work in enumerate(waiting)]
    plans = ProjectedEasy(each=each), Projection("easy", each=each)
    for plan in plans:
        plan.restart(0.0, free, list(ends), works)
        plan._supposed = False  # as if the jobs that start now had just been added
    now = 0.0
    for number, (work, added, later) in enumerate(arrivals, len(works)):
        new = job(number, *work)
        assert plans[0].start(now, new) == plans[1].start(now, new)
        if added:
            for plan in plans:
                plan.add(now, new)
            assert plans[0].foreseen() == plans[1]._starts
        now += later
        if later:
            while plans[1]._next(plans[1]._points, now):
                pass
            come = [(name, at) for name, at in plans[1]._starts.items() if at <= now]
            assert [plan.advance(now, come) for plan in plans] == [True, True]


@pytest.mark.parametrize("each", [False, True])
@given(
    st.lists(st.tuples(WORKS, st.integers(0, 3)), max_size=40),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 7)), max_size=30),
)
def test_after_an_early_end_the_known_queue_is_projected_as_anew(
    each: bool, works: list[tuple[tuple[int, float], int]], ends: list[tuple[int, int]]
) -> None:
    """Jobs that have started leave the queue, others join it, and the rest is asked for between."""
    plan = ProjectedEasy(each=each)
    queue: list[ProjectedJob] = []
    now = 0.0
    plan.restart(now, 8, [], [])
    for step, (share, asked) in enumerate(ends):
        for number, (work, when) in enumerate(works):
            if when == step:
                queue.append(job((step, number), *work))
                plan.queue(queue[-1])
        gone = [each for i, each in enumerate(queue) if (share >> (i % 6)) & 1]
        queue = [each for each in queue if each not in gone]
        now += 0.5
        running = [(now + 1.5, 3, 5, now + 1.5), (now + 2.5, 2, 1, now + 2.5)]
        assert plan.again(now, 2, running, [(each.job, now) for each in gone])
        fresh = ProjectedEasy(each=each)
        fresh.restart(now, 2, running, queue)
        assert plan.waits == len(queue)
        for name in range(asked):
            one = job(name, 1 + name, 2.0 + asked)
            assert plan.start(now, one) == fresh.start(now, one)
        assert plan.foreseen() == fresh.foreseen()
    assert not plan.again(now, 2, [], [("unknown", now)])
