"""Immediate and batch-mode mapping policies: cases by hand, plain loops, reference runs."""

from math import inf

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, TaskSet, simulate
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.scheduling.protocol import Estimate
from simmodel.scheduling.registry import policy, policy_names
from simmodel.systems.machine.system import Machine
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
from tests.helpers.examples import up_to
from tests.helpers.list_scheduling_cases import ARABNEJAD, TOPCUOGLU, reference_examples, table

ONLINE = ["hrr", "greedy-et", "greedy-ds", "earliest-start", "earliest-finish", "min-min", "max-min", "sufferage"]


class Place:
    """A place of a fake machine, with the costs of tasks and the instant at which its queue becomes empty."""

    queues = True

    def __init__(self, column, available=0.0, setup=0.0, transfer=0.0):
        self.column, self.available, self.setup, self.transfer = column, available, setup, transfer

    def can_run(self, task):
        return self.column[task] < inf

    def expected_run(self, task):
        return self.column[task]

    def expected_setup(self, task, *, now=False):
        return self.setup

    def expected_transfer(self, task):
        return self.transfer


class Pretended:
    """A view of a fake machine; tasks are numbered from 0."""

    def __init__(self, places, waiting=None):
        self.places = places
        self.left = list(range(len(places[0].column)) if waiting is None else waiting)

    @property
    def waiting(self):
        return iter(list(self.left))

    def estimate(self, task, place):
        return Estimate(place.available, place.setup, place.transfer, place.column[task])


def placed(chosen, view):
    """Apply the decisions of a policy; return them in order as (task, place), by position."""
    found = []
    for decision in policy(chosen).decide(view):
        task, place = decision.work, decision.place
        assert place.can_run(task)
        view.left.remove(task)
        place.available = view.estimate(task, place).finish
        found.append((task, view.places.index(place)))
    return found


def machine_of(rows, **each):
    """Return places with run times by task and place, and other properties as one value per place."""
    columns = zip(*rows, strict=True)
    return [Place(column, **{key: values[j] for key, values in each.items()}) for j, column in enumerate(columns)]


# ---------------------------------------------------------------------- immediate mode


def test_round_robin_takes_the_next_that_can_run_it_and_goes_on_there():
    rows = [[1, 1, 1], [inf, inf, 1], [1, inf, 1], [1, inf, 1], [1, 1, 1]]
    hrr = policy("hrr")
    assert placed(hrr, Pretended(machine_of(rows), [0, 1, 2])) == [(0, 0), (1, 2), (2, 0)]
    assert placed(hrr, Pretended(machine_of(rows), [3, 4])) == [(3, 2), (4, 0)]
    assert placed(hrr.fresh(), Pretended(machine_of(rows), [4])) == [(4, 0)]
    assert placed(hrr, Pretended(machine_of(rows), [4])) == [(4, 1)]


def test_the_fastest_execution_looks_at_the_run_alone():
    rows = [[5, 4, 3], [5, 4, inf], [2, 2, 2]]
    view = Pretended(machine_of(rows, available=[0, 100, 100], setup=[0, 50, 50], transfer=[0, 50, 50]))
    assert placed("greedy-et", view) == [(0, 2), (1, 1), (2, 0)]


def test_greedy_ds_adds_setup_and_transfers_and_looks_at_no_queue():
    rows = [[9, 4, 3], [8, 4, 2], [7, 4, 2]]
    view = Pretended(machine_of(rows, available=[0, 100, 100], setup=[0, 3, 3], transfer=[0, 1, 2]))
    assert placed("greedy-ds", view) == [(0, 1), (1, 2), (2, 0)]  # 9 8 8; 8 8 7; 7 8 7


