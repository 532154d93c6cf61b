"""What Slurm 22.05 does, as whole simulations that are worked by hand.

Turns of the background loop are at 1, 2, 3, ... s. The main loop first runs over the whole queue at 61 s, then every
60 s; for what is submitted at 0 it runs at 4 s, and later 3 s after its last run at the earliest.
"""

from __future__ import annotations

from typing import Any

import pytest

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.settings import SlurmConf, SlurmPartition


def job(id: int, submit: float, nodes: int, minutes: float, run: float, queue: str | None = None) -> Job:
    return Job(id=id, submit=submit, nodes=nodes, requested=60 * minutes, run=run, queue=queue)


def run(
    nodes: int,
    jobs: list[Job],
    *partitions: SlurmPartition,
    first: float = 30.0,
    overrun: Any = "stop",
    **settings: Any,
) -> dict[Any, tuple[float, float, tuple[int, ...]]]:
    """Return start, end and nodes (from 1) of each job by its id; ``first``: the first backfill cycle (s)."""
    queues = tuple(QueueSpec(name=each.name, partition="all") for each in partitions)
    part = PartitionSpec(name="all", nodes=[NodeSpec(names=f"n[1-{nodes}]")])
    timing = SlurmTiming(main_first=1.0, turn=1.0, backfill_first=first)
    policy = Slurm(SlurmConf(**settings), partitions, timing)
    found = simulate(ClusterSpec(partitions=[part], queues=queues), jobs, policy, overrun=overrun)
    return {
        row["job"]: (row["start"], row["end"], tuple(number + 1 for number in row["nodes"]))
        for row in found.runs.rows()
    }


def starts(*given: Any, **more: Any) -> dict[int, float]:
    return {id: start for id, (start, *_) in run(*given, **more).items()}


# ---------------------------------------------------------------------- the main loop


def test_a_run_at_an_event_tests_one_job_more_than_the_depth() -> None:
    """Depth 2: three of five jobs at 4 s, the others when the whole queue is tested, at 61 s."""
    jobs = [job(i, 0, 1, 5, 200) for i in range(1, 6)]
    assert starts(8, jobs, backfill=False, default_queue_depth=2) == {1: 4, 2: 4, 3: 4, 4: 61, 5: 61}
    assert set(starts(8, jobs, backfill=False).values()) == {4}


def test_a_blocked_job_closes_its_partition_and_takes_its_idle_nodes() -> None:
    """Partition a has n1 to n3, b all four nodes. Job 1 has n1 and n2.

    At 7 s job 2, which needs all three nodes of a, is blocked. Then n3 is of no use to b, although it is idle: job 3
    gets n4, and job 4 gets nothing. The backfill loop, at 30 s, starts it on n3: it ends before job 2 can start.
    """
    jobs = [job(1, 0, 2, 5, 290, "a"), job(2, 5, 3, 1, 50, "a"), job(3, 5, 1, 9, 500, "b"), job(4, 5, 1, 1, 50, "b")]
    found = run(4, jobs, SlurmPartition(name="a", nodes="n[1-3]", default=True), SlurmPartition(name="b"))
    assert found[1] == (4, 294, (1, 2))
    assert found[3] == (7, 507, (4,))
    assert found[4] == (30, 80, (3,))
    assert found[2] == (294, 344, (1, 2, 3))


def test_a_job_of_a_higher_tier_starts_before_older_jobs() -> None:
    jobs = [job(1, 0, 1, 5, 100, "low"), job(2, 0, 2, 5, 100, "high")]
    found = starts(2, jobs, SlurmPartition(name="low", default=True), SlurmPartition(name="high", tier=10))
    assert found == {2: 4, 1: 104}


def test_the_end_of_an_epilog_starts_the_next_job_at_once() -> None:
    """Job 1 ends at 54.5 s; the next turn is at 55 s. When job 2 has ended nothing waits: job 3 is for a turn."""
    jobs = [job(1, 0, 1, 5, 50.5), job(2, 10, 1, 5, 10.1), job(3, 100.2, 1, 5, 10)]
    assert starts(1, jobs, epilog=True) == pytest.approx({1: 4, 2: 54.5, 3: 101})
    for settings in ({}, {"epilog": True, "defer": True}):
        assert starts(1, jobs, **settings) == {1: 4, 2: 55, 3: 101}


