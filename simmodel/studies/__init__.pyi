from .bully import bully_claims as bully_claims, bully_study as bully_study
from .fat import fat_curve as fat_curve
from .hetsim import setup_study as setup_study
from .malleable import malleable_study as malleable_study
from .metascheduling import broker_study as broker_study, case_study as case_study
from .next_workday import lets_wait as lets_wait, slack_to_next_workday as slack_to_next_workday
from .openb import OnArrival as OnArrival, fill_study as fill_study, replay_study as replay_study
from .schedtwin import (
    schedtwin_portfolio as schedtwin_portfolio,
    schedtwin_run as schedtwin_run,
    schedtwin_seeds as schedtwin_seeds,
)
