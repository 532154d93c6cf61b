"""Links that change during a run: bandwidth, latency, failures and profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf, nextafter
from typing import Any

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.units import parse_quantity
from simmodel.platform.network import SharingModel
from simmodel.resources.alarm import Alarm
from simmodel.resources.network.flow import KEPT, Bundle
from simmodel.resources.network.fluid import Fluid
from simmodel.resources.network.links import Link, Route, profile_at
from simmodel.resources.network.transfer import Transfer

__all__ = ["ChangingLinks", "ModelledLinks"]


class ChangingLinks(Fluid):
    """The changes of links at run time: the base class of :class:`~simmodel.resources.network.network.Network`.

    Parameters
    ----------
    env
        the environment
    links
        by name
    model
        how transfers share them
    """

    def __init__(self, env: Environment, links: dict[str, Link], model: SharingModel) -> None:
        self.links = links
        self.model = model
        self._on_link: tuple[Callable[..., object], ...] = ()
        self._listeners: list[Callable[[Link], object]] = []
        self._resting: list[tuple[Route, Callable[[], object], str]] = []  # who waits until a route is up
        self.restless = False  # whether links change by themselves, by a profile or a model
        self._turning: tuple[Callable[[Link], object], ...] = ()  # what tells links with a memory of their loads
        super().__init__(env, model.bandwidth_factor)
        for link in links.values():
            self._follow(link)

    def _follow(self, link: Link) -> None:
        """Give a link its alarm if it changes by itself, and hear of its load if its model does."""
        if link.like.profile:
            link.clock = self.env
        self.restless = self.restless or bool(link.like.profile) or type(link) is not Link
        if link.like.profile or link.varies or link.turning:
            link.alarm = Alarm(self.env, lambda: self._follow_profile(link))
        if link.turning and not self._turning:
            self._turning = (self._turn,)
            self._find_hooks()

    def _find_hooks(self) -> None:
        super()._find_hooks()
        self._on_load += self._turning
        self._on_link = self.env.hooks("link_changed")

    def on_link_change(self, listener: Callable[[Link], object]) -> None:
        """Call ``listener(link)`` whenever the bandwidth or the latency of a link changes, or it goes down or up."""
        self._listeners.append(listener)

    def off_link_change(self, listener: Callable[[Link], object]) -> None:
        """Call a listener no longer."""
        self._listeners.remove(listener)

    def _tell_change(self, link: Link) -> None:
        for listener in self._listeners:
            listener(link)
        for call in self._on_link:
            call(link)

    def when_up(self, way: Route, call: Callable[[], object], what: str) -> None:
        """Call once, in an event of its own, when all links of a route are up; ``what``: the waiter, for reports."""
        self._resting.append((way, call, what))
        self._watch(way.changing)
        self._wake_resting()

    def _wake_resting(self) -> None:
        ready = [each for each in self._resting if each[0].dead() is None]
        if ready:
            self._resting = [each for each in self._resting if each not in ready]
            for way, call, _ in ready:
                self._unwatch(way.changing)
                self.env.call_at(self.env._now, call)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each transfer that has not ended, and for whatever waits until a route is up."""
        yield from super().waiting_report()
        for way, _, what in self._resting:
            down = ", ".join(link.name for link in way.links if not link.up)
            yield f"{what} wait to be sent again; down: {down}"

    def abandon(self) -> None:
        """Cancel all transfers, and the calls that wait until a route is up, without notifying those who wait."""
        super().abandon()
        for way, _, _ in self._resting:
            self._unwatch(way.changing)
        self._resting.clear()

    # ------------------------------------------------------------------ links change

    def _link(self, link: str | Link) -> Link:
        if isinstance(link, str):
            try:
                return self.links[link]
            except KeyError:
                raise unknown("link", link, self.links) from None
        if self.links.get(link.name) is not link:
            raise InputError(f"must be a link of this network, got {link!r}", place="link")
        return link

    def _active_over(self, link: Link) -> list[Transfer]:
        """Return the transfers over a link that move or are in their latency."""
        transfers = (flow for flow in self._under_way if isinstance(flow, Transfer) and flow.status != "paused")
        return [transfer for transfer in transfers if link in transfer.way.links]

    def set_bandwidth(self, link: str | Link, bandwidth: float | str) -> None:
        """Change the bandwidth of a link from now on, or until the next point of its profile.

        Parameters
        ----------
        bandwidth
            bytes/s, > 0; :meth:`fail` takes a link down

        >>> from simmodel import Network
        >>> from simmodel.platform import LinkSpec
        >>> env = Environment()
        >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0)])
        >>> transfer = network.transfer(1000, route=["wan"])
        >>> env.run(until=5); network.set_bandwidth("wan", 250.0); env.run(); env.now
        7.0
        """
        found = self._link(link)
        value = parse_quantity(bandwidth, "B/s", place=f"link {found.name}, bandwidth")
        if value <= 0:
            raise InputError(f"must be > 0, got {bandwidth!r}", place=f"link {found.name}, bandwidth")
        found.set_at = self.env._now
        self._change(found, value, found.down)

    def set_latency(self, link: str | Link, latency: float | str) -> None:
        """Change the latency of a link from now on; routes stay as they are.

        Transfers that have started keep the wait of their start; those that move get the weight and the cap that the
        model derives from the new latency.

        Parameters
        ----------
        latency
            seconds, >= 0

        >>> from simmodel import Network
        >>> from simmodel.platform import LinkSpec
        >>> env = Environment()
        >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0, latency=1.0)])
        >>> network.set_latency("wan", "3s"); env.run(network.transfer(1000, route=["wan"])).end
        13.0
        """
        found = self._link(link)
        value = parse_quantity(latency, "s", place=f"link {found.name}, latency")
        if value == found.latency:
            return
        # Caps and weights make the bundles: the transfers leave the old ones and enter new ones.
        regroup = self.model.by_latency or self.model.tcp_gamma < inf or any(way.modelled for way in found.routes)
        moving = [each for each in self._active_over(found) if regroup and each.status == "moving"]
        for transfer in moving:
            self.take_out(transfer)
        found.latency = value
        for way in found.routes:
            way.follow_latency()
            way.weigh()
            if regroup:
                way.bundles.clear()
                way.plain = None
        for transfer in moving:
            self.go_on(transfer)
        self._tell_change(found)

    def withhold(self, link: str | Link, rate: float) -> None:
        """Keep bytes/s of a link from the transfers, which share the rest, until the next call.

        >>> from simmodel import Network
        >>> from simmodel.platform import LinkSpec
        >>> env = Environment()
        >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0)])
        >>> transfer = network.transfer(1000, route=["wan"])
        >>> env.run(until=5); network.withhold("wan", 75.0); env.run(); env.now
        25.0
        """
        found = self._link(link)
        found.withheld = rate
        found.fit()
        self._capacity_changed(found, found.spec.sharing == "shared")

    def fail(self, link: str | Link) -> None:
        """Take a link down until :meth:`restore`: transfers over it stand still or fail, as their ``when_down`` says.

        >>> from simmodel import Network
        >>> from simmodel.platform import LinkSpec
        >>> env = Environment()
        >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0)])
        >>> transfer = network.transfer(1000, route=["wan"]); network.fail("wan")
        >>> env.run(until=5); network.restore("wan"); env.run(); env.now
        15.0
        """
        found = self._link(link)
        found.stopped = True
        self._change(found, found.followed, True)

    def restore(self, link: str | Link) -> None:
        """Bring a link back up, unless it has failed by chance."""
        found = self._link(link)
        found.stopped = False
        self._change(found, found.followed, found.failures > 0)

    def count_failed(self, link: str | Link, more: int) -> None:
        """Count the failures by chance that take a link down: 1 begins, or -1 is repaired."""
        found = self._link(link)
        found.failures += more
        self._change(found, found.followed, found.stopped or found.failures > 0)

    def _change(self, link: Link, bandwidth: float, down: bool) -> None:
        if bandwidth == link.followed and down == link.down:
            return
        reweigh = bandwidth > 0 and bandwidth != link.followed and self.model.weight_s
        link.followed = bandwidth
        link.down = down
        link.fit()
        self._capacity_changed(link, link.spec.sharing == "shared")
        if reweigh:
            for way in link.routes:
                way.weigh()
                for bundle in way.bundles.values():
                    self._rescale(bundle, way.scale)
        self._tell_change(link)
        if not link.up:
            for transfer in [each for each in self._active_over(link) if each.fails]:
                transfer.break_off(link)
        elif self._resting:
            self._wake_resting()

    # ------------------------------------------------------------------ profiles

    def _first_in(self, bundle: Bundle) -> None:
        self._watch(bundle.owner.changing)

    def _last_out(self, bundle: Bundle) -> None:
        route: Route = bundle.owner
        if bundle is not route.plain:
            # The number of different caps and weights is unbounded: drop empty bundles.
            del route.bundles[bundle.key]
        self._unwatch(route.changing)

    def _watch(self, links: Iterable[Link]) -> None:
        """Follow the profiles of links that are used from now on."""
        for link in links:
            link.used_by += 1
            if link.used_by == 1:
                self._follow_profile(link)

    def _unwatch(self, links: Iterable[Link]) -> None:
        for link in links:
            link.used_by -= 1
            if link.alarm is not None and not link.used_by:
                link.alarm.set(inf)

    def _follow_profile(self, link: Link) -> None:
        """Set the current bandwidth, and the alarm for the next change while the link is used."""
        after = self._look_up_profile(link)
        if link.alarm is not None and link.used_by:
            link.alarm.set(after)

    def _look_up_profile(self, link: Link) -> float:
        """Set the profile's current bandwidth; return the instant of its next change."""
        last, value, after = profile_at(link.spec, self.env._now)
        if last > link.set_at:
            self._change(link, value, link.down)
        return self._next_change(link, after)

    def _next_change(self, link: Link, after: float) -> float:
        return after

    def _turn(self, link: Link) -> None:
        """Report the present load of a link to its model, if that has a memory."""


