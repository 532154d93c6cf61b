"""Why a job waits: reasons worked out by hand, and changes that start it while the next smaller one does not."""

from collections import Counter
from itertools import count, pairwise
from typing import Any

import attrs
import numpy as np
import pytest

from simmodel import Cluster, Environment, Job, Reserve, Start, simulate
from simmodel.foundation.errors import InputError
from simmodel.platform import (
    ClusterSpec,
    ConsumableSpec,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.policies import Conservative, Easy
from simmodel.referee import explain, why_waits
from simmodel.scheduling.observer import Observer
from simmodel.work.job import Dependency
from simmodel.work.workload import Workload
from tests.helpers.drawn_clusters import crowded
from tests.helpers.drawn_schedules import drawn_log

LOG = Workload(
    {
        "submit": [0, 1, 2, 3],
        "run": [100, 50, 20, 10],
        "requested": [100, 50, 120, 10],
        "processors": [3, 4, 1, 1],
    },
    processors=4,
)


def test_the_head_waits_for_processors() -> None:
    found = explain(4, LOG, "easy", 2)
    assert (found.reason, found.needs, found.free) == ("processors", 4, 1)
    assert found.holders == ((1, 3, 100.0),)
    assert found.expected == 100.0
    assert [change[:2] for change in found.changes] == [("processors", 1)]
    assert list(found.spans.rows()) == [{"since": 1.0, "until": 100.0, "reason": "processors"}]


def test_a_job_that_would_delay_the_head_waits_for_order_and_a_shorter_limit_starts_it() -> None:
    found = explain(4, LOG, "easy", 3)
    assert (found.reason, found.ahead) == ("order", (2,))
    assert [change[:2] for change in found.changes] == [("requested", 98.0)]  # it must end when the head starts
    assert "it would start now with a limit of 98 s instead of 120 s" in found.report()
    assert "others go first" in found.report()
    assert found.plot(title="") is not None


def test_other_partitions_are_tried() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(name="a", processors=2), PartitionSpec(name="b", processors=4)])
    jobs = [Job(id=1, processors=2, run=9, partition="a"), Job(id=2, processors=2, run=9, partition="a", submit=1)]
    assert ("partition", "b") in [change[:2] for change in explain(spec, jobs, "fcfs", 2).changes]


def test_nodes_are_changed_where_nodes_are_requested() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=4, count=3)])])
    jobs = [
        Job(id=1, nodes=1, cores_per_node=4, run=9),
        Job(id=2, nodes=3, cores_per_node=4, run=9, submit=1),
    ]
    assert [change[:2] for change in explain(spec, jobs, "fcfs", 2).changes] == [("nodes", 2)]


def texts(found: Any) -> list[str]:
    """Return the sentences of an explanation without its tables."""
    return [line.strip() for line in found.report().split("\n") if not line.startswith("   ") and line[-1] != ":"]


FAT = PartitionSpec(nodes=[NodeSpec(cores=4, memory=8e9, count=2), NodeSpec(name="fat", cores=4, memory=64e9, gpus=2)])


def test_nodes_of_a_kind_are_a_reason_and_less_memory_starts_the_job() -> None:
    """8 processors are free, but not on the node with 64 GB; thin nodes have 8 GB."""
    jobs = [
        Job(id=1, nodes=1, cores_per_node=4, memory_per_node=60e9, run=9),
        Job(id=2, nodes=1, cores_per_node=2, memory_per_node=20e9, run=9, submit=1),
    ]
    found = explain(ClusterSpec(partitions=[FAT]), jobs, "easy", 2)
    assert texts(found) == [
        "job 2 at 1 s: needs 1 node of batch with 2 cores and 20GB of memory each; "
        "8 processors are free, but none such",
        "held by: job 1 (4 until 9 s)",
        "expected to start at 9 s, in 8 s, as promised",
        "it would start now with 8GB of memory per node instead of 20GB",
    ]
    assert (found.reason, found.changes[0][:2]) == ("nodes", ("memory_per_node", 8e9))


def test_gpus_are_changed() -> None:
    jobs = [
        Job(id=1, nodes=1, cores_per_node=1, gpus_per_node=1, run=9),
        Job(id=2, nodes=1, cores_per_node=1, gpus_per_node=2, run=9, submit=1),
    ]
    found = explain(ClusterSpec(partitions=[FAT]), jobs, "easy", 2)
    assert (found.reason, [change[:2] for change in found.changes]) == ("nodes", [("gpus_per_node", 1)])


