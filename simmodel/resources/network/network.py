"""Networks: transfers that share the bandwidth of links.

A transfer first waits for the latency of its route, without using bandwidth; then it has a rate by weighted max-min
fairness. Rates change only when a transfer starts or ends or a link changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from simmodel.environment import Environment
from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import parse_quantity
from simmodel.platform.links import check_when_down
from simmodel.platform.network import LinkSpec, NetworkSpec, RouteSpec, SharingModel, check_route
from simmodel.platform.topology import Topology, Valiant
from simmodel.resources.alarm import Alarm
from simmodel.resources.network.changing import ModelledLinks
from simmodel.resources.network.flow import Flow
from simmodel.resources.network.links import Link, Route, make_link
from simmodel.resources.network.routing import MadeLinks, Router, TopologyRouter
from simmodel.resources.network.sharing_rule import RuledSharing, SharingRule, make_rule
from simmodel.resources.network.transfer import Delivery, LinkFailed, Transfer

if TYPE_CHECKING:
    import networkx as nx

_Node = TypeVar("_Node", bound=Hashable)

__all__ = ["Delivery", "Link", "LinkFailed", "Network", "Transfer"]


class Network(ModelledLinks):
    """A network of links whose bandwidth is shared by transfers.

    Parameters
    ----------
    env
        the environment
    links
        the links, or a complete :class:`NetworkSpec`
    model
        as in :class:`NetworkSpec`
    crosstraffic
        whether a transfer takes 5 % of its rate on the way back: on the ``reverse`` links of its links, or on the same
        links; default: by the model
    routes
        a routing table: :class:`RouteSpec` values, or a mapping of (source, destination) to names of links
    graph
        a ``networkx`` graph whose edges have the name of their link as ``link``; default: built from the ends
        (``between``) of the links. Without a table, routes are its shortest paths by latency; ties go to the fewest
        links, then to the order of the links
    topology
        instead of links, routes and graph: as in :class:`NetworkSpec`

    Raises
    ------
    InputError
        an invalid link or route

    Its hooks for observers are ``transfer_started(transfer)``, ``transfer_ended(transfer)``, ``link_changed(link)``
    (bandwidth, latency or down) and ``link_load_changed(link)``.

    >>> env = Environment()
    >>> network = Network(env, [LinkSpec(name="wan", bandwidth="1Gbps", latency="10ms")])
    >>> both = network.transfer("1GB", route=["wan"]), network.transfer(5e8, route=["wan"])
    >>> env.run(both[0] & both[1]).todict()[both[1]]
    Delivery(start=0, end=8.01, bytes=500000000.0)
    >>> both[0].value.end
    12.01
    """

    kind = "transfer"
    unit = "bytes"
    carrier = "link"

    def __init__(
        self,
        env: Environment,
        links: Iterable[LinkSpec | Mapping[str, Any]] | NetworkSpec = (),
        *,
        model: str | type[SharingRule] | SharingModel = "maxmin",
        crosstraffic: bool | None = None,
        routes: Iterable[RouteSpec] | Mapping[tuple[str, str], Sequence[str]] = (),
        graph: nx.Graph[_Node] | None = None,
        topology: Topology | str | None = None,
    ) -> None:
        if not isinstance(env, Environment):
            raise InputError(f"env: must be a simmodel Environment, got {type(env).__module__}.{type(env).__name__}")
        if isinstance(links, NetworkSpec):
            spec = links
        else:
            if isinstance(routes, Mapping):
                routes = [RouteSpec(source=a, destination=b, links=way) for (a, b), way in routes.items()]
            spec = NetworkSpec(links=links, routes=routes, topology=topology, model=model, crosstraffic=crosstraffic)
        self.spec = spec
        made: dict[str, Link] = {}
        self._drawn: TopologyRouter | None = None  # finds another route for each flow
        self._router: Router | TopologyRouter
        if spec.topology is None:
            made = {link.name: make_link(link) for link in spec.links}
            self._router = Router(spec, graph)
        elif graph is None:
            made = MadeLinks(spec.topology, self._follow)
            self._router = found = TopologyRouter(spec.topology)
            self._drawn = found if isinstance(spec.topology, Valiant) else None
        else:
            raise InputError("must be None beside a topology", place="graph")
        self._by_links: dict[object, Route] = {}
        self._by_ends: dict[object, Route] = {}
        # Transfers in their latency, by its end.
        self._lags: list[tuple[float, int, Transfer]] = []
        self._lag_alarm = Alarm(env, self._lag_over)
        super().__init__(env, made, spec.model)
        self.rule = None if spec.model.rule is None else make_rule(spec.model)
        if self.rule is not None:
            self._sharing = RuledSharing(self.rule)

    # ------------------------------------------------------------------ transfers

    def transfer(
        self,
        size: float | str,
        *,
        route: Sequence[str] | None = None,
        source: Hashable = None,
        destination: Hashable = None,
        rate_cap: float | str | None = None,
        weight: float = 1.0,
        lag: float | None = None,
        when_down: str | None = None,
    ) -> Transfer:
        """Start to move bytes and return the event of their arrival.

        Parameters
        ----------
        size
            bytes, or a text such as ``"64GB"``
        route
            the names of the links; default: the route from ``source`` to ``destination``, which is empty and takes no
            time within one place
        rate_cap
            the upper bound of the bandwidth that it takes (by model, of its payload), bytes/s
        weight
            > 0: its share relative to others, multiplied by the model's weight of the route
        lag
            seconds until it takes bandwidth; default: the latency of the route, by the model
        when_down
            ``"wait"``: it stands still while a link of its route is down; ``"fail"``: it fails, and waiting processes
            get :class:`LinkFailed`; default: ``"fail"`` if a link of its route says so

        Raises
        ------
        InputError
            an invalid argument, or no route

        >>> env = Environment()
        >>> network = Network(env, [LinkSpec(name="wan", bandwidth="100MBps", between=("CERN", "BNL"))])
        >>> env.run(network.transfer("1GB", source="CERN", destination="BNL", rate_cap="40MBps"))
        Delivery(start=0, end=25.0, bytes=1000000000.0)
        """
        if type(size) is not float or not 0.0 <= size < inf:
            size = parse_quantity(size, "B", place="size of a transfer")
        if route is not None:
            way = self._by_links.get(route) if type(route) is tuple else None
            if way is None:
                way = self._route_over(route)
        else:
            way = self._by_ends.get((source, destination))
            if way is None:
                way = self._route_between(source, destination, begins=True)
        cap = inf
        if rate_cap is not None:
            cap = parse_quantity(rate_cap, "B/s", place="rate_cap of a transfer")
            if cap <= 0:
                raise InputError(f"must be > 0, got {rate_cap!r}", place="rate_cap of a transfer")
            if self.model.caps_payload:
                cap /= self.model.bandwidth_factor
        if weight != 1.0 and not 0 < weight < inf:
            raise InputError(f"must be finite and > 0, got {weight!r}", place="weight of a transfer")
        fails = way.fails
        if when_down is not None:
            check_when_down(when_down, "when_down of a transfer")
            fails = when_down == "fail"
        transfer = Transfer(self, size, weight, way, cap, way.wait if lag is None else lag, fails, source, destination)
        return self._begin(transfer)

    def carry(self, size: float, way: Route, source: Hashable, destination: Hashable) -> Transfer:
        """Start to move bytes over a route from :meth:`way`, as :meth:`transfer` does, for a system that asks often."""
        return self._begin(Transfer(self, size, 1.0, way, inf, way.wait, way.fails, source, destination))

    def carry_on(self, size: float, left: float, source: Hashable, destination: Hashable, lag: float) -> Transfer:
        """Continue a transfer of a snapshot, of which ``left`` bytes and ``lag`` seconds of latency remain."""
        way = self.way(source, destination)
        transfer = Transfer(self, size, 1.0, way, inf, lag, way.fails, source, destination)
        transfer.kept = left
        return self._begin(transfer)

    @property
    def alarms(self) -> tuple[Alarm, Alarm]:
        """The alarms that end the transfers due next, and the latencies due next."""
        return self._alarm, self._lag_alarm

    def _begin(self, transfer: Transfer) -> Transfer:
        way = transfer.way
        for link in way.changing:
            self._look_up_profile(link)
        self._numbers = transfer.number = self._numbers + 1
        self._under_way[transfer] = None
        if self._on_start:
            for call in self._on_start:
                call(transfer)
            if transfer.status != "waiting":
                return transfer
        if transfer.wait or transfer.fails or not transfer.kept or not way.links:
            self.go_on(transfer)
        else:
            bundle = way.plain
            if bundle is None or transfer.rate_cap < inf or transfer.weight != 1.0:
                bundle = self._bundle(transfer)
            self._enter(transfer, bundle)
            if not self._ending:
                self._settle_at_end()
        return transfer

    def go_on(self, flow: Flow) -> None:
        """Start a transfer, or continue one that was paused: the rest of its latency, then its bytes."""
        transfer: Transfer = flow  # type: ignore[assignment]
        wait = transfer.wait
        if transfer.fails and (dead := transfer.way.dead()) is not None:
            transfer.break_off(dead)
        elif wait > 0:
            transfer.status = "waiting"
            transfer.wait = at = self.env._now + wait
            self._numbers = number = self._numbers + 1
            transfer.wait_entry = entry = (at, number, transfer)
            if transfer.fails:
                self._watch(transfer.way.changing)
            lags = self._lags
            heappush(lags, entry)
            if lags[0] is entry:
                self._lag_alarm.set(at)
        else:
            self._move(transfer)
            if not self._ending:
                self._settle_at_end()

    def _move(self, transfer: Transfer) -> None:
        """Let a transfer take bandwidth, after its latency."""
        route = transfer.way
        if not transfer.kept or not route.links:
            transfer.finish()
            return
        bundle = route.plain
        if bundle is None or transfer.rate_cap < inf or transfer.weight != 1.0:
            bundle = self._bundle(transfer)
        self._enter(transfer, bundle)

    def _lag_over(self) -> None:
        now = self.env._now
        lags = self._lags
        while lags and lags[0][0] <= now:
            entry = heappop(lags)
            transfer = entry[2]
            if transfer.wait_entry is entry:
                transfer.wait_entry = None
                transfer.wait = 0.0
                self._move(transfer)
                if transfer.fails:
                    self._unwatch(transfer.way.changing)
        self._set_lag_alarm()
        self._settle_soon()

    def _set_lag_alarm(self) -> None:
        lags = self._lags
        while lags and lags[0][2].wait_entry is not lags[0]:
            heappop(lags)
        self._lag_alarm.set(lags[0][0] if lags else inf)

    def take_out(self, flow: Flow) -> None:
        """Stop a transfer in any phase, including its latency, keeping its remaining bytes."""
        transfer: Transfer = flow  # type: ignore[assignment]
        if transfer.wait_entry is not None:
            transfer.wait_entry = None
            transfer.wait -= self.env._now
            self._set_lag_alarm()
            if transfer.fails:
                self._unwatch(transfer.way.changing)
        super().take_out(flow)

    def _why_stuck(self, flow: Flow) -> str:
        transfer: Transfer = flow  # type: ignore[assignment]
        down = [link.name for link in transfer.way.links if not link.up]
        held = [link.name for link in transfer.way.links if link.up and not link.capacity]
        why = f"; down: {', '.join(down)}" if down else ""
        return why + (f"; jobs hold all of {' and '.join(held)}" if held else "")

    # ------------------------------------------------------------------ routes

    def route(self, source: Hashable, destination: Hashable) -> tuple[str, ...]:
        """Return the names of the links from one place to another; raises :class:`InputError` if there is no route.

        >>> links = [LinkSpec(name="x", bandwidth=1, latency=1, between=("a", "b")),
        ...          LinkSpec(name="y", bandwidth=1, latency=1, between=("b", "c")),
        ...          LinkSpec(name="z", bandwidth=1, latency=3, between=("a", "c"))]
        >>> Network(Environment(), links).route("a", "c")
        ('x', 'y')
        """
        return self._router.route(source, destination)

    def way(self, source: Hashable, destination: Hashable) -> Route:
        """Return the live route from one place to another; raises :class:`InputError` if there is no route."""
        return self._by_ends.get((source, destination)) or self._route_between(source, destination)

    def seconds(self, size: float, source: Hashable, destination: Hashable) -> float:
        """Return how long bytes take from one place to another on otherwise idle links; infinity if one is down.

        Raises :class:`InputError` if there is no route.

        >>> network = Network(Environment(), [LinkSpec(name="wan", bandwidth=100.0, latency=2, between=("a", "b"))])
        >>> network.seconds(1000.0, "b", "a")
        12.0
        """
        wait, rate = self.idle(source, destination)
        return wait + size / rate if rate > 0 else inf if size else wait

    def idle(self, source: Hashable, destination: Hashable) -> tuple[float, float]:
        """Return the wait (s) and the rate (bytes/s) of a transfer on otherwise idle links; 0 bytes/s if one is down.

        Raises :class:`InputError` if there is no route. Both hold until a link changes; if the network is ``restless``,
        for this instant alone.

        >>> network = Network(Environment(), [LinkSpec(name="wan", bandwidth=100.0, latency=2, between=("a", "b"))])
        >>> network.idle("b", "a")
        (2.0, 100.0)
        """
        way = self.way(source, destination)
        if not way.links:
            return way.wait, inf
        probe = Transfer(self, 0.0, 1.0, way, inf, way.wait, False, source, destination)
        return way.wait, way.alone(probe, self.env._now)

    def _route_between(self, source: Hashable, destination: Hashable, begins: bool = False) -> Route:
        if source is None or destination is None:
            raise InputError(
                f"missing: needs a route, or source and destination, got {source!r} and {destination!r}",
                place="route of a transfer",
            )
        forth = self._router.route(source, destination)
        back: Sequence[str] | None = None
        if self.spec.crosstraffic and forth:
            back = self._router.route_back(source, destination)
        way = self._make_route(forth, back)
        if self._drawn is None:
            self._by_ends[(source, destination)] = way
        elif begins:
            self._drawn.begin(source, destination)
        return way

    def _route_over(self, names: Sequence[str]) -> Route:
        if self.spec.topology is not None and not isinstance(names, str):
            for name in names:
                self.links[name]  # makes it
        check_route(names, self.links, "route of a transfer")
        return self._make_route(tuple(names), None)

    def _make_route(self, names: tuple[str, ...], back: Sequence[str] | None) -> Route:
        key: object = names if back is None else (names, tuple(back))
        way = self._by_links.get(key)
        if way is None:
            made = self.links
            links = made.along(names) if isinstance(made, MadeLinks) else [made[name] for name in names]
            reverse: list[Link] = []
            if self.spec.crosstraffic:
                if back is None:
                    back = [link.spec.reverse or link.name for link in reversed(links)]
                reverse = [self.links[name] for name in back]
            way = Route(links, reverse, self.model)
            for link in links:
                link.routes.append(way)
            self._by_links[key] = way
        return way

    def load(self, link: str | Link) -> float:
        """Return the sum of the rates over a link at this instant, in bytes/s.

        >>> network = Network(Environment(), [LinkSpec(name="wan", bandwidth=100.0)])
        >>> _ = network.transfer(1000, route=["wan"], rate_cap=30); network.load("wan")
        30.0
        """
        found = self._link(link)
        self.settle()
        self._sharing.tell()
        return sum((factor * user.demand * user.level for user, factor in found.users), 0.0)

    def under_way(self) -> Iterator[Transfer]:
        """Iterate over the transfers in flight, in the order of their starts."""
        return iter(self._under_way)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        transfers = counted(sum(1 for _ in self.under_way()), "transfer")
        return f"<Network: {counted(len(self.links), 'link')}, {transfers} in flight>"
