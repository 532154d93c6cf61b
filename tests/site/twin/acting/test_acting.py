"""A twin that acts: in order, within its limits, written down first, and given back when something is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec
from simmodel_site.twin import Advisor, AuditLog, Demand, Ended, Event, Mirror, Started, Submitted, Twin, read_audit
from simmodel_site.twin.acting.acting import Acting
from simmodel_site.twin.acting.actions import ActSettings, PastActions
from simmodel_site.twin.audit import AuditError
from simmodel_site.twin.sources import Refused
from tests.site.helpers.fake_hands import FakeHands

SPEC = ClusterSpec.simple(4)
ABOUT: dict[str, Any] = {"cluster": "alps"}


class Told:
    """A source of what a test tells."""

    def __init__(self) -> None:
        self.cluster = "alps"
        self.refused = Refused()
        self.waiting: list[Event] = []
        self.over = False

    def report(self) -> None:
        return None

    def events(self, timeout: float) -> Iterator[Event]:
        told, self.waiting = self.waiting, []
        yield from told

    def position(self) -> str | None:
        return None

    def resume(self, position: str | None) -> None:
        pass

    def close(self) -> None:
        pass


class Stage:
    """A twin, its hands and its source, with a clock of their own."""

    def __init__(
        self, folder: Path, past: PastActions | None = None, held: tuple[int, ...] = (), **settings: Any
    ) -> None:
        self.now = 0.0
        self.folder = folder
        self.source, self.hands = Told(), FakeHands()
        self.hands.hold(*held)
        self.audit = AuditLog(folder / "audit.jsonl")
        given = {"mode": "hold-and-release", "rate": 1000.0} | settings
        self.acting = Acting(self.hands, ActSettings(**given), folder, past, lambda: self.now)
        advisor = Advisor("easy", fallback="fcfs")
        self.twin = Twin(
            self.source,
            Mirror(SPEC, "alps"),
            advisor,
            self.audit,
            settle=0.0,
            acting=self.acting,
            clock=lambda: self.now,
        )

    def submit(self, job: int, processors: int, *, held: bool = True) -> None:
        request = Demand(processors=processors, requested=60.0)
        self.source.waiting.append(Submitted(**ABOUT, time=self.now, job=job, submit=self.now, request=request))
        (self.hands.hold if held else self.hands.wait)(job, submit=self.now)

    def start(self, job: int) -> None:
        submit = self.hands.jobs[job].submit
        self.hands.begin(job)
        self.source.waiting.append(Started(**ABOUT, time=self.now, job=job, submit=submit))

    def end(self, job: int) -> None:
        submit = self.hands.jobs.pop(job).submit
        self.source.waiting.append(Ended(**ABOUT, time=self.now, job=job, submit=submit))

    def until(self, true: Callable[[], object]) -> None:
        end = monotonic() + 20
        while not true():
            assert monotonic() < end, (self.hands.sent, self.twin.troubles, self.acting.paused)
            self.twin.step(0.0)
            sleep(0.001)

    def steps(self, number: int = 20) -> None:
        for _ in range(number):
            self.twin.step(0.0)
            sleep(0.001)

    def lines(self, *kinds: str) -> list[str]:
        return [record.kind for record in read_audit(self.audit.path) if record.kind in kinds]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.twin.close()


def test_jobs_start_when_the_policy_says_so_and_each_action_is_written_before_and_after(stage: Stage) -> None:
    for job, processors in ((1, 3), (2, 3), (3, 1)):
        stage.submit(job, processors)
    stage.until(lambda: len(stage.hands.sent) == 2)
    assert stage.hands.sent == [("release", 1), ("release", 3)]
    stage.until(lambda: stage.acting.outcomes["done"] == 2)
    stage.steps(2)
    assert stage.lines("advice", "action", "outcome") == ["advice", "action", "action", "outcome", "outcome"]
    assert stage.hands.jobs[2].held


def test_no_decision_is_made_on_what_is_not_true_yet(stage: Stage) -> None:
    stage.submit(1, 3)
    stage.until(lambda: stage.acting.outcomes["done"] == 1)
    stage.submit(2, 1)
    stage.steps()
    assert stage.twin.advised == 1  # the first job was released, but is not seen to run
    stage.start(1)
    stage.until(lambda: ("release", 2) in stage.hands.sent)
    assert stage.twin.advised == 2


def test_jobs_of_others_are_left_alone(stage: Stage) -> None:
    stage.submit(1, 1, held=False)
    stage.submit(2, 1)
    stage.until(lambda: sum(stage.acting.outcomes.values()) == 2)
    assert stage.hands.sent == [("release", 2)]


def test_with_the_stop_file_everything_is_given_back_and_nothing_is_decided(stage: Stage) -> None:
    for job in (1, 2):
        stage.submit(job, 3)
    stage.until(lambda: stage.hands.sent == [("release", 1)])
    assert (stage.folder / "heartbeat").read_text().endswith("hold\n")
    (stage.folder / "stop").touch()
    stage.until(lambda: not stage.hands.jobs[2].held)
    assert not (stage.folder / "heartbeat").exists()
    assert stage.twin.status.paused.endswith("stop exists")
    stage.start(1)
    stage.submit(3, 1)
    stage.until(lambda: stage.twin.advised >= 2)  # it goes on to observe
    stage.until(lambda: not stage.hands.jobs[3].held)
    assert stage.lines("action") == ["action"]
    (stage.folder / "stop").unlink()
    stage.until(lambda: (stage.folder / "heartbeat").exists())


def test_what_cannot_be_written_down_is_not_done(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.submit(1, 1)
    stage.until(lambda: stage.acting.outcomes["done"] == 1)
    stage.start(1)
    stage.steps(3)

    def full(*, sync: bool = False) -> None:
        raise AuditError("audit.jsonl: cannot be written: No space left on device")

    monkeypatch.setattr(stage.audit, "flush", full)
    stage.submit(2, 4)  # must wait for the first job
    stage.until(lambda: stage.acting.restored == 1)
    assert not stage.hands.jobs[2].held
    assert "No space left" in stage.acting.paused
    assert stage.acting.outcomes == {"done": 1}


def test_after_the_last_action_of_the_hour_everything_is_given_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, budget=2)
    for job in (1, 2, 3):
        stage.submit(job, 1)
    stage.until(lambda: not stage.hands.jobs[3].held)
    assert stage.lines("action") == ["action", "action"]
    assert "budget of 2 actions" in stage.acting.paused
    stage.now = 3601.0
    stage.until(lambda: not stage.acting.paused)
    stage.twin.close()


def test_a_preferred_job_goes_back_when_another_should_start_first(tmp_path: Path) -> None:
    stage = Stage(tmp_path, mode="priority", preference=7)
    stage.submit(1, 4, held=False)
    stage.until(lambda: stage.hands.jobs[1].preference == 7)
    stage.start(1)
    stage.submit(2, 2, held=False)
    stage.steps()
    assert stage.hands.jobs[2].preference == 0
    stage.end(1)
    stage.until(lambda: stage.hands.jobs[2].preference == 7)
    stage.twin.close()
    assert stage.hands.jobs[2].preference == 0
    assert (tmp_path / "heartbeat").exists() is False


def test_a_job_that_stays_moved_forward_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(tmp_path, mode="priority", preference=7)
    stage.submit(1, 4, held=False)
    stage.until(lambda: stage.acting.outcomes["done"] == 1)
    stage.hands.jobs[1] = stage.hands.jobs[1]._replace(mark="see ticket 5")
    stage.twin.close()
    said = "not given back: job 1: its mark is somebody else's, and it stays moved forward by 7"
    assert caplog.messages == [said]
    assert stage.hands.jobs[1].preference == 7


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_a_twin_that_may_not_act_never_touches_its_hands(tmp_path: Path, mode: str) -> None:
    stage = Stage(tmp_path, mode=mode)
    stage.hands.broken = "touched"
    stage.submit(1, 1)
    stage.until(lambda: stage.twin.advised == 1)
    stage.twin.close()
    assert stage.lines("advice", "action", "outcome") == ["advice"]
    assert not stage.acting.outcomes
    assert not (tmp_path / "heartbeat").exists()


def test_after_a_restart_open_actions_are_looked_up_and_not_sent_again(tmp_path: Path) -> None:
    past = PastActions()
    for number, job in ((1, 1), (2, 2)):
        action = {"number": number, "advice": 1, "command": "release", "job": job, "submit": 0.0, "time": 0.0}
        past.take("action", {"action": action})
    past.take("outcome", {"outcome": {"number": 1, "what": "done"}})
    stage = Stage(tmp_path, past, held=(2,), budget=2)
    stage.submit(2, 4)
    stage.until(lambda: stage.acting.outcomes)
    assert stage.acting.outcomes == {"late": 1}
    assert stage.acting.budget.left(10.0) == 0
    stage.until(lambda: not stage.hands.jobs[2].held)  # given back, since the budget is used up
    assert stage.lines("action", "outcome") == ["outcome"]
    stage.twin.close()


def test_hands_that_fail_stop_nothing_but_the_action(stage: Stage) -> None:
    stage.hands.broken = "no answer within 30 s"
    stage.submit(1, 1)
    stage.until(lambda: stage.acting.outcomes["failed"] == 1)
    stage.hands.broken = ""
    stage.submit(2, 1)
    stage.until(lambda: ("release", 2) in stage.hands.sent)
    assert ("release", 1) in stage.hands.sent


@pytest.mark.parametrize(
    ("name", "value"), [("mode", "obey"), ("budget", 0), ("maximum_delay", 0.5), ("rate", 0), ("preference", -3)]
)
def test_settings_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{name}: must be"):
        ActSettings(**{name: value})
