"""The end of a machine whose nodes are taken away, as when the job that it runs in ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.systems.machine.system import Machine
    from simmodel.work.livetask import LiveTask

__all__ = ["close_machine"]

_OVER = ("done", "cancelled")


def close_machine(machine: Machine) -> None:
    """Break off all tasks of a machine, call off its data in flight, and end its processes."""
    for submission in machine.sets:
        if submission.left:
            for task in submission.tasks:
                if task.state not in _OVER:
                    _break_off(machine, task)
    machine.waiting.clear()
    machine.mover.abandon()
    for place in machine.places:
        place.end()
    machine.scheduler.stop()
    machine.env.forget(machine, machine.scheduler, machine.mover, machine.network)


def _break_off(machine: Machine, task: LiveTask) -> None:
    if task.stamps is not None:
        machine.stopped(task, task.place, goes_back=False)
    task.state = "cancelled"
    task.submission.withdrawn = True
    machine.over(task)
