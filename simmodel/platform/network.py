"""Specs of networks: links, routes, and the model by which transfers share bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, isnan
from typing import Any

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.links import LinkSpec, duplex
from simmodel.platform.models import MODELS as RULES, model_text
from simmodel.platform.topology import Topology, given_topology

__all__ = ["MODELS", "LinkSpec", "NetworkSpec", "RouteSpec", "SharingModel", "duplex"]


def _names(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise InputError(f"must be a list of links, got {value!r}", place="links")
    return tuple(value)


@attrs.frozen(kw_only=True, repr=False)
class RouteSpec(Fields):
    """The links of the route from one place to another; ``symmetrical``: also of the way back, in reverse order.

    >>> RouteSpec(source="CERN", destination="BNL", links=["lhcone", "esnet"]).links
    ('lhcone', 'esnet')
    """

    source: str
    destination: str
    links: tuple[str, ...] = attrs.field(converter=_names)
    symmetrical: bool = False


def _positive(owner: SharingModel, field: attrs.Attribute[float], value: float) -> None:
    if isnan(value) or value <= 0:
        raise InputError(f"must be > 0, got {value!r}", place=f"model {owner.name}, {field.name}")


@attrs.frozen(kw_only=True, repr=False)
class SharingModel(Fields):
    """A model of how transfers share bandwidth: max-min fairness with corrections.

    A transfer waits ``latency_factor`` * latency of its route; then it proceeds at ``bandwidth_factor`` * its rate. The
    rates are max-min fair with weight 1 / (latency, if ``by_latency``, + sum of ``weight_s`` / bandwidth over the
    links), or 1 if that sum is zero, and each is at most ``tcp_gamma`` / (2 * latency).
    ``docs/reference/networks.md`` compares the models of :data:`MODELS` with SimGrid's.

    Parameters
    ----------
    bandwidth_factor
        payload as a share of the rate
    latency_factor
        factor on the latency, for slow start and similar effects
    by_latency
        whether routes of higher latency get a smaller share
    weight_s
        bytes; see above
    tcp_gamma
        maximum TCP window in bytes
    crosstraffic
        whether transfers take 5 % of their rate on the way back, unless the network says otherwise
    caps_payload
        whether the ``rate_cap`` of a transfer limits its payload; otherwise it limits the bandwidth that it takes
    weight_without_latency
        the weight of routes without latency, if it differs
    rule, options
        instead of max-min fairness: a class derived from :class:`~simmodel.resources.network.sharing_rule.SharingRule`
        that says the rates, as the class itself, a name (``simmodel list resources``) or ``module:Class``; and options
        for that class

    Source: P. Velho, L. Schnorr, H. Casanova, A. Legrand, "On the validity of flow-level TCP network models for grid
    and cloud simulations", ACM TOMACS 23(4), 2013.

    >>> MODELS["lv08"].bandwidth_factor, MODELS["lv08"].latency_factor
    (0.97, 13.01)
    """

    name: str
    bandwidth_factor: float = attrs.field(default=1.0, validator=_positive)
    latency_factor: float = attrs.field(default=1.0, validator=_positive)
    by_latency: bool = False
    weight_s: float = 0.0
    tcp_gamma: float = attrs.field(default=inf, validator=_positive)
    crosstraffic: bool = False
    caps_payload: bool = False
    weight_without_latency: float | None = None
    rule: str | None = attrs.field(default=None, converter=attrs.converters.optional(model_text))
    options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)

    def weight(self, latency: float, bandwidths: Iterable[float]) -> float:
        """Return the weight of a route from its latency (s) and the bandwidths of its links (bytes/s).

        >>> MODELS["cm02"].weight(0.5, [100.0])
        2.0
        """
        if not latency and self.weight_without_latency is not None:
            return self.weight_without_latency
        penalty = latency if self.by_latency else 0.0
        if self.weight_s:
            penalty += sum(self.weight_s / bandwidth for bandwidth in bandwidths)
        # Below this limit, shares would overflow.
        return 1.0 / penalty if penalty > 1e-150 else 1.0

    def cap(self, latency: float) -> float:
        """Return the maximum rate of a transfer on a route of this latency (s), in bytes/s.

        >>> MODELS["lv08"].cap(0.5)
        4194304.0
        """
        return self.tcp_gamma / (2 * latency) if latency > 0 else inf


_WINDOW = 4194304.0  # bytes, SimGrid's default
_LV08: dict[str, Any] = {
    "bandwidth_factor": 0.97,
    "latency_factor": 13.01,
    "by_latency": True,
    "weight_s": 20537.0,
    "tcp_gamma": _WINDOW,
}
_DEFAULTS: dict[str, Any] = {"crosstraffic": True, "caps_payload": True, "weight_without_latency": 1.0}

MODELS: Mapping[str, SharingModel] = {
    model.name: model
    for model in (
        SharingModel(name="maxmin"),
        SharingModel(name="cm02", by_latency=True),
        SharingModel(name="lv08", **_LV08),
        SharingModel(name="simgrid", **_LV08, **_DEFAULTS),
        SharingModel(name="simgrid-cm02", by_latency=True, tcp_gamma=_WINDOW, **_DEFAULTS),
    )
}
"""The models by name: plain max-min fairness; the equations of SimGrid's CM02 (without its TCP window) and LV08;
SimGrid with its defaults, which are LV08's, and with its CM02."""


