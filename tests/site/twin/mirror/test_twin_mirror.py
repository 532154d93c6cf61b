"""The mirror: its state follows from what was told, in any order and any number of times."""

from __future__ import annotations

import json
import sys
from random import Random
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import what_if
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, QueueSpec
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
from simmodel_site.twin.events import Passed
from tests.helpers.examples import up_to
from tests.site.helpers.told_events import ALPS, NODES, about, check, histories, running, same, submitted, told, waiting


def test_jobs_wait_run_and_end() -> None:
    mirror = told(Mirror(4, "alps"), submitted(1, 0, 3), submitted(2, 1, 2), Started(**about(1, 2.0, 0)))
    assert (running(mirror), waiting(mirror), mirror.now) == ({1: 2.0}, [2], 2.0)
    assert what_if(mirror.snapshot(), ["fcfs"])["fcfs"].starts[0].at == 62.0
    told(mirror, Ended(**about(1, 9.0, 0)), Started(**about(2, 9.0, 1)))
    assert (running(mirror), waiting(mirror)) == ({2: 9.0}, [])
    assert mirror.jobs == {"running": 1, "waiting": 0, "held": 0, "told": 2}
    assert not mirror.refused


@given(histories())
@settings(max_examples=up_to(60), deadline=None)
def test_a_mirror_in_step_is_what_is_built_from_scratch(events: list[Event]) -> None:
    mirror = told(Mirror(NODES, "alps"), *events)
    assert not mirror.refused


@given(histories(), st.integers(0, 2**32))
@settings(max_examples=up_to(100), deadline=None)
def test_neither_the_order_nor_the_number_of_tellings_matters(events: list[Event], seed: int) -> None:
    random = Random(seed)
    in_order = Mirror(NODES, "alps")
    for event in events:
        in_order.apply(event)
    again = [each for each in events for _ in range(random.randint(1, 3))]
    random.shuffle(again)
    mirror = Mirror(NODES, "alps")
    for event in again:
        mirror.apply(event)
        if random.random() < 0.3:
            mirror.snapshot()
    same(mirror.snapshot(), in_order.snapshot())
    assert mirror.jobs == in_order.jobs


# ---------------------------------------------------------------------- what real schedulers do


def test_an_id_that_is_used_again_is_another_job() -> None:
    mirror = told(Mirror(4, "alps"), submitted(7, 0.0, 3), Started(**about(7, 1.0)), submitted(7, 50.0, 2))
    assert (running(mirror), waiting(mirror)) == ({}, [7])
    told(mirror, Ended(**about(7, 60.0, 0.0)), Started(**about(7, 61.0, 50.0)))
    assert running(mirror) == {7: 61.0}
    assert mirror.jobs["told"] == 2


def test_a_start_that_comes_before_the_end_that_made_room_for_it() -> None:
    mirror = told(Mirror(4, "alps"), submitted(1, 0.0, 3), submitted(2, 0.0, 3), Started(**about(1, 1.0)))
    told(mirror, Started(**about(2, 30.0)))
    assert running(mirror) == {2: 30.0}, "the job that started last is there"
    told(mirror, Ended(**about(1, 30.0)))
    assert running(mirror) == {2: 30.0}
    told(mirror, submitted(3, 31.0), Started(**about(3, 31.0, 31.0)))
    assert running(mirror) == {2: 30.0, 3: 31.0}


def test_jobs_may_run_where_limits_and_drains_do_not_let_them_start() -> None:
    spec = ClusterSpec(
        partitions=[PartitionSpec(name="a", nodes=[NodeSpec(count=2, cores=4)], max_requested=10.0)],
        queues=[QueueSpec(name="one", max_running_per_user=1, max_processors=2)],
        outages=[OutageSpec(kind="maintenance", at=20.0, until=60.0, nodes=[0, 1])],
    )
    mirror = Mirror(spec, "alps")
    told(mirror, *(submitted(job, 0.0, 4, queue="one", user="ada") for job in (1, 2)))
    told(mirror, Started(**about(1, 1.0), nodes=(("node1", 4),)))
    assert [work.id for work in mirror.snapshot().held] == [2]
    told(mirror, NodesChanged(**ALPS, time=2.0, state="draining", nodes=("node0",)))
    told(mirror, Started(**about(2, 3.0), nodes=(("node0", 4),)))
    assert running(mirror) == {1: 1.0, 2: 3.0}
    mirror.advance(30.0)
    check(mirror)
    assert running(mirror) == {1: 1.0, 2: 3.0}, "what ends, and when, is told"
    mirror.advance(70.0)
    assert [node for node, _ in mirror.snapshot().places[0].down] == [0]


