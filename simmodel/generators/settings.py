"""Generator settings as a document (TOML): the generator, its parameters and its seed.

::

    generator = "lublin"
    description = "the purpose"
    source = "the paper"
    seed = 1

    [parameters]          # of the generator
    jobs = 5000
    processors = 256
    classes = ["typeless"]

    [load]                # optional: scale gaps to this offered load
    to = 0.9

    [estimates]           # optional: draw requested times by user_estimates; may be empty
    maximum = 86400

    [gpus]                # optional: this share of the jobs, drawn at random, requests GPUs on each of its nodes
    share = 0.5
    per_node = 4
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, Plain, shown, unknown
from simmodel.foundation.loading import Source, check_count, one_sentence, parse_toml, read_bytes, reader, source_name
from simmodel.generators.arrivals import synthetic
from simmodel.generators.estimates import with_estimates
from simmodel.generators.grids import tiered_grid_jobs
from simmodel.generators.lublin_feitelson import BATCH, INTERACTIVE, TYPELESS, LublinClass, lublin
from simmodel.generators.phased import schedtwin
from simmodel.work.transformations import scale_load
from simmodel.work.workload import COLUMNS, Workload

__all__ = ["GENERATORS", "generate", "read_settings", "settings_of"]

_CLASSES = {each.name: each for each in (BATCH, INTERACTIVE, TYPELESS)}
_COUNTS = frozenset({"jobs", "users"})
_KEYS = ("generator", "description", "source", "seed", "parameters", "load", "estimates", "gpus")


@wraps(lublin)
def _lublin(classes: Sequence[str | Mapping[str, Plain]] = ("batch", "interactive"), **parameters: Any) -> Workload:
    return lublin(classes=[_lublin_class(each) for each in classes], **parameters)


def _lublin_class(given: str | Mapping[str, Plain]) -> LublinClass:
    """Return a class by its name, or from a table with ``base`` and the parameters that differ from it."""
    changes = dict(given) if isinstance(given, Mapping) else {"base": given}
    base = changes.pop("base", "typeless")
    if base not in _CLASSES:
        raise InputError(f"classes: must be one of {', '.join(_CLASSES)}, got {shown(base)}")
    return attrs.evolve(_CLASSES[base], **changes)


def _listed(
    jobs: Mapping[str, Sequence[float | str]], processors: int | None = None, rng: np.random.Generator | None = None
) -> Workload:
    _known_keys(jobs, tuple(COLUMNS), "parameters.jobs.", None)
    return Workload(jobs, processors=processors)


GENERATORS: Mapping[str, tuple[Callable[..., Workload], str]] = {
    "lublin": (_lublin, "the Lublin-Feitelson model of rigid jobs"),
    "synthetic": (synthetic, "independent gaps, run times and sizes of given distributions"),
    "schedtwin": (schedtwin, "jobs class after class at a steady pace, as in SchedTwin's workload"),
    "tiered-grid": (tiered_grid_jobs, "jobs that read the files of a grid in tiers, by Zipf's law"),
    "listed": (_listed, "jobs listed one by one, as columns"),
}
"""The generators by name: the function of a document's parameters, and a text."""


