"""Jobs: frozen requests, the live state of their execution, and their past."""

from simmodel.work.history import History
from simmodel.work.live_job import (
    OVER,
    Booting,
    Brokered,
    LiveJob,
    Queued,
    Run,
    entry_of,
    not_a_key,
    outcome_of,
    run_time_of,
    told_end,
)
from simmodel.work.request import ANY, PROGRAM, Dependency, Job, JobRequest, Refusal, partitions_in, rule_of

__all__ = [
    "ANY",
    "OVER",
    "PROGRAM",
    "Booting",
    "Brokered",
    "Dependency",
    "History",
    "Job",
    "JobRequest",
    "LiveJob",
    "Queued",
    "Refusal",
    "Run",
    "entry_of",
    "not_a_key",
    "outcome_of",
    "partitions_in",
    "rule_of",
    "run_time_of",
    "told_end",
]
