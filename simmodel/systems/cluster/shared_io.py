"""The storages and links of a cluster: jobs hold shares of their bandwidth, and save their progress through them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.errors import SnapshotError
from simmodel.resources.pools.consumables import Consumables
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.resources.data.storage import Storage
    from simmodel.resources.network.flow import Flow
    from simmodel.resources.network.network import Network
    from simmodel.work.checkpoint import Checkpoint
    from simmodel.work.job import Job

__all__ = ["SharedIO"]


class SharedIO:
    """The storages and links of a cluster, and the amounts of them and of its consumables that jobs hold.

    Parameters
    ----------
    env, spec
        the environment; the spec of the cluster

    Attributes
    ----------
    storages, network
        the live storages by name; the network of the links, or ``None`` if the cluster has none
    amounts
        the free amounts of all consumables, storages and links: a share that a job takes is withheld from others

    >>> from simmodel.environment import Environment
    >>> from simmodel.platform import ClusterSpec, PartitionSpec, StorageSpec
    >>> scratch = StorageSpec(name="scratch", read_bandwidth=100.0, write_bandwidth=80.0)
    >>> io = SharedIO(Environment(), ClusterSpec(partitions=[PartitionSpec(processors=4)], storages=[scratch]))
    >>> io.amounts.take({"scratch": 30}); io.amounts.free, io.storages["scratch"].writing.withheld
    ({'scratch': 50.0}, 30.0)
    """

    def __init__(self, env: Environment, spec: ClusterSpec) -> None:
        amounts = {each.name: each.amount for each in spec.consumables}
        self._alone: dict[str, tuple[float, float, float]] = {}  # latency (s); bytes/s of writing and reading alone
        told: dict[str, Callable[[float], object]] = {}
        self.storages: dict[str, Storage] = {}
        self.network: Network | None = None
        if spec.storages:
            from simmodel.resources.data.storage import make_storage

            self.storages = {each.name: make_storage(env, each) for each in spec.storages}
        for name, storage in self.storages.items():
            read, write = storage.reading.bandwidth, storage.writing.bandwidth
            self._alone[name] = 0.0, write, read
            amounts[name] = min(read, write)
            told[name] = storage.withhold
        if spec.links:
            from simmodel.resources.network.network import Network

            self.network = Network(env, spec.links)
            amounts |= {name: link.capacity for name, link in self.network.links.items()}
            told |= {name: partial(self.network.withhold, name) for name in self.network.links}
            self._alone |= {each.name: (each.latency, each.bandwidth, each.bandwidth) for each in spec.links}
        self.amounts = Consumables(amounts, told)

    # ------------------------------------------------------------------ checkpoints

    def timed(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return a checkpoint with the seconds that its bytes take alone; unchanged if there is no such place here."""
        if checkpoint.to not in self._alone:
            return checkpoint
        latency, write, read = self._alone[checkpoint.to]
        size = checkpoint.size
        return attrs.evolve(checkpoint, write_time=latency + size / write, read_time=latency + size / read)

    def timed_job(self, job: Job) -> Job:
        """Return a job whose checkpoints, if they are written somewhere, have the times that they take alone."""
        checkpoint = job.checkpoint
        if checkpoint is None or not checkpoint.to:
            return job
        return attrs.evolve(job, checkpoint=self.timed(checkpoint))

    def why_not(self, job: Job) -> str | None:
        """Return why the checkpoints of a job can never be written here, or ``None``."""
        checkpoint = job.checkpoint
        if checkpoint is None or not checkpoint.to or checkpoint.to in self._alone:
            return None
        known = ", ".join(self._alone) or "none"
        return Refusal.of(f"checkpoints to storage or link {checkpoint.to!r}", f"there are {known}")

    def move(self, to: str, size: float, job: int | str, call: Callable[[Any], None], *, read: bool) -> Flow:
        """Begin to write or read bytes of a checkpoint of a job; ``call(flow)`` is called at the end.

        A transfer waits while its link is down.
        """
        storage = self.storages.get(to)
        if storage is not None:
            return (storage.read if read else storage.write)(size, call, f"checkpoint of job {job}")
        assert self.network is not None
        source, destination = (None, job) if read else (job, None)
        transfer = self.network.transfer(size, route=(to,), source=source, destination=destination, when_down="wait")
        transfer.callbacks.append(call)
        return transfer

    # ------------------------------------------------------------------ snapshots

    def check_copy(self) -> None:
        """Raise a :class:`SnapshotError` if a copy would lose files, accesses or transfers."""
        for storage in self.storages.values():
            if storage.files or storage.waiting or len(storage.reading) or len(storage.writing):
                raise SnapshotError(f"storage {storage.name} cannot be copied: scripts have files or accesses there")
        for link in self.network.links.values() if self.network is not None else ():
            spec = link.spec
            if link.users or (link.bandwidth, link.latency, link.stopped) != (spec.bandwidth, spec.latency, False):
                raise SnapshotError(f"link {link.name} cannot be copied: a script uses it or has changed it")
