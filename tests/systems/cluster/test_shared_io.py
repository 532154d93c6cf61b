"""Shares of the bandwidth of storages and links that jobs hold: by hand, as consumables, and what is left to others."""

import io
from random import Random

import numpy as np
import pytest

from simmodel import Cluster, Environment, Job, Workload, simulate, start
from simmodel.formats import read_columns
from simmodel.foundation.errors import ImpossibleWork, InputError, SnapshotError
from simmodel.platform import ClusterSpec, LinkSpec, NodeSpec, PartitionSpec, StorageSpec
from simmodel.platform.cluster import ConsumableSpec
from simmodel.platform.kinds import to_dict
from simmodel.platform.toml import from_dict
from simmodel.referee import explain
from simmodel.resources.network.transfer import LinkFailed
from simmodel.snapshots.snapshot import Snapshot

SCRATCH = StorageSpec(name="scratch", read_bandwidth="10GB/s", write_bandwidth="8GB/s")
WAN = LinkSpec(name="wan", bandwidth="1GB/s")


def cluster(*, nodes=False, **parts):
    partition = PartitionSpec(nodes=[NodeSpec(count=4, cores=2)]) if nodes else PartitionSpec(processors=8)
    return ClusterSpec(partitions=[partition], **parts)


SHARED = cluster(storages=[SCRATCH], links=[WAN])


def writer(i, rate="4GB/s", **options):
    given = {"submit": i, "run": 10, "requested": 20, **options}
    return Job(id=i, bandwidth={"scratch": rate}, **given)


def random_jobs(seed, field):
    rng = Random(seed)
    return [
        Job(
            id=i,
            submit=rng.randint(0, 40),
            processors=rng.randint(1, 6),
            run=(run := rng.randint(1, 15)),
            requested=run + rng.randint(0, 10),
            **{
                field: {
                    name: rng.choice([1, 2, 3, 5, 8]) * 1e9
                    for name in rng.sample(["scratch", "wan"], rng.randint(0, 2))
                }
            },
        )
        for i in range(30)
    ]


def test_a_job_starts_when_its_share_is_free():
    # Two writers at a time: 8 GB/s is the lower one of the bandwidths.
    assert simulate(SHARED, [writer(i) for i in range(5)], "fcfs").jobs["start"].tolist() == [0, 1, 10, 11, 20]


@pytest.mark.few(2)
@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize("policy", ["fcfs", "sjf", "easy", "conservative"])
def test_policies_see_shares_as_consumables(policy, nodes):
    amounts = {"scratch": 8e9, "wan": 10e9}
    storage, link = StorageSpec(name="scratch", write_bandwidth=8e9), LinkSpec(name="wan", bandwidth=10e9)
    shared = cluster(nodes=nodes, storages=[storage], links=[link])
    plain = cluster(nodes=nodes, consumables=[ConsumableSpec(name=name, amount=amounts[name]) for name in amounts])
    for seed in range(6):
        found = simulate(shared, random_jobs(seed, "bandwidth"), policy).jobs["start"]
        expected = simulate(plain, random_jobs(seed, "consumables"), policy).jobs["start"]
        assert found.tolist() == expected.tolist()


def test_no_more_than_the_bandwidth_is_ever_held():
    for seed in range(10):
        jobs = random_jobs(seed, "bandwidth")
        table = simulate(
            cluster(
                storages=[StorageSpec(name="scratch", write_bandwidth=8e9)],
                links=[LinkSpec(name="wan", bandwidth=10e9)],
            ),
            jobs,
            "easy",
        ).jobs
        for name, most in (("scratch", 8e9), ("wan", 10e9)):
            rates = np.nan_to_num(table[f"bandwidth_{name}"])
            for at in table["start"].tolist():
                running = (table["start"] <= at) & (at < table["end"])
                assert rates[running].sum() <= most
        assert set(table["status"].tolist()) == {"completed"}


# ---------------------------------------------------------------------- what is left to others


def test_accesses_and_transfers_of_others_share_the_rest():
    env = Environment()
    made = Cluster(env, SHARED)
    made.submit(Job(run=10, bandwidth={"scratch": "6GB/s", "wan": "0.75GB/s"}))
    read, write = made.storages["scratch"].read(60e9), made.storages["scratch"].write(40e9)
    transfer = made.network.transfer(5e9, route=["wan"])
    env.run()
    # 4, 2 and 0.25 GB/s for 10 s, then 10, 8 and 1 GB/s.
    assert (read.end, write.end, transfer.end) == (12.0, 12.5, 12.5)


