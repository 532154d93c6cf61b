"""Quotas of tenants: cases worked by hand from Kueue's documentation, and what always holds."""

from __future__ import annotations

import csv

import attrs
import pytest
from hypothesis import given, settings, strategies as st
from simpy import Interrupt

from simmodel import Cluster, Environment, Job, Snapshot, simulate, start
from simmodel.cli import main
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.platform import ClusterSpec, DeviceSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.policies import Quota, Quotas, read_quotas
from simmodel.referee import why_waits
from simmodel.scheduling import Hold, Release, Start
from simmodel.testing import check_policy
from simmodel.work import Checkpoint


def quota(amount, cohort="ab", *, borrow=None, lend=None, **options):
    limits = {name: {"processors": each} for name, each in (("borrow", borrow), ("lend", lend)) if each is not None}
    return Quota({"processors": amount}, cohort=cohort, **limits, **options)


def job(user, processors, run=100, submit=0, priority=0, **more):
    return Job(user=user, processors=processors, run=run, submit=submit, priority=priority, **more)


def lives(spec, jobs, policy):
    """Return the first start of each job, and the instants and numbers of those that were preempted."""
    result = simulate(spec, jobs, policy)
    told = [] if result.reasons is None else result.reasons.rows()
    return result.jobs["start"].tolist(), [
        (row["time"], int(row["work"])) for row in told if row["decision"] == "Preempt"
    ]


