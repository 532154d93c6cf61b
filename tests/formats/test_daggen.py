"""DAGGEN: real graphs and back, in text and DOT, and the errors for invalid files."""

import gzip
import io
import re
from collections import Counter
from pathlib import Path

import pytest

from simmodel.catalogue import load_workflow
from simmodel.formats.daggen import read_daggen, write_daggen
from simmodel.foundation.errors import InputError
from simmodel.work.task import DataObject, Task
from simmodel.work.workflow import Edge, Workflow
from tests.helpers.data_files import data_file
from tests.helpers.workflow_documents import TEXT

DAGGEN = [
    *(f"0.25-0.9-0.{density}" for density in (3, 4, 6)),
    *(f"0.5-0.9-0.{density}" for density in (10, 15, 18)),
    *(f"0.75-0.9-0.0{density}" for density in (4, 5)),
]


@pytest.mark.parametrize("name", DAGGEN)
def test_daggen_of_real_graphs_and_back(name: str, tmp_path: Path) -> None:
    path = data_file(f"dag/dslab_daggen-100-{name}-2.dot.gz")
    flow = load_workflow(path)
    text = gzip.decompress(path.read_bytes()).decode()
    pairs = re.findall(r'(\w+) -> (\w+) \[size="([\d.e+-]+)"', text)
    assert {edge[:2]: edge.size for edge in flow.edges} == {
        (parent, child): float(size) if float(size) >= 1 else 0 for parent, child, size in pairs
    }
    nodes = re.findall(r'^\s*(\w+) \[size="([\d.e+-]+)"', text, re.MULTILINE)
    assert {task.id: task.flop for task in flow} == {node: float(size) for node, size in nodes}
    assert len(flow) == 102  # 100, root and end
    assert (flow.roots, flow.sinks) == (("root",), ("end",))
    little = sum(float(size) < 1 for *_, size in pairs)
    assert flow.report.repaired == {"edge with less than a byte: no data": little}
    assert not write_daggen(flow, tmp_path / "again.dot")
    back = load_workflow(tmp_path / "again.dot")
    assert Counter(back.edges) == Counter(flow.edges)
    assert list(back) == list(flow)
    assert not write_daggen(flow, tmp_path / "again.txt")
    numbered = load_workflow(tmp_path / "again.txt")
    number = {task: i for i, task in enumerate(flow.tasks, 1)}
    assert {edge[:2]: edge.size for edge in numbered.edges} == {
        (number[edge.parent], number[edge.child]): edge.size for edge in flow.edges
    }


def test_daggens_text_is_read() -> None:
    flow = read_daggen(io.StringIO(TEXT))
    assert [(task.id, task.flop, task.serial) for task in flow] == [(1, 2000, 0.15), (2, 3000, 0.05), (5, 500, 0.2)]
    assert flow.edges == (Edge(1, 5, ("1->5",), 800),)
    assert flow.roots == (1, 2)
    assert flow.header == {"Note": "DAG automatically generated\ndaggen -n 3"}


