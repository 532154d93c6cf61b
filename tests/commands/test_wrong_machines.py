"""What is wrong with a machine or its work gets one clear sentence, and the command line exits with 2."""

import json

import pytest

from simmodel.cli import main

TOML = """\
kind = "machine"
pools = [{ name = "ram", size = "64GB" }, { name = "card", size = "16GB" }]
architectures = [{ name = "x86" }, { name = "gpu", performance = [1.0, 4.0] }]
processors = [
  { name = "core", count = 2, type = "CPUCore", architecture = "x86", pool = "ram" },
  { name = "gpu", type = "GPU", architecture = "gpu", pool = "card", setup = 1 },
]
links = [
  { name = "up", bandwidth = "1GBps", between = ["ram", "card"], one_way = true },
  { name = "down", bandwidth = "1GBps", between = ["card", "ram"], one_way = true },
]
"""
XML = """\
<Platform>
<MemoryPool id="ram" size="64000"/>
<MemoryPool id="card" size="16000"/>
<Architecture id="x86" perf_min="1" perf_max="1"/>
<Accelerator id="core" archid="x86" memorypool="ram" type="CPUCore" setupcost="0"/>
<Accelerator id="gpu" archid="x86" memorypool="card" type="GPU" setupcost="1"/>
<Link src="ram" dst="card" speed="25"/>
<Link src="card" dst="ram" speed="25"/>
</Platform>
"""
LAUGHS = '<!DOCTYPE a [\n<!ENTITY a "ha">\n<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">\n]>\n<Platform>&b;</Platform>'
DAX = """\
<adag>
<job id="a" runtime="5"><uses file="f" link="output" size="100"/></job>
<job id="b" runtime="5"><uses file="f" link="input" size="100"/></job>
<child ref="b"><parent ref="a"/></child>
</adag>
"""
SST = {"tasks": [{"id": 1, "execution_time": 5}, {"id": 2, "execution_time": 5, "dependencies": [1]}]}
TASKS = """\
generator = "tasks"
[parameters]
edges = [["a", "b", "1MB"]]
[[parameters.tasks]]
id = "a"
run = 5
implementations = ["GPU"]
[[parameters.tasks]]
id = "b"
run = 5
"""


def changed(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new)


def sst(**changes) -> str:
    first, second = SST["tasks"]
    return json.dumps({**SST, "tasks": [{**first, **changes}, second]})


GOOD = {"m.toml": TOML, "m.xml": XML, "w.dax": DAX, "w.json": json.dumps(SST), "w.toml": TASKS}


def run(folder, platform: str, workload: str, files: dict[str, str]) -> int:
    for name, text in {**GOOD, **files}.items():
        (folder / name).write_text(text)
    return main(["machine", str(folder / platform), str(folder / workload)])


