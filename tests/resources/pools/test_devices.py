"""Devices: shares, types and slices of GPUs, against a brute force over devices and cases worked by hand."""

import math
import re
from collections import Counter
from random import Random

import attrs
import pytest

from simmodel import Job, load_result, simulate, start
from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError, PolicyError
from simmodel.platform.cluster import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.platform.devices import DeviceSpec
from simmodel.platform.toml import read_toml, write_toml
from simmodel.referee.obstacles import why_waits
from simmodel.resources.pools.allocation import Allocation
from simmodel.scheduling.protocol import Preempt, Start
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems.cluster.system import Cluster
from tests.helpers.snapshot_cuts import check_cut, check_rows
from tests.oracles.devices import DeviceJob, Node, starts_of

POLICIES = ("fcfs", "easy", "conservative", "conservative-keep")


def cluster(*nodes, **options):
    return ClusterSpec(partitions=[PartitionSpec(nodes=nodes, **options)])


def drawn(seed):
    """Draw one to three kinds of nodes with devices of up to two types, and jobs that each could run."""
    rng = Random(seed)
    kinds = []
    for _ in range(rng.randint(1, 3)):
        types = {kind: rng.randint(1, 2) for kind in rng.sample(["A100", "T4"], rng.randint(1, 2))}
        kinds.append((rng.randint(1, 2), rng.randint(2, 6), types if rng.random() < 0.85 else {}))
    nodes = [
        Node(cores, tuple(kind for kind, n in types.items() for _ in range(n)))
        for count, cores, types in kinds
        for _ in range(count)
    ]
    jobs, submit = [], 0
    while len(jobs) < rng.randint(4, 12):
        submit += rng.choice([0, 0, 1, 3])
        run = rng.randint(1, 12)
        share = rng.random() < 0.6
        types = rng.choice([("A100",), ("T4",), ("A100", "T4"), ("A100", "T4")])
        count = 1 if share else rng.choice([0, 1, 1, 2, 3])
        each = rng.choice([100, 250, 333, 400, 500, 600, 750]) if share else 1000
        job = DeviceJob(
            submit, run, run + rng.choice([0, 0, 1, 5]), rng.choice([1, 1, 1, 2]), rng.randint(1, 3), count, each, types
        )
        there = sum(node.cores >= job.cores and sum(kind in types for kind in node.devices) >= count for node in nodes)
        if there >= job.nodes:
            jobs.append(job)
    return kinds, nodes, jobs


def asked(row, job):
    gpus = job.each / 1000 if job.each < 1000 else job.count
    types = "|".join(job.types) if job.count and len(job.types) == 1 else ""
    return Job(
        id=row,
        submit=job.submit,
        run=job.run,
        requested=job.requested,
        nodes=job.nodes,
        cores_per_node=job.cores,
        gpus_per_node=gpus,
        gpu=types,
    )


def spec_of(kinds):
    return cluster(*(NodeSpec(name=f"k{i}-", count=n, cores=c, gpus=t) for i, (n, c, t) in enumerate(kinds)))


def check_devices(result, nodes):
    """No device is ever held beyond its whole, by a sum of its own."""
    changes = []
    runs = result.runs
    for i in range(len(runs)):
        devices = runs["devices"][i] if "devices" in runs else None
        for node, held in zip(runs["nodes"][i], devices or (), strict=devices is not None):
            for device, thousandths in held:
                changes += [(runs["end"][i], 0, node, device, -thousandths)]
                changes += [(runs["start"][i], 1, node, device, thousandths)]
    used = Counter()
    for _, _, node, device, thousandths in sorted(changes):
        used[node, device] += thousandths
        assert 0 <= used[node, device] <= 1000, (node, device)
        assert device < len(nodes[node].devices)


def compare(seeds):
    for seed in seeds:
        kinds, nodes, jobs = drawn(seed)
        for policy in POLICIES:
            result = simulate(spec_of(kinds), [asked(row, job) for row, job in enumerate(jobs)], policy)
            assert result.jobs["start"].tolist() == starts_of(jobs, nodes, policy), (seed, policy)
            check_devices(result, nodes)


