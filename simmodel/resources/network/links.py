"""Live links, and the routes over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, ClassVar, Protocol

from simmodel.foundation.errors import InputError
from simmodel.platform.network import LinkSpec, SharingModel
from simmodel.resources.alarm import Alarm
from simmodel.resources.models import Model, check_model, model_named, read_options
from simmodel.resources.network.flow import Bundle, Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from simmodel.environment import Environment

__all__ = ["Link", "Moving", "Route", "make_link", "profile_at"]

CROSSTRAFFIC = 0.05  # the share of a rate that returns as acknowledgements, as in SimGrid


class Moving(Protocol):
    """A transfer, as models of links see it: its size (bytes), ends and route."""

    size: float
    weight: float
    rate_cap: float
    source: Hashable
    destination: Hashable
    way: Route


class Link(Channel, Model):
    """A live link, and the base class of models of links.

    ``bandwidth`` is in bytes/s now, also by a profile, and ``latency`` in s; ``capacity`` is shared by transfers
    (:meth:`carries`), and 0 while the link is down; ``load`` is the sum of the rates over it (maintained for shared
    links, and for fatpipes if an observer listens); ``transfers`` the number of those that move over it, if ``carries``
    depends on it.

    A model derives from it and overrides one or more of :meth:`carries`, :meth:`limit` (with :meth:`until`, if limits
    change with time), :meth:`delay` and :meth:`expected`; they are questions and change nothing. Its memory of
    its load changes in :meth:`turns`. Its options are ``self.options``.

    >>> Link(LinkSpec(name="wan", bandwidth="1GBps"))
    <Link wan of 1e+09 B/s, 0 used>
    """

    __slots__ = (
        *("_describe", "_own", "alarm", "clock", "down", "failures", "followed", "latency", "like", "options"),
        *("routes", "set_at", "stopped", "transfers", "turn_at", "turned", "used_by", "withheld"),
    )

    counts: ClassVar[bool] = False
    """Whether the bytes/s that it carries depend on the model."""
    varies: ClassVar[bool] = False
    """Whether the limits of its transfers change with time."""
    turning: ClassVar[bool] = False
    """Whether changes of its load are reported to the model."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.counts = cls.carries is not Link.carries
        cls.varies = cls.until is not Link.until
        cls.turning = cls.turns is not Link.turns

    def __init__(
        self, spec: LinkSpec, name: str | None = None, describe: Callable[[str], LinkSpec] | None = None
    ) -> None:
        super().__init__(spec.name if name is None else name, spec.bandwidth)
        self.like = spec  # with its values; its name and its reverse may be those of another link
        self._describe = describe  # returns its own spec by its name
        self._own = spec if describe is None else None
        self.options = spec.options
        if spec.options or self.takes is not None:
            self.options = read_options(type(self), spec.options, f"options of link {self.name}")
        self.followed = spec.bandwidth  # the bandwidth that transfers share: of the last change, or of the last use
        self.clock: Environment | None = None  # of a link with a profile
        self.latency = spec.latency
        self.down = False
        self.stopped = False  # whether a script has taken it down
        self.failures = 0  # components that have failed by chance and take it down
        self.routes: list[Route] = []
        self.used_by = 0
        self.transfers = 0
        self.set_at = -inf
        self.withheld = 0.0  # bytes/s that transfers do not have
        self.turn_at = inf  # when its model is told of the load again, at the latest
        self.turned = (-inf, 0)  # an instant, and how often its capacity has changed at it because of its load
        self.alarm: Alarm | None = None

    @property
    def spec(self) -> LinkSpec:
        """Its spec."""
        if self._own is None:
            assert self._describe is not None
            self._own = self._describe(self.name)
        return self._own

    def __repr__(self) -> str:
        return f"<Link {self.name} of {self.bandwidth:g} B/s, {self.load:g} used{', down' if self.down else ''}>"

    # ------------------------------------------------------------------ for models

    def carries(self, transfers: int) -> float:
        """Return the bytes/s that a number of transfers (>= 1) share while it is up; default: its bandwidth."""
        return self.bandwidth

    def limit(self, transfer: Moving, now: float) -> float:
        """Return the most bytes/s of one transfer at an instant (s), 0 or more; default: infinity.

        It is asked when the transfer begins to move, and at each instant that :meth:`until` returns.
        """
        return inf

    def until(self, now: float) -> float:
        """Return the instant (s) after ``now`` at which limits change next; default: infinity, they stay."""
        return inf

    def turns(self, now: float, load: float) -> float:
        """Note the bytes/s over it from an instant (s) on; return the instant at which to be called again, or infinity.

        It is called whenever the load may have changed, and at the instant that it returned; :meth:`carries` is asked
        afterwards, and if its answer has changed so may the load. For links with a memory, such as a token bucket:
        the state up to ``now`` follows from the load of the call before.
        """
        return inf

    def delay(self) -> float:
        """Return the seconds that a transfer waits for the link, besides its latency; default: 0."""
        return 0.0

    def expected(self, transfer: Moving, now: float) -> float:
        """Return the mean bytes/s of a transfer alone on it, for estimates; default: by its limit now."""
        return min(self.carries(1), self.limit(transfer, now))

    # ------------------------------------------------------------------ its state

    @property
    def bandwidth(self) -> float:
        """Its bandwidth now, in bytes/s, by its profile or as set; 0 while the profile takes it down."""
        if self.clock is not None:
            last, value, _ = profile_at(self.like, self.clock._now)
            if last > self.set_at:
                return value
        return self.followed

    @property
    def up(self) -> bool:
        """Whether it is up, also by its profile."""
        return not self.down and self.bandwidth > 0

    @property  # type: ignore[misc]
    def capacity(self) -> float:
        """The bytes/s that transfers share now: what it carries, less what is withheld; 0 while it is down."""
        return self.bound if self.used_by or self.clock is None else self._carried()

    def fit(self) -> None:
        """Let transfers share the capacity of now."""
        self.bound = self._carried()

    def _carried(self) -> float:
        if not self.up:
            return 0.0
        capacity = self.carries(self.transfers or 1)
        if not 0 < capacity < inf:
            raise InputError(f"carries must return a finite number > 0, got {capacity!r}", place=f"link {self.name}")
        return max(0.0, capacity - self.withheld)

    @property
    def altered(self) -> bool:
        """Whether it differs from its spec because a script has changed it."""
        spec = self.spec
        changed = self.stopped or self.latency != spec.latency or (self.followed != spec.bandwidth and not spec.profile)
        return self.set_at > -inf or self.withheld > 0 or changed


