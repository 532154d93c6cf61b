"""The oracles themselves: hand cases, what every schedule must keep, reference schedules, known queues."""

from __future__ import annotations

import csv
import gzip
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.helpers.batch_cases import Case, cases
from tests.helpers.data_files import data_file
from tests.helpers.examples import up_to
from tests.oracles import queues
from tests.oracles.batch import Decision, Job, simulate

ORDERS = ["fcfs", "sjf", "ljf", "smallest", "largest", "wfp", "unicef", "f1", "f2", "f3", "f4"]
POLICIES = [
    *ORDERS,
    "easy",
    "easy-sjbf",
    "sjf+easy",
    "wfp+easy",
    "conservative",
    "sjf+conservative",
    "conservative-keep",
    "largest+conservative-keep",
    "best-fit",
    "window",
]
PROBE = [Job(0, 1000, 1000, 5), Job(900, 500, 500, 5), Job(950, 100, 100, 7), Job(960, 400, 400, 2)]


def length(job: Job, overrun: str = "stop") -> float:
    assert job.run is not None
    limited = job.requested is not None and job.requested > 0 and overrun == "stop"
    return min(job.run, job.requested) if limited else job.run  # type: ignore[type-var]


def check_schedule(case: Case, starts: list[float | None], overrun: str = "stop") -> None:
    """Assert that everybody who can run runs once, not too early, and never on too many processors."""
    changes = []
    for job, start in zip(case.jobs, starts, strict=True):
        possible = job.run is not None and job.run >= 0 and 0 < job.processors <= case.processors
        assert (start is not None) == possible
        if start is not None:
            assert start >= job.submit
            changes += [(start, job.processors), (start + length(job, overrun), -job.processors)]
    used = 0
    for _, change in sorted(changes):  # at one instant ends come first
        used += change
        assert used <= case.processors


# ---------------------------------------------------------------------- batch policies, by hand


@pytest.mark.parametrize("decide_on", ["instant", "event"])
def test_easy_does_not_delay_the_head_of_the_probe(decide_on: str) -> None:
    assert simulate(PROBE, 12, "easy", decide_on=decide_on) == [0, 900, 1000, 1100]


def test_orders_choose_by_their_key() -> None:
    jobs = [Job(0, 10, 10, 4), Job(1, 9, 9, 2), Job(2, 3, 3, 4), Job(3, 9, 20, 1), Job(4, 5, 5, 3)]
    assert simulate(jobs, 4, "fcfs") == [0, 10, 19, 22, 22]
    assert simulate(jobs, 4, "sjf") == simulate(jobs, 4, "largest") == [0, 18, 10, 18, 13]
    assert simulate(jobs, 4, "ljf") == simulate(jobs, 4, "smallest") == [0, 10, 24, 10, 19]


def test_wfp_and_unicef_weigh_the_wait_against_the_request() -> None:
    # At 10: waits 8 and 4; wfp (8/8)^3 x 1 = 1 against (4/4)^3 x 2 = 2, unicef 8/(1 x 8) = 1 against 4/(1 x 4) = 1.
    jobs = [Job(0, 10, 10, 2), Job(2, 8, 8, 1), Job(6, 4, 4, 2)]
    assert simulate(jobs, 2, "wfp") == [0, 14, 10]
    assert simulate(jobs, 2, "unicef") == [0, 10, 18]


def test_easy_fills_the_processors_left_over_but_not_twice() -> None:
    # Head needs 4 of 6 at 10; 2 are left over then: one long job of 1 and one of 1 may run past, the third may not.
    jobs = [Job(0, 10, 10, 3), Job(1, 5, 5, 4), *(Job(1, 50, 50, 1) for _ in range(3))]
    assert simulate(jobs, 6, "easy") == [0, 10, 1, 1, 15]


def test_conservative_protects_everybody_and_easy_the_head_alone() -> None:
    # At 2 the last fits beside the running job and its 9 s end at 11, past the head's start but on processors the head
    # leaves; only the third job's plan, at 15 on all processors, decides: 11 is before it.
    jobs = [Job(0, 10, 10, 2), Job(1, 5, 5, 3), Job(1, 5, 5, 4), Job(2, 20, 20, 1)]
    assert simulate(jobs, 4, "easy") == [0, 10, 22, 2]
    assert simulate(jobs, 4, "conservative") == [0, 10, 15, 20]


def test_best_fit_leaves_the_fewest_free() -> None:
    # At 5 both of 4 leave 2, the earlier goes, then the 2 leaves none.
    jobs = [Job(0, 5, 5, 6), Job(1, 5, 5, 3), Job(2, 5, 5, 4), Job(3, 5, 5, 2), Job(4, 5, 5, 4)]
    assert simulate(jobs, 6, "best-fit") == [0, 15, 5, 5, 10]


