"""The tasks of a machine that have no place yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from simmodel.foundation.errors import InputError
from simmodel.work.taskset import LiveTask

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place

__all__ = ["ReadyTasks"]


class ReadyTasks:
    """Tasks without a place, in order of arrival.

    Iteration is live: it returns each task once, skips those placed meanwhile, and leaves those that arrive meanwhile
    to the next decision. Placing a task moves nothing: the list is swept once most of its tasks have places.

    Attributes
    ----------
    count, new
        the number of tasks, and of those that arrived since the last decision
    """

    __slots__ = ("_first", "_tasks", "count", "new")

    def __init__(self) -> None:
        self._tasks: list[LiveTask] = []
        self._first = 0  # all tasks before it have places
        self.count = 0
        self.new = 0

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[LiveTask]:
        tasks = self._tasks
        for i in range(self._first, len(tasks)):
            task = tasks[i]
            if task.place is None:
                yield task

    def at(self, place: Place) -> NoReturn:
        """Refuse a policy for jobs, which asks for a place's queue; raises ``InputError``."""
        raise InputError(
            f"must be a policy for tasks, such as heft, got one that starts jobs from queues: {place.name} has no such "
            f"queue",
            place="policy",
        )

    def add(self, task: LiveTask) -> None:
        self._tasks.append(task)
        self.count += 1
        self.new += 1

    def again(self, task: LiveTask) -> None:
        self._tasks = [each for each in self._tasks[self._first :] if each is not task]
        self._first = 0
        self.add(task)

    def remove(self, task: LiveTask) -> None:
        """Remove a task without a place."""
        self._tasks = [each for each in self._tasks[self._first :] if each is not task]
        self._first = 0
        self.count -= 1
        self.new = min(self.new, self.count)

    def clear(self) -> None:
        self._tasks = []
        self._first = self.count = self.new = 0

    def extend(self, tasks: list[LiveTask]) -> None:
        """Add tasks in this order."""
        self._tasks += tasks
        self.count += len(tasks)
        self.new += len(tasks)

    def placed(self) -> None:
        self.count -= 1

    def forget_new(self) -> None:
        """Reset the count of new tasks after a decision."""
        self.new = 0
        tasks = self._tasks
        if not self.count:
            tasks.clear()
            self._first = 0
        elif len(tasks) > 2 * self.count + 32:
            self._tasks = [task for task in tasks if task.place is None]
            self._first = 0
        else:
            first = self._first
            while tasks[first].place is not None:
                first += 1
            self._first = first