def make_link(spec: LinkSpec) -> Link:
    """Return the live link of a spec, of the class that its ``model`` names.

    Raises
    ------
    InputError
        the model is unknown, or refuses the spec or its options

    >>> make_link(LinkSpec(name="wan", bandwidth="1GBps", model="lossy", options={"loss": 0.2})).capacity
    800000000.0
    """
    if spec.model is None:
        if spec.options:
            message = f"must be empty without a model, got {dict(spec.options)}"
            raise InputError(message, place=f"options of link {spec.name}")
        return Link(spec)
    model = model_named(spec.model, Link, f"model of link {spec.name}")
    check_model(model, spec, f"link {spec.name}")
    link = model(spec)
    link.fit()
    return link


class Route:
    """A sequence of links, and the bundles of the transfers over it.

    Parameters
    ----------
    links, back
        the links of the route, and those of the way back for crosstraffic
    model
        computes wait (s), weight and cap (bytes/s) from the latency

    >>> link = Link(LinkSpec(name="wan", bandwidth=100.0, latency=2.0))
    >>> Route([link], [], SharingModel(name="slow start", latency_factor=1.5)).wait
    3.0
    """

    __slots__ = (
        "bundles",
        "cap",
        "changing",
        "fails",
        "latency",
        "links",
        "model",
        "modelled",
        "payload",
        "pipes",
        "plain",
        "scale",
        "uses",
        "wait",
    )

    def __init__(self, links: Sequence[Link], back: Sequence[Link], model: SharingModel) -> None:
        self.links = tuple(links)
        self.model = model
        self.fails = "fail" in [link.like.when_down for link in links]  # whether its transfers fail with their links
        factors = dict.fromkeys(links, 1.0)
        if len(factors) < len(links):  # it passes a link twice
            factors = {link: float(links.count(link)) for link in factors}
        for link in back:
            factors[link] = factors.get(link, 0.0) + CROSSTRAFFIC
        self.uses = tuple([each for each in factors.items() if each[0].like.sharing == "shared"])
        # A fatpipe on the way back only would bind at 20 times its bandwidth: ignored.
        self.pipes = tuple([link for link in links if link.like.sharing == "fatpipe"])
        self.modelled = tuple([link for link in links if type(link) is not Link])
        self.changing = tuple([link for link in factors if link.like.profile or type(link) is not Link])
        self.payload = model.bandwidth_factor  # the share of a rate that is payload
        self.bundles: dict[tuple[float, float], Bundle] = {}
        self.plain: Bundle | None = None
        self.follow_latency()
        self.weigh()

    def follow_latency(self) -> None:
        """Compute the wait and the cap from the current latencies of the links."""
        self.latency = sum([link.latency for link in self.links])
        self.wait = self.latency * self.model.latency_factor
        if self.modelled:
            self.wait += sum(link.delay() for link in self.modelled)
        self.cap = self.model.cap(self.latency)

    def weigh(self) -> None:
        """Compute the weight from the current latencies and bandwidths of the links."""
        # A bandwidth of 0 in a profile means down, and gives no weight.
        bandwidths = [link.followed or link.like.bandwidth for link in self.links]
        self.scale = self.model.weight(self.latency, bandwidths)

    @property
    def bandwidth(self) -> float:
        """The least bandwidth of its links now, in bytes/s, whether up or down; infinity without links."""
        return min([link.bandwidth or link.like.bandwidth for link in self.links], default=inf)

    def dead(self) -> Link | None:
        """Return the first of its links that is down, if any."""
        return next((link for link in self.links if not link.up), None)

    def alone(self, transfer: Moving, now: float) -> float:
        """Return the rate of a transfer on otherwise idle links, in bytes/s."""
        bounds = [(link.expected(transfer, now) if link.up else 0.0) / factor for link, factor in self.uses]
        bounds += [pipe.expected(transfer, now) if pipe.up else 0.0 for pipe in self.pipes]
        return self.payload * min([transfer.rate_cap, self.cap, *bounds])


