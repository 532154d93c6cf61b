"""Files of workflows: real ones against their known figures, round trips, and what is said of files that are wrong."""

import gzip
import io
import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from data import data_file
from hypothesis import given
from hypothesis import strategies as st

from simmodel.errors import InputError
from simmodel.formats.daggen import read_daggen, write_daggen
from simmodel.formats.dax import read_dax
from simmodel.formats.documents import read_json, read_xml
from simmodel.formats.library import WORKFLOW_FORMATS, load_workflow
from simmodel.formats.sst import read_sst
from simmodel.formats.wfformat import VERSIONS, read_wfformat, write_wfformat
from simmodel.work.task import DataObject, RecordedMachine, Task
from simmodel.work.workflow import Edge, Workflow

# name: tasks, edges, levels, families, files, s of work, s of the critical path, roots, sinks, reads of what another
# task writes without an edge, files that several tasks write
DAX = {
    "CyberShake_30": (30, 52, 4, 5, 49, 761, 221.8, 2, 2, 0, 0),
    "CyberShake_1000": (1000, 1988, 4, 5, 1509, 22752, 255.1, 4, 2, 0, 0),
    "Epigenomics_24": (24, 27, 8, 8, 38, 17720, 5581.1, 1, 1, 0, 0),
    "HEFT_paper": (10, 15, 4, 1, 15, 127, 66, 1, 1, 0, 0),
    "Inspiral_30": (30, 35, 6, 4, 47, 6617, 1335.2, 7, 1, 0, 0),
    "Inspiral_1000": (1000, 1233, 6, 4, 1501, 227703, 1413.4, 229, 20, 29, 3),
    "Montage_25": (25, 45, 9, 9, 38, 228, 46.5, 5, 1, 0, 2),
    "Montage_100": (100, 233, 9, 9, 93, 1079, 70.7, 16, 1, 0, 2),
    "Montage_1000": (1000, 2485, 9, 9, 843, 11379, 368.5, 166, 1, 0, 2),
    "Sipht_30": (29, 33, 5, 13, 963, 5546, 4408.9, 21, 1, 0, 0),
    "Sipht_100": (97, 109, 5, 13, 1121, 17380, 4475, 73, 3, 174, 51),
    "floodplain": (7, 10, 4, 6, 11, 160200, 117000, 2, 1, 0, 0),
}


def figures(flow: Workflow) -> tuple[float, ...]:
    shown = flow.summary()
    counts = tuple(shown[key] for key in ("tasks", "edges", "levels", "families", "data objects"))
    times = (round(shown["work"]), round(shown["critical path"], 1))
    reused = sum(len(flow.writers(name)) > 1 for name in flow.files)
    return (*counts, *times, shown["roots"], shown["sinks"], len(flow.unlisted()), reused)


@pytest.mark.parametrize("name", DAX)
def test_dax_of_real_workflows(name: str) -> None:
    flow = load_workflow(data_file(f"dax/{name}.xml.gz"))
    assert figures(flow) == DAX[name]
    assert flow.name == name


@pytest.mark.parametrize(
    ("name", "read", "written"),
    [("Epigenomics_24", 8.91, 1.20), ("floodplain", 107.03, 41.12), ("Sipht_30", 0.73, 0.06)],
)
def test_dax_bytes_of_all_jobs(name, read, written) -> None:
    flow = read_dax(data_file(f"dax/{name}.xml.gz"))
    assert round(sum(file.size for task in flow.tasks for file in flow.reads(task)) / 1e9, 2) == read
    assert round(sum(file.size for task in flow.tasks for file in flow.writes(task)) / 1e9, 2) == written


