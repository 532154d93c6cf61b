"""Worker processes end with the process that started them, however it ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.foundation.workers import end_with_parent
from simmodel.futures.executors import run_all

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

BLOCKING = """import os, pathlib, threading
def blocks(view):
    pathlib.Path(f"worker-{os.getpid()}").touch()
    threading.Event().wait(600)
def computes(view):
    pathlib.Path(f"worker-{os.getpid()}").touch()
    while True:
        pass
def blocks_too(view):
    blocks(view)
def computes_too(view):
    computes(view)
"""
NAMES = ("blocks", "computes", "blocks_too", "computes_too")
SCRIPT = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from simmodel import compare, what_if
from simmodel.futures import worker_pool
import blocking_policies

if __name__ == "__main__":
    workers, how, call = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    pool = worker_pool(workers) if how == "ours" else ProcessPoolExecutor(workers, multiprocessing.get_context(how))
    policies = [blocking_policies.blocks, blocking_policies.computes]
    with pool as executor:
        if call == "compare":
            compare(4, "probe-4", policies, executor=executor)
        else:
            what_if("s.json", policies, executor=executor)
"""


def running(process: int) -> bool:
    """Return whether a process exists and is not merely waiting for its parent to notice its end."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def seconds_until_ended(processes: list[int]) -> float:
    begin = time.monotonic()
    while any(map(running, processes)):
        time.sleep(0.02)
        if time.monotonic() - begin > 60:
            for process in filter(running, processes):
                os.kill(process, signal.SIGKILL)
            break
    return time.monotonic() - begin


def ends_with_parent(folder: Path, words: list[str], workers: int, number: signal.Signals, group: bool) -> float:
    """Start a process with workers, send it a signal, and return the seconds until all workers have ended."""
    with subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        cwd=folder,
    ) as parent:
        until = time.monotonic() + 60
        while len(found := list(folder.glob("worker-*"))) < workers and time.monotonic() < until:
            assert parent.poll() is None, parent.communicate()
            time.sleep(0.05)
        assert len(found) == workers
        processes = [int(path.name.removeprefix("worker-")) for path in found]
        (os.killpg if group else os.kill)(parent.pid, number)
        took = seconds_until_ended([parent.pid, *processes])
        out, err = parent.communicate(timeout=60)
    expected = 130 if number == signal.SIGINT else -number
    assert (parent.returncode, out) == (expected, "")
    if number == signal.SIGINT:
        assert err == "\n"
    return took


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["batch", "probe-4", "--snapshot", "s.json", "--at", "955", "-q"]) == 0
    (tmp_path / "blocking_policies.py").write_text(BLOCKING)
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("end", "group", "workers"),
    [("SIGTERM", False, 2), ("SIGKILL", False, 2), ("SIGKILL", False, 4), ("SIGINT", False, 2), ("SIGINT", True, 2)],
)
def test_the_workers_of_a_command_end_with_it(folder: Path, end: str, group: bool, workers: int) -> None:
    policies = ",".join(f"blocking_policies:{name}" for name in NAMES[:workers])
    words = ["-m", "simmodel", "compare", "probe-4", "--policies", policies, "--workers", str(workers)]
    assert ends_with_parent(folder, words, workers, signal.Signals[end], group) < 3


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("end", "pool", "call"),
    [
        ("SIGKILL", "ours", "compare"),
        ("SIGTERM", "ours", "what_if"),
        ("SIGKILL", "fork", "what_if"),
        ("SIGTERM", "fork", "compare"),
        ("SIGKILL", "spawn", "compare"),
        ("SIGKILL", "forkserver", "what_if"),
    ],
)
def test_the_workers_of_a_script_end_with_it(folder: Path, end: str, pool: str, call: str) -> None:
    words = ["script.py", "2", pool, call]
    assert ends_with_parent(folder, words, 2, signal.Signals[end], group=False) < 3


def test_idle_workers_end_too(folder: Path) -> None:
    script = "import os, time; from pathlib import Path; from simmodel.futures import worker_pool\n"
    script += "pool = worker_pool(3); pool.submit(abs, 1).result()\n"
    script += "[Path(f'worker-{each}').touch() for each in pool._processes]\ntime.sleep(600)"
    assert ends_with_parent(folder, ["-c", script], 3, signal.SIGKILL, group=False) < 3


def test_a_thread_or_the_process_itself_is_no_worker() -> None:
    with ThreadPoolExecutor(1) as executor:
        assert [each.value for each in run_all(lambda base, n, left: base + n, 1, [1], executor=executor)] == [2]
    end_with_parent()
    assert "simmodel-parent" not in [thread.name for thread in threading.enumerate()]
