"""The indexes of the queue, at sizes at which their blocks split, against plain lists."""

import random
import sys

import numpy as np
import pytest

from simmodel.environment import Environment
from simmodel.policies.ordering import FCFS, SJF, WFP
from simmodel.scheduling.column_index import ColumnIndex
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.work.job import LiveJob


def job(index, submit, processors, requested, priority=0.0):
    live = LiveJob(index, index, float(submit), processors, float(requested), float(requested), float(requested))
    live.priority = priority
    return live


def in_order(jobs, order, now):
    if order.key is None:
        key = lambda each: 0  # noqa: E731
    elif order.changes:
        key = lambda each: order.key(each, now)  # noqa: E731
    else:
        key = order.key
    return sorted(jobs, key=lambda each: (-each.priority, key(each), each.submit, each.seq))


@pytest.mark.few(4)
@pytest.mark.parametrize("order", [FCFS, SJF, WFP], ids=lambda each: each.name)
@pytest.mark.parametrize("priorities", [False, True])
@pytest.mark.parametrize(
    ("seed", "asked_from"),
    [
        *((0, 0), (1, 0), (4, 1400)),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((2, 0), (3, 0), (5, 1400))),
    ],
)
def test_indexes_of_the_queue_answer_as_a_full_scan(order, priorities, seed, asked_from):
    """Jobs arrive, leave from any position and return; each question has the answer of a full scan."""
    rng = np.random.default_rng(seed)
    env = Environment()
    queue = WaitingQueue(env)
    waiting, gone = [], []
    for step in range(3000):
        env._now = float(step)
        coming = rng.random() < (0.75 if step < 1500 else 0.35)
        if coming or not waiting:
            if gone and rng.random() < 0.1:
                new = gone.pop(int(rng.integers(len(gone))))
            else:
                sizes = rng.choice([1, 2, 3, 8, 16])
                new = job(step, step, int(sizes), rng.integers(0, 50), float(rng.integers(3)) if priorities else 0.0)
            queue.add(new)
            waiting.append(new)
        else:
            at = rng.choice(["head", "fitting", "any"]) if step >= asked_from else "any"
            if at == "head":
                old = queue.by(order).head()
            elif at == "fitting":
                old = queue.lanes(order).first_fitting(8, 25, 1) or waiting[0]
            else:
                old = waiting[int(rng.integers(len(waiting)))]
            queue.remove(old)
            old.state = "gone"
            waiting.remove(old)
            gone.append(old)
        if step % 7 or step < asked_from:
            continue
        ordered = in_order(waiting, order, env._now)
        assert len(queue) == len(waiting)
        assert queue.by(order).head() is (ordered[0] if ordered else None)
        free, limit, extra = int(rng.integers(0, 18)), int(rng.integers(0, 55)), int(rng.integers(0, 10))
        lanes = queue.lanes(order)
        fitting = [
            each
            for each in ordered
            if each.processors <= free and (each.requested <= limit or each.processors <= extra)
        ]
        assert lanes.first_fitting(free, limit, extra) is (fitting[0] if fitting else None)
        if not order.changes:
            short = {each.width for each in waiting if each.width <= free and each.planned <= limit}
            assert lanes.widths(free, ([limit] * (free + 1)).__getitem__) == short
        assert lanes.narrowest == min((each.processors for each in waiting), default=float("inf"))
        narrow = [each for each in ordered if each.processors <= free]
        widest = max((each.processors for each in narrow), default=0)
        best = next((each for each in narrow if each.processors == widest), None)
        assert lanes.widest_fitting(free) is best
        if step % 70 == 0:
            assert list(queue.by(order)) == ordered
            assert list(queue) == sorted(waiting, key=lambda each: (each.submit, each.seq))


