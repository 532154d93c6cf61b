"""The tasks of a machine that no decision has placed yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from simmodel.errors import InputError
from simmodel.work.livetask import LiveTask

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place

__all__ = ["ReadyTasks"]


class ReadyTasks:
    """Tasks without a place, in the order in which they came.

    A cursor over it is live: what gets a place drops out, each remaining task comes once, and what comes while it runs
    comes with the next decision. Nothing is moved when a task gets its place: the list is swept once most of it has.

    Attributes
    ----------
    new
        number of tasks that came since the last decision
    """

    __slots__ = ("_count", "_first", "_tasks", "new")

    def __init__(self) -> None:
        self._tasks: list[LiveTask] = []
        self._first = 0  # everything before has a place
        self._count = 0
        self.new = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __iter__(self) -> Iterator[LiveTask]:
        tasks = self._tasks
        for i in range(self._first, len(tasks)):
            task = tasks[i]
            if task.place is None:
                yield task

    def at(self, place: Place) -> NoReturn:
        """Refuse a policy for places that start work at once; raises :class:`~simmodel.errors.InputError`."""
        raise InputError(
            f"a policy that places tasks (hrr, heft ...) expected, found one for queues of jobs: {place.name} has none"
        )

    def add(self, task: LiveTask) -> None:
        """Take a task in."""
        self._tasks.append(task)
        self._count += 1
        self.new += 1

    def again(self, task: LiveTask) -> None:
        """Take a task in that had got a place and has none now."""
        self._tasks = [each for each in self._tasks[self._first :] if each is not task]
        self._first = 0
        self.add(task)

    def remove(self, task: LiveTask) -> None:
        """Take a task out that will have no place."""
        self._tasks = [each for each in self._tasks[self._first :] if each is not task]
        self._first = 0
        self._count -= 1
        self.new = min(self.new, self._count)

    def extend(self, tasks: list[LiveTask]) -> None:
        """Take tasks in, in this order."""
        self._tasks += tasks
        self._count += len(tasks)
        self.new += len(tasks)

    def placed(self) -> None:
        """One of the tasks has got a place."""
        self._count -= 1

    def forget_new(self) -> None:
        """The decision about what came is over."""
        self.new = 0
        tasks = self._tasks
        if not self._count:
            tasks.clear()
            self._first = 0
        elif len(tasks) > 2 * self._count + 32:
            self._tasks = [task for task in tasks if task.place is None]
            self._first = 0
        else:
            first = self._first
            while tasks[first].place is not None:
                first += 1
            self._first = first
