"""Tasks and data objects: what a processor executes and what it reads and writes, as frozen values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

__all__ = ["DataObject", "File", "RecordedMachine", "Task"]

_Number = TypeVar("_Number", bound=float | None)


def _amount(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if value is not None and not 0 <= value < math.inf:
        what = getattr(instance, "id", None) or getattr(instance, "name", "")
        raise ValueError(f"{attribute.name} of {what!r}: a finite number >= 0 expected, found {value!r}")


def _above_zero(instance: Task, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if value is None or not 0 < value < math.inf:
        raise ValueError(f"{attribute.name} of {instance.id!r}: a finite number > 0 expected, found {value!r}")


def _share(instance: Task, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} of {instance.id!r}: a share from 0 to 1 expected, found {value!r}")


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _maybe_texts(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    return None if value is None else _texts(value)


@attrs.frozen
class DataObject:
    """Something with a size that tasks read and write: it lives in a memory pool, or as a file in storages.

    Parameters
    ----------
    name
        its name, one in a workflow
    size
        bytes

    Raises
    ------
    ValueError
        the size is negative or not finite

    >>> DataObject("chunk", 4e6)
    DataObject(name='chunk', size=4000000.0)
    """

    name: str
    size: float = attrs.field(default=0.0, validator=_amount)


File = DataObject
"""The other word for a :class:`DataObject`, where it lies in a storage."""


@attrs.frozen(kw_only=True)
class Task:
    """The unit that a processor executes. It never changes: one task can be run in many simulations.

    Parameters
    ----------
    id
        its name in its workflow
    name
        what a reader calls it; need not be the only one
    run
        seconds that it runs on the reference processor
    flop
        floating-point operations, where its run time comes from the speed of a processor
    run_on
        seconds by architecture (or type) of processor, where they are known; they come before ``run`` and ``flop``
    implementations
        the types of processors that can run it; ``None``: every one
    family
        what it does; tasks of one family share a configuration of an FPGA
    cores
        cores that it holds at once
    memory
        bytes that it needs while it runs, its data not counted
    serial
        share of its work that more cores do not make faster (Amdahl's law), where known
    inputs, outputs
        names of the data objects that it reads and writes, in the order in which they move
    priority
        a higher one goes first
    started, ended
        recorded instants in seconds since the workflow's start, where a file has them
    machines
        names of the machines on which it was recorded
    details
        what a file says of it beyond this, by the file's own keys

    Raises
    ------
    ValueError
        an amount is negative or not finite, ``cores`` is not above zero, or ``serial`` is no share

    >>> task = Task(id="fft", run=10, run_on={"gpu": 2}, outputs=["spectrum"])
    >>> task.run_time(), task.run_time("gpu"), Task(id=1, flop=3e9).run_time(speed=1e9)
    (10, 2, 3.0)
    """

    id: int | str
    name: str | None = None
    run: float | None = attrs.field(default=None, validator=_amount)
    flop: float | None = attrs.field(default=None, validator=_amount)
    run_on: Mapping[str, float] = attrs.field(factory=dict, hash=False)
    implementations: tuple[str, ...] | None = attrs.field(default=None, converter=_maybe_texts)
    family: str | None = None
    cores: float = attrs.field(default=1, validator=_above_zero)
    memory: float = attrs.field(default=0.0, validator=_amount)
    serial: float | None = attrs.field(default=None, validator=_share)
    inputs: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    outputs: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    priority: float = 0.0
    started: float | None = None
    ended: float | None = None
    machines: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    details: Mapping[str, Any] = attrs.field(factory=dict, hash=False, repr=False)

    def __attrs_post_init__(self) -> None:
        for architecture, seconds in self.run_on.items():
            if not 0 <= seconds < math.inf:
                raise ValueError(
                    f"run_on[{architecture!r}] of {self.id!r}: a finite number >= 0 expected, found {seconds!r}"
                )

    def run_time(self, architecture: str | None = None, *, speed: float | None = None) -> float:
        """Return the seconds that it runs: on this architecture, else on the reference processor, else by its speed.

        Parameters
        ----------
        architecture
            a key of ``run_on``; one that is not there runs it as the reference processor does
        speed
            flop/s of the processor, for a task of which only the operations are known

        Raises
        ------
        ValueError
            nothing says how long it runs
        """
        if architecture is not None and architecture in self.run_on:
            return self.run_on[architecture]
        if self.run is not None:
            return self.run
        if self.flop is not None and speed is not None:
            return self.flop / speed
        where = f" on {architecture!r}" if architecture is not None else ""
        hint = "; it has flop: hand in a speed in flop/s" if self.flop is not None else ""
        raise ValueError(f"task {self.id!r}: no run time is known{where}{hint}")

    def can_run_on(self, kind: str) -> bool:
        """Return whether a processor of this type can run it.

        >>> Task(id=1, run=5, implementations=["CPUCore", "GPU"]).can_run_on("FPGA")
        False
        """
        return self.implementations is None or kind in self.implementations


@attrs.frozen(kw_only=True)
class RecordedMachine:
    """A machine on which a workflow was recorded, as far as its file tells.

    Parameters
    ----------
    name
        its name, as tasks have it in ``machines``
    cores
        number of its cores
    speed
        clock rate in Hz
    memory
        bytes
    details
        what the file says of it beyond this

    >>> RecordedMachine(name="node-1", cores=48).cores
    48
    """

    name: str
    cores: int | None = None
    speed: float | None = attrs.field(default=None, validator=_amount)
    memory: float | None = attrs.field(default=None, validator=_amount)
    details: Mapping[str, Any] = attrs.field(factory=dict, hash=False, repr=False)
