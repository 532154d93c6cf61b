from .broker import BrokerSpec as BrokerSpec, Slowdown as Slowdown
from .cluster import (
    ClusterSpec as ClusterSpec,
    ConsumableSpec as ConsumableSpec,
    FailureModel as FailureModel,
    NodeSpec as NodeSpec,
    OutageSpec as OutageSpec,
    PartitionSpec as PartitionSpec,
    QueueSpec as QueueSpec,
    ReservationSpec as ReservationSpec,
)
from .devices import DeviceSpec as DeviceSpec
from .grid import (
    DelaySpec as DelaySpec,
    FileSpec as FileSpec,
    GridSpec as GridSpec,
    SiteOutageSpec as SiteOutageSpec,
    SiteSpec as SiteSpec,
)
from .kinds import to_dict as to_dict
from .machine import (
    ArchitectureSpec as ArchitectureSpec,
    MachineSpec as MachineSpec,
    MemoryPoolSpec as MemoryPoolSpec,
    ProcessorSpec as ProcessorSpec,
)
from .network import (
    LinkSpec as LinkSpec,
    NetworkSpec as NetworkSpec,
    RouteSpec as RouteSpec,
    SharingModel as SharingModel,
    duplex as duplex,
)
from .options import ClusterOptions as ClusterOptions, Options as Options
from .power import NodePower as NodePower
from .signals import Signal as Signal
from .storage import StorageSpec as StorageSpec
from .supply import Conversion as Conversion, PowerSupply as PowerSupply
from .toml import from_dict as from_dict, read_toml as read_toml, write_toml as write_toml
from .topology import (
    Dragonfly as Dragonfly,
    FatTree as FatTree,
    Star as Star,
    Topology as Topology,
    Torus as Torus,
    Tree as Tree,
    Valiant as Valiant,
)