def test_starts_equal_a_brute_force_over_devices():
    compare(range(60))


@pytest.mark.long
def test_starts_equal_a_brute_force_over_devices_on_five_hundred_clusters():
    compare(range(500))


@pytest.mark.exhaustive
def test_starts_equal_a_brute_force_over_devices_on_two_thousand_clusters():
    compare(range(500, 2000))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("nodes", [None, 1])
def test_shares_of_one_device_do_not_start_on_two(policy, nodes):
    jobs = [Job(nodes=nodes, gpus_per_node=0.6, run=100) for _ in range(3)]
    assert simulate(cluster(NodeSpec(cores=8, gpus=2)), jobs, policy).jobs["start"].tolist() == [0, 0, 100]


def made(spec, jobs):
    def make(policy):
        env = Environment(seed=7)
        system = Cluster(env, spec, policy)
        system.replay(jobs)
        return env, system

    return make


MIX = "3*1/0.5+2*2/1+1*1/0"


@pytest.mark.parametrize("placement", ["first-fit", "random", f"fgd({MIX})", f"fgd({MIX}, ties=random)", "gpu-packing"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_cut_run_with_devices_continues_the_same(policy, placement):
    for seed in range(3):
        kinds, _, jobs = drawn(seed)
        spec = spec_of(kinds)
        spec = ClusterSpec(partitions=[attrs.evolve(spec.partitions[0], placement=placement)])
        check_cut(made(spec, [asked(row, job) for row, job in enumerate(jobs)]), policy, [0.5, 2, 4, 7.5, 13])


@pytest.mark.parametrize("policy", ["easy", "conservative", "conservative-keep"])
def test_a_cut_run_with_work_without_a_limit_starts_the_same(policy):
    for seed in range(4):
        kinds, _, jobs = drawn(seed)
        given = [asked(row, job) for row, job in enumerate(jobs)]
        endless = [
            attrs.evolve(job, requested=math.inf if row % 4 == 0 else job.requested) for row, job in enumerate(given)
        ]
        env, system = made(spec_of(kinds), endless)(policy)
        cuts = []
        for at in (0.5, 2, 4, 7.5, 13):
            env.run(until=at)
            cuts.append(system.snapshot().to_json())
        env.run()
        for text in cuts:
            read = ClusterSnapshot.from_json(text)
            later = Environment(read.now, read.seed)
            resumed = Cluster.from_snapshot(later, read)
            later.run()
            check_rows(resumed.result(), system.result())


@pytest.mark.parametrize("placement", ["random", "gpu-best-fit", "dot-product", "gpu-packing", "gpu-clustering", "fgd"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_placement_holds_a_device_beyond_its_whole(policy, placement):
    for seed in range(4):
        kinds, nodes, jobs = drawn(seed)
        spec = ClusterSpec(partitions=[attrs.evolve(spec_of(kinds).partitions[0], placement=placement)])
        result = simulate(spec, [asked(row, job) for row, job in enumerate(jobs)], policy)
        assert set(result.jobs["status"].tolist()) == {"completed"}
        check_devices(result, nodes)


def test_whole_gpus_that_run_when_the_first_share_comes_keep_devices_of_their_own():
    jobs = [Job(nodes=1, gpus_per_node=1, run=100), Job(submit=5, nodes=1, gpus_per_node=0.6, run=10)]
    jobs += [Job(submit=6, nodes=1, gpus_per_node=0.6, run=10)]
    result = simulate(cluster(NodeSpec(cores=8, gpus=2)), jobs, "fcfs")
    assert result.jobs["start"].tolist() == [0, 5, 15]
    assert result.runs["devices"].tolist() == [(((0, 1000),),), (((1, 600),),), (((1, 600),),)]


def test_jobs_without_shares_have_no_devices():
    result = simulate(cluster(NodeSpec(cores=8, gpus=2)), [Job(nodes=1, gpus_per_node=1, run=5)], "easy")
    assert "devices" not in result.runs


def test_types_are_taken_in_the_order_of_their_numbers():
    spec = cluster(NodeSpec(cores=8, gpus={"A100": 1, "T4": 2}))
    kinds = ["T4", "A100|T4", "A100", ""]
    jobs = [Job(nodes=1, gpu=kind, gpus_per_node=1, run=10 * (i + 1)) for i, kind in enumerate(kinds)]
    result = simulate(spec, jobs, "fcfs")
    assert result.jobs["start"].tolist() == [0, 0, 20, 20]
    assert [held[0][0][0] for held in result.runs["devices"].tolist()] == [1, 0, 0, 1]


MIG = DeviceSpec(name="A100", memory="40GB", slices="mig")


def test_slices_begin_only_where_they_may():
    """3g.20gb begins at places 0 and 4: after one 1g.5gb on place 0, one is left."""
    spec = cluster(NodeSpec(cores=16, gpus={"A100": 1}), devices=[MIG])
    names = ["1g.5gb", "3g.20gb", "3g.20gb", "2g.10gb", "4g.20gb"]
    jobs = [Job(nodes=1, gpu=f"A100:{name}", run=10) for name in names]
    result = simulate(spec, jobs, "easy")
    assert result.jobs["start"].tolist() == [0, 0, 10, 0, 20]
    first = [held[0][0][0] for held in result.runs["devices"].tolist()]
    assert first == [0, 4, 2, 0, 0]  # in the order of their starts: 1g, 3g, 2g, 3g, 4g


def test_seven_slices_of_the_smallest_size_fit_and_a_whole_device_needs_all_places():
    spec = cluster(NodeSpec(cores=16, gpus={"A100": 1}), devices=[MIG])
    jobs = [Job(nodes=1, gpu="A100:1g.5gb", gpus_per_node=7, run=10), Job(nodes=1, gpu="A100:1g.5gb", run=5)]
    jobs += [Job(nodes=1, gpus_per_node=1, run=5)]
    assert simulate(spec, jobs, "fcfs").jobs["start"].tolist() == [0, 10, 15]


def test_a_policy_cannot_put_a_slice_where_none_may_begin():
    def policy(view):
        for job in view.waiting:
            row = 0, 1, 0.5, 0, tuple((place, 125) for place in range(2, 6))
            yield Start(job, view.places[0], allocation=Allocation.of([row]))

    spec = cluster(NodeSpec(cores=16, gpus={"A100": 1}), devices=[MIG])
    with pytest.raises(PolicyError, match="must be a free allocation of the place for this job"):
        simulate(spec, [Job(nodes=1, gpu="A100:3g.20gb", run=10)], policy)


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ({"half": (4, 0, 2)}, "slices.half: must not begin inside itself, got (4, 0, 2)"),
        (
            {"half": (4,)},
            "slices.half: must be how many places it takes and where it may begin, as (4, 0, 4), got (4,)",
        ),
        ({"part": (2, 0, 5)}, "slices: must have a number of places that divides 1000, got 7"),
        ("mog", "slices: must be 'mig' or a mapping of names to places, got 'mog'"),
    ],
)
def test_slices_that_no_place_allows_are_refused(slices, message):
    with pytest.raises(InputError, match=re.escape(message)):
        DeviceSpec(name="A100", memory="40GB", slices=slices)


def test_a_file_has_slices_and_gpus_by_type_as_specs_have(tmp_path):
    path = tmp_path / "p.toml"
    device = '[[partitions.devices]]\nname = "A100"\nmemory = "40GB"\nslices = "mig"\n'
    path.write_text(
        f'kind = "cluster"\n[[partitions]]\n[[partitions.nodes]]\ncores = 8\ngpus = {{ A100 = 2 }}\n{device}'
    )
    expected = cluster(NodeSpec(cores=8, gpus={"A100": 2}), devices=[MIG])
    assert read_toml(path) == expected
    write_toml(expected, path)
    assert read_toml(path) == expected
    path.write_text(path.read_text().replace("slices = {", "slices = 5 #"))
    with pytest.raises(InputError, match=r"partitions\[0\].devices\[0\].slices: must be 'mig' or a mapping"):
        read_toml(path)


def test_a_share_by_memory_depends_on_the_type():
    kinds = [DeviceSpec(name="A100", memory="40GB"), DeviceSpec(name="T4", memory="16GB")]
    spec = cluster(NodeSpec(cores=8, gpus={"T4": 1}), NodeSpec(name="a", cores=8, gpus={"A100": 1}), devices=kinds)
    jobs = [Job(nodes=1, gpu_memory="8GB", run=10) for _ in range(8)]
    result = simulate(spec, jobs, "fcfs")
    assert result.jobs["start"].tolist() == [0] * 7 + [10]
    assert result.runs["gpus"].tolist()[:7] == [(0.5,)] * 2 + [(0.2,)] * 5


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_preempted_shares_give_their_device_back_and_resume_on_their_own(mode):
    def policy(view):
        for job in view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])
            elif job.priority:
                yield Preempt(next(iter(view.running)).work, mode)
                yield Start(job, view.places[0])

    jobs = [Job(nodes=1, gpus_per_node=0.7, run=20, on_preempt=mode), Job(nodes=1, gpus_per_node=0.7, run=30)]
    jobs += [Job(submit=5, nodes=1, gpus_per_node=0.8, run=10, priority=1)]
    result = simulate(cluster(NodeSpec(cores=8, gpus=2)), jobs, policy)
    check_devices(result, [Node(8, ("", ""))])
    runs = [(job, held[0]) for job, held in zip(result.runs["job"].tolist(), result.runs["devices"], strict=True)]
    assert (1, ((0, 700),)) in runs
    assert (3, ((0, 800),)) in runs
    assert result.jobs["end"].tolist() == [35 if mode == "requeue" else 30, 30, 15]


