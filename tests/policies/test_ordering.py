"""Keys of orders by hand, fair share, and usage."""

import pickle
from math import log2, log10, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.policies import Backfill
from simmodel.policies.multifactor import Multifactor
from simmodel.policies.ordering import ORDERS, Order, order
from simmodel.runs.scenario import simulate
from simmodel.scheduling.column_index import ColumnIndex
from simmodel.scheduling.registry import policy
from simmodel.scheduling.usage import Usage
from simmodel.work.job import Job, LiveJob


def waiting(processors, requested, submit=0.0, user=None):
    job = LiveJob(1, 0, submit, processors, requested, requested, requested)
    job.user = user
    return job


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("sjf", 200.0),
        ("ljf", -200.0),
        ("smallest", 16),
        ("largest", -16),
        ("f1", log10(200) * 16 + 870 * log10(1000)),
        ("f2", sqrt(200) * 16 + 25600 * log10(1000)),
        ("f3", 200 * 16 + 6860000 * log10(1000)),
        ("f4", 200 * sqrt(16) + 530000 * log10(1000)),
    ],
)
def test_static_keys_are_as_by_hand(name, key):
    assert order(name).key(waiting(16, 200.0, 1000.0)) == pytest.approx(key)


def test_keys_of_wfp_and_unicef_grow_with_the_wait():
    """After 400 s of waiting a job of 200 s and 16 processors has waited twice its request."""
    job = waiting(16, 200.0, 1000.0)
    assert order("wfp").key(job, 1400.0) == -(2**3) * 16
    assert order("unicef").key(job, 1400.0) == -2 / log2(16)
    assert order("unicef").key(waiting(1, 200.0, 1000.0), 1400.0) == -2  # one processor counts as two


@pytest.mark.parametrize("name", [name for name, make in ORDERS.items() if make().changes])
@given(
    jobs=st.lists(
        st.tuples(st.integers(1, 64), st.integers(0, 500), st.integers(0, 90), st.integers(1, 3)), min_size=1
    ),
    now=st.integers(90, 9000),
)
def test_scores_of_all_jobs_are_their_keys(name, jobs, now):
    rank = order(name)
    if hasattr(rank, "usage"):
        for user in (1, 2):
            rank.usage.change(user, 5.0 * user, 0.0)
    env = Environment(initial_time=float(now))
    columns = ColumnIndex(rank, env)
    live = [waiting(p, float(r), float(s), u) for p, r, s, u in jobs]
    for number, job in enumerate(live):
        job.seq = number
        columns.add(job)
    in_rows = sorted(live, key=lambda job: (job.submit, job.seq))
    columns._pack()
    expected = [rank.key(job, float(now)) for job in in_rows]
    assert np.asarray(rank.scores(float(now), columns)).tolist() == pytest.approx(expected, rel=1e-12)


@given(
    st.floats(1, 1e4),
    st.lists(st.tuples(st.floats(0.01, 50), st.integers(-3, 5)), min_size=1, max_size=20),
)
def test_usage_is_the_integral_of_what_is_held_with_decay(half_life, changes):
    """Compare with the sum over constant pieces of processors x the integral of 2^(-age / half-life)."""
    usage, now, held, pieces = Usage(half_life), 0.0, 0, []
    for gap, change in changes:
        pieces.append((now, now + gap, held))
        now += gap
        usage.change("ann", change, now)
        held += change
    rate = np.log(2) / half_life
    expected = sum(
        level * (np.exp(-rate * (now - end)) - np.exp(-rate * (now - begin))) / rate for begin, end, level in pieces
    )
    assert usage.of("ann", now) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_usage_without_decay_is_processor_seconds():
    usage = Usage()
    usage.change("ann", 3, 0)
    usage.change("bob", 1, 5)
    usage.change("ann", -3, 10)
    assert (usage.of("ann", 100), usage.of("bob", 10), usage.total(10), usage.share("ann", 10)) == (30, 5, 35, 30 / 35)


def test_fair_share_favours_who_has_used_less():
    """Ann fills the machine first; when both wait again, Bob's jobs precede hers, although they arrived later."""
    jobs = [Job(processors=4, run=100, user="ann") for _ in range(3)]
    jobs += [Job(submit=50, processors=4, run=100, user="bob") for _ in range(2)]
    policy = Multifactor(age=0, size=0, fair_share=1)
    # At 100 Ann has used 400 processor seconds, Bob none; at 200 both 400, and Ann arrived first; at 300 Bob is next.
    assert simulate(4, jobs, policy).jobs["start"].tolist() == [0, 200, 400, 100, 300]


