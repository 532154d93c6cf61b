"""The description of a broker: the places that it hands work to, and how much slower each is for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Protocol

import attrs

from simmodel.errors import InputError

__all__ = ["BrokerSpec", "Slowdown", "Slowdowns", "SystemSpec", "read_slowdowns"]

Slowdowns = Sequence[float] | Mapping[str, float] | Mapping[tuple[str | None, str], float] | None
"""What multiplies run and requested times: one number a place, in their order or by name; or by (home, destination)."""


class SystemSpec(Protocol):
    """The description of a system, of whatever class its kind registers."""

    @property
    def name(self) -> str:
        """What reports call the system."""
        ...


@attrs.frozen
class Slowdown:
    """What multiplies the run and requested times of work at a place; ``home``: of work that belongs there."""

    place: str
    factor: float
    home: str | None = None


def _by_name(given: Mapping[str, SystemSpec]) -> dict[str, SystemSpec]:
    return dict(given)


@attrs.frozen(kw_only=True)
class BrokerSpec:
    """A broker over places of any kinds.

    Parameters
    ----------
    name
        what reports call it
    places
        the descriptions of the places by name, in the order in which ties go to the first
    slowdowns
        what multiplies run and requested times: one number a place, in their order or by name; or by (home,
        destination), where what is not named is 1. Kept as :class:`Slowdown` values

    Raises
    ------
    InputError
        where there is no place, numbers and places do not match, or a number is not > 0

    >>> from simmodel.platform import ClusterSpec
    >>> spec = BrokerSpec(places={"a": ClusterSpec.simple(4), "b": ClusterSpec.simple(8)}, slowdowns=[1, 1.5])
    >>> spec.slowdowns
    (Slowdown(place='a', factor=1.0, home=None), Slowdown(place='b', factor=1.5, home=None))
    """

    name: str = "broker"
    places: Mapping[str, SystemSpec] = attrs.field(converter=_by_name)
    slowdowns: Any = ()

    def __attrs_post_init__(self) -> None:
        if not self.places:
            raise InputError("places: at least one expected, found none")
        object.__setattr__(self, "slowdowns", tuple(read_slowdowns(list(self.places), self.slowdowns)))


def read_slowdowns(names: list[str], given: Slowdowns | Sequence[Slowdown]) -> list[Slowdown]:
    """Return what multiplies run and requested times at places of these names, however it is given.

    Raises
    ------
    InputError
        where numbers and places do not match, or one is not > 0

    >>> read_slowdowns(["a", "b"], {("a", "b"): 2})
    [Slowdown(place='b', factor=2.0, home='a')]
    """
    if given is None:
        return []
    if isinstance(given, Mapping):
        factors: Mapping[Any, float] = given
        found = [
            Slowdown(which[1], factor, which[0]) if isinstance(which, tuple) else Slowdown(which, factor)
            for which, factor in factors.items()
        ]
    else:
        found = [each for each in given if isinstance(each, Slowdown)]
        numbers = [each for each in given if not isinstance(each, Slowdown)]
        if numbers:
            if len(numbers) != len(names):
                raise InputError(f"{len(names)} slowdowns expected, one a place, found {len(numbers)}")
            found = [Slowdown(name, factor) for name, factor in zip(names, numbers, strict=True)]
    for each in found:
        for name in (each.home, each.place):
            if name is not None and name not in names:
                raise InputError(f"slowdowns of places expected ({', '.join(names)}), found one of {name!r}")
        if isinstance(each.factor, bool) or not (isinstance(each.factor, (int, float)) and 0 < each.factor < inf):
            raise InputError(f"a slowdown > 0 expected for {each.place}, found {each.factor!r}")
    return [attrs.evolve(each, factor=float(each.factor)) for each in found]
