from .alarm import Alarm as Alarm
from .data.catalogue import Catalogue as Catalogue
from .data.eviction import Eviction as Eviction, register_eviction as register_eviction
from .data.memory import MemoryPool as MemoryPool
from .data.storage import Storage as Storage, make_storage as make_storage, register_storage as register_storage
from .models import Option as Option, register_model as register_model
from .network.links import Link as Link
from .network.network import Network as Network
from .network.progress import rates_of as rates_of
from .network.shared_channel import SharedChannel as SharedChannel
from .network.sharing_rule import SharingRule as SharingRule
from .network.transfer import LinkFailed as LinkFailed, Transfer as Transfer
from .pools.claims import Claim as Claim, Grant as Grant, Growth as Growth, Lost as Lost, Preempted as Preempted
from .pools.counts import CountPool as CountPool
from .pools.devices import DeviceTable as DeviceTable
from .pools.hosts import HostPool as HostPool
from .pools.nodes import NodePool as NodePool
from .pools.placements import (
    NodeChoice as NodeChoice,
    Request as Request,
    register_placement as register_placement,
)
from .pools.pool import Pool as Pool
from .pools.scores import Score as Score, mix_of as mix_of
from .processors.host import Host as Host
from .processors.processor import Phase as Phase, Processor as Processor
from .processors.serving import (
    BatchedProcessor as BatchedProcessor,
    ManyCores as ManyCores,
    SharedProcessor as SharedProcessor,
)
from .ready.processors import PIMRank as PIMRank
