"""Specs of links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import parse_quantity
from simmodel.platform.models import model_text

__all__ = ["LinkSpec", "cables", "check_when_down", "duplex"]

SHARINGS = ("shared", "fatpipe")
WHEN_DOWN = ("wait", "fail")


def _as_given(value: str | float) -> float:
    """Return a quantity unparsed; it is parsed once the name is known, for the error message."""
    return value  # type: ignore[return-value]


def _pairs(value: Iterable[Sequence[float | str]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((at, bandwidth) for at, bandwidth in value)


def _places(value: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


@attrs.frozen(kw_only=True, repr=False)
class LinkSpec(Fields):
    """A link with a bandwidth and a latency, which transfers share.

    Parameters
    ----------
    name
        its name, unique in the network
    bandwidth
        bytes/s above zero, or a text such as ``"40Gbps"``
    latency
        seconds, or a text such as ``"11.5ms"``
    sharing
        ``"shared"``: the bandwidth limits the sum of all rates; ``"fatpipe"``: it limits each rate
    reverse
        the link for the other direction, if not this one (see :func:`duplex`)
    between
        the two places that it joins; routes are derived from them if there is no routing table
    one_way
        whether it leads only from the first of these places to the second
    profile
        pairs (time in s, bandwidth in bytes/s): the bandwidth from that time on; 0 means that the link is down
    repeat
        period of the profile in seconds; ``None``: it does not repeat
    when_down
        ``"wait"``: transfers over it stand still while it is down; ``"fail"``: they fail, unless they say otherwise
    model, options
        the class of a custom link, derived from :class:`~simmodel.resources.network.links.Link`: the class itself, a
        name (``simmodel list resources``) or ``module:Class``; and options for that class

    Raises
    ------
    InputError
        a value is invalid

    >>> LinkSpec(name="lan", bandwidth="10Gbps", latency="50us").bandwidth
    1250000000.0
    >>> LinkSpec(name="wan", bandwidth="0GBps")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: link wan, bandwidth: must be > 0, got '0GBps'
    """

    name: str
    bandwidth: float = attrs.field(converter=_as_given)
    latency: float = attrs.field(default=0.0, converter=_as_given)
    sharing: str = "shared"
    reverse: str | None = None
    between: tuple[str, ...] | None = attrs.field(default=None, converter=_places)
    one_way: bool = False
    profile: tuple[tuple[float, float], ...] = attrs.field(default=(), converter=_pairs)
    repeat: float | None = attrs.field(default=None)
    when_down: str = "wait"
    model: str | None = attrs.field(default=None, converter=attrs.converters.optional(model_text))
    options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)

    def __attrs_post_init__(self) -> None:
        where = f"link {self.name}"
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"must be the name of a link, got {self.name!r}", place="name")
        bandwidth = parse_quantity(self.bandwidth, "B/s", place=f"{where}, bandwidth")
        if bandwidth <= 0:
            raise InputError(f"must be > 0, got {self.bandwidth!r}", place=f"{where}, bandwidth")
        object.__setattr__(self, "bandwidth", bandwidth)
        object.__setattr__(self, "latency", parse_quantity(self.latency, "s", place=f"{where}, latency"))
        if self.sharing not in SHARINGS:
            raise InputError(f"must be 'shared' or 'fatpipe', got {self.sharing!r}", place=f"{where}, sharing")
        check_when_down(self.when_down, f"{where}, when_down")
        if self.between is not None and len(self.between) != 2:
            raise InputError(f"must be two places, got {self.between!r}", place=f"{where}, between")
        profile = f"{where}, profile"
        points = tuple(
            (parse_quantity(at, "s", place=profile), parse_quantity(value, "B/s", place=profile))
            for at, value in self.profile
        )
        object.__setattr__(self, "profile", points)
        times = [at for at, _ in points]
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise InputError(f"must have ascending times, got {times}", place=profile)
        if self.repeat is not None:
            repeat = f"{where}, repeat"
            object.__setattr__(self, "repeat", parse_quantity(self.repeat, "s", place=repeat))
            if not points or self.repeat <= times[-1]:
                raise InputError(f"must be > the last time of the profile, got {self.repeat}", place=repeat)

    def copies(self) -> Callable[[str, str | None], LinkSpec]:
        """Return a function that copies it with another name and reverse link, without checking it again.

        >>> LinkSpec(name="x", bandwidth=1.0).copies()("y", None).name
        'y'
        """
        values = tuple((key, value) for key, value in attrs.asdict(self, recurse=False).items() if key != "name")
        put = object.__setattr__

        def copy(name: str, reverse: str | None) -> LinkSpec:
            made = object.__new__(LinkSpec)
            for key, value in values:
                put(made, key, value)
            put(made, "name", name)
            put(made, "reverse", reverse)
            return made

        return copy


def check_when_down(value: str, place: str) -> None:
    """Raise an :class:`InputError` unless a value says how transfers react to a link that is down.

    >>> check_when_down("stop", "link lan, when_down")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: link lan, when_down: must be 'wait' or 'fail', got 'stop'
    """
    if value not in WHEN_DOWN:
        raise InputError(f"must be 'wait' or 'fail', got {value!r}", place=place)


def cables(links: Iterable[LinkSpec]) -> dict[str, tuple[str, ...]]:
    """Return the links that fail together, each with its reverse, by the name of the first.

    >>> cables([*duplex("wan", bandwidth=1), LinkSpec(name="lan", bandwidth=1)])
    {'wan:up': ('wan:up', 'wan:down'), 'lan': ('lan',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for link in links:
        if link.name not in taken:
            both = (link.name,) if link.reverse in (None, link.name) else (link.name, str(link.reverse))
            found[link.name] = both
            taken.update(both)
    return found


def duplex(
    name: str, *, bandwidth: str | float, latency: str | float = 0.0, **options: Any
) -> tuple[LinkSpec, LinkSpec]:
    """Return the two links of a split-duplex link, ``name:up`` and ``name:down``, each the other's reverse.

    ``options`` apply to both; with ``between=(a, b)`` the first leads from a to b and the second back.

    >>> [link.name for link in duplex("wan", bandwidth="40Gbps", latency="10ms")]
    ['wan:up', 'wan:down']
    """
    ends = options.pop("between", None)
    up, down = f"{name}:up", f"{name}:down"
    forth: dict[str, Any] = {"between": ends, "one_way": True} if ends is not None else {}
    back: dict[str, Any] = {"between": tuple(ends)[::-1], "one_way": True} if ends is not None else {}
    return (
        LinkSpec(name=up, bandwidth=bandwidth, latency=latency, reverse=down, **forth, **options),
        LinkSpec(name=down, bandwidth=bandwidth, latency=latency, reverse=up, **back, **options),
    )