@pytest.mark.parametrize("kind", ["drain", "maintenance", "failure"])
def test_outages_know_devices(kind):
    window = OutageSpec(nodes=["node1"], at=0, until=50, kind=kind)
    spec = attrs.evolve(cluster(NodeSpec(count=2, cores=8, gpus=1)), outages=[window])
    jobs = [Job(nodes=1, gpus_per_node=0.6, run=10) for _ in range(3)]
    assert simulate(spec, jobs, "easy").jobs["start"].tolist() == [0, 10, 20]


def test_a_claim_holds_a_share():
    pool = Cluster(Environment(), cluster(NodeSpec(cores=8, gpus=2))).places[0]
    claims = [pool.claim(nodes=1, gpus_per_node=0.6) for _ in range(3)]
    assert [claim.grant and claim.grant.allocation.rows for claim in claims] == [
        ((0, 1, 0.6, 0, ((0, 600),)),),
        ((0, 1, 0.6, 0, ((1, 600),)),),
        None,
    ]
    claims[0].release()
    assert claims[2].grant.allocation.devices == [((0, 600),)]


def test_a_policy_names_the_device_or_whole_gpus():
    def policy(view):
        place = view.places[0]
        for job in view.waiting:
            rows = {1: [(0, 1, 0.6, 0, ((1, 600),))], 2: [(0, 1, 1, 0)]}[job.id]
            yield Start(job, place, allocation=Allocation.of(rows))

    jobs = [Job(nodes=1, gpus_per_node=0.6, run=5), Job(nodes=1, gpus_per_node=1, run=5)]
    result = simulate(cluster(NodeSpec(cores=8, gpus=2)), jobs, policy)
    assert result.runs["devices"].tolist() == [(((1, 600),),), (((0, 1000),),)]


