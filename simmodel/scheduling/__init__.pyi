from .objectives import Objective as Objective, objective as objective
from .observer import Observer as Observer
from .prediction import Predictor as Predictor, predictor as predictor, register_predictor as register_predictor
from .problem import Plan as Plan, Problem as Problem
from .protocol import (
    Decision as Decision,
    Estimate as Estimate,
    Hold as Hold,
    Load as Load,
    Place as Place,
    Policy as Policy,
    Preempt as Preempt,
    Release as Release,
    Reserve as Reserve,
    Resize as Resize,
    SetLevel as SetLevel,
    Sleep as Sleep,
    Start as Start,
    View as View,
    Wake as Wake,
    WakeAt as WakeAt,
)
from .registry import policy as policy, register_policy as register_policy
from .scheduler import Scheduler as Scheduler
from .usage import Usage as Usage
