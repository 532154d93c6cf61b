"""Ensembles: the runs of an experiment, kept in a file as they end: it can be stopped, and continued later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from time import sleep
from typing import Any, TypeAlias, TypeVar

import attrs

from simmodel.experiments.calls import map_calls
from simmodel.experiments.searching import run_trials
from simmodel.experiments.study_identity import digests_of
from simmodel.experiments.trials import Study, Trial
from simmodel.foundation.errors import SimmodelError
from simmodel.records.observers import Bar, progress_bar
from simmodel.results.stores import plain

__all__ = ["GivenStudy", "StudyFile", "measured_calls", "study_of"]


@attrs.frozen
class StudyFile:
    """The file of a study, and the settings to store in it, with which it continues without the call that made it.

    Parameters
    ----------
    path
        the file
    settings
        plain values; unlike the document of a study, they may differ from those stored, and replace them
    force
        whether to go on although the study is another one
    """

    path: Path
    settings: Mapping[str, Any]
    force: bool = False


GivenStudy: TypeAlias = "Study | StudyFile | str | Path | None"
"""A study, or the path of its file; ``None``: nothing is kept."""
Shared = TypeVar("Shared")
Numbers: TypeAlias = "Mapping[str, float]"
_POLL = 0.05  # seconds between two looks at runs of other processes


def study_of(given: GivenStudy, about: str, force: bool, **parts: Any) -> Study | None:
    """Return the study that keeps the runs of an experiment.

    Parameters
    ----------
    about
        the kind of experiment
    force
        whether to go on, from now on about these parts, although the file is about others
    parts
        the parts of the experiment: a file of runs with other parts is refused

    Raises
    ------
    InputError
        the file is not a study, or that of another experiment
    """
    if given is None or isinstance(given, Study):
        return given
    path = given.path if isinstance(given, StudyFile) else given
    force = force or (isinstance(given, StudyFile) and given.force)
    study = Study(path, {"about": about, **digests_of(parts)}, force=force)
    if isinstance(given, StudyFile):
        study.settings = given.settings
    return study


def measured_calls(
    function: Callable[[Shared, Mapping[str, Any]], Numbers],
    shared: Shared,
    items: Sequence[Mapping[str, Any]],
    *,
    study: Study | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> list[Numbers]:
    """Call a function that measures a run with the shared argument and each item; return the numbers in order.

    With a study, the numbers of each run are stored when it ends; items that it has are not run again, except for
    those that failed. After an error or an interrupt the same call goes on. Several processes can share the work.

    Raises
    ------
    SimmodelError
        runs failed; with a study, after all others have ended

    >>> study = Study(document={})
    >>> twice = lambda factor, item: {"value": factor * item["x"]}
    >>> measured_calls(twice, 2, [{"x": 1}], study=study), measured_calls(twice, 2, [{"x": 1}, {"x": 5}], study=study)
    ([{'value': 2.0}], [{'value': 2.0}, {'value': 10.0}])
    """
    if study is None:
        return map_calls(function, shared, items, executor, progress)
    keys = [_key(item) for item in items]
    study.retry()
    known = {_key(trial.values) for trial in study.trials()}
    new = {key: item for key, item in zip(keys, items, strict=True) if key not in known}
    with progress_bar(len(items), "run", progress) as bar:
        bar.update(len(set(keys)) - len(new))
        study.add(new.values(), first=len(known))
        try:
            found = _ended(study, function, shared, keys, executor, bar)
        finally:
            study.flatten()
    failed = [found[key] for key in dict.fromkeys(keys) if found[key].state == "failed"]
    if failed:
        raise SimmodelError(f"{len(failed)} of {len(items)} runs failed: {failed[0].error}")
    return [found[key].outcome for key in keys]


def _ended(
    study: Study,
    function: Callable[[Shared, Mapping[str, Any]], Numbers],
    shared: Shared,
    keys: Sequence[str],
    executor: Executor | None,
    bar: Bar,
) -> dict[str, Trial]:
    """Run the queued trials; return the trials by key when those with these keys have ended."""
    while True:
        run_trials(study, function, shared, executor=executor, bar=bar, undefined=True)
        found = {_key(trial.values): trial for trial in study.trials()}
        if all(found[key].state in ("finished", "failed") for key in keys):
            return found
        sleep(_POLL)  # other processes run the last ones


def _key(item: Mapping[str, Any]) -> str:
    return json.dumps(plain(dict(item)), sort_keys=True)
