from .objectives import MEASURES as MEASURES, OBJECTIVES as OBJECTIVES, Objective as Objective, objective as objective
from .observer import Observer as Observer
from .policy_base import Policy as Policy
from .prediction import (
    AskingJob as AskingJob,
    Predictor as Predictor,
    PredictorLike as PredictorLike,
    predictor as predictor,
    register_predictor as register_predictor,
)
from .problem import Plan as Plan, Problem as Problem
from .protocol import (
    Decision as Decision,
    Estimate as Estimate,
    Load as Load,
    Place as Place,
    Preempt as Preempt,
    Reserve as Reserve,
    Resize as Resize,
    Start as Start,
    View as View,
    WakeAt as WakeAt,
)
from .registry import (
    PolicyLike as PolicyLike,
    policy as policy,
    policy_names as policy_names,
    register_policy as register_policy,
)
from .scheduler import Executive as Executive, Handler as Handler, Scheduler as Scheduler
from .usage import Usage as Usage
