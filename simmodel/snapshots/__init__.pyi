from .cluster import ClusterSnapshot as ClusterSnapshot
from .jobs import JobSystemSnapshot as JobSystemSnapshot
from .snapshot import PolicyState as PolicyState, Snapshot as Snapshot
