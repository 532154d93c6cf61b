"""Preemption as Slurm does it, worked by hand from the behaviour of Slurm 22.05."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import attrs
import numpy as np
import pytest

from simmodel import Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel_site.policy.accounts import Accounts, Qos
from simmodel_site.policy.board import Board, Held, Pending, Site, Stake
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.preemption import Preemption
from simmodel_site.policy.settings import SlurmConf, SlurmPartition

NOW = 6000
LOW, HIGH = SlurmPartition(name="low", default=True), SlurmPartition(name="high", tier=10)
REQUEUE = SlurmConf(preempt="partition_prio", preempt_mode="requeue")


class Cluster:
    """Eight nodes of one core, running jobs on some of them, and one job that waits."""

    def __init__(self, settings: SlurmConf = REQUEUE) -> None:
        self.preemption = Preemption(settings)
        self.table = NodeTable(np.ones((3, 8)))
        self.board = Board(self.table, settings)
        self.running: list[Held] = []

    def runs(self, *nodes: int, since: float = 0.0, partition: SlurmPartition = LOW, qos: Qos | None = None) -> None:
        allocation = Allocation.alike(nodes, 1)
        self.table.take(allocation)
        stake = Stake(len(self.running), since, partition, qos)
        self.running.append(Held.of(NOW + 60, len(self.running), allocation, stake))

    def victims(self, nodes: int, partition: SlurmPartition = HIGH, qos: Qos | None = None) -> list[int] | None:
        """Return the numbers of the jobs that make way for a job of some nodes, in order."""
        self.board.renew(NOW, self.running)
        live = cast(Any, SimpleNamespace(state="waiting"))
        site = Site(partition, 0b11111111)
        job = Pending(live, Request(nodes, nodes=nodes), self.board, site, 60, 1.0, 0.0, 99, qos=qos)
        found = self.preemption.victims(self.board, job, 0b11111111)
        return None if found is None else [held.stake.number for held in found.held if held.stake is not None]


# ---------------------------------------------------------------------- who makes way


def test_the_smallest_job_makes_way() -> None:
    cluster = Cluster()
    cluster.runs(0, 1, 2, 3)
    cluster.runs(4, 5)
    cluster.runs(6)
    cluster.runs(7)
    assert cluster.victims(1) == [2]


def test_few_large_jobs_make_way_instead_of_many_small_ones() -> None:
    """Nodes 6, 7, then 4 and 5 are freed, and 3 nodes fit: 4 to 6. Then the last job and that of node 6 come first.

    They suffice, so that in the third round the last one of these is in front.
    """
    cluster = Cluster()
    cluster.runs(0, 1, 2, 3)
    cluster.runs(4, 5)
    cluster.runs(6)
    cluster.runs(7)
    assert cluster.victims(3) == [2, 1]


def test_victims_in_the_order_of_the_second_round() -> None:
    """As in the recorded run: jobs of 1 and 3 nodes for one of all nodes; the second one is the last that is needed."""
    cluster = Cluster()
    cluster.runs(4)
    cluster.runs(5, 6, 7)
    assert cluster.victims(8) == [1, 0]


def test_strict_order_keeps_the_order_but_for_the_last_job() -> None:
    """Three rounds: 0, 1, 2; then 2, 0, 1; then 1, 2, 0."""
    cluster = Cluster(attrs.evolve(REQUEUE, preempt_strict_order=True))
    for node in range(8):
        cluster.runs(node)
    assert cluster.victims(3) == [1, 2, 0]


def test_fewer_rounds() -> None:
    """Two jobs of two nodes after one of one, for two nodes: the second round is enough to spare the small one."""
    found = []
    for count in (0, 1):
        cluster = Cluster(attrs.evolve(REQUEUE, preempt_reorder_count=count))
        cluster.runs(0)
        cluster.runs(1, 2)
        cluster.runs(3, 4)
        cluster.runs(5, 6, 7, partition=HIGH)
        found.append(cluster.victims(3))
    assert found == [[1, 0], [0, 1]]


def test_the_youngest_first() -> None:
    cluster = Cluster(attrs.evolve(REQUEUE, preempt_youngest_first=True))
    for node, since in enumerate((10.0, 50.0, 30.0, 0.0, 0.0, 0.0, 0.0, 0.0)):
        cluster.runs(node, since=since)
    assert cluster.victims(1) == [1]


def test_jobs_of_the_same_tier_do_not_make_way() -> None:
    cluster = Cluster()
    cluster.runs(*range(8), partition=HIGH)
    assert cluster.victims(1) is None


def test_nobody_makes_way_if_that_is_not_enough() -> None:
    cluster = Cluster()
    cluster.runs(0, partition=HIGH)
    cluster.runs(*range(1, 8))
    assert cluster.victims(8) is None


def test_a_partition_with_preempt_mode_off_keeps_its_jobs() -> None:
    cluster = Cluster()
    cluster.runs(*range(8), partition=attrs.evolve(LOW, preempt_mode="off"))
    assert cluster.victims(1) is None


def test_exempt_jobs_do_not_make_way_yet() -> None:
    cluster = Cluster(attrs.evolve(REQUEUE, preempt_exempt_time=600.0))
    cluster.runs(0, since=NOW - 599)
    cluster.runs(1, since=NOW - 600)
    cluster.runs(*range(2, 8), since=NOW)
    assert cluster.victims(1) == [1]
    assert cluster.victims(2) is None


def test_a_qos_preempts_those_that_it_names() -> None:
    low, normal = Qos(name="low", exempt_time=0.0), Qos(name="normal", priority=5)
    urgent = Qos(name="urgent", preempts=["low", "normal"])
    cluster = Cluster(SlurmConf(preempt="qos", preempt_mode="requeue", preempt_exempt_time=9999.0))
    cluster.runs(0, since=NOW, qos=attrs.evolve(normal, exempt_time=0.0))
    cluster.runs(1, 2, since=NOW, qos=low)
    cluster.runs(3, 4, 5, since=NOW, qos=normal)  # exempt by PreemptExemptTime
    cluster.runs(6, 7, since=NOW, qos=urgent)
    assert cluster.victims(1, LOW, urgent) == [1]  # of the lowest priority, though it is larger
    assert cluster.victims(4, LOW, urgent) is None
    assert cluster.victims(1, HIGH, normal) is None  # tiers do not count


# ---------------------------------------------------------------------- what happens to them

SPEC = ClusterSpec(
    partitions=[PartitionSpec(nodes=[NodeSpec(count=4)])], queues=[QueueSpec(name="low"), QueueSpec(name="high")]
)
TIMING = SlurmTiming(main_first=0.5, turn=1.0, backfill_first=30.0, stopping=0.25)
JOBS = [
    Job(id=1, submit=0, run=500, requested=600, nodes=4, queue="low"),
    Job(id=2, submit=10, run=50, requested=60, nodes=2, queue="high"),
]


def policy(settings: SlurmConf = REQUEUE, low: SlurmPartition = LOW, accounts: Accounts | None = None) -> Slurm:
    return Slurm(settings, (low, HIGH), TIMING, accounts=accounts)


def rows(jobs: list[Job], of: Slurm, **options: Any) -> list[tuple[Any, ...]]:
    """Return of each execution: job, start, end, status."""
    table = simulate(SPEC, jobs, of, **options).runs
    columns = [table[name].tolist() for name in ("job", "start", "end", "status")]
    return sorted(zip(*columns, strict=True), key=lambda row: (row[1], row[0]))


def test_a_requeued_job_may_start_after_121_seconds() -> None:
    """Stopped by the main loop at 10.5; its Epilog starts a run at 10.75; the first full run after 131 is at 180.5."""
    assert rows(JOBS, policy()) == [
        (1, 3.5, 10.5, "preempted"),
        (2, 10.75, 60.75, "completed"),
        (1, 180.5, 680.5, "completed"),
    ]


def test_a_requeued_job_keeps_its_priority() -> None:
    """Job 3 is younger and waits for a node, too; once job 1 may start again it comes first."""
    third = Job(id=3, submit=11, run=200, requested=300, nodes=3, queue="low")
    fourth = Job(id=4, submit=12, run=100, requested=200, nodes=4, queue="low")
    found = {(job, status): at for job, at, _, status in rows([*JOBS, third, fourth], policy())}
    assert found[3, "completed"] < found[1, "completed"] < found[4, "completed"]


def test_a_cancelled_job_does_not_come_back() -> None:
    found = rows(JOBS, policy(attrs.evolve(REQUEUE, preempt_mode="cancel")))
    assert found == [(1, 3.5, 10.5, "cancelled"), (2, 10.75, 60.75, "completed")]


def test_a_suspended_job_leaves_its_cores_at_once_and_continues() -> None:
    found = rows(JOBS, policy(attrs.evolve(REQUEUE, preempt_mode="suspend")))
    assert found == [(1, 3.5, 10.5, "suspended"), (2, 10.5, 60.5, "completed"), (1, 60.5, 553.5, "completed")]


def test_a_preempted_job_runs_until_its_grace_time_is_over() -> None:
    """Chosen at 10.5, it has 20 s from then on, in whole seconds; the scan of limits at 30.5 stops it."""
    slurm = policy(attrs.evolve(REQUEUE, backfill=False), attrs.evolve(LOW, grace_time=20.0))
    found = rows(JOBS, slurm, overrun="continue")
    assert found[:2] == [(1, 3.5, 30.5, "preempted"), (2, 30.75, 80.75, "completed")]


def test_a_job_that_forbids_preemption_is_left_alone() -> None:
    found = rows([attrs.evolve(JOBS[0], on_preempt="no"), JOBS[1]], policy())
    assert [row[:2] for row in found] == [(1, 3.5), (2, 503.5)]


def test_jobs_of_a_qos_that_preempts_come_first() -> None:
    """Nothing runs: of two jobs that wait for all nodes, the one that may preempt the other starts, though younger."""
    urgent = Qos(name="urgent", preempts=["normal"])
    accounts = Accounts(qos=[urgent], asked={2: "urgent"})
    jobs = [Job(id=1, run=100, requested=120, nodes=4), Job(id=2, run=100, requested=120, nodes=4)]
    settings = SlurmConf(preempt="qos", preempt_mode="requeue")
    assert [row[0] for row in rows(jobs, policy(settings, accounts=accounts))] == [2, 1]
    assert [row[0] for row in rows(jobs, policy(settings))] == [1, 2]


@pytest.mark.parametrize("cut", [10.6, 40.0, 140.0])
def test_a_run_that_is_cut_is_the_same(cut: float) -> None:
    third = Job(id=3, submit=20, run=30, requested=60, nodes=4, queue="high")
    jobs = [*JOBS, third]
    whole = rows(jobs, policy())
    first = start(SPEC, jobs, policy())
    first.run(until=cut)
    table = simulate(first.snapshot(), policy=policy()).jobs
    ends = dict(zip(table["job"].tolist(), table["end"].tolist(), strict=True))
    assert ends | {job: end for job, _, end, status in whole if status == "completed" and end < cut} == {
        job: end for job, _, end, status in whole if status == "completed"
    }


def test_settings_of_slurm_conf() -> None:
    conf = {
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "SUSPEND,GANG",
        "PreemptExemptTime": "00:10:00",
        "PreemptParameters": "youngest_first,reorder_count=3,strict_order",
    }
    found = SlurmConf.of(conf)
    assert (found.preempt, found.preempt_mode, found.preempt_exempt_time) == ("partition_prio", "suspend", 600.0)
    assert (found.preempt_youngest_first, found.preempt_reorder_count, found.preempt_strict_order) == (True, 3, True)
    assert not found.unread
