"""What PBS tells: its JSON and what is wrong with it, values, chunks, states, arrays, ends."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from simmodel.foundation.errors import InputError
from simmodel_site.twin import Demand, JobReport
from simmodel_site.twin.mirror.node_states import nodes_out
from simmodel_site.twin.pbs import values
from simmodel_site.twin.pbs.commands import READS, PbsCommands, PbsError, read_document
from simmodel_site.twin.pbs.jobs import Reading, jobs_in
from simmodel_site.twin.pbs.nodes import NodeRecord, Size, nodes_in
from simmodel_site.twin.pbs.source import PbsSettings, PbsSource
from simmodel_site.twin.sources import Refused, source_settings
from tests.helpers.examples import up_to
from tests.site.helpers.pbs_stub import READERS, START, PbsStub

GB = 2.0**30

# ---------------------------------------------------------------------- documents


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *((each, each) for each in ("005", ".5", "123.", "-00", "inf", "nan", "1e999", "0x1F", "7", "9" * 5000)),
        ('"it\\\'s"', "it's"), ('"ab\\,c"', "ab,c"), ('"\\u00e9\\n"', "é\n"), ('"\\x"', "x"), ('""', ""),
        ('"a\nb\t\x1b"', "a\nb\t\x1b"), ('"c:\\\\x"', "c:\\x"), ('"reboot "now" (14:13)"', 'reboot "now" (14:13)'),
    ],
)  # fmt: skip
def test_what_is_no_json_is_read_as_it_was_meant(written: str, meant: str) -> None:
    text = f'{{\n"Jobs":{{\n"1.pbs":{{\n"Job_Name":{written},\n"Priority":0\n}}\n}}\n}}\n'
    assert read_document(text) == {"Jobs": {"1.pbs": {"Job_Name": meant, "Priority": "0"}}}


trees = st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=4), max_leaves=10)


@settings(max_examples=up_to(40))
@given(st.dictionaries(st.text(), trees, max_size=4))
def test_json_is_read_as_it_is(document: dict[str, Any]) -> None:
    for indent in (None, 1):
        assert read_document(json.dumps(document, indent=indent)) == document
        assert read_document(json.dumps(document, indent=indent, ensure_ascii=False)) == document


@given(st.text(alphabet="{}[]\",:\\ \n'01ax.-", max_size=60))
def test_whatever_comes_is_a_document_or_one_sentence(text: str) -> None:
    found: object = None
    try:
        found = read_document(text)
    except InputError as error:
        found = {str(error): ""}
    assert isinstance(found, dict)
    assert not any("\n" in key for key in found if key.startswith("invalid JSON"))


def test_what_cannot_be_read_is_one_sentence() -> None:
    with pytest.raises(InputError, match="qstat: invalid JSON: Expecting value"):
        read_document("", "qstat")
    with pytest.raises(InputError, match=re.escape("must be one JSON object, got []")):
        read_document("[]")
    with pytest.raises(InputError, match="nested too deeply"):
        read_document('{"a":' * 100_000)


def test_tables_that_are_told_twice_are_one() -> None:
    assert read_document('{"Jobs":{"1":{"a":1}},"Jobs":{"2":{"b":2}}}') == {"Jobs": {"1": {"a": "1"}, "2": {"b": "2"}}}


# ---------------------------------------------------------------------- values


@given(st.integers(0, 10**6))
def test_times_are_read_as_written(number: int) -> None:
    text = f"{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
    assert values.seconds(text) == values.seconds(str(number)) == float(number)


@given(st.integers(0, 2**40), st.sampled_from(["b", "kb", "mb", "gb"]))
def test_memory_is_read_as_written(number: int, unit: str) -> None:
    assert values.memory(f"{number}{unit}") == number * 1024.0 ** ["b", "kb", "mb", "gb"].index(unit)


@given(st.integers(1, 10**9), st.one_of(st.none(), st.integers(0, 10**6)), st.sampled_from(["", "far", "far.example"]))
def test_ids_survive(job: int, task: int | None, server: str) -> None:
    name = f"{job}{'' if task is None else f'[{task}]'}.{server or 'pbs'}"
    own, array, whole = values.job_of(name, "pbs.example")
    assert not whole
    assert (array is None) == (task is None)
    assert values.pbs_id(own) == (name if server else name.removesuffix(".pbs"))


@pytest.mark.parametrize(
    ("read", "text", "accepted"),
    [
        (values.seconds, "soon", "a duration such as '01:00:00'"),
        (values.instant, "yesterday", "an instant such as 'Sun Nov 16 19:36:09 2025'"),
        (values.memory, "much", "an amount of memory such as '4gb'"),
        (values.number, "inf", "a number"),
        (values.chunks, "0:ncpus=1", "chunks such as"),
        (values.chunks, "2:ncpus=many", "chunks such as"),
        (values.chunks, "2:ncpus=1:=", "chunks such as"),
        (values.allocated, "(n1:ncpus=x)", "nodes such as"),
        (values.job_of, "x.pbs", "an id of a job such as"),
    ],
)  # fmt: skip
def test_values_that_make_no_sense_are_one_sentence(read: Any, text: str, accepted: str) -> None:
    with pytest.raises(InputError, match="must be " + re.escape(accepted)):
        read(text)


def test_amounts_beyond_the_limit_are_refused() -> None:
    with pytest.raises(InputError, match="limit count"):
        values.chunks("999999999:ncpus=1")
    with pytest.raises(InputError, match="limit count"):
        list(values.task_ranges("0-999999999"))


# ---------------------------------------------------------------------- jobs


def job(**attributes: Any) -> dict[str, Any]:
    return {"job_state": "Q", "queue": "workq", "ctime": "5", "Job_Owner": "ada@host", **attributes}


def read_one(reading: Reading | None = None, **attributes: Any) -> JobReport:
    (found,) = jobs_in({"pbs_server": "pbs", "Jobs": {"7.pbs": job(**attributes)}}, reading)
    return found


def request(select: str, place: str = "free", node: Size | None = None, **resources: str) -> Demand:
    asked = {"select": select, "place": place, **resources}
    return read_one(Reading(node=node or Size(cores=16, memory=64 * GB, gpus=4)), Resource_List=asked).request


UNLIKE = {"unmodelled": ("chunks unlike each other",)}


@pytest.mark.parametrize(
    ("select", "place", "expected"),
    [
        ("4:ncpus=8", "free", {"processors": 32}),
        ("1:ncpus=8", "free", {"processors": 8, "nodes": 1, "cores_per_node": 8}),
        ("4:ncpus=8", "scatter", {"processors": 32, "nodes": 4, "cores_per_node": 8}),
        ("4:ncpus=2", "pack", {"processors": 8, "nodes": 1, "cores_per_node": 8}),
        ("4:ncpus=8:mem=9gb", "free", {"processors": 32, "nodes": 2, "cores_per_node": 16, "memory_per_node": 18 * GB}),
        ("4:ncpus=1:ngpus=1", "free", {"processors": 4, "nodes": 1, "cores_per_node": 4, "gpus_per_node": 4}),
        ("2:ncpus=4", "scatter:excl", {"processors": 32, "nodes": 2, "cores_per_node": 16}),
        ("2:ncpus=4", "excl", {"processors": 16, "nodes": 1, "cores_per_node": 16}),
        ("1:ncpus=16+4:ncpus=2", "scatter", {"processors": 24, "nodes": 5, "cores_per_node": 5, **UNLIKE}),
    ],
)  # fmt: skip
def test_chunks_become_processors_and_nodes(select: str, place: str, expected: dict[str, Any]) -> None:
    assert request(select, place) == Demand(**expected, user="ada", partition="workq")


def test_a_request_has_what_its_job_says() -> None:
    reading = Reading(licences=frozenset(("matlab",)), priorities=True)
    asked = {"select": "1:ncpus=2", "walltime": "01:00:00", "matlab": "3", "cput": "9"}
    found = read_one(reading, Resource_List=asked, Account_Name="physics", Priority="7", Job_Name="sim", depend="")
    assert found.request == Demand(
        processors=2, nodes=1, cores_per_node=2, requested=3600.0, consumables={"matlab": 3.0}, user="ada",
        group="physics", partition="workq", priority=7.0, name="sim",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "state"),
    [
        ({}, "waiting"),
        ({"comment": "Not Running: Insufficient amount of resource: ncpus"}, "waiting"),
        ({"comment": "Not Running: User has reached server running job limit."}, "held"),
        ({"comment": "Can Never Run: Insufficient amount of queue resource: ncpus"}, "held"),
        ({"job_state": "H", "Hold_Types": "u"}, "held"),
        ({"job_state": "H", "Hold_Types": "s", "depend": "afterok:3.pbs@pbs"}, "waiting"),
        ({"job_state": "H", "Hold_Types": "us", "depend": "afterok:3.pbs@pbs"}, "held"),
        ({"job_state": "H", "Hold_Types": "s", "depend": "afternotok:3.pbs@pbs"}, "held"),
        ({"job_state": "W", "Execution_Time": "99"}, "held"),
        ({"job_state": "W", "Execution_Time": "99", "Resource_List": {"simmodel_mark": "simmodel-held@99"}}, "waiting"),
        ({"job_state": "T"}, "waiting"),
        *(({"job_state": word}, "running") for word in "RESU"),
        ({"job_state": "F", "Exit_status": "0"}, "completed"),
        ({"job_state": "F"}, "cancelled"),
        ({"job_state": "F", "Exit_status": "0", "substate": "91"}, "cancelled"),
        ({"job_state": "M", "Exit_status": "0"}, "cancelled"),
    ],
)  # fmt: skip
def test_states(attributes: dict[str, Any], state: str) -> None:
    assert read_one(**attributes).state == state


def test_a_job_that_runs_has_its_nodes_and_one_that_waits_what_pbs_foretells() -> None:
    found = read_one(job_state="R", stime="Thu Jan  1 00:01:00 1970", exec_vnode="(n1:ncpus=8)+(n2:ncpus=4:mem=1gb)")
    assert (found.started, found.nodes, found.partition) == (60.0, (("n1", 8), ("n2", 4)), "workq")
    assert (found.request.processors, found.request.nodes) == (12, 2)
    assert read_one(estimated={"start_time": "Thu Jan  1 00:02:00 1970"}).foretold == 120.0
    ended = read_one(job_state="F", Exit_status="0", stime="60", resources_used={"walltime": "00:00:30"}, mtime="500")
    assert ended.ended == 90.0


def test_arrays_are_their_tasks() -> None:
    array = job(job_state="B", array_indices_remaining="2-3,9", Resource_List={"select": "1:ncpus=2"})
    found = jobs_in({"Jobs": {"7[].pbs": array}})
    assert [(each.job, each.state, each.request.array) for each in found] == [
        ("7_2", "waiting", 7), ("7_3", "waiting", 7), ("7_9", "waiting", 7)
    ]  # fmt: skip
    told = {"7[].pbs": array, "7[2].pbs": job(job_state="R", stime="9"), "7[3].pbs": job()}
    assert [(each.job, each.state) for each in jobs_in({"Jobs": told})] == [("7_2", "running"), ("7_3", "waiting")]
    assert not jobs_in({"Jobs": {"7[].pbs": {**array, "array_indices_remaining": "-"}}})


def test_the_order_is_that_of_queueing_and_of_priorities_where_they_count() -> None:
    told = {"8.pbs": job(qtime="1"), "10.pbs": job(qtime="1"), "7.pbs": job(qtime="2", Priority="5")}
    assert [each.job for each in jobs_in({"Jobs": told})] == [8, 10, 7]
    assert [each.job for each in jobs_in({"Jobs": told}, Reading(priorities=True))] == [7, 8, 10]


def test_what_a_request_does_not_express_is_counted() -> None:
    others: Counter[str] = Counter()
    asked = {"select": "1:ncpus=2:arch=arm+2:ncpus=1", "software": "x", "ncpus": "4"}
    jobs_in({"Jobs": {"7.pbs": job(Resource_List=asked)}}, others=others)
    assert others == {"arch": 1, "software": 1, "chunks unlike each other": 1}


@pytest.mark.parametrize(
    ("name", "given_", "sentence"),
    [
        ("7.pbs", [], r"job '7.pbs': must be an object, got \[\]"),
        ("x", job(), "job 'x': must be an id of a job such as '12.server', got 'x'"),
        ("7.pbs", job(ctime=""), "job '7.pbs', ctime: must be known|job '7.pbs'.ctime: must be known"),
        ("7.pbs", job(job_state="Z"), "job_state: must be a state of jobs such as 'Q', got 'Z'"),
        ("7.pbs", job(Resource_List={"select": "x:y"}), "Resource_List.select: must be chunks"),
        ("7.pbs", job(Resource_List="x"), "Resource_List: must be an object"),
        ("7.pbs", job(queue={"a": "b"}), "queue: must be a text"),
    ],
)  # fmt: skip
def test_a_job_that_makes_no_sense_is_counted_and_the_others_are_read(name: str, given_: Any, sentence: str) -> None:
    refused = Refused()
    found = jobs_in({"Jobs": {"1.pbs": job(), name: given_}}, refused=refused)
    assert ([each.job for each in found], refused.total()) == ([1], 1)
    assert re.search(sentence, refused.last)
    with pytest.raises(InputError, match=sentence):
        jobs_in({"Jobs": {name: given_}})


# ---------------------------------------------------------------------- nodes and the source


def test_nodes_and_their_states() -> None:
    states = {"a": "free", "b": "job-exclusive", "c": "offline", "d": "down,offline", "e": "state-unknown,down"}
    told = {name: {"state": state, "resources_available": {"ncpus": "4"}} for name, state in states.items()}
    told |= {"natural": {"state": "free", "resources_available": {"ncpus": "0"}}}
    nodes = list(nodes_in({"nodes": told}))
    assert [node.name for node in nodes] == list("abcde")
    assert nodes_out((node.name, node.service) for node in nodes) == (("d", "e"), ("c",))
    assert isinstance(nodes[0], NodeRecord)
    refused = Refused()
    assert not list(nodes_in({"nodes": {"x": {"pcpus": "many"}}}, refused))
    assert refused.total() == 1


def test_the_commands_only_read_and_others_are_refused(tmp_path: Path) -> None:
    pbs = PbsStub(tmp_path / "pbs")
    assert {words[0] for words in READS.values()} <= set(READERS)
    for name in ("qdel", "jobs; qdel 7", "qstat"):
        with pytest.raises(InputError, match="unknown command"):
            pbs.commands().read(name)
    with pytest.raises(InputError, match="jobs: must be none for 'nodes', got 1"):
        pbs.commands().read("nodes", [7])
    assert not pbs.calls()
    with pytest.raises(InputError, match="timeout: must be a number > 0"):
        PbsCommands(timeout=0)


def test_an_answer_that_is_no_json_is_told(tmp_path: Path) -> None:
    (tmp_path / "qstat").write_text("#!/bin/sh\necho '{\"Jobs\":'\n")
    (tmp_path / "qstat").chmod(0o755)
    with pytest.raises(PbsError, match="qstat -f -t -F json: invalid JSON"):
        PbsCommands(folder=str(tmp_path)).document("jobs")


def test_jobs_that_vanish_are_asked_for_once(tmp_path: Path) -> None:
    pbs = PbsStub(tmp_path / "pbs")
    source = PbsSource("alps", commands=pbs.commands(), clock=lambda: pbs.now)
    pbs.submit(run=10.0)
    pbs.advance()
    source.report()
    pbs.advance(30.0)
    ended = source.report()
    assert ended is not None
    assert [(each.job, each.state, each.ended) for each in ended.jobs] == [(1, "completed", START + 10.0)]
    again = source.report()
    assert again is not None
    assert not again.jobs
    assert ["qstat", "-x", "-f", "-F", "json", "1"] in pbs.calls()


def test_without_history_jobs_that_vanish_are_over(tmp_path: Path) -> None:
    pbs = PbsStub(tmp_path / "pbs")
    pbs.change(history=False)
    source = PbsSource("alps", commands=pbs.commands(), clock=lambda: pbs.now)
    pbs.submit(run=10.0)
    pbs.advance()
    source.report()
    pbs.advance(30.0)
    report = source.report()
    assert report is not None
    assert not report.jobs
    assert "Unknown Job Id" in source.refused.last


def test_the_source_says_what_it_sees(tmp_path: Path) -> None:
    pbs = PbsStub(tmp_path / "pbs")
    pbs.submit(resources={"software": "x"})
    pbs.change(attributes={"job_history_enable": "False", "query_other_jobs": "False"})
    told = PbsSource("alps", commands=pbs.commands()).check()
    assert told[0] == "PBS 23.06.06 answers; its server is pbs"
    assert re.fullmatch(r"qstat: 1 job in \d+ ms", told[1])
    assert told[3:] == [
        "query_other_jobs is False: users who are no operators see their own jobs alone",
        "the source should have history = false, as job_history_enable is False",
        "not expressed: software, asked for by 1 job",
        "it runs pbsnodes, qstat, with arguments that only read",
    ]
    assert not pbs.writes()


def test_the_settings_are_those_of_a_configuration() -> None:
    settings = source_settings({"kind": "pbs", "interval": 5.0, "express": "short", "start": True})
    assert isinstance(settings, PbsSettings)
    assert (settings.interval, settings.express, settings.start) == (5.0, "short", True)
    assert settings.hands("hold-and-release").start
    assert not settings.hands("hold-and-release", restoring=True).start
