from .branches import Branch as Branch, CancelJob as CancelJob, StartJob as StartJob, SubmitJob as SubmitJob
from .executors import OutOfTime as OutOfTime
from .outcomes import Outcome as Outcome, Sample as Sample, Starting as Starting
from .start_times import predict_starts as predict_starts
from .what_if_result import WhatIf as WhatIf
from .whatif import what_if as what_if
from .workers import worker_pool as worker_pool
