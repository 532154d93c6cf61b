"""Policies that give each task to a processor at once, one task after the other: for places that queue.

Sources: HetSim's hRR, GreedyET and GreedyDS; the names of the queue-aware ones as in Maheswaran, Ali, Siegel, Hensgen,
Freund, "Dynamic mapping of a class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999 (there
minimum completion time).

Ties go to the first place, in the order in which the machine has them. Tasks are taken as they wait: in the order in
which they became ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from simmodel.errors import InputError
from simmodel.scheduling.protocol import Decision, Start, View

__all__ = ["EarliestFinish", "EarliestStart", "FastestExecution", "GreedyDS", "RoundRobin", "queueing"]


def queueing(view: View, policy: Any) -> Sequence[Any]:
    """Return the places of a view.

    Raises
    ------
    InputError
        one of them starts what it takes at once: a place is chosen here however long its queue is
    """
    for place in view.places:
        if not place.queues:
            raise InputError(
                f"policy {policy.name}: places that queue work expected (processors, sites), found {place.name}"
            )
    return view.places


class RoundRobin:
    """Each task goes to the next place that can run it, whatever that costs (hRR of HetSim).

    >>> RoundRobin().name
    'hrr'
    """

    name = "hrr"

    def __init__(self) -> None:
        self._next = 0

    def fresh(self) -> RoundRobin:
        """Return one that begins with the first place."""
        return RoundRobin()

    def state(self) -> int:
        """Return the position of the place whose turn it is."""
        return self._next

    def restore(self, values: int) -> None:
        """Go on with the place whose turn it was."""
        self._next = values

    def decide(self, view: View) -> Iterator[Decision]:
        """Hand out the waiting tasks in turn."""
        places = queueing(view, self)
        count = len(places)
        turn = self._next
        for task in view.waiting:
            for _ in range(count):
                place = places[turn]
                turn += 1
                if turn == count:
                    turn = 0
                if place.can_run(task):
                    self._next = turn
                    yield Start(task, place)
                    break


class FastestExecution:
    """Each task goes to the place that is expected to execute it fastest, whatever waits there (GreedyET of HetSim).

    >>> FastestExecution().name
    'greedy-et'
    """

    name = "greedy-et"

    def fresh(self) -> FastestExecution:
        """Return itself: it remembers nothing."""
        return self

    def decide(self, view: View) -> Iterator[Decision]:
        """Give each waiting task to the fastest place."""
        # Places of one spec are equally fast, and the first of them is taken: look at no others.
        first: dict[Any, Any] = {}
        for place in queueing(view, self):
            first.setdefault(id(getattr(place, "spec", place)), place)
        kinds = list(first.values())
        for task in view.waiting:
            best, least = None, inf
            for place in kinds:
                if place.can_run(task) and (seconds := place.expected_run(task)) < least:
                    best, least = place, seconds
            if best is not None:
                yield Start(task, best)


class GreedyDS:
    """Each task goes where setup, transfers and run take least, whatever waits there (GreedyDS of HetSim).

    Setup includes a reconfiguration, where the place would need one now; transfers move what is not in its pool now.

    >>> GreedyDS().name
    'greedy-ds'
    """

    name = "greedy-ds"

    def fresh(self) -> GreedyDS:
        """Return itself: it remembers nothing."""
        return self

    def decide(self, view: View) -> Iterator[Decision]:
        """Give each waiting task to the place that costs least."""
        places = queueing(view, self)
        for task in view.waiting:
            best, least = None, inf
            for place in places:
                if place.can_run(task):
                    seconds = place.expected_setup(task) + place.expected_transfer(task) + place.expected_run(task)
                    if seconds < least:
                        best, least = place, seconds
            if best is not None:
                yield Start(task, best)


class EarliestStart:
    """Each task goes to the place whose queue is expected to be empty first.

    >>> EarliestStart().name
    'earliest-start'
    """

    name = "earliest-start"

    def fresh(self) -> EarliestStart:
        """Return itself: it remembers nothing."""
        return self

    def decide(self, view: View) -> Iterator[Decision]:
        """Give each waiting task to the place that gets to it first."""
        places = queueing(view, self)
        for task in view.waiting:
            best, least = None, inf
            for place in places:
                if place.can_run(task) and (start := view.estimate(task, place).start) < least:
                    best, least = place, start
            if best is not None:
                yield Start(task, best)


class EarliestFinish:
    """Each task goes where it is expected to end first: start, setup, transfers and run together.

    >>> EarliestFinish().name
    'earliest-finish'
    """

    name = "earliest-finish"

    def fresh(self) -> EarliestFinish:
        """Return itself: it remembers nothing."""
        return self

    def decide(self, view: View) -> Iterator[Decision]:
        """Give each waiting task to the place that would end it first."""
        places = queueing(view, self)
        for task in view.waiting:
            best, least = None, inf
            for place in places:
                if place.can_run(task):
                    start, setup, transfer, run = view.estimate(task, place)
                    finish = start + setup + transfer + run
                    if finish < least:
                        best, least = place, finish
            if best is not None:
                yield Start(task, best)