def test_dot_as_written_by_others() -> None:
    text = """# made by hand
    strict digraph "my graph" { rankdir=LR; node [shape=box]; /* tasks */
      "first task" [size=2e3, color="red"; label="1"]; b [ size = "5" ] // end
      "first task" -> b -> c [size = 0.5];
      c [size=7]
    }"""
    flow = read_daggen(io.StringIO(text))
    assert list(flow.tasks) == ["first task", "b", "c"]
    assert flow.edges == (Edge("first task", "b", (), 0), Edge("b", "c", (), 0))
    assert flow["first task"].name == "1"
    assert flow.report.skipped == {"attribute 'color' of nodes": 1}
    assert flow.report.repaired == {"edge with less than a byte: no data": 2}


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", None, "no nodes of type COMPUTATION"),
        ("hello", "line 1", "not a DAGGEN task graph: must be 'NODE id children TYPE cost alpha'"),
        (TEXT.replace("3000", "x"), "line 6", "cost of node 2: must be a number >= 0, got 'x'"),
        (TEXT.replace("0.05", "1.5"), "line 6", "alpha of node 2: must be a number >= 0 and <= 1, got '1.5'"),
        (TEXT.replace("NODE 2", "NODE 1"), "line 6", "duplicate node 1"),
        (TEXT.replace("NODE 4 5", "NODE 4 5,6"), "line 7", "a TRANSFER must have one child, got 5,6"),
        (TEXT.replace("NODE 4 5", "NODE 4 9"), "line 7", "unknown node '9' as child"),
        (TEXT.replace("NODE 4 5", "NODE 4 6"), "line 7", "child of a TRANSFER must be a COMPUTATION, got node 6"),
        (TEXT.replace("COUNT 6", "COUNT 8"), None, r"NODE_COUNT: must be the number of nodes \(6\), got 8"),
        (TEXT.replace("NODE 5 6 COMPUTATION", "NODE 5 1 COMPUTATION"), None, "tasks form a cycle: 1 -> 5 -> 1"),
        ("digraph {\n a [size=x] }", "line 2", "size of node a: must be a number >= 0, got 'x'"),
        ("digraph {\n a [alpha=0] }", "line 2", "missing size of node a"),
        ("digraph { a [size=1]\n a [size=1] }", "line 2", "duplicate node a"),
        ("digraph { a [size=1]\n a -> b }", "line 2", "unknown node 'b' in an edge"),
        ("digraph { a [size=1] b [size=1] a -> b\n a -> b }", "line 2", "duplicate edge a -> b"),
        ("digraph { a [size=1] ", "line 1", "must be a node, an edge or '}', got the end of the file"),
        ("digraph { a [size=1\n", "line 1", "got the end of the file"),
        ("digraph {\n subgraph x { a } }", "line 2", "must be a node or an edge, got 'subgraph'"),
        ("digraph {\n a [size=1] } }", "line 2", "must be the end of the file after '}', got '}'"),
        ("digraph {\n % }", "line 2", "invalid DOT: '% }'"),
        ("NODE_COUNT " + "9" * 5000, "line 1", "not a DAGGEN task graph"),
        ("digraph { 1 [size=1] 01 [size=1] 1 -> 1 }", None, "tasks form a cycle: 1 -> 1"),
        ("digraph { }", None, "no nodes"),
        ("digraph { a [size=1] a -> a }", None, "tasks form a cycle: a -> a"),
    ],
)
def test_wrong_daggen_is_refused(text, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_daggen(io.StringIO(text))
    assert (found.value.source, found.value.place) == ("an open file", place)


def test_daggen_writer_says_what_it_leaves_out(tmp_path: Path) -> None:
    tasks = [
        Task(id="a", run=2, cores=4, outputs=["x"]),
        Task(id="b", flop=5, inputs=["x"]),
        Task(id="c", flop=6.5, inputs=["x", "y"]),
    ]
    flow = Workflow(tasks, files=[DataObject("x", 10), DataObject("y", 20)])
    with pytest.raises(ValueError, match="task 'a': cannot derive its flop: pass a speed"):
        write_daggen(flow, tmp_path / "x")
    with pytest.raises(ValueError, match="form: must be 'text' or 'dot', got 'xml'"):
        write_daggen(flow, tmp_path / "x", form="xml")
    report = write_daggen(flow, tmp_path / "flow.dot", speed=1e9)
    assert report.skipped == {
        "data object that no edge carries: no place for it in DAGGEN": 1,
        "data object of several edges: written once for each": 1,
        "task with cores, memory, priority, types or run times: no place for them in DAGGEN": 1,
    }
    back = read_daggen(tmp_path / "flow.dot")
    assert [task.flop for task in back] == [2e9, 5, 6.5]
    assert [edge.size for edge in back.edges] == [10, 10]
