"""Schedules of other simulators are told to be what they are, and mistakes in them are named."""

import csv
import gzip
from typing import Any

import pytest

from simmodel import simulate
from simmodel.catalogue import load_workload
from simmodel.referee import verify
from simmodel.referee.mistakes import MistakenEasy
from simmodel.work.workload import Workload
from tests.helpers.data_files import data_file

KTH = "KTH-SP2-1996-2-filtered"


def kth(column: str) -> tuple[Workload, dict[int, float]]:
    """Return the log of KTH and a reference schedule of it."""
    with gzip.open(data_file(f"refsched/{KTH}.starts.csv.gz"), "rt") as lines:
        starts = {int(row["job"]): float(row[column]) for row in csv.DictReader(lines)}
    return load_workload(data_file(f"swf/{KTH}.swf.gz")), starts


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("column", "policy", "estimates"),
    [
        ("start_easy", "easy", "requested"),
        pytest.param("start_easy_clairvoyant", "easy", "exact", marks=pytest.mark.long),
        ("start_easy_sjbf_clairvoyant", "easy-sjbf", "exact"),
    ],
)
def test_reference_schedules_are_verified(column: str, policy: str, estimates: str) -> None:
    log, starts = kth(column)
    verdict = verify(log, starts, policy=policy, decide_on="event", estimates=estimates)  # type: ignore[arg-type]
    assert verdict.right, verdict.report()


@pytest.mark.exhaustive
def test_planning_with_run_times_is_named_on_a_reference_schedule() -> None:
    log, starts = kth("start_easy_clairvoyant")
    verdict = verify(log, starts, policy="easy", decide_on="event")
    assert verdict.mistake == "planning with actual run times"
    assert verdict.mistakes["planning with actual run times"] == 1.0
    assert verdict.departures[0].job == 217
    assert verdict.judgement is not None
    assert verdict.judgement.explained() == pytest.approx(0.904954, abs=1e-6)


MISTAKES: dict[str, tuple[Any, str]] = {
    "no reservation for the head": (MistakenEasy("fcfs", shadow="none"), "requested"),
    "shadow time from limits instead of ends": (MistakenEasy("fcfs", shadow="limits"), "requested"),
    "planning with actual run times": ("easy", "exact"),
}


def named_on(count: int | None, mistake: str) -> None:
    """Check that a mistake in a schedule of the first jobs of KTH is told by its name."""
    policy, estimates = MISTAKES[mistake]
    log = load_workload(data_file(f"swf/{KTH}.swf.gz")).where(slice(count))
    verdict = verify(
        log, simulate(None, log, policy, decide_on="event", estimates=estimates), None, "easy", decide_on="event"
    )
    assert not verdict.right
    assert verdict.mistake == mistake
    assert verdict.mistakes[mistake] == 1.0


@pytest.mark.few(2)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_easy_are_named_on_a_real_log(mistake: str) -> None:
    named_on(1500, mistake)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_easy_are_named_on_a_whole_real_log(mistake: str) -> None:
    named_on(None, mistake)


def test_a_schedule_of_cqsim_is_verified() -> None:
    log, schedule = load_workload(data_file("swf/theta_1000.swf.gz")), data_file("cqsim/theta_1000.rst.gz")
    verdict = verify(
        log, schedule, policy="conservative", decide_on="event", event_order="ends-first", estimates="cqsim"
    )
    assert verdict.right, verdict.report()
    assert len(verdict.schedule.notes) == 1
