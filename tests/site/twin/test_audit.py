"""The audit log: a chain of lines that only grows, whole after every kind of end."""

import json
import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from simmodel.foundation.errors import InputError
from simmodel_site.twin import AuditLog, read_audit
from simmodel_site.twin.audit import AuditError
from tests.helpers.examples import up_to
from tests.helpers.new_process import printed


def filled(path: Path, count: int = 5) -> list[int]:
    with AuditLog(path) as audit:
        for number in range(count):
            audit.add("note", text=f"number {number}")
    return numbers(path)


def numbers(path: Path) -> list[int]:
    return [record.line for record in read_audit(path)]


def test_lines_follow_each_other_across_processes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    assert filled(path) == [1, 2, 3, 4, 5]
    assert filled(path, 3) == list(range(1, 9))
    assert [record.values["text"] for record in read_audit(path)][5:] == ["number 0", "number 1", "number 2"]


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:2], lines[2].replace(b"number 2", b"number 9"), *lines[3:]],
        lambda lines: lines[:2] + lines[3:],
        lambda lines: [*lines[:2], lines[1], *lines[2:]],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: lines[1:],
        lambda lines: [*lines[:2], b"{}\n", *lines[2:]],
        lambda lines: [*lines[:2], b"\xff\xfe\n", *lines[2:]],
    ],
    ids=["changed", "removed", "repeated", "swapped", "first removed", "foreign", "no text"],
)
def test_a_changed_log_is_found(change, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    filled(path)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(InputError, match=r"audit.jsonl, line \d"):
        numbers(path)


@settings(max_examples=up_to(30), deadline=None)
@given(cut=st.integers(0, 400))
def test_a_log_cut_anywhere_is_repaired_to_its_last_whole_line(cut: int, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("cut") / "audit.jsonl"
    filled(path)
    whole = path.read_bytes()
    kept = whole[: max(0, len(whole) - cut)]
    path.write_bytes(kept)
    lines = kept.count(b"\n")
    assert numbers(path) == list(range(1, lines + 1))
    with AuditLog(path) as audit:
        assert audit.lines == lines + (not kept.endswith(b"\n") and kept != b"")
    found = list(read_audit(path))
    if kept and not kept.endswith(b"\n"):
        left = len(kept.rpartition(b"\n")[2])
        assert found[-1].values["text"] == f"removed an unfinished line of {left} bytes"
    assert [record.values["text"] for record in found[:lines]] == [f"number {number}" for number in range(lines)]


def test_long_lines_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with AuditLog(path) as audit:
        audit.add("note", text="x" * 3_000_000)
    assert filled(path, 1) == [1, 2]


def test_one_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    tried = f"try: AuditLog({str(path)!r})\nexcept ValueError as error: print(error)"
    other = f"from simmodel_site.twin import AuditLog\n{tried}"
    with AuditLog(path):
        assert printed(other) == f"{path}: is written by another process\n"
    assert printed(other) == ""


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy bread\n")
    with pytest.raises(InputError, match=r"last line: must be a line of an audit log, got b'buy bread'"):
        AuditLog(path)
    assert path.read_text() == "buy bread\n"
    with pytest.raises(InputError, match="cannot be written"):
        AuditLog(tmp_path / "no folder" / "audit.jsonl")


def test_a_full_disk_leaves_a_whole_log_that_goes_on_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    filled(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with AuditLog(path) as audit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
        try:
            for _ in range(3):
                audit.add("note", text="y" * 500)
                with pytest.raises(AuditError, match="cannot be written: File too large"):
                    audit.flush(sync=True)
                assert path.read_bytes() == before
                assert audit.failed
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, ignored)
        audit.add("note", text="room again")
        audit.flush(sync=True)
        assert not audit.failed
    assert numbers(path) == [1, 2, 3, 4, 5, 6]


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    filled(path)
    assert os.stat(path).st_mode & 0o077 == 0
    assert all(json.loads(line) for line in path.read_text().splitlines())