def test_a_window_takes_the_shortest_plan() -> None:
    # In order of arrival the narrow long job waits for the wide one: 16 s; before it, or the wide one first, 12 s.
    jobs = [Job(0, 4, 4, 2), Job(0, 4, 4, 3), Job(0, 8, 8, 1)]
    assert simulate(jobs, 3, "fcfs") == simulate(jobs, 3, "window", window=1) == [0, 4, 8]
    assert simulate(jobs, 3, "window") == simulate(jobs, 3, "window", planning="hole") == [0, 8, 0]
    assert simulate(jobs, 3, "window", window=2) == [0, 4, 8]


def test_overruns_stop_or_continue() -> None:
    jobs = [Job(0, 30, 10, 2), Job(1, 5, 5, 4), Job(2, 5, 5, 2), Job(3, 40, 40, 2)]
    assert simulate(jobs, 4, "easy") == [0, 10, 2, 15]
    # At 10 the first runs on: the head is promised "now", nothing is left over for the long one.
    assert simulate(jobs, 4, "easy", overrun="continue") == [0, 30, 2, 35]


def test_jobs_of_zero_length_take_turns_within_an_instant() -> None:
    jobs = [Job(5, 0, 10, 4), Job(5, 0, 10, 4), Job(5, 3, 3, 4), Job(5, 0, None, 1)]
    for decide_on in ("instant", "event"):
        assert simulate(jobs, 4, "fcfs", decide_on=decide_on) == [5, 5, 5, 8]


def test_jobs_that_cannot_run_are_left_out() -> None:
    jobs = [Job(0, None, 5, 1), Job(0, -1, 5, 1), Job(0, 5, 5, 0), Job(0, 5, 5, 9), Job(0, 5, None, 8)]
    assert simulate(jobs, 8, "easy") == [None, None, None, None, 0]


# ---------------------------------------------------------------------- batch policies, on drawn cases


@pytest.mark.few(6)
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=up_to(25), deadline=None)
@given(data=st.data())
def test_every_schedule_is_possible(policy: str, data: st.DataObject) -> None:
    keeps = policy.endswith("keep")
    case = data.draw(cases(8 if policy == "window" else 15, dirty=True, zero_runs=not keeps))
    options = {
        "decide_on": data.draw(st.sampled_from(["instant", "event"])),
        "event_order": data.draw(st.sampled_from(["submits-first", "ends-first"])),
        "estimates": data.draw(st.sampled_from(["requested", "exact"] if keeps else ["requested", "exact", "cqsim"])),
        "overrun": "stop" if keeps else data.draw(st.sampled_from(["stop", "continue"])),
    }
    check_schedule(case, simulate(case.jobs, case.processors, policy, window=3, **options), options["overrun"])


@settings(max_examples=up_to(100), deadline=None)
@given(cases(12, overruns=False, zero_runs=False))
def test_conservative_promises_are_kept(case: Case) -> None:
    decisions: list[Decision] = []
    starts = simulate(case.jobs, case.processors, "conservative-keep", decisions=decisions)
    promised: dict[int, float] = {}
    for decision in decisions:
        for position, at in decision.promises.items():
            assert at <= promised.get(position, math.inf)
            promised[position] = at
    for position, start in enumerate(starts):
        assert start is not None
        assert start <= promised[position]


@settings(max_examples=up_to(100), deadline=None)
@given(cases(15, overruns=False))
def test_easys_head_never_starts_later_than_its_first_promise(case: Case) -> None:
    decisions: list[Decision] = []
    starts = simulate(case.jobs, case.processors, "easy", decisions=decisions)
    for decision in decisions:
        for head, promised in decision.promises.items():
            assert starts[head] is not None
            assert starts[head] <= promised  # type: ignore[operator]


@settings(max_examples=up_to(60), deadline=None)
@given(cases(15, zero_runs=False, overruns=False))
def test_backfilling_with_nothing_known_early_equals_both_ways_of_deciding(case: Case) -> None:
    # With one processor there is nothing to backfill, and each policy that keeps the order is first come, first served.
    alone = [job for job in case.jobs if job.processors == 1]
    schedules = {
        policy: simulate(alone, 1, policy)
        for policy in ("fcfs", "easy", "conservative", "conservative-keep", "best-fit")
    }
    assert all(schedule == schedules["fcfs"] for schedule in schedules.values())


# ---------------------------------------------------------------------- batch policies, on logs