def test_a_job_that_waits_for_another_starts_when_the_epilog_of_that_has_ended() -> None:
    after = Job(id=2, submit=10, nodes=1, requested=300, run=10, dependencies=[1])
    assert starts(2, [job(1, 0, 1, 5, 50.5), after], epilog=True) == {1: 4, 2: 54.5}


# ---------------------------------------------------------------------- the backfill loop


def test_a_table_of_two_records_ends_the_cycle_before_a_job_that_fits() -> None:
    """The plan of job 2, at 304 s, makes the second record; so that of job 3 ends each cycle, and job 4 waits.

    Job 2 starts at 284 s, when job 1 ends. In the next cycle, at 300 s, job 3 is the first to be planned: its plan
    finds room in the table, and job 4 starts on the fourth node.
    """
    jobs = [job(1, 0, 2, 5, 280), job(2, 5, 3, 1, 50), job(3, 5, 3, 1, 50), job(4, 5, 1, 1, 50)]
    assert starts(4, jobs)[4] == 30
    found = starts(4, jobs, bf_node_space_size=2)
    assert (found[2], found[4]) == (284, 300)


def test_a_cycle_ends_after_bf_max_time_if_tests_take_time() -> None:
    """Tests of 0.4 s, and cycles of a second at most, in whole seconds: that from 29.9 s has one test, until 30.3 s.

    That from 40.3 s has two, until 41.1 s; the next one is at 51.1 s. Of two seconds: until 31.1 s there are three.
    Without a time of a test nothing is cut.
    """
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n[1-5]")])])
    jobs = [job(i, 10, 1, 5, 100) for i in range(1, 5)]

    def begun(test: float, most: float, first: float) -> list[float]:
        timing = SlurmTiming(main_first=1.0, turn=1.0, backfill_first=first, test=test)
        conf = SlurmConf(bf_interval=10, bf_max_time=most, batch_sched_delay=1000, sched_interval=1000)
        return [round(each, 1) for each in simulate(spec, jobs, Slurm(conf, timing=timing)).jobs["start"].tolist()]

    assert begun(0.0, 1, 29.9) == [29.9] * 4
    assert begun(0.4, 1, 29.9) == [29.9, 40.3, 40.3, 51.1]
    assert begun(0.4, 2, 29.9) == [29.9] * 3 + [41.1]
    assert begun(0.4, 60, 29.9) == [29.9] * 4


@pytest.mark.parametrize("test", [0.4, 0.6])
def test_cycles_that_others_would_interrupt_are_told(test: float) -> None:
    """Four tests take 1.6 or 2.4 s; after 2 s slurmctld lets others in, and ends the cycle without bf_continue."""
    jobs = [job(i, 10, 1, 5, 100) for i in range(1, 5)]
    timing = SlurmTiming(main_first=1.0, turn=1.0, backfill_first=29.9, test=test)
    conf = SlurmConf(bf_max_time=60, batch_sched_delay=1000, sched_interval=1000)
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n[1-5]")])])
    told = "leaves out that others interrupt 1 backfill cycle of more than 2 s (bf_yield_interval, bf_continue)"
    assert (told in str(simulate(spec, jobs, Slurm(conf, timing=timing)).report)) == (test > 0.5)


def test_beyond_bf_window_nothing_is_reserved() -> None:
    """Job 2 could start at 304 s. With a window of a minute, job 3 overtakes it for its 10 minutes."""
    jobs = [job(1, 0, 1, 5, 300), job(2, 5, 2, 1, 50), job(3, 6, 1, 10, 600)]
    assert starts(2, jobs) == {1: 4, 2: 304, 3: 354}
    assert starts(2, jobs, bf_window=1) == {1: 4, 3: 30, 2: 630}


