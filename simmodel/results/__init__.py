"""Results: records with tables, metrics, plots and files."""

from simmodel.results.broker import BrokerResult
from simmodel.results.loading import load_result, read_scenario
from simmodel.results.machine import MachineResult
from simmodel.results.result import Result, recorded_result

__all__ = ["BrokerResult", "MachineResult", "Result", "load_result", "read_scenario", "recorded_result"]