# name: quotas, processors, jobs, their starts, preemptions (time, job)
CASES = {
    # 9 + 12: all of what the other one does not use, and no more than that
    "borrow all that the cohort has": (
        {"a": quota(9), "b": quota(12)},
        30,
        [job("a", 9), job("a", 12), job("a", 1)],
        [0, 0, 100],
        [],
    ),
    # a came first, but would have to borrow; b is within its nominal quota
    "who need not borrow comes first": (
        {"a": quota(9), "b": quota(12)},
        30,
        [job("a", 9), job("b", 12, 10), job("a", 12, submit=1), job("b", 12, 10, submit=2)],
        [0, 0, 20, 10],
        [],
    ),
    "a borrowing limit of 1": (
        {"a": quota(9, borrow=1), "b": quota(12)},
        30,
        [job("a", 9), job("a", 1), job("a", 1)],
        [0, 0, 100],
        [],
    ),
    "no cohort, no borrowing": (
        {"a": quota(9, None), "b": quota(12, None)},
        30,
        [job("a", 9), job("a", 1), job("b", 12)],
        [0, 100, 0],
        [],
    ),
    "a lending limit of 1": (
        {"a": quota(9), "b": quota(12, lend=1)},
        30,
        [job("a", 9), job("a", 1), job("a", 1)],
        [0, 0, 100],
        [],
    ),
    # b keeps 11 without a preemption; for its twelfth it reclaims what it lent
    "what is not lent is there at once": (
        {"a": quota(9), "b": quota(12, lend=1)},
        30,
        [job("a", 9), job("a", 1), job("b", 11, submit=5), job("b", 1, submit=7)],
        [0, 0, 5, 7],
        [(7, 2)],
    ),
    # of two borrowers of equal priority the one admitted last goes
    "reclaim from who was admitted last": (
        {"a": quota(4), "b": quota(8)},
        12,
        [job("a", 4), job("a", 4), job("a", 4, submit=1), job("b", 4, 10, submit=5)],
        [0, 0, 1, 5],
        [(5, 3)],
    ),
    "lower priority goes before who was admitted last": (
        {"a": quota(4), "b": quota(8)},
        12,
        [job("a", 4, priority=1), job("a", 4), job("a", 4, submit=1, priority=1), job("b", 4, 10, submit=5)],
        [0, 0, 1, 5],
        [(5, 2)],
    ),
    # what b asks for is in the hands of a job of equal priority
    "reclaim from lower priority only": (
        {"a": quota(4), "b": quota(4, reclaim="lower-priority")},
        8,
        [job("a", 4), job("a", 4), job("b", 4, submit=5), job("b", 4, submit=6, priority=1)],
        [0, 0, 106, 6],
        [(6, 2)],
    ),
    "reclaim never": (
        {"a": quota(4), "b": quota(4, reclaim="never")},
        8,
        [job("a", 8), job("b", 4, submit=5)],
        [0, 100],
        [],
    ),
    # b uses its nominal quota: what it asks for more is not its own
    "cohort exhausted": (
        {"a": quota(4), "b": quota(4)},
        12,
        [job("a", 4), job("b", 4), job("b", 4, submit=5), job("a", 1, submit=6)],
        [0, 0, 100, 100],
        [],
    ),
    "within a queue lower priority gives way": (
        {"a": quota(4, within="lower-priority")},
        8,
        [job("a", 4), job("a", 4, 10, submit=5, priority=1), job("a", 4, 10, submit=6)],
        [0, 5, 115],
        [(5, 1)],
    ),
    # the second asks for more than its queue has: it takes nothing from others
    "a request above the nominal quota preempts nobody": (
        {"a": quota(4), "b": quota(4)},
        8,
        [job("b", 8), job("a", 6, submit=5)],
        [0, 100],
        [],
    ),
    "but it does with borrow_within, from lower priority": (
        {"a": quota(4, borrow_within=True), "b": quota(4)},
        8,
        [job("b", 8), job("a", 6, submit=5, priority=1), job("a", 2, 10, submit=6)],
        [0, 5, 6],
        [(5, 1)],
    ),
    # the last admitted would go first, and is added back, since the other one is enough
    "as few as possible": (
        {"a": quota(3), "b": quota(4)},
        7,
        [job("a", 4), job("a", 3), job("b", 4, 10, submit=5)],
        [0, 0, 5],
        [(5, 1)],
    ),
    # others of the tenant pass one that does not fit
    "best effort": (
        {"a": quota(4)},
        8,
        [job("a", 2), job("a", 4), job("a", 2)],
        [0, 100, 0],
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_starts_and_preemptions_are_those_of_the_documentation(case, policy):
    quotas, processors, jobs, starts, preempted = CASES[case]
    assert lives(processors, jobs, Quotas(quotas, policy)) == (starts, preempted)


def test_newer_jobs_of_equal_priority_give_way_to_an_older_one():
    quotas = {"a": quota(4, within="lower-or-newer-equal-priority")}
    # the second could not start on the 4 processors; the third has taken them meanwhile
    jobs = [job("a", 2), job("a", 4, 10, submit=1), job("a", 2, submit=2)]
    starts, preempted = lives(8, jobs, Quotas(quotas, "fcfs"))
    assert (starts, preempted) == ([0, 100, 2], [(100, 3)])


def test_a_strict_queue_lets_nobody_pass():
    quotas = {"a": quota(4)}
    jobs = [job("a", 2), job("a", 4), job("a", 2)]
    assert lives(8, jobs, Quotas(quotas, strict=True))[0] == [0, 100, 200]


def test_types_of_gpus_have_quotas_of_their_own_and_a_gang_is_admitted_whole():
    kinds = [NodeSpec(name="a", count=4, cores=8, gpus={"A100": 2}), NodeSpec(name="t", cores=8, gpus={"T4": 4})]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds)])
    quotas = {"x": Quota({"A100": 4, "T4": 1}, cohort="c"), "y": Quota({"A100": 4}, cohort="c")}
    gang = {"nodes": 4, "gpus_per_node": 2, "gpu": "A100", "run": 10}
    jobs = [
        Job(user="x", nodes=1, gpus_per_node=0.6, gpu="T4", run=50),
        Job(user="x", nodes=1, gpus_per_node=0.6, gpu="T4", run=50),  # 1.2 of 1, and nobody lends any
        Job(user="y", nodes=1, gpus_per_node=2, gpu="A100", run=20),
        Job(user="x", submit=1, **gang),  # 8 of 8: not while 2 are in use, although 6 are free
        Job(user="y", nodes=1, gpus_per_node=1, gpu="T4", run=10),  # of which y has none and so borrows none
    ]
    result = simulate(spec, jobs, Quotas(quotas, "fcfs"))
    assert result.jobs["start"].tolist()[:4] == [0, 50, 0, 20]
    assert result.jobs["status"].tolist()[4] == "cancelled"
    assert "quota of y is too small: 1 T4 asked for, 0 at most" in result.reasons["reason"].tolist()
    assert any("cancelled 1 jobs that no quota could ever hold" in note for note in result.report.notes)


