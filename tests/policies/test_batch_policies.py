"""Every batch policy, start by start, against brute force on random cases."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.experiments import compare_brokers
from simmodel.foundation.errors import InputError
from simmodel.policies import Backfill, Easy
from simmodel.policies.window import Window
from simmodel.resources.pools.profile import CountProfile
from simmodel.runs.scenario import simulate as simulate_jobs
from simmodel.scheduling.registry import policy, policy_names
from simmodel.work.job import Job as Request
from simmodel.work.workload import Workload
from tests.helpers.batch_cases import cases, to_workload
from tests.helpers.batch_runs import run
from tests.helpers.examples import up_to
from tests.helpers.new_process import printed
from tests.oracles.batch import ORDERS, Job, simulate

PLAIN = sorted(ORDERS)
NAMES = [
    *PLAIN,
    "easy",
    "easy-sjbf",
    "sjf+easy",
    "wfp+easy",
    "largest+easy",
    "f3+easy",
    "conservative",
    "sjf+conservative",
    "unicef+conservative",
    "best-fit",
    "window",
    "sjf+window",
]


def workload_of(case):
    """The case as a workload whose jobs all have the same priority."""
    full = to_workload(case.jobs, case.processors)
    return Workload({name: full[name] for name in ("submit", "run", "requested", "processors", "user")}, name="drawn")


@pytest.mark.few(12)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=up_to(150), deadline=None)
@given(case=cases(max_jobs=14, dirty=True), overrun=st.sampled_from(["stop", "continue"]))
def test_starts_as_brute_force_says(name, case, overrun):
    expected = simulate(case.jobs, case.processors, name, overrun=overrun)
    assert run(workload_of(case), case.processors, name, overrun=overrun).starts == expected


@pytest.mark.few(6)
@pytest.mark.parametrize("name", ["fcfs", "easy", "easy-sjbf", "conservative", "sjf+easy"])
@pytest.mark.parametrize("order", ["submits-first", "ends-first"])
@settings(max_examples=up_to(100), deadline=None)
@given(
    case=cases(max_jobs=14),
    overrun=st.sampled_from(["stop", "continue"]),
    estimates=st.sampled_from(["requested", "exact", "cqsim"]),
)
def test_starts_as_brute_force_says_event_by_event(name, order, case, overrun, estimates):
    options = {"decide_on": "event", "event_order": order, "overrun": overrun, "estimates": estimates}
    expected = simulate(case.jobs, case.processors, name, **options)
    watch = run(workload_of(case), case.processors, name, exclusive=order == "ends-first", **options)
    assert watch.starts == expected


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["conservative-keep", "sjf+conservative-keep"])
@pytest.mark.parametrize("decide_on", ["instant", "event"])
@settings(max_examples=up_to(150), deadline=None)
@given(case=cases(max_jobs=12, zero_runs=False), estimates=st.sampled_from(["requested", "exact"]))
def test_promises_only_move_earlier_and_are_kept(name, decide_on, case, estimates):
    options = {"decide_on": decide_on, "event_order": "ends-first", "estimates": estimates}
    watch = run(workload_of(case), case.processors, name, **options)
    assert watch.starts == simulate(case.jobs, case.processors, name, **options)
    for row, promises in watch.promises.items():
        for (_, earlier), (_, later) in pairwise(promises):
            assert later < earlier
        assert watch.starts[row] <= promises[-1][1]


@settings(max_examples=up_to(150), deadline=None)
@given(case=cases(max_jobs=14), name=st.sampled_from(["fcfs", "sjf", "largest"]))
def test_recording_promises_changes_nothing(case, name):
    workload = workload_of(case)
    for kind in ("easy", "conservative"):
        plain = run(workload, case.processors, Backfill(name, kind))
        recorded = run(workload, case.processors, Backfill(name, kind, promises=True))
        assert recorded.starts == plain.starts


@settings(max_examples=up_to(150), deadline=None)
@given(case=cases(max_jobs=16, overruns=False))
def test_easy_starts_the_head_no_later_than_promised(case):
    """With fcfs the head stays the head, and jobs that start before it never delay it."""
    watch = run(workload_of(case), case.processors, Easy(promises=True))
    for row, promises in watch.promises.items():
        assert all(watch.starts[row] <= at for _, at in promises)


@settings(max_examples=up_to(100), deadline=None)
@given(case=cases(max_jobs=14), name=st.sampled_from([*PLAIN, "easy", "conservative", "best-fit", "window"]))
def test_the_same_jobs_as_requests_start_at_the_same_times(case, name):
    jobs = [
        Request(
            id=i,
            submit=job.submit,
            run=job.run,
            requested=job.requested if job.requested and job.requested > 0 else None,
            processors=job.processors,
        )
        for i, job in enumerate(case.jobs)
    ]
    watch = run(Workload.from_jobs(jobs), case.processors, name)
    assert watch.starts == run(workload_of(case), case.processors, name).starts


@settings(max_examples=up_to(60), deadline=None)
@given(case=cases(max_jobs=9), size=st.integers(1, 4), planning=st.sampled_from(["list", "hole"]))
def test_windows_of_other_sizes_start_as_brute_force_says(case, size, planning):
    expected = simulate(case.jobs, case.processors, "window", window=size, planning=planning)
    assert run(workload_of(case), case.processors, Window(size=size, planning=planning)).starts == expected


def test_a_window_of_like_jobs_is_planned_in_one_order(monkeypatch):
    """Five jobs have 120 orders, all as good as the first: each job is planned once."""
    asked = []
    earliest = CountProfile.earliest
    monkeypatch.setattr(CountProfile, "earliest", lambda self, *need: asked.append(need) or earliest(self, *need))
    jobs = [Request(id=i, submit=0, run=10, processors=1) for i in range(5)]
    simulate_jobs(2, jobs, "window", until=5)
    assert len(asked) == 5


@settings(max_examples=up_to(100), deadline=None)
@given(case=cases(max_jobs=14), candidates=st.sampled_from(["ljf", "smallest", "wfp", "f1"]))
def test_easy_with_candidates_in_another_order(case, candidates):
    expected = simulate(case.jobs, case.processors, "easy", candidates=candidates)
    assert run(workload_of(case), case.processors, Easy(candidates=candidates)).starts == expected


@settings(max_examples=up_to(100), deadline=None)
@given(case=cases(max_jobs=14))
def test_a_higher_priority_goes_first(case):
    """Brute force with the priority in the key, against priorities in the workload."""
    workload = to_workload(case.jobs, case.processors)
    for name, order in (("fcfs", lambda job, now: -job.priority), ("easy", lambda job, now: -job.priority)):
        assert run(workload, case.processors, name).starts == simulate(case.jobs, case.processors, name, key=order)


def test_easy_starts_the_third_of_four_jobs_when_the_second_ends():
    """The third job starts when the second ends: it neither waits for its limit nor loses its promise."""
    jobs = [Job(0, 1000, 1000, 5), Job(900, 500, 500, 5), Job(950, 100, 100, 7), Job(960, 400, 400, 2)]
    assert run(to_workload(jobs), 12, "easy").starts == [0, 900, 1000, 1100]


def test_a_plain_key_function_is_an_order():
    jobs = [Job(0, 10, 10, 4), Job(1, 10, 10, 2), Job(1, 10, 10, 3)]
    assert run(to_workload(jobs), 4, Backfill(lambda job: -job.processors, "none")).starts == [0, 20, 10]


def test_an_order_that_changes_may_be_a_plain_function():
    from simmodel.policies.ordering import WFP, Order

    plain = Order("plain wfp", key=WFP.key, changes=True)
    rng = np.random.default_rng(3)
    columns = {
        "submit": rng.integers(0, 500, 200),
        "run": rng.integers(1, 60, 200),
        "requested": rng.integers(1, 90, 200),
        "processors": rng.integers(1, 16, 200),
    }
    for kind in ("none", "easy"):
        starts = run(Workload(columns), 16, Backfill(plain, kind)).starts
        assert starts == run(Workload(columns), 16, Backfill("wfp", kind)).starts


@pytest.mark.few(6)
@pytest.mark.parametrize("name", sorted(policy_names("jobs")))
def test_every_policy_that_is_listed_runs_every_job(name):
    rng = np.random.default_rng(7)
    columns = {
        "submit": np.sort(rng.integers(0, 1000, 150)),
        "run": rng.integers(0, 100, 150),
        "requested": rng.integers(1, 200, 150),
        "processors": rng.integers(1, 33, 150),
        "user": rng.integers(1, 5, 150),
    }
    watch = run(Workload(columns), 32, name)
    assert all(start is not None for start in watch.starts)
    assert all(start >= submit for start, submit in zip(watch.starts, columns["submit"], strict=True))


@pytest.mark.long
def test_same_seed_same_result_in_other_processes():
    program = (
        "import numpy as np; from tests.helpers.batch_runs import run; from simmodel.work.workload import Workload\n"
        "rng = np.random.default_rng(5)\n"
        "w = Workload({'submit': rng.integers(0, 270, 120), 'run': rng.integers(0, 90, 120),\n"
        "  'requested': rng.integers(1, 90, 120), 'processors': rng.integers(1, 9, 120),\n"
        "  'user': np.array(['u%d' % i for i in rng.integers(0, 9, 120)])})\n"
        "for name in ('easy', 'wfp+easy', 'multifactor', 'conservative-keep', 'best-fit', 'window'):\n"
        "    print(name, hash(tuple(run(w, 8, name).starts)))\n"
    )
    found = {printed(program, seed) for seed in ("0", "1", "4242")}
    assert len(found) == 1
    assert "window" in found.pop()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("esay", "unknown policy 'esay'; did you mean 'easy'?"),
        ("sjff+easy", "unknown order 'sjff'; did you mean 'sjf'?"),
        ("sjf+esy", "unknown policy 'esy'; did you mean 'easy'?"),
        ("EASY", "unknown policy 'EASY'; did you mean 'easy'?"),
        ("nowhere:policy", "policy 'nowhere:policy': No module named 'nowhere'"),
        ("my/rules.py:mine", "policy 'my/rules.py:mine': names a module, not a file: my.rules:mine"),
    ],
)
def test_unknown_names(name, sentence):
    with pytest.raises(InputError) as error:
        policy(name)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("run", "known", "other"),
    [
        (lambda: simulate_jobs(4, [Request(run=1)], "esay"), "fcfs", "heft"),
        (lambda: simulate_jobs("hetsim-fast-setup", "fork-join", "hefft"), "heft", "fcfs"),
        (lambda: simulate_jobs({"a": 4}, [Request(run=1)], "sgst"), "sgs-t", "easy"),
        (lambda: compare_brokers({"a": 4}, {"a": [Request(run=1)]}, ["sgst"]), "sgs-t", "easy"),
    ],
)
def test_unknown_names_are_told_the_policies_that_fit(run, known, other):
    with pytest.raises(InputError, match="did you mean") as error:
        run()
    names = str(error.value).partition("Known policies: ")[2].split(", ")
    assert known in names
    assert other not in names


@pytest.mark.parametrize("size", [0, 9])
def test_a_window_has_one_to_eight_jobs(size: int) -> None:
    assert [Window(size=each).size for each in (1, 8)] == [1, 8]
    with pytest.raises(ValueError, match="size: must be from 1 to 8, got "):
        Window(size=size)
