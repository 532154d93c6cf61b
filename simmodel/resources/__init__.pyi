from .data.catalogue import Catalogue as Catalogue
from .data.eviction import Candidate as Candidate, Eviction as Eviction, register_eviction as register_eviction
from .data.memory import MemoryPool as MemoryPool
from .data.storage import Storage as Storage, make_storage as make_storage, register_storage as register_storage
from .models import Option as Option, register_model as register_model
from .network.flow import Cancelled as Cancelled
from .network.links import Link as Link, Moving as Moving
from .network.network import Network as Network
from .network.routing import Router as Router
from .network.shared_channel import Access as Access, SharedChannel as SharedChannel
from .network.sharing import max_min_rates as max_min_rates
from .network.sharing_rule import FlowView as FlowView, SharingRule as SharingRule
from .network.transfer import Delivery as Delivery, LinkFailed as LinkFailed, Transfer as Transfer
from .pools.allocation import Allocation as Allocation
from .pools.claims import Claim as Claim, Lost as Lost, Preempted as Preempted
from .pools.consumables import Consumables as Consumables
from .pools.counts import CountPool as CountPool
from .pools.grants import Grant as Grant, Growth as Growth
from .pools.hosts import HostPool as HostPool
from .pools.nodes import NodePool as NodePool
from .pools.placements import NodeChoice as NodeChoice, register_placement as register_placement
from .pools.pool import Pool as Pool
from .processors.host import Execution as Execution, Host as Host
from .processors.manycore import ManyCores as ManyCores
from .processors.processor import Phase as Phase, Processor as Processor
from .processors.services import ProcessorServices as ProcessorServices
from .processors.serving import (
    Batched as Batched,
    BatchedProcessor as BatchedProcessor,
    SharedProcessor as SharedProcessor,
)
from .processors.taskplace import TaskPlace as TaskPlace
from .ready.llm import LLMServer as LLMServer
from .ready.multi_stream import MultiStreamGPU as MultiStreamGPU
from .ready.page_cache import PageCache as PageCache
from .ready.pim import PIMRank as PIMRank
from .ready.pinned import PinnedPool as PinnedPool
