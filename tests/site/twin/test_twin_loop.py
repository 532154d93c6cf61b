"""The loop of a twin: when it decides, what it writes down, and how it goes on after faults."""

import json
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simmodel import simulate
from simmodel.catalogue import load_workload
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec
from simmodel_site.twin import (
    Advisor,
    AuditLog,
    Demand,
    Ended,
    Event,
    JobReport,
    Mirror,
    Source,
    Started,
    StateReport,
    Submitted,
    Twin,
    read_audit,
    replay_audit,
)
from simmodel_site.twin.audit_replay import continued
from simmodel_site.twin.events import Noticed, Passed
from simmodel_site.twin.sources import Refused
from tests.site.helpers.plant_runs import begin_plant, begin_twin, ending, jobs_of, prepare_folder, starts_of, stop

SPEC = ClusterSpec.simple(4)
ABOUT: dict[str, Any] = {"cluster": "alps"}


def submitted(job: int, time: float, processors: int = 2) -> Submitted:
    return Submitted(**ABOUT, time=time, job=job, submit=time, request=Demand(processors=processors, requested=60.0))


class Script:
    """A source of prepared batches of events, each with the reports that may be asked for meanwhile."""

    def __init__(self, *batches: list[Event], reports: list[StateReport | Exception] | None = None) -> None:
        self.cluster = "alps"
        self.refused = Refused()
        self.batches = list(batches)
        self.reports = list(reports or ())
        self.asked = 0
        self.read = 0

    def report(self) -> StateReport | None:
        self.asked += 1
        found = self.reports.pop(0) if self.reports else None
        if isinstance(found, Exception):
            raise found
        return found

    def events(self, timeout: float) -> Iterator[Event]:
        if self.read < len(self.batches):
            self.read += 1
            yield from self.batches[self.read - 1]

    def position(self) -> str | None:
        return str(self.read)

    def resume(self, position: str | None) -> None:
        self.read = int(position or 0)

    @property
    def over(self) -> bool:
        return self.read >= len(self.batches)

    def close(self) -> None:
        pass


def made(source: Script, audit: Path | None = None, policy: str = "easy", **options: Any) -> Twin:
    """Return a twin that continues from its audit log, if it has one."""
    past = None if audit is None else continued(audit, SPEC, "alps", lambda values: Mirror.from_document(values, SPEC))
    mirror = Mirror(SPEC, "alps") if past is None else past.mirror
    log = None if audit is None else AuditLog(audit)
    options.setdefault("clock", lambda: mirror.now)
    return Twin(source, mirror, Advisor(policy), log, past=past, **options)


def kinds(audit: Path) -> list[str]:
    return [record.kind for record in read_audit(audit)]


def test_the_script_is_a_source() -> None:
    assert isinstance(Script(), Source)


# ---------------------------------------------------------------------- when it decides


def test_it_decides_once_when_the_source_is_quiet() -> None:
    source = Script([submitted(1, 1.0)], [submitted(2, 2.0), submitted(3, 3.0)], [], [])
    twin = made(source, settle=0.0)
    twin.step()
    assert (twin.advised, twin.due) == (0, True)
    twin.step()
    assert twin.advised == 0
    twin.step()
    assert twin.advised == 1
    assert [start.job for start in twin.last.starts] == [1, 2]
    twin.step()
    assert twin.advised == 1


def test_it_does_not_wait_for_quiet_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("simmodel_site.twin.twin.wall.monotonic", lambda: now[0])
    source = Script(*[[submitted(i, float(i))] for i in range(100)])
    twin = made(source, settle=0.05)
    for _ in range(30):
        now[0] += 0.04
        twin.step()
    assert twin.advised == 1


def test_at_most_one_decision_in_so_many_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("simmodel_site.twin.twin.wall.monotonic", lambda: now[0])
    batches = [[submitted(i, float(i)), Passed(**ABOUT, time=float(i))] for i in range(10)]
    twin = made(Script(*batches), when="passed", every=3.5)
    for _ in range(10):
        twin.step()
        now[0] += 1.0
    assert twin.advised == 3


