"""The policy slurm's choice of nodes and the wishes of jobs, worked by hand; sets of nodes by brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import InputError, Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.node_lists import node_list
from simmodel.resources.pools.allocation import Request
from simmodel.work.job import Dependency
from simmodel_site.policy.backfill import Slot, Window
from simmodel_site.policy.layout import Layout, SlurmNodes, SlurmSwitch, switches_of
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.selection import Shape, choose
from simmodel_site.policy.settings import SlurmConf, SlurmPartition
from simmodel_site.policy.wishes import Wishes

TIMING = SlurmTiming(main_first=1.0, turn=1.0)
QUICK = SlurmConf(batch_sched_delay=1.0, bf_interval=30.0)
TREE = switches_of("s1:nodes=n[1-4]; s2:nodes=n[5-8]; top:switches=s[1-2]")


def cluster(nodes: str = "n[1-8]", **kind: Any) -> ClusterSpec:
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names=nodes, **kind)])])


def placed(
    spec: ClusterSpec, jobs: list[Job], policy: Slurm | str, **options: Any
) -> dict[int | str, tuple[float, str]]:
    """Return the start (s) and the nodes of each job."""
    runs = simulate(spec, jobs, policy, **options).runs
    return {
        job: (float(at), node_list(f"n{node + 1}" for node in nodes))
        for job, at, nodes in zip(runs["job"].tolist(), runs["start"], runs["nodes"].tolist(), strict=True)
    }


def free(*cores: float) -> Any:
    return np.array([cores, [0.0] * len(cores), [100.0] * len(cores)])


# ---------------------------------------------------------------------- the choice of nodes


def test_one_node_that_is_enough_is_the_tightest() -> None:
    assert choose(free(4, 2, 3, 2), Shape(Request(2)), 0b1111) == [(1, 2)]
    assert choose(free(1, 4, 4), Shape(Request(6)), 0b111) == [(0, 1), (1, 4), (2, 1)]


def test_memory_of_each_core_leaves_fewer_cores() -> None:
    shape = Shape(Request(4), 40.0)  # two cores of a node have enough memory
    assert choose(free(4, 4, 4), shape, 0b111) == [(0, 2), (1, 2)]


def test_nodes_without_memory_have_all_their_cores() -> None:
    assert choose(np.array([[2.0, 4.0], [0, 0], [0, 0]]), Shape(Request(4)), 0b11) == [(1, 4)]


def test_nodes_of_low_weight_come_first() -> None:
    names = [f"n{i}" for i in range(4)]
    layout = Layout(names, 4, [SlurmNodes(names="n[0-1]", weight=9)])
    assert choose(free(1, 1, 1, 1), Shape(Request(3, nodes=3)), 0b1111, layout=layout) == [(2, 1), (3, 1), (0, 1)]


def test_named_nodes_come_first_and_others_outward_from_them() -> None:
    found = choose(free(*[1] * 8), Shape(Request(4, nodes=4)), 0b11110111, must=0b01000000)
    assert found == [(6, 1), (7, 1), (5, 1), (4, 1)]


@pytest.mark.parametrize(
    ("usable", "nodes", "chosen"),
    [
        (0b11010111, 2, [0, 1]),  # three of each leaf: the first
        (0b11110111, 3, [0, 1, 2]),  # the leaf with fewer that is enough
        (0b11111111, 5, [0, 1, 2, 3, 4]),  # none is: the first, then the next
        (0b11110001, 4, [4, 5, 6, 7]),
        (0b11110001, 5, [4, 5, 6, 7, 0]),  # none is: the one with most
    ],
)
def test_leaf_switches_fit_tightly(usable: int, nodes: int, chosen: list[int]) -> None:
    layout = Layout([f"n{i}" for i in range(1, 9)], 8, (), TREE)
    found = choose(free(*[1] * 8), Shape(Request(nodes, nodes=nodes)), usable, layout=layout)
    assert found is not None
    assert [node for node, _ in found] == chosen


def test_near_leaves_come_before_far_ones() -> None:
    """Of six nodes, four are on a leaf; the others are on the near leaf, though a far one has more."""
    text = "a:nodes=n[1-4];b:nodes=n[5-6];c:nodes=n[7-9];r1:switches=a,b;r2:switches=c;top:switches=r[1-2]"
    layout = Layout([f"n{i}" for i in range(1, 10)], 9, (), switches_of(text))
    found = choose(free(*[1] * 9), Shape(Request(6, nodes=6)), (1 << 9) - 1, layout=layout)
    assert found is not None
    assert [node for node, _ in found] == [0, 1, 2, 3, 4, 5]


def test_of_leaves_that_fit_alike_the_nearest_comes_first() -> None:
    """Of three nodes, two are on a leaf; the third comes from the near leaf, though a far one is first."""
    text = "a:nodes=n[1-2];c:nodes=n[3-4];b:nodes=n[5-6];r1:switches=a,b;r2:switches=c;top:switches=r[1-2]"
    layout = Layout([f"n{i}" for i in range(1, 7)], 6, (), switches_of(text))
    found = choose(free(*[1] * 6), Shape(Request(3, nodes=3)), 0b111111, layout=layout)
    assert found is not None
    assert [node for node, _ in found] == [0, 1, 4]
    assert [layout.distances[0][i] for i in range(6)] == [0, 4, 2, 1, 3, 2]


def test_nodes_of_trees_that_do_not_meet_are_not_mixed() -> None:
    layout = Layout(["a", "b", "c"], 3, (), switches_of("s:nodes=a,b;t:nodes=c"))
    assert choose(free(1, 1, 1), Shape(Request(3, nodes=3)), 0b111, layout=layout) is None


def test_of_trees_alike_that_with_the_lowest_weight_is_taken() -> None:
    nodes = [SlurmNodes(names="n[3-4]", weight=9)]
    layout = Layout(["n1", "n2", "n3", "n4"], 4, nodes, switches_of("s:nodes=n[1-2];t:nodes=n[3-4]"))
    assert choose(free(1, 1, 1, 1), Shape(Request(2, nodes=2)), 0b1111, layout=layout) == [(0, 1), (1, 1)]


def test_switches_below_themselves_are_refused() -> None:
    with pytest.raises(InputError, match="switch s is below itself"):
        Layout(["a"], 1, (), [SlurmSwitch(name="s", switches="t"), SlurmSwitch(name="t", switches="s")])


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5), st.lists(st.sampled_from("&|"), min_size=4, max_size=4)
)
def test_features_are_read_from_left_to_right(names: list[str], signs: list[str]) -> None:
    nodes = [SlurmNodes(names="n1", features="a"), SlurmNodes(names="n2", features="ab")]
    nodes.append(SlurmNodes(names="n3", features="bc"))
    layout = Layout(["n1", "n2", "n3", "n4"], 4, nodes)
    text = names[0] + "".join(sign + name for sign, name in zip(signs, names[1:], strict=False))
    expected = 0
    for i, has in enumerate(("a", "ab", "bc", "")):
        told = names[0] in has
        for sign, name in zip(signs, names[1:], strict=False):
            told = told and name in has if sign == "&" else told or name in has
        expected |= told << i
    assert layout.where(Wishes.of(f"-C {text}")).may & 0b1111 == expected


def test_a_feature_that_no_node_has_leaves_none_beside_numbers_of_nodes() -> None:
    layout = Layout(["n1", "n2"], 2, [SlurmNodes(names="n[1-2]", features="a")])
    assert layout.where(Wishes.of("-C a*2")).may & 0b11 == 0b11
    assert layout.where(Wishes.of("-C a*2&b")).may & 0b11 == 0


@pytest.mark.parametrize("text", ["a&", "a&(b", "a*2|b", "a b", "[a"])
def test_features_that_sbatch_refuses_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--constraint"):
        Layout(["n1"], 1).where(Wishes.of(f"-C '{text}'"))


# ---------------------------------------------------------------------- wishes of jobs


def test_a_job_gets_the_nodes_that_it_names_and_closes_nothing() -> None:
    """Job 2 waits for n1 alone: job 3 starts at once, which it would not behind another job that waits."""
    jobs = [
        Job(id=1, submit=0, run=100, requested=120, nodes=1),
        Job(id=2, submit=0, run=10, requested=60, nodes=1, options="-w n1"),
        Job(id=3, submit=0, run=10, requested=60, nodes=7),
    ]
    found = placed(cluster(), jobs, Slurm(QUICK, timing=TIMING))
    assert found[3] == (2.0, "n[2-8]")
    assert found[2] == (102.0, "n1")


def test_excluded_nodes_features_and_their_numbers() -> None:
    nodes = [SlurmNodes(names="n[3-4]", features=["big"]), SlurmNodes(names="n8", features=["ib"])]
    jobs = [
        Job(id=1, submit=0, run=9, requested=60, nodes=2, options="--exclude=n[1-2] -C 'big|ib'"),
        Job(id=2, submit=0.1, run=9, requested=60, nodes=2, options="-x n1"),
        Job(id=3, submit=20, run=9, requested=60, nodes=3, options="-C '[big*1&ib*1]'"),
        Job(id=4, submit=40, run=9, requested=60, nodes=1, options="-C '[ib|big]'"),
    ]
    found = placed(cluster(), jobs, Slurm(QUICK, timing=TIMING, nodes=nodes))
    assert [found[i][1] for i in (1, 2, 3, 4)] == ["n[3-4]", "n[5-6]", "n[3-4,8]", "n8"]


def test_gpus_are_of_the_type_that_a_job_names() -> None:
    nodes = [SlurmNodes(names="n[1-2]", gpus=["v100"]), SlurmNodes(names="n[3-4]", gpus=["a100"])]
    job = Job(id=1, submit=0, run=9, requested=60, nodes=2, gpus_per_node=2, options="--gres=gpu:a100:2")
    found = placed(cluster("n[1-4]", cores=4, gpus=4), [job], Slurm(QUICK, timing=TIMING, nodes=nodes))
    assert found[1][1] == "n[3-4]"


def test_a_job_waits_for_one_leaf_switch_and_no_longer_than_it_says() -> None:
    """n1, n2, n3 and n5 are busy for long; of the others, four are never on one leaf. A number alone is minutes."""
    held = [Job(id=i, submit=0, run=900, requested=960, nodes=1, options=f"-w n{i}") for i in (1, 2, 3, 5)]
    late = [
        Job(id=7, submit=2, run=10, requested=60, nodes=4, options="--switches=1@1"),
        Job(id=8, submit=3, run=10, requested=60, nodes=2, options="--switches=1@1"),
    ]
    conf = SlurmConf(batch_sched_delay=1.0, bf_interval=30.0, tree=True)
    found = placed(cluster(), held + late, Slurm(conf, timing=TIMING, switches=TREE))
    assert found[8] == (30.0, "n[6-7]")  # by the backfill loop: job 7 closes the partition, and has no plan
    assert found[7] == (90.0, "n[4,6-8]")


def test_as_many_tasks_of_an_array_run_at_once_as_it_says() -> None:
    tasks = [Job(id=f"1_{i}", submit=0, run=50, requested=60, nodes=1, options="--array=0-3%2") for i in range(4)]
    found = placed(cluster(), [*tasks, Job(id=2, submit=0, run=50, requested=60)], Slurm(QUICK, timing=TIMING))
    assert [found[f"1_{i}"][0] for i in range(4)] == [2.0, 2.0, 52.0, 52.0]
    assert found[2] == (2.0, "n3")


def test_the_tasks_of_an_array_have_one_record() -> None:
    """Job 3 is the third record: its priority is 2 below that of the first, from which nice takes 3."""
    jobs = [Job(id=1, submit=0, run=10, requested=60, nodes=8, priority=-3)]
    jobs += [Job(id=f"2_{i}", submit=0, run=10, requested=60, nodes=8, options="-a 0-3") for i in range(4)]
    jobs += [Job(id=3, submit=0, run=10, requested=60, nodes=8)]
    found = placed(cluster(), jobs, Slurm(QUICK, timing=TIMING))
    assert sorted(found, key=lambda job: found[job][0]) == ["2_0", "2_1", "2_2", "2_3", 3, 1]


@pytest.mark.parametrize(("most", "at_once"), [(1, True), (20, False)])
def test_a_cycle_reserves_nodes_for_some_tasks_of_an_array_only(most: int, at_once: bool) -> None:
    """The second task is planned on n3 and n4, from the end of job 2 on; job 3 would have n3 for longer."""
    jobs = [
        Job(id=1, submit=0, run=100, requested="2min", nodes=2),
        Job(id=2, submit=0, run=400, requested="7min", nodes=1, options="-w n4"),
        *[Job(id=f"5_{i}", submit=3, run=100, requested="10min", nodes=2, options="-a 0-1") for i in range(2)],
        Job(id=3, submit=4, run=100, requested="1h", nodes=1),
    ]
    conf = SlurmConf(batch_sched_delay=1.0, bf_interval=30.0, bf_max_job_array_resv=most)
    found = placed(cluster("n[1-4]"), jobs, Slurm(conf, timing=TIMING))
    assert (found[3] == (30.0, "n3")) is at_once
    assert found["5_0"] == (102.0, "n[1-2]")


def test_held_jobs_and_begin_times() -> None:
    jobs = [
        Job(id=1, submit=0, run=10, requested=60, nodes=8, options="--begin=now+2minutes"),
        Job(id=2, submit=1, run=10, requested=60, nodes=8),
        Job(id=3, submit=1, run=10, requested=60, nodes=8, options="--hold", cancel=500),
    ]
    table = simulate(cluster(), jobs, Slurm(QUICK, timing=TIMING)).jobs
    assert table["start"][:2].tolist() == [121.0, 2.0]
    assert table["status"][2] == "cancelled"


def test_a_job_of_several_partitions_runs_in_the_one_of_the_highest_tier() -> None:
    parts = [SlurmPartition(name="low", default=True), SlurmPartition(name="high", nodes="n[1-2]", tier=10)]
    jobs = [
        Job(id=1, submit=0, run=100, requested=120, nodes=8),
        Job(id=2, submit=1, run=10, requested=60, nodes=2),
        Job(id=3, submit=3, run=10, requested=60, nodes=2, options="-p low,high"),
        Job(id=4, submit=3, run=10, requested=60, nodes=8, options="-p low,high"),
    ]
    found = placed(cluster(), jobs, Slurm(QUICK, parts, TIMING))
    assert found[3] == (102.0, "n[1-2]")
    assert found[2] == (102.0, "n[3-4]")
    assert found[4][0] > 102.0


def test_jobs_that_name_no_memory_get_that_of_their_nodes() -> None:
    spec = cluster("n[1-2]", cores=4, memory="8GiB")
    jobs = [Job(id=i, submit=0, run=10, requested=60) for i in (1, 2)]
    jobs += [Job(id=3, submit=0, run=10, requested=60, options="--mem-per-cpu=1G")]
    found = placed(spec, jobs, Slurm(SlurmConf(batch_sched_delay=1.0, memory=True), timing=TIMING))
    assert [found[i][1] for i in (1, 2)] == ["n1", "n2"]
    assert found[3][0] == 12.0
    named = SlurmConf(batch_sched_delay=1.0, memory=True, def_mem_per_cpu=2.0**30)
    assert {nodes for _, nodes in placed(spec, jobs[:3], Slurm(named, timing=TIMING)).values()} == {"n1"}


def test_a_job_that_asks_for_all_memory_of_a_node_has_it_on_one_core() -> None:
    spec = cluster("n[1-2]", cores=4, memory="8GiB")
    jobs = [Job(id=i, submit=0, run=10, requested=60, options=f"--mem{more}") for i, more in enumerate(("=0", "=1G"))]
    policy = Slurm(SlurmConf(batch_sched_delay=1.0, memory=True), timing=TIMING)
    found = placed(spec, jobs, policy)
    assert found[0][0] == found[1][0] < 10
    assert (found[0][1], found[1][1]) == ("n1", "n2")


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "slurm"])
def test_exclusive_jobs_get_whole_nodes(policy: str) -> None:
    jobs = [
        Job(id=1, submit=0, run=10, requested=60, processors=5, exclusive=True),
        Job(id=2, submit=0, run=10, requested=60, processors=1),
        Job(id=3, submit=0, run=10, requested=60, nodes=1, exclusive=True),
    ]
    found = placed(cluster("n[1-4]", cores=4), jobs, policy)
    assert {job: nodes for job, (_, nodes) in found.items()} == {1: "n[1-2]", 2: "n3", 3: "n4"}
    assert len({at for at, _ in found.values()}) == 1


def test_a_job_after_a_failure_is_cancelled_where_there_is_none() -> None:
    jobs = [
        Job(id=1, run=100, requested=60),
        Job(id=2, run=10, dependencies=[Dependency(1, after="failure")]),
        Job(id=3, run=10),
        Job(id=4, run=10, dependencies=[Dependency(3, after="failure")]),
    ]
    status = simulate(cluster(), jobs, "fcfs").jobs["status"].tolist()
    assert status == ["timeout", "completed", "completed", "cancelled"]


def test_options_that_are_not_modelled_are_named() -> None:
    jobs = [Job(id=7, run=10, options="--reboot --core-spec=2"), Job(id=8, run=10, options="--reboot")]
    notes = str(simulate(cluster(), jobs, Slurm()).report)
    assert "policy slurm leaves out --reboot of 2 jobs, such as 7" in notes
    assert "policy slurm leaves out --core-spec=2 of 1 job, such as 7" in notes


@pytest.mark.parametrize("text", ["--switches=many", "--begin=tomorrow", "--mem-per-cpu=lots", "-w", "--gres=disk:1"])
def test_values_that_sbatch_refuses_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be what sbatch accepts"):
        Wishes.of(text)


def test_a_run_that_is_cut_among_tasks_of_an_array_goes_on_alike() -> None:
    tasks = [Job(id=f"1_{i}", submit=i / 4, run=40, requested=60, nodes=3, options="-a 0-5%2") for i in range(6)]
    others = [Job(id=i, submit=i, run=30, requested=60, nodes=2, priority=-2 * (i % 3)) for i in range(2, 9)]
    whole = placed(cluster(), [*tasks, *others], Slurm(QUICK, timing=TIMING))
    simulation = start(cluster(), [*tasks, *others], Slurm(QUICK, timing=TIMING))
    simulation.run(until=20)
    runs = simulate(simulation.snapshot(), None, Slurm(QUICK, timing=TIMING)).runs
    later = {str(job): at for job, at in zip(runs["job"].tolist(), runs["start"].tolist(), strict=True) if at > 20}
    assert later == {str(job): at for job, (at, _) in whole.items() if at > 20}


# ---------------------------------------------------------------------- the table of the backfill loop


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 15)), min_size=1, max_size=8), st.data())
def test_a_moving_span_sees_what_a_fixed_one_does(parts: list[tuple[int, int]], data: st.DataObject) -> None:
    slots, at = [], 0
    for length, nodes in parts:
        slots.append(Slot(at, at + length, nodes))
        at += length
    mine, long = data.draw(st.integers(0, 15)), data.draw(st.integers(0, 6))
    window = Window(slots, mine)
    for begin in sorted(data.draw(st.sets(st.integers(0, at + 1)))):
        touched = [slot for slot in slots if slot.end > begin and slot.begin <= begin + long]
        found = mine
        for slot in touched:
            found &= slot.nodes
        left, later = mine, 0
        for slot, after in pairwise(slots):
            if slot.end > begin and not later:
                if after.nodes & mine & ~(left & slot.nodes):
                    later = slot.end
                if slot.begin > begin + long:
                    break
                left &= slot.nodes
        assert window.move(begin, begin + long) == (found, later)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 15)), min_size=1, max_size=12), st.data())
def test_a_span_that_passes_slots_with_too_few_nodes_by_misses_nothing(
    parts: list[tuple[int, int]], data: st.DataObject
) -> None:
    slots, at = [], 0
    for length, nodes in parts:
        slots.append(Slot(at, at + length, nodes))
        at += length
    mine, long, least = (data.draw(st.integers(low, high)) for low, high in ((0, 15), (0, 6), (1, 3)))

    def walk(window: Window) -> tuple[list[tuple[int, int, int]], int]:
        """Return the spans with enough nodes, and the begin of the last one."""
        found, later = [], slots[0].begin
        while True:
            begin = later
            free, later = window.move(begin, begin + long)
            if free.bit_count() >= least:
                found.append((begin, free, later))
            if not later:
                return found, begin

    assert walk(Window(slots, mine, least)) == walk(Window(slots, mine))
