"""Transfers: bytes in flight, as events."""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import NamedTuple

from simmodel.foundation.errors import _error
from simmodel.resources.network.flow import Cancelled, Carrier, Flow
from simmodel.resources.network.links import Link, Route

__all__ = ["Delivery", "LinkFailed", "Transfer"]


@_error
class LinkFailed(Cancelled):
    """A transfer failed because a link of its route is down, with ``done`` of ``size`` bytes moved.

    >>> raise LinkFailed("transfer 1 failed", done=3.0, size=10.0, link="wan")
    Traceback (most recent call last):
    ...
    simmodel.resources.network.transfer.LinkFailed: transfer 1 failed
    """

    link: str = ""


class Delivery(NamedTuple):
    """The value of a completed transfer: its start and end (s), and the bytes moved.

    >>> Delivery(start=0.0, end=2.5, bytes=100.0).end
    2.5
    """

    start: float
    end: float
    bytes: float


class Transfer(Flow):
    """Bytes in flight: an event that happens when the last byte is sent; its value is a :class:`Delivery`.

    It can be used in conditions. It continues if a process waiting for it is interrupted; ``cancel()`` ends it and
    ``pause()`` stops it until ``resume()``, both keeping the bytes moved so far (``bytes_done``). If it ``fails`` with
    its links, its status becomes ``"failed"`` and waiting processes get :class:`LinkFailed`.

    >>> from simmodel import Environment, Network
    >>> from simmodel.platform import LinkSpec
    >>> env = Environment()
    >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0)])
    >>> def fetch(env):
    ...     with network.transfer(1000, route=["wan"]) as transfer:
    ...         yield transfer | env.timeout(4)
    ...     return transfer.status, transfer.bytes_done
    >>> env.run(env.process(fetch(env)))
    ('cancelled', 400.0)
    """

    wait_entry: object = None

    def __init__(
        self,
        fluid: Carrier,
        size: float,
        weight: float,
        route: Route,
        cap: float,
        wait: float,
        fails: bool,
        source: Hashable,
        destination: Hashable,
    ) -> None:
        # The attributes of Event and Flow, too: their constructors would double its cost.
        self.env = env = fluid.env
        self.callbacks = []
        self.fluid = fluid
        self.size = self.kept = size
        self.weight = weight
        self.start = env._now
        self.rate_cap = cap
        self.fails = fails
        self.way = route
        self.wait = wait  # the remaining latency, or the instant at which it ends
        self.source = source
        self.destination = destination

    @property
    def lag(self) -> float:
        """The remaining seconds of its latency."""
        return self.wait - self.env._now if self.wait_entry is not None else self.wait

    @property
    def bytes_done(self) -> float:
        """Bytes moved so far."""
        return self.done

    @property
    def route(self) -> tuple[str, ...]:
        """The names of the links, in order."""
        return tuple(link.name for link in self.way.links)

    @property
    def alone(self) -> float:
        """Its duration in seconds on otherwise idle links in their current state; infinity if one is down."""
        if not self.size or not self.way.links:
            return self.way.wait
        rate = self.way.alone(self, self.env._now)
        return self.way.wait + self.size / rate if rate > 0 else inf

    def break_off(self, link: Link) -> None:
        """End it as failed, because of a link that is down."""
        if self.end is None:
            self.fluid.take_out(self)
            message = self._ended_early(f"failed with link {link.name}")
            self._end_early("failed", LinkFailed(message, self.done, self.size, link.name))

    def _result(self) -> Delivery:
        return Delivery(self.start, self.env._now, self.size)

    def _title(self) -> str:
        ends = f" from {self.source} to {self.destination}" if self.source is not None else ""
        over = f" over {', '.join(self.route)}" if self.way.links else ""
        return f"transfer {self.number}{ends}{over}"
