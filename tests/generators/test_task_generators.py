"""Task generators: draws stay within bounds, and the same seed gives the same tasks."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.catalogue import load_platform, load_workflow
from simmodel.foundation.errors import InputError
from simmodel.generators.arrivals import arrive, works_over_time
from simmodel.generators.distributions import Streams, amounts, counts, exponential, share, whole
from simmodel.generators.families import implementations, only_possible, with_families
from simmodel.generators.layers import layered, layered_with_costs, with_costs
from simmodel.generators.tasksets import changed, database, mix, mixture, random_tasks
from simmodel.work.task import Task
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from tests.helpers.data_files import data_file
from tests.helpers.examples import up_to

COLUMNS = ("run", "ids", "families", "implementations", "inputs", "outputs", "sizes", "parents", "submit", "cores")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def columns(work: TaskSet) -> list:
    return [getattr(work, name) for name in (*COLUMNS, "memory", "priority", "reconfiguration")]


# ---------------------------------------------------------------------- independent tasks


def test_random_tasks_stay_within_bounds() -> None:
    work = random_tasks(2000, run=(10, 500), objects=(1, 5), size=("4MB", "300MB"), results=(0, 2), cores=(1, 4),
                        memory=(0, "1GB"), priority=(0, 3), rng=rng())  # fmt: skip
    assert min(work.run) >= 10
    assert max(work.run) <= 500
    assert np.mean(work.run) == pytest.approx(255, abs=4 * 490 / math.sqrt(12 * 2000))
    read = [len(found) for found in work.inputs]
    assert {*read} == {1, 2, 3, 4, 5}
    assert np.mean(read) == pytest.approx(3, abs=4 * math.sqrt(2 / 2000))
    assert {len(found) for found in work.outputs} == {0, 1, 2}
    assert sum(read) + sum(map(len, work.outputs)) == len(work.sizes)
    assert sorted(d for both in (work.inputs, work.outputs) for found in both for d in found) == [
        *range(len(work.sizes))
    ]
    assert 4e6 <= min(work.sizes) < 5e6
    assert 299e6 < max(work.sizes) <= 300e6
    assert ({*work.cores}, {*work.priority}) == ({1, 2, 3, 4}, {0, 1, 2, 3})
    assert 0 <= min(work.memory) < max(work.memory) <= 1e9
    assert work.parents is None
    assert work.submit is None


def test_amounts_of_every_form() -> None:
    assert amounts("run", "2h", 1, rng()).tolist() == [7200]
    assert amounts("size", "4MB", 2, rng(), unit="B").tolist() == [4e6, 4e6]
    assert amounts("run", (3, 3), 2, rng()).tolist() == [3, 3]
    assert amounts("run", exponential(5.0), 1000, rng()).mean() == pytest.approx(5, abs=0.7)
    assert amounts("run", {"distribution": "uniform", "low": 1, "high": 2}, 9, rng()).max() <= 2
    assert counts("objects", 3.0, 2, rng()).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: random_tasks(0, rng=rng()), "tasks: must be a whole number >= 1, got 0"),
        (lambda: random_tasks(2.5, rng=rng()), "tasks: must be a whole number >= 1, got 2.5"),
        (lambda: random_tasks(1, run=(5, 1), rng=rng()), "run: must have the lower end first, got 5 and 1"),
        (lambda: random_tasks(1, run=-3, rng=rng()), "run: must be a finite quantity in s >= 0, got -3"),
        (
            lambda: random_tasks(1, run="fast", rng=rng()),
            "run: must be a quantity in s such as '11.5ms', got 'fast'",
        ),
        (lambda: random_tasks(1, run=(1, 2, 3), rng=rng()), r"run: must be two ends of an interval, got \[1, 2, 3\]"),
        (
            lambda: random_tasks(1, run={"distribution": "x"}, rng=rng()),
            "run: unknown distribution 'x'; known distributions: exponential",
        ),
        (
            lambda: random_tasks(1, run={"distribution": "choice", "values": [-1]}, rng=rng()),
            "run: must be finite and >= 0, got a draw of -1",
        ),
        (lambda: random_tasks(1, objects=(2, 1), rng=rng()), "objects: must have the lower end first, got 2 and 1"),
        (lambda: random_tasks(1, objects="many", rng=rng()), "objects: must be a whole number >= 0, got 'many'"),
        (lambda: random_tasks(1, objects=1, size="5s", rng=rng()), "size: must be a quantity in B such as '64GB'"),
        (lambda: random_tasks(1, cores=0, rng=rng()), "cores: must be a whole number >= 1, got 0"),
        (lambda: whole("n", True), "n: must be a whole number >= 0, got True"),
        (lambda: share("partial", 1.5), "partial: must be a share from 0 to 1, got 1.5"),
        (lambda: database(5, fan_in=1, rng=rng()), "fan_in: must be a whole number >= 2, got 1"),
        (lambda: database(5, table=-1, rng=rng()), "table: must be a finite quantity in B >= 0, got -1"),
        (lambda: layered_with_costs(fat=2, rng=rng()), "fat: must be a number from 0 to 1, got 2"),
    ],
)
def test_wrong_parameters_get_one_sentence(call, said) -> None:
    with pytest.raises(ValueError, match=said):
        call()


# ---------------------------------------------------------------------- database


@given(tasks=st.integers(1, 400), fan_in=st.integers(2, 9), queries=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_results_of_all_queries_are_gathered_into_one(tasks, fan_in, queries, seed) -> None:
    work = database(tasks, fan_in=fan_in, queries=queries, rng=rng(seed))
    assert len(work) == tasks
    gathering = [i for i in range(tasks) if work.families[i] == "gather"]
    assert len(gathering) == math.ceil((tasks - 1) / fan_in)
    assert gathering == [*range(tasks - len(gathering), tasks)]
    parents = work.parents or [()] * tasks
    children = work.children or [()] * tasks
    for i in range(tasks):
        assert work.outputs[i] == (i + 1,)
        assert len(children[i]) == (i < tasks - 1)  # each result is read once, except that of the last task
        if i in gathering:
            assert 1 <= len(parents[i]) <= fan_in
            assert work.inputs[i] == tuple(parent + 1 for parent in parents[i])
        else:
            assert (work.inputs[i], parents[i]) == ((0,), ())
    assert sum(1 for i in gathering if len(parents[i]) < fan_in) <= 1
    steps = [0] * tasks
    for i in reversed(range(tasks)):
        steps[i] = max((steps[child] + 1 for child in children[i]), default=0)
    assert max(steps) <= math.ceil(math.log(tasks, fan_in)) + 1
    assert max(steps) - min(steps[: tasks - len(gathering)]) <= 1


def test_amounts_of_a_database() -> None:
    work = database(1000, run=(10, 20), merge=(1, 2), table="2GB", result="4kB", queries=3, rng=rng())
    gathering = [family == "gather" for family in work.families]
    queries = [seconds for seconds, gathers in zip(work.run, gathering, strict=True) if not gathers]
    merges = [seconds for seconds, gathers in zip(work.run, gathering, strict=True) if gathers]
    assert (min(queries) >= 10, max(queries) <= 20, min(merges) >= 1, max(merges) <= 2) == (True,) * 4
    assert work.sizes == [2e9] + [4e3] * 1000
    assert {*work.families} == {"query0", "query1", "query2", "gather"}
    assert work.workflow().sinks == (999,)


def test_a_database_is_large_without_a_graph() -> None:
    work = database(200_000, rng=rng())
    assert len(work) == 200_000
    assert sum(len(found) for found in work.parents) == 200_000 - 1


# ---------------------------------------------------------------------- graphs


def test_costs_of_a_real_workflow_stay_in_their_ranges() -> None:
    flow = load_workflow(data_file("dax/Sipht_30.xml.gz"))
    for seed in range(20):
        dressed = with_costs(flow, rng=rng(seed))
        assert list(dressed.tasks) == list(flow.tasks)
        assert {edge[:2] for edge in dressed.edges} == {edge[:2] for edge in flow.edges}
        assert [task.family for task in dressed] == [task.family for task in flow]
        assert all(10 <= task.run <= 500 for task in dressed)
        assert all(1 <= len(edge.data) <= 5 for edge in dressed.edges)
        assert all(4e6 <= file.size <= 300e6 for file in dressed.files.values())
        assert all(dressed.writers(name) and dressed.readers(name) for name in dressed.files)
        assert not dressed.unlisted()
    objects = [len(edge.data) for seed in range(40) for edge in with_costs(flow, rng=rng(seed)).edges]
    assert np.mean(objects) == pytest.approx(3, abs=4 * math.sqrt(2 / len(objects)))
    assert np.bincount(objects)[1:].min() > len(objects) / 5 - 4 * math.sqrt(len(objects) * 0.16)


def test_dressing_forgets_what_was_known_of_run_times() -> None:
    flow = Workflow([Task(id=1, flop=5, serial=0.1, started=3, cores=2), Task(id=2, run_on={"x": 2})], [(1, 2, 10)])
    one, two = with_costs(flow, run=7, objects=0, rng=rng())
    assert (one.run, one.flop, one.started, one.cores, one.outputs) == (7, None, None, 2, ())
    assert (two.run, two.run_on, two.inputs) == (7, {}, ())
    again = with_costs(TaskSet.of(flow), run=7, objects=1, size=5, rng=rng())
    assert [edge.size for edge in again.edges] == [5]


@settings(max_examples=up_to(40))
@given(
    n=st.integers(1, 60),
    fat=st.floats(0, 1),
    density=st.floats(0, 1),
    jump=st.integers(0, 4),
    seed=st.integers(0, 1000),
    most=st.integers(0, 5),
)
def test_layers_dressed_have_data_on_every_edge(n, fat, density, jump, seed, most) -> None:
    work = layered_with_costs(n, fat=fat, density=density, jump=jump, objects=(min(most, 1), most), rng=rng(seed))
    flow = work.workflow()
    assert list(flow.tasks) == [*range(1, n + 1)]
    assert all(min(most, 1) <= len(edge.data) <= most for edge in flow.edges)
    assert all(10 <= seconds <= 500 for seconds in work.run)
    assert all(4e6 <= size <= 300e6 for size in work.sizes)
    assert all(len(flow.writers(name)) == len(flow.readers(name)) == 1 for name in flow.files)


# ---------------------------------------------------------------------- families


def test_families_and_what_can_run_them() -> None:
    work = with_families(random_tasks(4000, rng=rng()), 4, types="CPUCore+GPU+FPGA", partial=0.25,
                         reconfiguration=(100, 200), rng=rng(1))  # fmt: skip
    counted = {family: work.families.count(family) for family in sorted({*work.families})}
    assert list(counted) == ["family0", "family1", "family2", "family3"]
    assert all(abs(count - 1000) < 4 * math.sqrt(4000 * 3 / 16) for count in counted.values())
    found = dict(zip(work.families, work.implementations, strict=True))
    assert all(found[family] == kinds for family, kinds in zip(work.families, work.implementations, strict=True))
    assert all("CPUCore" in kinds for kinds in found.values())
    assert sorted(work.reconfiguration) == list(counted)
    assert all(100 <= seconds <= 200 for seconds in work.reconfiguration.values())


def test_the_share_of_implementations_that_are_missing() -> None:
    names = [str(i) for i in range(4000)]
    found = implementations(names, ("GPU", "CPUCore", "FPGA"), partial=0.3, rng=rng())
    for kind, chance in (("GPU", 0.7), ("FPGA", 0.7), ("CPUCore", 1)):
        having = sum(kind in kinds for kinds in found.values()) / 4000
        assert having == pytest.approx(chance, abs=4 * math.sqrt(0.21 / 4000) if chance < 1 else 0)
    never = implementations(names, ("GPU", "FPGA"), partial=1, rng=rng())
    assert {*never.values()} == {("GPU",), ("FPGA",)}
    assert {*implementations(names, ("GPU",), rng=rng()).values()} == {("GPU",)}


def test_families_that_are_there_stay() -> None:
    flow = Workflow([Task(id=1, run=1, family="a"), Task(id=2, run=1, family="b"), Task(id=3, run=1)], [(1, 2)])
    work = with_families(flow, reconfiguration=5, types="GPU", rng=rng())
    assert (work.families, work.reconfiguration) == (["a", "b", None], {"a": 5, "b": 5})
    assert work.implementations == [("GPU",)] * 3
    assert with_families(flow, rng=rng()).workflow() is flow
    assert {*with_families(flow, ["x", "y"], rng=rng()).families} <= {"x", "y"}
    with pytest.raises(InputError, match="partial: cannot apply to tasks without families"):
        with_families(TaskSet([1.0]), partial=0.5, rng=rng())
    with pytest.raises(InputError, match="families: must be a whole number >= 1, got 0"):
        with_families(TaskSet([1.0]), 0, rng=rng())
    with pytest.raises(InputError, match="types: must be types of processors"):
        with_families(flow, types="GPU+", rng=rng())


def test_only_what_a_machine_can_run_is_left() -> None:
    machine = load_platform("hetsim-slow")
    flow = Workflow(
        [
            Task(id="fine", run=1, memory=60e9),
            Task(id="kind", run=1, implementations=["TPU"]),
            Task(id="cores", run=1, cores=2),
            Task(id="memory", run=1, memory=70e9),
            Task(id="flop", flop=5),
            Task(id="elsewhere", run_on={"tpu": 3}),
            Task(id="here", run_on={"gpu": 3}),
            Task(id="child", run=2),
            Task(id="grandchild", run=2),
        ],
        [("kind", "child", 100), ("child", "grandchild"), ("fine", "here", 200)],
    )
    left = only_possible(flow, machine)
    assert list(left.ids) == ["fine", "here"]
    assert left.parents == [(), (0,)]
    assert left.report.rejected == {
        "task that no processor can run": 5,
        "task that waits for one that no processor can run": 2,
    }
    assert not flow.report
    assert [left.data_name(d) for d in left.inputs[1]] == ["fine->here"]
    assert only_possible(left, machine) is left


# ---------------------------------------------------------------------- arrivals


def test_tasks_arrive_in_their_order() -> None:
    poisson = arrive(random_tasks(20_000, rng=rng()), rate=0.5, rng=rng(1)).submit
    gaps = np.diff(poisson)
    assert (gaps >= 0).all()
    assert gaps.mean() == pytest.approx(2, abs=4 * 2 / math.sqrt(20_000))
    assert gaps.std() == pytest.approx(2, rel=0.05)
    delayed = arrive(random_tasks(5000, rng=rng()), max_delay=10, start=3, rng=rng(1)).submit
    assert delayed[0] == 3
    assert 0 <= np.diff(delayed).min() < np.diff(delayed).max() <= 10
    assert np.diff(delayed).mean() == pytest.approx(5, abs=4 * 10 / math.sqrt(12 * 5000))
    assert arrive(TaskSet([1.0] * 3), max_delay=0, rng=rng()).submit == [0, 0, 0]
    assert arrive(TaskSet([1.0]), gap={"distribution": "gamma", "mean": 3, "cv": 1}, rng=rng()).submit[0] > 0
    kept = arrive(database(20, rng=rng()), rate=1, rng=rng())
    assert kept.parents == database(20, rng=rng()).parents


def test_works_arrive_in_order_and_are_drawn_anew() -> None:
    pairs = works_over_time(lambda rng: layered_with_costs(10, rng=rng), 50, rate=0.1, rng=rng())
    assert len(pairs) == 50
    assert [at for at, _ in pairs] == sorted(at for at, _ in pairs)
    assert len({tuple(work.run) for _, work in pairs}) == 50
    flow = Workflow([Task(id=1, run=1)])
    assert works_over_time([flow], 3, max_delay=0, rng=rng()) == [(0, flow)] * 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: arrive(TaskSet([1.0]), rng=rng()), "must have exactly one of rate, gap and max_delay, got none"),
        (
            lambda: arrive(TaskSet([1.0]), rate=1, gap=2, rng=rng()),
            "must have exactly one of rate, gap and max_delay, got rate and gap",
        ),
        (lambda: arrive(TaskSet([1.0]), rate=0, rng=rng()), "rate: must be > 0, got 0"),
        (lambda: arrive(TaskSet([1.0]), rate="often", rng=rng()), "rate: must be a number >= 0, got 'often'"),
        (lambda: arrive(TaskSet([1.0]), max_delay=-1, rng=rng()), "max_delay: must be a number >= 0"),
        (lambda: arrive(TaskSet([1.0]), gap="x", rng=rng()), "gap"),
        (lambda: arrive(TaskSet([1.0]), rate=1, start=math.inf, rng=rng()), "start: must be a number >= 0"),
        (lambda: works_over_time([], rate=1, rng=rng()), "works: must not be empty"),
        (
            lambda: works_over_time(lambda rng: None, rate=1, rng=rng()),
            "copies: must be a number for generated works, got None",
        ),
        (lambda: works_over_time([TaskSet([1.0])], 0, rate=1, rng=rng()), "copies: must be a whole number >= 1"),
    ],
)
def test_wrong_arrivals_get_one_sentence(call, said) -> None:
    with pytest.raises(InputError, match=said):
        call()


# ---------------------------------------------------------------------- randomness


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: random_tasks(50, objects=(1, 5), cores=(1, 3), rng=rng),
        lambda rng: database(50, fan_in=4, queries=3, rng=rng),
        lambda rng: layered_with_costs(30, rng=rng),
        lambda rng: TaskSet.of(with_costs(layered(20, rng=np.random.default_rng(0)), rng=rng)),
        lambda rng: with_families(TaskSet([1.0] * 50), 5, partial=0.5, reconfiguration=(1, 2), rng=rng),
        lambda rng: arrive(TaskSet([1.0] * 50), rate=1, rng=rng),
        lambda rng: mix([random_tasks(20, rng=rng), database(20, rng=rng)], rng=rng),
        lambda rng: mixture(
            30, [(1, lambda n, r: random_tasks(n, rng=r)), (2, lambda n, r: database(n, rng=r))], rng=rng
        ),
    ],
)
def test_same_seed_same_tasks(make) -> None:
    assert columns(make(rng(3))) == columns(make(rng(3)))
    assert columns(make(rng(3))) != columns(make(rng(4)))


def test_each_of_the_three_streams_moves_its_part_alone() -> None:
    def drawn(uniform: int, run: int, size: int) -> TaskSet:
        return random_tasks(30, objects=(1, 5), rng=Streams(rng(uniform), rng(run), rng(size)))

    base, others, times, sizes = drawn(0, 1, 2), drawn(9, 1, 2), drawn(0, 9, 2), drawn(0, 1, 9)
    assert others.run == base.run != times.run
    assert times.inputs == base.inputs != others.inputs
    assert times.sizes == base.sizes
    assert sizes.sizes != base.sizes
    assert (sizes.run, sizes.inputs) == (base.run, base.inputs)


def test_changed_columns_leave_the_others() -> None:
    work = database(20, rng=rng())
    other = changed(work, submit=[1.0] * 20)
    assert columns(changed(other, submit=None)) == columns(work)
    assert (
        changed(TaskSet([1.0, 2.0], inputs=[(0,), (0,)], outputs=[(0,), ()], sizes=[5], parents=[(), ()])).parents
        is None
    )
