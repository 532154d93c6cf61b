"""The scripts for schedulers: what they tell, that they never fail, lose nothing, and need nothing of ours."""

import ast
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin import Ended, Event
from simmodel_site.twin.acting.actions import ActSettings
from simmodel_site.twin.events import Noticed
from simmodel_site.twin.hooks import CALLS, install_hooks, tell
from simmodel_site.twin.sources.stream import StreamSource
from simmodel_site.twin.streams import RedisSettings, event_of_entry
from tests.site.helpers.redis_server import RedisServer

COMPLETED = {
    "JOBID": "12", "ARRAYJOBID": "0", "ARRAYTASKID": "4294967294", "SUBMIT": "1700000000", "START": "1700000060",
    "END": "1700000660", "JOBSTATE": "TIMEOUT", "JOBNAME": "x\n\t'\"$(reboot)", "NODES": "n[1-2]", "PROCS": "8",
}  # fmt: skip
STARTED = {"SLURM_JOB_ID": "12", "SLURM_JOB_NAME": "x\n\t'\"$(reboot)"}


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tell, "SETTINGS", {"cluster": "alps"})


def told(what: str, variables: Mapping[str, str]) -> Event:
    entry = tell.entry_of(what, dict(variables), 1.7e9)
    return event_of_entry({name.encode(): value.encode() for name, value in zip(entry[::2], entry[1::2], strict=True)})


def test_a_start_is_noticed_since_the_scripts_do_not_know_the_submission() -> None:
    assert told("started", STARTED) == Noticed(cluster="alps", time=1.7e9, what="started", job=12)
    task = {"SLURM_JOB_ID": "13", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "0"}
    assert told("ended", task) == Noticed(cluster="alps", time=1.7e9, what="ended", job="12_0")


def test_an_end_is_told_with_its_submission_by_the_script_of_completions() -> None:
    expected = Ended(cluster="alps", time=1700000660.0, job=12, submit=1700000000.0, status="timeout")
    assert told("completed", COMPLETED) == expected
    task = {**COMPLETED, "JOBID": "13", "ARRAYJOBID": "12", "ARRAYTASKID": "3", "JOBSTATE": "COMPLETED"}
    end = told("completed", task)
    assert isinstance(end, Ended)
    assert (end.job, end.status) == ("12_3", "completed")


def test_submissions_have_no_id_yet() -> None:
    assert told("submitted", {"SLURM_JOB_NAME": "x"}) == Noticed(cluster="alps", time=1.7e9, what="submitted")


@pytest.mark.parametrize("job", ["", "-1", "0", "12; rm", "1\n2", "²", "9" * 40, "$(id)", "１２"])
def test_ids_that_are_none_are_left_out(job: str) -> None:
    assert told("started", {"SLURM_JOB_ID": job}) == Noticed(cluster="alps", time=1.7e9, what="started")
    assert told("completed", {**COMPLETED, "JOBID": job}) == Noticed(cluster="alps", time=1.7e9, what="ended")
    assert told("completed", {**COMPLETED, "END": job}) == Noticed(cluster="alps", time=1.7e9, what="ended")


# ---------------------------------------------------------------------- the scripts


ODD = 'o\'dd $(x) "ü" \\\\ folder'
"""A name of a folder with every character that a shell or Lua reads otherwise."""


def odd_python(folder: Path) -> str:
    """Return a path of the interpreter that has to be quoted."""
    (folder / ODD).mkdir()
    (folder / ODD / "python3").symlink_to(sys.executable)
    return str(folder / ODD / "python3")


@pytest.fixture
def hooks(tmp_path: Path, own_redis: RedisServer) -> Path:
    """Return the folder of scripts that tell a real server."""
    install_hooks(tmp_path / "hooks", "alps", own_redis.settings, python=sys.executable)
    return tmp_path / "hooks"


