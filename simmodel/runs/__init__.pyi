from .platforms import GivenPlatform as GivenPlatform
from .scenario import Missing as Missing, Scenario as Scenario, load_scenario as load_scenario
from .simulating import simulate as simulate, start as start
from .simulation import Simulation as Simulation
