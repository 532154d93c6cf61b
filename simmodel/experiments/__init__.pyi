from .broker_comparison import compare_brokers as compare_brokers
from .calibration.calibrated import Calibration as Calibration
from .calibration.calibrating import calibrate as calibrate
from .calibration.recorded_tasks import RecordedTasks as RecordedTasks
from .comparison import Comparison as Comparison, compare as compare, explore as explore
from .optimisation import Optimisation as Optimisation, optimise as optimise
from .parameters import Parameter as Parameter
from .portfolio_comparison import compare_portfolio as compare_portfolio, replicate_portfolio as replicate_portfolio
from .replication import Replications as Replications, replicate as replicate
from .sensitivity_indices import Sensitivity as Sensitivity, sensitivity as sensitivity
from .stopping import Goal as Goal
from .surrogates import Surrogate as Surrogate, judge_surrogates as judge_surrogates
from .trials import Study as Study, Trial as Trial