def model_named(value: str | type | SharingModel) -> SharingModel:
    """Return a model by its name in :data:`MODELS`, or without corrections by its rule; a model is returned as it is.

    >>> model_named("equal-split").rule
    'equal-split'
    """
    if isinstance(value, SharingModel):
        return value
    if isinstance(value, type) or (value not in MODELS and (value in RULES or ":" in value)):
        return SharingModel(name=model_text(value), rule=value)
    if value not in MODELS:
        raise unknown("model", str(value), MODELS)
    return MODELS[value]


def _link_specs(value: Iterable[LinkSpec | Mapping[str, Any]]) -> tuple[LinkSpec, ...]:
    return tuple(LinkSpec(**link) if isinstance(link, Mapping) else link for link in value)


def _route_specs(value: Iterable[RouteSpec]) -> tuple[RouteSpec, ...]:
    return tuple(value)


def _topology(value: str | Topology | None) -> Topology | None:
    return given_topology(value, "topology")


@attrs.frozen(kw_only=True, repr=False)
class NetworkSpec(Fields):
    """A network: links and routes, or a topology, and the model by which transfers share links.

    Parameters
    ----------
    links
        the links, with unique names
    routes
        a routing table; if empty, routes are shortest paths by latency over the places that links join
    topology
        instead of both: a topology such as :class:`~simmodel.platform.Torus`, a text such as
        ``"torus:5,4,3 bandwidth=1GBps latency=1us"``, or the path of a platform of SimGrid (``.xml``)
    model
        ``"maxmin"``, ``"cm02"``, ``"lv08"``, ``"simgrid"``, ``"simgrid-cm02"``, a :class:`SharingModel`, or a rule of
        one: a class, a name or ``module:Class``
    crosstraffic
        whether a transfer also takes 5 % of its rate on the way back, for its acknowledgements; default: by the model

    Raises
    ------
    InputError
        a name is duplicate or unknown

    >>> spec = NetworkSpec(links=[LinkSpec(name="lan", bandwidth="1GBps")], model="lv08")
    >>> spec.model.latency_factor
    13.01
    >>> NetworkSpec(links=[LinkSpec(name="lan", bandwidth=1), LinkSpec(name="lan", bandwidth=2)])
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: links: duplicate link 'lan'
    """

    links: tuple[LinkSpec, ...] = attrs.field(default=(), converter=_link_specs)
    routes: tuple[RouteSpec, ...] = attrs.field(default=(), converter=_route_specs)
    topology: Topology | None = attrs.field(default=None, converter=_topology)
    model: SharingModel = attrs.field(default=MODELS["maxmin"], converter=model_named)
    crosstraffic: bool | None = None

    def __attrs_post_init__(self) -> None:
        if self.crosstraffic is None:
            object.__setattr__(self, "crosstraffic", self.model.crosstraffic)
        if self.crosstraffic and self.model.rule is not None:
            raise InputError(f"must be false: rule {self.model.rule} has no crosstraffic", place="crosstraffic")
        if self.topology is not None and (self.links or self.routes):
            raise InputError("must be empty beside a topology", place="links" if self.links else "routes")
        known: set[str] = set()
        for link in self.links:
            if link.name in known:
                raise InputError(f"duplicate link {link.name!r}", place="links")
            known.add(link.name)
        for link in self.links:
            if link.reverse is not None and link.reverse not in known:
                raise InputError(f"unknown link {link.reverse!r}", place=f"link {link.name}, reverse")
        given: set[tuple[str, str]] = set()
        for route in self.routes:
            where = f"route {route.source} to {route.destination}"
            check_route(route.links, known, where)
            ways = [(route.source, route.destination)]
            if route.symmetrical:
                ways.append((route.destination, route.source))
            for way in ways:
                if way in given:
                    raise InputError(f"duplicate route from {way[0]!r} to {way[1]!r}", place="routes")
                given.add(way)

    def models(self) -> Iterator[tuple[str, str]]:
        """Yield the place and the name of each model of a link, and of the rule of its sharing model."""
        for i, link in enumerate(self.links):
            if link.model is not None:
                yield f"links[{i}].model", link.model
        if self.model.rule is not None:
            yield "model.rule", self.model.rule


def check_route(links: Sequence[str], known: Iterable[str], where: str) -> None:
    """Raise an :class:`InputError` if a route is empty, or has an unknown or duplicate link.

    >>> check_route(["lan", "wlan"], {"lan"}, "route a to b")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: route a to b: unknown link 'wlan'
    """
    if isinstance(links, str):
        raise InputError(f"must be a list of links, got {links!r}", place=where)
    if not links:
        raise InputError("must have at least one link", place=where)
    seen: set[str] = set()
    for name in links:
        if name not in known:
            raise InputError(f"unknown link {name!r}", place=where)
        if name in seen:
            raise InputError(f"duplicate link {name!r}", place=where)
        seen.add(name)
