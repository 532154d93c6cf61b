"""Tasks and data objects as frozen values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.units import in_bytes, in_rates, in_seconds

__all__ = ["CPU_CORES", "DataObject", "File", "RecordedMachine", "Task"]

CPU_CORES = ("CPUCore", "CPU")
"""The types of processors that are CPU cores, which set up other processors."""

_NAMES = ("inputs", "outputs", "implementations", "machines")
_AMOUNTS = ("run_on", "amounts")
_Number = TypeVar("_Number", bound=float | None)


def _wrong(instance: attrs.AttrsInstance, name: str, accepted: str, value: object) -> InputError:
    owner = getattr(instance, "id", None) or getattr(instance, "name", "")
    return InputError(f"{name} of {owner!r}: must be {accepted}, got {shown(value)}")


def _is_number(value: object) -> bool:
    kind = type(value)  # of nearly all, which needs no look at the classes that it derives from
    return kind is float or kind is int or (kind is not bool and isinstance(value, Real))


def _amount(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if value is not None and not (_is_number(value) and 0 <= value < math.inf):
        raise _wrong(instance, attribute.name, "a finite number >= 0", value)


def _above_zero(instance: Task, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if value is None or not (_is_number(value) and 0 < value < math.inf):
        raise _wrong(instance, attribute.name, "a finite number > 0", value)


def _share(instance: Task, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is not None and not (_is_number(value) and 0 <= value <= 1):
        raise _wrong(instance, attribute.name, "a share from 0 to 1", value)


def _text(instance: DataObject, attribute: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{attribute.name} of a data object: must be a text, got {shown(value)}")


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return value if type(value) is tuple or not isinstance(value, Iterable) else tuple(value)


def _maybe_texts(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    return None if value is None else _texts(value)


@attrs.frozen(repr=False)
class DataObject(Fields):
    """Data that tasks read and write, held in a memory pool or as a file in storages.

    Parameters
    ----------
    name
        its name, unique in a workflow
    size
        bytes

    Raises
    ------
    InputError
        the name is no text, or the size is no quantity, negative or not finite

    >>> DataObject("chunk", 4e6)
    DataObject(name='chunk', size=4000000.0)
    """

    name: str = attrs.field(validator=_text)
    size: float = attrs.field(default=0.0, converter=in_bytes, validator=_amount)


File = DataObject
"""Another name for :class:`DataObject`, used for data in a storage."""


SHARE = "bandwidth_"
"""How the names of columns and amounts of bandwidths begin (bytes/s of a storage or a link)."""


def shares_of(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return the bandwidths among the amounts of a task, by link.

    >>> shares_of({"prompt": 5, "bandwidth_bus": 2e9})
    {'bus': 2000000000.0}
    """
    return {name.removeprefix(SHARE): rate for name, rate in amounts.items() if name.startswith(SHARE)}


