"""Ready storages: a burst buffer, and a tape library.

A burst buffer is a fast tier that absorbs writes and drains to the storage behind it. [N. Liu, J. Cope, P. Carns, C.
Carothers, R. Ross, G. Grider, A. Crume, C. Maltzahn, "On the role of burst buffers in leadership-class storage
systems", MSST 2012.] A tape library has few drives, into which a robot mounts the tape of a file before it can be
read.
"""

from __future__ import annotations

from math import inf
from typing import Any, ClassVar

from simmodel.foundation.errors import InputError
from simmodel.platform.storage import StorageSpec
from simmodel.resources.alarm import Alarm
from simmodel.resources.data.storage import Call, Storage
from simmodel.resources.models import Option
from simmodel.resources.network.shared_channel import Access, SharedChannel

__all__ = ["BurstBuffer", "TapeLibrary"]


class BurstBuffer(Storage):
    """A storage whose writes share the bandwidth of its buffer, and that of the storage behind while that is full.

    The buffer drains at the spec's ``write_bandwidth`` all the time; reads share its ``read_bandwidth``.

    - ``buffer``: bytes, or a text such as ``"1TB"``
    - ``bandwidth``: bytes/s of the buffer
    """

    takes: ClassVar = {"buffer": Option(unit="B", above=0), "bandwidth": Option(unit="B/s", above=0)}
    full = busy = False
    level, since = 0.0, 0.0  # the bytes in the buffer at an instant (s)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._alarm = Alarm(self.env, self._fills)

    @classmethod
    def refuses(cls, spec: StorageSpec) -> str | None:
        """Return why it has nothing to absorb, if so."""
        return None if spec.write_bandwidth < inf else "needs a write_bandwidth, at which the buffer drains"

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The instant at which the buffer is full."""
        return (self._alarm,)

    def write_bandwidth(self, writers: int) -> float:
        """Return the bandwidth of the buffer, or that of the storage behind it once it is full."""
        return self.spec.write_bandwidth if self.full else max(self.options["bandwidth"], self.spec.write_bandwidth)

    def turns(self, channel: SharedChannel, busy: bool) -> None:
        """Note the bytes in the buffer where writing begins or ends."""
        if channel is self.writing:
            inflow = self.write_bandwidth(1) if self.busy else 0.0
            level = self.level + (inflow - self.spec.write_bandwidth) * (self.env.now - self.since)
            self._set(min(max(level, 0.0), self.options["buffer"]), self.env.now, busy)

    def _set(self, level: float, since: float, busy: bool) -> None:
        self.level, self.since, self.busy = level, since, busy
        self.full = level >= self.options["buffer"]
        rise = self.write_bandwidth(1) - self.spec.write_bandwidth
        rises = busy and not self.full and rise > 0
        self._alarm.set(since + (self.options["buffer"] - level) / rise if rises else inf)

    def _fills(self) -> None:
        self._set(self.options["buffer"], self.env.now, True)
        self.writing.ask_again()

    def own_state(self) -> Any:
        """Return the bytes in the buffer at an instant, and whether there are writers."""
        return [self.level, self.since, self.busy]

    def restore_own(self, values: Any) -> None:
        self._set(*values)


class TapeLibrary(Storage):
    """A storage whose reads wait for a drive, the mount of their tape (unless it is mounted there) and a seek.

    Each drive reads with the spec's ``read_bandwidth``. Reads are served in order, except that one whose tape is in a
    busy drive waits for that one. Files fill the tapes in the order of their arrival; writes go to a disk in front of
    the library, at ``write_bandwidth``.

    - ``drives``: their number
    - ``mount``, ``seek``: seconds, or texts such as ``"90s"``; ``seek``: default 0
    - ``tape``: bytes of a tape; a file on its border belongs to the first
    """

    takes: ClassVar = {
        "drives": Option(least=1, whole=True),
        "mount": Option(unit="s"),
        "seek": Option(0.0, unit="s"),
        "tape": Option(unit="B", above=0),
    }
    snapshots = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tapes: dict[str, int] = {}
        self._written = 0.0
        self.mounted = [-1] * self.options["drives"]  # the tape in each drive
        self._loaded = [0.0] * self.options["drives"]  # when it is in there (s)
        self._users: list[Access | None] = [None] * self.options["drives"]
        self._waiting: list[tuple[Access, int]] = []

    @classmethod
    def refuses(cls, spec: StorageSpec) -> str | None:
        """Return why it cannot read, if so."""
        return None if spec.read_bandwidth < inf else "needs a read_bandwidth, that of a drive"

    def read_bandwidth(self, readers: int) -> float:
        return self.spec.read_bandwidth * readers

    def add(self, file: str, size: float, cause: str = "given", *, pins: int = 0) -> None:
        """Place a file, on the tape that is written."""
        super().add(file, size, cause, pins=pins)
        self.tapes[file] = int(self._written // self.options["tape"])
        self._written += size

    def read(self, size: float | str, call: Call | None = None, about: Any = None, file: str | None = None) -> Access:
        """Start to read a file, once its tape is in a drive."""
        if file not in self.tapes:
            raise InputError(f"must be a file of storage {self.name}, got {file!r}", place="file")
        access = super().read(size, call, about)
        if access.end is None:
            access.pause()
            access.callbacks.append(self._ended)
            self._waiting.append((access, self.tapes[file]))
            self._assign()
        return access

    def _assign(self) -> None:
        for access, tape in list(self._waiting):
            drive = min(range(len(self.mounted)), key=lambda i: self._rank(i, tape))
            if self._users[drive] is None:
                self._waiting.remove((access, tape))
                if self.mounted[drive] != tape:
                    self.mounted[drive], self._loaded[drive] = tape, self.env.now + self.options["mount"]
                self._users[drive] = access
                self.env.call_at(max(self.env.now, self._loaded[drive]) + self.options["seek"], access.resume)

    def _rank(self, drive: int, tape: int) -> tuple[bool, bool, bool]:
        # The drive that has the tape, else one that is free, of these one that is empty.
        return self.mounted[drive] != tape, self._users[drive] is not None, self.mounted[drive] >= 0

    def _ended(self, access: Any) -> None:
        self._waiting = [each for each in self._waiting if each[0] is not access]
        self._users = [None if user is access else user for user in self._users]
        self._assign()
