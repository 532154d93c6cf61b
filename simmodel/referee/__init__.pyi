from .explanation import (
    Change as Change,
    Explanation as Explanation,
    Holder as Holder,
    explain as explain,
    why_waits as why_waits,
)
from .following import Departure as Departure, Follower as Follower
from .identification import Identification as Identification, identify as identify
from .schedules import Fault as Fault, Schedule as Schedule, schedule_of as schedule_of
from .verification import Judgement as Judgement, Verdict as Verdict, judge as judge, verify as verify
