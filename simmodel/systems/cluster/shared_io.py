"""The storages and links of a cluster, of whose bandwidth jobs hold shares while they run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from simmodel.errors import SnapshotError
from simmodel.resources.consumables import Consumables

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.resources.network import Network
    from simmodel.resources.storage import Storage

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
        told: dict[str, Callable[[float], object]] = {}
        self.storages: dict[str, Storage] = {}
        self.network: Network | None = None
        if spec.storages:
            from simmodel.resources.storage import make_storage

            self.storages = {each.name: make_storage(env, each) for each in spec.storages}
        for name, storage in self.storages.items():
            amounts[name] = min(storage.reading.bandwidth, storage.writing.bandwidth)
            told[name] = storage.withhold
        if spec.links:
            from simmodel.resources.network import Network

            self.network = Network(env, spec.links)
            amounts |= {name: link.capacity for name, link in self.network.links.items()}
            told |= {name: partial(self.network.withhold, name) for name in self.network.links}
        self.amounts = Consumables(amounts, told)

    def check_copy(self) -> None:
        """Raise a :class:`SnapshotError` if a copy would lose files, accesses or transfers."""
        for storage in self.storages.values():
            if storage.files or storage.waiting or len(storage.reading) or len(storage.writing):
                raise SnapshotError(f"storage {storage.name} cannot be copied: scripts have files or accesses there")
        for link in self.network.links.values() if self.network is not None else ():
            spec = link.spec
            if link.users or (link.bandwidth, link.latency, link.down) != (spec.bandwidth, spec.latency, False):
                raise SnapshotError(f"link {link.name} cannot be copied: a script uses it or has changed it")
