"""The devices that the jobs of a site read from and write to: its storage, or the disks of its hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError
from simmodel.resources.network.shared_channel import SharedChannel
from simmodel.snapshots.grid import DiskState

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.grid import SiteSpec
    from simmodel.resources.alarm import Alarm
    from simmodel.resources.data.storage import Storage
    from simmodel.resources.network.shared_channel import Access, ChannelState

__all__ = ["Disks"]


class Disks:
    """The channels through which the jobs of a site read and write: its storage's, or those of the disks of hosts.

    Parameters
    ----------
    env, spec, storage
        the environment; the spec of the site; its storage
    """

    __slots__ = ("_channels", "_env", "_spec", "_storage")

    def __init__(self, env: Environment, spec: SiteSpec, storage: Storage) -> None:
        self._env = env
        self._spec = spec
        self._storage = storage
        self._channels: dict[tuple[int, bool], SharedChannel] = {}

    def read(
        self,
        host: int | None,
        size: float,
        call: Callable[[Access], object],
        about: Any = None,
        file: str | None = None,
    ) -> Access:
        """Start to read bytes on a host, of a file."""
        if host is None or not self._spec.disks:
            return self._storage.read(size, call, about, file)
        return self._channel(host, False).start(size, call, about)

    def write(
        self,
        host: int | None,
        size: float,
        call: Callable[[Access], object],
        about: Any = None,
        file: str | None = None,
    ) -> Access:
        """Start to write bytes on a host, of a file."""
        if host is None or not self._spec.disks:
            return self._storage.write(size, call, about, file)
        return self._channel(host, True).start(size, call, about)

    def bandwidths(self, host: int) -> tuple[float, float]:
        """Return the bandwidths of the disk of a host, for reading and for writing."""
        spec = self._spec
        for kind, pair in zip(spec.hosts, spec.disks, strict=True):
            if host < kind.count:
                return pair
            host -= kind.count
        raise InputError(f"unknown host {host} of {self._spec.name}")

    def _channel(self, host: int, writes: bool) -> SharedChannel:
        channel = self._channels.get((host, writes))
        if channel is None:
            rate = self.bandwidths(host)[writes]
            kind = "write" if writes else "read"
            channel = self._channels[host, writes] = SharedChannel(self._env, rate, self._spec.name, kind=kind)
        return channel

    # ------------------------------------------------------------------ snapshots

    def alarms(self) -> Iterator[tuple[int, bool, Alarm]]:
        """Yield the alarms that end the accesses of each disk: (host, whether they write, alarm)."""
        for (host, writes), channel in self._channels.items():
            yield host, writes, channel.alarm

    def state(self, rows: Callable[[SharedChannel], tuple[int, ...]]) -> tuple[DiskState, ...]:
        """Return the disks that are accessed; ``rows`` returns the rows of the jobs whose accesses a channel has."""
        return tuple(
            DiskState(host, writes, channel.state(), rows(channel))
            for (host, writes), channel in self._channels.items()
            if len(channel)
        )

    def restore(
        self, disks: Iterable[DiskState], resume: Callable[[SharedChannel, ChannelState, tuple[int, ...], bool], object]
    ) -> None:
        """Restore the disks; ``resume`` restores a channel: see :meth:`Stays.resume`."""
        for disk in disks:
            resume(self._channel(disk.host, disk.writes), disk.channel, disk.rows, disk.writes)