def test_it_decides_when_an_instant_is_over_and_again_when_more_comes() -> None:
    passed = Passed(**ABOUT, time=1.0)
    started = Started(**ABOUT, time=1.0, job=1, submit=1.0)
    ended = Ended(**ABOUT, time=1.0, job=1, submit=1.0)
    source = Script([submitted(1, 1.0, 4), submitted(2, 1.0, 4), passed, passed, started, passed, ended, passed])
    told: list[Any] = []
    made(source, when="passed", told=[told.append]).step()
    assert [[start.job for start in advice.starts] for advice in told] == [[1], [2]]


def test_events_told_twice_bring_no_decision() -> None:
    batch = [submitted(1, 1.0), Passed(**ABOUT, time=1.0)]
    twin = made(Script(batch, batch, batch), when="passed")
    twin.run()
    assert twin.advised == 1


def test_nothing_waits_so_nothing_is_decided() -> None:
    started = Started(**ABOUT, time=1.0, job=1, submit=1.0)
    ended = Ended(**ABOUT, time=2.0, job=1, submit=1.0)
    twin = made(Script([submitted(1, 1.0), started, Passed(**ABOUT, time=1.0), ended, Passed(**ABOUT, time=2.0)]))
    twin.when = "passed"
    twin.run()
    assert (twin.advised, twin.due) == (0, False)


# ---------------------------------------------------------------------- reports and troubles


def test_reports_come_at_the_beginning_at_intervals_and_on_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("simmodel_site.twin.twin.wall.monotonic", lambda: now[0])
    job = JobReport(job=7, submit=0.0, state="waiting", request=Demand(requested=60.0))
    source = Script([], [], [Noticed(**ABOUT, time=2.0, what="submitted")], [], [], reports=[
        StateReport(**ABOUT, time=1.0, jobs=(job,)),
    ])  # fmt: skip
    twin = made(source, report_every=10.0, settle=0.0)
    asked = []
    for _ in range(5):
        twin.step()
        now[0] += 3.0
        asked.append(source.asked)
    assert asked == [1, 1, 1, 2, 2]
    assert [start.job for start in twin.last.starts] == [7]


def test_a_source_in_trouble_is_told_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("simmodel_site.twin.twin.wall.monotonic", lambda: now[0])
    source = Script([], [submitted(1, 1.0)], reports=[InputError("no answer from the controller")])
    twin = made(source)
    twin.step()
    assert twin.status.troubles == ("no answer from the controller",)
    assert twin.status.health == "degraded"
    now[0] += 2.0
    twin.step()
    assert twin.status.troubles == ()
    assert (twin.status.waiting, twin.status.events) == (1, {"submitted": 1})


def test_what_is_hostile_is_counted_and_stops_nothing(tmp_path: Path) -> None:
    name = "'; rm -rf / #\n\x1b[2J$(reboot)`" * 1000
    foreign = Submitted(cluster="other", time=1.0, job=1, submit=1.0, request=Demand())
    long = Submitted(**ABOUT, time=1.0, job="x" * 1_000_000, submit=1.0, request=Demand())
    odd = Submitted(**ABOUT, time=1.0, job=5, submit=1.0, request=Demand(name=name, user=name, requested=9.0))
    audit = tmp_path / "audit.jsonl"
    twin = made(Script([foreign, long, odd, Passed(**ABOUT, time=1.0)]), audit, when="passed")
    twin.run()
    twin.close()
    assert sum(twin.status.refused.values()) == 2
    assert [start.job for start in twin.last.starts] == [5]
    assert replay_audit(audit).reproduced == 1


def test_an_event_that_the_mirror_fails_on_does_not_stop_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Mirror.apply

    def failing(mirror: Mirror, event: Event) -> bool:
        if isinstance(event, Submitted) and event.job == 2:
            raise ZeroDivisionError("no reason")
        return apply(mirror, event)

    monkeypatch.setattr(Mirror, "apply", failing)
    twin = made(Script([submitted(1, 1.0), submitted(2, 1.0), submitted(3, 1.0), Passed(**ABOUT, time=1.0)]))
    twin.when = "passed"
    twin.run()
    assert dict(twin.status.refused) == {"submitted cannot be applied: ZeroDivisionError: no reason": 1}
    assert [start.job for start in twin.last.starts] == [1, 3]


# ---------------------------------------------------------------------- clocks


