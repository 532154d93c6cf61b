"""A site as a place of a grid: its cluster, and the jobs on their way to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError, PolicyError, SnapshotError, unknown
from simmodel.resources.network.shared_channel import SharedChannel
from simmodel.resources.pools.allocation import Allocation
from simmodel.resources.pools.claims import Grant
from simmodel.scheduling.protocol import Load, work_units
from simmodel.snapshots.grid import DiskState, SiteState
from simmodel.systems.cluster.destination import ClusterDestination
from simmodel.systems.destination import BrokeredJob

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.grid import SiteSpec
    from simmodel.resources.alarm import Alarm
    from simmodel.resources.data.storage import Storage
    from simmodel.resources.network.shared_channel import Access, ChannelState
    from simmodel.systems.cluster.system import Cluster
    from simmodel.systems.system import EstimateBasis
    from simmodel.work.job import Run

__all__ = ["Disks", "GridJob", "Site", "grant_on"]


class GridJob(BrokeredJob):
    """A job that reads or writes files.

    Attributes
    ----------
    course
        called once it has started, before it executes; ``None``: it executes at once
    """

    __slots__ = ("course", "inputs", "outputs", "stay")

    @property
    def needs_files(self) -> bool:  # type: ignore[override]
        return bool(self.inputs)

    course: Callable[[Run], object] | None


class Site(ClusterDestination):
    """A site as brokers see it: a place with a queue, a speed and files.

    Attributes
    ----------
    spec, number
        its spec; its position among the sites
    down, closed
        for how many reasons it is down, and takes no new jobs
    present
        the jobs assigned to it that have not ended
    storage, disks
        its storage; how jobs read and write there
    seconds_to
        how long a file takes to a site on idle links (s)
    """

    storage: Storage
    disks: Disks
    seconds_to: Callable[[str, Site], float]
    top_speed: float = 1.0

    def __init__(self, cluster: Cluster, by: EstimateBasis, spec: SiteSpec, number: int) -> None:
        super().__init__(cluster, by)
        self.spec = spec
        self.number = number
        self.down = 0
        self.closed = 0
        self.present = 0
        self._speed = spec.speed
        self.top_speed = max((host.speed for host in spec.hosts), default=1.0)
        self._changed: list[Callable[[], object]] = []
        self.handed = deque(maxlen=0)  # type: ignore[assignment]  # the ledger of the grid knows the site of a job

    def __repr__(self) -> str:
        state = "down" if self.down else "closed" if self.closed else "open"
        return f"<site {self.name}, {state}: {self.queued} waiting, {self.free} of {self.capacity} cores free>"

    @property
    def open(self) -> bool:
        """Whether it takes jobs now."""
        limit = self.spec.limit
        return not (self.down or self.closed) and (limit is None or self.present < limit)

    @property
    def tier(self) -> int | None:
        """Its level in the hierarchy of sites."""
        return self.spec.tier

    @property
    def assigned(self) -> int:
        """Number of jobs on their way to its queue."""
        return self.on_the_way[0]

    @property
    def speed(self) -> float:
        """The mean speed of its cores, relative to the run times of jobs."""
        return self._speed

    def held(self, job: BrokeredJob) -> float:
        """Return how many bytes of the inputs of a job are in its storage."""
        files = self.storage.files
        return sum([files[name] for name in job.inputs if name in files]) if type(job) is GridJob else 0.0

    def transfer(self, job: BrokeredJob) -> float:
        """Return how long the missing inputs of a job take to here on idle links (s), one after another."""
        return sum([self.seconds_to(name, self) for name in job.inputs]) if type(job) is GridJob else 0.0

    @property
    def hosts(self) -> dict[str, int]:
        """The free cores of its hosts by name, which ``Start(job, site, allocation=name)`` takes; empty without hosts.

        A host that is down has none.
        """
        if not self.spec.hosts:
            return {}
        pool: Any = self.system.places[0]
        return {name: max(0, int(free)) for name, free in zip(pool.nodes, pool.table.free[0].tolist(), strict=True)}

    # ------------------------------------------------------------------ eligibility

    def can_run(self, job: BrokeredJob) -> bool:
        """Whether it could run the job, and takes jobs now (hot path)."""
        limit = self.spec.limit
        if self.down or self.closed or (limit is not None and self.present >= limit):
            return False
        pool = self._plain  # of a site, which limits neither processors nor times
        return self.why_not(job) is None if pool is None or not job.plain else job.processors <= pool.largest

    # ------------------------------------------------------------------ load

    def sent(self, job: BrokeredJob) -> None:
        """Count a job that is on its way to the queue."""
        self._count(job, 1)

    def arrived(self, job: BrokeredJob) -> None:
        """Count a job that is no longer on its way."""
        self._count(job, -1)

    def _count(self, job: BrokeredJob, sign: int) -> None:
        way = self.on_the_way
        way[0] += sign
        way[1] += sign * job.processors
        way[2] += sign * work_units(job.processors, job.limit * self.slowdown(job))
        for call in self._changed:
            call()

    def watch_load(self, changed: Callable[[], object]) -> None:
        """Call a function from now on whenever the backlog or the capacity changes other than with time."""
        super().watch_load(changed)
        self._changed.append(changed)

    @property
    def backlog(self) -> float:
        """Expected remaining work of running and waiting jobs and of those on their way, in processor seconds."""
        return super().backlog + self.on_the_way[2] / 2**20

    @property
    def load(self) -> Load:
        """Its load, with the jobs on their way as waiting."""
        free, queued, queued_work, running_work = super().load
        way = self.on_the_way
        return Load(free, queued + way[0], queued_work + way[2], running_work)

    # ------------------------------------------------------------------ snapshots

    def state(self, rows: Callable[[SharedChannel], tuple[int, ...]]) -> SiteState:
        """Return for how many reasons it is down and closed, and its files; ``rows`` as for :meth:`Disks.state`.

        Raises
        ------
        SnapshotError
            if its storage is of a model without snapshots
        """
        storage = self.storage
        if not storage.snapshots:
            model = type(storage).__name__
            raise SnapshotError(f"storage {storage.name} cannot be copied: {model} has snapshots = False")
        accesses = rows(storage.reading), rows(storage.writing), self.disks.state(rows)
        return SiteState(self.down, self.closed, storage.state(), *accesses)

    def restore(self, state: SiteState) -> None:
        """Restore for how many reasons it is down and closed."""
        self.down, self.closed = state.down, state.closed

    def restore_files(
        self,
        state: SiteState,
        calls: Mapping[str, Callable[[], object]],
        resume: Callable[[SharedChannel, ChannelState, tuple[int, ...], bool], object],
    ) -> None:
        """Restore its files and their accesses: see :meth:`Storage.restore` and :meth:`Disks.restore`."""
        storage = self.storage
        storage.restore(state.storage, calls)
        resume(storage.reading, state.storage.reading, state.readers, False)
        resume(storage.writing, state.storage.writing, state.writers, True)
        self.disks.restore(state.disks, resume)


def grant_on(site: Site, named: Any, job: BrokeredJob) -> Grant:
    """Return the grant that a job would get on one host of a site; nothing is taken.

    Parameters
    ----------
    site
        the site
    named
        the name of the host, or its number from 0 on
    job
        the job

    Raises
    ------
    PolicyError
        if the site has no such host, or it is too small for the job
    """
    number, reason = _number(site, named)
    if reason is None:
        spec = job._job
        gpus, memory = (0, 0.0) if spec is None else (spec.gpus_per_node, float(ceil(spec.memory_per_node)))
        pool: Any = site.system.places[0]
        cores, all_gpus, all_memory = pool.table.capacity[:, number].tolist()
        if job.processors <= cores and gpus <= all_gpus and memory <= all_memory:
            return Grant(job.processors, (number,), Allocation.alike((number,), job.processors, gpus, memory))
        amounts = zip(
            ("cores", "GPUs", "bytes"), (job.processors, gpus, memory), (cores, all_gpus, all_memory), strict=True
        )
        missing = ", ".join(
            f"{asked:g} {unit} requested, {there:g} there" for unit, asked, there in amounts if asked > there
        )
        reason = f"allocation: host {pool.nodes[number]} is too small: {missing}"
    raise PolicyError(reason, work=f"job {job.id}", place=site.name)


def _number(site: Site, named: Any) -> tuple[int, str | None]:
    """Return the number of a host, and why there is none, or ``None``."""
    names = list(site.hosts)
    if not names:
        return -1, f"allocation: must be None: {site.name} has no hosts, got {named!r}"
    if isinstance(named, str):
        found = names.index(named) if named in names else -1
        return found, None if found >= 0 else f"allocation: {unknown('host', named, names).message}"
    if isinstance(named, int) and not isinstance(named, bool) and 0 <= named < len(names):
        return named, None
    return -1, f"allocation: must be the name of a host or a number from 0 to {len(names) - 1}, got {named!r}"


# ---------------------------------------------------------------------- how jobs read and write


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
