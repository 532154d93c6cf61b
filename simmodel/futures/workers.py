"""Worker processes for simulations."""

from simmodel.foundation.workers import worker_pool

__all__ = ["worker_pool"]
