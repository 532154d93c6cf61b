"""Shares by site: each site gets a fixed part of the jobs, without random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite, lcm
from typing import TYPE_CHECKING, Any, Self

from simmodel.foundation.entries import value_of
from simmodel.foundation.errors import InputError, unknown
from simmodel.policies.mapping import MappingPolicy
from simmodel.scheduling.protocol import Decision, Start, View, work_units

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob

__all__ = ["Shares"]

_AMOUNTS: dict[str, Callable[[Any], int]] = {
    "jobs": lambda job: 1,
    "processors": lambda job: int(job.processors),
    "work": lambda job: work_units(int(job.processors), job.limit),
}


class Shares(MappingPolicy):
    """Assign each job to the place with the largest deficit: its share of the total assigned, less its own part.

    The job itself counts in the first term: of two places with shares a and b, the first has got
    floor(n * a / (a + b) + 1/2) of n jobs. A place that could not run a job is behind, and catches up later. Places
    without a share get the jobs that no other can run. Ties go to the first place. Deficits are exact: whole numbers.

    Parameters
    ----------
    shares
        the shares of the places on any scale, in their order or by name; a place that is not named has none; default:
        their processors
    by
        the amount shared: ``"jobs"``, their ``"processors"``, or their ``"work"`` (requested processor seconds)

    Raises
    ------
    InputError
        a share is not a number >= 0, all are 0, or ``by`` is unknown

    >>> Shares({"CERN": 3, "BNL": 1}).name, Shares(by="work").name
    ('shares(CERN=3,BNL=1)', 'shares(by=work)')
    """

    decides = "systems"
    draws = False
    blind = True

    def __init__(self, shares: Sequence[float] | Mapping[str, float] | None = None, by: str = "jobs") -> None:
        named = shares if isinstance(shares, Mapping) else None
        values = list(named.values() if named is not None else shares or ())
        if shares is not None and not (all(map(_is_share, values)) and any(values)):
            raise InputError(f"must be numbers >= 0, not all 0, got {shares!r}", place="shares")
        if by not in _AMOUNTS:
            raise InputError(unknown("amount", by, _AMOUNTS).message, place="by")
        self.shares = shares
        self.by = by
        parts = [f"{name}={value:g}" for name, value in named.items()] if named else [f"{value:g}" for value in values]
        parts += [] if by == "jobs" else [f"by={by}"]
        self.name = f"shares({','.join(parts)})" if parts else "shares"
        self._got: dict[str, int] = {}
        self._known: tuple[Sequence[Any], list[int]] | None = None

    @classmethod
    def of(cls, *values: Any, by: str = "jobs", **named: Any) -> Self:
        """Return the policy for ``shares(3, 1)`` or ``shares(CERN=3, BNL=1)``."""
        given = [each for each in values if not (isinstance(each, str) and "=" in each)]
        for each in values:  # names that are no identifiers
            if each not in given:
                name, _, value = each.rpartition("=")
                named[name] = value_of(value)
        if given and named:
            raise InputError("must be given in the order of the places or by name, got both", place="shares")
        return cls(named or given or None, by)

    def forget(self) -> None:
        """Discard the places; the amounts assigned to them stay."""
        self._known = None

    def state(self) -> dict[str, int]:
        """Return how much each place has got."""
        return dict(self._got)

    def restore(self, values: Mapping[str, int]) -> None:
        """Continue with these amounts."""
        self._got = {name: int(value) for name, value in values.items()}

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign all waiting jobs."""
        places, got = view.places, self._got
        weights = self._weights(places)
        whole = sum(weights)
        for job in view.waiting:
            amount = _AMOUNTS[self.by](job)
            total = sum(got.values()) + amount
            deficits = [
                weight * total - whole * got.get(place.name, 0) for place, weight in zip(places, weights, strict=True)
            ]
            place = self._first_able(job, places, deficits, weights)
            if place is not None:
                got[place.name] = got.get(place.name, 0) + amount
                yield Start(job, place)
            elif not view.takes():
                return

    def _first_able(self, job: LiveJob, places: Sequence[Place], deficits: list[int], weights: list[int]) -> Any:
        """Return the first place with the largest deficit that can run a job, one with a share if possible."""
        best = max(range(len(places)), key=deficits.__getitem__)
        if weights[best] and places[best].can_run(job):
            return places[best]
        for i in sorted(range(len(places)), key=lambda i: (not weights[i], -deficits[i])):
            if places[i].can_run(job):
                return places[i]
        return None

    def _weights(self, places: Sequence[Place]) -> list[int]:
        """Return the shares of the places in their order, as whole numbers."""
        if self._known is None or self._known[0] is not places:
            self._known = places, _whole(self._given(places))
        return self._known[1]

    def _given(self, places: Sequence[Place]) -> list[float]:
        given, names = self.shares, [place.name for place in places]
        if given is None:
            return [place.capacity for place in places]
        if not isinstance(given, Mapping):
            if len(given) != len(places):
                raise InputError(f"must be {len(places)} numbers, one per place, got {len(given)}", place="shares")
            return list(given)
        for name in given:
            if name not in names:
                raise InputError(unknown("place", name, names).message, place="shares")
        return [given.get(name, 0) for name in names]


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and value >= 0


def _whole(shares: Sequence[float]) -> list[int]:
    """Return numbers in the same ratios as whole ones.

    >>> _whole([0.5, 2, 0.25])
    [2, 8, 1]
    """
    ratios = [share.as_integer_ratio() for share in shares]
    scale = lcm(*(below for _, below in ratios))
    return [above * (scale // below) for above, below in ratios]
