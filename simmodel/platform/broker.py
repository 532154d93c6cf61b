"""Specs of brokers: their places, and the slowdown factor of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Protocol

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown

__all__ = ["BrokerSpec", "Slowdown", "Slowdowns", "SystemSpec", "read_slowdowns"]

Slowdowns = Sequence[float] | Mapping[str, float] | Mapping[tuple[str | None, str], float] | None
"""Slowdown factors: one number per place, in the order of places or by name; or by (home, destination)."""


class SystemSpec(Protocol):
    """The spec of a system of any registered kind."""

    @property
    def name(self) -> str:
        """The name of the system in reports."""
        ...


@attrs.frozen(repr=False)
class Slowdown(Fields):
    """The factor on run and requested times of work at a place; with ``home``, only of work submitted there."""

    place: str
    factor: float
    home: str | None = None


def _by_name(given: Mapping[str, SystemSpec]) -> dict[str, SystemSpec]:
    return dict(given)


@attrs.frozen(kw_only=True, repr=False)
class BrokerSpec(Fields):
    """A broker over places of any kind.

    Parameters
    ----------
    name
        its name in reports
    places
        the specs of its places by name; ties between places go to the first
    slowdowns
        factors on run and requested times: one number per place, in the order of places or by name; or by (home,
        destination), by default 1. Stored as :class:`Slowdown` values

    Raises
    ------
    InputError
        there is no place, factors and places do not match, or a factor is not > 0

    >>> from simmodel.platform import ClusterSpec
    >>> spec = BrokerSpec(places={"a": ClusterSpec.simple(4), "b": ClusterSpec.simple(8)}, slowdowns=[1, 1.5])
    >>> spec.slowdowns
    (Slowdown(place='a', factor=1.0), Slowdown(place='b', factor=1.5))
    """

    name: str = "broker"
    places: Mapping[str, SystemSpec] = attrs.field(converter=_by_name)
    slowdowns: Any = ()

    def __attrs_post_init__(self) -> None:
        if not self.places:
            raise InputError("must not be empty", place="places")
        object.__setattr__(self, "slowdowns", tuple(read_slowdowns(list(self.places), self.slowdowns)))

    def models(self) -> Iterator[tuple[str, str]]:
        """Yield the place and the name of each model of custom processors below."""
        for name, spec in self.places.items():
            below: Callable[[], Iterable[tuple[str, str]]] = getattr(spec, "models", tuple)
            yield from ((f"places.{name}.{place}", model) for place, model in below())


def read_slowdowns(names: list[str], given: Slowdowns | Sequence[Slowdown]) -> list[Slowdown]:
    """Return the slowdown factors of the places with these names, from any accepted form.

    Raises
    ------
    InputError
        factors and places do not match, or a factor is not > 0

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
                raise InputError(
                    f"must have {len(names)} numbers, one per place, got {len(numbers)}", place="slowdowns"
                )
            found = [Slowdown(name, factor) for name, factor in zip(names, numbers, strict=True)]
    for each in found:
        for name in (each.home, each.place):
            if name is not None and name not in names:
                raise InputError(unknown("place", str(name), names).message, place="slowdowns")
        if isinstance(each.factor, bool) or not (isinstance(each.factor, (int, float)) and 0 < each.factor < inf):
            raise InputError(f"must be a finite number > 0, got {each.factor!r}", place=f"slowdowns[{each.place!r}]")
    return [attrs.evolve(each, factor=float(each.factor)) for each in found]