@pytest.mark.parametrize("times", [[5.0, 1.0, 9.0], [1e9, 0.0, 5.0], [2.0, 2.0, 2.0]])
def test_a_clock_that_steps_never_moves_the_mirror_back(times: list[float], tmp_path: Path) -> None:
    clock = iter(sorted([*times] * 20, key=lambda each: times.index(each)))
    source = Script([submitted(1, 1.0)], [], [submitted(2, 2.0)], [], [submitted(3, 3.0)], [])
    audit = tmp_path / "audit.jsonl"
    seen: list[float] = []
    twin = made(source, audit, settle=0.0, clock=lambda: next(clock), told=[lambda advice: seen.append(advice.time)])
    twin.run()
    twin.close()
    assert seen == sorted(seen)
    assert len(seen) == 3
    found = replay_audit(audit)
    assert (found.decisions, found.reproduced, found.first) == (3, 3, "")


# ---------------------------------------------------------------------- the audit log


def test_an_audit_that_says_something_else_is_found(tmp_path: Path) -> None:
    audit, changed = tmp_path / "audit.jsonl", tmp_path / "changed.jsonl"
    source = Script(*[[submitted(i, float(i)), Passed(**ABOUT, time=float(i))] for i in range(4)])
    twin = made(source, audit, when="passed")
    twin.run()
    twin.close()
    with AuditLog(changed) as log:
        for record in read_audit(audit):
            values = json.loads(json.dumps(record.values))
            if record.kind == "advice" and values["advice"]["number"] == 3:
                values["advice"]["starts"][0]["job"] = 99
            log.add(record.kind, **values)
    found = replay_audit(changed)
    assert (found.decisions, found.reproduced) == (4, 3)
    assert found.first.startswith("line ")
    assert "advice 3: starts" in found.first


def test_a_policy_given_as_an_object_must_be_given_again(tmp_path: Path) -> None:
    from simmodel import Portfolio

    audit = tmp_path / "audit.jsonl"
    policy = Portfolio(["fcfs", "sjf+easy"], "wait_mean")
    twin = Twin(
        Script([submitted(1, 1.0), Passed(**ABOUT, time=1.0)]),
        Mirror(SPEC, "alps"),
        Advisor(policy),
        AuditLog(audit),
        when="passed",
        clock=lambda: 0.0,
    )
    twin.run()
    twin.close()
    with pytest.raises(InputError, match="policy: was given as an object"):
        replay_audit(audit)
    assert replay_audit(audit, policy=policy).reproduced == 1


def batches(count: int = 12) -> list[list[Event]]:
    """Return submissions of jobs too many for the cluster, and ends of those that are started first."""
    found: list[list[Event]] = []
    for i in range(count):
        events: list[Event] = [submitted(i, float(i), 1 + i % 3)]
        if i >= 4:
            events.append(Ended(**ABOUT, time=float(i), job=i - 4, submit=float(i - 4)))
        found.append([*events, Passed(**ABOUT, time=float(i))])
    return found


CHANGING = "portfolio(fcfs, conservative-keep, hysteresis=0.2)"