def test_licences_are_a_reason_and_fewer_start_the_job() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], consumables=[ConsumableSpec(name="matlab", amount=5)])
    jobs = [
        Job(id=1, processors=1, consumables={"matlab": 3}, run=9),
        Job(id=2, processors=1, run=20),
        Job(id=3, processors=2, consumables={"matlab": 4}, run=9, submit=1),
    ]
    assert texts(explain(spec, jobs, "easy", 3)) == [
        "job 3 at 1 s: needs 4 of matlab, 2 are free",
        "held by: job 1 (1 until 9 s)",
        "expected to start at 9 s, in 8 s, as promised",
        "it would start now with 2 of matlab instead of 4",
    ]


def test_maintenance_is_a_reason_and_a_limit_that_ends_before_it_starts_the_job() -> None:
    outage = OutageSpec(at=100, until=200, processors=6, kind="maintenance")
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], outages=[outage])
    found = explain(spec, [Job(id=1, processors=4, run=9, requested=500, submit=10)], "easy", 1)
    assert texts(found) == [
        "job 1 at 10 s: would run into the maintenance from 100 s (500 s requested)",
        "held by: the maintenance from 100 s (6 until 200 s)",
        "expected to start at 200 s, in 3 min 10 s, as promised",
        "it would start now with 2 processors instead of 4",
        "it would start now with a limit of 90 s instead of 500 s",
    ]


def test_a_reservation_that_has_not_begun_is_a_reason() -> None:
    kept = ReservationSpec(name="kept", start=50, end=200, processors=4, users=("ann",))
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], reservations=[kept])
    jobs = [Job(id=1, processors=2, run=9, user="ann", partition="kept"), Job(id=2, processors=8, run=100, user="bob")]
    found = explain(spec, jobs, "easy", 1)
    assert texts(found) == [
        "job 1 at 0 s: its reservation kept has not begun",
        "held by: reservation kept, not yet open (4 until 50 s)",
        "expected to start at 50 s, in 50 s, as promised",
        "it would start now on partition batch",
    ]
    assert explain(spec, jobs, "easy", 2).reason == "reservation"
    more = [Job(id=4, processors=4, run=300), Job(id=3, processors=4, run=90, user="ann", submit=60)]
    late = explain(spec, [jobs[0], *more], "easy", 3)
    assert [change.text for change in late.changes] == ["on reservation kept"]


def test_a_limit_of_a_queue_is_a_reason_and_another_queue_starts_the_job() -> None:
    queues = [QueueSpec(name="long", max_running_per_user=1), QueueSpec(name="short", max_requested=60)]
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], queues=queues)
    jobs = [Job(id=name, run=50, queue="long", user="ann") for name in (1, 2)] + [Job(id=3, run=70, queue="long")]
    assert texts(explain(spec, jobs, "fcfs", 2)) == [
        "job 2 at 0 s: is held by a limit of its queue: long allows 1 running job of a user",
        "held by: job 1 (1 until 50 s)",
        "expected to start at 50 s, in 50 s",
        "it would start now in queue short",
    ]


def test_partitions_that_would_not_take_the_job_are_not_proposed() -> None:
    parts = [PartitionSpec(name=name, processors=4, max_requested=most) for name, most in (("a", None), ("b", 20))]
    jobs = [Job(id=1, processors=4, run=50, partition="a"), Job(id=2, processors=4, run=30, partition="a")]
    assert explain(ClusterSpec(partitions=parts), jobs, "fcfs", 2).changes == ()


def test_promises_change_when_a_job_ends_early_and_when_one_goes_ahead() -> None:
    """Job 2 can expect 100 s, then 60 s, as job 1 ends early; under sjf job 4 goes ahead of it."""
    log = Workload(
        {"submit": [0, 1, 20], "run": [60, 10, 30], "requested": [100, 90, 30], "processors": [3, 4, 4]}, processors=4
    )
    early = explain(4, log, "fcfs", 2)
    assert [tuple(row.values()) for row in early.promises.rows()] == [
        (1.0, 100.0, "", "what-if"),
        (60.0, 60.0, "job 1 ended 40 s early", "start"),
    ]
    ahead = explain(4, log, "sjf", 2)
    assert [(row["at"], row["cause"]) for row in ahead.promises.rows()] == [
        (100.0, ""),
        (130.0, "job 3 came"),
        (90.0, "job 1 ended 40 s early"),
    ]
    assert "job 1 ended 40 s early" in ahead.report()
    assert ahead.document()["promises"][0]["at"] == 100.0


