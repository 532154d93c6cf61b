"""Signs of life: the heartbeat of a twin, a file that scripts and processes read, and the watchdog that looks at it.

The watchdog is a process of its own that gives all jobs back to the scheduler when the twin is gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep, time

from simmodel import InputError
from simmodel.extending import write_text
from simmodel_site.twin.acting.actions import Hands
from simmodel_site.twin.acting.performing import restore
from simmodel_site.twin.logs import Log

__all__ = ["Heartbeat", "Pulse", "Watchdog"]

_EVERY = 1.0  # seconds between two beats


class Heartbeat:
    """A file that a live twin rewrites each second: the time (s since 1970), its process id, and ``hold`` or ``look``.

    Parameters
    ----------
    path
        the file
    holds
        whether jobs should be held for the twin (``hold``) or not (``look``)
    clock
        returns the time (s since 1970)
    """

    def __init__(self, path: str | Path, holds: bool = False, clock: Callable[[], float] = time) -> None:
        self.path = Path(path)
        self.word = "hold" if holds else "look"
        self._clock = clock
        self._beaten = float("-inf")

    def beat(self) -> None:
        """Write the file anew, if the last time was long enough ago."""
        now = monotonic()
        if now - self._beaten >= _EVERY:
            write_text(self.path, f"{int(self._clock())} {os.getpid()} {self.word}\n")
            self._beaten = now

    def stop(self) -> None:
        """Remove the file: from now on nothing is held for the twin."""
        self._beaten = float("-inf")
        with suppress(FileNotFoundError):
            self.path.unlink()


class Pulse:
    """Says whether a heartbeat goes on, whatever the clock does: by its changes, on a clock that only goes forward.

    Parameters
    ----------
    path
        the file of the heartbeat
    stale_after
        seconds without a change after which it has stopped; a file that was there before counts from the first look

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     beat, pulse = Heartbeat(Path(folder, "beat")), Pulse(Path(folder, "beat"), 30.0)
    ...     before = pulse.there
    ...     beat.beat(); during = pulse.there
    ...     beat.stop(); before, during, pulse.there
    (False, True, False)
    """

    def __init__(self, path: str | Path, stale_after: float, now: Callable[[], float] = monotonic) -> None:
        if not stale_after > 0:
            raise InputError(f"must be a number > 0 (s), got {stale_after!r}", place="stale_after")
        self.path = Path(path)
        self.stale_after = stale_after
        self._now = now
        self._last: tuple[str, float] | None = None

    @property
    def there(self) -> bool:
        """Whether the file is there and has changed within ``stale_after`` seconds."""
        try:
            text = self.path.read_text("utf-8", "replace")
        except OSError:
            self._last = None
            return False
        now = self._now()
        if self._last is None or self._last[0] != text:
            self._last = (text, now)
        return now - self._last[1] <= self.stale_after


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
