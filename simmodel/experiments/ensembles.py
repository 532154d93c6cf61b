"""Ensembles: the runs of an experiment, kept in a file as they end, and searches that propose the next ones.

An experiment can be stopped and continued later; several processes can share its runs.
"""

from __future__ import annotations

import dis
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from time import sleep
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs
import numpy as np

from simmodel.experiments.calls import map_calls
from simmodel.experiments.trials import Study, Trial
from simmodel.foundation.errors import SimmodelError, shown
from simmodel.records.observers import Bar, progress_bar
from simmodel.results.stores import plain

if TYPE_CHECKING:
    from simmodel.futures.in_worker import Ended

__all__ = [
    "GivenStudy",
    "StudyFile",
    "digest_of",
    "digests_of",
    "measured_calls",
    "named",
    "run_trials",
    "search",
    "study_of",
]

_CHANGES = frozenset(("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "remove", "update"))
"""Methods by which a function changes a list, a dictionary or a set."""


def named(value: Any, within: tuple[int, ...] = ()) -> Any:
    """Return plain values that distinguish a value from others by its content.

    ``within`` are the ids of the values that contain it. Of a function count its code, its defaults, its closure, and
    the plain values, functions and classes of its module that it names, but not a list, dictionary or set that it
    changes itself; of a class all its methods. Of code in libraries counts the name.

    >>> named([1, "easy", {"a": 0.5}]), named(named)
    ([1, 'easy', {'a': 0.5}], ['simmodel.experiments.ensembles.named', {}])
    """
    if isinstance(value, str | Path):
        return _file(Path(value)) or str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, bytes):
        return sha256(value).hexdigest()
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).tobytes()
        return [str(value.dtype), list(value.shape), sha256(content).hexdigest()]
    if id(value) in within:
        return "..."
    inside = (*within, id(value))
    if isinstance(value, Mapping):
        return {str(key): named(each, inside) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [named(each, inside) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(named(each, inside)) for each in value)
    if isinstance(value, partial):
        return [named(part, inside) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, MethodType):
        return [named(value.__func__, inside), named(value.__self__, inside)]
    if isinstance(value, FunctionType):
        return _function(value, inside)
    if isinstance(value, type):
        return _class(value, inside) if _is_own(value.__module__) else _name(value)
    if isinstance(value, BuiltinFunctionType | ModuleType):
        return _name(value)
    if isinstance(value, property | classmethod | staticmethod):
        parts = (value.fget, value.fset) if isinstance(value, property) else (value.__func__,)
        return [named(part, inside) for part in parts]
    state = value.__getstate__()
    if not state and repr(value) == object.__repr__(value):  # which tells an address
        return [named(type(value), inside)]
    return [named(type(value), inside), named(state, inside) if state else shown(value)]


def digest_of(value: Any) -> str:
    """Return a short digest of :func:`named` values.

    >>> digest_of({"a": 1}) == digest_of({"a": 1}), len(digest_of(2))
    (True, 16)
    """
    return sha256(json.dumps(named(value), sort_keys=True).encode()).hexdigest()[:16]


def digests_of(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each part of an experiment by its name, of mappings one of each entry, and of the versions.

    >>> sorted(digests_of({"seed": 1, "policies": {"easy": "easy", "mine": len}}))
    ['policies easy', 'policies mine', 'seed', 'version of Python', 'version of simmodel']
    """
    from simmodel import __version__

    found = {"version of simmodel": __version__, "version of Python": ".".join(platform.python_version_tuple()[:2])}
    for name, part in parts.items():
        if isinstance(part, Mapping) and part:
            found |= {
                f"{name} {shown(key) if not isinstance(key, str) else key}": digest_of(each)
                for key, each in part.items()
            }
        else:
            found[name] = digest_of(part)
    return found


# ---------------------------------------------------------------------- files and code


def _file(path: Path) -> list[Any] | None:
    """Return digests of the content of a file, wherever it is, and of the files that a document names."""
    from simmodel.foundation.loading import files_named_in

    try:
        with path.open("rb") as file:
            found = [file_digest(file, "sha256").hexdigest()]
    except (OSError, ValueError):  # a text that names no file
        return None
    return ["file", *found, *(file_digest(each.open("rb"), "sha256").hexdigest() for each in files_named_in(path))]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


def _is_own(module: str | None) -> bool:
    """Whether the code of a module is that of the user, and not of simmodel, of Python or of another library."""
    top = (module or "").partition(".")[0]
    if top == "simmodel" or top in sys.stdlib_module_names:
        return top == "__main__"
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def _function(function: FunctionType, inside: tuple[int, ...]) -> list[Any]:
    """Return plain values that identify the code of a function; of one of a library its name and closure."""
    code, seen = function.__code__, {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            seen[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    if not _is_own(function.__module__):
        return [_name(function), {name: named(each, inside) for name, each in seen.items() if _counts(each, True)}]
    names, steps = set(_names(code)), list(_steps(code))
    seen |= {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    assigned = {step.argval for step in steps if step.opname in ("STORE_GLOBAL", "STORE_DEREF")}
    changes = not names.isdisjoint(_CHANGES) or any(step.opname.endswith("E_SUBSCR") for step in steps)
    counting = {name: each for name, each in seen.items() if name not in assigned and _counts(each, changes)}
    own = [function.__defaults__, function.__kwdefaults__, counting]
    return [_name(function), _code(code), named(own, inside)]


def _counts(value: Any, changes: bool) -> bool:
    """Whether a value that a function sees is part of its identity: not a container it changes, or a live object."""
    if isinstance(value, list | dict | set):
        return not changes
    plain = isinstance(value, str | bytes | bool | int | float | tuple | frozenset | Path | np.ndarray | np.generic)
    code = isinstance(value, FunctionType | MethodType | type | partial)
    return value is None or plain or code or hasattr(type(value), "__attrs_attrs__") or _is_own(type(value).__module__)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _steps(each)


def _code(code: CodeType) -> list[Any]:
    constants = [_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [code.co_code.hex(), [*code.co_names], [*code.co_varnames], constants]


def _class(cls: type, inside: tuple[int, ...]) -> list[Any]:
    made = ("__dict__", "__weakref__", "__module__", "__firstlineno__", "__static_attributes__", "__annotations__")
    accessors = (property, classmethod, staticmethod)
    own = {name: each for name, each in sorted(vars(cls).items()) if name not in made}
    counting = {name: each for name, each in own.items() if isinstance(each, accessors) or _counts(each, False)}
    return [_name(cls), [named(base, inside) for base in cls.__bases__], named(counting, inside)]


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