@attrs.frozen(kw_only=True, repr=False)
class Task(Fields):
    """The unit that a processor executes, immutable: one task can run in many simulations.

    Parameters
    ----------
    id
        its identifier, unique in its workflow
    name
        its display name; several tasks may share it
    run
        run time in seconds on the reference processor
    flop
        floating-point operations, from which the speed of a processor determines the run time
    run_on
        run time in seconds by architecture (or type) of processor; takes precedence over ``run`` and ``flop``
    implementations
        the types of processors that can run it; ``None``: all
    family
        its family; tasks of one family share a configuration of an FPGA
    cores
        cores that it uses simultaneously
    memory
        bytes that it needs while it runs, without its data objects
    serial
        share of its work that does not speed up with more cores (Amdahl's law); ``None``: unknown
    inputs, outputs
        names of the data objects that it reads and writes, in the order of their transfers
    priority
        higher first
    bandwidth
        bytes/s of the links of its machine, by name, which it holds while it runs, such as ``{"bus": "2GB/s"}``; it
        starts when they are free, and transfers share the rest. A set of tasks has them as amounts ``bandwidth_NAME``
    amounts
        numbers by name that models of processors read, such as the tokens of a request
    started, ended
        recorded start and end in seconds since the start of the workflow, if its file has them
    machines
        names of the machines on which it was recorded
    details
        other properties in the file, by the keys of the file

    Raises
    ------
    InputError
        a value has the wrong type, an amount is negative or not finite, ``cores`` is not above zero, or ``serial`` is
        not from 0 to 1

    >>> task = Task(id="fft", run=10, run_on={"gpu": 2}, outputs=["spectrum"])
    >>> task.run_time(), task.run_time("gpu"), Task(id=1, flop=3e9).run_time(speed=1e9)
    (10, 2, 3.0)
    """

    id: int | str
    name: str | None = None
    run: float | None = attrs.field(default=None, converter=in_seconds, validator=_amount)
    flop: float | None = attrs.field(default=None, validator=_amount)
    run_on: Mapping[str, float] = attrs.field(factory=dict, hash=False)
    implementations: tuple[str, ...] | None = attrs.field(default=None, converter=_maybe_texts)
    family: str | None = None
    cores: float = attrs.field(default=1, validator=_above_zero)
    memory: float = attrs.field(default=0.0, converter=in_bytes, validator=_amount)
    serial: float | None = attrs.field(default=None, validator=_share)
    inputs: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    outputs: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    priority: float = 0.0
    amounts: Mapping[str, float] = attrs.field(factory=dict, hash=False)
    started: float | None = None
    ended: float | None = None
    machines: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    details: Mapping[str, Any] = attrs.field(factory=dict, hash=False, repr=False)
    bandwidth: Mapping[str, float] = attrs.field(factory=dict, converter=in_rates, hash=False)

    def __attrs_post_init__(self) -> None:
        kind = type(self.id)
        if kind is not str and kind is not int and (kind is bool or not isinstance(self.id, str | Integral)):
            raise InputError(f"id of a task: must be a whole number or a text, got {shown(self.id)}")
        if not (_is_number(self.priority) and -math.inf < self.priority < math.inf):
            raise _wrong(self, "priority", "a finite number", self.priority)
        for name in _NAMES:
            names = getattr(self, name)
            if names == () or (names is None and name == "implementations"):
                continue
            if type(names) is not tuple or not all(isinstance(each, str) for each in names):
                raise _wrong(self, name, "names", names)
        for name in _AMOUNTS:
            values = getattr(self, name)
            if values or type(values) is not dict:
                self._check_amounts(name, values)

    def _check_amounts(self, name: str, values: Mapping[str, float]) -> None:
        if not isinstance(values, Mapping):
            raise _wrong(self, name, "a mapping", values)
        for key, amount in values.items():
            if not (_is_number(amount) and 0 <= amount < math.inf):
                raise _wrong(self, f"{name}[{key!r}]", "a finite number >= 0", amount)

    @property
    def all_amounts(self) -> Mapping[str, float]:
        """Its amounts, and its bandwidths as ``bandwidth_NAME``."""
        if not self.bandwidth:
            return self.amounts
        return {**self.amounts, **{f"{SHARE}{name}": rate for name, rate in self.bandwidth.items()}}

    def run_time(self, architecture: str | None = None, *, speed: float | None = None) -> float:
        """Return its run time (s): by ``run_on``, else by ``run``, else by ``flop`` and a speed.

        Parameters
        ----------
        architecture
            a key of ``run_on``; any other value means the reference processor
        speed
            flop/s of the processor, for a task whose operations alone are known

        Raises
        ------
        InputError
            the run time is unknown
        """
        if architecture is not None and architecture in self.run_on:
            return self.run_on[architecture]
        if self.run is not None:
            return self.run
        if self.flop is not None and speed is not None:
            return self.flop / speed
        where = f" on {architecture!r}" if architecture is not None else ""
        hint = "; it has flop: pass speed in flop/s" if self.flop is not None else ""
        raise InputError(f"task {self.id!r}: unknown run time{where}{hint}")

    def can_run_on(self, kind: str) -> bool:
        """Return whether a processor of this type can run it.

        >>> Task(id=1, run=5, implementations=["CPUCore", "GPU"]).can_run_on("FPGA")
        False
        """
        return self.implementations is None or kind in self.implementations


@attrs.frozen(kw_only=True, repr=False)
class RecordedMachine(Fields):
    """A machine on which a workflow was recorded, with the properties given in the file.

    Parameters
    ----------
    name
        its name, as in the ``machines`` of tasks
    cores
        number of its cores
    speed
        clock rate in Hz
    memory
        bytes
    details
        other properties in the file

    >>> RecordedMachine(name="node-1", cores=48).cores
    48
    """

    name: str
    cores: int | None = None
    speed: float | None = attrs.field(default=None, validator=_amount)
    memory: float | None = attrs.field(default=None, validator=_amount)
    details: Mapping[str, Any] = attrs.field(factory=dict, hash=False, repr=False)
