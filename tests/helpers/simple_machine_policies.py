"""Simple policies for machines, some of them restless."""

from __future__ import annotations

from typing import Any

from simmodel.scheduling.protocol import Preempt, Start, WakeAt


def anywhere(view: Any) -> Any:
    """Any processor that can run it."""
    for task in view.waiting:
        able = [place for place in view.places if place.can_run(task)]
        yield Start(task, able[int(view.rng.integers(len(able)))])


def first(view: Any) -> Any:
    """All to the first processor that can run them."""
    for task in view.waiting:
        yield Start(task, next(place for place in view.places if place.can_run(task)))


def earliest(view: Any) -> Any:
    """Where it is expected to end first; all estimates are numbers."""
    for task in view.waiting:
        able = [place for place in view.places if place.can_run(task)]
        estimates = {place: view.estimate(task, place) for place in able}
        assert all(0 <= value < float("inf") for estimate in estimates.values() for value in estimate)
        yield Start(task, min(able, key=lambda place: (estimates[place].finish, place.index)))


class Lazy:
    """One task at a time, the last of those that wait, and the next one a while later."""

    name = "lazy"

    def decide(self, view: Any) -> Any:
        waiting = list(view.waiting)
        assert len(waiting) == len(view.waiting) == len(dict.fromkeys(waiting)), waiting
        if waiting:
            ready = [task for task in waiting if task.state == "waiting"]
            task = (ready or waiting)[-1]
            yield Start(task, [place for place in view.places if place.can_run(task)][-1])
            yield WakeAt(view.now + 0.5)


class Restless:
    """Anywhere, and now and then a running task is stopped for no reason."""

    name = "restless"

    def __init__(self) -> None:
        self.left = 8
        self.wakes = 40

    def decide(self, view: Any) -> Any:
        if self.left:
            for run in view.running:
                if self.left and run.place.spec.preemption != "no" and run.place.why_not_stop(run.work) is None:
                    self.left -= 1
                    yield Preempt(run.work, "suspend" if self.left % 2 else "requeue", "no reason")
            self.wakes -= 1
            if self.wakes > 0:
                yield WakeAt(view.now + 1.5)
        waiting = list(view.waiting)
        assert len(waiting) == len(view.waiting) == len(dict.fromkeys(waiting)), waiting
        if self.wakes <= 0 or self.left % 3 != 2:
            yield from anywhere(view)


POLICIES = {"anywhere": lambda: anywhere, "first": lambda: first, "earliest": lambda: earliest, "lazy": Lazy,
            "restless": Restless}  # fmt: skip
