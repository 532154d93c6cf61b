"""Data policies in snapshots of grids: cut, written, read and continued, and tried in what-ifs."""

import json

import numpy as np
import pytest

from simmodel import Environment, Job, simulate, what_if
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.futures import Branch
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.policies import DataPolicy, Transfers
from simmodel.policies.data import LeastUsedLink, Prefetch, Replicate, Subscribe, Timed, described, made_of
from simmodel.scheduling.protocol import Evict, WakeAt
from simmodel.snapshots import Snapshot
from simmodel.systems import Grid
from simmodel.work import File

NAMES = "abc"
LIST = [("f1", None, "c"), ("f2", None, "a", "move"), ("f0", None, "b"), ("f3", None, "c"), ("f1", None, "b")]
READY = {
    "nearest": "nearest",
    "least-used-link": "least-used-link",
    "prefetch": "prefetch",
    "replicate": "replicate(2,3)",
    "subscribe": Subscribe({"f1": ["c"], "o*": ["a", "b"]}),
    "transfers": Transfers(LIST),
    "timed transfers": Timed(Transfers(LIST), 3, 90, 4),
    "timed replicate": Timed(Replicate(2), 5, 95, 10),
    "timed prefetch": Timed(Prefetch(), 2, 60, 3),
}


class Outside(DataPolicy):
    """Sends outputs to drawn sites, drops spare copies from time to time, and remembers how many jobs got a site."""

    name = "outside"

    def __init__(self):
        self.asked = 0

    def state(self):
        return {"asked": self.asked}

    def restore(self, values):
        self.asked = values["asked"]

    def target(self, file, site):
        return self.grid.places[int(self.grid.env.rng("grid.targets").integers(3))]

    def decide(self, view):
        self.asked += len(view.assigned)
        if view.now % 10 == 0.375:
            for file in view.files.names():
                for site in view.sites:
                    if view.files.holds(file, site.name) and site.storage.why_keep(file) is None:
                        yield Evict(file, site)
        if self.asked < 12:
            yield WakeAt(view.now // 10 * 10 + 10 + 0.375)


def drawn(seed, data):
    """Return an environment and a grid of three sites, small storages and slow links, with outages and 12 jobs."""
    rng = np.random.default_rng(seed)
    env = Environment(seed=seed)
    sites = [
        SiteSpec(
            name=name,
            cores=int(rng.integers(2, 5)),
            storage=StorageSpec(capacity=float(rng.choice([25, 40, 80])), read_bandwidth=3.1, write_bandwidth=2.3),
            staging=("before", "inside")[int(rng.integers(2))],
        )
        for name in NAMES
    ]
    links = [
        LinkSpec(name=a + b, bandwidth=float(rng.choice([0.7, 1.3])) + 0.01 * i, latency=0.25, between=(a, b))
        for i, (a, b) in enumerate(("ab", "bc", "ac"))
    ]
    files = [FileSpec(name=f"f{i}", size=3.5 + i + 0.1 * i, sites=[NAMES[i % 3]]) for i in range(4)]
    outages = [SiteOutageSpec(site=NAMES[int(rng.integers(3))], at=float(rng.integers(5, 30)) + 0.3, until=35.1)]
    cycle = None if rng.random() < 0.5 else 4
    spec = GridSpec(
        sites=sites, network=NetworkSpec(links=links), files=files, outages=outages[: seed % 2], retries=2, cycle=cycle
    )
    grid = Grid(env, spec, "round-robin", data=data)
    for i in range(12):
        inputs = [f"f{each}" for each in rng.choice(4, int(rng.integers(0, 3)), replace=False)]
        outputs = [File(f"o{i}", float(rng.integers(1, 6)))] if rng.random() < 0.5 else []
        run = float(rng.integers(1, 9)) + 0.01 * i
        home = NAMES[int(rng.integers(3))] if rng.random() < 0.5 else None
        grid.submit(Job(id=i, run=run, inputs=inputs, outputs=outputs), home, at=float(rng.integers(0, 25)))
    return env, grid


class Moves:
    """What is sent, what arrives and what goes, with its instant."""

    def __init__(self, env):
        self.env, self.seen = env, []
        env.observe(self)

    def file_transfer_started(self, fetch):
        self.seen.append((round(self.env.now, 9), "sent", fetch.file, fetch.source.name, fetch.site.name, fetch.cause))

    def file_added(self, storage, file, size, cause):
        self.seen.append((round(self.env.now, 9), "added", file, storage.name, cause))

    def file_dropped(self, storage, file, size, cause):
        self.seen.append((round(self.env.now, 9), "dropped", file, storage.name, cause))


def after(jobs, cut):
    """Return the rows of jobs that had not ended at the cut."""
    columns = (
        "site",
        "state",
        "attempts",
        "assigned",
        "start",
        "executing",
        "end",
        "finished",
        "bytes_in",
        "bytes_out",
    )
    return {
        row["job"]: [round(value, 9) if isinstance(value, float) else value for value in map(row.get, columns)]
        for row in jobs.rows()
        if not row["finished"] <= cut
    }


def check_cut(name, data, seed, again=None):
    """Check that a run that is cut somewhere, written, read and continued moves and ends as the uncut run."""
    env, grid = drawn(seed, data())
    whole = Moves(env)
    env.run()
    cut = 0.125 + float(np.random.default_rng([seed, 1]).integers(0, int(env.now) * 4 + 4)) / 4 + 0.0625
    env, cutted = drawn(seed, data())
    env.run(until=cut)
    snapshot = cutted.snapshot()
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    later = Environment(read.now, read.seed)
    moves = Moves(later)
    continued = Grid.from_snapshot(later, read, data=again)
    later.run()
    assert repr(after(continued.result().jobs, cut)) == repr(after(grid.result().jobs, cut)), (name, seed, cut)
    assert moves.seen == [each for each in whole.seen if each[0] > cut], (name, seed, cut)
    assert continued.data_scheduler.policy.state() == grid.data_scheduler.policy.state()
    if again is None:
        assert repr(after(simulate(read).jobs, cut)) == repr(after(grid.result().jobs, cut))
    return len(read.fetches), len(read.data.alarms), sum(stay.phase == "staging out" for stay in read.stays)


def fresh(name):
    given = READY[name]
    return given if isinstance(given, str) else given.fresh()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "seeds",
    [
        range(10),
        pytest.param(range(10, 14), marks=pytest.mark.long),
        pytest.param(range(14, 130), marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("name", READY)
def test_a_run_with_a_ready_data_policy_that_is_cut_and_continued_is_the_uncut_run(name, seeds):
    found = [check_cut(name, lambda: fresh(name), seed) for seed in seeds]
    with_fetches, with_alarms, _ = (sum(each > 0 for each in column) for column in zip(*found, strict=True))
    assert with_fetches > len(seeds) / 6
    assert with_alarms > len(seeds) / 4 or "timed" not in name


def test_a_policy_of_a_script_is_passed_again_and_goes_on_with_its_memory():
    found = [check_cut("outside", Outside, seed, Outside()) for seed in range(30)]
    assert sum(each[2] > 0 for each in found) >= 3  # cut while outputs are on their way


def test_a_policy_of_a_script_that_is_not_passed_again_is_asked_for():
    env, grid = drawn(0, Outside())
    env.run(until=10)
    snapshot = grid.snapshot()
    message = "data: 'outside' was passed as an object: pass it again to continue from the snapshot"
    with pytest.raises(InputError, match=message):
        Grid.from_snapshot(Environment(10), snapshot)
    with pytest.raises(InputError, match=message):
        what_if(snapshot, ["round-robin"])
    found = what_if(snapshot, [Branch("round-robin", data="nearest"), Branch("round-robin", data=Outside())])
    assert [each.status for each in found] == ["finished"] * 2


def test_a_policy_whose_memory_is_no_plain_value_is_refused_by_name():
    class Remembers(DataPolicy):
        name = "remembers"

        def state(self):
            return {"sites": object()}

    env, grid = drawn(0, Remembers())
    env.run(until=10)
    with pytest.raises(SnapshotError, match="policy remembers cannot be copied: Object of type object"):
        grid.snapshot()


def test_another_data_policy_begins_anew():
    env, grid = drawn(2, "nearest")
    env.run(until=3.5)
    later = Environment(3.5, 2)
    moves = Moves(later)
    Grid.from_snapshot(later, grid.snapshot(), data=Subscribe({"f3": ["b", "c"]})).env.run(until=3.6)
    assert {each[2:] for each in moves.seen if each[1] == "sent"} >= {("f3", "a", "b", "subscribe")}


def test_what_ifs_compare_data_policies():
    sites = [SiteSpec(name=name, cores=4) for name in NAMES]
    links = [LinkSpec(name=a + b, bandwidth=10, between=(a, b)) for a, b in ("ab", "bc", "ac")]
    files = [FileSpec(name="x", size=100, sites=["a"]), FileSpec(name="y", size=50, sites=["a", "b"])]
    spec = GridSpec(sites=sites, network=NetworkSpec(links=links), files=files, cycle=5)
    grid = Grid(Environment(), spec, "siloed")
    for at, file in enumerate("xy"):
        grid.submit(Job(run=1, inputs=[file]), "c", at=at)
    grid.env.run(until=2)
    found = what_if(grid.snapshot(), [Branch(), Branch(data="least-used-link")])
    assert [each.name for each in found] == ["as it is", "as it is, data least-used-link"]
    # from 5 s on, 50 bytes of x and y each over the link from a to c, or y over that from b
    assert [each.samples[0].ended for each in found] == [16, 11]


def test_branches_over_data_policies_are_for_grids_only():
    from simmodel import Cluster

    snapshot = Cluster(Environment(), 4).snapshot()
    with pytest.raises(InputError, match="data: must be None for a cluster, which has no data policy"):
        what_if(snapshot, [Branch("fcfs", data="prefetch")])
    _, grid = drawn(0, "nearest")
    with pytest.raises(InputError, match="policy 'easy' decides"):
        what_if(grid.snapshot(), [Branch("random", data="easy")])


@pytest.mark.parametrize("policy", [made for made in map(fresh, READY) if not isinstance(made, str)])
def test_ready_policies_are_made_again_from_plain_values(policy):
    document = json.loads(json.dumps(described(policy)))
    again = made_of(document)
    assert type(again) is type(policy)
    assert described(again) == described(policy)


def test_wrong_descriptions_of_data_policies():
    env, grid = drawn(0, fresh("timed replicate"))
    env.run(until=3)
    document = json.loads(grid.snapshot().to_json())
    for made, message in (
        (["Timd", {}], r"data\.made: unknown data policy 'Timd'; did you mean 'Timed'"),
        (["Timed", {"policy": 7}], r"data\.made: must be the class and the parameters of a data policy, got 7"),
        (["Replicate", {"thresh": 7}], r"data\.made: Replicate: .*unexpected keyword argument 'thresh'"),
        (["Replicate", {"threshold": 0}], r"data\.made: must be a whole number >= 1, got 0"),
    ):
        document["data"][1] = made
        with pytest.raises(InputError, match=message):
            Grid.from_snapshot(Environment(3), Snapshot.from_json(json.dumps(document)))
    assert isinstance(made_of(["LeastUsedLink", {}]), LeastUsedLink)


def test_a_data_policy_that_imports_code_is_refused_in_a_file():
    _, grid = drawn(0, "prefetch")
    document = json.loads(grid.snapshot().to_json())
    document["data"][0]["name"] = document["data"][0]["known_as"] = "somewhere:Policy"
    with pytest.raises(InputError, match=r"data\.policy\.known_as: must be a known policy"):
        Snapshot.from_json(json.dumps(document))