def test_a_cursor_passes_over_what_is_started_meanwhile():
    env = Environment()
    queue = WaitingQueue(env)
    jobs = [job(i, i, 1, 10 - i) for i in range(6)]
    for each in jobs:
        queue.add(each)
    for cursor in (iter(queue), iter(queue.by(SJF))):
        seen = []
        for each in cursor:
            seen.append(each.id)
            if len(seen) == 1:
                for other in (each, *(o for o in jobs if o.id in (2, 3) and o is not each)):
                    queue.remove(other)
                    other.state = "running"
        assert len(seen) == len(set(seen)) == 4
        assert not {2, 3} & set(seen[1:])
        for each in jobs:
            if each.state == "running":
                queue.add(each)


def test_a_column_index_packs_nothing_when_the_newest_jobs_start_at_once():
    """Each of the jobs arrives behind a long queue and leaves at once: the cost of one does not depend on the queue."""

    class Counting(ColumnIndex):
        packed = 0

        def _pack(self):
            self.packed += 1
            super()._pack()

    env = Environment()
    index = Counting(WFP, env)
    for number in range(500):
        index.add(job(number, number, 4, 100))
    for number in range(500, 550):
        env._now = float(number)
        new = job(number, number, 1, 10)
        index.add(new)
        assert index.first_fitting(1, 50, 0) is new
        index.remove(new)
    assert index.packed == 0


def test_a_job_that_returns_to_a_long_queue_is_compared_with_few_others():
    class Instant(float):
        compared = 0

        def __eq__(self, other):
            Instant.compared += 1
            return float(self) == float(other)

        __hash__ = float.__hash__

    queue = WaitingQueue(Environment())
    jobs = [job(number, number, 1, 10) for number in range(4000)]
    for each in jobs:
        each.submit = Instant(each.submit)
        queue.add(each)
    returning = jobs[200:3700:3]
    for each in returning:
        queue.remove(each)
        each.state = "gone"
    queue.add(returning.pop())
    Instant.compared = 0
    for each in returning:
        queue.add(each)
    assert [each.id for each in queue] == list(range(4000))
    assert Instant.compared < 60 * len(returning)


def test_lanes_forget_jobs_that_leave_before_they_are_sorted_in():
    """While every job starts at once, nobody asks the index: it must not keep them all."""
    queue = WaitingQueue(Environment())
    lanes = queue.lanes(FCFS)
    jobs = [job(number, number, 4, 100) for number in range(50)]
    held = [sys.getrefcount(each) for each in jobs]
    for each in jobs:
        queue.add(each)
        queue.forget_new()
        queue.remove(each)
        each.state = "running"
    del each
    assert [sys.getrefcount(each) for each in jobs] == held
    assert lanes.narrowest == float("inf")


def test_a_filled_column_index_is_as_one_that_was_added_to_job_by_job():
    rng = random.Random(5)
    for count in (0, 1, 200, 300):
        for shuffled in (False, True):
            jobs = [
                job(number, rng.randint(0, 50) if shuffled else number // 3, rng.randint(1, 9), rng.choice([0, 10, 60]))
                for number in range(count)
            ]
            for each in jobs:
                each.priority = rng.choice([0.0, 0.0, 5.0]) if shuffled else 0.0
            env = Environment()
            filled, added = ColumnIndex(WFP, env), ColumnIndex(WFP, env)
            filled.fill(jobs)
            for each in jobs:
                added.add(each)
            env._now = 100.0
            while added.head() is not None:
                assert filled.narrowest == added.narrowest
                assert filled.first_fitting(4, 20, 2) is added.first_fitting(4, 20, 2)
                assert filled.widest_fitting(6) is added.widest_fitting(6)
                first = added.head()
                assert filled.head() is first
                filled.remove(first)
                added.remove(first)
                if rng.random() < 0.2:
                    back = job(1000 + len(added.jobs) + rng.randint(0, 10**6), 60, rng.randint(1, 9), 30)
                    if rng.random() < 0.3:
                        filled.add(back)
                        added.add(back)
            assert filled.head() is None
