"""HEFT, CPOP, PEFT and HEFT with lookahead: published examples, cases by hand, oracles, invariants of plans."""

from itertools import pairwise
from math import inf
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from simmodel.foundation.errors import InputError
from simmodel.policies.planners import list_scheduling, timetable
from simmodel.policies.planners.list_scheduling import (
    cpop,
    critical_path,
    critical_processor,
    downward_ranks,
    heft,
    lookahead_heft,
    optimistic_costs,
    optimistic_ranks,
    peft,
    upward_ranks,
)
from simmodel.policies.planners.timetable import IdleGaps, Timetable
from simmodel.scheduling.problem import Problem
from tests.helpers.examples import up_to
from tests.helpers.list_scheduling_cases import (
    ARABNEJAD,
    TOPCUOGLU,
    apart,
    of_reference,
    problems,
    published,
    reference_examples,
    table,
)
from tests.oracles import list_scheduling as oracle

PLANS = {"heft": heft, "cpop": cpop, "peft": peft, "lookahead": lookahead_heft}


def by_processor(problem, plan):
    """The plan as (task, start, end) by processor, tasks counted from 1."""
    rows = [[] for _ in problem.available]
    for task in plan.order:
        rows[plan.processor[task]].append((task + 1, plan.start[task], plan.finish[task]))
    return rows


def rounded(numbers):
    return [round(number, 4) for number in numbers]


# ---------------------------------------------------------------------- the published examples


def test_the_example_of_the_heft_paper_is_repeated():
    problem = published(TOPCUOGLU)
    assert rounded(upward_ranks(problem)) == TOPCUOGLU["rank_u"]
    assert [task + 1 for task in critical_path(problem)] == [1, 2, 9, 10]
    assert critical_processor(problem, critical_path(problem)) == 1
    for name in ("heft", "cpop"):
        assert by_processor(problem, PLANS[name](problem)) == TOPCUOGLU[name]
    for name, makespan in (("heft", 80), ("cpop", 86), ("peft", 85), ("lookahead", 76)):
        assert PLANS[name](problem).makespan == makespan


def test_the_example_of_the_peft_paper_is_repeated():
    problem = published(ARABNEJAD)
    costs = optimistic_costs(problem)
    assert costs == table(ARABNEJAD["oct"])
    assert rounded(optimistic_ranks(problem, costs)) == ARABNEJAD["rank_oct"]
    assert by_processor(problem, peft(problem)) == ARABNEJAD["peft"]
    for name, makespan in (("heft", 133), ("cpop", 167), ("peft", 122), ("lookahead", 127)):
        assert PLANS[name](problem).makespan == makespan


@pytest.mark.parametrize("example", reference_examples())
def test_ranks_plans_and_paths_are_those_of_the_reference_examples(example):
    problem = of_reference(example)
    names = example["tasks"]
    assert rounded(upward_ranks(problem)) == example["rank_u"]
    assert rounded(downward_ranks(problem)) == example["rank_d"]
    costs = optimistic_costs(problem)
    assert costs == example["oct"]
    assert rounded(optimistic_ranks(problem, costs)) == example["rank_oct"]
    for name, plan in (
        ("HEFT", heft(problem)),
        ("HEFT_no_insertion", heft(problem, insertion=False)),
        ("CPOP", cpop(problem)),
        ("PEFT", peft(problem)),
        ("Lookahead", lookahead_heft(problem)),
    ):
        expected = example["algorithms"][name]
        found = {
            processor: [{"task": names[task - 1], "start": start, "end": end} for task, start, end in row]
            for processor, row in zip(example["processors"], by_processor(problem, plan), strict=True)
        }
        assert found == expected["schedule"], name
        assert plan.makespan == expected["makespan"] >= example["optimal_makespan"], name
        assert round(example["best_sequential"] / plan.makespan, 6) == expected["speedup"]
        assert round(plan.makespan / example["lower_bound_cp_minw"], 5) == round(expected["slr"], 5)
    path = critical_path(problem)
    assert [names[task] for task in path] == example["algorithms"]["CPOP"]["critical_path"]
    assert example["processors"][critical_processor(problem, path)] == example["algorithms"]["CPOP"]["cp_processor"]


def test_ranks_put_tasks_in_the_order_of_the_paper():
    upward = upward_ranks(published(ARABNEJAD))
    assert sorted(range(1, 11), key=lambda task: -upward[task - 1]) == [1, 5, 6, 2, 4, 3, 8, 7, 9, 10]


# ---------------------------------------------------------------------- cases by hand


