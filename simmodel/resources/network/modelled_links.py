"""Links with a model: capacities that depend on the number of transfers, and limits of single transfers.

Plain links pay nothing for it: the routes over links with a model have no plain bundle, and all that is done for models
is done where a transfer gets its bundle, where one leaves a bundle that is not plain, and at the alarms of such links.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nextafter
from typing import Any

from simmodel.foundation.errors import InputError
from simmodel.resources.network.changing import ChangingLinks
from simmodel.resources.network.flow import KEPT, Bundle
from simmodel.resources.network.links import Link, Route, profile_at
from simmodel.resources.network.transfer import Transfer

__all__ = ["ModelledLinks"]

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
            before = link.capacity
            link.fit()
            if link.capacity != before:
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
        before = link.capacity
        link.fit()
        number = link.turned[1] + 1 if link.turned[0] == now else 1
        if link.capacity != before:  # told again once the rates are solved
            link.turned = now, number
            if number > _TURNS:
                message = f"carries must come to rest at an instant, but changes with each turn: {before:g}, then"
                raise InputError(f"{message} {link.capacity:g} bytes/s, at {now:g} s", place=f"link {link.name}")
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
                transfer: Transfer = entry[3]  # type: ignore[assignment]
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
        return bundle.speed > 0 and bundle.ahead(entry, now) <= bundle.speed * now * _NEAR  # type: ignore[arg-type]