_NEAR = 1e-15  # of the clock: what would end this close to a new limit ends with the old one
_ROUNDED = 4  # steps between floats within which rounding is over
_TURNS = 100  # changes of a link's capacity at one instant because of its load


class ModelledLinks(ChangingLinks):
    """The links with a model: the base class of :class:`~simmodel.resources.network.network.Network`.

    Parameters
    ----------
    env, links, model
        see :class:`~simmodel.resources.network.changing.ChangingLinks`
    """

    def _bundle(self, transfer: Transfer) -> Bundle:
        """Return the bundle of a transfer: with others of the same route and cap, or of its own if its rate is."""
        route = transfer.way
        cap, weight = min(transfer.rate_cap, route.cap), transfer.weight
        own = self.model.rule is not None
        if route.modelled:
            cap = min(cap, self._limit(transfer))
            own = own or any(link.varies for link in route.modelled)
            for link in route.modelled:
                self._count(link, 1)
        bound = cap < inf or bool(route.pipes) or own
        key = (-1.0 - transfer.number if own else cap, weight if bound else 1.0)
        bundle = route.bundles.get(key)
        if bundle is None:
            bundle = Bundle(route.uses, route.pipes, cap, key[1], route.scale, self._next_number())
            bundle.owner = route
            bundle.key = key
            route.bundles[key] = bundle
            if key == (route.cap, 1.0) and not route.modelled:
                route.plain = bundle
                bundle.plain = not route.changing
        return bundle

    def _limit(self, transfer: Transfer) -> float:
        """Return the most bytes/s of a transfer now, by the models of its links."""
        lowest, now = inf, self.env._now
        for link in transfer.way.modelled:
            limit = link.limit(transfer, now)
            if not limit >= 0:
                message = f"limit must return a number >= 0, got {limit!r}"
                raise InputError(message, place=f"link {link.name}")
            lowest = min(lowest, limit)
        return lowest

    def _count(self, link: Link, more: int) -> None:
        """Count the transfers over a link whose capacity depends on them."""
        if link.counts:
            link.transfers += more
            before = link.bound
            link.fit()
            if link.bound != before:
                self._capacity_changed(link, link.spec.sharing == "shared")

    def _fewer(self, bundle: Bundle, count: int) -> None:
        route: Route = bundle.owner
        for link in route.modelled:
            self._count(link, -count)

    def _follow_profile(self, link: Link) -> None:
        super()._follow_profile(link)
        if link.varies:
            self._follow_limits(link)
        if link.turn_at <= self.env._now:
            self._turn(link)

    def _next_change(self, link: Link, after: float) -> float:
        """Return the next change of a link whose profile changes at ``after``: that, or one of its model."""
        now = self.env._now
        if now < link.turn_at < after:
            after = link.turn_at
        if not link.varies:
            return after
        until = link.until(now)
        if not until > now:
            raise InputError(f"until must return an instant after {now!r}, got {until!r}", place=f"link {link.name}")
        return min(after, until)

    def _turn(self, link: Link) -> None:
        """Report its load to a link with a memory, and set the capacity that follows."""
        if not link.turning:
            return
        now = self.env._now
        link.turn_at = at = link.turns(now, link.load)
        before = link.bound
        link.fit()
        number = link.turned[1] + 1 if link.turned[0] == now else 1
        if link.bound != before:  # told again once the rates are solved
            link.turned = now, number
            if number > _TURNS:
                message = f"carries must come to rest at an instant, but changes with each turn: {before:g}, then"
                raise InputError(f"{message} {link.bound:g} bytes/s, at {now:g} s", place=f"link {link.name}")
            self._capacity_changed(link, link.spec.sharing == "shared")
        elif at == now:  # by rounding: the change is an instant away, or an excess of load over nothing left is none
            link.turn_at = nextafter(now, inf) if number <= _ROUNDED else inf
            link.turned = link.turn_at, number
        elif not at > now:
            raise InputError(f"turns must return an instant after {now!r}, got {at!r}", place=f"link {link.name}")
        if link.alarm is not None and link.used_by:
            link.alarm.set(self._next_change(link, profile_at(link.spec, now)[2]))

    def own_states(self) -> tuple[tuple[str, Any], ...]:
        """Return the memories of the models of its links, by link, for snapshots."""
        found = [(link.name, link.own_state()) for link in self.links.values() if type(link) is not Link]
        return tuple(each for each in found if each[1] is not None)

    def restore_own(self, states: Iterable[tuple[str, Any]]) -> None:
        """Restore the memories of the models of its links."""
        for name, values in states:
            self.links[name].restore_own(values)
            self.links[name].fit()

    def _follow_limits(self, link: Link) -> None:
        """Give the transfers over a link their limits of this instant."""
        now = self.env._now
        for way in link.routes:
            for bundle in way.bundles.values():
                if not bundle.count:
                    continue
                entry = bundle.head()
                transfer: Transfer = entry[3]
                cap = min(transfer.rate_cap, way.cap, self._limit(transfer))
                if cap == bundle.cap or self._ends_now(bundle, entry, now):
                    continue
                bundle.cap = cap
                bundle.fit()
                self._sharing.refit_group(bundle)
        self._settle_at_end()

    def _ends_now(self, bundle: Bundle, entry: tuple[float, float, int, object], now: float) -> bool:
        """Whether the transfer of a bundle ends at this instant, up to rounding."""
        if bundle.due == KEPT:
            bundle.read()
        return bundle.speed > 0 and bundle.ahead(entry, now) <= bundle.speed * now * _NEAR