def test_insertion_shortens_the_plan():
    # a (2, 2), b (2, 6), c (1, 1), d (2, 1); d reads from a, 1 s between the processors. Upward ranks: a 1.5 + 1 + 2 =
    # 4.5, b 4, d 1.5, c 1. a: 0-2 on the first. b: 2-4 there. d: 4-6 there, or 3-4 on the second: second. c fits
    # before it on the second, 0-1, which is idle from 0 to 3: makespan 4. Appended, c runs 4-5.
    problem = apart([[2.0, 2.0], [2.0, 6.0], [1.0, 1.0], [2.0, 1.0]], [(0, 3, 1)])
    assert upward_ranks(problem) == [4.5, 4.0, 1.0, 1.5]
    assert by_processor(problem, heft(problem)) == [[(1, 0, 2), (2, 2, 4)], [(3, 0, 1), (4, 3, 4)]]
    appended = heft(problem, insertion=False)
    assert by_processor(problem, appended) == [[(1, 0, 2), (2, 2, 4), (3, 4, 5)], [(4, 3, 4)]]
    assert (heft(problem).makespan, appended.makespan) == (4, 5)


def test_tasks_of_no_length_stand_between_two_that_follow_each_other():
    # The chain 3, 4, 5 takes 2 s if the tasks of no length need not wait for the end of those that are placed.
    run = [[0.0, 0.0], [2.0, 2.0], [1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]
    problem = Problem(run, [(), (), (), ((2, 0.0),), ((3, 0.0),)], [[0, 0], [0, 0]], [[0, 0], [0, 0]])
    assert heft(problem).makespan == 2.0
    # Two blocks on one processor, and a task of no length whose parent ends at their boundary on the other one.
    run = [[3.0, inf], [2.0, inf], [inf, 3.0], [0.0, inf]]
    problem = Problem(run, [(), (), (), ((2, 0.0),)], [[0, 0], [0, 0]], [[0, 0], [0, 0]])
    assert by_processor(problem, heft(problem)) == [[(1, 0, 3), (4, 3, 3), (2, 3, 5)], [(3, 0, 3)]]
    assert heft(problem, insertion=False).start[3] == 5.0


def test_processors_of_one_pool_have_nothing_between_them():
    # Three processors, the first two on one pool. a: 0-4 on the first. Of its children one follows there, one starts at
    # once on the second, and the third queues, as it would wait 10 s for its data on the last.
    run = [[4.0, 9.0, 9.0], [4.0, 4.0, 4.0], [4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]
    problem = Problem(run, [(), ((0, 1.0),), ((0, 1.0),), ((0, 1.0),)], [[0, 0], [0, 0]], [[0, 10], [10, 0]],
                      pools=[0, 0, 1])  # fmt: skip
    assert by_processor(problem, heft(problem)) == [[(1, 0, 4), (2, 4, 8), (4, 8, 12)], [(3, 4, 8)], []]
    # The means over the six ordered pairs, two of which share a pool, and over the other four.
    assert problem.mean_transfer(3.0) == 20.0
    assert problem.mean_link(unlike_pools=True) == (0.0, 10.0)


def test_pools_are_found_from_distances():
    far = [[0, 0, 5, 5], [0, 0, 5, 5], [5, 5, 0, 1], [5, 5, 1, 0]]
    problem = Problem([[1.0] * 4], [()], far, [[0] * 4] * 4)
    assert problem.pools == [0, 0, 1, 2]
    assert problem.links[1] == [(5, 0), (0, 0), (1, 0)]


def test_plans_begin_when_processors_are_free_and_data_are_there():
    problem = Problem([[4.0, 4.0]], [()], [[0, 1], [1, 0]], [[0, 0], [0, 0]], now=10.0, available=[30.0, 12.0],
                      arrival=[[10.0, 27.0]])  # fmt: skip
    assert heft(problem)[:3] == ([1], [27.0], [31.0])


def test_a_task_that_can_run_nowhere_and_a_circle_are_refused():
    with pytest.raises(InputError, match="no processor can run task"):
        heft(Problem([[inf, inf]], [()], [[0, 1], [1, 0]], [[0, 0], [0, 0]]))
    with pytest.raises(InputError, match="tasks form a cycle: 0, 1"):
        Problem([[1.0], [1.0]], [((1, 0.0),), ((0, 0.0),)], [[0]], [[0]])


def test_an_empty_problem_has_an_empty_plan():
    problem = Problem([], [], [[0]], [[0]])
    for plan in PLANS.values():
        assert (plan(problem).order, plan(problem).makespan) == ([], 0.0)


def test_cores_of_a_processor_are_shared():
    # Two processors of 4 cores: 3 + 1 cores at once on the first (6 s and 10 s), 2 cores on the second.
    problem = Problem([[6.0, 7.0], [10.0, 12.0], [5.0, 6.0]], [(), (), ()], [[0, 0], [0, 0]], [[0, 0], [0, 0]],
                      cores=[3, 1, 2], capacity=[4, 4])  # fmt: skip
    plan = heft(problem)
    assert (plan.processor, plan.start, plan.finish) == ([0, 0, 1], [0.0, 0.0, 0.0], [6.0, 10.0, 6.0])


def test_a_profile_has_the_first_time_at_which_cores_are_free():
    profile = IdleGaps(4, at=5.0)
    profile.take(5.0, 9.0, 3)
    profile.take(7.0, 12.0, 1)
    assert profile.earliest(0.0, 2.0, 1) == 5.0
    assert profile.earliest(0.0, 3.0, 1) == 9.0
    assert profile.earliest(0.0, 1.0, 4) == 12.0
    assert profile.earliest(8.0, 1.0, 3) == 9.0


# ---------------------------------------------------------------------- against the oracles


def rows(plan):
    return list(zip(plan.processor, plan.start, plan.finish, strict=True))


@settings(max_examples=up_to(100), deadline=None)
@given(problems())
def test_ranks_and_plans_are_those_of_the_oracle(drawn):
    problem, case = drawn
    tasks = range(case.n)
    assert upward_ranks(problem) == [case.upward(task) for task in tasks]
    assert downward_ranks(problem) == [case.downward(task) for task in tasks]
    assert [[row[q] for q in problem.pools] for row in optimistic_costs(problem)] == [
        [case.optimistic(task, j) for j in range(case.p)] for task in tasks
    ]
    assert rows(heft(problem)) == oracle.heft(case)
    assert rows(heft(problem, insertion=False)) == oracle.heft(case, insertion=False)
    assert rows(cpop(problem)) == oracle.cpop(case)
    assert rows(peft(problem)) == oracle.peft(case)
    assert rows(lookahead_heft(problem)) == oracle.lookahead(case)


@settings(max_examples=up_to(60), deadline=None)
@given(problems())
def test_many_parents_and_pools_give_the_same(drawn):
    problem, _ = drawn
    costs = optimistic_costs(problem)
    plans = [plan(problem) for plan in PLANS.values()]
    with (
        patch.object(timetable, "MANY", 1),
        patch.object(list_scheduling, "MANY", 1),
        patch.object(Timetable, "_with_uniform", lambda self, ready, parents, *_: self._with_many(ready, parents)),
    ):
        assert optimistic_costs(problem) == costs
        assert [plan(problem) for plan in PLANS.values()] == plans


@settings(max_examples=up_to(60), deadline=None)
@given(problems(max_tasks=4, max_processors=3))
def test_no_plan_is_better_than_the_best_there_is(drawn):
    problem, case = drawn
    least = oracle.optimum(case)
    for name, plan in PLANS.items():
        assert plan(problem).makespan >= least, name


# ---------------------------------------------------------------------- invariants of plans


@settings(max_examples=up_to(100), deadline=None)
@given(problems(max_tasks=14))
def test_plans_keep_precedence_and_processors(drawn):
    problem, case = drawn
    for name, make in PLANS.items():
        plan = make(problem)
        for task in range(case.n):
            j = plan.processor[task]
            assert plan.finish[task] == plan.start[task] + case.run[task][j] < inf, name
            assert plan.start[task] >= max(case.available[j], case.arrival[task][j])
            for parent in case.parents[task]:
                moved = case.move(plan.processor[parent], j, case.edges[parent, task])
                assert plan.start[task] >= plan.finish[parent] + moved
        # In the order of the queues no two tasks of a processor overlap, and no task precedes its parents.
        place = {task: i for i, task in enumerate(plan.order)}
        assert sorted(plan.order) == list(range(case.n))
        assert all(place[a] < place[b] for a, b in case.edges)
        for j in range(case.p):
            queue = [task for task in plan.order if plan.processor[task] == j]
            for one, next_one in pairwise(queue):
                assert plan.finish[one] <= plan.start[next_one], name
        # No plan beats the longest path in least run times, nor all work spread evenly.
        least = [min(row) for row in case.run]
        ends = {}
        for task in problem.order:
            ends[task] = least[task] + max([ends[parent] for parent in case.parents[task]], default=case.now)
        assert plan.makespan >= max(ends.values())
        assert plan.makespan >= case.now + sum(least) / case.p


@settings(max_examples=up_to(60), deadline=None)
@given(problems(extras=False))
def test_one_processor_is_never_idle(drawn):
    _, case = drawn
    run = [[min(row)] for row in case.run]
    parents = [[(a, size) for (a, b), size in case.edges.items() if b == task] for task in range(case.n)]
    problem = Problem(run, parents, [[0.0]], [[0.0]])
    for plan in PLANS.values():
        assert plan(problem).makespan == sum(row[0] for row in run)
