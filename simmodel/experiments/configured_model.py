"""The model of an experiment in a file: the arguments of ``simulate``, a stored scenario, or a function."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from simmodel.errors import InputError, shown
from simmodel.experiments.parameters import Model
from simmodel.formats.documents import Value
from simmodel.platform.strict import inside
from simmodel.runs.platforms import platform_of
from simmodel.runs.scenario import Scenario, load_scenario
from simmodel.snapshots.snapshot import check_policy_name
from simmodel.systems.kinds import kind_of_platform

__all__ = ["function_named", "model_of"]


def model_of(given: Value, folder: Path, *, trust: bool = False) -> Model:
    """Return the model that the table ``model`` of a file describes.

    It has ``scenario`` (the file of a stored result), ``function`` (``module:name``, with ``arguments``), or the
    arguments of :func:`~simmodel.runs.simulating.simulate`.

    Parameters
    ----------
    folder
        what paths are relative to
    trust
        whether it may name what imports code

    Raises
    ------
    InputError
        a key or a value is wrong

    >>> model_of(Value({"platform": 64, "workload": "probe-4", "policy": "easy"}, "mine.toml"), Path()).policy
    'easy'
    """
    if "function" in given:
        given.only("function", "arguments")
        function = function_named(given["function"], trust=trust)
        return partial(function, **given["arguments"].table()) if "arguments" in given else function
    try:
        return _stored(given, folder, trust) if "scenario" in given else _described(given, folder, trust)
    except InputError as error:
        if error.source is not None:
            raise
        found = inside(given.place, error) if error.place else InputError(error.message, place=given.place)
        raise InputError(found.message, given.source, found.place) from None


def _stored(given: Value, folder: Path, trust: bool) -> Scenario:
    given.only("scenario", *_CHANGES)
    scenario = load_scenario(folder / given["scenario"].text(), trust=trust)
    changes = {name: given[name].data for name in _CHANGES if name in given}
    check_policy_name(changes.get("policy"), "policy", trust=trust)
    return scenario.evolve(_in_seconds(changes)) if changes else scenario


_CHANGES = ("policy", "seed", "until")


def _described(given: Value, folder: Path, trust: bool) -> Scenario:
    _ = given["workload"]
    options = _in_seconds(given.table())
    platform = _platform(options.pop("platform", None), folder, trust)
    workload, policy = _with_paths(options.pop("workload"), folder), options.pop("policy", None)
    kind = kind_of_platform(platform_of(platform))
    own = [field.name for field in attrs.fields(kind.options)]
    given.only("platform", "workload", "policy", "policies", "seed", "until", *kind.inputs, *own)
    below = options.get("policies")
    for place, each in [("policy", policy), *(below.items() if isinstance(below, Mapping) else [("policies", below)])]:
        check_policy_name(each, place, trust=trust)
    scenario = Scenario.of(platform, workload, policy, **options)
    return scenario.evolve({"workload": _read_once(scenario)})


def _in_seconds(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a simulation with times as numbers: ``until = "7d"``."""
    from simmodel.units import parse_quantity

    return {
        name: parse_quantity(value, "s", place=name) if name == "until" and isinstance(value, str) else value
        for name, value in values.items()
    }


def _platform(given: Any, folder: Path, trust: bool) -> Any:
    from simmodel.catalogue import load_platform

    if isinstance(given, Mapping):
        return {name: _platform(each, folder, trust) for name, each in given.items()}
    if isinstance(given, list):
        return [_platform(each, folder, trust) for each in given]
    return load_platform(_with_paths(given, folder), trust=trust) if isinstance(given, str) else given


def _with_paths(given: Any, folder: Path) -> Any:
    """Return names with the paths of files in the folder in place of these files' names."""
    if isinstance(given, Mapping):
        return {name: _with_paths(each, folder) for name, each in given.items()}
    if isinstance(given, list):
        return [_with_paths(each, folder) for each in given]
    return str(folder / given) if isinstance(given, str) and given and (folder / given).is_file() else given


def _read_once(scenario: Scenario) -> Any:
    """Return the workload of a scenario: a log of jobs is read now, once for all runs."""
    from simmodel.catalogue.formats import is_workflow
    from simmodel.systems.submissions import read_workload

    given = scenario.workload
    if not isinstance(given, str) or scenario.kind.work != "jobs":
        return given
    return given if (path := Path(given)).is_file() and is_workflow(path) else read_workload(given)


def function_named(given: Value, *, trust: bool) -> Any:
    """Return the function that a value names as ``module:name``.

    Raises
    ------
    InputError
        the document is not trusted, or there is no such function
    """
    from simmodel.entries import load

    name = given.text()
    if not trust:
        raise given.wrong(f"must not import code, got {name!r}: pass trust=True (--trust) if you trust the file")
    try:
        found: Any = load(name)
    except Exception as error:
        raise given.wrong(f"must be module:name, got {name!r}: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise given.wrong(f"must be a function, got {shown(found)}")
    return found
