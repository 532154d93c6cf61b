from .broker import BrokerSnapshot as BrokerSnapshot
from .cluster import ClusterSnapshot as ClusterSnapshot
from .codec import register_state as register_state
from .grid import GridSnapshot as GridSnapshot
from .job_system import JobSystemSnapshot as JobSystemSnapshot
from .jobs import JobsSnapshot as JobsSnapshot
from .machine import MachineSnapshot as MachineSnapshot
from .snapshot import PolicyState as PolicyState, Snapshot as Snapshot, snapshot_of_document as snapshot_of_document