@pytest.mark.parametrize(
    ("policy", "every"),
    [("easy", 5), (CHANGING, 16), *(pytest.param(name, 1, marks=pytest.mark.long) for name in ("easy", CHANGING))],
)
def test_a_twin_that_stops_anywhere_continues_without_gap_and_without_a_second_decision(
    policy: str, every: int, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.jsonl"
    twin = made(Script(*batches()), whole, policy, when="passed")
    twin.run()
    twin.close()
    expected = [record.values["advice"] for record in read_audit(whole) if record.kind == "advice"]
    lines = whole.read_bytes().splitlines(keepends=True)
    for kept in range(0, len(lines), every):
        cut = tmp_path / f"cut-{kept}.jsonl"
        cut.write_bytes(b"".join(lines[:kept]) + lines[kept][: len(lines[kept]) // 2])
        twin = made(Script(*batches()), cut, policy, when="passed")
        twin.run()
        twin.close()
        found = [record.values["advice"] for record in read_audit(cut) if record.kind == "advice"]
        for each in (*found, *expected):
            each["seconds"] = 0.0
        assert found == expected
        again = replay_audit(cut)
        assert (again.decisions, again.reproduced, again.first) == (len(expected), len(expected), "")


def test_another_policy_after_a_restart_begins_without_memory(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    for policy, count in (("portfolio(fcfs, conservative-keep)", 6), ("conservative-keep", 12)):
        twin = made(Script(*batches()[:count]), audit, policy, when="passed")
        twin.run()
        twin.close()
    found = replay_audit(audit)
    assert (found.decisions, found.reproduced, found.first) == (12, 12, "")
    numbers = [record.values["advice"]["number"] for record in read_audit(audit) if record.kind == "advice"]
    assert numbers == list(range(1, 13))


def test_an_audit_of_another_platform_is_not_continued(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    twin = made(Script(*batches(3)), audit, when="passed")
    twin.run()
    twin.close()
    remake: Callable[[Any], Mirror] = lambda values: Mirror.from_document(values, SPEC)  # noqa: E731
    assert continued(audit, SPEC, "alps", remake) is not None
    assert continued(audit, ClusterSpec.simple(8), "alps", remake) is None
    assert continued(audit, SPEC, "other", remake) is None
    assert continued(tmp_path / "none.jsonl", SPEC, "alps", remake) is None


def test_states_are_written_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("simmodel_site.twin.twin.wall.monotonic", lambda: now[0])
    audit = tmp_path / "audit.jsonl"
    twin = made(Script(*batches()), audit, when="passed", state_every=5.0)
    for _ in range(12):
        twin.step()
        now[0] += 1.0
    assert kinds(audit).count("state") == 3
    assert replay_audit(audit).reproduced == 12


def test_states_are_a_small_part_of_the_log(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    made(Script(*batches(80)), audit, when="passed", state_every=0.0).run()
    lines = audit.read_bytes().splitlines()
    states = [line for line in lines if json.loads(line)["kind"] == "state"]
    assert len(states) > 3
    assert sum(map(len, states)) < 0.4 * sum(map(len, lines))


def test_a_full_disk_stops_the_advice_but_not_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("simmodel_site.twin.twin.wall.monotonic", lambda: now[0])
    audit = tmp_path / "audit.jsonl"
    advices: list[Any] = []
    twin = made(Script(*batches()), audit, when="passed", told=[advices.append])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for step in range(12):
            if step == 4:
                resource.setrlimit(resource.RLIMIT_FSIZE, (audit.stat().st_size + 50, limits[1]))
            if step == 8:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            twin.step()
            now[0] += 2.0
            if 4 <= step < 8:
                assert "File too large" in twin.status.troubles[0]
                assert twin.mirror.now == step
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert twin.status.troubles == ()
    twin.close()
    assert [advice.time for advice in advices] == [0, 1, 2, 3, 8, 9, 10, 11]
    assert [advice.number for advice in advices] == list(range(1, 9))
    found = replay_audit(audit)
    assert (found.decisions, found.reproduced, found.first) == (8, 8, "")


# ---------------------------------------------------------------------- real processes


@pytest.mark.long
def test_a_twin_that_is_killed_in_mid_decision_continues(tmp_path: Path) -> None:
    """Kill the twin at random moments; the plant waits, and every job starts as simulated."""
    log = load_workload("schedtwin")
    result = simulate(None, log, "portfolio")
    prepare_folder(tmp_path, result.processors, "portfolio")
    audit = tmp_path / "audit.jsonl"
    plant = begin_plant(tmp_path, jobs_of(log, result.processors), result.processors)
    kills = 0
    with ending(plant):
        while plant.poll() is None:
            twin = begin_twin(tmp_path)
            with ending(twin):
                size = audit.stat().st_size if audit.exists() else 0
                while plant.poll() is None and (not audit.exists() or audit.stat().st_size < size + 60_000):
                    time.sleep(0.003)
                if plant.poll() is None:
                    twin.kill()
                    kills += 1
                else:
                    stop(twin)
        assert plant.returncode == 0
    assert kills >= 3
    starts = starts_of(tmp_path)
    assert sum(starts[str(row["job"])] != row["start"] for row in result.jobs.rows()) == 0
    numbers = [record.values["advice"]["number"] for record in read_audit(audit) if record.kind == "advice"]
    assert numbers == list(range(1, len(numbers) + 1))
    found = replay_audit(audit)
    assert (found.decisions, found.reproduced, found.first) == (len(numbers), len(numbers), "")
