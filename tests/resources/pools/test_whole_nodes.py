"""Nodes that are alike and get one job each: schedules equal those of counted processors, start by start."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import load_workload, simulate
from simmodel.environment import Environment
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.systems.cluster.system import Cluster
from simmodel.work.workload import Workload
from tests.helpers.batch_cases import cases, to_workload
from tests.helpers.batch_runs import Watch
from tests.helpers.data_files import data_file

ORDERS = ["fcfs", "sjf", "ljf", "smallest", "largest", "wfp", "unicef", "f1", "f2", "f3", "f4", "multifactor"]
BACKFILLS = ["easy", "easy-sjbf", "conservative", "conservative-keep"]
OTHERS = ["best-fit", "window", "preemptive", "portfolio"]
MIXED = ["sjf+easy", "wfp+easy", "largest+conservative", "f1+conservative", "unicef+conservative-keep"]
NAMES = [*ORDERS, *BACKFILLS, *OTHERS, *MIXED]
MODES = [{}, {"decide_on": "event"}, {"decide_on": "event", "event_order": "ends-first"}]
PLACED = ["first-fit", "best-fit", "packed", "spread"]
CORES = 4


def nodes(count, cores=1, **options):
    """A cluster of nodes that are alike."""
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=count, cores=cores)], **options)])


class NodeWatch(Watch):
    """Records starts, and checks that no node has two jobs."""

    def __init__(self, env, rows, width):
        super().__init__(env, rows)
        self.busy = {}
        self.width = width

    def job_started(self, run):
        super().job_started(run)
        for node in run.grant.nodes or ():
            # Where submissions go first, a job whose end is due has left its nodes.
            before = self.busy.get(node)
            assert before is None or before.released
            self.busy[node] = run
        if run.grant.nodes is not None:
            assert len(run.grant.nodes) == self.width[run.job.index]

    def job_ended(self, run, status):
        super().job_ended(run, status)
        for node in run.grant.nodes or ():
            if self.busy[node] is run:
                del self.busy[node]


def starts(platform, workload, name, width, mode):
    env = Environment()
    cluster = Cluster(env, platform, name, **mode)
    watch = NodeWatch(env, len(workload), width)
    env.observe(watch)
    cluster.replay(workload)
    env.run()
    place = cluster.places[0]
    assert place.simple
    assert place.free == place.capacity
    if isinstance(platform, ClusterSpec):
        assert (place.table.free == place.table.capacity).all()
    return watch.starts, watch.promises


def asked(workload, **columns):
    """The workload with other columns."""
    return Workload({**{name: workload[name] for name in workload.table.names}, **columns}, name="drawn")


def check(name, case, overrun, estimates):
    plain = to_workload(case.jobs, case.processors)
    plain = Workload({name: plain[name] for name in ("submit", "run", "requested", "processors", "user")})
    size = plain["processors"]
    wide = asked(plain, processors=size * CORES)
    whole = asked(wide, nodes=size, cores_per_node=np.full(len(size), CORES))
    ones = asked(plain, nodes=size, cores_per_node=np.ones(len(size), dtype=int))
    count, cores = case.processors, case.processors * CORES
    for mode in MODES:
        mode = {**mode, "overrun": overrun, "estimates": estimates}
        expected = starts(count, plain, name, size, mode)
        assert starts(nodes(count), plain, name, size, mode) == expected
        assert starts(nodes(count), ones, name, size, mode) == expected
        if name != "multifactor":  # it divides by the capacity
            assert starts(nodes(count, CORES, exclusive=True), ones, name, size, mode) == expected
        expected = starts(cores, wide, name, size, mode)
        assert starts(nodes(count, CORES, exclusive=True), wide, name, size, mode) == expected
        assert starts(nodes(count, CORES, exclusive=True), whole, name, size, mode) == expected
        if "keep" not in name and name != "window":  # they plan parts of nodes where jobs may ask for them
            assert starts(nodes(count, CORES), whole, name, size, mode) == expected


@pytest.mark.few(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "examples", [3, pytest.param(6, marks=pytest.mark.long), pytest.param(2000, marks=pytest.mark.exhaustive)]
)
def test_starts_as_on_counted_processors(name, examples):
    @settings(max_examples=examples, deadline=None)
    @given(
        case=cases(max_jobs=14),
        overrun=st.sampled_from(["stop", "continue"]),
        estimates=st.sampled_from(["requested", "exact"]),
    )
    def starts_are_equal(case, overrun, estimates):
        check(name, case, overrun, estimates)

    starts_are_equal()


@pytest.mark.few(9)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if "keep" not in name and name not in ("window", "multifactor")]
)
@pytest.mark.parametrize(
    "examples", [3, pytest.param(8, marks=pytest.mark.long), pytest.param(2000, marks=pytest.mark.exhaustive)]
)
def test_cores_on_any_nodes_start_as_on_counted_processors(name, examples):
    """Nodes differ and are shared; jobs are for a number of processors."""

    @settings(max_examples=examples, deadline=None)
    @given(
        case=cases(max_jobs=14), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4), by=st.sampled_from(PLACED)
    )
    def starts_are_equal(case, sizes, by):
        kinds, left = [], case.processors
        while left:
            kinds.append(NodeSpec(cores=min(left, sizes[len(kinds) % len(sizes)])))
            left -= kinds[-1].cores
        plain = to_workload(case.jobs, case.processors)
        plain = Workload({each: plain[each] for each in ("submit", "run", "requested", "processors", "user")})
        platform = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, placement=by)])
        expected = simulate(case.processors, plain, name).jobs["start"].tolist()
        assert simulate(platform, plain, name).jobs["start"].tolist() == expected

    starts_are_equal()


def test_conservative_promises_an_instant_not_nodes():
    jobs = {"submit": [1, 2, 5, 8], "run": [4, 8, 6, 6], "requested": [5, 8, 11, 10], "processors": [1, 2, 2, 1]}
    assert simulate(nodes(3), Workload(jobs), "conservative").jobs["start"].tolist() == [1, 2, 10, 8]


@pytest.mark.parametrize(
    ("name", "jobs"),
    [("easy", None), ("conservative", 1000), pytest.param("conservative", None, marks=pytest.mark.long)],
)
def test_a_synthetic_log_starts_as_on_counted_processors(name, jobs):
    compare_on(load_workload("lublin-256").where(slice(0, jobs)), 256, name)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "jobs"), [("easy", 8000), pytest.param("easy", None, marks=pytest.mark.long), ("conservative", 3000)]
)
def test_a_real_log_starts_as_on_counted_processors(name, jobs):
    compare_on(load_workload(data_file("swf/KTH-SP2-1996-2.1-cln.swf.gz")).where(slice(0, jobs)), 100, name)


def compare_on(log, processors, name):
    counted = simulate(processors, log, name)
    result = simulate(nodes(processors), log, name)
    assert np.array_equal(result.jobs["start"], counted.jobs["start"], equal_nan=True)
    assert disjoint(result.runs)


def disjoint(runs):
    """Whether no two runs have a node at the same time, each has its number of nodes, and all are recorded."""
    held = sorted(
        (node, start, end, width)
        for node_list, start, end, width in zip(
            runs["nodes"], runs["start"], runs["end"], runs["processors"], strict=True
        )
        for node in node_list
    )
    return len(held) == runs["processors"].sum() and all(
        one[0] != next[0] or one[2] <= next[1] for one, next in pairwise(held)
    )