def generate(settings: Mapping[str, Plain], *, seed: int | None = None, source: str | None = None) -> Workload:
    """Return the workload that settings describe.

    Parameters
    ----------
    settings
        ``generator`` (of :data:`GENERATORS`), ``parameters``, ``seed``, and optional ``load``, ``estimates``, ``gpus``
    seed
        overrides the seed of the settings
    source
        the name of the settings in errors

    Raises
    ------
    InputError
        a key is unknown or missing, or a value is invalid

    >>> generate({"generator": "lublin", "parameters": {"jobs": 10, "processors": 64}})
    <Workload lublin-64: 10 jobs, 64 processors>
    """
    _known_keys(settings, _KEYS, "", source)
    given: dict[str, Any] = dict(settings)
    if "generator" not in settings:
        raise InputError("missing key 'generator'", source)
    name = str(settings["generator"])
    if name not in GENERATORS:
        from simmodel.generators.task_kinds import TASK_KINDS

        if name in TASK_KINDS:
            raise InputError(f"{shown(name)} generates tasks for a machine, not jobs", source, "generator")
        raise InputError(unknown("generator", name, GENERATORS).message, source, "generator")
    make, _ = GENERATORS[name]
    parameters = given.get("parameters", {})
    allowed = [key for key in inspect.signature(make).parameters if key not in ("rng", "seed")]
    _known_keys(parameters, allowed, "parameters.", source)
    seed = seed if seed is not None else given.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"must be a whole number >= 0, got {shown(seed)}", source, "seed")
    for key in _COUNTS.intersection(parameters):
        if isinstance(parameters[key], int | float):
            check_count(f"parameters.{key}", parameters[key])
    making, estimating, choosing = np.random.default_rng(seed).spawn(3)
    place = "parameters"
    try:
        with one_sentence(source):
            workload = make(rng=making, **parameters)
        place = "load"
        if "load" in given:
            _known_keys(given["load"], ("factor", "to"), "load.", source)
            workload = scale_load(workload, **given["load"])
            workload = workload.replace(submit=np.floor(workload["submit"]))
        place = "estimates"
        if "estimates" in given:
            _known_keys(given["estimates"], ("maximum", "distinct", "popular"), "estimates.", source)
            workload = with_estimates(workload, rng=estimating, **given["estimates"])
        place = "gpus"
        if "gpus" in given:
            _known_keys(given["gpus"], ("share", "per_node"), "gpus.", source)
            workload = _with_gpus(workload, choosing, **given["gpus"])
    except InputError as error:
        raise InputError(error.message, source, error.place or place) from None
    except (TypeError, ValueError) as error:
        raise InputError(str(error), source, place) from None
    workload.header = {
        "Note": f"made by simmodel's generator {name}, seed {seed}" if name != "listed" else "listed one by one",
        **({"Parameters": _summary(given)} if name != "listed" else {}),
        **{key.capitalize(): str(settings[key]) for key in ("description", "source") if key in settings},
        **({"MaxProcs": str(workload.processors)} if workload.processors else {}),
    }
    return workload


def _with_gpus(workload: Workload, rng: np.random.Generator, share: float, per_node: int = 1) -> Workload:
    """Return the jobs, a share of which requests GPUs: only systems whose nodes have them can run these."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InputError(f"must be a share from 0 to 1, got {shown(share)}", place="gpus.share")
    if isinstance(per_node, bool) or not isinstance(per_node, int) or per_node < 1:
        raise InputError(f"must be a whole number >= 1, got {shown(per_node)}", place="gpus.per_node")
    return workload.replace(gpus_per_node=np.where(rng.random(len(workload)) < share, per_node, 0))


def _summary(settings: Mapping[str, Mapping[str, Plain]]) -> str:
    """Return the parameters as one line."""
    parts = [f"{key}={value!r}" for key, value in settings.get("parameters", {}).items()]
    for table in ("load", "estimates", "gpus"):
        parts += [f"{table}.{key}={value!r}" for key, value in settings.get(table, {}).items()]
    return ", ".join(parts)


def _known_keys(table: Mapping[str, Plain], keys: Sequence[str], place: str, source: str | None) -> None:
    if not isinstance(table, Mapping):
        raise InputError(f"must be a table, got {shown(table)}", source, place.rstrip("."))
    for key in table:
        if key not in keys:
            raise InputError(unknown("key", key, keys).message, source, f"{place}{key}")


@reader
def read_settings(path: Source, *, seed: int | None = None) -> Workload:
    """Return the workload that a TOML file of generator settings describes, named after the file.

    Raises
    ------
    InputError
        the file is missing or is not such TOML, or as for :func:`generate`
    """
    workload = generate(settings_of(path), seed=seed, source=source_name(path))
    workload.name = Path(source_name(path)).name.removesuffix(".toml")
    return workload


@reader
def settings_of(path: Source) -> dict[str, Any]:
    """Return the generator settings in a TOML file, unchanged.

    Raises
    ------
    InputError
        the file is missing or is not TOML
    """
    return parse_toml(*read_bytes(path))
