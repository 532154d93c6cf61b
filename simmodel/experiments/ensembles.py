"""Ensembles: the runs of an experiment, kept in a file as they end, and searches that propose the next ones.

An experiment can be stopped and continued later; several processes can share its runs.
"""

from __future__ import annotations

import dis
import json
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from datetime import date, time, timedelta
from functools import cache, cached_property, partial, partialmethod
from hashlib import file_digest, sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec, resolve_name
from numbers import Number
from pathlib import Path
from time import sleep
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

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
    "run_trials",
    "search",
    "study_of",
]

_CHANGES = frozenset(("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "remove", "update"))
"""Methods by which a function changes a list, a dictionary or a set."""
_WRAPPERS = (staticmethod, classmethod, cached_property, type(cache(abs)))
_COUNTING = (
    str, bytes, Number, list, dict, set, tuple, frozenset, range, slice, date, time, timedelta, SimpleNamespace, Path,
    np.ndarray, np.generic, FunctionType, BuiltinFunctionType, MethodType, ModuleType, type, partial, partialmethod,
    *_WRAPPERS,
)  # fmt: skip
"""Kinds of values that are part of the identity of code which names them."""


def digest_of(value: Any) -> str:
    """Return a short digest of a value, which distinguishes it from others by its content.

    Of a function count its code, its defaults, its closure, and the values, functions and classes that it names: of its
    module and of the user's other modules, also of those that it imports when it runs; but not a list, dictionary or
    set that it changes itself. Of a class count all its methods, of a module of the user that is passed as a value all
    its content, of code in libraries the name and the version.

    >>> digest_of({"a": 1}) == digest_of({"a": 1}), len(digest_of(2))
    (True, 16)
    """
    return sha256(json.dumps(_Description().of(value), sort_keys=True).encode()).hexdigest()[:16]


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


def _is_own(module: str | None) -> bool:
    """Whether the code of a module is that of the user, and not of simmodel, of Python or of another library."""
    top = (module or "").partition(".")[0]
    if top == "simmodel" or top in sys.stdlib_module_names:
        return top == "__main__"
    there = sys.modules.get(top)
    spec = find_spec(top) if top and there is None else None
    file = getattr(there, "__file__", None) if spec is None else spec.origin
    return not {"site-packages", "dist-packages"} & set(Path(file or "").parts)


def _name(value: Any) -> str:
    """Return the name of code, with the version of its library if it is of one."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
    top = module.partition(".")[0]
    name = module if isinstance(value, ModuleType) else f"{module}.{value.__qualname__}"
    return name if _is_own(top) else f"{name} {_release(top)}".strip()


@cache
def _release(library: str) -> str:
    """Return the version of a library; empty for simmodel, and for Python's own, which experiments keep."""
    if library == "simmodel" or library in sys.stdlib_module_names:
        return ""
    with suppress(PackageNotFoundError):
        return version(library)
    return ", ".join(version(each) for each in packages_distributions().get(library, ()))


class _Names(NamedTuple):
    """The names in a function's code, also of attributes; of containers it changes; of modules it passes on."""

    all: frozenset[str]
    changed: frozenset[str]
    passed: frozenset[str]


class _Description:
    """Describes values by plain values; code that was described before by its number."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._within: list[int] = []

    def of(self, value: object, names: _Names | None = None) -> Any:
        """Return plain values; of a module of the user those of what ``names`` names there, or all."""
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
        if isinstance(value, FunctionType | type | ModuleType):
            key = (id(value), names if isinstance(value, ModuleType) else None)
            if key in self._known:
                return f"# {self._known[key]}"
            self._known[key] = len(self._known)
            return self._code(value, names)
        if id(value) in self._within:
            return "..."
        self._within.append(id(value))
        found = self._parts(value)
        self._within.pop()
        return found

    def _parts(self, value: object) -> Any:
        """Return the descriptions of what a value consists of."""
        if isinstance(value, Mapping):
            return {str(key): self.of(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(each) for each in value]
        if isinstance(value, set | frozenset):
            return sorted(json.dumps(self.of(each)) for each in value)
        if isinstance(value, partial | partialmethod):
            return [self.of(part) for part in (value.func, value.args, value.keywords)]
        if isinstance(value, MethodType):
            return [self.of(value.__func__), self.of(value.__self__)]
        if isinstance(value, BuiltinFunctionType):
            return _name(value)
        if isinstance(value, property):
            return [self.of(value.fget), self.of(value.fset)]
        if isinstance(value, _WRAPPERS):
            return [_name(type(value)), self.of(getattr(value, "__wrapped__", None) or getattr(value, "func", None))]
        state = value.__getstate__()
        if not state and repr(value) == object.__repr__(value):  # which tells an address
            return [self.of(type(value))]
        return [self.of(type(value)), self.of(state) if state else shown(value)]

    def _code(self, value: FunctionType | type | ModuleType, names: _Names | None) -> Any:
        if isinstance(value, FunctionType):
            return self._function(value)
        if not _is_own(value.__name__ if isinstance(value, ModuleType) else value.__module__):
            return _name(value)
        if isinstance(value, type):
            return self._class(value)
        wanted = {name for name in vars(value) if not name.startswith("__")} if names is None else names.all
        return [
            _name(value),
            self._seen({name: getattr(value, name) for name in wanted if hasattr(value, name)}, names),
        ]

    def _seen(self, values: Mapping[str, Any], names: _Names | None = None) -> dict[str, Any]:
        """Describe values by name, without live objects and containers that are changed."""
        found = {}
        for name, each in sorted(values.items()):
            cls, passed = type(each), names is None or name in names.passed
            of_user = (
                hasattr(cls, "__attrs_attrs__") or cls.__module__ in ("operator", "types") or _is_own(cls.__module__)
            )
            changed = names is not None and name in names.changed and isinstance(each, list | dict | set)
            if (each is None or of_user or isinstance(each, _COUNTING)) and not changed:
                found[name] = self.of(each, None if passed else names)
        return found

    def _function(self, function: FunctionType) -> list[Any]:
        """Describe the code of a function and what it sees; of one of a library its name and closure."""
        code, seen, around = function.__code__, {}, function.__globals__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # not bound yet
                seen[name] = cell.cell_contents
        if not _is_own(function.__module__):
            return [_name(function), self._seen(seen)]
        found: dict[str, set[str]] = defaultdict(set)
        for kind, name in _named_in(code):
            found[kind].add(name)
        names = _Names(*map(frozenset, (found["seen"] - found["attribute"], found["changed"], found["passed"])))
        seen = {name: each for name, each in seen.items() if name not in found["cell"]}
        seen |= {name: around[name] for name in found["seen"] - found["global"] if name in around}
        imported = [_imported(name, around.get("__package__")) for name in sorted(found["imported"])]
        own = [function.__defaults__, function.__kwdefaults__]
        return [
            _name(function),
            _code(code),
            self.of(own),
            self._seen(seen, names),
            [self.of(m, names) for m in imported],
        ]

    def _class(self, cls: type) -> list[Any]:
        made = (
            "__dict__", "__weakref__", "__module__", "__firstlineno__", "__static_attributes__", "__annotations__",
            "__slotnames__",
        )  # fmt: skip
        accessors = (property, classmethod, staticmethod)
        own = {name: each for name, each in vars(cls).items() if name not in made}
        methods = {name: self.of(each) for name, each in sorted(own.items()) if isinstance(each, accessors)}
        return [_name(cls), self.of(cls.__bases__), methods, self._seen(own)]


def _imported(name: str, package: str | None) -> ModuleType | str | None:
    """Return a module of the user that code imports when it runs; of a library its version."""
    with suppress(ImportError):
        full = resolve_name(name, package)
        return import_module(full) if _is_own(full) else _release(full.partition(".")[0])
    return None


def _named_in(code: CodeType) -> Iterator[tuple[str, str]]:
    """Yield the names in code by kind: those it sees (texts too, for ``getattr``), sets, imports, or changes."""
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname == "STORE_GLOBAL":
            yield "global", step.argval
        elif step.opname == "STORE_DEREF":
            yield "cell", step.argval
        elif step.opname == "STORE_ATTR":
            yield "attribute", _shared(steps, _target(steps, at)) and step.argval
        elif step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            yield "changed", _shared(steps, _target(steps, at))
        elif step.opname == "IMPORT_NAME":
            name = "." * steps[at - 2].argval + step.argval
            yield from (("imported", f"{name}.{each}".rstrip(".")) for each in ("", *(steps[at - 1].argval or ())))
        elif step.opname in ("LOAD_METHOD", "LOAD_ATTR") and step.argval in _CHANGES:
            yield "changed", _shared(steps, at - 1)
        elif step.opname in _LOADS and steps[at + 1].opname not in ("LOAD_ATTR", "LOAD_METHOD", "COPY", "STORE_ATTR"):
            yield "passed", step.argval
    for each in (*code.co_names, *code.co_consts):
        if isinstance(each, CodeType):
            yield from _named_in(each)
        elif isinstance(each, str):
            yield "seen", each


_LOADS = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_ATTR")


def _shared(steps: Sequence[dis.Instruction], at: int) -> str:
    """Return the name of what a step loads, if it is of a module or a closure or an attribute of such; else nothing."""
    name = steps[at].argval
    while steps[at].opname == "LOAD_ATTR":
        at -= 1
    return str(name) if steps[at].opname in _LOADS else ""


def _target(steps: Sequence[dis.Instruction], at: int) -> int:
    """Return the step that loads what a store changes: on the stack below its key, and below the result of ``+=``."""
    while (keyed := "SUBSCR" in steps[at].opname) or steps[at].opname == "STORE_ATTR":
        depth = keyed + (steps[at - 1].opname == "SWAP")
        while depth > 0:
            at -= 1
            depth -= dis.stack_effect(steps[at].opcode, steps[at].arg, jump=False)
        at -= 1
    return at


def _code(code: CodeType) -> list[Any]:
    constants = [
        _code(each)
        if isinstance(each, CodeType)
        else sorted(map(repr, each))
        if isinstance(each, frozenset)
        else repr(each)
        for each in code.co_consts
    ]
    return [code.co_code.hex(), [*code.co_names], [*code.co_varnames], constants]


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
