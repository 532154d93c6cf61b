"""What-ifs of clusters under a broker: destinations of jobs under other policies of brokers and clusters."""

import pytest

from simmodel import Cluster, Environment, InputError, Job, TaskSet, load_platform, start
from simmodel.futures.outcomes import Branch
from simmodel.futures.whatif import what_if
from simmodel.platform.broker import BrokerSpec
from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.systems.broker.system import Broker

X = Job(id="x", processors=1, run=15)


@pytest.fixture(scope="module")
def two() -> BrokerSnapshot:
    """Return two clusters of 4 processors: 1, 3 and 5 went to a, and 2, 4 and 6 to b."""
    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t")
    for i, processors in enumerate((3, 4, 3, 4, 3, 4), 1):
        broker.submit(Job(id=i, processors=processors, run=10 * i, requested=20 * i))
    env.run(until=5)
    return broker.snapshot()


def starts(outcome) -> dict[object, tuple[str, float]]:
    return {each.job: (each.place, each.at) for each in outcome.starts}


OLD = {3: ("a", 20.0), 4: ("b", 40.0), 5: ("a", 80.0), 6: ("b", 120.0)}


def test_a_job_goes_there_or_there(two: BrokerSnapshot) -> None:
    found = what_if(
        two,
        {
            "as it is": None,
            "x": Branch().submit(X),
            "x to b": Branch().submit(X, at=7.0).start("x", "b", at=7.0),
            "easy": Branch(policies="easy").submit(X),
            "x to b, easy": Branch(policies={"b": "easy"}).submit(X).start("x", "b"),
        },
    )
    assert starts(found["as it is"]) == OLD
    assert starts(found["x"]) == {**OLD, "x": ("a", 80.0)}
    assert starts(found["x to b"]) == {**OLD, "x": ("b", 240.0)}
    assert starts(found["easy"]) == {**OLD, "x": ("a", 5.0)}
    assert starts(found["x to b, easy"]) == {**OLD, "x": ("b", 240.0)}
    assert found.best.name == "easy"
    assert [each.job for each in found.decisions] == ["x"]


def test_other_brokers_and_one_that_follows_another(two: BrokerSnapshot) -> None:
    arrivals = [Job(submit=at, processors=2, run=10) for at in (10, 300, 310)]
    found = what_if(two, {"siloed": "least-loaded", "then": Branch("sgs-t").switch(305, all_to_b)}, arrivals=arrivals)
    assert [each.status for each in found] == ["finished", "finished"]
    assert starts(found["then"])[8] == ("a", 300.0)
    assert starts(found["then"])[9] == ("b", 310.0)


def all_to_b(view):
    from simmodel import Start

    for job in view.waiting:
        yield Start(job, view.places[1])


def test_jobs_of_clusters_are_withdrawn_and_not_taken_back(two: BrokerSnapshot) -> None:
    found = what_if(
        two, {"waits": Branch().cancel(3), "runs": Branch().cancel(1, at=8.0), "back": Branch().start(3, "b")}
    )
    assert starts(found["waits"]) == {4: ("b", 40.0), 5: ("a", 20.0), 6: ("b", 120.0)}
    assert starts(found["runs"])[3] == ("a", 8.0)
    assert found["back"].reason == "job 3 cannot be started: it has been handed to a"


def test_wrong_branches_get_one_sentence(two: BrokerSnapshot) -> None:
    for branch, sentence in (
        (Branch("sjf"), "policy 'sjf' decides when jobs start on the nodes of a cluster; the broker asks which system"),
        (Branch(policies={"c": "easy"}), "policies: unknown place 'c'"),
        (Branch(policies={"a": "esay"}), "did you mean 'easy'"),
    ):
        with pytest.raises(InputError, match=sentence):
            what_if(two, [branch])
    with pytest.raises(InputError, match="policies: must be None for a cluster"):
        what_if(two.places[0], [Branch(policies={"a": "easy"})])


def test_a_file_says_which_system_it_is_of(two: BrokerSnapshot, tmp_path) -> None:
    two.to_json(tmp_path / "two.json")
    assert what_if(tmp_path / "two.json", [None]).outcomes == what_if(two, [None]).outcomes


def test_sets_of_tasks_have_futures_under_brokers_too() -> None:
    node = load_platform("hetsim-slow")
    work = [(0, TaskSet([30.0] * 60)), (0, TaskSet([40.0] * 60)), (5, TaskSet([10.0] * 3))]
    simulation = start(BrokerSpec(places={"a": node, "b": node}), work, "round-robin").run(until=2)
    snapshot = simulation.snapshot()
    found = what_if(snapshot, {"as it is": None, "heft": Branch(policies="heft")}, objective=lambda each: each.ended)
    assert [each.status for each in found] == ["finished"] * 2
    nothing_new = start(BrokerSpec(places={"a": node, "b": node}), work[:2], "round-robin").run().result()
    assert found["as it is"].first.ended == nothing_new.submissions["end"].max()
    assert {each.place.split("/")[0] for each in found["heft"].starts} == {"a", "b"}
    waiting = [task for task in snapshot.places[0].tasks if not task.stamps]
    assert (
        len(found["as it is"].first.jobs)
        == sum(not task.stamps for place in snapshot.places for task in place.tasks)
        > len(waiting)
        > 0
    )
    with pytest.raises(InputError, match="arrivals: must be None for a broker that runs tasks"):
        what_if(snapshot, [None], arrivals=[X])
