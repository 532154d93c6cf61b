"""The processors and memory pools of a machine, built from its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from simmodel.foundation.errors import InputError
from simmodel.platform.machine import MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.models import check_model, model_named
from simmodel.resources.processors.manycore import ManyCores
from simmodel.resources.processors.processor import Processor
from simmodel.systems.machine.state import TaskSpeedKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simmodel.environment import Environment
    from simmodel.platform.options import MachineOptions
    from simmodel.resources.processors.services import ProcessorServices

__all__ = ["build_pools", "build_processors"]

Made = TypeVar("Made")


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
        if the class of a processor cannot be imported, is not a subclass of Processor, or does not support its spec
    """
    found: dict[str, Processor] = {}
    numbers: dict[TaskSpeedKey, int] = {}
    for i, each in enumerate(spec.processors):
        model = _model(each)
        models_own = i if model.amounts or model.run_time is not Processor.run_time else None
        kind = TaskSpeedKey(each.architecture, each.type, each.cores, each.pool, models_own)
        number = numbers.setdefault(kind, len(numbers))
        for name in each.names:
            found[name] = model(machine, name, each, pools[each.pool], index=len(found), kind=number)
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
    plain = ManyCores if spec.cores > 1 else Processor
    return _checked(plain if spec.model is None else spec.model, Processor, spec, f"processor {spec.name}")


def build_pools(env: Environment, spec: MachineSpec) -> dict[str, MemoryPool]:
    """Return the memory pools of a machine by name.

    Raises
    ------
    InputError
        if the class of a pool cannot be imported, is not a subclass of MemoryPool, or does not support its spec
    """
    found: dict[str, MemoryPool] = {}
    for each in spec.pools:
        model = _checked(each.model or MemoryPool, MemoryPool, each, f"memory pool {each.name}")
        found[each.name] = model(env, each, len(found))
    for pool in found.values():
        pool.spill = found[str(spec.home) if pool.spec.spill is None else pool.spec.spill]
    return found


def _checked(given: str | type[Made], base: type[Made], spec: ProcessorSpec | MemoryPoolSpec, place: str) -> type[Made]:
    """Return the class of a model that supports a spec."""
    if spec.model is None and spec.options:
        raise InputError(f"must be empty without a model, got {dict(spec.options)}", place=f"options of {place}")
    model = model_named(given, base, f"model of {place}")
    check_model(model, spec, f"model of {place}")
    return model
