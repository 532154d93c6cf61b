"""A custom kind of system works wherever the built-in kinds do."""

from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from simmodel import Branch, Cluster, Environment, Job, compare, explore, replicate, simulate, start, what_if
from simmodel.cli import main
from simmodel.foundation.errors import InputError
from simmodel.platform import from_dict, read_toml, to_dict, write_toml
from simmodel.platform.broker import BrokerSpec
from simmodel.platform.cluster import ClusterSpec
from simmodel.resources.pools.counts import CountPool
from simmodel.runs.simulation import Simulation
from simmodel.snapshots.jobs import JobSystemSnapshot
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.system import Broker
from simmodel.systems.jobs import JobSystem
from simmodel.systems.kinds import Kind, register_kind
from simmodel.testing import check_system
from simmodel.work.workload import Workload

# A complete custom kind: a bag of jobs, of which a fixed number run at a time.


@attrs.frozen(kw_only=True)
class BagSpec:
    """A bag of jobs, of which a number run at a time."""

    slots: int
    name: str = "bag"

    def __attrs_post_init__(self) -> None:
        if self.slots < 1:
            raise InputError(f"slots: must be a whole number >= 1, got {self.slots}")


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class BagSnapshot(JobSystemSnapshot):
    """The state of a bag at one instant."""

    system: ClassVar[str] = "bag"

    platform: BagSpec


class Bag(JobSystem):
    """Jobs of one processor each, in a fixed number of slots."""

    kind = "bag"
    snapshots = BagSnapshot

    def __init__(self, env: Environment, spec: BagSpec, policy: Any = "fcfs", *, name: str | None = None) -> None:
        name = name or spec.name
        super().__init__(env, spec, policy, places=[CountPool(env, name, spec.slots)], name=name)


BAG = register_kind(Kind(name="bag", spec=BagSpec, system=Bag, snapshot=BagSnapshot))


JOBS = [Job(id=i, submit=3 * i, processors=1, run=5 + 3 * i, requested=20 + i, user="ann") for i in range(6)]
COLUMNS = ("job", "submit", "start", "end", "processors", "status", "wait")


def same(whole, rest, columns=COLUMNS):
    """Check that the rest has the rows of the whole of all jobs that had not ended."""
    where = np.isin(whole["job"], rest["job"])
    assert where.sum() == len(rest)
    for column in columns:
        kind = {"equal_nan": True} if whole[column].dtype.kind == "f" else {}
        assert np.array_equal(whole[column][where], rest[column], **kind), column


def test_it_is_a_kind_of_system_in_every_respect() -> None:
    check_system("bag", BagSpec(slots=2), JOBS)


def counts_questions(self, work, by="requested"):
    self.submitted += 1
    return JobSystem.estimate(self, work, by)


def forgets_arrivals(cls, env, snapshot, policy=None):
    return JobSystem.from_snapshot.__func__(cls, env, snapshot.expected(actual=True), policy)


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("estimate", counts_questions, "a question changes the bag at"),
        ("why_not", lambda self, work: None, "no reason against .*, but estimate"),
        ("withdraw", lambda self, work: self.cancel(work), "withdraws running work"),
        ("_one_over", lambda self: None, "unfinished must be 0"),
        ("from_snapshot", classmethod(forgets_arrivals), "are recorded"),
    ],
)
def test_what_is_wrong_with_a_kind_is_said(monkeypatch, name, wrong, sentence) -> None:
    monkeypatch.setattr(Bag, name, wrong, raising=False)
    with pytest.raises(AssertionError, match=sentence):
        check_system(BAG, BagSpec(slots=2), JOBS)


def test_below_a_broker_it_is_as_fast_as_jobs_say() -> None:
    broker = start({"bag": BagSpec(slots=2), "cluster": 4}, JOBS, "round-robin").system
    for place in broker.places:
        assert (place.speed, place.assigned) == (1.0, 0)


