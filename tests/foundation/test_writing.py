"""Files are replaced as a whole or not at all, whatever happens while they are written."""

import gzip
import multiprocessing
import os
import random
import resource
import signal
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from simmodel.formats.named_columns import read_columns
from simmodel.foundation.errors import InputError
from simmodel.foundation.writing import STDOUT, check_output, replacing, text_file, write_text
from simmodel.results import load_result
from simmodel.work.table import Table
from tests.helpers.written_files import Write, content, kinds, result

KINDS = tuple(kinds(0))
FORK = multiprocessing.get_context("fork")


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


def parts(folder: Path) -> list[Path]:
    """Return the unfinished files in a folder."""
    return [path for path in folder.rglob(".*") if path.suffix == ".part"]


# ---------------------------------------------------------------------- killed, or out of space


def write_for_ever(writers: list[Write], path: Path, ready: Event) -> None:
    while True:
        for write in writers:
            write(path)
            ready.set()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "kills", [3, pytest.param(10, marks=pytest.mark.long), pytest.param(200, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_leaves_the_old_or_the_new_file(tmp_path: Path, kind: str, kills: int) -> None:
    path = tmp_path / kind
    whole: dict[str, list[bytes]] = {}
    took = []
    writers = [kinds(number)[kind] for number in (0, 1)]
    for write in writers:
        for _ in range(2):  # the second time everything is imported
            begin = time.monotonic()
            write(path)
            took.append(time.monotonic() - begin)
        for name, found in content(path).items():
            whole.setdefault(name, []).append(found)
    rng = random.Random(kind)
    for _ in range(kills):
        ready = FORK.Event()
        process = FORK.Process(target=write_for_ever, args=(writers, path, ready), daemon=True)
        process.start()
        assert ready.wait(60)
        time.sleep(rng.uniform(0, 4 * min(took)))
        process.kill()
        process.join()
        found = content(path)
        assert found.keys() == whole.keys()
        assert [name for name in found if found[name] not in whole[name]] == []


def end_while_writing(path: Path) -> None:
    with replacing(path) as part:
        part.write_text("ne")
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    for name in ("numbers.txt", "others.txt"):
        process = FORK.Process(target=end_while_writing, args=(tmp_path / name,))
        process.start()
        process.join()
    elsewhere = tmp_path / ".numbers.txt.ffffffff-1-0a0b0c0d.part"  # of another computer
    elsewhere.touch()
    assert len(parts(tmp_path)) == 3
    with replacing(path) as unfinished:
        write_text(path, "new")
        assert unfinished.exists()
        unfinished.write_text("newest")
    assert path.read_text() == "newest"
    left = parts(tmp_path)
    assert elsewhere in left
    assert [each.name[:11] for each in left if each != elsewhere] == [".others.txt"]


def write_with_little_space(write: Write, path: Path, space: int, said: SimpleQueue[str]) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (space, space))  # Python ignores the signal; writing fails instead
    try:
        write(path)
    except InputError as error:
        said.put(str(error))
    except BaseException as error:
        said.put(f"{type(error).__name__}: {error}")
    else:
        said.put("written")


@pytest.mark.few(7)
@pytest.mark.parametrize("space", [0, 900])
@pytest.mark.parametrize("kind", KINDS)
def test_without_space_the_old_file_stays(tmp_path: Path, kind: str, space: int) -> None:
    path = tmp_path / kind
    kinds(0)[kind](path)
    old = content(path)
    said = FORK.SimpleQueue()
    process = FORK.Process(target=write_with_little_space, args=(kinds(1)[kind], path, space, said))
    process.start()
    process.join()
    assert f"{kind}" in (sentence := said.get())
    assert "cannot be written: " in sentence
    assert "\n" not in sentence
    assert content(path) == old
    assert parts(tmp_path) == []


# ---------------------------------------------------------------------- what is replaced


def test_an_error_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("old")

    def interrupted() -> None:
        with replacing(path) as part:
            part.write_text("ne")
            raise KeyboardInterrupt

    def wrong() -> None:
        with text_file(path) as file:
            file.write("ne")
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(ZeroDivisionError):
        wrong()
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("numbers.txt", "old")]


def test_the_tables_of_a_folder_are_replaced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result(0).to_csv(tmp_path / "run")
    old = content(tmp_path / "run")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    write, tables = Table.to_csv, []

    def write_the_first(table: Table, file: object) -> None:
        tables.append(table)
        write(table, file) if len(tables) < 3 else full()  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "to_csv", write_the_first)
    assert "cannot be written: no space left on device" in refused(lambda: result(1).to_csv(tmp_path / "run"))
    assert (len(tables), content(tmp_path / "run"), parts(tmp_path)) == (3, old, [])


