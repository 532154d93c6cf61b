"""Mixtures: each set keeps its tasks, their order and their data, and shares add up."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.foundation.errors import InputError
from simmodel.generators.tasksets import database, mix, mixture, random_tasks
from simmodel.work.task import Task
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    order=st.sampled_from(["shuffled", "blocks"]),
    seed=st.integers(0, 99),
)
def test_a_mixture_keeps_each_of_its_sets(lengths, order, seed) -> None:
    sets = [
        random_tasks(n, objects=1, cores=(1, 3), rng=rng(i)) if i % 2 else database(n, fan_in=2, rng=rng(i))
        for i, n in enumerate(lengths)
    ]
    work = mix(sets, order=order, rng=rng(seed))
    flow = work.workflow()
    assert len(work) == sum(lengths)
    begin = 0
    for each in sets:
        rows = [work.run.index(seconds) for seconds in each.run]
        assert rows == sorted(rows)
        if order == "blocks":
            assert rows == [*range(begin, begin + len(each))]
            begin += len(each)
        for i, row in enumerate(rows):
            assert (work.families[row] if work.families else None) == (each.families[i] if each.families else None)
            assert (work.cores[row] if work.cores else 1) == (each.cores[i] if each.cores else 1)
            assert [file.size for file in flow.reads(row)] == [each.sizes[d] for d in each.inputs[i]]
            assert list(flow.parents(row)) == [rows[parent] for parent in (each.parents or [()] * len(each))[i]]


def test_ids_and_names_of_a_mixture() -> None:
    one = Workflow([Task(id="a", run=1), Task(id="b", run=1)], [("a", "b", 5)], name="one")
    two = Workflow([Task(id="c", run=1)], name="two")
    assert list(mix([one, two], order="blocks", rng=rng()).ids) == ["a", "b", "c"]
    both = mix([one, one], order="blocks", rng=rng())
    assert list(both.ids) == ["one0/a", "one0/b", "one1/a", "one1/b"]
    assert both.names == ["one0/a->b", "one1/a->b"]
    numbers = mix([TaskSet([1.0], ids=[7]), TaskSet([1.0], ids=[7])], rng=rng())
    assert list(numbers.ids) == [0, 1]
    some = mix([one, database(2, rng=rng())], order="blocks", rng=rng())
    assert list(some.ids) == ["a", "b", 0, 1]
    assert some.names == ["one/a->b", "database/d0", "database/d1", "database/d2"]
    with pytest.raises(InputError, match="reconfiguration: must have one time to load family 'f', got 1 and 2 s"):
        mix([TaskSet([1.0], reconfiguration={"f": k}) for k in (1, 2)], rng=rng())
    with pytest.raises(InputError, match="works: must be at least one task set, got none"):
        mix([], rng=rng())
    with pytest.raises(InputError, match="order: must be 'shuffled' or 'blocks', got 'x'"):
        mix([two], order="x", rng=rng())


@given(st.integers(4, 60), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_shares_add_up(tasks, shares) -> None:
    made = []

    def part(n, rng):
        made.append(n)
        return random_tasks(n, rng=rng)

    try:
        work = mixture(tasks, [(each, part) for each in shares], rng=rng())
    except InputError as error:
        assert "must be at least one task for each of" in str(error)  # noqa: PT017 - whether it fails depends on the shares
        return
    assert len(work) == sum(made) == tasks
    assert all(abs(n - each / sum(shares) * tasks) < 1 for n, each in zip(made, shares, strict=True))


def test_wrong_shares() -> None:
    with pytest.raises(InputError, match=r"parts\[0\].share: must be a share > 0, got 0"):
        mixture(5, [(0, random_tasks)], rng=rng())
    with pytest.raises(InputError, match="parts: must not be empty"):
        mixture(5, [], rng=rng())
