"""Links that change during a run: bandwidth, latency, failures and profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.units import parse_quantity
from simmodel.platform.network import SharingModel
from simmodel.resources.alarm import Alarm
from simmodel.resources.network.flow import Bundle
from simmodel.resources.network.fluid import Fluid
from simmodel.resources.network.links import Link, Route, profile_at
from simmodel.resources.network.transfer import Transfer

__all__ = ["ChangingLinks"]


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
        self._turning: tuple[Callable[[Link], object], ...] = ()  # what tells links with a memory of their loads
        super().__init__(env, model.bandwidth_factor)
        for link in links.values():
            self._follow(link)

    def _follow(self, link: Link) -> None:
        """Give a link its alarm if it changes by itself, and hear of its load if its model does."""
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
        self._change(found, found.bandwidth, True)

    def restore(self, link: str | Link) -> None:
        """Bring a link back up, unless it has failed by chance."""
        found = self._link(link)
        found.stopped = False
        self._change(found, found.bandwidth, found.failures > 0)

    def count_failed(self, link: str | Link, more: int) -> None:
        """Count the failures by chance that take a link down: 1 begins, or -1 is repaired."""
        found = self._link(link)
        found.failures += more
        self._change(found, found.bandwidth, found.stopped or found.failures > 0)

    def _change(self, link: Link, bandwidth: float, down: bool) -> None:
        if bandwidth == link.bandwidth and down == link.down:
            return
        reweigh = bandwidth > 0 and bandwidth != link.bandwidth and self.model.weight_s
        link.bandwidth = bandwidth
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
