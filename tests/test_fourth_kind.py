"""A fourth kind of system, of a user's own, goes wherever the others go."""

import numpy as np
import pytest
from bag import Bag, BagSnapshot, BagSpec

from simmodel import Cluster, Environment, Job, simulate
from simmodel.errors import InputError
from simmodel.platform.broker import BrokerSpec
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.toml import from_dict, read_toml, to_dict, write_toml
from simmodel.runs.simulation import Simulation
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.system import Broker
from simmodel.work.workload import Workload

JOBS = [Job(id=i, submit=3 * i, processors=1, run=5 + 3 * i, requested=20 + i, user="ann") for i in range(6)]
COLUMNS = ("job", "submit", "start", "end", "processors", "status", "wait")


def same(whole, rest, columns=COLUMNS):
    """The rows of the rest are those of the whole that were not over."""
    where = np.isin(whole["job"], rest["job"])
    assert where.sum() == len(rest)
    for column in columns:
        kind = {"equal_nan": True} if whole[column].dtype.kind == "f" else {}
        assert np.array_equal(whole[column][where], rest[column], **kind), column


def test_it_runs_by_itself_and_as_a_platform(tmp_path) -> None:
    env = Environment()
    bag = Bag(env, BagSpec(slots=2))
    bag.replay(Workload.from_jobs(JOBS))
    env.run()
    whole = bag.result().jobs
    assert whole["start"].tolist() == [0, 3, 6, 11, 17, 25]
    assert simulate(BagSpec(slots=2), JOBS).jobs["end"].tolist() == whole["end"].tolist()
    write_toml(BagSpec(slots=2), tmp_path / "bag.toml")
    assert read_toml(tmp_path / "bag.toml") == BagSpec(slots=2)
    assert simulate(str(tmp_path / "bag.toml"), JOBS, "sjf").jobs["end"].tolist() != []
    with pytest.raises(InputError, match="slots"):
        from_dict({"kind": "bag", "slots": "two"})


@pytest.mark.parametrize("cut", [0.5, 3, 7, 12, 20.5, 26])
@pytest.mark.parametrize("policy", ["fcfs", "sjf"])
def test_it_is_cut_and_continued(cut: float, policy: str) -> None:
    env = Environment()
    bag = Bag(env, BagSpec(slots=2), policy)
    bag.replay(Workload.from_jobs(JOBS))
    env.run(until=cut)
    snapshot = bag.snapshot()
    read = Snapshot.from_json(snapshot.to_json())
    assert isinstance(read, BagSnapshot)
    assert read == snapshot
    assert snapshot.platform == BagSpec(slots=2)
    env.run()
    again = Bag.from_snapshot(Environment(cut), read)
    assert again.snapshot() == snapshot
    again.env.run()
    same(bag.result().jobs, again.result().jobs)
    same(bag.result().jobs, simulate(read).jobs)
    seen = simulate(snapshot.expected()).jobs  # what runs is expected to run as long as it asked for
    assert (seen["end"] >= bag.result().jobs["end"][np.isin(bag.result().jobs["job"], seen["job"])]).all()


HOUSE = BrokerSpec(
    places={
        "c": ClusterSpec.simple(3),
        "bag": BagSpec(slots=2),
        "inner": BrokerSpec(places={"x": ClusterSpec.simple(2), "y": BagSpec(slots=1)}, slowdowns={"y": 2}),
    },
    slowdowns={"bag": 1.5, ("c", "inner"): 1.25},
    name="house",
)


def workload(count: int = 40) -> Workload:
    rng = np.random.default_rng(7)
    run = rng.integers(1, 30, count).astype(float)
    columns = {"job": np.arange(count), "submit": np.sort(rng.integers(0, 90, count)).astype(float), "run": run}
    columns |= {"requested": run * rng.choice([1, 2, 3], count), "processors": rng.integers(1, 3, count)}
    return Workload(columns | {"user": rng.integers(1, 4, count)})


def test_a_house_of_all_kinds_is_written_and_read(tmp_path) -> None:
    write_toml(HOUSE, tmp_path / "house.toml")
    assert read_toml(tmp_path / "house.toml") == HOUSE
    assert from_dict(to_dict(HOUSE)) == HOUSE
    with pytest.raises(InputError, match=r"places.bag.slot: key 'slot' is not known; did you mean 'slots'"):
        from_dict({"kind": "broker", "places": {"bag": {"kind": "bag", "slot": 2}}})


@pytest.mark.parametrize("policy", ["sgs-t", "round-robin", "least-loaded", "random"])
@pytest.mark.parametrize("cut", [0.5, 9, 25, 40.25, 71, 88, 110])
def test_a_broker_over_a_cluster_a_bag_and_a_broker_is_cut_and_continued(policy: str, cut: float) -> None:
    def live() -> Broker:
        env = Environment(seed=4)
        inner = [Cluster(env, 2, "easy", name="x"), Bag(env, BagSpec(slots=1), name="y")]
        below = Broker(env, inner, policy, slowdowns={"y": 2}, name="inner")
        places = [Cluster(env, 3, "easy", name="c"), Bag(env, BagSpec(slots=2)), below]
        outer = Broker(env, places, policy, slowdowns={"bag": 1.5, ("c", "inner"): 1.25}, name="house")
        outer.replay(workload(), "c")
        below.replay(Workload({"job": [100, 101], "submit": [2, 30], "run": [9, 20], "processors": [1, 2]}))
        return outer

    whole = live()
    whole.env.run()
    assert set(whole.result().jobs["destination"].tolist()) == {"c", "bag", "inner"}
    part = live()
    part.env.run(until=cut)
    snapshot = part.snapshot()
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    again = Broker.from_snapshot(Environment(cut, seed=4), read)
    assert again.snapshot() == Broker.from_snapshot(Environment(cut, seed=4), again.snapshot()).snapshot()
    again.env.run()
    columns = (*COLUMNS, "destination", "origin", "asked", "slowdown", "requested", "run", "handed")
    same(whole.result().jobs, again.result().jobs, columns)
    part.env.run()
    assert part.result().jobs["end"].tolist() == whole.result().jobs["end"].tolist()


def test_a_house_is_simulated_by_its_description() -> None:
    result = simulate(HOUSE, workload(), "sgs-t")
    assert set(result.jobs["status"].tolist()) == {"completed"}
    assert set(result.runs["place"].tolist()) == {"c", "bag", "inner/x", "inner/y"}
    sim = Simulation(Bag(Environment(), BagSpec(slots=1)))
    assert sim.system.kind == "bag"
