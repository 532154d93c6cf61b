"""Tasks and workflows: graph queries, invalid input, orders and longest paths against brute force."""

import itertools
import pickle

import attrs
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import simulate
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


def test_roots_parents_levels_and_edges_of_a_diamond() -> None:
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


def test_readers_and_writers_of_files() -> None:
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


def test_the_critical_path_counts_work_and_transfers() -> None:
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


def test_a_workflow_to_networkx_and_back_is_equal() -> None:
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


# ---------------------------------------------------------------------- order that files imply


def by_files(*tasks, pairs=(), complete=False):
    """Return a workflow of tasks given as (id, inputs, outputs)."""
    made = [Task(id=id_, run=1, inputs=list(reads), outputs=list(writes)) for id_, reads, writes in tasks]
    names = sorted({name for _, reads, writes in tasks for name in (*reads, *writes)})
    return Workflow(made, pairs, [DataObject(name, 5) for name in names], complete=complete)


@pytest.mark.parametrize(
    ("tasks", "pairs", "implied"),
    [
        ([("a", "", "f"), ("b", "f", "")], [], ["ab"]),
        ([("b", "f", ""), ("a", "", "f")], [], ["ab"]),
        ([("a", "", "f"), ("m", "", ""), ("b", "f", "")], ["am", "mb"], []),  # a path orders them
        ([("a", "", "f"), ("c", "", "f"), ("b", "f", "")], [], ["ab", "cb"]),
        ([("a", "", "f"), ("c", "", "f"), ("b", "f", "")], ["ab"], []),  # it is there before c writes it anew
        ([("a", "", "f"), ("c", "", "f"), ("b", "f", "")], ["bc"], ["ab"]),
        ([("a", "f", "f"), ("b", "f", "")], [], ["ab"]),
        ([("a", "f", "f"), ("b", "f", "")], ["ba"], []),  # a changes what b has read
        ([("a", "f", "f"), ("b", "f", "f")], ["ab"], []),
        ([("p", "", "f"), ("a", "f", "f"), ("b", "f", "")], [], ["pa", "pb", "ab"]),
        ([("a", "", "f"), ("b", "f", "g"), ("c", "fg", "")], [], ["ab", "ac", "bc"]),
    ],
)
def test_files_imply_order_where_a_format_says_so(tasks, pairs, implied) -> None:
    flow = by_files(*tasks, pairs=pairs_of(pairs), complete=True)
    assert [edge[:2] for edge in flow.edges] == pairs_of([*pairs, *implied])
    assert flow.report.repaired.total() == len(implied)
    assert not flow.report.notes


def pairs_of(words):
    return [(word[0], word[1]) for word in words]


@pytest.mark.parametrize(
    ("tasks", "pairs", "cycle"),
    [
        ([("a", "f", "g"), ("b", "g", "f")], [], "a -> b -> a"),
        ([("1", "", "o"), ("2", "", ""), ("3", "o", "")], ["32", "21"], "1 -> 3 -> 2 -> 1"),
    ],
)
def test_a_cycle_through_files_is_refused(tasks, pairs, cycle) -> None:
    message = f"tasks form a cycle: {cycle}, since a task waits for those that write the files that it reads$"
    with pytest.raises(InputError, match=message):
        by_files(*tasks, pairs=pairs_of(pairs), complete=True)


def test_elsewhere_tasks_in_no_order_are_told_once() -> None:
    flow = by_files(("a", "", "fg"), ("b", "f", ""), ("c", "g", ""), pairs=[])
    said = "task 'b' reads 'f', which 'a' writes, and no edge orders the two (and 1 more): "
    assert flow.report.notes == (f"{said}what is read is taken to exist before",)
    assert not flow.edges
    assert {file.name for file in flow.inputs} == {"f", "g"}
    assert flow.labelled("x").report.notes == flow.report.notes
    assert flow.map(lambda task: task).report.notes == flow.report.notes
    assert simulate(4, flow, "fcfs").report.notes[0] == flow.report.notes[0]
    assert simulate("multicore-2x10", flow).report.notes == flow.report.notes
    ordered = [("a", "b"), ("c", "a")]  # c reads what is there before, and a writes it anew
    assert not by_files(("a", "", "fg"), ("b", "f", ""), ("c", "g", ""), pairs=ordered).report.notes
    loose = by_files(("a", "f", "f"), ("b", "f", "f"), complete=True)
    assert "task 'a' reads 'f', which 'b' writes" in loose.report.notes[0]