def promised_in(log: Workload, policy: Any) -> dict[Any, list[tuple[float, float]]]:
    """Return the promises of a run with a policy that records them, by job: since and start."""
    told: dict[Any, list[tuple[float, float]]] = {}

    class Promises(Observer):
        def job_promised(self, job: Any, place: Any, at: float) -> None:
            told.setdefault(job.id, []).append((place.env.now, at))

    simulate(8, log, policy, observers=[Promises()])
    return told


@pytest.mark.parametrize(("name", "recording"), [("conservative", Conservative), ("easy", Easy)])
def test_promises_over_time_are_those_of_a_policy_that_records_them(name: str, recording: Any) -> None:
    """At each instant told, conservative has promised each waiting job that start, and EASY the head of the queue."""
    log, checked = drawn_log(2), 0
    recorded = promised_in(log, recording(promises=True))
    jobs = simulate(8, log, name).jobs
    for job in [job for job, wait in zip(jobs["job"].tolist(), jobs["wait"].tolist(), strict=True) if wait > 0][:12]:
        rows = list(explain(8, log, name, job).promises.rows())
        told = [(row["since"], row["at"]) for row in rows if row["by"] == "promise"]
        assert set(told) <= set(recorded.get(job, ()))
        assert rows[-1]["at"] == jobs["start"][jobs["job"] == job].item()
        kinds = [row["by"] for row in rows]
        assert name == "easy" or "what-if" not in kinds
        assert kinds == sorted(kinds, key=["what-if", "promise", "start"].index)  # once at the head, always
        checked += len(told)
    assert checked > 3


def test_the_promise_to_the_head_follows_what_was_foretold_before() -> None:
    """Under EASY job 3 can expect 150 s; at the end of job 1 it is the head and is promised that."""
    log = Workload(
        {"submit": [0, 1, 2], "run": [60, 50, 10], "requested": [100, 50, 10], "processors": [4, 4, 4]}, processors=4
    )
    found = explain(4, log, "easy", 3)
    assert [tuple(row.values()) for row in found.promises.rows()] == [
        (2.0, 150.0, "", "what-if"),
        (60.0, 110.0, "job 1 ended 40 s early", "promise"),
    ]
    assert "60        110  job 1 ended 40 s early  promise" in found.report()
    assert found.document()["promises"][1]["by"] == "promise"
    once = explain(4, log, "conservative", 2)
    assert once.promises["at"].tolist() == [100.0, 60.0]


def test_reasons_and_promises_of_a_policy_are_told() -> None:
    def careful(view: Any) -> Any:
        place = view.places[0]
        for job in view.waiting:
            if place.fits(job):
                yield Start(job, place, "it fits")
            else:
                yield Reserve(job, place, place.earliest(job)[0], "the room is held")

    found = explain(4, LOG, careful, 2)
    told = [(row["decision"], row["reason"]) for row in found.told.rows()]
    assert (told[0], told[-1]) == (("Reserve", "the room is held"), ("Start", "it fits"))
    assert found.promises["at"][0] == 100.0
    assert "what the policy said:" in found.report()


def test_dependencies_are_a_reason() -> None:
    jobs = [Job(id=1, run=9), Job(id=2, run=5, submit=1, dependencies=(Dependency(1),))]
    found = explain(4, jobs, "fcfs", 2, at=3)
    assert (found.reason, found.changes, found.expected) == ("dependencies", (), 9.0)
    assert texts(found)[:2] == ["job 2 at 3 s: waits for other jobs: 1", "held by: job 1 (1 until 9 s)"]


# ---------------------------------------------------------------------- drawn clusters of every kind


def starts_if(seen: Any, work: Any, request: Job) -> bool:
    """Whether the job starts now if it is submitted, in its place in the order, with another request."""
    others = {name: tuple(each for each in getattr(seen, name) if each is not work) for name in ("waiting", "held")}
    choices = tuple(each for each in seen.choices if each.number != work.number)
    policy = attrs.evolve(seen.policy, due=True, asked=True)
    new = tuple(each.number for each in others["waiting"])
    left = attrs.evolve(seen, **others, choices=choices, policy=policy, new=new)
    env = Environment(seen.now)
    cluster = Cluster.from_snapshot(env, left, record=False)
    live = cluster.submit(request, since=work.submit, number=work.number)
    env.run(until=float(np.nextafter(seen.now, np.inf)))
    return live.state == "running"


def neighbour(request: Job, change: Any) -> Job | None:
    """Return the request that lies between the change and the request as it is; ``None``: there is none."""
    what, value = change.what, change.value
    if what in ("partition", "queue"):
        return None
    step = 1e6 if what == "memory_per_node" else 1
    if what in request.consumables:
        most = request.consumables[what]
        more = {"consumables": {**request.consumables, what: value + step}}
    else:
        most = getattr(request, what)
        more = {what: type(most)(value + step), **({"run": value + step} if what == "requested" else {})}
    return attrs.evolve(request, **more) if value + step < most else None


