"""Many calls of one function with a common argument, on any executor."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from traceback import format_tb
from typing import Any, TypeVar

import attrs

from simmodel.foundation.errors import SimmodelError
from simmodel.foundation.tracebacks import shortened
from simmodel.records.observers import progress_bar

__all__ = ["map_calls"]

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Found = TypeVar("Found")


def map_calls(
    function: Callable[[Shared, Item], Found],
    shared: Shared,
    items: Sequence[Item],
    executor: Executor | None,
    progress: bool,
) -> list[Found]:
    """Call the function with the shared argument and each item; return the results in the order of the items.

    On an executor, ``shared`` is sent once to each worker (see :mod:`simmodel.futures.executors`), and an error in a
    call is raised here as soon as it is known; a worker that dies costs its own calls a retry.
    """
    with progress_bar(len(items), "run", progress) as bar:
        if executor is None:
            found = []
            for item in items:
                found.append(function(shared, item))
                bar.update(1)
            return found
        from simmodel.futures.executors import Ended, run_all

        def ended(_: int, how: Ended) -> None:
            if how.status != "finished":
                raise SimmodelError(f"a run {how.status}: {how.reason}")
            if isinstance(how.value, _Raised):
                raise how.value.error
            bar.update(1)

        return [how.value for how in run_all(_answered, (function, shared), items, executor=executor, ended=ended)]


@attrs.frozen
class _Raised:
    """An error raised by a call in a worker."""

    error: Exception


def _answered(material: tuple[Callable[[Any, Any], Any], Any], item: object, _left: float | None) -> Any:
    """Return the result of a call in a worker, or its error, so that it can be raised again as it is."""
    function, shared = material
    try:
        with shortened:
            return function(shared, item)
    except Exception as error:
        error.add_note("".join(["in a worker:\n", *format_tb(error.__traceback__)[1:]]).rstrip())
        pickle.dumps(error)  # else it is reported as text
        return _Raised(error)
