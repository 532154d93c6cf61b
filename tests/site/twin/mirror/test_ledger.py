"""The ledger: states of jobs from what was told of them, in any order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from simmodel_site.twin import Changed, Demand, Ended, Mirror, OnHold, Released, Requeued, Started
from simmodel_site.twin.events import JobEvent
from simmodel_site.twin.mirror.job_history import Entry, natural_order
from simmodel_site.twin.mirror.ledger import Ledger
from tests.site.helpers.told_events import about, submitted, told

ASKED = Demand(processors=2, requested=60.0)


def state(*events: JobEvent) -> tuple[Any, ...]:
    """Return phase, start and attempts of job 1, which are the same in each order of what was told."""
    found = set()
    for order in permutations(events):
        entry = Entry(("alps", 1, 0.0))
        for event in (*order, *order):
            entry.tell(event)
        found.add((entry.state.phase, entry.state.started, entry.state.attempts))
    (only,) = found
    return only


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ("waiting", None, 0)),
        ([Started(**about(1, 5.0))], ("running", 5.0, 1)),
        ([Started(**about(1, 5.0)), Started(**about(1, 5.3))], ("running", 5.0, 1)),
        ([Started(**about(1, 5.0)), Ended(**about(1, 9.0))], ("over", 5.0, 1)),
        ([Ended(**about(1, 9.0))], ("over", None, 0)),
        ([Started(**about(1, 5.0)), Ended(**about(1, 5.0))], ("over", 5.0, 1)),
        ([Started(**about(1, 0.0)), Ended(**about(1, 0.0))], ("over", 0.0, 1)),
        ([Started(**about(1, 5.0)), Requeued(**about(1, 6.0))], ("waiting", None, 1)),
        ([Started(**about(1, 5.0)), Requeued(**about(1, 6.0)), Started(**about(1, 6.0))], ("running", 6.0, 2)),
        ([Started(**about(1, 5.0)), Ended(**about(1, 6.0)), Requeued(**about(1, 6.0))], ("waiting", None, 1)),
        ([Started(**about(1, 5.0)), Requeued(**about(1, 6.0)), Ended(**about(1, 7.0))], ("over", None, 1)),
        ([Ended(**about(1, 6.0)), Requeued(**about(1, 8.0)), Started(**about(1, 9.0))], ("running", 9.0, 1)),
    ],
)
def test_a_state_follows_from_the_set_of_events(events: list[JobEvent], expected: tuple[Any, ...]) -> None:
    assert state(submitted(1, 0.0), *events) == expected


def test_nothing_is_known_of_a_job_whose_submission_was_not_told() -> None:
    assert state(Started(**about(1, 5.0)), Changed(**about(1, 6.0), request=ASKED)) == ("unknown", None, 0)


def test_the_last_request_and_the_last_hold_count() -> None:
    longer = Demand(processors=2, requested=90.0)
    events = [
        submitted(1, 0.0, held=True),
        Released(**about(1, 2.0)),
        OnHold(**about(1, 3.0)),
        Changed(**about(1, 4.0), request=ASKED),
        Changed(**about(1, 5.0), request=longer),
    ]
    for order in permutations(events):
        entry = Entry(("alps", 1, 0.0))
        for event in order:
            entry.tell(event)
        assert (entry.state.held, entry.request) == (True, longer)


def test_a_start_told_again_with_nodes_fills_them_in() -> None:
    events = [submitted(1, 0.0), Started(**about(1, 5.0)), Started(**about(1, 5.2), partition="a", nodes=(("n1", 2),))]
    for order in permutations(events):
        entry = Entry(("alps", 1, 0.0))
        for event in order:
            entry.tell(event)
        assert (entry.state.started, entry.state.nodes) == (5.0, (("n1", 2),))


def test_numbers_are_those_of_the_order_of_submission() -> None:
    ledger = Ledger()
    given = [("3", 1.0), (2, 1.0), ("2_10", 5.0), ("2_9", 5.0), (7, 0.5)]
    moved = [ledger.tell(submitted(job, submit))[1] for job, submit in given]
    numbers = {entry.id: entry.number for entry in ledger.alive()}
    assert numbers == {7: 0, 2: 1, 3: 2, "2_9": 3, "2_10": 4}
    assert moved == [False, True, False, True, True]


def test_ids_sort_as_people_number_them() -> None:
    ids = ["a10", "a9", 12, "012", "1" * 5000, "", "7_1"]
    assert sorted(ids, key=natural_order) == ["", "7_1", 12, "012", "1" * 5000, "a9", "a10"]


def test_a_job_with_many_events_keeps_few() -> None:
    entry = Entry(("alps", 1, 0.0))
    entry.tell(submitted(1, 0.0))
    for time in range(1, 2000):
        entry.tell(Changed(**about(1, float(time)), request=Demand(processors=2, requested=60.0, priority=time)))
    assert len(entry.facts) < 50
    assert not entry.tell(Started(**about(1, 3.0)))
    assert entry.tell(Started(**about(1, 1998.5)))
    assert (entry.state.phase, entry.request.priority) == ("running", 1999)
    again = Entry.from_document(entry.document(), "alps")
    assert (again.state, again.facts) == (entry.state, entry.facts)


def test_what_is_over_is_remembered_for_a_while_and_then_forgotten() -> None:
    mirror = Mirror(4, "alps", remembered=10)
    for job in range(100):
        told(mirror, submitted(job, job), Started(**about(job, job, job)), Ended(**about(job, job + 0.5, job)))
        mirror.apply(Started(**about(f"unknown {job}", job, job)))
    assert len(mirror.ledger.entries) == 20
    assert not mirror.apply(submitted(95, 95))
    assert mirror.jobs == {"running": 0, "waiting": 0, "held": 0, "told": 100}


def test_jobs_that_others_wait_for_are_not_forgotten() -> None:
    mirror = Mirror(4, "alps", remembered=3)
    mirror.apply(submitted("first", 0.0))
    mirror.apply(Ended(**about("first", 1.0), status="failed"))
    mirror.apply(submitted("then", 2.0, dependencies=(("first", "success"),)))
    for job in range(20):
        mirror.apply(submitted(job, 5.0 + job))
        mirror.apply(Ended(**about(job, 6.0 + job, 5.0 + job)))
    assert mirror.ledger.entry("first") is not None
    assert mirror.snapshot().tally == (0, 0)
    mirror.apply(Ended(**about("then", 90.0, 2.0), status="cancelled"))
    for job in range(20, 30):
        mirror.apply(submitted(job, 90.0 + job))
        mirror.apply(Ended(**about(job, 91.0 + job, 90.0 + job)))
    assert mirror.ledger.entry("first") is None