@pytest.mark.parametrize(
    "row",
    [(0, 1, 0.6, 0, ((0, 300), (1, 300))), (0, 1, 0.9, 0, ((0, 900),)), (0, 1, 0.6, 0, ((2, 600),)), (0, 1, 1, 0)],
)
def test_a_policy_cannot_give_other_devices_than_the_job_asks_for(row):
    def policy(view):
        for job in view.waiting:
            yield Start(job, view.places[0], allocation=Allocation.of([row]))

    with pytest.raises(PolicyError):
        simulate(cluster(NodeSpec(cores=8, gpus=2)), [Job(nodes=1, gpus_per_node=0.6, run=5)], policy)


def test_rows_of_allocations_carry_devices():
    share, more = (Allocation.of([(0, 1, part / 1000, 0, ((1, part),))]) for part in (460, 900))
    assert share != more
    assert hash(share) != hash(more)
    assert share.columns == ((1,), (0.46,), (0,), (((1, 460),),))
    assert share.groups() == [((0,), (1, 0.46, 0, ((1, 460),)))]
    with pytest.raises(ValueError, match=r"a share of a GPU must say of which device, got 0\.46 GPUs"):
        Allocation.of([(0, 1, 0.46, 0)])
    with pytest.raises(ValueError, match=r"devices must be different ones of 0\.46 GPUs in sum"):
        Allocation.of([(0, 1, 0.46, 0, ((1, 400),))])


