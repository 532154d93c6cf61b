"""Tasks and workflows: graph queries, invalid input, orders and longest paths against brute force."""

import itertools
import pickle

import attrs
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.foundation.errors import InputError
from simmodel.work.task import DataObject, RecordedMachine, Task
from simmodel.work.workflow import Edge, Workflow
from simmodel.work.workload import Report
from tests.helpers.new_process import printed


def diamond() -> Workflow:
    tasks = [
        Task(id="a", run=2, outputs=["f", "g"]),
        Task(id="b", run=3, inputs=["f", "start"], family="middle"),
        Task(id="c", run=4, inputs=["g", "f"], family="middle"),
        Task(id="d", run=1, outputs=["end"]),
    ]
    files = [DataObject("start", 7), DataObject("f", 100), DataObject("g", 50), DataObject("end", 1)]
    return Workflow(tasks, [("a", "b"), ("a", "c"), ("b", "d", 20), ("c", "d")], files, name="diamond")


def test_task_knows_its_run_time() -> None:
    task = Task(id=1, run=10, run_on={"gpu": 2}, flop=5)
    assert (task.run_time(), task.run_time("gpu"), task.run_time("fpga"), task.run_time(speed=1)) == (10, 2, 10, 10)
    assert Task(id=1, flop=6).run_time(speed=3) == 2
    with pytest.raises(ValueError, match=r"task 1: unknown run time; it has flop: pass speed in flop/s"):
        Task(id=1, flop=6).run_time()
    with pytest.raises(ValueError, match=r"task 'x': unknown run time on 'cpu'"):
        Task(id="x", run_on={"gpu": 1}).run_time("cpu")


def test_task_that_names_its_types_runs_only_there() -> None:
    assert Task(id=1, implementations="GPU").can_run_on("GPU")
    assert not Task(id=1, implementations=()).can_run_on("GPU")
    assert Task(id=1).can_run_on("anything")


def test_tasks_are_values() -> None:
    task = Task(id=1, run=2, run_on={"gpu": 1}, inputs=["f"])
    assert task == Task(id=1, run=2, run_on={"gpu": 1}, inputs=("f",))
    assert len({task, attrs.evolve(task)}) == 1
    assert Task(id=1, inputs="one").inputs == ("one",)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        task.run = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"run": -1}, "run of 7: must be a finite number >= 0, got -1"),
        ({"flop": float("nan")}, "flop of 7: must be a finite number >= 0"),
        ({"run": float("inf")}, "run of 7"),
        ({"cores": 0}, "cores of 7: must be a finite number > 0, got 0"),
        ({"memory": -5}, "memory of 7"),
        ({"serial": 1.5}, "serial of 7: must be a share from 0 to 1"),
        ({"run_on": {"gpu": -2}}, r"run_on\['gpu'\] of 7"),
    ],
)
def test_task_with_wrong_amount_is_refused(fields, said) -> None:
    with pytest.raises(ValueError, match=said):
        Task(id=7, **fields)


def test_data_object_with_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"size of 'f': must be a finite number >= 0, got -1"):
        DataObject("f", -1)


def test_graph() -> None:
    flow = diamond()
    assert len(flow) == 4
    assert "a" in flow
    assert [task.id for task in flow] == list("abcd")
    assert (flow.roots, flow.sinks) == (("a",), ("d",))
    assert flow.parents("d") == ("b", "c")
    assert flow.children("a") == ("b", "c")
    assert flow.levels == (("a",), ("b", "c"), ("d",))
    assert flow.total_work() == 10
    assert flow.edges == (
        Edge("a", "b", ("f",), 100),
        Edge("a", "c", ("g", "f"), 150),
        Edge("b", "d", ("b->d",), 20),
        Edge("c", "d", (), 0),
    )


def test_data() -> None:
    flow = diamond()
    assert [file.name for file in flow.inputs] == ["start"]
    assert [file.name for file in flow.outputs] == ["end"]
    assert flow.writers("f") == ("a",)
    assert flow.readers("f") == ("b", "c")
    assert [file.name for file in flow.reads("d")] == ["b->d"]
    assert [file.name for file in flow.writes("b")] == ["b->d"]
    assert flow.data("c", "d") == ()
    with pytest.raises(KeyError):
        flow.data("a", "d")


def test_what_no_task_before_writes_must_be_there_at_the_start() -> None:
    tasks = [
        Task(id=1, inputs=["own", "late"], outputs=["own", "far"]),
        Task(id=2, inputs=["own"]),
        Task(id=3, inputs=["far", "own"], outputs=["late"]),
    ]
    flow = Workflow(tasks, [(1, 2), (2, 3)], [DataObject(name) for name in ("far", "own", "late", "unused")])
    assert [file.name for file in flow.inputs] == ["own", "late"]
    assert flow.unlisted() == [(1, 3, "far"), (1, 3, "own"), (3, 1, "late")]


