"""Clusters as a kind of system."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ClusterOptions
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.kinds import Kind
from simmodel.systems.submissions import Logs, read_submissions

if TYPE_CHECKING:
    from simmodel.systems.submissions import GivenWork, Submissions

__all__ = ["CLUSTER", "ClusterKind"]


@attrs.frozen(kw_only=True, repr=False)
class ClusterKind(Kind):
    """The kind of clusters; the platform may come from the log, and its number of processors may be replaced."""

    def of_nodes(self, spec: Any) -> frozenset[str]:
        """Return ``"cores"`` if all partitions have nodes, and ``"memory"`` if any of these has some."""
        if spec is None or not all(partition.nodes for partition in spec.partitions):
            return frozenset()
        memory = any(node.memory for partition in spec.partitions for node in partition.nodes)
        return frozenset({"cores", "memory"} if memory else {"cores"})

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the submissions and the cluster's spec, by default that of the log."""
        work = read_submissions("jobs", given, of_nodes=self.of_nodes(spec), seed=seed)
        assert isinstance(work, Logs)
        processors = inputs.get("processors")
        if processors is not None:
            if isinstance(processors, bool) or not isinstance(processors, Integral) or int(processors) <= 0:
                raise InputError(f"must be a whole number > 0, got {processors!r}", place="processors")
            processors = int(processors)
        elif spec is None:
            log = work.logs[0].workload
            processors = log.processors
            if processors is None:
                raise InputError(f"missing processors: log {log.name!r} does not specify those of its machine")
        if spec is None:
            assert processors is not None
            return work, ClusterSpec.simple(int(processors))
        return work, spec if processors is None else spec.with_processors(processors)


CLUSTER = ClusterKind(
    name="cluster",
    spec=ClusterSpec,
    system=Cluster,
    snapshot="simmodel.snapshots.cluster:ClusterSnapshot",
    options=ClusterOptions,
    inputs=("processors",),
)
