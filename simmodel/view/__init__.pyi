from .broker_plots import before_and_after as before_and_after, flows as flows, weeks as weeks
from .network_plots import link_load as link_load
from .plots import arrivals as arrivals, size_and_run as size_and_run
from .portfolio_plots import outcomes as outcomes
from .result_plots import cdf as cdf
from .study_plots import fat_curve as fat_curve, setup_study as setup_study