def test_dependencies_are_met_by_what_was_told() -> None:
    mirror = Mirror(4, "alps")
    told(mirror, submitted(1, 0.0, 4), submitted(2, 1.0, dependencies=((1, "success"),)))
    told(
        mirror, submitted(3, 2.0, dependencies=((1, "end"), (2, "end"))), submitted(4, 3.0, dependencies=((9, "end"),))
    )
    assert waiting(mirror) == [1, 4]
    assert [work.id for work in mirror.snapshot().blocked] == [2, 3]
    starts = what_if(mirror.snapshot(), ["fcfs"])["fcfs"].starts
    assert {each.job: each.at for each in starts} == {1: 3.0, 4: 63.0, 2: 63.0, 3: 123.0}
    told(mirror, Started(**about(1, 5.0)), Ended(**about(1, 9.0), status="failed"))
    assert waiting(mirror) == [4], "the second waits in vain, and so does the third until that is over"
    told(mirror, Ended(**about(2, 10.0, 1.0), status="cancelled"))
    assert waiting(mirror) == [3, 4]
    assert mirror.snapshot().waiting[0].past is not None
    assert mirror.snapshot().waiting[0].past.eligible == 10.0


def test_a_job_that_outlives_its_limit_is_expected_to_end_just_after_now() -> None:
    mirror = told(Mirror(2, "alps"), submitted(1, 0.0, 2), submitted(2, 0.0, 2), Started(**about(1, 0.0)))
    mirror.advance(100.0)
    assert 100.0 < what_if(mirror.snapshot(), ["fcfs"])["fcfs"].starts[0].at < 100.001
    told(mirror, Changed(**about(1, 100.0), request=Demand(processors=2, requested=150.0)))
    assert what_if(mirror.snapshot(), ["fcfs"])["fcfs"].starts[0].at == 150.0


@pytest.mark.parametrize(
    "name", ['a"b', "two\nlines", "$(reboot)", "; rm -rf /", "\x1b[31m", "\0", "z" * 1_000_000, ""]
)
def test_hostile_names_are_names(name: str) -> None:
    mirror = Mirror(4, "alps")
    changed = mirror.apply(submitted(name, 0.0, user=name[:99], group=name[:99], partition=name[:99] or None))
    assert changed == (len(name) <= 1000)
    mirror.apply(Started(**about(name, 1.0), partition=name[:99], nodes=((name[:99], 3),)))
    mirror.apply(NodesChanged(**ALPS, time=1.0, state="down", nodes=(name,)))
    check(mirror)
    assert max(map(len, mirror.refused), default=0) < 600


def test_what_cannot_be_is_counted_and_changes_nothing() -> None:
    mirror = told(Mirror(4, "alps", clock=lambda: 1000.0), submitted(1, 0.0))
    before = mirror.snapshot()
    wrong: list[Event] = [
        Started(cluster="other", job=1, submit=0.0, time=3.0),
        Passed(cluster="alps'", time=3.0),
        NodesChanged(**ALPS, time=0.0, state="down", nodes=("n1",)),
        NodesChanged(**ALPS, time=0.0, state="down", processors=-3),
        Started(**about(1, 1e300)),
        submitted(2, 1e9),
    ]
    assert [mirror.apply(event) for event in wrong] == [False] * len(wrong)
    assert mirror.refused.total() == len(wrong)
    same(mirror.snapshot(), before)


def test_instants_of_a_report_that_cannot_be_are_refused() -> None:
    jobs = [
        JobReport(job=1, submit=1e300, state="waiting", request=Demand()),
        JobReport(job=2, submit=1.0, state="running", started=1e300, request=Demand()),
        JobReport(job="z" * 5000, submit=1.0, state="waiting", request=Demand()),
        JobReport(job=3, submit=1.0, state="running", started=0.5, request=Demand()),
    ]
    mirror = told(Mirror(4, "alps"), StateReport(**ALPS, time=10.0, jobs=tuple(jobs)))
    assert (mirror.now, running(mirror), waiting(mirror)) == (10.0, {3: 1.0}, [2])
    assert mirror.refused.total() == 3


def test_jobs_that_the_platform_cannot_run_are_outside_and_counted() -> None:
    mirror = told(Mirror(4, "alps"), submitted(1, 0.0, 5), submitted(2, -1.0), submitted(3, 0.0, 0))
    assert mirror.snapshot().tally == (0, 0)
    assert mirror.refused.total() >= 3
    told(mirror, Started(**about(1, 1.0)), submitted(4, 2.0), Started(**about(4, 2.0, 2.0)))
    assert running(mirror) == {4: 2.0}


def test_clocks_that_step_back_do_not_move_the_mirror_back() -> None:
    mirror = told(Mirror(4, "alps"), submitted(1, 100.0), submitted(2, 40.0), Started(**about(2, 41.0, 40.0)))
    assert mirror.now == 100.0
    assert (running(mirror), waiting(mirror)) == ({2: 41.0}, [1])
    mirror.advance(50.0)
    assert mirror.now == mirror.snapshot().now == 100.0


