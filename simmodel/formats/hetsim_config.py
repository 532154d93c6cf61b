"""The configuration of HetSim: the parameters of its task generators.

A configuration is lines of ``key = value`` (``#`` begins a comment, ``[sections]`` are ignored), a JSON object, or XML
with an element or an attribute for each key; the first character shows which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import attrs

from simmodel.formats.documents import Element, read_json, read_xml
from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, Plain, shown, unknown
from simmodel.foundation.loading import Source, decode, in_memory, read_bytes, reader
from simmodel.platform.machine import MachineSpec, ProcessorSpec

__all__ = ["SECTION_5", "HetSimConfig", "read_hetsim_config"]

_MB = 1e6
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

SECTION_5: Mapping[str, float] = {
    "min_task_runtime": 10,
    "max_task_runtime": 500,
    "min_data_objects": 1,
    "max_data_objects": 5,
    "min_data_size": 4,
    "max_data_size": 300,
    "min_fpga_reconf_time": 100,
    "max_fpga_reconf_time": 200,
}
"""The values of the experiment in section 5 of HetSim's paper; they complete an interval with one end missing."""


def _maybe(kind: str) -> Any:
    return attrs.field(default=None, metadata={"kind": kind})


@attrs.frozen(kw_only=True, repr=False)
class HetSimConfig(Fields):
    """The keys of HetSim's configuration; ``None`` is a missing key, for which the generator's own default applies.

    Times are in the platform's unit of time, sizes in MB (10**6 bytes).

    Parameters
    ----------
    min_task_runtime, max_task_runtime
        run time of a task on the reference processor, a CPU core: drawn uniformly
    min_data_objects, max_data_objects
        number of data objects on an edge, or read by a task without parents: drawn uniformly
    min_data_size, max_data_size
        size of each data object: drawn uniformly
    min_fpga_reconf_time, max_fpga_reconf_time
        time in which an FPGA loads a family of tasks: drawn uniformly, once for each family
    partial_task_families
        whether families of tasks lack implementations for some types of processors: true, false, or the probability
        that a family lacks one for a type (true: 0.5). CPU cores run every family
    max_task_delay
        maximum time between the arrivals of two tasks: drawn uniformly from 0 on. 0: all arrive at once
    strict_exceptions
        whether a task that no processor can run ends the simulation; otherwise the task and its descendants are left
        out and counted as rejected. Default: true
    seed_uniform, seed_task_runtime, seed_data_size
        seeds of the three random streams: for everything else, for run times, and for data sizes; a stream without a
        seed is derived from the seed of the run

    Raises
    ------
    InputError
        a value is invalid

    >>> config = HetSimConfig(max_task_runtime=100, partial_task_families=True)
    >>> config.options()
    {'run': (10, 100), 'partial': 0.5}
    """

    min_task_runtime: float | None = _maybe("amount")
    max_task_runtime: float | None = _maybe("amount")
    min_data_objects: int | None = _maybe("count")
    max_data_objects: int | None = _maybe("count")
    min_data_size: float | None = _maybe("amount")
    max_data_size: float | None = _maybe("amount")
    min_fpga_reconf_time: float | None = _maybe("amount")
    max_fpga_reconf_time: float | None = _maybe("amount")
    partial_task_families: bool | float | None = _maybe("share")
    max_task_delay: float | None = _maybe("amount")
    strict_exceptions: bool | None = _maybe("truth")
    seed_uniform: int | None = _maybe("count")
    seed_task_runtime: int | None = _maybe("count")
    seed_data_size: int | None = _maybe("count")

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(HetSimConfig):
            value = getattr(self, field.name)
            if value is not None and not _possible(value, field.metadata["kind"]):
                what = _KINDS[field.metadata["kind"]]
                raise InputError(f"must be {what}, got {shown(value)}", place=field.name)
        for what in ("task_runtime", "data_objects", "data_size", "fpga_reconf_time"):
            self._interval(what)

    def _interval(self, what: str) -> tuple[float, float] | None:
        ends = [getattr(self, f"{end}_{what}") for end in ("min", "max")]
        if ends == [None, None]:
            return None
        least, most = (
            SECTION_5[f"{end}_{what}"] if value is None else value
            for end, value in zip(("min", "max"), ends, strict=True)
        )
        if least > most:
            raise InputError(f"must be <= max_{what}, got {least:g} and {most:g}", place=f"min_{what}")
        return (least, most)

    @property
    def reconfiguration(self) -> tuple[float, float] | None:
        """The interval of seconds to load a family on an FPGA; ``None`` if not configured."""
        return self._interval("fpga_reconf_time")

    @property
    def partial(self) -> float | None:
        """The probability that a family lacks an implementation for a type of processors."""
        share = self.partial_task_families
        return (0.5 if share else 0.0) if isinstance(share, bool) else share

    def options(self) -> dict[str, Any]:
        """Return the configured values as options of the generators, in seconds and bytes."""
        size = self._interval("data_size")
        found = {
            "run": self._interval("task_runtime"),
            "objects": self._interval("data_objects"),
            "size": size and (size[0] * _MB, size[1] * _MB),
            "reconfiguration": self.reconfiguration,
            "partial": self.partial,
            "max_delay": self.max_task_delay,
        }
        return {key: value for key, value in found.items() if value is not None}

    def of_parts(self) -> HetSimConfig:
        """Return the configuration for the parts of composed work: without seeds, arrivals and implementations."""
        return attrs.evolve(
            self,
            seed_uniform=None,
            seed_task_runtime=None,
            seed_data_size=None,
            max_task_delay=None,
            partial_task_families=None,
        )

    def on_processor(self, spec: ProcessorSpec) -> ProcessorSpec:
        """Return the processor spec, with the configured reconfiguration if its type is FPGA."""
        if spec.type != "FPGA" or self.reconfiguration is None:
            return spec
        return attrs.evolve(spec, reconfiguration=self.reconfiguration)

    def on_machine(self, spec: MachineSpec) -> MachineSpec:
        """Return the machine spec, with the configured reconfiguration for its FPGAs."""
        return attrs.evolve(spec, processors=[self.on_processor(each) for each in spec.processors])