def call(hooks: Path, name: str = "prolog-slurmctld", job: int = 1) -> None:
    done = subprocess.run([hooks / name], env={"SLURM_JOB_ID": str(job)}, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def jobs_in(server: RedisServer) -> list[object]:
    """Return the ids of the jobs in the stream; an entry may have arrived twice."""
    source = StreamSource("alps", server.settings)
    events = list(source.events(0.0))
    assert not source.refused
    source.close()
    return sorted({event.job for event in events if isinstance(event, Noticed) and event.job is not None}, key=str)


def spooled(hooks: Path) -> int:
    folder = hooks / "spool"
    return sum(len(path.read_text().splitlines()) for path in folder.iterdir() if not path.name.endswith(".lock"))


def reached(hooks: Path, server: RedisServer, job: int) -> None:
    """Call until a call has reached the stream and emptied the spool: a busy computer may take more than 50 ms."""
    for _ in range(100):
        call(hooks, job=job)
        if not spooled(hooks):
            return
    raise AssertionError(f"{spooled(hooks)} entries are still spooled")


def test_a_script_tells_the_stream(hooks: Path, own_redis: RedisServer) -> None:
    for name in CALLS:
        call(hooks, name)
    reached(hooks, own_redis, 1)
    source = StreamSource("alps", own_redis.settings)
    events = list(source.events(0.0))
    source.close()
    assert {event.what for event in events if isinstance(event, Noticed)} == {"started", "ended", "submitted"}
    assert not source.refused


def test_what_a_stream_misses_while_it_is_away_comes_later(hooks: Path, own_redis: RedisServer) -> None:
    reached(hooks, own_redis, 1)
    own_redis.kill()
    for job in (2, 3, 4):
        call(hooks, job=job)
    assert spooled(hooks) == 3
    own_redis.start()
    reached(hooks, own_redis, 5)
    assert jobs_in(own_redis) == [1, 2, 3, 4, 5]


def test_a_stream_that_is_frozen_keeps_nobody(hooks: Path, own_redis: RedisServer) -> None:
    reached(hooks, own_redis, 1)
    assert own_redis.process is not None
    own_redis.process.send_signal(signal.SIGSTOP)
    try:
        for job in (2, 3):
            call(hooks, job=job)
        assert spooled(hooks) == 2
    finally:
        own_redis.process.send_signal(signal.SIGCONT)
    reached(hooks, own_redis, 4)
    assert jobs_in(own_redis) == [1, 2, 3, 4]


@pytest.mark.long  # smaller: the other tests of the file
def test_many_scripts_at_once_lose_nothing(hooks: Path, own_redis: RedisServer) -> None:
    own_redis.kill()
    for job in range(1, 6):
        call(hooks, job=job)
    own_redis.start()
    processes = [subprocess.Popen([hooks / "jobcomp"], env=variables(job)) for job in range(6, 26)]
    assert [each.wait(60) for each in processes] == [0] * 20
    reached(hooks, own_redis, 26)
    source = StreamSource("alps", own_redis.settings)
    told = {event.job for event in source.events(0.0) if isinstance(event, Noticed | Ended)}
    source.close()
    assert told == set(range(1, 27))


def variables(job: int) -> dict[str, str]:
    return {**COMPLETED, "JOBID": str(job)}


class Deaf:
    """A server that accepts and never answers."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.settings = RedisSettings(url=f"redis://127.0.0.1:{self.socket.getsockname()[1]}", password_variable=None)


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    server = Deaf()
    yield server
    server.socket.close()


def test_no_process_stays_behind(tmp_path: Path, deaf: Deaf) -> None:
    install_hooks(tmp_path / "hooks", "alps", deaf.settings, python=sys.executable)
    call(tmp_path / "hooks")
    mark = str(tmp_path).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert mark not in path.read_bytes()
        except OSError:
            continue
    assert spooled(tmp_path / "hooks") == 1


def test_a_spool_that_cannot_be_written_fails_no_job(tmp_path: Path, deaf: Deaf) -> None:
    install_hooks(tmp_path / "hooks", "alps", deaf.settings, python=sys.executable)
    (tmp_path / "hooks" / "spool").rmdir()
    (tmp_path / "hooks" / "spool").write_text("")
    call(tmp_path / "hooks")


def test_paths_of_any_characters_are_quoted(tmp_path: Path, deaf: Deaf) -> None:
    spool = tmp_path / ODD / "entries"
    python = odd_python(tmp_path)
    act = ActSettings(mode="hold-and-release", heartbeat=str(tmp_path / ODD / "heartbeat"))
    install_hooks(tmp_path / "hooks", "alps", deaf.settings, python=python, spool=spool, hold=act)
    call(tmp_path / "hooks")
    assert len(spool.read_text().splitlines()) == 1
    Path(act.heartbeat).write_text("1 7 hold\n")
    (tmp_path / "squeue").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "squeue").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run([tmp_path / "hooks" / "release"], env=environment, check=True, timeout=60)
    assert sorted(path.name for path in (tmp_path / ODD).glob("heartbeat*")) == []
    quoted = act.heartbeat.replace("\\", "\\\\").replace('"', '\\"')
    assert f'local heartbeat = "{quoted}"' in (tmp_path / "hooks" / "job_submit.lua").read_text()


def test_a_missing_interpreter_fails_no_job(tmp_path: Path) -> None:
    install_hooks(tmp_path / "hooks", "alps", python="/nowhere/python3")
    call(tmp_path / "hooks")


def test_the_spool_does_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tell, "SETTINGS", {"spool": str(tmp_path / "spool")})
    monkeypatch.setattr(tell, "LARGEST", 100)
    for _ in range(100):
        tell.spool(["kind", "noticed"])
    assert 100 <= (tmp_path / "spool").stat().st_size < 120


def test_an_entry_is_not_lost_when_the_spool_is_taken_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tell, "SETTINGS", {"spool": str(tmp_path / "spool")})
    tell.spool(["kind", "noticed"])
    locked = fcntl.flock
    taken: list[str] = []

    def taken_meanwhile(file: IO[bytes], how: int) -> None:
        if not taken:  # before this process has the lock, another one takes the file, sends it, and removes it
            taken.append((tmp_path / "spool").read_text())
            (tmp_path / "spool").unlink()
        locked(file, how)

    monkeypatch.setattr(fcntl, "flock", taken_meanwhile)
    tell.spool(["kind", "passed"])
    assert (taken, (tmp_path / "spool").read_text()) == (["kind\tnoticed\n"], "kind\tpassed\n")


def test_passwords_are_read_from_a_file_and_written_nowhere(tmp_path: Path, own_redis: RedisServer) -> None:
    client = own_redis.settings.client()
    client.execute_command("ACL", "SETUSER", "hook", "on", ">geheim", "~simmodel:alps", "+xadd")
    client.close()
    (tmp_path / "password").write_text("geheim\n")
    (tmp_path / "password").chmod(0o600)
    server = RedisSettings(url=own_redis.settings.url, user="hook", password_file=str(tmp_path / "password"))
    lines = install_hooks(tmp_path / "hooks", "alps", server, python=sys.executable)
    reached(tmp_path / "hooks", own_redis, 7)
    assert jobs_in(own_redis) == [7]
    assert "geheim" not in lines
    for path in (tmp_path / "hooks").rglob("*.*"):
        assert "geheim" not in path.read_text()


# ---------------------------------------------------------------------- what is installed


def test_the_lines_for_slurm_name_the_scripts(tmp_path: Path) -> None:
    lines = install_hooks(tmp_path / "hooks", "alps").splitlines()
    values = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    for name in ("PrologSlurmctld", "JobCompLoc"):
        assert os.access(values[name], os.X_OK)
    assert "EpilogSlurmctld" not in values  # it delays the starts of others
    assert (values["JobCompType"], values["JobSubmitPlugins"]) == ("jobcomp/script", "lua")
    assert f'"{tmp_path}/hooks/submitted"' in (tmp_path / "hooks" / "job_submit.lua").read_text()


def test_the_scripts_are_plain_sh_and_python_of_the_standard_library(tmp_path: Path) -> None:
    install_hooks(tmp_path / "hooks", "alps")
    for name in CALLS:
        subprocess.run(["sh", "-n", tmp_path / "hooks" / name], check=True)
    tree = ast.parse((tmp_path / "hooks" / "tell.py").read_text(), feature_version=(3, 6))
    names = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert names <= sys.stdlib_module_names


def test_written_again_it_replaces_its_own_files_and_no_others(tmp_path: Path) -> None:
    install_hooks(tmp_path, "alps")
    install_hooks(tmp_path, "andes")
    assert "'andes'" in (tmp_path / "tell.py").read_text()
    (tmp_path / "job_submit.lua").write_text("-- rules of this site\n")
    with pytest.raises(InputError, match=r"job_submit\.lua: exists, and is none of these scripts"):
        install_hooks(tmp_path, "alps")
    assert (tmp_path / "job_submit.lua").read_text() == "-- rules of this site\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"folder": "/srv/a b"}, "folder: must be a path of letters, digits and ./_+@=-, as slurm.conf can hold it"),
        ({"spool": "/srv/a\nb"}, "spool: must be an absolute path of printable characters"),
        ({"python": "python3"}, "python: must be an absolute path of printable characters"),
        ({"cluster": "a\nb"}, "cluster: must be at most 200 printable characters"),
        ({"server": RedisSettings(user="hook")}, "password_file: missing value"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path: Path, options: dict[str, object], sentence: str) -> None:
    given = {"folder": tmp_path / "hooks", "cluster": "alps", **options}
    with pytest.raises(InputError, match=re.escape(sentence)):
        install_hooks(**given)  # type: ignore[arg-type]
    assert not (tmp_path / "hooks").exists()
