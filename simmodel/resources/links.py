"""Links as they are now, and the routes over them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from simmodel.platform.network import LinkSpec, SharingModel
from simmodel.resources.alarm import Alarm
from simmodel.resources.flow import Bundle
from simmodel.resources.sharing import Channel

__all__ = ["Link", "Route", "profile_at"]

CROSSTRAFFIC = 0.05  # the part of a rate that goes back as acknowledgements (SimGrid's)


class Link(Channel):
    """A link as it is now.

    ``bandwidth`` is in bytes/s, ``capacity`` the same or 0 while it is down, ``load`` the sum of the rates over it
    (kept up to date for shared links, and for fatpipes where an observer listens).

    >>> Link(LinkSpec(name="wan", bandwidth="1GBps"))
    <Link wan of 1e+09 B/s, 0 used>
    """

    __slots__ = ("alarm", "bandwidth", "down", "routes", "set_at", "spec", "used_by")

    def __init__(self, spec: LinkSpec) -> None:
        super().__init__(spec.name, spec.bandwidth)
        self.spec = spec
        self.bandwidth = spec.bandwidth
        self.down = False
        self.routes: list[Route] = []
        self.used_by = 0
        self.set_at = -inf
        self.alarm: Alarm | None = None

    def __repr__(self) -> str:
        return f"<Link {self.name} of {self.bandwidth:g} B/s, {self.load:g} used{', down' if self.down else ''}>"


class Route:
    """The links that some transfers take, and the bundles of those transfers.

    Parameters
    ----------
    links, back
        the links of the way, and those on which answers come back
    model
        what makes wait (s), weight and cap (bytes/s) of the latency

    >>> link = Link(LinkSpec(name="wan", bandwidth=100.0, latency=2.0))
    >>> Route([link], [], SharingModel(name="slow start", latency_factor=1.5)).wait
    3.0
    """

    __slots__ = ("bundles", "cap", "changing", "latency", "links", "payload", "pipes", "plain", "scale", "uses", "wait")

    def __init__(self, links: Sequence[Link], back: Sequence[Link], model: SharingModel) -> None:
        self.links = tuple(links)
        self.latency = sum(link.spec.latency for link in links)
        self.wait = self.latency * model.latency_factor
        factors = dict.fromkeys(links, 1.0)
        for link in back:
            factors[link] = factors.get(link, 0.0) + CROSSTRAFFIC
        self.uses = tuple((link, factor) for link, factor in factors.items() if link.spec.sharing == "shared")
        # A fatpipe on the way back alone would bind at 20 times its bandwidth: that is left out.
        self.pipes = tuple(link for link in links if link.spec.sharing == "fatpipe")
        self.changing = tuple(link for link in factors if link.spec.profile)
        self.cap = model.cap(self.latency)
        self.payload = model.bandwidth_factor  # the part of a rate
        self.scale = 1.0
        self.bundles: dict[tuple[float, float], Bundle] = {}
        self.plain: Bundle | None = None

    def alone(self, cap: float) -> float:
        """Return how fast a transfer moves bytes with all links to itself, bytes/s."""
        bounds = [link.capacity / factor for link, factor in self.uses] + [pipe.capacity for pipe in self.pipes]
        return self.payload * min([cap, self.cap, *bounds])


def profile_at(spec: LinkSpec, now: float) -> tuple[float, float, float]:
    """Return since when (s) a link's profile has which bandwidth (bytes/s), and when it changes next.

    >>> link = LinkSpec(name="wan", bandwidth=10, profile=[(8, 2), (18, 10)], repeat=24)
    >>> profile_at(link, 3), profile_at(link, 20), profile_at(link, 30)
    ((-inf, 10.0, 8.0), (18.0, 10.0, 32.0), (18.0, 10.0, 32.0))
    """
    last, value = -inf, spec.bandwidth
    begin = 0.0
    after = inf if spec.repeat is None else spec.repeat + spec.profile[0][0]
    if spec.repeat is not None and now >= spec.repeat:
        # The same products now and when the next change was foretold: a wake-up never finds itself early.
        period = int(now / spec.repeat)
        period += (period + 1) * spec.repeat <= now
        period -= period * spec.repeat > now
        begin = period * spec.repeat
        after = (period + 1) * spec.repeat + spec.profile[0][0]
        last, value = (period - 1) * spec.repeat + spec.profile[-1][0], spec.profile[-1][1]
    for at, bandwidth in spec.profile:
        if begin + at > now:
            return last, value, begin + at
        last, value = begin + at, bandwidth
    return last, value, after