@st.composite
def drawn_files(draw: st.DrawFn) -> tuple[list[tuple[object, ...]], list[tuple[str, str]]]:
    """Draw tasks whose files go forward, each written by one task, and some pairs that go forward."""
    n = draw(st.integers(2, 8))
    names = [f"t{i}" for i in range(n)]
    tasks = [
        (
            names[i],
            [f"f{j}" for j in draw(st.lists(st.integers(0, i - 1), unique=True, max_size=3))] if i else [],
            [f"f{i}"],
        )
        for i in range(n)
    ]
    pairs = [(names[i], names[j]) for i, j in itertools.combinations(range(n), 2) if draw(st.integers(0, 3)) == 0]
    return [tasks[i] for i in draw(st.permutations(range(n)))], pairs


@given(drawn_files())
def test_every_read_follows_its_write_and_nothing_else_is_added(drawn) -> None:
    tasks, pairs = drawn
    flow = by_files(*tasks, pairs=pairs, complete=True)
    before, after = nx.DiGraph(pairs), nx.DiGraph(edge[:2] for edge in flow.edges)
    for graph in (before, after):
        graph.add_nodes_from(flow.tasks)
    reads = {(f"t{name[1:]}", id_) for id_, names, _ in tasks for name in names}
    for writer, reader in reads:
        assert nx.has_path(after, writer, reader)
    added = {edge[:2] for edge in flow.edges} - set(pairs)
    assert added == {pair for pair in reads if not nx.has_path(before, *pair)}
    told = by_files(*tasks, pairs=pairs).report.notes
    assert bool(told) == bool(added)


# ---------------------------------------------------------------------- graphs from Python


def graph(*edges, **nodes):
    made = nx.DiGraph(edges)
    for node, fields in nodes.items():
        made.add_node(node, **fields)
    return made


@pytest.mark.parametrize("word", ["size", "bytes", "weight"])
@pytest.mark.parametrize(("given", "size"), [(5e9, 5e9), ("5GB", 5e9), (np.int64(7), 7), (3, 3)])
def test_bytes_of_edges_have_three_names(word, given, size) -> None:
    assert Workflow.from_networkx(graph(("a", "b", {word: given}))).edges == (Edge("a", "b", ("a->b",), size),)
    assert Workflow([Task(id="a"), Task(id="b")], [("a", "b", given)]).edges[0].size == size


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (nx.Graph([("b", "a")]), "graph: must be a networkx.DiGraph, got Graph: its edges do not say which task comes"),
        ([("a", "b")], "graph: must be a networkx.DiGraph, got list"),
        (graph(a={"label": "x"}), "node 'a': unknown attribute 'label'; known attributes: task, name, run, flop"),
        (graph(a={"weight": 5}), "node 'a': unknown attribute 'weight'"),
        (graph(a={"Run": 5}), "node 'a': unknown attribute 'Run'; did you mean 'run'?"),
        (graph(a={"id": 5}), "node 'a': unknown attribute 'id'"),
        (graph(a={"task": Task(id="a"), "run": 5}), "node 'a': unknown attribute 'run'; known attributes: task$"),
        (graph(a={"task": Task(id="b")}), "node 'a': must be task 'a', got task 'b'"),
        (graph(a={"task": 5}), "node 'a', task: must be a Task, got 5"),
        (graph(a={"run": "soon"}), "run of 'a': must be a finite number >= 0, got 'soon'"),
        (
            graph(("a", "b", {"cost": 5})),
            "edge from 'a' to 'b': unknown attribute 'cost'; known attributes: size, bytes",
        ),
        (
            graph(("a", "b", {"size": "5GHz"})),
            "edge from 'a' to 'b', size: must be a quantity in B such as '64GB', got",
        ),
        (
            graph(("a", "b", {"weight": -1})),
            "edge from 'a' to 'b', weight: must be a finite quantity in B >= 0, got -1",
        ),
        (graph(("a", "b", {"weight": None})), "edge from 'a' to 'b', weight: must be a quantity in B"),
        (graph(("a", "b", {"weight": 5, "size": 6})), "edge from 'a' to 'b': size and weight must be the same bytes"),
        (graph(("a", "b", {"data": "f"})), "edge from 'a' to 'b', data: must be a list of names, got 'f'"),
        (graph(("a", "b", {"data": ["f"]})), "edge from 'a' to 'b': unknown data object 'f'"),
        (graph(((0, 0), "b")), r"id of a task: must be a whole number or a text, got \(0, 0\)"),
        (nx.MultiDiGraph([("a", "b"), ("a", "b")]), "duplicate edge from 'a' to 'b'"),
    ],
)
def test_a_graph_that_says_what_is_not_known_is_refused(given, said) -> None:
    with pytest.raises(InputError, match=said):
        Workflow.from_networkx(given)


