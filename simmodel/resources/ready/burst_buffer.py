"""A burst buffer: a fast tier that absorbs writes and drains to the storage behind it.

[N. Liu, J. Cope, P. Carns, C. Carothers, R. Ross, G. Grider, A. Crume, C. Maltzahn, "On the role of burst buffers in
leadership-class storage systems", MSST 2012.]
"""

from __future__ import annotations

from math import inf
from typing import Any, ClassVar

from simmodel.platform.storage import StorageSpec
from simmodel.resources.alarm import Alarm
from simmodel.resources.data.storage import Storage
from simmodel.resources.models import Option
from simmodel.resources.network.shared_channel import SharedChannel

__all__ = ["BurstBuffer"]


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
        """Take back the state."""
        self._set(*values)
