from .cluster import ClusterSnapshot as ClusterSnapshot
from .snapshot import PolicyState as PolicyState, Snapshot as Snapshot