def test_a_reservation_begins_at_a_floored_instant() -> None:
    """Job 2 is planned at 124 s, and its nodes are kept from 120 s: job 3, from 60 s to 120 s, touches that.

    With a resolution of a second it starts at 60 s, in the cycle before job 1 ends. Else job 2 is first, at 114 s.
    """
    jobs = [job(1, 0, 1, 2, 110), job(2, 5, 2, 1, 20), job(3, 35, 1, 1, 50)]
    assert starts(2, jobs, bf_resolution=1)[3] == 60
    assert starts(2, jobs) == {1: 4, 2: 114, 3: 134}


def test_ends_within_30_seconds_are_taken_together() -> None:
    """At 66 s, n1 is idle; job 1 has n2 until 124 s, job 2 has n3 until 128 s by their limits.

    Job 3 needs two nodes: n2 is enough, at 124 s. But 124 is rounded up to 150, and all ends until 180 s are taken
    together: its plan is n1 and n2 at 128 s. So job 4 starts on n1 until 126 s, which it could not before 124 s.
    """
    jobs = [job(0, 0, 1, 1, 5), job(1, 0, 1, 2, 110), job(2, 8, 1, 2, 110), job(3, 20, 2, 1, 30), job(4, 21, 1, 1, 50)]
    found = run(3, jobs, first=66.0, bf_resolution=1)
    assert {id: (start, nodes) for id, (start, _, nodes) in found.items()} == {
        0: (4, (1,)),
        1: (4, (2,)),
        2: (8, (3,)),
        3: (117, (1, 2)),  # 3 s after the run at 114 s: n1 has been free since 116 s
        4: (66, (1,)),
    }


@pytest.mark.parametrize(
    ("nodes", "waiting", "start"),
    [
        (1, [job(2, 3, 1, 1, 5)], 26),
        (2, [job(2, 3, 2, 1, 5)], 32),
        (1, [job(2, 3, 1, 1, 5), job(3, 3, 1, 1, 5)], 32),
    ],
)
def test_a_cycle_comes_only_if_something_has_changed_since_the_last(
    nodes: int, waiting: list[Job], start: float
) -> None:
    """Cycles at 2 and 12 s, bf_interval 10 s; the main loop does not run. Job 1 has n1 from 2 to 25.4 s.

    The cycle at 12 s plans job 2 on the busy n1, which changes nothing: the loop looks in vain at 22 s and every second
    then, until the end at 25.4 s is a change. If n2 is idle and planned too, it is marked, and if job 3 is planned
    behind job 2, that is noted: then a cycle comes at 22 s, and so the next one at 32 s.
    """
    jobs = [job(1, 0, 1, 1, 23.4), *waiting]
    found = starts(nodes, jobs, first=2, bf_interval=10, batch_sched_delay=1000)
    assert (found[1], found[2]) == (2, start)


def test_a_job_that_depends_on_another_starts_a_run_when_it_is_submitted() -> None:
    """Job 2, of 10.5 s, waits for the end of job 1; the main loop runs for it at 11 s, and so for job 3 at 14 s."""
    jobs = [job(1, 0, 1, 5, 200), job(3, 11.5, 1, 5, 20)]
    dependent = Job(id=2, submit=10.5, nodes=1, requested=60, run=20, dependencies=[1])
    assert starts(4, jobs, backfill=False)[3] == 12
    assert starts(4, [*jobs, dependent], backfill=False)[3] == 14


# ---------------------------------------------------------------------- holds


def held(id: int, submit: float, options: str, run: float = 10) -> Job:
    return Job(id=id, submit=submit, nodes=1, requested=60, run=run, options=options)


