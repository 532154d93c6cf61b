"""Policies that look at all waiting tasks together before they give the next one to a processor: for places that queue.

Sources: Maheswaran, Ali, Siegel, Hensgen, Freund, "Dynamic mapping of a class of independent tasks onto heterogeneous
computing systems", JPDC 59(2), 1999; in the form of Casanova, Legrand, Zagorodnov, Berman, "Heuristics for scheduling
parameter sweep applications in grid environments", HCW 2000: one task is chosen and given away at a time.

Tasks that still wait for others are left until they are ready. What setup, transfers and run of a task take at a place
is asked once a decision, when the place's queue is empty after each task that it was given. Ties go to the task that
waited first, then to the first place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.protocol import Decision, Start, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MaxMin", "MinMin", "Sufferage"]

_Choices = Generator[tuple[int, int], float, None]
"""Yields a row and a column, and is sent the instant at which the queue of the place is then empty."""


class _Batch(Policy):
    """What the three share: they ask for all estimates, and differ in which task comes next."""

    decides = "places"

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Give the waiting tasks away, each where it ends first, one after another."""
        places = view.places
        tasks: list[Any] = []
        costs: list[list[float]] = []
        starts = [0.0] * len(places)
        for task in list(view.waiting):
            if getattr(task, "state", None) == "blocked":  # queued out of turn, it could hold up what it waits for
                continue
            row = []
            for j, place in enumerate(places):
                if place.can_run(task):
                    starts[j], setup, transfer, run = view.estimate(task, place)
                    row.append(setup + transfer + run)
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
                yield Start(task, place)
                try:
                    i, j = choices.send(view.estimate(task, place).start)
                except StopIteration:
                    return

    def _choose(self, costs: list[list[float]], starts: list[float]) -> _Choices:
        raise NotImplementedError


class MinMin(_Batch):
    """Of all waiting tasks the one that can end first goes where it does, and so on.

    For n tasks and p places a decision takes in the order of n p log n steps.

    >>> MinMin().name
    'min-min'
    """

    name = "min-min"

    def _choose(self, costs: list[list[float]], starts: list[float]) -> _Choices:
        # The task that can end first anywhere is, of some place, the one that costs least there.
        columns = [list(column) for column in zip(*costs, strict=True)]
        queues = [
            sorted([i for i, cost in enumerate(column) if cost < inf], key=column.__getitem__)[::-1]
            for column in columns
        ]
        # sorted() keeps the order of equal ones, and pop() takes from the end of the reversed list
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
    """Gives away the task of the highest score, which depends on when it would end on its two best places.

    Places at which every task costs the same are one kind: of a kind, only those two matter whose queues are empty
    first.
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
            of each kind: when its first place has nothing to do, and its second, if there is one, s
        """
        raise NotImplementedError


class MaxMin(_ByScore):
    """Of all waiting tasks the one whose earliest end is the latest goes there, and so on: long tasks first.

    For n tasks a decision takes in the order of n^2 steps for each
    kind of place, in numpy.

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
    """Of all waiting tasks the one goes to its best place that would lose most at its second best, and so on.

    A task that only one place can run loses everything, and goes first. For n tasks a decision takes in the order of
    n^2 steps, in numpy.

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
