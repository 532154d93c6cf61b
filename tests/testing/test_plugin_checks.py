"""The checks for authors of plug-ins: every policy of the package passes; broken ones fail."""

import attrs
import pytest

from simmodel.catalogue import load_platform
from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform.broker import BrokerSpec
from simmodel.platform.cluster import ClusterSpec
from simmodel.policies.backfilling import Easy
from simmodel.resources.pools.counts import CountPool
from simmodel.resources.pools.promises import Promise
from simmodel.runs import simulate
from simmodel.scheduling import registry
from simmodel.scheduling.protocol import DecidingObject, Estimate, Place, Policy, Start, View
from simmodel.scheduling.registry import policy, policy_names, register_policy
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.machine.system import Machine
from simmodel.testing import check_place, check_policy, check_system
from simmodel.testing.policies import leaks, reachable
from simmodel.work.job import Job, LiveJob
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Workload

RUNS = [1000.125 + 7 * i for i in range(6)]


@pytest.mark.few(9)
@pytest.mark.parametrize("name", policy_names())
def test_every_policy_of_the_package_passes(name):
    check_policy(name)


def greedy(view):
    for job in view.waiting:
        if view.places[0].fits(job):
            yield Start(job, view.places[0])


def test_a_function_and_an_object_that_decides_pass():
    class Greedy:
        plans = False

        def decide(self, view):
            return greedy(view)

    check_policy(greedy)
    assert isinstance(policy(Greedy()), DecidingObject)
    assert policy(Greedy).name == "Greedy"


class Forgetful(Policy):
    def __init__(self, most=3):
        self.limit = most


class Leaky(Policy):
    used: list = []  # noqa: RUF012 - the error to find

    def decide(self, view):
        self.used.append(view.now)
        if len(self.used) < 40:
            yield from greedy(view)


class Endless(Policy):
    def decide(self, view):
        from simmodel.scheduling.protocol import WakeAt

        while True:
            yield WakeAt(view.now + 1)


class Meddling(Policy):
    def decide(self, view):
        for job in view.waiting:
            job.priority += 1
        return ()


class Forgets(Policy):
    """Every third job goes last, and state() forgets which."""

    def __init__(self):
        self.started = 0

    def decide(self, view):
        for job in list(view.waiting):
            if view.places[0].fits(job) and self.started % 3 < 2:
                yield Start(job, view.places[0])
            self.started += 1


class Peeks(Policy):
    def decide(self, view):
        for job in sorted(view.waiting, key=lambda job: job._duration):
            if view.places[0].fits(job):
                yield Start(job, view.places[0])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (Forgets, r"continued from a snapshot .* decides differently"),
        (Peeks, "decides by actual run times"),
        (Forgetful, "parameter 'most' must be kept as an attribute of that name"),
        (Leaky, "decides differently"),
        (Endless, "more than 10000 decisions"),
        (Meddling, "changes waiting work"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said(wrong, sentence):
    Leaky.used.clear()
    with pytest.raises((AssertionError, TypeError), match=sentence):
        check_policy(wrong)


def test_fresh_rebuilds_policies_among_the_parameters_and_keeps_one_that_occurs_twice_one():
    order = policy("multifactor")
    used = Easy(order, candidates=order)
    again = used.fresh()
    assert again.order is again.candidates
    assert again.order is not order
    assert again.name == used.name
    nested = policy("portfolio(sjf+easy, easy)").fresh()
    assert [type(each) for each in nested.policies.values()] == [Easy, Easy]


def test_a_function_of_a_view_is_registered_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))

    def newest(view):
        for job in sorted(view.waiting, key=lambda job: -job.submit):
            if view.places[0].fits(job):
                yield Start(job, view.places[0])

    register_policy("newest", newest, "the newest job first")
    jobs = [Job(run=10), Job(submit=1, run=5), Job(submit=2, run=5)]
    assert simulate(1, jobs, "newest").jobs["start"].tolist() == [0, 15, 10]


