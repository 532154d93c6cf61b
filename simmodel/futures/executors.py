"""Run many tasks on shared material, on any ``concurrent.futures.Executor``, by a deadline.

The material (a snapshot, workloads) is pickled once and read by each worker once, which caches it by the digest of its
bytes: from a temporary file by those of a process pool, from each other by those of a Dask cluster, which is given it
as a task of its own, so that it is made again if all workers that have it are lost; the workers of any other executor
request it if it is missing. It is compressed wherever it is sent. Threads
share it as it is. A task that fails,
kills its worker or misses the deadline is reported and does not affect the others.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from functools import cached_property
from multiprocessing.connection import Connection, wait as wait_for_connections
from tempfile import mkstemp
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from warnings import catch_warnings, simplefilter

from simmodel.foundation.errors import InputError
from simmodel.foundation.loading import keeping_limits
from simmodel.foundation.workers import stop_workers
from simmodel.futures.in_worker import (
    SMALL,
    Ended,
    OutOfTime,
    Task,
    call,
    packed_for_sending,
    remember,
    unpacked,
    work,
    work_alone,
)

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

__all__ = ["Ended", "OutOfTime", "run_all", "stop_workers"]

Material = TypeVar("Material")
Item = TypeVar("Item")


def run_all(
    function: Task[Material, Item],
    material: Material,
    tasks: Sequence[Item],
    *,
    executor: Executor | None = None,
    deadline: float | None = None,
    ended: Callable[[int, Ended], object] | None = None,
) -> list[Ended]:
    """Call a function with the material and each task; return how each ended, in the order of the tasks.

    Parameters
    ----------
    function
        takes the material, a task and the seconds left (``None``: no deadline); picklable for other processes
    material
        shared by all tasks; it must not be modified
    tasks
        one argument per call
    executor
        runs the tasks; default: this process, one after the other. The workers of a process pool end with this process,
        however it ends, from their first task on; those of :func:`simmodel.foundation.workers.worker_pool` always
    deadline
        wall-clock seconds from now; tasks still running then are ``unfinished``, and their processes continue until
        the task checks its time. Without an executor, a task starts only while time is left
    ended
        called as ``ended(index, how)`` when a task has ended

    Raises
    ------
    InputError
        if the material cannot be pickled

    A worker process that dies breaks its whole pool. The tasks of a broken pool run again, each in a separate process,
    so only those that kill their process fail. A Dask cluster repeats the tasks of a lost worker; those that have lost
    several workers run again one by one, after all others.

    >>> [each.value for each in run_all(lambda base, n, left: base + n, 10, [1, 2])]
    [11, 12]
    >>> print(run_all(lambda base, n, left: base / n, 1, [0])[0].reason)
    ZeroDivisionError: division by zero (line 1 of ...)
    """
    until = None if deadline is None else monotonic() + deadline
    overdue = _overdue(deadline)
    tell = ended or (lambda index, how: None)
    if executor is None:
        return list(_here(function, material, tasks, until, overdue, tell))
    batch = _Batch(keeping_limits(function), material, tasks, until, overdue, tell)
    if isinstance(executor, ThreadPoolExecutor):
        batch.run(executor)
        return batch.endings()
    try:
        batch.pack()
    except Exception as error:
        raise InputError(f"material: cannot be sent to other processes: {error}") from None
    batch.run(executor)
    if batch.broken:
        batch.run_isolated(executor)
    return batch.endings()


def _overdue(deadline: float | None) -> str:
    return "" if deadline is None else f"not finished by the deadline of {deadline:g} s"


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - monotonic())


def _here(
    function: Task[Material, Item],
    material: Material,
    tasks: Sequence[Item],
    until: float | None,
    overdue: str,
    tell: Callable[[int, Ended], object],
) -> Iterator[Ended]:
    for i, task in enumerate(tasks):
        left = _left(until)
        how = Ended("unfinished", reason=overdue) if left == 0 else call(function, material, task, left, overdue)
        tell(i, how)
        yield how


class _Batch:
    """Tasks in progress and tasks that have ended."""

    def __init__(
        self,
        function: Task[Material, Item],
        material: Material,
        tasks: Sequence[Item],
        until: float | None,
        overdue: str,
        tell: Callable[[int, Ended], object],
    ) -> None:
        self.function = function
        self.material = material
        self.packed = b""
        self.digest = ""
        self.shared: Any = None  # the packed material in the memory of all workers of a Dask cluster, or its path
        self.tasks = tasks
        self.until = until
        self.overdue = overdue
        self.tell = tell
        self.over: dict[int, Ended] = {}
        self.broken: list[int] = []  # tasks whose pool broke before they ended
        self.suspects: list[int] = []  # tasks that were on several Dask workers when these died
        self.alone: int | None = None  # the one of them that runs again

    def pack(self) -> None:
        """Pickle the material, for other processes."""
        self.packed = pickle.dumps(self.material, protocol=5)
        self.digest = hashlib.sha256(self.packed).hexdigest()
        remember(self.digest, self.material)  # for processes forked from now on

    @cached_property
    def sent(self) -> bytes:
        """The packed material as it is sent."""
        return packed_for_sending(self.packed)

    def endings(self) -> list[Ended]:
        """Return how each task ended, in order."""
        return [self.over.get(i, Ended("unfinished", reason=self.overdue)) for i in range(len(self.tasks))]

    def run(self, executor: Executor) -> None:
        """Run all tasks on the executor until they have ended or the deadline has passed."""
        workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        path = self._share(executor) if len(self.packed) > SMALL else None
        pending: dict[Future[Ended | bytes | None], int] = {}
        try:
            for i in range(len(self.tasks)):
                self._submit(executor, i, i < workers or len(self.packed) <= SMALL, pending)
            while pending or self.suspects:
                if not pending:
                    self.alone = self.suspects.pop()
                    self._submit(executor, self.alone, True, pending)
                done, _ = wait(pending, _left(self.until), FIRST_COMPLETED)
                if not done:
                    break
                for future in sorted(done, key=pending.__getitem__):
                    self._take(executor, future, pending.pop(future), pending)
        finally:
            for future in pending:
                future.cancel()
            self.shared = None
            if path is not None:
                os.unlink(path)
        self.broken.sort()

    def _share(self, executor: Executor) -> str | None:
        """Give all workers access to the packed material, if the executor allows it; return the path of its file."""
        client = getattr(executor, "_client", None)
        if client is not None:
            with catch_warnings():
                simplefilter("ignore", UserWarning)  # that it is large
                self.shared = client.submit(bytes, self.sent, key=f"material-{uuid4().hex}")
        if not isinstance(executor, ProcessPoolExecutor):
            return None
        try:
            number, path = mkstemp(prefix="simmodel-", suffix=".material")
        except OSError:  # no folder for temporary files
            return None
        try:
            with os.fdopen(number, "wb") as file:
                file.write(self.packed)
        except OSError:  # full
            os.unlink(path)
            return None
        self.shared = path
        return path

    def _submit(
        self, executor: Executor, i: int, whole: bool, pending: dict[Future[Ended | bytes | None], int]
    ) -> None:
        packed = self.shared or (self.sent if whole else None)
        left = _left(self.until)
        task, overdue = self.tasks[i], self.overdue
        try:
            if not self.digest:  # threads
                future: Future[Any] = executor.submit(call, self.function, self.material, task, left, overdue)
            else:
                future = executor.submit(
                    work, uuid4().hex, os.getpid(), self.function, self.digest, packed, task, left, overdue
                )
        except BrokenExecutor:
            self.broken.append(i)
        else:
            pending[future] = i

    def _take(
        self,
        executor: Executor,
        future: Future[Ended | bytes | None],
        i: int,
        pending: dict[Future[Ended | bytes | None], int],
    ) -> None:
        if future.cancelled():
            return self._end(i, Ended("failed", reason="the executor cancelled it"))
        error = future.exception()
        if isinstance(error, BrokenExecutor) and isinstance(executor, ProcessPoolExecutor):
            self.broken.append(i)
        elif error is not None:
            self._failed(i, error)
        elif (how := future.result()) is None:
            self._submit(executor, i, True, pending)
        else:
            self._end(i, unpacked(how))
        return None

    def _failed(self, i: int, error: BaseException) -> None:
        died = type(error).__name__ == "KilledWorker"  # of Dask, with a long message
        if died and i != self.alone:
            self.suspects.append(i)
        else:
            self._end(i, Ended("failed", reason="its workers died" if died else f"{type(error).__name__}: {error}"))

    def _end(self, i: int, how: Ended) -> None:
        self.over[i] = how
        self.tell(i, how)

    # ------------------------------------------------------------------ after a worker died

    def run_isolated(self, executor: Executor) -> None:
        """Run the tasks of a broken pool again, each in a separate process."""
        context = getattr(executor, "_mp_context", None) or multiprocessing.get_context()
        at_once = getattr(executor, "_max_workers", None) or 1
        waiting = self.broken[::-1]
        running: dict[Any, tuple[int, Any]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < at_once and _left(self.until) != 0:
                    i = waiting.pop()
                    reader, writer = context.Pipe(duplex=False)
                    arguments = (writer, self.function, self.packed, self.tasks[i], _left(self.until), self.overdue)
                    process = context.Process(target=work_alone, args=arguments, daemon=True)
                    process.start()
                    writer.close()
                    running[reader] = i, process
                ready = wait_for_connections(list(running), _left(self.until)) if running else []
                if not ready:
                    break
                for each in ready:
                    assert isinstance(each, Connection)
                    i, process = running.pop(each)
                    self._end(i, _received(each, process))
        finally:
            for reader, (_, process) in running.items():
                process.terminate()
                process.join()
                reader.close()


def _received(reader: Connection, process: BaseProcess) -> Ended:
    try:
        how: Ended = reader.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        how = Ended(
            "failed", reason=f"its worker process died ({f'signal {-code}' if code < 0 else f'exit code {code}'})"
        )
    else:
        process.join()
    reader.close()
    return how
