"""The side of a worker: one task on shared material, which each worker unpacks once."""

from __future__ import annotations

import os
import pickle
import traceback
import zlib
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Lock
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import attrs

from simmodel.foundation.errors import SimmodelError
from simmodel.foundation.workers import end_with_parent
from simmodel.scheduling.observer import Observer

if TYPE_CHECKING:
    from simmodel.scheduling.scheduler import Scheduler

__all__ = [
    "SMALL",
    "Ended",
    "OutOfTime",
    "Task",
    "Watch",
    "call",
    "packed_for_sending",
    "remember",
    "unpacked",
    "work",
    "work_alone",
]

Material = TypeVar("Material")
Item = TypeVar("Item")
Task = Callable[[Material, Item, float | None], object]
"""``function(material, task, seconds_left)``; it may raise :class:`OutOfTime` once its time is up."""

_KEPT = 8  # materials that a worker caches
SMALL = 16_384  # bytes that are sent as they are, and a material with each task rather than on request
_QUICK = 1  # level of compression: columns of a log shrink to a tenth or a sixth, at 200 MB/s


class OutOfTime(Exception):
    """Raised by a task that stops because its time is up."""


@attrs.frozen
class Ended:
    """How a task ended.

    Attributes
    ----------
    status
        ``"finished"``, ``"unfinished"`` by the deadline, or ``"failed"``
    value
        its return value
    reason
        why it failed or did not finish, in one sentence
    seconds
        wall-clock time (s) in its worker
    """

    status: Literal["finished", "unfinished", "failed"]
    value: Any = None
    reason: str = ""
    seconds: float = 0.0


def call(function: Task[Material, Item], material: Material, task: Item, left: float | None, overdue: str) -> Ended:
    """Run one task and return how it ended; errors are returned as text."""
    begin = perf_counter()
    try:
        value = function(material, task, left)
    except OutOfTime:
        return Ended("unfinished", reason=overdue, seconds=perf_counter() - begin)
    except SimmodelError as error:
        return Ended("failed", reason=str(error), seconds=perf_counter() - begin)
    except Exception as error:
        return Ended("failed", reason=_described(error), seconds=perf_counter() - begin)
    return Ended("finished", value, seconds=perf_counter() - begin)


def _described(error: BaseException) -> str:
    """Return the error and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (line {frames[-1].lineno} of {os.path.basename(frames[-1].filename)})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


_warm: OrderedDict[str, Any] = OrderedDict()
_warm_lock = Lock()


def _known(digest: str) -> Any:
    """Return the cached material of a digest, or ``None``."""
    with _warm_lock:
        if digest in _warm:
            _warm.move_to_end(digest)
        return _warm.get(digest)


def remember(digest: str, material: Material) -> None:
    """Keep a material in this process, and in those forked from it from now on, for tasks that name its digest."""
    with _warm_lock:
        _warm[digest] = material
        _warm.move_to_end(digest)
        while len(_warm) > _KEPT:
            _warm.popitem(last=False)


def work(
    _name: str,
    caller: int,
    function: Task[Material, Item],
    digest: str,
    packed: bytes | str | None,
    task: Item,
    left: float | None,
    overdue: str,
) -> Ended | bytes | None:
    """Run one task in a worker; ``None`` requests the material. The unique name keeps calls from being merged.

    How the task ended is returned as :func:`packed_for_sending` makes it if it is large and goes over a network.
    ``packed`` is the material as :func:`packed_for_sending` returns it, or the path of a file of it as it was pickled.
    A worker that the caller started ends with it.
    """
    end_with_parent(caller)
    material = _known(digest)
    if material is None:
        if packed is None:
            return None
        if isinstance(packed, str):
            with open(packed, "rb") as file:
                material = pickle.load(file)
        else:
            material = pickle.loads(zlib.decompress(packed))
        remember(digest, material)
    how = call(function, material, task, left, overdue)
    if isinstance(packed, str):
        return how
    pickled = pickle.dumps(how, protocol=5)
    return how if len(pickled) <= SMALL else packed_for_sending(pickled)


def unpacked(how: Ended | bytes) -> Ended:
    """Return how a task ended, as :func:`work` returned it."""
    found: Ended = pickle.loads(zlib.decompress(how)) if isinstance(how, bytes) else how
    return found


def packed_for_sending(pickled: bytes) -> bytes:
    """Return a pickled material as it is sent over a network: compressed."""
    return zlib.compress(pickled, _QUICK)


def work_alone(
    connection: Connection, function: Task[Material, Item], packed: bytes, task: Item, left: float | None, overdue: str
) -> None:
    """Run one task in a process of its own, and send how it ended."""
    end_with_parent()
    connection.send(call(function, pickle.loads(packed), task, left, overdue))


class Watch(Observer):
    """Ends a simulation after a number of wall-clock seconds."""

    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    def decided(self, _scheduler: Scheduler, _seconds: float, _decisions: int) -> None:
        """Check the clock after each decision."""
        if monotonic() > self._until:
            raise OutOfTime
