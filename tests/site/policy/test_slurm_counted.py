"""Nodes of one core, as counted processors are taken: the short ways give what the long ones do."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel_site.policy.alike import AlikeCycle
from simmodel_site.policy.backfill import BackfillCycle, Kind, kind_of
from simmodel_site.policy.board import Board, Held, Pending, Site
from simmodel_site.policy.main_loop import main_cycle
from simmodel_site.policy.policy import Batch, Slurm, SlurmTiming
from simmodel_site.policy.selection import Shape, choose, choose_alike, nodes_in
from simmodel_site.policy.settings import SlurmConf, SlurmPartition
from tests.helpers.examples import up_to

NOW = 6000


@given(st.integers(0, 2**40 - 1), st.integers(1, 41), st.booleans())
def test_the_same_nodes_as_by_runs(usable: int, wanted: int, by_nodes: bool) -> None:
    shape = Shape(Request(wanted, nodes=wanted) if by_nodes else Request(wanted))
    enough = usable.bit_count() >= wanted
    found = choose(np.ones((3, 40)), shape, usable) if enough else []
    assert nodes_in(choose_alike(usable, wanted)) == sorted(node for node, _ in found or [])


class Found(NamedTuple):
    """What a cycle found: starts with their nodes, whether it changed jobs or marked nodes."""

    starts: list[tuple[int, tuple[int, ...]]]
    changes: bool
    marked: bool


def cluster(seed: int, settings: SlurmConf) -> tuple[Board, list[Pending], list[Held]]:
    """Return a board with running jobs, which ends, and a queue of jobs of few kinds."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([6, 20, 60]))
    board = Board(NodeTable(np.ones((3, size))), settings)
    free = rng.permutation(size).tolist()
    running: list[Held] = []
    while len(free) > rng.integers(0, size):
        count = min(int(rng.choice([1, 1, 2, 5])), len(free))
        mine, free = sorted(free[:count]), free[count:]
        allocation = Allocation.alike(tuple(mine), 1)
        board.table.take(allocation)
        running.append(Held.of(NOW + int(rng.integers(-20, 4000)), len(running), allocation))
    site = Site(SlurmPartition(name="batch"), (1 << size) - 1)
    limits = rng.choice([60, 120, 600, 1800, 3600, 86400], 3)
    queue = []
    for number in range(int(rng.integers(1, 40))):
        width = min(int(rng.choice([1, 1, 1, 2, 4, size // 2])), size)
        job = cast(Any, SimpleNamespace(state="waiting", rules=None))
        limit = int(rng.choice(limits))
        queue.append(Pending(job, Request(width), board, site, limit, 0.0, 0.0, number, user=number % 3))
    board.renew(NOW, running)
    return board, queue, running


def kinds_of(queue: list[Pending]) -> Counter[Kind]:
    return Counter([kind_of(job) for job in queue])


def outcome(cycle: AlikeCycle | BackfillCycle, board: Board, now: int) -> Found:
    starts = []
    for job, given_nodes in cycle.starts():
        allocation = cast(Allocation, given_nodes)
        board.table.take(allocation)
        board.started(Held.of(now + job.limit, 1000 + job.number, allocation))
        starts.append((job.number, allocation.numbers))
    return Found(starts, bool(starts) or cycle.moved or cycle.marked, cycle.marked)


def backfill(seed: int, settings: SlurmConf, *, short: bool) -> Found:
    board, queue, _ = cluster(seed, settings)
    cycle = AlikeCycle(queue, settings, NOW, kinds_of(queue)) if short else BackfillCycle(queue, settings, NOW)
    return outcome(cycle, board, NOW)


SETTINGS = [
    SlurmConf(),
    SlurmConf(bf_max_job_test=5),
    SlurmConf(bf_max_job_test=4, bf_window=30, bf_node_space_size=9),
    SlurmConf(bf_node_space_size=6, bf_window_linear=60),
    SlurmConf(bf_max_job_user=3, bf_max_job_test=7),
    SlurmConf(bf_window=5, bf_resolution=300, bf_max_job_start=2),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: str(settings.changed()))
def test_a_cycle_that_ends_early_starts_the_same_jobs(settings: SlurmConf) -> None:
    for seed in range(up_to(120, 30)):
        assert backfill(seed, settings, short=True) == backfill(seed, settings, short=False), seed


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: str(settings.changed()))
def test_a_cycle_goes_on_where_the_last_one_has_ended(settings: SlurmConf) -> None:
    """After some seconds, and with more jobs, it starts the jobs and tells the changes that a new cycle does."""
    went_on = 0
    for seed in range(150):
        board, queue, _ = cluster(seed, settings)
        first = queue[: len(queue) * 2 // 3 + 1]
        cycle = AlikeCycle(first, settings, NOW, kinds_of(first))
        if outcome(cycle, board, NOW).starts:
            continue
        for delay in np.cumsum(np.random.default_rng(seed).choice([1, 30, 60, 300], 4)).tolist():
            board.pass_to(NOW + delay)
            if not cycle.goes_on(queue, NOW + delay + 0.5, kinds_of(queue)):
                break
            went_on += 1
            again, same_queue, _ = cluster(seed, settings)
            again.pass_to(NOW + delay)
            expected = outcome(BackfillCycle(same_queue, settings, NOW + delay), again, NOW + delay)
            found = outcome(cycle, board, NOW + delay)
            assert found == expected, (seed, delay)
            if found.starts:
                break
    assert went_on > 10


def test_a_cycle_goes_on_only_while_its_plans_hold() -> None:
    """One node is free until the first job is planned at NOW + 600: a job of 300 s can have it for 299 s more.

    The plan of the first job holds until the first end; a job that ends or starts makes all plans void.
    """
    settings = SlurmConf()

    def made() -> tuple[Board, list[Pending], AlikeCycle]:
        board = Board(NodeTable(np.ones((3, 2))), settings)
        held = Held.of(NOW + 600, 0, Allocation.alike((0,), 1))
        board.table.take(held.allocation)
        board.renew(NOW, [held])
        site = Site(SlurmPartition(name="batch"), 0b11)
        queue = [
            Pending(
                cast(Any, SimpleNamespace(state="waiting", rules=None)),
                Request(width),
                board,
                site,
                limit,
                0.0,
                0.0,
                number,
            )
            for number, (width, limit) in enumerate([(2, 600), (1, 300)])
        ]
        cycle = AlikeCycle(queue[:1], settings, NOW, kinds_of(queue[:1]))
        assert not list(cycle.starts())
        return board, queue, cycle

    for delay, starts in ((299, [1]), (300, [])):
        board, queue, cycle = made()
        board.pass_to(NOW + delay)
        assert cycle.goes_on(queue, NOW + delay, kinds_of(queue))
        assert [job.number for job, _ in cycle.starts()] == starts
        assert cycle.tested == 1 + len(starts)
    board, queue, cycle = made()
    board.pass_to(NOW + 600)
    assert not cycle.goes_on(queue, NOW + 600, kinds_of(queue))
    board, queue, cycle = made()
    assert not cycle.goes_on(queue[1:], NOW + 30, kinds_of(queue[1:]))
    board.ended(board.running[0], release=True)
    assert not cycle.goes_on(queue, NOW + 30, kinds_of(queue))


def test_a_cycle_ends_once_none_left_can_start() -> None:
    """The first job is planned on the idle node: no later one can have it, as all last longer."""
    settings = SlurmConf()
    board = Board(NodeTable(np.ones((3, 4))), settings)
    held = Held.of(NOW + 600, 0, Allocation.alike((0, 1, 2), 1))
    board.table.take(held.allocation)
    board.renew(NOW, [held])
    site = Site(SlurmPartition(name="batch"), 0b1111)
    job = cast(Any, SimpleNamespace(state="waiting", rules=None))
    queue = [Pending(job, Request(4 if not i else 1), board, site, 3600, 0.0, 0.0, i) for i in range(400)]
    cycle = AlikeCycle(queue, settings, NOW, kinds_of(queue))
    assert not list(cycle.starts())
    assert (cycle.tested, cycle.marked) == (1, True)


@pytest.mark.parametrize(("most", "starts", "tested"), [(0, [], 1), (1, [2], 2)])
def test_a_job_beyond_a_limit_of_its_user_leaves_its_test_to_a_later_one(
    most: int, starts: list[int], tested: int
) -> None:
    """Of two wide jobs of a user, the first is planned on idle nodes; the third job, of 300 s, can start on one.

    It is the second job that is tested if the other wide one is not. Else none of the first two can start, and the
    cycle ends at once.
    """
    settings = SlurmConf(bf_max_job_test=2, bf_max_job_user=most)
    board = Board(NodeTable(np.ones((3, 10))), settings)
    held = Held.of(NOW + 600, 0, Allocation.alike(tuple(range(2, 10)), 1))
    board.table.take(held.allocation)
    board.renew(NOW, [held])
    site = Site(SlurmPartition(name="batch"), (1 << 10) - 1)
    job = cast(Any, SimpleNamespace(state="waiting", rules=None))
    queue = [
        Pending(job, Request(width), board, site, limit, 0.0, 0.0, number, user=user)
        for number, (width, limit, user) in enumerate([(3, 3600, 0), (3, 3600, 0), (1, 300, 1)])
    ]
    cycle = AlikeCycle(queue, settings, NOW, kinds_of(queue))
    assert [job.number for job, _ in cycle.starts()] == starts
    assert cycle.tested == tested


def test_a_job_that_a_start_lets_wait_for_its_queue_leaves_its_test_to_a_later_one() -> None:
    """Three jobs are tested in a cycle: at 30 s the second starts, the third is held by its queue, the last one starts.

    Three processors are free from 8.5 s on, and planned for the first job.
    """
    queues = [QueueSpec(name="one", max_running=1), QueueSpec(name="any")]
    asked = [(0, 3, 60, "any"), (0, 17, 600, "any"), (5, 4, 60, "any"), (6, 1, 60, "one"), (7, 5, 60, "one")]
    jobs = [
        Job(submit=submit, processors=width, run=min(limit, 5 if width == 3 else limit), requested=limit, queue=queue)
        for submit, width, limit, queue in [*asked, (8, 1, 120, "any")]
    ]
    spec = ClusterSpec(partitions=[PartitionSpec(processors=20)], queues=queues)
    policy = Slurm(SlurmConf(bf_max_job_test=3), timing=SlurmTiming(main_first=0.5, turn=1.0, backfill_first=30.0))
    assert simulate(spec, jobs, policy).jobs["start"].tolist() == [3.5, 3.5, 603.5, 30.0, 603.5, 30.0]


def test_jobs_for_which_no_node_is_left_are_not_counted_as_tested() -> None:
    """The first job has all nodes from NOW + 600 on: the next two find none at any time, and a short one starts."""
    settings = SlurmConf(bf_max_job_test=2)
    board = Board(NodeTable(np.ones((3, 2))), settings)
    held = Held.of(NOW + 600, 0, Allocation.alike((0,), 1))
    board.table.take(held.allocation)
    board.renew(NOW, [held])
    site = Site(SlurmPartition(name="batch"), 0b11)
    queue = []
    for number, (width, limit) in enumerate([(2, 2 * 86400), (1, 3600), (1, 3600), (1, 300)]):
        job = cast(Any, SimpleNamespace(state="waiting", rules=None))
        queue.append(Pending(job, Request(width), board, site, limit, 0.0, 0.0, number))
    cycle = AlikeCycle(queue, settings, NOW, kinds_of(queue))
    assert [job.number for job, _ in cycle.starts()] == [3]


def test_a_board_follows_starts_and_ends() -> None:
    """It has the same free nodes, ends and plans as a board that takes over the state."""
    for seed in range(40):
        board, queue, running = cluster(seed, SlurmConf())
        for held in running[::3]:
            board.ended(held, release=True)
        left = [held for i, held in enumerate(running) if i % 3]
        for job, allocation in main_cycle(queue[:3], SlurmConf()):
            held = Held.of(NOW + job.limit, 100 + job.number, cast(Allocation, allocation))
            board.table.take(held.allocation)
            board.started(held)
            left.append(held)
        board.pass_to(NOW + 30)
        other = Board(board.table, SlurmConf())
        other.renew(NOW + 30, left)
        everything = (1 << len(board.table)) - 1
        assert (board.free_alike, board.ends, board.busy) == (other.free_alike, other.ends, other.busy)
        assert [board.will_run(job, everything) for job in queue] == [other.will_run(job, everything) for job in queue]


def will_run(running: list[Held], nodes: int, idle: int, wanted: int) -> int | None:
    """Return the end of the last job that is released, one after another, in windows."""
    window, first, last, released = 30, 0, NOW, 0
    while (idle & nodes).bit_count() < wanted:
        if released == len(running):
            return None
        while released < len(running):
            held = running[released]
            released += 1
            idle |= held.nodes
            if held.nodes & nodes:
                first, last = first or (held.end // 30 + 1) * 30, held.end
                if released < len(running) and running[released].end > first + window:
                    break
        window *= 2
        while released < len(running) and running[released].end > first + window:
            window *= 2
    return last


def test_a_plan_is_that_of_jobs_released_one_after_another() -> None:
    rng = np.random.default_rng(1)
    for seed in range(300):
        board, queue, running = cluster(seed, SlurmConf())
        board.renew(NOW - 100, running)  # no limit has passed
        size = len(board.table)
        for _ in range(10):
            nodes = int(rng.integers(0, 1 << size)) if rng.random() < 0.8 else (1 << size) - 1
            job = queue[int(rng.integers(len(queue)))]
            plan = board.will_run(job, nodes)
            expected = will_run(board.running, nodes, board.free_alike, job.request.processors)
            start = None if plan is None else NOW if plan.start == NOW - 100 else plan.start
            assert start == expected, seed


def test_the_main_loop_ends_once_all_partitions_are_closed() -> None:
    noted: list[int] = []
    board, _, _ = cluster(1, SlurmConf())
    size = len(board.table)
    site = Site(SlurmPartition(name="batch"), (1 << size) - 1)
    job = cast(Any, SimpleNamespace(state="waiting", rules=None))
    queue = [Pending(job, Request(size + 1), board, site, 60, 0.0, 0.0, number) for number in range(50)]
    for partitions, times in (((), 49), (("batch",), 1), (("batch", "other"), 49)):
        noted.clear()
        loop = main_cycle(queue, SlurmConf(), full=True, note=lambda: noted.append(1), partitions=partitions)
        assert not list(loop)
        assert len(noted) == times


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 8))])
def test_counted_processors_are_nodes_of_one_core(seed: int) -> None:
    """Their board follows starts and ends, that of nodes takes over the state in each cycle."""
    count, rng = up_to(60, 40), np.random.default_rng(seed)
    limits = rng.choice([60, 300, 3600, 86400], count)
    jobs = [
        Job(id=i + 1, submit=int(at), run=float(limit * part), requested=float(limit), processors=int(width))
        for i, (at, limit, part, width) in enumerate(
            zip(
                np.cumsum(rng.exponential(200, count)),
                limits,
                rng.uniform(0, 1, count),
                rng.choice([1, 1, 2, 8, 20], count),
                strict=True,
            )
        )
    ]
    nodes = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n[1-24]")])])
    policy = ("slurm", "slurm(bf_interval=10, completing=1)", "slurm(CompleteWait=8, bf_max_job_test=5)")[seed % 3]
    counted, named = (simulate(platform, jobs, policy).jobs["start"].tolist() for platform in (24, nodes))
    assert counted == named


class Thorough(Slurm):
    """Wakes for each run of both loops, and plans each cycle anew."""

    def attach(self, system: Batch) -> None:
        super().attach(system)
        self.forget()


def random_jobs(seed: int) -> list[Job]:
    """Return 60 jobs for 24 processors, in bursts with long pauses; some depend on others."""
    rng = np.random.default_rng(seed)
    limits = rng.choice(rng.choice([60, 300, 1800, 3600, 14400], 3), 60).astype(float)
    pauses = rng.choice([0.0, 1.0, 40.0, 3000.0], 60) * rng.choice([1.0, 5.0])
    return [
        Job(
            id=i + 1,
            submit=float(at),
            run=float(limit * part),
            requested=float(limit),
            processors=int(width),
            dependencies=[int(rng.integers(1, i + 1))] if i and rng.random() < 0.1 else [],
        )
        for i, (at, limit, part, width) in enumerate(
            zip(
                np.cumsum(rng.uniform(0, 2, 60) * pauses),
                limits,
                rng.choice([0.01, 0.5, 0.99, 1.0], 60),
                rng.choice([1, 1, 2, 8, 20], 60),
                strict=True,
            )
        )
    ]


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_out_starts_nothing(seed: int) -> None:
    """Neither wake-ups nor plans that are left out change a start."""
    names = ("", "bf_interval=10", "bf_max_job_test=4, default_queue_depth=3", "bf_resolution=300, sched_interval=20")
    given_policy = Slurm.of(**dict(each.split("=") for each in names[seed % 4].split(", ") if each))
    thorough = Thorough(given_policy.settings)
    found, expected = (
        simulate(24, random_jobs(seed), each).jobs["start"].tolist() for each in (given_policy, thorough)
    )
    assert found == expected


def test_no_loop_wakes_while_nothing_can_change() -> None:
    """A job waits for a day: the loops look once or twice after each submission."""
    simulation = start(8, [Job(id=1, run=86400, processors=8), Job(id=2, submit=5, run=60, processors=1)], "slurm")
    simulation.run()
    assert simulation.result().jobs["start"].tolist()[1] > 86400
    assert simulation.system.scheduler.calls < 20


@pytest.mark.few(3)
@pytest.mark.parametrize("until", np.linspace(50, 9000, 12).tolist())
def test_a_simulation_continues_while_no_loop_wakes(until: float) -> None:
    jobs = [job for job in random_jobs(7) if not job.dependencies]
    whole = simulate(24, jobs, "slurm").jobs
    starts = dict(zip(whole["job"].tolist(), whole["start"].tolist(), strict=True))
    simulation = start(24, jobs, "slurm")
    simulation.run(until=until)
    again = simulate(simulation.snapshot(), policy="slurm").jobs
    found = dict(zip(again["job"].tolist(), again["start"].tolist(), strict=True))
    assert found
    assert found == {job: starts[job] for job in found}
