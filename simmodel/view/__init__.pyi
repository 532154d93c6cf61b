from .broker_plots import (
    BrokerPlots as BrokerPlots,
    before_and_after as before_and_after,
    flows as flows,
    weeks as weeks,
)
from .grid_plots import (
    GridPlots as GridPlots,
    grid_flows as grid_flows,
    grid_map as grid_map,
    link_heat as link_heat,
    site_heat as site_heat,
)
from .machine_plots import MachinePlots as MachinePlots
from .network_plots import link_load as link_load, transfer_times as transfer_times
from .plots import ResultPlots as ResultPlots
from .result_plots import cdf as cdf
from .study_plots import fat_curve as fat_curve, setup_study as setup_study
from .whatif_plots import outcomes as outcomes
from .workload_plots import arrivals as arrivals, size_and_run as size_and_run