def test_nothing_of_a_graph_vanishes() -> None:
    made = graph(("a", "b", {"weight": 5, "bytes": 5}), a={"run": "2min"})
    made.graph |= {"name": "mine", "origin": "a file"}
    flow = Workflow.from_networkx(made)
    assert (flow.name, flow.header, flow["a"].run, flow.edges[0].size) == ("mine", {"origin": "a file"}, 120, 5)
    again = diamond().to_networkx()
    again.add_edge("b", "c", weight="1kB")  # beside edges that name their data
    assert Edge("b", "c", ("b->c",), 1000) in Workflow.from_networkx(again).edges
    again.edges["a", "b"]["size"] = 7
    with pytest.raises(InputError, match="edge from 'a' to 'b': must have the 100 bytes of its data, got 7"):
        Workflow.from_networkx(again)


def test_edges_of_a_workflow_make_another() -> None:
    flow = diamond()
    again = Workflow(flow, flow.edges, flow.files.values())
    assert (again.edges, again.tasks) == (flow.edges, flow.tasks)


A, B = Task(id="a"), Task(id="b")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ([A, B], [("a", "b", 5, 6)]),
            r"edges: must be \(parent, child\) or \(parent, child, bytes or data objects\), got",
        ),
        (([A, B], ["ab"]), "edges: must be .*, got 'ab'"),
        (([A, B], [("a",)]), "edges: must be"),
        (([A, B], [5]), "edges: must be .*, got 5"),
        (([A, B], [("a", ["b"])]), r"edge from 'a' to \['b'\]: unknown task \['b'\]"),
        (([A, B], [("a", "b", "junk")]), "size of 'a->b': must be a finite number >= 0, got 'junk'"),
        (([A, B], [("a", "b", float("nan"))]), "size of 'a->b': must be a finite number >= 0, got nan"),
        (([A, B], [("a", "b", True)]), "size of 'a->b': must be a finite number >= 0, got True"),
        (([A, B], [("a", "b", ["f"])]), "edge from 'a' to 'b': must be bytes or data objects, got 'f'"),
        (([A, B], [Edge("a", "b", ("f",), 5)]), "edge from 'a' to 'b': unknown data object 'f'"),
        ((["a"],), "tasks: must be a Task, got 'a'"),
        (({"a": A},), "tasks: must be a list, got {'a':"),
        ((A,), "tasks: must be a list, got Task"),
        (([A, B], {("a", "b"): 5}), "edges: must be a list, got {"),
        (([A, B], "ab"), "edges: must be a list, got 'ab'"),
        (([A, B], 5), "edges: must be a list, got 5"),
        (([A], [], 5), "files: must be a list, got 5"),
        (([A], [], ["f"]), "files: must be a DataObject, got 'f'"),
    ],
)
def test_wrong_types_in_a_workflow_are_refused(given, said) -> None:
    with pytest.raises(InputError, match=said):
        Workflow(*given)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": None}, "id of a task: must be a whole number or a text, got None"),
        ({"id": 1.5}, "id of a task: must be"),
        ({"id": True}, "id of a task: must be"),
        ({"run": "x"}, "run of 7: must be a finite number >= 0, got 'x'"),
        ({"run": True}, "run of 7: must be"),
        ({"cores": "2"}, "cores of 7: must be a finite number > 0, got '2'"),
        ({"memory": [1]}, r"memory of 7: must be a finite number >= 0, got \[1\]"),
        ({"flop": "1e9"}, "flop of 7"),
        ({"serial": "x"}, "serial of 7: must be a share from 0 to 1, got 'x'"),
        ({"priority": "high"}, "priority of 7: must be a finite number, got 'high'"),
        ({"inputs": 5}, "inputs of 7: must be names, got 5"),
        ({"outputs": None}, "outputs of 7: must be names, got None"),
        ({"inputs": [DataObject("f")]}, "inputs of 7: must be names, got"),
        ({"implementations": [5]}, r"implementations of 7: must be names, got \(5,\)"),
        ({"run_on": 5}, "run_on of 7: must be a mapping, got 5"),
        ({"run_on": {"gpu": "fast"}}, r"run_on\['gpu'\] of 7: must be a finite number >= 0, got 'fast'"),
        ({"amounts": {"tokens": "many"}}, r"amounts\['tokens'\] of 7"),
        ({"bandwidth": 5}, "bandwidth: must be bandwidths by name, got 5"),
    ],
)
def test_wrong_types_in_a_task_are_refused(fields, said) -> None:
    with pytest.raises(InputError, match=said):
        Task(**{"id": 7, **fields})


def test_a_data_object_has_a_name_and_bytes() -> None:
    with pytest.raises(InputError, match="name of a data object: must be a text, got 5"):
        DataObject(5, 10)
    with pytest.raises(InputError, match="size of 'f': must be a finite number >= 0, got 'x'"):
        DataObject("f", "x")