def test_a_job_counts_for_each_type_that_it_may_have():
    kinds = [NodeSpec(name="a", cores=8, gpus={"A100": 1}), NodeSpec(name="t", cores=8, gpus={"T4": 1})]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds)])
    whole = {"nodes": 1, "gpus_per_node": 1, "run": 10}
    jobs = [Job(user="x", gpu="A100|T4", **whole), Job(user="x", gpu="T4", **whole), Job(user="x", **whole)]
    assert lives(spec, jobs, Quotas({"x": Quota({"A100": 1, "T4": 1})}, "fcfs")) == ([0, 10, 20], [])


def test_memory_and_slices_and_shares_by_memory_count():
    kinds = [NodeSpec(cores=8, gpus={"A100": 2}, memory="64GB")]
    device = DeviceSpec(name="A100", memory="40GB", slices="mig")
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, devices=[device])])
    half = {"nodes": 1, "gpu": "A100:3g.20gb", "run": 10}
    jobs = [Job(user="x", **half), Job(user="x", **half), Job(user="x", **half)]
    assert lives(spec, jobs, Quotas({"x": Quota({"A100": 1})}, "fcfs"))[0] == [0, 0, 10]
    jobs = [Job(user="x", nodes=1, memory_per_node="20GB", run=10)] * 3
    assert lives(spec, jobs, Quotas({"x": Quota({"memory": "40GB"})}, "fcfs"))[0] == [0, 0, 10]
    kinds = [NodeSpec(cores=8, gpus={"T4": 2})]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, devices=[DeviceSpec(name="T4", memory="16GB")])])
    jobs = [Job(user="x", nodes=1, gpu_memory="8GB", run=10)] * 3
    assert lives(spec, jobs, Quotas({"x": Quota({"gpus": 1})}, "fcfs"))[0] == [0, 0, 10]


@pytest.mark.parametrize(
    ("options", "end"),
    # of 45 s of work 40 are saved, 45 are kept, or none
    [({"checkpoint": Checkpoint(interval=10)}, 115), ({"on_preempt": "suspend"}, 110), ({}, 155)],
)
def test_a_reclaimed_job_goes_on_from_its_checkpoint_or_where_it_was_suspended(options, end):
    jobs = [job("a", 4, priority=-1, **options), job("a", 4, 200), job("b", 4, 10, submit=45)]
    result = simulate(8, jobs, Quotas({"a": quota(4), "b": quota(4)}, "fcfs"))
    assert result.jobs["end"].tolist() == [end, 200, 55]


def test_a_job_that_forbids_preemption_stays_and_one_with_a_body_cleans_up_first():
    def body(env, work, grant):
        try:
            yield env.timeout(100)
        except Interrupt:
            yield env.timeout(3)

    quotas = {"a": quota(4), "b": quota(4)}
    jobs = [job("a", 8, on_preempt="no"), job("b", 4, submit=5)]
    assert lives(8, jobs, Quotas(quotas, "fcfs")) == ([0, 100], [])
    jobs = [Job(user="a", processors=8, body=body), job("b", 4, submit=5), job("a", 1, 10, submit=6)]
    assert lives(8, jobs, Quotas(quotas, "fcfs")) == ([0, 8, 8], [(5, 1)])


def test_what_waits_for_quota_waits_from_its_submission():
    result = simulate(8, [job("a", 4), job("a", 4, submit=30)], Quotas({"a": quota(4)}, "fcfs"))
    assert result.jobs["wait"].tolist() == [0, 70]


def test_a_job_that_is_cancelled_while_it_waits_for_quota_leaves_the_line():
    run = start(8, [job("a", 4), job("a", 4, cancel=50), job("a", 4)], Quotas({"a": quota(4)}, "fcfs"))
    run.run(until=20)
    again = start(run.snapshot(), policy=Quotas({"a": quota(4)}, "fcfs"))
    for each in (run, again):
        each.run()
        rows = {row["job"]: (row["status"], row["start"]) for row in each.result().jobs.rows()}
        assert (rows[2][0], rows[3]) == ("cancelled", ("completed", 100))


def test_groups_and_queues_are_tenants_too_and_others_are_not_limited():
    jobs = [Job(group="a", processors=4, run=10)] * 2 + [Job(processors=2, run=10)]
    result = simulate(10, jobs, Quotas({"a": quota(4)}, by="group"))
    assert result.jobs["start"].tolist() == [0, 10, 0]
    assert "policy quota easy did not limit 1 jobs of a group without a quota" in result.report.notes
    spec = ClusterSpec(partitions=[PartitionSpec(processors=10)], queues=[QueueSpec(name="a")])
    jobs = [Job(queue="a", processors=4, run=10)] * 2
    assert lives(spec, jobs, Quotas({"a": quota(4)}, by="queue"))[0] == [0, 10]


