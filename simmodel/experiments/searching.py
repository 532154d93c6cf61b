"""Running of studies: queued trials on any executor, and searches that propose the next trials."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

from simmodel.experiments.trials import Study, Trial

if TYPE_CHECKING:
    from simmodel.futures.in_worker import Ended
    from simmodel.records.observers import Bar

__all__ = ["run_trials", "search"]

Shared = TypeVar("Shared")
_POLL = 0.05  # seconds between two looks at trials that other processes run


def run_trials(
    study: Study,
    function: Callable[[Shared, Mapping[str, Any]], Mapping[str, float]],
    shared: Shared,
    *,
    executor: Executor | None = None,
    bar: Bar | None = None,
    undefined: bool = False,
) -> int:
    """Run the queued trials of a study and store their outcomes; return how many this process ran.

    Parameters
    ----------
    function
        called as ``function(shared, values)``; returns the outcome. An error makes the trial ``failed``; so does an
        outcome that is not a number
    shared
        sent once to each worker
    executor
        runs the trials; default: this process. Those that it has not ended when an error or an interrupt comes are
        queued again
    bar
        a progress bar: one step per trial
    undefined
        whether an outcome may be nan

    >>> study = Study(document={})
    >>> _ = study.add([{"x": 2}, {"x": 0}])
    >>> run_trials(study, lambda one, values: {"inverse": one / values["x"]}, 1), study.counts["failed"]
    (2, 1)
    """
    from simmodel.futures.executors import run_all

    at_once = 1 if executor is None else 4 * (getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
    count = 0
    while claimed := study.claim(at_once):
        left = {trial.number: trial for trial in claimed}

        def ended(index: int, how: Ended, claimed: Sequence[Trial] = claimed, left: dict[int, Trial] = left) -> None:
            trial = left.pop(claimed[index].number)
            study.finish(trial, *_outcome(how, undefined))
            if bar is not None:
                bar.update(1)

        try:
            tasks = [trial.values for trial in claimed]
            run_all(_run, (function, shared), tasks, executor=executor, ended=ended)
        finally:
            if left:
                study.release(left.values())
        count += len(claimed)
        if not study.is_flat:
            study.flatten()
    return count


def _run(material: tuple[Callable[[Any, Any], Any], Any], values: Mapping[str, Any], _left: float | None) -> Any:
    function, shared = material
    return function(shared, values)


def _outcome(how: Ended, undefined: bool) -> tuple[Mapping[str, float] | None, str]:
    if how.status != "finished":
        return None, how.reason
    for name, value in how.value.items():
        if value != value and not undefined:
            return None, f"{name}: is nan"
    return how.value, ""


def search(
    study: Study,
    propose: Callable[[list[Trial]], Sequence[Mapping[str, Any]]],
    budget: int,
    function: Callable[[Shared, Mapping[str, Any]], Mapping[str, float]],
    shared: Shared,
    *,
    executor: Executor | None = None,
    progress: bool = False,
    stop: Callable[[list[Trial]], bool] | None = None,
    undefined: bool = False,
) -> None:
    """Run a study up to a number of trials, in generations: each is proposed when all trials before have ended.

    Several processes may do so at once on one study, since a proposal depends on the trials alone.

    Parameters
    ----------
    propose
        returns the values of the next trials from all trials so far, which have ended; the same ones give the same
    budget
        the number of trials in all
    function, shared, executor
        as in :func:`run_trials`
    progress
        show a progress bar
    stop
        whether these trials are enough
    undefined
        as in :func:`run_trials`

    >>> study = Study(document={})
    >>> search(study, lambda trials: [{"x": len(trials)}] * 2, 5, lambda _, values: {"loss": values["x"]}, None)
    >>> study.table["x"].tolist()
    [0, 0, 2, 2, 4]
    """
    from simmodel.records.observers import progress_bar

    try:
        with progress_bar(budget, "trial", progress) as bar:
            bar.update(sum(study.counts[state] for state in ("finished", "failed")))
            run = partial(run_trials, study, function, shared, executor=executor, bar=bar, undefined=undefined)
            _generations(study, propose, budget, run, stop)
    finally:
        study.flatten()


def _generations(
    study: Study,
    propose: Callable[[list[Trial]], Sequence[Mapping[str, Any]]],
    budget: int,
    run: Callable[[], object],
    stop: Callable[[list[Trial]], bool] | None,
) -> None:
    while True:
        run()
        trials = study.trials()
        if any(trial.state in ("queued", "running") for trial in trials):
            sleep(_POLL)  # other processes run the last ones of this generation
            continue
        if len(trials) >= budget or (trials and stop is not None and stop(trials)):
            return
        proposed = list(propose(trials))[: budget - len(trials)]
        if not proposed:
            return
        study.add(proposed, first=len(trials))
