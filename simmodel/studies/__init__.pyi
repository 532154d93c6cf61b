from .fat import FatCurve as FatCurve, fat_curve as fat_curve
from .hetsim import SetupStudy as SetupStudy, setup_study as setup_study
from .malleable import (
    MALLEABLE_POLICIES as MALLEABLE_POLICIES,
    PAPER_GAINS as PAPER_GAINS,
    malleable_study as malleable_study,
)
from .metascheduling import BrokerStudy as BrokerStudy, broker_study as broker_study
from .schedtwin import (
    schedtwin_portfolio as schedtwin_portfolio,
    schedtwin_run as schedtwin_run,
    schedtwin_seeds as schedtwin_seeds,
)
