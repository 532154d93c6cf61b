"""Specs of platforms to and from plain values and TOML files.

The top-level key ``kind`` names the kind of system; the other keys are the fields of its spec and of the specs inside
it. Quantities may have units (``memory = "256GB"``, ``max_requested = "24h"``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from simmodel.foundation.errors import InputError, Plain, of_class, printable, shown, unknown
from simmodel.foundation.loading import Source, parse_toml, read_bytes, reader, source_name
from simmodel.foundation.units import parse_quantity
from simmodel.foundation.writing import write_text
from simmodel.platform.kinds import KINDS, to_dict

if TYPE_CHECKING:
    from cattrs import Converter

    from simmodel.platform.broker import BrokerSpec, SystemSpec

__all__ = ["check_models", "from_dict", "read_toml", "to_toml", "write_toml"]

# The units accepted for each field, tried in this order.
_UNITS: dict[str, tuple[str, ...]] = {
    "memory": ("B",),
    "size": ("B",),
    "bandwidth": ("B/s",),
    "latency": ("s",),
    "speed": ("flop/s",),
    "setup": ("s",),
    "amount": ("B", "B/s"),
    "idle_power": ("W",),
    "load_power": ("W",),
    "setup_power": ("W",),
    "reconfiguration_power": ("W",),
    "transfer_power": ("W",),
    "max_requested": ("s",),
    "at": ("s",),
    "until": ("s",),
    "start": ("s",),
    "end": ("s",),
    "mean_time_between_failures": ("s",),
    "mean_time_to_repair": ("s",),
    "capacity": ("B",),
    "read_bandwidth": ("B/s",),
    "write_bandwidth": ("B/s",),
    "mean": ("s",),
    "core_speed": ("flop/s",),
    "idle": ("W",),
    "load": ("W",),
    "off": ("W",),
    "boot_repair": ("s",),
    "fixed": ("W",),
    "loss": ("W",),
}


def from_dict(mapping: Mapping[str, Plain], *, source: str | None = None) -> Any:
    """Return the spec that plain values describe.

    Parameters
    ----------
    mapping
        as ``to_dict`` returns it; quantities may be texts with units
    source
        the file or document of the values, for the error message

    Raises
    ------
    InputError
        a key is unknown or missing, or a value is invalid; with its path inside the document

    >>> spec = from_dict({"kind": "cluster", "partitions": [{"nodes": [{"cores": 16, "memory": "64GB"}]}]})
    >>> spec.processors, spec.partitions[0].nodes[0].memory
    (16, 64000000000.0)
    >>> from_dict({"kind": "cluster", "partitions": [{"nodes": [{"core": 16}]}]}, source="mine.toml")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: mine.toml, partitions[0].nodes[0].core: unknown key 'core'; did you mean ...
    Known keys: name, names, count, cores, gpus, memory, ... switch, nodes_per_switch, gpu_types, power
    """
    if not isinstance(mapping, Mapping):
        raise InputError(f"must be a mapping, got {shown(mapping)}", source)
    values = dict(mapping)
    kind = values.pop("kind", None)
    if kind is None:
        raise InputError(f"missing key; known kinds: {', '.join(KINDS)}", source, "kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(unknown("kind", str(kind), KINDS).message, source, "kind")
    try:
        return _converter().structure(values, KINDS[kind])
    except InputError as error:
        raise InputError(error.message, source, error.place) from None


@reader
def read_toml(path: Source, *, trust: bool = False) -> Any:
    """Return the spec that a TOML file describes.

    With ``trust``, its models of resources may be ``module:Class``, which imports code.

    Raises
    ------
    InputError
        the file is missing, is not TOML, or does not describe a platform

    >>> from simmodel.catalogue.bundled import bundled_folder
    >>> read_toml(bundled_folder("platforms") / "kth-sp2.toml").processors
    100
    """
    source = source_name(path)
    spec = from_dict(_beside(parse_toml(*read_bytes(path)), path), source=source)
    if not trust:
        check_models(spec, source)
    return spec


def _beside(values: Mapping[str, Plain], file: Source) -> Mapping[str, Plain]:
    """Return the values of a file; the files that the networks of its partitions are in are found beside it."""
    parts = values.get("partitions")
    if isinstance(file, str | Path) and isinstance(parts, list):
        for part in parts:
            name = part.get("network") if isinstance(part, dict) else None
            if isinstance(name, str) and name.endswith((".xml", ".xml.gz")):
                part["network"] = str(Path(file).parent / name)
    return values


def check_models(spec: object, source: str | None = None) -> None:
    """Raise ``InputError`` if a model of a spec from data would import code from outside simmodel.

    Parameters
    ----------
    spec
        the spec of any kind of system, also of a broker
    source
        the file of the spec, for the error message
    """
    models: Callable[[], Iterable[tuple[str, str]]] = getattr(spec, "models", tuple)
    for place, model in models():
        if ":" in model and not model.startswith("simmodel."):
            hint = "which imports code: pass trust=True (--trust) if you trust the file"
            raise InputError(f"must be a known model, got {shown(model)}, {hint}", source, place)


def write_toml(spec: SystemSpec, path: str | Path) -> None:
    """Write a spec as a TOML file from which ``read_toml`` restores an equal spec.

    Raises
    ------
    InputError
        it is not a spec, or the file cannot be written

    >>> from tempfile import TemporaryDirectory
    >>> from simmodel.platform import ClusterSpec
    >>> with TemporaryDirectory() as folder:
    ...     write_toml(ClusterSpec.simple(16), f"{folder}/mine.toml")
    ...     print(Path(folder, "mine.toml").read_text())
    kind = "cluster"
    <BLANKLINE>
    [[partitions]]
    processors = 16
    <BLANKLINE>
    """
    write_text(path, to_toml(spec), ".toml")


def to_toml(spec: SystemSpec, comments: Iterable[str] = ()) -> str:
    """Return a spec as the text of a TOML file, with lines of comments before it.

    Raises
    ------
    InputError
        it is not a spec

    >>> from simmodel.platform import ClusterSpec
    >>> print(to_toml(ClusterSpec.simple(16), ["Of the year 2026."]))
    # Of the year 2026.
    kind = "cluster"
    <BLANKLINE>
    [[partitions]]
    processors = 16
    <BLANKLINE>
    """
    lines = [f"# {printable(comment)}".rstrip() for comment in comments]
    return "\n".join([*lines, *_lines(to_dict(spec), "")]) + "\n"


@cache
def _converter() -> Converter:
    from simmodel.platform.broker import BrokerSpec
    from simmodel.platform.cluster import NodeSpec
    from simmodel.platform.devices import Slices
    from simmodel.platform.grid import DelaySpec
    from simmodel.platform.network import SharingModel, model_named
    from simmodel.platform.power import Phase
    from simmodel.platform.strict import strict_converter
    from simmodel.platform.supply import Efficiency, Pue
    from simmodel.platform.topology import Topology, read_topology

    converter = strict_converter(_in_units)
    by_fields = converter.get_structure_hook(SharingModel)
    converter.register_structure_hook(
        SharingModel, lambda value, cls: model_named(value) if isinstance(value, str) else by_fields(value, cls)
    )
    delay_by_fields = converter.get_structure_hook(DelaySpec)
    converter.register_structure_hook(
        DelaySpec,
        lambda value, cls: delay_by_fields(
            value if isinstance(value, Mapping) else {"mean": _in_units("mean", value)}, cls
        ),
    )
    converter.register_structure_hook_func(
        lambda cls: cls == (Topology | None),
        lambda value, _: None if value is None else read_topology(of_class(value, str, "a text")),
    )
    converter.register_structure_hook_func(
        lambda cls: cls in (Phase, Efficiency, Pue, Slices), lambda value, _: value
    )  # their specs check
    by_node = converter.get_structure_hook(NodeSpec)
    converter.register_structure_hook(NodeSpec, lambda value, cls: by_node(_with_types(value), cls))
    converter.register_structure_hook(BrokerSpec, lambda value, _: _broker(value, converter))
    return converter


def _with_types(value: Plain) -> Plain:
    """Return a node whose GPUs by type stand under the name of their field."""
    if isinstance(value, Mapping) and isinstance(value.get("gpus"), Mapping) and "gpu_types" not in value:
        return {"gpu_types" if key == "gpus" else key: each for key, each in value.items()}
    return value


def _broker(value: Plain, converter: Converter) -> BrokerSpec:
    """Return the spec of a broker, whose places are specs of any kind."""
    from simmodel.platform.broker import BrokerSpec, Slowdown
    from simmodel.platform.strict import inside

    if not isinstance(value, Mapping):
        raise InputError(f"must be a mapping, got {shown(value)}")
    values: dict[str, Any] = dict(value)
    for key in values:
        if key not in ("name", "places", "slowdowns"):
            raise InputError(unknown("key", key, ("name", "places", "slowdowns")).message, place=key)
    if "name" in values:
        values["name"] = converter.structure(values["name"], str)
    if not isinstance(values.get("places"), Mapping):
        raise InputError(f"must be a mapping of names to specs, got {shown(values.get('places'))}", place="places")
    places = {}
    for name, each in values["places"].items():
        try:
            places[name] = from_dict(each)
        except InputError as error:
            raise inside(f"places.{name}", error) from None
    try:
        slowdowns = converter.structure(values.get("slowdowns", ()), tuple[Slowdown, ...])
    except InputError as error:
        raise inside("slowdowns", error) from None
    return BrokerSpec(**{**values, "places": places, "slowdowns": slowdowns})


def _in_units(key: str, value: Plain) -> Plain:
    if key not in _UNITS or not isinstance(value, str):
        return value
    *others, last = _UNITS[key]
    for unit in others:
        try:
            return parse_quantity(value, unit)
        except InputError:
            continue
    return parse_quantity(value, last, place=key)


# ---------------------------------------------------------------------- plain values to TOML


def _lines(values: Mapping[str, Plain], path: str) -> Iterator[str]:
    """Yield the lines of a table: its own values, then the tables inside it."""
    tables = {key: value for key, value in values.items() if _is_table(value)}
    yield from (f"{key} = {_value(value)}" for key, value in values.items() if key not in tables)
    for key, value in tables.items():
        for each in value:
            yield f"\n[[{path}{key}]]"
            yield from _lines(each, f"{path}{key}.")


def _is_table(value: Plain) -> TypeGuard[list[Mapping[str, Plain]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _value(value: Plain) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{_value(str(key))} = {_value(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, str):
        # TOML has the escapes of JSON, but also requires the delete character to be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