def test_jobs_without_a_name_are_numbered_from_one_on() -> None:
    bag = Bag(Environment(), BagSpec(slots=2))
    jobs = [bag.submit(Job(id=name, run=1)) for name in (None, 3, None, None)]
    assert [job.id for job in jobs] == [1, 3, 4, 5]


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
def test_a_custom_system_is_cut_and_continued(cut: float, policy: str) -> None:
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
    seen = simulate(snapshot.expected()).jobs  # running jobs are expected to run for their requested time
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
    with pytest.raises(InputError, match=r"places.bag.slot: unknown key 'slot'; did you mean 'slots'"):
        from_dict({"kind": "broker", "places": {"bag": {"kind": "bag", "slot": 2}}})


@pytest.mark.few(7)
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


def bag_at(cut: float = 7) -> Snapshot:
    return start(BagSpec(slots=2), JOBS).run(until=cut).snapshot()


def test_futures_of_a_custom_system_are_simulated() -> None:
    snapshot = bag_at()
    found = what_if(snapshot, ["fcfs", "sjf", None], arrivals=[Job(id="late", submit=9, run=1)])
    assert [each.status for each in found] == ["finished"] * 3
    assert found["fcfs"] == attrs.evolve(found["as it is"], name="fcfs", branch=found["fcfs"].branch)
    assert [each.job for each in found["sjf"].starts] == ["late"]
    branches = [Branch("fcfs").submit(Job(id=9, run=50)).switch(30, "sjf"), Branch("fcfs").cancel(2)]
    assert [each.status for each in what_if(snapshot, branches)] == ["finished"] * 2


def test_brokers_over_custom_systems_have_futures() -> None:
    house = start(HOUSE, workload(), "sgs-t").run(until=40).snapshot()
    branches = {
        "as it is": None,
        "sjf": Branch(policies={"inner.y": "sjf", "c": "sjf"}),
        "loads": Branch("least-loaded", policies={"inner": "round-robin"}),
    }
    found = what_if(house, branches, arrivals=[Job(id="x", submit=50, run=5)])
    assert [each.status for each in found] == ["finished"] * 3
    assert "x" in [each.job for each in found["loads"].starts]
    with pytest.raises(InputError, match="policies: unknown place 'z'"):
        what_if(house, [Branch(policies={"inner.z": "sjf"})])
    with pytest.raises(InputError, match="policies: must be None for a bag"):
        what_if(bag_at(), [Branch(policies="sjf")])


def test_its_policies_are_compared_and_explored() -> None:
    found = compare(BagSpec(slots=2), JOBS, ["fcfs", "ljf"])
    assert found["ljf"].jobs["start"].tolist() == simulate(BagSpec(slots=2), JOBS, "ljf").jobs["start"].tolist()
    spread = explore([BagSpec(slots=1), 4], [JOBS], ["fcfs", "sjf"], seeds=[0, 1])
    assert spread.labels("platform") == ["bag", "4"]
    with pytest.raises(InputError, match="run jobs or all run tasks"):
        explore([BagSpec(slots=1), "hetsim-slow"], [JOBS], ["fcfs"])
    again = replicate(simulate, 2, platform=BagSpec(slots=2), workload=JOBS, policy="sjf")
    assert again["wait_mean"].mean > 0


def test_commands_take_a_custom_system(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_toml(BagSpec(slots=16), "bag.toml")
    batch = ["batch", "probe-4", "--platform", "bag.toml", "--policy", "fcfs"]
    assert main([*batch, "--schedule", "s.csv"]) == 0
    assert "probe-4 under fcfs on 16 processors" in capsys.readouterr().out
    assert main([*batch, "--at", "500", "--snapshot", "s.json"]) == 0
    assert main(["whatif", "s.json", "--policies", "fcfs,sjf"]) == 0
    assert "sjf" in capsys.readouterr().out
    assert main(["compare", "probe-4", "--platform", "bag.toml", "--policies", "fcfs,sjf"]) == 0
    arguments = ["explore", "--platforms", "bag.toml", "--workloads", "probe-4", "--policies", "fcfs", "--seeds", "1"]
    assert main(arguments) == 0
    assert main([*batch, "--estimates", "exact"]) == 2
    assert "a bag has no option --estimates" in capsys.readouterr().err
