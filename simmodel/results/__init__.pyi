from .broker import BrokerResult as BrokerResult
from .grid import GridResult as GridResult
from .loading import load_result as load_result, read_scenario as read_scenario
from .machine import MachineResult as MachineResult
from .result import Result as Result, recorded_result as recorded_result
from .streamed import (
    StreamedGridResult as StreamedGridResult,
    StreamedResult as StreamedResult,
    open_result as open_result,
)
from .task_broker import TaskBrokerResult as TaskBrokerResult