def test_one_object_may_move_along_several_edges() -> None:
    table, key = DataObject("table", 1000), DataObject("key", 10)
    flow = Workflow([Task(id=i) for i in range(3)], [(0, 1, [table, key]), (0, 2, [table])])
    assert flow.edges == (Edge(0, 1, ("table", "key"), 1010), Edge(0, 2, ("table",), 1000))
    assert flow[0].outputs == ("table", "key")
    assert flow.readers("table") == (1, 2)


def test_sizes_may_be_numbers_of_numpy() -> None:
    edges = [(0, 1, np.int64(5)), (1, 2, np.float32(2)), (0, 2, None)]
    flow = Workflow([Task(id=0), Task(id=1), Task(id=2)], edges)
    assert [edge.size for edge in flow.edges] == [5, 2, 0]


def test_edges_follow_from_files_where_none_are_given() -> None:
    tasks = [
        Task(id=1, outputs=["a"]),
        Task(id=2, inputs=["a"], outputs=["b", "c"]),
        Task(id=3, inputs=["b", "c", "a"]),
        Task(id=4),
    ]
    files = [DataObject(name, 10) for name in "abc"]
    assert [edge[:2] for edge in Workflow(tasks, files=files).edges] == [(1, 2), (2, 3), (1, 3)]
    assert Workflow(tasks, (), files).edges == ()
    assert Workflow(tasks, [(1, 2)], files).unlisted() == [(1, 3, "a"), (2, 3, "b"), (2, 3, "c")]


def test_critical_path() -> None:
    flow = diamond()
    assert flow.critical_path() == ("a", "c", "d")
    assert flow.critical_path_length() == 7
    assert flow.critical_path_length(lambda task: 1) == 3
    assert flow.critical_path_length(transfer=lambda edge: edge.size / 10) == 2 + 15 + 4 + 1
    assert flow.critical_path(transfer=lambda edge: 10 * (edge.child == "b")) == ("a", "b", "d")
    assert Workflow([]).critical_path_length() == 0
    assert Workflow([]).levels == ()
    assert Workflow([Task(id=1, run=0)]).critical_path() == (1,)


TASKS = [Task(id="a"), Task(id="b"), Task(id="c")]


@pytest.mark.parametrize(
    ("tasks", "edges", "files", "said"),
    [
        ([*TASKS, Task(id="a")], [], [], "duplicate task id 'a'"),
        (TASKS, [("a", "x")], [], "edge from 'a' to 'x': unknown task 'x'"),
        (TASKS, [("x", "a")], [], "edge from 'x' to 'a': unknown task 'x'"),
        (TASKS, [("a", "b"), ("a", "b")], [], "duplicate edge from 'a' to 'b'"),
        (TASKS, [("a", "a")], [], "tasks form a cycle: a -> a"),
        (TASKS, [("a", "b"), ("b", "c"), ("c", "b")], [], "tasks form a cycle: b -> c -> b"),
        ([Task(id=1, inputs=["f"])], [], [], "task 1 reads unknown data object 'f'"),
        ([Task(id=1, outputs=["f"])], [], [], "task 1 writes unknown data object 'f'"),
        (TASKS, [("a", "b", 5)], [DataObject("a->b", 5)], "duplicate data object 'a->b': the edge adds one"),
        (TASKS, [], [DataObject("f", 1), DataObject("f", 2)], "duplicate data object 'f', with 1 and 2 bytes"),
    ],
)
def test_wrong_workflow_is_refused(tasks, edges, files, said) -> None:
    with pytest.raises(InputError, match=said):
        Workflow(tasks, edges, files)


def test_long_circle_is_shortened() -> None:
    edges = [(i, (i + 1) % 100) for i in range(100)]
    with pytest.raises(InputError, match=r"cycle: 0 -> 1 -> .* -> 9 -> \.\.\. -> 0$"):
        Workflow([Task(id=i) for i in range(100)], edges)


def test_networkx_both_ways() -> None:
    flow = diamond()
    graph = flow.to_networkx()
    assert isinstance(graph, nx.DiGraph)
    assert graph.nodes["a"]["task"] is flow["a"]
    assert graph.edges["a", "c"] == {"data": ("g", "f"), "size": 150}
    back = Workflow.from_networkx(graph)
    assert (back.tasks, back.files, back.edges, back.name) == (flow.tasks, flow.files, flow.edges, "diamond")
    graph.remove_node("a")
    assert flow.graph is flow.graph
    assert "a" in flow.graph
    with pytest.raises(nx.NetworkXError):
        flow.graph.add_node("x")