def test_greedy_ds_compares_with_the_family_that_is_loaded_not_with_the_last_one_queued():
    # An FPGA that loads a family in 30 s and runs a task in 10 s; a core that runs it in 35 s. At 0 nothing is loaded,
    # so "b" would take 40 s on the FPGA, although "a", of its family, queues there. At 50 "x" is loaded: "c" takes
    # 10 s. "d" is decided at 51, while "e" of family "y", from 50 on, is queued: still "x" is what the FPGA has.
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name="ram")],
        architectures=[ArchitectureSpec(name="x86"), ArchitectureSpec(name="fabric")],
        processors=[
            ProcessorSpec(name="core", type="CPUCore", architecture="x86", pool="ram"),
            ProcessorSpec(name="fpga", type="FPGA", architecture="fabric", pool="ram", reconfiguration=30),
        ],
    )
    both, alone = {"x86": 35.0, "fabric": 10.0}, {"fabric": 10.0}
    tasks = TaskSet(
        [float("nan")] * 5,
        ids=list("abced"),
        run_on=[alone, both, both, alone, both],
        implementations=[("FPGA",), None, None, ("FPGA",), None],
        families=["x", "x", "x", "y", "x"],
        submit=[0.0, 0.0, 50.0, 50.0, 51.0],
    )
    table = simulate(spec, tasks, "greedy-ds").tasks
    places = dict(zip(table["task"].tolist(), table["processor"].tolist(), strict=True))
    assert places == {"a": "fpga", "b": "core", "c": "fpga", "e": "fpga", "d": "fpga"}
    assert table["end"].tolist() == [40.0, 35.0, 60.0, 100.0, 140.0]


def test_the_earliest_start_looks_at_queues_alone():
    rows = [[9, 1], [9, 1], [9, 1], [9, 1]]
    view = Pretended(machine_of(rows, available=[2, 3], transfer=[0, 7]))
    # 2 versus 3; 11 versus 3; 11 versus 11: the first; 20 versus 11
    assert placed("earliest-start", view) == [(0, 0), (1, 1), (2, 0), (3, 1)]


def test_the_earliest_finish_adds_it_all():
    rows = [[9, 1], [9, 1], [inf, 1]]
    view = Pretended(machine_of(rows, available=[2, 3], transfer=[0, 7]))
    # 11 versus 11: the first; 20 versus 11; only the second
    assert placed("earliest-finish", view) == [(0, 0), (1, 1), (2, 1)]


# ---------------------------------------------------------------------- batch mode


def test_min_min_max_min_and_sufferage_by_hand():
    rows = [[4, 9], [2, 3], [5, 4]]
    # Least end: task 1 (2 on the first); then 6 or 9, 7 or 4: task 2 (4 on the second); then task 0: 6 or 13.
    assert placed("min-min", Pretended(machine_of(rows))) == [(1, 0), (2, 1), (0, 0)]
    # Least ends 4, 2, 4: the first of the latest; then 6 or 3, 9 or 4: task 2; then task 1: 6 or 7.
    assert placed("max-min", Pretended(machine_of(rows))) == [(0, 0), (2, 1), (1, 0)]
    # Loss at the second best: 5, 1, 1: task 0 to the first; then 6 - 3 = 3, 9 - 4 = 5: task 2; then task 1.
    assert placed("sufferage", Pretended(machine_of(rows))) == [(0, 0), (2, 1), (1, 0)]


@pytest.mark.parametrize("name", ["min-min", "max-min", "sufferage"])
def test_batch_mode_adds_setup_and_transfer_to_the_run(name):
    places = {"setup": [0, 2], "transfer": [0, 3]}
    assert placed(name, Pretended(machine_of([[4, 1]], **places))) == [(0, 0)]  # 4 versus 6
    assert placed(name, Pretended(machine_of([[4, 1], [4, 1]], **places))) == [(0, 0), (1, 1)]  # then 8 versus 6


def together(name, rows, starts):
    """The same with new estimates before each choice."""
    starts = list(starts)
    left = list(range(len(rows)))
    found = []
    while left:
        scored = []
        for task in left:
            ends = sorted((start + run, j) for j, (start, run) in enumerate(zip(starts, rows[task], strict=True)))
            first, second = ends[0][0], ends[1][0] if len(ends) > 1 else inf
            score = {"min-min": first, "max-min": -first, "sufferage": first - second}[name]
            scored.append((score, task, ends[0]))
        _, task, (end, j) = min(scored)
        left.remove(task)
        starts[j] = end
        found.append((task, j))
    return found


@st.composite
def _rows(draw):
    p = draw(st.integers(1, 4))
    cell = st.one_of(st.integers(0, 9), st.integers(0, 9), st.just(inf))
    rows = draw(st.lists(st.lists(cell, min_size=p, max_size=p).filter(lambda row: min(row) < inf), max_size=14))
    return rows, draw(st.lists(st.integers(0, 12), min_size=p, max_size=p))


