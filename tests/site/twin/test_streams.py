"""Entries of a stream: every event comes back from its entry, and nothing that a stream can hold stops the reader."""

import json
from typing import Any

from hypothesis import given, strategies as st

from simmodel.foundation.errors import InputError
from simmodel_site.twin.events import (
    KINDS,
    Demand,
    Event,
    JobReport,
    NodesChanged,
    Noticed,
    Passed,
    Started,
    StateReport,
    Submitted,
)
from simmodel_site.twin.streams import StreamWriter, entry_of, event_of_entry, stream_key

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
instants = st.floats(-1e300, 1e300)
ids = st.integers(-(2**63) + 1, 2**63 - 1) | texts
requests = st.builds(
    Demand,
    processors=st.integers(1, 10**6),
    requested=st.none() | st.floats(0, 1e9),
    user=st.none() | ids,
    partition=st.none() | texts,
    priority=st.floats(-1e9, 1e9),
    name=st.none() | texts,
    consumables=st.dictionaries(texts, st.floats(0, 1e6), max_size=2),
    dependencies=st.lists(st.tuples(ids, st.sampled_from(["start", "end", "success"])), max_size=2).map(tuple),
)
nodes = st.lists(st.tuples(texts, st.integers(1, 128)), max_size=3).map(tuple)
about: dict[str, Any] = {"cluster": texts, "time": instants, "sequence": st.none() | st.integers(0, 2**62)}
of_job: dict[str, Any] = {**about, "job": ids, "submit": instants}
reports = st.builds(
    JobReport,
    job=ids,
    submit=instants,
    state=st.sampled_from(["waiting", "running", "held"]),
    request=requests,
    started=st.none() | instants,
    nodes=nodes,
)
events = st.one_of(
    st.builds(Submitted, **of_job, request=requests, held=st.booleans()),
    st.builds(Started, **of_job, partition=st.none() | texts, nodes=nodes),
    st.builds(KINDS["ended"], **of_job, status=st.sampled_from(["completed", "timeout", "failed", "cancelled"])),
    *(st.builds(KINDS[kind], **of_job) for kind in ("requeued", "held", "released")),
    st.builds(KINDS["changed"], **of_job, request=requests),
    st.builds(NodesChanged, **about, state=st.sampled_from(["up", "down"]), nodes=st.lists(texts).map(tuple)),
    st.builds(Noticed, **about, what=st.just("started"), job=st.none() | ids),
    st.builds(Passed, **about),
    st.builds(StateReport, **about, jobs=st.lists(reports, max_size=2).map(tuple), down=st.none() | st.just(("n1",))),
)


@given(events)
def test_an_event_comes_back_from_its_entry(event: Event) -> None:
    fields = entry_of(event)
    assert event_of_entry({key.encode(): text.encode() for key, text in fields.items()}) == event
    assert all(isinstance(text, str) for text in fields.values())


def test_a_shell_writes_an_entry_without_quoting_texts() -> None:
    entry = {"kind": "ended", "cluster": "alps", "job": "12", "submit": "17", "time": "30.5", "status": "failed"}
    found = event_of_entry({key.encode(): text.encode() for key, text in {**entry, "sequence": ""}.items()})
    assert found == KINDS["ended"](cluster="alps", job=12, submit=17.0, time=30.5, status="failed")  # type: ignore[call-arg]
    assert stream_key("alps") == "simmodel:alps"
    assert repr(StreamWriter("k")) == "<StreamWriter k at redis://127.0.0.1:6379>"


junk = st.binary(max_size=40) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
).map(lambda value: json.dumps(value).encode())
KEYS = [b"kind", b"cluster", b"time", b"sequence", b"job", b"submit", b"request", b"nodes", b"jobs", b"status", b"held"]


@given(st.dictionaries(st.sampled_from(KEYS) | st.binary(max_size=5), junk), st.sampled_from([*KINDS, "x"]))
def test_anything_else_is_refused_in_one_sentence(fields: dict[bytes, bytes], kind: str) -> None:
    sentence = refused({**fields, b"kind": kind.encode()})
    assert sentence is None or (sentence.isprintable() and len(sentence) < 2000)
    assert sentence is None or sentence.startswith("simmodel:alps, entry 1-1")


def refused(fields: dict[bytes, bytes]) -> str | None:
    """Return why an entry is no event; ``None``: it is one."""
    try:
        event_of_entry(fields, "simmodel:alps", "entry 1-1")
    except InputError as error:
        return str(error)
    return None


def test_huge_and_deep_values_are_refused_or_kept() -> None:
    base = {b"kind": b"submitted", b"cluster": b"alps", b"time": b"1", b"job": b"1", b"submit": b"1"}
    name = "\"';\n$(reboot)\x1b[2J" * 60_000
    kept = event_of_entry({**base, b"request": json.dumps({"name": name}).encode()})
    assert isinstance(kept, Submitted)
    assert kept.request.name == name
    for request in (b"[" * 100_000, b'{"processors": ' + b"9" * 5000 + b"}", b'{"name": "\xff"}', b"\x00", b"1e999"):
        sentence = refused({**base, b"request": request})
        assert sentence is not None
        assert sentence.isprintable()
        assert len(sentence) < 500
