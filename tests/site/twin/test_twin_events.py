"""The envelope of events: documents that come back equal, and one sentence for each that is none."""

import random
import sys
from typing import Any

import attrs
import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin.events import (
    KINDS,
    Changed,
    Demand,
    Ended,
    Event,
    JobReport,
    NodesChanged,
    Noticed,
    Passed,
    Started,
    StateReport,
    Submitted,
    event_of,
    job_id,
    read_fields,
)

FULL = Demand(
    nodes=2,
    cores_per_node=4,
    processors=8,
    gpus_per_node=1,
    memory_per_node=2e9,
    consumables={"matlab": 2.0},
    requested=60.0,
    user="ada",
    group=7,
    queue="short",
    partition="a,b",
    priority=3.5,
    name='x"\n\x1b$(rm)',
    dependencies=(("6", "success"), (5, "end")),
    array="7",
)
ABOUT: Any = {"cluster": "alps", "time": 9.5, "sequence": 3}
OF_JOB = {**ABOUT, "job": "7_1", "submit": 4.25}
EVENTS: list[Event] = [
    Submitted(**OF_JOB, request=FULL, held=True),
    Started(**OF_JOB, partition="a", nodes=(("n1", 4), ("n2", 4))),
    Ended(**OF_JOB, status="failed"),
    Changed(**OF_JOB, request=FULL),
    *(KINDS[kind](**OF_JOB) for kind in ("requeued", "held", "released")),
    NodesChanged(**ABOUT, state="draining", nodes=("n1",)),
    NodesChanged(**ABOUT, state="down", processors=4, partition="a"),
    Noticed(**ABOUT, what="started", job="7_1"),
    Noticed(**ABOUT, what="submitted"),
    Passed(**ABOUT),
    StateReport(
        **ABOUT,
        jobs=(
            JobReport(job=7, submit=1.0, state="running", request=FULL, started=2.0, nodes=(("n1", 8),)),
            JobReport(job=8, submit=1.0, state="failed", request=FULL, started=2.0, ended=3.0),
        ),
        down=("n3",),
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_comes_back_from_its_line(event: Event) -> None:
    assert "\n" not in event.line()
    assert event_of(event.line()) == event


def test_every_kind_is_among_those_that_come_back() -> None:
    assert {event.kind for event in EVENTS} == set(KINDS)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "must be one JSON object"),
        ("[1]", "must be one JSON object, got [1]"),
        ("[" * 100_000, "must be one JSON object"),
        ('{"cluster": "alps", "time": 1}', "unknown event"),
        ('{"kind": "ended", "cluster": "alps", "time": 1, "submit": 1}', "job: missing key"),
        ('{"kind": "ended", "cluster": "alps", "time": NaN, "job": 1, "submit": 1}', "time: must be a"),
        ('{"kind": "ended", "cluster": "alps", "time": 1e999, "job": 1, "submit": 1}', "time: must be a"),
        ('{"kind": "ended", "cluster": 1, "time": 1, "job": 1, "submit": 1}', "cluster: must be a text, got 1"),
        ('{"kind": "ended", "cluster": "a", "time": 1, "job": 1, "submit": 1, "state": "x"}', "state: unknown key"),
        (
            '{"kind": "started", "cluster": "a", "time": 1, "job": 1, "submit": 1, "nodes": [["n1"]]}',
            "nodes[0]: must be a list of 2, got ['n1']",
        ),
        (
            '{"kind": "submitted", "cluster": "a", "time": 1, "job": 1, "submit": 1, "request": {"processors": "4"}}',
            "request.processors: must be a whole number, got '4'",
        ),
        (
            '{"kind": "submitted", "cluster": "a", "time": 1, "job": 1, "submit": 1, "request": {"consumables": '
            '{"matlab": Infinity}}}',
            "request.consumables.matlab: must be a finite number, got inf",
        ),
        (
            '{"kind": "submitted", "cluster": "a", "time": 1, "job": 1, "submit": 1, "request": {"consumables": '
            '{"matlab": "two"}}}',
            "request.consumables.matlab: must be a finite number, got 'two'",
        ),
    ],
)
def test_what_is_no_event_is_refused_in_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        event_of(line, "events.jsonl", "line 8")
    assert str(caught.value).startswith("events.jsonl, line 8")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_job_of_a_request_runs_for_its_limit() -> None:
    job = FULL.job("7_1", 4.25)
    assert (job.run, job.requested, job.processors, job.partitions) == (60.0, 60.0, 8, ("a", "b"))
    assert Demand().job(1, 0.0, unlimited=5.0).run == 5.0


