"""Worker processes that end with the process that started them, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing.connection import wait
from threading import Thread
from typing import TypeVar

from simmodel.foundation.loading import keeping_limits

__all__ = ["end_with_parent", "map_on", "stop_workers", "worker_pool"]

Item = TypeVar("Item")
Found = TypeVar("Found")

_CHECKED_EVERY = 1.0  # seconds
_MANAGER = 5.0  # seconds for the thread of a pool to see that its processes are gone
_watching: list[int] = []  # the process that watches its parent; a process forked from it does not


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes for simulations: they ignore interrupts, and end when this process ends.

    >>> with worker_pool(2) as pool:
    ...     list(pool.map(abs, [-1, 2]))
    [1, 2]
    """
    return ProcessPoolExecutor(workers, initializer=_start)


def stop_workers(executor: Executor) -> None:
    """Shut an executor down without waiting for its tasks; the processes of a pool are terminated."""
    processes = list((getattr(executor, "_processes", None) or {}).values())
    manager = getattr(executor, "_executor_manager_thread", None)
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    if manager is not None:  # it closes a pipe to which Python writes when this process ends
        manager.join(_MANAGER)


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def map_on(executor: Executor, function: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
    """Call a function with each item on an executor, as its ``map`` does, under the limits of reading that hold here.

    Workers of this process end with it.
    """
    return executor.map(partial(_call, os.getpid(), keeping_limits(function)), items)


def _call(caller: int, function: Callable[[Item], Found], item: Item) -> Found:
    end_with_parent(caller)
    return function(item)


def end_with_parent(parent_id: int | None = None) -> None:
    """End this process as soon as its parent ends, even if the parent is killed.

    Nothing happens in a process that :mod:`multiprocessing` did not start.

    Parameters
    ----------
    parent_id
        the id of a process: do so only if it is the parent
    """
    parent = multiprocessing.parent_process()
    if parent is None or parent_id not in (None, parent.pid) or os.getpid() in _watching:
        return
    _watching[:] = [os.getpid()]
    Thread(target=_end_with, args=(parent.pid, parent.sentinel), name="simmodel-parent", daemon=True).start()


def _end_with(parent: int | None, sentinel: int) -> None:
    # The other end of the sentinel is open in workers forked later, too: they end first, or the parent's id changes.
    direct = parent == os.getppid()
    while not wait([sentinel], _CHECKED_EVERY):
        if direct and os.getppid() != parent:
            break
    os._exit(1)
