"""Snapshots of a broker with all its clusters: cut, written, read and continued."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.policies.mapping import MappingPolicy, RoundRobin
from simmodel.runs.scenario import simulate
from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Dependency, Job
from simmodel.work.workload import Workload
from tests.helpers.broker_cases import Case, cases
from tests.helpers.examples import up_to

NAMES = ["random", "share(0.6)", "round-robin", "sgs-t", "sgs-w", "least-loaded", "siloed"]
COLUMNS = (
    "job",
    "submit",
    "start",
    "end",
    "processors",
    "status",
    "destination",
    "origin",
    "wait",
    "slowdown",
    "asked",
)


@settings(max_examples=up_to(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases(), name=st.sampled_from(NAMES), cut=st.floats(0.25, 60))
def test_a_run_that_is_cut_and_continued_is_the_uncut_run(case: Case, name: str, cut: float) -> None:
    env, broker = case.broker(name)
    env.run()
    whole = broker.result().jobs
    env, broker = case.broker(name)
    env.run(until=cut)
    snapshot = broker.snapshot()
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    assert hash(read) == hash(snapshot)
    left = np.flatnonzero(~np.isin(broker.result().jobs["status"], ("completed", "timeout", "rejected")))
    rest = simulate(read)
    for column in COLUMNS:
        kind = {"equal_nan": True} if whole[column].dtype.kind == "f" else {}
        assert np.array_equal(whole[column][left], rest.jobs[column], **kind), column


def example(policy="sgs-t", **options):
    env = Environment(seed=3)
    broker = Broker(env, [Cluster(env, 4, "easy", name="a"), Cluster(env, 4, "easy", name="b")], policy, **options)
    for size in (4, 3, 2, 4):
        broker.submit(Job(processors=size, run=10, requested=20, user="ann"), home="a")
    env.run(until=5)
    return env, broker


def test_a_snapshot_says_what_there_is() -> None:
    env, broker = example(slowdowns={"b": 2})
    snapshot = broker.snapshot()
    assert repr(snapshot) == "<BrokerSnapshot of a, b at 5 s: 2 running, 2 waiting>"
    assert snapshot.slowdowns == (("", "b", 2.0),)
    assert sorted(each.row for each in snapshot.handed) == [0, 1, 2, 3]
    assert {(each.origin, each.user) for each in snapshot.handed} == {("a", "ann")}
    assert snapshot.policy.known_as == "sgs-t"
    again = broker.snapshot()
    assert again == snapshot
    env.run(until=6)
    assert broker.snapshot() != snapshot


def test_what_a_what_if_may_see_of_it() -> None:
    _, broker = example()
    seen = broker.snapshot().expected()
    result = simulate(seen)
    assert result.jobs["end"].tolist()[:1] == [20]
    assert simulate(broker.snapshot()).jobs["end"].tolist()[:1] == [10]


def test_one_may_go_on_with_another_broker_other_policies_and_stop_before_the_end() -> None:
    _, broker = example("random")
    snapshot = broker.snapshot()
    result = simulate(snapshot, policy="least-loaded", policies="fcfs", until=12, name="other")
    assert result.name == "other"
    assert "waiting" in result.jobs["status"].tolist() or "running" in result.jobs["status"].tolist()
    later = Environment(5)
    again = Broker.from_snapshot(later, snapshot, RoundRobin(), {"b": "sjf+easy"})
    assert [place.system.scheduler.policy_name for place in again.places] == ["easy", "sjf+easy"]
    added = again.submit(Job(processors=1, run=1), home="b")
    later.run(until=again.idle())
    assert added.state == "completed"
    assert again.result().jobs["status"].tolist() == ["completed"] * 5


def test_jobs_that_come_besides_and_the_usual_front_door() -> None:
    snapshot = example("round-robin")[1].snapshot()
    assert simulate(snapshot).jobs["end"].tolist() == simulate(snapshot).jobs["end"].tolist()
    more = [Job(id="late", submit=100, processors=4, run=10), Job(id="later", submit=100, processors=4, run=10)]
    result = simulate(snapshot, {"b": more}, "siloed")
    assert result.jobs["start"].tolist()[-2:] == [100, 110]
    assert set(result.jobs["destination"].tolist()[-2:]) == {"b"}
    with pytest.raises(InputError, match="job 1: must be submitted at or after 5 s, the current time, got"):
        simulate(snapshot, [Job(submit=1, run=1)])
    with pytest.raises(InputError, match="unknown option 'arrivals'"):
        simulate([4, 4], more, arrivals=more)
    crowd = [Job(id=i, submit=100, processors=4, run=10) for i in range(100, 116)]
    drawn = [
        simulate(example("random")[1].snapshot(), crowd, seed=seed).jobs["destination"].tolist() for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_jobs_that_a_policy_holds_are_kept() -> None:
    class Later(MappingPolicy):
        name = "later"

        def decide(self, view):
            return super().decide(view) if view.now >= 8 else ()

    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], Later())
    broker.submit(Job(processors=4, run=10, id="x"), home="b")
    env.run(until=5)
    snapshot = broker.snapshot()
    assert [(each.id, each.home) for each in snapshot.waiting] == [("x", "b")]
    with pytest.raises(InputError, match="policy 'later' was passed as an object: pass it again"):
        simulate(snapshot)
    result = simulate(Snapshot.from_json(snapshot.to_json()), policy="siloed")
    assert (result.jobs["destination"][0], result.jobs["start"][0], result.jobs["wait"][0]) == ("b", 5, 5)


@pytest.mark.parametrize("cut", [0.5, 3, 11, 12.5, 14, 21, 27, 33])
@pytest.mark.parametrize("apart", [False, True])
def test_jobs_that_come_after_others_wait_on(cut: float, apart: bool) -> None:
    """Dependencies: an end with a think time, a start, a success that never comes; cancellations while blocked."""
    jobs = [
        Job(id=1, processors=4, run=10),
        Job(id=2, processors=4, run=25, requested=20),
        Job(id=3, submit=1, run=5, dependencies=[Dependency(1, think_time=3)]),
        Job(id=4, submit=1, run=5, dependencies=[Dependency(2, after="success")]),
        Job(id=5, submit=1, run=5, dependencies=[Dependency(3, after="start"), Dependency(2)]),
        Job(id=6, submit=1, run=5, dependencies=[2], cancel=12),
        Job(id=7, submit=22, run=5, dependencies=[1, Dependency(5)]),
        Job(id=8, submit=26, run=5, dependencies=[Dependency(2, after="success")]),
    ]

    def broker_of():
        env = Environment()
        broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t")
        if apart:  # the same names in other logs are other jobs
            broker.replay(Workload.from_jobs([Job(id=1, submit=2, run=40), Job(id=2, submit=2, run=1)]))
        broker.replay(Workload.from_jobs(jobs))
        return env, broker

    env, broker = broker_of()
    env.run()
    whole = broker.result().jobs
    assert Counter(whole["status"].tolist())["cancelled"] == 3
    env, broker = broker_of()
    env.run(until=cut)
    over = np.isin(broker.result().jobs["status"], ("completed", "timeout", "cancelled"))
    rest = simulate(Snapshot.from_json(broker.snapshot().to_json()))
    for column in ("start", "end", "status", "wait", "destination"):
        kind = {"equal_nan": True} if whole[column].dtype.kind == "f" else {}
        assert np.array_equal(whole[column][~over], rest.jobs[column], **kind), column


def test_what_cannot_be_copied_is_named() -> None:
    def body(env, job, grant):
        yield env.timeout(50)

    env, broker = example()
    broker.submit(Job(id="program", processors=1, requested=60, body=body))
    env.run(until=30)
    with pytest.raises(SnapshotError, match="job program cannot be copied: it has a body"):
        broker.snapshot()


def change(**changes):
    document = json.loads(example()[1].snapshot().to_json())
    for name, value in changes.items():
        where, _, key = name.rpartition("__")
        target = document[where] if where else document
        if value is None:
            del target[key]
        else:
            target[key] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (lambda: change(surplus=1), "surplus: unknown key 'surplus'"),
        (lambda: change(places=None), "places: missing key"),
        (lambda: change(places=[{"now": "x"}]), r"places\[0\].now: must be an instant \(s\), got 'x'"),
        (lambda: change(handed__number=[1, 2, 3]), "handed.number: must have 4 values, got 3"),
        (lambda: change(handed__row=None), "handed: missing column 'row'"),
        (lambda: change(handed__number=None), "handed: missing column 'number'"),
        (lambda: change(handed__place=[1, "a", "a", "a"]), r"handed.place\[0\]: must be a text, got 1"),
        (
            lambda: change(handed__family=[0, 0, 0, 10**9]),
            r"handed.family\[3\]: must be at most 100,000",
        ),
        (lambda: change(schema=1), "schema: must be 2, got 1, an older version"),
    ],
)
def test_wrong_json_is_one_sentence(text, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        BrokerSnapshot.from_json(text())


def test_a_snapshot_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(InputError, match=r"handed: job 1 is missing in a \(number 99\)"):
        simulate(BrokerSnapshot.from_json(change(handed__number=[99, 0, 1, 2])))
    with pytest.raises(InputError, match=r"handed: duplicate number 1 of a"):
        simulate(BrokerSnapshot.from_json(change(handed__number=[1] * 4, handed__id=[3] * 4, handed__place=["a"] * 4)))
    with pytest.raises(InputError, match=r"handed: number \d of a must be job \d, got \d"):
        simulate(BrokerSnapshot.from_json(change(handed__number=[1, 0, 2, 3])))
    with pytest.raises(InputError, match="duplicate row: 4 jobs in 3 rows"):
        simulate(BrokerSnapshot.from_json(change(handed__row=[0, 0, 1, 2])))
    snapshot = example()[1].snapshot()
    with pytest.raises(InputError, match=r"env\.now: must be 5 s, the time of the snapshot, got 0 s"):
        Broker.from_snapshot(Environment(), snapshot)
    with pytest.raises(InputError, match="policies: unknown place 'c'; known places: a, b"):
        Broker.from_snapshot(Environment(5), snapshot, policies={"c": "easy"})
    with pytest.raises(InputError, match="until: must be > 5 s, the current time, got 5"):
        simulate(snapshot, until=5)
    with pytest.raises(InputError, match="system: unknown system 'ring'"):
        Snapshot.from_json(change(system="ring"))


def test_jobs_without_an_id_keep_the_name_that_they_have() -> None:
    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a")], "siloed")
    broker.submit(Job(processors=4, run=5), home="a")
    for at in (3, 9):
        broker.submit(Job(processors=4, run=10, user="ann"), home="a", at=at)
    env.run(until=7)
    assert simulate(broker.snapshot()).jobs["job"].tolist() == [2, 3]