def test_a_registered_factory_is_handed_the_parameters_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    register_policy("easy-of", lambda order="fcfs": Easy(order), "EASY of an order")
    assert policy("easy-of(sjf)").name == "sjf+easy"
    assert policy("easy-of(order=wfp)").name == "wfp+easy"
    with pytest.raises(InputError, match="policy 'easy-of': unknown parameter 'ordr'; did you mean 'order'"):
        policy("easy-of(ordr=wfp)")
    with pytest.raises(InputError, match="policy 'fcfs': takes no parameters"):
        policy("fcfs(3)")


def busy(system):
    for run in RUNS[:3]:
        system.submit(Job(processors=3, run=run, requested=2000))
    return system


def test_no_actual_run_time_can_be_reached_from_the_view_of_a_cluster():
    env = Environment()
    cluster = busy(Cluster(env, 4, "easy"))
    columns = {"submit": [5, 5, 900], "run": RUNS[3:], "processors": [3, 1, 1], "requested": [2000] * 3}
    cluster.replay(Workload(columns))
    env.run(until=10)
    asked = [path for path, value in reachable(cluster.view) if value == 2000 and path.endswith(".requested")]
    assert len(asked) > 4  # running, waiting and submitted work
    assert leaks(cluster.view, RUNS) == []


@pytest.mark.parametrize("policy", [lambda view: (), "sgs-t"])
def test_no_actual_run_time_can_be_reached_from_the_view_of_a_broker(policy):
    env = Environment()
    broker = busy(Broker(env, [Cluster(env, 4, "easy", name="a"), Cluster(env, 4, name="b")], policy))
    columns = {"submit": [5, 5, 900], "run": RUNS[3:], "processors": [3, 1, 1], "requested": [2000] * 3}
    broker.replay(Workload(columns))
    env.run(until=10)
    asked = [path for path, value in reachable(broker.view) if value == 2000 and path.endswith(".limit")]
    assert len(asked) > 3
    assert leaks(broker.view, RUNS) == []


def test_places_are_checked():
    env = Environment()
    cluster = busy(Cluster(env, 4))
    check_place(cluster.places[0], cluster.view.waiting)
    check_place(Broker(env, [cluster], "round-robin").places[0])

    class Writes(CountPool):
        def fits(self, job):
            self.version += 1
            return super().fits(job)

    with pytest.raises(AssertionError, match="changes slots"):
        check_place(Writes(env, "slots", 4), cluster.view.waiting)


def test_promises_of_pools_are_checked(monkeypatch):
    class Early(Promise):
        at = -1.0

    class Hasty(CountPool):
        def promise(self, head, waiting, order, before=None):
            return Early(self, head, waiting, order)

    for kind in (CountPool, Hasty):
        monkeypatch.setattr("simmodel.systems.cluster.core.CountPool", kind)
        env = Environment()
        cluster = busy(Cluster(env, 4))
        env.run(until=10)
        place = cluster.places[0]
        waiting = cluster.view.waiting.at(place)
        assert not any(map(place.fits, waiting))
        if kind is CountPool:
            check_place(place, waiting)
            continue
        with pytest.raises(AssertionError, match=r"promises .* a start in the past, at -1 s"):
            check_place(place, waiting)


def test_a_pool_with_the_former_questions_of_backfilling_is_told():
    class Former(CountPool):
        def states(self, queue):
            return None

    with pytest.raises(AssertionError, match="Former has 'states', which no policy asks of a pool: override 'promise'"):
        check_place(Former(Environment(), "slots", 4))


class Shelf:
    """Only what a place must have."""

    queues = True
    backlog = 0.0
    free = capacity = 1
    version = 0

    def __init__(self, name):
        self.name = name

    def can_run(self, work):
        return self.why_not(work) is None

    def why_not(self, work):
        return None if work.processors == 1 else "too wide"

    def fits(self, work):
        return self.can_run(work)


