from .arrivals import (
    arrive as arrive,
    poisson_arrivals as poisson_arrivals,
    renewal_arrivals as renewal_arrivals,
    synthetic as synthetic,
    works_over_time as works_over_time,
)
from .distributions import (
    Distribution as Distribution,
    choice as choice,
    deterministic as deterministic,
    distribution as distribution,
    exponential as exponential,
    gamma as gamma,
    hyper_exponential as hyper_exponential,
    log_normal as log_normal,
    uniform as uniform,
    weibull as weibull,
)
from .estimates import (
    distinct_estimates as distinct_estimates,
    estimate_times as estimate_times,
    user_estimates as user_estimates,
    with_estimates as with_estimates,
)
from .families import implementations as implementations, only_possible as only_possible, with_families as with_families
from .grids import grid_jobs as grid_jobs, tiered_grid as tiered_grid
from .layers import (
    layered as layered,
    layered_with_costs as layered_with_costs,
    sipht as sipht,
    with_costs as with_costs,
)
from .lublin_feitelson import TYPELESS as TYPELESS, LublinClass as LublinClass, lublin as lublin
from .phased import JobClass as JobClass, schedtwin as schedtwin
from .settings import generate as generate, settings_of as settings_of
from .tasksets import (
    changed as changed,
    database as database,
    mix as mix,
    mixture as mixture,
    random_tasks as random_tasks,
)
