from .outcomes import Branch as Branch, Outcome as Outcome, Sample as Sample
from .start_times import predict_starts as predict_starts
from .whatif import what_if as what_if
from .workers import worker_pool as worker_pool