def test_a_share_of_everything_leaves_nothing_and_fails_nothing():
    env = Environment()
    made = Cluster(env, SHARED)
    made.submit(Job(run=10, bandwidth={"wan": "1GB/s", "scratch": "8GB/s"}))
    transfers = [made.network.transfer(1e9, route=["wan"], when_down=way) for way in ("wait", "fail")]
    write = made.storages["scratch"].write(8e9)
    env.run(until=5)
    assert "; jobs hold all of wan" in "".join(made.network.waiting_report())
    assert "; jobs hold all of the bandwidth" in "".join(made.storages["scratch"].writing.waiting_report())
    env.run()
    assert [each.end for each in transfers] == [12.0, 12.0]
    assert write.end == 11.0


def test_shares_of_a_storage_without_a_limit_leave_it_as_fast():
    env = Environment()
    made = Cluster(env, cluster(storages=[StorageSpec(name="scratch")]))
    for i in range(3):
        made.submit(Job(id=i, run=10, bandwidth={"scratch": "1GB/s"}))
    env.run(until=1)
    write = made.storages["scratch"].write(1e9)
    env.run(until=2)
    assert (write.end, made.storages["scratch"].writing.withheld) == (1, 0)
    env.run()
    assert made.result().jobs["start"].tolist() == [0, 0, 0]


def test_a_link_that_is_down_still_fails_transfers():
    env = Environment()
    made = Cluster(env, SHARED)
    made.submit(Job(run=10, bandwidth={"wan": "1GB/s"}))
    transfer = made.network.transfer(1e9, route=["wan"], when_down="fail")
    env.call_at(3, lambda: made.network.fail("wan"))
    with pytest.raises(LinkFailed):
        env.run(transfer)
    assert env.now == 3


def test_a_share_is_given_back_whenever_its_job_stops():
    env = Environment()
    made = Cluster(env, SHARED)
    late = made.submit(Job(run=50, requested=10, bandwidth={"scratch": "8GB/s"}))
    following = made.submit(Job(run=50, bandwidth={"scratch": "8GB/s"}))
    env.run(until=20)
    assert made.storages["scratch"].writing.withheld == 8e9
    made.cancel(following)
    assert made.storages["scratch"].writing.withheld == 0.0
    env.run()
    assert late.state == "timeout"


def test_bodies_read_and_write_beside_the_shares_of_others():
    ends = []

    def body(env, job, grant):
        yield made.storages["scratch"].write(20e9)
        ends.append(env.now)

    env = Environment()
    made = Cluster(env, SHARED)
    made.submit(Job(run=4, bandwidth={"scratch": "4GB/s"}))
    made.submit(Job(body=body, requested=100))
    env.run()
    assert ends == [4.5]  # 4 s at 4 GB/s, then 4 GB at 8 GB/s


# ---------------------------------------------------------------------- snapshots, documents, columns, explanations


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_cut_run_ends_as_the_whole_one(policy):
    for seed in range(4):
        jobs = random_jobs(seed, "bandwidth")
        spec = cluster(storages=[SCRATCH], links=[LinkSpec(name="wan", bandwidth=10e9)])
        whole = dict(zip(*(simulate(spec, jobs, policy).jobs[name].tolist() for name in ("job", "end")), strict=True))
        begun = start(spec, jobs, policy)
        begun.run(until=23)
        document = begun.snapshot().to_json()
        rest = simulate(Snapshot.from_json(document)).jobs
        assert len(rest)
        assert all(whole[job] == end for job, end in zip(rest["job"].tolist(), rest["end"].tolist(), strict=True))


def test_what_runs_in_a_snapshot_withholds_its_share_again():
    begun = start(SHARED, [writer(i) for i in range(3)], "fcfs")
    begun.run(until=5)
    again = start(begun.snapshot())
    assert again.system.storages["scratch"].reading.withheld == 8e9
    again.run(until=12)
    assert again.system.storages["scratch"].reading.withheld == 4e9


def test_what_scripts_do_with_storages_and_links_is_not_copied():
    env = Environment()
    made = Cluster(env, SHARED)
    made.storages["scratch"].add("data", 5)
    with pytest.raises(SnapshotError, match="storage scratch cannot be copied: scripts have files or accesses there"):
        made.snapshot()
    made = Cluster(Environment(), SHARED)
    made.network.transfer(1e9, route=["wan"])
    made.env.run(until=0.5)
    with pytest.raises(SnapshotError, match="link wan cannot be copied: a script uses it or has changed it"):
        made.snapshot()


def test_specs_are_stored_in_documents():
    assert from_dict(to_dict(SHARED)) == SHARED
    assert attrs_of(to_dict(SHARED)) == {"storages", "links"}


def attrs_of(document):
    return {"storages", "links"} & document.keys()


