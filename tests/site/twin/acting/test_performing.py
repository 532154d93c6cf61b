"""Single actions: preconditions, idempotence, read-back; and giving everything back."""

from __future__ import annotations

import pytest

from simmodel_site.twin.acting.actions import Action, Command
from simmodel_site.twin.acting.performing import Restored, perform, read_back, restore
from tests.site.helpers.fake_hands import FakeHands


def action(command: Command, job: int = 1, submit: float = 0.0, value: int = 0) -> Action:
    return Action(number=3, advice=1, command=command, job=job, submit=submit, time=9.0, value=value)


def test_a_held_job_is_released_once() -> None:
    hands = FakeHands()
    hands.hold(1)
    assert perform(hands, action("release")).what == "done"
    assert perform(hands, action("release")).what == "already"
    assert hands.sent == [("release", 1)]


def test_a_job_that_started_meanwhile_needs_no_release() -> None:
    hands = FakeHands()
    hands.hold(1)
    hands.begin(1)
    assert perform(hands, action("release")).what == "already"
    assert not hands.sent


@pytest.mark.parametrize(
    ("command", "submit", "why"),
    [
        ("release", 5.0, "the id belongs to another job now, submitted at 0 s"),
        ("prefer", 0.0, "its priority or its note is somebody else's"),
        ("unprefer", 0.0, "the job was not moved by a twin"),
    ],
)
def test_what_is_not_the_twins_is_not_touched(command: Command, submit: float, why: str) -> None:
    hands = FakeHands()
    hands.hold(1)
    found = perform(hands, action(command, submit=submit, value=7 if command == "prefer" else 0))
    assert (found.what, found.sentence) == ("refused", why)
    assert not hands.sent


def test_a_priority_that_a_user_has_set_stays() -> None:
    hands = FakeHands()
    hands.wait(1)
    hands.jobs[1] = hands.jobs[1]._replace(preference=-50)
    assert perform(hands, action("prefer", value=7)).what == "refused"
    assert hands.jobs[1].preference == -50


def test_a_job_is_moved_forward_and_back() -> None:
    hands = FakeHands()
    hands.wait(1)
    assert perform(hands, action("prefer", value=7)).what == "done"
    assert perform(hands, action("prefer", value=7)).what == "already"
    assert perform(hands, action("prefer", value=9)).what == "done"
    assert perform(hands, action("unprefer")).what == "done"
    assert hands.jobs[1].preference == 0
    assert hands.jobs[1].mark == ""


def test_an_action_without_effect_and_a_silent_scheduler_are_failures() -> None:
    hands = FakeHands(deaf=True)
    hands.hold(1)
    found = perform(hands, action("release"))
    assert found.what == "failed"
    assert "sent, but found held=True" in found.sentence
    hands.broken = "no answer within 30 s"
    assert perform(hands, action("release")).sentence == "no answer within 30 s"


def test_after_a_restart_what_was_sent_is_told_from_what_was_not() -> None:
    hands = FakeHands()
    hands.hold(1, 2)
    perform(hands, action("release", 1))
    assert read_back(hands, action("release", 1)).what == "done"
    assert read_back(hands, action("release", 2)).what == "late"
    assert hands.sent == [("release", 1)]


def test_everything_is_given_back_and_nothing_else_is_changed() -> None:
    hands = FakeHands()
    hands.hold(1, 2)
    hands.wait(3, 4)
    perform(hands, action("prefer", 4, value=7))
    hands.begin(2)
    before = hands.jobs[3]
    assert restore(hands) == Restored(2)
    assert not any(job.held or job.preference for job in hands.jobs.values())
    assert hands.jobs[3] == before
    assert restore(hands) == Restored(0)
    hands.broken = "no answer"
    assert restore(hands) == Restored(0, 1, "no answer")
