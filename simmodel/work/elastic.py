"""Elastic jobs: the sizes between which a job may run, and how fast it is at each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Amdahl", "Elastic", "GivenSpeedup", "MeasuredSpeedup", "Speedup", "SpeedupLike"]


class Speedup(Fields):
    """How many times as fast as on one processor a job runs on several: the base class."""

    __slots__ = ()

    def at(self, processors: int) -> float:
        """Return the speed-up on a number of processors over one."""
        raise NotImplementedError


@attrs.frozen(repr=False)
class Amdahl(Speedup):
    """Amdahl's law: the serial share of the work gains nothing, the rest gains in proportion.

    Parameters
    ----------
    serial
        the serial share, from 0 (linear speed-up) to 1

    Source: Amdahl, "Validity of the single processor approach", AFIPS 1967.

    >>> Amdahl(0.5).at(1), Amdahl(0.05).at(16), Amdahl(0).at(16)
    (1.0, 9.142857142857142, 16.0)
    """

    serial: float = attrs.field(default=0.0)

    @serial.validator
    def _share(self, _attribute: attrs.Attribute[float], value: float) -> None:
        if not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise InputError(f"serial: must be a share from 0 to 1, got {value!r}")

    def at(self, processors: int) -> float:
        """Return the speed-up on a number of processors over one."""
        return processors / (1.0 + self.serial * (processors - 1))


def _points(value: Mapping[int, float] | Iterable[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    pairs = value.items() if isinstance(value, Mapping) else value
    return tuple(sorted((int(size), float(speed)) for size, speed in pairs))


@attrs.frozen(repr=False)
class MeasuredSpeedup(Speedup):
    """A table of measured speed-ups, with straight lines between them and none beyond the last size.

    Parameters
    ----------
    points
        the speed-ups by number of processors, as a mapping or as pairs; any unit, since only ratios count

    >>> table = MeasuredSpeedup({1: 1, 4: 3.4, 8: 5})
    >>> table.at(4), table.at(6), table.at(64)
    (3.4, 4.2, 5.0)
    """

    points: tuple[tuple[int, float], ...] = attrs.field(converter=_points)

    @points.validator
    def _rises(self, _attribute: attrs.Attribute[object], value: tuple[tuple[int, float], ...]) -> None:
        if not value or any(size < 1 or not speed > 0 for size, speed in value):
            raise InputError(f"speedup: must be speed-ups > 0 for numbers of processors >= 1, got {dict(value)}")

    def at(self, processors: int) -> float:
        """Return the speed-up on a number of processors."""
        points = self.points
        after = bisect_right(points, (processors, float("inf")))
        if not after:
            return points[0][1] * processors / points[0][0]
        size, speed = points[after - 1]
        if after == len(points):
            return speed
        more, faster = points[after]
        return speed + (faster - speed) * (processors - size) / (more - size)


@attrs.frozen(repr=False)
class GivenSpeedup(Speedup):
    """A speed-up as a function of the number of processors; snapshots with it cannot be written to files.

    Parameters
    ----------
    function
        returns a number > 0 for a number of processors
    """

    function: Callable[[int], float]

    def at(self, processors: int) -> float:
        """Return the speed-up on a number of processors."""
        speed = self.function(processors)
        if not speed > 0:
            raise InputError(f"speedup: must return a number > 0, got {speed!r} for {processors} processors")
        return speed


SpeedupLike: TypeAlias = "Speedup | Mapping[int, float] | Callable[[int], float] | str"
"""The description of a speed-up: a law, a table, a function or ``"linear"``."""


def _speedup(value: SpeedupLike) -> Speedup:
    if isinstance(value, Speedup):
        return value
    if value == "linear":
        return Amdahl(0.0)
    if isinstance(value, Mapping):
        return MeasuredSpeedup(value)
    if callable(value):
        return GivenSpeedup(value)
    raise InputError(f"speedup: must be Amdahl(...), 'linear', a table or a function, got {value!r}")


def _size(_instance: Elastic, attribute: attrs.Attribute[int], value: int) -> None:
    if isinstance(value, (bool, str)) or value is None or value != value // 1 or value < 1:
        raise InputError(f"{attribute.name}: must be a whole number >= 1, got {value!r}")


@attrs.frozen(repr=False)
class Elastic(Fields):
    """Between which numbers of processors a job may run, and how fast it is at each.

    A policy may start the job at any size between ``minimum`` and ``maximum``
    (:class:`Start(..., processors=) <simmodel.scheduling.protocol.Start>`) and change the size while it runs
    (:class:`~simmodel.scheduling.protocol.Resize`). The run time and the requested time of the job are those at the
    ``preferred`` size; the work left is done faster or more slowly at others, and the limit scales with it.

    Parameters
    ----------
    minimum, preferred, maximum
        processors; the job requests the preferred number, and any other policy starts it so
    speedup
        :class:`Amdahl`, ``"linear"``, a table of speed-ups by size, or a function of the size

    Raises
    ------
    InputError
        the sizes are not in this order, or a speed-up is not one

    >>> elastic = Elastic(2, 4, 8, speedup=Amdahl(0.05))
    >>> round(elastic.speed(8), 3), round(elastic.speed(2), 3), elastic.speed(4)
    (1.704, 0.548, 1.0)
    """

    minimum: int = attrs.field(validator=_size)
    preferred: int = attrs.field(validator=_size)
    maximum: int = attrs.field(validator=_size)
    speedup: Speedup = attrs.field(default=Amdahl(0.0), converter=_speedup)

    def __attrs_post_init__(self) -> None:
        if not self.minimum <= self.preferred <= self.maximum:
            sizes = f"{self.minimum}, {self.preferred}, {self.maximum}"
            raise InputError(f"preferred: must be from minimum to maximum, got {sizes}")

    def speed(self, processors: int) -> float:
        """Return how many times as fast as at the preferred size the job runs on a number of processors."""
        return self.speedup.at(processors) / self.speedup.at(self.preferred)

    def longer(self, before: int, after: int) -> float:
        """Return by how much the work left takes longer once the job has changed from one size to another."""
        at = self.speedup.at
        unit = at(self.preferred)
        return (at(before) / unit) / (at(after) / unit)

    def why_not(self, processors: object) -> str | None:
        """Return why the job cannot have a size, or ``None``."""
        if isinstance(processors, (bool, float, str)) or not self.minimum <= processors <= self.maximum:  # type: ignore[operator]
            return f"processors: must be a whole number from {self.minimum} to {self.maximum}, got {processors!r}"
        return None
