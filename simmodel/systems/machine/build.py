"""The processors of a machine, built from its spec."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from simmodel.errors import InputError, unknown
from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.manycore import ManyCores
from simmodel.resources.processor import Processor
from simmodel.systems.machine.arrivals import Kind

if TYPE_CHECKING:
    from simmodel.systems.machine.system import Machine

__all__ = ["build_processors"]


def build_processors(machine: Machine, overlap: bool) -> tuple[dict[str, Processor], list[Kind]]:
    """Return the processors of a machine by name, and their kinds.

    Parameters
    ----------
    overlap
        whether those that do not say it themselves fetch data while they are busy

    Raises
    ------
    InputError
        where the class of a processor is not there, or is none
    """
    found: dict[str, Processor] = {}
    numbers: dict[Kind, int] = {}
    for name, spec in machine.spec.each_processor():
        kind = Kind(spec.architecture, spec.type, spec.cores, spec.pool)
        number = numbers.setdefault(kind, len(numbers))
        model = _model(spec)
        found[name] = model(machine, name, spec, machine.pools[spec.pool], index=len(found), kind=number)
    cores = {each.name: each.core for each in found.values() if each.core is not None}
    first = next(iter(cores.values()), None)
    for each in found.values():
        each.overlap = overlap if each.spec.overlap is None else each.spec.overlap
        each.overlap = each.overlap and each.spec.dma
        named = [cores[name] for name in each.spec.setup_on] or ([first] if first is not None else [])
        each.setup_cores = [each.core] if each.core in named and each.core is not None else named
    return found, list(numbers)


def _model(spec: ProcessorSpec) -> type[Processor]:
    """Return the class that runs a processor."""
    if spec.model is None:
        return ManyCores if spec.cores > 1 else Processor
    where = f"model of processor {spec.name}"
    module, _, attribute = spec.model.partition(":")
    if attribute:
        try:
            found = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise InputError(f"a class as module:Class expected, found {spec.model!r}: {error}", place=where) from None
    else:
        from importlib.metadata import entry_points

        there = {point.name: point for point in entry_points(group="simmodel.resources")}
        if spec.model not in there:
            raise InputError(unknown("model", spec.model, there).message, place=where)
        found = there[spec.model].load()
    if not (isinstance(found, type) and issubclass(found, Processor)):
        raise InputError(f"a subclass of Processor expected, found {found!r}", place=where)
    return found
