from .allocation import Allocation as Allocation
from .catalogue import Catalogue as Catalogue
from .claims import Claim as Claim, Lost as Lost, Preempted as Preempted
from .consumables import Consumables as Consumables
from .counts import CountPool as CountPool
from .eviction import Candidate as Candidate, Eviction as Eviction, register_eviction as register_eviction
from .flow import Cancelled as Cancelled
from .grants import Grant as Grant, Growth as Growth
from .host import Execution as Execution, Host as Host
from .hosts import HostPool as HostPool
from .links import Link as Link, Moving as Moving
from .manycore import ManyCores as ManyCores
from .memory import MemoryPool as MemoryPool
from .models import Option as Option, register_model as register_model
from .network import Network as Network
from .nodes import NodePool as NodePool
from .placements import NodeChoice as NodeChoice, register_placement as register_placement
from .pool import Pool as Pool
from .processor import Phase as Phase, Processor as Processor
from .ready.llm import LLMServer as LLMServer
from .ready.multi_stream import MultiStreamGPU as MultiStreamGPU
from .ready.page_cache import PageCache as PageCache
from .ready.pim import PIMRank as PIMRank
from .ready.pinned import PinnedPool as PinnedPool
from .routing import Router as Router
from .services import ProcessorServices as ProcessorServices
from .serving import (
    Batched as Batched,
    BatchedProcessor as BatchedProcessor,
    SharedProcessor as SharedProcessor,
)
from .shared_channel import Access as Access, SharedChannel as SharedChannel
from .sharing import max_min_rates as max_min_rates
from .sharing_rule import FlowView as FlowView, SharingRule as SharingRule
from .storage import Storage as Storage, make_storage as make_storage, register_storage as register_storage
from .taskplace import TaskPlace as TaskPlace
from .transfer import Delivery as Delivery, LinkFailed as LinkFailed, Transfer as Transfer