def test_a_waiting_share_is_explained():
    sim = start(cluster(NodeSpec(cores=8, gpus=2)), [Job(nodes=1, gpus_per_node=0.6, run=100)] * 3, "easy")
    sim.run(until=5)
    text = why_waits(sim.snapshot(), 3).report()
    assert "needs 1 node with 1 core and 0.6 of a GPU of batch; 0.8 GPUs free in sum, no device with 0.6" in text
    assert "it would start now with 0.4 of a GPU per node instead of 0.6" in text


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"gpu": "H100"}, "GPU of type H100 requested, batch has A100, T4"),
        ({"gpu": "A100:5g"}, "slice 5g of A100 requested, it has 1g.10gb, 1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb"),
        ({"gpu": "T4:1g.5gb"}, "slice 1g.5gb of T4 requested, it has no slices"),
        ({"gpu": "T4", "gpu_memory": "20GB"}, "20000000000 bytes of a GPU of type T4 requested, batch has no such"),
        ({"gpus_per_node": 0.5, "gpu": "A100"}, "0.5 of a GPU of type A100 requested, batch has no such"),
        ({"gpus_per_node": 4}, "1 node with 1 core and 4 GPUs requested, batch has 0 such nodes"),
    ],
)
def test_what_no_node_can_give_is_refused_in_one_sentence(job, reason):
    spec = cluster(NodeSpec(cores=8, gpus={"A100": 1, "T4": 2}), devices=[MIG, DeviceSpec(name="T4", memory="16GB")])
    with pytest.raises(ImpossibleWork, match=re.escape(reason)):
        Cluster(Environment(), spec).submit(Job(nodes=1, run=5, **job))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gpus_per_node": 1.5}, "gpus_per_node: must be a share of one device or a whole number >= 0, got 1.5"),
        ({"gpus_per_node": -0.5}, "gpus_per_node: must be a share of one device or a whole number >= 0, got -0.5"),
        ({"gpu": "A100|"}, "gpu: must be types such as 'A100|V100' or a slice such as 'A100:3g.20gb', got 'A100|'"),
        ({"gpu": "A100:1g", "gpus_per_node": 0.5}, "gpus_per_node: must be a whole number of slices, got 0.5"),
        ({"gpu_memory": "2GB", "gpus_per_node": 2}, "gpu_memory: must be left out beside a number of GPUs"),
        ({"chunks": [1, 2], "gpu": "A100"}, "chunks: must be left out beside gpu"),
    ],
)
def test_requests_for_devices_that_mean_nothing_are_refused(fields, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Job(run=1, **fields)


@pytest.mark.parametrize("kind", ["csv", "sqlite", "parquet"])
def test_stored_results_keep_devices(kind, tmp_path):
    late = [Job(nodes=1, gpus_per_node=1, run=5), *[Job(submit=9, nodes=1, gpus_per_node=0.6, run=5)] * 3]
    spec, path = cluster(NodeSpec(cores=8, gpus=2)), tmp_path / (f"result.{kind}" if kind == "sqlite" else kind)
    result = simulate(spec, late, "easy")
    getattr(result, f"to_{kind}")(path)
    expected = result.runs["devices"].tolist()
    assert load_result(path).runs["devices"].tolist() == expected
    assert result.held()["devices"].tolist() == expected
    simulate(spec, late, "easy", stream=tmp_path / "stream.sqlite")
    assert load_result(tmp_path / "stream.sqlite").runs["devices"].tolist() == expected
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.runs.to_pandas(), pandas.DataFrame)