def test_a_released_job_goes_last() -> None:
    """Job 2 is held until 50 s: then it is behind job 3 of 20 s, and before job 4 of 60 s.

    So they start when job 1 and each other end, 10 s after another. If it is held for good, it never starts.
    """
    first, others = job(1, 0, 1, 5, 100), [job(3, 20, 1, 1, 10), job(4, 60, 1, 1, 10)]
    assert starts(1, [first, held(2, 1, ""), *others]) == {1: 4, 2: 104, 3: 114, 4: 124}
    assert starts(1, [first, held(2, 1, "--hold=now+49"), *others]) == {1: 4, 3: 104, 2: 114, 4: 124}
    cancelled = Job(id=2, submit=1, nodes=1, requested=60, run=10, options="-H", cancel=300)
    assert starts(1, [first, cancelled, *others]) == {1: 4, 3: 104, 4: 114}


def test_a_job_that_is_held_later_goes_last_too() -> None:
    """Job 2 waits from 5 s on, is held from 30 to 70 s, and so is behind job 4 of 60 s."""
    jobs = [job(1, 0, 1, 5, 100), held(2, 5, "--hold=now+25,now+65"), job(4, 60, 1, 1, 10)]
    assert starts(1, jobs) == {1: 4, 4: 104, 2: 114}


def test_a_release_asks_the_main_loop_and_a_begin_time_does_not() -> None:
    """Idle nodes: the release at 30.5 s is seen at the next turn, the begin time when the whole queue is tested."""
    assert starts(2, [held(1, 10, "--hold=now+20.5")], backfill=False) == {1: 31}
    assert starts(2, [held(1, 10, "--begin=now+20.5")], backfill=False) == {1: 61}


def test_a_release_is_a_change_for_the_backfill_loop() -> None:
    """The main loop does not run. The cycle at 12 s plans job 2; nothing changes until the release at 25.4 s."""
    jobs = [job(1, 0, 1, 1, 55), job(2, 3, 1, 1, 5), held(3, 3, "--hold=now+22.4", run=5)]
    found = starts(2, jobs, first=2, bf_interval=10, batch_sched_delay=1000)
    assert found == {1: 2, 2: 12, 3: 32}


def test_a_held_job_ages_from_its_release() -> None:
    """Job 2, held until 50 s, is younger than job 3 at the calculation of 61 s, and so starts after it."""
    ages = {"multifactor": True, "weight_age": 1000.0, "max_age": 1000.0, "calc_period": 60.0}
    jobs = [job(1, 0, 1, 5, 100), held(2, 1, "--hold=now+49"), job(3, 20, 1, 1, 10)]
    assert starts(1, jobs, **ages) == {1: 4, 3: 104, 2: 114}


# ---------------------------------------------------------------------- heterogeneous jobs


def component(id: str, submit: float, nodes: int, minutes: float, run: float) -> Job:
    return Job(id=id, submit=submit, nodes=nodes, requested=60 * minutes, run=run, options="--hetjob=2")


def test_the_components_of_a_job_start_together_in_the_backfill_loop_alone() -> None:
    """As a slurmctld did with 9+0 of one node and 9+1 of two on three nodes, and job 4 of lower priority behind them.

    n1 is busy until 54 s, n2 and n3 until 84 s. The main loop does not start them at 84 s, and since they close the
    partition, job 4 does not start either. The cycle of 90 s starts both, and plans job 4 behind the first to end by
    its limit, 9+1; job 4 starts at 110 s, when that has ended.
    """
    jobs = [job(1, 0, 1, 5, 50), job(2, 0, 2, 5, 80), job(4, 12, 1, 1, 5)]
    parts = [component("9+0", 10, 1, 2, 30), component("9+1", 10, 2, 1, 20)]
    found = run(3, [*jobs[:2], *parts, jobs[2]])
    assert found["9+0"] == (90, 120, (1,))
    assert found["9+1"] == (90, 110, (2, 3))
    assert found[4][0] == 110


def test_a_job_without_room_for_all_its_components_does_not_start() -> None:
    """One node is free: 9+0 would fit, and its plan keeps that node, though it waits with 9+1 until job 1 ends.

    So neither job 3 nor job 4 behind them starts on the idle node, as in a slurmctld that was given such jobs.
    """
    jobs = [job(1, 0, 1, 5, 200), component("9+0", 10, 1, 1, 20), component("9+1", 10, 1, 1, 20)]
    found = run(2, [*jobs, job(3, 11, 1, 1, 10), job(4, 12, 1, 10, 10)])
    assert [found[name][0] for name in ("9+0", "9+1", 3, 4)] == [210, 210, 230, 230]


