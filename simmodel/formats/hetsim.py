"""Platforms of HetSim, a simulator of tasks on heterogeneous hardware, as XML: read and write.

``<MemoryPool id size/>`` (MB), ``<Architecture id perf_min perf_max/>``, ``<Accelerator id archid memorypool type
setupcost dma modelerror poweridle powerload/>`` and ``<Link src dst speed/>`` (one direction, MB per unit of time)
are siblings, with or without a root element around them (HetSim's published listing has none). A MB is 10**6 bytes,
``modelerror`` a share from 0 to 1. The root written by this module also has the machine's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from math import isfinite
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import attrs

from simmodel.formats.documents import Element, read_xml
from simmodel.formats.hetsim_config import HetSimConfig
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import Source, reader, title_of
from simmodel.foundation.writing import write_text
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.work.workload import Report

__all__ = ["read_hetsim", "write_hetsim"]

_ROOT = "Platform"
_NAMES = ("name", "description", "source", "home", "time_unit")  # of the root
# Tag: required keys, optional keys.
_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "MemoryPool": (("id", "size"), ()),
    "Architecture": (("id", "perf_min", "perf_max"), ()),
    "Accelerator": (
        ("id", "archid", "memorypool", "type"),
        ("setupcost", "dma", "modelerror", "poweridle", "powerload"),
    ),
    "Link": (("src", "dst", "speed"), ()),
}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?\s*", re.ASCII)
_MB = 6  # a MB is 10**6 bytes


@reader
def read_hetsim(source: Source, *, config: HetSimConfig | None = None) -> MachineSpec:
    """Read a platform of HetSim as a machine.

    Ids become names; the name of a link is ``src->dst``. In an accelerator, ``setupcost``, the powers and
    ``modelerror`` default to 0, and ``dma`` to true.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    config
        the configuration; its reconfiguration times apply to the accelerators of type FPGA

    Raises
    ------
    InputError
        the file cannot be read, is not such XML, refers to an unknown id, has a duplicate id or link or an invalid
        value, or lacks links between pools; the message has the line

    >>> import io
    >>> text = '''<MemoryPool id="ram" size="64000"/> <Architecture id="x86" perf_min="1" perf_max="1"/>
    ... <Accelerator id="core0" archid="x86" memorypool="ram" type="CPUCore" setupcost="0" dma="true"/>'''
    >>> spec = read_hetsim(io.StringIO(text))
    >>> spec.pools[0].size, [name for name, _ in spec.each_processor()]
    (64000000000.0, ['core0'])
    """
    root, name = read_xml(source, root=_ROOT)
    return _Reader(name, config).machine(root)


class _Reader:
    def __init__(self, name: str, config: HetSimConfig | None) -> None:
        self.name = name
        self.config = config
        self.parts: dict[str, list[Element]] = {tag: [] for tag in _KEYS}

    def wrong(self, element: Element, message: str) -> InputError:
        return InputError(message, source=self.name, place=f"line {element.line}")

    def machine(self, root: Element) -> MachineSpec:
        given: dict[str, Any] = {}
        if root.tag in _KEYS:
            self.take(root)
        else:
            self.keys(root, _NAMES)
            given = dict(root.attrib)
            self.no_text(root, root.text)
            for each in root:
                assert isinstance(each, Element)
                self.take(each)
                self.no_text(each, each.tail)
        for tag in ("MemoryPool", "Architecture", "Accelerator"):
            if not self.parts[tag]:
                raise self.wrong(root, f"must have at least one <{tag}>, got none")
        pools = self.by_id("MemoryPool")
        architectures = self.by_id("Architecture")
        self.by_id("Accelerator")
        parts: dict[str, Any] = {
            "pools": [self.pool(each) for each in self.parts["MemoryPool"]],
            "architectures": [self.architecture(each) for each in self.parts["Architecture"]],
            "processors": [self.processor(each, pools, architectures) for each in self.parts["Accelerator"]],
            "links": self.links(pools),
        }
        if "home" in given and given["home"] not in pools:
            raise self.wrong(root, unknown("memory pool", given["home"], pools).message)
        try:
            return MachineSpec(name=given.pop("name", title_of(self.name, ".xml")), **given, **parts)
        except InputError as error:
            raise InputError(error.message, source=self.name, place=self.line_of(error.place, root)) from None

    def line_of(self, place: str | None, root: Element) -> str:
        """Return the line for an error of the whole machine: that of the accelerator, or of the last link."""
        found = re.match(r"processors\[(\d+)\]", place or "")
        if found:
            return f"line {self.parts['Accelerator'][int(found[1])].line}"
        return f"line {(self.parts['Link'] or [root])[-1].line}"

    def take(self, element: Element) -> None:
        if element.tag not in _KEYS:
            tags = ", ".join(f"<{tag}>" for tag in _KEYS)
            raise self.wrong(element, f"must be one of {tags}, got <{element.tag}>")
        needed, optional = _KEYS[element.tag]
        self.keys(element, (*needed, *optional))
        for key in needed:
            if not element.get(key):
                raise self.wrong(element, f"<{element.tag}>: missing {shown(key)}")
        for each in element:
            assert isinstance(each, Element)
            raise self.wrong(each, f"<{element.tag}>: must be empty, got <{each.tag}>")
        self.no_text(element, element.text)
        self.parts[element.tag].append(element)

    def keys(self, element: Element, known: tuple[str, ...]) -> None:
        for key in element.attrib:
            if key not in known:
                raise self.wrong(element, f"<{element.tag}>: {unknown('key', key, known).message}")

    def no_text(self, element: Element, text: str | None) -> None:
        if text and text.strip():
            raise self.wrong(element, f"must have elements only, got the text {shown(text.strip()[:40])}")

    def by_id(self, tag: str) -> dict[str, Element]:
        found: dict[str, Element] = {}
        for each in self.parts[tag]:
            id_ = each.attrib["id"]
            if id_ in found:
                raise self.wrong(each, f"duplicate <{tag}> id {shown(id_)}")
            found[id_] = each
        return found

    def number(self, element: Element, key: str, *, above: bool = False, power: int = 0, most: float = 1e300) -> float:
        """Return a value as a number times a power of ten, rounded once."""
        text = element.get(key, "0")
        value = _number(text, power) if _NUMBER.fullmatch(text) else float("nan")
        if not (value > 0 if above else value >= 0) or value > most:
            limits = f"{'> 0' if above else '>= 0'}{f' and <= {most:g}' if most < 1e300 else ''}"
            whose = element.get("id") or f"{element.get('src')}->{element.get('dst')}"
            raise self.wrong(
                element, f"{key} of <{element.tag}> {shown(whose)}: must be a number {limits}, got {shown(text[:40])}"
            )
        return value

    def pool(self, element: Element) -> MemoryPoolSpec:
        return MemoryPoolSpec(name=element.attrib["id"], size=self.number(element, "size", above=True, power=_MB))

    def architecture(self, element: Element) -> ArchitectureSpec:
        least, most = (self.number(element, key, above=True) for key in ("perf_min", "perf_max"))
        if least > most:
            whose = f"perf_min of <Architecture> {shown(element.get('id'))}"
            raise self.wrong(element, f"{whose}: must be <= perf_max, got {least:g} and {most:g}")
        return ArchitectureSpec(name=element.attrib["id"], performance=(least, most))

    def processor(
        self, element: Element, pools: Mapping[str, Element], architectures: Mapping[str, Element]
    ) -> ProcessorSpec:
        for key, kind, known in (("memorypool", "memory pool", pools), ("archid", "architecture", architectures)):
            if element.attrib[key] not in known:
                raise self.wrong(element, unknown(kind, element.attrib[key], known).message)
        dma = element.get("dma", "true").strip().lower()
        if dma not in _TRUTH:
            raise self.wrong(
                element, f"dma of <Accelerator> {shown(element.get('id'))}: must be true or false, got {shown(dma)}"
            )
        spec = ProcessorSpec(
            name=element.attrib["id"],
            type=element.attrib["type"],
            architecture=element.attrib["archid"],
            pool=element.attrib["memorypool"],
            setup=self.number(element, "setupcost"),
            dma=_TRUTH[dma],
            model_error=self.number(element, "modelerror", most=1),
            idle_power=self.number(element, "poweridle"),
            load_power=self.number(element, "powerload"),
        )
        return spec if self.config is None else self.config.on_processor(spec)

    def links(self, pools: Mapping[str, Element]) -> list[LinkSpec]:
        found: dict[tuple[str, str], LinkSpec] = {}
        for each in self.parts["Link"]:
            ends = (each.attrib["src"], each.attrib["dst"])
            for end in ends:
                if end not in pools:
                    raise self.wrong(each, unknown("memory pool", end, pools).message)
            if ends[0] == ends[1]:
                raise self.wrong(each, f"a link must connect two memory pools, got one from {shown(ends[0])} to itself")
            if ends in found:
                raise self.wrong(each, f"duplicate link from {shown(ends[0])} to {shown(ends[1])}")
            bandwidth = self.number(each, "speed", above=True, power=_MB)
            found[ends] = LinkSpec(name="->".join(ends), bandwidth=bandwidth, between=ends, one_way=True)
        names = [link.name for link in found.values()]
        if len(dict.fromkeys(names)) < len(names):  # ids that contain arrows
            found = {ends: attrs.evolve(link, name=f"link{i}") for i, (ends, link) in enumerate(found.items())}
        return list(found.values())


def _number(text: str, power: int) -> float:
    exact = Context(prec=len(text) + 20)
    return float(exact.scaleb(Decimal(text.strip()), power))


# ---------------------------------------------------------------------- writing

_PLAIN_PROCESSOR = ProcessorSpec(name="", type="", architecture="", pool="")
_PLAIN_LINK = LinkSpec(name="plain", bandwidth=1)


def write_hetsim(spec: MachineSpec, path: str | Path, *, root: bool = True) -> Report:
    """Write a machine as a HetSim platform, and report the properties that the XML lacks.

    Reading the file gives the machine without these. Each processor of a group is written by itself, a bidirectional
    link as two, and links are named by their ends.

    Parameters
    ----------
    spec
        the machine
    path
        the file to write, compressed if it ends in ``.gz``
    root
        whether to write a root element with the machine's name, description, source, home and time unit; without it the
        file is like HetSim's listing

    Raises
    ------
    InputError
        the XML cannot represent the machine: an infinite memory pool or link, two links from one pool to another, a
        name that is empty or has characters not allowed in XML

    >>> import tempfile
    >>> spec = MachineSpec(pools=[MemoryPoolSpec(name="ram", size=64e9)], architectures=[ArchitectureSpec(name="x86")],
    ...                    processors=[ProcessorSpec(name="core", count=2, type="CPU", architecture="x86", pool="ram")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_hetsim(spec, f"{folder}/two.xml", root=False)
    ...     print(Path(folder, "two.xml").read_text().splitlines()[2])
    <Accelerator id="core0" archid="x86" memorypool="ram" type="CPU" setupcost="0" dma="true" modelerror="0" ...
    """
    report = Report()
    lines = [_element(tag, **values) for tag, values in _parts(spec, report)]
    head = {key: getattr(spec, key) for key in _NAMES}
    default = MachineSpec(pools=spec.pools, architectures=spec.architectures, processors=spec.processors,
                          links=spec.links)  # fmt: skip
    head = {key: value for key, value in head.items() if value != getattr(default, key)}
    if root:
        opened = _element(_ROOT, name=spec.name, **{key: value for key, value in head.items() if key != "name"})
        lines = [f"{opened.removesuffix('/>')}>", *(f"  {line}" for line in lines), f"</{_ROOT}>"]
    else:
        for key in head:
            report.skipped[f"{key} of the machine: no place for it without a root"] += 1
    write_text(path, "\n".join(lines) + "\n", ".xml")
    return report


def _parts(spec: MachineSpec, report: Report) -> Iterator[tuple[str, dict[str, str]]]:
    def lost(what: str) -> None:
        report.skipped[f"{what}: no place for it in HetSim's XML"] += 1

    for pool in spec.pools:
        if pool.spill is not None:
            lost("spill of a memory pool")
        if pool.evict != "lru":
            lost("eviction rule of a memory pool")
        yield "MemoryPool", {"id": pool.name, "size": _shown(pool.size, f"size of memory pool {pool.name}", -_MB)}
    for each in spec.architectures:
        if each.speed is not None:
            lost("speed of an architecture")
        least, most = (_shown(value, f"performance of architecture {each.name}") for value in each.performance)
        yield "Architecture", {"id": each.name, "perf_min": least, "perf_max": most}
    for name, processor in spec.each_processor():
        for field in ("cores", "setup_on", "overlap", "queue", "preemption", "model", "options"):
            if getattr(processor, field) != getattr(_PLAIN_PROCESSOR, field):
                lost(f"{field} of a processor")
        if processor.reconfiguration != _PLAIN_PROCESSOR.reconfiguration:
            report.skipped["reconfiguration of a processor: HetSim has it in its configuration"] += 1
        yield (
            "Accelerator",
            {
                "id": name,
                "archid": processor.architecture,
                "memorypool": processor.pool,
                "type": processor.type,
                "setupcost": _shown(processor.setup, f"setup of processor {name}"),
                "dma": str(processor.dma).lower(),
                "modelerror": _shown(processor.model_error, f"model_error of processor {name}"),
                "poweridle": _shown(processor.idle_power, f"idle_power of processor {name}"),
                "powerload": _shown(processor.load_power, f"load_power of processor {name}"),
            },
        )
    ways: dict[tuple[str, str], None] = {}
    for link in spec.links:
        assert link.between is not None
        a, b = link.between
        for field, plain in (
            ("latency", 0),
            ("sharing", "shared"),
            ("reverse", None),
            ("profile", ()),
            ("repeat", None),
        ):
            if getattr(link, field) != plain:
                lost(f"{field} of a link")
        if not link.one_way:
            report.repaired["link of both directions: written as two"] += 1
        elif link.name != f"{a}->{b}":
            lost("name of a link")
        for src, dst in ((a, b),) if link.one_way else ((a, b), (b, a)):
            if src == dst:
                raise InputError(f"a link must connect two memory pools, got one from {shown(src)} to itself")
            if (src, dst) in ways:
                raise InputError(f"duplicate link from {shown(src)} to {shown(dst)}")
            ways[src, dst] = None
            yield "Link", {"src": src, "dst": dst, "speed": _shown(link.bandwidth, f"bandwidth of {link.name}", -_MB)}


def _shown(value: float, what: str, power: int = 0) -> str:
    """Return a number times a power of ten as text that reads back exactly."""
    if not isfinite(value):
        raise InputError(f"{what}: must be a finite number for HetSim's XML, got {shown(value)}")
    exact = Decimal(repr(value) if isinstance(value, float) else str(value)).scaleb(power, Context(prec=60)).normalize()
    return f"{exact:f}" if -7 < exact.adjusted() < 17 else str(exact)


def _element(tag: str, **values: str) -> str:
    for key, value in values.items():
        if (not value and key != "description" and key != "source") or re.search(
            "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", value
        ):
            raise InputError(f"{key} of <{tag}>: must be text valid in XML, got {shown(value)}")
    return f"<{' '.join([tag, *(f'{key}={quoteattr(value)}' for key, value in values.items())])}/>"