def test_permissions_stay_and_new_files_follow_the_umask(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        for path in (old, new):
            write_text(path, "1")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (old, new)] == [0o640, 0o640]
    write_text(tmp_path / "usual", "1")
    assert stat.S_IMODE((tmp_path / "usual").stat().st_mode) == 0o666 & ~before


@pytest.mark.parametrize("kind", ["result.json", "result.sqlite", "schedule.csv"])
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, kind: str) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / kind, tmp_path / kind
    link.symlink_to(Path("folder", kind))
    for number in (0, 1):  # at first the target does not exist
        kinds(number)[kind](link)
        assert link.is_symlink()
        assert not target.is_symlink()
        kinds(number)[kind](tmp_path / "other")
        assert content(target)[kind] == content(tmp_path / "other")["other"]
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be written: too many levels" in refused(lambda: write_text(tmp_path / "loop", ""))


def test_the_same_text_gives_the_same_compressed_file(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_text(tmp_path / name, "text\n")
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text\n"


# ---------------------------------------------------------------------- what is refused


def test_folders_devices_and_missing_folders_are_refused(tmp_path: Path) -> None:
    assert "must be a file to write, got a folder" in refused(lambda: write_text(tmp_path, ""))
    assert "must be a file to write, got a folder" in refused(lambda: write_text("", ""))
    assert "cannot be written: no folder" in refused(lambda: write_text(tmp_path / "no" / "file", ""))
    (tmp_path / "file").write_text("")
    assert "cannot be written: not a directory" in refused(lambda: write_text(tmp_path / "file" / "file", ""))
    assert "must be text that UTF-8 can encode" in refused(lambda: write_text(tmp_path / "text", "\ud800"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_permission_nothing_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    access = os.access
    for denied, words in ((path, "permission denied"), (tmp_path, f"permission denied in folder {tmp_path}")):
        monkeypatch.setattr(os, "access", lambda each, mode, no=denied: Path(each) != no and access(each, mode))
        assert refused(lambda: write_text(path, "new")) == f"{path}: cannot be written: {words}"
    assert content(path) == {"file": b"old"}


def test_character_devices_and_pipes_are_written_directly(tmp_path: Path) -> None:
    result(0).to_sqlite("/dev/null")
    assert Path("/dev/null").is_char_device()
    assert "/dev/full: cannot be written: no space left on device" in refused(lambda: write_text("/dev/full", "1"))
    os.mkfifo(pipe := tmp_path / "pipe")
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through a pipe")
    reader.join()
    assert (found, pipe.is_fifo()) == (["through a pipe"], True)


def test_a_dash_as_text_is_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in ("-", STDOUT):
        Table({"job": [1]}).to_csv(path)
        assert capfd.readouterr().out == "job\r\n1\r\n"
    monkeypatch.chdir(tmp_path)
    write_text(Path("-"), "a file")
    assert (capfd.readouterr().out, Path("-").read_text()) == ("", "a file")


def test_a_database_of_another_program_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "other"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE meta (key, value)")
    other.close()
    old = content(path)
    for write in (result(0).to_sqlite, result(0).to_json):
        assert refused(lambda write=write: write(path)).endswith(
            "cannot be replaced: it is a database of another program"
        )
    assert content(path) == old
    result(0).to_sqlite(path, force=True)
    result(1).to_sqlite(path)  # it is simmodel's now
    assert load_result(path).name == "run 1"


def test_a_database_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    result(0).to_sqlite(path)
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE notes (x)")
    assert "cannot be replaced: another process has it open" in refused(lambda: result(1).to_sqlite(path))
    result(1).to_sqlite(path, force=True)
    other.close()
    assert load_result(path).name == "run 1"


def test_checking_writes_nothing(tmp_path: Path) -> None:
    assert check_output(tmp_path / "new") == tmp_path / "new"
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- cells of CSV


def test_texts_that_look_like_formulas_come_back(tmp_path: Path) -> None:
    users = ["=1+2", "+x", "-x", "@x", "\tx", "'=x", "''@", "'ann", "-5", "+1e3", "ann", "", "it's"]
    table = Table({"user": users, "wait": [-1.5] * len(users), "run": [1.5] * len(users)})
    table.to_csv(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[1:4] == ["'=1+2,-1.5,1.5", "'+x,-1.5,1.5", "'-x,-1.5,1.5"]
    assert lines[9:11] == ["-5,-1.5,1.5", "+1e3,-1.5,1.5"]
    log = read_columns(tmp_path / "t.csv", {"submit": "wait"})
    assert log["user"].tolist() == users
    found = result(0)
    found.to_csv(tmp_path / "run")
    assert b"'=cmd()" in content(tmp_path / "run")["jobs.csv"]
    assert load_result(tmp_path / "run").jobs["user"].tolist() == found.jobs["user"].tolist()
