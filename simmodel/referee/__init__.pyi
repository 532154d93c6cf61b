from .choice_explanation import ChoiceExplanation as ChoiceExplanation
from .explaining import explain as explain
from .explanation import Explanation as Explanation
from .explanation_parts import Change as Change, Holder as Holder
from .following import Departure as Departure, Follower as Follower
from .identification import Identification as Identification, identify as identify
from .obstacles import why_waits as why_waits
from .schedules import Fault as Fault, Schedule as Schedule, schedule_of as schedule_of
from .task_explanation import TaskExplanation as TaskExplanation
from .verification import Judgement as Judgement, Verdict as Verdict, judge as judge, verify as verify