# ---------------------------------------------------------------------- what always holds

AMOUNTS = st.integers(0, 6)
LIMITS = st.none() | st.integers(0, 4)


@st.composite
def tenants(draw):
    found = {}
    for name in "abc"[: draw(st.integers(1, 3))]:
        cohort = draw(st.sampled_from([None, "x", "x"]))
        limits = {} if cohort is None else {"borrow": draw(LIMITS), "lend": draw(LIMITS)}
        found[name] = quota(
            draw(AMOUNTS),
            cohort,
            **limits,
            reclaim=draw(st.sampled_from(["any", "lower-priority", "never"])),
            within=draw(st.sampled_from(["never", "lower-priority", "lower-or-newer-equal-priority"])),
            borrow_within=draw(st.booleans()),
        )
    return found


JOBS = st.lists(
    st.builds(
        job,
        st.sampled_from("abcd"),
        st.integers(1, 6),
        st.integers(1, 20),
        st.integers(0, 30),
        st.integers(0, 2),
        on_preempt=st.sampled_from(["requeue", "requeue", "suspend", "no"]),
    ),
    min_size=1,
    max_size=14,
).map(lambda jobs: [attrs.evolve(each, id=number) for number, each in enumerate(jobs, 1)])
POLICIES = st.sampled_from(["fcfs", "easy", "conservative", "sjf+easy", "wfp", "window"])


def limit(each, name):
    return getattr(each, name).get("processors", float("inf"))


def check_usage(quotas, jobs, result):
    """Whether at each event nobody has more than its quota and what others lend."""
    runs = list(result.runs.rows())
    users = {each.id: each.user for each in jobs}
    for now in {row["start"] for row in runs}:
        used = dict.fromkeys(quotas, 0)
        for row in runs:
            name = users[int(row["job"])]
            if row["start"] <= now < row["end"] and name in used:
                used[name] += row["processors"]
        for name, each in quotas.items():
            own = each.nominal["processors"]
            assert used[name] <= own + (0 if each.cohort is None else limit(each, "borrow"))
            others = [(other, quotas[other]) for other in quotas if other != name and quotas[other].cohort == "x"]
            if each.cohort is not None:
                # what others lend at most, less what they themselves use of it
                lent = sum(
                    min(their.nominal["processors"], limit(their, "lend"), their.nominal["processors"] - used[other])
                    for other, their in others
                )
                assert used[name] - own <= max(0, lent)
        cohort = [name for name, each in quotas.items() if each.cohort == "x"]
        assert sum(used[name] for name in cohort) <= sum(quotas[name].nominal["processors"] for name in cohort)


@settings(max_examples=150, deadline=None)
@given(tenants(), JOBS, POLICIES)
def test_usage_is_never_above_the_quotas(quotas, jobs, policy):
    result = simulate(12, jobs, Quotas(quotas, policy))
    check_usage(quotas, jobs, result)
    for row in result.jobs.rows():
        own = quotas.get(jobs[int(row["job"]) - 1].user)
        if own is None:
            assert row["status"] == "completed"
        elif row["status"] != "completed":
            assert row["status"] == "cancelled"
            assert row["processors"] > own.nominal["processors"]


@settings(max_examples=60, deadline=None)
@given(tenants(), JOBS, st.sampled_from(["fcfs", "easy", "conservative-keep"]), st.integers(1, 60))
def test_a_run_that_is_cut_and_continued_is_the_same(quotas, jobs, policy, instant):
    whole = simulate(12, jobs, Quotas(quotas, policy))
    first = start(12, jobs, Quotas(quotas, policy))
    first.run(until=instant)
    again = start(Snapshot.from_json(first.snapshot().to_json()), policy=Quotas(quotas, policy))
    again.run()
    ends = dict(zip(whole.jobs["job"].tolist(), zip(whole.jobs["start"], whole.jobs["end"], strict=True), strict=True))
    result = again.result()
    for row in result.jobs.rows():
        assert (row["start"], row["end"]) == pytest.approx(ends[row["job"]], nan_ok=True)


def test_another_policy_sees_what_quotas_have_held():
    run = start(8, [job("a", 4), job("a", 4)], Quotas({"a": quota(4)}, "fcfs"))
    run.run(until=10)
    snapshot = run.snapshot()
    other = start(snapshot, policy="fcfs")
    other.run()
    assert other.result().jobs["start"].tolist() == [0, 10]


