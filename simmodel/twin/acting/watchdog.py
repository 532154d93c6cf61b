"""The watchdog: a process of its own that gives all jobs back to the scheduler when the twin is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import sleep

from simmodel.twin.acting.actions import Hands
from simmodel.twin.acting.heartbeat import Pulse
from simmodel.twin.acting.performing import restore
from simmodel.twin.logs import Log

__all__ = ["Watchdog"]


class Watchdog:
    """Looks at the heartbeat of a twin and, while there is none, restores every job with a mark of the twin.

    It needs nothing of the twin but the file of its heartbeat; begin times end by themselves if it is gone as well.

    Parameters
    ----------
    hands
        sends the commands that restore jobs
    pulse
        the heartbeat
    stop_file
        while it exists, all jobs are restored as if there were no heartbeat
    cluster
        for its log

    Attributes
    ----------
    restored
        how many jobs it has given back
    trouble
        why the last attempt failed, or ``""``
    """

    def __init__(self, hands: Hands, pulse: Pulse, stop_file: Path | None = None, cluster: str = "") -> None:
        self.hands = hands
        self.pulse = pulse
        self.stop_file = stop_file
        self.restored = 0
        self.trouble = ""
        self.log = Log("watchdog", cluster=cluster)
        self._left: tuple[str, ...] = ()

    def step(self) -> bool:
        """Look once; return whether the twin is alive and not stopped."""
        stopped = self.stop_file is not None and self.stop_file.exists()
        if self.pulse.there and not stopped:
            return True
        found = restore(self.hands)
        self.restored += found.jobs
        if found.jobs:
            why = "the stop file exists" if stopped else "the twin shows no sign of life"
            self.log.warning(f"gave {found.jobs} jobs back to the scheduler: {why}")
        if found.why and found.why != self.trouble:
            self.log.error(found.why)
        self.trouble = found.why
        for each in found.left:
            if each not in self._left:
                self.log.warning(f"not given back: {each}")
        self._left = found.left
        return False

    def run(self, until: Callable[[], bool], interval: float = 1.0) -> None:
        """Look every ``interval`` seconds until a function says so."""
        while not until():
            self.step()
            sleep(interval)
