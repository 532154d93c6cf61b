"""Logs replayed as sources: as recorded, and on a simulated cluster that takes the advice."""

import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from simmodel import Workload, load_workload, simulate, start
from simmodel.formats import write_swf
from simmodel.foundation.errors import InputError
from simmodel_site.twin import Advisor, Ended, Event, Mirror, Source, Started, Submitted, Twin, replay_log
from simmodel_site.twin.events import Passed
from simmodel_site.twin.sources.log import AdvisedLog, LogSettings, RecordedLog
from tests.helpers.examples import up_to


def told(source: RecordedLog | AdvisedLog) -> list[Event]:
    events: list[Event] = []
    while not source.over:
        events += source.events(0.0)
    return events


def recorded_log() -> Workload:
    """Return a log with the waits of a simulation, as they would be recorded."""
    log = load_workload("schedtwin")
    jobs = simulate(None, log, "sjf+easy").jobs
    return log.replace(wait=jobs["start"] - jobs["submit"])


def test_both_are_sources() -> None:
    assert isinstance(RecordedLog(recorded_log(), "alps"), Source)
    assert isinstance(AdvisedLog(start(None, "schedtwin", "fcfs"), "alps"), Source)


def test_a_recorded_log_tells_its_jobs_and_each_instant() -> None:
    log = recorded_log()
    events = told(RecordedLog(log, "alps"))
    assert [event.time for event in events] == sorted(event.time for event in events)
    for kind, column in ((Submitted, log["submit"]), (Started, log["submit"] + log["wait"])):
        found = {event.job: event.time for event in events if isinstance(event, kind)}
        assert found == dict(zip(log["job"].tolist(), column.tolist(), strict=True))
    instants = sorted({event.time for event in events})
    assert [event.time for event in events if isinstance(event, Passed)] == instants
    order = {Ended: 0, Submitted: 1, Passed: 2, Started: 3}
    for before, after in pairwise(events):
        assert before.time < after.time or order[type(before)] <= order[type(after)]


@pytest.mark.long  # smaller: the other tests of the file
def test_the_mirror_of_a_recorded_log_ends_empty_and_refuses_nothing() -> None:
    log = recorded_log()
    mirror = Mirror(32, "alps", "sjf+easy")
    decided: list[float] = []
    advisor = Advisor("easy")
    source = RecordedLog(log, "alps")
    Twin(source, mirror, advisor, when="passed", told=[lambda advice: decided.append(advice.time)]).run()
    assert not mirror.refused
    assert (mirror.jobs["running"], mirror.jobs["waiting"]) == (0, 0)
    assert len(decided) > 200


def test_what_has_no_recorded_start_is_left_out_and_counted() -> None:
    columns = {"submit": [0, 1, 2, 3], "run": [5, 5, -1, 5], "wait": [0, -1, 0, np.nan], "processors": [1, 1, 1, 1]}
    source = RecordedLog(Workload(columns), "alps")
    assert {event.job for event in told(source) if isinstance(event, Submitted)} == {1}
    assert dict(source.refused) == {"jobs left out: run time missing": 1, "jobs left out: no recorded start": 2}


def test_recorded_starts_and_ends_of_no_length_are_told_in_order() -> None:
    log = Workload({"submit": [1, 1], "run": [0, 4], "wait": [0, 2], "processors": [1, 1]})
    kinds = [(event.kind, event.time) for event in told(RecordedLog(log, "alps"))]
    assert kinds[:5] == [("submitted", 1), ("submitted", 1), ("passed", 1), ("started", 1), ("ended", 1)]


def test_a_replay_keeps_to_its_speed() -> None:
    log = Workload({"submit": [100, 130], "run": [1, 1], "wait": [0, 0], "processors": [1, 1]})
    source = RecordedLog(log, "alps", speed=100.0)
    begin = time.monotonic()
    assert [event.time for event in source.events(0.0)] == [100.0, 100.0, 100.0]
    assert list(source.events(0.0)) == []
    told(source)
    assert time.monotonic() - begin >= 0.3


@pytest.mark.parametrize("speed", [0.0, -1.0, np.nan, np.inf])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(InputError, match="speed: must be a finite number > 0"):
        RecordedLog(recorded_log(), "alps", speed=speed)


def test_settings_open_a_file_or_a_ready_log(tmp_path: Path) -> None:
    write_swf(recorded_log(), tmp_path / "mine.swf")
    assert len(told(LogSettings(log="mine.swf").open("alps", tmp_path))) > 450
    with pytest.raises(InputError):
        LogSettings(log="none.swf").open("alps", tmp_path)


def test_advice_for_another_instant_is_refused() -> None:
    source = AdvisedLog(start(4, _jobs(), "fcfs"), "alps")
    list(source.events(0.0))
    advice = Advisor("fcfs").advise(Mirror(4, "alps").snapshot())
    with pytest.raises(InputError, match="advice: must be for 3 s, got 0 s"):
        source.advised(advice)


def _jobs() -> Workload:
    return Workload({"submit": [3], "run": [5], "processors": [2]})


def test_a_machine_takes_no_advice() -> None:
    with pytest.raises(InputError, match="simulation: must be of a cluster"):
        AdvisedLog(start("hetsim-slow", "random:tasks=5"), "alps")


def test_the_summary_has_decisions_shares_and_waits() -> None:
    log = recorded_log().where(slice(0, up_to(400, 60)))
    found = replay_log(None, log, "portfolio(fcfs, sjf, backfill=easy)", scheduler="easy")
    lines = found.summary().splitlines()
    assert "decisions" in lines[0]
    assert lines[lines.index("") + 1 :][0].split() == ["decisions", "jobs", "started"]
    head = next(line for line in lines if "advised" in line)
    assert head.split() == ["recorded", "easy", "advised"]
    assert int(found.shares["jobs"].sum()) == len(found.advised.jobs)
    assert found.recorded["wait_mean"] == pytest.approx(log["wait"].mean())
    assert found.plot().axes[0].get_title("left") == "waiting jobs under easy"


def test_a_frame_and_jobs_with_names_are_replayed() -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"job": np.array(["x", "y"], dtype=object), "submit": [0, 1], "run": [5, 5], "processors": [1, 1]}
    found = told(RecordedLog(pandas.DataFrame({**columns, "wait": [0, 4]}), "alps"))
    assert [(event.kind, event.time, getattr(event, "job", None)) for event in found if event.kind != "passed"] == [
        ("submitted", 0, "x"),
        ("started", 0, "x"),
        ("submitted", 1, "y"),
        ("ended", 5, "x"),
        ("started", 5, "y"),
        ("ended", 10, "y"),
    ]


def test_recorded_starts_are_those_that_referees_see() -> None:
    columns = {"submit": [0, 5, 9], "run": [10, 10, 10], "processors": [1, 1, 1]}
    log = Workload({**columns, "recorded_start": [2, np.nan, 12], "wait": [0, 3, 0]}, processors=3)
    assert [each.time for each in told(RecordedLog(log, "alps")) if each.kind == "started"] == [2.0, 8.0, 12.0]