def test_a_graph_of_ones_own_becomes_a_workflow() -> None:
    graph = nx.DiGraph()
    graph.add_node("x", run=5, family="f")
    graph.add_node("y", run=6)
    graph.add_edge("x", "y", size=80)
    flow = Workflow.from_networkx(graph, name="mine")
    assert (flow.name, flow["x"].family, flow.edges) == ("mine", "f", (Edge("x", "y", ("x->y",), 80),))


def test_map_changes_tasks_and_sizes() -> None:
    flow = diamond()
    flow.makespan = 30
    new = flow.map(lambda task: attrs.evolve(task, run=task.run * 2), data=0.5, name="slow")
    assert (new.name, new.total_work(), new.makespan) == ("slow", 20, 30)
    assert [edge.size for edge in new.edges] == [50, 75, 10, 0]
    assert [edge[:3] for edge in new.edges] == [edge[:3] for edge in flow.edges]
    assert flow.total_work() == 10
    with pytest.raises(ValueError, match="must keep the ids"):
        Workflow([Task(id=1)]).map(lambda task: attrs.evolve(task, id=2))


def test_what_a_notebook_shows() -> None:
    flow = diamond()
    flow.report = Report()
    flow.report.repaired["a <reason>"] = 3
    flow.makespan = 12
    shown = flow._repr_html_()
    for part in ("diamond", "tasks of middle", "critical path", "recorded makespan", "a &lt;reason&gt; 3"):
        assert part in shown
    assert flow.summary()["width"] == 2
    assert Workflow([Task(id=1, flop=3), Task(id=2, flop=4)]).summary()["flop"] == 7
    assert "tasks" in Workflow([])._repr_html_()


def test_workflow_can_be_pickled() -> None:
    flow = diamond()
    flow.machines = (RecordedMachine(name="m", cores=4),)
    back = pickle.loads(pickle.dumps(flow))
    assert (back.tasks, back.edges, back.machines) == (flow.tasks, flow.edges, flow.machines)


def test_networkx_loads_only_for_a_graph() -> None:
    code = (
        "import sys, simmodel, simmodel.work.workflow as w, simmodel.catalogue, simmodel.generators.layers\n"
        "flow = w.Workflow([w.Task(id=1, run=1), w.Task(id=2, run=1)], [(1, 2, 5)])\n"
        "flow.critical_path(), flow.levels, flow._repr_html_()\n"
        "assert 'networkx' not in sys.modules\n"
        "flow.graph\n"
        "assert 'networkx' in sys.modules"
    )
    printed(code)


@st.composite
def graphs(draw: st.DrawFn) -> Workflow:
    """Draw a workflow whose declared order is not topological."""
    n = draw(st.integers(1, 7))
    pairs = [pair for pair in itertools.combinations(range(n), 2) if draw(st.booleans())]
    names = draw(st.permutations(range(n)))
    sizes = draw(st.lists(st.integers(0, 30), min_size=len(pairs), max_size=len(pairs)))
    runs = draw(st.lists(st.integers(0, 20), min_size=n, max_size=n))
    tasks = [Task(id=i, run=runs[i]) for i in range(n)]
    return Workflow(tasks, [(names[a], names[b], size) for (a, b), size in zip(pairs, sizes, strict=True)])


def paths(flow: Workflow, at: object) -> list[tuple[object, ...]]:
    return [(at, *rest) for child in flow.children(at) for rest in paths(flow, child)] or [(at,)]


@given(graphs())
def test_orders_levels_and_longest_paths_against_all_paths(flow: Workflow) -> None:
    rank = {task: i for i, task in enumerate(flow.order)}
    assert sorted(flow.order) == sorted(flow.tasks)
    assert all(rank[edge.parent] < rank[edge.child] for edge in flow.edges)
    assert list(flow.order) == list(nx.lexicographical_topological_sort(flow.graph))  # ids are in declared order

    every = [path for root in flow.roots for path in paths(flow, root)]
    depth = {task: max(path.index(task) for path in every if task in path) for task in flow.tasks}
    assert flow.levels == tuple(
        tuple(task for task in flow.tasks if depth[task] == level) for level in range(max(depth.values()) + 1)
    )
    sizes = {edge[:2]: edge.size for edge in flow.edges}

    def length(path: tuple[object, ...], transfers: bool) -> float:
        moved = sum(sizes[pair] for pair in itertools.pairwise(path)) if transfers else 0
        return sum(flow[task].run for task in path) + moved

    assert flow.critical_path_length() == max(length(path, False) for path in every)
    found = flow.critical_path(transfer=lambda edge: edge.size)
    assert length(found, True) == max(length(path, True) for path in every)
    assert flow.critical_path_length(transfer=lambda edge: edge.size) == length(found, True)
