from .changes import case_of as case_of, changed as changed
from .scenario import Scenario as Scenario, load_scenario as load_scenario, simulate as simulate, start as start
from .simulation import Simulation as Simulation
