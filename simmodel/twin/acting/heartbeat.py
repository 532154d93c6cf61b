"""Signs of life and of stopping: files that scripts, other processes and people can read and make."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, time

from simmodel.foundation.errors import InputError
from simmodel.foundation.writing import write_text

__all__ = ["Heartbeat", "Pulse"]

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
