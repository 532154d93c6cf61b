"""A log played through a stand-in for PBS, followed by a twin in each mode: events in, what-if, decisions out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, get_args

import pytest

from simmodel import what_if
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel_site.twin import Advisor, AuditLog, Mirror, Twin, read_audit, replay_audit
from simmodel_site.twin.acting.acting import Acting
from simmodel_site.twin.acting.actions import MODES, ActSettings, Mode
from simmodel_site.twin.pbs.source import PbsSettings, PbsSource
from tests.site.helpers.pbs_stub import START, PbsStub

SPEC = ClusterSpec(
    name="alps",
    partitions=[PartitionSpec(name="workq", nodes=[NodeSpec(names="n1", cores=4)])],
    queues=[QueueSpec(name=name, partition="workq") for name in ("workq", "express")],
)
LOG = ((3, 100.0), (4, 50.0), (1, 50.0))
"""Processors and run times (s): EASY starts the third job beside the first, FCFS after the second."""
FCFS, EASY = {1: 0.0, 2: 100.0, 3: 150.0}, {1: 0.0, 2: 100.0, 3: 0.0}


class Played:
    """A twin with the clock of its PBS."""

    def __init__(self, folder: Path, mode: Mode, **hands: Any) -> None:
        self.pbs = PbsStub(folder / "pbs", {"n1": 4})
        source = PbsSource("alps", PbsSettings(interval=1e9), commands=self.pbs.commands(), clock=lambda: self.pbs.now)
        settings = ActSettings(mode=mode, rate=1000.0, maximum_delay=3600.0)
        self.acting = Acting(self.pbs.hands(mode, **hands), settings, folder, clock=lambda: self.pbs.now)
        self.twin = Twin(
            source,
            Mirror(SPEC, "alps"),
            Advisor("easy", fallback="fcfs"),
            AuditLog(folder / "audit.jsonl"),
            settle=0.0,
            report_every=1e9,
            acting=self.acting,
            clock=lambda: self.pbs.now,
        )

    def report(self) -> None:
        """Let the twin see what PBS has now, decide, and do what follows."""
        found = self.twin.source.report()
        assert found is not None
        self.twin.take(found)
        end = monotonic() + 60
        self.twin.step(0.0)
        self.twin.step(0.0)
        while self.acting._open:
            assert monotonic() < end, (self.twin.troubles, self.acting.outcomes)
            self.twin.step(0.0)
            sleep(0.001)

    def pass_time(self, seconds: float = 0.0) -> None:
        """Let time pass, and report; what is done then happens."""
        self.pbs.advance(seconds)
        self.report()
        self.pbs.advance()
        self.report()

    def starts(self) -> dict[int, float]:
        """Return when each job has started (s after the begin)."""
        return {
            int(name.partition(".")[0]): job["stime"] - START
            for name, job in self.pbs.state["jobs"].items()
            if "stime" in job
        }


@pytest.fixture(params=get_args(Mode))
def played(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Played]:
    made = Played(tmp_path, request.param)
    yield made
    made.twin.close()


@pytest.mark.few(1)
def test_a_log_is_followed_and_jobs_start_as_the_mode_says(played: Played) -> None:
    mode, pbs = played.acting.mode, played.pbs
    for cpus, run in LOG:
        pbs.submit(cpus, run, walltime=f"{run:g}", hold=1800.0 if mode == "hold-and-release" else 0.0)
    played.pass_time()
    mirror = played.twin.mirror
    own = what_if(mirror.snapshot(), ["fcfs"])["fcfs"]
    foretold = {each.job: each.at - START for each in own.starts}
    expected = EASY if MODES[mode] else FCFS
    assert {job: at for job, at in expected.items() if job in foretold}.items() == foretold.items()
    while any(job["job_state"] != "F" for job in pbs.state["jobs"].values()):
        played.pass_time(100.0)
    assert played.starts() == expected
    played.report()
    assert not list(mirror.ledger.alive())
    assert not mirror.refused
    assert not played.twin.source.refused
    said = {words[0] for words in pbs.writes()}
    assert said == ({"qalter"} if MODES[mode] else set())
    audit = played.acting.stop_file.parent / "audit.jsonl"
    log = list(read_audit(audit))
    sent = [line.values["action"]["command"] for line in log if line.kind == "action"]
    assert set(sent) <= set(MODES[mode])
    assert {line.values["outcome"]["what"] for line in log if line.kind == "outcome"} <= {"done", "already"}
    assert sent == {"priority": ["prefer"], "hold-and-release": ["release"] * 3}.get(mode, [])
    found = replay_audit(audit)
    assert (found.decisions - found.reproduced, found.first) == (0, "")


def test_released_jobs_can_be_started_at_once(tmp_path: Path) -> None:
    played = Played(tmp_path, "hold-and-release", start=True)
    played.pbs.submit(4, 50.0, hold=1800.0)
    played.pass_time()
    assert [words[0] for words in played.pbs.writes()] == ["qalter", "qrun"]
    assert played.starts() == {1: 0.0}
    played.twin.close()


def test_preferred_jobs_can_be_moved_to_a_queue_and_back(tmp_path: Path) -> None:
    played = Played(tmp_path, "priority", express="express")
    for cpus, run in (*LOG, (4, 10.0)):
        played.pbs.submit(cpus, run, walltime=f"{run:g}")
    played.pass_time()
    assert played.starts() == {1: 0.0, 3: 0.0}
    assert ["qmove", "express", "3"] in played.pbs.writes()
    played.twin.close()  # which gives back what waits
    waiting = [job for job in played.pbs.state["jobs"].values() if job["job_state"] == "Q"]
    assert {(job["queue"], job["Priority"]) for job in waiting} == {("workq", 0)}


def test_a_held_job_starts_by_itself_when_its_time_has_come(tmp_path: Path) -> None:
    pbs = PbsStub(tmp_path / "pbs", {"n1": 4})
    pbs.submit(1, 10.0, hold=30.0)
    pbs.advance(29.0)
    assert pbs.job(1)["job_state"] == "W"
    pbs.advance(1.0)
    assert pbs.job(1)["stime"] == START + 30.0
