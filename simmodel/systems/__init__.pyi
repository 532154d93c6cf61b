from .broker.system import Broker as Broker
from .cluster.from_data import snapshot_of as snapshot_of
from .cluster.future.guest import Forecast as Forecast
from .cluster.system import Cluster as Cluster
from .destination import BrokeredJob as BrokeredJob, Destination as Destination
from .grid.site import Site as Site
from .grid.system import Grid as Grid
from .jobs import JobSystem as JobSystem
from .kinds import Kind as Kind, register_kind as register_kind
from .machine.system import Machine as Machine
from .system import System as System
