"""Slurm's loops, worked by hand from the behaviour of Slurm 22.05."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Job, simulate, start
from simmodel.platform import ClusterSpec, ConsumableSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel.scheduling.registry import policy
from simmodel_site.policy.accounts import Accounts, Association
from simmodel_site.policy.backfill import BackfillCycle, Planned
from simmodel_site.policy.board import Board, Held, Pending, Site
from simmodel_site.policy.last_runs import LastRuns
from simmodel_site.policy.limits import Counted
from simmodel_site.policy.main_loop import main_cycle
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.selection import Shape, choose, mask_of, nodes_in, runs
from simmodel_site.policy.settings import SlurmConf, SlurmPartition

NOW = 6000
"""The instant of the cycles, a whole minute."""


class Cluster:
    """Nodes of one core, running jobs that end at given instants, and waiting jobs in order."""

    def __init__(self, nodes: int, settings: SlurmConf | None = None) -> None:
        self.settings = settings or SlurmConf()
        self.table = NodeTable(np.ones((3, nodes)))
        self.board = Board(self.table, self.settings)
        self.all = (1 << nodes) - 1
        self.running: list[Held] = []
        self.queue: list[Pending] = []

    def runs(self, end: int, *nodes: int) -> None:
        allocation = Allocation.alike(nodes, 1)
        self.table.take(allocation)
        self.running.append(Held.of(end, len(self.running), allocation))

    def waits(
        self, nodes: int, minutes: int, *, partition: str = "batch", of: int | None = None, tier: int = 1, **more: Any
    ) -> None:
        number = len(self.queue)
        site = Site(SlurmPartition(name=partition, tier=tier), self.all if of is None else of)
        request = Request(nodes, nodes=nodes)
        job = cast(Any, SimpleNamespace(state="waiting"))
        self.queue.append(Pending(job, request, self.board, site, minutes * 60, 1000.0 - number, 0.0, number, **more))

    def _made(self, loop: Any) -> dict[int, tuple[int, ...]]:
        found = {}
        for job, allocation in loop:
            self.table.take(allocation)
            self.board.started(Held.of(NOW + job.limit, 100 + job.number, allocation))
            found[job.number] = allocation.numbers
        return found

    def main(self, *, full: bool = False, completing: int = 0) -> dict[int, tuple[int, ...]]:
        self.board.renew(NOW, self.running, completing)
        return self._made(main_cycle(sorted(self.queue, key=Pending.key), self.settings, full=full))

    def backfill(self, completing: int = 0) -> tuple[dict[int, tuple[int, ...]], dict[int, Planned]]:
        self.board.renew(NOW, self.running, completing)
        cycle = BackfillCycle(sorted(self.queue, key=Pending.key), self.settings, NOW)
        started = self._made(cycle.starts())
        return started, {plan.job.number: plan for plan in cycle.planned}


# ---------------------------------------------------------------------- the main loop


def test_an_event_tests_one_job_more_than_the_default_depth() -> None:
    cluster = Cluster(8, SlurmConf(default_queue_depth=2))
    for _ in range(5):
        cluster.waits(1, 1)
    assert list(cluster.main()) == [0, 1, 2]


def test_a_full_run_has_no_depth() -> None:
    cluster = Cluster(8, SlurmConf(default_queue_depth=2))
    for _ in range(5):
        cluster.waits(1, 1)
    assert list(cluster.main(full=True)) == [0, 1, 2, 3, 4]


def test_the_depth_of_a_partition_is_exact_in_full_runs_too() -> None:
    cluster = Cluster(8, SlurmConf(partition_job_depth=2))
    for _ in range(5):
        cluster.waits(1, 1)
    assert list(cluster.main(full=True)) == [0, 1]


def test_a_run_starts_sched_max_job_start_jobs_at_most() -> None:
    cluster = Cluster(8, SlurmConf(sched_max_job_start=3))
    for _ in range(5):
        cluster.waits(1, 1)
    assert list(cluster.main(full=True)) == [0, 1, 2]


def test_a_blocked_job_closes_its_partition_and_takes_its_nodes_from_others() -> None:
    cluster = Cluster(4)
    cluster.runs(NOW + 60, 0, 1)
    cluster.waits(3, 1, partition="a", of=0b0111)
    cluster.waits(1, 1, partition="a", of=0b0111)
    cluster.waits(1, 1, partition="b")  # node 2 is idle, but of partition a
    cluster.waits(1, 1, partition="b")  # the partition is still open, and has no node left
    assert cluster.main() == {2: (3,)}


def test_a_job_of_a_higher_tier_comes_first() -> None:
    cluster = Cluster(2)
    cluster.waits(1, 1, tier=1)
    cluster.waits(2, 1, partition="high", tier=10)
    assert cluster.main() == {1: (0, 1)}


def test_a_job_that_waits_for_a_licence_closes_nothing() -> None:
    cluster = Cluster(2)
    cluster.waits(1, 1, ready=False)
    cluster.waits(1, 1)
    assert cluster.main() == {1: (0,)}


def test_why_a_job_waits_is_noted_if_it_is_not_tested() -> None:
    """Not of the first that finds its nodes busy: its reason stays."""
    cluster = Cluster(4)
    cluster.runs(NOW + 60, 0, 1)

    def noted() -> int:
        found: list[bool] = []
        cluster.board.renew(NOW, cluster.running)
        assert not list(main_cycle(cluster.queue, cluster.settings, note=lambda: found.append(True)))
        return len(found)

    cluster.waits(3, 1, partition="a", of=0b0111)
    assert noted() == 0
    cluster.waits(1, 1, partition="a", of=0b0111)  # its partition is closed
    assert noted() == 1
    cluster.waits(2, 1, partition="b")  # of its nodes, one is left to it
    assert noted() == 2
    cluster.waits(1, 1, partition="c", ready=False)  # a licence is not free
    assert noted() == 3


def test_a_young_job_closes_nothing_below_bf_min_age_reserve() -> None:
    blocked = {}
    for age in (0, NOW + 1):
        cluster = Cluster(2, SlurmConf(bf_min_age_reserve=age))
        cluster.runs(NOW + 60, 0)
        cluster.waits(2, 1)
        cluster.waits(1, 1)
        blocked[age] = list(cluster.main())
    assert blocked == {0: [], NOW + 1: [1]}


def test_completing_nodes_are_not_free_in_the_main_loop() -> None:
    cluster = Cluster(2)
    cluster.waits(1, 1)
    assert cluster.main(completing=0b01) == {0: (1,)}


# ---------------------------------------------------------------------- the backfill loop


def test_every_waiting_job_is_planned_on_its_nodes() -> None:
    cluster = Cluster(4)
    cluster.runs(NOW + 120, 0, 1)
    cluster.waits(4, 2)  # at NOW + 120, on all nodes
    cluster.waits(2, 2)  # its span touches the plan: after that, on nodes that are idle now
    cluster.waits(2, 1)  # ends before
    started, planned = cluster.backfill()
    assert started == {2: (2, 3)}
    assert [(plan.start - NOW, nodes_in(plan.nodes)) for plan in planned.values()] == [
        (120, [0, 1, 2, 3]),
        (240, [2, 3]),
    ]


def test_a_span_that_touches_a_planned_job_counts_as_overlapping() -> None:
    """2 minutes end exactly when the planned job begins: the slot begins at the end, which counts."""
    cluster = Cluster(2)
    cluster.runs(NOW + 120, 0)
    cluster.waits(2, 5)
    cluster.waits(1, 2)
    assert cluster.backfill()[0] == {}


def test_ends_within_a_window_of_30_s_are_taken_together() -> None:
    """The first end, NOW + 40, is rounded up to NOW + 60; ends until NOW + 90 come with it, so the plan is late."""
    cluster = Cluster(4)
    for node, end in enumerate((40, 85, 91, 300)):
        cluster.runs(NOW + end, node)
    cluster.waits(1, 1)
    assert cluster.backfill()[1][0].start == NOW + 85


def test_the_window_doubles_until_it_takes_in_the_next_end() -> None:
    """After NOW + 40 the window is 30, 60, 120, 240 s: it takes in NOW + 200, and with it NOW + 290."""
    cluster = Cluster(4)
    for node, end in enumerate((40, 200, 290, 301)):
        cluster.runs(NOW + end, node)
    cluster.waits(2, 1)
    assert cluster.backfill()[1][0].start == NOW + 290


def test_a_job_past_its_limit_is_planned_to_end_after_kill_wait() -> None:
    cluster = Cluster(1, SlurmConf(kill_wait=30))
    cluster.runs(NOW - 10, 0)
    cluster.waits(1, 1)
    assert cluster.backfill()[1][0].start == NOW + 20


def test_a_job_beyond_the_window_reserves_nothing() -> None:
    starts = {}
    for window in (1, 60):
        cluster = Cluster(2, SlurmConf(bf_window=window))
        cluster.runs(NOW + 300, 0)
        cluster.waits(2, 1)
        cluster.waits(1, 10)  # delays the first one by 5 minutes
        started, planned = cluster.backfill()
        starts[window] = started
        assert planned[0].start == NOW + 300
        assert planned[0].reserved == (window == 60)
    assert starts == {1: {1: (1,)}, 60: {}}


def test_a_job_that_was_preempted_ends_no_more() -> None:
    """Of two jobs, the one that would have ended first is stopped: both nodes are free at the end of the other."""
    cluster = Cluster(2)
    cluster.runs(NOW + 60, 0)
    cluster.runs(NOW + 600, 1)
    cluster.waits(2, 1)
    cluster.board.renew(NOW, cluster.running)
    cluster.table.release(cluster.running[0].allocation)
    cluster.board.stopped(cluster.running[0], completing=False)
    plan = cluster.board.will_run(cluster.queue[0], 0b11)
    assert plan is not None
    assert plan.start == NOW + 600
    assert cluster.board.later_than(NOW + 60, cluster.queue[0], 0b11)


def test_a_reservation_is_floored_to_the_resolution() -> None:
    """The plan begins at NOW + 119, floored to NOW + 60: a job of one minute does not fit before it."""
    fits = {}
    for resolution in (60, 1):
        cluster = Cluster(2, SlurmConf(bf_resolution=resolution))
        cluster.runs(NOW + 119, 0)
        cluster.waits(2, 1)
        cluster.waits(1, 1)
        fits[resolution] = list(cluster.backfill()[0])
    assert fits == {60: [], 1: [1]}


def test_a_table_of_two_records_ends_the_cycle() -> None:
    """The first plan makes the second record, so the second plan finds the table full: what fits is never tested."""
    cluster = Cluster(4, SlurmConf(bf_node_space_size=2))
    cluster.runs(NOW + 300, 0, 1)
    cluster.waits(3, 1)
    cluster.waits(3, 1)
    cluster.waits(1, 1)
    assert cluster.backfill()[0] == {}
    cluster.settings = cluster.board.settings = SlurmConf()
    assert list(cluster.backfill()[0]) == [2]


@pytest.mark.parametrize("limit", ["bf_max_job_user", "bf_max_job_part", "bf_max_job_user_part", "bf_max_job_test"])
def test_one_job_is_tested_in_a_cycle(limit: str) -> None:
    cluster = Cluster(4, SlurmConf(**{limit: 1}))
    for _ in range(3):
        cluster.waits(1, 1, user="u")
    assert list(cluster.backfill()[0]) == [0]


def test_a_user_at_the_limit_does_not_keep_others_from_being_tested() -> None:
    cluster = Cluster(4, SlurmConf(bf_max_job_user=1))
    for user in "uuv":
        cluster.waits(1, 1, user=user)
    assert list(cluster.backfill()[0]) == [0, 2]


def test_of_each_association_a_number_of_jobs_is_tested_whoever_their_users_are() -> None:
    """One job of each association; bf_max_job_user, which would bar the last one, does not count then."""
    cluster = Cluster(4, SlurmConf(bf_max_job_assoc=1, bf_max_job_user=1))
    tree = Accounts(associations=[Association(account=name) for name in "ab"])
    for account in ("a", "a", "b"):
        (of,) = [each for each in tree.associations if each.account == account]
        job = Counted(len(cluster.queue), "ada", account, of, tree.qos_of(None, None), {}, 60.0)
        cluster.waits(1, 1, user="ada", counted=job)
    cluster.waits(1, 1, user="ada")
    assert list(cluster.backfill()[0]) == [0, 2, 3]


def test_the_number_of_starts_of_a_cycle_is_limited() -> None:
    cluster = Cluster(4, SlurmConf(bf_max_job_start=2))
    for _ in range(3):
        cluster.waits(1, 1)
    assert list(cluster.backfill()[0]) == [0, 1]


def test_a_completing_node_is_planned_for_the_next_second() -> None:
    cluster = Cluster(1)
    cluster.waits(1, 1)
    started, planned = cluster.backfill(completing=0b1)
    assert started == {}
    assert planned[0].start == NOW + 1


@given(st.lists(st.integers(1, 5), max_size=12), st.lists(st.tuples(st.integers(1, 9), st.integers(1, 6)), max_size=10))
def test_no_start_meets_a_plan_of_a_job_before_it(ends: list[int], asked: list[tuple[int, int]]) -> None:
    """A job that starts is on no node, at any time until its limit, that an earlier job has been planned on."""
    cluster = Cluster(9)
    for node, end in enumerate(ends[:8]):
        cluster.runs(NOW + 60 * end, node)
    for nodes, minutes in asked:
        cluster.waits(nodes, minutes)
    started, planned = cluster.backfill()
    for number, nodes in started.items():
        end = NOW + cluster.queue[number].limit
        mine = sum(1 << node for node in nodes)
        assert all(plan.start > end or not plan.nodes & mine for plan in planned.values() if plan.job.number < number)


# ---------------------------------------------------------------------- nodes


def test_the_smallest_run_that_is_large_enough_is_taken() -> None:
    free = np.ones((3, 10))
    usable = 0b1101110111  # runs of 3, 3 and 2
    assert [node for node, _ in choose(free, Shape(Request(2, nodes=2)), usable)] == [8, 9]
    assert [node for node, _ in choose(free, Shape(Request(3, nodes=3)), usable)] == [0, 1, 2]


def test_without_a_run_that_is_large_enough_the_largest_comes_first() -> None:
    free = np.ones((3, 8))
    assert [node for node, _ in choose(free, Shape(Request(4, nodes=4)), 0b11100001)] == [5, 6, 7, 0]


def test_processors_fill_nodes_from_the_lowest_on() -> None:
    free = np.full((3, 4), 4.0)
    free[0, 1] = 1
    assert choose(free, Shape(Request(6)), 0b1111) == [(0, 4), (1, 1), (2, 1)]


def test_the_least_loaded_nodes_come_first() -> None:
    free = np.array([[1.0, 4, 2, 4]] * 3)
    assert choose(free, Shape(Request(5)), 0b1111, least_loaded=np.full(4, 4.0)) == [(1, 4), (3, 1)]


@given(st.lists(st.booleans(), max_size=70))
def test_sets_of_nodes_are_what_their_flags_say(flags: list[bool]) -> None:
    mask = mask_of(np.array(flags, dtype=bool))
    assert nodes_in(mask) == [i for i, each in enumerate(flags) if each]
    assert sum(count for _, count in runs(mask)) == sum(flags)


# ---------------------------------------------------------------------- the policy on a cluster

SPEC = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4)])])
TIMING = SlurmTiming(main_first=0.5, turn=1.0, backfill_first=30.0)


def starts(jobs: list[Job], policy: Slurm | str, spec: ClusterSpec = SPEC, **options: Any) -> dict[Any, float]:
    table = simulate(spec, jobs, policy, **options).jobs
    return dict(zip(table["job"].tolist(), table["start"].tolist(), strict=True))


def test_the_main_loop_waits_for_its_delay() -> None:
    """Turns at 0.5, 1.5, ...: asked at 1.2, the next run is 3 whole seconds after the last, at 0.5."""
    jobs = [Job(id=1, submit=1.2, run=10, requested=60), Job(id=2, submit=4, run=10, requested=60)]
    assert starts(jobs, Slurm(timing=TIMING)) == {1: 3.5, 2: 6.5}


def test_an_end_while_nothing_waits_asks_the_main_loop_too() -> None:
    """The end at 8.5 makes it run at 8.5, so a job submitted at 9 waits for 11.5 instead of 9.5."""
    jobs = [Job(id=1, submit=1.2, run=5, requested=60), Job(id=2, submit=9, run=1, requested=60)]
    assert starts(jobs, Slurm(timing=TIMING))[2] == 11.5
    jobs = [Job(id=1, submit=1.2, run=50, requested=60), Job(id=2, submit=9, run=1, requested=60)]
    assert starts(jobs, Slurm(timing=TIMING))[2] == 9.5


def test_backfill_starts_at_its_own_instants() -> None:
    """The second job does not fit, the third may start beside it: not by the main loop, but by backfill at 30 s."""
    jobs = [
        Job(id=1, submit=0, run=300, requested=300, nodes=3),
        Job(id=2, submit=5, run=60, requested=60, nodes=4),
        Job(id=3, submit=6, run=60, requested=60, nodes=1),
    ]
    assert starts(jobs, Slurm(timing=TIMING)) == {1: 3.5, 3: 30.0, 2: 303.5}


def test_backfill_counts_the_cores_of_nodes_that_jobs_share() -> None:
    """One core of each of two nodes is free until the second job needs all: a short job has one, a long one none."""
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4)])])
    jobs = [
        Job(id=1, submit=0, run=300, requested=300, nodes=2, cores_per_node=3),
        Job(id=2, submit=5, run=60, requested=60, nodes=2, cores_per_node=4),
        Job(id=3, submit=6, run=60, requested=60, nodes=1),
        Job(id=4, submit=6, run=600, requested=600, nodes=2),
    ]
    assert starts(jobs, Slurm(timing=TIMING), spec) == {1: 3.5, 3: 30.0, 2: 303.5, 4: 363.5}


def test_backfill_counts_the_gpus_of_nodes_of_one_core() -> None:
    """The third job waits for the GPU although two nodes are free; the fourth one gets one of these."""
    kinds = [NodeSpec(name="c", count=2), NodeSpec(name="g", gpus=1)]
    jobs = [
        Job(id=1, submit=0, run=300, requested=300, nodes=1, gpus_per_node=1),
        Job(id=2, submit=5, run=60, requested=60, nodes=3),
        Job(id=3, submit=6, run=60, requested=60, nodes=1, gpus_per_node=1),
        Job(id=4, submit=6, run=60, requested=60, nodes=1),
    ]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds)])
    assert starts(jobs, Slurm(timing=TIMING), spec) == {1: 3.5, 4: 30.0, 2: 303.5, 3: 363.5}


@pytest.mark.parametrize(("least", "start"), [({}, 663.5), ({"bf_min_age_reserve": 300}, 30.0)])
def test_backfill_keeps_no_processors_for_a_young_job(least: dict[str, int], start: float) -> None:
    """The last job, of 600 s on one of 4 processors, is beyond the depth of the main loop; wide ones are planned."""
    wide = [Job(id=i, submit=5, run=60, requested=60, processors=4) for i in range(2, 8)]
    jobs = [Job(id=1, submit=0, run=300, requested=300, processors=3), *wide, Job(id=9, submit=6, run=600)]
    policy = Slurm(SlurmConf(default_queue_depth=1, **least), timing=TIMING)
    assert starts(jobs, policy, ClusterSpec(partitions=[PartitionSpec(processors=4)]))[9] == start


def test_without_backfill_the_head_blocks() -> None:
    jobs = [
        Job(id=1, submit=0, run=300, requested=300, nodes=3),
        Job(id=2, submit=5, run=60, requested=60, nodes=4),
        Job(id=3, submit=6, run=60, requested=60, nodes=1),
    ]
    found = starts(jobs, Slurm(SlurmConf(backfill=False), timing=TIMING))
    assert found[3] > found[2] == 303.5


def test_given_instants_are_those_of_the_loops() -> None:
    timing = SlurmTiming(main=(2.0, 40.0), backfill=(25.0, 45.0))
    jobs = [Job(id=1, submit=0, run=10, requested=60), Job(id=2, submit=3, run=10, requested=60)]
    assert starts(jobs, Slurm(timing=timing)) == {1: 2.0, 2: 25.0}


def test_limits_are_enforced_at_a_scan() -> None:
    """Started at 3.5; its limit, rounded up to 60 s, has passed at 63; scans are at 30.5, 60.5, 90.5."""
    job = Job(id=1, submit=0, run=500, requested=30)
    table = simulate(SPEC, [job], Slurm(timing=TIMING), overrun="continue").jobs
    assert (table["end"][0], table["status"][0]) == (90.5, "timeout")
    later = Slurm(SlurmConf(over_time_limit=60.0), timing=TIMING)
    assert simulate(SPEC, [job], later, overrun="continue").jobs["end"][0] == 150.5
    never = Slurm(SlurmConf(over_time_limit=float("inf")), timing=TIMING)
    assert simulate(SPEC, [job], never, overrun="continue").jobs["end"][0] == 503.5


def test_complete_wait_keeps_all_jobs_from_starting() -> None:
    """The node of the first job is not free for 20 s: nothing starts for 8 s, then other nodes are used."""
    jobs = [
        Job(id=1, submit=0, run=10, requested=60),
        Job(id=2, submit=13, run=10, requested=60),
    ]
    timing = SlurmTiming(main=tuple(float(at) for at in range(1, 60)), backfill=(900.0,), completing=20.0)
    assert starts(jobs, Slurm(SlurmConf(complete_wait=8.0), timing=timing))[2] == 19.0
    assert starts(jobs, Slurm(timing=timing))[2] == 13.0


def test_partitions_share_nodes_and_have_their_own() -> None:
    spec = ClusterSpec(
        partitions=[PartitionSpec(name="all", nodes=[NodeSpec(names="n[1-4]")])],
        queues=[QueueSpec(name="low"), QueueSpec(name="high")],
    )
    low, high = SlurmPartition(name="low", default=True), SlurmPartition(name="high", nodes="n[2-3]", tier=10)
    jobs = [
        Job(id=1, submit=1, run=60, requested=60, nodes=1),
        Job(id=2, submit=2, run=60, requested=60, nodes=2),
        Job(id=3, submit=2.5, run=60, requested=60, nodes=2, queue="high"),
    ]
    table = simulate(spec, jobs, Slurm(partitions=(low, high), timing=TIMING)).runs
    nodes = dict(zip(table["job"].tolist(), table["nodes"].tolist(), strict=True))
    assert nodes == {3: (1, 2), 1: (0,), 2: (0, 1)}


def test_a_licence_is_waited_for_without_closing_the_partition() -> None:
    spec = ClusterSpec(partitions=SPEC.partitions, consumables=[ConsumableSpec(name="matlab", amount=1)])
    jobs = [
        Job(id=1, submit=0, run=30, requested=60, consumables={"matlab": 1}),
        Job(id=2, submit=4, run=30, requested=60, consumables={"matlab": 1}),
        Job(id=3, submit=5, run=30, requested=60),
    ]
    assert starts(jobs, Slurm(timing=TIMING), spec) == {1: 3.5, 3: 6.5, 2: 33.5}


def test_nice_lowers_a_basic_priority() -> None:
    jobs = [
        Job(id=1, submit=1, run=30, requested=60, nodes=4, priority=-50),
        Job(id=2, submit=2, run=30, requested=60, nodes=4),
    ]
    found = starts(jobs, Slurm(timing=TIMING))
    assert found[2] < found[1]


def test_old_jobs_rise_once_a_period() -> None:
    """Size counts 1000 a whole cluster, age 1000 an hour: the small job is ahead of a large one after half an hour."""
    settings = SlurmConf(
        multifactor=True, weight_age=1000, weight_size=1000, max_age=3600, calc_period=60, backfill=False
    )
    running = Job(id=0, submit=0, run=3000, requested=3600, nodes=4)
    small, large = (
        Job(id=1, submit=10, run=60, requested=60, nodes=2),
        Job(id=2, submit=1000, run=60, requested=60, nodes=3),
    )
    found = starts([running, small, large], Slurm(settings, timing=TIMING))
    assert found[1] < found[2]
    found = starts(
        [running, small, Job(id=2, submit=20, run=60, requested=60, nodes=3)], Slurm(settings, timing=TIMING)
    )
    assert found[2] < found[1]


@pytest.mark.parametrize("until", [40.0, 333.3, 700.0])
def test_a_simulation_continues_from_a_snapshot(until: float) -> None:
    rng = np.random.default_rng(1)
    jobs = [
        Job(id=i, submit=float(rng.integers(0, 600)), run=float(rng.integers(1, 200)), requested=240, nodes=int(n))
        for i, n in enumerate(rng.integers(1, 5, 40))
    ]
    slurm = Slurm(SlurmConf(bf_interval=20), timing=TIMING)
    whole = starts(jobs, slurm)
    simulation = start(SPEC, jobs, slurm)
    simulation.run(until=until)
    again = simulate(simulation.snapshot(), policy=slurm).jobs
    found = dict(zip(again["job"].tolist(), again["start"].tolist(), strict=True))
    assert len(found) > 5
    assert found == {job: whole[job] for job in found}


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(12))
def test_cycles_that_are_left_out_would_start_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    jobs = [
        Job(id=i, submit=float(at), run=float(run * share), requested=float(run), nodes=int(wide))
        for i, (at, run, wide) in enumerate(rng.integers((0, 30, 1), (3000, 900, 5), (60, 3)))
        for share in [rng.choice([0.1, 0.9, 1.5])]
    ]
    short = simulate(SPEC, jobs, Slurm(timing=TIMING), overrun="continue").jobs["start"].tolist()
    monkeypatch.setattr(LastRuns, "settled", lambda *_: False)
    assert simulate(SPEC, jobs, Slurm(timing=TIMING), overrun="continue").jobs["start"].tolist() == short


def test_counted_processors_are_nodes_of_one_core() -> None:
    rng = np.random.default_rng(2)
    jobs = [
        Job(id=i, submit=float(at), run=float(run), requested=float(run + 30), processors=int(wide))
        for i, (at, run, wide) in enumerate(rng.integers((0, 1, 1), (900, 200, 5), (60, 3)))
    ]
    nodes = [attrs.evolve(job, nodes=job.processors) for job in jobs]
    assert starts(jobs, Slurm(timing=TIMING), ClusterSpec.simple(4)) == starts(nodes, Slurm(timing=TIMING))


NEVER_ZERO = ("bf_interval", "sched_interval", "bf_resolution", "calc_period")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slurm(5)", "parameters must be named"),
        ("slurm(bf_intervall=5)", "bf_interval"),
        ("slurm(bf_interval=soon)", "bf_interval: must be a number, got 'soon'"),
        ("slurm(default_queue_depth=-1)", "default_queue_depth: must be a whole number >= 0, got '-1'"),
        *((f"slurm({name}=0)", f"{name}: must be a finite number >= 1, got 0") for name in NEVER_ZERO),
        ("slurm(bf_interval=nan)", "bf_interval: must be a finite number >= 1, got nan"),
        ("slurm(multifactor=true, weight_age=nan)", "weight_age: must be a finite number >= 0, got nan"),
        ("slurm(kill_wait=-3)", "kill_wait: must be a finite number >= 0, got -3"),
        ("slurm(bf_window=inf)", "bf_window: must be a finite number >= 0, got inf"),
        ("slurm(turn=0)", "turn: must be > 0 s, got 0"),
        ("slurm(partitions=(a:nods=n1))", "unknown key 'nods'"),
        ("slurm(SelectType=select/linear)", "SelectType"),
    ],
)
def test_wrong_names_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        simulate(SPEC, [Job(run=1)], text)


def test_a_name_says_all_of_a_policy() -> None:
    parts = "a:nodes=n[1-2,4]:default;b"
    text = f"slurm(bf_interval=10, bf_max_job_user=3, multifactor=true, weight_age=500, partitions=({parts}))"
    made = policy(text)
    assert isinstance(made, Slurm)
    assert made.text == text
    assert made.partitions[0].nodes == "n[1-2,4]"
