"""Portfolios of policies: which candidate is chosen when, and that it decides as it would alone."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Start, simulate
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.generators.phased import schedtwin
from simmodel.metrics.objective_scores import started_shares
from simmodel.policies.portfolio import Portfolio
from simmodel.scheduling import policy
from simmodel.scheduling.registry import policy_names, split_names
from tests.helpers.batch_cases import Case, cases, to_workload
from tests.helpers.batch_runs import run
from tests.helpers.examples import up_to
from tests.oracles.futures import brute_simulate

EASIES = ("wfp+easy", "fcfs+easy", "sjf+easy")


def busy_until_100(*waiting: tuple[float, ...]) -> list[Job]:
    """Return a job that holds four processors until 100, and later jobs given as (submit, run, processors=4)."""
    rest = [Job(submit=at, run=asked, processors=int(size[0]) if size else 4) for at, asked, *size in waiting]
    return [Job(processors=4, run=100), *rest]


# ---------------------------------------------------------------------- by hand


@pytest.mark.parametrize(
    ("winner", "objective", "waiting", "starts"),
    [
        # The first waits 99 s and the short one 104 s; behind the short one, as with wfp, the first would wait 109 s.
        ("fcfs+easy", "wait_max", [(1, 94, 3), (90, 10)], [100, 194]),
        ("sjf+easy", "slowdown_mean", [(1, 50), (90, 10)], [110, 100]),
        # The 40 s job, after 98 s, precedes the 30 s job, after 1 s: slowdown 3.45 instead of 4.2.
        ("wfp+easy", "slowdown_max", [(1, 1000), (2, 40), (99, 30)], [170, 100, 140]),
    ],
)
def test_each_candidate_wins_where_it_is_best(winner, objective, waiting, starts):
    result = simulate(4, busy_until_100(*waiting), Portfolio(EASIES, objective))
    assert result.jobs["start"][1:].tolist() == starts
    at_100 = result.choices.where(result.choices["time"] == 100)
    assert at_100["policy"][at_100["chosen"] == 1].tolist() == [winner]
    assert at_100["score"][at_100["chosen"] == 1].tolist() == [0]
    assert (at_100["score"][at_100["chosen"] == 0] > 0).all()
    assert result.jobs["started_by"][1 + int(np.argmin(starts))] == winner


def test_scores_are_of_the_jobs_that_wait():
    # At 100 two jobs wait; the third arrives at 120 and must not count before.
    jobs = busy_until_100((1, 50), (90, 10), (120, 5))
    portfolio = Portfolio({"fcfs": "easy", "sjf": "sjf+easy"}, "raw:wait_mean")
    scores = simulate(4, jobs, portfolio).choices
    assert scores.where(scores["time"] == 100)["score"].tolist() == [(99 + 60) / 2, (109 + 10) / 2]


def test_requested_times_are_foreseen_and_run_times_are_not():
    jobs = [Job(processors=4, run=100), Job(submit=1, processors=4, run=1, requested=50)]
    jobs += [Job(submit=2, processors=4, run=40)]
    scores = simulate(4, jobs, Portfolio(["easy", "sjf+easy"], "raw:wait_max")).choices
    assert scores.where(scores["time"] == 100)["score"].tolist() == [148, 139]


def test_utilisation_counts_the_whole_machine():
    # Two of four processors are held until 150; from 10 on the only other job is the narrow one.
    jobs = [Job(processors=2, run=10), Job(processors=2, run=150), Job(submit=1, processors=2, run=40)]
    scores = simulate(4, jobs, Portfolio(["easy"], "raw:utilisation")).choices
    at_10 = scores.where(scores["time"] == 10)["score"]
    assert at_10.tolist() == [pytest.approx(1 - (2 * 140 + 2 * 40) / (4 * 140))]


def test_what_is_blocked_or_held_is_not_scored():
    from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec
    from simmodel.work import Dependency

    spec = ClusterSpec(
        name="c", partitions=[PartitionSpec(name="p", processors=4)], queues=[QueueSpec(name="q", max_running=1)]
    )
    jobs = [
        Job(id=1, processors=4, run=100, queue="q"),
        Job(id=2, submit=1, processors=4, run=50),
        Job(id=3, submit=2, processors=4, run=10, dependencies=[Dependency(2)]),
    ]
    jobs += [Job(id=4 + i, submit=90, processors=4, run=10, queue="q") for i in range(2)]  # at most one runs
    portfolio = Portfolio(["easy"], "raw:wait_max")
    env = Environment()
    cluster = Cluster(env, spec, portfolio)
    real, foreseen, left_out = cluster.view.simulate, {}, []

    def noting(policy: Any) -> Any:
        future = real(policy)
        queue = [job.id for job in cluster.view.waiting]
        waits = dict(zip(future.jobs["job"].tolist(), future.jobs["start"] - future.jobs["submit"], strict=True))
        foreseen[env.now] = max(waits[job] for job in queue)
        left_out.append(int(future.jobs["waiting"].sum()) - len(queue))
        return future

    cluster.view.simulate = noting
    for job in jobs:
        env.call_at(job.submit, lambda job=job: cluster.submit(job))
    env.run()
    assert max(left_out) > 0, "something was blocked or held"
    told = dict(zip(portfolio.scores["time"].tolist(), portfolio.scores["score"].tolist(), strict=True))
    assert {at: told[at] for at in foreseen} == foreseen
    assert cluster.result().jobs["start"].tolist() == simulate(spec, jobs, "easy").jobs["start"].tolist()


def test_partitions_are_simulated_together():
    from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec

    spec = ClusterSpec(
        name="c",
        partitions=[
            PartitionSpec(name="a", nodes=[NodeSpec(count=2, cores=2)]),
            PartitionSpec(name="b", processors=4),
        ],
    )
    rng = np.random.default_rng(5)
    jobs = [
        Job(
            submit=float(rng.integers(0, 40)),
            processors=int(rng.integers(1, 5)),
            run=float(rng.integers(1, 30)),
            partition=str(rng.choice(["a", "b"])),
        )
        for _ in range(up_to(40, 15))
    ]
    jobs.sort(key=lambda job: job.submit)
    for name in ("easy", "sjf+conservative", "conservative-keep"):
        alone = simulate(spec, jobs, name).jobs["start"].tolist()
        assert simulate(spec, jobs, Portfolio([name], every=True)).jobs["start"].tolist() == alone
    simulate(spec, jobs, Checked(["easy", "sjf+easy", "conservative-keep"], "slowdown_mean", every=True))


# ---------------------------------------------------------------------- choices, with given futures


def first(view: Any) -> Any:
    """Start whatever fits, in order of arrival."""
    return [Start(job, view.places[0]) for job in list(view.waiting)[: view.places[0].free]]


def last(view: Any) -> Any:
    """Start the latest first."""
    return [Start(job, view.places[0]) for job in list(view.waiting)[::-1][: view.places[0].free]]


def never(_view: Any) -> Any:
    """Start nothing."""
    return None


def told(values: dict[float, dict[str, float]], portfolio: Portfolio, until: float = 50) -> list[tuple[float, str]]:
    """Run with futures of given scores by instant and policy; return the choices as (time, policy)."""
    env = Environment()
    cluster = Cluster(env, 1, portfolio)
    cluster.view.simulate = lambda candidate, **_: values[env.now][candidate.name]
    for _ in range(10):
        cluster.submit(Job(processors=1, run=10))
    env.run(until=until)
    scores = portfolio.scores
    rows = scores.where(scores["chosen"] == 1)
    return list(zip(rows["time"].tolist(), rows["policy"].tolist(), strict=True))


def same(value: Any) -> Any:
    return value


def at(*rows: tuple[float, float]) -> dict[float, dict[str, float]]:
    """Return scores of ``first`` and ``last`` every 10 s."""
    return {10.0 * i: dict(zip(("first", "last"), row, strict=True)) for i, row in enumerate(rows)}


def test_the_lowest_score_decides():
    values = at((1, 2), (2, 1), (1, 2), (2, 1), (2, 1))
    portfolio = Portfolio([first, last], same)
    assert told(values, portfolio) == [(0, "first"), (10, "last"), (20, "first"), (30, "last"), (40, "last")]
    assert portfolio.started_by["policy"].tolist() == ["first", "last", "first", "last", "last"]
    assert portfolio.started_by["job"].tolist() == [1, 10, 2, 9, 8]
    assert [tuple(row.values()) for row in portfolio.shares.rows()] == [("first", 2, 0.4), ("last", 3, 0.6)]
    assert portfolio.scores["score"].tolist() == [1, 2, 2, 1, 1, 2, 2, 1, 2, 1]


@pytest.mark.parametrize(("ties", "expected"), [((), "first"), (("last",), "last"), (("first", "last"), "first")])
def test_ties_go_by_the_named_order(ties, expected):
    values = at((1, 1), (1, 1 + 1e-12), (1 + 1e-12, 1))
    assert {name for _, name in told(values, Portfolio([first, last], same, ties=ties), 30)} == {expected}


def test_ties_go_by_their_order_whoever_decides_now():
    assert told(at((2, 1), (1, 1)), Portfolio([first, last], same), 20) == [(0, "last"), (10, "first")]


def test_what_has_no_score_is_not_chosen_and_none_is_a_tie():
    nan = math.nan
    values = at((nan, 1), (1, nan), (nan, nan))
    assert told(values, Portfolio([first, last], same), 30) == [(0, "last"), (10, "first"), (20, "first")]


def test_hysteresis_keeps_the_current_policy_unless_another_is_better_by_that_share():
    values = at((10, 11), (10, 9.5), (10, 9), (10, 8.9), (10, 11))
    chosen = [name for _, name in told(values, Portfolio([first, last], same, hysteresis=0.1))]
    assert chosen == ["first", "first", "first", "last", "last"]


def test_hysteresis_on_the_min_max_scale_is_a_share_of_the_worst_score():
    def future(wait: float, slow: float) -> Any:
        jobs = {"submit": [0.0], "start": [wait], "requested": [wait / (slow - 1)], "waiting": [True]}
        return SimpleNamespace(jobs={name: np.array(column) for name, column in jobs.items()})

    def chosen(hysteresis: float) -> list[str]:
        portfolio = Portfolio([first, last], {"wait_max": 1, "slowdown_max": 3}, hysteresis=hysteresis)
        env = Environment()
        cluster = Cluster(env, 1, portfolio)
        futures = {0: {"first": (1, 2), "last": (2, 3)}, 10: {"first": (1, 3), "last": (2, 2)}}  # 0 and 4; 3 and 1
        cluster.view.simulate = lambda candidate, **_: future(*futures[env.now][candidate.name])
        cluster.submit(Job(processors=1, run=10))
        env.process(iter_submit(env, cluster))
        env.run()
        scores = portfolio.scores
        assert scores["score"].tolist() == [0, 4, 3, 1]
        return scores["policy"][scores["chosen"] == 1].tolist()

    def iter_submit(env: Environment, cluster: Cluster) -> Any:
        yield env.timeout(10)
        cluster.submit(Job(processors=1, run=10))

    assert chosen(0.49) == ["first", "last"]  # better by 2 of 4
    assert chosen(0.5) == ["first", "first"]


def test_a_choice_stands_for_the_interval():
    values = at((1, 2), (9, 9), (2, 1), (9, 9), (1, 2))
    portfolio = Portfolio([first, last], same, interval=20)
    assert told(values, portfolio) == [(0, "first"), (20, "last"), (40, "first")]
    assert portfolio.started_by["policy"].tolist() == ["first", "first", "last", "last", "first"]


def test_the_horizon_and_the_estimates_go_to_the_simulation():
    asked = []
    portfolio = Portfolio([first], lambda future: 0.0, horizon=300, estimates="actual")
    env = Environment()
    cluster = Cluster(env, 1, portfolio)
    cluster.view.simulate = lambda candidate, **options: asked.append((candidate.name, options))
    cluster.submit(Job(processors=1, run=10))
    env.run()
    assert asked == [("first", {"horizon": 300, "estimates": "actual"})]


def test_beyond_the_horizon_a_job_has_waited_to_it():
    jobs = busy_until_100((0, 50), (0, 50))
    scores = simulate(4, jobs, Portfolio(["easy"], "raw:wait_max", horizon=30)).choices
    assert scores["score"].tolist()[1:] == [130, 150]


# ---------------------------------------------------------------------- decisions without simulation


def counting(portfolio: Portfolio, jobs: list[Job]) -> tuple[int, list[float]]:
    env = Environment()
    cluster = Cluster(env, 4, portfolio)
    real, calls = cluster.view.simulate, []

    def simulate_and_count(*given: Any, **options: Any) -> Any:
        calls.append(env.now)
        return real(*given, **options)

    cluster.view.simulate = simulate_and_count
    for job in jobs:
        env.call_at(job.submit, lambda job=job: cluster.submit(job))
    env.run()
    return len(calls), [float(start) for start in cluster.result().jobs["start"]]


def test_nothing_is_simulated_where_nothing_can_start_or_all_starts():
    jobs = busy_until_100((1, 50), (90, 10))
    # At 0 and 110 one job waits and fits; at 1 and 90 nothing can start; at 100 two wait for one place.
    lazy, eager = Portfolio(EASIES), Portfolio(EASIES, every=True)
    assert counting(lazy, jobs) == (3, [0, 110, 100])
    assert lazy.scores["time"].tolist() == [0] * 3 + [100] * 3 + [110] * 3
    assert counting(eager, jobs) == (9, [0, 110, 100])
    assert eager.scores["time"].tolist() == [0] * 3 + [1] * 3 + [90] * 3 + [100] * 3 + [110] * 3


def test_told_scores_are_those_of_a_simulation():
    jobs = [Job(processors=1, run=9), Job(processors=2, run=5, requested=8), Job(submit=2, processors=2, run=10)]
    goal = {"wait_max": 1.0, "slowdown_mean": 2.0, "turnaround_mean": 0.5}
    from simmodel.scheduling.objectives import Objective

    def scores(scale: str, candidates: Any) -> list[float]:
        return simulate(4, jobs, Portfolio(candidates, Objective(goal, scale=scale))).choices["score"].tolist()

    easy = policy("easy")
    with_a_function = {"wfp": "wfp+easy", "sjf": "sjf+easy", "own": lambda view: easy.decide(view)}
    for scale in ("raw", "mean", "min-max"):
        assert scores(scale, with_a_function) == pytest.approx(scores(scale, EASIES))


# ---------------------------------------------------------------------- against definitions


@settings(max_examples=up_to(40, 12), deadline=None)
@given(cases(), st.sampled_from(["easy", "sjf+easy", "wfp+easy", "conservative", "conservative-keep", "window", "sjf"]))
def test_one_candidate_gives_its_own_schedule(case: Case, name: str) -> None:
    log = to_workload(case.jobs, case.processors)
    for mode in ("instant", "event"):
        alone = run(log, case.processors, name, decide_on=mode, exclusive=mode == "instant")
        for every in (False, True):
            portfolio = Portfolio([name], every=every)
            assert (
                run(log, case.processors, portfolio, decide_on=mode, exclusive=mode == "instant").starts == alone.starts
            )


class Checked(Portfolio):
    """Check that the chosen policy starts the jobs that its simulated future starts now."""

    def _score(self, view: Any, now: float) -> Any:
        self.futures = [view.simulate(each) for each in self._candidates]
        return super()._score(view, now)

    def decide(self, view: Any) -> Any:
        self.futures = None
        starting = []
        for decision in super().decide(view):
            if isinstance(decision, Start):
                starting.append(decision.work.id)
            yield decision
        if self.futures is not None:
            future = self.futures[self._choices[-1]]
            assert starting == [job for job, _ in future.now]


@settings(max_examples=up_to(40), deadline=None)
@given(
    cases(max_jobs=15, zero_runs=False),
    st.lists(
        st.sampled_from(
            [*EASIES, "conservative", "sjf+conservative", "conservative-keep", "window", "best-fit", "ljf"]
        ),
        min_size=2,
        max_size=4,
        unique=True,
    ),
)
def test_whoever_is_chosen_starts_what_its_future_starts_now(case: Case, names: list[str]) -> None:
    run(to_workload(case.jobs, case.processors), case.processors, Checked(names, "slowdown_mean+wait_max"))


def brute(log: Any, processors: int, portfolio: Portfolio) -> list[Any]:
    env = Environment()
    cluster = Cluster(env, processors, portfolio)
    cluster.view.simulate = brute_simulate(cluster, processors)
    cluster.replay(log)
    env.run()
    return cluster.result().jobs["start"].tolist()


@settings(max_examples=up_to(40), deadline=None)
@given(cases(max_jobs=15), st.sampled_from(["schedtwin", "raw:wait_mean", "bounded_slowdown_max+wait_max"]))
def test_scores_and_schedules_are_those_of_brute_force(case: Case, objective: str) -> None:
    log = to_workload(case.jobs, case.processors)
    slow, fast = Portfolio(EASIES, objective, every=True), Portfolio(EASIES, objective)
    expected = brute(log, case.processors, slow)
    result = simulate(case.processors, log, fast)
    assert np.array_equal(result.jobs["start"], expected, equal_nan=True)
    told, found = slow.scores, result.choices
    told = told.where(np.isin(told["time"], found["time"]))
    if len(told) == len(found):  # else some instants had several decisions
        assert found["score"] == pytest.approx(told["score"], nan_ok=True)
        assert found["chosen"].tolist() == told["chosen"].tolist()


@pytest.mark.long  # drawn jobs by brute force: the test before
def test_the_paper_s_workload_by_brute_force():
    log = schedtwin(seed=3).where(np.arange(up_to(150, 60)))
    portfolio = Portfolio()
    expected = brute(log, 32, portfolio)
    result = simulate(32, log, "portfolio")
    assert result.jobs["start"].tolist() == expected
    assert result.choices["score"].tolist() == portfolio.scores["score"].tolist()
    assert [tuple(row.values()) for row in started_shares(result).rows()] == sorted(
        (tuple(row.values()) for row in portfolio.shares.rows()), key=lambda row: -row[1]
    )
    again = simulate(32, log, "portfolio")
    assert again.jobs["start"].tolist() == expected
    assert again.choices["score"].tolist() == result.choices["score"].tolist()


# ---------------------------------------------------------------------- state of a portfolio


def test_a_fresh_one_has_the_same_settings_and_nothing_chosen():
    used = Portfolio(EASIES, "wait_mean", ties=("sjf+easy",), interval=5, hysteresis=0.2, horizon=9, every=True)
    simulate(4, busy_until_100((1, 5)), used)
    assert used.current is None, "a run has its own"
    told(at((1, 2)), portfolio := Portfolio([first, last], same), 5)
    assert (portfolio.current, len(portfolio.scores)) == ("first", 2)
    fresh = portfolio.fresh()
    assert (fresh.current, len(fresh.scores), len(fresh.started_by)) == (None, 0, 0)
    again = used.fresh()
    for name in ("objective", "ties", "interval", "hysteresis", "horizon", "every", "estimates"):
        assert getattr(again, name) == getattr(used, name)
    assert list(again.policies) == list(used.policies)
    assert all(again.policies[label] is not used.policies[label] for label in EASIES)


def test_what_it_remembers_is_plain_and_comes_back():
    portfolio = Portfolio([first, last], same, interval=20)
    told(at((2, 1)), portfolio, 5)
    state = portfolio.state()
    assert state == {"current": "last", "chosen_at": 0, "policies": {}}
    assert Portfolio([first, last], same).state() == {"current": None, "chosen_at": None, "policies": {}}
    other = Portfolio([first, last], same, interval=20)
    other.restore(state)
    assert (other.current, other.state()) == ("last", state)
    with pytest.raises(InputError, match="unknown portfolio policy 'last'"):
        Portfolio([first], same).restore(state)


def test_a_portfolio_can_be_a_candidate_and_preemption_is_never_skipped():
    jobs = busy_until_100((1, 50), (90, 10))
    inner = Portfolio(EASIES, "wait_mean")
    outer = Portfolio({"inner": inner, "fcfs": "easy"}, "wait_mean")
    result = simulate(4, jobs, outer)
    assert result.jobs["start"].tolist() == [0, 110, 100]
    assert Portfolio(["preemptive", "easy"]).preempts
    assert not Portfolio(["easy"]).preempts


def test_fair_share_is_attached():
    jobs = [Job(submit=at, processors=4, run=10, user=user) for at, user in ((0, "a"), (1, "a"), (2, "b"))]
    alone = simulate(4, jobs, "multifactor+easy")
    assert alone.jobs["start"].tolist() == [0, 20, 10]
    assert simulate(4, jobs, Portfolio(["multifactor+easy"])).jobs["start"].tolist() == [0, 20, 10]


@settings(max_examples=up_to(25), deadline=None)
@given(
    cases(max_jobs=15),
    st.floats(0.05, 0.95),
    st.sampled_from(
        ["conservative-keep", "wfp+easy, conservative-keep", "wfp+easy, multifactor+easy, sjf+conservative"]
    ),
    st.sampled_from(["", ", interval=7", ", hysteresis=0.3, interval=3"]),
)
def test_a_run_that_is_cut_goes_on_as_the_uncut_one(case: Case, part: float, policies: str, options: str) -> None:
    name = f"portfolio({policies}{options})"
    log = to_workload(case.jobs, case.processors)
    whole = simulate(case.processors, log, name)
    at = part * whole.ended
    env = Environment()
    cluster = Cluster(env, case.processors, name)
    cluster.replay(log)
    if at <= 0:
        return
    env.run(until=at)
    snapshot = cluster.snapshot()
    assert type(snapshot).from_json(snapshot.to_json()) == snapshot
    rest = simulate(snapshot)
    later = whole.jobs.where(np.isin(whole.jobs["job"], rest.jobs["job"]))
    assert rest.jobs["job"].tolist() == later["job"].tolist()
    assert rest.jobs["start"].tolist() == later["start"].tolist()
    begun = later["start"] >= at  # the first part has the policies that started the others
    assert rest.jobs["started_by"][begun].tolist() == later["started_by"][begun].tolist()


# ---------------------------------------------------------------------- invalid input


def test_a_view_that_cannot_simulate_is_refused():
    env = Environment()
    cluster = Cluster(env, 4, "portfolio")
    cluster.view.simulate = None
    cluster.submit(Job(processors=1, run=1))
    with pytest.raises(PolicyError, match=r"portfolio at 0\.0: must have a view with simulate\(\)"):
        env.run()


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        ([], {}, "policies: must have at least one policy for the portfolio"),
        ("easy", {}, "policies: must be a list of policies, got 'easy'"),
        (["esay"], {}, "unknown policy 'esay'; did you mean 'easy'"),
        (["easy", policy("easy")], {}, "duplicate policy 'easy'"),
        (["easy"], {"ties": ["sjf"]}, "unknown tie policy 'sjf'"),
        (["easy"], {"interval": 0}, r"interval: must be a finite number > 0 \(s\), got 0"),
        (["easy"], {"horizon": -1}, r"horizon: must be a finite number > 0 \(s\), got -1"),
        (["easy"], {"hysteresis": -0.1}, "hysteresis: must be a finite number >= 0, got -0.1"),
        (["easy"], {"objective": "speed"}, "unknown measure 'speed'"),
    ],
)
def test_wrong_portfolios_get_one_sentence(given, options, sentence):
    with pytest.raises(InputError, match=sentence):
        Portfolio(given, **options)


# ---------------------------------------------------------------------- as text


def test_portfolios_are_named():
    named = policy("portfolio")
    assert (tuple(named.policies), named.ties, str(named.objective)) == (EASIES, EASIES, str(Portfolio().objective))
    text = (
        "portfolio(fcfs, wfp, conservative, backfill=easy, objective=raw:0.5*wait_max+2*wait_mean, "
        "ties=wfp>fcfs, interval=60, hysteresis=0.05, horizon=3600, estimates=actual)"
    )
    found = policy(text)
    assert [each.name for each in found.policies.values()] == ["easy", "wfp+easy", "conservative"]
    assert tuple(found.policies) == ("fcfs", "wfp", "conservative")
    assert found.ties == ("wfp", "fcfs", "conservative")
    assert (found.interval, found.hysteresis, found.horizon, found.estimates) == (60, 0.05, 3600, "actual")
    assert str(found.objective) == "raw:0.5*wait_max+2*wait_mean"
    assert "portfolio" in policy_names()
    nested = policy("portfolio(portfolio(easy, sjf+easy), ljf)")
    assert tuple(nested.policies) == ("portfolio(easy, sjf+easy)", "ljf")
    assert split_names("easy, portfolio(a, b(c, d)) ,sjf") == ["easy", "portfolio(a, b(c, d))", "sjf"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "portfolio(easy, intreval=3)",
            "unknown parameter 'intreval'; did you mean 'interval'",
        ),
        ("portfolio(easy, interval=soon)", r"interval: must be a finite number > 0 \(s\), got 'soon'"),
        ("portfolio(easy, easy)", "duplicate policy 'easy'"),
        ("portfolio(fcfs, backfill=eager)", "unknown policy 'eager'"),
        ("folio(easy)", "unknown policy 'folio'; did you mean 'portfolio'"),
    ],
)
def test_wrong_texts_get_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence):
        policy(text)


def test_a_named_portfolio_can_be_repeated():
    from simmodel.runs.scenario import Scenario

    jobs = busy_until_100((1, 50), (90, 10))
    result = simulate(4, jobs, "portfolio(easy, sjf+easy, objective=slowdown_mean)")
    assert result.name == "portfolio"
    again = Scenario.from_document(result.scenario).run(workload=jobs)
    assert again.jobs["start"].tolist() == result.jobs["start"].tolist()
    assert result.scenario["policy"] == "portfolio(easy, sjf+easy, objective=slowdown_mean)"


@pytest.mark.parametrize("levels", [51, 100_000])
def test_portfolios_too_deep_in_each_other_are_refused(levels: int) -> None:
    with pytest.raises(InputError, match=f"policy: must be nested at most 50 deep, got {levels:,} levels"):
        policy("portfolio(" * levels + "easy" + ")" * levels)
