"""The names of predictors of run times, which the ``estimates`` of a cluster may be."""

from __future__ import annotations

from typing import Any

from simmodel.foundation.entries import Entries

__all__ = ["PREDICTORS"]

PREDICTORS = Entries[Any](
    {
        "predicted": "simmodel.predictors.similar:SimilarJobs",
        "recent-two": "simmodel.predictors.recent:RecentTwo",
        "own-past": "simmodel.predictors.similar:OwnPast",
        "boosted": "simmodel.predictors.boosted:Boosted",
        "request": "simmodel.predictors.recent:Request",
    },
    group="simmodel.predictors",
)
"""Predictors by name; see :func:`~simmodel.scheduling.prediction.register_predictor`."""
