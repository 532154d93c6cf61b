"""Types of devices (GPUs): their memory, their power, and the slices into which one can be cut.

Source of the slices ``"mig"``: NVIDIA, "Multi-Instance GPU User Guide", the placements of the profiles of an A100.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.units import in_bytes, in_watts

__all__ = ["DeviceSpec"]

# By gigabytes of memory in eighths of the device: how many of its eight places it takes, and where it may begin.
_MIG = {
    ("1g", 1): (1, 0, 1, 2, 3, 4, 5, 6),
    ("1g", 2): (2, 0, 2, 4, 6),
    ("2g", 2): (2, 0, 2, 4),
    ("3g", 4): (4, 0, 4),
    ("4g", 4): (4, 0),
    ("7g", 8): (8, 0),
}


Slices: TypeAlias = Mapping[str, tuple[int, ...]]
"""By name, how many places a slice takes and where it may begin."""


def _amount(_instance: DeviceSpec, attribute: attrs.Attribute[float], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise InputError(f"must be a number >= 0, got {shown(value)}", place=attribute.name)


@attrs.frozen(kw_only=True, repr=False)
class DeviceSpec(Fields):
    """A type of device, as nodes name it in ``NodeSpec(gpus={"A100": 4})``.

    Parameters
    ----------
    name
        its name
    memory
        bytes, 0 if not modelled; jobs may request a share by ``gpu_memory``
    idle_power, load_power
        W of one device
    slices
        the slices into which it can be cut, by name: how many of its places each takes, and the places at which it may
        begin, numbered from 0. ``"mig"``: those of an A100, with names by its memory. Such a device has no other shares

    Raises
    ------
    InputError
        a slice is no such list, or could begin inside itself; ``"mig"`` without memory; 1000 is no multiple of the
        number of places

    >>> DeviceSpec(name="A100", memory="40GB", slices="mig").slices["3g.20gb"]
    (4, 0, 4)
    """

    name: str
    memory: float = attrs.field(default=0.0, converter=in_bytes, validator=_amount)
    idle_power: float = attrs.field(default=0.0, converter=in_watts, validator=_amount)
    load_power: float = attrs.field(default=0.0, converter=in_watts, validator=_amount)
    slices: Slices = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        given: Any = self.slices
        if given == "mig":
            eighth = self.memory / 8e9
            if not eighth:
                raise InputError("must be given for slices 'mig', whose names have it", place="memory")
            found = {f"{name}.{eighth * size:g}gb": places for (name, size), places in _MIG.items()}
        elif isinstance(given, Mapping):
            found = {name: self._slice(name, places) for name, places in given.items()}
        else:
            raise InputError(f"must be 'mig' or a mapping of names to places, got {shown(given)}", place="slices")
        object.__setattr__(self, "slices", found)
        if 1000 % self.places:
            raise InputError(f"must have a number of places that divides 1000, got {self.places}", place="slices")

    def _slice(self, name: str, given: Any) -> tuple[int, ...]:
        places = tuple(given) if isinstance(given, list | tuple) else ()
        whole = all(type(each) is int and each >= 0 for each in places)
        if len(places) < 2 or not whole or not places[0]:
            expected = "how many places it takes and where it may begin, as (4, 0, 4)"
            raise InputError(f"must be {expected}, got {shown(given)}", place=f"slices.{name}")
        starts = sorted(places[1:])
        if any(after - before < places[0] for before, after in pairwise(starts)):
            raise InputError(f"must not begin inside itself, got {shown(given)}", place=f"slices.{name}")
        return (places[0], *starts)

    @property
    def places(self) -> int:
        """How many places it has: 1 if it cannot be cut into slices."""
        return max((length + starts[-1] for length, *starts in self.slices.values()), default=1)