def test_quotas_given_to_a_running_cluster_count_what_runs():
    run = start(8, [job("a", 4), job("a", 4, submit=20), job("a", 2, submit=20)], "fcfs")
    run.run(until=10)
    again = start(run.snapshot(), policy=Quotas({"a": quota(6)}, "fcfs"))
    again.run()
    assert again.result().jobs["start"].tolist() == [0, 100, 20]


def test_the_policy_can_be_renewed_pickled_and_cut():
    check_policy(Quotas({"1": quota(4), "2": quota(4)}, "easy"))
    check_policy(Quotas())


# ---------------------------------------------------------------------- words


def test_an_explanation_says_which_quota_is_used_up():
    env = Environment()
    cluster = Cluster(env, 12, Quotas({"a": quota(4), "b": quota(4)}, "fcfs"))
    for each in (job("a", 4), job("b", 2), job("a", 4)):
        cluster.submit(each)
    env.run(until=1)
    found = why_waits(cluster.snapshot(), 3, Quotas({"a": quota(4), "b": quota(4)}, "fcfs"))
    assert found.reason == "policy"
    assert found.detail == (
        "is held by the policy: quota of a used up: 4 of 4 processors in use, 4 asked for, "
        "2 left with what cohort ab lends"
    )
    assert found.expected == 100
    assert list(cluster.waiting_report()) == ["job 3, submitted at 0 s, is held by the policy"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quota({"gpus": -1}), "gpus: must be a number >= 0, got -1"),
        (lambda: Quota({"memory": "64 bananas"}), "memory: must be"),
        (lambda: Quota(5), "must be amounts by resource, such as"),
        (lambda: Quota({"gpus": 4}, borrow={"gpus": 1}), "borrow: must be that of a tenant with a cohort"),
        (lambda: Quota({"gpus": 4}, cohort="c", lend={"gpu": 1}), "lend: unknown resource 'gpu'"),
        (lambda: Quota({"gpus": 4}, reclaim="always"), "reclaim: must be any, lower-priority or never, got 'always'"),
        (lambda: Quotas({"a": 4}), "a: must be a Quota, got 4"),
        (lambda: Quotas({"a": {"nominal": {"gpus": 4}, "cohor": "c"}}), "a: unknown field 'cohor'"),
        (lambda: Quotas({"a": {"nominal": {"gpus": True}}}), "a.gpus: must be a number >= 0, got True"),
        (lambda: Quotas({}, by="colour"), "by: unknown tenant 'colour'"),
        (lambda: simulate(4, [Job(run=1)], Quotas({"a": Quota({"H100": 1})})), "quotas: unknown resource 'H100'"),
        (lambda: simulate(4, [Job(run=1)], Quotas({"a": quota(1)}, by="queue")), "quotas: unknown queue 'a'"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_only_what_is_held_without_an_instant_can_be_released():
    with pytest.raises(PolicyError, match="only work that is held without an instant can be released"):
        simulate(4, [Job(run=1)], lambda view: [Release(job) for job in view.waiting])

    def late(view):
        for each in view.waiting:
            if view.now == 0 and each.id == 1:
                yield Hold(each, float("inf"), "later")
                held.append(each)
            else:
                yield Start(each, view.places[0])
                yield from map(Release, held)
                held.clear()

    held = []
    assert simulate(4, [Job(run=10), Job(run=10, submit=5)], late).jobs["start"].tolist() == [5, 5]


def test_quotas_are_read_from_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "teams.toml"
    file.write_text(
        '[a]\nnominal = {processors = 4, memory = "64GB"}\ncohort = "ab"\n[b]\nnominal = {processors = 4}\n'
    )
    assert read_quotas(file)["a"] == Quota({"processors": 4, "memory": 64e9}, cohort="ab")
    (tmp_path / "log.csv").write_text("submit,processors,run,user\n0,4,10,a\n0,4,10,a\n0,4,10,b\n")
    command = ["batch", "log.csv", "--processors", "12", "--policy", "quota(teams.toml, fcfs)", "--schedule", "-"]
    assert main(command) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [float(row["start"]) for row in rows] == [0, 10, 0]
    file.write_text("[a]\nnominal = 4\n")
    assert main(command) == 2
    assert "teams.toml, a: must be amounts by resource" in capsys.readouterr().err
