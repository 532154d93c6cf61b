from .catalogue import load_platform as load_platform, load_workflow as load_workflow, load_workload as load_workload
from .environment import Environment as Environment, RealtimeEnvironment as RealtimeEnvironment
from .experiments import compare as compare, explore as explore, replicate as replicate
from .foundation import InputError as InputError, PolicyError as PolicyError, SimmodelError as SimmodelError
from .futures import Branch as Branch, what_if as what_if
from .policies import Backfill as Backfill, Order as Order, Portfolio as Portfolio
from .resources import Network as Network
from .results import Result as Result, load_result as load_result
from .runs import (
    Scenario as Scenario,
    Simulation as Simulation,
    load_scenario as load_scenario,
    simulate as simulate,
    start as start,
)
from .scheduling import (
    Observer as Observer,
    Policy as Policy,
    Preempt as Preempt,
    Reserve as Reserve,
    Resize as Resize,
    Start as Start,
    View as View,
    WakeAt as WakeAt,
    register_policy as register_policy,
)
from .snapshots import Snapshot as Snapshot
from .systems import (
    Broker as Broker,
    Cluster as Cluster,
    Grid as Grid,
    Machine as Machine,
    snapshot_of as snapshot_of,
)
from .work import (
    Elastic as Elastic,
    Job as Job,
    Task as Task,
    TaskSet as TaskSet,
    Workflow as Workflow,
    Workload as Workload,
)

__version__: str
