"""Machine workloads by text: a generator with its parameters, a bundled name, or a file.

::

    random:tasks=1000,families=4,run=10-500,objects=1-5,size=4MB-300MB
    database:tasks=500000
    layered:n=100,fat=0.5,rate=0.1
    fork-join                     # a bundled name, see task_names()
    sipht.xml                     # a file of a workflow or of settings (TOML)

A settings file has the keys ``generator``, ``description``, ``source``, ``seed``, and a table ``[parameters]`` with the
same keys as the text. These are the parameters of the generator's function and, for any generator,

- ``families``, ``types``, ``partial``, ``reconfiguration``, see :func:`~simmodel.generators.families.with_families`;
- ``rate``, ``gap`` or ``max_delay``, and ``start``: the tasks arrive over time, see
  :func:`~simmodel.generators.arrivals.arrive`;
- ``copies``: the number of whole works, each drawn anew, that arrive over time instead of the tasks of one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from simmodel.catalogue.bundled import bundled_file, bundled_names
from simmodel.catalogue.formats import load_workflow, looks_like
from simmodel.formats.hetsim_config import HetSimConfig
from simmodel.foundation.errors import InputError, Plain, shown, unknown
from simmodel.foundation.loading import check_count, held, one_sentence, parse_toml, read_bytes, source_name
from simmodel.generators.arrivals import arrive, works_over_time
from simmodel.generators.distributions import Streams
from simmodel.generators.families import only_possible, with_families
from simmodel.generators.settings import GENERATORS
from simmodel.generators.task_kinds import TASK_KINDS, Work
from simmodel.platform.machine import MachineSpec
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

__all__ = ["load_tasks", "make_work", "parameters_in", "task_names"]


_FAMILIES = ("families", "types", "partial", "reconfiguration")
_ARRIVALS = ("rate", "gap", "max_delay", "start")
_COUNTS = frozenset({"tasks", "n", "copies", "layers", "levels", "width", "jump", "stages", "families"})
_SETTINGS = ("generator", "description", "source", "seed", "parameters")


def task_names() -> list[str]:
    """Return the names of the bundled machine workloads, sorted.

    >>> "fork-join" in task_names(), "lublin-256" in task_names()
    (True, False)
    """
    found = []
    for name in bundled_names("workloads"):
        path = bundled_file("workloads", name)
        if path is not None and path.suffix == ".toml" and parse_toml(*read_bytes(path)).get("generator") in TASK_KINDS:
            found.append(name)
    return found


def load_tasks(
    text: str | Path,
    seed: int | None = None,
    *,
    config: HetSimConfig | None = None,
    machine: MachineSpec | None = None,
    **options: Any,
) -> Work:
    """Return the work that a text specifies: tasks, a workflow, or pairs of an instant (s) and one of these.

    Parameters
    ----------
    text
        a generator with its parameters, a bundled name, or the path of a file
    seed
        seed of the draws; default: that of the settings, else 0
    config
        HetSim's configuration, the defaults of the generator's parameters. It does not change workflows from files; its
        reconfiguration times apply to the machine, see
        :meth:`~simmodel.formats.hetsim_config.HetSimConfig.on_machine`
    machine
        if the configuration has ``strict_exceptions`` off: tasks that this machine cannot run are left out and counted
    options
        passed to the reader of a workflow file: ``repair=True``, ``format=...``

    Raises
    ------
    InputError
        the generator, name or file is unknown, or a key or a value is invalid

    >>> load_tasks("random:tasks=1000,families=4", seed=1)
    <TaskSet random: 1000 tasks, 0 data objects>
    >>> load_tasks("random:task=1000")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: random:task=1000, task: unknown key 'task'; did you mean 'tasks'? Known ...
    >>> [(round(at), len(flow)) for at, flow in load_tasks("layered:n=20,copies=2,rate=0.01")]
    [(24, 20), (60, 20)]
    """
    work = _Reader(config, options).work(text, None, seed)
    if machine is not None and config is not None and config.strict_exceptions is False:
        if isinstance(work, list):
            return [(at, only_possible(each, machine)) for at, each in work]
        return only_possible(work, machine)
    return work


def make_work(settings: Mapping[str, Plain], *, seed: int | None = None, source: str | None = None) -> Work:
    """Return the work that settings describe, a mapping with the keys of a settings file.

    Raises
    ------
    InputError
        a key is unknown or missing, or a value is invalid

    >>> make_work({"generator": "database", "parameters": {"tasks": 50}})
    <TaskSet database: 50 tasks, 51 data objects>
    """
    return _Reader(None, {}).settings(settings, None, seed, source)


@attrs.define
class _Reader:
    config: HetSimConfig | None
    options: Mapping[str, Any]
    within: tuple[str, ...] = ()  # the enclosing works, to detect a work that contains itself

    def work(self, text: str | Path, rng: np.random.Generator | None, seed: int | None = None) -> Work:
        """Return the work of a text; ``rng`` takes precedence over seeds."""
        name = str(text)
        if text == "":
            raise InputError("must be a generator, the name of a machine workload or a path, got ''")
        if name in self.within:
            raise InputError(f"work must not contain itself, got {' -> '.join([*self.within, name])}")
        inner = attrs.evolve(self, within=(*self.within, name))
        kind, colon, rest = name.partition(":")
        if isinstance(text, str) and colon and re.fullmatch(r"[A-Za-z][\w-]+", kind):
            if kind not in TASK_KINDS:
                raise unknown("task generator", kind, [each for each, kept in TASK_KINDS.items() if kept.in_text])
            return inner.made(kind, parameters_in(rest, name), rng or np.random.default_rng(seed or 0), name)
        bundled = bundled_file("workloads", name) if isinstance(text, str) else None
        if bundled is None and isinstance(text, str) and name in TASK_KINDS and not Path(name).exists():
            return inner.made(name, {}, rng or np.random.default_rng(seed or 0), name)
        path = bundled or Path(text)
        if not path.exists() and name != "-":
            if isinstance(text, str) and not re.search(r"[/\\.]", text):
                raise unknown("machine workload", text, [*task_names(), *TASK_KINDS])
            raise InputError("no such file", source=name)
        file = held(path)
        if path.suffix.lower() == ".toml" or (not isinstance(file, Path) and looks_like(file, "toml")):
            work = inner.settings(parse_toml(*read_bytes(file)), rng, seed, source_name(file))
            for _, each in work if isinstance(work, list) else [(0, work)]:
                each.name = path.name.removesuffix(".toml")
            return work
        return load_workflow(file, **self.options)

    def settings(
        self, settings: Mapping[str, Plain], rng: np.random.Generator | None, seed: int | None, source: str | None
    ) -> Work:
        """Return the work that settings of a file or a mapping describe."""
        kind = settings.get("generator")
        if kind is None or kind in TASK_KINDS:
            for key in settings:
                if key not in _SETTINGS:
                    raise InputError(unknown("key", key, _SETTINGS).message, source, key)
        if kind not in TASK_KINDS:
            if "generator" not in settings:
                raise InputError("missing key 'generator'", source)
            if kind in GENERATORS:
                raise InputError(f"{shown(kind)} generates jobs for a cluster, not tasks", source, "generator")
            raise InputError(unknown("task generator", str(kind), TASK_KINDS).message, source, "generator")
        parameters: Any = settings.get("parameters", {})
        if not isinstance(parameters, Mapping):
            raise InputError(f"must be a table, got {shown(parameters)}", source, "parameters")
        if source is not None and isinstance(parameters.get("workflow"), str):
            beside = Path(source).parent / parameters["workflow"]
            if beside.is_file():
                parameters = {**parameters, "workflow": str(beside)}
        start = seed if seed is not None else settings.get("seed", 0)
        if isinstance(start, bool) or not isinstance(start, int) or start < 0:
            raise InputError(f"must be a whole number >= 0, got {shown(start)}", source, "seed")
        return self.made(str(kind), parameters, rng or np.random.default_rng(start), source)

    def made(self, name: str, given: Mapping[str, Plain], rng: np.random.Generator, source: str | None) -> Work:
        """Return the work of a generator and its parameters."""
        kind = TASK_KINDS[name]
        signature = inspect.signature(kind.make).parameters
        own = [key for key in signature if key not in ("rng", "part")]
        allowed = [*own, *_FAMILIES, *(key for key in _ARRIVALS if key not in own), "copies"]
        for key in given:
            if key not in allowed:
                raise InputError(unknown("key", key, allowed).message, source, key)
        parameters = {**self.defaults(own, given), **given}
        for key in _COUNTS.intersection(parameters):
            if isinstance(parameters[key], int | float):
                check_count(f"parameters.{key}", parameters[key])
        making, arriving = self.stream("seed_uniform", rng).spawn(2)
        copies = parameters.get("copies")
        over_time = {key: parameters[key] for key in _ARRIVALS if key in parameters}
        families = {key: parameters[key] for key in _FAMILIES if key in parameters}

        def one(rng: np.random.Generator) -> TaskSet | Workflow:
            other, dealing = rng.spawn(2)
            options: dict[str, Any] = {key: parameters[key] for key in own if key in parameters}
            if "part" in signature:
                options["part"] = attrs.evolve(self, config=self.config and self.config.of_parts())
            if "rng" in signature:
                options["rng"] = self.streams(other) if kind.streams else other
            work: TaskSet | Workflow = kind.make(**options)
            return with_families(work, **families, rng=dealing) if families else work

        try:
            missing = [
                key for key in own if signature[key].default is inspect.Parameter.empty and key not in parameters
            ]
            if missing:
                raise InputError(f"missing {', '.join(map(repr, missing))}")
            if copies is not None:
                return works_over_time(one, copies, **over_time, rng=arriving)
            with one_sentence(source):
                work = one(making)
            return arrive(work, **over_time, rng=arriving) if over_time else work
        except InputError as error:
            raise InputError(error.message, error.source or source, error.place) from None
        except (TypeError, ValueError) as error:
            raise InputError(str(error), source) from None

    def defaults(self, own: list[str], given: Collection[str]) -> dict[str, Any]:
        """Return the configuration's values for a generator's parameters; those in the text take precedence."""
        options = self.config.options() if self.config is not None else {}
        if any(key in given for key in _ARRIVALS):
            options.pop("max_delay", None)
        common = ("max_delay", *(["partial"] if options.get("partial") else []))
        return {key: value for key, value in options.items() if key in (*own, *common)}

    def stream(self, key: str, rng: np.random.Generator) -> np.random.Generator:
        """Return the random numbers of the seed that the configuration has under a key, else the given ones."""
        seed = None if self.config is None else getattr(self.config, key)
        return rng if seed is None else np.random.default_rng(seed)

    def streams(self, rng: np.random.Generator) -> Streams:
        """Return independent random numbers for run times, sizes of data, and all else."""
        other, running, sizing = rng.spawn(3)
        return Streams(other, self.stream("seed_task_runtime", running), self.stream("seed_data_size", sizing))


_QUANTITY = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[A-Za-z]*"


def parameters_in(text: str, source: str) -> dict[str, Any]:
    """Return the parameters of a text such as ``tasks=1000,run=10-500``.

    Raises
    ------
    InputError
        a part is not key=value, or a key occurs twice

    >>> parameters_in("tasks=1000,run=10-500", "text")
    {'tasks': 1000, 'run': (10, 500)}
    """
    found: dict[str, Any] = {}
    for part in text.split(",") if text.strip() else ():
        key, sign, value = (each.strip() for each in part.partition("="))
        if not sign or not key or not value:
            raise InputError(f"must be key=value, got {shown(part.strip())}", source)
        if key in found:
            raise InputError(f"duplicate key {shown(key)}", source)
        ends = re.fullmatch(rf"({_QUANTITY})(?:-|\.\.)({_QUANTITY})", value)
        number = _plain(value)
        found[key] = (_plain(ends[1]), _plain(ends[2])) if ends and isinstance(number, str) else number
    return found


def _plain(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    try:
        return float(text) if re.fullmatch(r"[-+.\deE]+", text) else text
    except ValueError:
        return text
