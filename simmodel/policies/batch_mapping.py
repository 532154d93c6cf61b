"""Batch-mode mapping: policies that compare all waiting tasks before they assign the next one to a place with a queue.

Sources: Maheswaran, Ali, Siegel, Hensgen, Freund, "Dynamic mapping of a class of independent tasks onto heterogeneous
computing systems", JPDC 59(2), 1999; in the form of Casanova, Legrand, Zagorodnov, Berman, "Heuristics for scheduling
parameter sweep applications in grid environments", HCW 2000: one task is chosen and assigned at a time.

Blocked tasks are left until they are ready. Setup, transfer and run times are estimated once per decision and pair of
task and place; the instant at which the queue of a place becomes empty, after each task assigned to it. Ties go to the
task that waited first, then to the first place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.scheduling.protocol import Decision, Policy, Start, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MaxMin", "MinMin", "Sufferage"]

_UNKNOWN = 1e30
"""Stands for the cost (s) of work whose files cannot come now: it goes to a place, too, and waits or fails there."""
_Choices = Generator[tuple[int, int], float, None]
"""Yields (row, column) and is sent the instant at which the queue of that place then becomes empty."""


class _Batch(Policy):
    """The base class of batch-mode policies: it collects all estimates; a subclass chooses the next task."""

    decides = "places"

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign the waiting tasks one after another, each to the place where it ends first."""
        places = view.places
        tasks: list[Any] = []
        costs: list[list[float]] = []
        starts = [0.0] * len(places)
        for task in list(view.waiting):
            if getattr(task, "state", None) == "blocked":  # if queued, it could delay its own parents
                continue
            row = []
            for j, place in enumerate(places):
                if place.can_run(task):
                    starts[j], setup, transfer, run = view.estimate(task, place)
                    row.append(min(setup + transfer + run, _UNKNOWN))
                else:
                    row.append(inf)
            if min(row) < inf:
                tasks.append(task)
                costs.append(row)
        if len(tasks) == 1:
            finish = [start + cost for start, cost in zip(starts, costs[0], strict=True)]
            yield Start(tasks[0], places[finish.index(min(finish))])
        elif tasks:
            choices = self._choose(costs, starts)
            i, j = next(choices)
            while True:
                task, place = tasks[i], places[j]
                if not place.can_run(task):  # no longer: a site takes so many jobs only
                    yield from self.decide(view)
                    return
                yield Start(task, place)
                try:
                    i, j = choices.send(view.estimate(task, place).start)
                except StopIteration:
                    return

    def _choose(self, costs: list[list[float]], starts: list[float]) -> _Choices:
        raise NotImplementedError


class MinMin(_Batch):
    """Min-min: assign the waiting task that can end first to the place where it does, and repeat.

    For n tasks and p places a decision takes O(n p log n) time.

    >>> MinMin().name
    'min-min'
    """

    name = "min-min"

    def _choose(self, costs: list[list[float]], starts: list[float]) -> _Choices:
        # The task that can end first anywhere is the cheapest of all tasks at some place.
        columns = [list(column) for column in zip(*costs, strict=True)]
        queues = [
            sorted([i for i, cost in enumerate(column) if cost < inf], key=column.__getitem__)[::-1]
            for column in columns
        ]
        # sorted() is stable, and pop() takes from the end of the reversed list
        given = [False] * len(costs)
        for _ in costs:
            best = (inf, -1, -1)
            for j, queue in enumerate(queues):
                while queue and given[queue[-1]]:
                    queue.pop()
                if queue:
                    i = queue[-1]
                    end = starts[j] + columns[j][i]
                    if (end, i) < best[:2]:
                        best = (end, i, j)
            _, i, j = best
            given[i] = True
            starts[j] = yield i, j


class _ByScore(_Batch):
    """Assign the task with the highest score, which depends on its earliest ends on its two best places.

    Places with equal costs for every task form one kind; of each kind only the two whose queues become empty first
    matter.
    """

    def _choose(self, costs: list[list[float]], starts: list[float]) -> _Choices:
        columns: dict[tuple[float, ...], int] = {}
        kinds = [columns.setdefault(column, len(columns)) for column in zip(*costs, strict=True)]
        cost = np.array(list(columns))
        rows = np.arange(len(costs))
        gone = np.zeros(len(costs), dtype=bool)
        for left in range(len(costs), 0, -1):
            if left < len(rows) // 2:
                cost, rows, gone = cost[:, ~gone], rows[~gone], gone[~gone]
            free = [sorted([starts[j] for j, kind in enumerate(kinds) if kind == k])[:2] for k in range(len(columns))]
            score = self._score(cost, free)
            np.putmask(score, gone, -inf)
            at = int(score.argmax())
            gone[at] = True
            row = int(rows[at])
            ends = [start + seconds for start, seconds in zip(starts, costs[row], strict=True)]
            j = ends.index(min(ends))
            starts[j] = yield row, j

    def _score(self, cost: NDArray[np.float64], free: list[list[float]]) -> NDArray[np.float64]:
        """Return the scores of tasks.

        Parameters
        ----------
        cost
            kinds x tasks, s
        free
            for each kind the instants (s) at which its first place and its second place, if any, become idle
        """
        raise NotImplementedError


class MaxMin(_ByScore):
    """Max-min: assign the waiting task whose earliest end is the latest to that place, and repeat; long tasks first.

    For n tasks and k kinds of places a decision takes O(k n^2) time, in numpy.

    >>> MaxMin().name
    'max-min'
    """

    name = "max-min"

    def _score(self, cost: NDArray[np.float64], free: list[list[float]]) -> NDArray[np.float64]:
        first: NDArray[np.float64] = cost[0] + free[0][0]
        for row, (start, *_) in zip(cost[1:], free[1:], strict=True):
            np.minimum(first, row + start, out=first)
        return first


class Sufferage(_ByScore):
    """Sufferage: assign the waiting task that would lose most at its second best place to its best, and repeat.

    A task that only one place can run has an infinite loss and goes first. For n tasks a decision takes O(n^2) time,
    in numpy.

    >>> Sufferage().name
    'sufferage'
    """

    name = "sufferage"

    def _score(self, cost: NDArray[np.float64], free: list[list[float]]) -> NDArray[np.float64]:
        first = np.full(cost.shape[1], inf)
        second = first.copy()
        for row, starts in zip(cost, free, strict=True):
            for start in starts:
                end = row + start
                np.minimum(second, np.maximum(first, end), out=second)
                np.minimum(first, end, out=first)
        second -= first
        return second