def test_shares_are_columns_of_results_and_logs():
    jobs = [writer(0), Job(id=1, run=5, submit=1), Job(id=2, run=5, submit=2, bandwidth={"wan": 5e8})]
    table = simulate(SHARED, jobs, "fcfs").jobs
    assert str(table["bandwidth_scratch"].tolist()) == "[4000000000.0, nan, nan]"
    assert str(table["bandwidth_wan"].tolist()) == "[nan, nan, 500000000.0]"
    env = Environment()
    made = Cluster(env, SHARED)
    for job in jobs:
        made.submit(job)
    env.run()
    assert str(made.result().jobs["bandwidth_wan"].tolist()) == "[nan, nan, 500000000.0]"
    log = Workload(
        {"submit": [0, 0, 0], "run": [9, 9, 9], "processors": [1, 1, 1], "bandwidth_scratch": [8e9, 5e9, -1]}
    )
    assert simulate(SHARED, log, "fcfs").jobs["start"].tolist() == [0, 9, 9]
    assert simulate(SHARED, log, "easy").jobs["start"].tolist() == [0, 9, 0]
    assert [dict(job.bandwidth) for job in log.jobs()] == [{"scratch": 8e9}, {"scratch": 5e9}, {}]
    assert simulate(SHARED, log.jobs(), "easy").jobs["start"].tolist() == [0, 9, 0]


def test_shares_are_read_from_tables():
    file = io.StringIO("submit,run,bandwidth_scratch,tape\n0,9,8GB/s,1\n0,9,,2\n0,9,5e9,3\n")
    log = read_columns(file, {"bandwidth_tape": "tape"})
    assert str(log["bandwidth_scratch"].tolist()) == "[8000000000.0, nan, 5000000000.0]"
    assert log["bandwidth_tape"].tolist() == [1.0, 2.0, 3.0]
    assert simulate(SHARED, log, "easy").jobs["start"].tolist() == [0, 0, 9]
    with pytest.raises(InputError, match=r"line 2.*must be a quantity in B/s"):
        read_columns(io.StringIO("submit,run,bandwidth_scratch\n0,9,fast\n"))


def test_shares_that_a_platform_does_not_have_are_told():
    log = Workload({"submit": [0, 0], "run": [9, 9], "processors": [1, 1], "bandwidth_tape": [8e9, -1]})
    told = "1 jobs request bandwidth of storages or links that the platform does not have"
    assert told in simulate(8, log, "fcfs").report.notes
    both = Workload({**{name: log[name] for name in log.table.names}, "bandwidth_wan": [1e9, 1e9]})
    result = simulate(SHARED, both, "fcfs")
    assert result.report.repaired["bandwidth of storages and links not on the platform: ignored"] == 1
    assert result.jobs["start"].tolist() == [0, 9]


def test_waiting_for_a_share_is_explained():
    found = explain(SHARED, [writer(i, rate) for i, rate in enumerate(["4GB/s", "2GB/s", "3GB/s"])], "fcfs", 2)
    assert (found.reason, found.detail) == ("bandwidth", "needs 3GBps of scratch, 2GBps are free")
    assert [holder.job for holder in found.holders] == [0]
    assert [change.text for change in found.changes] == ["with 2GBps of scratch instead of 3GBps"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Job(run=1, bandwidth={"x": -1}), r"bandwidth\['x'\]: must be a finite quantity in B/s >= 0, got -1"),
        (lambda: Job(run=1, bandwidth={"x": "2GB"}), r"bandwidth\['x'\]: must be a quantity in B/s"),
        (lambda: Job(run=1, bandwidth={"x": 1}, consumables={"x": 1}), r"bandwidth\['x'\]: must not be in consumables"),
        (lambda: cluster(storages=[SCRATCH, SCRATCH]), r"storages\[1\].name: duplicate name 'scratch'"),
        (lambda: cluster(storages=[StorageSpec()]), r"storages\[0\].name: must not be empty"),
        (
            lambda: cluster(links=[LinkSpec(name="scratch", bandwidth=1)], storages=[SCRATCH]),
            r"links\[0\].name: duplicate name 'scratch'",
        ),
        (
            lambda: cluster(links=[LinkSpec(name="pipe", bandwidth=1, sharing="fatpipe")]),
            r"links\[0\].sharing: must be 'shared', so that jobs can hold shares of it, got 'fatpipe'",
        ),
    ],
)
def test_wrong_shares_are_refused(make, message):
    with pytest.raises((InputError, ValueError), match=message):
        make()


def test_shares_that_are_never_free_are_refused():
    made = Cluster(Environment(), SHARED)
    with pytest.raises(ImpossibleWork, match="9GBps of scratch requested, there are 8GBps"):
        made.submit(writer(0, "9GB/s"))
    with pytest.raises(ImpossibleWork, match="consumable 'tape' requested, there are scratch, wan"):
        made.submit(Job(run=1, bandwidth={"tape": 1}))