def test_dax_with_sizes_below_zero_is_refused_or_repaired() -> None:
    path = data_file("dax/Epigenomics_997.xml.gz")
    with pytest.raises(InputError) as found:
        read_dax(path)
    assert found.value.place == "line 30"
    assert found.value.message == (
        "a size >= 0 expected for file 'chr21.0.21.sfq', found -6585019 (and 113 more files with a negative size); "
        "repair=True adds the 2**32 by which a size of 32 bits ran over"
    )
    flow = load_workflow(path, repair=True)
    assert flow.report.repaired == {
        "negative size of a file: 2**32 bytes added": 114,
        "negative run time of a job: 0 s taken": 57,
    }
    assert flow.files["chr21.0.21.sfq"].size == 2**32 - 6585019
    assert figures(flow)[:5] == (997, 1234, 9, 8, 1491)
    assert figures(flow)[6:] == (34044.1, 7, 1, 0, 0)
    assert abs(flow.total_work() - 3854769) < 57 * 2  # of the 57 jobs, none had less than -2 s


def test_dax_data_of_an_edge_are_what_one_writes_and_the_other_reads() -> None:
    flow = read_dax(data_file("dax/HEFT_paper.xml.gz"))
    sizes = {(int(str(edge.parent)[-2:]), int(str(edge.child)[-2:])): edge.size / 125 for edge in flow.edges}
    assert sizes[1, 2] == 18
    assert sizes[4, 8] == 27
    assert len(sizes) == 15
    assert flow.report.skipped == {"jobs promised by the header, not in the file": 15}
    assert read_dax(data_file("dax/floodplain.xml.gz"))["sin"].cores == 160


def test_dax_3() -> None:
    text = """<?xml version="1.0" encoding="UTF-8"?>
    <adag xmlns="http://pegasus.isi.edu/schema/DAX" version="3.6" name="black">
      <file name="f.a"><metadata key="size">500</metadata><pfn url="file:///f.a" site="local"/></file>
      <executable name="preprocess" arch="x86_64"><pfn url="x" site="y"/></executable>
      <job id="j1" name="preprocess" node-label="first">
        <argument>-i <file name="f.a"/></argument>
        <profile namespace="pegasus" key="runtime">12.5</profile>
        <profile namespace="pegasus" key="cores">4</profile>
        <profile namespace="pegasus" key="memory">2000</profile>
        <uses name="f.a" link="input"/><uses name="f.b" link="output" size="300"/>
        <uses name="log" link="inout" size="1"/><uses name="c" link="checkpoint"/>
      </job>
      <job id="j2" name="analyze"><uses name="f.b" link="input"/><uses name="f.c" link="output"/></job>
      <child ref="j2"><parent ref="j1"/><parent ref="j1"/></child>
    </adag>"""
    flow = read_dax(io.StringIO(text))
    first = flow["j1"]
    assert (first.name, first.family, first.run, first.cores, first.memory) == ("first", "preprocess", 12.5, 4, 2e9)
    assert (first.inputs, first.outputs) == (("f.a", "log"), ("f.b", "log"))
    assert {file.name: file.size for file in flow.files.values()} == {"f.a": 500, "f.b": 300, "log": 1, "f.c": 0}
    assert flow.edges == (Edge("j1", "j2", ("f.b",), 300),)
    assert flow.report.skipped == {"file of a job with link 'checkpoint'": 1, "run time of a job, not in the file": 1}
    assert flow.report.repaired == {"edge given twice": 1, "size of a file missing: 0 bytes taken": 1}
    assert flow.header == {"name": "black", "version": "3.6"}