def test_shares_of_users_weigh_their_usage():
    jobs = [Job(processors=4, run=100, user="ann") for _ in range(4)] + [
        Job(processors=4, run=100, user="bob") for _ in range(2)
    ]
    policy = Multifactor(age=0, size=0, fair_share=1, shares={"ann": 3, "bob": 1}, half_life=1e9)
    starts = simulate(4, jobs, Backfill(policy, "easy")).jobs["start"]
    assert sorted(starts.tolist()) == [0, 100, 200, 300, 400, 500]
    # Ann has three times the share, so she gets three of the first four slots.
    assert (starts[:4] < 400).sum() == 3


def test_multifactor_by_age_or_by_size_alone_orders_by_it():
    jobs = [Job(processors=4, run=10), Job(submit=1, processors=1, run=10), Job(submit=2, processors=4, run=10)]
    by_age = Multifactor(age=1, size=0, fair_share=0)
    by_size = Multifactor(age=0, size=1, fair_share=0)
    small = Multifactor(age=0, size=1, fair_share=0, small_first=True)
    assert simulate(4, jobs, by_age).jobs["start"].tolist() == [0, 10, 20]
    assert simulate(4, jobs, by_size).jobs["start"].tolist() == [0, 20, 10]
    assert simulate(4, jobs, small).jobs["start"].tolist() == [0, 10, 20]


def test_a_policy_with_a_history_starts_each_run_without_one():
    policy = Multifactor()
    jobs = [Job(submit=i, processors=1 + i % 4, run=30, user=i % 3) for i in range(60)]
    first = simulate(4, jobs, policy).jobs["start"].tolist()
    assert simulate(4, jobs, policy).jobs["start"].tolist() == first
    assert policy.usage.users() == []


def test_orders_and_their_policies_go_to_other_processes():

    for name, make in ORDERS.items():
        copy = pickle.loads(pickle.dumps(make()))
        assert copy is make() if name != "multifactor" else copy.age == make().age
        assert pickle.loads(pickle.dumps(policy(f"{name}+easy"))).name == policy(f"{name}+easy").name
    assert pickle.loads(pickle.dumps(Order("narrow", key=len))).key is len


@pytest.mark.parametrize(
    ("parameters", "starts"),
    [("size=1", [0, 20, 10]), ("size=1, small_first=true", [0, 10, 20]), ("size=0", [0, 10, 20])],
)
@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_an_order_with_parameters_backfills(parameters, starts, backfill):
    jobs = [Job(id=i, submit=i, processors=width, run=10) for i, width in enumerate((4, 1, 4))]
    rule = f"multifactor(age=0, fair_share=0, {parameters})+{backfill}"
    assert simulate(4, jobs, rule).jobs["start"].tolist() == starts


def test_parameters_of_orders_are_checked():
    assert policy("multifactor(age=7)+easy").order.age == 7
    with pytest.raises(InputError, match="unknown parameter 'agee'; did you mean 'age'"):
        policy("multifactor(agee=7)+easy")
    with pytest.raises(InputError, match="too many positional arguments"):
        policy("sjf(7)+easy")


@given(st.lists(st.tuples(*[st.integers(0, 40)] * 3, st.integers(1, 5)), min_size=1, max_size=30))
def test_keys_of_any_kind_may_change(rows):
    jobs = [
        Job(id=i, submit=submit, run=1 + run, requested=60 + more, processors=width)
        for i, (submit, run, more, width) in enumerate(rows)
    ]
    for key in (lambda job: (job.processors % 2, -job.submit), lambda job: "abc"[job.processors % 3]):
        for over in (
            lambda rule: rule,
            lambda rule: Backfill(rule, "easy"),
            lambda rule: Backfill(rule, "conservative"),
        ):
            once = simulate(5, jobs, over(Order("once", key=key)))
            anew = simulate(5, jobs, over(Order("anew", key=lambda job, now, key=key: key(job), changes=True)))
            assert anew.jobs["start"].tolist() == once.jobs["start"].tolist()


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("backfill", [None, "easy", "conservative"])
@pytest.mark.parametrize("key", [lambda job, *_: job.run, lambda job, *_: float("nan")])
def test_a_key_that_cannot_be_compared_is_refused(changes, backfill, key):
    rule = Order("mine", key=key, changes=changes)
    jobs = [Job(id=i, run=10, processors=3) for i in range(4)]
    with pytest.raises(
        PolicyError, match=r"job \d: the key of the order is .*(None|nan).*`requested` is its requested"
    ):
        simulate(4, jobs, rule if backfill is None else Backfill(rule, backfill))
