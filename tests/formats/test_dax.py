"""DAX: real workflows against their known figures, and the errors for invalid files."""

import io

import pytest

from simmodel import simulate
from simmodel.catalogue import load_workflow
from simmodel.formats.dax import read_dax
from simmodel.foundation.errors import InputError
from simmodel.work.workflow import Edge, Workflow
from tests.helpers.data_files import data_file

# name: tasks, edges, levels, families, files, s of work, s of the critical path, roots, sinks, reads of files
# written by another task without an edge, files written by several tasks
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


@pytest.mark.few(5)
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
        "size of file 'chr21.0.21.sfq': must be >= 0, got -6585019 (and 113 more files with a negative size); "
        "repair=True adds 2**32, for an overflow of 32 bits"
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


def test_files_edges_and_profiles_of_dax_3_are_read() -> None:
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
    assert flow.report.repaired == {
        "file with several sizes: that of its writer taken, else the first": 1,
        "order that files imply, not in the file": 2,
    }


def test_a_job_waits_for_the_file_that_it_reads_though_no_element_says_so() -> None:
    text = """<adag><job id="b" runtime="10"><uses file="f" link="input" size="5"/></job>
    <job id="a" runtime="100"><uses file="f" link="output" size="5"/></job></adag>"""
    flow = read_dax(io.StringIO(text))
    assert flow.edges == (Edge("a", "b", ("f",), 5),)
    assert flow.report.repaired == {"order that files imply, not in the file": 1}
    assert simulate(4, flow, "fcfs").jobs["end"].tolist() == [110, 100]
    assert simulate("multicore-2x10", flow, "heft").tasks["start"].tolist()[0] >= 100


def test_a_cycle_through_a_file_is_refused() -> None:
    """Task 3 reads what task 1 writes, and comes before it."""
    jobs = '<job id="1"><uses file="o1" link="output"/></job><job id="2"/><job id="3"><uses file="o1"/></job>'
    text = f'<adag>{jobs}<child ref="2"><parent ref="3"/></child><child ref="1"><parent ref="2"/></child></adag>'
    with pytest.raises(InputError, match="an open file: tasks form a cycle: 1 -> 3 -> 2 -> 1, since a task waits for"):
        read_dax(io.StringIO(text))


@pytest.mark.parametrize(
    "name", ["CyberShake_30", "Epigenomics_24", "HEFT_paper", "Inspiral_30", "Montage_25", "Sipht_30", "floodplain"]
)
def test_complete_files_get_no_further_edges(name) -> None:
    assert "order that files imply, not in the file" not in read_dax(data_file(f"dax/{name}.xml.gz")).report.repaired


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE lolz [
 <!ENTITY lol "lol">
 <!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">
]>
<adag>&lol2;</adag>"""


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "line 1", "invalid XML: no element found"),
        ("<adag>\n<job>\n</adag>", "line 3", "invalid XML: mismatched tag"),
        (LAUGHS, "line 3", "entity declarations are not accepted, got 'lol'"),
        (
            "<?xml version='1.0' encoding='nonsense'?><adag/>",
            None,
            "cannot decode the XML: unknown encoding: nonsense",
        ),
        ("<?xml version='1.0' encoding='utf-7'?><adag/>", None, "cannot decode the XML"),
        ("<!DOCTYPE a [<!ENTITY % p SYSTEM 'f'> %p;]><a/>", "line 1", "not accepted, got 'p'"),
        ("\n<platform/>", "line 2", r"must be a Pegasus workflow \(<adag>\), got <platform>"),
        ("<adag/>", "line 1", "no jobs"),
        ("<adag>\n<job name='x'/></adag>", "line 2", "<job>: missing 'id'"),
        ("<adag><job id='a'/>\n<job id='a'/></adag>", "line 2", "duplicate job id 'a'"),
        (
            "<adag>\n<job id='a' runtime='x'/></adag>",
            "line 2",
            "runtime of job 'a': must be a number >= 0, got 'x'",
        ),
        (
            "<adag>\n<job id='a' runtime='nan'/></adag>",
            "line 2",
            "runtime of job 'a': must be a number >= 0, got 'nan'",
        ),
        ("<adag>\n<job id='a' runtime='-3'/></adag>", "line 2", "got -3; repair=True sets it to 0"),
        ("<adag>\n<job id='a' cores='0'/></adag>", "line 2", "cores of job 'a': must be a number > 0, got '0'"),
        ("<adag><job id='a'>\n<uses link='input'/></job></adag>", "line 2", "<uses>: missing file name"),
        ("<adag><job id='a'>\n<uses file='f' size='1k'/></job></adag>", "line 2", "size of file 'f': must be a number"),
        (
            "<adag><job id='a'>\n<uses file='f' size='-9'/></job></adag>",
            "line 2",
            "size of file 'f': must be >= 0, got -9; repair",
        ),
        ("<adag><job id='a'/>\n<child ref='x'/></adag>", "line 2", "ref of <child>: unknown job 'x'"),
        ("<adag><job id='a'/><child ref='a'>\n<parent/></child></adag>", "line 2", "ref of <parent>: unknown job ''"),
        ("<adag><job id='a'/>\n<dax id='b'/></adag>", "line 2", r"nested workflows \(<dax>\) are not supported"),
        ("<adag><job id='a'/><child ref='a'><parent ref='a'/></child></adag>", None, "tasks form a cycle: a -> a"),
    ],
)
def test_wrong_dax_is_refused(text, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_dax(io.StringIO(text))
    assert (found.value.source, found.value.place) == ("an open file", place)


def test_size_beyond_32_bits_cannot_be_repaired() -> None:
    text = "<adag><job id='a'><uses file='f' size='-3000000000'/></job></adag>"
    with pytest.raises(InputError, match=r"got -3000000000$"):
        read_dax(io.StringIO(text), repair=True)