@settings(max_examples=up_to(200), deadline=None)
@given(_rows(), st.sampled_from(["min-min", "max-min", "sufferage"]))
def test_they_choose_as_plain_loops_do(drawn, name):
    rows, starts = drawn
    if rows:
        assert placed(name, Pretended(machine_of(rows, available=starts))) == together(name, rows, starts)


# ---------------------------------------------------------------------- on machines


def paper_machine(comp):
    """Return processors with separate pools, 1 s per byte apart."""
    names = [f"P{j + 1}" for j in range(len(comp[0]))]
    return MachineSpec(
        pools=[MemoryPoolSpec(name=f"m{name}") for name in names],
        architectures=[ArchitectureSpec(name=name) for name in names],
        processors=[ProcessorSpec(name=name, type="CPUCore", architecture=name, pool=f"m{name}") for name in names],
        links=[
            LinkSpec(name=f"{a}-{b}", bandwidth=1.0, between=(f"m{a}", f"m{b}"), one_way=True)
            for a in names
            for b in names
            if a != b
        ],
    )


def paper_workflow(names, comp, edges):
    tasks = [
        Task(id=name, run_on={f"P{j + 1}": seconds for j, seconds in enumerate(row)})
        for name, row in zip(names, comp, strict=True)
    ]
    return Workflow(tasks, edges)


def executed(comp, workflow, name):
    env = Environment(seed=1)
    machine = Machine(env, paper_machine(comp), policy=name, contention=False)
    env.run(machine.submit(workflow))
    return machine.result().tasks


@pytest.mark.parametrize(
    ("example", "name", "makespan"),
    [
        (TOPCUOGLU, "hrr", 192),
        (TOPCUOGLU, "greedy-et", 152),
        (TOPCUOGLU, "greedy-ds", 146),
        (TOPCUOGLU, "heft", 138),
        (TOPCUOGLU, "peft", 159),
        (ARABNEJAD, "hrr", 239),
        (ARABNEJAD, "greedy-et", 250),
        (ARABNEJAD, "greedy-ds", 205),
        (ARABNEJAD, "heft", 209),
        (ARABNEJAD, "peft", 147),
    ],
)
def test_the_examples_as_hetsim_runs_them(example, name, makespan):
    comp = table(example["run"])
    edges = [(int(a), int(b), size) for a, b, size in table(example["edges"])]
    tasks = executed(comp, paper_workflow(range(1, 11), comp, edges), name)
    assert tasks["end"].max() == makespan


@pytest.mark.parametrize("example", reference_examples())
@pytest.mark.parametrize(
    ("name", "called"),
    [("hrr", "hRR"), ("greedy-et", "GreedyET"), ("greedy-ds", "GreedyDS"), ("heft", "HEFT"), ("peft", "PEFT")],
)
def test_executions_are_those_of_the_reference_examples(example, name, called):
    edges = [(edge["src"], edge["dst"], float(edge["comm"])) for edge in example["edges"]]
    tasks = executed(example["comp"], paper_workflow(example["tasks"], example["comp"], edges), name)
    found = {row[0]: row[1:] for row in zip(*(tasks[c] for c in ("task", "processor", "start", "end")), strict=True)}
    expected = example["hetsim_semantics"]["policies"][called]["executions"]
    assert found == {each["task"]: (each["on"], each["start"], each["end"]) for each in expected}


def test_policies_for_places_that_queue_are_told_apart_and_say_so_elsewhere():
    assert set(ONLINE) < set(policy_names("tasks"))
    assert not set(policy_names("tasks")) & set(policy_names("jobs"))
    for name in (*ONLINE, "heft"):
        with pytest.raises(InputError, match=f"policy '{name}' decides which .*; cluster asks when jobs start"):
            Cluster(Environment(seed=1), 4, policy=name)


@pytest.mark.parametrize("name", ONLINE)
def test_one_policy_serves_many_machines_if_it_is_fresh(name):
    one = policy(name)
    rows = [[3, 1], [1, 2], [2, 2]]
    before = placed(one.fresh(), Pretended(machine_of(rows)))
    placed(one, Pretended(machine_of(rows), [0]))
    assert placed(one.fresh(), Pretended(machine_of(rows))) == before
    assert one.fresh().name == one.name == name


def test_a_view_that_is_empty_brings_no_decision():
    for name in ONLINE:
        assert placed(name, Pretended(machine_of([[1, 1]]), [])) == []