@pytest.mark.parametrize(
    "name", ["round-robin", "random", "share(0.6)", "shares", "earliest-start", "sgs-t(ties=least-loaded)"]
)
def test_an_object_with_what_a_place_has_works_under_mapping_policies(name):
    env = Environment(seed=2)
    shelves = [Shelf("a"), Shelf("b")]
    queue = WaitingQueue(env)
    view = View(env, queue, shelves)
    view.estimator = lambda view, work, place: Estimate(place.name == "a", 0, 0, 0)
    for i in range(6):
        queue.add(LiveJob(i, i, 0.0, 1 + i // 5, 5.0, 5.0, 5.0))
    for shelf in shelves:
        check_place(shelf, queue)
        assert isinstance(shelf, Place)
    decided = list(policy(name).decide(view))
    assert [each.work.id for each in decided] == [0, 1, 2, 3, 4]
    assert {each.place for each in decided} <= set(shelves)
    assert isinstance(Cluster(env, 4).places[0], Place)


@pytest.mark.parametrize("missing", ["name", "capacity", "free", "queues", "version", "backlog", "why_not", "fits"])
def test_a_place_that_lacks_something_is_none(missing):
    class Less:
        pass

    less = Less()
    for each in ("name", "capacity", "free", "queues", "version", "backlog", "can_run", "why_not", "fits"):
        if each != missing:
            setattr(less, each, getattr(Shelf("a"), each))
    with pytest.raises(AssertionError, match=f"a place must have '{missing}'"):
        check_place(less)


JOBS = [Job(id=i, submit=2 * i, processors=1 + i % 3, run=10 + i, requested=30) for i in range(12)]
OVER_JOBS = BrokerSpec(places={"a": ClusterSpec.simple(3), "b": ClusterSpec.simple(4)}, slowdowns={"b": 2})
FLOW = Workflow(
    [Task(id=i, run=5.0 + i, implementations=("CPUCore",)) for i in range(30)], [(i, i + 9) for i in range(20)]
)
MACHINE = load_platform("hetsim-slow")
HOUSE = BrokerSpec(places={"a": MACHINE, "b": MACHINE})


@pytest.mark.parametrize(
    ("kind", "spec", "work"),
    [
        ("cluster", ClusterSpec.simple(4), JOBS),
        ("machine", MACHINE, FLOW),
        ("broker", OVER_JOBS, JOBS),
        ("broker", BrokerSpec(places={"x": OVER_JOBS, "y": ClusterSpec.simple(3)}), JOBS),
        ("broker", HOUSE, [FLOW, (7.0, FLOW)]),
    ],
)
def test_every_kind_of_system_of_the_package_passes(kind, spec, work):
    check_system(kind, spec, work)


def test_a_machine_withdraws_no_task_that_runs_for_those_that_come_after_it():
    machine = Machine(Environment(), MACHINE)
    tasks = machine.submit(FLOW).tasks
    machine.env.run(until=1)
    assert tasks[0].state == "running"
    with pytest.raises(InputError, match="it has started or ended"):
        machine.withdraw(tasks[0])
    assert tasks[9].state == "blocked"  # it comes after the first


def test_work_that_a_machine_refuses_leaves_no_trace_in_what_comes_later():
    spec = attrs.evolve(
        MACHINE, architectures=[attrs.evolve(each, performance=(1, 3)) for each in MACHINE.architectures]
    )
    ends = []
    for refused in (False, True):
        machine = Machine(Environment(seed=3), spec)
        if refused:
            with pytest.raises(ImpossibleWork):
                machine.submit(Workflow([Task(id=0, run=1.0, implementations=("abacus",))]))
        machine.submit(FLOW)
        machine.env.run()
        ends.append(machine.result().tasks["end"].tolist())
    assert ends[0] == ends[1]