_KINDS = {
    "amount": "a finite number >= 0",
    "count": "a whole number >= 0",
    "share": "true, false or a share from 0 to 1",
    "truth": "true or false",
}


def _possible(value: Plain, kind: str) -> bool:
    if kind == "truth":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return kind == "share"
    if not isinstance(value, int | float) or not isfinite(value) or value < 0:
        return False
    return value <= 1 if kind == "share" else kind != "count" or isinstance(value, int)


@reader
def read_hetsim_config(source: Source) -> HetSimConfig:
    """Read a configuration of HetSim.

    Raises
    ------
    InputError
        the file cannot be read, a key is unknown or duplicate, or a value is invalid; with the line or the key

    >>> import io
    >>> read_hetsim_config(io.StringIO("min_task_runtime = 5  # s\\npartial_task_families = yes")).options()
    {'run': (5, 500), 'partial': 0.5}
    """
    data, name = read_bytes(source)
    text = decode(data)
    pairs = {"{": _json, "<": _xml}.get(text.lstrip()[:1], _lines)(text, name)
    values: dict[str, Any] = {}
    keys = [field.name for field in attrs.fields(HetSimConfig)]
    for key, value, place in pairs:
        if key not in keys:
            raise InputError(unknown("key", key, keys).message, source=name, place=place)
        if key in values:
            raise InputError(f"duplicate key {shown(key)}", source=name, place=place)
        values[key] = _value(key, value, name, place)
    try:
        return HetSimConfig(**values)
    except InputError as error:
        raise InputError(error.message, source=name, place=error.place) from None


def _lines(text: str, name: str) -> Iterable[tuple[str, Any, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        plain = re.sub(r"[#;].*", "", line).strip()
        if not plain or re.fullmatch(r"\[.*\]", plain):
            continue
        found = re.fullmatch(r"([^=:]+)[=:](.+)", plain)
        if found is None:
            raise InputError(
                f"must be key = value, got {shown(line.strip()[:60])}", source=name, place=f"line {number}"
            )
        key, value = found[1].strip(), found[2].strip()
        yield key, value, f"line {number}"


def _json(text: str, name: str) -> Iterable[tuple[str, Any, str]]:
    for key, value in read_json(in_memory(text.encode(), name)).table().items():
        yield key, value, key


def _xml(text: str, name: str) -> Iterable[tuple[str, Any, str]]:
    root, _ = read_xml(in_memory(text.encode(), name), root="config")
    for key, value in root.attrib.items():
        yield key, value, f"line {root.line}"
    for each in root:
        assert isinstance(each, Element)
        yield each.tag, each.get("value", each.text or "").strip(), f"line {each.line}"


def _value(key: str, value: Plain, name: str, place: str) -> Plain:
    """Return a value as a number or a Boolean."""
    kind = attrs.fields_dict(HetSimConfig)[key].metadata["kind"]
    found = value
    if isinstance(value, str):
        word = value.strip("\"'").lower()
        if kind == "truth" or (kind == "share" and word in ("true", "false", "yes", "no")):
            found = _TRUTH.get(word, value)
        elif re.fullmatch(r"[+-]?\d{1,300}", word):
            found = int(word)
        elif re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", word):
            found = float(word)
    if kind == "count" and isinstance(found, float) and found.is_integer():
        found = int(found)
    if not _possible(found, kind):
        raise InputError(f"{key}: must be {_KINDS[kind]}, got {shown(value)}", source=name, place=place)
    return found
