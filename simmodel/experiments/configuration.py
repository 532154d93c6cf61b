"""Experiments in TOML files: a model, the ranges of its parameters, a method, and the file that keeps the runs.

All experiments share this shape, and each adds keys of its own (``outputs``, ``objectives``, ``record``, ...)::

    outputs = ["wait_mean"]
    study = "runs.sqlite"             # optional: the runs are kept, and 'simmodel resume runs.sqlite' continues

    [model]                           # the arguments of simulate(),
    platform = "kth-sp2"              # or scenario = "run.sqlite": that of a stored result,
    workload = "log.swf"              # or function = "module:name", with --trust
    policy = "easy"
    until = "7d"

    [parameters]                      # by path, or by keyword of a function
    "partitions[0].processors" = [64, 512, "log-integer"]
    policy = ["fcfs", "easy"]
    "options.reconsider" = { choices = [1, 2] }

    [method]                          # the other arguments of the experiment
    name = "morris"
    samples = 40
    seed = 1

Paths are relative to the folder of the file. A study keeps this document, so that it is continued without the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from simmodel.experiments.ensembles import StudyFile
from simmodel.experiments.models import Output
from simmodel.experiments.parameters import Model, Parameter, Space
from simmodel.experiments.trials import Study
from simmodel.formats.documents import Value
from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import Source, parse_toml, read_bytes
from simmodel.platform.strict import inside
from simmodel.results.stores import plain
from simmodel.runs.scenario import Scenario, load_scenario, platform_of
from simmodel.snapshots.snapshot import check_policy_name
from simmodel.systems.kinds import kind_of_platform

__all__ = ["Configuration", "Shape", "Weighted", "configuration_of_study", "read_configuration"]

_SHARED = ("model", "parameters", "method", "study", "description")
_CHANGES = ("policy", "seed", "until")


@attrs.frozen
class Shape:
    """The keys that an experiment takes in a file.

    Parameters
    ----------
    experiment
        its name, which is that of the command
    method
        the keys of the table ``method``: ``name`` and keywords of the function of the experiment
    own
        keys of its own at the top
    """

    experiment: str
    method: tuple[str, ...]
    own: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Configuration(Fields):
    """An experiment as a file describes it.

    Parameters
    ----------
    document
        the whole document
    folder
        the folder that paths are relative to
    trust
        whether it may name objects whose import runs code
    model, space
        the model, and its parameters
    method
        the keywords of the table ``method``, with ``method`` in place of ``name``
    study
        the file that keeps the runs
    experiment
        the name of the experiment
    force
        whether a study of another experiment goes on with this one
    """

    document: Value
    folder: Path
    trust: bool
    model: Model
    space: Space
    method: Mapping[str, Any]
    study: Path | None
    experiment: str
    force: bool = False

    @property
    def kept(self) -> StudyFile | None:
        """The study with the settings for :func:`configuration_of_study`, as experiments take it."""
        if self.study is None:
            return None
        settings = {"experiment": self.experiment, "source": self.document.source, "folder": str(self.folder)}
        return StudyFile(self.study, {**settings, "document": self.document.table()}, self.force)

    def outputs(self, key: str) -> dict[str, Output]:
        """Return the outputs at a key: a name of a metric, a list of these, or a table.

        The values of a table are names of metrics, functions as ``module:name``, or tables of weights: the sum of the
        values of parameters, each times its weight.

        Raises
        ------
        InputError
            the key is missing, or it has something else
        """
        given = self.document[key]
        if isinstance(given.data, Mapping):
            return {name: self._output(given[name]) for name in given.data}
        values = [given] if isinstance(given.data, str) else list(given.list())
        names = [each.text() for each in values]
        for name, each in zip(names, values, strict=True):
            if names.count(name) > 1:
                raise each.wrong(f"duplicate name {name!r}")
        return {name: self._output(each) for name, each in zip(names, values, strict=True)}

    def _output(self, given: Value) -> Output:
        if not isinstance(given.data, Mapping):
            name = given.text()
            return function_named(given, trust=self.trust) if ":" in name else name
        given.only(*(each.name for each in self.space.parameters if all(map(_is_number, each.choices))))
        return Weighted({name: given[name].number(least=None) for name in given.data})

    @contextmanager
    def wrong_here(self) -> Iterator[None]:
        """Let errors about the arguments of an experiment name the file and the key."""
        try:
            yield
        except InputError as error:
            if error.source is not None:
                raise
            first, dot, rest = (error.place or "").partition(".")
            place = error.place
            if first in self.method and not dot:
                place = f"method.{'name' if first == 'method' else first}"
            elif first == "choices":
                place = f"parameters{dot}{rest}"
            raise InputError(error.message, self.document.source, place) from None


@attrs.frozen
class Weighted:
    """An output that is the sum of the values of parameters, each times its weight: a price, a number of cores.

    >>> Weighted({"nodes": 3, "gpus": 20})(None, {"nodes": 2, "gpus": 1, "policy": "easy"})
    26.0
    """

    weights: Mapping[str, float]

    def __call__(self, _: object, values: Mapping[str, Any]) -> float:
        return float(sum(weight * values[name] for name, weight in self.weights.items()))


def read_configuration(path: Source, shape: Shape, *, trust: bool = False, seed: int | None = None) -> Configuration:
    """Return the experiment that a TOML file describes.

    With ``trust``, the file may name functions, policies and models as ``module:name``, which imports code. ``seed``
    replaces that of the method.

    Raises
    ------
    InputError
        the file cannot be read, has a key that the experiment does not take, or describes a wrong model or parameter
    """
    data, source = read_bytes(path)
    folder = path.parent if isinstance(path, Path) else Path(path).parent if isinstance(path, str) else Path()
    document = parse_toml(data, source)
    if seed is not None:
        document["method"] = {**document.get("method", {}), "seed": seed}
    return _configuration(Value(document, source), folder.absolute(), shape, trust)


def configuration_of_study(study: Study, shape: Shape, *, trust: bool = False) -> Configuration:
    """Return the experiment that made a study; it is described by the settings in the study, not by the file."""
    settings = Value(study.settings, str(study.path))
    found = Value(settings["document"].table(), settings["source"].text())
    return attrs.evolve(_configuration(found, Path(settings["folder"].text()), shape, trust), study=study.path)


def _configuration(document: Value, folder: Path, shape: Shape, trust: bool) -> Configuration:
    document.only(*shape.own, *_SHARED)
    _check_types(document)
    model = model_of(document["model"], folder, trust=trust)
    method: dict[str, Any] = {}
    if "method" in document:
        given = document["method"]
        given.only(*shape.method)
        method = {"method" if key == "name" else key: given[key].data for key in given.table()}
    return Configuration(
        document=document,
        folder=folder,
        trust=trust,
        model=model,
        space=_space(document["parameters"], model, trust=trust),
        method=method,
        study=folder / document["study"].text() if "study" in document else None,
        experiment=shape.experiment,
    )


def _check_types(document: Value) -> None:
    """Refuse dates, which nothing here takes, and which a study cannot store."""
    try:
        plain(document.table())
    except TypeError:
        raise document.wrong("must have texts, numbers, lists and tables, got a date or a time") from None


def _space(given: Value, model: Model, *, trust: bool) -> Space:
    """Return the space of the table of parameters.

    Two numbers alone could be a range or two choices, and are refused.
    """
    if not given.table():
        raise given.wrong("must have a parameter, got none")
    try:
        found = [_parameter(name, given[name], trust=trust) for name in given.table()]
        return Space.of(found, model)
    except InputError as error:
        if error.source is not None:
            raise
        moved = error if (error.place or "").startswith("parameters") else inside("parameters", error)
        raise InputError(moved.message, given.source, moved.place) from None


def _parameter(name: str, given: Value, *, trust: bool) -> Parameter:
    data = given.data
    if isinstance(data, list) and len(data) == 2 and all(_is_number(each) for each in data):
        low, high = data
        wanted = f'[{low}, {high}, "linear"], or another scale, for a range, or {{ choices = [{low}, {high}] }}'
        raise given.wrong(f"must be {wanted}, got two numbers")
    found = Parameter.of(name, data)
    for choice in found.choices:
        if any("policy" in path or "policies" in path for path in found.paths):
            check_policy_name(choice, name, trust=trust)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ---------------------------------------------------------------------- the model


def model_of(given: Value, folder: Path, *, trust: bool = False) -> Model:
    """Return the model that the table ``model`` of a file describes.

    It has ``scenario`` (the file of a stored result), ``function`` (``module:name``, with ``arguments``), or the
    arguments of :func:`~simmodel.runs.scenario.simulate`.

    Parameters
    ----------
    folder
        the folder that paths are relative to
    trust
        whether it may name objects whose import runs code

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
    from simmodel.foundation.units import parse_quantity

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
    from simmodel.foundation.entries import load

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
