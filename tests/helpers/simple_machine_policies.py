"""Simple policies for machines, some of which preempt."""

from __future__ import annotations

from typing import Any

from simmodel.scheduling.protocol import Preempt, Start, WakeAt


def anywhere(view: Any) -> Any:
    """Start each task on a random processor that can run it."""
    for task in view.waiting:
        able = [place for place in view.places if place.can_run(task)]
        yield Start(task, able[int(view.rng.integers(len(able)))])


def first(view: Any) -> Any:
    """Start each task on the first processor that can run it."""
    for task in view.waiting:
        yield Start(task, next(place for place in view.places if place.can_run(task)))


def earliest(view: Any) -> Any:
    """Start each task where it is expected to end first; check that all estimates are finite."""
    for task in view.waiting:
        able = [place for place in view.places if place.can_run(task)]
        estimates = {place: view.estimate(task, place) for place in able}
        assert all(0 <= value < float("inf") for estimate in estimates.values() for value in estimate)
        yield Start(task, min(able, key=lambda place: (estimates[place].finish, place.index)))


class Lazy:
    """Starts one task per decision, the last waiting one, and the next one half a second later."""

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
    """Starts tasks anywhere, and sometimes preempts a running task for no reason."""

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