def test_a_restarted_mirror_goes_on() -> None:
    """With what came before its start, and with what is told again after it."""
    events = [submitted(job, job, 1 + job % 3) for job in range(6)]
    events += [Started(**about(job, 10.0 + job, job)) for job in range(3)]  # type: ignore[misc]
    rest = [Ended(**about(1, 20.0, 1)), Requeued(**about(2, 21.0, 2)), Started(**about(5, 22.0, 5))]
    whole = told(Mirror(8, "alps", "easy"), *events, *rest)
    document = json.loads(json.dumps(told(Mirror(8, "alps", "easy"), *events).state_document()))
    again = Mirror.from_document(document, 8, "easy")
    for event in events:
        assert not again.apply(event)
    told(again, *rest)
    same(again.snapshot(), whole.snapshot())
    with pytest.raises(InputError, match="format: must be 'simmodel mirror'"):
        Mirror.from_document({}, 8)
    with pytest.raises(InputError, match="must be the document of a mirror: KeyError"):
        Mirror.from_document({"format": "simmodel mirror", "schema": 1}, 8)


def test_fair_share_counts_on_over_a_rebuild() -> None:
    mirror = Mirror(4, "alps", "multifactor(fair_share=1)")
    told_once = [submitted(1, 0.0, 4, user="ada"), Started(**about(1, 0.0)), submitted(2, 50.0, user="bob")]
    for event in told_once:
        mirror.apply(event)
        mirror.snapshot()
    mirror.advance(100.0)
    mirror.apply(Ended(**about(1, 100.0)))
    used = mirror.snapshot().usage
    assert used[0][1][0][:2] == ("ada", pytest.approx(400.0, rel=0.01))
    mirror.apply(submitted(3, 20.0, user="eve"))  # late: the cluster is built again
    assert waiting(mirror) == [3, 2]
    assert mirror.snapshot().usage == used
    check(mirror)


def test_predictions_are_learned_from_what_was_told_and_kept_over_a_rebuild() -> None:
    mirror = Mirror(4, "alps", "easy", estimates="recent-two")
    for job in range(4):
        mirror.apply(submitted(job, 100.0 * job, 4, requested=1000.0, user="ada"))
        mirror.apply(Started(**about(job, 100.0 * job, 100.0 * job)))
        mirror.snapshot()
        mirror.apply(Ended(**about(job, 100.0 * job + 30, 100.0 * job)))
    told_now = [submitted(9, 900.0, 4, requested=1000.0, user="ada"), submitted(8, 800.0, 4, user="bob")]
    for event in told_now:  # the second is late: the cluster is built again
        mirror.apply(event)
    (bob, ada) = mirror.snapshot().waiting
    assert (ada.id, ada.requested, bob.requested) == (9, 30.0, 60.0)
    document = json.loads(json.dumps(mirror.state_document()))
    again = Mirror.from_document(document, 4, "easy", estimates="recent-two")
    same(again.snapshot(), mirror.snapshot())


def test_a_copy_has_the_same_state_and_goes_its_own_way() -> None:
    mirror = Mirror(4, "alps", "easy", unlimited=50.0, estimates="exact")
    job: dict[str, Any] = {"cluster": "alps", "job": 1, "submit": 0.0}
    mirror.apply(Submitted(**job, time=0.0, request=Demand(processors=3)))
    copy = mirror.copy()
    assert copy.digest == mirror.digest
    assert copy.snapshot().waiting[0].requested == 50.0
    copy.apply(Started(**job, time=2.0))
    assert (copy.jobs["running"], mirror.jobs["running"], mirror.now) == (1, 0, 0.0)


def test_an_event_takes_few_calls() -> None:
    """Functions of Python that are called for each kind of event: there were 138, 56 and 58."""
    mirror = told(Mirror(100, "alps"), *(submitted(job, job, 4) for job in range(50)))
    mirror.snapshot()
    calls = dict.fromkeys((Submitted, Started, Ended), 0)
    kind: type[Event]

    def count(_frame: FrameType, what: str, _value: object) -> None:
        calls[kind] += what == "call"

    for job in range(10):
        at = 50.0 + job
        for event in (submitted(50 + job, at, 4), Started(**about(job, at, job)), Ended(**about(job, at + 0.5, job))):
            kind = type(event)
            sys.setprofile(count)
            mirror.apply(event)
            sys.setprofile(None)
    assert mirror.jobs == {"running": 0, "waiting": 50, "held": 0, "told": 60}
    assert calls[Submitted] <= 1250
    assert calls[Started] <= 510
    assert calls[Ended] <= 510
