"""Brokers over clusters: destinations, the figures of their jobs, and that no job is lost."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.experiments.replication import replicate
from simmodel.foundation.errors import ImpossibleWork, InputError, Stalled
from simmodel.metrics.brokered import by_cluster, by_origin, moved, moved_turnaround, side_by_side, weekly
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.policies.brokers import LeastLoaded
from simmodel.policies.estimates import EarliestFinish, EarliestStart
from simmodel.policies.mapping import Random, RoundRobin, Share
from simmodel.records.broker_record import BrokerRecord
from simmodel.runs.scenario import Scenario, load_scenario, simulate
from simmodel.scheduling.protocol import Start
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.workload import Workload
from tests.helpers.broker_cases import MODES, Case, alone, cases
from tests.helpers.examples import up_to

PATIENT = settings(max_examples=up_to(60), deadline=None, suppress_health_check=list(HealthCheck))
NAMES = [
    *("random", "round-robin", "sgs-t", "sgs-w", "least-loaded", "siloed"),
    *("share(0.6)", "least-loaded(jobs)", "least-loaded(processors)"),
]


def went(result):
    return list(zip(result.jobs["destination"].tolist(), result.jobs["start"].tolist(), strict=True))


def two(jobs, broker, sizes=(4, 4), **options):
    return simulate(dict(zip("ab", sizes, strict=True)), {"a": jobs}, broker, **options)


# ---------------------------------------------------------------------- policies by hand


def test_the_lowest_turnaround_and_the_lowest_wait() -> None:
    """b is free but slow: 10 s on a, after a wait of 40 s, beat 60 s on b; a job of 5 s goes to b."""
    jobs = [Job(processors=4, run=40), Job(submit=0, processors=4, run=10), Job(submit=0, processors=4, run=5)]
    slow = {"slowdowns": (1, 6)}
    assert went(two(jobs, "sgs-t", **slow)) == [("a", 0), ("a", 40), ("b", 0)]
    assert went(two(jobs, "sgs-w", **slow)) == [("a", 0), ("b", 0), ("a", 40)]


def test_honest_estimates_go_by_requested_times_and_others_by_actual_ones() -> None:
    jobs = [
        Job(processors=4, run=10, requested=100),
        Job(processors=4, run=60, requested=60),
        Job(submit=1, processors=4, run=10, requested=10),
    ]
    assert went(two(jobs, "sgs-t"))[2] == ("b", 60)
    assert went(two(jobs, "sgs-t", by="actual"))[2] == ("a", 10)


def test_least_loaded_by_work_by_jobs_and_by_processors() -> None:
    """a runs one long job on 1 of 4 processors; b runs two short jobs on 1 each."""
    jobs = [Job(run=100), Job(run=10), Job(run=10), Job(submit=1, run=1)]
    assert went(two(jobs, "least-loaded")) == [("a", 0), ("b", 0), ("b", 0), ("b", 1)]
    assert went(two(jobs, "least-loaded(jobs)")) == [("a", 0), ("b", 0), ("a", 0), ("b", 1)]
    wide = [Job(processors=3, run=1), Job(processors=1, run=100), Job(processors=1, run=1)]
    assert [place for place, _ in went(two(wide, "least-loaded(processors)"))] == ["a", "b", "b"]
    # Per processor: 2 of 8 is less than 2 of 4.
    assert [place for place, _ in went(two([Job(run=9)] * 3, "least-loaded", sizes=(2, 8)))] == ["a", "b", "b"]


def test_round_robin_passes_over_what_cannot_run_the_job() -> None:
    jobs = [Job(processors=n, run=1) for n in (1, 1, 1, 4, 4, 1)]
    assert [place for place, _ in went(two(jobs, "round-robin", sizes=(2, 4)))] == ["a", "b", "a", "b", "b", "a"]


def test_random_and_shares_draw_once_a_job() -> None:
    jobs = [Job(run=1, submit=i) for i in range(600)]
    for broker, share in (("random", 0.5), ("share(0.6)", 0.6), (Random((1, 3)), 0.25), (Random({"b": 1, "a": 0}), 0)):
        result = two(jobs, broker)
        part = float((result.jobs["destination"] == "a").mean())
        assert abs(part - share) < 0.07
        again = two(jobs, broker)
        assert went(again) == went(result)
        if 0 < share < 1:
            assert went(two(jobs, broker, seed=1)) != went(result)
    assert Share(0.5)._weights("abc") == [0.5, 0.25, 0.25]
    # A job that only one place can run uses a draw too, so the destinations of the others do not change.
    fixed = [Job(run=1, submit=job.submit, processors=3 if i == 7 else 1) for i, job in enumerate(jobs)]
    first, second = (two(each, "random", sizes=(2, 4)).jobs["destination"] for each in (jobs, fixed))
    assert [i for i in range(len(jobs)) if first[i] != second[i]] in ([], [7])


def test_ties_go_by_a_named_rule() -> None:
    jobs = [Job(processors=1, run=10), Job(submit=1, processors=1, run=10)]
    assert [place for place, _ in went(two(jobs, "sgs-t"))] == ["a", "a"]
    assert [place for place, _ in went(two(jobs, "sgs-t(ties=least-loaded)"))] == ["a", "b"]
    home = simulate({"a": 4, "b": 4}, {"b": jobs}, "sgs-w(ties=home)")
    assert set(home.jobs["destination"].tolist()) == {"b"}
    last = two(jobs, EarliestFinish(lambda view, job, places: places[-1]))
    assert [place for place, _ in went(last)] == ["b", "b"]
    drawn = {tuple(place for place, _ in went(two(jobs, "sgs-w(ties=random)", seed=seed))) for seed in range(20)}
    assert len(drawn) == 4


# ---------------------------------------------------------------------- slowdowns


def test_slowdowns_by_hand() -> None:
    jobs = [Job(processors=4, run=10, requested=20)]
    both = {"platform": {"a": 4, "b": 4}, "policy": RoundRobin()}
    logs = {"a": jobs, "b": jobs, None: jobs}
    result = simulate(workload=logs, slowdowns=(1, 1.5), **both)
    assert result.jobs["destination"].tolist() == ["a", "b", "a"]
    assert result.jobs["run"].tolist() == [10, 15, 10]
    assert result.jobs["requested"].tolist() == [20, 30, 20]
    assert result.jobs["asked"].tolist() == [20, 20, 20]
    assert result.jobs["slowdown"].tolist() == [1, 1.5, 1]
    named = simulate(workload=logs, slowdowns={"a": 2}, **both)
    assert named.jobs["run"].tolist() == [20, 10, 20]
    pairs = simulate(workload=logs, slowdowns={("b", "b"): 3, ("b", "a"): 4, "a": 2}, **both)
    assert pairs.jobs["run"].tolist() == [20, 30, 20]


def test_what_runs_past_its_request_is_cut_there_on_every_cluster() -> None:
    jobs = [Job(run=30, requested=20), Job(run=30, requested=20)]
    result = two(jobs, RoundRobin(), slowdowns=(1, 1.5))
    assert result.jobs["end"].tolist() == [20, 30]
    assert result.jobs["status"].tolist() == ["timeout", "timeout"]
    runs_on = two(jobs, RoundRobin(), slowdowns=(1, 1.5), overrun="continue")
    assert runs_on.jobs["end"].tolist() == [30, 45]


# ---------------------------------------------------------------------- constraints


def test_a_job_goes_only_where_it_can_run() -> None:
    gpus = NodeSpec(count=2, cores=4, gpus=2, memory=8e9)
    parts = [PartitionSpec(name="x", processors=12), PartitionSpec(name="y", processors=16)]
    clusters = {
        "plain": 9,
        "gpu": ClusterSpec(name="gpu", partitions=[PartitionSpec(name="nodes", nodes=[gpus])]),
        "parts": ClusterSpec(partitions=parts),
    }
    jobs = [
        Job(nodes=1, cores_per_node=1, gpus_per_node=2, run=5),
        Job(nodes=2, cores_per_node=1, memory_per_node=6e9, run=5),
        Job(processors=12, run=5),
        Job(processors=12, run=5, partition="y"),
        Job(processors=20, run=5),
        Job(nodes=1, cores_per_node=1, gpus_per_node=3, run=5),
    ]
    for broker in ("sgs-t", "random", "least-loaded", "round-robin"):
        result = simulate(clusters, jobs, broker)
        assert result.jobs["destination"].tolist() == ["gpu", "gpu", "parts", "parts", "", ""]
        assert result.jobs["status"].tolist() == ["completed"] * 4 + ["rejected"] * 2
        assert sum(result.report.rejected.values()) == 2
        assert sorted(result.runs["place"].tolist()) == ["gpu", "gpu", "parts/x", "parts/y"]
        assert result.metrics()["status"] == {"completed": 4, "rejected": 2}
    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 8, name="b")], "siloed")
    with pytest.raises(ImpossibleWork, match="job 1: 8 processors requested, batch has 4"):
        broker.submit(Job(processors=8, run=1), home="a")
    assert broker.submit(Job(processors=8, run=1), home="b").destination is None
    env.run()


def test_a_script_submits_to_a_broker_and_waits() -> None:
    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t", slowdowns={"b": 2})
    seen = []

    def body(env, job, grant):
        yield env.timeout(7)

    def user(env):
        first = broker.submit(Job(processors=4, run=10))
        second = broker.submit(Job(processors=4, requested=30, body=body))
        third = broker.submit(Job(processors=1, run=30, cancel=12))
        yield second
        seen.append((env.now, second.state, second.destination.name))
        yield first & third
        seen.append((env.now, first.state, third.state))
        broker.cancel(first)  # it has ended: nothing happens

    env.process(user(env))
    env.run(until=1)
    env.run(until=broker.idle())
    env.run()
    assert seen == [(17, "completed", "a"), (17, "completed", "cancelled")]
    assert broker.result().metrics()["status"] == {"cancelled": 1, "completed": 2}


def test_jobs_that_come_after_others_wait_for_them_wherever_these_run() -> None:
    jobs = [
        Job(id="first", processors=4, run=10),
        Job(id="other", processors=4, run=25),
        Job(id="after", processors=1, run=5, dependencies=["first", "other"]),
        Job(id="gone", processors=1, run=5, dependencies=["never"], cancel=12),
    ]
    result = two(jobs, "sgs-t")
    assert went(result)[:3] == [("a", 0), ("b", 0), ("a", 25)]
    assert result.jobs["status"].tolist() == ["completed"] * 3 + ["cancelled"]
    assert result.jobs["wait"].tolist()[:3] == [0, 0, 0]
    with pytest.raises(Stalled, match="job gone has waited since 0 s for the end of job never"):
        two([Job(id="gone", run=5, dependencies=["never"])], "sgs-t")


def test_a_policy_may_hold_jobs_back() -> None:
    """A function of a view: the first cluster with enough free processors, in order of arrival; otherwise wait."""

    def late(view):
        for job in view.waiting:
            free = [place for place in view.places if place.free - place.queued_processors >= job.processors]
            if not free:
                return
            yield Start(job, free[0])

    jobs = [Job(processors=3, run=10), Job(processors=3, run=30), Job(processors=3, run=5), Job(processors=1, run=5)]
    result = two(jobs, late)
    assert went(result) == [("a", 0), ("b", 0), ("a", 10), ("a", 10)]
    assert result.jobs["handed"].tolist() == [0, 0, 10, 10]
    assert result.jobs["wait"].tolist() == [0, 0, 10, 10]


# ---------------------------------------------------------------------- drawn cases


@PATIENT
@given(case=cases(), name=st.sampled_from(NAMES))
def test_nothing_is_lost_and_the_same_seed_gives_the_same(case: Case, name: str) -> None:
    env, broker = case.broker(name)
    env.run()
    result = broker.result()
    jobs = result.jobs
    assert len(jobs) == sum(len(log) for log in case.logs)
    assert set(jobs["status"].tolist()) <= {"completed", "timeout", "rejected"}
    ended = jobs["status"] != "rejected"
    assert ((jobs["destination"] != "") == ended).all()
    sizes = dict(zip("ab", case.sizes, strict=True))
    for row in jobs.where(ended).rows():
        assert row["processors"] <= sizes[row["destination"]]
        factor = broker.named[row["destination"]].factor(row["origin"])
        assert row["slowdown"] == factor
        assert row["end"] == row["start"] + row["run"] or abs(row["end"] - row["start"] - row["run"]) < 1e-9
        assert row["start"] >= row["submit"]
    for member, own in result.clusters.items():
        here = jobs["destination"] == member
        assert sorted(own.jobs["start"].tolist()) == sorted(jobs["start"][here].tolist())
        assert own.busy().max() <= sizes[member]
    assert broker._active == 0
    env, broker = case.broker(name)
    env.run()
    assert went(broker.result()) == went(result) or not ended.all()
    assert np.array_equal(broker.result().jobs["start"], jobs["start"], equal_nan=True)


@PATIENT
@given(case=cases())
def test_siloed_is_each_log_replayed_alone(case: Case) -> None:
    case = case._replace(slowdowns=None)
    env, broker = case.broker("siloed")
    env.run()
    result = broker.result()
    for which, name in enumerate("ab"):
        mine = result.jobs.where(result.jobs["origin"] == name)
        by_itself = simulate(case.sizes[which], case.logs[which], case.policies[which], **case.options).jobs
        for column in ("job", "submit", "start", "end", "processors", "status", "requested", "run", "wait", "user"):
            kind = {"equal_nan": True} if mine[column].dtype.kind == "f" else {}
            expected = by_itself[column]
            if column == "requested":  # jobs that never run have no planned time
                expected = np.where(mine["status"] == "rejected", mine[column], expected)
            assert np.array_equal(mine[column], expected, **kind), column


@PATIENT
@given(case=cases(shortest=1, modes=MODES), figure=st.sampled_from(["turnaround", "wait"]))
def test_simulated_choices_are_those_of_brute_force(case: Case, figure: str) -> None:
    """Simulate each choice from the beginning: the jobs that a cluster got so far, and this job."""
    case = case._replace(by="actual")
    env, broker = case.broker(EarliestFinish() if figure == "turnaround" else EarliestStart())
    order = []

    class Watch:
        def job_handed(self, job, place):
            order.append(job.row)

    env.observe(Watch())
    env.run()
    jobs = broker.result().jobs
    runs = {
        (home, job): run
        for home, log in zip("ab", case.logs, strict=True)
        for job, run in zip(log["job"].tolist(), log["run"].tolist(), strict=True)
    }
    given_to = {name: [] for name in "ab"}
    for row in order:
        home = jobs["origin"][row]
        figures = {}
        for which, name in enumerate("ab"):
            if jobs["processors"][row] > case.sizes[which]:
                continue
            factor = broker.named[name].factor(home)
            run, limit = runs[home, jobs["job"][row]] * factor, jobs["asked"][row] * factor
            here = (jobs["submit"][row], run, limit, jobs["processors"][row])
            start = alone(case, which, [*given_to[name], here])[-1]
            figures[name] = (start + min(run, limit) if figure == "turnaround" else start, here)
        best = min(figures, key=lambda name: figures[name][0])
        assert jobs["destination"][row] == best
        given_to[best].append(figures[best][1])


# ---------------------------------------------------------------------- results and reports


def test_jobs_of_the_clusters_own_stand_in_the_table_too() -> None:
    env = Environment()
    clusters = [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")]
    clusters[0].submit(Job(id="own", processors=4, run=50))
    broker = Broker(env, clusters, "sgs-t")
    broker.submit(Job(id="late", processors=4, run=10), home="a")
    clusters[0].replay(Workload({"job": [7], "submit": [5.0], "run": [1.0], "processors": [4]}))
    env.run()
    jobs = broker.result("mixed").jobs
    rows = list(zip(*(jobs[name].tolist() for name in ("job", "origin", "destination", "start")), strict=True))
    assert rows == [("late", "a", "b", 0.0), ("own", "a", "a", 0.0), ("7", "a", "a", 50.0)]


def test_logs_that_number_their_jobs_alike_stay_apart() -> None:
    log = Workload({"job": [1, 2], "submit": [0.0, 0.0], "run": [5.0, 9.0], "processors": [4, 4]})
    result = simulate({"a": 4, "b": 4}, [log, log], "siloed")
    assert result.jobs["job"].tolist() == ["a:1", "a:2", "b:1", "b:2"]
    assert result.runs["job"].tolist() == ["a:1", "b:1", "a:2", "b:2"]
    assert result.clusters["a"].jobs["job"].tolist() == [1, 2]
    assert result.metrics()["utilisation"] == 1
    assert not np.isnan(result.metrics()["unfairness"])


def jobs_of_two_weeks():
    rng = np.random.default_rng(3)
    return [
        {"submit": np.sort(rng.uniform(0, 14 * 86400, 80)), "run": rng.integers(1000, 40000, 80).astype(float)}
        | {"processors": rng.integers(1, 9, 80)}
        for _ in "ab"
    ]


def test_without_clusters_nothing_is_used() -> None:
    never = float("nan")
    jobs = {"submit": [0.0], "start": [never], "end": [never], "processors": [1], "origin": [""], "destination": [""]}
    rows = list(by_cluster(BrokerRecord(jobs=jobs)).rows())
    assert [(row["cluster"], row["jobs"], row["utilisation"]) for row in rows] == [("all", 0, 0.0)]


def test_tables_of_who_went_where_and_how_busy_it_was() -> None:
    logs = [Workload(columns, processors=8) for columns in jobs_of_two_weeks()]
    siloed, brokered = (simulate({"a": 8, "b": 8}, logs, broker) for broker in ("siloed", "sgs-t"))
    flows = by_origin(brokered)
    assert flows["jobs"].sum() == 160
    where = Counter(zip(brokered.jobs["origin"].tolist(), brokered.jobs["destination"].tolist(), strict=True))
    assert {(row["origin"], row["destination"]): row["jobs"] for row in flows.rows()} == where
    table = moved_turnaround(siloed, brokered)
    which = moved(brokered)
    assert table["jobs"][-1] == which.sum() > 0
    rows = {(row["origin"], row["destination"]): row["jobs"] for row in table.rows() if row["origin"] != "all"}
    assert rows == {pair: jobs for pair, jobs in where.items() if pair[0] != pair[1]}
    before, after = (float((each.jobs["end"] - each.jobs["submit"])[which].mean()) for each in (siloed, brokered))
    assert table["before"][-1] == pytest.approx(before)
    assert table["after"][-1] == pytest.approx(after)
    assert len(moved_turnaround(siloed, siloed)["jobs"]) == 0
    with pytest.raises(ValueError, match="must have the same jobs"):
        moved_turnaround(siloed.only(slice(5)), brokered)
    with pytest.raises(ValueError, match="must have the same jobs"):
        moved_turnaround(siloed.only(slice(None, None, -1)), brokered)
    weeks = weekly(brokered)
    assert weeks["submitted"].sum() == weeks["handed"].sum() == 160
    work = float((brokered.jobs["run"] * brokered.jobs["processors"]).sum())
    lengths = np.minimum(7 * 86400, brokered.ended - weeks["start"])
    assert float((weeks["utilisation"] * lengths).sum()) * 8 == pytest.approx(work)
    clusters = by_cluster(brokered)
    assert clusters["cluster"].tolist() == ["a", "b", "all"]
    assert clusters["utilisation"][-1] == pytest.approx(brokered.metrics()["utilisation"])
    both = side_by_side([siloed, brokered], "walltime", [0, 20000, 1e9])
    assert both["jobs"].tolist()[-1] == 160
    assert both["change"][-1] == pytest.approx(both["sgs-t"][-1] / both["siloed"][-1] - 1)
    assert both["siloed"][-1] == pytest.approx(siloed.metrics()["wait_mean"] / 60)


def test_a_result_of_a_broker_is_looked_at_as_any_other() -> None:
    logs = [Workload(columns, processors=8) for columns in jobs_of_two_weeks()]
    result = simulate({"a": 8, "b": 8}, logs, "sgs-t", name="ours")
    assert "a " in result.summary()
    assert "utilisation" in result.summary()
    assert result._repr_html_().count("<table>") == 2
    assert repr(result).startswith("<BrokerResult ours: 160 jobs on 2 clusters, ")
    assert result.of_cluster("a") is result.clusters["a"]
    with pytest.raises(KeyError, match="unknown cluster 'c'"):
        result.of_cluster("c")
    assert result.table["jobs"].tolist()[-1] == 160
    assert len(result.only(result.jobs["submit"] > 86400).jobs) < 160
    pytest.importorskip("matplotlib").use("agg")
    result.plot.weekly()
    result.plot.weekly("submitted")
    result.plot.flows()
    result.plot.utilisation()
    result.plot.clusters()
    with pytest.raises(ValueError, match="unknown value 'nothing'; known values: utilisation, submitted, handed"):
        result.plot.weekly("nothing")
    assert result.scenario["policy"] == "sgs-t"
    assert result.decisions["count"] > 0


def test_a_run_is_repeated_from_what_it_saved(tmp_path) -> None:
    logs = [Workload(columns, processors=8) for columns in jobs_of_two_weeks()]
    options = {"slowdowns": {("a", "b"): 1.5, "a": 2}, "estimates": "cqsim", "by": "actual"}
    first = simulate({"a": 8, "b": 8}, logs, "sgs-w(ties=home)", policies={"a": "fcfs", "b": "easy"}, **options)
    first.to_sqlite(tmp_path / "run.sqlite")
    again = load_scenario(tmp_path / "run.sqlite").run()
    assert went(again) == went(first)
    assert went(load_scenario(tmp_path / "run.sqlite").run(policy="siloed")) != went(first)
    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "random")
    for _ in range(6):
        broker.submit(Job(processors=3, run=10))
    env.run(until=5)
    rest = simulate(broker.snapshot())
    assert went(Scenario.from_document(rest.scenario).run()) == went(rest)
    one = Workload({"submit": [0], "run": [1], "processors": [1]})
    own = simulate([4, 4], one, RoundRobin(), policies=lambda view: (), until=5)
    with pytest.raises(InputError, match="policy 'round-robin' was passed as an object"):
        Scenario.from_document(own.scenario).run()
    with pytest.raises(InputError, match="the policies of c1, c2 were passed as objects"):
        Scenario.from_document(own.scenario).run(policy="sgs-t")
    with pytest.raises(InputError, match="made in Python, or too large"):
        Scenario.from_document(simulate(broker.snapshot(), [Job(submit=9, run=1)]).scenario).run()


def test_a_random_broker_is_repeated_with_seeds() -> None:
    runs = replicate(simulate, 3, platform=[4, 4], workload=[Job(run=5, processors=3)] * 6, policy="random")
    assert len(runs.samples) == 3


# ---------------------------------------------------------------------- wrong input

JOB = [Job(run=1)]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: two(JOB, "sgst"), "unknown policy 'sgst'; did you mean 'sgs-t'"),
        (
            lambda: two(JOB, "easy"),
            "policy 'easy' decides when jobs start on the nodes of a cluster; broker asks which system takes each job",
        ),
        (
            lambda: two(JOB, "heft"),
            "policy 'heft' decides which place takes each task of a workflow, before it is ready; broker asks",
        ),
        (lambda: two(JOB, "share(2)"), "p: must be a share from 0 to 1, got 2"),
        (lambda: two(JOB, "share(x)"), "p: must be a share from 0 to 1, got 'x'"),
        (
            lambda: two(JOB, "share:0.6"),
            r"policy 'share:0.6': parameters must be in parentheses: share\(0.6\)",
        ),
        (lambda: Share(1.5), "p: must be a share from 0 to 1, got 1.5"),
        (lambda: Random((0, 0)), "weights: must be numbers >= 0, not all 0"),
        (lambda: two(JOB, Random((1, 2, 3))), "weights: must have 2 numbers, one per place, got 3"),
        (lambda: two(JOB, Random({"x": 1})), "weights: must be one for each place \\(a, b\\), got x"),
        (lambda: LeastLoaded("mass"), "unknown load 'mass'"),
        (lambda: EarliestStart("best"), "unknown tie rule 'best'"),
        (lambda: two(JOB, "siloed(ties=first)"), "policy 'siloed': unknown parameter 'ties'"),
        (lambda: two(JOB, "sgs-t", slowdowns=(1,)), "slowdowns: must have 2 numbers, one per place, got 1"),
        (lambda: two(JOB, "sgs-t", slowdowns={"c": 2}), "slowdowns: unknown place 'c'; known places: a, b"),
        (lambda: two(JOB, "sgs-t", slowdowns=(1, 0)), r"slowdowns\['b'\]: must be a finite number > 0, got 0"),
        (lambda: two(JOB, "sgs-t", by="guess"), "by: must be 'requested' or 'actual'"),
        (lambda: simulate([], JOB), "places: must not be empty"),
        (lambda: simulate([4, -1], JOB), "platform: must be a number of processors > 0, got -1"),
        (lambda: simulate({"a": 4}, {"b": JOB}), "unknown place 'b'; known places: a"),
        (lambda: simulate([4], [JOB, JOB]), "workloads: must be at most 1, one per place, got 2"),
        (lambda: simulate([4, 4], JOB, "siloed"), "home: must be given for each job under the policy 'siloed'"),
        (lambda: simulate([4, 4], None), "missing workload"),
        (lambda: simulate({"a": 4, "b": 4}, JOB, policies={"a": "easy"}), "policies: missing b"),
        (lambda: simulate([4, 4], JOB, policies="esay"), "unknown policy 'esay'; did you mean 'easy'"),
    ],
)
def test_wrong_input_is_one_sentence(call, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_clusters_that_do_not_go_together_are_refused() -> None:
    env = Environment()
    with pytest.raises(InputError, match="duplicate system 'a'"):
        Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="a")])
    with pytest.raises(InputError, match="systems: b is in another environment than the broker"):
        Broker(env, [Cluster(env, 4, name="a"), Cluster(Environment(), 4, name="b")])
    orders = {"a": "submits-first", "b": "ends-first"}
    unlike = [Cluster(env, 4, name=name, decide_on="event", event_order=order) for name, order in orders.items()]
    with pytest.raises(InputError, match="systems: a and b differ in event_order"):
        Broker(env, unlike)
    broker = Broker(env, [Cluster(env, 4, name="x")])
    with pytest.raises(InputError, match="unknown home 'y'; known homes: x"):
        broker.submit(Job(run=1), home="y")
    with pytest.raises(InputError, match="unknown place 'z'"):
        Broker(env, [Cluster(env, 4, name="x")], slowdowns={("z", "x"): 2})


def test_a_job_that_is_cancelled_before_it_comes_never_runs():
    env = Environment()
    broker = Broker(env, [Cluster(env, 4, name="a")], "round-robin")
    job = broker.submit(Job(run=10), at=5)
    broker.cancel(job)
    env.run()
    assert job.state == "cancelled"
    assert job.started is None
    assert broker.unfinished == 0
