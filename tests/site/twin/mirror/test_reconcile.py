"""Full reports: what is missing becomes events, what is newer stands."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
from hypothesis import given, settings, strategies as st

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.snapshots import ClusterSnapshot
from simmodel_site.twin import (
    Changed,
    Demand,
    Ended,
    Event,
    JobReport,
    Mirror,
    NodesChanged,
    Requeued,
    Started,
    StateReport,
    Submitted,
)
from simmodel_site.twin.mirror.reconcile import missing
from tests.helpers.examples import up_to
from tests.site.helpers.told_events import NODES, about, check, histories, running, same, submitted, told, waiting

ONE = Demand(processors=1, requested=60.0)


def report(time: float, *jobs: JobReport, **more: Any) -> StateReport:
    return StateReport(cluster="alps", time=time, jobs=jobs, **more)


def reported(job: int | str, submit: float, state: Any, **more: Any) -> JobReport:
    return JobReport(job=job, submit=submit, state=state, request=more.pop("request", ONE), **more)


def kinds(mirror: Mirror, given: StateReport) -> list[tuple[str, Any, float]]:
    found = missing(given, mirror.ledger, mirror.nodes)
    return [(event.kind, getattr(event, "job", None), event.time) for event in found]


def test_a_first_report_tells_all() -> None:
    mirror = Mirror(8, "alps")
    first = report(
        100.0,
        reported(1, 5.0, "running", started=20.0),
        reported(2, 6.0, "waiting"),
        reported(3, 7.0, "held"),
        reported(4, 8.0, "failed", started=10.0, ended=11.0),
    )
    told(mirror, first)
    assert (running(mirror), waiting(mirror)) == ({1: 20.0}, [2])
    assert mirror.jobs == {"running": 1, "waiting": 1, "held": 1, "told": 4}
    assert not mirror.apply(first)
    assert kinds(mirror, first) == []


def test_a_report_in_the_order_of_the_queue_gives_numbers_in_the_order_of_submission() -> None:
    mirror = Mirror(8, "alps")
    jobs = [reported(job, submit, "waiting") for job, submit in (("7_2", 5.0), (3, 1.0), ("7_10", 5.0), ("7_1", 5.0))]
    submissions = missing(report(10.0, *jobs), mirror.ledger, mirror.nodes)
    assert [event.job for event in submissions if isinstance(event, Submitted)] == [3, "7_1", "7_2", "7_10"]
    told(mirror, report(10.0, *jobs))
    assert waiting(mirror) == [3, "7_1", "7_2", "7_10"]


def test_what_vanished_is_over_and_what_came_is_there() -> None:
    mirror = told(Mirror(8, "alps"), submitted(1, 0), submitted(2, 1), Started(**about(1, 2.0)))
    later = report(50.0, reported(3, 30.0, "running", started=40.0))
    assert kinds(mirror, later) == [
        ("submitted", 3, 30.0),
        ("started", 3, 40.0),
        ("ended", 1, 50.0),
        ("ended", 2, 50.0),
    ]
    told(mirror, later)
    assert (running(mirror), waiting(mirror)) == ({3: 40.0}, [])


def test_a_report_of_an_older_time_undoes_nothing() -> None:
    mirror = told(
        Mirror(8, "alps"),
        *(submitted(job, 0) for job in (1, 2, 3)),
        Started(**about(1, 20.0)),
        Started(**about(2, 5.0)),
        Ended(**about(2, 20.0)),
        submitted(4, 20.0),
    )
    old = report(
        10.0, reported(1, 0.0, "waiting"), reported(2, 0.0, "running", started=5.0), reported(3, 0.0, "waiting")
    )
    assert kinds(mirror, old) == []
    without = report(10.0, *(reported(job, 0.0, "waiting") for job in (1, 2)))
    assert kinds(mirror, without) == [("requeued", 2, 10.0), ("ended", 3, 10.0)]
    told(mirror, without)
    assert running(mirror) == {1: 20.0}
    assert waiting(mirror) == [4]


def test_a_report_that_is_as_new_as_an_event_does_not_contradict_it() -> None:
    """A scheduler that reports whole seconds may be slower than its own scripts."""
    mirror = told(Mirror(8, "alps"), submitted(1, 0), submitted(2, 0), Started(**about(1, 9.4)), Ended(**about(2, 9.3)))
    assert kinds(mirror, report(10.0, reported(1, 0.0, "waiting"), reported(2, 0.0, "waiting"))) == []
    assert kinds(mirror, report(10.0, reported(1, 0.0, "running", started=9.0))) == []
    assert kinds(mirror, report(11.0, reported(1, 0.0, "waiting"))) == [("requeued", 1, 11.0)]


def test_attempts_that_were_missed_are_told_apart_by_their_starts() -> None:
    mirror = told(Mirror(8, "alps"), submitted(1, 0), Started(**about(1, 5.0)))
    again = report(50.0, reported(1, 0.0, "running", started=30.0))
    assert kinds(mirror, again) == [("requeued", 1, 30.0), ("started", 1, 30.0)]
    told(mirror, again)
    run = mirror.snapshot().running[0]
    assert (run.started, run.attempt) == (30.0, 2)
    told(mirror, Ended(**about(1, 60.0)), report(90.0, reported(1, 0.0, "running", started=80.0)))
    assert mirror.snapshot().running[0].attempt == 3


def test_requests_holds_and_places_come_from_reports() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(name="a", nodes=[NodeSpec(count=4, cores=4)])])
    mirror = told(Mirror(spec, "alps"), submitted(1, 0, 4), submitted(2, 0, 4), submitted(3, 0, 4, held=True))
    told(mirror, Started(**about(1, 3.0)))
    large = Demand(processors=8, requested=600.0, priority=5.0)
    small = Demand(processors=4, requested=60.0)
    told(
        mirror,
        report(
            10.0,
            reported(1, 0.0, "running", started=3.0, nodes=(("node3", 4),), request=small),
            reported(2, 0.0, "held", request=small),
            reported(3, 0.0, "waiting", request=large),
            down=("node0",),
            draining=("node1",),
        ),
    )
    snapshot = mirror.snapshot()
    assert snapshot.running[0].nodes == (3,)
    assert [(work.id, work.processors, work.requested, work.priority) for work in snapshot.waiting] == [
        (3, 8, 600.0, 5.0)
    ]
    assert [node for node, _ in snapshot.places[0].down] == [0, 1]
    told(mirror, report(20.0, reported(1, 0.0, "running", started=3.0, request=small), down=(), draining=("node1",)))
    assert [node for node, _ in mirror.snapshot().places[0].down] == [1]
    assert not mirror.apply(report(15.0, down=("node0", "node2"), draining=()))
    assert mirror.refused == {"report older than the last one": 1}


def report_of(mirror: Mirror, time: float) -> StateReport:
    """Return the report that a scheduler would give whose state is that of a mirror."""
    jobs = []
    for entry in sorted(mirror.ledger.alive(), key=lambda entry: entry.order):
        state = entry.state
        phase: Any = "held" if state.held and state.phase == "waiting" else state.phase
        where = {"started": state.started, "partition": state.partition, "nodes": state.nodes}
        jobs.append(JobReport(job=entry.id, submit=entry.submit, state=phase, request=entry.request, **where))
    out = mirror.nodes.out
    down = tuple(name for name, state in out.items() if state == "down")
    return report(time, *jobs, down=down, draining=tuple(name for name in out if name not in down))


@given(histories(), st.integers(0, 2**32))
@settings(max_examples=up_to(60), deadline=None)
def test_a_report_leads_from_any_part_of_a_history_to_its_end(events: list[Event], seed: int) -> None:
    """A gap of any events, and then a report: the same jobs wait and run as if nothing had been missed."""
    random = Random(seed)
    whole, part = Mirror(NODES, "alps"), Mirror(NODES, "alps")
    for event in events:
        if isinstance(event, (Submitted, Changed)):  # of a job that was missed it is not known whether it succeeded
            event = attrs.evolve(event, request=attrs.evolve(event.request, dependencies=()))
        whole.apply(event)
        if random.random() < 0.5 or (isinstance(event, NodesChanged) and event.processors):
            part.apply(event)
    end = report_of(whole, whole.now + 10.0 if events else 10.0)
    part.apply(end)
    whole.apply(end)
    check(part)
    mine, expected = part.snapshot(), whole.snapshot()
    assert _running(mine) == _running(expected)
    assert _waiting(mine) == _waiting(expected)
    assert mine.places == expected.places
    assert kinds(part, end) == []


def _running(snapshot: ClusterSnapshot) -> list[tuple[Any, ...]]:
    runs = [(run.work.number, run.id, round(run.started, 6), run.place, run.nodes) for run in snapshot.running]
    return [each[1:] for each in sorted(runs, key=lambda each: each[0])]


def _waiting(snapshot: ClusterSnapshot) -> list[tuple[Any, ...]]:
    return [(work.id, work.submit, work.processors, work.requested, work.priority) for work in snapshot.waiting]


def test_reports_and_events_may_come_in_any_order() -> None:
    events: list[Event] = [
        submitted(1, 0.0),
        Started(**about(1, 5.0)),
        Requeued(**about(1, 20.0)),
        Started(**about(1, 30.0)),
    ]
    seen = report(10.0, reported(1, 0.0, "running", started=5.0))
    expected = told(Mirror(8, "alps"), *events[:2], seen, *events[2:]).snapshot()
    same(told(Mirror(8, "alps"), *reversed(events), seen).snapshot(), expected)
    same(told(Mirror(8, "alps"), seen, *events[2:]).snapshot(), expected)


def test_a_submission_told_after_a_report_without_the_job_is_over() -> None:
    late = told(Mirror(8, "alps"), report(10.0), submitted(1, 5.0), submitted(2, 9.5), Started(**about(3, 4.0, 2.0)))
    assert waiting(late) == [2]
    told(late, submitted(3, 2.0))
    assert running(late) == {}
    told(late, report(20.0, reported(1, 5.0, "waiting"), reported(2, 9.5, "waiting")))
    assert waiting(late) == [1, 2]
