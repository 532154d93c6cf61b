from .broker import BrokerResult as BrokerResult
from .loading import load_result as load_result
from .machine import MachineResult as MachineResult
from .result import Result as Result, recorded_result as recorded_result
from .streamed import StreamedResult as StreamedResult, open_result as open_result