def test_the_text_of_a_number_is_the_same_job() -> None:
    text = Ended(cluster="alps", time=9.0, job="12", submit=4.0)
    number = Ended(cluster="alps", time=9.0, job=12, submit=4.0)
    assert text == number
    assert text.key == number.key
    assert Demand(dependencies=(("6", "end"),), array="7") == Demand(dependencies=((6, "end"),), array=7)
    assert [
        Ended(cluster="alps", time=9.0, job=job, submit=4.0).job for job in ("7_1", "007", "٣", "-1", "0", "-0")
    ] == [
        *("7_1", "007", "٣", -1, 0, "-0"),
    ]
    assert [job_id(str(edge)) for edge in (2**63 - 1, 2**63)] == [2**63 - 1, str(2**63)]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {"kind": "ended", "status": "weird"},
            "status: must be completed, timeout, failed, cancelled or lost, got 'weird'",
        ),
        ({"kind": "ended", "status": ["lost"]}, "status: must be completed, timeout, failed, cancelled or lost"),
        ({"kind": "nodes", "state": "sideways"}, "state: must be up, down or draining, got 'sideways'"),
        ({"kind": "noticed", "what": ""}, "what: must be submitted, started, ended or nodes, got ''"),
    ],
)
def test_unknown_words_are_refused(document: dict[str, Any], said: str) -> None:
    about = {"job": 1, "submit": 0.0} if document["kind"] == "ended" else {}
    with pytest.raises(InputError, match=said):
        event_of({"cluster": "alps", "time": 1.0, **about, **document})


REQUESTS = [{"processors": 4, "requested": 3600.0, "user": "ada"}, {"nodes": 2, "partition": "a,b"}, {"name": 5}, {}]
VALUES: dict[str, list[Any]] = {
    "cluster": ["alps", "alps", 3],
    "time": [9.0, 9.0, 9, float("nan"), "9"],
    "sequence": [None, 4, 2**63, 4.0],
    "job": ["12", 12, "4_1", "012", True, 2**70],
    "submit": [2.0, 2.0, 2, float("inf")],
    "request": [*REQUESTS, {"requested": 60}, {"priority": "high"}, {"array": "7"}, {"consumables": {"x": 1}}],
    "held": [True, False, 1],
    "partition": ["batch", None, 3],
    "nodes": [[["n1", 4]], [["n1"]], ["n1"], []],
    "status": ["completed", "lost", "gone", []],
    "state": ["up", "draining", "over"],
    "what": ["ended", "eaten"],
    "jobs": [[]],
    "down": [None, ["n1"]],
    "unknown": [1],
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_is_read_at_once_as_its_fields_are_one_by_one(kind: str) -> None:
    rng, right = random.Random(kind), 0
    names = [field.name for field in attrs.fields(KINDS[kind])]
    for _ in range(300):
        known = [name for name in names if name in VALUES and rng.random() < 0.95]
        values = {name: rng.choice([*VALUES[name][:1] * 8, *VALUES[name]]) for name in known}
        if rng.random() < 0.1:
            values["unknown"] = 1
        try:
            wanted = repr(read_fields(values, KINDS[kind]))
        except InputError as error:
            wanted = str(error)
        else:
            right += 1
        try:
            found = repr(event_of({"kind": kind, **values}))
        except InputError as error:
            found = str(error)
        assert found == wanted
    assert right > 5


def test_a_usual_event_is_read_without_asking_each_field() -> None:
    document = {"cluster": "alps", "time": 17.0, "job": "12", "submit": 17.0}
    request = {"processors": 4, "requested": 3600.0, "user": "ada"}
    usual = [{"kind": "submitted", **document, "request": request}, {"kind": "ended", **document, "status": "failed"}]
    calls = 0

    def count(frame: Any, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call" and "cattrs" in frame.f_code.co_filename

    for each in usual:
        sys.setprofile(count)
        try:
            event_of(each)
        finally:
            sys.setprofile(None)
    assert calls == 0