def swf_jobs(name: str) -> tuple[list[int], list[Job]]:
    with gzip.open(data_file(name), "rt") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith(";")]
    jobs = [Job(int(row[1]), int(row[3]), int(row[8]), int(row[7]) if int(row[7]) > 0 else int(row[4])) for row in rows]
    return [int(row[0]) for row in rows], jobs


@pytest.mark.long  # drawn jobs: the other tests of the file
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("column", "policy", "estimates"),
    [
        ("start_easy", "easy", "requested"),
        pytest.param("start_easy_clairvoyant", "easy", "exact", marks=pytest.mark.long),
        ("start_easy_sjbf_clairvoyant", "easy-sjbf", "exact"),
    ],
)
def test_easy_by_events_gives_each_start_of_the_reference(column: str, policy: str, estimates: str) -> None:
    numbers, jobs = swf_jobs("swf/KTH-SP2-1996-2-filtered.swf.gz")
    with gzip.open(data_file("refsched/KTH-SP2-1996-2-filtered.starts.csv.gz"), "rt") as lines:
        reference = {int(row["job"]): int(row[column]) for row in csv.DictReader(lines)}
    starts = simulate(jobs, 100, policy, decide_on="event", estimates=estimates)
    assert dict(zip(numbers, starts, strict=True)) == reference


def test_conservative_gives_each_start_of_cqsim() -> None:
    numbers, jobs = swf_jobs("swf/theta_1000.swf.gz")
    with gzip.open(data_file("cqsim/theta_1000.rst.gz"), "rt") as lines:
        rows = [line.split(";") for line in lines]
    reference = {int(row[0]): float(row[7]) + jobs[0].submit for row in rows}
    options = {"estimates": "cqsim", "decide_on": "event", "event_order": "ends-first"}
    starts = simulate(jobs, 4360, "conservative", **options)  # type: ignore[arg-type]
    assert dict(zip(numbers, starts, strict=True)) == reference


# ---------------------------------------------------------------------- queues


def test_known_values_of_queues() -> None:
    assert queues.mmc_wait(0.9, 1) == pytest.approx(9)
    assert queues.mmc_wait(1, 1, 2) == pytest.approx(1 / 3)
    assert queues.erlang_c(4, 1, 5) == pytest.approx(0.5541, abs=5e-5)
    assert queues.mg1_wait(0.8, 1, 2) == pytest.approx(queues.mmc_wait(0.8, 1))
    assert queues.processor_sharing_response(0.8, 1) == pytest.approx(5)
    with pytest.raises(ValueError, match="must be from 0 to below 1"):
        queues.mmc_wait(2, 1)


def test_priorities_keep_the_work_conserved() -> None:
    arrivals, means, seconds = [0.1, 0.3, 0.2], [1.0, 0.5, 2.0], [3.0, 0.5, 5.0]
    loads = np.multiply(arrivals, means)
    waits = queues.priority_waits(arrivals, means, seconds)
    residual = np.dot(arrivals, seconds) / 2
    assert np.dot(loads, waits) == pytest.approx(loads.sum() * residual / (1 - loads.sum()))
    assert all(first < second for first, second in pairwise(waits))
    assert queues.priority_waits([0.6], [1], [2]) == pytest.approx([queues.mg1_wait(0.6, 1, 2)])


def test_preemption_shields_the_urgent_and_keeps_the_number_in_system() -> None:
    arrivals = [0.2, 0.3, 0.3]
    responses = queues.preemptive_responses(arrivals, [1, 1, 1], [2, 2, 2])
    assert responses[0] == pytest.approx(1 / (1 - 0.2))
    assert np.dot(arrivals, responses) == pytest.approx(0.8 / 0.2)  # any order of equal exponential jobs


def test_shortest_first_is_the_limit_of_many_priority_classes() -> None:
    edges = np.concatenate([np.linspace(0, 30, 3001), [np.inf]])
    cdf = 1 - np.exp(-edges)
    tail1 = np.where(np.isinf(edges), 0, (np.where(np.isinf(edges), 0, edges) + 1) * np.exp(-edges))
    shares = np.diff(cdf)
    means = -np.diff(tail1) / shares
    waits = queues.priority_waits(list(0.5 * shares), list(means), [2.0, *([0.0] * (len(means) - 1))])
    # Only the sum of the second moments matters to the residual: scale it to the right total.
    scale = (0.5 * 2 / 2) / (0.5 * shares[0] * 2.0 / 2)
    assert np.dot(shares, waits) * scale == pytest.approx(queues.sjf_wait(0.5, lambda x: math.exp(-x), 1, 2), rel=1e-3)
