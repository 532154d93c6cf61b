"""Tasks on executors: deadlines, dead workers and errors affect only their own tasks."""

import os
import pickle
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from simmodel import InputError, SimmodelError
from simmodel.futures import in_worker
from simmodel.futures.executors import Ended, OutOfTime, run_all, stop_workers

unpacked_here: list[int] = []


class Material:
    """Material that records the process in which it was unpickled."""

    def __init__(self, base: int) -> None:
        self.base = base

    def __reduce__(self):
        return _unpack, (self.base, b" " * 100_000)


def _unpack(base: int, _padding: bytes) -> Material:
    unpacked_here.append(os.getpid())
    return Material(base)


def work(material: Material, task: object, left: float | None) -> object:
    match task:
        case "unpacked":
            time.sleep(0.02)
            return os.getpid(), len(unpacked_here)
        case "die":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            threading.Event().wait(600)
        case "give up":
            raise OutOfTime
        case "wrong":
            raise SimmodelError("this is wrong")
        case "bug":
            return 1 / 0
        case "left":
            return left
        case int():
            return material.base + task
    return None


def seen(found: list[Ended]) -> list[object]:
    return [each.value if each.status == "finished" else each.status for each in found]


@pytest.mark.parametrize("make", [lambda: None, lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2)])
def test_each_task_ends_in_its_own_way_wherever_it_runs(make) -> None:
    executor = make()
    told = {}
    found = run_all(work, Material(10), [1, "wrong", "bug", "give up", 2], executor=executor, ended=told.__setitem__)
    assert seen(found) == [11, "failed", "failed", "unfinished", 12]
    assert found[1].reason == "this is wrong"
    assert found[2].reason.startswith("ZeroDivisionError: division by zero (line ")
    assert Path(__file__).name in found[2].reason
    assert told == dict(enumerate(found))
    if executor is not None:
        executor.shutdown()


def test_a_worker_unpacks_the_material_once_however_many_tasks_it_does() -> None:
    with ProcessPoolExecutor(2) as executor:
        for _ in range(2):  # the second time no worker unpickles it
            found = run_all(work, Material(1), ["unpacked"] * 12, executor=executor)
            assert {each.value[1] - len(unpacked_here) for each in found} <= {0, 1}


def test_a_worker_that_does_not_know_the_material_asks_for_it() -> None:
    packed = in_worker.packed_for_sending(pickle.dumps(Material(5)))
    assert in_worker.work("a", 0, work, "unheard of", None, 1, None, "") is None
    assert in_worker.work("b", 0, work, "unheard of", packed, 1, None, "").value == 6
    assert in_worker.work("c", 0, work, "unheard of", None, 2, None, "").value == 7
    for i in range(in_worker._KEPT):
        in_worker.remember(f"other {i}", Material(i))
    assert in_worker.work("d", 0, work, "unheard of", None, 1, None, "") is None


class Forgetful(Executor):
    """An executor whose workers never have the material."""

    _max_workers = 1
    asked = 0

    def submit(self, function, *arguments):
        in_worker._warm.clear()
        self.asked += 1
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_a_worker_that_lost_the_material_is_sent_it_again() -> None:
    executor = Forgetful()
    assert seen(run_all(work, Material(5), [1, 2, 3], executor=executor)) == [6, 7, 8]
    assert executor.asked == 1 + 2 * 2


@pytest.mark.parametrize(("task", "reason"), [("die", "exit code 3"), ("kill", "signal 9")])
def test_a_worker_that_dies_takes_no_other_task_with_it(task: str, reason: str) -> None:
    with ProcessPoolExecutor(2) as executor:
        found = run_all(work, Material(0), [1, task, 2, 3, "bug", 4], executor=executor)
        assert seen(found) == [1, "failed", 2, 3, "failed", 4]
        assert found[1].reason == f"its worker process died ({reason})"
        assert seen(run_all(work, Material(0), [1, 2], executor=executor)) == [1, 2]  # though the pool is broken


def test_what_is_not_over_by_the_deadline_is_left() -> None:
    executor = ProcessPoolExecutor(2)
    run_all(work, Material(0), [1, 2], executor=executor)  # start the workers
    found = run_all(work, Material(0), [1, "hang", 2], executor=executor, deadline=7.5)
    stop_workers(executor)
    assert seen(found) == [1, "unfinished", 2]
    assert found[1].reason == "not finished by the deadline of 7.5 s"


def test_what_hangs_after_a_death_is_left_too() -> None:
    executor = ProcessPoolExecutor(2)
    found = run_all(work, Material(0), ["die", "hang", 2, 3], executor=executor, deadline=10.0)
    stop_workers(executor)
    assert seen(found) == ["failed", "unfinished", 2, 3]


def test_no_time_at_all_leaves_everything() -> None:
    assert seen(run_all(work, Material(0), [1, 2], deadline=0.0)) == ["unfinished"] * 2
    assert 0 < run_all(work, Material(0), ["left"], deadline=100.0)[0].value <= 100


def test_what_cannot_be_sent_is_said() -> None:
    with ProcessPoolExecutor(1) as executor:
        with pytest.raises(InputError, match="cannot be sent to other processes"):
            run_all(work, lambda: None, [1], executor=executor)
        found = run_all(work, Material(1), [1, lambda: None], executor=executor)
        assert seen(found) == [2, "failed"]
        assert "ickl" in found[1].reason
