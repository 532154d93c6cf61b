"""Events from files of JSON lines that grow, rotate, break off and hold nonsense."""

import json
import os
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from simmodel.foundation.errors import InputError
from simmodel_site.twin import Source
from simmodel_site.twin.events import Passed
from simmodel_site.twin.sources.lines import LinesSource
from tests.helpers.examples import up_to


def line(time: float) -> str:
    return Passed(cluster="alps", time=time).line() + "\n"


def times(source: LinesSource, timeout: float = 0.0) -> list[float]:
    return [event.time for event in source.events(timeout)]


def add(path: Path, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def test_it_is_a_source(tmp_path: Path) -> None:
    assert isinstance(LinesSource(tmp_path, "alps"), Source)


def test_a_file_that_comes_later_and_grows_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    source = LinesSource(path, "alps")
    assert times(source) == []
    add(path, line(1) + line(2)[:20])
    assert times(source) == [1.0]
    add(path, line(2)[20:] + line(3))
    assert times(source) == [2.0, 3.0]
    assert (times(source), source.over) == ([], False)


def test_the_last_line_of_a_file_that_is_not_followed_needs_no_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    add(path, line(1) + line(2).rstrip())
    source = LinesSource(path, "alps", follow=False)
    assert (times(source), source.over) == ([1.0, 2.0], True)


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    source = LinesSource(tmp_path, "alps")
    add(tmp_path / "b.jsonl", line(3))
    add(tmp_path / "a.jsonl", line(1) + line(2))
    add(tmp_path / "notes.txt", "no events\n")
    assert times(source) == [1.0, 2.0, 3.0]
    add(tmp_path / "c.jsonl", line(5))
    add(tmp_path / "b.jsonl", line(4))
    assert times(source) == [4.0, 5.0]
    assert source.refused.total() == 0


def test_a_file_that_was_replaced_or_emptied_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, other = tmp_path / "events.jsonl", tmp_path / "new"
    source = LinesSource(path, "alps")
    add(path, line(1) + line(2))
    assert times(source) == [1.0, 2.0]
    add(other, line(7))
    os.replace(other, path)
    assert times(source) == [7.0]
    path.write_text("")
    assert times(source) == []
    add(path, line(8))
    assert times(source) == [8.0]


@settings(max_examples=up_to(30), deadline=None)
@given(told=st.lists(st.integers(0, 9), max_size=12), read=st.integers(0, 12), folder=st.booleans())
def test_it_continues_at_its_position(told: list[int], read: int, folder: bool, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("lines")
    files = [path / "a.jsonl", path / "b.jsonl"] if folder else [path / "a.jsonl"]
    for i, each in enumerate(told):
        add(files[i % len(files)], line(each))
    source = LinesSource(path if folder else files[0], "alps")
    first = [event.time for event in islice(source.events(0.0), read)]
    position = source.position()
    again = LinesSource(source.path, "alps")
    again.resume(position)
    # An event that was handed out counts as read; none is lost and none comes twice.
    assert first + times(again) == times(LinesSource(source.path, "alps"))


@pytest.mark.parametrize("position", ["", "nonsense", "[1]", '{"a": 3}', '{"a": ["x", 1]}'])
def test_a_position_of_something_else_is_refused(position: str, tmp_path: Path) -> None:
    source = LinesSource(tmp_path, "alps")
    if position:
        with pytest.raises(InputError, match="must be a position in files of lines"):
            source.resume(position)
    else:
        source.resume(position)


HOSTILE = [
    "nonsense",
    "[]",
    '"text"',
    "null",
    "{}",
    '{"kind": "passed"}',
    '{"kind": "passed", "cluster": "alps", "time": "noon"}',
    '{"kind": "passed", "cluster": "alps", "time": 1e999}',
    '{"kind": "passed", "cluster": "alps", "time": NaN}',
    '{"kind": "rm -rf /", "cluster": "alps", "time": 1}',
    '{"kind": "passed", "cluster": 7, "time": 1}',
    '{"kind": "passed", "cluster": "alps", "time": 1, "extra": 2}',
    "[" * 100_000,
    "\x00\x1b[2J",
    json.dumps({"kind": "passed", "cluster": "alps", "time": 1, "x" * 1_000_000: 1}),
    '{"kind": "passed", "cluster": "alps", "time": ' + "9" * 5000 + "}",
]


def test_malformed_lines_are_counted_and_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(f"{each}\n".encode() for each in HOSTILE) + b"\xff\xfe\xfd\n" + line(2).encode())
    source = LinesSource(path, "alps")
    assert times(source) == [2.0]
    assert source.refused.total() == len(HOSTILE) + 1
    assert all(sentence.isprintable() and len(sentence) < 2000 for sentence in source.refused)


def test_a_line_that_never_ends_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simmodel_site.twin.sources.lines._LONGEST", 1000)
    path = tmp_path / "events.jsonl"
    add(path, line(1) + "x" * 3500)
    source = LinesSource(path, "alps")
    assert times(source) == [1.0]
    add(path, "x" * 300 + "\n" + line(2))
    assert times(source) == [2.0]
    assert (source.refused.total(), "longer than 1,000 bytes" in source.refused.last) == (1, True)


def test_a_file_without_permission_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "folder.jsonl"
    path.mkdir()
    source = LinesSource(tmp_path, "alps")
    assert times(source) == []
    assert "cannot be read: Is a directory" in source.refused.last