@pytest.mark.parametrize("platform", ["m.toml", "m.xml"])
@pytest.mark.parametrize("workload", ["w.dax", "w.json", "w.toml"])
def test_right_files_run(platform, workload, tmp_path, capsys) -> None:
    assert run(tmp_path, platform, workload, {}) == 0
    assert "2 (2 done)" in capsys.readouterr().out


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        # unknown pool, architecture
        ("m.toml", changed(TOML, 'pool = "card"', 'pool = "cart"'), "processors[1].pool: unknown pool 'cart'"),
        ("m.toml", changed(TOML, '["ram", "card"]', '["ram", "cart"]'), "links[0].between: unknown pool 'cart'"),
        (
            "m.xml",
            changed(XML, 'memorypool="card"', 'memorypool="cart"'),
            "m.xml, line 6: unknown memory pool 'cart'",
        ),
        (
            "m.toml",
            changed(TOML, 'architecture = "gpu"', 'architecture = "gpv"'),
            "processors[1].architecture: unknown architecture 'gpv'",
        ),
        (
            "m.xml",
            changed(XML, 'archid="x86" memorypool="ram"', 'archid="x87" memorypool="ram"'),
            "m.xml, line 5: unknown architecture 'x87'",
        ),
        # missing link
        (
            "m.toml",
            changed(TOML, '  { name = "down", bandwidth = "1GBps", between = ["card", "ram"], one_way = true },\n', ""),
            "m.toml, links: missing links from pool 'card' to pool 'ram'",
        ),
        (
            "m.xml",
            changed(XML, '<Link src="card" dst="ram" speed="25"/>\n', ""),
            "m.xml, line 7: missing links from pool 'card' to pool 'ram'",
        ),
        # negative and wrong sizes
        ("m.toml", changed(TOML, '"16GB"', "-16e9"), "m.toml, pools[1].size: "),
        (
            "m.xml",
            changed(XML, 'size="16000"', 'size="-1"'),
            "m.xml, line 3: size of <MemoryPool> 'card': must be a number > 0, got '-1'",
        ),
        ("m.toml", changed(TOML, '"16GB"', '"16Gbps"'), "must be a quantity in B such as '64GB', got '16Gbps'"),
        # duplicate ids
        (
            "m.toml",
            changed(TOML, 'name = "gpu", type', 'name = "core0", type'),
            "duplicate name 'core0'",
        ),
        (
            "m.xml",
            changed(XML, 'Accelerator id="gpu"', 'Accelerator id="core"'),
            "m.xml, line 6: duplicate <Accelerator> id 'core'",
        ),
        # unknown keys
        ("m.toml", changed(TOML, "setup = 1", "set = 1"), "m.toml, processors[1].set: unknown key 'set'"),
        (
            "m.xml",
            changed(XML, 'speed="25"/>\n<Link', 'sped="25"/>\n<Link'),
            "m.xml, line 7: <Link>: unknown key 'sped'",
        ),
        # malformed
        ("m.toml", "kind = machine", "m.toml, line 1: invalid TOML"),
        ("m.xml", XML.replace("</Platform>", ""), "m.xml, line 10: invalid XML: no element found"),
        ("m.xml", LAUGHS, "m.xml, line 2: entity declarations are not accepted, got 'a'"),
        ("w.dax", LAUGHS, "w.dax, line 2: entity declarations are not accepted, got 'a'"),
        ("w.json", json.dumps(SST)[:-1], "w.json, line 1, column 96: invalid JSON"),
        # work: circle, duplicate ids, negative size, what is not there
        (
            "w.dax",
            changed(DAX, "</adag>", '<child ref="a"><parent ref="b"/></child></adag>'),
            "w.dax: tasks form a cycle: a -> b -> a",
        ),
        ("w.json", sst(dependencies=[2]), "w.json: tasks form a cycle: 1 -> 2 -> 1"),
        (
            "w.toml",
            changed(TASKS, '"1MB"]', '"1MB"], ["b", "a"]'),
            "w.toml: tasks form a cycle: a -> b -> a",
        ),
        ("w.dax", changed(DAX, 'id="b"', 'id="a"'), "w.dax, line 3: duplicate job id 'a'"),
        ("w.json", sst(id=2), "w.json, tasks[1].id: duplicate task id 2"),
        ("w.toml", changed(TASKS, 'id = "b"', 'id = "a"'), "w.toml: duplicate task id 'a'"),
        (
            "w.dax",
            changed(DAX, 'link="output" size="100"', 'link="output" size="-7"'),
            "w.dax, line 2: size of file 'f': must be >= 0, got -7",
        ),
        (
            "w.toml",
            changed(TASKS, '"1MB"', "-7"),
            "w.toml, edges[0]: must be a finite quantity in B >= 0, got -7",
        ),
        (
            "w.dax",
            changed(DAX, '<parent ref="a"/>', '<parent ref="z"/>'),
            "w.dax, line 4: ref of <parent>: unknown job 'z'",
        ),
        # tasks that no processor can run
        (
            "w.toml",
            changed(TASKS, '["GPU"]', '["TPU"]'),
            "task 'a': no processor of type TPU; known types: CPUCore, GPU",
        ),
        ("w.json", sst(resources={"cpu": 5, "memory": 1}), "task 1"),
        ("w.json", sst(resources={"cpu": 1, "memory": 1e9}), "task 1"),
        ("w.toml", changed(TASKS, '"1MB"', '"1TB"'), "a->b"),
    ],
)
def test_wrong_files_get_one_sentence(file, text, said, tmp_path, capsys) -> None:
    platform = file if file.startswith("m.") else "m.toml"
    workload = file if file.startswith("w.") else "w.dax"
    assert run(tmp_path, platform, workload, {file: text}) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert "Traceback" not in shown.err
    assert not shown.out
