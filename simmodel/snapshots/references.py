"""The states of models of resources: plain values that may hold tasks and data, written as numbers.

A task is ``{"task": 3}`` in a snapshot, a data object ``{"data": 1}``; a task that has ended is ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from simmodel.work.livetask import LiveData, LiveTask

__all__ = ["data_in", "referred", "referring", "renumbered"]


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return plain values with each leaf, and each reference, changed."""
    if isinstance(value, Mapping) and value.keys() not in ({"task"}, {"data"}):
        return {key: _mapped(each, change) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(each, change) for each in value]
    return change(value)


def data_in(value: Any) -> Iterator[LiveData]:
    """Yield the data objects in the state of a model."""
    if isinstance(value, LiveData):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from data_in(each)
    elif isinstance(value, Mapping):
        yield from data_in(list(value.values()))


def referring(value: Any, tasks: Mapping[LiveTask, int], data: Mapping[LiveData, int]) -> Any:
    """Return the state of a model with the numbers of its tasks and data."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, LiveTask):
            return {"task": tasks[leaf]} if leaf in tasks else None
        return {"data": data[leaf]} if isinstance(leaf, LiveData) else leaf

    return _mapped(value, change)


def referred(value: Any, tasks: Sequence[LiveTask], data: Sequence[LiveData]) -> Any:
    """Return the state of a model with the tasks and data of its numbers.

    >>> referred([[{"task": 1}, 2.5], {"left": None}], ["a", "b"], [])
    [['b', 2.5], {'left': None}]
    """

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Mapping):
            return tasks[leaf["task"]] if "task" in leaf else data[leaf["data"]]
        return leaf

    return _mapped(value, change)


def renumbered(value: Any, number: Mapping[int, int]) -> Any:
    """Return the state of a model with its references to tasks renumbered; tasks without a number become ``None``.

    >>> renumbered({"left": [[{"task": 2}, 1.5]]}, {2: 0})
    {'left': [[{'task': 0}, 1.5]]}
    """

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Mapping) and "task" in leaf:
            return {"task": number[leaf["task"]]} if leaf["task"] in number else None
        return leaf

    return _mapped(value, change)
