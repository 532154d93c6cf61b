"""Samples of one log for comparisons: read once, drawn anew for each seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from simmodel.metrics.statistics import replication_seeds
from simmodel.work.prepare import as_workload
from simmodel.work.workload import Workload

Log: TypeAlias = "Workload | Mapping[str, Log]"
"""A log, or those of several clusters by name."""

__all__ = ["doubts_about", "drawn_from", "read_log"]


def read_log(given: Any) -> Log:
    """Return a log as a workload, or the logs of several clusters by name; a drawn one is drawn with seed 0.

    Raises
    ------
    InputError
        it is no work of jobs, or cannot be read
    """
    if isinstance(given, Mapping):
        return {str(name): read_log(each) for name, each in given.items()}
    if isinstance(given, (str, Path)):
        from simmodel.catalogue import load_workload

        return load_workload(given)
    return as_workload(given(seed=0) if callable(given) else given)


def drawn_from(log: Log, how: str) -> Callable[..., Log]:
    """Return the function of a seed that draws a log anew."""
    return partial(_drawn, log, how)


def _drawn(log: Log, how: str, *, seed: int) -> Log:
    if isinstance(log, Mapping):
        seeds = replication_seeds(len(log), seed)
        return {name: _drawn(each, how, seed=own) for (name, each), own in zip(log.items(), seeds, strict=True)}
    return log.resampled(seed=seed) if how == "users" else log.shaken(seed=seed)


def doubts_about(log: Log, how: str) -> list[str]:
    """Return why resamples of a log give an indication at best, one sentence each."""
    if isinstance(log, Mapping):
        return [f"{name}: {each}" for name, own in log.items() for each in doubts_about(own, how)]
    if how != "users":
        return []
    from simmodel.work.resampling import resampling_doubts

    return resampling_doubts(log)