def profile_at(spec: LinkSpec, now: float) -> tuple[float, float, float]:
    """Return the last change of a link's profile (s), the bandwidth since then (bytes/s), and the next change (s).

    >>> link = LinkSpec(name="wan", bandwidth=10, profile=[(8, 2), (18, 10)], repeat=24)
    >>> profile_at(link, 3), profile_at(link, 20), profile_at(link, 30)
    ((-inf, 10.0, 8.0), (18.0, 10.0, 32.0), (18.0, 10.0, 32.0))
    """
    last, value = -inf, spec.bandwidth
    begin = 0.0
    after = inf if spec.repeat is None else spec.repeat + spec.profile[0][0]
    if spec.repeat is not None and now >= spec.repeat:
        # The same products as when this change was announced as the next one: a wake-up is never early by rounding.
        period = int(now / spec.repeat)
        period += (period + 1) * spec.repeat <= now
        period -= period * spec.repeat > now
        begin = period * spec.repeat
        after = (period + 1) * spec.repeat + spec.profile[0][0]
        last, value = (period - 1) * spec.repeat + spec.profile[-1][0], spec.profile[-1][1]
    points = spec.profile
    passed = bisect_right(points, now, key=lambda point: begin + point[0])
    if passed:
        last, value = begin + points[passed - 1][0], points[passed - 1][1]
    return last, value, begin + points[passed][0] if passed < len(points) else after