def test_dax_size_of_the_writer_counts() -> None:
    text = """<adag><job id="b" runtime="1"><uses file="f" link="input" size="5"/></job>
    <job id="a" runtime="1"><uses file="f" link="output" size="7"/></job>
    <job id="c" runtime="1"><uses file="f" link="input" size="9"/></job></adag>"""
    flow = read_dax(io.StringIO(text))
    assert flow.files["f"].size == 7
    assert flow.report.repaired == {"file with several sizes: that of its writer taken, else the first": 1}


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE lolz [
 <!ENTITY lol "lol">
 <!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">
]>
<adag>&lol2;</adag>"""


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "line 1", "XML expected, found no element found"),
        ("<adag>\n<job>\n</adag>", "line 3", "XML expected, found mismatched tag"),
        (LAUGHS, "line 3", "no entities expected, found the declaration of 'lol'"),
        (
            "<?xml version='1.0' encoding='nonsense'?><adag/>",
            None,
            "known encoding expected: unknown encoding: nonsense",
        ),
        ("<?xml version='1.0' encoding='utf-7'?><adag/>", None, "known encoding expected"),
        ("<!DOCTYPE a [<!ENTITY % p SYSTEM 'f'> %p;]><a/>", "line 1", "found the declaration of 'p'"),
        ("\n<platform/>", "line 2", r"a workflow of Pegasus \(<adag>\) expected, found <platform>"),
        ("<adag/>", "line 1", "jobs expected, found none"),
        ("<adag>\n<job name='x'/></adag>", "line 2", "a job with an id expected"),
        ("<adag><job id='a'/>\n<job id='a'/></adag>", "line 2", "job id 'a' occurs twice"),
        (
            "<adag>\n<job id='a' runtime='x'/></adag>",
            "line 2",
            "a number >= 0 expected as runtime of job 'a', found 'x'",
        ),
        ("<adag>\n<job id='a' runtime='nan'/></adag>", "line 2", "runtime of job 'a', found 'nan'"),
        ("<adag>\n<job id='a' runtime='-3'/></adag>", "line 2", "found -3; repair=True takes 0"),
        ("<adag>\n<job id='a' cores='0'/></adag>", "line 2", "a number above 0 expected as cores of job 'a'"),
        ("<adag><job id='a'>\n<uses link='input'/></job></adag>", "line 2", "the name of a file expected"),
        ("<adag><job id='a'>\n<uses file='f' size='1k'/></job></adag>", "line 2", "bytes expected as size of file 'f'"),
        ("<adag><job id='a'>\n<uses file='f' size='-9'/></job></adag>", "line 2", "for file 'f', found -9; repair"),
        ("<adag><job id='a'/>\n<child ref='x'/></adag>", "line 2", "<child> with the id of a job as ref expected"),
        ("<adag><job id='a'/><child ref='a'>\n<parent/></child></adag>", "line 2", "<parent> with the id of a job"),
        ("<adag><job id='a'/>\n<dax id='b'/></adag>", "line 2", "found a workflow inside the workflow"),
        ("<adag><job id='a'/><child ref='a'><parent ref='a'/></child></adag>", None, "in a circle: a -> a"),
    ],
)
def test_wrong_dax_is_refused(text, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_dax(io.StringIO(text))
    assert (found.value.source, found.value.place) == ("an open file", place)


def test_size_beyond_32_bits_cannot_be_repaired() -> None:
    text = "<adag><job id='a'><uses file='f' size='-3000000000'/></job></adag>"
    with pytest.raises(InputError, match=r"found -3000000000$"):
        read_dax(io.StringIO(text), repair=True)


def test_xml_without_root() -> None:
    root, _ = read_xml(io.StringIO("<?xml version='1.0'?>\n<Pool id='1'/>\n<Link/>"), root="platform")
    assert [(each.tag, each.line) for each in root] == [("Pool", 2), ("Link", 3)]
    with pytest.raises(InputError, match="line 2: XML expected, found mismatched tag"):
        read_xml(io.StringIO("<a/>\n<b></c>"), root="platform")


# name: tasks, edges, levels, files, GB, s of work, s of the critical path, s of makespan, machines
WFFORMAT = {
    "1000genome-chameleon-16ch-100k-001": (416, 608, 3, 456, 32.23, 29794, 350, 2498, 4),
    "airrflow-dirt02-001": (212, 327, 25, 935, 0.31, 3330, 438, 4706, 1),
    "blast-chameleon-medium-001": (303, 900, 3, 907, 5.11, 31513, 119, 5074.08, 4),
    "bwa-chameleon-large-001": (1004, 4000, 3, 3012, 0.06, 13277, 1656, 52218.36, 4),
    "cycles-chameleon-1l-3c-12p-001": (657, 975, 4, 5200, 4.65, 10653, 238, 1544, 4),
    "epigenomics-chameleon-hep-1seq-100k-001": (41, 48, 9, 54, 0.56, 539, 105, 594, 1),
    "methylseq-dirt02-001": (36, 70, 7, 132, 0.08, 446, 203, 528, 1),
    "montage-chameleon-2mass-005d-001": (58, 114, 8, 111, 0.22, 222, 21, 1060, 1),
    "montage-chameleon-dss-15d-001": (2122, 6114, 8, 2463, 24.22, 78088, 989, 6197, 4),
    "rnaseq-dirt02-001": (197, 451, 10, 680, 0.29, 2580, 759, 3131, 1),
    "seismology-chameleon-1000p-001": (1001, 1000, 2, 3004, 0.02, 538, 5, 2194, 7),
    "soykb-chameleon-50fastq-20ch-001": (676, 1674, 11, 1361, 2.88, 118736, 38628, 54029, 5),
    "srasearch-chameleon-50a-003": (104, 152, 4, 210, 76.91, 57807, 3010, 7463, 3),
}


def same(one: Workflow, two: Workflow) -> bool:
    """Whether two workflows agree in all that a simulation and a reader may ask of them."""
    return (
        list(one) == list(two)
        and [dict(task.details) for task in one] == [dict(task.details) for task in two]
        and sorted(one.edges) == sorted(two.edges)
        and one.files == two.files
        and (one.name, one.machines, one.makespan) == (two.name, two.machines, two.makespan)
    )


@pytest.mark.parametrize("name", WFFORMAT)
def test_wfformat_of_real_workflows_and_back(name: str, tmp_path: Path) -> None:
    flow = load_workflow(data_file(f"wfformat/{name}.json.gz"))
    shown = flow.summary()
    found = tuple(shown[key] for key in ("tasks", "edges", "levels", "data objects"))
    times = (round(shown["work"]), round(shown["critical path"]), flow.makespan, len(flow.machines))
    assert (*found, round(shown["bytes"] / 1e9, 2), *times) == WFFORMAT[name]
    assert not flow.unlisted()
    assert not flow.report
    machines = {machine.name for machine in flow.machines}
    assert all(machines.issuperset(task.machines) for task in flow)
    assert not write_wfformat(flow, tmp_path / "again.json.gz", version="1.6")
    back = load_workflow(tmp_path / "again.json.gz")
    assert same(back, flow)
    assert back.header == flow.header


def wfformat(**changes: Any) -> dict[str, Any]:
    """Return a small document, with what a path of keys names changed: ``workflow__specification=...``."""
    document: dict[str, Any] = {
        "name": "small",
        "schemaVersion": "1.6",
        "author": {"name": "Ann"},
        "workflow": {
            "specification": {
                "tasks": [
                    {"id": "a", "name": "split", "parents": [], "children": ["b"], "outputFiles": ["f"]},
                    {"id": "b", "name": "use", "parents": ["a"], "children": [], "inputFiles": ["f"]},
                ],
                "files": [{"id": "f", "sizeInBytes": 512}],
                "metrics": {"numberOfTasks": 2},
            },
            "execution": {
                "makespanInSeconds": 14.5,
                "executedAt": "2026-08-04T15:20:00-08:00",
                "tasks": [
                    {
                        "id": "a",
                        "runtimeInSeconds": 4.5,
                        "executedAt": "2026-08-04T23:20:01+00:00",
                        "command": {"program": "split", "arguments": ["-n"]},
                        "readBytes": 1024,
                    },
                    {"id": "b", "runtimeInSeconds": 9, "coreCount": 1.5, "priority": -2, "memoryInBytes": 1e6},
                ],
                "machines": [{"nodeName": "n", "cpu": {"coreCount": 8, "speedInMHz": 3600, "vendor": "AMD"}}],
            },
        },
    }
    for path, value in changes.items():
        at: Any = document
        *keys, last = [int(key) if key.isdecimal() else key for key in path.split("__")]
        for key in keys:
            at = at[key]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return document


def as_file(document: Any) -> io.StringIO:
    return io.StringIO(json.dumps(document))


def test_wfformat_records() -> None:
    flow = read_wfformat(as_file(wfformat()))
    first, second = flow
    assert (first.name, first.family, first.run, first.started, first.ended) == ("split", "split", 4.5, 1, 5.5)
    assert first.details == {"command": {"program": "split", "arguments": ["-n"]}, "readBytes": 1024}
    assert (second.cores, second.priority, second.memory, second.started) == (1.5, -2, 1e6, None)
    assert flow.machines == (RecordedMachine(name="n", cores=8, speed=3.6e9, details={"vendor": "AMD"}),)
    assert flow.makespan == 14.5
    assert flow.header == {
        "author": {"name": "Ann"},
        "execution": {"executedAt": "2026-08-04T15:20:00-08:00"},
    }


def test_wfformat_without_execution_or_machines() -> None:
    flow = read_wfformat(as_file(wfformat(workflow__execution=None)))
    assert [task.run for task in flow] == [None, None]
    assert flow.report.skipped == {"run time of a task, not in the file": 2}
    assert read_wfformat(as_file(wfformat(workflow__execution__machines=None))).machines == ()


def test_wfformat_repairs_are_counted() -> None:
    changes: dict[str, Any] = {
        "workflow__specification__tasks__1__parents": [],
        "workflow__specification__files": [],
        "workflow__execution__executedAt": "04-08-26T15:20Z",
    }
    flow = read_wfformat(as_file(wfformat(**changes)))
    assert flow.edges == (Edge("a", "b", ("f",), 0),)
    assert flow["a"].started == 0
    assert flow.report.repaired == {
        "edge that only children say": 1,
        "size of a file missing: 0 bytes taken": 1,
        "start of the workflow missing or late: that of its first task taken": 1,
    }


TASKS = "workflow.specification.tasks"


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"schemaVersion": "1.4"}, "schemaVersion", "version 1.5 or 1.6 expected, found '1.4'"),
        ({"workflow": None}, None, "'schemaVersion' and 'workflow' expected"),
        ({"workflow__specification": None}, "workflow", "key 'specification' expected, found 'execution'"),
        ({"workflow__specification__tasks": []}, TASKS, "tasks expected, found none"),
        ({"workflow__specification__tasks": {}}, TASKS, "a list expected, found {}"),
        ({"workflow__specification__tasks__0": 5}, f"{TASKS}[0]", "a table expected, found 5"),
        ({"workflow__specification__tasks__0__id": 5}, f"{TASKS}[0].id", "text expected, found 5"),
        ({"workflow__specification__tasks__0__id": "b"}, f"{TASKS}[1].id", "task id 'b' occurs twice"),
        ({"workflow__specification__tasks__1__parents": ["x"]}, f"{TASKS}[1].parents[0]", "id of a task .* found 'x'"),
        ({"workflow__specification__tasks__0__parents": ["b"]}, None, "in a circle: a -> b -> a"),
        ({"workflow__specification__files__0__sizeInBytes": -1}, "workflow.specification.files[0].sizeInBytes", ">= 0"),
        (
            {"workflow__execution__tasks__0__runtimeInSeconds": "4"},
            "workflow.execution.tasks[0].runtimeInSeconds",
            '"4"',
        ),
        (
            {"workflow__execution__tasks__0__runtimeInSeconds": True},
            "workflow.execution.tasks[0].runtimeInSeconds",
            "tr",
        ),
        ({"workflow__execution__tasks__1__coreCount": 0}, "workflow.execution.tasks[1].coreCount", "> 0 expected"),
        ({"workflow__execution__tasks__1__id": "z"}, "workflow.execution.tasks[1].id", "of the specification .* 'z'"),
        ({"workflow__execution__tasks__1__id": "a"}, "workflow.execution.tasks[1].id", "task id 'a' occurs twice"),
    ],
)
def test_wrong_wfformat_is_refused(changes, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_wfformat(as_file(wfformat(**changes)))
    assert (found.value.source, found.value.place) == ("an open file", place)


def test_wfformat_writer_keeps_what_it_can_and_says_what_not(tmp_path: Path) -> None:
    tasks = [
        Task(id="a b", run=2, family="f", started=5, ended=7, cores=2, memory=8, priority=1, machines=["m"]),
        Task(id="a_b", run=3, flop=9, run_on={"gpu": 1}),
        Task(id=3, run=4),
    ]
    flow = Workflow(tasks, [("a b", "a_b", 10.0), ("a b", 3, 20.5)], machines=[RecordedMachine(name="m", memory=1e9)])
    report = write_wfformat(flow, tmp_path / "flow.json")
    assert report.repaired == {"name with characters that WfFormat has not": 3}
    assert report.skipped == {
        "flop of a task: no place for it in WfFormat": 1,
        "run times by architecture, types or alpha of a task: no place for it in WfFormat": 1,
    }
    back = read_wfformat(tmp_path / "flow.json")
    assert list(back.tasks) == ["a_b_2", "a_b", "3"]
    assert [edge[:2] for edge in back.edges] == [("a_b_2", "a_b"), ("a_b_2", "3")]
    assert [edge.size for edge in back.edges] == [10, 20.5]
    first = back["a_b_2"]
    assert (first.family, first.started, first.ended, first.cores, first.memory) == ("f", 5, 7, 2, 8)
    assert (first.priority, first.machines, back.machines) == (1, ("m",), flow.machines)
    assert back.makespan == 7
    with pytest.raises(ValueError, match=r"version: 1.5 or 1.6 expected, found '1.4'"):
        write_wfformat(flow, tmp_path / "x", version="1.4")
    with pytest.raises(ValueError, match="tasks expected, found none"):
        write_wfformat(Workflow([]), tmp_path / "x")


def test_wfformat_metrics_and_missing_run_times(tmp_path: Path) -> None:
    flow = Workflow([Task(id="a", run=1), Task(id="b")], [("a", "b", 10)])
    report = write_wfformat(flow, tmp_path / "flow.json", version="1.6")
    assert report.skipped == {"run time of a task: WfFormat has those of all tasks or none": 1}
    document = json.loads((tmp_path / "flow.json").read_text())
    assert document["workflow"].keys() == {"specification"}
    assert document["workflow"]["specification"]["metrics"] == {
        "numberOfTasks": 2,
        "numberOfFiles": 1,
        "sumOfFileSizesInBytes": 10,
        "numberOfLevels": 2,
        "minimumWidth": 1,
        "maximumWidth": 1,
    }


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


TEXT = """// DAG automatically generated
// daggen -n 3
NODE_COUNT 6
NODE 0 1,2 ROOT 0.0 0.0
NODE 1 4 COMPUTATION 2000 0.15
NODE 2 6 COMPUTATION 3000 0.05
NODE 4 5 TRANSFER 800 0.0
NODE 5 6 COMPUTATION 500 0.20
NODE 6 - END 0.0 0.0
"""


def test_daggen_text() -> None:
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
        ("", None, "nodes of type COMPUTATION expected, found none"),
        ("hello", "line 1", "this is no task graph of DAGGEN: 'NODE id children TYPE cost alpha'"),
        (TEXT.replace("3000", "x"), "line 6", "a number >= 0 expected as cost of node 2, found 'x'"),
        (TEXT.replace("0.05", "1.5"), "line 6", "a number >= 0 and <= 1 expected as alpha of node 2, found '1.5'"),
        (TEXT.replace("NODE 2", "NODE 1"), "line 6", "node 1 occurs twice"),
        (TEXT.replace("NODE 4 5", "NODE 4 5,6"), "line 7", "one child of a TRANSFER expected, found 5,6"),
        (TEXT.replace("NODE 4 5", "NODE 4 9"), "line 7", "the id of a node expected as child, found '9'"),
        (TEXT.replace("NODE 4 5", "NODE 4 6"), "line 7", "a COMPUTATION as child of a TRANSFER expected, found node 6"),
        (TEXT.replace("COUNT 6", "COUNT 8"), None, "8 nodes expected as NODE_COUNT says, found 6"),
        (TEXT.replace("NODE 5 6 COMPUTATION", "NODE 5 1 COMPUTATION"), None, "in a circle: 1 -> 5 -> 1"),
        ("digraph {\n a [size=x] }", "line 2", "a number >= 0 expected as size of node a, found 'x'"),
        ("digraph {\n a [alpha=0] }", "line 2", "expected as size of node a, found none"),
        ("digraph { a [size=1]\n a [size=1] }", "line 2", "node a occurs twice"),
        ("digraph { a [size=1]\n a -> b }", "line 2", "a node with a size expected, found 'b' only in edges"),
        ("digraph { a [size=1] b [size=1] a -> b\n a -> b }", "line 2", "edge a -> b is given twice"),
        ("digraph { a [size=1] ", "line 1", "a node, an edge or '}' expected, found the end"),
        ("digraph { a [size=1\n", "line 1", "expected, found the end"),
        ("digraph {\n subgraph x { a } }", "line 2", "a node or an edge expected, found 'subgraph'"),
        ("digraph {\n a [size=1] } }", "line 2", "the end after '}' expected, found '}'"),
        ("digraph {\n % }", "line 2", "DOT expected, found '% }'"),
        ("NODE_COUNT " + "9" * 5000, "line 1", "this is no task graph of DAGGEN"),
        ("digraph { 1 [size=1] 01 [size=1] 1 -> 1 }", None, "in a circle: 1 -> 1"),
        ("digraph { }", None, "nodes expected, found none"),
        ("digraph { a [size=1] a -> a }", None, "in a circle: a -> a"),
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
    with pytest.raises(ValueError, match=r"task 'a': its flop are not known; hand in a speed"):
        write_daggen(flow, tmp_path / "x")
    with pytest.raises(ValueError, match="form: text or dot expected, found 'xml'"):
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


def test_sst() -> None:
    tasks = [
        {"id": 1, "execution_time": 100, "resources": {"cpu": 2, "memory": 1024}, "dependencies": []},
        {"id": "two", "execution_time": 50.5, "resources": {"cpu": 1}, "dependencies": [1], "priority": 3},
    ]
    document = {
        "tasks": tasks,
        "resources_available": {"cpu": 10, "memory": 8192},
        "scheduling_policy": "Static",
        "preemption": True,
    }
    flow = read_sst(as_file(document), memory_unit=1000)
    assert [(task.run, task.cores, task.memory, task.priority) for task in flow] == [
        (100, 2, 1024000, 0),
        (50.5, 1, 0, 3),
    ]
    assert flow.edges == (Edge(1, "two", (), 0),)
    assert flow.header == {
        "resources_available": {"cpu": 10, "memory": 8192000},
        "scheduling_policy": "Static",
        "preemption": True,
    }


GOOD = {"id": 1, "execution_time": 1}


@pytest.mark.parametrize(
    ("document", "place", "said"),
    [
        ([], None, r"a table expected, found \[\]"),
        ({"jobs": []}, None, "with 'tasks' expected"),
        ({"tasks": []}, "tasks", "tasks expected, found none"),
        ({"tasks": [GOOD], "colour": 1}, "colour", "unknown key; there are tasks, "),
        ({"tasks": [{**GOOD, "run": 1}]}, "tasks[0].run", "unknown key"),
        ({"tasks": [GOOD, GOOD]}, "tasks[1].id", "task id 1 occurs twice"),
        ({"tasks": [{**GOOD, "id": True}]}, "tasks[0].id", "an id .* expected, found true"),
        ({"tasks": [{"id": 1}]}, "tasks[0]", "key 'execution_time' expected, found 'id'"),
        ({"tasks": [{**GOOD, "execution_time": -1}]}, "tasks[0].execution_time", "a number >= 0 expected, found -1"),
        ({"tasks": [{**GOOD, "resources": {"cpu": 0}}]}, "tasks[0].resources.cpu", "a number > 0 expected, found 0"),
        ({"tasks": [{**GOOD, "resources": {"gpu": 1}}]}, "tasks[0].resources.gpu", "unknown key"),
        ({"tasks": [{**GOOD, "dependencies": [7]}]}, "tasks[0].dependencies[0]", "the id of a task expected, found 7"),
        ({"tasks": [{**GOOD, "dependencies": [1, 1]}]}, "tasks[0].dependencies[1]", "each dependency once"),
        ({"tasks": [{**GOOD, "dependencies": [1]}]}, None, "in a circle: 1 -> 1"),
        ({"tasks": [GOOD], "preemption": "yes"}, "preemption", "true or false expected, found 'yes'"),
    ],
)
def test_wrong_sst_is_refused(document, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_sst(as_file(document))
    assert (found.value.source, found.value.place) == ("an open file", place)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('{"a": 1,\n "b" 2}', "line 2, column 6", "JSON expected: Expecting ':' delimiter"),
        ('{"a": 1, "a": 2}', None, "each key once in a table expected, found 'a' twice"),
        ('{"a": NaN}', None, "a number expected, found NaN"),
        ("[" * 100_000, None, "too deep inside each other"),
        ("1" * 5000, None, "JSON expected"),
    ],
)
def test_wrong_json_is_refused(text, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_json(io.StringIO(text))
    assert (found.value.source, found.value.place) == ("an open file", place)


def test_format_is_seen_from_content(tmp_path: Path) -> None:
    contents = {
        "dax": "<adag><job id='a' runtime='1'/></adag>",
        "daggen": TEXT,
        "wfformat": json.dumps(wfformat()),
        "sst": json.dumps({"tasks": [GOOD]}),
    }
    assert contents.keys() == WORKFLOW_FORMATS.keys()
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        assert load_workflow(tmp_path / name).tasks == load_workflow(str(tmp_path / name), format=name).tasks


def test_what_is_no_workflow_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"a workflow in one of the formats dax, .* expected, found '{\"a\": 1}'"):
        load_workflow(path)
    with pytest.raises(InputError, match="no such file"):
        load_workflow(tmp_path / "none")
    with pytest.raises(InputError, match="cannot be read"):
        load_workflow(tmp_path)
    with pytest.raises(InputError, match="format 'xml' is not known"):
        load_workflow(path, format="xml")
    with pytest.raises(InputError, match=r"option of the reader expected: .*'repair'"):
        load_workflow(path, format="sst", repair=True)


@given(
    st.one_of(
        st.text(max_size=60),
        st.text("<>/=\"'adgjobuses chilref123", max_size=60),
        st.text('digraph{}[]->;,="size 12\n', max_size=60),
        st.text("NODE 0123,-COMPUTATION\n", max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["tasks", "id", "workflow", "schemaVersion", "name"]), inner, max_size=4
                )
            ),
        ).map(json.dumps),
    )
)
def test_readers_read_or_refuse_whatever_comes(text: str) -> None:
    for read in (read_dax, read_daggen, read_wfformat, read_sst):
        with suppress(InputError):
            assert len(read(io.StringIO(text)))


def test_versions_are_those_of_the_schema() -> None:
    assert VERSIONS == ("1.5", "1.6")
