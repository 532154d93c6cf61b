"""What users and administrators change between a twin's look and its act stays as they have set it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from simmodel_site.twin.acting.actions import HELD, RELEASED, Action, Command, mark_parts
from simmodel_site.twin.acting.performing import perform, restore
from tests.helpers.examples import up_to
from tests.site.helpers.wishing_scheduler import Job, WishingScheduler

JOBS = (1, 2, 3, 4)
WISH = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from((0.0, 50.0, 150.0, 700.0, 90_000.0))),
    st.tuples(st.just("nice"), st.sampled_from((-90, -7, 0, 5, 100))),
    st.tuples(st.just("hold"), st.booleans()),
    st.tuples(st.just("mark"), st.sampled_from(("see ticket 5", ""))),
    st.tuples(st.just("state"), st.sampled_from(("running", "gone"))),
)
ACT = st.one_of(
    st.tuples(st.sampled_from(("release", "prefer", "unprefer")), st.sampled_from(JOBS), st.sampled_from((7, 90))),
    st.just(None),
)


def action(command: Command, job: int, value: int = 0) -> Action:
    given = value if command == "prefer" else 0
    return Action(number=1, advice=1, command=command, job=job, submit=0.0, time=9.0, value=given)


@given(
    acts=st.lists(ACT, min_size=1, max_size=6),
    wishes=st.lists(st.lists(st.tuples(st.sampled_from(JOBS), WISH), max_size=2), max_size=30),
)
@settings(max_examples=up_to(400), deadline=None)
def test_no_wish_is_overridden_wherever_it_comes(
    acts: list[tuple[Command, int, int] | None], wishes: list[list[tuple[int, tuple[str, object]]]]
) -> None:
    scheduler, left = WishingScheduler(), iter(wishes)
    for job in JOBS[:2]:
        scheduler.hold(job, 700)
    for job in JOBS[2:]:
        scheduler.hold(job, 0)
        scheduler.jobs[job].mark = ""

    def meanwhile() -> None:
        assert scheduler.granted()
        for job, (what, value) in next(left, ()):
            scheduler.wish(job, what, value)

    scheduler.meanwhile = meanwhile
    for act in acts:
        if act is None:
            restore(scheduler)
        else:
            perform(scheduler, action(*act))
    scheduler.meanwhile = lambda: None
    found = restore(scheduler)
    assert scheduler.granted()
    same = [job for job in scheduler.jobs.values() if job.mark == HELD and job.wishes.get("begin") == job.recorded]
    assert found.failed <= len(same)  # the user's begin time is by chance the twin's
    for job in scheduler.jobs.values():  # what nobody wished for is as it was without a twin
        if job.state == "waiting" and not job.wishes:
            assert (job.begin <= scheduler.now, job.nice) == (True, 0)


def test_a_begin_time_that_a_user_has_set_since_is_left_and_said() -> None:
    scheduler = WishingScheduler()
    scheduler.hold(1, 700)
    scheduler.wish(1, "begin", 90_000.0)
    found = perform(scheduler, action("release", 1))
    assert (found.what, found.sentence) == ("refused", "its begin time is its user's")
    assert restore(scheduler).left == ("job 1: its begin time is its user's",)
    assert scheduler.jobs[1].begin == 90_000.0


def test_a_job_that_stays_moved_forward_since_its_mark_was_replaced_is_said() -> None:
    scheduler = WishingScheduler()
    moved = {}
    for job in (1, 2, 3):
        scheduler.jobs[job] = Job()
        assert perform(scheduler, action("prefer", job, 7)).what == "done"
        moved[job, 0.0] = 7
    scheduler.wish(1, "mark", "see ticket 5")
    scheduler.wish(3, "mark", "see ticket 5")
    scheduler.wish(3, "nice", 0)
    found = restore(scheduler, moved)
    assert found.left == ("job 1: its mark is somebody else's, and it stays moved forward by 7",)
    assert (found.jobs, scheduler.jobs[1].nice, scheduler.jobs[2].nice) == (1, -7, 0)


def test_a_wish_between_look_and_send_is_said_too() -> None:
    scheduler, looks = WishingScheduler(), iter((False, True))
    scheduler.hold(1, 700)
    scheduler.meanwhile = lambda: scheduler.wish(1, "begin", 90_000.0) if next(looks, False) else None
    found = perform(scheduler, action("release", 1))
    assert (found.what, found.sentence) == ("refused", "its begin time is its user's")


@pytest.mark.parametrize("mark", [HELD, f"{HELD}@", f"{HELD}@x", f"{HELD}@-5", f"{RELEASED} @5", "@5", ""])
def test_marks_without_a_value_record_none(mark: str) -> None:
    assert mark_parts(mark) == (mark, None)
