"""The processors of a machine, built from its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.platform.machine import MachineSpec, ProcessorSpec
from simmodel.resources.manycore import ManyCores
from simmodel.resources.models import model_named
from simmodel.resources.processor import Processor
from simmodel.systems.machine.state import TaskSpeedKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simmodel.platform.options import MachineOptions
    from simmodel.resources.memory import MemoryPool
    from simmodel.resources.services import ProcessorServices

__all__ = ["build_processors"]


def build_processors(
    machine: ProcessorServices, spec: MachineSpec, pools: Mapping[str, MemoryPool], options: MachineOptions
) -> tuple[dict[str, Processor], list[TaskSpeedKey]]:
    """Return the processors of a machine by name, and their kinds.

    Parameters
    ----------
    machine, spec, pools
        the services that processors use; the spec; the pools by name
    options
        of the machine; a processor's own ``overlap`` takes precedence

    Raises
    ------
    InputError
        if the class of a processor cannot be imported, or is not a subclass of Processor
    """
    found: dict[str, Processor] = {}
    numbers: dict[TaskSpeedKey, int] = {}
    for name, each in spec.each_processor():
        kind = TaskSpeedKey(each.architecture, each.type, each.cores, each.pool)
        number = numbers.setdefault(kind, len(numbers))
        found[name] = _model(each)(machine, name, each, pools[each.pool], index=len(found), kind=number)
    cores = {each.name: each.core for each in found.values() if each.core is not None}
    first = next(iter(cores.values()), None)
    for processor in found.values():
        own = processor.spec
        processor.overlap = (options.overlap if own.overlap is None else own.overlap) and own.dma
        processor.holds_core_early = processor.core is not None and options.core_held == "transfer"
        named = [cores[name] for name in own.setup_on] or ([first] if first is not None else [])
        processor.setup_cores = [processor.core] if processor.core in named and processor.core is not None else named
    return found, list(numbers)


def _model(spec: ProcessorSpec) -> type[Processor]:
    """Return the class of a processor."""
    if spec.model is None:
        return ManyCores if spec.cores > 1 else Processor
    return model_named(spec.model, Processor, f"model of processor {spec.name}")