# ---------------------------------------------------------------------- deadlines


def ends(jobs: list[Job], **settings: Any) -> dict[int, tuple[str, float]]:
    """Return the status of each job, and when it ended or was cancelled (s); one node."""
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n1")])])
    policy = Slurm(SlurmConf(**settings), timing=SlurmTiming(main_first=1.0, turn=1.0, backfill_first=30.0))
    table = simulate(spec, jobs, policy).jobs
    return {row["job"]: (row["status"], row["end"]) for row in table.rows()}


def test_a_job_that_cannot_meet_its_deadline_is_cancelled_when_a_loop_reaches_it() -> None:
    """Job 1 has the node until 204 s. Job 2 of a minute must have ended at 101 s, job 3 at 102 s.

    The main loop tests job 2 at its full run of 61 s, when 121 is beyond 101, and then job 3, which job 2 no longer
    blocks. Of the cycles of the backfill loop that of 60 s is the first after 41 s. Job 4 has time enough. Job 5, of
    five minutes, has none from the beginning, but is behind jobs 2 and 4; the backfill loop tests it at 30 s.
    """
    late = [held(2, 1, "--deadline=now+100"), held(3, 2, "--deadline=now+100")]
    jobs = [job(1, 0, 1, 5, 200), *late, held(4, 3, "--deadline=now+400")]
    jobs.append(Job(id=5, submit=4, nodes=1, requested=300, run=10, options="--deadline=now+100"))
    done = {1: ("completed", 204), 4: ("completed", 214)}
    alone = ends(jobs, backfill=False)
    assert alone == done | {2: ("cancelled", 61), 3: ("cancelled", 61), 5: ("cancelled", 204)}
    assert ends(jobs) == done | {2: ("cancelled", 60), 3: ("cancelled", 60), 5: ("cancelled", 30)}


def test_a_held_job_keeps_waiting_beyond_its_deadline() -> None:
    """As long as no loop goes over it; after its release at 150 s the main loop cancels it."""
    jobs = [job(1, 0, 1, 5, 200), held(2, 1, "--deadline=now+100 --hold=now+149")]
    assert ends(jobs, backfill=False) == {1: ("completed", 204), 2: ("cancelled", 150)}


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize(("asked", "over", "end"), [(1.0, 0, 91), (0.5, 0, 91), (1.0, 60, 151), (1.1, 0, 151)])
def test_a_job_is_killed_at_a_scan_after_its_limit(asked: float, over: float, end: float) -> None:
    """Limits are scanned at 31, 61, 91 s, ...; a limit of 1 minute ends at 64 s, one of 2 minutes at 124 s.

    Half a minute is rounded up to one, 66 s to two.
    """
    found = run(1, [job(1, 0, 1, asked, 500)], overrun="continue", over_time_limit=over)
    assert found[1][:2] == (4, end)


# ---------------------------------------------------------------------- requeue


def test_a_requeued_job_waits_for_121_seconds() -> None:
    """At 10 s job 2 of a higher tier has job 1 requeued, which may start from 131 s on.

    Its node is free 50 ms later, so that job 2 starts at 13 s, when the main loop runs again, or with an Epilog's
    message. Nothing asks the main loop after 131 s: job 1 starts in a backfill cycle, or when the main loop runs over
    the whole queue, at 181 s.
    """
    low, high = SlurmPartition(name="low", default=True), SlurmPartition(name="high", tier=10)
    jobs = [job(1, 0, 1, 5, 100, "low"), job(2, 10, 1, 1, 20, "high")]
    found = run(1, jobs, low, high, preempt="partition_prio", preempt_mode="requeue")
    assert 10 < found[2][0] <= 13
    assert 131 <= found[1][0] <= 181
    assert found[1][1] == found[1][0] + 100
