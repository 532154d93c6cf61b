"""The policies of the places below a broker: one for all, or by path (``"a"``, ``"inner"``, ``"inner.a"``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from simmodel.foundation.errors import InputError, unknown

if TYPE_CHECKING:
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.kinds import GivenPolicies, Kind

__all__ = ["PlacePolicies", "policies_of_places"]


class PlacePolicies(NamedTuple):
    """The policy of a place (``None``: its default), and those of the places below it."""

    own: PolicyLike | None = None
    below: GivenPolicies = None


def policies_of_places(given: GivenPolicies, kinds: Mapping[str, Kind]) -> dict[str, PlacePolicies]:
    """Return the policies of each place, from those that a user passed.

    Parameters
    ----------
    given
        ``None``; one policy for every place at any depth that is not a broker; or policies by path
    kinds
        the kind of each place by name

    Raises
    ------
    InputError
        if a path leads to no place

    >>> from simmodel.systems.kinds import kind_named
    >>> kinds = {"a": kind_named("cluster"), "inner": kind_named("broker")}
    >>> policies_of_places("fcfs", kinds)
    {'a': PlacePolicies(own='fcfs', below=None), 'inner': PlacePolicies(own=None, below='fcfs')}
    >>> policies_of_places({"a": "easy", "inner": "random", "inner.b": "sjf"}, kinds)["inner"]
    PlacePolicies(own='random', below={'b': 'sjf'})
    """
    if not isinstance(given, Mapping):
        return {
            name: PlacePolicies(None, given) if kind.homes else PlacePolicies(given) for name, kind in kinds.items()
        }
    own: dict[str, PolicyLike] = {}
    below: dict[str, dict[str, PolicyLike]] = {}
    for path, policy in given.items():
        if path in kinds:
            own[path] = policy
            continue
        above = [name for name, kind in kinds.items() if kind.homes and str(path).startswith(f"{name}.")]
        if not above:
            raise InputError(unknown("place", str(path), kinds).message, place="policies")
        name = max(above, key=len)
        below.setdefault(name, {})[str(path)[len(name) + 1 :]] = policy
    return {name: PlacePolicies(own.get(name), below.get(name)) for name in kinds}
