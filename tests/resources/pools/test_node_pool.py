"""Pools of identified nodes, and their profiles."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simpy import Interrupt

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError, PolicyError
from simmodel.platform.cluster import ClusterSpec, ConsumableSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel.resources.pools.claims import Lost
from simmodel.resources.pools.counts import CountPool
from simmodel.resources.pools.node_profile import NodeProfile
from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.pools.pool import Consumables
from simmodel.resources.pools.profile import CountProfile
from simmodel.runs.scenario import simulate
from simmodel.scheduling.protocol import Start
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job, LiveJob
from simmodel.work.workload import Workload
from tests.helpers.examples import up_to


def pool_of(*kinds, env=None, consumables=None, **settings):
    return NodePool(
        env or Environment(), "batch", PartitionSpec(nodes=kinds, **settings), Consumables(consumables or {})
    )


def live(pool, requested=10.0, **request):
    spec = Job(run=requested, **request)
    job = LiveJob("job", 0, 0.0, spec.processors, requested, requested, requested)
    job._job, job.request = spec, pool.request_of(spec)
    return job


# ---------------------------------------------------------------------- the pool


def test_takes_and_gives_back():
    pool = pool_of(NodeSpec(count=3, cores=4, gpus=1))
    job = live(pool, nodes=2, cores_per_node=3, gpus_per_node=1)
    assert pool.fits(job)
    grant = pool.take(job)
    assert (grant.processors, grant.nodes, pool.free, pool.version) == (6, (0, 1), 6, 1)
    assert not pool.fits(job)
    assert pool.can_run(job)
    pool.give_back(job, grant)
    assert (pool.free, pool.fits(job)) == (12, True)


def test_plain_jobs_of_a_log_get_cores_anywhere():
    pool = pool_of(NodeSpec(count=2, cores=4), exclusive=True)
    job = LiveJob(1, 0, 0.0, 5, 10.0, 10.0, 10.0)
    assert pool.take(job).nodes == (0, 1)
    assert pool.free == 0


def test_refuses_what_can_never_be():
    pool = pool_of(NodeSpec(count=2, cores=4), consumables={"matlab": 1})
    assert pool.why_not(live(pool, processors=9)) == "9 processors requested, batch has 8"
    assert "2 of matlab requested" in pool.why_not(live(pool, processors=1, consumables={"matlab": 2}))
    with pytest.raises(ImpossibleWork, match="batch has 0 such nodes"):
        pool.claim(nodes=1, gpus_per_node=1)


def test_consumables_go_with_the_nodes():
    pool = pool_of(NodeSpec(count=2, cores=4), consumables={"matlab": 2})
    job = live(pool, processors=1, consumables={"matlab": 2})
    grant = pool.take(job)
    assert not pool.fits(job)
    assert pool.fits(live(pool, processors=7))
    pool.running.add(SimpleNamespaceRun(job, grant, 30.0), 1)
    at, allocation = pool.profile().earliest(job, 10)
    assert (at, allocation.nodes.tolist()) == (30, [0])
    pool.give_back(job, grant)
    assert pool.fits(job)


class SimpleNamespaceRun(SimpleNamespace):
    __hash__ = object.__hash__

    def __init__(self, job, grant, expected_end):
        super().__init__(job=job, work=job, grant=grant, expected_end=expected_end)


def test_a_node_of_the_first_kind_has_these_powers():
    pool = pool_of(NodeSpec(idle_power=90, load_power=250), NodeSpec(name="gpu", idle_power=300, load_power=1500))
    assert (pool.idle_power, pool.load_power) == (90, 250)


def test_nodes_are_found_by_name_and_number():
    pool = pool_of(NodeSpec(count=2), NodeSpec(name="gpu", count=1), NodeSpec(count=1))
    assert pool.nodes == ["node0", "node1", "gpu0", "node2"]
    assert pool.absences.units_of(OutageSpec(at=0, nodes=["gpu0", 0, "node2"])) == (0, 2, 3)
    with pytest.raises(InputError, match="unknown node 'node9' of batch; known nodes: node0 to node2, or 0 to 3"):
        pool.absences.units_of(OutageSpec(at=0, nodes=["node9"]))
    with pytest.raises(InputError, match="unknown node 4"):
        pool.absences.units_of(OutageSpec(at=0, nodes=[4]))
    with pytest.raises(InputError, match="duplicate node 'node0' of batch"):
        pool.absences.units_of(OutageSpec(at=0, nodes=["node0", 0]))


def test_nodes_go_down_and_come_back():
    pool = pool_of(NodeSpec(count=3, cores=4))
    job = live(pool, nodes=1, cores_per_node=2)
    grant = pool.take(job)
    pool.take_down((0, 1))
    assert (pool.up, pool.free, pool.down_nodes, pool.capacity) == (4, 4, (0, 1), 12)
    pool.take_down((1,))
    pool.give_back(job, grant)  # work on a node that is down may end, which frees nothing
    assert pool.free == 4
    pool.bring_up((0, 1))
    assert (pool.up, pool.free, pool.down_nodes) == (8, 8, (1,))
    pool.bring_up((1,))
    assert (pool.up, pool.free, pool.down_nodes) == (12, 12, ())


def test_accepts_only_what_is_asked_for_and_free():
    pool = pool_of(NodeSpec(count=3, cores=4))
    job = live(pool, nodes=2, cores_per_node=2)
    good = Allocation.of([(0, 2, 0, 0), (2, 2, 0, 0)])
    assert pool.accepts(job, good)
    for rows in ([(0, 4, 0, 0)], [(0, 1, 0, 0), (2, 3, 0, 0)], [(0, 2, 0, 0), (7, 2, 0, 0)], []):
        assert not pool.accepts(job, Allocation.of(rows))
    assert not pool.accepts(job, [(0, 2, 0, 0)])
    pool.take_down((2,))
    assert not pool.accepts(job, good)
    assert pool.allocate(job) == Allocation.of([(0, 2, 0, 0), (1, 2, 0, 0)])


def test_keeps_clear_of_announced_windows():
    env = Environment()
    pool = pool_of(NodeSpec(count=2, cores=4), env=env)
    pool.announce(100, 200, (0,))
    short, long = live(pool, 100, processors=2), live(pool, 101, processors=2)
    assert pool.allocate(short).nodes.tolist() == [0]
    assert pool.allocate(long).nodes.tolist() == [1]
    assert not pool.fits(live(pool, 101, processors=8))
    assert pool.earliest(live(pool, 101, processors=8)) == (200, 0)
    env.run(until=150)
    assert (pool.free, pool.up, pool.down_nodes) == (4, 4, (0,))
    assert pool.earliest(live(pool, 10, processors=8)) == (200, 0)
    env.run()
    assert (pool.free, pool.windows, pool.down_nodes) == (8, [], ())


def test_a_window_that_has_begun_at_once():
    env = Environment(initial_time=50)
    pool = CountPool(env, "pool", 8)
    assert pool.announce(0, 50, 8) is None
    heard = []
    pool.announce(0, 60, 3, lambda away: heard.append((env.now, away, pool.free)))
    assert pool.free == 5
    env.run()
    assert heard == [(50, True, 5), (60, False, 8)]


# ---------------------------------------------------------------------- jobs, claims and policies on nodes


def test_a_suspended_job_goes_on_where_it_was():
    env = Environment()
    cluster = Cluster(env, ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=1)])]), "easy")
    seen = []
    env.observe(SimpleNamespace(job_resumed=lambda run: seen.append((env.now, run.grant.nodes))))
    first = cluster.submit(Job(run=10, processors=1))

    def user():
        yield env.timeout(5)
        cluster.preempt(first, "suspend")
        other = cluster.submit(Job(run=20, requested=20, processors=2, priority=1))
        yield other
        assert env.now == 25
        yield first

    env.process(user())
    env.run()
    assert seen == [(25, (0,))]
    assert (first.state, env.now) == ("completed", 30)


def test_a_suspended_job_waits_for_its_node():
    env = Environment()
    pool = pool_of(NodeSpec(count=2, cores=1), env=env)
    job = live(pool, processors=1)
    grant = pool.take(job)
    pool.give_back(job, grant)
    job.remember().resumes = grant
    pool.take_down((0,))
    assert not pool.fits(job)
    assert pool.earliest(job) == (float("inf"), 0)
    pool.bring_up((0,))
    assert pool.allocate(job).nodes.tolist() == [0]


def test_a_policy_chooses_the_nodes():
    env = Environment()
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=3, cores=2)])])

    def last_node(view):
        for job in view.waiting:
            yield Start(job, view.places[0], None, Allocation.of([(2, job.processors, 0, 0)]))

    cluster = Cluster(env, spec, last_node)
    granted = []
    env.observe(SimpleNamespace(job_started=lambda run: granted.append(run.grant.nodes)))
    cluster.submit(Job(run=1, processors=1))
    cluster.submit(Job(run=1, processors=1))
    env.run()
    assert granted == [(2,), (2,)]
    cluster.submit(Job(run=1, processors=3))
    with pytest.raises(PolicyError):
        env.run()


def test_claims_of_nodes_that_fail_are_interrupted():
    env = Environment()
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=2)])], outages=[OutageSpec(at=5, until=9, nodes=[1])]
    )
    cluster = Cluster(env, spec)
    pool = cluster.places[0]
    heard = []

    def user(nodes):
        try:
            with pool.claim(nodes=nodes, cores_per_node=1) as grant:
                yield grant
                yield env.timeout(20)
                heard.append((env.now, "done"))
        except Interrupt as interrupt:
            heard.append((env.now, interrupt.cause))

    env.process(user(1))
    env.process(user(2))
    env.run()
    assert heard == [(5, Lost(pool, 0)), (20, "done")]
    assert pool.free == 4


def test_easy_on_nodes_keeps_the_promise_on_its_nodes():
    """The head waits for node 0: a long job must not take that node, although as many cores remain free elsewhere."""
    env = Environment()
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(name="fat", cores=4), NodeSpec(count=2, cores=2)])])
    cluster = Cluster(env, spec, "easy")
    started = []
    env.observe(SimpleNamespace(job_started=lambda run: started.append((run.job.id, env.now, run.grant.nodes))))
    cluster.submit(Job(id="a", run=10, nodes=1, cores_per_node=3))
    cluster.submit(Job(id="head", run=10, nodes=1, cores_per_node=4))
    cluster.submit(Job(id="long", run=50, nodes=1, cores_per_node=1))
    cluster.submit(Job(id="short", run=10, nodes=1, cores_per_node=1))
    env.run()
    assert started == [("a", 0, (0,)), ("long", 0, (1,)), ("short", 0, (0,)), ("head", 10, (0,))]


def test_licences_are_planned_with_the_nodes():
    env = Environment()
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=1)])], consumables=[ConsumableSpec(name="x", amount=1)]
    )
    cluster = Cluster(env, spec, "conservative")
    started = {}
    env.observe(SimpleNamespace(job_started=lambda run: started.setdefault(run.job.id, env.now)))
    for name, run, processors, licences in [("a", 10, 1, 1), ("b", 20, 1, 1), ("c", 12, 4, 0), ("d", 5, 1, 0)]:
        cluster.submit(Job(id=name, run=run, processors=processors, consumables={"x": licences} if licences else {}))
    env.run()
    assert started == {"a": 0, "b": 10, "c": 30, "d": 0}


def test_a_plan_that_finds_no_other_nodes_stays_where_it_was():
    """One node is free until a plan of 10 s at 10 s. No other is free before 50 s, so a long job cannot have it."""
    table = NodeTable(np.array([[4.0, 2.0, 2.0], [0] * 3, [0] * 3]))
    ends = [(50, Allocation.of([(node, 2, 0, 0)])) for node in (1, 2)]
    profile = NodeProfile(0, table, ends, need_of=lambda job: job.request)
    planned, job = (live(pool_of(NodeSpec(cores=4)), nodes=1, cores_per_node=4) for _ in "ab")
    profile.take(planned, 10, 10)
    for _ in range(2):
        assert profile.make_room(job, 100, planned) is None
        assert profile.fits(job, 10).rows == ((0, 4, 0, 0),)
        assert profile.fits(job, 11) is None
        assert profile.earliest(job, 30)[0] == 20


# ---------------------------------------------------------------------- the profile against brute force


class _Brute:
    """A brute-force profile: the free capacity of each node at each step, all of it searched for every question."""

    def __init__(self, table, ends, windows):
        self.table = table
        self.parts = [(0, end, part, -1) for end, part in ends]
        self.parts += [(0 if start is None else start, end, part, -1) for start, end, part in windows]
        # Running work and current windows are not in the table: they are added to the initial state.
        self.table = table.copy()
        for _, part in ends:
            self.table.release(part)
        for start, _, part in windows:
            if start is None:
                self.table.release(part)

    def state(self, t):
        state = self.table.copy()
        for start, end, part, sign in self.parts:
            if start <= t < end:
                state.add([(part, sign)])
        return state

    def times(self):
        return sorted({0} | {t for start, end, _, _ in self.parts for t in (start, end) if t < float("inf")})

    def through(self, need, start, duration):
        state = self.state(start)
        for t in self.times():
            if start < t < start + duration:
                state = state.minimum([self.state(t)])
        return state.allocate(need)

    def earliest(self, need, duration, not_before):
        for t in sorted({not_before, *self.times()}):
            if t >= not_before and (found := self.through(need, t, duration)) is not None:
                return t, found
        return float("inf"), None


@st.composite
def node_requests(draw):
    gpus = draw(st.sampled_from([0, 0, 0, 1]))
    exclusive = draw(st.sampled_from([False, False, False, True]))
    if draw(st.booleans()):
        return Request(draw(st.integers(1, 8)), None, 1, gpus, 0.0, exclusive)
    nodes, cores = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Request(nodes * cores, nodes, cores, gpus, 0.0, exclusive)


@given(data=st.data(), placement=st.sampled_from(["first-fit", "best-fit", "packed"]))
@settings(max_examples=up_to(300), deadline=None)
def test_the_profile_answers_as_brute_force(data, placement):
    capacity = np.array(
        [data.draw(st.lists(st.integers(1, 4), min_size=3, max_size=4)), [1, 1, 0, 0], [9.0] * 4], object
    )
    count = len(capacity[0])
    table = NodeTable(np.array([row[:count] for row in capacity.tolist()], dtype=float), placement)
    ends = []
    for _ in range(data.draw(st.integers(0, 5))):
        held = table.allocate(data.draw(node_requests()))
        if held is not None:
            table.take(held)
            ends.append((data.draw(st.integers(1, 12)), held))
    ends.sort(key=lambda end: end[0])
    windows = []
    for _ in range(data.draw(st.integers(0, 2))):
        away = Allocation.away(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2)))
        start = data.draw(st.one_of(st.none(), st.integers(1, 15)))
        if start is None:
            table.take(away)
        windows.append((start, (start or 0) + data.draw(st.sampled_from([1, 3, 8, float("inf")])), away))
    profile = NodeProfile(0, table, ends, windows, need_of=lambda job: job)
    brute = _Brute(table, ends, windows)
    planned = {}
    for _ in range(data.draw(st.integers(1, 8))):
        need = data.draw(node_requests())
        need = Request(need.processors, need.nodes, need.cores_per_node, need.gpus_per_node, need.memory_per_node)
        duration = data.draw(st.sampled_from([1, 2, 3, 5, 9, float("inf")]))
        not_before = data.draw(st.sampled_from([0, 0, 0, 2, 7]))
        now = brute.through(need, 0, duration)
        assert profile.fits(need, duration) == now
        at, found = profile.earliest(need, duration, not_before)
        assert (at, found) == brute.earliest(need, duration, not_before)
        if found is None or need in planned:
            continue
        action = data.draw(st.sampled_from(["take", "take", "take and undo"]))
        given_ = found if data.draw(st.booleans()) else None
        profile.take(need, at, duration, given_)
        if action == "take":
            planned[need] = True
            brute.parts.append((at, at + duration, found, -1))
        else:
            profile.give_back(need, at, duration)


def test_what_takes_no_time_and_what_is_late():
    """A job past its expected end frees its node just after now; a job of zero length is gone just after its start."""
    table = NodeTable(np.array([[2.0], [0], [0]]))
    held = Allocation.of([(0, 1, 0, 0)])
    table.take(held)
    profile = NodeProfile(10, table, [(5, held)], need_of=lambda job: job)
    two, one = Request(2), Request(1)
    at, found = profile.earliest(two, 4)
    assert at > 10
    assert profile.instant(at) == 10
    profile.take(two, at, 4, found)
    assert profile.earliest(one, 0)[0] == 10
    assert profile.earliest(one, 1)[0] == 14
    late = NodeProfile(10, table, [(5, held)], need_of=lambda job: job)
    late.take(one, 10, 0)
    at, _ = late.earliest(one, 3)
    assert (at > 10, late.instant(at)) == (True, 10)


def test_a_profile_waits_for_consumables():
    table = NodeTable(np.array([[4.0], [0], [0]]))

    class Asks(SimpleNamespace):
        __hash__ = object.__hash__

    profile = NodeProfile(
        0, table, need_of=lambda job: job.request, consumables={"x": CountProfile(0, 0, [(7, 1), (9, 1)])}
    )
    job = Asks(request=Request(1, consumables={"x": 1}))
    assert profile.fits(job, 1) is None
    at, found = profile.earliest(job, 5)
    assert (at, found.nodes.tolist()) == (7, [0])
    profile.take(job, at, 5, found)
    assert profile.earliest(Asks(request=Request(4, consumables={"x": 1})), 1)[0] == 12
    assert profile.earliest(Asks(request=Request(1, consumables={"x": 3})), 1) == (float("inf"), None)


# ---------------------------------------------------------------------- logs with columns of nodes


NODE_LOG = {
    "submit": [0, 0],
    "run": [5, 5],
    "processors": [64, 33],
    "nodes": [2, 2],
    "memory_per_node": [3e9, np.nan],
}


def test_a_log_that_gives_nodes_and_processors():
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=32, memory=4e9)])])
    result = simulate(spec, Workload(NODE_LOG), "fcfs")
    assert result.runs["nodes"].tolist() == [(0, 1), (2, 3)]
    assert result.jobs["start"].tolist() == [0, 0]
    assert not result.report.repaired


def test_a_log_with_memory_on_a_platform_of_processors():
    result = simulate(64, Workload(NODE_LOG), "fcfs")
    assert result.jobs["start"].tolist() == [0, 5]
    assert result.report.repaired == {"GPUs or memory not on the platform: request ignored": 1}


def test_a_share_of_a_gpu_in_a_log_is_a_share_of_one_device():
    """Three jobs with 0.6 of a GPU must not start together on two: shares of different devices do not add up."""
    log = Workload(
        {"submit": [0] * 3, "run": [10] * 3, "requested": [10] * 3, "nodes": [1] * 3, "gpus_per_node": [0.6] * 3}
        | {"processors": [1] * 3}
    )
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus=2)])])
    result = simulate(spec, log, "easy")
    assert result.jobs["start"].tolist() == [0, 0, 10]
    assert not result.report.repaired
    assert result.runs["devices"].tolist() == [(((0, 600),),), (((1, 600),),), (((0, 600),),)]
