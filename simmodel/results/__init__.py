"""Results: records with tables, metrics, plots and files."""

from simmodel.results.machine import MachineResult
from simmodel.results.result import Result, recorded
from simmodel.results.stores import load_result, read_scenario

__all__ = ["MachineResult", "Result", "load_result", "read_scenario", "recorded"]