def changed(request: Job, change: Any, platform: ClusterSpec) -> Job:
    what, value = change.what, change.value
    if what in request.consumables:
        return attrs.evolve(request, consumables={**request.consumables, what: value})
    more: dict[str, Any] = {"requested": {"run": value}, "partition": {"partitions": ()}}.get(what, {})
    return attrs.evolve(request, **{what: value}, **more)


def check_changes(jobs: int, first: int = 0) -> Counter[str]:
    """Check what is proposed for drawn jobs by submitting them anew; return the reasons and changes, counted."""
    found: Counter[str] = Counter()
    for seed in count(first):
        if found["jobs"] == jobs:
            return found
        seen = crowded(seed).expected()
        works = [*seen.waiting, *seen.held]
        if works:
            found["jobs"] += 1
            found += check_one(seed, seen, works[seed % len(works)])
    raise AssertionError


def check_one(seed: int, seen: Any, work: Any) -> Counter[str]:
    """Check that each change starts the job now, and that the next smaller one does not."""
    explained = why_waits(seen, work.id)
    found = Counter([explained.reason])
    plain = {"id": work.id, "run": work.expected, "requested": work.requested, "user": work.user}
    request = work.spec or Job(**plain, processors=work.processors)
    assert starts_if(seen, work, request) == (explained.reason == "due"), (seed, explained.reason)
    for change in explained.changes:
        assert starts_if(seen, work, changed(request, change, seen.platform)), (seed, change)
        found[f"change of {change.what}"] += 1
        more = neighbour(request, change)
        if more is not None:
            assert not starts_if(seen, work, more), (seed, change)
            found["next smaller changes"] += 1
    return found


@pytest.mark.long
def test_changes_start_the_job_and_the_next_smaller_ones_do_not() -> None:
    found = check_changes(60)
    assert found.keys() >= {f"change of {each}" for each in ("processors", "nodes", "requested", "partition", "matlab")}
    assert found.keys() >= {"order", "limit", "licences", "reservation", "processors", "next smaller changes"}


@pytest.mark.exhaustive
def test_suggested_changes_of_two_thousand_jobs_start_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = check_changes(2000, 100)
    with capsys.disabled():
        print("\n" + ", ".join(f"{what}: {number:,}" for what, number in found.most_common()))
    assert found["next smaller changes"] > 300
    every = ("processors", "nodes", "cores_per_node", "gpus_per_node", "memory_per_node", "matlab", "requested")
    assert found.keys() >= {f"change of {each}" for each in (*every, "partition", "queue")}
    assert found.keys() >= {"order", "limit", "licences", "reservation", "processors", "nodes"}


def test_spans_end_at_the_start() -> None:
    log = drawn_log(1)
    jobs = simulate(8, log, "easy").jobs
    late = [int(job) for job, wait in zip(jobs["job"], jobs["wait"], strict=True) if wait > 0][:10]
    for job in late:
        spans = list(explain(8, log, "easy", job).spans.rows())
        (row,) = np.flatnonzero(jobs["job"] == job)
        assert (spans[0]["since"], spans[-1]["until"]) == (jobs["submit"][row], jobs["start"][row])
        assert all(one["until"] == after["since"] for one, after in pairwise(spans))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((9,), "job: must be one of the 4 jobs, got 9"),
        ((1,), "at: job 1 does not wait at 0 s: it is running, started at 0 s"),
        ((2, 0.5), "at: must be an instant from 1 s (its submission) on, got 0.5"),
        ((2, 300.0), "at: job 2 does not wait at 300 s: it is completed, started at 100 s"),
    ],
)
def test_jobs_that_do_not_wait_are_told(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        explain(4, LOG, "easy", *arguments)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("at", [1, 10, 40, 49.5])
def test_a_question_between_two_decisions_takes_none_away(policy: str, at: float) -> None:
    """Job 3 starts when job 0 ends, long before its limit."""
    rows = [(0, 50, 10_000, 2), (0, 100, 100, 1), (0, 60, 60, 1), (1, 20, 20, 2)]
    jobs = [Job(id=i, submit=s, run=run, requested=q, processors=p) for i, (s, run, q, p) in enumerate(rows)]
    assert simulate(4, jobs, policy).jobs["start"][3] == 50
    found = explain(4, jobs, policy, 3, at=at)
    assert [(row["since"], row["until"]) for row in found.spans.rows()] == [(1, 50)]
    assert list(found.promises.rows())[-1]["at"] == 50
