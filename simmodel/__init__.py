"""SimPy for computing systems: one vocabulary from an accelerator to a grid."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING

from simmodel.environment import Environment, RealtimeEnvironment
from simmodel.errors import (
    ImpossibleWork,
    InputError,
    JobFailed,
    PolicyError,
    SimmodelError,
    SnapshotError,
    Stalled,
)
from simmodel.platform.cluster import (
    ClusterSpec,
    ConsumableSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.policies.backfilling import Backfill, Easy
from simmodel.policies.ordering import Multifactor, Order
from simmodel.policies.placement import BestFit
from simmodel.policies.planning import Conservative, ConservativeKeep
from simmodel.policies.preemption import Preemptive
from simmodel.policies.window import Window
from simmodel.records.result import Result, recorded
from simmodel.scheduling.protocol import Preempt, Reserve, Start, View, WakeAt
from simmodel.scheduling.registry import policies as policy_names
from simmodel.scheduling.registry import policy, register_policy
from simmodel.simulate import Scenario, load_scenario, simulate
from simmodel.systems.cluster import Cluster
from simmodel.work.job import Dependency, Job
from simmodel.work.table import Table
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from simmodel.experiments.branches import Branch, CancelJob, StartJob, SubmitJob
    from simmodel.experiments.brokered import simulate_brokered
    from simmodel.experiments.compare import Comparison, Replications, compare, replicate
    from simmodel.experiments.outcomes import Outcome, WhatIf
    from simmodel.experiments.whatif import what_if
    from simmodel.formats.library import load_workflow, load_workload
    from simmodel.platform.library import load_platform
    from simmodel.platform.network import LinkSpec, NetworkSpec, RouteSpec, SharingModel
    from simmodel.policies.brokers import LeastLoaded, LowestTurnaround, LowestWait, Share, Siloed
    from simmodel.policies.portfolio import Portfolio
    from simmodel.records.brokered import BrokerResult
    from simmodel.records.network import NetworkRecorder
    from simmodel.records.stores import load_result
    from simmodel.resources.host import Host
    from simmodel.resources.network import Network
    from simmodel.scheduling.broker_snapshot import BrokerSnapshot
    from simmodel.scheduling.objective import Objective
    from simmodel.scheduling.snapshot import Snapshot
    from simmodel.systems.broker import Broker
    from simmodel.systems.forecast import Forecast
    from simmodel.work.workflow import DataObject, Task, Workflow
else:
    _LATER = {
        "Branch": "simmodel.experiments.branches",
        "Broker": "simmodel.systems.broker",
        "BrokerResult": "simmodel.records.brokered",
        "BrokerSnapshot": "simmodel.scheduling.broker_snapshot",
        "CancelJob": "simmodel.experiments.branches",
        "compare": "simmodel.experiments.compare",
        "Comparison": "simmodel.experiments.compare",
        "DataObject": "simmodel.work.workflow",
        "Forecast": "simmodel.systems.forecast",
        "Host": "simmodel.resources.host",
        "LeastLoaded": "simmodel.policies.brokers",
        "LinkSpec": "simmodel.platform.network",
        "load_platform": "simmodel.platform.library",
        "load_result": "simmodel.records.stores",
        "load_workflow": "simmodel.formats.library",
        "load_workload": "simmodel.formats.library",
        "LowestTurnaround": "simmodel.policies.brokers",
        "LowestWait": "simmodel.policies.brokers",
        "Network": "simmodel.resources.network",
        "NetworkRecorder": "simmodel.records.network",
        "NetworkSpec": "simmodel.platform.network",
        "Objective": "simmodel.scheduling.objective",
        "Outcome": "simmodel.experiments.outcomes",
        "Portfolio": "simmodel.policies.portfolio",
        "replicate": "simmodel.experiments.compare",
        "Replications": "simmodel.experiments.compare",
        "RouteSpec": "simmodel.platform.network",
        "Share": "simmodel.policies.brokers",
        "SharingModel": "simmodel.platform.network",
        "Siloed": "simmodel.policies.brokers",
        "simulate_brokered": "simmodel.experiments.brokered",
        "Snapshot": "simmodel.scheduling.snapshot",
        "StartJob": "simmodel.experiments.branches",
        "SubmitJob": "simmodel.experiments.branches",
        "Task": "simmodel.work.workflow",
        "what_if": "simmodel.experiments.whatif",
        "WhatIf": "simmodel.experiments.outcomes",
        "Workflow": "simmodel.work.workflow",
    }

    def __getattr__(name):  # what takes longer to import comes when it is first asked for
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found

    def __dir__():
        return sorted({*globals(), *_LATER})


__all__ = [
    "Backfill",
    "BestFit",
    "Branch",
    "Broker",
    "BrokerResult",
    "BrokerSnapshot",
    "CancelJob",
    "Cluster",
    "ClusterSpec",
    "Comparison",
    "Conservative",
    "ConservativeKeep",
    "ConsumableSpec",
    "DataObject",
    "Dependency",
    "Easy",
    "Environment",
    "FailureModel",
    "Forecast",
    "Host",
    "ImpossibleWork",
    "InputError",
    "Job",
    "JobFailed",
    "LeastLoaded",
    "LinkSpec",
    "LowestTurnaround",
    "LowestWait",
    "Multifactor",
    "Network",
    "NetworkRecorder",
    "NetworkSpec",
    "NodeSpec",
    "Objective",
    "Order",
    "OutageSpec",
    "Outcome",
    "PartitionSpec",
    "PolicyError",
    "Portfolio",
    "Preempt",
    "Preemptive",
    "QueueSpec",
    "RealtimeEnvironment",
    "Replications",
    "Report",
    "ReservationSpec",
    "Reserve",
    "Result",
    "RouteSpec",
    "Scenario",
    "Share",
    "SharingModel",
    "Siloed",
    "SimmodelError",
    "Snapshot",
    "SnapshotError",
    "Stalled",
    "Start",
    "StartJob",
    "SubmitJob",
    "Table",
    "Task",
    "View",
    "WakeAt",
    "WhatIf",
    "Window",
    "Workflow",
    "Workload",
    "compare",
    "load_platform",
    "load_result",
    "load_scenario",
    "load_workflow",
    "load_workload",
    "policy",
    "policy_names",
    "recorded",
    "register_policy",
    "replicate",
    "simulate",
    "simulate_brokered",
    "what_if",
]
