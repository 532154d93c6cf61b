"""The watchdog gives everything back when the heartbeat stops, whatever the clock does."""

from __future__ import annotations

from pathlib import Path

import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin.acting.heartbeat import Heartbeat, Pulse, Watchdog
from tests.site.helpers.fake_hands import FakeHands


class Time:
    """Goes forward when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watched(folder: Path) -> tuple[Watchdog, FakeHands, Time]:
    hands, time = FakeHands(), Time()
    hands.hold(1, 2)
    return Watchdog(hands, Pulse(folder / "beat", 30.0, time), folder / "stop"), hands, time


def test_nothing_is_released_while_the_heart_beats(tmp_path: Path) -> None:
    dog, hands, time = watched(tmp_path)
    for second in range(100):
        (tmp_path / "beat").write_text(f"{second} 1 hold")
        time.now += 1.0
        assert dog.step()
    assert not hands.sent


@pytest.mark.parametrize("text", ["0 1 hold", "99999999999 1 hold", "", "\x00"])
def test_a_file_that_does_not_change_is_no_heartbeat_whatever_it_says(tmp_path: Path, text: str) -> None:
    dog, hands, time = watched(tmp_path)
    (tmp_path / "beat").write_text(text)
    assert dog.step()
    time.now = 30.0
    assert dog.step()
    time.now = 30.5
    assert not dog.step()
    assert [job for _, job in hands.sent] == [1, 2]
    assert not dog.step()
    assert dog.restored == 2


def test_a_heart_that_beats_again_is_a_heart(tmp_path: Path) -> None:
    dog, hands, _ = watched(tmp_path)
    assert not dog.step()
    hands.hold(3)
    Heartbeat(tmp_path / "beat", True, lambda: 7.9).beat()
    assert (tmp_path / "beat").read_text().split()[::2] == ["7", "hold"]
    assert dog.step()
    assert hands.jobs[3].held


def test_the_stop_file_releases_everything_beside_a_living_twin(tmp_path: Path) -> None:
    dog, hands, _ = watched(tmp_path)
    (tmp_path / "beat").write_text("1")
    (tmp_path / "stop").touch()
    assert not dog.step()
    assert len(hands.sent) == 2


def test_what_cannot_be_released_is_tried_again(tmp_path: Path) -> None:
    dog, hands, _ = watched(tmp_path)
    hands.broken = "no answer"
    assert not dog.step()
    assert dog.trouble == "no answer"
    hands.broken = ""
    dog.step()
    assert (dog.restored, dog.trouble) == (2, "")


def test_a_heartbeat_that_is_never_stale_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stale_after: must be a number > 0 \(s\), got 0"):
        Pulse(tmp_path / "beat", 0)
